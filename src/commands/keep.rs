//! Writing what a command keeps of a file: whole blobs as they are, parts of blobs anew. Into one output,
//! or into several in one pass.

mod marks;
mod rewrite;

use super::held::Held;
use crate::Context;
use crate::error::Result;
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, BlobFlags, FormatError, HeaderBlock, InfoFields, ParsedBlock, StringTable,
    TARGET_ELEMENTS,
};
use crate::read::{BlobPlan, PbfFile, parallel_classify_phase};
use crate::write::{
    EncodedFrame, Encoders, Expected, OpenOutput, Part, PbfWriter, Reblocker, WriteOptions, Written,
};
pub(super) use marks::{Class, Keep, Marks};
use rewrite::Looker;
use serde::Serialize;

/// What is known to become of a blob before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing of it is kept.
    Drop,
    /// All of it is kept.
    Copy,
    /// Its objects decide.
    Look,
}

/// What is known to become of a blob in several outputs.
#[derive(Debug, Clone, Default)]
pub(super) struct Fates {
    /// The outputs that keep all of it.
    pub copies: Vec<u32>,
    /// Whether its objects decide in others.
    pub look: bool,
}

impl From<Fate> for Fates {
    fn from(fate: Fate) -> Self {
        Self {
            copies: if fate == Fate::Copy {
                vec![0]
            } else {
                Vec::new()
            },
            look: fate == Fate::Look,
        }
    }
}

/// What can be said of a blob by its strings alone.
pub(super) type Glance<'a> = &'a (dyn Fn(&StringTable<'_>) -> Fate + Sync);

/// An output and what its header says.
pub(super) struct Target {
    pub output: OpenOutput,
    pub header: HeaderBlock,
}

/// Where objects are taken from and where they go.
pub(super) struct Job<'a> {
    /// The name of the phase.
    pub name: &'static str,
    pub file: &'a PbfFile,
    pub plan: BlobPlan,
    /// Asked before a blob is decompressed as a whole. Only where there is one output.
    pub glance: Option<Glance<'a>>,
    /// What is kept of some blobs, which need not be read again.
    pub held: Option<&'a Held>,
    /// How many objects each output keeps at most, where that is known.
    pub kept: Option<Vec<u64>>,
    /// Metadata that nothing keeps.
    pub clean: InfoFields,
    pub outputs: Vec<Target>,
    pub write: WriteOptions,
}

/// What was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Kept {
    /// The file that was written.
    pub written: Written,
    /// Blobs that were copied as they were.
    pub blobs_copied: u64,
    /// Blobs that were passed over without being read.
    pub blobs_skipped: u64,
    /// Blobs of which a part was kept.
    pub blobs_rewritten: u64,
}

/// Writes what is kept of a file to one output, in file order.
///
/// `fate` says what is known of a blob by its entry; a blob of which the plan knows nothing is looked at
/// in any case. `mark` decides for each object of a block that is looked at, in order, and returns what
/// `note` is to learn, in file order.
pub(super) fn write_kept<T: Send>(
    job: Job<'_>,
    fate: impl Fn(&BlobEntry) -> Fate,
    mark: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Marks) -> Result<T, FormatError> + Sync,
    note: impl FnMut(T),
    ctx: &Context,
) -> Result<Kept> {
    let kept = write_each(
        job,
        |entry| fate(entry).into(),
        |entry, block, marks| {
            marks.start_one_output();
            mark(entry, block, marks)
        },
        note,
        ctx,
    )?;
    Ok(kept.into_iter().next().unwrap_or_default())
}

