//! Sorts open files into canonical order.
//!
//! A blob is copied if its objects are in order and its id range overlaps the range of no other blob. Blobs with
//! overlapping ranges form clusters. A cluster is cut into shards by id. Each shard is merged by one worker, from the
//! blobs that overlap the shard.

mod kept;
mod located;
mod merge;
mod merged;
mod order_notices;
mod portions;
mod stored;

use crate::engine::changesets;
use crate::engine::headers::merged_header;
use crate::engine::location_form::LocationForm;
use crate::engine::repeat_count::{RepeatCount, has_proven_repeat, is_versioned};
use crate::engine::repeats;
use crate::engine::shards::{MergeStep, Shard, Source, Sources, plan_steps, sort_and_drop_equal};
use crate::engine::sink::{BlobOutcome, Sink};
use crate::engine::{OutputOptions, WriteSummary, copy_size_hint};
use crate::error::{FormatResult, Result};
use crate::file::{BlobPass, BlobPlan, PbfFile, PlanNeeds, PlannedFile, Written};
use crate::io::{Input, SizeHint};
use crate::osm::{TypeThenId, Unversioned};
use crate::pbf::{BlobEntry, BlobFlags, FrameEncoder, HeaderBlock, feature};
use crate::runtime::{Context, Disorder, Pass};
use located::WayLocationRule;
use merge::merge_shard;
use serde::Serialize;
use std::path::Path;

/// The output of a sort, and the handling of duplicates.
#[derive(Debug, Clone)]
pub(crate) struct SortJob {
    pub output: OutputOptions,
    pub dedupe: Dedupe,
    /// Whether the changesets of text inputs are written after the objects, if the output format can hold them.
    pub changesets: bool,
    /// Whether to warn if objects occur again in the output. The warning gives the number of these objects. If
    /// duplicates are removed, or if an input is a history or a change file, there is no warning.
    pub tells_repeats: bool,
    /// Whether all locations in ways stay unchanged if all objects are kept.
    pub keeps_locations: bool,
}

impl SortJob {
    /// Creates a job that writes no changesets, does not warn of repeated objects, and makes locations in ways agree.
    pub(crate) const fn new(output: OutputOptions, dedupe: Dedupe) -> Self {
        Self {
            output,
            dedupe,
            changesets: false,
            tells_repeats: false,
            keeps_locations: false,
        }
    }
}

/// The handling of duplicates, which are objects with the same kind and id in one input or in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Dedupe {
    /// All duplicates are kept.
    #[default]
    KeepAll,
    /// Only the highest version of each object is kept, once. If an input is a history file, all versions are kept,
    /// each once.
    HighestVersion,
    /// All versions are kept, each once.
    EachVersion(EqualVersions),
    /// The objects are changes, and only the last change of each object is kept: the one with the highest version. Of
    /// changes with equal versions, the one with the latest time is kept. If the times are equal or one is missing, the
    /// last change in the order of the inputs is kept, unless [`LastChange::of_extracts`] is set.
    LastChange(LastChange),
}

/// The object that is kept if several have the same kind, id and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EqualVersions {
    /// Keeps the first of the objects.
    #[default]
    First,
    /// Keeps the last of the objects.
    Last,
    /// Keeps the first deletion, or the first object if no object is a deletion.
    FirstOrDeletion,
}

/// The rules that determine which of several changes of an object is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastChange {
    /// Whether the inputs are the changes of several extracts for the same period. If so, the order of the inputs does
    /// not matter. Of changes with equal versions and times, a change that keeps the object is preferred to a deletion.
    /// A missing time counts as later than every other time.
    pub of_extracts: bool,
    /// The rank of a change without a version.
    pub unversioned: Unversioned,
}

/// The rule that decides which versions of an object are kept. It is a [`Dedupe`] that was resolved for certain inputs.
/// [`Dedupe::HighestVersion`] depends on whether an input is a history file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResolvedDedupe {
    All,
    EachVersion(EqualVersions),
    HighestVersion,
    LastChange(LastChange),
}

