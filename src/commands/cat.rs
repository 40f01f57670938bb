//! `cat`: concatenate files and give the result a table of contents. Blobs pass through. Or tell their objects
//! as text.

mod changesets;
mod text;

use crate::engine::headers::{HeaderOptions, merged_header};
use crate::engine::rewrite::{Made, Rewrite};
use crate::engine::{copy_size_hint, input};
use crate::error::{FormatError, Result};
use crate::file::{BlobPlan, BlobReader, PbfFile, PbfWriter, PlanNeeds, WriteOptions, Written};
use crate::formats::{TextCompression, TextFormat};
use crate::io::{OutputTarget, SizeHint};
use crate::osm::KindSet;
use crate::pbf::{
    BlobEntry, BlobFlags, FrameEncoder, InfoFields, ParsedBlock, SourceStrings, clean_block,
    feature,
};
use crate::runtime::Context;
use serde::Serialize;
use std::path::PathBuf;

/// What to concatenate, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Input files, in order.
    pub inputs: Vec<PathBuf>,
    /// Where the result goes.
    pub output: OutputTarget,
    /// What it is.
    pub format: Format,
    /// How it is written.
    pub write: WriteOptions,
    /// What its header says.
    pub header: HeaderOptions,
    /// Kinds of objects to keep.
    pub kinds: KindSet,
    /// Metadata that is left out.
    pub clean: InfoFields,
    /// Decode every blob, whatever index an input has.
    pub rescan: bool,
}

/// What a file is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// PBF.
    #[default]
    Pbf,
    /// Text: OSM XML or OPL.
    Text(TextFormat, TextCompression),
}

/// What `cat` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// The file that was written.
    pub written: Written,
    /// Blobs that were copied as they were.
    pub blobs_copied: u64,
    /// Blobs that were passed over: they hold no object of the kinds wanted.
    pub blobs_skipped: u64,
    /// Blobs of several kinds that had to be taken apart, and those of which metadata was left out.
    pub blobs_rewritten: u64,
}

/// Concatenates.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let inputs = options.inputs.iter();
    let inputs = inputs
        .map(|path| input::open_any(path, ctx))
        .collect::<Result<Vec<_>>>()?;
    if let Some(inputs) = changesets::of(&inputs)? {
        return changesets::write(&inputs, options, ctx);
    }
    let compression = options.write.compression;
    let files = inputs.into_iter();
    let files = files.map(|(input, format)| input::to_pbf(input, format, compression, ctx));
    let files = files.collect::<Result<Vec<_>>>()?;
    let mut header = merged_header(&files)?;
    if let Format::Text(format, compression) = options.format {
        return text::write(&files, header, format, compression, options, ctx);
    }
    if options.output.is_stream() {
        // A stream's header is written first, so that only what is known now can be declared.
        let verified = |file: &PbfFile| file.toc.as_ref().is_some_and(|toc| toc.flags.sorted);
        header.set_optional(
            feature::SORTED,
            files.len() == 1 && files.iter().all(verified),
        );
    }
    options.header.apply(&mut header);
    let mut size_hint = SizeHint::default();
    for file in &files {
        size_hint = size_hint.and(copy_size_hint(file));
    }
    if options.kinds != KindSet::ALL || !options.clean.is_empty() {
        // How much is left out is not known.
        size_hint.bytes = 0;
        size_hint.copied = 0;
    }
    let mut writer = PbfWriter::create(
        options.output.clone(),
        header,
        options.write,
        size_hint,
        ctx,
    )?;
    let mut summary = Summary::default();
    // Without a table nothing of a blob needs to be known but, perhaps, its kinds.
    let needs = match (options.write.toc, options.kinds == KindSet::ALL) {
        (false, true) if !options.write.blob_index => PlanNeeds::Frames,
        (false, _) => PlanNeeds::Ranges,
        (true, _) => PlanNeeds::Order,
    };
    for file in &files {
        if !options.clean.is_empty() {
            write_clean(file, options, &mut writer, &mut summary, ctx)?;
            continue;
        }
        let mut pick = Pick {
            file,
            writer: &mut writer,
            kinds: options.kinds,
            reader: BlobReader::new(&file.input, ctx),
            encoder: FrameEncoder::new(options.write.compression, options.write.blob_index),
            summary: &mut summary,
            ctx,
        };
        if options.rescan {
            BlobPlan::rescan(file, ctx, |entry| pick.blob(entry))?;
        } else {
            BlobPlan::open_with(file, needs, ctx, |entry| pick.blob(entry))?;
        }
    }
    summary.written = writer.finish()?;
    Ok(summary)
}

