//! Reads the objects of files that are not PBF, and of change files in any format. Chunks are parsed on all cores, and
//! the results are merged in file order.

use super::change_set::{ChangeSet, NewestChanges};
use super::document_header::{DocumentHeader, Replication};
use super::functions::functions;
use super::o5m::{self, O5mChunks};
use super::text_chunks::{TextChunk, TextChunks, TextDamage};
use super::xml::{MAX_REMARKS, WayNodesIn};
use crate::error::{Error, ErrorKind, Result};
use crate::file::{
    BlobDecoder, HeaderWalker, PbfFile, begins_with_header_frame, guess_binary_format,
};
use crate::io::Input;
use crate::osm::TextFormat;
use crate::pbf::BlobEntry;
use crate::runtime::{Context, parallel_results_phase, parallel_single_result_phase};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum memory in bytes of the chunks in flight, and of the objects and results made from them.
const BUDGET: u64 = 24 << 20;
/// The estimated memory in bytes for each byte of text in flight: for the text, its objects, and the results.
const MEMORY_FACTOR: u64 = 3;

impl TextChunk {
    fn parse(&self, path: &Path, format: TextFormat, nodes: WayNodesIn) -> Result<ChangeSet> {
        let parsed = self.parse_until_damage(format, nodes);
        parsed.map_err(|damage| self.error(path, damage.at, damage.cause))
    }

    fn parse_until_damage(
        &self,
        format: TextFormat,
        nodes: WayNodesIn,
    ) -> Result<ChangeSet, TextDamage> {
        (functions(format).parse)(self, format, nodes)
    }
}

/// Damage in a file: an error that names the position, and the byte offset in the decompressed file at which the loss
/// begins.
pub(crate) type Damage = (Error, u64);

/// An input, and the form in which its objects are read.
#[derive(Debug)]
pub(crate) struct ObjectSource {
    input: Input,
    form: SourceForm,
}

#[derive(Debug)]
enum SourceForm {
    /// A file that is not PBF. An object becomes a creation if the file gives no action for it.
    Text(TextFormat),
    /// A file that is not PBF and is read for geometry: ways may list nodes without an id, and relations may list the
    /// nodes of member ways.
    Geometry(TextFormat),
    /// A file that is not PBF and lists versions of objects. Each version becomes the change that led to it.
    Versions(TextFormat),
    /// A PBF file. Each version becomes the change that led to it.
    Pbf(Box<PbfFile>),
}

impl ObjectSource {
    /// Creates a source of the objects of a text. An object becomes a creation if the text gives no action for it.
    pub(super) fn of_text(input: &Input, format: TextFormat) -> Self {
        Self {
            input: input.clone(),
            form: SourceForm::Text(format),
        }
    }

    /// Creates a source as [`of_text`](Self::of_text) does. The source also has the nodes that servers write when
    /// geometry is requested: nodes without an id in ways, and the nodes that relations list for member ways. The nodes
    /// in relations become [`ChangeSet::member_ways`].
    pub(super) fn of_text_with_geometry(input: &Input, format: TextFormat) -> Self {
        Self {
            input: input.clone(),
            form: SourceForm::Geometry(format),
        }
    }

    /// Creates a source in which each version of an object becomes the change that led to it.
    pub(super) fn of_text_versions(input: &Input, format: TextFormat) -> Self {
        Self {
            input: input.clone(),
            form: SourceForm::Versions(format),
        }
    }

    /// Creates a source of the versions in a PBF file.
    pub(super) fn of_pbf(file: PbfFile) -> Self {
        Self {
            input: file.input.clone(),
            form: SourceForm::Pbf(Box::new(file)),
        }
    }

    /// Returns the text format; `None` for PBF.
    pub(crate) const fn format(&self) -> Option<TextFormat> {
        match &self.form {
            SourceForm::Text(format)
            | SourceForm::Geometry(format)
            | SourceForm::Versions(format) => Some(*format),
            SourceForm::Pbf(_) => None,
        }
    }

    /// Reads the header of the file.
    pub(super) fn document_header(&self) -> Result<DocumentHeader> {
        match &self.form {
            SourceForm::Text(format)
            | SourceForm::Geometry(format)
            | SourceForm::Versions(format) => {
                Ok(read_start(&self.input, *format)?.document_header().clone())
            }
            SourceForm::Pbf(file) => Ok(DocumentHeader::of(&file.header)),
        }
    }

