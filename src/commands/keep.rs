//! Writing what a command keeps of a file: whole blobs as they are, parts of blobs anew.

use crate::Context;
use crate::error::Result;
use crate::osm::OrderKey;
use crate::pbf::splice::{EditScript, SpliceOptions, keep_objects, splice_block};
use crate::pbf::{
    BlobEntry, BlobFlags, FormatError, HeaderBlock, ParsedBlock, SourceStrings, StringTable,
    TARGET_ELEMENTS, TARGET_PAYLOAD, scan_payload,
};
use crate::read::{BlobPlan, BlobReader, Glanced, PbfFile, parallel_classify_phase, stale_index};
use crate::write::{
    EncodedFrame, Expected, FrameEncoder, OutputTarget, Part, PbfWriter, Reblocker, WriteOptions,
    Written,
};
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

/// What can be said of a blob by its strings alone.
pub(super) type Glance<'a> = &'a (dyn Fn(&StringTable<'_>) -> Fate + Sync);

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// It goes.
    Drop,
    /// It stays.
    Whole,
    /// It stays without its tags.
    Untagged,
}

impl Keep {
    /// `Whole` or `Drop`.
    pub(super) const fn whole_if(kept: bool) -> Self {
        if kept { Self::Whole } else { Self::Drop }
    }
}

/// Where objects are taken from and where they go.
pub(super) struct Job<'a> {
    /// The name of the phase.
    pub name: &'static str,
    pub file: &'a PbfFile,
    pub plan: BlobPlan,
    /// Asked before a blob is decompressed as a whole.
    pub glance: Option<Glance<'a>>,
    pub output: OutputTarget,
    pub write: WriteOptions,
    pub header: HeaderBlock,
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

/// Writes what is kept of a file, in file order.
///
/// `fate` says what is known of a blob by its entry; a blob of which the plan knows nothing is looked at
/// in any case. `mark` decides for each object of a block that is looked at, in order, and returns what
/// `note` is to learn, in file order.
pub(super) fn write_kept<T: Send>(
    job: Job<'_>,
    fate: impl Fn(&BlobEntry) -> Fate,
    mark: impl Fn(&ParsedBlock<'_>, &mut Vec<Keep>) -> Result<T, FormatError> + Sync,
    mut note: impl FnMut(T),
    ctx: &Context,
) -> Result<Kept> {
    let fate = |entry: &BlobEntry| {
        if is_known(entry) {
            fate(entry)
        } else {
            Fate::Look
        }
    };
    let (file, mut plan) = (job.file, job.plan);
    plan.resolve_shared(file, ctx, |entry| fate(entry) == Fate::Look)?;
    let mut kept = Kept::default();
    let mut units = Vec::new();
    let mut expected = Expected::default();
    for entry in plan.entries {
        match fate(&entry) {
            Fate::Drop => {
                kept.blobs_skipped += u64::from(entry.blobs);
                ctx.stats.blobs_skipped.add(u64::from(entry.blobs));
                continue;
            }
            Fate::Copy => {
                let (blobs, bytes) = (entry.blobs.into(), entry.frame_len.into());
                expected = expected.and(Expected::copy_of(blobs, entry.offset, bytes));
                units.push((entry, true));
            }
            Fate::Look => {
                // A blob of several kinds becomes several, and so does a very large one.
                expected.blobs += u64::from(entry.count) / TARGET_ELEMENTS as u64 + 2;
                expected.open = true;
                units.push((entry, false));
            }
        }
    }
    let writer = PbfWriter::create(job.output, job.header, job.write, expected, ctx)?;
    let mut sink = Reblocker::new(writer, job.write, ctx);
    let bytes = |entry: &BlobEntry| u64::from(entry.frame_len);
    let phase = ctx.phase(job.name, units.iter().map(|(entry, _)| bytes(entry)).sum());
    parallel_classify_phase(
        ctx.jobs,
        ctx.byte_budget(),
        units.into_iter().map(Ok),
        |(entry, copy)| if *copy { 0 } else { bytes(entry) * 4 },
        || Looker::new(file, job.glance, job.write, ctx),
        |looker, (entry, copy)| {
            let (done, noted) = match copy {
                true => (Done::Copy(entry), None),
                false => looker.look(entry, &mark)?,
            };
            Ok((bytes(&entry), done, noted))
        },
        |(bytes, done, noted)| {
            phase.advance(bytes);
            noted.into_iter().for_each(&mut note);
            match done {
                Done::Nothing => Ok(()),
                Done::Copy(entry) => {
                    kept.blobs_copied += u64::from(entry.blobs);
                    sink.copy(&file.input, entry)
                }
                Done::Rewritten(frames, parts) => {
                    kept.blobs_rewritten += 1;
                    if !frames.is_empty() {
                        sink.frames(frames)?;
                    }
                    parts.into_iter().try_for_each(|part| sink.part(part))
                }
            }
        },
    )?;
    drop(phase);
    kept.written = sink.finish()?;
    Ok(kept)
}

/// Whether an entry says what is in its blob.
const fn is_known(entry: &BlobEntry) -> bool {
    entry.flags.has(BlobFlags::SCANNED) || !entry.kinds.is_empty()
}

/// What became of a blob.
enum Done {
    Nothing,
    Copy(BlobEntry),
    Rewritten(Vec<EncodedFrame>, Vec<Part>),
}

/// A worker's scratch.
struct Looker<'f> {
    reader: BlobReader<'f>,
    glance: Option<Glance<'f>>,
    encoder: FrameEncoder,
    marks: Vec<Keep>,
    spliced: Vec<u8>,
}

impl<'f> Looker<'f> {
    fn new(
        file: &'f PbfFile,
        glance: Option<Glance<'f>>,
        write: WriteOptions,
        ctx: &Context,
    ) -> Self {
        Self {
            reader: BlobReader::new(&file.input, ctx),
            glance,
            encoder: FrameEncoder::new(write.compression, write.blob_index),
            marks: Vec::new(),
            spliced: Vec::new(),
        }
    }

    fn look<T>(
        &mut self,
        entry: BlobEntry,
        mark: impl Fn(&ParsedBlock<'_>, &mut Vec<Keep>) -> Result<T, FormatError>,
    ) -> Result<(Done, Option<T>)> {
        // To be copied unread, a blob has to be known as well as if it was read: whether it is read depends
        // on the worker.
        let has = |flag| entry.flags.has(flag);
        let is_known = has(BlobFlags::SCANNED) && has(BlobFlags::HASHED);
        let glance = |strings: &StringTable<'_>| match self.glance?(strings) {
            Fate::Drop => Some(Done::Nothing),
            Fate::Copy if is_known => Some(Done::Copy(entry)),
            Fate::Copy | Fate::Look => None,
        };
        let payload = match self.reader.payload_unless(&entry, glance)? {
            Glanced::Answered(done) => return Ok((done, None)),
            Glanced::Payload(payload) => payload,
        };
        self.marks.clear();
        let mut rewrite = Rewrite {
            marks: &mut self.marks,
            encoder: &mut self.encoder,
            spliced: &mut self.spliced,
        };
        let done = ParsedBlock::parse(payload).and_then(|block| {
            let noted = mark(&block, rewrite.marks)?;
            Ok((rewrite.run(entry, payload, block)?, Some(noted)))
        });
        done.map_err(|error| self.reader.error(&entry, error))
    }
}

struct Rewrite<'a> {
    marks: &'a mut Vec<Keep>,
    encoder: &'a mut FrameEncoder,
    spliced: &'a mut Vec<u8>,
}

