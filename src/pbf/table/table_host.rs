//! A host is a blob with objects that also has, in its string table, a part of the table of contents or of the table of
//! ids.
//!
//! Some readers ask every blob for its first object, so a part of the table should not have a blob of its own. The
//! string table of a host contains, in this order: an empty string, the title of the part, the description of the part,
//! the strings of the objects, and the text of the part. The description has a checksum of the objects. With the
//! checksum, the objects can be read even if the table is damaged.

use super::entry::BlobEntry;
use crate::error::{FormatError, FormatResult};
use crate::pbf::block::outline::StringTable;
use crate::pbf::block::parsed::Block;
use crate::pbf::encode::encoder::BlockEncoder;
use crate::pbf::encode::intern::SourceStrings;
use crate::pbf::wire::schema::{primitive_block, string_table};
use crate::pbf::wire::{Fields, put_bytes_field, put_bytes_head};

/// The objects of a future host, without a part of a table. They are near the end of a file.
#[derive(Debug, Clone)]
pub struct TableHost {
    /// The payload of a block with the objects, which all have the same kind.
    pub payload: Vec<u8>,
    /// The facts about the objects. The offset and the sizes in the file are not known yet.
    pub entry: BlobEntry,
}

/// The payload of a host, as [`encode_host_payload`] encodes it.
pub(super) struct HostPayload {
    /// The PrimitiveBlock message.
    pub payload: Vec<u8>,
    /// The number of bytes after the string table.
    pub bytes_after_strings: usize,
}

/// Encodes the payload of a host. `objects` is the payload of a block. All objects of this block must have the same
/// kind. The part of the table has the title `title` and the strings `text`, and its description begins with `numbers`.
pub(super) fn encode_host_payload(
    objects: &[u8],
    title: &str,
    numbers: &str,
    text: &[&str],
) -> FormatResult<HostPayload> {
    let objects = encode_with_title(objects, &[title, numbers])?;
    let (message, others) = split_string_table(&objects)?;
    let (mut fields, mut count) = (Fields::new(message), 0u32);
    for _ in 0..3 {
        fields.next()?;
    }
    let strings = fields.rest();
    while fields.next()?.is_some() {
        count += 1;
    }
    let checksum = checksum_of(strings, others);
    let description = format!("{numbers}, strings {count}, checksum {checksum:08x}");
    let mut table = Vec::with_capacity(message.len() + text.len() * 1004 + 64);
    for string in ["", title, &description] {
        put_bytes_field(&mut table, string_table::S, string.as_bytes());
    }
    table.extend_from_slice(strings);
    for string in text {
        put_bytes_field(&mut table, string_table::S, string.as_bytes());
    }
    let mut payload = Vec::with_capacity(table.len() + others.len() + 8);
    put_bytes_head(&mut payload, primitive_block::STRINGTABLE, table.len());
    payload.extend_from_slice(&table);
    payload.extend_from_slice(others);
    let bytes_after_strings = others.len();
    Ok(HostPayload {
        payload,
        bytes_after_strings,
    })
}

/// Returns the checksum of the encoded strings of objects and the bytes after the string table.
fn checksum_of(strings: &[u8], others: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(strings), others)
}

/// Encodes the objects of a block again, with the strings in `title` before the strings of the objects.
fn encode_with_title(objects: &[u8], title: &[&str]) -> FormatResult<Vec<u8>> {
    let block = Block::parse(objects)?;
    let mut strings = SourceStrings::new(&block.strings);
    let (mut encoder, mut cursor) = (BlockEncoder::default(), block.cursor());
    encoder.set_units(&block.units);
    while let Some(object) = cursor.next()? {
        if object.is_node_message() {
            encoder.write_plain_nodes();
        }
        encoder.add_raw(object, &mut strings)?;
    }
    let mut payload = Vec::new();
    encoder.finish_with_title(title, &mut payload);
    Ok(payload)
}

/// Splits a payload that begins with its string table into the StringTable message and the bytes after it.
pub(super) fn split_string_table(payload: &[u8]) -> FormatResult<(&[u8], &[u8])> {
    let mut fields = Fields::new(payload);
    match fields.next()? {
        Some(field) if field.number == primitive_block::STRINGTABLE => {
            Ok((field.bytes()?, fields.rest()))
        }
        _ => Err(FormatError::new(
            "the block does not begin with its string table",
        )),
    }
}

/// The parsed payload of a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host<'a> {
    /// The start of the description: the version, and the number or the kind of the part.
    pub numbers: &'a str,
    /// The encoded strings of the objects.
    strings: &'a [u8],
    /// The encoded strings of the table.
    text: &'a [u8],
    /// The bytes after the string table.
    others: &'a [u8],
}

impl<'a> Host<'a> {
    /// Parses a payload. Returns `None` if the payload does not belong to a host with this title, or if its objects are
    /// damaged.
    pub fn parse(payload: &'a [u8], title: &str) -> Option<Self> {
        let (message, others) = split_string_table(payload).ok()?;
        let mut fields = Fields::new(message);
        let mut next = || fields.next().ok().flatten()?.bytes().ok();
        let (_, found, description) = (next()?, next()?, next()?);
        if found != title.as_bytes() {
            return None;
        }
        let description = std::str::from_utf8(description).ok()?;
        let (numbers, rest) = description.split_once(", strings ")?;
        let (count, checksum) = rest.split_once(", checksum ")?;
        let from = fields.rest();
        for _ in 0..count.parse::<u32>().ok()? {
            fields.next().ok().flatten()?;
        }
        let text = fields.rest();
        let strings = &from[..from.len() - text.len()];
        let is_sound = checksum_of(strings, others) == u32::from_str_radix(checksum, 16).ok()?;
        is_sound.then_some(Self {
            numbers,
            strings,
            text,
            others,
        })
    }

    /// Returns the strings of the table.
    pub fn text(&self) -> Result<StringTable<'a>, FormatError> {
        StringTable::parse(self.text)
    }

    /// Appends the payload to `out`, with empty strings for the title and description, and without the strings of the
    /// table. The indices of the other strings stay the same.
    pub fn put_objects(&self, out: &mut Vec<u8>) {
        let mut table = Vec::with_capacity(self.strings.len() + 6);
        for _ in 0..3 {
            put_bytes_field(&mut table, string_table::S, b"");
        }
        table.extend_from_slice(self.strings);
        put_bytes_field(out, primitive_block::STRINGTABLE, &table);
        out.extend_from_slice(self.others);
    }
}
