//! Reading files that are not PBF. Chunks are parsed on all cores, and the results are merged in file order.

use super::change_set::{ChangeSet, NewestChanges};
use super::document_header::{DocumentHeader, Replication};
use super::format::TextFormat;
use super::o5m::{self, O5mChunks};
use super::text_chunks::{TextChunk, TextChunks};
use super::{opl, xml};
use crate::error::{Error, ErrorKind, Result};
use crate::file::binary_kind;
use crate::io::Input;
use crate::runtime::{Context, parallel_classify_phase};
use std::path::Path;

/// Maximum memory in bytes of the chunks in flight, and of the objects and results made from them.
const BUDGET: u64 = 24 << 20;
/// The estimated memory in bytes for each byte of text in flight: for the text, its objects, and the results.
const MEMORY_FACTOR: u64 = 3;

impl TextChunk {
    fn parse(&self, path: &Path, format: TextFormat) -> Result<ChangeSet> {
        let parsed = match format {
            TextFormat::Osm | TextFormat::OsmChange => xml::parse(self, format),
            // In all other text formats, a chunk consists of lines.
            _ => opl::parse(self),
        };
        parsed.map_err(|(at, cause)| self.error(path, at, cause))
    }
}

/// A part of a file: text that a worker parses, or objects of a format that only one thread can read.
enum Chunk {
    Text(TextChunk),
    Objects(Box<ChangeSet>),
}

impl Chunk {
    /// The estimated memory in bytes of the chunk and of its results.
    fn cost(&self) -> u64 {
        match self {
            Self::Text(text) => text.bytes.len() as u64 * MEMORY_FACTOR,
            Self::Objects(objects) => o5m::memory(objects) * 2,
        }
    }

    fn parse(self, path: &Path, format: TextFormat) -> Result<ChangeSet> {
        match self {
            Self::Text(text) => text.parse(path, format),
            Self::Objects(objects) => Ok(*objects),
        }
    }
}

/// The chunks of a file, in file order.
enum Chunks {
    Text(Box<TextChunks>),
    O5m(Box<O5mChunks>),
}

impl Chunks {
    /// Opens a file. Warnings go to `ctx`.
    fn open(input: &Input, format: TextFormat, ctx: Option<&Context>) -> Result<Self> {
        Ok(match o5m::chunks_of(input, format, ctx)? {
            Some(chunks) => Self::O5m(Box::new(chunks)),
            None => Self::Text(Box::new(TextChunks::new(input, format)?)),
        })
    }
}

impl Iterator for Chunks {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Text(chunks) => Some(chunks.next()?.map(Chunk::Text)),
            Self::O5m(chunks) => {
                let objects = chunks.next()?.map(Box::new);
                Some(objects.map(Chunk::Objects))
            }
        }
    }
}

/// Parses files that are not PBF, in the given order. Calls `work` for each chunk, with the scratch state of the
/// worker, the index of the input and the objects of the chunk. Calls `merge` with each result, in file order. `init`
/// creates the scratch state. Fails before parsing if an input is a PBF file, is in another known binary format, or is
/// empty without being OPL.
pub fn read_texts<S, T: Send>(
    inputs: &[Input],
    format: TextFormat,
    ctx: &Context,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize, ChangeSet) -> Result<T> + Sync,
    merge: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    for input in inputs {
        check(input, format)?;
    }
    let chunks = inputs.iter().enumerate().flat_map(|(number, input)| {
        let (chunks, failed) = match Chunks::open(input, format, Some(ctx)) {
            Ok(chunks) => (Some(chunks), None),
            Err(error) => (None, Some(Err(error))),
        };
        let chunks = chunks.into_iter().flatten().chain(failed);
        chunks.map(move |chunk| {
            ctx.cancellation.check()?;
            chunk.map(|chunk| (number, chunk))
        })
    });
    parallel_classify_phase(
        ctx.jobs,
        BUDGET,
        chunks,
        |(_, chunk)| chunk.cost(),
        init,
        |scratch, (number, chunk)| {
            let path = inputs[number].path();
            // `parse` consumes the chunk, so its text is freed before its objects are processed.
            let objects = chunk.parse(path, format)?;
            for remark in objects.remarks() {
                ctx.warn(format!(
                    "{}: the data may be incomplete: the server that made the file says: {}",
                    path.display(),
                    remark.replace(char::is_control, "?")
                ));
            }
            work(scratch, number, objects)
        },
        merge,
    )
}

/// Parses the first chunk of a file, which has the document header and the first objects.
pub(crate) fn read_start(input: &Input, format: TextFormat) -> Result<ChangeSet> {
    check(input, format)?;
    match Chunks::open(input, format, None)?.next() {
        Some(chunk) => chunk?.parse(input.path(), format),
        None => Ok(ChangeSet::default()),
    }
}

/// Fails if an input is a PBF file, is in another known binary format, or is empty without being OPL.
fn check(input: &Input, format: TextFormat) -> Result<()> {
    let path = input.path();
    if input.is_empty() && format != TextFormat::Opl {
        return Err(Error::file(path, "the file is empty"));
    }
    let start = input.start()?;
    let cause = match (start, binary_kind(start)) {
        ([0, 0, 0, _, b'\n', ..], _) => format!("this is a PBF file, not {}", format.name()),
        (_, Some(kind)) => format!("not an OSM file (it looks like {kind})"),
        (_, None) => return Ok(()),
    };
    Err(Error::file_of(path, ErrorKind::NotOsm, cause))
}

/// Adds all objects of text files to `all`, in file order. The number of the first file is `first`. Returns the header
/// of each file, in which only the replication states and the URL are set.
pub(super) fn read_all(
    inputs: &[Input],
    format: TextFormat,
    first: usize,
    all: &mut NewestChanges,
    ctx: &Context,
) -> Result<Vec<DocumentHeader>> {
    let mut headers = vec![DocumentHeader::default(); inputs.len()];
    let work = |(): &mut (), number: usize, objects: ChangeSet| Ok((number, objects));
    read_texts(
        inputs,
        format,
        ctx,
        || (),
        work,
        |(number, mut objects)| {
            objects.set_file((first + number) as u32);
            headers[number].note_replication(objects.document_header());
            let added = all.add(objects, ctx);
            added.map_err(|cause| Error::file(inputs[number].path(), cause))
        },
    )?;
    Ok(headers)
}

/// Reads the state file that replication servers publish beside a change file, such as `123.state.txt` beside
/// `123.osc.gz`. Returns `None` if the state file does not exist or cannot be read.
pub(super) fn sidecar(path: &Path) -> Option<Replication> {
    let mut stem = path.to_owned();
    // Removes extensions up to and including `.osc`. After `.osc`, there may be the extension of a compression.
    loop {
        let is_found = stem.extension()? == "osc";
        stem.set_extension("");
        if is_found {
            break;
        }
    }
    stem.as_mut_os_string().push(".state.txt");
    let text = std::fs::read_to_string(stem).ok()?;
    let (sequence, timestamp) = crate::replication::numbers(&text);
    Some(Replication {
        sequence,
        timestamp,
    })
}
