//! Reading text files: chunks are parsed on all cores, and the results are merged in file order.

use super::change_set::{ChangeSet, Replication};
use super::format::TextFormat;
use super::text_chunks::{TextChunk, TextChunks};
use super::{opl, xml};
use crate::error::{Error, Result};
use crate::file::binary_kind;
use crate::io::Input;
use crate::runtime::{Context, parallel_classify_phase};
use std::path::Path;

/// Maximum number of bytes of chunks in flight, with the objects and results made from them.
const BUDGET: u64 = 24 << 20;
/// Estimated bytes of memory per byte of text in flight: the text, its objects, and the results made from them.
const MEMORY_FACTOR: u64 = 3;

impl TextChunk {
    fn parse(&self, path: &Path, format: TextFormat) -> Result<ChangeSet> {
        let parsed = match format {
            TextFormat::Opl | TextFormat::Debug => opl::parse(self),
            TextFormat::Osm | TextFormat::OsmChange => xml::parse(self, format),
        };
        parsed.map_err(|(at, cause)| self.error(path, at, cause))
    }
}

/// Parses text files one after the other. `work` gets the index of the input and the objects of a chunk; its results go
/// to `merge` in file order. `init` makes the scratch of a worker. Fails before parsing if any input is empty or
/// binary.
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
    let text_chunks = inputs.iter().enumerate().flat_map(|(number, input)| {
        let (text_chunks, failed) = match TextChunks::new(input, format) {
            Ok(text_chunks) => (Some(text_chunks), None),
            Err(error) => (None, Some(Err(error))),
        };
        let text_chunks = text_chunks.into_iter().flatten().chain(failed);
        text_chunks.map(move |chunk| chunk.map(|chunk| (number, chunk)))
    });
    parallel_classify_phase(
        ctx.jobs,
        BUDGET,
        text_chunks,
        |(_, chunk)| chunk.bytes.len() as u64 * MEMORY_FACTOR,
        init,
        |scratch, (number, chunk)| {
            let path = inputs.get(number).map_or(Path::new(""), Input::path);
            let objects = chunk.parse(path, format)?;
            for remark in objects.remarks() {
                ctx.warn(format!(
                    "{}: the data may be incomplete: the server that made the file says: {}",
                    path.display(),
                    remark.replace(char::is_control, "?")
                ));
            }
            // Frees the text before the work on its objects.
            drop(chunk);
            work(scratch, number, objects)
        },
        merge,
    )
}

/// Parses the first chunk of a text: the document header and the first objects.
pub(crate) fn read_start(input: &Input, format: TextFormat) -> Result<ChangeSet> {
    check(input, format)?;
    match TextChunks::new(input, format)?.next() {
        Some(chunk) => chunk?.parse(input.path(), format),
        None => Ok(ChangeSet::default()),
    }
}

/// Fails if an input is binary, or empty and not OPL, which may have no objects.
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
    Err(Error::file(path, cause))
}

/// Appends all objects of some text files to `all`, in file order.
pub(super) fn read_all(
    inputs: &[Input],
    format: TextFormat,
    all: &mut ChangeSet,
    ctx: &Context,
) -> Result<()> {
    let path = |number: usize| inputs.get(number).map_or(Path::new(""), Input::path);
    let work = |(): &mut (), number: usize, objects| Ok((number, objects));
    read_texts(
        inputs,
        format,
        ctx,
        || (),
        work,
        |(number, objects)| {
            let appended = all.append(objects);
            appended.map_err(|cause| Error::file(path(number), cause))
        },
    )
}

/// The replication state in the state files beside change files: the largest sequence number and the latest time.
pub(super) fn sidecar_state<P: AsRef<Path>>(paths: &[P]) -> Replication {
    let mut state = Replication::default();
    let sidecars = paths.iter().filter_map(|path| sidecar(path.as_ref()));
    sidecars.for_each(|sidecar| state.add(&sidecar));
    state
}

/// Reads the state file that replication servers publish beside a change file: `123.state.txt` beside `123.osc.gz`.
/// Returns `None` if it does not exist or cannot be read.
fn sidecar(path: &Path) -> Option<Replication> {
    let name = path.file_name()?.to_str()?;
    let (stem, _) = name.split_once(".osc")?;
    let text = std::fs::read_to_string(path.with_file_name(format!("{stem}.state.txt"))).ok()?;
    let (sequence, timestamp) = crate::replication::numbers(&text);
    Some(Replication {
        sequence,
        timestamp,
    })
}
