//! A watch that receives the payloads of the blobs that a command decodes.

use crate::error::FormatResult;
use crate::pbf::BlobEntry;
use std::fmt;

/// A watch that receives the payload of each blob that a decoder decompresses. All decoders of a context share the
/// watch, and call it from any thread. If a blob is decoded again, the watch receives its payload again.
pub(crate) trait PayloadWatch: fmt::Debug + Send + Sync {
    /// Receives the payload of a blob. `input` is the number of the input that has the blob. A returned error is
    /// reported as an error about the blob.
    fn see(&self, input: usize, entry: &BlobEntry, payload: &[u8]) -> FormatResult<()>;
}
