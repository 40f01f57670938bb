//! Opening XML files: compression by content, and where in the document the reader is.

use super::Replication;
use super::parse::Document;
use crate::error::{Error, Result};
use crate::osm::parse_timestamp;
use crate::read::Input;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Opens an XML file; gzip, bzip2 and zstd are told by their first bytes.
pub(super) fn open(path: &Path, document: Document) -> Result<LineReader<Box<dyn BufRead>>> {
    let input = Input::open(path)?;
    if input.is_empty() {
        return Err(Error::file(path, "the file is empty"));
    }
    let mut magic = [0; 6];
    let found = input.read_at(&mut magic, 0)?;
    let bytes = BufReader::with_capacity(1 << 16, InputBytes { input, position: 0 });
    let text: Box<dyn Read> = match magic.get(..found).unwrap_or_default() {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
        [b'B', b'Z', b'h', ..] => Box::new(bzip2::bufread::MultiBzDecoder::new(bytes)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let zstd = zstd::stream::read::Decoder::with_buffer(bytes);
            Box::new(zstd.map_err(|error| Error::io(path, "cannot read", error))?)
        }
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            return Err(Error::file(
                path,
                "the file is compressed with xz, which is not supported",
            ));
        }
        [0, 0, 0, _, b'\n', ..] => {
            return Err(Error::file(
                path,
                format!("this is a PBF file, not {}", document.name()),
            ));
        }
        _ => Box::new(bytes),
    };
    Ok(LineReader::new(Box::new(BufReader::with_capacity(
        1 << 17,
        text,
    ))))
}

/// Reads an input from its start to its end.
struct InputBytes {
    input: Input,
    position: u64,
}

impl Read for InputBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self
            .input
            .read_at(buffer, self.position)
            .map_err(io::Error::other)?;
        self.position += count as u64;
        Ok(count)
    }
}

/// Counts lines while they are read.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    inner: R,
    lines: u64,
    /// Bytes behind the last line break.
    column: u64,
}

impl<R: BufRead> LineReader<R> {
    const fn new(inner: R) -> Self {
        Self {
            inner,
            lines: 0,
            column: 0,
        }
    }

    /// Line and column, from 1, of the next byte.
    pub(super) const fn position(&self) -> (u64, u64) {
        (self.lines + 1, self.column + 1)
    }
}

impl<R: BufRead> Read for LineReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), available.get(..count)) {
            to.copy_from_slice(from);
        }
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for LineReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        // The bytes are in the buffer already: this reads nothing.
        if let Ok(bytes) = self.inner.fill_buf() {
            let bytes = bytes.get(..count).unwrap_or(bytes);
            let breaks = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            self.lines += breaks;
            match bytes.iter().rposition(|&byte| byte == b'\n') {
                Some(last) => self.column = (bytes.len() - last - 1) as u64,
                None => self.column += bytes.len() as u64,
            }
        }
        self.inner.consume(count);
    }
}

/// The state file that replication servers put beside a change file: `123.state.txt` beside
/// `123.osc.gz`. `None` where there is none.
pub(super) fn sidecar_state(path: &Path) -> Option<Replication> {
    let name = path.file_name()?.to_str()?;
    let (stem, _) = name.split_once(".osc")?;
    let text = std::fs::read_to_string(path.with_file_name(format!("{stem}.state.txt"))).ok()?;
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines
            .find(|(name, _)| name.trim() == key)
            .map(|(_, value)| value.trim())
    };
    Some(Replication {
        sequence: value("sequenceNumber").and_then(|number| number.parse().ok()),
        // Java properties escape the colons of the time.
        timestamp: value("timestamp").and_then(|time| parse_timestamp(&time.replace('\\', ""))),
    })
}
