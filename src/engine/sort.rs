//! Sorting open files into canonical order: blobs that are in order are copied, the others are merged.
//!
//! Blobs whose id range no other blob overlaps, and whose objects stand in order, are copied. The
//! others form clusters of overlapping ranges; a cluster is cut into shards by id, and each
//! shard is merged by one worker from the blobs that reach into it.

mod merge;

use crate::engine::copy_size_hint;
use crate::engine::headers::{HeaderOptions, merged_header};
use crate::engine::shards::{Source, Sources, WorkItem, plan_items, without_equals};
use crate::error::Result;
use crate::file::{BlobPlan, PbfFile, PbfWriter, PlanNeeds, WriteOptions, Written};
use crate::io::{Input, OutputTarget, SizeHint};
use crate::osm::TypeThenId;
use crate::pbf::{BlobFlags, EncodedFrame, FrameEncoder, HeaderBlock, feature};
use crate::runtime::{Context, parallel_classify_phase};
use merge::merge_shard;
use serde::Serialize;

/// Where sorted objects go, and which duplicates are left out.
#[derive(Debug, Clone)]
pub(crate) struct SortJob {
    pub output: OutputTarget,
    pub write: WriteOptions,
    pub header: HeaderOptions,
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
    job.header.apply(&mut header);
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
    let items = match kept {
        KeptVersions::All => plan_items(blobs, SHARD_BYTES),
        _ => plan_items(without_equals(blobs), SHARD_BYTES)
            .into_iter()
            .map(WorkItem::with_each_id_once)
            .collect(),
    };
    let merged = items.iter().map(WorkItem::blobs_merged).sum();
    let scratch = job.output.scratch_directory();
    let runs = merge::sorted_runs(&inputs, &items, SHARD_BYTES, &scratch, ctx)?;
    let items = match &runs {
        None => items,
        Some(runs) => {
            inputs.push(&runs.input);
            runs.replace(items, inputs.len() - 1, SHARD_BYTES)
        }
    };
    write_items(job, header, &inputs, items, merged, kept, ctx)
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
    let target = job.output.clone();
    // A stream cannot take back what it was given.
    let mut writer = match target.is_stream() {
        true => None,
        false => {
            let mut size_hint = copy_size_hint(file);
            if !file.toc.as_ref().is_some_and(|toc| toc.flags.sorted) {
                // Perhaps nothing is copied in the end.
                size_hint.copied = 0;
            }
            Some(PbfWriter::create(
                target,
                header.clone(),
                job.write,
                size_hint,
                ctx,
            )?)
        }
    };
    let mut last: Option<TypeThenId> = None;
    let mut blobs_copied = 0;
    let plan = BlobPlan::open_with(file, PlanNeeds::Order, ctx, |entry| {
        let order = match kept {
            KeptVersions::All => BlobFlags::SORTED,
            KeptVersions::EachVersion | KeptVersions::HighestVersion => BlobFlags::STRICT,
        };
        let in_place = entry.flags.has(order) && entry.first_key() > last;
        match writer.take_if(|_| !in_place) {
            Some(_) => return Ok(()),
            None => last = entry.last_key().max(last),
        }
        match &mut writer {
            Some(writer) => {
                blobs_copied += 1;
                writer.copy(&file.input, entry)
            }
            None => Ok(()),
        }
    })?;
    Ok(match writer {
        None => Attempt::Unsorted(plan),
        Some(writer) => Attempt::Sorted(Summary {
            written: writer.finish()?,
            blobs_copied,
            blobs_merged: 0,
        }),
    })
}

fn write_items(
    job: &SortJob,
    header: HeaderBlock,
    inputs: &[&Input],
    items: Vec<WorkItem>,
    blobs_merged: u64,
    kept: KeptVersions,
    ctx: &Context,
) -> Result<Summary> {
    let size_hint = items
        .iter()
        .map(WorkItem::size_hint)
        .fold(SizeHint::default(), SizeHint::and);
    let mut summary = Summary {
        written: Written::default(),
        blobs_copied: 0,
        blobs_merged,
    };
    let mut writer = PbfWriter::create(job.output.clone(), header, job.write, size_hint, ctx)?;
    let phase = ctx.phase("sort", items.iter().map(WorkItem::frame_bytes).sum());
    parallel_classify_phase(
        ctx.jobs,
        MERGE_BUDGET,
        items.into_iter().map(Ok),
        WorkItem::payload_bytes,
        || {
            let encoder = FrameEncoder::new(job.write.compression, job.write.blob_index);
            (Sources::new(inputs, ctx), encoder)
        },
        |(sources, encoder), item| {
            let bytes = item.frame_bytes();
            let done = match item {
                WorkItem::Copy(source) => Done::Copy(source),
                WorkItem::Merge(shard) => {
                    Done::Frames(merge_shard(sources, encoder, &shard, kept)?)
                }
            };
            Ok((bytes, done))
        },
        |(bytes, done)| {
            phase.advance(bytes);
            match done {
                Done::Frames(frames) => frames.iter().try_for_each(|frame| writer.frame(frame)),
                Done::Copy(source) => match inputs.get(source.file) {
                    Some(input) => {
                        summary.blobs_copied += 1;
                        writer.copy(input, &source.entry)
                    }
                    None => Ok(()),
                },
            }
        },
    )?;
    drop(phase);
    summary.written = writer.finish()?;
    Ok(summary)
}

enum Done {
    Copy(Source),
    Frames(Vec<EncodedFrame>),
}
