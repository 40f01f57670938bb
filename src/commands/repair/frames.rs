//! Finds the frames of a damaged file. After damage, finds the next offset at which a frame can begin.

use super::frame_parts::FrameParts;
use crate::error::{FormatResult, Result};
use crate::file::{FrameStart, find_frame_in_range, read_blob_message};
use crate::io::Input;
use crate::osm::ObjectKind;
use crate::pbf::{
    Blob, BlobEntry, BlobKind, Block, Decompressor, Encoding, HeaderBlock, MAX_BLOB_HEADER_LEN,
    MAX_BLOB_LEN, MAX_PAYLOAD_LEN, feature,
};
use crate::runtime::Context;
use flate2::{Decompress, FlushDecompress, Status};
use std::ops::Range;

/// A frame, or a blob that was found without its frame.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// The offset, the lengths and the number of the frame. All frames that are found are numbered in file order.
    /// Number 0 usually is the header.
    ///
    /// For a stream (see [`stream_in`](Self::stream_in)), the offset and the length are those of its compressed bytes,
    /// and `payload_len` is known.
    pub entry: BlobEntry,
    pub kind: BlobKind,
    /// For a zlib stream that was found in damaged bytes, the error of the frame around the stream.
    pub stream_in: Option<String>,
}

/// A part of a damaged file.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Frame(Frame),
    /// Bytes that are no frame.
    Gap {
        bytes: Range<u64>,
        cause: String,
    },
}

/// The number of bytes that are searched at a time.
const WINDOW: u64 = 1 << 20;

/// Finds the frames in a range of a file. The first frame gets the number `number`.
///
/// After damage, the search continues at the next offset at which a frame can begin. In the bytes before this offset,
/// it finds blob data that is whole although its frame is damaged.
pub(super) fn find(
    input: &Input,
    range: Range<u64>,
    number: u32,
    ctx: &Context,
) -> Result<Vec<Piece>> {
    let (mut found, mut at) = (Vec::new(), range.start);
    while at < range.end {
        ctx.cancellation.check()?;
        let cause = match frame_at(input, at)? {
            Ok(frame) => {
                at = frame.entry.end();
                found.push(Piece::Frame(frame));
                continue;
            }
            Err(cause) => cause.to_string(),
        };
        let check = || ctx.cancellation.check();
        let accepts = |offset| Ok(frame_at(input, offset)?.is_ok());
        let next = find_frame_in_range(input, at + 1..input.len(), check, accepts)?;
        let next = next.unwrap_or(input.len());
        found.extend(find_streams(input, at..next.min(range.end), &cause, ctx)?);
        at = next;
    }
    let mut next = number;
    for piece in &mut found {
        if let Piece::Frame(frame) = piece {
            frame.entry.number = next;
            next = next.saturating_add(1);
        }
    }
    Ok(found)
}

/// Returns the frame at an offset. The inner result is an error if no frame begins at the offset, or if the length of
/// the frame is not confirmed. The length is confirmed if the frame ends at the end of the file, if another frame
/// follows, or if the blob can be decoded.
fn frame_at(input: &Input, offset: u64) -> Result<FormatResult<Frame>> {
    let start = FrameStart::read(input, offset)?;
    let frame = match start.parse() {
        Ok(started) => Frame::new(started.entry, started.header.kind),
        Err(error) => return Ok(Err(error)),
    };
    let end = frame.entry.end();
    if end == input.len() || FrameStart::read(input, end)?.parse().is_ok() {
        return Ok(Ok(frame));
    }
    let decoded = frame.read_payload(input, |_| Ok(()))?;
    Ok(decoded.map(|()| frame))
}

/// Finds the zlib streams in damaged bytes, and the bytes between them. Bytes that are only the damaged frame around a
/// stream are left out. `cause` describes the damage.
pub(super) fn find_streams(
    input: &Input,
    bytes: Range<u64>,
    cause: &str,
    ctx: &Context,
) -> Result<Vec<Piece>> {
    let gap = |bytes: Range<u64>| {
        let cause = cause.to_owned();
        (!bytes.is_empty()).then_some(Piece::Gap { bytes, cause })
    };
    // Reads the bytes before or after a stream. They may be the end of one frame and the start of the next, so no more
    // bytes are read than these two parts can have.
    let around = |bytes: &Range<u64>| {
        let len = (bytes.end - bytes.start).min(u64::from(MAX_BLOB_HEADER_LEN) + 64);
        let mut found = vec![0; len as usize];
        input.read_all_at(&mut found, bytes.start).map(|()| found)
    };
    let (mut found, mut at) = (Vec::new(), bytes.start);
    let mut before: Option<FrameParts> = None;
    while let Some(stream) = next_stream(input, at..bytes.end, ctx)? {
        let entry = &stream.entry;
        let parts = FrameParts::around(stream.kind, entry.frame_len, entry.payload_len);
        let between = around(&(at..entry.offset))?;
        let head = before
            .as_ref()
            .map_or(&between[..], |parts| parts.without_tail(&between));
        if !parts.is_head(head) {
            found.extend(gap(at..entry.offset));
        }
        (at, before) = (entry.end(), Some(parts));
        found.push(Piece::Frame(Frame {
            stream_in: Some(cause.to_owned()),
            ..stream
        }));
    }
    let rest = at..bytes.end;
    let behind = around(&rest)?;
    if !before.is_some_and(|parts| parts.is_tail(&behind)) {
        found.extend(gap(rest));
    }
    Ok(found)
}

