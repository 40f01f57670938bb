//! The header frame and the room in it that is reserved for the table of contents.
//!
//! The header is written first and its table is known last: the frame is reserved with a length
//! that depends on nothing that may change, and filled up with padding in the end.

use super::frame::{Blob, BlobKind, Encoding, encode_frame};
use super::header::{PADDING_FIELD, TOC_FIELD};
use super::toc::{MAX_TOC_LEN, Toc, encode_toc};
use super::wire::{put_bytes_field, put_bytes_head, varint_len};
use super::{BlobEntry, BlobFlags, FormatError, HeaderBlock};

/// Room kept for one blob when a file's table is reserved: what an entry with its hash takes.
const RESERVED_BYTES_PER_BLOB: usize = 44;
/// Room kept for what changes in a header between its reservation and the end.
const RESERVED_FIXED_BYTES: usize = 256;

/// How many bytes a header frame takes that has room for a table of `blobs` entries. Give the
/// result to [`header_frame_with_toc`].
pub fn reserved_header_len(header: &HeaderBlock, blobs: u64) -> usize {
    frame_len_of(reserved_payload_len(header, blobs))
}

/// Like [`reserved_header_len`], with so much more room that the result and `offset` leave the same
/// remainder by 4096. Blobs of a file that stood behind `offset` bytes can then share the blocks of
/// a file system with a copy.
pub fn reserved_header_len_alike(header: &HeaderBlock, blobs: u64, offset: u64) -> usize {
    const BLOCK: u64 = 4096;
    let mut payload = reserved_payload_len(header, blobs);
    // Lengths within the frame can grow with the payload: another round makes up for that.
    for _ in 0..4 {
        let len = frame_len_of(payload) as u64;
        let missing = (offset % BLOCK + BLOCK - len % BLOCK) % BLOCK;
        payload += missing as usize;
    }
    frame_len_of(payload)
}

/// A payload with room for a table of so many entries.
fn reserved_payload_len(header: &HeaderBlock, blobs: u64) -> usize {
    let mut message = Vec::new();
    header.encode(&mut message);
    let table = usize::try_from(blobs)
        .unwrap_or(usize::MAX)
        .saturating_mul(RESERVED_BYTES_PER_BLOB);
    message.len() + RESERVED_FIXED_BYTES + table.min(MAX_TOC_LEN)
}

/// Encodes the header frame with its table in exactly `frame_len` bytes, which come from
/// [`reserved_header_len`]. A table that has too little room is degraded: content hashes go first,
/// then neighbouring blobs share entries, then the table is left out. Also tells whether there is one.
pub fn header_frame_with_toc(
    header: &HeaderBlock,
    toc: Option<Toc>,
    frame_len: usize,
) -> Result<(Vec<u8>, bool), FormatError> {
    let mut payload = Vec::new();
    header.encode(&mut payload);
    let room = payload_len_of(frame_len)
        .and_then(|len| len.checked_sub(payload.len()))
        .ok_or(FormatError::new(
            "the header does not fit the room reserved for it",
        ))?;
    let data_start = frame_len as u64;
    let table = toc.and_then(|toc| fitting_table(toc, data_start, room));
    let has_table = table.is_some();
    match table {
        Some(table) => {
            put_bytes_field(&mut payload, TOC_FIELD, &table);
            put_padding(&mut payload, room - field_len(TOC_FIELD, table.len()));
        }
        None => put_padding(&mut payload, room),
    }
    let zlib = zlib_stored(&payload);
    let mut frame = Vec::with_capacity(frame_len);
    let blob = Blob {
        encoding: Encoding::Zlib,
        data: &zlib,
        payload_len: payload.len() as u32,
    };
    encode_frame(&mut frame, BlobKind::Header, None, &blob)?;
    if frame.len() == frame_len {
        Ok((frame, has_table))
    } else {
        Err(FormatError::new(
            "the header could not be fitted to the room reserved for it",
        ))
    }
}

/// The best table that fits `room` bytes as a field, with padding that can be expressed.
fn fitting_table(mut toc: Toc, data_start: u64, room: usize) -> Option<Vec<u8>> {
    loop {
        let table = encode_toc(&toc, data_start);
        let used = field_len(TOC_FIELD, table.len());
        let left = room.checked_sub(used);
        if table.len() <= MAX_TOC_LEN && left.is_some_and(|left| left == 0 || left >= 3) {
            return Some(table);
        }
        if !degrade(&mut toc) {
            return None;
        }
    }
}

/// Makes a table shorter by one step. `false` where it cannot become shorter.
fn degrade(toc: &mut Toc) -> bool {
    if toc
        .entries
        .iter()
        .any(|entry| entry.flags.has(BlobFlags::HASHED))
    {
        for entry in &mut toc.entries {
            entry.flags.set(BlobFlags::HASHED, false);
            entry.hash = 0;
        }
        return true;
    }
    let before = toc.entries.len();
    let mut shared: Vec<BlobEntry> = Vec::with_capacity(before / 2 + 1);
    // Pairs become one entry; the next step makes pairs of pairs.
    let mut paired = true;
    for entry in &toc.entries {
        let joined = shared
            .last()
            .filter(|_| !paired)
            .and_then(|last| last.join(entry));
        match (joined, shared.last_mut()) {
            (Some(joined), Some(last)) => {
                *last = joined;
                paired = true;
            }
            _ => {
                shared.push(*entry);
                paired = false;
            }
        }
    }
    toc.entries = shared;
    toc.entries.len() < before
}

/// Bytes of a length-delimited field.
const fn field_len(number: u32, len: usize) -> usize {
    varint_len((number as u64) << 3) + varint_len(len as u64) + len
}

