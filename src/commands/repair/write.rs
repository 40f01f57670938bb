//! Writes what was saved.

use super::Options;
use super::draft::Draft;
use super::headers::header;
use super::look::rewrite;
use super::outcome::{Mended, Outcome};
use super::report::{LostIds, Report, Taken};
use super::survey::Survey;
use crate::engine::filter::{BlobDecision, FilterJob, Selected, select_by_id, write_selected};
use crate::engine::headers::merged_header;
use crate::engine::input;
use crate::engine::sink::{BlobOutcome, Sink};
use crate::engine::sort::{Dedupe, SortJob, sort_files};
use crate::engine::{OutputOptions, WriteSummary};
use crate::error::{Error, Result};
use crate::file::{BlobPass, BlobPlan, PbfFile, PlanNeeds, WriteOptions};
use crate::io::{Input, OpenOutput, OutputTarget, ScratchFile, SizeHint};
use crate::osm::{TypeThenId, id_rank};
use crate::pbf::{BlobEntry, Compression, Decompressor, FrameEncoder, HeaderBlock};
use crate::runtime::{Context, WorkItem};
use std::path::Path;

/// A blob to write.
enum WriteItem<'s> {
    Copy(BlobEntry),
    Mend(&'s Mended),
}

impl WorkItem for WriteItem<'_> {
    fn input_bytes(&self) -> u64 {
        let entry = match self {
            Self::Copy(entry) => entry,
            Self::Mend(mended) => &mended.frame.entry,
        };
        entry.frame_len.into()
    }

    fn held_bytes(&self) -> u64 {
        match self {
            Self::Copy(_) => 0,
            Self::Mend(_) => self.input_bytes() * 8,
        }
    }
}

/// Opens the file from which lost objects are taken; `None` if the options name none.
pub(super) fn open_other(options: &Options, ctx: &Context) -> Result<Option<PbfFile>> {
    let path = options.from.as_deref();
    path.map(|path| input::open(path, ctx)).transpose()
}

/// Writes the objects that can be saved, and the lost ones that another file has. Completes the report.
pub(super) fn write(
    input: &Input,
    survey: &Survey,
    draft: Option<Draft>,
    options: &Options,
    report: &mut Report,
    ctx: &Context,
) -> Result<()> {
    let other = open_other(options, ctx)?;
    let header = header(survey, report, other.as_ref());
    if report.was_sorted && (other.is_none() || report.lost.is_empty()) {
        let summary = match draft.filter(|draft| draft.has_header(&header)) {
            Some(draft) => draft.finish()?,
            None => put(input, survey, &options.output, header, options, ctx)?,
        };
        report.written = Some(summary.written);
        return Ok(());
    }
    drop(draft);
    let directory = options.output.target.scratch_directory();
    let (saved, summary) = scratch(&directory, |output| {
        put(input, survey, output, header.clone(), options, ctx)
    })?;
    let before = summary.written.objects.unwrap_or(0);
    let saved = PbfFile::of_input(Input::from_temporary(saved.open()?, input.path())?, ctx)?;
    sort_saved(saved, before, other.as_ref(), options, report, ctx)
}

/// Sorts the objects of `saved`, of which there are `before`, together with those of the other file whose ids are lost,
/// into the output.
pub(super) fn sort_saved(
    saved: PbfFile,
    mut before: u64,
    other: Option<&PbfFile>,
    options: &Options,
    report: &mut Report,
    ctx: &Context,
) -> Result<()> {
    let directory = options.output.target.scratch_directory();
    let header = saved.header.clone();
    let mut files = vec![saved];
    if let (Some(other), Some(path)) = (other, &options.from) {
        let lost = report.lost_ids();
        let (file, objects) = take(other, &lost, &header, &directory, ctx)?;
        before += objects;
        report.from = Some(Taken {
            path: path.clone(),
            objects,
        });
        files.push(file);
    }
    let job = SortJob {
        output: options.output.clone(),
        dedupe: Dedupe::HighestVersion,
        changesets: false,
        tells_repeats: false,
        keeps_locations: false,
    };
    let sorted = sort_files(files, &job, ctx)?;
    let after = sorted.written.objects.unwrap_or(0);
    report.duplicates = before.saturating_sub(after);
    report.written = Some(sorted.written);
    Ok(())
}

/// Writes a temporary file. Returns the file and what `put` returns.
fn scratch<T>(
    directory: &Path,
    put: impl FnOnce(&OutputOptions) -> Result<T>,
) -> Result<(ScratchFile, T)> {
    let file = ScratchFile::create(directory)?;
    let target = OutputTarget::Scratch(file.clone());
    let output = OutputOptions::new(target).write(WriteOptions {
        compression: Compression::Lz4,
        ..WriteOptions::default()
    });
    let written = put(&output)?;
    Ok((file, written))
}

