//! Opens the inputs of commands. A text input (OSM XML, OsmChange, OPL, o5m or o5c) is first converted to a temporary
//! PBF with a table of contents, so that every command can read it.

use super::headers::HeaderOptions;
use crate::engine::OutputOptions;
use crate::engine::sink::{BlobOutcome, Sink};
use crate::engine::sort::{Dedupe, SortJob, sort_files};
use crate::engine::text_versions::has_versions_apart;
use crate::error::{Error, FormatError, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, TextChangesets, TocNeeds, WriteOptions};
use crate::formats::{
    Change, ChangeSet, DocumentHeader, FileContent, TextFormat, format_of, read_start, read_texts,
};
use crate::io::{Input, OutputTarget, ScratchFile, SizeHint};
use crate::osm::Bbox;
use crate::pbf::{BlockBuilder, Compression, EncodedBlock, HeaderBlock, feature};
use crate::runtime::Context;
use std::path::{Path, PathBuf};

/// Opens an input whose blobs are not copied to an output. A text input becomes a temporary PBF compressed with lz4.
pub(crate) fn open(path: &Path, ctx: &Context) -> Result<PbfFile> {
    open_in(path, Compression::Lz4, ctx)
}

/// Opens an input for a command that needs facts about the whole file. If the table of contents has a summary with
/// these facts, only the summary is read, not the table.
pub(crate) fn open_for_summary(path: &Path, ctx: &Context) -> Result<PbfFile> {
    let (input, format) = open_any(path, ctx)?;
    match format {
        None => PbfFile::read(input, TocNeeds::Summary, ctx),
        Some(format) => without_changesets(converted(input, format, Compression::Lz4, ctx), ctx),
    }
}

/// Opens an input whose blobs may be copied to an output. A text input becomes a temporary PBF with the compression of
/// the output.
pub(crate) fn open_to_copy(path: &Path, write: &WriteOptions, ctx: &Context) -> Result<PbfFile> {
    open_in(path, write.compression, ctx)
}

/// Opens an input as [`open_to_copy`] does, for a command that [writes changesets](super::changesets::put). Warns about
/// changesets only if `output` has a format that cannot hold them.
pub(crate) fn open_with_changesets(
    path: &Path,
    output: &OutputOptions,
    ctx: &Context,
) -> Result<PbfFile> {
    let (input, format) = open_any(path, ctx)?;
    let file = to_pbf(input, format, output.encoding().compression, ctx)?;
    if !super::changesets::has_room(output) {
        super::changesets::note_left_out(&file, ctx);
    }
    Ok(file)
}

/// Returns `file`. If the file has changesets, also warns how many of them are left out.
fn without_changesets(file: Result<PbfFile>, ctx: &Context) -> Result<PbfFile> {
    file.inspect(|file| super::changesets::note_left_out(file, ctx))
}

/// Returns the context, changed so that the streams among `paths` can be opened more than once.
pub(crate) fn with_streams(paths: &[PathBuf], mut ctx: Context) -> Result<Context> {
    for path in paths {
        let is_stream = path.as_os_str() == "-"
            || path
                .metadata()
                .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        if is_stream && ctx.file(path).is_none() {
            let input = Input::open_in(path, &ctx)?;
            let file = input.file().try_clone();
            let file = file.map_err(|error| Error::io(path, "cannot open", error))?;
            ctx = ctx.with_file(path, file);
        }
    }
    Ok(ctx)
}

/// Opens an input in any format. Returns the input, and its text format or `None` for PBF. The format is that in
/// [`Context::input_format`] or, with `InputFormat::Auto`, detected from the content.
pub(crate) fn open_any(path: &Path, ctx: &Context) -> Result<(Input, Option<TextFormat>)> {
    let input = Input::open_in(path, ctx)?;
    let format = format_of(&input, ctx.input_format)?;
    Ok((input, format))
}

