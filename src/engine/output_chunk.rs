//! Chunks of an output. Encoder threads decode them, and encode their objects in another form.

use crate::error::{Error, FormatResult, Result};
use crate::file::BlobDecoder;
use crate::io::Input;
use crate::pbf::{BlobEntry, Decompressor, EncodedBlock, EncodedFrame};
use crate::runtime::Context;

/// A chunk of an output.
pub(crate) enum OutputChunk {
    /// A blob of an input.
    Blob(Input, BlobEntry),
    /// Encoded blobs.
    Frames(Vec<EncodedFrame>),
    /// Small, uncompressed blocks.
    Blocks(Vec<EncodedBlock>),
}

/// Decodes chunks. Each thread has its own reader.
pub(crate) struct OutputChunkReader {
    ctx: Context,
    blobs: Option<BlobDecoder>,
    decompressor: Decompressor,
}

impl OutputChunkReader {
    pub(crate) fn new(ctx: &Context) -> Self {
        Self {
            ctx: ctx.clone(),
            blobs: None,
            decompressor: Decompressor::default(),
        }
    }

    /// Returns the decoder of the blobs of an input.
    pub(crate) fn decoder_of(&mut self, input: &Input) -> &mut BlobDecoder {
        let new = || BlobDecoder::new(input, &self.ctx);
        let blobs = self.blobs.get_or_insert_with(new);
        blobs.switch_to_input(input);
        blobs
    }

    /// Calls `work` with the payload of each block of a chunk.
    pub(crate) fn for_each_payload(
        &mut self,
        chunk: &OutputChunk,
        mut work: impl FnMut(&[u8]) -> FormatResult<()>,
    ) -> Result<()> {
        match chunk {
            OutputChunk::Blob(input, entry) => self.decoder_of(input).decode(entry, work),
            OutputChunk::Frames(frames) => frames.iter().try_for_each(|frame| {
                let payload = frame
                    .payload(&mut self.decompressor)
                    .map_err(Error::internal)?;
                work(payload).map_err(Error::internal)
            }),
            OutputChunk::Blocks(blocks) => {
                let mut blocks = blocks.iter();
                blocks.try_for_each(|block| work(&block.payload).map_err(Error::internal))
            }
        }
    }
}
