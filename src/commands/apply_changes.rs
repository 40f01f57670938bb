//! `apply-changes`: applies change files to a sorted file.
//!
//! A blob to which no change belongs is copied. Any other blob is decoded and compared with its changes. If the changes
//! have an effect, the block is edited in its encoded form. A block for which that is not possible is rebuilt.

mod base_nodes;
mod blob_changes;
mod blob_editor;
mod change_counts;
mod change_filter;
mod change_merge;
mod header;
mod history;
mod locations;
mod locations_summary;
mod members;
mod omitted;
mod recent_nodes;
mod steps;

use super::augmented_diff::{AugmentedDiffs, OngoingDiffs};
use super::{add_locations_to_ways, augmented_diff};
use crate::engine::block_observer::BlockObserver;
use crate::engine::location_form::LocationForm;
use crate::engine::sink::Sink;
use crate::engine::{OutputOptions, WriteSummary, input, repeats};
use crate::error::{Advice, Error, Result, display_path};
use crate::file::{BlobPass, BlobPlan, PbfFile, PlanNeeds, PlannedFile, Written};
use crate::formats::{ChangeSet, KeptVersions, SameTime, read_changes};
use crate::io::SizeHint;
use crate::osm::format_timestamp;
use crate::pbf::{BlobFlags, HeaderBlock, InfoFields, feature};
use crate::runtime::Context;
use base_nodes::LocatedBase;
pub use base_nodes::UntaggedNodes;
use blob_editor::BlobEditor;
use change_counts::ChangeCounts;
pub(crate) use change_filter::ChangeFilter;
pub use header::HeaderBox;
use header::output_header;
pub(crate) use history::add_to_history;
pub use history::{SameVersion, apply_to_history};
use locations::LocationUpdates;
pub use locations_summary::LocationsSummary;
pub use recent_nodes::KEEP_DAYS;
use recent_nodes::RecentNodes;
use serde::Serialize;
use std::path::{Path, PathBuf};
use steps::{ApplyStep, plan_steps};

options! {
    /// The options of `apply-changes`.
    pub struct Options {
        /// The base, a file of current data; `-` is standard input. A base that is not in canonical order is first
        /// sorted into a temporary file.
        pub base: PathBuf,
        /// The change files, in order. Of several changes with the same version and timestamp, the last one wins.
        pub changes: Vec<PathBuf>,
        /// The destination of the output, its encoding and its header.
        pub output: OutputOptions,
    }
    /// By default, locations are removed from ways.
    new(base: impl Into<PathBuf>, changes: Vec<PathBuf>, output: OutputOptions);
    setters {
        /// If set, the coordinates in ways are kept up to date, and the value says how untagged nodes are treated. If
        /// `None`, the coordinates are removed from ways.
        locations_on_ways: Option<UntaggedNodes>,
        /// Whether a base whose ways have no locations is first copied to a temporary file with locations. Otherwise a
        /// base without locations is an error. Used only if [`Options::locations_on_ways`] is set.
        locates_base: bool,
        /// The number of days for which the output keeps changed nodes that only ways need. Used only if the base lacks
        /// such nodes ([`UntaggedNodes::AsBase`]). A node stays if its timestamp is on day `d - keep_days` or later.
        /// The day `d` is that of the replication timestamp in the header of the output. A node also stays if one of
        /// the two timestamps is missing. With 0, no changed node that only ways need stays. A node of the base is
        /// removed if it has become too old since the replication timestamp of the base. A node that was already too
        /// old at that time stays.
        keep_days: u32 = KEEP_DAYS,
        /// The augmented diffs of the changes. They are complete before the output gets its name.
        augmented_diffs: AugmentedDiffs,
    }
    internal {
        /// Whether coordinates in the ways of the base are kept up to date instead of being removed. Used only if
        /// [`Options::locations_on_ways`] is `None`.
        keeps_locations: bool,
        /// The time of the data in the base, in seconds since 1970. Used only if the header of the base has no
        /// replication timestamp.
        base_time: Option<i64>,
        /// The header of the output before [`OutputOptions::header`] is applied; `None` for the header of the base with
        /// the replication state of the changes.
        header: Option<HeaderBlock>,
    }
}

impl Options {
    /// Returns the number of progress phases of [`run`]. If the base has no index, passes over it announce further
    /// phases themselves.
    pub(crate) const fn phases(&self) -> u64 {
        let of_changes = if self.locations_on_ways.is_some() {
            4
        } else {
            1
        };
        of_changes + 6 * self.augmented_diffs.outputs.len() as u64
    }