/// As [`write_kept`], to any number of outputs in one pass.
pub(super) fn write_each<T: Send>(
    job: Job<'_>,
    fates: impl Fn(&BlobEntry) -> Fates,
    mark: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Marks) -> Result<T, FormatError> + Sync,
    mut note: impl FnMut(T),
    ctx: &Context,
) -> Result<Vec<Kept>> {
    let (file, mut plan) = (job.file, job.plan);
    let is_decoded = |fates: &Fates| fates.look || !job.clean.is_empty();
    let fates = |entry: &BlobEntry| match is_known(entry) {
        true => fates(entry),
        false => Fate::Look.into(),
    };
    plan.resolve_shared(file, ctx, |entry| is_decoded(&fates(entry)))?;
    let (mut units, mut looked) = (Vec::new(), None);
    let objects_a_blob = objects_a_blob(&plan);
    let mut all_kept = vec![Kept::default(); job.outputs.len()];
    let mut expected = vec![Expected::default(); job.outputs.len()];
    for entry in plan.entries {
        let fates = fates(&entry);
        if fates.copies.is_empty() && !fates.look {
            let blobs = u64::from(entry.blobs);
            all_kept
                .iter_mut()
                .for_each(|kept| kept.blobs_skipped += blobs);
            ctx.stats.blobs_skipped.add(blobs);
            continue;
        }
        // Whether other outputs look at the blob makes no difference for those that copy it.
        let copies = match job.clean.is_empty() {
            true => fates.copies.as_slice(),
            false => &[],
        };
        for output in copies {
            if let Some(expected) = expected.get_mut(*output as usize) {
                let (blobs, bytes) = (entry.blobs.into(), entry.frame_len.into());
                *expected = expected.and(Expected::copy_of(blobs, entry.offset, bytes));
            }
        }
        if is_decoded(&fates) {
            // A blob of several kinds becomes several, and so does a very large one.
            *looked.get_or_insert(0) += u64::from(entry.count) / TARGET_ELEMENTS as u64 + 2;
        }
        units.push((entry, fates));
    }
    let (outputs, encoders) = (job.outputs.len(), Encoders::new(job.write, ctx));
    let mut sinks = Vec::with_capacity(outputs);
    let mut kept = job.kept.unwrap_or_default().into_iter();
    for (target, mut expected) in job.outputs.into_iter().zip(expected) {
        expected.others = outputs - 1;
        match (kept.next(), looked) {
            (Some(kept), _) => expected = expected.and(made_of(kept, objects_a_blob)),
            (None, Some(blobs)) => {
                expected.blobs += blobs;
                expected.open = true;
            }
            (None, None) => {}
        }
        let writer = PbfWriter::begun(target.output, target.header, job.write, expected, ctx)?;
        sinks.push(Reblocker::new(writer, &encoders, outputs));
    }
    let bytes = |entry: &BlobEntry| u64::from(entry.frame_len);
    let phase = ctx.phase(job.name, units.iter().map(|(entry, _)| bytes(entry)).sum());
    parallel_classify_phase(
        ctx.jobs,
        ctx.byte_budget(),
        units.into_iter().map(Ok),
        |(entry, fates)| {
            if is_decoded(fates) {
                bytes(entry) * 4
            } else {
                0
            }
        },
        || Looker::new(file, job.glance, job.held, job.clean, job.write, ctx),
        |looker, (entry, fates)| {
            let (done, noted) = match is_decoded(&fates) {
                true => looker.look(entry, &fates, &mark)?,
                false => (Done::copies(entry, &fates), None),
            };
            Ok((bytes(&entry), done, noted))
        },
        |(bytes, done, noted)| {
            phase.advance(bytes);
            noted.into_iter().for_each(&mut note);
            for (output, done) in done {
                let output = output as usize;
                let (Some(sink), Some(kept)) = (sinks.get_mut(output), all_kept.get_mut(output))
                else {
                    continue;
                };
                match done {
                    Done::Copy(entry) => {
                        kept.blobs_copied += u64::from(entry.blobs);
                        sink.copy(&file.input, entry)?;
                    }
                    Done::Rewritten(frames, parts) => {
                        kept.blobs_rewritten += 1;
                        if !frames.is_empty() {
                            sink.frames(frames)?;
                        }
                        parts.into_iter().try_for_each(|part| sink.part(part))?;
                    }
                }
            }
            Ok(())
        },
    )?;
    drop(phase);
    finish(sinks, &mut all_kept, ctx)?;
    Ok(all_kept)
}

/// How many objects a blob of a plan has on average, as far as that is known.
fn objects_a_blob(plan: &BlobPlan) -> u64 {
    let known = plan.entries.iter().filter(|entry| entry.count > 0);
    let (blobs, objects) = known.fold((0, 0), |(blobs, objects), entry| {
        (
            blobs + u64::from(entry.blobs),
            objects + u64::from(entry.count),
        )
    });
    (objects / blobs.max(1)).clamp(2, TARGET_ELEMENTS as u64)
}

/// What comes beside blobs that are copied where so many objects are kept. Nothing else is asked, so that
/// an output is the same beside others.
fn made_of(kept: u64, objects_a_blob: u64) -> Expected {
    // Blocks that are full because of what their objects have, and the last of each kind.
    const MORE: u64 = 64;
    // Blobs of which most is kept do not become fewer; a copy may end a block that is not full.
    let blobs = kept.div_ceil(objects_a_blob * 3 / 4) * 2;
    Expected {
        blobs: blobs + MORE,
        open: true,
        is_near: true,
        ..Expected::default()
    }
}

/// Ends all outputs: encoding what is left, and waiting for the disk, are done for several at once.
fn finish(mut sinks: Vec<Reblocker<'_>>, kept: &mut [Kept], ctx: &Context) -> Result<()> {
    const AT_ONCE: usize = 16;
    sinks.iter_mut().try_for_each(Reblocker::end_block)?;
    let writers: Result<Vec<_>> = sinks.into_iter().map(Reblocker::finish).collect();
    let mut kept = kept.iter_mut();
    let _phase = ctx.phase("flush", 0);
    parallel_classify_phase(
        AT_ONCE.min(kept.len()),
        u64::MAX,
        writers?.into_iter().map(Ok),
        |_| 0,
        || (),
        |(), writer| writer.finish(),
        |written| {
            if let Some(kept) = kept.next() {
                kept.written = written;
            }
            Ok(())
        },
    )
}

/// Whether an entry says what is in its blob.
const fn is_known(entry: &BlobEntry) -> bool {
    entry.flags.has(BlobFlags::SCANNED) || !entry.kinds.is_empty()
}

/// What an output gets of a blob.
enum Done {
    Copy(BlobEntry),
    Rewritten(Vec<EncodedFrame>, Vec<Part>),
}

impl Done {
    fn copies(entry: BlobEntry, fates: &Fates) -> Vec<(u32, Self)> {
        let copies = fates.copies.iter();
        copies.map(|output| (*output, Self::Copy(entry))).collect()
    }
}

/// Marks each object of a block by its kind and id.
pub(super) fn mark_by_id(
    block: &ParsedBlock<'_>,
    marks: &mut Marks,
    mut keep: impl FnMut(ObjectKind, i64) -> Keep,
) -> Result<(), FormatError> {
    block.for_each_id(|kind, id| marks.push(keep(kind, id)))
}
