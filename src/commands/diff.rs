//! `diff`: writes the differences between two files, as text or as a change file.
//!
//! Pairs of blobs with equal content hashes are usually not read. The other blobs are cut into shards, which are ranges
//! of ids. A worker walks the objects of a shard in both files side by side.

mod change_output;
#[cfg(feature = "pages")]
mod charts;
mod compare;
mod cursor;
mod locations;
mod order;
#[cfg(feature = "pages")]
pub mod page;
mod report;
mod show;
mod side;

use crate::engine::headers::generator;
use crate::engine::repeats;
use crate::engine::shards::{MergeStep, Source, Sources, have_equal_payloads, plan_steps};
use crate::error::{Advice, Error, Result};
use crate::file::{BlobPlan, PbfFile};
use crate::formats::{
    ChangeSet, DocumentHeader, OscText, Replication, TextFormat, TextOptions, TextOutput,
};
use crate::index::IdSets;
use crate::io::OutputTarget;
use crate::osm::{KindSet, ObjectId, ObjectKind};
use crate::pbf::{BlobEntry, feature};
use crate::runtime::{Context, Pass, WorkItem};
use compare::{Comparison, DifferenceCounts, StepFindings};
use locations::LocationRule;
use order::{Side, open_in_order};
use report::Report;
use serde::Serialize;
use std::path::{Path, PathBuf};

options! {
    /// The options of `diff`.
    pub struct Options {
        /// The old file; `-` is standard input.
        pub old: PathBuf,
        /// The new file.
        pub new: PathBuf,
    }
    /// All kinds are compared, without metadata, and objects are only counted.
    new(old: impl Into<PathBuf>, new: impl Into<PathBuf>);
    setters {
        /// The kinds of objects to compare.
        kinds: KindSet = KindSet::ALL,
        /// The rules that decide whether two objects are equal.
        equality: Equality,
        /// Whether objects are matched by id and version, and not only by id. Objects of history files are always
        /// matched by id and version.
        by_version: bool,
        /// Whether to read and compare blobs with equal content hashes, too.
        verify: bool,
        /// The objects to compare and to count, such as those of
        /// [`ids_between`](crate::commands::augmented_diff::ids_between); `None` for all objects.
        only: Option<Vec<ObjectId>>,
        /// The format and the target of the differences; `None` to only count objects.
        output: Option<(Format, OutputTarget)>,
    }
}

/// The rules that decide whether two objects are equal. Location, visibility, tags, refs and members always have to be
/// equal.
///
/// By default, the location that a way stores for a node has to be equal only if neither file has the node. Otherwise
/// the node itself is compared. If the ways of one file store no locations, stored locations are not compared. An
/// unknown location differs from a known one. The locations that the ways of history files store are not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Equality {
    /// Whether tags have to be in the same order.
    pub tag_order: bool,
    /// Whether metadata (version, timestamp, changeset, uid and user) have to be equal, too. A field that one of the
    /// objects lacks is not compared.
    pub metadata: bool,
    /// Whether the changeset may differ even if `metadata` is set.
    pub ignore_changeset: bool,
    /// Whether the uid may differ even if `metadata` is set.
    pub ignore_uid: bool,
    /// Whether the name of the user may differ even if `metadata` is set.
    pub ignore_user: bool,
    /// Whether the locations that ways store always have to be equal. They are compared even if the files have the
    /// nodes, and even if only one file stores locations. Has no effect on a change file.
    pub way_locations: bool,
}

/// The format of the differences.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A line per object. The line begins with `-` if only the old file has the object, with `+` if only the new file
    /// has it, with `*` if the object differs, and with a space if it is equal in both files.
    Text {
        /// Whether equal objects are written, too.
        common: bool,
        /// Whether the line of an object that differs is followed by a line for each difference.
        details: bool,
    },
    /// Each object in a text format. The lines of an object in the old file begin with `-`, and those of an object in
    /// the new file with `+`. An object that differs is written twice. The lines of an object that is equal in both
    /// files begin with a space.
    Objects {
        /// The text format, which is OPL or debug, and its options.
        text: TextOptions,
        /// Whether equal objects are written, too.
        common: bool,
    },
    /// A change file that turns the old file into the new file.
    Osc(Deletions),
}