    fn check(&self) -> Result<()> {
        self.format()
            .map_or(Ok(()), |format| check_text_input(&self.input, format))
    }

    /// Opens the file. Warnings go to `ctx`.
    fn chunks(&self, ctx: &Context) -> Result<Chunks<'_>> {
        match &self.form {
            SourceForm::Text(format)
            | SourceForm::Geometry(format)
            | SourceForm::Versions(format) => Chunks::open(&self.input, *format, Some(ctx)),
            SourceForm::Pbf(file) => Ok(Chunks::Pbf {
                start: Some(Box::new(ChangeSet::of_header(DocumentHeader::of(
                    &file.header,
                )))),
                frames: file.frames(),
            }),
        }
    }

    /// Calls `take` with the objects of a chunk, in sets that fit into memory. `decoder` is the decoder of the worker,
    /// which is created when it is needed.
    fn parse(
        &self,
        chunk: InputChunk,
        decoder: &mut Option<BlobDecoder>,
        ctx: &Context,
        mut take: impl FnMut(ChangeSet) -> Result<()>,
    ) -> Result<()> {
        let mut set = match chunk {
            InputChunk::Text(text, format) => {
                let nodes = match self.form {
                    SourceForm::Geometry(_) => WayNodesIn::WaysAndMembers,
                    SourceForm::Text(_) | SourceForm::Versions(_) | SourceForm::Pbf(_) => {
                        WayNodesIn::Ways
                    }
                };
                text.parse(self.input.path(), format, nodes)?
            }
            InputChunk::Objects(objects) => *objects,
            InputChunk::Blob(entry) => {
                let decoder = decoder.get_or_insert_with(|| BlobDecoder::new(&self.input, ctx));
                decoder.switch_to_input(&self.input);
                let mut taken = Ok(());
                decoder.decode(&entry, |payload| {
                    ChangeSet::read_block(payload, |set| {
                        taken = take(set);
                        taken.is_ok()
                    })
                })?;
                return taken;
            }
        };
        if matches!(self.form, SourceForm::Versions(_)) {
            set.infer_actions();
        }
        take(set)
    }
}

/// A part of a file: text or a blob that a worker parses, or objects of a format that only one thread can read.
enum InputChunk {
    Text(TextChunk, TextFormat),
    Objects(Box<ChangeSet>),
    Blob(Box<BlobEntry>),
}

impl InputChunk {
    /// Returns the estimated memory in bytes of the chunk and of its results.
    fn cost(&self) -> u64 {
        /// The estimated length of the text of a blob, for each byte of the blob.
        const TEXT_OF_BLOB: u64 = 12;
        match self {
            Self::Text(text, _) => text.bytes.len() as u64 * MEMORY_FACTOR,
            Self::Objects(objects) => o5m::memory(objects) * 2,
            Self::Blob(entry) => u64::from(entry.frame_len) * TEXT_OF_BLOB * MEMORY_FACTOR,
        }
    }

    /// Returns the objects before the first damage. If there is damage, also returns it, and whether the chunk is the
    /// last one of the file.
    fn salvage(self, path: &Path) -> (ChangeSet, Option<(Damage, bool)>) {
        let (text, format) = match self {
            Self::Text(text, format) => (text, format),
            Self::Objects(objects) => return (*objects, None),
            // This function is never called for PBF files.
            Self::Blob(_) => return (ChangeSet::default(), None),
        };
        match text.parse_until_damage(format, WayNodesIn::Ways) {
            Ok(objects) => (objects, None),
            Err(damage) => {
                let byte = text.file_offset(damage.lost);
                let error = text.error(path, damage.at, damage.cause);
                (*damage.objects, Some(((error, byte), text.is_last)))
            }
        }
    }
}

/// The chunks of a file, in file order.
enum Chunks<'f> {
    Text(Box<TextChunks>, TextFormat),
    O5m(Box<O5mChunks>),
    Pbf {
        /// The header of the file; `None` once it has been returned.
        start: Option<Box<ChangeSet>>,
        frames: HeaderWalker<'f>,
    },
}

impl Chunks<'_> {
    /// Opens a file that is not PBF. Warnings go to `ctx`.
    fn open(input: &Input, format: TextFormat, ctx: Option<&Context>) -> Result<Self> {
        Ok(match o5m::open_o5m_chunks(input, format, ctx)? {
            Some(chunks) => Self::O5m(Box::new(chunks)),
            None => Self::Text(Box::new(TextChunks::new(input, format)?), format),
        })
    }
}

