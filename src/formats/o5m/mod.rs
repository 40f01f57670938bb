//! The reader of o5m and of its change files, o5c (OSM wiki, page "O5m").
//!
//! A file is a sequence of datasets. A dataset consists of a byte for the type, the length, and the contents. Numbers
//! are varints, most of them delta-encoded. Repeated strings are references into a table of recent strings. Each
//! dataset thus depends on the datasets before it, so one thread reads them all.

mod chunks;
mod objects;
mod strings;
mod varint;

pub(super) use chunks::{O5mChunks, memory};

use crate::error::Result;
use crate::io::{Input, decompressed_reader};
use crate::osm::TextFormat;
use crate::runtime::Context;
use std::io::Read;

/// A violation of the format, at an offset in a dataset.
#[derive(Debug)]
struct DatasetError {
    at: usize,
    cause: String,
}

impl DatasetError {
    fn new(at: usize, cause: impl Into<String>) -> Self {
        Self {
            at,
            cause: cause.into(),
        }
    }
}

/// The length in bytes of the magic of o5m and o5c, which is a reset followed by a dataset with the name of the format.
const O5M_MAGIC_LEN: usize = 7;

/// Returns the reader of an input in o5m or o5c; `None` for other formats. If `format` is `OsmChange`, an input with
/// the magic of o5c is read as o5c. Warnings go to `ctx`.
pub(super) fn open_o5m_chunks(
    input: &Input,
    format: TextFormat,
    ctx: Option<&Context>,
) -> Result<Option<O5mChunks>> {
    let is_o5m = match format {
        TextFormat::O5m | TextFormat::O5c => true,
        TextFormat::OsmChange => has_o5c_magic(input)?,
        _ => false,
    };
    if is_o5m {
        O5mChunks::new(input, ctx).map(Some)
    } else {
        Ok(None)
    }
}

/// Whether a file has the magic of o5c after decompression. Returns `false` if the file cannot be decompressed; the
/// damage is reported when the file is read.
fn has_o5c_magic(input: &Input) -> Result<bool> {
    let start = input.first_bytes()?;
    if matches!(start.first(), None | Some(b'<' | 0xef)) {
        return Ok(false);
    }
    let mut decompressed_start = Vec::new();
    let mut reader = decompressed_reader(input)?.take(O5M_MAGIC_LEN as u64);
    let read = reader.read_to_end(&mut decompressed_start);
    Ok(read.is_ok() && TextFormat::from_magic(&decompressed_start) == Some(TextFormat::O5c))
}
