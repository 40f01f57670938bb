//! Writes files as text: OSM XML or OPL.

use super::{Options, Summary, wanted_entries};
use crate::error::{Error, FormatError, Result};
use crate::file::{BlobPass, BlobReader, PbfFile};
use crate::formats::{
    DocumentHeader, EncodedText, OplText, TextCompression, TextEncoder, TextFormat, TextOutput,
    XmlText,
};
use crate::osm::KindSet;
use crate::pbf::{BlobEntry, Block, HeaderBlock, InfoFields, Object, clean_block, feature};
use crate::runtime::Context;

/// Writes the objects of some files as text, in the order of the files.
pub(super) fn write(
    files: &[PbfFile],
    mut header: HeaderBlock,
    format: TextFormat,
    compression: TextCompression,
    options: &Options,
    ctx: &Context,
) -> Result<Summary> {
    options.output.header.apply(&mut header);
    let mut output = TextOutput::compressed(options.output.target.clone(), compression)?;
    if format == TextFormat::Osm {
        output.write(&XmlText::prologue(&DocumentHeader::of(&header)))?;
    }
    let mut summary = Summary::default();
    let (mut unrepresentable, mut count) = (Unrepresentable::default(), 0);
    for file in files {
        let wanted = wanted_entries(file, options.kinds, ctx, |entry| {
            ctx.stats.skip_blob(entry.is_verified());
            summary.blobs_skipped += 1;
        })?;
        // The text of a blob is about twenty times as long as the blob.
        let pass = BlobPass::new("write text", &file.input, ctx)
            .with_budget(ctx.byte_budget() * 4)
            .holding(20);
        pass.run(
            wanted,
            || TextWorker::new(&header, format, compression, options),
            |reader, worker, entry| worker.encode_blob(reader, &entry),
            |(chunk, objects, lost)| {
                summary.blobs_rewritten += 1;
                count += objects;
                unrepresentable.add(&lost);
                output.chunk(&chunk)
            },
        )?;
    }
    if format == TextFormat::Osm {
        output.write(XmlText::EPILOGUE)?;
    }
    summary.written.objects = Some(count);
    summary.written.bytes = output.finish()?;
    unrepresentable.warn(ctx);
    Ok(summary)
}

/// The number of values that the text does not represent faithfully.
#[derive(Debug, Clone, Copy, Default)]
struct Unrepresentable {
    /// The number of nodes with coordinates finer than 1e-7 degree.
    inexact: u64,
    /// The number of characters that XML 1.0 does not allow, which are written as references.
    inexpressible: u64,
}

impl Unrepresentable {
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

/// Converts blobs to text. Each worker thread has its own `TextWorker`.
struct TextWorker {
    encoder: TextEncoder,
    format: TextFormat,
    kinds: KindSet,
    clean: InfoFields,
    cleaned: Vec<u8>,
    is_history: bool,
}

impl TextWorker {
    fn new(
        header: &HeaderBlock,
        format: TextFormat,
        compression: TextCompression,
        options: &Options,
    ) -> Self {
        Self {
            encoder: TextEncoder::new(compression),
            format,
            kinds: options.kinds,
            clean: options.clean,
            cleaned: Vec::new(),
            is_history: header.has(feature::HISTORY),
        }
    }

    /// Returns the encoded text of a blob's objects of wanted kinds, the number of these objects, and the
    /// counts of values that the text cannot represent.
    fn encode_blob(
        &mut self,
        reader: &mut BlobReader<'_>,
        entry: &BlobEntry,
    ) -> Result<(EncodedText, u64, Unrepresentable)> {
        let (text, objects, unrepresentable) = reader.decode(entry, |payload| {
            let cleaned = match self.clean.is_empty() {
                true => payload,
                false => {
                    self.cleaned.clear();
                    clean_block(payload, self.clean, &mut self.cleaned)?;
                    &self.cleaned
                }
            };
            text_of(cleaned, self.format, self.kinds, self.is_history)
        })?;
        let chunk = self.encoder.encode(text);
        let chunk = chunk.map_err(|error| Error::Internal(error.to_string()))?;
        Ok((chunk, objects, unrepresentable))
    }
}

fn text_of(
    payload: &[u8],
    format: TextFormat,
    kinds: KindSet,
    is_history: bool,
) -> Result<(String, u64, Unrepresentable), FormatError> {
    let block = Block::parse(payload)?;
    let (mut opl, mut xml) = (OplText::default(), XmlText::with_visibility(is_history));
    let (mut objects, mut unrepresentable) = (0, Unrepresentable::default());
    let (mut cursor, mut plain) = (block.cursor(), Object::default());
    while let Some(object) = cursor.next()? {
        if !kinds.contains(object.key.0) {
            continue;
        }
        plain.fill(&object, &block)?;
        objects += 1;
        unrepresentable.inexact += u64::from(!object.has_exact_location(&block.units)?);
        match format {
            TextFormat::Opl => opl.put(&plain),
            TextFormat::Osm | TextFormat::OsmChange => xml.put(&plain),
        }
    }
    let (xml, inexpressible) = xml.finish();
    unrepresentable.inexpressible = inexpressible;
    Ok((
        if xml.is_empty() { opl.finish() } else { xml },
        objects,
        unrepresentable,
    ))
}