    /// Returns the rule for recent nodes. `base` and `output` are the headers of the base and of the output.
    fn recent_nodes(&self, base: &HeaderBlock, output: &HeaderBlock) -> RecentNodes {
        let without = self.output.encoding().without;
        RecentNodes::new(
            self.keep_days,
            base.replication_timestamp.or(self.base_time),
            output.replication_timestamp,
            !without.contains(InfoFields::TIMESTAMP),
        )
    }
}

/// The result of `apply-changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size, blobs and objects of the output.
    pub written: Written,
    /// The number of objects with a change. Several changes of one object count once.
    pub changes: u64,
    /// The number of objects that were added to the base.
    pub created: u64,
    /// The number of objects that were replaced.
    pub modified: u64,
    /// The number of objects that were deleted.
    pub deleted: u64,
    /// The number of changes that had no effect because the base has a newer version.
    pub outdated: u64,
    /// The number of deletions of objects that the base does not have. They had no effect.
    pub absent: u64,
    /// The number of blobs that were copied unchanged.
    pub blobs_copied: u64,
    /// The number of blobs of the base that were rewritten or removed.
    pub blobs_rewritten: u64,
    /// The sequence number of the last change file that the output contains, as recorded in the header of the output;
    /// `None` if unknown.
    pub replication_sequence: Option<i64>,
    /// The time up to which the output contains all changes, as recorded in its header; `None` if unknown.
    pub replication_timestamp: Option<String>,
    /// The effect of the changes on the bounding box in the header.
    pub header_box: HeaderBox,
    /// The effect of the changes on the coordinates in ways; `None` unless [`Options::locations_on_ways`] is set.
    pub locations: Option<LocationsSummary>,
    /// The content of the augmented diff with actions; `None` if none was written.
    pub augmented_diff: Option<augmented_diff::Summary>,
    /// The content of the augmented diff with tiles; `None` if none was written.
    pub expired_tiles: Option<augmented_diff::Summary>,
}

/// Applies change files to a file of current data.
///
/// Reads the base, and reads all change files into memory. Change files are OsmChange, o5c, OPL or PBF, with any
/// compression. The state files beside the change files are read, too (`123.state.txt` beside `123.osc.gz`). Writes one
/// file with the highest version of each object in the base and the changes; of equal versions, the one with the latest
/// timestamp is written. Blobs without a changed object are copied. A base that is not in canonical order is first
/// sorted into a temporary file in the directory of the output.
///
/// The header of the output gets the replication state of the changes if the changes continue the state of the base.
/// This requires that the changes come from the same server, as far as the servers are known. The sequence numbers of
/// the changes must follow that of the state. If the state has no sequence number, its time is compared with the times
/// of the changes. If the changes do not continue the state, the header keeps it, and there is a warning.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and the changes: 112 bytes per change, 8 per tag, 16 per reference, and
/// the distinct strings. While files are read, a change is removed if a newer change of the same object replaces it.
/// With [`Options::locations_on_ways`], about 40 bytes per changed node and per node of a changed way, and 60 more per
/// node of a changed way that the base lacks.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - The base is a history file, according to its header or because it contains deleted versions.
/// - An object occurs twice in the base, according to its table of contents or in blobs that have to be decoded.
/// - The objects of a blob that has to be decoded are not in canonical order, although the header or the index of the
///   base declares it.
/// - The base is in a text format, and the output has the same path.
/// - A change file has data instead of changes, or is damaged; the change files together have more than 4 GB of
///   distinct strings, or more tags or references than 32 bits can count.
/// - [`Options::locations_on_ways`] is set, [`Options::locates_base`] is not, and no way of the base has locations.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let base = open_base(options, ctx)?;
    ctx.expect_phases(options.phases());
    let read = |versions| read_changes(&options.changes, SameTime::LastRead, versions, ctx);
    apply(options, base, read, None, ctx)
}

/// Opens the base. Fails if an augmented diff may not be written, or has the path of another file.
pub(crate) fn open_base(options: &Options, ctx: &Context) -> Result<PbfFile> {
    let inputs = options.changes.iter().chain([&options.base]);
    let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
    options
        .augmented_diffs
        .check(&options.output.target, &inputs)?;
    input::open_to_copy(&options.base, &options.output.encoding(), ctx)
}

