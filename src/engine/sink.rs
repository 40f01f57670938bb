//! The sink of a command, which receives the outcome of each blob in file order and writes a PBF file.

use super::block_packer::{BlockPacker, Encoders};
use crate::error::Result;
use crate::file::{PbfWriter, WriteOptions, Written};
use crate::io::{Input, OpenOutput, OutputTarget, SizeHint};
use crate::pbf::{BlobEntry, EncodedBlock, EncodedFrame, HeaderBlock};
use crate::runtime::Context;
use serde::Serialize;
use std::rc::Rc;

/// The outcome of a blob of an input: the part of the output that replaces it.
#[derive(Debug, Clone)]
pub(crate) enum BlobOutcome {
    /// Nothing is written.
    Drop,
    /// The blob is copied unchanged, as a range of the input.
    Copy(BlobEntry),
    /// Encoded blobs replace the blob.
    Frames(Vec<EncodedFrame>),
    /// Small blocks replace the blob. They are joined with the small blocks of adjacent blobs.
    Blocks(Vec<EncodedBlock>),
}

/// The properties of an output, and the number of blobs of the input with each outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct WriteSummary {
    /// The length, blobs and objects of the output.
    pub written: Written,
    /// The number of blobs that were copied unchanged.
    pub blobs_copied: u64,
    /// The number of blobs that were left out by their index entries alone, without a visit to their objects.
    pub blobs_skipped: u64,
    /// The number of blobs whose objects were written to new blobs, all or some of them.
    pub blobs_rewritten: u64,
}

/// Writes one PBF file from the outcomes of blobs.
pub(crate) struct Sink<'f> {
    packer: BlockPacker<'f>,
    summary: WriteSummary,
}

impl<'f> Sink<'f> {
    /// Creates the output and begins a file. Fails if the output exists and may not be overwritten, or if the file
    /// system has less free space than [`SizeHint::copied`] bytes.
    pub(crate) fn create(
        target: OutputTarget,
        header: HeaderBlock,
        write: WriteOptions,
        size_hint: SizeHint,
        ctx: &Context,
    ) -> Result<Self> {
        let writer = PbfWriter::create(target, header, write, size_hint, ctx)?;
        Ok(Self::of_writer(writer, &Encoders::new(write, ctx), 1))
    }

    /// Begins a file in an open output: one of `outputs` outputs that are written at the same time and share
    /// `encoders`.
    pub(crate) fn in_output(
        output: OpenOutput,
        header: HeaderBlock,
        write: WriteOptions,
        size_hint: SizeHint,
        encoders: &Rc<Encoders>,
        outputs: usize,
        ctx: &Context,
    ) -> Result<Self> {
        let writer = PbfWriter::with_output(output, header, write, size_hint, ctx)?;
        Ok(Self::of_writer(writer, encoders, outputs))
    }

    /// A sink that writes to `writer`, one of `outputs` outputs that share `encoders`. The encoders compress joined
    /// blocks.
    pub(crate) fn of_writer(
        writer: PbfWriter<'f>,
        encoders: &Rc<Encoders>,
        outputs: usize,
    ) -> Self {
        Self {
            packer: BlockPacker::new(writer, encoders, outputs),
            summary: WriteSummary::default(),
        }
    }

    /// Appends the outcome of a blob of `input`, and counts the blob. [`BlobOutcome::Drop`] is not counted: see
    /// [`skip`](Self::skip).
    pub(crate) fn add(&mut self, input: &'f Input, outcome: BlobOutcome) -> Result<()> {
        match outcome {
            BlobOutcome::Drop => Ok(()),
            BlobOutcome::Copy(entry) => {
                self.summary.blobs_copied += 1;
                self.packer.copy(input, entry)
            }
            BlobOutcome::Frames(frames) => {
                self.summary.blobs_rewritten += 1;
                self.append(frames)
            }
            BlobOutcome::Blocks(blocks) => {
                self.summary.blobs_rewritten += 1;
                let mut blocks = blocks.into_iter();
                blocks.try_for_each(|block| self.packer.block(block))
            }
        }
    }

    /// Appends encoded blobs without counting a blob of the input.
    pub(crate) fn append(&mut self, frames: Vec<EncodedFrame>) -> Result<()> {
        match frames.is_empty() {
            true => Ok(()),
            false => self.packer.frames(frames),
        }
    }

    /// Appends a small block without counting a blob of the input.
    pub(crate) fn append_block(&mut self, block: EncodedBlock) -> Result<()> {
        self.packer.block(block)
    }

    /// Counts a blob of the input that was left out without a visit to its objects.
    pub(crate) fn skip(&mut self) {
        self.summary.blobs_skipped += 1;
    }

    /// Ends the full block that is being joined, and starts to encode it on another thread.
    pub(crate) fn end_block(&mut self) -> Result<()> {
        self.packer.end_block()
    }

    /// Waits until all blocks are encoded, and returns the writer, so that the caller can complete the file.
    pub(crate) fn into_writer(self) -> Result<(PbfWriter<'f>, WriteSummary)> {
        Ok((self.packer.finish()?, self.summary))
    }

    /// Completes the file, flushes it to disk and gives it its name.
    pub(crate) fn finish(self) -> Result<WriteSummary> {
        let (writer, summary) = self.into_writer()?;
        Ok(WriteSummary {
            written: writer.finish()?,
            ..summary
        })
    }
}
