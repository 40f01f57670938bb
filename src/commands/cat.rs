//! `cat`: concatenate files and give the result a table of contents. Blobs pass through.

use super::headers::{HeaderOptions, merged_header};
use super::{expected_copy, open_all};
use crate::Context;
use crate::error::Result;
use crate::osm::KindSet;
use crate::pbf::{BlobEntry, ParsedBlock, SourceStrings, feature};
use crate::read::{BlobPlan, BlobReader, PbfFile, PlanNeeds};
use crate::write::{Expected, FrameEncoder, OutputTarget, PbfWriter, WriteOptions, Written};
use serde::Serialize;
use std::path::PathBuf;

/// What to concatenate, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Input files, in order.
    pub inputs: Vec<PathBuf>,
    /// Where the result goes.
    pub output: OutputTarget,
    /// How it is written.
    pub write: WriteOptions,
    /// What its header says.
    pub header: HeaderOptions,
    /// Kinds of objects to keep.
    pub kinds: KindSet,
    /// Decode every blob, whatever index an input has.
    pub rescan: bool,
}

/// What `cat` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The file that was written.
    pub written: Written,
    /// Blobs that were copied as they were.
    pub blobs_copied: u64,
    /// Blobs that were passed over: they hold no object of the kinds wanted.
    pub blobs_skipped: u64,
    /// Blobs of several kinds that had to be taken apart.
    pub blobs_rewritten: u64,
}

/// Concatenates.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let files = open_all(&options.inputs, ctx)?;
    let mut header = merged_header(&files)?;
    if options.output.is_stream() {
        // A stream's header is written first, so that only what is known now can be declared.
        let verified = |file: &PbfFile| file.toc.as_ref().is_some_and(|toc| toc.flags.sorted);
        header.set_optional(
            feature::SORTED,
            files.len() == 1 && files.iter().all(verified),
        );
        if options.kinds != KindSet::ALL {
            header.set_required(feature::DENSE_NODES, true);
        }
    }
    options.header.apply(&mut header);
    let mut expected = Expected::default();
    for file in &files {
        expected = expected.and(expected_copy(file)?);
    }
    if options.kinds != KindSet::ALL {
        // How much is left out is not known.
        expected.bytes = 0;
        expected.copied = 0;
        expected.open = true;
    }
    let mut writer =
        PbfWriter::create(options.output.clone(), header, options.write, expected, ctx)?;
    let mut summary = Summary {
        written: Written::default(),
        blobs_copied: 0,
        blobs_skipped: 0,
        blobs_rewritten: 0,
    };
    // Without a table nothing of a blob needs to be known but, perhaps, its kinds.
    let without_table = options.output.is_stream() || !options.write.toc;
    let needs = match (without_table, options.kinds == KindSet::ALL) {
        (true, true) if !options.write.blob_index => PlanNeeds::Frames,
        (true, _) => PlanNeeds::Ranges,
        (false, _) => PlanNeeds::Order,
    };
    for file in &files {
        let mut pick = Pick {
            file,
            kinds: options.kinds,
            writer: &mut writer,
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

/// Decides blob by blob.
struct Pick<'a, 'f> {
    file: &'f PbfFile,
    kinds: KindSet,
    writer: &'a mut PbfWriter<'f>,
    reader: BlobReader<'f>,
    encoder: FrameEncoder,
    summary: &'a mut Summary,
    ctx: &'a Context,
}

impl Pick<'_, '_> {
    fn blob(&mut self, entry: &BlobEntry) -> Result<()> {
        let wanted = entry.kinds.intersection(self.kinds);
        if wanted == entry.kinds {
            self.summary.blobs_copied += u64::from(entry.blobs);
            self.writer.copy(&self.file.input, entry)
        } else if wanted.is_empty() {
            self.summary.blobs_skipped += u64::from(entry.blobs);
            self.ctx.stats.blobs_skipped.add(u64::from(entry.blobs));
            Ok(())
        } else {
            self.summary.blobs_rewritten += 1;
            self.rewrite(entry)
        }
    }

    /// Takes the wanted objects out of a blob of several kinds.
    fn rewrite(&mut self, entry: &BlobEntry) -> Result<()> {
        let payload = self.reader.payload(entry)?;
        let encoder = &mut self.encoder;
        let mut filter = || {
            let block = ParsedBlock::parse(payload)?;
            let mut strings = SourceStrings::new(&block.strings);
            let mut objects = block.cursor();
            while let Some(object) = objects.next()? {
                if self.kinds.contains(object.key.0) {
                    encoder.add_raw(&object, &block.scale, &mut strings)?;
                }
            }
            encoder.finish()
        };
        let frames = filter();
        let frames = frames.map_err(|error| self.reader.error(entry, error))?;
        frames.iter().try_for_each(|frame| self.writer.frame(frame))
    }
}
