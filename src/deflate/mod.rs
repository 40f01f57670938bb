//! The DEFLATE format (RFC 1951) at the level of bits, for zlib data that is assembled from several parts. Ordinary
//! compression is done by libdeflate.
//!
//! - `end` finds the last block of a stream, so that another stream can be appended.
//! - `literals` encodes blocks of literals and of runs of the same byte, for columns in which all other matches are
//!   rare.
//! - `huffman` makes the Huffman codes for these blocks.
//! - `stored` stores data uncompressed, at known offsets.
//! - `padding` makes a stream longer without changing its content.

pub(crate) mod end;
pub(crate) mod huffman;
pub(crate) mod literals;
pub(crate) mod padding;
pub(crate) mod stored;