/// Searches a range of a file for zlib streams. Returns the first stream whose checksum is right and whose content is
/// the payload of a blob.
fn next_stream(input: &Input, range: Range<u64>, ctx: &Context) -> Result<Option<Frame>> {
    // Whether two bytes can begin a zlib stream (RFC 1950) without a dictionary.
    let begins = |method: u8, flags: u8| {
        let check = u16::from_be_bytes([method, flags]);
        method & 0x0f == 8 && method >> 4 <= 7 && flags & 0x20 == 0 && check.is_multiple_of(31)
    };
    let (mut window, mut at) = (Vec::new(), range.start);
    while at < range.end {
        ctx.cancellation.check()?;
        window.resize((range.end - at).min(WINDOW) as usize, 0);
        let len = input.read_at(&mut window, at)?;
        for place in 0..len.saturating_sub(1) {
            if begins(window[place], window[place + 1])
                && let Some(stream) = stream_at(input, at + place as u64, range.end)?
            {
                return Ok(Some(stream));
            }
        }
        at += len.max(2) as u64 - 1;
    }
    Ok(None)
}

/// Returns the zlib stream that begins at an offset. The stream must lie before `end`, and its content must be the
/// payload of a blob. Otherwise returns `None`.
fn stream_at(input: &Input, offset: u64, end: u64) -> Result<Option<Frame>> {
    let mut inflate = Decompress::new(true);
    let (mut payload, mut chunk) = (Vec::new(), vec![0; 1 << 14]);
    loop {
        let at = offset + inflate.total_in();
        let wanted = (end - at).min(chunk.len() as u64) as usize;
        let len = input.read_at(&mut chunk[..wanted], at)?;
        payload.reserve(1 << 16);
        let (before, room) = (inflate.total_in(), payload.len());
        let status = inflate.decompress_vec(&chunk[..len], &mut payload, FlushDecompress::None);
        let is_stuck = inflate.total_in() == before && payload.len() == room;
        match status {
            Ok(Status::StreamEnd) => break,
            Ok(_)
                if !is_stuck
                    && inflate.total_in() < MAX_BLOB_LEN.into()
                    && payload.len() <= MAX_PAYLOAD_LEN as usize => {}
            Ok(_) | Err(_) => return Ok(None),
        }
    }
    let entry = BlobEntry {
        offset,
        frame_len: inflate.total_in() as u32,
        payload_len: payload.len() as u32,
        ..BlobEntry::default()
    };
    Ok(kind_of(&payload).map(|kind| Frame::new(entry, kind)))
}

/// Returns the type of the blob to which a payload belongs; `None` if the payload is neither a header nor objects.
pub(super) fn kind_of(payload: &[u8]) -> Option<BlobKind> {
    let block = Block::parse_without_strings(payload);
    if block.is_ok_and(|block| ObjectKind::ALL.into_iter().any(|kind| block.has(kind))) {
        return Some(BlobKind::Data);
    }
    let (header, _) = HeaderBlock::parse(payload).ok()?;
    header.has(feature::SCHEMA).then_some(BlobKind::Header)
}

impl Frame {
    /// Creates a frame that is not damaged.
    pub(super) const fn new(entry: BlobEntry, kind: BlobKind) -> Self {
        Self {
            entry,
            kind,
            stream_in: None,
        }
    }

    /// Calls `read` with the payload of the blob. The inner result is an error if the blob cannot be decoded.
    pub(super) fn read_payload<T>(
        &self,
        input: &Input,
        read: impl FnOnce(&[u8]) -> FormatResult<T>,
    ) -> Result<FormatResult<T>> {
        let body = read_blob_message(input, &self.entry)?;
        let blob = match self.stream_in {
            None => Blob::parse(&body),
            Some(_) => Ok(Blob {
                encoding: Encoding::Zlib,
                data: &body,
                payload_len: self.entry.payload_len,
            }),
        };
        let mut decompressor = Decompressor::default();
        Ok(blob.and_then(|blob| read(decompressor.payload(&blob)?)))
    }
}
