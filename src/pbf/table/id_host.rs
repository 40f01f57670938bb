//! Blobs that have both objects and, in their string table, a part of the table of ids.
//!
//! The strings of a part are in zlib blocks of their own, so a part can be read without the rest of its blob.
//! `reference/format.md` has the layout.

use super::blob_index::encode_blob_index;
use super::entry::{BlobEntry, BlobFlags};
use super::scan::scan_payload;
use super::strings_blob::{put_stored_frame, split_data_blob, split_into_strings};
use super::table_host::{Host, TableHost, encode_host_payload};
use crate::deflate::stored::{content_of_stored_blocks, stored_content};
use crate::error::{FormatError, FormatResult};
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::frame::blob::{Blob, Encoding};
use crate::pbf::wire::{Fields, varint_len};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::ops::Range;

/// The string that marks a block as a part of a table of ids.
pub(super) const TITLE_OF_IDS: &str = "HOGG table of ids";

/// The kind of the parts of a table of ids in a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdParts {
    /// Sections.
    Sections,
    /// The directory of all sections.
    Directory,
}

impl IdParts {
    /// Returns the beginning of the string that describes the parts in the string table.
    const fn name(self) -> &'static str {
        match self {
            Self::Sections => "version 2, sections",
            Self::Directory => "version 2, directory",
        }
    }
}

/// A frame with objects and parts of a table of ids.
#[derive(Debug)]
pub struct IdHostFrame {
    /// The bytes of the frame.
    pub bytes: Vec<u8>,
    /// The entry of the blob, in which the offset is not set yet.
    pub entry: BlobEntry,
    /// The range of each part in the frame.
    pub parts: Vec<Range<u64>>,
}

/// Encodes a frame that has the objects of `host` and the given parts of a table of ids. Each part must end with its
/// checksum. If `blob_index` is set, the BlobHeader has an index.
pub fn encode_id_host(
    host: &TableHost,
    kind: IdParts,
    parts: &[Vec<u8>],
    blob_index: bool,
) -> Result<IdHostFrame, FormatError> {
    let texts: Vec<String> = parts.iter().map(|part| STANDARD.encode(part)).collect();
    let strings: Vec<&str> = texts
        .iter()
        .flat_map(|text| split_into_strings(text))
        .collect();
    let encoded = encode_host_payload(&host.payload, TITLE_OF_IDS, kind.name(), &strings)?;
    let encoded_len = |text: &String| split_into_strings(text).map(field_len).sum::<usize>();
    let lens: Vec<usize> = texts.iter().map(encoded_len).collect();
    let end = encoded.payload.len() - encoded.bytes_after_strings;
    let mut cuts = vec![end - lens.iter().sum::<usize>()];
    for len in lens {
        cuts.push(cuts[cuts.len() - 1] + len);
    }
    let entry = compute_host_entry(host, &encoded.payload)?;
    let index = encode_blob_index(&entry).filter(|_| blob_index);
    let index = index.as_ref().map(<[u8; _]>::as_slice);
    let mut bytes = Vec::new();
    let begins = put_stored_frame(&encoded.payload, &cuts, index, &mut bytes)?;
    let body = split_data_blob(&bytes).map_or(0, |(body, _)| body.len());
    let entry = BlobEntry {
        frame_len: bytes.len() as u32,
        header_len: (bytes.len() - body) as u32,
        ..entry
    };
    let parts = begins.windows(2).map(|pair| pair[0] as u64..pair[1] as u64);
    Ok(IdHostFrame {
        entry,
        parts: parts.collect(),
        bytes,
    })
}

/// Returns the length in bytes of the field of a string in a string table.
fn field_len(text: &str) -> usize {
    1 + varint_len(text.len() as u64) + text.len()
}

/// Returns the entry of a blob with the given payload. The objects in the payload are those of `host`. The bounding box
/// of ways or relations is copied from `host.entry`.
fn compute_host_entry(host: &TableHost, payload: &[u8]) -> FormatResult<BlobEntry> {
    let mut objects = Vec::new();
    let parsed = Host::parse(payload, TITLE_OF_IDS).ok_or_else(damage_error)?;
    parsed.put_objects(&mut objects);
    let mut entry = BlobEntry::default();
    entry.flags.set(BlobFlags::HAS_TABLE, true);
    scan_payload(&objects, &mut entry)?;
    if entry.kinds != KindSet::of(ObjectKind::Node) {
        entry.bbox = host.entry.bbox;
    }
    Ok(entry)
}

/// Decodes one part from its range of bytes in the file.
pub(super) fn decode_table_part(bytes: &[u8]) -> FormatResult<Vec<u8>> {
    let (strings, _) = content_of_stored_blocks(bytes).ok_or_else(damage_error)?;
    let (mut fields, mut text) = (Fields::new(&strings), Vec::with_capacity(strings.len()));
    while let Some(field) = fields.next()? {
        text.extend_from_slice(field.bytes()?);
    }
    STANDARD.decode(text).map_err(|_| damage_error())
}

/// Decodes the directory in the given frame.
pub(super) fn read_directory(frame: &[u8]) -> FormatResult<Vec<u8>> {
    let (body, _) = split_data_blob(frame).ok_or_else(damage_error)?;
    let payload = stored_payload(body)?.ok_or_else(damage_error)?;
    let host = Host::parse(&payload, TITLE_OF_IDS).ok_or_else(damage_error)?;
    if host.numbers != IdParts::Directory.name() {
        return Err(damage_error());
    }
    let text: String = host.text()?.iter().collect();
    STANDARD.decode(text).map_err(|_| damage_error())
}

/// Whether `body`, a whole Blob message, has both objects and a part of a table of ids.
pub(super) fn is_id_host(body: &[u8]) -> bool {
    let payload = stored_payload(body).ok().flatten();
    payload.is_some_and(|payload| Host::parse(&payload, TITLE_OF_IDS).is_some())
}

/// Returns the payload of a Blob message. Returns `None` unless the payload is zlib data that consists of stored
/// (uncompressed) blocks.
fn stored_payload(body: &[u8]) -> FormatResult<Option<Vec<u8>>> {
    let blob = Blob::parse(body)?;
    let is_zlib = blob.encoding == Encoding::Zlib;
    Ok(is_zlib.then(|| stored_content(blob.data)).flatten())
}

fn damage_error() -> FormatError {
    FormatError::new("it is damaged")
}