/// Applies changes as [`run`] does, to a base from [`open_base`]. `read_changes` returns the changes; its argument says
/// which versions of each object it has to keep. Changes that `filter` rejects are not applied.
pub(crate) fn apply(
    options: &Options,
    file: PbfFile,
    read_changes: impl FnOnce(KeptVersions) -> Result<ChangeSet>,
    mut filter: Option<&mut dyn ChangeFilter>,
    ctx: &Context,
) -> Result<Summary> {
    check_base_kind(options, &file)?;
    let (output, diffs) = (&options.output, &options.augmented_diffs);
    let phase = ctx.phase("read changes", 0);
    let mut changes = read_changes(diffs.kept_versions())?;
    drop(phase);
    let scratch = output.target.scratch_directory();
    let (file, plan) = input::sort_if_needed(file, &output.encoding(), &scratch, ctx)?;
    check_no_deleted_versions(&file, &plan)?;
    let ctx = &repeats::context_refusing_repeats(&file, &plan, ctx)?;
    let base = PlannedFile::new(&file, &plan, ctx);
    if let Some(filter) = &mut filter {
        filter.filter(base, &mut changes)?;
    }
    let versions = diffs.write_diff_of_all_versions(base, &mut changes)?;
    if let (Some(_), Some(filter)) = (&versions, &mut filter) {
        // The first call of `filter` may have kept changes of an object only because `changes` had an older version of
        // the object. `write_versions` has removed that version.
        filter.filter(base, &mut changes)?;
    }
    let form = LocationForm::of(&file, &plan);
    let is_kept = options.keeps_locations && form.has_locations();
    let as_base = is_kept.then_some(UntaggedNodes::AsBase);
    let untagged = options.locations_on_ways.or(as_base);
    let (file, plan) = match untagged {
        Some(_) if options.locates_base && !form.has_locations() => {
            copy_with_locations(file, &scratch, ctx)?
        }
        _ => (file, plan),
    };
    let base = PlannedFile::new(&file, &plan, ctx);
    let located = untagged.map(|untagged| LocatedBase::of(base, untagged));
    let located = located.transpose()?;
    let nodes = located.as_ref().map(LocatedBase::output_header_feature);
    let filter = filter.as_deref();
    let (header, header_box) = output_header(&file.header, nodes, &changes, options, filter, ctx);
    let find = |located| {
        let recent = options.recent_nodes(&file.header, &header);
        LocationUpdates::find(located, &changes, recent)
    };
    let locations = located.as_ref().map(find).transpose()?;
    let drops_locations = located.is_none() && form.has_locations();
    if drops_locations {
        warn_of_removed_locations(options, form, ctx);
    }
    let steps = plan_steps(&plan, &changes, |entry| match &locations {
        Some(locations) => locations.must_decode(entry),
        None => drops_locations && entry.may_have_locations(),
    });
    let mut summary = write(options, base, header, steps, changes, locations)?;
    summary.header_box = header_box;
    summary.augmented_diff = versions.or(summary.augmented_diff);
    Ok(summary)
}

/// Fails if the base is a text file that the output would replace, or a history file.
fn check_base_kind(options: &Options, file: &PbfFile) -> Result<()> {
    if options.output.target.path() == options.base && input::is_from_text(file) {
        let cause = "this is a text file: a PBF cannot take its place; give another output";
        return Err(Error::file(&options.base, cause));
    }
    if file.header.has(feature::HISTORY) {
        let error = Error::file(&options.base, "this is a history file");
        return Err(error.advise(Advice::AddToHistory));
    }
    Ok(())
}

/// Warns that the ways of the base lose their locations.
fn warn_of_removed_locations(options: &Options, form: LocationForm, ctx: &Context) {
    let and_nodes = if form.may_lack_nodes() {
        ", also those of nodes that are not in the file"
    } else {
        ""
    };
    ctx.warn_with_advice(
        format!(
            "{}: the locations in ways are removed{and_nodes}",
            display_path(&options.base)
        ),
        Advice::KeepLocations,
    );
}

