//! Opens the inputs of commands. A text input (OSM XML, OsmChange, OPL, o5m or o5c) is first converted to a temporary
//! PBF with a table of contents, so that every command can read it.

use super::headers::HeaderOptions;
use crate::engine::OutputOptions;
use crate::engine::sink::{BlobOutcome, Sink};
use crate::engine::sort::{Dedupe, SortJob, sort_files};
use crate::engine::text_versions::has_unsorted_versions;
use crate::error::{Advice, Error, FileResult, FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, TextChangesets, TocNeeds, WriteOptions};
use crate::formats::{
    Change, ChangeSet, Damage, DocumentHeader, FileContent, TextFormat, format_of, read_start,
    read_texts, salvage_start, salvage_texts,
};
use crate::io::{Input, ScratchFile, SizeHint};
use crate::osm::{Bbox, TypeThenId};
use crate::pbf::{BlockBuilder, Compression, EncodedBlock, HeaderBlock, feature};
use crate::runtime::Context;
use std::path::{Path, PathBuf};

/// Opens an input whose blobs are not copied to an output. A text input becomes a temporary PBF compressed with lz4.
pub(crate) fn open(path: &Path, ctx: &Context) -> Result<PbfFile> {
    open_with_compression(path, Compression::Lz4, ctx)
}

/// Opens an input for a command that needs facts about the whole file. If the table of contents has a summary with
/// these facts, only the summary is read, not the table.
pub(crate) fn open_for_summary(path: &Path, ctx: &Context) -> Result<PbfFile> {
    let (input, format) = open_in_any_format(path, ctx)?;
    match format {
        None => PbfFile::read(input, TocNeeds::Summary, ctx),
        Some(format) => warn_of_left_out_changesets(
            convert_text_to_pbf(input, format, Compression::Lz4, ctx),
            ctx,
        ),
    }
}

/// Opens an input whose blobs may be copied to an output. A text input becomes a temporary PBF with the compression of
/// the output.
pub(crate) fn open_to_copy(path: &Path, write: &WriteOptions, ctx: &Context) -> Result<PbfFile> {
    open_with_compression(path, write.compression, ctx)
}

/// Opens an input as [`open_to_copy`] does, for a command that [writes changesets](super::changesets::put). Warns about
/// changesets only if `output` has a format that cannot hold them.
pub(crate) fn open_with_changesets(
    path: &Path,
    output: &OutputOptions,
    ctx: &Context,
) -> Result<PbfFile> {
    let (input, format) = open_in_any_format(path, ctx)?;
    let file = open_as_pbf(input, format, output.encoding().compression, ctx)?;
    if !super::changesets::can_hold_changesets(output) {
        super::changesets::warn_of_left_out_changesets(&file, ctx);
    }
    Ok(file)
}

/// Returns `file`. If the file has changesets, also warns how many of them are left out.
fn warn_of_left_out_changesets(file: Result<PbfFile>, ctx: &Context) -> Result<PbfFile> {
    file.inspect(|file| super::changesets::warn_of_left_out_changesets(file, ctx))
}

/// Returns a context in which the streams among `paths` can be opened more than once.
#[cfg(feature = "cli")]
pub(crate) fn context_with_streams(paths: &[PathBuf], mut ctx: Context) -> Result<Context> {
    for path in paths {
        let is_stream = path.as_os_str() == "-"
            || path
                .metadata()
                .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        if is_stream && ctx.file(path).is_none() {
            let input = Input::open_in(path, &ctx)?;
            let file = input.file().try_clone().for_path(path, "cannot open")?;
            ctx = ctx.with_file(path, file);
        }
    }
    Ok(ctx)
}

/// Opens an input in any format. Returns the input, and its text format or `None` for PBF. Takes the format from
/// [`Context::input_format`] or, with `InputFormat::Auto`, detects it from the content.
pub(crate) fn open_in_any_format(
    path: &Path,
    ctx: &Context,
) -> Result<(Input, Option<TextFormat>)> {
    let input = Input::open_in(path, ctx)?;
    let format = format_of(&input, ctx.input_format)?;
    Ok((input, format))
}

fn open_with_compression(path: &Path, compression: Compression, ctx: &Context) -> Result<PbfFile> {
    let (input, format) = open_in_any_format(path, ctx)?;
    warn_of_left_out_changesets(open_as_pbf(input, format, compression, ctx), ctx)
}