impl ResolvedDedupe {
    /// Returns the flag of blobs that can stay as they are: no version has to be removed or moved.
    const fn unchanged_flag(self) -> BlobFlags {
        match self {
            Self::All => BlobFlags::SORTED,
            Self::EachVersion(_) | Self::HighestVersion | Self::LastChange(_) => {
                BlobFlags::UNIQUE_IDS
            }
        }
    }

    /// Resolves `dedupe` for inputs with the merged header `header`.
    fn of(dedupe: Dedupe, header: &HeaderBlock) -> Self {
        match dedupe {
            Dedupe::KeepAll => Self::All,
            Dedupe::EachVersion(equal) => Self::EachVersion(equal),
            Dedupe::LastChange(rules) => Self::LastChange(rules),
            Dedupe::HighestVersion if header.has(feature::HISTORY) => {
                Self::EachVersion(EqualVersions::First)
            }
            Dedupe::HighestVersion => Self::HighestVersion,
        }
    }
}

/// The result of `sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The size, blobs and objects of the output.
    pub written: Written,
    /// The number of blobs that were copied unchanged.
    pub blobs_copied: u64,
    /// The number of input blobs whose objects were merged.
    pub blobs_merged: u64,
    /// The number of nodes with contradicting locations. No input has such a node, and ways of the inputs store
    /// different locations for it. The newest location was written.
    pub contradicting_locations: u64,
}

impl Summary {
    fn of(summary: WriteSummary, blobs_merged: u64) -> Self {
        Self {
            written: summary.written,
            blobs_copied: summary.blobs_copied,
            blobs_merged,
            contradicting_locations: 0,
        }
    }
}

/// The maximum total size in bytes of the payloads that all workers merge at the same time.
const MERGE_BUDGET: u64 = 256 << 20;

/// The approximate size in bytes of the payloads of a shard. It determines where output blocks are cut, and so must not
/// depend on the number of jobs.
const SHARD_BYTES: u64 = 32 << 20;

/// Sorts and merges `files` into one output in canonical order. Fails if there is no file.
pub(crate) fn sort_files(files: Vec<PbfFile>, job: &SortJob, ctx: &Context) -> Result<Summary> {
    let mut header = merged_header(&files)?;
    let job = &SortJob {
        output: job.output.clone().resolve_for_inputs(&files),
        ..job.clone()
    };
    // `copy_while_sorted` announces a phase itself, and a single file that is in order needs no other phase.
    ctx.expect_phases(u64::from(files.len() > 1 || !header.has(feature::SORTED)));
    header.set_optional(feature::SORTED, true);
    job.output.header.apply(&mut header);
    let kept = ResolvedDedupe::of(job.dedupe, &header);
    let mut plans: Vec<BlobPlan> = Vec::with_capacity(files.len());
    for file in &files {
        match copy_or_plan_input(job, &files, file, &header, kept, ctx)? {
            CopyAttempt::Sorted(summary) => return Ok(summary),
            CopyAttempt::Unsorted(plan) => plans.push(plan),
        }
    }
    let tells = should_warn_of_repeats(job, kept, &files, &plans, ctx);
    let mut locations = match (job.keeps_locations, kept) {
        (true, ResolvedDedupe::All) => WayLocationRule::Keep,
        _ => WayLocationRule::decide(&files, &plans, kept, &mut header, ctx)?,
    };
    let mut inputs: Vec<&Input> = files.iter().map(|file| &file.input).collect();
    let steps = plan_merge_steps(plans, kept);
    let merged = steps.iter().map(MergeStep::blobs_merged).sum();
    let scratch = job.output.target.scratch_directory();
    let runs = merge::sort_clusters_into_runs(&inputs, &steps, SHARD_BYTES, &scratch, ctx)?;
    let steps = match &runs {
        None => steps,
        Some(runs) => {
            inputs.push(&runs.input);
            runs.replace_shards(steps, inputs.len() - 1, SHARD_BYTES)
        }
    };
    locations.find_moved(&steps, &inputs, kept, ctx)?;
    let rules = SortRules {
        kept,
        locations,
        tells_repeats: tells,
    };
    let hints = steps.iter().map(MergeStep::size_hint);
    let hint = hints.fold(SizeHint::default(), SizeHint::and);
    let mut sink = Sink::create(&job.output, header, hint, ctx)?;
    let repeated = execute_steps(job, &inputs, steps, &rules, &mut sink, ctx)?;
    repeated.warn_of_repeats(path_of_only_file(&files), ctx);
    if job.changesets {
        changesets::put_sorted_changesets(
            &files,
            kept != ResolvedDedupe::All,
            &job.output,
            &mut sink,
            ctx,
        )?;
    }
    Ok(Summary {
        contradicting_locations: rules.locations.contradiction_count(),
        ..Summary::of(sink.finish()?, merged)
    })
}

