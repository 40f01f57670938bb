//! Sorting open files into canonical order: blobs that are in order are copied, the others are merged.
//!
//! Blobs whose id range no other blob overlaps, and whose objects stand in order, are copied. The
//! others form clusters of overlapping ranges; a cluster is cut into shards by id, and each
//! shard is merged by one worker from the blobs that reach into it.

mod merge;

use crate::engine::headers::merged_header;
use crate::engine::shards::{MergeStep, Source, Sources, plan_steps, without_equals};
use crate::engine::sink::{BlobOutcome, Sink};
use crate::engine::{OutputOptions, WriteSummary, copy_size_hint};
use crate::error::Result;
use crate::file::{BlobPass, BlobPlan, PbfFile, PlanNeeds, Written};
use crate::io::{Input, SizeHint};
use crate::osm::TypeThenId;
use crate::pbf::{BlobFlags, FrameEncoder, HeaderBlock, feature};
use crate::runtime::{Context, Pass};
use merge::merge_shard;
use serde::Serialize;

/// Where sorted objects go, and which duplicates are left out.
#[derive(Debug, Clone)]
pub(crate) struct SortJob {
    pub output: OutputOptions,
    pub dedupe: Dedupe,
}

/// What becomes of objects that come again, in one input or in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dedupe {
    /// All are kept.
    #[default]
    KeepAll,
    /// The highest version is kept, once; in history files each version once.
    HighestVersion,
}

/// As [`Dedupe`], for inputs that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptVersions {
    All,
    EachVersion,
    HighestVersion,
}

/// What `sort` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The file that was written.
    pub written: Written,
    /// Blobs that were copied as they were.
    pub blobs_copied: u64,
    /// Blobs whose objects were merged.
    pub blobs_merged: u64,
}

impl Summary {
    fn of(summary: WriteSummary, blobs_merged: u64) -> Self {
        Self {
            written: summary.written,
            blobs_copied: summary.blobs_copied,
            blobs_merged,
        }
    }
}

/// Bytes of payload that are merged at a time, all workers together.
const MERGE_BUDGET: u64 = 256 << 20;

/// Bytes of payload that one shard should have. It decides where blocks are cut, and so must not
/// depend on the number of jobs.
const SHARD_BYTES: u64 = 32 << 20;

/// Sorts and merges `files` into one output in canonical order.
pub(crate) fn sort_files(files: Vec<PbfFile>, job: &SortJob, ctx: &Context) -> Result<Summary> {
    let mut header = merged_header(&files)?;
    // Files that are in order are copied while they are looked at.
    ctx.expect_phases(u64::from(files.len() > 1 || !header.has(feature::SORTED)));
    header.set_optional(feature::SORTED, true);
    job.output.header.apply(&mut header);
    let kept = match job.dedupe {
        Dedupe::KeepAll => KeptVersions::All,
        Dedupe::HighestVersion if header.has(feature::HISTORY) => KeptVersions::EachVersion,
        Dedupe::HighestVersion => KeptVersions::HighestVersion,
    };
    let mut blobs: Vec<Source> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let plan = if let [only] = files.as_slice() {
            match copy_while_sorted(job, only, &header, kept, ctx)? {
                Attempt::Sorted(summary) => return Ok(summary),
                Attempt::Unsorted(plan) => plan,
            }
        } else {
            BlobPlan::open(file, PlanNeeds::Order, ctx)?
        };
        blobs.extend(
            plan.entries
                .into_iter()
                .map(|entry| Source { file: index, entry }),
        );
    }
    let mut inputs: Vec<&Input> = files.iter().map(|file| &file.input).collect();
    let steps = match kept {
        KeptVersions::All => plan_steps(blobs, SHARD_BYTES),
        _ => plan_steps(without_equals(blobs), SHARD_BYTES)
            .into_iter()
            .map(MergeStep::with_each_id_once)
            .collect(),
    };
    let merged = steps.iter().map(MergeStep::blobs_merged).sum();
    let scratch = job.output.target.scratch_directory();
    let runs = merge::sorted_runs(&inputs, &steps, SHARD_BYTES, &scratch, ctx)?;
    let steps = match &runs {
        None => steps,
        Some(runs) => {
            inputs.push(&runs.input);
            runs.replace(steps, inputs.len() - 1, SHARD_BYTES)
        }
    };
    write_steps(job, header, &inputs, steps, merged, kept, ctx)
}

/// What came of copying a file in the hope that it is sorted.
enum Attempt {
    Sorted(Summary),
    /// It is not; this is what is in it.
    Unsorted(BlobPlan),
}

/// Copies blobs while they turn out to be in order, so that a sorted file without an index is read
/// and copied in one go. What was copied of another is dropped: it never had a name.
fn copy_while_sorted(
    job: &SortJob,
    file: &PbfFile,
    header: &HeaderBlock,
    kept: KeptVersions,
    ctx: &Context,
) -> Result<Attempt> {
    let target = job.output.target.clone();
    // A stream cannot take back what it was given.
    let mut sink = match target.is_stream() {
        true => None,
        false => {
            let mut size_hint = copy_size_hint(file);
            if !file.toc.as_ref().is_some_and(|toc| toc.flags.sorted) {
                // Perhaps nothing is copied in the end.
                size_hint.copied = 0;
            }
            Some(Sink::create(
                target,
                header.clone(),
                job.output.write,
                size_hint,
                ctx,
            )?)
        }
    };
    let mut last: Option<TypeThenId> = None;
    let mut entries = Vec::new();
    ctx.expect_phases(1);
    BlobPass::new("index", &file.input, ctx).run_stream(
        BlobPlan::items(file, PlanNeeds::Order),
        || (),
        |reader, (), step| step.resolve(reader),
        |entry| {
            let order = match kept {
                KeptVersions::All => BlobFlags::SORTED,
                KeptVersions::EachVersion | KeptVersions::HighestVersion => BlobFlags::STRICT,
            };
            let in_place = entry.flags.has(order) && entry.first_key() > last;
            last = entry.last_key().max(last);
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
        None => Attempt::Unsorted(BlobPlan { entries }),
        Some(sink) => Attempt::Sorted(Summary::of(sink.finish()?, 0)),
    })
}

fn write_steps(
    job: &SortJob,
    header: HeaderBlock,
    inputs: &[&Input],
    steps: Vec<MergeStep>,
    blobs_merged: u64,
    kept: KeptVersions,
    ctx: &Context,
) -> Result<Summary> {
    let size_hint = steps
        .iter()
        .map(MergeStep::size_hint)
        .fold(SizeHint::default(), SizeHint::and);
    let mut sink = Sink::create(
        job.output.target.clone(),
        header,
        job.output.write,
        size_hint,
        ctx,
    )?;
    Pass::new("sort", ctx).with_budget(MERGE_BUDGET).run(
        steps,
        || {
            let encoder =
                FrameEncoder::new(job.output.write.compression, job.output.write.blob_index);
            (Sources::new(inputs, ctx), encoder)
        },
        |(sources, encoder), step| match step {
            MergeStep::Copy(source) => Ok((source.file, BlobOutcome::Copy(source.entry))),
            MergeStep::Merge(shard) => {
                let frames = merge_shard(sources, encoder, &shard, kept)?;
                Ok((0, BlobOutcome::Frames(frames)))
            }
        },
        |(file, outcome)| {
            let input = inputs.get(file);
            input.map_or(Ok(()), |input| sink.add(input, outcome))
        },
    )?;
    Ok(Summary::of(sink.finish()?, blobs_merged))
}