impl Rewrite<'_> {
    fn run(
        &mut self,
        mut entry: BlobEntry,
        payload: &[u8],
        block: ParsedBlock<'_>,
    ) -> Result<Done, FormatError> {
        let kept = self
            .marks
            .iter()
            .filter(|mark| **mark != Keep::Drop)
            .count();
        let untagged = self.marks.contains(&Keep::Untagged);
        if !entry.flags.has(BlobFlags::HASHED) && (is_known(&entry) || kept == self.marks.len()) {
            verify(&mut entry, payload)?;
        }
        if kept == 0 {
            return Ok(Done::Nothing);
        }
        if kept == self.marks.len() && !untagged {
            return Ok(Done::Copy(entry));
        }
        let script = self.script();
        self.spliced.clear();
        // A splice keeps the strings of what is gone; where much goes, a new block is smaller.
        let options = SpliceOptions::default();
        if !untagged
            && kept * 4 >= self.marks.len() * 3
            && splice_block(payload, &script, &[], options, self.spliced)?
        {
            self.encoder.add_payload(self.spliced)?;
            return Ok(Done::Rewritten(self.encoder.finish()?, Vec::new()));
        }
        // Cutting out what goes on the wire is quicker than to pass over it object by object.
        if keep_objects(payload, &script, self.spliced)? {
            self.marks.retain(|mark| *mark != Keep::Drop);
            let block = block.with_group(self.spliced)?;
            rebuild(self.encoder, &block, self.marks)?;
        } else {
            rebuild(self.encoder, &block, self.marks)?;
        }
        let large = kept >= TARGET_ELEMENTS / 2 || payload.len() >= TARGET_PAYLOAD;
        if large {
            return Ok(Done::Rewritten(self.encoder.finish()?, Vec::new()));
        }
        let parts = self.encoder.finish_parts();
        Ok(Done::Rewritten(self.encoder.take_frames(), parts))
    }

    fn script(&self) -> EditScript {
        let mut script = EditScript::default();
        for mark in &*self.marks {
            match mark {
                Keep::Drop => script.remove(),
                Keep::Whole | Keep::Untagged => script.keep(),
            }
        }
        script
    }
}

/// Adds the objects that `marks` keep.
fn rebuild(
    encoder: &mut FrameEncoder,
    block: &ParsedBlock<'_>,
    marks: &[Keep],
) -> Result<(), FormatError> {
    let mut strings = SourceStrings::new(&block.strings);
    let mut objects = block.cursor();
    for mark in marks {
        let Some(object) = objects.next()? else { break };
        let object = match mark {
            Keep::Drop => continue,
            Keep::Whole => object,
            Keep::Untagged => object.without_tags(),
        };
        encoder.add_raw(&object, &block.scale, &mut strings)?;
    }
    Ok(())
}

/// Fills in what an entry says; where it claimed something before, that must be so.
fn verify(entry: &mut BlobEntry, payload: &[u8]) -> Result<(), FormatError> {
    let claimed = *entry;
    scan_payload(payload, entry)?;
    if is_known(&claimed) && !claimed.agrees_with(entry) {
        return Err(stale_index("ids or their order differ"));
    }
    Ok(())
}

/// Marks each object of a block by its key.
pub(super) fn mark_by_key(
    block: &ParsedBlock<'_>,
    marks: &mut Vec<Keep>,
    mut keep: impl FnMut(OrderKey) -> Keep,
) -> Result<(), FormatError> {
    let mut keys = block.keys();
    while let Some(key) = keys.next()? {
        marks.push(keep(key));
    }
    Ok(())
}
