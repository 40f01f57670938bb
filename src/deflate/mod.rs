//! The DEFLATE format (RFC 1951) in bits: what compressors do not give, for data made of parts.

pub(crate) mod end;
pub(crate) mod huffman;
pub(crate) mod literals;
pub(crate) mod stored;