impl Chunks<'_> {
    /// Makes the chunks of a file that is not PBF end at the first damage, instead of with an error.
    fn enable_salvage(&mut self) {
        match self {
            Self::Text(chunks, _) => chunks.enable_salvage(),
            Self::O5m(chunks) => chunks.enable_salvage(),
            Self::Pbf { .. } => {}
        }
    }

    /// Returns the damage at which the chunks ended; `None` if there was none.
    fn take_failure(&mut self) -> Option<Damage> {
        match self {
            Self::Text(chunks, _) => chunks.take_failure(),
            Self::O5m(chunks) => chunks.take_failure(),
            Self::Pbf { .. } => None,
        }
    }

    /// Returns the number of bytes of the decompressed file that were read.
    fn bytes_read(&self) -> u64 {
        match self {
            Self::Text(chunks, _) => chunks.bytes_read(),
            Self::O5m(chunks) => chunks.bytes_read(),
            Self::Pbf { .. } => 0,
        }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Result<InputChunk>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Text(chunks, format) => {
                let chunk = chunks.next()?;
                Some(chunk.map(|text| InputChunk::Text(text, *format)))
            }
            Self::O5m(chunks) => {
                let objects = chunks.next()?.map(Box::new);
                Some(objects.map(InputChunk::Objects))
            }
            Self::Pbf { start, frames } => match start.take() {
                Some(start) => Some(Ok(InputChunk::Objects(start))),
                None => {
                    let head = frames.next()?;
                    Some(head.map(|head| InputChunk::Blob(Box::new(head.entry))))
                }
            },
        }
    }
}

/// Parses files that are not PBF, in the given order. Calls `work` for each chunk, with the scratch state of the
/// worker, the index of the input and the objects of the chunk. Calls `merge` with each result, in file order. `init`
/// creates the scratch state. Fails before parsing if an input has a known binary format such as PBF. Only OPL may be
/// empty.
pub fn read_texts<S, T: Send>(
    inputs: &[Input],
    format: TextFormat,
    ctx: &Context,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize, ChangeSet) -> Result<T> + Sync,
    merge: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let sources = inputs.iter();
    let sources: Vec<_> = sources
        .map(|input| ObjectSource::of_text(input, format))
        .collect();
    read_sources(&sources, ctx, init, work, merge)
}

/// Parses files in any format, as [`read_texts`] does for files that are not PBF.
pub(crate) fn read_sources<S, T: Send>(
    sources: &[ObjectSource],
    ctx: &Context,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize, ChangeSet) -> Result<T> + Sync,
    merge: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    sources.iter().try_for_each(ObjectSource::check)?;
    let chunks = sources.iter().enumerate().flat_map(|(number, source)| {
        let (chunks, failed) = match source.chunks(ctx) {
            Ok(chunks) => (Some(chunks), None),
            Err(error) => (None, Some(Err(error))),
        };
        let chunks = chunks.into_iter().flatten().chain(failed);
        chunks.map(move |chunk| chunk.map(|chunk| (number, chunk)))
    });
    let remarks = AtomicUsize::new(0);
    parallel_results_phase(
        ctx.limits(BUDGET),
        chunks,
        |(_, chunk)| chunk.cost(),
        || (None::<BlobDecoder>, init()),
        |(decoder, scratch), (number, chunk), results| {
            let (source, mut last) = (&sources[number], None);
            source.parse(chunk, decoder, ctx, |objects| {
                for remark in objects.remarks() {
                    if remarks.fetch_add(1, Ordering::Relaxed) >= MAX_REMARKS * sources.len() {
                        break;
                    }
                    ctx.warn(format!(
                        "{}: the data may be incomplete: the server that made the file says: {}",
                        source.input.path().display(),
                        remark.replace(char::is_control, "?")
                    ));
                }
                let done = last.replace(work(scratch, number, objects)?);
                done.map_or(Ok(()), |done| results.send(done, 0))
            })?;
            Ok(last)
        },
        |_| (),
        merge,
    )
}

