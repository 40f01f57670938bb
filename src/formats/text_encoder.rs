//! Compresses text in independent chunks, so that workers can compress chunks in parallel.

use super::text_compression::TextCompression;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use std::io;

/// The compression level of gzip files, which is the default of the program gzip.
const GZIP_LEVEL: u32 = 6;
/// The compression level of zstd files, which is the default of the program zstd.
const ZSTD_LEVEL: i32 = 3;

/// A chunk of encoded text. A file consists of a header, any number of chunks, and a trailer.
#[derive(Debug)]
pub struct EncodedText {
    pub(super) bytes: Vec<u8>,
    /// Checksum and length of the text, for the trailer of a gzip file; `None` for other compressions.
    crc: Option<Crc>,
}

impl EncodedText {
    /// Splits the chunk into pieces of at most `most` bytes. Returns `None` if the chunk is short enough, or if it has
    /// a checksum.
    pub(super) fn pieces(&self, most: usize) -> Option<impl Iterator<Item = Self> + '_> {
        let is_long = self.crc.is_none() && self.bytes.len() > most;
        is_long.then(|| {
            self.bytes.chunks(most).map(|piece| Self {
                bytes: piece.to_vec(),
                crc: None,
            })
        })
    }
}

/// An encoder of chunks of text. Each worker needs an encoder of its own.
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
    /// Creates an encoder for files with the given compression.
    pub const fn new(compression: TextCompression) -> Self {
        Self {
            compression,
            deflate: None,
        }
    }

    /// Returns the header of a file, which is written before all chunks.
    pub(super) const fn header(compression: TextCompression) -> &'static [u8] {
        match compression {
            // The bytes stand for gzip, method deflate, no name, no time, operating system Unix. Without a time, the
            // same text always gives the same bytes.
            TextCompression::Gzip => &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
            TextCompression::None | TextCompression::Bzip2 | TextCompression::Zstd => &[],
        }
    }

    /// Encodes a piece of text as a chunk. For bzip2, [`TextOutput`](super::TextOutput) compresses the chunks.
    pub fn encode(&mut self, text: impl Into<Vec<u8>>) -> io::Result<EncodedText> {
        let text = text.into();
        let bytes = match self.compression {
            // For bzip2, the output compresses all chunks as one stream, because some readers stop after the first
            // stream.
            TextCompression::None | TextCompression::Bzip2 => text,
            TextCompression::Gzip => {
                let mut crc = Crc::new();
                crc.update(&text);
                return Ok(EncodedText {
                    bytes: self.deflate(&text)?,
                    crc: Some(crc),
                });
            }
            TextCompression::Zstd => {
                let mut zstd = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
                // Adds a checksum as the program zstd does. The checksum reveals damage.
                zstd.include_checksum(true)?;
                zstd.compress(&text)?
            }
        };
        Ok(EncodedText { bytes, crc: None })
    }

    /// Compresses text to deflate blocks that end on a byte boundary and do not refer to the text of other chunks.
    fn deflate(&mut self, text: &[u8]) -> io::Result<Vec<u8>> {
        let new = || Compress::new(Compression::new(GZIP_LEVEL), false);
        let deflate = self.deflate.get_or_insert_with(new);
        deflate.reset();
        let mut out = Vec::with_capacity(text.len() / 4 + 64);
        loop {
            let rest = &text[deflate.total_in() as usize..];
            let status = deflate.compress_vec(rest, &mut out, FlushCompress::Sync);
            let is_stuck = status.map_err(io::Error::other)? == Status::BufError;
            if (deflate.total_in() as usize) == text.len() && out.len() < out.capacity() {
                return Ok(out);
            }
            if is_stuck && out.len() < out.capacity() {
                return Err(io::Error::other("deflate makes no progress"));
            }
            out.reserve(out.capacity() / 2 + 64);
        }
    }
}

/// Checksum and length of the text of all chunks so far, for the trailer of a gzip file.
#[derive(Debug, Default)]
pub(super) struct GzipTrailer {
    crc: Crc,
}

impl GzipTrailer {
    pub(super) fn add(&mut self, chunk: &EncodedText) {
        if let Some(crc) = &chunk.crc {
            self.crc.combine(crc);
        }
    }

    /// Returns the trailer of a file, which is written after all chunks.
    pub(super) fn trailer(&self, compression: TextCompression) -> Vec<u8> {
        match compression {
            TextCompression::Gzip => {
                // No block of a chunk is marked as the final one, so an empty final deflate block follows the chunks.
                let mut tail = vec![3, 0];
                tail.extend_from_slice(&self.crc.sum().to_le_bytes());
                tail.extend_from_slice(&self.crc.amount().to_le_bytes());
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
    fn concatenated_chunks_are_one_gzip_member() {
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
            let mut file = TextEncoder::header(TextCompression::Gzip).to_vec();
            let mut tally = GzipTrailer::default();
            for piece in pieces {
                let chunk = encoder.encode(piece).unwrap();
                tally.add(&chunk);
                file.extend_from_slice(&chunk.bytes);
            }
            file.extend(tally.trailer(TextCompression::Gzip));
            let mut read = String::new();
            // `GzDecoder` decodes only one member, so no bytes may follow the member.
            let mut decoder = flate2::bufread::GzDecoder::new(file.as_slice());
            decoder.read_to_string(&mut read).unwrap();
            assert!(read == text && decoder.into_inner().is_empty());
        }
    }
}
