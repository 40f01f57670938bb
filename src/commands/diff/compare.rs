//! Walks the objects of a shard in both files side by side.

use super::change_output::ChangeOutput;
use super::cursor::{Head, ShardCursor};
use super::locations::{LocationRule, loses_location};
use super::report::Report;
use super::show::{SignedText, put_details, put_line};
use super::side::Side;
use super::{Equality, Format, Options, Summary};
use crate::engine::shards::{MergeStep, Shard, Source, Sources};
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::formats::{ChangeAction, ChangeSet};
use crate::index::IdSets;
use crate::osm::{KindSet, ObjectId, ObjectKind, TypeThenId};
use crate::pbf::{BlobFlags, Block};
use crate::runtime::PassResults;
use std::cmp::Ordering;
use std::marker::PhantomData;

/// The size in bytes at which the text or the changes of a step are sent as a partial result.
const CHUNK: usize = 1 << 20;

/// A part of the result of a merge step, with counts and the text of the differences.
#[derive(Default)]
pub(super) struct StepFindings<C> {
    pub summary: Summary,
    pub text: String,
    /// The changes that turn the old file into the new one; empty unless changes are kept in memory.
    pub changes: ChangeSet,
    /// The counts of the differences; `None` if differences are not counted, or if another part has the counts.
    pub counts: Option<Box<C>>,
}

/// Counts of differences, for example for the charts of a page. They cover one shard, or all shards so far.
pub(super) trait DifferenceCounts: Default + Send {
    /// Whether anything is counted.
    const IS_WANTED: bool;

    /// Counts a pair of objects that differ, or an object that only one file has. `is_relocated` is set for ways whose
    /// stored locations count as different.
    fn add(&mut self, report: Report, old: &Side<'_>, new: &Side<'_>, is_relocated: bool);

    /// Adds the counts of the next shard.
    fn merge(&mut self, other: Self);
}

/// Counts nothing.
impl DifferenceCounts for () {
    const IS_WANTED: bool = false;

    fn add(&mut self, _: Report, _: &Side<'_>, _: &Side<'_>, _: bool) {}

    fn merge(&mut self, (): Self) {}
}

/// Compares the objects of merge steps. Each worker has its own `Comparison`.
pub(super) struct Comparison<'d, C> {
    sources: Sources,
    format: Option<Format>,
    equality: Equality,
    locations: &'d LocationRule<'d>,
    kinds: KindSet,
    /// The objects to compare; `None` for all.
    only: Option<&'d IdSets>,
    verify: bool,
    /// Whether objects are matched by version as well as by id, as in history files.
    history: bool,
    /// Whether the changes are kept in memory instead of being written as text.
    collects_changes: bool,
    counts: PhantomData<C>,
}

impl<C> StepFindings<C> {
    /// Returns the approximate size in memory in bytes.
    fn memory(&self) -> usize {
        self.text.len() + self.changes.memory()
    }
}

/// Sends a part of the result of a step. Text is sent in several pieces if it is long.
fn send_part<C: DifferenceCounts>(
    mut part: StepFindings<C>,
    results: &PassResults<'_, StepFindings<C>>,
) -> FormatResult<()> {
    let text = std::mem::take(&mut part.text);
    let mut send = |text| {
        let part = StepFindings {
            text,
            ..std::mem::take(&mut part)
        };
        let memory = part.memory();
        let sent = results.send_sized(part, memory);
        sent.map_err(|error| FormatError::with(error.to_string()))
    };
    let mut rest = text.as_str();
    while rest.len() > 8 * CHUNK {
        let is_end = |at: &usize| rest.is_char_boundary(*at);
        let at = (CHUNK..rest.len()).find(is_end).unwrap_or(rest.len());
        let (piece, others) = rest.split_at(at);
        send(piece.to_owned())?;
        rest = others;
    }
    if rest.len() == text.len() {
        send(text)
    } else {
        send(rest.to_owned())
    }
}

