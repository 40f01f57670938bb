//! Text as output: complete or not at all, compressed where its name says so.

use super::output::{Output, OutputTarget};
use crate::error::{Error, Result};
use crate::sys;
use flate2::GzBuilder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A text file, or standard output. A name that ends in `.gz`, `.bz2` or `.zst` is compressed.
pub struct TextOutput {
    output: Output,
    sink: Sink,
}

/// A file that is written to as all files are.
struct Through(File);

impl Write for Through {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sys::write(&self.0, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Sink {
    Plain(BufWriter<Through>),
    Gzip(GzEncoder<BufWriter<Through>>),
    Bzip2(bzip2::write::BzEncoder<BufWriter<Through>>),
    Zstd(zstd::Encoder<'static, BufWriter<Through>>),
}

impl std::fmt::Debug for TextOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextOutput")
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

impl TextOutput {
    /// Begins an output.
    pub fn create(target: OutputTarget) -> Result<Self> {
        let (output, file) = Output::create(target)?;
        let file = BufWriter::with_capacity(1 << 16, Through(file));
        let ending = output.path().extension().and_then(|ending| ending.to_str());
        let sink = match ending {
            // No time in the head: the same text is the same bytes.
            Some("gz") => Sink::Gzip(
                GzBuilder::new()
                    .mtime(0)
                    .write(file, flate2::Compression::new(6)),
            ),
            Some("bz2") => Sink::Bzip2(bzip2::write::BzEncoder::new(
                file,
                bzip2::Compression::best(),
            )),
            Some("zst") => Sink::Zstd(
                zstd::Encoder::new(file, 3).map_err(|error| failed(output.path(), error))?,
            ),
            _ => Sink::Plain(file),
        };
        Ok(Self { output, sink })
    }

    /// Appends text.
    pub fn write(&mut self, text: &str) -> Result<()> {
        let written = match &mut self.sink {
            Sink::Plain(out) => out.write_all(text.as_bytes()),
            Sink::Gzip(out) => out.write_all(text.as_bytes()),
            Sink::Bzip2(out) => out.write_all(text.as_bytes()),
            Sink::Zstd(out) => out.write_all(text.as_bytes()),
        };
        written.map_err(|error| failed(self.output.path(), error))
    }

    /// Ends the text, makes it durable, and lets it take its name.
    pub fn finish(self) -> Result<()> {
        let flushed = match self.sink {
            Sink::Plain(out) => Ok(out),
            Sink::Gzip(out) => out.finish(),
            Sink::Bzip2(out) => out.finish(),
            Sink::Zstd(out) => out.finish(),
        };
        let flushed = flushed.and_then(|mut out| io::Write::flush(&mut out));
        flushed.map_err(|error| failed(self.output.path(), error))?;
        self.output.commit()
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::io(path, "cannot write", error)
}
