//! The sink of a command: takes what becomes of each blob, in file order, and writes a PBF file.

use super::block_packer::{BlockPacker, Encoders};
use crate::error::Result;
use crate::file::{PbfWriter, WriteOptions, Written};
use crate::io::{Input, OpenOutput, OutputTarget, SizeHint};
use crate::pbf::{BlobEntry, EncodedBlock, EncodedFrame, HeaderBlock};
use crate::runtime::Context;
use serde::Serialize;
use std::rc::Rc;

/// What an output gets for a blob of the input.
#[derive(Debug)]
pub(crate) enum BlobOutcome {
    /// Nothing.
    Drop,
    /// The blob as it is: a range of the input.
    Copy(BlobEntry),
    /// Blobs that were encoded in its place.
    Frames(Vec<EncodedFrame>),
    /// Small blocks in its place, to be joined with their neighbours.
    Blocks(Vec<EncodedBlock>),
}

/// Counts of the blobs of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct WriteSummary {
    /// The file that was written.
    pub written: Written,
    /// Blobs that were copied as they were.
    pub blobs_copied: u64,
    /// Blobs that were skipped without being read.
    pub blobs_skipped: u64,
    /// Blobs that were written anew, as a whole or in part.
    pub blobs_rewritten: u64,
}

/// Writes one PBF file from outcomes.
pub(crate) struct Sink<'f> {
    packer: BlockPacker<'f>,
    summary: WriteSummary,
}

impl<'f> Sink<'f> {
    /// Begins a file.
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

    /// Begins a file in an output that is open: one of `outputs` that are written at the same time and share `encoders`.
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

    /// A sink on top of a writer; `encoders` compress the blocks that are joined.
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

    /// Appends what becomes of a blob of `input`.
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

    /// Appends blobs that replace none of the input.
    pub(crate) fn append(&mut self, frames: Vec<EncodedFrame>) -> Result<()> {
        match frames.is_empty() {
            true => Ok(()),
            false => self.packer.frames(frames),
        }
    }

    /// Appends a block that replaces none of the input, to be joined with its neighbours.
    pub(crate) fn append_block(&mut self, block: EncodedBlock) -> Result<()> {
        self.packer.block(block)
    }

    /// Counts a blob that was skipped.
    pub(crate) fn skip(&mut self) {
        self.summary.blobs_skipped += 1;
    }

    /// Has the block that is being joined encoded: what comes next begins another.
    pub(crate) fn end_block(&mut self) -> Result<()> {
        self.packer.end_block()
    }

    /// Waits for all blocks, and gives the writer back for the file to be ended.
    pub(crate) fn into_writer(self) -> Result<(PbfWriter<'f>, WriteSummary)> {
        Ok((self.packer.finish()?, self.summary))
    }

    /// Ends the file, which takes its name.
    pub(crate) fn finish(self) -> Result<WriteSummary> {
        let (writer, summary) = self.into_writer()?;
        Ok(WriteSummary {
            written: writer.finish()?,
            ..summary
        })
    }
}
