//! Writes text files, with or without compression. A file gets its name only when it is complete.

use super::text_compression::TextCompression;
use super::text_encoder::{EncodedText, GzipTrailer, TextEncoder};
use crate::error::{FileResult, Result};
use crate::io::{OpenOutput, OutputTarget, StreamOutput};
use crate::runtime::Context;
use bzip2::write::BzEncoder;
use std::io::Write;

/// A text file, or standard output.
pub struct TextOutput {
    output: StreamOutput,
    compression: TextCompression,
    encoder: TextEncoder,
    tally: GzipTrailer,
    bzip2: Option<BzEncoder<Vec<u8>>>,
    /// Text that is not in a chunk yet.
    text: String,
    /// Encoded bytes that are not written to the file yet.
    bytes: Vec<u8>,
}

impl std::fmt::Debug for TextOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextOutput")
            .field("output", &self.output)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

/// The number of bytes of text per compressed chunk.
const CHUNK: usize = 1 << 20;
/// The minimum number of bytes per write to the file.
const WRITE_LEN: usize = 1 << 16;

impl TextOutput {
    /// Creates an output. The extension of the file name determines the compression; see [`TextCompression::of_name`].
    pub fn create(target: OutputTarget, ctx: &Context) -> Result<Self> {
        let compression = TextCompression::of_name(target.path());
        Self::compressed(target, compression, ctx)
    }

    /// Creates an output with the given compression. The file name has no effect on the compression.
    pub fn compressed(
        target: OutputTarget,
        compression: TextCompression,
        ctx: &Context,
    ) -> Result<Self> {
        let output = OpenOutput::open(target, ctx)?;
        Ok(Self::from_open_output(output, compression))
    }

    /// Begins a text file in an open output.
    pub(crate) fn from_open_output(output: OpenOutput, compression: TextCompression) -> Self {
        Self {
            output: StreamOutput::new(output),
            compression,
            encoder: TextEncoder::new(compression),
            tally: GzipTrailer::default(),
            bzip2: (compression == TextCompression::Bzip2)
                .then(|| BzEncoder::new(Vec::new(), bzip2::Compression::best())),
            text: String::new(),
            bytes: TextEncoder::header(compression).to_vec(),
        }
    }

    /// Appends text.
    pub fn write(&mut self, text: &str) -> Result<()> {
        self.text.push_str(text);
        let is_enough = match self.compression {
            TextCompression::None => self.text.len() >= WRITE_LEN,
            _ => self.text.len() >= CHUNK,
        };
        if is_enough { self.end_chunk() } else { Ok(()) }
    }

    /// Appends a chunk that a worker has encoded. The chunk follows all text that was written before this call.
    pub fn chunk(&mut self, chunk: EncodedText) -> Result<()> {
        self.end_chunk()?;
        self.put(chunk)
    }

    /// Appends a chunk to the buffer, and writes the buffer to the file when it is long enough.
    fn put(&mut self, chunk: EncodedText) -> Result<()> {
        self.tally.add(&chunk);
        match &mut self.bzip2 {
            // Writes a long chunk directly, without a copy into the buffer.
            None if chunk.bytes.len() >= WRITE_LEN => {
                self.flush()?;
                return self.output.write_owned(chunk.bytes);
            }
            None => self.bytes.extend_from_slice(&chunk.bytes),
            Some(bzip2) => {
                let written = bzip2.write_all(&chunk.bytes);
                written.for_path(self.output.path(), "cannot write")?;
                self.bytes.append(bzip2.get_mut());
            }
        }
        if self.bytes.len() >= WRITE_LEN {
            self.flush()?;
        }
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.text);
        let chunk = self.encoder.encode(text);
        self.put(chunk.for_path(self.output.path(), "cannot write")?)
    }

    fn flush(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        self.output.write(&bytes)?;
        self.bytes = bytes;
        self.bytes.clear();
        Ok(())
    }

    /// Writes the buffered text and the trailer, flushes the file to disk, and gives the file its name. Returns the
    /// size of the file in bytes.
    pub fn finish(self) -> Result<u64> {
        self.finish_uncommitted()?.commit()
    }

    /// Ends the file as [`finish`](Self::finish) does, but does not wait until it is on disk.
    pub(crate) fn finish_unflushed(self) -> Result<u64> {
        self.finish_uncommitted()?.commit_unflushed()
    }

    /// Writes the buffered text and the trailer. The file gets its name when the returned output is committed.
    pub(crate) fn finish_uncommitted(mut self) -> Result<StreamOutput> {
        self.end_chunk()?;
        if self.compression == TextCompression::Zstd
            && self.output.len() == 0
            && self.bytes.is_empty()
        {
            // A zstd file without frames is not valid, so an empty file gets an empty frame.
            let chunk = self.encoder.encode(String::new());
            self.put(chunk.for_path(self.output.path(), "cannot write")?)?;
        }
        if let Some(bzip2) = self.bzip2.take() {
            let rest = bzip2.finish();
            self.bytes
                .extend(rest.for_path(self.output.path(), "cannot write")?);
        }
        let tail = self.tally.trailer(self.compression);
        self.bytes.extend_from_slice(&tail);
        self.flush()?;
        Ok(self.output)
    }
}
