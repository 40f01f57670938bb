//! Frames: the blobs of a file with their BlobHeaders.
//!
//! - `blob` reads and writes frames, BlobHeader and Blob messages (fileformat.proto), and has the limits of the format.
//! - `codec` compresses and decompresses payloads.
//! - `encoder` encodes objects as frames with index entries, for content that cannot be copied.
//! - `header` has the HeaderBlock with features, bounding box and replication state. `header_frame` fits the
//!   HeaderBlock into the space that is reserved at the start of a file.

pub(super) mod blob;
pub(super) mod codec;
pub(super) mod encoder;
pub(super) mod header;
pub(super) mod header_frame;