/// Plans one of the inputs. If it is the only input and in order, copies it instead.
fn copy_or_plan_input(
    job: &SortJob,
    files: &[PbfFile],
    file: &PbfFile,
    header: &HeaderBlock,
    kept: ResolvedDedupe,
    ctx: &Context,
) -> Result<CopyAttempt> {
    let attempt = if files.len() == 1 {
        copy_while_sorted(job, file, header, kept, ctx)?
    } else {
        CopyAttempt::Unsorted(BlobPlan::open(file, PlanNeeds::Order, ctx)?)
    };
    if let CopyAttempt::Unsorted(plan) = &attempt {
        check_order(job, PlannedFile::new(file, plan, ctx), files.len() > 1)?;
    }
    Ok(attempt)
}

/// Checks the order of an input. With [`Dedupe::EachVersion`], an input that is out of order is an error if
/// [`Context::disorder`] is [`Disorder::Refuse`]. With [`Disorder::Tell`], reports the order of an input that is one of
/// several.
fn check_order(job: &SortJob, source: PlannedFile<'_>, is_one_of_several: bool) -> Result<()> {
    if matches!(job.dedupe, Dedupe::EachVersion(_)) {
        source.plan.check_order(source.file, source.ctx)?;
    }
    match source.ctx.disorder {
        Disorder::Tell { versions } if is_one_of_several => {
            order_notices::report_order_problems(source, versions)
        }
        Disorder::Accept | Disorder::Refuse | Disorder::Tell { .. } => Ok(()),
    }
}

/// Whether to warn of objects that occur again. Repetitions are normal in histories and change files.
fn should_warn_of_repeats(
    job: &SortJob,
    kept: ResolvedDedupe,
    files: &[PbfFile],
    plans: &[BlobPlan],
    ctx: &Context,
) -> bool {
    job.tells_repeats
        && kept == ResolvedDedupe::All
        && !files.iter().any(|file| is_versioned(file, ctx))
        && !plans
            .iter()
            .any(|plan| plan.has_entry_with_flag(BlobFlags::DELETED))
}

/// Returns the path of the only file; `None` if there are several files.
fn path_of_only_file(files: &[PbfFile]) -> Option<&Path> {
    match files {
        [file] => Some(file.input.path()),
        _ => None,
    }
}

/// Plans the steps that merge all inputs. `plans` has the plan of each input.
fn plan_merge_steps(plans: Vec<BlobPlan>, kept: ResolvedDedupe) -> Vec<MergeStep> {
    let entries = plans.into_iter().map(|plan| plan.entries).enumerate();
    let blobs: Vec<Source> = entries
        .flat_map(|(file, entries)| {
            let sources = entries.into_iter();
            sources.map(move |entry| Source { file, entry })
        })
        .collect();
    match kept {
        ResolvedDedupe::All => plan_steps(blobs, SHARD_BYTES),
        _ => plan_steps(sort_and_drop_equal(blobs, kept.equal_blobs()), SHARD_BYTES)
            .into_iter()
            .map(MergeStep::merge_if_ids_may_repeat)
            .collect(),
    }
}

