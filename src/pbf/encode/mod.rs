//! Encodes objects as new blocks.
//!
//! - `encoder` encodes objects of one kind as the payload of one block.
//! - `dense_columns` has the columns of dense nodes, which `encoder` and `rewrite/edit` fill.
//! - `builder` splits a sequence of objects of any kinds into uncompressed blocks, which `frame/encoder` compresses.
//! - `intern` collects the strings of a new block, and maps the string ids of a source block to those of the new block.

pub(super) mod builder;
pub(super) mod dense_columns;
pub(super) mod encoder;
pub(super) mod intern;
