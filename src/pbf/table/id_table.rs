//! The table of ids, for a file whose blobs are not in the order of ids. The table maps each small range of ids to the
//! blobs that contain these ids.
//!
//! The table has sections of many ranges each. A directory of the sections follows the last section. Sections and
//! directory are parts of blobs that also have objects (`id_host`). In the string table of such a blob, the strings of
//! the objects come first, and a part of the table follows. The blobs come before the table of contents. In tables of
//! version 1, the blobs have only strings. `reference/format.md` has the layout.

use super::entry::BlobEntry;
use super::id_host::{TITLE_OF_IDS, decode_table_part, read_directory};
use super::strings_blob::{parse_trailer_number, read_strings, split_data_blob};
use super::toc::MAGIC;
use crate::deflate::stored::CHECKSUM_LEN;
use crate::error::{FormatError, FormatResult};
use crate::osm::ObjectKind;
use crate::pbf::frame::blob::{MAX_BLOB_HEADER_LEN, MAX_BLOB_LEN};
use crate::pbf::wire::{Varints, put_varint};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// The string that marks a blob as the directory of a table of version 1.
const DIRECTORY_TITLE: &str = "HOGG table of ids, directory";
/// The version of a table in blobs of its own.
const ALONE: u8 = 1;
/// The version of a table in blobs with objects.
const BESIDE_OBJECTS: u8 = 2;
/// The prefix of the last string in a directory of version 1. The size of the directory's frame follows it.
const TRAILER_TITLE: &str = "HOGG directory of ids, bytes: ";
/// The number of decimal digits of the frame size in the last string of a directory of version 1.
const LEN_DIGITS: usize = 10;
/// The length in bytes of the last string in a directory of version 1. Only the checksum of the blob follows it.
const TRAILER_LEN: usize = TRAILER_TITLE.len() + LEN_DIGITS;
/// The number of bytes at the end of a table of version 1 that [`IdDirectory::frame_len`] needs.
pub const ID_TABLE_TAIL_LEN: usize = TRAILER_LEN + CHECKSUM_LEN;

/// The maximum size in bytes of a section in the file, and of a directory.
pub const MAX_TABLE_FRAME_LEN: u64 = (MAX_BLOB_LEN + MAX_BLOB_HEADER_LEN) as u64;

/// The size in bytes at which a section is complete. Stored in the file as base64 text, the section is a third larger.
const SECTION_LEN: usize = 24 << 10;
/// The minimum number of ids per blob in a complete range, for nodes, ways and relations. A range ends when the number
/// of its ids is this value times ([`HEADER_COST`] + the number of its blobs). This limits the size of the table,
/// because each blob number in a range needs one to three bytes.
const IDS_PER_BLOB: [u32; 3] = [32, 8, 2];
/// The number of blob numbers that need as much space as the header of a range.
const HEADER_COST: u32 = 2;

/// Returns a hash of the kinds, object counts and id ranges of all blobs of a file. A table of ids with another
/// fingerprint belongs to another file.
pub fn id_fingerprint<'e>(entries: impl Iterator<Item = &'e BlobEntry>) -> u64 {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.push(entry.kinds.bits());
        bytes.extend_from_slice(&entry.count.to_le_bytes());
        bytes.extend_from_slice(&entry.min_id.to_le_bytes());
        bytes.extend_from_slice(&entry.max_id.to_le_bytes());
    }
    XxHash3_64::oneshot(&bytes)
}

/// Returns the maximum size in bytes of the table for `count` objects of one kind.
pub fn max_table_len(kind: ObjectKind, count: u64) -> u64 {
    // A range with b blobs has at most 11 + 3 b bytes, and at least (2 + b) * `IDS_PER_BLOB` ids unless it is the last
    // one of its kind.
    count * 5 / u64::from(IDS_PER_BLOB[kind as usize]) + 11
}

/// A builder of a table of ids. The ids of all objects must be added in canonical order.
#[derive(Debug, Default)]
pub struct IdTableBuilder {
    /// The complete sections that have not been returned yet.
    sections: Vec<IdSectionBytes>,
    range: OpenRange,
    section: OpenSection,
}

