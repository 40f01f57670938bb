//! A watch over the payloads of the blobs that a command decodes.

use crate::error::FormatResult;
use crate::pbf::BlobEntry;
use std::fmt;

/// A watch that sees the payload of each blob that decoders decompress. All decoders of a context share the watch.
/// Calls come from any thread. A blob that is decoded again is seen again.
pub(crate) trait PayloadWatch: fmt::Debug + Send + Sync {
    /// Sees the payload of a blob. `input` is the number of the input that has the blob. A returned error is reported
    /// as an error about the blob.
    fn see(&self, input: usize, entry: &BlobEntry, payload: &[u8]) -> FormatResult<()>;
}
