//! Applies changes to a blob.

use super::locations::LocationUpdates;
use super::omitted::OmittedNodes;
use super::steps::ApplyStep;
use super::tally::Tally;
use super::watcher::Watcher;
use crate::commands::augmented_diff::CandidateRefs;
use crate::engine::sink::BlobOutcome;
use crate::error::{Advice, Error, FormatError, Result};
use crate::file::{BlobDecoder, WriteOptions};
use crate::formats::{Change, ChangeSet};
use crate::index::IdSet;
use crate::osm::{KindSet, ObjectId, ObjectKind, TypeThenId, id_from_rank};
use crate::pbf::{
    BlobEntry, BlobFlags, Block, BlockUnits, EncodedFrame, FrameEncoder, Object, Relocated,
    Segmented, SourceStrings, TARGET_ELEMENTS, VersionInfo, relocate_ways, stale_index,
};
use crate::pbf::{EditOp, EditScript, SpliceOptions, splice_block};

/// The maximum size in bytes of a block that is spliced. A larger block is rebuilt as blocks of the usual size, because
/// splicing needs up to ten times as much memory as the block.
const MAX_SPLICED: usize = 16 << 20;

/// The rules for objects without changes, and for nodes that the output leaves out.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Whether the coordinates in ways are removed.
    pub drops_locations: bool,
    /// The locations of nodes; `None` unless the coordinates in ways are kept up to date.
    pub locations: Option<LocationUpdates>,
}

impl Rules {
    /// Whether a blob has to be decoded even without changes, because its ways may get other coordinates or its nodes
    /// may have to be removed.
    pub(super) fn rewrites(&self, entry: &BlobEntry) -> bool {
        let moves = |locations: &LocationUpdates| locations.may_move(entry);
        self.drops_locations && entry.may_have_locations()
            || self.locations.as_ref().is_some_and(moves)
            || self
                .omitted()
                .is_some_and(|omitted| omitted.may_omit(entry))
    }

    fn omitted(&self) -> Option<&OmittedNodes> {
        self.locations.as_ref()?.omitted.as_ref()
    }

    /// Whether the output leaves out the object of a change.
    fn leaves_out(&self, change: &Change) -> bool {
        self.omitted().is_some_and(|omitted| omitted.drops(change))
    }

    /// Whether a node that is not left out only stays for ways, in an output that leaves out other nodes of this kind.
    fn is_extra(&self, change: &Change) -> bool {
        self.omitted()
            .is_some_and(|omitted| omitted.is_extra(change))
    }
}

/// Executes steps. Each worker has its own editor, with an encoder and buffers.
pub(super) struct Editor<'a> {
    write: WriteOptions,
    encoder: FrameEncoder,
    changes: &'a ChangeSet,
    rules: &'a Rules,
    watcher: Watcher<'a>,
    spliced: Vec<u8>,
    relocated: Vec<u8>,
}

impl<'a> Editor<'a> {
    pub(super) fn new(changes: &'a ChangeSet, options: WriteOptions, rules: &'a Rules) -> Self {
        let mut encoder = FrameEncoder::new(options.compression, options.blob_index);
        if rules.locations.is_none() {
            // Drops the coordinates in the ways of change files, too, so that no way of the output has coordinates.
            encoder.drop_locations();
        }
        Self {
            write: options,
            encoder,
            changes,
            rules,
            watcher: Watcher::None,
            spliced: Vec::new(),
            relocated: Vec::new(),
        }
    }

    /// Makes the editor show the decoded blobs to `watcher`.
    pub(super) fn shown_to(self, watcher: Watcher<'a>) -> Self {
        Self { watcher, ..self }
    }