/// The range of ids that is being built.
#[derive(Debug, Default)]
struct OpenRange {
    kind: Option<ObjectKind>,
    /// The ranks of the first id and the last id.
    ends: (u64, u64),
    ids: u32,
    /// The blobs that contain ids of the range, in the order in which the blobs were added.
    blobs: Vec<u32>,
    /// For each blob, the number of the last range with ids in the blob.
    last_range: Vec<u32>,
    number: u32,
}

/// The section that is being built.
#[derive(Debug, Default)]
struct OpenSection {
    bytes: Vec<u8>,
    /// The rank of the first id.
    first: u64,
    /// The rank of the last id.
    last: u64,
}

impl IdTableBuilder {
    /// Adds an object with its kind and the rank of its id. `blob` is the number of the object's blob among the data
    /// blobs of the file, counted from 0.
    pub fn add(&mut self, kind: ObjectKind, rank: u64, blob: u32) {
        if self.range.kind != Some(kind) {
            self.end_section();
            self.range.kind = Some(kind);
        }
        if self.range.add(rank, blob, IDS_PER_BLOB[kind as usize]) {
            self.end_range();
            if self.section.bytes.len() >= SECTION_LEN {
                self.end_section();
            }
        }
    }

    /// Returns the complete sections that have not been returned before.
    pub fn take_sections(&mut self) -> Vec<IdSectionBytes> {
        std::mem::take(&mut self.sections)
    }

    /// Completes the table. Returns the sections that have not been returned by [`take_sections`](Self::take_sections).
    pub fn finish(mut self) -> Vec<IdSectionBytes> {
        self.end_section();
        self.sections
    }

    fn end_range(&mut self) {
        let range = &mut self.range;
        if range.ids == 0 {
            return;
        }
        let section = &mut self.section;
        let (first, last) = range.ends;
        if section.bytes.is_empty() {
            (section.first, section.last) = (first, first);
        }
        put_varint(&mut section.bytes, first - section.last);
        put_varint(&mut section.bytes, last - first);
        section.last = last;
        range.blobs.sort_unstable();
        put_varint(&mut section.bytes, range.blobs.len() as u64);
        let mut next = 0;
        for blob in range.blobs.drain(..) {
            put_varint(&mut section.bytes, u64::from(blob - next));
            next = blob.saturating_add(1);
        }
        range.ids = 0;
        range.number += 1;
    }

    fn end_section(&mut self) {
        self.end_range();
        let Some(kind) = self.range.kind.filter(|_| !self.section.bytes.is_empty()) else {
            return;
        };
        let OpenSection { bytes, first, last } = std::mem::take(&mut self.section);
        self.sections.push(IdSectionBytes {
            kind,
            first,
            last,
            bytes,
        });
    }
}

impl OpenRange {
    /// Adds an id. Returns whether the range now has enough ids per blob to be complete.
    fn add(&mut self, rank: u64, blob: u32, ids_per_blob: u32) -> bool {
        if self.ids == 0 {
            self.ends.0 = rank;
        }
        self.ends.1 = rank;
        self.ids += 1;
        let at = blob as usize;
        if self.last_range.len() <= at {
            self.last_range.resize(at + 1, u32::MAX);
        }
        if self.last_range[at] != self.number {
            self.last_range[at] = self.number;
            self.blobs.push(blob);
        }
        self.ids >= ids_per_blob * (HEADER_COST + self.blobs.len() as u32)
    }
}

/// The content of a section of a table of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdSectionBytes {
    /// The kind of the objects.
    pub kind: ObjectKind,
    /// The rank of the first id.
    pub first: u64,
    /// The rank of the last id.
    pub last: u64,
    /// The encoded ranges.
    pub bytes: Vec<u8>,
}

impl IdSectionBytes {
    /// Returns the encoded ranges with their checksum.
    pub(crate) fn with_checksum(&self) -> Vec<u8> {
        let crc = crc32c::crc32c(&self.bytes).to_le_bytes();
        [&self.bytes[..], &crc].concat()
    }
}

/// A section of a table of ids: its ids, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdSection {
    /// The kind of the objects.
    pub kind: ObjectKind,
    /// The rank of the first id.
    pub first: u64,
    /// The rank of the last id.
    pub last: u64,
    /// The position of the section, in bytes from the beginning of the table.
    pub place: Range<u64>,
}