/// The locations that ways get in an output that is a concatenation of several inputs.
#[derive(Default)]
pub(crate) struct AgreedLocations(WayLocationRule);

impl AgreedLocations {
    /// Decides which locations the ways get. If an input may lack nodes of its ways according to its header
    /// ([`LocationForm::may_lack_nodes`]), reads all inputs and compares the locations in their ways. Otherwise reads
    /// nothing, and all locations stay unchanged.
    pub(crate) fn decide(
        files: &[PbfFile],
        header: &mut HeaderBlock,
        ctx: &Context,
    ) -> Result<Self> {
        let may_lack_nodes =
            |file: &PbfFile| LocationForm::of_header(&file.header, false).may_lack_nodes();
        if files.len() < 2 || !files.iter().any(may_lack_nodes) {
            return Ok(Self(WayLocationRule::Keep));
        }
        let plans = files.iter();
        let plans = plans.map(|file| BlobPlan::open(file, PlanNeeds::Order, ctx));
        let plans = plans.collect::<Result<Vec<_>>>()?;
        let kept = ResolvedDedupe::All;
        let mut locations = WayLocationRule::decide(files, &plans, kept, header, ctx)?;
        let inputs: Vec<&Input> = files.iter().map(|file| &file.input).collect();
        locations.find_moved(&plan_merge_steps(plans, kept), &inputs, kept, ctx)?;
        Ok(Self(locations))
    }

    /// Whether the ways of a blob may get other locations.
    pub(crate) fn may_change(&self, entry: &BlobEntry) -> bool {
        self.0.may_change(entry)
    }

    /// Returns the payload with the agreed locations in its ways. Returns `None` if no location changes.
    pub(crate) fn relocate(
        &self,
        entry: &BlobEntry,
        payload: &[u8],
    ) -> FormatResult<Option<Vec<u8>>> {
        self.0.relocate(entry, payload)
    }
}

/// The rules by which the objects of the inputs become objects of the output.
struct SortRules {
    kept: ResolvedDedupe,
    locations: WayLocationRule,
    /// Whether objects that occur again are counted.
    tells_repeats: bool,
}

impl SortRules {
    /// Counts the objects that occur again in a blob that is copied. Decodes the blob only if its entry says that there
    /// are such objects.
    fn count_repeats_in(&self, sources: &mut Sources, source: &Source) -> Result<RepeatCount> {
        if !self.tells_repeats || !has_proven_repeat(&source.entry) {
            return Ok(RepeatCount::default());
        }
        let payload = sources.payload(source)?;
        RepeatCount::of_payload(&payload).map_err(|error| sources.error(source, error))
    }
}

/// The result of [`copy_while_sorted`].
enum CopyAttempt {
    Sorted(Summary),
    /// The file is not in order, or the output is a stream or text. No output was produced.
    Unsorted(BlobPlan),
}