fn open_in(path: &Path, compression: Compression, ctx: &Context) -> Result<PbfFile> {
    let (input, format) = open_any(path, ctx)?;
    without_changesets(to_pbf(input, format, compression, ctx), ctx)
}

/// Opens `input` as a PBF file. An input in a text format is converted to a temporary PBF compressed with
/// `compression`. A change file becomes a history file, and its deletions become deleted versions. Any other text input
/// becomes a history file if the file name or the context marks it as a history file, or if the input has deleted
/// versions or several versions of an object. Changesets are left out without a warning; [`PbfFile::changesets`] has
/// their number.
pub(crate) fn to_pbf(
    input: Input,
    format: Option<TextFormat>,
    compression: Compression,
    ctx: &Context,
) -> Result<PbfFile> {
    match format {
        None => PbfFile::of_input(input, ctx),
        Some(format) => converted(input, format, compression, ctx),
    }
}

/// Whether the file is a temporary PBF file that was converted from a text input.
pub(crate) fn is_text(file: &PbfFile) -> bool {
    file.input.original_len().is_some()
}

/// The error message for an input with changesets only, which PBF cannot represent.
const CHANGESETS_ARE_NO_OBJECTS: &str = "there is nothing but changesets in the file, which PBF cannot hold; \
     `pbfhogg cat` writes them as osm or opl";

/// Converts a text input to PBF in an unnamed temporary file.
fn converted(
    input: Input,
    format: TextFormat,
    compression: Compression,
    ctx: &Context,
) -> Result<PbfFile> {
    let path = input.path().to_owned();
    ctx.debug(format!(
        "{}: {} is converted to a temporary PBF",
        path.display(),
        format.name()
    ));
    let scratch = ScratchFile::create(&std::env::temp_dir())?;
    let write = WriteOptions {
        compression,
        ..WriteOptions::default()
    };
    let target = OutputTarget::Scratch(scratch.clone());
    let (document_header, changesets) = convert(input.clone(), format, target, write, ctx)?;
    let mut file = PbfFile::of_input(Input::converted(scratch.open()?, &input)?, ctx)?;
    file.header.text = document_header.text;
    file.header.text.is_change = format.is_change();
    file.header.text.is_data = format.is_data();
    file.header.is_converted = true;
    if !file.header.has(feature::HISTORY) && has_versions_apart(&file, ctx)? {
        file.header.set_required(feature::HISTORY, true);
    }
    file.changesets = (changesets > 0).then(|| {
        Box::new(TextChangesets {
            text: input,
            count: changesets,
        })
    });
    Ok(file)
}

/// Returns a file with the objects of `file` in canonical order, and the plan of the returned file. If `file` is in
/// order, it is returned unchanged. Otherwise its objects are sorted into a temporary file in the directory `scratch`,
/// with the compression of `write`, and the user is informed. If the header declares canonical order, `file` is sorted
/// only if an index contradicts the header. The order of the versions of an object is not checked if they are in
/// different blobs.
pub(crate) fn in_order(
    file: PbfFile,
    write: &WriteOptions,
    scratch: &Path,
    ctx: &Context,
) -> Result<(PbfFile, BlobPlan)> {
    let needs = if file.header.has(feature::SORTED) {
        PlanNeeds::Ranges
    } else {
        PlanNeeds::Order
    };
    let plan = BlobPlan::open(&file, needs, ctx)?;
    if plan.is_sorted() != Some(false) {
        return Ok((file, plan));
    }
    ctx.info(format!(
        "{}: the objects are not in order: sorting them into a temporary file in {}",
        file.input.path().display(),
        scratch.display()
    ));
    let scratch = ScratchFile::create(scratch)?;
    let original = file.input.clone();
    let target = OutputTarget::Scratch(scratch.clone());
    let output = OutputOptions::new(target)
        .write(WriteOptions {
            compression: write.compression,
            ..WriteOptions::default()
        })
        .header(HeaderOptions {
            generator: file.header.writing_program.clone(),
            ..HeaderOptions::default()
        });
    let job = SortJob {
        output,
        dedupe: Dedupe::KeepAll,
        changesets: false,
    };
    sort_files(vec![file], &job, ctx)?;
    let file = PbfFile::of_input(Input::sorted(scratch.open()?, &original)?, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Order, ctx)?;
    Ok((file, plan))
}