impl<'d, C: DifferenceCounts> Comparison<'d, C> {
    pub(super) fn new(
        sources: Sources,
        options: &Options,
        format: Option<&Format>,
        (locations, only): (&'d LocationRule<'d>, Option<&'d IdSets>),
        history: bool,
        collects_changes: bool,
    ) -> Self {
        Self {
            sources,
            equality: match format {
                // A change file contains all metadata, so objects that differ in any metadata are changes.
                Some(Format::Osc(deletions)) => Equality {
                    metadata: !deletions.content_only,
                    ..Equality::default()
                },
                _ => options.equality,
            },
            format: format.cloned(),
            locations,
            kinds: options.kinds,
            only,
            verify: options.verify,
            history,
            collects_changes,
            counts: PhantomData,
        }
    }

    /// Whether an object is compared.
    fn selects(&self, id: ObjectId) -> bool {
        self.only.is_none_or(|only| only.contains(id.kind, id.id))
    }

    /// Whether the differences are written or collected as changes.
    const fn has_change_output(&self) -> bool {
        matches!(self.format, Some(Format::Osc(_)))
    }

    /// Whether the references whose stored locations differ have to be found even if the ways also differ in other
    /// respects.
    const fn needs_moved_references(&self) -> bool {
        let has_details = matches!(self.format, Some(Format::Text { details: true, .. }));
        has_details || C::IS_WANTED || self.has_change_output()
    }

    /// Compares the objects of a merge step and sends the differences.
    pub(super) fn compare_and_send(
        &mut self,
        step: MergeStep,
        results: &PassResults<'_, StepFindings<C>>,
    ) -> Result<()> {
        let found = self.compare(step, results)?;
        let memory = found.memory();
        results.send_sized(found, memory)
    }

    /// Compares the objects of a merge step. Sends all parts of the result except the last one, which is returned.
    fn compare(
        &mut self,
        step: MergeStep,
        results: &PassResults<'_, StepFindings<C>>,
    ) -> Result<StepFindings<C>> {
        let shard = match step {
            MergeStep::Merge(shard) => shard,
            MergeStep::Copy(source) => Shard::of(source),
        };
        if let Some(found) = self.count_equal_pair(&shard)? {
            return Ok(found);
        }
        let payloads: Vec<Vec<u8>> = shard
            .sources
            .iter()
            .map(|source| self.sources.payload(source))
            .collect::<Result<_>>()?;
        let mut sides: [Vec<(Source, Block<'_>)>; 2] = Default::default();
        for (source, payload) in shard.sources.iter().zip(&payloads) {
            let block = Block::parse(payload);
            let block = block.map_err(|error| self.sources.error(source, error))?;
            let side = sides.get_mut(source.file);
            let side = side.ok_or_else(|| Error::internal("a blob without its file"))?;
            side.push((*source, block));
        }
        for side in &mut sides {
            side.sort_by_key(|(source, _)| source.entry.offset);
        }
        let failed = |(source, error): (Option<&Source>, FormatError)| match source {
            Some(source) => self.sources.error(source, error),
            None => Error::Internal(error.to_string()),
        };
        self.compare_side_by_side(&sides, &shard, results)
            .map_err(failed)
    }

    /// Counts the objects of a pair of blobs with equal payloads, without parsing the payloads. Returns `None` if the
    /// shard is not such a pair, or if its objects have to be compared one by one.
    fn count_equal_pair(&mut self, shard: &Shard) -> Result<Option<StepFindings<C>>> {
        let [one, two] = shard.sources.as_slice() else {
            return Ok(None);
        };
        let (entry, other) = (&one.entry, &two.entry);
        let hashed = entry.flags.has(BlobFlags::HASHED) && other.flags.has(BlobFlags::HASHED);
        let shows_common = matches!(self.format, Some(Format::Text { common: true, .. }));
        // A change file cannot be made from a file in which an object occurs twice. The objects are compared to find
        // such an object, even if both files have it twice.
        let may_repeat = self.has_change_output() && !entry.flags.has(BlobFlags::UNIQUE_IDS);
        let is_needed =
            |source: &&Source| source.file == 1 && self.locations.must_compare_blob(&source.entry);
        let (Some(kind), false, true) = (
            entry.kinds.single(),
            shows_common || may_repeat || one.file == two.file || [one, two].iter().any(is_needed),
            (entry.first_sort_key(), entry.last_sort_key(), entry.count)
                == (other.first_sort_key(), other.last_sort_key(), other.count),
        ) else {
            return Ok(None);
        };
        // Without `verify`, two blobs with hashes get here only if the hashes differ, equal objects are written, or ids
        // may repeat. In each of these cases, the objects have to be compared.
        if hashed && !self.verify {
            return Ok(None);
        }
        let payload = self.sources.payload(one)?;
        if payload != self.sources.payload(two)? {
            return Ok(None);
        }
        let mut found = StepFindings::default();
        if self.only.is_none() {
            found.summary.counts_mut(kind).same += u64::from(entry.count);
        }
        found.summary.blobs_equal += 1;
        Ok(Some(found))
    }

    /// Walks the objects of both files in order, and compares objects with the same rank as a pair.
    fn compare_side_by_side<'a>(
        &self,
        sides: &'a [Vec<(Source, Block<'a>)>; 2],
        shard: &Shard,
        results: &PassResults<'_, StepFindings<C>>,
    ) -> Result<StepFindings<C>, (Option<&'a Source>, FormatError)> {
        let is_strict = self.has_change_output();
        let [mut old, mut new] = sides
            .each_ref()
            .map(|blocks| ShardCursor::new(blocks, shard, self.kinds, is_strict));
        old.advance()?;
        new.advance()?;
        let mut pair = Pair::new(self);
        loop {
            let source = old.source_of_head().or_else(|| new.source_of_head());
            let fail = |error| (source, error);
            let order = match (&old.head, &new.head) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => self.sort_key(old).cmp(&self.sort_key(new)),
            };
            let (left, right) = (
                old.head.filter(|_| order != Ordering::Greater),
                new.head.filter(|_| order != Ordering::Less),
            );
            pair.compare(left, right).map_err(|error| {
                let is_old = left.is_some_and(|left| right.is_none() || left.is_invalid());
                (
                    if is_old {
                        old.source_of_head()
                    } else {
                        new.source_of_head()
                    },
                    error,
                )
            })?;
            if let Some(part) = pair.take_chunk() {
                send_part(part, results).map_err(fail)?;
            }
            if left.is_some() {
                old.advance()?;
            }
            if right.is_some() {
                new.advance()?;
            }
        }
        Ok(pair.finish())
    }

    /// Returns the key by which objects are ordered and matched. It includes the version if objects are matched by
    /// version.
    fn sort_key(&self, head: &Head<'_>) -> (TypeThenId, i64) {
        let version = if self.history { head.object.version } else { 0 };
        (head.object.key, version)
    }
}

