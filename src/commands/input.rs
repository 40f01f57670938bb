//! Opening the inputs of commands. What is OSM as text becomes a temporary PBF with a table of contents first, so
//! that every command takes it.

use crate::Context;
use crate::context::InputFormat;
use crate::error::{Error, Result};
use crate::osm::NANO_PER_DECIMICRO;
use crate::pbf::{Compression, FormatError, HeaderBlock, feature};
use crate::read::{Input, PbfFile};
use crate::text::{Batch, ChangeSet, Preface, TextFormat, read_start, read_texts};
use crate::write::{
    Assembler, Encoders, Expected, OutputTarget, Part, PbfWriter, Reblocker, WriteOptions,
};
use std::fs::File;
use std::path::Path;

/// Opens an input of which nothing is copied.
pub(super) fn open(path: &Path, ctx: &Context) -> Result<PbfFile> {
    open_in(path, Compression::Lz4, ctx)
}

/// Opens an input of which blobs may be copied to an output: those of a temporary PBF are compressed as the
/// output is.
pub(super) fn open_to_copy(path: &Path, write: &WriteOptions, ctx: &Context) -> Result<PbfFile> {
    open_in(path, write.compression, ctx)
}

fn open_in(path: &Path, compression: Compression, ctx: &Context) -> Result<PbfFile> {
    let input = Input::open_in(path, ctx)?;
    let format = match ctx.input_format {
        InputFormat::Pbf => None,
        InputFormat::Osm => Some(TextFormat::Osm),
        InputFormat::Opl => Some(TextFormat::Opl),
        InputFormat::Auto => TextFormat::of(&input)?,
    };
    match format {
        None => PbfFile::of_input(input, ctx),
        Some(TextFormat::OsmChange) => Err(Error::file(
            path,
            "this is an OsmChange file, not a file of objects: see apply-changes and merge-changes",
        )),
        Some(format) => converted(input, format, compression, ctx),
    }
}

/// Whether the input was text.
pub(super) fn is_text(file: &PbfFile) -> bool {
    file.input.original_len().is_some()
}

/// A PBF of what a text holds, in a temporary file without a name.
fn converted(
    input: Input,
    format: TextFormat,
    compression: Compression,
    ctx: &Context,
) -> Result<PbfFile> {
    let path = input.path().to_owned();
    ctx.detail(format!(
        "{}: {} is converted to a temporary PBF",
        path.display(),
        format.name()
    ));
    let directory = tempfile::tempdir()
        .map_err(|error| Error::io(&std::env::temp_dir(), "cannot write a file there", error))?;
    let name = directory.path().join("converted.osm.pbf");
    let target = OutputTarget::File {
        path: name.clone(),
        overwrite: false,
    };
    let write = WriteOptions {
        compression,
        ..WriteOptions::default()
    };
    let original = input.clone();
    convert(input, format, target, write, ctx)?;
    // Once it is open the file needs no name, and nothing is left of it whatever happens.
    let file = File::open(&name).map_err(|error| Error::io(&name, "cannot open", error))?;
    drop(directory);
    PbfFile::of_input(Input::converted(file, &original)?, ctx)
}

fn convert(
    input: Input,
    format: TextFormat,
    target: OutputTarget,
    write: WriteOptions,
    ctx: &Context,
) -> Result<()> {
    let header = header(read_start(&input, format)?.preface());
    let writer = PbfWriter::create(target, header, write, Expected::default(), ctx)?;
    let mut sink = Reblocker::new(writer, &Encoders::new(write, ctx), 1);
    let mut is_history = false;
    let path = input.path().to_owned();
    let phase = ctx.phase("convert", 0);
    read_texts(
        std::slice::from_ref(&input),
        format,
        ctx,
        Assembler::default,
        |assembler, _, objects| {
            let parts = assemble(assembler, &objects);
            let parts = parts.map_err(|error| Error::file(&path, error.to_string()))?;
            Ok((parts, objects.tells_visible()))
        },
        |(parts, tells_visible)| {
            is_history |= tells_visible;
            parts.into_iter().try_for_each(|part| sink.part(part))
        },
    )?;
    drop(phase);
    let mut writer = sink.finish()?;
    if is_history {
        writer.require(feature::HISTORY);
    }
    writer.finish().map(drop)
}

/// Blocks of the objects, in their order.
fn assemble(assembler: &mut Assembler, objects: &ChangeSet) -> Result<Vec<Part>, FormatError> {
    const AT_A_TIME: usize = 1024;
    for changes in objects.changes().chunks(AT_A_TIME) {
        let batch = Batch::new(objects, changes);
        for object in batch.objects() {
            assembler.add(&object)?;
        }
    }
    assembler.end_block();
    Ok(assembler.take_parts())
}

/// A header that says what a text says of itself.
fn header(preface: &Preface) -> HeaderBlock {
    let nano = |e7: i32| i64::from(e7) * NANO_PER_DECIMICRO;
    let mut header = HeaderBlock::default();
    header.bbox_nano = preface.bbox.map(|bbox| {
        let [left, right] = [bbox.min_lon_e7, bbox.max_lon_e7].map(nano);
        let [top, bottom] = [bbox.max_lat_e7, bbox.min_lat_e7].map(nano);
        [left, right, top, bottom]
    });
    header.writing_program = preface.generator.clone();
    header.replication_timestamp = preface.replication.timestamp;
    header.replication_sequence = preface.replication.sequence;
    header.replication_url = preface.replication_url.clone();
    header.set_required(feature::SCHEMA, true);
    header
}
