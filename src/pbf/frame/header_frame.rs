//! The header frame. The start of a new file is reserved space of a fixed size. The header frame is written into this
//! space last, when the contents of the file are known. In a stream, the header frame is written first.

use super::blob::{Blob, BlobKind, Encoding, encode_frame};
use super::header::{HeaderBlock, PADDING_FIELD, SUMMARY_FIELD, TOC_FIELD};
use crate::deflate::stored::{zlib_stored, zlib_stored_len};
use crate::error::{FormatError, FormatResult};
use crate::pbf::table::toc_blob::TocPointer;
use crate::pbf::table::toc_summary::TocSummary;
use crate::pbf::wire::{put_bytes_field, put_bytes_head, varint_len};

/// The number of bytes reserved for later additions to the header: features, the pointer to the table of contents, and
/// the summary of this table.
const ROOM: usize = 1024;
/// A header blob of at least this size in bytes has a BlobHeader of more than 14 bytes. GraphHopper accepts only
/// BlobHeaders of 13 or 14 bytes.
const SHORT_BLOB_LEN: usize = 1 << 14;

/// Returns the number of bytes to reserve at the start of a file for the [`header_frame`] of `header`.
///
/// If `alike` is an offset, the result is padded to the same remainder modulo 4096 as this offset, unless the header
/// blob would become too large for some readers. Blobs that are copied from offset `alike` of another file then have
/// the same alignment in both files, so the file system can share their blocks.
pub fn reserved_header_len(header: &HeaderBlock, alike: Option<u64>) -> usize {
    const BLOCK: u64 = 4096;
    let mut message = Vec::new();
    header.encode(&mut message);
    let least = message.len() + ROOM;
    let mut payload = least;
    // The padding can lengthen the varints that encode lengths in the frame. The next round corrects this.
    for _ in 0..4 {
        let Some(offset) = alike else { break };
        let len = frame_len_of(payload) as u64;
        payload += ((offset % BLOCK + BLOCK - len % BLOCK) % BLOCK) as usize;
    }
    if blob_len_of(payload) >= SHORT_BLOB_LEN {
        payload = least;
    }
    frame_len_of(payload)
}

/// Returns the header frame with the pointer `toc` to the table of contents, padded to exactly `frame_len` bytes.
/// `frame_len` must be a result of [`reserved_header_len`]. Omits the summary of the table if it does not fit. Fails if
/// the header does not fit.
pub fn header_frame(
    header: &HeaderBlock,
    toc: Option<TocPointer>,
    summary: Option<&TocSummary>,
    frame_len: usize,
) -> Result<Vec<u8>, FormatError> {
    let too_long = || FormatError::new("the header does not fit the room reserved for it");
    let payload_len = payload_len_of(frame_len).ok_or_else(too_long)?;
    let mut payload = Vec::with_capacity(payload_len);
    header.encode(&mut payload);
    if let Some(toc) = toc {
        put_bytes_field(&mut payload, TOC_FIELD, &toc.encode());
    }
    // The room that is left must be empty or have at least three bytes, because a padding field needs three.
    let room_after = |payload: &[u8]| {
        let room = payload_len.checked_sub(payload.len());
        room.filter(|&room| room == 0 || room >= 3)
    };
    if let (Some(toc), Some(summary)) = (toc, summary) {
        let len = payload.len();
        put_bytes_field(&mut payload, SUMMARY_FIELD, &summary.encode(toc));
        if room_after(&payload).is_none() {
            payload.truncate(len);
        }
    }
    let room = room_after(&payload).ok_or_else(too_long)?;
    put_padding(&mut payload, room);
    encode_stored_frame(&payload, frame_len)
}

/// Returns the header frame of a stream. The frame has no padding, because it cannot be overwritten later. With
/// `has_toc`, the header declares a table of contents at the end of the stream.
pub fn stream_header_frame(header: &HeaderBlock, has_toc: bool) -> Result<Vec<u8>, FormatError> {
    let mut payload = Vec::new();
    header.encode(&mut payload);
    if has_toc {
        put_bytes_field(&mut payload, TOC_FIELD, &TocPointer::AtEnd.encode());
    }
    encode_stored_frame(&payload, frame_len_of(payload.len()))
}

/// Returns the header frame with the given payload. Fails unless the frame has `frame_len` bytes.
fn encode_stored_frame(payload: &[u8], frame_len: usize) -> FormatResult<Vec<u8>> {
    let blob = Blob {
        // The header is stored as zlib data, because some readers reject an uncompressed (raw) header blob.
        encoding: Encoding::Zlib,
        data: &zlib_stored(payload, 0),
        payload_len: payload.len() as u32,
    };
    let mut frame = Vec::with_capacity(frame_len);
    encode_frame(&mut frame, BlobKind::Header, None, &blob)?;
    if frame.len() == frame_len {
        Ok(frame)
    } else {
        Err(FormatError::new(
            "the header could not be fitted to the room reserved for it",
        ))
    }
}

/// Appends exactly `room` bytes of padding fields. `room` must be 0 or at least 3.
fn put_padding(out: &mut Vec<u8>, room: usize) {
    let end = out.len() + room;
    while out.len() < end {
        let left = end - out.len();
        // For some values of `left`, there is no field of exactly this size. If one more byte of content lengthens the
        // varint for the length, the field grows by two bytes. In this case, an empty field of three bytes comes first.
        let fits = (1..=5).find_map(|digits| {
            let len = left.checked_sub(2 + digits)?;
            (varint_len(len as u64) == digits).then_some(len)
        });
        let len = fits.unwrap_or(0);
        put_bytes_head(out, PADDING_FIELD, len);
        out.resize(out.len() + len, 0);
    }
}

