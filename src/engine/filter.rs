//! Writing what a command keeps of a file: whole blobs as they are, parts of blobs anew. Into one output,
//! or into several in one pass.

mod selection;
mod worker;

use super::block_packer::{BlockPacker, Encoders};
use super::partial_blob_cache::PartialBlobCache;
use crate::error::{FormatError, Result};
use crate::file::{BlobPlan, PbfFile, PbfWriter, WriteOptions, Written};
use crate::io::{OpenOutput, SizeHint};
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, EncodedBlock, EncodedFrame, HeaderBlock, InfoFields, ParsedBlock, StringTable,
    clean_block,
};
use crate::runtime::{Context, parallel_classify_phase};
pub(crate) use selection::{GroupId, Selected, Selection};
use serde::Serialize;
use worker::FilterWorker;

/// What is known to become of a blob before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobDecision {
    /// Nothing of it is kept.
    Drop,
    /// All of it is kept.
    Copy,
    /// Its objects decide.
    Look,
}

/// What is known to become of a blob in several outputs.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlobDecisions {
    /// The outputs that keep all of it.
    pub copies: Vec<u32>,
    /// Whether its objects decide in others.
    pub look: bool,
    /// Whether there is another payload in its place first.
    pub change: bool,
}

impl BlobDecisions {
    /// Whether the blob has to be decoded.
    const fn is_decoded(&self) -> bool {
        self.look || self.change
    }

    /// The same for another payload in the blob's place.
    pub(crate) fn changed(self) -> Self {
        Self {
            change: true,
            ..self
        }
    }
}

impl From<BlobDecision> for BlobDecisions {
    fn from(decision: BlobDecision) -> Self {
        Self {
            copies: if decision == BlobDecision::Copy {
                vec![0]
            } else {
                Vec::new()
            },
            look: decision == BlobDecision::Look,
            change: false,
        }
    }
}

/// What can be said of a blob by its strings alone.
pub(crate) type StringPrefilter<'a> = &'a (dyn Fn(&StringTable<'_>) -> BlobDecision + Sync);

/// What a payload becomes before it is looked at what is kept of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transformed {
    /// It stays as it is.
    Not,
    /// There is another in its place, of which all that the entry of the blob says is true, but for what this one
    /// says.
    Alike(BlobEntry),
    /// There is another in its place.
    Anew,
}

/// Makes another payload of that of a blob, with as many objects in the same order.
pub(crate) type Transform<'a> =
    &'a (dyn Fn(&BlobEntry, &[u8], &mut Vec<u8>) -> Result<Transformed, FormatError> + Sync);

/// An output and what its header says.
pub(crate) struct Target {
    pub output: OpenOutput,
    pub header: HeaderBlock,
}

/// Where objects are taken from and where they go.
pub(crate) struct Job<'a> {
    /// The name of the phase.
    pub name: &'static str,
    pub file: &'a PbfFile,
    pub plan: BlobPlan,
    /// Asked before a blob is decompressed as a whole. Only where there is one output.
    pub prefilter: Option<StringPrefilter<'a>>,
    /// What is kept of some blobs, which need not be read again.
    pub cache: Option<&'a PartialBlobCache>,
    /// Metadata that nothing keeps.
    pub clean: InfoFields,
    pub outputs: Vec<Target>,
    pub write: WriteOptions,
}

/// What was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct WriteSummary {
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
/// `decision` says what is known of a blob by its entry; a blob of which the plan knows nothing is looked at
/// in any case. `select` decides for each object of a block that is looked at, in order, and returns what
/// `note` is to learn, in file order.
pub(crate) fn write_kept<T: Send>(
    job: Job<'_>,
    decision: impl Fn(&BlobEntry) -> BlobDecision,
    select: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Selection) -> Result<T, FormatError> + Sync,
    note: impl FnMut(T),
    ctx: &Context,
) -> Result<WriteSummary> {
    let kept = write_each(
        job,
        |entry| decision(entry).into(),
        |entry, block, selection| {
            selection.start_one_output();
            select(entry, block, selection)
        },
        note,
        ctx,
    )?;
    Ok(kept.into_iter().next().unwrap_or_default())
}