/// The options of a change file, which define how deletions and creations are written, the attributes of objects, and
/// the name of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deletions {
    /// Whether a deletion has the version of the object in the old file plus one, or 1 if the object has no version.
    /// Otherwise it has the version in the old file.
    pub increment_version: bool,
    /// The timestamp of deletions, in seconds since 1970; if `None`, a deletion has the timestamp of the object in the
    /// old file.
    pub timestamp: Option<i64>,
    /// Whether a deletion contains the whole object of the old file. Otherwise it contains only id, version and
    /// timestamp.
    pub keep_details: bool,
    /// Whether a change counts as a creation if the new version is 1. Otherwise it counts as a creation if the old file
    /// lacks the object.
    pub creates_version_1: bool,
    /// Whether objects that differ only in metadata or in the order of their tags are left out.
    pub content_only: bool,
    /// The name of the writing program; `None` for the name and the version of this program.
    pub generator: Option<String>,
    /// The attributes that are written: the metadata of objects, the locations of nodes in ways, and the replication
    /// state.
    pub text: TextOptions,
}

impl Default for Deletions {
    fn default() -> Self {
        Self {
            increment_version: false,
            timestamp: None,
            keep_details: false,
            creates_version_1: false,
            content_only: false,
            generator: None,
            text: TextOptions::new(TextFormat::OsmChange),
        }
    }
}

/// The numbers of objects that only one file has, and of objects that are equal or different in the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// The number of objects that only the old file has.
    pub left: u64,
    /// The number of objects that only the new file has.
    pub right: u64,
    /// The number of objects that are equal in both files.
    pub same: u64,
    /// The number of objects that both files have, but with differences.
    pub different: u64,
}

impl Counts {
    const fn count_object(&mut self, report: Report) {
        *match report {
            Report::Same => &mut self.same,
            Report::Different => &mut self.different,
            Report::Left => &mut self.left,
            Report::Right => &mut self.right,
        } += 1;
    }

    fn add(&mut self, other: &Self) {
        self.left += other.left;
        self.right += other.right;
        self.same += other.same;
        self.different += other.different;
    }

    /// Whether all objects are in both files and equal.
    pub const fn is_same(&self) -> bool {
        self.left + self.right + self.different == 0
    }
}

/// The result of `diff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The counts of nodes.
    pub nodes: Counts,
    /// The counts of ways.
    pub ways: Counts,
    /// The counts of relations.
    pub relations: Counts,
    /// The number of pairs of blobs with equal hashes or equal payloads, whose objects were not compared one by one.
    pub blobs_equal: u64,
    /// The number of objects that have another version in the new file, but the same content. With
    /// [`Equality::metadata`], they count as different, otherwise as equal.
    pub new_version_only: u64,
    /// The number of objects that differ and are older in the new file. Age is compared by version. If the versions are
    /// equal, it is compared by timestamp. When the change file is applied, the changes of these objects have no
    /// effect, because the newest version wins. Counted only for a change file.
    pub going_back: u64,
    /// The number of nodes whose coordinates are rounded in the change file, which has seven decimals. Counted only for
    /// a change file.
    pub inexact: u64,
    /// The number of ways that differ only in the locations that they store for nodes. If a change file is written,
    /// ways that store locations of deleted nodes also count. The change file contains all counted ways with their
    /// locations.
    pub relocated: u64,
    /// The number of ways that lose the stored location of a node: the way in the old file stores the location, the way
    /// in the new file does not, and neither file has the node. The change file cannot remove a location. Counted only
    /// for a change file.
    pub locations_lost: u64,
}

impl Summary {
    /// Returns the counts of all kinds together.
    pub fn total(&self) -> Counts {
        let mut total = self.nodes;
        total.add(&self.ways);
        total.add(&self.relations);
        total
    }

