//! The sink of a command. It receives the outcome of each blob in file order, and writes a file.

use super::block_packer::{BlockPacker, Encoders};
use super::output_options::{Format, OutputOptions};
use super::text_sink::{TextSink, UnflushedText};
use crate::error::Result;
use crate::file::{PbfWriter, WriteOptions, Written};
use crate::io::{Input, OpenOutput, SizeHint};
use crate::pbf::{BlobEntry, EncodedBlock, EncodedFrame, HeaderBlock};
use crate::runtime::Context;
use serde::Serialize;
use std::rc::Rc;

/// The outcome of an input blob: the part of the output that replaces it.
#[derive(Debug, Clone)]
pub(crate) enum BlobOutcome {
    /// Nothing is written.
    Drop,
    /// The blob is copied unchanged, as a range of the input.
    Copy(BlobEntry),
    /// The blob is replaced by encoded blobs.
    Frames(Vec<EncodedFrame>),
    /// The blob is replaced by small blocks, which are joined with the small blocks of adjacent blobs.
    Blocks(Vec<EncodedBlock>),
    /// Encoded blobs that replace no input blob are written.
    Insert(Vec<EncodedFrame>),
}

/// The properties of an output, and counts of the input blobs by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct WriteSummary {
    /// The size, blobs and objects of the output.
    pub written: Written,
    /// The number of blobs that were copied unchanged.
    pub blobs_copied: u64,
    /// The number of blobs that were left out undecoded. Their index entries show that no object is needed.
    pub blobs_skipped: u64,
    /// The number of blobs from which some or all objects were written to new blobs.
    pub blobs_rewritten: u64,
}

/// Writes one file, in any format, from the outcomes of blobs.
pub(crate) struct Sink {
    output: SinkOutput,
    summary: WriteSummary,
}

enum SinkOutput {
    Pbf(Box<BlockPacker>),
    Text(TextSink),
}

impl Sink {
    /// Opens the output and begins a file. Fails if the output exists and may not be overwritten, or if the file system
    /// has fewer free bytes than [`SizeHint::copied`].
    pub(crate) fn create(
        output: &OutputOptions,
        header: HeaderBlock,
        size_hint: SizeHint,
        ctx: &Context,
    ) -> Result<Self> {
        let write = output.write.for_header(&header);
        let open = OpenOutput::open(output.target.clone(), ctx)?;
        let encoders = Encoders::new(write, ctx);
        Self::begin_in_output(
            open,
            output.format.clone(),
            write,
            header,
            size_hint,
            &encoders,
            ctx,
        )
    }

    /// Begins a file in an open output. All outputs that are written at the same time share `encoders`.
    pub(crate) fn begin_in_output(
        output: OpenOutput,
        format: Format,
        write: WriteOptions,
        header: HeaderBlock,
        size_hint: SizeHint,
        encoders: &Rc<Encoders>,
        ctx: &Context,
    ) -> Result<Self> {
        let output = match format {
            Format::Pbf => {
                let outputs = size_hint.others + 1;
                let writer = PbfWriter::with_output(output, header, write, size_hint, ctx)?;
                SinkOutput::Pbf(Box::new(BlockPacker::new(writer, encoders, outputs)))
            }
            Format::Text(text) => {
                SinkOutput::Text(TextSink::create(output, &header, text, &encoders.text)?)
            }
        };
        Ok(Self {
            output,
            summary: WriteSummary::default(),
        })
    }

    /// Appends the outcome of a blob of `input`. Counts the blob unless the outcome is [`BlobOutcome::Drop`] or
    /// [`BlobOutcome::Insert`]. Blobs that are left out undecoded are counted by
    /// [`count_skipped_blob`](Self::count_skipped_blob).
    pub(crate) fn add(&mut self, input: &Input, outcome: BlobOutcome) -> Result<()> {
        match outcome {
            BlobOutcome::Drop => Ok(()),
            BlobOutcome::Copy(entry) => match &mut self.output {
                SinkOutput::Pbf(packer) => {
                    if packer.changes_objects() || packer.recompresses() {
                        self.summary.blobs_rewritten += 1
                    } else {
                        self.summary.blobs_copied += 1
                    }
                    packer.copy(input, entry)
                }
                SinkOutput::Text(text) => {
                    self.summary.blobs_rewritten += 1;
                    text.add_blob(input, entry)
                }
            },
            BlobOutcome::Frames(frames) => {
                self.summary.blobs_rewritten += 1;
                self.append(frames)
            }
            BlobOutcome::Blocks(blocks) => {
                self.summary.blobs_rewritten += 1;
                let mut blocks = blocks.into_iter();
                blocks.try_for_each(|block| self.append_block(block))
            }
            BlobOutcome::Insert(frames) => self.append(frames),
        }
    }