/// Copies blobs for as long as they are in order. Thus a sorted file without an index is checked and copied in one
/// pass. At the first blob that is out of order, the incomplete output is discarded, before it has a name.
fn copy_while_sorted(
    job: &SortJob,
    file: &PbfFile,
    header: &HeaderBlock,
    kept: ResolvedDedupe,
    ctx: &Context,
) -> Result<CopyAttempt> {
    // Bytes that were written to a stream cannot be withdrawn, and text is slow to write. A stream or a text file is
    // therefore not written before the order is known.
    let mut sink = if job.output.is_stream_or_text() {
        None
    } else {
        let mut size_hint = copy_size_hint(file);
        if !file.toc.as_ref().is_some_and(|toc| toc.flags.sorted) {
            // The order of the file is not verified yet, and only a sorted file is copied. Therefore a lack of disk
            // space for the copy is no error at this point.
            size_hint.copied = 0;
        }
        Some(Sink::create(&job.output, header.clone(), size_hint, ctx)?)
    };
    let mut last: Option<TypeThenId> = None;
    let mut entries = Vec::new();
    ctx.expect_phases(1);
    BlobPass::new("index", &file.input, ctx).run_stream(
        BlobPlan::items(file, PlanNeeds::Order),
        || (),
        |reader, (), step| step.resolve(reader),
        |entry| {
            let in_place = entry.flags.has(kept.unchanged_flag()) && entry.first_sort_key() > last;
            last = entry.last_sort_key().max(last);
            entries.push(entry);
            if !in_place {
                sink = None;
            }
            match &mut sink {
                Some(sink) => sink.add(&file.input, BlobOutcome::Copy(entry)),
                None => Ok(()),
            }
        },
    )?;
    Ok(match sink {
        None => CopyAttempt::Unsorted(BlobPlan { entries }),
        Some(sink) => {
            let plan = BlobPlan { entries };
            if should_warn_of_repeats(
                job,
                kept,
                std::slice::from_ref(file),
                std::slice::from_ref(&plan),
                ctx,
            ) {
                repeats::warn_of_repeated_objects(file, &plan, ctx)?;
            }
            CopyAttempt::Sorted(Summary::of(sink.finish()?, 0))
        }
    })
}

/// Writes the output step by step. Returns the count of objects that occur again.
fn execute_steps(
    job: &SortJob,
    inputs: &[&Input],
    steps: Vec<MergeStep>,
    rules: &SortRules,
    sink: &mut Sink,
    ctx: &Context,
) -> Result<RepeatCount> {
    let write = job.output.encoding();
    let mut repeated = RepeatCount::default();
    Pass::new("sort", ctx).with_budget(MERGE_BUDGET).run(
        steps,
        || {
            let mut encoder = FrameEncoder::new(write.compression, write.blob_index);
            if matches!(rules.locations, WayLocationRule::Drop) {
                encoder.drop_locations();
            }
            (Sources::new(inputs, ctx), encoder)
        },
        |(sources, encoder), step| match step {
            MergeStep::Copy(source) if rules.locations.may_change(&source.entry) => {
                let changed = update_way_locations(sources, encoder, source, rules)?;
                Ok((changed, RepeatCount::default()))
            }
            MergeStep::Copy(source) => {
                let found = rules.count_repeats_in(sources, &source)?;
                Ok(((source.file, BlobOutcome::Copy(source.entry)), found))
            }
            MergeStep::Merge(shard) => {
                let (frames, found) = merge_shard(sources, encoder, &shard, rules)?;
                Ok(((0, BlobOutcome::Frames(frames)), found))
            }
        },
        |((file, outcome), found)| {
            repeated.add(found);
            sink.add(inputs[file], outcome)
        },
    )?;
    Ok(if rules.tells_repeats {
        repeated
    } else {
        RepeatCount::default()
    })
}

/// Returns the outcome for a blob whose ways may get other locations. The blob is copied if all locations stay the
/// same.
fn update_way_locations(
    sources: &mut Sources,
    encoder: &mut FrameEncoder,
    source: Source,
    rules: &SortRules,
) -> Result<(usize, BlobOutcome)> {
    if let WayLocationRule::Agree(_) = rules.locations {
        let payload = sources.payload(&source)?;
        let relocated = rules.locations.relocate(&source.entry, &payload);
        let relocated = relocated.map_err(|error| sources.error(&source, error))?;
        if relocated.is_none() {
            return Ok((source.file, BlobOutcome::Copy(source.entry)));
        }
    }
    let (frames, _) = merge_shard(sources, encoder, &Shard::of(source), rules)?;
    Ok((0, BlobOutcome::Frames(frames)))
}