/// As [`write_kept`], to any number of outputs in one pass.
pub(crate) fn write_each<T: Send>(
    job: Job<'_>,
    decisions: impl Fn(&BlobEntry) -> BlobDecisions,
    select: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Selection) -> Result<T, FormatError> + Sync,
    note: impl FnMut(T),
    ctx: &Context,
) -> Result<Vec<WriteSummary>> {
    let (file, plan) = (job.file, job.plan);
    // What is cleaned is never copied, and so needs to be known blob by blob.
    let cleans = !job.clean.is_empty();
    let clean = |_: &BlobEntry, payload: &[u8], out: &mut Vec<u8>| {
        clean_block(payload, job.clean, out).map(|()| Transformed::Anew)
    };
    let change: Option<Transform<'_>> = if cleans { Some(&clean) } else { None };
    let decisions = |entry: &BlobEntry| {
        let decisions = match entry.is_indexed() {
            true => decisions(entry),
            false => BlobDecision::Look.into(),
        };
        match cleans {
            true => decisions.changed(),
            false => decisions,
        }
    };
    let items = plan.entries.into_iter();
    let items: Vec<WorkItem> = items.map(|entry| (entry, decisions(&entry))).collect();
    let outputs = job.outputs.len();
    let size_hint = (0..outputs).map(|output| size_hint(&items, output as u32));
    let size_hint = size_hint.collect();
    let mut writer = FilteredWriter::begin(file, job.outputs, job.write, size_hint, ctx)?;
    let pass = Pass {
        name: job.name,
        prefilter: job.prefilter,
        cache: job.cache,
        change,
    };
    writer.pass(pass, items, select, note)?;
    writer.finish()
}

/// A blob, and what is known to become of it.
pub(crate) type WorkItem = (BlobEntry, BlobDecisions);

/// The bytes that an output is size_hint to take.
pub(crate) fn size_hint(items: &[WorkItem], output: u32) -> SizeHint {
    let copied =
        |(_, decisions): &&WorkItem| !decisions.change && decisions.copies.contains(&output);
    let copies = items.iter().filter(copied);
    copies.fold(SizeHint::default(), |size_hint, (entry, _)| {
        size_hint.and(SizeHint::copy_of(entry.offset, entry.frame_len.into()))
    })
}

/// A pass over blobs of a file, all of which go to the outputs of a [`FilteredWriter`].
pub(crate) struct Pass<'a> {
    /// The name of the phase.
    pub name: &'static str,
    /// Asked before a blob is decompressed as a whole. Only where there is one output.
    pub prefilter: Option<StringPrefilter<'a>>,
    /// What is kept of some blobs, which need not be read again.
    pub cache: Option<&'a PartialBlobCache>,
    /// Makes the payloads that take the place of others.
    pub change: Option<Transform<'a>>,
}

impl Pass<'_> {
    /// A pass over blobs as they are.
    pub(crate) const fn plain(name: &'static str) -> Self {
        Self {
            name,
            prefilter: None,
            cache: None,
            change: None,
        }
    }
}

/// Writes what is kept of a file, in one pass or in several.
pub(crate) struct FilteredWriter<'f> {
    file: &'f PbfFile,
    write: WriteOptions,
    ctx: &'f Context,
    sinks: Vec<BlockPacker<'f>>,
    kept: Vec<WriteSummary>,
}

impl<'f> FilteredWriter<'f> {
    /// Begins the outputs.
    pub(crate) fn begin(
        file: &'f PbfFile,
        outputs: Vec<Target>,
        write: WriteOptions,
        size_hint: Vec<SizeHint>,
        ctx: &'f Context,
    ) -> Result<Self> {
        let (count, encoders) = (outputs.len(), Encoders::new(write, ctx));
        let mut sinks = Vec::with_capacity(count);
        for (target, mut size_hint) in outputs.into_iter().zip(size_hint) {
            size_hint.others = count - 1;
            let writer = PbfWriter::begun(target.output, target.header, write, size_hint, ctx)?;
            sinks.push(BlockPacker::new(writer, &encoders, count));
        }
        Ok(Self {
            file,
            write,
            ctx,
            sinks,
            kept: vec![WriteSummary::default(); count],
        })
    }