/// Writes the objects that can be saved, in file order.
fn put(
    input: &Input,
    survey: &Survey,
    output: &OutputOptions,
    mut header: HeaderBlock,
    options: &Options,
    ctx: &Context,
) -> Result<WriteSummary> {
    // Sorting applies the options again, and must then find what they keep.
    options.output.header.apply(&mut header);
    let mut size = SizeHint::default();
    let mut items = Vec::new();
    for outcome in &survey.outcomes {
        match outcome {
            Outcome::Whole(entry, _) => {
                size = size.and(SizeHint::copy_of(entry.offset, entry.frame_len.into()));
                items.push(WriteItem::Copy(*entry));
            }
            Outcome::Mended(mended) => items.push(WriteItem::Mend(mended)),
            Outcome::Lost(..) | Outcome::Empty => {}
        }
    }
    let mut sink = Sink::create(output, header, size, ctx)?;
    let write = output.encoding();
    BlobPass::new("write", input, ctx).run(
        items,
        || FrameEncoder::new(write.compression, write.blob_index),
        |_, encoder, item| match item {
            WriteItem::Copy(entry) => Ok(BlobOutcome::Copy(entry)),
            WriteItem::Mend(mended) => mend(input, mended, options, encoder),
        },
        |outcome| sink.add(input, outcome),
    )?;
    sink.finish()
}

/// Encodes what is left of a blob.
fn mend(
    input: &Input,
    mended: &Mended,
    options: &Options,
    encoder: &mut FrameEncoder,
) -> Result<BlobOutcome> {
    let entry = &mended.frame.entry;
    let bad = |source| input.blob_error(entry.number.into(), entry.offset, source);
    let body = super::frames::body_of(input, entry)?;
    let mut decompressor = Decompressor::default();
    let blob = mended.frame.blob(&body);
    let payload = blob.and_then(|blob| decompressor.payload(&blob));
    let (changes, frames) = rewrite(payload.map_err(bad)?, options.invalid_utf8, encoder, |_| ());
    if changes != mended.changes {
        return Err(Error::file(
            input.path(),
            "the file changed while it was repaired",
        ));
    }
    Ok(BlobOutcome::Frames(frames.map_err(bad)?))
}

/// Writes the objects of another file with the given ids to a temporary file, with the replication state of the header
/// `of_output`: sorting then keeps this state. Returns the file, and the number of objects.
fn take(
    other: &PbfFile,
    lost: &[LostIds],
    of_output: &HeaderBlock,
    directory: &Path,
    ctx: &Context,
) -> Result<(PbfFile, u64)> {
    let plan = BlobPlan::open(other, PlanNeeds::Ranges, ctx)?;
    let ranges = joined(lost.iter().map(LostIds::keys).collect());
    // The first range that does not end before a key.
    let range_from = |key: TypeThenId| {
        let index = ranges.partition_point(|(_, last)| *last < key);
        ranges.get(index)
    };
    let is_lost = |key: TypeThenId| range_from(key).is_some_and(|(first, _)| *first <= key);
    let may_have = |entry: &BlobEntry| match (entry.first_key(), entry.last_key()) {
        (Some(first), Some(last)) => range_from(first).is_some_and(|(low, _)| *low <= last),
        _ => true,
    };
    let (saved, summary) = scratch(directory, |output| {
        let open = OpenOutput::open(output.target.clone(), ctx)?;
        let mut header = merged_header(std::slice::from_ref(other))?;
        header.replication_sequence = of_output.replication_sequence;
        header.replication_timestamp = of_output.replication_timestamp;
        header
            .replication_url
            .clone_from(&of_output.replication_url);
        let job = FilterJob::with_output("take objects", other, plan, open, header, output);
        write_selected(
            job,
            |entry| BlobDecision::visit_if(may_have(entry)),
            |_, block, selection| {
                select_by_id(block, selection, |kind, id| {
                    Selected::whole_if(is_lost((kind, id_rank(id))))
                })
            },
            |()| (),
            ctx,
        )
    })?;
    let input = Input::from_temporary(saved.open()?, other.input.path())?;
    let objects = summary.written.objects.unwrap_or(0);
    Ok((PbfFile::of_input(input, ctx)?, objects))
}

/// Sorts ranges of keys, joins those that overlap, and leaves out those without a key.
fn joined(mut ranges: Vec<(TypeThenId, TypeThenId)>) -> Vec<(TypeThenId, TypeThenId)> {
    ranges.retain(|(first, last)| first <= last);
    ranges.sort_unstable();
    ranges.dedup_by(|next, range| {
        let overlaps = next.0 <= range.1;
        if overlaps {
            range.1 = range.1.max(next.1);
        }
        overlaps
    });
    ranges
}

impl LostIds {
    /// The first and the last key that lost objects can have.
    fn keys(&self) -> (TypeThenId, TypeThenId) {
        let rank = |id: Option<i64>, default: u64| id.map_or(default, id_rank);
        (
            (self.kind, rank(self.first, 0)),
            (self.kind, rank(self.last, u64::MAX)),
        )
    }
}

impl Report {
    /// The ids of all lost objects.
    fn lost_ids(&self) -> Vec<LostIds> {
        self.lost.iter().flat_map(|loss| loss.ids.clone()).collect()
    }
}
