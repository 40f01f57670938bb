//! Text as output: complete or not at all, compressed where its name says so.

use super::text_encoder::{EncodedText, Tally, TextCompression, TextEncoder};
use crate::error::{Error, Result};
use crate::io::{Output, OutputTarget, system};
use bzip2::write::BzEncoder;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// A text file, or standard output.
pub struct TextOutput {
    output: Output,
    file: File,
    compression: TextCompression,
    encoder: TextEncoder,
    tally: Tally,
    bzip2: Option<BzEncoder<Vec<u8>>>,
    /// Text that is no chunk yet.
    text: String,
    /// Bytes of chunks that were not handed to the system yet.
    bytes: Vec<u8>,
    /// How many were.
    len: u64,
}

impl std::fmt::Debug for TextOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextOutput")
            .field("output", &self.output)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

/// Bytes of text that make a chunk.
const CHUNK: usize = 1 << 20;
/// Bytes that are handed to the system at a time.
const AT_A_TIME: usize = 1 << 16;

impl TextOutput {
    /// Begins an output. A name that ends in `.gz`, `.bz2` or `.zst` is compressed.
    pub fn create(target: OutputTarget) -> Result<Self> {
        let compression = TextCompression::of_name(target.path());
        Self::compressed(target, compression)
    }

    /// Begins an output that is compressed whatever its name says.
    pub fn compressed(target: OutputTarget, compression: TextCompression) -> Result<Self> {
        let (output, file) = Output::create(target)?;
        Ok(Self {
            output,
            file,
            compression,
            encoder: TextEncoder::new(compression),
            tally: Tally::default(),
            bzip2: (compression == TextCompression::Bzip2)
                .then(|| BzEncoder::new(Vec::new(), bzip2::Compression::best())),
            text: String::new(),
            bytes: TextEncoder::head(compression).to_vec(),
            len: 0,
        })
    }

    /// How the text is compressed: chunks have to be so, too.
    pub const fn compression(&self) -> TextCompression {
        self.compression
    }

    /// Appends text.
    pub fn write(&mut self, text: &str) -> Result<()> {
        self.text.push_str(text);
        let is_enough = match self.compression {
            TextCompression::None => self.text.len() >= AT_A_TIME,
            _ => self.text.len() >= CHUNK,
        };
        if is_enough { self.end_chunk() } else { Ok(()) }
    }

    /// Appends text that was compressed by a worker.
    pub fn chunk(&mut self, chunk: &EncodedText) -> Result<()> {
        self.end_chunk()?;
        self.put(chunk)
    }

    /// Bytes handed to the system or about to be.
    fn put(&mut self, chunk: &EncodedText) -> Result<()> {
        self.tally.add(chunk);
        match &mut self.bzip2 {
            None => self.bytes.extend_from_slice(&chunk.bytes),
            Some(bzip2) => {
                let written = bzip2.write_all(&chunk.bytes);
                written.map_err(|error| failed(self.output.path(), error))?;
                self.bytes.append(bzip2.get_mut());
            }
        }
        if self.bytes.len() >= AT_A_TIME {
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
        let chunk = chunk.map_err(|error| failed(self.output.path(), error))?;
        self.put(&chunk)
    }

    fn flush(&mut self) -> Result<()> {
        let written = system::write(&self.file, &self.bytes);
        written.map_err(|error| failed(self.output.path(), error))?;
        self.len += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    /// Ends the text, makes it durable, and lets it take its name. Returns how many bytes there are.
    pub fn finish(mut self) -> Result<u64> {
        self.end_chunk()?;
        if let Some(bzip2) = self.bzip2.take() {
            let rest = bzip2.finish();
            let rest = rest.map_err(|error| failed(self.output.path(), error))?;
            self.bytes.extend(rest);
        }
        let tail = self.tally.tail(self.compression);
        self.bytes.extend_from_slice(&tail);
        self.flush()?;
        self.output.commit()?;
        Ok(self.len)
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::io(path, "cannot write", error)
}