/// Writes a file without some metadata: every blob anew.
fn write_clean<'f>(
    file: &'f PbfFile,
    options: &Options,
    writer: &mut PbfWriter<'f>,
    summary: &mut Summary,
    ctx: &Context,
) -> Result<()> {
    let rewrite = Rewrite {
        name: "clean",
        file,
        entries: wanted_entries(file, options.kinds, summary, ctx)?,
        write: options.write,
    };
    summary.blobs_rewritten +=
        rewrite.run(writer, ctx, Vec::new, |cleaned, entry, payload, encoder| {
            cleaned.clear();
            clean_block(payload, options.clean, cleaned)?;
            // Versions that were not in order are when there are none.
            let is_same = entry.flags.has(BlobFlags::SORTED);
            match options.kinds == KindSet::ALL {
                true if is_same => encoder.add_payload_like(cleaned, entry)?,
                true => encoder.add_payload(cleaned)?,
                false => take_kinds(cleaned, options.kinds, encoder)?,
            }
            Ok(Made::New)
        })?;
    Ok(())
}

/// The blobs of a file that may have objects of some kinds.
fn wanted_entries(
    file: &PbfFile,
    kinds: KindSet,
    summary: &mut Summary,
    ctx: &Context,
) -> Result<Vec<BlobEntry>> {
    let plan = BlobPlan::open(file, PlanNeeds::Frames, ctx)?;
    let may_be_wanted =
        |entry: &BlobEntry| !entry.is_indexed() || !entry.kinds.intersection(kinds).is_empty();
    let (wanted, rest): (Vec<_>, Vec<_>) = plan.entries.into_iter().partition(may_be_wanted);
    summary.blobs_skipped += rest.len() as u64;
    rest.iter()
        .for_each(|entry| ctx.stats.skip_blob(entry.is_verified()));
    Ok(wanted)
}

/// Decides blob by blob.
struct Pick<'a, 'f> {
    file: &'f PbfFile,
    writer: &'a mut PbfWriter<'f>,
    kinds: KindSet,
    reader: BlobReader<'f>,
    encoder: FrameEncoder,
    summary: &'a mut Summary,
    ctx: &'a Context,
}

impl Pick<'_, '_> {
    fn blob(&mut self, entry: &BlobEntry) -> Result<()> {
        let wanted = entry.kinds.intersection(self.kinds);
        if wanted == entry.kinds {
            self.summary.blobs_copied += 1;
            self.writer.copy(&self.file.input, entry)
        } else if wanted.is_empty() {
            self.summary.blobs_skipped += 1;
            self.ctx.stats.skip_blob(entry.is_verified());
            Ok(())
        } else {
            self.summary.blobs_rewritten += 1;
            let payload = self.reader.payload(entry)?;
            let taken = take_kinds(payload, self.kinds, &mut self.encoder);
            let frames = taken.and_then(|()| self.encoder.finish());
            let frames = frames.map_err(|error| self.reader.error(entry, error))?;
            frames.iter().try_for_each(|frame| self.writer.frame(frame))
        }
    }
}

/// Gives an encoder the objects of some kinds in a block.
fn take_kinds(
    payload: &[u8],
    kinds: KindSet,
    encoder: &mut FrameEncoder,
) -> Result<(), FormatError> {
    let block = ParsedBlock::parse(payload)?;
    let mut strings = SourceStrings::new(&block.strings);
    let mut objects = block.cursor();
    while let Some(object) = objects.next()? {
        if kinds.contains(object.key.0) {
            encoder.add_raw(&object, &block.units, &mut strings)?;
        }
    }
    encoder.end_block()
}
