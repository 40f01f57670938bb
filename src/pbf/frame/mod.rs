//! Frames: blobs with their headers, compression, and the header block of a file.

pub(super) mod blob;
pub(super) mod codec;
pub(super) mod encoder;
pub(super) mod header;
pub(super) mod header_frame;