    /// Appends encoded blobs without counting an input blob.
    pub(crate) fn append(&mut self, frames: Vec<EncodedFrame>) -> Result<()> {
        match &mut self.output {
            _ if frames.is_empty() => Ok(()),
            SinkOutput::Pbf(packer) => packer.add_frames(frames),
            SinkOutput::Text(text) => text.add_frames(frames),
        }
    }

    /// Appends a small block without counting an input blob.
    pub(crate) fn append_block(&mut self, block: EncodedBlock) -> Result<()> {
        match &mut self.output {
            SinkOutput::Pbf(packer) => packer.add_block(block),
            SinkOutput::Text(text) => text.add_block(block),
        }
    }

    /// Appends `text`, which is in the format of the output, after all objects appended so far. Has no effect on a PBF
    /// file.
    pub(crate) fn add_text(&mut self, text: &str) -> Result<()> {
        match &mut self.output {
            SinkOutput::Pbf(_) => Ok(()),
            SinkOutput::Text(sink) => sink.add_text(text),
        }
    }

    /// Counts an input blob that was left out without a visit to its objects.
    pub(crate) fn count_skipped_blob(&mut self) {
        self.summary.blobs_skipped += 1;
    }

    /// Ends the block that is being joined from small blocks, and starts to encode it on another thread.
    pub(crate) fn end_block(&mut self) -> Result<()> {
        match &mut self.output {
            SinkOutput::Pbf(packer) => packer.end_block(),
            SinkOutput::Text(text) => text.end_block(),
        }
    }

    /// Writes all remaining objects, and waits until they are written.
    pub(crate) fn close(self) -> Result<ClosedSink> {
        let file = match self.output {
            SinkOutput::Pbf(packer) => ClosedFile::Pbf(Box::new(packer.finish()?)),
            SinkOutput::Text(text) => ClosedFile::Text(Box::new(text.finish()?)),
        };
        Ok(ClosedSink {
            file,
            summary: self.summary,
        })
    }

    /// Completes the file, flushes it to disk and gives it its name.
    pub(crate) fn finish(self) -> Result<WriteSummary> {
        self.close()?.finish()
    }
}

/// A file that is not complete yet, although all its objects are written. It can be sent to another thread.
pub(crate) struct ClosedSink {
    file: ClosedFile,
    summary: WriteSummary,
}

enum ClosedFile {
    Pbf(Box<PbfWriter>),
    Text(Box<UnflushedText>),
}

impl ClosedSink {
    /// Declares in the header of a PBF file that readers must support `feature`. Has no effect on a text file, whose
    /// header cannot declare features.
    pub(crate) fn require(&mut self, feature: &str) {
        if let ClosedFile::Pbf(writer) = &mut self.file {
            writer.require(feature);
        }
    }

    /// Removes the declaration of an optional feature from the header of a PBF file. Has no effect on a text file or on
    /// a stream, whose header is written first.
    pub(crate) fn retract(&mut self, feature: &str) {
        if let ClosedFile::Pbf(writer) = &mut self.file {
            writer.retract(feature);
        }
    }

    /// Begins a table of ids after the blobs, and returns the writer. Returns `None` if the file gets no such table.
    pub(crate) fn begin_id_table(&mut self) -> Option<&mut PbfWriter> {
        match &mut self.file {
            ClosedFile::Pbf(writer) => writer.begin_id_table().then_some(writer),
            ClosedFile::Text(_) => None,
        }
    }

    /// Completes the file, flushes it to disk and gives it its name.
    pub(crate) fn finish(self) -> Result<WriteSummary> {
        let written = match self.file {
            ClosedFile::Pbf(writer) => writer.finish()?,
            ClosedFile::Text(text) => text.finish()?,
        };
        // `add` counted every blob to recompress as rewritten, but the writer copied the blobs that already had the
        // right compression.
        let kept = written
            .blobs_copied
            .saturating_sub(self.summary.blobs_copied);
        Ok(WriteSummary {
            written,
            blobs_copied: self.summary.blobs_copied + kept,
            blobs_rewritten: self.summary.blobs_rewritten.saturating_sub(kept),
            ..self.summary
        })
    }
}
