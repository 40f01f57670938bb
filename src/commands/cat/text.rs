//! Files as text: OSM XML or OPL.

use super::{Options, Summary, wanted_entries};
use crate::error::{Error, FormatError, Result};
use crate::file::{BlobReader, PbfFile};
use crate::formats::{
    DocumentHeader, EncodedText, OplText, TextCompression, TextEncoder, TextFormat, TextOutput,
    XmlText,
};
use crate::osm::KindSet;
use crate::pbf::{
    BlobEntry, HeaderBlock, InfoFields, ParsedBlock, PlainObject, clean_block, feature,
};
use crate::runtime::{Context, parallel_classify_phase};

/// Writes files behind each other as text.
pub(super) fn write(
    files: &[PbfFile],
    mut header: HeaderBlock,
    format: TextFormat,
    compression: TextCompression,
    options: &Options,
    ctx: &Context,
) -> Result<Summary> {
    options.header.apply(&mut header);
    let mut output = TextOutput::compressed(options.output.clone(), compression)?;
    if format == TextFormat::Osm {
        output.write(&XmlText::prologue(&DocumentHeader::of(&header)))?;
    }
    let mut summary = Summary::default();
    let (mut losses, mut count) = (Losses::default(), 0);
    for file in files {
        let wanted = wanted_entries(file, options.kinds, &mut summary, ctx)?;
        let bytes = |entry: &BlobEntry| u64::from(entry.frame_len);
        let phase = ctx.phase("write text", wanted.iter().map(bytes).sum());
        parallel_classify_phase(
            ctx.jobs,
            ctx.byte_budget() * 4,
            wanted.into_iter().map(Ok),
            // Text takes about twenty times what a blob does.
            |entry| bytes(entry) * 20,
            || TextWorker::new(file, &header, format, compression, options, ctx),
            |worker, entry| Ok((bytes(&entry), worker.encode_blob(&entry)?)),
            |(bytes, (chunk, objects, lost))| {
                phase.advance(bytes);
                summary.blobs_rewritten += 1;
                count += objects;
                losses.add(&lost);
                output.chunk(&chunk)
            },
        )?;
    }
    if format == TextFormat::Osm {
        output.write(XmlText::EPILOGUE)?;
    }
    summary.written.objects = Some(count);
    summary.written.bytes = output.finish()?;
    losses.warn(ctx);
    Ok(summary)
}

/// What text cannot say.
#[derive(Debug, Clone, Copy, Default)]
struct Losses {
    /// Nodes whose coordinates are finer than 1e-7 degree.
    inexact: u64,
    /// Characters that XML does not know.
    inexpressible: u64,
}

impl Losses {
    const fn add(&mut self, other: &Self) {
        self.inexact += other.inexact;
        self.inexpressible += other.inexpressible;
    }

    fn warn(&self, ctx: &Context) {
        let counted = |count: u64, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {many}"),
        };
        if self.inexact > 0 {
            let nodes = counted(self.inexact, "node has", "nodes have");
            ctx.warn(format!(
                "{nodes} coordinates finer than 1e-7 degree: they were rounded"
            ));
        }
        if self.inexpressible > 0 {
            let (one, many) = (
                "control character, which XML 1.0 does not know, was",
                "control characters, which XML 1.0 does not know, were",
            );
            let characters = counted(self.inexpressible, one, many);
            ctx.warn(format!(
                "{characters} written as references like &#x1;: strict readers will refuse them \
                 (OPL has no such limit)"
            ));
        }
    }
}

/// Makes text of blobs. One a worker.
struct TextWorker<'f> {
    reader: BlobReader<'f>,
    encoder: TextEncoder,
    format: TextFormat,
    kinds: KindSet,
    clean: InfoFields,
    cleaned: Vec<u8>,
    is_history: bool,
}

impl<'f> TextWorker<'f> {
    fn new(
        file: &'f PbfFile,
        header: &HeaderBlock,
        format: TextFormat,
        compression: TextCompression,
        options: &Options,
        ctx: &Context,
    ) -> Self {
        Self {
            reader: BlobReader::new(&file.input, ctx),
            encoder: TextEncoder::new(compression),
            format,
            kinds: options.kinds,
            clean: options.clean,
            cleaned: Vec::new(),
            is_history: header.has(feature::HISTORY),
        }
    }

    /// The text of a blob's objects, how many there are, and what is lost.
    fn encode_blob(&mut self, entry: &BlobEntry) -> Result<(EncodedText, u64, Losses)> {
        let payload = self.reader.payload(entry)?;
        let cleaned = match self.clean.is_empty() {
            true => Ok(payload),
            false => {
                self.cleaned.clear();
                clean_block(payload, self.clean, &mut self.cleaned)
                    .map(|()| self.cleaned.as_slice())
            }
        };
        let told =
            cleaned.and_then(|payload| text_of(payload, self.format, self.kinds, self.is_history));
        let (text, objects, losses) = told.map_err(|error| self.reader.error(entry, error))?;
        let chunk = self.encoder.encode(text);
        let chunk = chunk.map_err(|error| Error::Internal(error.to_string()))?;
        Ok((chunk, objects, losses))
    }
}

fn text_of(
    payload: &[u8],
    format: TextFormat,
    kinds: KindSet,
    is_history: bool,
) -> Result<(String, u64, Losses), FormatError> {
    let block = ParsedBlock::parse(payload)?;
    let (mut opl, mut xml) = (OplText::default(), XmlText::of_history(is_history));
    let (mut objects, mut losses) = (0, Losses::default());
    let (mut cursor, mut plain) = (block.cursor(), PlainObject::default());
    while let Some(object) = cursor.next()? {
        if !kinds.contains(object.key.0) {
            continue;
        }
        plain.fill(&object, &block)?;
        objects += 1;
        losses.inexact += u64::from(plain.location_e7().is_none());
        match format {
            TextFormat::Opl => opl.put(&plain.as_object()),
            TextFormat::Osm | TextFormat::OsmChange => xml.put(&plain.as_object()),
        }
    }
    let (xml, inexpressible) = xml.finish();
    losses.inexpressible = inexpressible;
    Ok((
        if xml.is_empty() { opl.finish() } else { xml },
        objects,
        losses,
    ))
}
