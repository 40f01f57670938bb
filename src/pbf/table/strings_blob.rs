//! Blobs that have a string table only. They store tables about a file, and other programs read them as blocks without
//! objects.

use crate::deflate::stored::{CHECKSUM_LEN, zlib_stored_in_pieces};
use crate::error::FormatResult;
use crate::pbf::block::outline::StringTable;
use crate::pbf::frame::blob::{Blob, BlobHeader, BlobKind, Encoding, encode_frame};
use crate::pbf::frame::codec::Decompressor;
use crate::pbf::wire::schema::{primitive_block, string_table};
use crate::pbf::wire::{Fields, put_bytes_field, put_bytes_head, varint_len};

/// The maximum length of a string in bytes. libosmium accepts strings of at most 1,024 bytes.
pub(super) const STRING_LEN: usize = 1000;
/// The common prefix of the titles of all tables. The title is the first string that is not empty.
const TITLE_OF_TABLES: &str = "HOGG table of ";

/// Appends the frame of a block with the given strings and nothing else.
pub(super) fn put_strings_frame(strings: &[&str], out: &mut Vec<u8>) -> FormatResult<()> {
    let field_len = |text: &&str| 1 + varint_len(text.len() as u64) + text.len();
    let table_len = strings.iter().map(field_len).sum();
    let mut payload = Vec::with_capacity(table_len + 8);
    put_bytes_head(&mut payload, primitive_block::STRINGTABLE, table_len);
    for text in strings {
        put_bytes_field(&mut payload, string_table::S, text.as_bytes());
    }
    let last = payload.len() - strings.last().map_or(0, |text| text.len());
    put_stored_frame(&payload, &[last], None, out).map(drop)
}

/// Appends a frame whose payload is stored uncompressed. A stored block of zlib data begins at each of `cuts`, which
/// are ascending offsets in the payload. So the bytes between two cuts are contiguous in the file if they are at most
/// 65,535. `index` is the `indexdata` of the BlobHeader. For each cut, returns the offset of its block in `out`.
pub(super) fn put_stored_frame(
    payload: &[u8],
    cuts: &[usize],
    index: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> FormatResult<Vec<usize>> {
    let (data, begins) = zlib_stored_in_pieces(payload, cuts);
    let blob = Blob {
        encoding: Encoding::Zlib,
        data: &data,
        payload_len: payload.len() as u32,
    };
    encode_frame(out, BlobKind::Data, index, &blob)?;
    // The zlib data is the last field of the Blob message, so it ends where `out` ends.
    let start = out.len() - data.len();
    Ok(begins.iter().map(|begin| start + begin).collect())
}

/// Cuts base64 text into strings of [`STRING_LEN`] bytes. The last string may be shorter.
pub(super) fn split_into_strings(text: &str) -> impl Iterator<Item = &str> {
    let starts = (0..text.len()).step_by(STRING_LEN);
    starts.map(|start| &text[start..text.len().min(start + STRING_LEN)])
}

/// Returns the number in the last string of a table. This string consists of `title` and `digits` decimal digits.
/// Returns `None` unless `tail` ends with the string and the checksum of its blob.
pub(super) fn parse_trailer_number(tail: &[u8], title: &str, digits: usize) -> Option<u64> {
    let len = title.len() + digits;
    let trailer = tail.get(tail.len().checked_sub(len + CHECKSUM_LEN)?..)?;
    let number = trailer.get(..len)?.strip_prefix(title.as_bytes())?;
    if !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Calls `read` with the strings in a Blob message. Returns `None` unless the blob has a string table only and is
/// stored uncompressed.
pub(super) fn read_strings<T>(
    body: &[u8],
    read: impl FnOnce(&StringTable<'_>) -> T,
) -> FormatResult<Option<T>> {
    let read = |payload: &[u8]| Ok(sole_string_table(payload)?.map(|strings| read(&strings)));
    Ok(read_stored_payload(body, read)?.flatten())
}

/// Calls `read` with the payload of a Blob message. Returns `None` if the blob has no zlib data, or if its payload is
/// longer than the message. In the second case, the payload is compressed.
pub(super) fn read_stored_payload<T>(
    body: &[u8],
    read: impl FnOnce(&[u8]) -> FormatResult<T>,
) -> FormatResult<Option<T>> {
    let blob = Blob::parse(body)?;
    // Refuses compressed data, because a table is stored uncompressed. This limits the memory to the size of the blob.
    if blob.encoding != Encoding::Zlib || blob.payload_len as usize > body.len() {
        return Ok(None);
    }
    let mut decompressor = Decompressor::default();
    read(decompressor.payload(&blob)?).map(Some)
}

/// Returns the Blob message of the first frame, and the bytes after the frame. Returns `None` if the frame is
/// incomplete or not a data frame.
pub(super) fn split_data_blob(frames: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, rest) = BlobHeader::read(frames).ok()?;
    if header.kind != BlobKind::Data {
        return None;
    }
    rest.split_at_checked(header.blob_len as usize)
}

/// Returns the string table of a block without other fields. Returns `None` for other blocks.
pub(super) fn sole_string_table(payload: &[u8]) -> FormatResult<Option<StringTable<'_>>> {
    let mut fields = Fields::new(payload);
    let Some(table) = fields
        .next()?
        .filter(|field| field.number == primitive_block::STRINGTABLE)
    else {
        return Ok(None);
    };
    if fields.next()?.is_some() {
        return Ok(None);
    }
    StringTable::parse(table.bytes()?).map(Some)
}

/// The number of bytes at the start of a Blob message that [`may_be_table_blob`] needs.
pub(super) const START_LEN: usize = 64;

/// The number of bytes at the start of a frame that are enough to tell whether the frame may have a part of a table.
/// They cover a BlobHeader with an index, and the first bytes of the Blob message.
pub const FRAME_PROBE_LEN: usize = 192;

/// Whether a Blob message that begins with `start` may have a part of a table about the file. `start` must have at
/// least the first 64 bytes of the message. [`is_table_blob`] and [`TableBlob::of`](crate::pbf::TableBlob::of) check a
/// whole message.
pub fn may_be_table_blob(start: &[u8]) -> bool {
    let title = TITLE_OF_TABLES.as_bytes();
    start.windows(title.len()).any(|window| window == title)
}

/// Whether `body`, a whole Blob message, has a part of a table about the file and no objects.
pub fn is_table_blob(body: &[u8]) -> bool {
    let is_table = |strings: &StringTable<'_>| {
        let title = strings.get(1);
        title.is_ok_and(|title| title.starts_with(TITLE_OF_TABLES))
    };
    read_strings(body, is_table).is_ok_and(|is_table| is_table == Some(true))
}