    fn counts_mut(&mut self, kind: ObjectKind) -> &mut Counts {
        match kind {
            ObjectKind::Node => &mut self.nodes,
            ObjectKind::Way => &mut self.ways,
            ObjectKind::Relation => &mut self.relations,
        }
    }

    fn add(&mut self, other: &Self) {
        self.nodes.add(&other.nodes);
        self.ways.add(&other.ways);
        self.relations.add(&other.relations);
        self.blobs_equal += other.blobs_equal;
        self.new_version_only += other.new_version_only;
        self.going_back += other.going_back;
        self.inexact += other.inexact;
        self.relocated += other.relocated;
        self.locations_lost += other.locations_lost;
    }
}

/// Compares two files and writes their differences.
///
/// Reads both files. Pairs of blobs with equal content hashes are read only if [`Options::verify`] is set or equal
/// objects are written. A file that is not in canonical order is first sorted into a temporary file in the system's
/// temporary directory. History files can be compared as text. If [`Options::output`] is set, writes a text file or a
/// change file, compressed if its name ends in `.gz`, `.bz2` or `.zst`. A difference is not an error, but part of the
/// summary.
///
/// # Memory
///
/// The [base memory](crate::commands#memory). Instead of blobs in flight, each job holds 16 MB of payloads of both
/// files, and the text of their differences. If ways differ in stored locations, also the ids of the nodes of both
/// files: a bit to 2.5 bytes each.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, or it cannot be
///   written ([details](crate::commands#errors)).
/// - The output is a change file, and an input is a history file according to its header or contains an object twice.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(1);
    let sides = open_sides(options, ctx)?;
    let (found, ()) = compare_sides(options, &sides, ctx)?;
    Ok(found.summary)
}

/// The changes that turn a file into another one.
pub(crate) struct DerivedChanges {
    pub changes: ChangeSet,
    pub summary: Summary,
    /// The old file, in canonical order.
    pub old: PbfFile,
    pub plan: BlobPlan,
}

/// The constant part of the default maximum memory for the changes between two files, in bytes.
/// [`CHANGE_MEMORY_PER_BYTE`] is added for each byte of the files. Changes between real files take at most half of the
/// maximum. The changes of a small file with repeated content may take a thousand times the size of the file.
const CHANGE_MEMORY: u64 = 64 << 20;
const CHANGE_MEMORY_PER_BYTE: u64 = 64;

/// Returns the changes that turn the file `old` into the file `new`. Both files must have current data, not history.
/// Calls `max_memory` with the default maximum memory in bytes, which depends on the sizes of the files. Fails if the
/// changes take more bytes than `max_memory` returns.
pub(crate) fn changes_between(
    old: &Path,
    new: &Path,
    deletions: Deletions,
    max_memory: impl FnOnce(u64) -> u64,
    ctx: &Context,
) -> Result<DerivedChanges> {
    ctx.expect_phases(1);
    let options = Options::new(old, new);
    let sides = open_sides(&options, ctx)?;
    let format = Format::Osc(deletions);
    let bytes: u64 = sides
        .iter()
        .map(|side| side.file.input.user_file_len())
        .sum();
    let max_memory = Some(max_memory(CHANGE_MEMORY + CHANGE_MEMORY_PER_BYTE * bytes));
    let (found, ()) = compare_in_format(&options, &sides, Some(&format), max_memory, ctx)?;
    let mut changes = found.changes;
    changes.keep_newest(ctx);
    let [old, _] = sides;
    Ok(DerivedChanges {
        changes,
        summary: found.summary,
        old: old.file,
        plan: old.plan,
    })
}

/// The result of a comparison.
struct Differences {
    summary: Summary,
    changes: ChangeSet,
}

/// Fails if `memory`, the size of the changes in bytes, is more than `max_memory`. The error names the file `new`.
fn check_memory(memory: usize, max_memory: Option<u64>, new: &Path) -> Result<()> {
    match max_memory {
        Some(max) if memory as u64 > max => {
            let cause = "the changes take more memory than is allowed";
            Err(Error::file(new, cause).advise(Advice::AllowMemory(max)))
        }
        _ => Ok(()),
    }
}