/// Adds locations to the ways of a file. Returns the result, which is a temporary file in the directory `scratch`.
fn copy_with_locations(
    file: PbfFile,
    scratch: &Path,
    ctx: &Context,
) -> Result<(PbfFile, BlobPlan)> {
    let file = add_locations_to_ways::copy_with_way_locations(file, scratch, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
    Ok((file, plan))
}

/// Fails if the base contains deleted versions.
fn check_no_deleted_versions(file: &PbfFile, plan: &BlobPlan) -> Result<()> {
    let path = file.input.path();
    if plan.has_entry_with_flag(BlobFlags::DELETED) {
        let cause = "the file holds deleted versions; changes can be applied to current data only";
        return Err(Error::file(path, cause));
    }
    Ok(())
}

/// Writes the output, and the augmented diffs that need only the newest changes. These diffs are complete before the
/// output gets its name. `locations` is `None` unless the coordinates in ways are kept up to date. The caller has to
/// set [`Summary::header_box`].
fn write(
    options: &Options,
    base: PlannedFile<'_>,
    header: HeaderBlock,
    mut steps: Vec<ApplyStep>,
    mut changes: ChangeSet,
    mut locations: Option<LocationUpdates>,
) -> Result<Summary> {
    let replication_sequence = header.replication_sequence;
    let replication_timestamp = header.replication_timestamp.map(format_timestamp);
    let (encoding, mut counts) = (options.output.encoding(), ChangeCounts::default());
    let hints = steps.iter().map(ApplyStep::size_hint);
    let size_hint = hints.fold(SizeHint::default(), SizeHint::and);
    let mut sink = Sink::create(&options.output, header, size_hint, base.ctx)?;
    let nodes = options.augmented_diffs.changed_nodes(&changes);
    if let Some(locations) = &mut locations {
        // The new locations in ways come only from those changes of nodes that have an effect. A change that is older
        // than the base has no effect. Such a change is only recognized when its node is written. Nodes are therefore
        // written before ways.
        let ways = steps.split_off(steps.partition_point(|step| step.has_only_nodes(&changes)));
        let of_nodes = std::mem::replace(&mut steps, ways);
        let observer = nodes.as_ref().map(|nodes| nodes as &dyn BlockObserver);
        let editor = || BlobEditor::new(&changes, Some(locations), observer, encoding);
        counts = execute(of_nodes, editor, base, &mut sink)?;
        let outdated = std::mem::take(&mut counts.outdated_nodes);
        locations.restore_base_location(outdated, base)?;
        locations.locate(&mut changes);
    }
    let diffs = &options.augmented_diffs;
    let begin = |nodes| OngoingDiffs::begin(diffs, base, &changes, nodes);
    let diffs = nodes.map(begin).transpose()?;
    let observer = diffs.as_ref().map(OngoingDiffs::observer);
    let editor = || BlobEditor::new(&changes, locations.as_ref(), observer, encoding);
    counts.add(execute(steps, editor, base, &mut sink)?);
    let finished = diffs.map(OngoingDiffs::finish).transpose()?;
    let [augmented_diff, expired_tiles] = finished.unwrap_or_default();
    if counts.locations_dropped > 0 {
        let count = counts.locations_dropped;
        base.ctx.warn(format!("{count} ways lost their locations"));
    }
    let written = sink.finish()?;
    if let Some(locations) = &locations {
        let omitted = locations.omitted.as_ref();
        counts.locations.members_missing = omitted.map_or(0, |omitted| omitted.lost);
        counts.locations.warn(&options.base, base.ctx);
    }
    Ok(Summary {
        replication_sequence,
        replication_timestamp,
        augmented_diff,
        expired_tiles,
        locations: locations.map(|_| counts.locations),
        ..Summary::of_changes(written, changes.changes().len(), &counts)
    })
}

/// Executes steps in parallel, and writes their results in the order of the steps. `editor` creates the editor of a
/// worker. Returns the effects of the changes.
fn execute<'a>(
    steps: Vec<ApplyStep>,
    editor: impl Fn() -> BlobEditor<'a> + Sync,
    base: PlannedFile<'_>,
    sink: &mut Sink,
) -> Result<ChangeCounts> {
    let (input, mut counts) = (&base.file.input, ChangeCounts::default());
    BlobPass::new("apply", input, base.ctx).run(
        steps,
        editor,
        |reader, editor, step| editor.apply(reader, &step),
        |(outcomes, more)| {
            counts.add(more);
            let mut outcomes = outcomes.into_iter();
            outcomes.try_for_each(|outcome| sink.add(input, outcome))
        },
    )?;
    Ok(counts)
}

impl Summary {
    /// Creates a summary without the facts about the header, the locations and the augmented diffs.
    const fn of_changes(written: WriteSummary, changes: usize, counts: &ChangeCounts) -> Self {
        Self {
            written: written.written,
            changes: changes as u64,
            created: counts.created,
            modified: counts.modified,
            deleted: counts.deleted,
            outdated: counts.outdated,
            absent: counts.absent,
            blobs_copied: written.blobs_copied,
            blobs_rewritten: written.blobs_rewritten,
            replication_sequence: None,
            replication_timestamp: None,
            header_box: HeaderBox::Kept,
            locations: None,
            augmented_diff: None,
            expired_tiles: None,
        }
    }
}
