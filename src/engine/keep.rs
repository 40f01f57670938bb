//! Writing what a command keeps of a file: whole blobs as they are, parts of blobs anew. Into one output,
//! or into several in one pass.

mod marks;
mod rewrite;

use super::block_packer::{Encoders, Reblocker};
use super::held::Held;
use crate::error::{FormatError, Result};
use crate::file::{BlobPlan, PbfFile, PbfWriter, WriteOptions, Written};
use crate::io::{Expected, OpenOutput};
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, EncodedFrame, HeaderBlock, InfoFields, ParsedBlock, Part, StringTable, clean_block,
};
use crate::runtime::{Context, parallel_classify_phase};
pub(crate) use marks::{Class, Keep, Marks};
use rewrite::Looker;
use serde::Serialize;

/// What is known to become of a blob before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing of it is kept.
    Drop,
    /// All of it is kept.
    Copy,
    /// Its objects decide.
    Look,
}

/// What is known to become of a blob in several outputs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fates {
    /// The outputs that keep all of it.
    pub copies: Vec<u32>,
    /// Whether its objects decide in others.
    pub look: bool,
    /// Whether there is another payload in its place first.
    pub change: bool,
}

impl Fates {
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

impl From<Fate> for Fates {
    fn from(fate: Fate) -> Self {
        Self {
            copies: if fate == Fate::Copy {
                vec![0]
            } else {
                Vec::new()
            },
            look: fate == Fate::Look,
            change: false,
        }
    }
}

/// What can be said of a blob by its strings alone.
pub(crate) type Glance<'a> = &'a (dyn Fn(&StringTable<'_>) -> Fate + Sync);

/// What a payload becomes before it is looked at what is kept of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    /// It stays as it is.
    Not,
    /// There is another in its place, of which all that the entry of the blob says is true, but for what this one
    /// says.
    Alike(BlobEntry),
    /// There is another in its place.
    Anew,
}

/// Makes another payload of that of a blob, with as many objects in the same order.
pub(crate) type Change<'a> =
    &'a (dyn Fn(&BlobEntry, &[u8], &mut Vec<u8>) -> Result<Changed, FormatError> + Sync);

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
    pub glance: Option<Glance<'a>>,
    /// What is kept of some blobs, which need not be read again.
    pub held: Option<&'a Held>,
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
pub(crate) fn write_kept<T: Send>(
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
pub(crate) fn write_each<T: Send>(
    job: Job<'_>,
    fates: impl Fn(&BlobEntry) -> Fates,
    mark: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Marks) -> Result<T, FormatError> + Sync,
    note: impl FnMut(T),
    ctx: &Context,
) -> Result<Vec<Kept>> {
    let (file, plan) = (job.file, job.plan);
    // What is cleaned is never copied, and so needs to be known blob by blob.
    let cleans = !job.clean.is_empty();
    let clean = |_: &BlobEntry, payload: &[u8], out: &mut Vec<u8>| {
        clean_block(payload, job.clean, out).map(|()| Changed::Anew)
    };
    let change: Option<Change<'_>> = if cleans { Some(&clean) } else { None };
    let fates = |entry: &BlobEntry| {
        let fates = match entry.is_indexed() {
            true => fates(entry),
            false => Fate::Look.into(),
        };
        match cleans {
            true => fates.changed(),
            false => fates,
        }
    };
    let units = plan.entries.into_iter();
    let units: Vec<Unit> = units.map(|entry| (entry, fates(&entry))).collect();
    let outputs = job.outputs.len();
    let expected = (0..outputs).map(|output| expected(&units, output as u32));
    let expected = expected.collect();
    let mut keeper = Keeper::begin(file, job.outputs, job.write, expected, ctx)?;
    let pass = Pass {
        name: job.name,
        glance: job.glance,
        held: job.held,
        change,
    };
    keeper.pass(pass, units, mark, note)?;
    keeper.finish()
}

/// A blob, and what is known to become of it.
pub(crate) type Unit = (BlobEntry, Fates);

/// The bytes that an output is expected to take.
pub(crate) fn expected(units: &[Unit], output: u32) -> Expected {
    let copied = |(_, fates): &&Unit| !fates.change && fates.copies.contains(&output);
    let copies = units.iter().filter(copied);
    copies.fold(Expected::default(), |expected, (entry, _)| {
        expected.and(Expected::copy_of(entry.offset, entry.frame_len.into()))
    })
}

/// A pass over blobs of a file, all of which go to the outputs of a [`Keeper`].
pub(crate) struct Pass<'a> {
    /// The name of the phase.
    pub name: &'static str,
    /// Asked before a blob is decompressed as a whole. Only where there is one output.
    pub glance: Option<Glance<'a>>,
    /// What is kept of some blobs, which need not be read again.
    pub held: Option<&'a Held>,
    /// Makes the payloads that take the place of others.
    pub change: Option<Change<'a>>,
}

impl Pass<'_> {
    /// A pass over blobs as they are.
    pub(crate) const fn plain(name: &'static str) -> Self {
        Self {
            name,
            glance: None,
            held: None,
            change: None,
        }
    }
}

