//! Writes a file object by object.

use super::output_options::OutputOptions;
use super::sink::Sink;
use super::sort::{Dedupe, SortJob, sort_files};
use crate::error::{Error, FormatError, Result};
use crate::file::{PbfFile, Written};
use crate::io::{Input, ScratchFile, SizeHint};
use crate::osm::TypeThenId;
use crate::pbf::{BlockBuilder, Compression, Element, EncodedBlock, HeaderBlock, Object, feature};
use crate::runtime::Context;
use std::path::{Path, PathBuf};

/// Writes a file object by object: PBF with a table of contents or, with [`OutputOptions::format`], text.
///
/// The file appears under its name when [`finish`](Self::finish) returns. If the writer is dropped earlier, no file is
/// left behind. Blobs are compressed on every core. Each thread uses about 2 MB of memory.
///
/// ```
/// use pbfhogg::{ElementWriter, Location, Object};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("cafe.osm.pbf");
/// let mut writer = ElementWriter::create(&path)?;
/// let location = Location::from_degrees(52.5163, 13.3777);
/// writer.write(&Object::node(1, location, &[("amenity", "cafe"), ("name", "Mokka")]))?;
/// writer.write(&Object::way(1, &[1, 2, 3], &[("highway", "footway")]))?;
/// let written = writer.finish()?;
/// assert!(written.sorted && written.indexed && written.objects == Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ElementWriter {
    sink: Sink,
    builder: BlockBuilder,
    order: ElementOrder,
    holds_deleted: bool,
    path: PathBuf,
    ctx: Context,
}

/// The order in which the user of an [`ElementWriter`] adds objects.
enum ElementOrder {
    /// Canonical order. The value is the key and the version of the last object that was added.
    Canonical(Option<(TypeThenId, u32)>),
    /// Any order. The objects are first written to a temporary file. [`ElementWriter::finish`] then sorts them into the
    /// output.
    Any(Box<(ScratchFile, OutputOptions)>),
}

impl std::fmt::Debug for ElementWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ElementWriter")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl ElementWriter {
    /// Creates a writer for a file that must not exist yet. Objects have to be written in canonical order: first nodes,
    /// then ways, then relations, each kind by id, and the versions of an object by version.
    ///
    /// # Errors
    ///
    /// The file exists or its directory cannot be written to.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        Self::new(OutputOptions::file(path), Context::default())
    }

    /// Creates a writer as [`create`](Self::create) does, with the options `output`.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn new(output: OutputOptions, ctx: Context) -> Result<Self> {
        let path = output.target.path().to_owned();
        let sink = Sink::create(&output, new_header(&output), SizeHint::default(), &ctx)?;
        Ok(Self::of_sink(
            sink,
            ElementOrder::Canonical(None),
            path,
            ctx,
        ))
    }

    /// Creates a writer that accepts objects in any order. The objects are kept in an unnamed temporary file in the
    /// directory of the output, and sorted by [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn sorting(output: OutputOptions, ctx: Context) -> Result<Self> {
        output.target.check()?;
        let directory = output.target.scratch_directory();
        let (scratch, unsorted) = OutputOptions::create_scratch(&directory, Compression::Lz4)?;
        let path = output.target.path().to_owned();
        let sink = Sink::create(&unsorted, new_header(&output), SizeHint::default(), &ctx)?;
        Ok(Self::of_sink(
            sink,
            ElementOrder::Any(Box::new((scratch, output))),
            path,
            ctx,
        ))
    }

    fn of_sink(sink: Sink, order: ElementOrder, path: PathBuf, ctx: Context) -> Self {
        Self {
            sink,
            builder: BlockBuilder::default(),
            order,
            holds_deleted: false,
            path,
            ctx,
        }
    }

    /// Writes an object.
    ///
    /// # Errors
    ///
    /// The object is out of order, its timestamp in milliseconds does not fit in 64 bits, or the output cannot be
    /// written.
    pub fn write(&mut self, object: &Object<'_>) -> Result<()> {
        let key = (object.key(), object.info.version.unwrap_or(0));
        if let ElementOrder::Canonical(last) = &mut self.order {
            if last.is_some_and(|last| key < last) {
                return Err(order_error(&self.path, object));
            }
            *last = Some(key);
        }
        self.holds_deleted |= !object.info.visible;
        let added = self.builder.add(object);
        added.map_err(|error| object_error(&self.path, &error))?;
        if self.builder.has_blocks() {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes an object that was read from a file.
    ///
    /// Coordinates finer than 1e-7 degree are truncated.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn write_element(&mut self, element: &Element<'_>) -> Result<()> {
        self.write(&Object::from(element))
    }

    /// Writes the remaining objects, flushes the file to disk, and gives it its name.
    ///
    /// # Errors
    ///
    /// The output cannot be written. In this case no file is left behind.
    pub fn finish(mut self) -> Result<Written> {
        self.builder.end_block();
        self.flush()?;
        let mut sink = self.sink.close()?;
        if self.holds_deleted {
            sink.require(feature::HISTORY);
        }
        let written = sink.finish()?.written;
        let (scratch, output) = match self.order {
            ElementOrder::Canonical(_) => return Ok(written),
            ElementOrder::Any(pair) => *pair,
        };
        let input = Input::from_temporary(scratch.open()?, &self.path)?;
        let job = SortJob::new(output, Dedupe::KeepAll);
        let file = PbfFile::of_input(input, &self.ctx)?;
        Ok(sort_files(vec![file], &job, &self.ctx)?.written)
    }

    /// Passes the completed blocks to the output.
    fn flush(&mut self) -> Result<()> {
        let mut blocks: Vec<EncodedBlock> = self.builder.take_blocks();
        blocks
            .drain(..)
            .try_for_each(|block| self.sink.append_block(block))
    }
}

/// Returns the header of an output with the given options.
fn new_header(output: &OutputOptions) -> HeaderBlock {
    let mut header = HeaderBlock::for_objects();
    output.header.apply(&mut header);
    header
}

fn order_error(path: &Path, object: &Object<'_>) -> Error {
    let cause = format!(
        "{} {} comes after an object that belongs behind it: write nodes, ways and relations each by id, or use \
         ElementWriter::sorting",
        object.kind(),
        object.id
    );
    Error::file(path, cause)
}

/// Returns the error for an object that cannot be written to the output at `path`.
fn object_error(path: &Path, error: &FormatError) -> Error {
    Error::file(path, error.to_string())
}