/// Appends exactly `room` bytes of padding fields; `room` is 0 or at least 3.
fn put_padding(out: &mut Vec<u8>, room: usize) {
    let end = out.len() + room;
    while out.len() < end {
        let left = end - out.len();
        // Where no single field has just that length, an empty one takes up three bytes first.
        let fits = (1..=5).find_map(|digits| {
            let len = left.checked_sub(2 + digits)?;
            (varint_len(len as u64) == digits).then_some(len)
        });
        let len = fits.unwrap_or(0);
        put_bytes_head(out, PADDING_FIELD, len);
        out.resize(out.len() + len, 0);
    }
}

/// Most bytes in one stored block of a deflate stream.
const STORED_BLOCK_LEN: usize = 65_535;

/// zlib data that stores `payload` uncompressed, so that its length depends on nothing else.
fn zlib_stored(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zlib_stored_len(payload.len()));
    out.extend_from_slice(&[0x78, 0x01]);
    let mut blocks = payload.chunks(STORED_BLOCK_LEN).peekable();
    while let Some(block) = blocks.next() {
        let len = block.len() as u16;
        out.push(u8::from(blocks.peek().is_none()));
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.extend_from_slice(&adler32(payload).to_be_bytes());
    out
}

fn zlib_stored_len(payload_len: usize) -> usize {
    2 + payload_len.div_ceil(STORED_BLOCK_LEN) * 5 + payload_len + 4
}

/// The checksum that ends zlib data (RFC 1950).
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut a, mut b) = (1u32, 0u32);
    // 5552 bytes are the most that cannot overflow 32 bits.
    for chunk in bytes.chunks(5552) {
        for &byte in chunk {
            a += u32::from(byte);
            b += a;
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    b << 16 | a
}

/// Length of the header frame whose payload has that length.
fn frame_len_of(payload_len: usize) -> usize {
    let zlib = zlib_stored_len(payload_len);
    let blob = 1 + varint_len(payload_len as u64) + 1 + varint_len(zlib as u64) + zlib;
    4 + 2 + "OSMHeader".len() + 1 + varint_len(blob as u64) + blob
}

/// Undoes [`frame_len_of`].
fn payload_len_of(frame_len: usize) -> Option<usize> {
    let guess = frame_len
        .checked_sub(frame_len.div_ceil(STORED_BLOCK_LEN) * 5 + 64)
        .unwrap_or(1);
    (guess..frame_len).find(|&len| frame_len_of(len) == frame_len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::toc::tests::table;
    use crate::pbf::wire::Fields;
    use crate::pbf::{BlobHeader, Decompressor};

    /// The table as it is for blobs that start behind a header of that length.
    fn moved(mut toc: Toc, header_len: usize) -> Toc {
        for entry in &mut toc.entries {
            entry.offset = entry.offset + header_len as u64 - 1000;
        }
        toc
    }

    fn read_back(frame: &[u8]) -> (HeaderBlock, Option<Toc>) {
        let len = BlobHeader::len_from_prefix(frame[..4].try_into().unwrap()).unwrap() as usize;
        let blob = Blob::parse(&frame[4 + len..]).unwrap();
        let mut decompressor = Decompressor::default();
        let (header, toc) = HeaderBlock::parse(decompressor.payload(&blob).unwrap()).unwrap();
        (
            header,
            toc.map(|bytes| Toc::parse(bytes, frame.len() as u64, 1 << 40).unwrap()),
        )
    }

    #[test]
    fn the_header_frame_fills_the_room_that_was_reserved() {
        let header = HeaderBlock::default();
        for reserved in [0, 1, 100, 3000] {
            let len = reserved_header_len(&header, reserved);
            for blobs in [0, reserved as u32 / 2, reserved as u32] {
                let (frame, _) =
                    header_frame_with_toc(&header, Some(moved(table(blobs), len)), len).unwrap();
                assert_eq!(frame.len(), len);
                assert_eq!(read_back(&frame).1.unwrap().entries.len(), blobs as usize);
            }
        }
    }

    #[test]
    fn a_table_with_too_little_room_loses_hashes_first_and_then_shares_entries() {
        let header = HeaderBlock::default();
        let toc = table(1000);
        let mut seen = Vec::new();
        for reserved in [1000, 200, 80, 20, 0] {
            let len = reserved_header_len(&header, reserved);
            let read = read_back(
                &header_frame_with_toc(&header, Some(moved(toc.clone(), len)), len)
                    .unwrap()
                    .0,
            )
            .1;
            let Some(read) = read else {
                seen.push((0, false));
                continue;
            };
            assert_eq!(
                read.entries.iter().map(|entry| entry.blobs).sum::<u32>(),
                1000
            );
            assert_eq!(
                read.entries.iter().map(|entry| entry.count).sum::<u32>(),
                8_000_000
            );
            let hashed = read
                .entries
                .iter()
                .any(|entry| entry.flags.has(BlobFlags::HASHED));
            seen.push((read.entries.len(), hashed));
        }
        assert_eq!(seen[0], (1000, true));
        assert!(
            seen.contains(&(1000, false)) && seen.contains(&(500, false)),
            "{seen:?}"
        );
        assert!(
            seen.is_sorted_by_key(|(entries, _)| std::cmp::Reverse(*entries)),
            "{seen:?}"
        );
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
    fn frame_lengths_can_be_undone() {
        for len in (1..400).chain(65_500..65_600).chain([131_071, 24 << 20]) {
            assert_eq!(payload_len_of(frame_len_of(len)), Some(len));
        }
    }
}
