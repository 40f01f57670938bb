//! Compressing text in chunks, each for itself, so that every core can do its share.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use std::io;
use std::path::Path;

/// The level of gzip, as gzip itself has it.
const GZIP_LEVEL: u32 = 6;
/// The level of zstd, as zstd itself has it.
const ZSTD_LEVEL: i32 = 3;

/// How text is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextCompression {
    /// Not at all.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// bzip2.
    Bzip2,
    /// zstd.
    Zstd,
}

impl TextCompression {
    /// What the ending of a file name says.
    pub fn of_name(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => Self::Gzip,
            Some("bz2") => Self::Bzip2,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// A compressed piece of text. A file is a head, any number of chunks, and a tail.
#[derive(Debug)]
pub struct EncodedText {
    pub(super) bytes: Vec<u8>,
    /// Of the text of a gzip file, what its end has to say.
    crc: Option<Crc>,
}

/// Makes chunks. One a worker.
pub struct TextEncoder {
    compression: TextCompression,
    deflate: Option<Compress>,
}

impl std::fmt::Debug for TextEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextEncoder")
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

impl TextEncoder {
    /// An encoder.
    pub const fn new(compression: TextCompression) -> Self {
        Self {
            compression,
            deflate: None,
        }
    }

    /// What a file begins with.
    pub(super) const fn head(compression: TextCompression) -> &'static [u8] {
        match compression {
            // Deflate; no name and no time, so that the same text is the same bytes; from Unix.
            TextCompression::Gzip => &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
            TextCompression::None | TextCompression::Bzip2 | TextCompression::Zstd => &[],
        }
    }

    /// Compresses a piece of text.
    pub fn encode(&mut self, text: String) -> io::Result<EncodedText> {
        let bytes = match self.compression {
            // Some readers stop at the end of the first of several bzip2 streams: one stream, by one thread.
            TextCompression::None | TextCompression::Bzip2 => text.into_bytes(),
            TextCompression::Gzip => {
                let mut crc = Crc::new();
                crc.update(text.as_bytes());
                return Ok(EncodedText {
                    bytes: self.deflate(text.as_bytes())?,
                    crc: Some(crc),
                });
            }
            TextCompression::Zstd => {
                let mut zstd = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
                // As the program has it, so that damage is found.
                zstd.include_checksum(true)?;
                zstd.compress(text.as_bytes())?
            }
        };
        Ok(EncodedText { bytes, crc: None })
    }

    /// Deflate blocks that end at a byte and refer to nothing before them.
    fn deflate(&mut self, text: &[u8]) -> io::Result<Vec<u8>> {
        let new = || Compress::new(Compression::new(GZIP_LEVEL), false);
        let deflate = self.deflate.get_or_insert_with(new);
        deflate.reset();
        let mut out = Vec::with_capacity(text.len() / 4 + 64);
        loop {
            let rest = text.get(deflate.total_in() as usize..).unwrap_or_default();
            let status = deflate.compress_vec(rest, &mut out, FlushCompress::Sync);
            let is_stuck = status.map_err(io::Error::other)? == Status::BufError;
            if (deflate.total_in() as usize) == text.len() && out.len() < out.capacity() {
                return Ok(out);
            }
            if is_stuck && out.len() < out.capacity() {
                return Err(io::Error::other("deflate does not go on"));
            }
            out.reserve(out.capacity() / 2 + 64);
        }
    }
}

/// What is to be said at the end of a file.
#[derive(Debug, Default)]
pub(super) struct Tally {
    crc: Option<Crc>,
}

impl Tally {
    pub(super) fn add(&mut self, chunk: &EncodedText) {
        match (&mut self.crc, &chunk.crc) {
            (Some(all), Some(crc)) => all.combine(crc),
            (None, Some(_)) => {
                let mut all = Crc::new();
                if let Some(crc) = &chunk.crc {
                    all.combine(crc);
                }
                self.crc = Some(all);
            }
            (_, None) => {}
        }
    }

    /// What a file ends with.
    pub(super) fn tail(&self, compression: TextCompression) -> Vec<u8> {
        match compression {
            TextCompression::Gzip => {
                let empty = Crc::new();
                let crc = self.crc.as_ref().unwrap_or(&empty);
                // A last block, which is empty.
                let mut tail = vec![3, 0];
                tail.extend_from_slice(&crc.sum().to_le_bytes());
                tail.extend_from_slice(&crc.amount().to_le_bytes());
                tail
            }
            TextCompression::None | TextCompression::Bzip2 | TextCompression::Zstd => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn chunks_behind_each_other_are_one_file() {
        let noise: String = (0..300_000u32)
            .map(|i| char::from(b' ' + (i.wrapping_mul(2_654_435_761) >> 25) as u8 % 90))
            .collect();
        for pieces in [
            vec![],
            vec!["a".to_owned()],
            vec![noise.clone(), String::new(), noise],
        ] {
            let text = pieces.concat();
            let mut encoder = TextEncoder::new(TextCompression::Gzip);
            let mut file = TextEncoder::head(TextCompression::Gzip).to_vec();
            let mut tally = Tally::default();
            for piece in pieces {
                let chunk = encoder.encode(piece).unwrap();
                tally.add(&chunk);
                file.extend_from_slice(&chunk.bytes);
            }
            file.extend(tally.tail(TextCompression::Gzip));
            let mut read = String::new();
            // A decoder of one member: there is nothing behind it.
            let mut decoder = flate2::bufread::GzDecoder::new(file.as_slice());
            decoder.read_to_string(&mut read).unwrap();
            assert!(read == text && decoder.into_inner().is_empty());
        }
    }
}
