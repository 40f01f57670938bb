//! Writes the saved objects.

use super::Options;
use super::headers::header;
use super::mender::BlobMender;
use super::outcome::Outcome;
use super::report::{LostIds, Report, Taken};
use super::survey::Survey;
use super::whole_copy::WholeCopy;
use crate::engine::filter::{BlobDecision, FilterJob, Selected, select_by_id, write_selected};
use crate::engine::headers::merged_header;
use crate::engine::input;
use crate::engine::sink::{BlobOutcome, Sink};
use crate::engine::sort::{Dedupe, SortJob, sort_files};
use crate::engine::{OutputOptions, WriteSummary};
use crate::error::Result;
use crate::file::{BlobPlan, PbfFile, PlanNeeds};
use crate::io::{Input, OpenOutput, ScratchFile, SizeHint};
use crate::osm::{TypeThenId, id_rank};
use crate::pbf::{BlobEntry, HeaderBlock};
use crate::runtime::Context;

/// Writes the objects that can be saved, and those lost objects that the file in `options.from` has. Completes the
/// report. Writes nothing in a dry run.
pub(super) fn write(
    damaged: &Input,
    survey: &Survey,
    mender: &BlobMender,
    copy: Option<WholeCopy>,
    options: &Options,
    report: &mut Report,
    ctx: &Context,
) -> Result<()> {
    if options.dry_run {
        return Ok(());
    }
    let from = options.from.as_deref();
    let other = from.map(|path| input::open(path, ctx)).transpose()?;
    let header = header(survey, report, other.as_ref());
    let write_to = |output: &OutputOptions| {
        let mut header = header.clone();
        // A temporary file gets this header, too. Sorting applies the options once more, so the header of the temporary
        // file must still have the fields that the options keep.
        options.output.header.apply(&mut header);
        write_outcomes(damaged, survey, mender, output, header, ctx)
    };
    if report.was_sorted && (other.is_none() || report.lost.is_empty()) {
        let summary = match copy.filter(|copy| copy.header == header) {
            Some(copy) => copy.sink.finish()?,
            None => write_to(&options.output)?,
        };
        report.written = Some(summary.written);
        return Ok(());
    }
    drop(copy);
    let (saved, summary) = write_scratch(&options.output, write_to)?;
    let before = summary.written.objects.unwrap_or(0);
    let saved = PbfFile::of_input(Input::from_temporary(saved.open()?, damaged.path())?, ctx)?;
    sort_saved_objects(saved, before, other.as_ref(), options, report, ctx)
}

/// Sorts the objects of `saved`, and the objects of `other` whose ids are lost, into the output. `before` is the number
/// of objects in `saved`.
fn sort_saved_objects(
    saved: PbfFile,
    mut before: u64,
    other: Option<&PbfFile>,
    options: &Options,
    report: &mut Report,
    ctx: &Context,
) -> Result<()> {
    let header = saved.header.clone();
    let mut files = vec![saved];
    if let (Some(other), Some(path)) = (other, &options.from) {
        let lost: Vec<LostIds> = report
            .lost
            .iter()
            .flat_map(|loss| loss.ids.clone())
            .collect();
        let (file, objects) = write_lost_objects(other, &lost, &header, &options.output, ctx)?;
        before += objects;
        report.from = Some(Taken {
            path: path.clone(),
            objects,
        });
        files.push(file);
    }
    let job = SortJob::new(options.output.clone(), Dedupe::HighestVersion);
    let sorted = sort_files(files, &job, ctx)?;
    let after = sorted.written.objects.unwrap_or(0);
    report.duplicates = before.saturating_sub(after);
    report.written = Some(sorted.written);
    Ok(())
}

/// Writes a temporary file that will be sorted into `output`. The file has the compression of the output, because
/// sorting copies blobs that are in order. Returns the file and the result of `write`.
fn write_scratch<T>(
    output: &OutputOptions,
    write: impl FnOnce(&OutputOptions) -> Result<T>,
) -> Result<(ScratchFile, T)> {
    let directory = output.target.scratch_directory();
    let (file, scratch) = OutputOptions::create_scratch(&directory, output.encoding().compression)?;
    let written = write(&scratch)?;
    Ok((file, written))
}

/// Writes the blobs of all outcomes, in file order.
fn write_outcomes(
    input: &Input,
    survey: &Survey,
    mender: &BlobMender,
    output: &OutputOptions,
    header: HeaderBlock,
    ctx: &Context,
) -> Result<WriteSummary> {
    let mut size = SizeHint::default();
    for outcome in &survey.outcomes {
        if let Outcome::Whole { entry, .. } = outcome {
            size = size.and(SizeHint::copy_of(entry.offset, entry.frame_len.into()));
        }
    }
    let mut sink = Sink::create(output, header, size, ctx)?;
    let phase = ctx.phase("write", input.len());
    for outcome in &survey.outcomes {
        ctx.cancellation.check()?;
        let (entry, written) = match outcome {
            Outcome::Whole { entry, .. } => (entry, BlobOutcome::Copy(*entry)),
            Outcome::Mended(mended) => (&mended.entry, BlobOutcome::Frames(mender.frames(mended)?)),
            Outcome::Lost(..) | Outcome::Empty => continue,
        };
        sink.add(input, written)?;
        phase.advance(entry.frame_len.into());
    }
    sink.finish()
}

/// Writes those objects of `other` whose ids are in `lost` to a temporary file. The file gets the replication state of
/// `of_output`, the header of the output, so that sorting keeps this state. Returns the file and the number of objects.
fn write_lost_objects(
    other: &PbfFile,
    lost: &[LostIds],
    of_output: &HeaderBlock,
    output: &OutputOptions,
    ctx: &Context,
) -> Result<(PbfFile, u64)> {
    let plan = BlobPlan::open(other, PlanNeeds::Ranges, ctx)?;
    let ranges = join_ranges(lost.iter().map(LostIds::keys).collect());
    // Returns the first range that ends at a key or after it.
    let range_from = |key: TypeThenId| {
        let index = ranges.partition_point(|(_, last)| *last < key);
        ranges.get(index)
    };
    let is_lost = |key: TypeThenId| range_from(key).is_some_and(|(first, _)| *first <= key);
    let may_have = |entry: &BlobEntry| match (entry.first_sort_key(), entry.last_sort_key()) {
        (Some(first), Some(last)) => range_from(first).is_some_and(|(low, _)| *low <= last),
        _ => true,
    };
    let (saved, summary) = write_scratch(output, |output| {
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

/// Sorts ranges of keys, joins those that overlap, and leaves out empty ranges.
fn join_ranges(mut ranges: Vec<(TypeThenId, TypeThenId)>) -> Vec<(TypeThenId, TypeThenId)> {
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
    /// Returns the first and the last key that lost objects can have.
    fn keys(&self) -> (TypeThenId, TypeThenId) {
        let rank = |id: Option<i64>, default: u64| id.map_or(default, id_rank);
        (
            (self.kind, rank(self.first, 0)),
            (self.kind, rank(self.last, u64::MAX)),
        )
    }
}
