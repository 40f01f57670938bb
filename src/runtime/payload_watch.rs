//! A watch over the payloads of the blobs that a command decodes.

use crate::error::FormatResult;
use crate::pbf::BlobEntry;
use std::fmt;

/// Sees the payload of each blob that decoders decompress. Decoders of a context share the watch; calls come from any
/// thread, and a blob that is decoded again is seen again.
pub(crate) trait PayloadWatch: fmt::Debug + Send + Sync {
    /// Sees the payload of a blob. `input` is the number of the input that has the blob. A returned error is reported
    /// as an error about the blob.
    fn see(&self, input: usize, entry: &BlobEntry, payload: &[u8]) -> FormatResult<()>;
}