/// Parses a file that is not PBF up to its first damage. Calls the functions as [`read_texts`] does, except that `work`
/// gets no index. Returns the damage, and the number of bytes of the decompressed file. Fails if the input cannot be
/// read.
pub(crate) fn salvage_texts<S, T: Send>(
    input: &Input,
    format: TextFormat,
    ctx: &Context,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, ChangeSet) -> Result<T> + Sync,
    mut merge: impl FnMut(T) -> Result<()>,
) -> Result<(Option<Damage>, u64)> {
    let mut chunks = Chunks::open(input, format, Some(ctx))?;
    chunks.enable_salvage();
    // After a worker has found damage, later chunks may still be parsed, but their results are dropped.
    let mut found: Option<(Damage, bool)> = None;
    let read = parallel_single_result_phase(
        ctx.limits(BUDGET),
        chunks.by_ref(),
        InputChunk::cost,
        init,
        |scratch, chunk| {
            let (objects, damage) = chunk.salvage(input.path());
            Ok((work(scratch, objects)?, damage))
        },
        |(result, damage)| {
            if found.is_none() {
                merge(result)?;
                found = damage;
            }
            Ok(())
        },
    );
    ctx.cancellation.check()?;
    let damage = match (found, chunks.take_failure()) {
        (None, Some(failure)) => read.map(|()| Some(failure)),
        // The last chunk ends early because of the failure, which is therefore the cause of the damage in this chunk.
        // The object that is cut off there is lost.
        (Some(((_, lost), true)), Some((failure, end))) => {
            read.map(|()| Some((failure, lost.min(end))))
        }
        (Some((damage, _)), _) => Ok(Some(damage)),
        (None, None) => read.map(|()| None),
    };
    Ok((damage?, chunks.bytes_read()))
}

/// Parses the first chunk of a file as [`read_start`] does, but only up to the first damage.
pub(crate) fn salvage_start(input: &Input, format: TextFormat) -> Result<ChangeSet> {
    let mut chunks = Chunks::open(input, format, None)?;
    chunks.enable_salvage();
    match chunks.next() {
        Some(chunk) => Ok(chunk?.salvage(input.path()).0),
        None => Ok(ChangeSet::default()),
    }
}

/// Parses the first chunk of a file that is not PBF. The chunk has the document header and the first objects.
pub(crate) fn read_start(input: &Input, format: TextFormat) -> Result<ChangeSet> {
    check_text_input(input, format)?;
    match Chunks::open(input, format, None)?.next() {
        Some(Ok(InputChunk::Text(text, format))) => {
            text.parse(input.path(), format, WayNodesIn::Ways)
        }
        Some(Ok(InputChunk::Objects(objects))) => Ok(*objects),
        Some(Err(error)) => Err(error),
        Some(Ok(InputChunk::Blob(_))) | None => Ok(ChangeSet::default()),
    }
}

/// Fails if an input has a known binary format such as PBF. Also fails if the input is empty, unless `format` is OPL.
fn check_text_input(input: &Input, format: TextFormat) -> Result<()> {
    let path = input.path();
    if input.is_empty() && format != TextFormat::Opl {
        return Err(Error::file(path, "the file is empty"));
    }
    let start = input.first_bytes()?;
    let cause = match (begins_with_header_frame(start), guess_binary_format(start)) {
        (true, _) => format!("this is a PBF file, not {}", format.name()),
        (_, Some(kind)) => format!("not an OSM file (it looks like {kind})"),
        (_, None) => return Ok(()),
    };
    Err(Error::file_of(path, ErrorKind::NotOsm, cause))
}

/// Adds all objects of files to `all`, in file order. The number of the first file is `first`. Returns a header for
/// each file, in which only the replication states and the URL are set.
pub(super) fn add_all_objects(
    sources: &[ObjectSource],
    first: usize,
    all: &mut NewestChanges,
    ctx: &Context,
) -> Result<Vec<DocumentHeader>> {
    let mut headers = vec![DocumentHeader::default(); sources.len()];
    let work = |(): &mut (), number: usize, objects: ChangeSet| Ok((number, objects));
    read_sources(
        sources,
        ctx,
        || (),
        work,
        |(number, mut objects)| {
            objects.set_file((first + number) as u32);
            headers[number].add_replication(objects.document_header());
            let added = all.add(objects, ctx);
            added.map_err(|cause| Error::file(sources[number].input.path(), cause))
        },
    )?;
    Ok(headers)
}

/// Reads the state file that replication servers publish beside a change file, such as `123.state.txt` beside
/// `123.osc.gz`. Returns `None` if the state file does not exist or cannot be read.
pub(super) fn read_state_file(path: &Path) -> Option<Replication> {
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
    let (sequence, timestamp) = crate::replication::parse_sequence_and_time(&text);
    Some(Replication {
        sequence,
        timestamp,
    })
}
