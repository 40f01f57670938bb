//! Stores the table of contents in the last blobs of a file. Other programs read these blobs as blocks without objects.
//!
//! Each blob is a PrimitiveBlock with a string table only. The strings are the table of contents as base64 text. The
//! last string in the file has the offset of the first frame of the table. The zlib data is stored uncompressed, so
//! that the last string is at a known distance from the end of the file. `reference/format.md` has the layout.

use super::strings_blob::{
    STRING_LEN, data_blob, put_strings_frame, read_strings, strings_of, trailer_number,
};
use super::toc::{MAGIC, VERSION};
use crate::deflate::stored::CHECKSUM_LEN;
use crate::error::FormatError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The string that marks a block as a part of a table of contents.
const TITLE: &str = "HOGG table of contents";
/// The prefix of the last string. The offset of the table follows it.
const TRAILER_TITLE: &str = "HOGG table of contents at byte ";
/// The number of decimal digits of the offset in the last string.
const POSITION_DIGITS: usize = 20;
/// The length in bytes of the last string. Only the checksum of its blob follows it in the file.
const TRAILER_LEN: usize = TRAILER_TITLE.len() + POSITION_DIGITS;
/// The number of bytes at the end of a file that [`find_toc`] needs.
pub const TOC_TAIL_LEN: usize = TRAILER_LEN + CHECKSUM_LEN;

/// The maximum number of bytes of base64 text in a blob. The format recommends blobs below 16 MiB.
const PART_LEN: usize = 12_000 * STRING_LEN;

/// A pointer to the table of contents, in the header of a file (HeaderBlock field 1001, version 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TocPointer {
    /// The table is at a known offset of a file of known length.
    At {
        /// The offset of the first frame of the table.
        start: u64,
        /// The size in bytes of the whole file.
        file_len: u64,
    },
    /// The table is at the end of a stream. The length of the stream was unknown when the header was written.
    AtEnd,
}

impl TocPointer {
    /// The size in bytes of an encoded pointer.
    pub const LEN: usize = MAGIC.len() + 1 + 8 + 8 + 4;

    /// Returns the encoded pointer.
    pub fn encode(self) -> Vec<u8> {
        let (start, file_len) = match self {
            Self::At { start, file_len } => (start, file_len),
            Self::AtEnd => (0, 0),
        };
        let mut out = Vec::with_capacity(Self::LEN);
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&file_len.to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        out
    }

    /// Decodes a pointer. Returns `None` if the bytes are damaged or something else, for example a table of version 1.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        let rest = body.strip_prefix(MAGIC)?.strip_prefix(&[VERSION])?;
        let (start, rest) = rest.split_first_chunk::<8>()?;
        let file_len: [u8; 8] = rest.try_into().ok()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        Some(
            match (u64::from_le_bytes(*start), u64::from_le_bytes(file_len)) {
                (0, 0) => Self::AtEnd,
                (start, file_len) => Self::At { start, file_len },
            },
        )
    }
}

/// Returns the frames that store the encoded table of contents `table`. The frames must be the last ones in the file,
/// from offset `start` on.
pub fn encode_toc_frames(table: &[u8], start: u64) -> Result<Vec<u8>, FormatError> {
    let text = STANDARD.encode(table);
    let parts = text.len().div_ceil(PART_LEN).max(1);
    let mut frames = Vec::with_capacity(text.len() + text.len() / 100 + 512);
    for part in 0..parts {
        let end = text.len().min((part + 1) * PART_LEN);
        let numbers = format!("version {VERSION}, part {} of {parts}", part + 1);
        let mut strings = vec!["", TITLE, &numbers];
        strings.extend(strings_of(&text[part * PART_LEN..end]));
        let trailer = format!("{TRAILER_TITLE}{start:0POSITION_DIGITS$}");
        if part + 1 == parts {
            strings.push(&trailer);
        }
        put_strings_frame(&strings, &mut frames)?;
    }
    Ok(frames)
}

/// Returns the offset of the table of contents, read from the last [`TOC_TAIL_LEN`] bytes of a file. Returns `None` if
/// the file does not end with a table.
pub fn find_toc(tail: &[u8]) -> Option<u64> {
    trailer_number(tail, TRAILER_TITLE, POSITION_DIGITS)
}

/// Reads the table of contents from the frames at the end of a file.
#[derive(Debug, Default)]
pub struct TocReader {
    text: Vec<u8>,
    /// The number of parts read so far.
    parts: u64,
    /// The number of parts of the table, as stated in the first part.
    expected: u64,
    /// The offset of the table, as stated in the last part.
    start: Option<u64>,
}

impl TocReader {
    /// Reads the complete frames at the beginning of `frames` and returns their total length in bytes. Fails if a frame
    /// is not the next part of the table, or if no frame is complete.
    pub fn add(&mut self, frames: &[u8]) -> Result<usize, FormatError> {
        let mut rest = frames;
        while let Some((body, behind)) = data_blob(rest) {
            let part = TocPart::parse(body)?.ok_or_else(damaged)?;
            self.add_part(&part)?;
            rest = behind;
        }
        match frames.len() - rest.len() {
            0 => Err(damaged()),
            used => Ok(used),
        }
    }

