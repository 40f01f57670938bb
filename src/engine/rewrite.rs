//! A pass that decodes each blob of a file, and then copies or replaces the blob.

use super::sink::{BlobOutcome, Sink};
use crate::error::{FormatResult, Result};
use crate::file::{BlobDecoder, BlobPass, PbfFile, WriteOptions, completed_entry};
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{BlobEntry, Compression, FrameEncoder, Segmented, StringTable};
use crate::runtime::Context;

/// The decision about a decoded blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewritten {
    /// The blob is copied unchanged.
    No,
    /// The blob is replaced by the blocks that were added to the encoder.
    Yes,
}

/// A decoded blob.
pub(crate) struct DecodedBlob<'b> {
    pub entry: &'b BlobEntry,
    pub payload: &'b [u8],
    /// The payload as segments that were compressed independently; `None` if the blob has no segments. Segments that an
    /// edit does not change can be copied.
    pub segments: Option<Segmented<'b>>,
}

impl DecodedBlob<'_> {
    /// Calls `work` with a decoded blob. Fails if the blob has strings that cannot be written with the options `write`.
    pub(crate) fn decode<R>(
        reader: &mut BlobDecoder,
        entry: &BlobEntry,
        write: WriteOptions,
        work: impl FnOnce(&DecodedBlob<'_>) -> FormatResult<R>,
    ) -> Result<R> {
        let work = |payload: &[u8], segments: Option<Segmented<'_>>| {
            write.check_strings(payload)?;
            work(&DecodedBlob {
                entry,
                payload,
                segments,
            })
        };
        // In blobs with nodes, segments are columns, of which an edit changes only some.
        if entry.kinds == KindSet::of(ObjectKind::Node) {
            let stored = reader.read(entry)?;
            stored.decode_in_segments(|payload, segments| work(payload, segments.into_segmented()))
        } else {
            reader.decode(entry, |payload| work(payload, None))
        }
    }
}

/// A pass that rewrites blobs of a file.
pub(crate) struct Rewrite<'f> {
    pub name: &'static str,
    pub file: &'f PbfFile,
    pub entries: Vec<BlobEntry>,
    /// The test for blobs that stay unchanged. A blob that passes the test is copied without being decompressed
    /// completely. `None` to decode every blob.
    pub stays: Option<StaysTest<'f>>,
    pub write: WriteOptions,
}

/// A test of whether a blob stays unchanged. The strings are `None` in a first test by the entry alone, before the blob
/// is read.
pub(crate) type StaysTest<'a> = &'a (dyn Fn(&BlobEntry, Option<&StringTable<'_>>) -> bool + Sync);

impl<'f> Rewrite<'f> {
    /// Returns the memory that a blob and its result take together, as a multiple of the size of the blob. Without
    /// compression, the new blobs may be several times as large as the blob.
    fn memory_factor(&self) -> u64 {
        if self.stays.is_some() && self.write.compression != Compression::None {
            1
        } else {
            4
        }
    }

    /// Calls `rewrite` with each blob and an encoder, and adds the outcomes to the sink in the order of the entries.
    /// Calls `note`, in the same order, with the second value that `rewrite` returns. `init` creates the scratch value
    /// of a worker. For blobs that [stay](Self::stays), `note` gets the default value.
    pub(crate) fn run<S, T: Send + Default>(
        self,
        sink: &mut Sink,
        ctx: &Context,
        init: impl Fn() -> S + Sync,
        rewrite: impl Fn(&mut S, &DecodedBlob<'_>, &mut FrameEncoder) -> FormatResult<(Rewritten, T)>
        + Sync,
        mut note: impl FnMut(T),
    ) -> Result<()> {
        let (input, write, stays) = (&self.file.input, self.write, self.stays);
        let pass = BlobPass::new(self.name, input, ctx).with_memory_factor(self.memory_factor());
        pass.run(
            self.entries,
            || {
                (
                    FrameEncoder::new(write.compression, write.blob_index),
                    init(),
                )
            },
            |reader, (encoder, scratch), entry| {
                let mut work = |blob: &DecodedBlob<'_>| {
                    let (rewritten, noted) = rewrite(scratch, blob, encoder)?;
                    let outcome = match rewritten {
                        Rewritten::No => BlobOutcome::Copy(completed_entry(entry, blob.payload)?),
                        Rewritten::Yes => BlobOutcome::Frames(encoder.finish()?),
                    };
                    Ok((outcome, noted))
                };
                let Some(stays) = stays else {
                    return DecodedBlob::decode(reader, &entry, write, work);
                };
                // Whether the strings of a blob are tested depends on the results for earlier blobs of the same worker,
                // but the entry of a copied blob must not depend on them. So only blobs with a complete entry are
                // tested.
                let is_complete = entry.is_complete();
                if is_complete && stays(&entry, None) {
                    return Ok((BlobOutcome::Copy(entry), T::default()));
                }
                let copies = |strings: &StringTable<'_>| stays(&entry, Some(strings)).then_some(());
                let copies = is_complete.then_some(copies);
                let Some(stored) = reader.read_unless_decided(&entry, copies)? else {
                    return Ok((BlobOutcome::Copy(entry), T::default()));
                };
                stored.decode_in_segments(|payload, segments| {
                    write.check_strings(payload)?;
                    work(&DecodedBlob {
                        entry: &entry,
                        payload,
                        segments: segments.into_segmented(),
                    })
                })
            },
            |(outcome, noted)| {
                note(noted);
                sink.add(input, outcome)
            },
        )
    }
}