/// Writes what is kept of a file, in one pass or in several.
pub(crate) struct Keeper<'f> {
    file: &'f PbfFile,
    write: WriteOptions,
    ctx: &'f Context,
    sinks: Vec<Reblocker<'f>>,
    kept: Vec<Kept>,
}

impl<'f> Keeper<'f> {
    /// Begins the outputs.
    pub(crate) fn begin(
        file: &'f PbfFile,
        outputs: Vec<Target>,
        write: WriteOptions,
        expected: Vec<Expected>,
        ctx: &'f Context,
    ) -> Result<Self> {
        let (count, encoders) = (outputs.len(), Encoders::new(write, ctx));
        let mut sinks = Vec::with_capacity(count);
        for (target, mut expected) in outputs.into_iter().zip(expected) {
            expected.others = count - 1;
            let writer = PbfWriter::begun(target.output, target.header, write, expected, ctx)?;
            sinks.push(Reblocker::new(writer, &encoders, count));
        }
        Ok(Self {
            file,
            write,
            ctx,
            sinks,
            kept: vec![Kept::default(); count],
        })
    }

    /// Appends what is kept of some blobs. `mark` and `note` are as in [`write_each`].
    pub(crate) fn pass<T: Send>(
        &mut self,
        pass: Pass<'_>,
        mut units: Vec<Unit>,
        mark: impl Fn(&BlobEntry, &ParsedBlock<'_>, &mut Marks) -> Result<T, FormatError> + Sync,
        mut note: impl FnMut(T),
    ) -> Result<()> {
        let (file, ctx) = (self.file, self.ctx);
        let (sinks, all_kept) = (&mut self.sinks, &mut self.kept);
        units.retain(|(entry, fates)| {
            let stays = !fates.copies.is_empty() || fates.look;
            if !stays {
                ctx.stats.skip_blob(entry.is_verified());
                all_kept.iter_mut().for_each(|kept| kept.blobs_skipped += 1);
            }
            stays
        });
        let bytes = |entry: &BlobEntry| u64::from(entry.frame_len);
        let phase = ctx.phase(pass.name, units.iter().map(|(entry, _)| bytes(entry)).sum());
        parallel_classify_phase(
            ctx.jobs,
            ctx.byte_budget(),
            units.into_iter().map(Ok),
            |(entry, fates)| {
                if fates.is_decoded() {
                    bytes(entry) * 4
                } else {
                    0
                }
            },
            || Looker::new(file, &pass, self.write, ctx),
            |looker, (entry, fates)| {
                let (done, noted) = match fates.is_decoded() {
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
                            parts.into_iter().try_for_each(|part| sink.part(part))?;
                        }
                    }
                }
                Ok(())
            },
        )
    }

    /// Ends all outputs: encoding what is left, and waiting for the disk, are done for several at once.
    pub(crate) fn finish(mut self) -> Result<Vec<Kept>> {
        const AT_ONCE: usize = 16;
        self.sinks.iter_mut().try_for_each(Reblocker::end_block)?;
        let writers: Result<Vec<_>> = self.sinks.into_iter().map(Reblocker::finish).collect();
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
    Rewritten(Vec<EncodedFrame>, Vec<Part>),
}

impl Done {
    fn copies(entry: BlobEntry, fates: &Fates) -> Vec<(u32, Self)> {
        let copies = fates.copies.iter();
        copies.map(|output| (*output, Self::Copy(entry))).collect()
    }
}

/// Marks each object of a block by its kind and id.
pub(crate) fn mark_by_id(
    block: &ParsedBlock<'_>,
    marks: &mut Marks,
    mut keep: impl FnMut(ObjectKind, i64) -> Keep,
) -> Result<(), FormatError> {
    block.for_each_id(|kind, id| marks.push(keep(kind, id)))
}