    fn add_part(&mut self, part: &TocPart) -> Result<(), FormatError> {
        self.parts += 1;
        if self.parts == 1 {
            self.expected = part.of;
        }
        let is_next = (part.number, part.of) == (self.parts, self.expected);
        if !is_next || part.start.is_some() != (self.parts == self.expected) {
            return Err(damaged());
        }
        self.start = part.start;
        self.text.extend_from_slice(&part.text);
        Ok(())
    }

    /// Returns the encoded table, for [`Toc::parse`](crate::pbf::Toc::parse). Fails if parts are missing or the table
    /// states another offset than `start`.
    pub fn finish(self, start: u64) -> Result<Vec<u8>, FormatError> {
        if self.start != Some(start) {
            return Err(damaged());
        }
        STANDARD.decode(self.text).map_err(|_| damaged())
    }
}

/// One part of a table of contents, the content of one blob.
struct TocPart {
    /// The number of this part, counted from 1.
    number: u64,
    /// The total number of parts of the table.
    of: u64,
    text: Vec<u8>,
    /// The offset of the table. Only the last part has it.
    start: Option<u64>,
}

impl TocPart {
    /// Decodes a Blob message. Returns `None` if it is not a part of a table of contents.
    fn parse(body: &[u8]) -> Result<Option<Self>, FormatError> {
        let part = read_strings(body, |strings| {
            let numbers = strings.get(2).ok().and_then(part_numbers);
            let (Some(TITLE), Some((number, of))) = (strings.get(1).ok(), numbers) else {
                return None;
            };
            let mut part = Self {
                number,
                of,
                text: Vec::with_capacity(body.len()),
                start: None,
            };
            for string in strings.iter().skip(3) {
                match string.strip_prefix(TRAILER_TITLE) {
                    Some(start) => part.start = start.parse().ok(),
                    None => part.text.extend_from_slice(string.as_bytes()),
                }
            }
            Some(part)
        })?;
        Ok(part.flatten())
    }
}

/// Parses a string like `version 2, part 1 of 3` into the number of the part and the number of parts. Returns `None`
/// for other versions.
fn part_numbers(text: &str) -> Option<(u64, u64)> {
    let rest = text.strip_prefix("version ")?;
    let (version, rest) = rest.split_once(", part ")?;
    let (number, of) = rest.split_once(" of ")?;
    (version == VERSION.to_string()).then_some(())?;
    Some((number.parse().ok()?, of.parse().ok()?))
}

fn damaged() -> FormatError {
    FormatError::new("it is damaged")
}

/// Whether a whole Blob message is a part of a table of contents.
pub fn is_toc_blob(body: &[u8]) -> bool {
    TocPart::parse(body).is_ok_and(|part| part.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::is_table_blob;
    use crate::pbf::may_be_table_blob;

    fn decode(frames: &[u8], start: u64) -> Result<Vec<u8>, FormatError> {
        let mut reader = TocReader::default();
        if reader.add(frames)? == frames.len() {
            reader.finish(start)
        } else {
            Err(damaged())
        }
    }

    #[test]
    fn a_table_of_any_length_reads_back_and_is_found_from_the_end() {
        for len in [
            0,
            1,
            2,
            3,
            749,
            750,
            751,
            48_000,
            49_150,
            PART_LEN,
            PART_LEN * 2,
        ] {
            let table: Vec<u8> = (0..len).map(|at| (at * 7 / 3) as u8).collect();
            let frames = encode_toc_frames(&table, 12_345).unwrap();
            assert_eq!(find_toc(&frames), Some(12_345), "{len}");
            assert_eq!(decode(&frames, 12_345).unwrap(), table, "{len}");
            assert!(decode(&frames, 12_346).is_err());
        }
    }

    #[test]
    fn every_string_is_short_and_every_part_is_a_table_alone() {
        let frames = encode_toc_frames(&vec![9; PART_LEN], 1 << 40).unwrap();
        let (mut rest, mut parts) = (&frames[..], 0);
        while let Some((body, behind)) = data_blob(rest) {
            assert!(may_be_table_blob(&body[..64]) && is_toc_blob(body) && is_table_blob(body));
            let are_short = read_strings(body, |strings| {
                strings.iter().all(|string| string.len() <= STRING_LEN)
            });
            assert_eq!(are_short.unwrap(), Some(true));
            (rest, parts) = (behind, parts + 1);
        }
        assert!(rest.is_empty() && parts == 2);
    }

    #[test]
    fn damage_is_an_error() {
        let frames = encode_toc_frames(b"some table", 99).unwrap();
        for index in 0..frames.len() {
            assert!(decode(&frames[..index], 99).is_err(), "cut at {index}");
        }
    }

    #[test]
    fn a_pointer_reads_back_and_a_damaged_one_is_none() {
        for pointer in [
            TocPointer::AtEnd,
            TocPointer::At {
                start: 1 << 40,
                file_len: (1 << 40) + 77,
            },
        ] {
            let bytes = pointer.encode();
            assert_eq!(bytes.len(), TocPointer::LEN);
            assert_eq!(TocPointer::parse(&bytes), Some(pointer));
            for index in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[index] ^= 4;
                assert_eq!(TocPointer::parse(&damaged), None);
            }
        }
    }
}
