//! Encodes the readable objects of damaged blobs.

use super::Options;
use super::outcome::{MendedOutcome, Outcome, SpooledFrame};
use crate::error::{FormatError, Result};
use crate::file::WriteOptions;
use crate::io::Spool;
use crate::pbf::{
    BlobEntry, Compression, EncodedFrame, FrameEncoder, InvalidUtf8, ObjectBody, salvage,
};
use crate::runtime::lock;
use std::sync::Mutex;

/// The maximum size in bytes of the encoded blobs that are held in memory. Further blobs are held in a temporary file.
const MEMORY: usize = 8 << 20;

/// Encodes the readable objects of damaged blobs, and holds the encoded blobs until they are written.
pub(super) struct BlobMender {
    invalid_utf8: InvalidUtf8,
    encoding: WriteOptions,
    /// The encoded blobs; `None` if nothing is written.
    held: Option<Mutex<Spool>>,
}

impl BlobMender {
    /// Creates a mender that encodes blobs for the output in `options`.
    pub(super) fn new(options: &Options) -> Self {
        let output = &options.output;
        let (encoding, held) = if options.dry_run {
            let encoding = WriteOptions {
                compression: Compression::Lz4,
                ..WriteOptions::default()
            };
            (encoding, None)
        } else {
            let held = Spool::new(MEMORY, &output.target.scratch_directory());
            (output.encoding(), Some(Mutex::new(held)))
        };
        Self {
            invalid_utf8: options.invalid_utf8,
            encoding,
            held,
        }
    }

    /// Returns the compression of the encoded blobs.
    pub(super) const fn compression(&self) -> Compression {
        self.encoding.compression
    }

    /// Encodes the readable objects in a payload, and holds the new blobs until they are written. If there are no
    /// readable objects, the blob is lost.
    pub(super) fn mend_blob(
        &self,
        entry: BlobEntry,
        payload: &[u8],
        cause: String,
    ) -> Result<Outcome> {
        let mut encoder = FrameEncoder::new(self.encoding.compression, self.encoding.blob_index);
        let mut short_ways = 0;
        let changes = salvage(payload, self.invalid_utf8, |object| {
            encoder.add(object)?;
            if let ObjectBody::Way { refs, .. } = &object.body {
                short_ways += u64::from(refs.len() < 2);
            }
            Ok(())
        });
        match encoder.finish() {
            Ok(frames) if changes.objects > 0 => {
                let mut new = Vec::with_capacity(frames.len());
                for EncodedFrame { bytes, entry } in frames {
                    let piece = match &self.held {
                        Some(held) => lock(held).add(bytes)?,
                        None => 0,
                    };
                    new.push(SpooledFrame { entry, piece });
                }
                Ok(Outcome::Mended(Box::new(MendedOutcome {
                    entry,
                    cause,
                    changes,
                    short_ways,
                    new,
                })))
            }
            Ok(_) | Err(_) => Ok(Outcome::lost(entry, &FormatError::with(cause))),
        }
    }

    /// Returns the blobs that replace a damaged blob; an empty list in a dry run.
    pub(super) fn frames(&self, mended: &MendedOutcome) -> Result<Vec<EncodedFrame>> {
        let Some(held) = &self.held else {
            return Ok(Vec::new());
        };
        let held = lock(held);
        let frames = mended.new.iter().map(|SpooledFrame { entry, piece }| {
            let bytes = held.read(*piece, 0..entry.frame_len as usize)?;
            Ok(EncodedFrame {
                bytes: bytes.into_owned(),
                entry: *entry,
            })
        });
        frames.collect()
    }
}
