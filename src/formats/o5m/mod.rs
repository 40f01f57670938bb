//! The reader of o5m and of its change files, o5c, by the description in the OSM wiki (page "O5m").
//!
//! A file is a sequence of datasets: a byte for the type, the length, and the contents. Numbers are varints, most of
//! them differences to the number before. Strings that appeared before are numbers of entries in a table. Each dataset
//! therefore depends on those before it, and one thread reads them all. Workers encode the objects.

mod chunks;
mod objects;
mod strings;
mod varint;

pub(super) use chunks::{O5mChunks, memory};

use super::format::{O5M_MAGIC_LEN, TextFormat};
use crate::error::Result;
use crate::io::{Input, decompressed};
use crate::runtime::Context;
use std::io::Read;

/// A violation of the format, at an offset in a dataset.
#[derive(Debug)]
struct Fault {
    at: usize,
    cause: String,
}

impl Fault {
    fn new(at: usize, cause: impl Into<String>) -> Self {
        Self {
            at,
            cause: cause.into(),
        }
    }
}

/// The reader of an input, if it is to be read in this format: one that is called o5m or o5c, or a change file with the
/// first bytes of o5c. Warnings go to `ctx`.
pub(super) fn chunks_of(
    input: &Input,
    format: TextFormat,
    ctx: Option<&Context>,
) -> Result<Option<O5mChunks>> {
    let is_o5m = match format {
        TextFormat::O5m | TextFormat::O5c => true,
        TextFormat::OsmChange => starts_as_changes(input)?,
        TextFormat::Osm | TextFormat::Opl | TextFormat::Debug => false,
    };
    if is_o5m {
        O5mChunks::new(input, ctx).map(Some)
    } else {
        Ok(None)
    }
}

/// Whether a file begins as o5c, after decompression. Damage is not reported here: the reader of the file does that.
fn starts_as_changes(input: &Input) -> Result<bool> {
    let start = input.start()?;
    if matches!(start.first(), None | Some(b'<' | 0xef)) {
        return Ok(false);
    }
    let mut decompressed_start = Vec::new();
    let mut reader = decompressed(input)?.take(O5M_MAGIC_LEN as u64);
    let read = reader.read_to_end(&mut decompressed_start);
    Ok(read.is_ok() && TextFormat::of_o5m(&decompressed_start) == Some(TextFormat::O5c))
}
