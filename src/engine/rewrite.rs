//! Writing every blob of a file anew, each on its own.

use super::sink::{BlobOutcome, Sink};
use crate::error::{FormatError, Result};
use crate::file::{BlobPass, PbfFile, WriteOptions, completed_entry};
use crate::pbf::{BlobEntry, FrameEncoder};
use crate::runtime::Context;

/// What becomes of a blob that was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewritten {
    /// It is copied as it is.
    No,
    /// The blocks that the encoder was given take its place.
    Yes,
}

/// The blobs to rewrite, and the name of the pass.
pub(crate) struct Rewrite<'f> {
    pub name: &'static str,
    pub file: &'f PbfFile,
    pub entries: Vec<BlobEntry>,
    pub write: WriteOptions,
}

impl<'f> Rewrite<'f> {
    /// Calls `rewrite` with each blob's payload and an encoder, and hands the outcomes to a sink in file order. What
    /// `rewrite` returns besides goes to `note`, in file order. `init` makes a worker's scratch.
    pub(crate) fn run<S, T: Send>(
        self,
        sink: &mut Sink<'f>,
        ctx: &Context,
        init: impl Fn() -> S + Sync,
        rewrite: impl Fn(
            &mut S,
            &BlobEntry,
            &[u8],
            &mut FrameEncoder,
        ) -> Result<(Rewritten, T), FormatError>
        + Sync,
        mut note: impl FnMut(T),
    ) -> Result<()> {
        let (input, write) = (&self.file.input, self.write);
        BlobPass::new(self.name, input, ctx).holding(4).run(
            self.entries,
            || {
                let encoder = FrameEncoder::new(write.compression, write.blob_index);
                (encoder, init())
            },
            |reader, (encoder, scratch), entry| {
                reader.decode(&entry, |payload| {
                    let (rewritten, noted) = rewrite(scratch, &entry, payload, encoder)?;
                    let outcome = match rewritten {
                        Rewritten::No => BlobOutcome::Copy(completed_entry(entry, payload)?),
                        Rewritten::Yes => BlobOutcome::Frames(encoder.finish()?),
                    };
                    Ok((outcome, noted))
                })
            },
            |(outcome, noted)| {
                note(noted);
                sink.add(input, outcome)
            },
        )
    }
}