/// Writes the objects of a text input as PBF. Returns the header of the input, and the number of its changesets. Fails
/// if the input has changesets but no objects.
fn convert(
    input: Input,
    format: TextFormat,
    target: OutputTarget,
    write: WriteOptions,
    ctx: &Context,
) -> Result<(DocumentHeader, u64)> {
    let document_header = read_start(&input, format)?.document_header().clone();
    let header = header(&document_header);
    let output = OutputOptions::new(target).write(write);
    let mut sink = Sink::create(&output, header, SizeHint::default(), ctx)?;
    let path = input.path().to_owned();
    let is_named = FileContent::of_name(&path, Some(format)) == Some(FileContent::History);
    let mut is_history = format.is_change() || ctx.input_is_history || is_named;
    let (mut deleted, mut before) = (0, None::<Change>);
    let (mut has_objects, mut changesets) = (false, 0);
    let phase = ctx.phase("convert", 0);
    read_texts(
        std::slice::from_ref(&input),
        format,
        ctx,
        BlockBuilder::default,
        |builder, _, objects| {
            let parts = assemble(builder, &objects);
            let parts = parts.map_err(|error| Error::file(&path, error.to_string()))?;
            let ends = objects.changes().first().zip(objects.changes().last());
            let ends = ends.map(|(first, last)| (*first, *last));
            let counts = (objects.deleted_in_editor(), objects.changesets());
            Ok((parts, ends, objects.is_history(), counts))
        },
        |(parts, ends, has_history, (left_out, more))| {
            is_history |= has_history;
            deleted += left_out;
            has_objects |= left_out > 0 || !parts.is_empty();
            changesets += more;
            if let Some((first, last)) = ends {
                is_history |= before.is_some_and(|before| first.is_other_version_of(&before));
                before = Some(last);
            }
            sink.add(&input, BlobOutcome::Blocks(parts))
        },
    )?;
    drop(phase);
    if changesets > 0 && !has_objects {
        return Err(Error::file(&path, CHANGESETS_ARE_NO_OBJECTS));
    }
    if deleted > 0 {
        ctx.info(format!(
            "{}: objects that were deleted in an editor (action=\"delete\") are left out: {deleted}",
            path.display()
        ));
    }
    let mut sink = sink.close()?;
    if is_history {
        sink.require(feature::HISTORY);
    }
    sink.finish()?;
    Ok((document_header, changesets))
}

/// Builds blocks from objects, in the order of `objects`.
fn assemble(
    builder: &mut BlockBuilder,
    objects: &ChangeSet,
) -> Result<Vec<EncodedBlock>, FormatError> {
    for (_, object) in objects.iter() {
        builder.add(&object)?;
    }
    builder.end_block();
    Ok(builder.take_blocks())
}

/// Returns the PBF header for a converted text input, with the bounding box, generator and replication state that the
/// text declares.
fn header(document_header: &DocumentHeader) -> HeaderBlock {
    let mut header = HeaderBlock::default();
    let boxes = &document_header.text.boxes;
    let around = boxes.iter().fold(Bbox::EMPTY, Bbox::union);
    header.set_bbox(Some(around).filter(|_| !boxes.is_empty()));
    header.writing_program = document_header.generator.clone();
    header.replication_timestamp = document_header.replication.timestamp;
    header.replication_sequence = document_header.replication.sequence;
    header.replication_url = document_header.replication_url.clone();
    header.set_required(feature::SCHEMA, true);
    header
}