    /// Appends what is kept of some blobs. `select` and `note` are as in [`write_each`].
    pub(crate) fn pass<T: Send>(
        &mut self,
        pass: Pass<'_>,
        mut items: Vec<WorkItem>,
        select: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Selection) -> Result<T, FormatError> + Sync,
        mut note: impl FnMut(T),
    ) -> Result<()> {
        let (file, ctx) = (self.file, self.ctx);
        let (sinks, all_kept) = (&mut self.sinks, &mut self.kept);
        items.retain(|(entry, decisions)| {
            let stays = !decisions.copies.is_empty() || decisions.look;
            if !stays {
                ctx.stats.skip_blob(entry.is_verified());
                all_kept.iter_mut().for_each(|kept| kept.blobs_skipped += 1);
            }
            stays
        });
        let bytes = |entry: &BlobEntry| u64::from(entry.frame_len);
        let phase = ctx.phase(pass.name, items.iter().map(|(entry, _)| bytes(entry)).sum());
        parallel_classify_phase(
            ctx.jobs,
            ctx.byte_budget(),
            items.into_iter().map(Ok),
            |(entry, decisions)| {
                if decisions.is_decoded() {
                    bytes(entry) * 4
                } else {
                    0
                }
            },
            || FilterWorker::new(file, &pass, self.write, ctx),
            |looker, (entry, decisions)| {
                let (done, noted) = match decisions.is_decoded() {
                    true => looker.look(entry, &decisions, &select)?,
                    false => (Done::copies(entry, &decisions), None),
                };
                Ok((bytes(&entry), done, noted))
            },
            |(bytes, done, noted)| {
                phase.advance(bytes);
                noted.into_iter().for_each(&mut note);
                for (output, done) in done {
                    let output = output as usize;
                    let (Some(sink), Some(kept)) =
                        (sinks.get_mut(output), all_kept.get_mut(output))
                    else {
                        continue;
                    };
                    match done {
                        Done::Copy(entry) => {
                            kept.blobs_copied += 1;
                            sink.copy(&file.input, entry)?;
                        }
                        Done::Rewritten(frames, parts) => {
                            kept.blobs_rewritten += 1;
                            if !frames.is_empty() {
                                sink.frames(frames)?;
                            }
                            parts.into_iter().try_for_each(|part| sink.block(part))?;
                        }
                    }
                }
                Ok(())
            },
        )
    }

    /// Ends all outputs: encoding what is left, and waiting for the disk, are done for several at once.
    pub(crate) fn finish(mut self) -> Result<Vec<WriteSummary>> {
        const AT_ONCE: usize = 16;
        self.sinks.iter_mut().try_for_each(BlockPacker::end_block)?;
        let writers: Result<Vec<_>> = self.sinks.into_iter().map(BlockPacker::finish).collect();
        let mut kept = self.kept.iter_mut();
        let _phase = self.ctx.phase("flush", 0);
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
        )?;
        Ok(self.kept)
    }
}

/// What an output gets of a blob.
enum Done {
    Copy(BlobEntry),
    Rewritten(Vec<EncodedFrame>, Vec<EncodedBlock>),
}

impl Done {
    fn copies(entry: BlobEntry, decisions: &BlobDecisions) -> Vec<(u32, Self)> {
        let copies = decisions.copies.iter();
        copies.map(|output| (*output, Self::Copy(entry))).collect()
    }
}

/// Selection each object of a block by its kind and id.
pub(crate) fn select_by_id(
    block: &ParsedBlock<'_>,
    selection: &mut Selection,
    mut keep: impl FnMut(ObjectKind, i64) -> Selected,
) -> Result<(), FormatError> {
    block.for_each_id(|kind, id| selection.push(keep(kind, id)))
}
