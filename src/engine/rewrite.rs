//! Writing every blob of a file anew, each for itself: what is made of a blob depends on nothing but it.

use crate::error::{FormatError, Result};
use crate::file::{BlobReader, PbfFile, PbfWriter, WriteOptions, complete};
use crate::pbf::{BlobEntry, EncodedFrame, FrameEncoder};
use crate::runtime::{Context, parallel_classify_phase};

/// Which blobs, and what the phase is called.
pub(crate) struct Rewrite<'f> {
    pub name: &'static str,
    pub file: &'f PbfFile,
    /// One entry a blob.
    pub entries: Vec<BlobEntry>,
    pub write: WriteOptions,
}

/// What becomes of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// It is copied as it is.
    Same,
    /// What the encoder was given takes its place.
    New,
}

impl<'f> Rewrite<'f> {
    /// Has `make` give an encoder what takes the place of each blob, and hands it to a writer in file order.
    /// Returns how many blobs were not copied.
    pub(crate) fn run<S>(
        self,
        writer: &mut PbfWriter<'f>,
        ctx: &Context,
        init: impl Fn() -> S + Sync,
        make: impl Fn(&mut S, &BlobEntry, &[u8], &mut FrameEncoder) -> Result<Made, FormatError> + Sync,
    ) -> Result<u64> {
        let make =
            |scratch: &mut S, entry: &BlobEntry, payload: &[u8], encoder: &mut FrameEncoder| {
                make(scratch, entry, payload, encoder).map(|made| (made, ()))
            };
        self.run_noting(writer, ctx, init, make, |()| ())
    }

    /// As [`run`](Self::run); what `make` finds out on its way is handed to `note`, in file order.
    pub(crate) fn run_noting<S, T: Send>(
        self,
        writer: &mut PbfWriter<'f>,
        ctx: &Context,
        init: impl Fn() -> S + Sync,
        make: impl Fn(&mut S, &BlobEntry, &[u8], &mut FrameEncoder) -> Result<(Made, T), FormatError>
        + Sync,
        mut note: impl FnMut(T),
    ) -> Result<u64> {
        let (file, write) = (self.file, self.write);
        let bytes = |entry: &BlobEntry| u64::from(entry.frame_len);
        let phase = ctx.phase(self.name, self.entries.iter().map(bytes).sum());
        let mut rewritten = 0;
        parallel_classify_phase(
            ctx.jobs,
            ctx.byte_budget(),
            self.entries.into_iter().map(Ok),
            |entry| bytes(entry) * 4,
            || {
                let encoder = FrameEncoder::new(write.compression, write.blob_index);
                (BlobReader::new(&file.input, ctx), encoder, init())
            },
            |(reader, encoder, scratch), mut entry| {
                let payload = reader.payload(&entry)?;
                let made = make(scratch, &entry, payload, encoder);
                let done = made.and_then(|(made, noted)| {
                    let done = match made {
                        Made::Same => complete(&mut entry, payload).map(|()| Done::Copy(entry)),
                        Made::New => encoder.finish().map(Done::Frames),
                    };
                    Ok((done?, noted))
                });
                let (done, noted) = done.map_err(|error| reader.error(&entry, error))?;
                Ok((bytes(&entry), done, noted))
            },
            |(bytes, done, noted)| {
                phase.advance(bytes);
                note(noted);
                match done {
                    Done::Copy(entry) => writer.copy(&file.input, &entry),
                    Done::Frames(frames) => {
                        rewritten += 1;
                        frames.iter().try_for_each(|frame| writer.frame(frame))
                    }
                }
            },
        )?;
        Ok(rewritten)
    }
}

/// What a writer gets of a blob.
enum Done {
    Copy(BlobEntry),
    Frames(Vec<EncodedFrame>),
}