fn open_sides(options: &Options, ctx: &Context) -> Result<[Side; 2]> {
    let [old, new] = [&options.old, &options.new].map(|path| open_in_order(path, ctx));
    Ok([old?, new?])
}

/// Compares two open files and writes their differences in the format of the options.
fn compare_sides<C: DifferenceCounts>(
    options: &Options,
    sides: &[Side; 2],
    ctx: &Context,
) -> Result<(Differences, C)> {
    let format = options.output.as_ref().map(|(format, _)| format);
    compare_in_format(options, sides, format, None, ctx)
}

/// Compares two open files and writes their differences in `format`. `max_changes` is the maximum memory in bytes of
/// the changes that turn the old file into the new one; `None` if they are not collected. Changes that are collected
/// are not written as text.
fn compare_in_format<C: DifferenceCounts>(
    options: &Options,
    sides: &[Side; 2],
    format: Option<&Format>,
    max_changes: Option<u64>,
    ctx: &Context,
) -> Result<(Differences, C)> {
    let history = is_history(format, sides)?;
    check_no_repeats(options, format, sides, ctx)?;
    let mut output = match &options.output {
        None => None,
        Some((_, target)) => Some(TextOutput::create(target.clone(), ctx)?),
    };
    let locations = LocationRule::of(options, format, history, sides, ctx)?;
    let mut put = |text: &str| match &mut output {
        Some(output) => output.write(text),
        None => Ok(()),
    };
    if let Some(Format::Osc(deletions)) = format {
        put(&OscText::prologue_of(&change_header(deletions, sides)))?;
    }
    let mut summary = Summary::default();
    let steps = plan_merge(options, sides, &locations, &mut summary, ctx);
    let mut counts = C::default();
    let mut changes = ChangeSet::default();
    let inputs = sides.each_ref().map(|side| &side.file.input);
    let by_version = history || options.by_version;
    let only: Option<IdSets> = options
        .only
        .as_ref()
        .map(|ids| ids.iter().copied().collect());
    let init = || {
        let sources = Sources::new(&inputs, ctx);
        let scope = (&locations, only.as_ref());
        let collects = max_changes.is_some();
        Comparison::new(sources, options, format, scope, by_version, collects)
    };
    run_steps(steps, init, ctx, |found| {
        summary.add(&found.summary);
        if let Some(more) = found.counts {
            counts.merge(*more);
        }
        let memory = changes.memory() + found.changes.memory();
        check_memory(memory, max_changes, &options.new)?;
        let added = changes.append(found.changes);
        added.map_err(|cause| Error::file(&options.new, cause))?;
        put(&found.text)
    })?;
    if let Some(Format::Osc(_)) = format {
        put(OscText::EPILOGUE)?;
    }
    let bytes = output.map(TextOutput::finish).transpose()?;
    ctx.stats.bytes_written.add(bytes.unwrap_or(0));
    Ok((Differences { summary, changes }, counts))
}

/// Returns the header of the change file that turns the old file into the new file.
fn change_header(deletions: &Deletions, sides: &[Side; 2]) -> DocumentHeader {
    let [old, new] = sides;
    let header = DocumentHeader {
        generator: Some(generator(deletions.generator.as_deref())),
        ..DocumentHeader::of(&new.file.header)
    };
    if deletions.text.replication {
        DocumentHeader {
            previous: Replication {
                sequence: old.file.header.replication_sequence,
                timestamp: old.file.header.replication_timestamp,
            },
            ..header
        }
    } else {
        DocumentHeader {
            replication: Replication::default(),
            replication_url: None,
            ..header
        }
    }
}

/// Compares the objects of merge steps, and calls `take` with each result in order. `init` creates the comparison of a
/// thread.
fn run_steps<'d, C: DifferenceCounts>(
    steps: Vec<MergeStep>,
    init: impl Fn() -> Comparison<'d, C> + Sync,
    ctx: &Context,
    take: impl FnMut(StepFindings<C>) -> Result<()>,
) -> Result<()> {
    let bytes = steps.iter().map(MergeStep::input_bytes).sum();
    let steps = steps.into_iter().map(Ok);
    Pass::new("compare", ctx).with_item_limit().run_results(
        bytes,
        steps,
        init,
        Comparison::compare_and_send,
        |_| (),
        take,
    )
}