    fn slice(&self, range: &std::ops::Range<usize>) -> &'a [Change] {
        &self.changes.changes()[range.clone()]
    }

    /// Applies the changes of a step to its blobs, and counts their effects.
    pub(super) fn apply(
        &mut self,
        reader: &mut BlobDecoder,
        step: &ApplyStep,
    ) -> Result<(Applied, Tally)> {
        match step {
            ApplyStep::Copy(blobs) => {
                let copies = blobs.iter().map(|entry| BlobOutcome::Copy(*entry));
                Ok((Applied::Blobs(copies.collect()), Tally::default()))
            }
            ApplyStep::Insert(range) => {
                let changes = self.slice(range);
                let done = insert_all(&mut self.encoder, self.changes, changes, self.rules);
                let (frames, tally) = done.map_err(|error| Error::Internal(error.to_string()))?;
                Ok((Applied::Inserted(frames), tally))
            }
            ApplyStep::Edit(entry, range) => {
                let changes = self.slice(range);
                reader.read(entry)?.decode_in_segments(|payload, segments| {
                    self.write.check_strings(payload)?;
                    let (edit, relocated) = self.edit(entry);
                    let (outcome, tally) =
                        edit.run(payload, segments.found(), changes, relocated)?;
                    Ok((Applied::Blobs(vec![outcome]), tally))
                })
            }
            ApplyStep::Join(blobs) => {
                let (mut all, mut any_changes) = (Tally::default(), false);
                for (entry, range) in blobs {
                    let changes = self.slice(range);
                    let (changes, tally) = reader.decode(entry, |payload| {
                        self.write.check_strings(payload)?;
                        let (mut edit, relocated) = self.edit(entry);
                        edit.append(payload, changes, relocated)
                    })?;
                    any_changes |= changes;
                    all.add(tally);
                }
                let frames = self.encoder.finish();
                let frames = frames.map_err(|error| Error::Internal(error.to_string()))?;
                let entries = blobs.iter().map(|(entry, _)| entry);
                let applied = if any_changes {
                    Applied::Joined(frames, blobs.len() as u64)
                } else {
                    Applied::Blobs(entries.map(|entry| BlobOutcome::Copy(*entry)).collect())
                };
                Ok((applied, all))
            }
        }
    }

    /// Returns the [`Edit`] of a blob, and the buffer for a block with relocated ways.
    fn edit<'s>(&'s mut self, entry: &'s BlobEntry) -> (Edit<'s>, &'s mut Vec<u8>) {
        let edit = Edit {
            entry,
            encoder: &mut self.encoder,
            set: self.changes,
            rules: self.rules,
            watcher: self.watcher,
            spliced: &mut self.spliced,
        };
        (edit, &mut self.relocated)
    }
}

/// The result of a step.
#[derive(Debug)]
pub(super) enum Applied {
    /// One outcome for each blob of the step, in file order.
    Blobs(Vec<BlobOutcome>),
    /// New blobs, and the number of adjacent blobs of the base that they replace.
    Joined(Vec<EncodedFrame>, u64),
    /// New blobs between blobs of the base.
    Inserted(Vec<EncodedFrame>),
}

fn objects_of<'s>(set: &'s ChangeSet, changes: &[&Change]) -> Vec<Object<'s>> {
    changes.iter().map(|change| set.object(change)).collect()
}

/// Encodes the objects that changes create between two blobs of the base, and returns the new blobs. Deletions are only
/// counted.
fn insert_all(
    encoder: &mut FrameEncoder,
    set: &ChangeSet,
    changes: &[Change],
    rules: &Rules,
) -> Result<(Vec<EncodedFrame>, Tally), FormatError> {
    let mut script = Script::new(rules);
    changes.iter().for_each(|change| script.absent(change));
    let objects = objects_of(set, &script.inserted);
    script.tally.add_missing(&objects);
    for object in &objects {
        encoder.add(object)?;
    }
    Ok((encoder.finish()?, script.tally))
}

/// The edit of one blob. Borrows the encoder and a buffer of an [`Editor`].
struct Edit<'e> {
    entry: &'e BlobEntry,
    encoder: &'e mut FrameEncoder,
    set: &'e ChangeSet,
    rules: &'e Rules,
    watcher: Watcher<'e>,
    spliced: &'e mut Vec<u8>,
}

/// An edit script, the changes whose objects it inserts, and the effects of all changes so far.
struct Script<'c> {
    rules: &'c Rules,
    edits: EditScript,
    inserted: Vec<&'c Change>,
    tally: Tally,
}