/// The directory of a table of ids. It is in the last blob of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdDirectory {
    /// [`ALONE`] or [`BESIDE_OBJECTS`].
    version: u8,
    /// The [fingerprint](id_fingerprint) of the file.
    pub fingerprint: u64,
    /// The sections, in the order of kinds and ids.
    pub sections: Vec<IdSection>,
}

impl IdDirectory {
    /// Returns the directory of a table that is stored in blobs with objects.
    pub fn new(fingerprint: u64, sections: Vec<IdSection>) -> Self {
        Self {
            version: BESIDE_OBJECTS,
            fingerprint,
            sections,
        }
    }

    /// Returns the encoded directory.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(self.version);
        bytes.extend_from_slice(&self.fingerprint.to_le_bytes());
        let (mut last, mut end) = (0, 0);
        for section in &self.sections {
            put_varint(&mut bytes, section.kind.number().into());
            put_varint(&mut bytes, section.first.wrapping_sub(last));
            put_varint(&mut bytes, section.last - section.first);
            if self.version == BESIDE_OBJECTS {
                put_varint(&mut bytes, section.place.start - end);
            }
            put_varint(&mut bytes, section.place.end - section.place.start);
            (last, end) = (section.last, section.place.end);
        }
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Returns the size in bytes of the directory's frame, read from the last [`ID_TABLE_TAIL_LEN`] bytes of a table of
    /// version 1. Returns `None` if `tail` is not the end of such a table.
    pub fn frame_len(tail: &[u8]) -> Option<u64> {
        parse_trailer_number(tail, TRAILER_TITLE, LEN_DIGITS)
    }

    /// Reads the directory from its frame. `is_alone` states whether the blobs of the table have no objects, as in
    /// version 1.
    pub fn read(frame: &[u8], is_alone: bool) -> Result<Self, FormatError> {
        let bytes = if is_alone {
            read_table_frame(DIRECTORY_TITLE, frame)?
        } else {
            read_directory(frame)?
        };
        let directory = Self::decode(&bytes)?;
        if is_alone == (directory.version == ALONE) {
            Ok(directory)
        } else {
            Err(damage_error())
        }
    }

    /// Decodes a directory.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(damage_error)?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(damage_error());
        }
        let rest = body.strip_prefix(MAGIC).ok_or_else(damage_error)?;
        let (version, rest) = rest.split_first().ok_or_else(damage_error)?;
        if ![ALONE, BESIDE_OBJECTS].contains(version) {
            let cause = "it has a version that this program does not know";
            return Err(FormatError::new(cause));
        }
        let (fingerprint, rest) = rest.split_first_chunk::<8>().ok_or_else(damage_error)?;
        let mut fields = Varints::new(rest);
        let (mut sections, mut last, mut start) = (Vec::new(), 0u64, 0u64);
        let mut before = (ObjectKind::Node, 0);
        while !fields.is_done() {
            let kind = ObjectKind::from_number(fields.read()?).ok_or_else(damage_error)?;
            let first = last.wrapping_add(fields.read()?);
            if (kind, first) < before {
                return Err(FormatError::new("its sections are out of order"));
            }
            last = first.checked_add(fields.read()?).ok_or_else(damage_error)?;
            if *version == BESIDE_OBJECTS {
                start = start.checked_add(fields.read()?).ok_or_else(damage_error)?;
            }
            let len = Some(fields.read()?).filter(|len| *len <= MAX_TABLE_FRAME_LEN);
            let end = len
                .and_then(|len| start.checked_add(len))
                .ok_or_else(damage_error)?;
            sections.push(IdSection {
                kind,
                first,
                last,
                place: start..end,
            });
            start = end;
            before = (kind, last);
        }
        Ok(Self {
            version: *version,
            fingerprint: u64::from_le_bytes(*fingerprint),
            sections,
        })
    }

    /// Returns the position of the end of the last section, in bytes from the beginning of the table.
    pub fn sections_end(&self) -> u64 {
        self.sections.last().map_or(0, |section| section.place.end)
    }

    /// Decodes the content of a section from its bytes in the file.
    pub fn read_section(
        &self,
        section: &IdSection,
        bytes: &[u8],
    ) -> Result<IdSectionBytes, FormatError> {
        let bytes = if self.version == ALONE {
            read_table_frame(TITLE_OF_IDS, bytes)?
        } else {
            let mut bytes = decode_table_part(bytes)?;
            let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(damage_error)?;
            if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
                return Err(damage_error());
            }
            bytes.truncate(bytes.len() - 4);
            bytes
        };
        Ok(IdSectionBytes {
            kind: section.kind,
            first: section.first,
            last: section.last,
            bytes,
        })
    }
}

