//! The DEFLATE format (RFC 1951) at the level of bits, for zlib data that is made of parts. Ordinary compression is
//! done by libdeflate.
//!
//! - `end` finds the last block of a stream, so that another one can follow it.
//! - `literals` encodes blocks of literals and runs, for columns without other matches.
//! - `huffman` makes the codes of such blocks.
//! - `stored` stores data uncompressed, at known offsets.

pub(crate) mod end;
pub(crate) mod huffman;
pub(crate) mod literals;
pub(crate) mod stored;
