//! Finds the frames of a damaged file: behind damage, the next place where a frame can begin.

use crate::error::{FormatError, Result};
use crate::io::Input;
use crate::pbf::{
    Blob, BlobEntry, BlobFlags, BlobHeader, BlobKind, Decompressor, FRAME_PREFIX_LEN,
    MAX_BLOB_HEADER_LEN, TableBlob,
};
use memchr::memmem;

/// A frame that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// The place, the lengths and the number of the frame. The first data frame has number 1.
    pub entry: BlobEntry,
    pub kind: BlobKind,
}

/// Bytes that are no frame, or a frame that cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Gap {
    pub offset: u64,
    pub len: u64,
    /// The number of frames before it.
    pub frames_before: usize,
    pub cause: String,
}

/// The frames of a file, and what is between them.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub frames: Vec<Frame>,
    pub gaps: Vec<Gap>,
}

/// The number of bytes that are searched at a time.
const WINDOW: usize = 1 << 20;
/// The bytes of a frame before the name of its type: its length, and the key and the length of the name.
const BEFORE_TYPE: u64 = FRAME_PREFIX_LEN as u64 + 2;

/// Walks over the frames of a file from its first byte on.
pub(super) fn find(input: &Input) -> Result<Frames> {
    let mut found = Frames::default();
    let (mut at, mut number) = (0, 0);
    while at < input.len() {
        let cause = match head_at(input, at)? {
            Ok(frame) => match continues(input, &frame)? {
                Ok(()) => {
                    at = frame.entry.end();
                    found.push(frame, &mut number);
                    continue;
                }
                Err(cause) => cause,
            },
            Err(cause) => cause,
        };
        let next = search(input, at + 1)?;
        found.gaps.push(Gap {
            offset: at,
            len: next - at,
            frames_before: found.frames.len(),
            cause: cause.to_string(),
        });
        at = next;
    }
    Ok(found)
}

impl Frames {
    fn push(&mut self, mut frame: Frame, number: &mut u32) {
        frame.entry.number = *number;
        *number = number.saturating_add(1);
        self.frames.push(frame);
    }
}

/// Returns the frame at an offset, whose blob is not looked at. The inner result is an error if there is none.
fn head_at(input: &Input, offset: u64) -> Result<std::result::Result<Frame, FormatError>> {
    let mut start = vec![0; 512];
    let found = input.read_at(&mut start, offset)?;
    start.truncate(found);
    let needed = match BlobHeader::split(&start) {
        Ok(_) => 0,
        Err(_) => start.first_chunk::<FRAME_PREFIX_LEN>().map_or(0, |prefix| {
            BlobHeader::len_from_prefix(*prefix).map_or(0, |len| FRAME_PREFIX_LEN + len as usize)
        }),
    };
    if needed > start.len() && needed <= MAX_BLOB_HEADER_LEN as usize + FRAME_PREFIX_LEN {
        start.resize(needed, 0);
        let found = input.read_at(&mut start, offset)?;
        start.truncate(found);
    }
    let parsed = BlobHeader::split(&start).and_then(|(message, rest)| {
        let header = BlobHeader::parse(message)?;
        let header_len = start.len() - rest.len();
        let frame_len = header_len as u64 + u64::from(header.blob_len);
        if offset + frame_len > input.len() {
            return Err(FormatError::truncated("the file ends within this blob"));
        }
        Ok(Frame {
            entry: BlobEntry {
                offset,
                frame_len: frame_len as u32,
                header_len: header_len as u32,
                ..BlobEntry::default()
            },
            kind: header.kind,
        })
    });
    Ok(parsed)
}

/// Whether a frame is followed by another one or by the end of the file, or can be decoded. One of its lengths is wrong
/// otherwise, or bytes are missing or too many.
fn continues(input: &Input, frame: &Frame) -> Result<std::result::Result<(), FormatError>> {
    let end = frame.entry.end();
    if end == input.len() || head_at(input, end)?.is_ok() {
        return Ok(Ok(()));
    }
    let body = body_of(input, &frame.entry)?;
    let decoded =
        Blob::parse(&body).and_then(|blob| Decompressor::default().payload(&blob).map(drop));
    Ok(decoded)
}

/// Reads the Blob message of a frame.
pub(super) fn body_of(input: &Input, entry: &BlobEntry) -> Result<Vec<u8>> {
    let mut body = vec![0; (entry.frame_len - entry.header_len) as usize];
    input.read_all_at(&mut body, entry.offset + u64::from(entry.header_len))?;
    Ok(body)
}

/// Returns the offset of the next frame from `start` on, or the length of the file if there is none.
fn search(input: &Input, start: u64) -> Result<u64> {
    let name = memmem::Finder::new(b"OSM");
    let mut window = vec![0; WINDOW];
    let mut at = start + BEFORE_TYPE;
    while at < input.len() {
        let found = input.read_at(&mut window, at)?;
        for place in name.find_iter(&window[..found]) {
            let rest = &window[place..found];
            // A name at the end of the window is found again in the next one.
            let is_type = rest.starts_with(b"OSMData") || rest.starts_with(b"OSMHeader");
            let offset = at + place as u64 - BEFORE_TYPE;
            if is_type
                && let Ok(frame) = head_at(input, offset)?
                && continues(input, &frame)?.is_ok()
            {
                return Ok(offset);
            }
        }
        if found < window.len() {
            break;
        }
        at += (found - b"OSMHeader".len()) as u64;
    }
    Ok(input.len())
}

/// Marks the entry of a data blob that has a part of a table about the file beside its objects. Returns `false` if the
/// blob has nothing but a table.
pub(super) fn mark_table(entry: &mut BlobEntry, body: &[u8]) -> bool {
    let table = TableBlob::of(body);
    entry.flags.set(BlobFlags::HAS_TABLE, table.is_host());
    !table.has_no_objects()
}