/// Opens `input` as a PBF file. An input in a text format is converted to a temporary PBF compressed with
/// `compression`. A change file becomes a history file, and its deletions become deleted versions. Any other text input
/// becomes a history file if its name or the context marks it as history. It also becomes a history file if it has
/// deleted versions or several versions of an object. Changesets are left out without a warning;
/// [`PbfFile::changesets`] has their number.
pub(crate) fn open_as_pbf(
    input: Input,
    format: Option<TextFormat>,
    compression: Compression,
    ctx: &Context,
) -> Result<PbfFile> {
    match format {
        None => PbfFile::of_input(input, ctx),
        Some(format) => convert_text_to_pbf(input, format, compression, ctx),
    }
}

/// Whether the file is a temporary PBF file that was converted from a text input.
pub(crate) fn is_from_text(file: &PbfFile) -> bool {
    file.input.original_len().is_some()
}

/// The error message for an input that has only changesets. PBF cannot represent changesets.
const CHANGESETS_ARE_NO_OBJECTS: &str =
    "there is nothing but changesets in the file, which PBF cannot hold";

/// Converts a text input to PBF in an unnamed temporary file.
fn convert_text_to_pbf(
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
    let document_header = read_start(&input, format)?.document_header().clone();
    let mut conversion = Conversion::begin(&input, format, &document_header, ctx);
    let (scratch, mut sink) = conversion.begin_file(compression)?;
    let phase = ctx.phase("convert", 0);
    read_texts(
        std::slice::from_ref(&input),
        format,
        ctx,
        BlockBuilder::default,
        |builder, _, objects| ConvertedPart::of(builder, &objects, &path),
        |part| sink.add(&input, BlobOutcome::Blocks(conversion.add(part))),
    )?;
    drop(phase);
    if conversion.changesets > 0 && !conversion.has_objects {
        return Err(Error::file(&path, CHANGESETS_ARE_NO_OBJECTS).advise(Advice::WriteChangesets));
    }
    conversion.finish(sink, &scratch)
}

/// A text input that was read up to its first damage.
pub(crate) struct SalvagedText {
    /// A temporary PBF file with the objects before the damage; `None` if there are none.
    pub file: Option<PbfFile>,
    /// The damage; `None` if the text is whole.
    pub damage: Option<Damage>,
    /// The number of bytes of the decompressed text.
    pub bytes: u64,
    /// The kind and the id of the last object before the damage.
    pub last: Option<TypeThenId>,
}

/// Returns the format of an input, as [`open_in_any_format`] does.
pub(crate) fn detect_format(input: &Input, ctx: &Context) -> Result<Option<TextFormat>> {
    format_of(input, ctx.input_format)
}

/// Converts a text input up to its first damage, as [`open_as_pbf`] does. Fails if the input cannot be read.
pub(crate) fn salvage(
    input: &Input,
    format: TextFormat,
    compression: Compression,
    ctx: &Context,
) -> Result<SalvagedText> {
    let start = salvage_start(input, format);
    let document_header = start.map_or_else(
        |_| DocumentHeader::default(),
        |start| start.document_header().clone(),
    );
    let mut conversion = Conversion::begin(input, format, &document_header, ctx);
    let (scratch, mut sink) = conversion.begin_file(compression)?;
    let phase = ctx.phase("convert", 0);
    let (damage, bytes) = salvage_texts(
        input,
        format,
        ctx,
        BlockBuilder::default,
        |builder, objects| ConvertedPart::of(builder, &objects, input.path()),
        |part| sink.add(input, BlobOutcome::Blocks(conversion.add(part))),
    )?;
    drop(phase);
    let last = conversion.last.map(|last| last.key);
    let has_objects = conversion.last.is_some();
    let file = conversion.finish(sink, &scratch)?;
    Ok(SalvagedText {
        file: has_objects.then_some(file),
        damage,
        bytes,
        last,
    })
}

/// The state of the conversion of a text input to PBF.
struct Conversion<'c> {
    input: &'c Input,
    format: TextFormat,
    document_header: &'c DocumentHeader,
    is_history: bool,
    /// The number of objects that were deleted in an editor.
    deleted: u64,
    has_objects: bool,
    changesets: u64,
    last: Option<Change>,
    ctx: &'c Context,
}

/// The objects of a chunk as blocks, with facts about them.
struct ConvertedPart {
    blocks: Vec<EncodedBlock>,
    /// The first and the last object.
    ends: Option<(Change, Change)>,
    is_history: bool,
    deleted: u64,
    changesets: u64,
}