/// Fails if the output is a change file and a blob begins with the last object of the preceding blob. Repeated objects
/// within a blob are found when the blob is read. If the output is not a change file, warns about objects that occur
/// twice.
fn check_no_repeats(
    options: &Options,
    format: Option<&Format>,
    sides: &[Side; 2],
    ctx: &Context,
) -> Result<()> {
    if !matches!(format, Some(Format::Osc(_))) {
        let mut sides = sides.iter();
        return sides
            .try_for_each(|side| repeats::warn_of_repeated_objects(&side.file, &side.plan, ctx));
    }
    for side in sides {
        if let Some(entry) = side.plan.first_continued()
            && let Some(key) = entry.first_sort_key()
            && options.kinds.contains(key.0)
        {
            let (input, error) = (&side.file.input, cursor::repeated_object_error(key));
            return Err(input.blob_error(entry.number.into(), entry.offset, error));
        }
    }
    Ok(())
}

/// Whether the header of one of the files declares a history file. If so, fails if the output is a change file.
fn is_history(format: Option<&Format>, sides: &[Side; 2]) -> Result<bool> {
    let mut histories = sides
        .iter()
        .filter(|side| side.file.header.has(feature::HISTORY));
    match (histories.next(), format) {
        (None, _) => Ok(false),
        (Some(side), Some(Format::Osc(_))) => {
            let cause = "this is a history file; a change file can only be derived from current data (see time-filter)";
            Err(Error::file(&side.path, cause))
        }
        (Some(_), _) => Ok(true),
    }
}

/// The approximate size in bytes of the payloads of both files in one shard.
const SHARD_BYTES: u64 = 16 << 20;

/// Plans the merge steps. Pairs of blobs with equal hashes get no step and are counted in `summary`, unless equal
/// objects are written, [`Options::verify`] is set, or `locations` needs the blob.
fn plan_merge(
    options: &Options,
    sides: &[Side; 2],
    locations: &LocationRule<'_>,
    summary: &mut Summary,
    ctx: &Context,
) -> Vec<MergeStep> {
    let shows_common = matches!(
        options.output,
        Some((
            Format::Text { common: true, .. } | Format::Objects { common: true, .. },
            _
        ))
    );
    let is_wanted = |entry: &&BlobEntry| !entry.kinds.intersection(options.kinds).is_empty();
    let [old, new] = sides.each_ref().map(|side| {
        let entries = side.plan.entries.iter().filter(is_wanted);
        entries.collect::<Vec<_>>()
    });
    let may_skip = !shows_common && !options.verify;
    let mut new_blobs = new.iter().peekable();
    let mut sources: Vec<Source> = Vec::new();
    for old in old {
        let before = |new: &&&BlobEntry| new.first_sort_key() < old.first_sort_key();
        while let Some(new) = new_blobs.next_if(before) {
            sources.push(Source {
                file: 1,
                entry: **new,
            });
        }
        let is_equal = |new: &&&BlobEntry| {
            may_skip && have_equal_payloads(old, new) && !locations.must_compare_blob(new)
        };
        match (new_blobs.next_if(is_equal), old.kinds.single()) {
            (Some(equal), Some(kind)) => {
                if options.only.is_none() {
                    summary.counts_mut(kind).same += u64::from(old.count);
                }
                summary.blobs_equal += 1;
                for entry in [old, equal] {
                    ctx.stats.count_skipped_blob(entry.is_verified());
                }
            }
            _ => sources.push(Source {
                file: 0,
                entry: *old,
            }),
        }
    }
    sources.extend(new_blobs.map(|new| Source {
        file: 1,
        entry: **new,
    }));
    plan_steps(sources, SHARD_BYTES)
}