/// Compares objects pair by pair and writes the differences.
struct Pair<'c, 'a, C> {
    comparison: &'c Comparison<'c, C>,
    old: Side<'a>,
    new: Side<'a>,
    /// The indices of those references of a way whose stored locations count as different.
    moved: Vec<usize>,
    /// The addresses of the blocks of the last pair, and whether these blocks share their string table and units.
    blocks: Option<([*const Block<'a>; 2], bool)>,
    found: StepFindings<C>,
    changes: ChangeOutput,
    text: Option<SignedText>,
}

impl<'c, 'a, C: DifferenceCounts> Pair<'c, 'a, C> {
    fn new(comparison: &'c Comparison<'c, C>) -> Self {
        Self {
            comparison,
            old: Side::default(),
            new: Side::default(),
            moved: Vec::new(),
            blocks: None,
            found: StepFindings {
                counts: C::IS_WANTED.then(Box::default),
                ..StepFindings::default()
            },
            changes: ChangeOutput::new(comparison.collects_changes, comparison.format.as_ref()),
            text: match &comparison.format {
                Some(Format::Objects { text, .. }) => Some(SignedText::new(text)),
                _ => None,
            },
        }
    }

    /// Compares the objects of a pair. `old` or `new` is `None` if only the other file has the object. Counts the
    /// result and writes the difference.
    fn compare(&mut self, old: Option<Head<'a>>, new: Option<Head<'a>>) -> FormatResult<()> {
        let Some(known) = old.or(new) else {
            return Ok(());
        };
        let id = ObjectId::from_sort_key(known.object.key);
        if !self.comparison.selects(id) {
            return Ok(());
        }
        let report = match (old, new) {
            (Some(old), Some(new)) => {
                if self.are_same(old, new)? {
                    Report::Same
                } else {
                    Report::Different
                }
            }
            (Some(_), None) => Report::Left,
            _ => Report::Right,
        };
        self.found.summary.counts_mut(id.kind).count_object(report);
        if C::IS_WANTED && report != Report::Same {
            self.count_difference(report, old, new)?;
        }
        match &self.comparison.format {
            None => Ok(()),
            Some(Format::Text { common, details }) => {
                if report == Report::Same && !common {
                    return Ok(());
                }
                let versions = [old, new].map(|head| head.map(|head| head.object.version));
                put_line(&mut self.found.text, report, id, versions);
                if *details && report == Report::Different {
                    put_details(
                        &mut self.found.text,
                        &self.old,
                        &self.new,
                        &self.moved,
                        self.comparison.equality,
                    );
                }
                Ok(())
            }
            Some(Format::Objects { common, .. }) => {
                if report == Report::Same && !common {
                    return Ok(());
                }
                self.put_objects(report, old, new)
            }
            Some(Format::Osc(_)) => self.put_change(report, old, new),
        }
    }

    /// Counts a difference. Not inlined, because nearly all objects are the same in both files.
    #[cold]
    fn count_difference(
        &mut self,
        report: Report,
        old: Option<Head<'a>>,
        new: Option<Head<'a>>,
    ) -> FormatResult<()> {
        // For a pair that differs, `are_same` has already set `self.old` and `self.new`.
        match report {
            Report::Left => old.map_or(Ok(()), |old| self.old.fill(&old.object, old.block))?,
            Report::Right => new.map_or(Ok(()), |new| self.new.fill(&new.object, new.block))?,
            Report::Same | Report::Different => {}
        }
        if let Some(counts) = &mut self.found.counts {
            counts.add(report, &self.old, &self.new, !self.moved.is_empty());
        }
        Ok(())
    }

    /// Whether two objects are equal. If they are not equal, `self.old` and `self.new` contain them afterwards.
    fn are_same(&mut self, old: Head<'a>, new: Head<'a>) -> FormatResult<bool> {
        let comparison = self.comparison;
        let locations = &comparison.locations;
        let may_differ = old.object.key.0 == ObjectKind::Way && locations.has_dropped_nodes();
        if !may_differ
            && self.shares_strings(old.block, new.block)
            && old.object.is_stored_alike(&new.object)
        {
            return Ok(true);
        }
        self.old.fill(&old.object, old.block)?;
        self.new.fill(&new.object, new.block)?;
        self.moved.clear();
        let equality = comparison.equality;
        let exact = equality.tag_order || (comparison.has_change_output() && equality.metadata);
        let is_equal = equality.holds_between(&self.old, &self.new, exact);
        let content = Equality {
            metadata: false,
            ..equality
        };
        let has_equal_content = is_equal
            || equality.metadata && content.holds_between(&self.old, &self.new, equality.tag_order);
        if has_equal_content || comparison.needs_moved_references() {
            let found = locations.find_moved(&self.old, &self.new, &mut self.moved);
            found.map_err(|error| FormatError::with(error.to_string()))?;
            let has_moved = is_equal && !self.moved.is_empty();
            self.found.summary.relocated += u64::from(has_moved);
        }
        let versions = [&self.old, &self.new].map(|side| side.object.info.version);
        let is_new_version = matches!(versions, [Some(old), Some(new)] if old != new);
        if has_equal_content && is_new_version && self.moved.is_empty() {
            self.found.summary.new_version_only += 1;
        }
        Ok(is_equal && self.moved.is_empty())
    }

    /// Whether two blocks share their string table and units. The result is kept for the next pair of the same blocks.
    fn shares_strings(&mut self, old: &'a Block<'a>, new: &'a Block<'a>) -> bool {
        let blocks = [std::ptr::from_ref(old), std::ptr::from_ref(new)];
        match self.blocks {
            Some((known, alike)) if known == blocks => alike,
            _ => {
                let alike = old.shares_strings_and_units(new);
                self.blocks = Some((blocks, alike));
                alike
            }
        }
    }

    /// Writes an object once if it is equal in both files or only one file has it. Otherwise, writes both versions.
    fn put_objects(
        &mut self,
        report: Report,
        old: Option<Head<'a>>,
        new: Option<Head<'a>>,
    ) -> FormatResult<()> {
        let Some(text) = &mut self.text else {
            return Ok(());
        };
        let out = &mut self.found.text;
        if let Some(old) = old {
            self.old.fill(&old.object, old.block)?;
            let sign = match report {
                Report::Same => Report::Same,
                _ => Report::Left,
            };
            text.put(out, sign, &self.old.object);
        }
        if let Some(new) = new.filter(|_| report != Report::Same) {
            self.new.fill(&new.object, new.block)?;
            text.put(out, Report::Right, &self.new.object);
        }
        Ok(())
    }

    /// Writes a pair as a change, unless the objects are equal.
    fn put_change(
        &mut self,
        report: Report,
        old: Option<Head<'a>>,
        new: Option<Head<'a>>,
    ) -> FormatResult<()> {
        let Some(Format::Osc(deletions)) = &self.comparison.format else {
            return Ok(());
        };
        match (report, old, new) {
            (Report::Left, Some(old), _) => {
                self.old.fill(&old.object, old.block)?;
                let object = &mut self.old.object;
                let info = &mut object.info;
                if deletions.increment_version {
                    info.version = Some(info.version.unwrap_or(0).saturating_add(1));
                }
                info.timestamp = deletions.timestamp.or(info.timestamp);
                if deletions.keep_details {
                    self.changes.put(ChangeAction::Delete, object)?;
                } else {
                    self.changes.put_deletion(object)?;
                }
            }
            (Report::Right, _, Some(new)) => {
                self.new.fill(&new.object, new.block)?;
                self.found.summary.inexact += u64::from(!self.new.is_exact);
                let action = deletions.action_of(&self.new.object, ChangeAction::Create);
                self.changes.put(action, &self.new.object)?;
            }
            (Report::Different, ..) => {
                let age = |side: &Side<'_>| {
                    let newest = (u32::MAX, i64::MAX);
                    let (version, time) = (side.object.info.version, side.object.info.timestamp);
                    (version.unwrap_or(newest.0), time.unwrap_or(newest.1))
                };
                // If the object in the old file has no version, any change replaces it.
                let is_known = self.old.object.info.version.is_some();
                let goes_back = is_known && age(&self.new) < age(&self.old);
                self.found.summary.going_back += u64::from(goes_back);
                self.found.summary.inexact += u64::from(!self.new.is_exact);
                let is_lost = loses_location(&self.old, &self.new, &self.moved);
                self.found.summary.locations_lost += u64::from(is_lost);
                let action = deletions.action_of(&self.new.object, ChangeAction::Modify);
                self.changes.put(action, &self.new.object)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Removes and returns the text or the changes so far if they take at least [`CHUNK`] bytes.
    fn take_chunk(&mut self) -> Option<StepFindings<C>> {
        let (mut text, mut changes) = (String::new(), ChangeSet::default());
        match &mut self.changes {
            _ if self.found.text.len() >= CHUNK => text = std::mem::take(&mut self.found.text),
            ChangeOutput::Text(found) if found.len() >= CHUNK => text = found.take(),
            ChangeOutput::Collected(found) if found.memory() >= CHUNK => {
                changes = std::mem::take(&mut **found);
            }
            _ => return None,
        }
        // The lists in `old` and `new` may be as large as the part. They would use memory while the part waits to be
        // merged, so they are freed here.
        (self.old, self.new) = Default::default();
        Some(StepFindings {
            text,
            changes,
            ..StepFindings::default()
        })
    }

    fn finish(mut self) -> StepFindings<C> {
        match self.changes {
            ChangeOutput::Text(text) => self.found.text += &text.finish(),
            ChangeOutput::Collected(changes) => self.found.changes = *changes,
        }
        self.found
    }
}
