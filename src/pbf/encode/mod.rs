//! Encoding new blocks of objects.
//!
//! - `encoder` encodes objects of one kind as the payload of one block.
//! - `builder` cuts a sequence of any objects into such blocks, which are not compressed yet (`frame/encoder` does
//!   that).
//! - `intern` collects the strings of a new block, and maps string ids of a source block to those of the new one.

pub(super) mod builder;
pub(super) mod encoder;
pub(super) mod intern;