/// A block and the edit script for its objects. If ways moved, the block already has their new coordinates.
struct Edited<'p, 'c> {
    payload: &'p [u8],
    block: Block<'p>,
    script: Script<'c>,
    /// Whether the coordinates in ways are removed.
    strips: bool,
    /// Whether the coordinates of at least one way change or are removed.
    moves: bool,
}

impl Edit<'_> {
    /// Parses the block and creates its edit script. If ways move, writes the block with the new coordinates to
    /// `relocated`, and returns that block instead of the one in `payload`.
    fn prepare<'p, 'c>(
        &self,
        payload: &'p [u8],
        changes: &'c [Change],
        relocated: &'p mut Vec<u8>,
    ) -> Result<Edited<'p, 'c>, FormatError>
    where
        Self: 'c,
    {
        let block = Block::parse(payload)?;
        let mut script = self.script(&block, changes)?;
        relocated.clear();
        let moves = self.relocate(&block, &script.edits, relocated)?;
        script.tally.ways_moved = moves.ways;
        script.tally.missing_references = moves.lost;
        script.tally.incomplete_ways = moves.incomplete;
        let (payload, block) = match moves.ways {
            0 => (payload, block),
            _ => (relocated.as_slice(), Block::parse(relocated)?),
        };
        // Counts the ways that lose their coordinates. The count may be 0, because `may_have_locations` is also true if
        // the index entry does not record whether the ways have coordinates.
        let strips = self.rules.locations.is_none() && self.entry.may_have_locations();
        if strips {
            block.for_each_stored_way(|_, way| {
                script.tally.locations_dropped += u64::from(way.has_locations()?);
                Ok(())
            })?;
        }
        let moves = script.tally.locations_dropped > 0 || moves.ways > 0;
        Ok(Edited {
            payload,
            block,
            script,
            strips,
            moves,
        })
    }

    /// Applies the changes to the blob. The outcome is a copy of the blob if nothing changes, and new blobs otherwise.
    /// There are no new blobs if all objects are deleted.
    fn run(
        mut self,
        payload: &[u8],
        segments: Option<Segmented<'_>>,
        changes: &[Change],
        relocated: &mut Vec<u8>,
    ) -> Result<(BlobOutcome, Tally), FormatError> {
        let Edited {
            payload,
            block,
            mut script,
            strips,
            moves,
        } = self.prepare(payload, changes, relocated)?;
        if script.edits.is_unchanged() && !moves {
            return Ok((BlobOutcome::Copy(*self.entry), script.tally));
        }
        let count = script.edits.count_after();
        if count == 0 {
            return Ok((BlobOutcome::Frames(Vec::new()), script.tally));
        }
        let objects = objects_of(self.set, &script.inserted);
        script.tally.add_missing(&objects);
        let grown = count > 2 * TARGET_ELEMENTS && count > self.entry.count as usize;
        self.spliced.clear();
        let options = SpliceOptions {
            drop_locations: strips,
            new_locations: self.rules.locations.is_some(),
        };
        if script.edits.is_unchanged() && !strips {
            // Only coordinates in ways have changed here. The index entry of a blob that contains only ways does not
            // depend on coordinates.
            let is_ways = self.entry.kinds == KindSet::from_iter([ObjectKind::Way]);
            if is_ways {
                self.encoder
                    .add_edited_with_entry(payload, segments, self.entry)?
            } else {
                self.encoder.add_edited(payload, segments)?
            }
        } else if !grown
            && payload.len() <= MAX_SPLICED
            && splice_block(payload, &script.edits, &objects, options, self.spliced)?
        {
            self.encoder.add_edited(self.spliced, segments)?;
        } else {
            // Spreads the objects evenly over the blocks, because a small last block would stay small.
            let blocks = count.div_ceil(TARGET_ELEMENTS);
            self.encoder.set_max_objects(count.div_ceil(blocks));
            self.rebuild(&block, &script.edits, &objects)?;
        }
        let frames = self.encoder.finish()?;
        self.encoder.set_max_objects(TARGET_ELEMENTS);
        Ok((BlobOutcome::Frames(frames), script.tally))
    }

    /// Applies the changes and adds the resulting objects to the block that the encoder is building. Returns whether
    /// anything in the blob changes.
    fn append(
        &mut self,
        payload: &[u8],
        changes: &[Change],
        relocated: &mut Vec<u8>,
    ) -> Result<(bool, Tally), FormatError> {
        let mut edited = self.prepare(payload, changes, relocated)?;
        let objects = objects_of(self.set, &edited.script.inserted);
        edited.script.tally.add_missing(&objects);
        self.rebuild(&edited.block, &edited.script.edits, &objects)?;
        let changes = edited.moves || !edited.script.edits.is_unchanged();
        Ok((changes, edited.script.tally))
    }

    /// Appends the block to `out`, with new coordinates in the ways that the edit script keeps and whose nodes moved.
    /// Appends nothing if no way moves. Shows the block to the augmented diff.
    fn relocate(
        &self,
        block: &Block<'_>,
        edits: &EditScript,
        out: &mut Vec<u8>,
    ) -> Result<Relocated, FormatError> {
        let show = |known: Option<CandidateRefs<'_>>| {
            self.watcher.show(self.set, self.entry, block, known)
        };
        let locations = match &self.rules.locations {
            Some(locations) if locations.may_move(self.entry) => locations,
            _ => return show(None).map(|()| Relocated::default()),
        };
        relocate_ways(
            block,
            |nodes| {
                let mut moved = locations.moved_among(nodes);
                let candidates = &moved;
                show(Some(CandidateRefs { nodes, candidates }))?;
                if !moved.is_empty() && !edits.is_unchanged() {
                    let stays = ways_that_stay(block, edits)?;
                    moved.retain(|node| stays[nodes.way_index_of(*node)]);
                }
                Ok(moved)
            },
            |id| locations.new_location(id),
            out,
        )
    }

    /// Creates the edit script by comparing the objects of the block with the changes, both in canonical order. Fails
    /// if the objects are out of order or an object occurs twice.
    fn script<'c>(
        &self,
        block: &Block<'_>,
        changes: &'c [Change],
    ) -> Result<Script<'c>, FormatError>
    where
        Self: 'c,
    {
        let mut script = Script::new(self.rules);
        let omitted = self.rules.omitted();
        let leaving = omitted
            .filter(|omitted| omitted.may_omit(self.entry))
            .map(|omitted| &omitted.leaving);
        let is_in_order = self.entry.flags.has(BlobFlags::UNIQUE_IDS);
        if changes.is_empty() && leaving.is_none() && is_in_order {
            script.edits.keep_many(self.entry.count as usize);
            return Ok(script);
        }
        let mut changes = changes.iter().peekable();
        let mut objects = block.walk();
        let mut last: Option<TypeThenId> = None;
        while let Some(key) = objects.next_key()? {
            check_order(last, key)?;
            last = Some(key);
            while let Some(change) = changes.next_if(|change| change.key < key) {
                script.absent(change);
            }
            let is_leaving = is_leaving(key, leaving);
            match changes.next_if(|change| change.key == key) {
                None => script.stay(is_leaving),
                Some(change) => {
                    script.present(change, objects.version_info()?, &block.units, is_leaving);
                }
            }
        }
        changes.for_each(|change| script.absent(change));
        Ok(script)
    }

    /// Adds the objects of the edited block to the encoder one by one. The encoder begins a new block whenever one is
    /// full.
    fn rebuild(
        &mut self,
        block: &Block<'_>,
        edits: &EditScript,
        new: &[Object<'_>],
    ) -> Result<(), FormatError> {
        let mut strings = SourceStrings::new(&block.strings);
        let mut objects = block.cursor();
        for step in edits.steps() {
            match *step {
                EditOp::Insert(index) => self.encoder.add(&new[index])?,
                EditOp::Keep(count) => {
                    for _ in 0..count {
                        let object = objects.next()?.ok_or_else(fewer_objects)?;
                        self.encoder.add_raw(&object, &block.units, &mut strings)?;
                    }
                }
                EditOp::Drop(count) => {
                    for _ in 0..count {
                        objects.next()?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether an object is one of the `leaving` nodes.
fn is_leaving(key: TypeThenId, leaving: Option<&IdSet>) -> bool {
    let contains = |leaving: &IdSet| leaving.contains(id_from_rank(key.1));
    key.0 == ObjectKind::Node && leaving.is_some_and(contains)
}

/// Returns, for each way of a block, whether the edit script keeps the way.
fn ways_that_stay(block: &Block<'_>, edits: &EditScript) -> Result<Vec<bool>, FormatError> {
    let stays = edits.steps().iter().flat_map(|step| match *step {
        EditOp::Keep(count) => std::iter::repeat_n(true, count),
        EditOp::Drop(count) => std::iter::repeat_n(false, count),
        EditOp::Insert(_) => std::iter::repeat_n(false, 0),
    });
    let (mut stays, mut ways, mut is_short) = (stays, Vec::new(), false);
    block.for_each_id(|kind, _| {
        let stays = stays.next();
        is_short |= stays.is_none();
        if kind == ObjectKind::Way {
            ways.push(stays == Some(true));
        }
    })?;
    if is_short {
        return Err(stale_index("it has more objects"));
    }
    Ok(ways)
}

fn fewer_objects() -> FormatError {
    stale_index("it has fewer objects")
}

fn check_order(last: Option<TypeThenId>, key: TypeThenId) -> Result<(), FormatError> {
    match last {
        Some(last) if last >= key => {
            let (kind, id) = (key.0, id_from_rank(key.1));
            if last == key {
                let need = "changes can be applied to current data only";
                return Err(FormatError::repetition(ObjectId { kind, id }, need));
            }
            let cause =
                format!("{kind} {id} is out of order although the file declares canonical order");
            Err(FormatError::with(cause).advise(Advice::Sort))
        }
        _ => Ok(()),
    }
}

impl<'c> Script<'c> {
    fn new(rules: &'c Rules) -> Self {
        Self {
            rules,
            edits: EditScript::default(),
            inserted: Vec::new(),
            tally: Tally::default(),
        }
    }

    fn insert(&mut self, change: &'c Change) {
        self.tally.kept += u64::from(self.rules.is_extra(change));
        self.edits.insert(self.inserted.len());
        self.inserted.push(change);
    }

    /// Keeps the next object of the block, or removes it if it is a node that has to go.
    fn stay(&mut self, is_leaving: bool) {
        if is_leaving {
            self.tally.removed += 1;
            self.edits.remove()
        } else {
            self.edits.keep()
        }
    }

    /// Handles a change of an object that is not in the base. Inserts the object, unless the change is a deletion or
    /// the object is left out.
    fn absent(&mut self, change: &'c Change) {
        if change.is_deletion() {
            self.tally.absent += 1;
        } else if self.rules.leaves_out(change) {
            self.tally.left_out += 1;
        } else {
            self.tally.created += 1;
            self.insert(change);
        }
    }

    /// Handles a change of the next object of the block. `age` is the version and the timestamp of this object. A
    /// change that is older than the object has no effect.
    fn present(
        &mut self,
        change: &'c Change,
        age: VersionInfo,
        units: &BlockUnits,
        is_leaving: bool,
    ) {
        let timestamp = (age.timestamp != 0).then(|| units.seconds(age.timestamp));
        if !change.replaces(age.version_number(), timestamp) {
            self.tally.outdated += 1;
            if change.key.0 == ObjectKind::Node && self.rules.locations.is_some() {
                self.tally.outdated_nodes.push(change.id);
            }
            self.stay(is_leaving);
            return;
        }
        self.edits.remove();
        if change.is_deletion() {
            self.tally.deleted += 1;
        } else if self.rules.leaves_out(change) {
            self.tally.left_out += 1;
        } else {
            self.tally.modified += 1;
            self.insert(change);
        }
    }
}