impl ConvertedPart {
    fn of(builder: &mut BlockBuilder, objects: &ChangeSet, path: &Path) -> Result<Self> {
        let blocks = build_blocks(builder, objects);
        let blocks = blocks.map_err(|error| Error::file(path, error.to_string()))?;
        let ends = objects.changes().first().zip(objects.changes().last());
        Ok(Self {
            blocks,
            ends: ends.map(|(first, last)| (*first, *last)),
            is_history: objects.is_history(),
            deleted: objects.deleted_in_editor(),
            changesets: objects.changesets(),
        })
    }
}

impl<'c> Conversion<'c> {
    fn begin(
        input: &'c Input,
        format: TextFormat,
        document_header: &'c DocumentHeader,
        ctx: &'c Context,
    ) -> Self {
        Self {
            input,
            format,
            document_header,
            is_history: format.is_change()
                || ctx.input_is_history
                || FileContent::of_name(input.path(), Some(format)) == Some(FileContent::History),
            deleted: 0,
            has_objects: false,
            changesets: 0,
            last: None,
            ctx,
        }
    }

    /// Begins the temporary PBF file.
    fn begin_file(&self, compression: Compression) -> Result<(ScratchFile, Sink)> {
        let (scratch, output) = OutputOptions::create_scratch(&std::env::temp_dir(), compression)?;
        let header = pbf_header(self.document_header);
        let sink = Sink::create(&output, header, SizeHint::default(), self.ctx)?;
        Ok((scratch, sink))
    }

    /// Adds the facts about a part, and returns its blocks.
    fn add(&mut self, part: ConvertedPart) -> Vec<EncodedBlock> {
        self.is_history |= part.is_history;
        self.deleted += part.deleted;
        self.has_objects |= part.deleted > 0 || !part.blocks.is_empty();
        self.changesets += part.changesets;
        if let Some((first, last)) = part.ends {
            self.is_history |= self
                .last
                .is_some_and(|before| first.is_other_version_of(&before));
            self.last = Some(last);
        }
        part.blocks
    }

    /// Completes the temporary PBF file, and opens it.
    fn finish(self, sink: Sink, scratch: &ScratchFile) -> Result<PbfFile> {
        if self.deleted > 0 {
            self.ctx.info(format!(
                "{}: objects that were deleted in an editor (action=\"delete\") are left out: {}",
                self.input.path().display(),
                self.deleted
            ));
        }
        let mut sink = sink.close()?;
        if self.is_history {
            sink.require(feature::HISTORY);
        }
        sink.finish()?;
        let mut file = PbfFile::of_input(
            Input::from_converted(scratch.open()?, self.input)?,
            self.ctx,
        )?;
        file.header.text = self.document_header.text.clone();
        file.header.text.is_change = self.format.is_change();
        file.header.text.is_data = self.format.is_data();
        file.header.is_converted = true;
        if !file.header.has(feature::HISTORY) && has_unsorted_versions(&file, self.ctx)? {
            file.header.set_required(feature::HISTORY, true);
        }
        file.changesets = (self.changesets > 0).then(|| {
            Box::new(TextChangesets {
                text: self.input.clone(),
                count: self.changesets,
            })
        });
        Ok(file)
    }
}

/// Returns a file with the objects of `file` in canonical order, and the plan of the returned file. If `file` is in
/// order, it is returned unchanged. Otherwise its objects are sorted into a temporary file in the directory `scratch`,
/// with the compression of `write`, and the user is informed. If the header declares canonical order, `file` is sorted
/// only if an index contradicts the header. The order of the versions of an object is not checked if they are in
/// different blobs.
pub(crate) fn sort_if_needed(
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
    let (scratch, output) = OutputOptions::create_scratch(scratch, write.compression)?;
    let original = file.input.clone();
    let output = output.header(HeaderOptions {
        generator: file.header.writing_program.clone(),
        ..HeaderOptions::default()
    });
    sort_files(vec![file], &SortJob::new(output, Dedupe::KeepAll), ctx)?;
    let file = PbfFile::of_input(Input::from_sorted(scratch.open()?, &original)?, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Order, ctx)?;
    Ok((file, plan))
}

/// Builds blocks from objects, in the order of `objects`.
fn build_blocks(
    builder: &mut BlockBuilder,
    objects: &ChangeSet,
) -> FormatResult<Vec<EncodedBlock>> {
    for (_, object) in objects.iter() {
        builder.add(&object)?;
    }
    builder.end_block();
    Ok(builder.take_blocks())
}

/// Returns the PBF header for a converted text input, with the bounding box, generator and replication state that the
/// text declares.
fn pbf_header(document_header: &DocumentHeader) -> HeaderBlock {
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
