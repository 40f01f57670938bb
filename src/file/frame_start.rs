//! Reads the start of a frame: its BlobHeader, and the first bytes of its Blob.

use crate::error::{FormatError, FormatResult, Result};
use crate::io::Input;
use crate::pbf::{BlobEntry, BlobHeader, FRAME_PREFIX_LEN, FRAME_PROBE_LEN, decode_blob_index};
use memchr::memmem;
use std::ops::Range;

/// The first bytes of a frame. They include the whole BlobHeader, unless the file ends within it or its length is
/// invalid.
pub(crate) struct FrameStart {
    offset: u64,
    /// The number of bytes from the start of the frame to the end of the file.
    left: u64,
    probe: [u8; FRAME_PROBE_LEN],
    probe_len: usize,
    /// The bytes up to the end of the BlobHeader; empty if the probe has all of them.
    long: Vec<u8>,
}

/// A frame whose start was read.
pub(crate) struct StartedFrame<'s> {
    /// The BlobHeader.
    pub header: BlobHeader<'s>,
    /// An entry with the offset and the lengths of the frame, without its number and facts about its contents.
    pub entry: BlobEntry,
    /// The first bytes of the Blob; empty if the BlobHeader is long. No blob with a part of a table has a long
    /// BlobHeader.
    pub blob_start: &'s [u8],
}

impl FrameStart {
    /// Reads the start of the frame at an offset, normally in one read.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) fn read(input: &Input, offset: u64) -> Result<Self> {
        let mut probe = [0; FRAME_PROBE_LEN];
        let probe_len = input.read_at(&mut probe, offset)?;
        let prefix = probe[..probe_len].first_chunk::<FRAME_PREFIX_LEN>();
        let header_len = prefix.and_then(|prefix| BlobHeader::len_from_prefix(*prefix).ok());
        let len = header_len.map_or(0, |len| FRAME_PREFIX_LEN + len as usize);
        let mut long = Vec::new();
        if len > FRAME_PROBE_LEN {
            long.resize(len, 0);
            let found = input.read_at(&mut long, offset)?;
            long.truncate(found);
        }
        Ok(Self {
            offset,
            left: input.len().saturating_sub(offset),
            probe,
            probe_len,
            long,
        })
    }

    /// Returns the bytes that were read.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.long.is_empty() {
            &self.probe[..self.probe_len]
        } else {
            &self.long
        }
    }

    /// Parses the BlobHeader.
    ///
    /// # Errors
    ///
    /// There is no valid BlobHeader, or the file ends within the frame.
    pub(crate) fn parse(&self) -> FormatResult<StartedFrame<'_>> {
        let (header, rest) = BlobHeader::read(self.bytes())?;
        let header_len = (self.bytes().len() - rest.len()) as u32;
        let frame_len = header_len + header.blob_len;
        if u64::from(frame_len) > self.left {
            let found = self.left.saturating_sub(header_len.into());
            return Err(FormatError::with(format!(
                "the file ends within this blob: {} bytes announced, {found} there",
                header.blob_len
            )));
        }
        Ok(StartedFrame {
            entry: BlobEntry {
                offset: self.offset,
                frame_len,
                header_len,
                ..BlobEntry::default()
            },
            blob_start: &rest[..rest.len().min(header.blob_len as usize)],
            header,
        })
    }
}

impl StartedFrame<'_> {
    /// Adds the facts in the index of the BlobHeader to `entry`, the entry of the frame, and returns the entry. Returns
    /// `None` if there is no valid index.
    pub(crate) fn indexed_entry(&self, mut entry: BlobEntry) -> Option<BlobEntry> {
        decode_blob_index(self.header.indexdata?, &mut entry)?;
        Some(entry)
    }
}

/// Returns the offset of the first frame that begins in a range of bytes and for which `accepts` returns `true`. Frames
/// are found by the names of their types. Calls `check` before each read.
///
/// # Errors
///
/// The file cannot be read, or `check` or `accepts` fails.
pub(crate) fn find_frame_in_range(
    input: &Input,
    range: Range<u64>,
    mut check: impl FnMut() -> Result<()>,
    mut accepts: impl FnMut(u64) -> Result<bool>,
) -> Result<Option<u64>> {
    /// The number of bytes that are searched at a time.
    const WINDOW: usize = 256 << 10;
    /// The number of bytes in a frame before the name of its type: the length of the BlobHeader, and the key and the
    /// length of the name.
    const BEFORE_NAME: u64 = FRAME_PREFIX_LEN as u64 + 2;
    let name = memmem::Finder::new(b"OSM");
    let mut window = vec![0; WINDOW];
    let mut at = range.start + BEFORE_NAME;
    while at < range.end {
        check()?;
        let found = input.read_at(&mut window, at)?;
        for place in name.find_iter(&window[..found]) {
            let rest = &window[place..found];
            // A name that is cut off at the end of the window is found whole in the next window.
            let is_type = rest.starts_with(b"OSMData") || rest.starts_with(b"OSMHeader");
            let offset = at + place as u64 - BEFORE_NAME;
            if is_type && accepts(offset)? {
                return Ok(Some(offset));
            }
        }
        if found < window.len() {
            break;
        }
        at += (found - b"OSMHeader".len()) as u64;
    }
    Ok(None)
}

/// Reads the Blob message of a frame.
pub(crate) fn read_blob_message(input: &Input, entry: &BlobEntry) -> Result<Vec<u8>> {
    let mut message = vec![0; (entry.frame_len - entry.header_len) as usize];
    input.read_all_at(&mut message, entry.offset + u64::from(entry.header_len))?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::{Blob, BlobKind, Encoding, encode_frame};

    #[test]
    fn a_frame_start_is_parsed_with_a_header_of_any_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("frames");
        for index_len in [0, 100, FRAME_PROBE_LEN, 60_000] {
            let index = vec![7; index_len];
            let blob = Blob {
                encoding: Encoding::Raw,
                data: &[1; 50],
                payload_len: 50,
            };
            let mut frame = Vec::new();
            encode_frame(&mut frame, BlobKind::Data, Some(&index), &blob).unwrap();
            std::fs::write(&path, [&[0; 9][..], &frame, &frame].concat()).unwrap();
            let input = Input::open(&path).unwrap();
            let start = FrameStart::read(&input, 9).unwrap();
            let found = start.parse().unwrap();
            assert_eq!(found.header.indexdata, Some(&index[..]));
            assert_eq!(found.entry.end(), 9 + frame.len() as u64);
            let message = read_blob_message(&input, &found.entry).unwrap();
            assert!(message.starts_with(found.blob_start));
            assert_eq!(Blob::parse(&message).unwrap(), blob);
            for cut in [3, frame.len() - 60, frame.len() - 1] {
                std::fs::write(&path, &frame[..cut]).unwrap();
                let input = Input::open(&path).unwrap();
                let start = FrameStart::read(&input, 0).unwrap();
                let error = start.parse().err().unwrap().to_string();
                assert!(error.starts_with("the file ends within"), "{error}");
            }
        }
    }
}