/// A range of ids, and the blobs that contain ids of the range.
#[derive(Debug, PartialEq, Eq)]
pub struct IdRange<'a> {
    /// The rank of the first id.
    pub first: u64,
    /// The rank of the last id.
    pub last: u64,
    /// The numbers of the blobs, ascending. The first data blob of the file has number 0.
    pub blobs: &'a [u32],
}

impl IdSectionBytes {
    /// Calls `take` with each range of the section, in order. Stops at the first error of `take`.
    pub fn decode(
        &self,
        mut take: impl FnMut(IdRange<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut fields = Varints::new(&self.bytes);
        let (mut last, mut blobs) = (self.first, Vec::new());
        while !fields.is_done() {
            let first = last.checked_add(fields.read()?).ok_or_else(damage_error)?;
            last = first.checked_add(fields.read()?).ok_or_else(damage_error)?;
            let (count, mut next) = (fields.read()?, 0u64);
            blobs.clear();
            for _ in 0..count {
                let blob = next.checked_add(fields.read()?).ok_or_else(damage_error)?;
                blobs.push(u32::try_from(blob).map_err(|_| damage_error())?);
                next = blob + 1;
            }
            take(IdRange {
                first,
                last,
                blobs: &blobs,
            })?;
        }
        if last == self.last {
            Ok(())
        } else {
            Err(damage_error())
        }
    }
}

fn damage_error() -> FormatError {
    FormatError::new("it is damaged")
}

/// Returns the bytes in a frame of a table of version 1. Fails unless the frame has the given title.
fn read_table_frame(title: &str, frame: &[u8]) -> FormatResult<Vec<u8>> {
    let (body, _) = split_data_blob(frame)
        .filter(|(_, behind)| behind.is_empty())
        .ok_or_else(damage_error)?;
    let text = read_strings(body, |strings| {
        let has_title = strings.get(1).is_ok_and(|found| found == title);
        let chunks = strings.iter().skip(2);
        let chunks = chunks.filter(|string| !string.starts_with(TRAILER_TITLE));
        has_title.then(|| chunks.collect::<String>())
    })?;
    let text = text.flatten().ok_or_else(damage_error)?;
    STANDARD.decode(text).map_err(|_| damage_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::Location;
    use crate::pbf::block::object::Object;
    use crate::pbf::encode::encoder::BlockEncoder;
    use crate::pbf::table::id_host::{IdParts, encode_id_host};
    use crate::pbf::table::scan::scan_payload;
    use crate::pbf::table::table_host::TableHost;

    /// Returns objects in eleven blobs. Each of the first three blobs has a long run of nodes. The ways are distributed
    /// over the next seven blobs in turn.
    fn objects() -> Vec<(ObjectKind, u64, u32)> {
        let nodes =
            (0..100_000u64).map(|rank| (ObjectKind::Node, rank * 3, (rank / 40_000) as u32));
        let ways =
            (0..50_000u64).map(|rank| (ObjectKind::Way, (1 << 63) + rank, 3 + (rank % 7) as u32));
        let relations = [0, 5, u64::MAX].map(|rank| (ObjectKind::Relation, rank, 10));
        nodes.chain(ways).chain(relations).collect()
    }

    /// A table in blobs with objects: the bytes of its sections, and the frame of its directory.
    struct Table {
        sections: Vec<u8>,
        directory: Vec<u8>,
    }

    impl Table {
        fn build(objects: &[(ObjectKind, u64, u32)]) -> Self {
            let mut builder = IdTableBuilder::default();
            let mut contents = Vec::new();
            for (kind, rank, blob) in objects {
                builder.add(*kind, *rank, *blob);
                contents.extend(builder.take_sections());
            }
            contents.extend(builder.finish());
            let (mut sections, mut places) = (Vec::new(), Vec::new());
            for chunk in contents.chunks(3) {
                let parts: Vec<_> = chunk.iter().map(IdSectionBytes::with_checksum).collect();
                let frame = encode_id_host(&host(), IdParts::Sections, &parts, false).unwrap();
                let offset = sections.len() as u64;
                for (section, place) in chunk.iter().zip(frame.parts) {
                    places.push(IdSection {
                        kind: section.kind,
                        first: section.first,
                        last: section.last,
                        place: offset + place.start..offset + place.end,
                    });
                }
                sections.extend(frame.bytes);
            }
            let directory = IdDirectory::new(77, places).encode();
            let frame = encode_id_host(&host(), IdParts::Directory, &[directory], true).unwrap();
            Self {
                sections,
                directory: frame.bytes,
            }
        }

        fn directory(&self) -> IdDirectory {
            IdDirectory::read(&self.directory, false).unwrap()
        }
    }

    fn host() -> TableHost {
        let mut encoder = BlockEncoder::default();
        encoder
            .add(&Object::node(7, Location::new(1, 2), vec![("a", "b")]))
            .unwrap();
        let (mut payload, mut entry) = (Vec::new(), BlobEntry::default());
        encoder.finish(&mut payload);
        scan_payload(&payload, &mut entry).unwrap();
        TableHost { payload, entry }
    }

    #[test]
    fn a_table_lists_the_blob_of_each_id_and_few_others() {
        let objects = objects();
        let table = Table::build(&objects);
        let directory = table.directory();
        assert_eq!(directory.fingerprint, 77);
        let mut ranges = Vec::new();
        for section in &directory.sections {
            let place = section.place.start as usize..section.place.end as usize;
            let take = |range: IdRange<'_>| {
                ranges.push((section.kind, range.first, range.last, range.blobs.to_vec()));
                Ok(())
            };
            let content = directory.read_section(section, &table.sections[place]);
            content.unwrap().decode(take).unwrap();
        }
        let mut at = 0;
        for (kind, rank, blob) in &objects {
            while (ranges[at].0, ranges[at].2) < (*kind, *rank) {
                at += 1;
            }
            let (of, first, _, blobs) = &ranges[at];
            assert!(
                of == kind && first <= rank && blobs.contains(blob),
                "{rank}"
            );
            assert!(blobs.len() <= 7);
        }
        let len = table.sections.len();
        assert!(len < objects.len() / 8, "{len} bytes");
        let most =
            max_table_len(ObjectKind::Node, 100_000) + max_table_len(ObjectKind::Way, 50_000);
        assert!(len < most as usize * 4 / 3, "{len} bytes, {most}");
    }

    #[test]
    fn an_empty_table_has_a_directory() {
        assert_eq!(Table::build(&[]).directory().sections, []);
    }

    #[test]
    fn a_directory_with_an_oversized_section_is_refused() {
        let mut directory = Table::build(&objects()[149_990..]).directory();
        directory.sections.truncate(1);
        directory.sections[0].place = 9..9 + MAX_TABLE_FRAME_LEN;
        assert!(IdDirectory::decode(&directory.encode()).is_ok());
        directory.sections[0].place = 9..10 + MAX_TABLE_FRAME_LEN;
        assert!(IdDirectory::decode(&directory.encode()).is_err());
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let table = Table::build(&objects()[99_990..]);
        let directory = table.directory();
        let section = &directory.sections[0];
        let place = section.place.start as usize..section.place.end as usize;
        let bytes = &table.sections[place];
        let content = directory.read_section(section, bytes).unwrap();
        for at in 0..bytes.len() {
            assert!(directory.read_section(section, &bytes[..at]).is_err());
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1;
            let read = directory.read_section(section, &damaged);
            assert!(read.is_err() || read.unwrap() == content, "{at}");
        }
        let frame = &table.directory;
        for at in 0..frame.len() {
            assert!(IdDirectory::read(&frame[..at], false).is_err());
            let mut damaged = frame.clone();
            damaged[at] ^= 1;
            let parsed = IdDirectory::read(&damaged, false);
            assert!(parsed.is_err() || parsed.unwrap() == directory, "{at}");
        }
        assert!(IdDirectory::read(frame, true).is_err());
    }
}