/// Returns the size in bytes of the Blob message of a header with a payload of `payload_len` bytes.
fn blob_len_of(payload_len: usize) -> usize {
    let zlib = zlib_stored_len(payload_len);
    1 + varint_len(payload_len as u64) + 1 + varint_len(zlib as u64) + zlib
}

/// Returns the size in bytes of a header frame with a payload of `payload_len` bytes.
fn frame_len_of(payload_len: usize) -> usize {
    let blob = blob_len_of(payload_len);
    4 + 2 + "OSMHeader".len() + 1 + varint_len(blob as u64) + blob
}

/// Returns the size of the payload of a header frame of `frame_len` bytes, the inverse of [`frame_len_of`]. Returns
/// `None` if no payload gives a frame of exactly this size.
fn payload_len_of(frame_len: usize) -> Option<usize> {
    // Besides the payload and the headers of its stored blocks (5 bytes each), a frame has less than 64 bytes. So the
    // guess is a lower bound that is close to the result.
    let guess = frame_len.saturating_sub(frame_len.div_ceil(65_535) * 5 + 64);
    (guess.max(1)..frame_len).find(|&len| frame_len_of(len) == frame_len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::frame::blob::BlobHeader;
    use crate::pbf::frame::codec::Decompressor;
    use crate::pbf::frame::header::feature;
    use crate::pbf::wire::Fields;

    /// Returns the header in `frame`, its pointer to the table of contents, whether it has a summary of the table, and
    /// the length of the BlobHeader.
    fn read_back(frame: &[u8]) -> (HeaderBlock, Option<TocPointer>, bool, usize) {
        let len = BlobHeader::len_from_prefix(frame[..4].try_into().unwrap()).unwrap() as usize;
        let blob = Blob::parse(&frame[4 + len..]).unwrap();
        let mut decompressor = Decompressor::default();
        let payload = decompressor.payload(&blob).unwrap();
        let (header, about_toc) = HeaderBlock::parse(payload).unwrap();
        let pointer = about_toc.toc.and_then(TocPointer::parse);
        let summary = about_toc.summary.zip(pointer);
        let summary = summary.map(|(bytes, pointer)| TocSummary::parse(bytes, pointer).unwrap());
        (header, pointer, summary.is_some(), len)
    }

    #[test]
    fn a_header_fills_its_reserved_room_and_has_a_short_blob_header() {
        let mut header = HeaderBlock::default();
        header.writing_program = Some("x".repeat(300));
        let pointer = TocPointer::At {
            start: 77,
            file_len: 99,
        };
        for alike in [None, Some(0), Some(1), Some(4095), Some(1 << 40)] {
            let len = reserved_header_len(&header, alike);
            if let Some(alike) = alike {
                assert_eq!(len as u64 % 4096, alike % 4096);
            }
            header.set_required(feature::HISTORY, true);
            let summary = TocSummary::default();
            for (toc, summary) in [
                (None, None),
                (Some(pointer), None),
                (Some(pointer), Some(&summary)),
            ] {
                let frame = header_frame(&header, toc, summary, len).unwrap();
                assert_eq!(frame.len(), len);
                let (found, found_toc, has_summary, blob_header_len) = read_back(&frame);
                assert_eq!((&found, found_toc), (&header, toc));
                assert_eq!(has_summary, summary.is_some());
                assert!((13..=14).contains(&blob_header_len));
            }
            header.set_required(feature::HISTORY, false);
        }
    }

    #[test]
    fn a_header_that_is_nearly_too_long_is_not_padded() {
        let mut header = HeaderBlock::default();
        header.writing_program = Some("x".repeat(15_000));
        let len = reserved_header_len(&header, Some(4000));
        let frame = header_frame(&header, None, None, len).unwrap();
        assert!((13..=14).contains(&read_back(&frame).3));
    }

    #[test]
    fn a_summary_without_room_is_left_out() {
        let pointer = Some(TocPointer::At {
            start: 77,
            file_len: 99,
        });
        let summary = TocSummary::default();
        let (mut with, mut without) = (0, 0);
        for more in ROOM - 70..ROOM - 30 {
            let mut header = HeaderBlock::default();
            let len = reserved_header_len(&header, None);
            header.source = Some("x".repeat(more));
            let Ok(frame) = header_frame(&header, pointer, Some(&summary), len) else {
                continue;
            };
            let (found, found_pointer, has_summary, _) = read_back(&frame);
            assert_eq!((found, found_pointer), (header, pointer));
            *if has_summary { &mut with } else { &mut without } += 1;
        }
        assert!(with > 0 && without > 0, "{with}, {without}");
    }

    #[test]
    fn a_stream_header_declares_a_table_at_the_end() {
        let header = HeaderBlock::default();
        let frame = stream_header_frame(&header, true).unwrap();
        assert_eq!(read_back(&frame).1, Some(TocPointer::AtEnd));
        let frame = stream_header_frame(&header, false).unwrap();
        assert_eq!(read_back(&frame).1, None);
    }

    #[test]
    fn padding_of_every_length_can_be_expressed() {
        for room in (3..300).chain(16_380..16_400).chain([70_000]) {
            let mut out = Vec::new();
            put_padding(&mut out, room);
            assert_eq!(out.len(), room);
            let mut fields = Fields::new(&out);
            while let Some(field) = fields.next().unwrap() {
                assert_eq!(field.number, PADDING_FIELD);
            }
        }
    }

    #[test]
    fn payload_lengths_can_be_computed_from_frame_lengths() {
        for len in (1..400).chain(16_300..16_400).chain(65_500..65_600) {
            assert_eq!(payload_len_of(frame_len_of(len)), Some(len));
        }
    }
}
