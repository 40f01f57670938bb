//! The table of ids, for a file with blobs that are not in the order of ids. The table maps small ranges of ids to the
//! blobs that contain ids in the range.
//!
//! The table is stored before the table of contents, in blobs that have strings only. Each section has many ranges, and
//! a directory of the sections follows the last one. `reference/format.md` has the layout.

use super::entry::BlobEntry;
use super::strings_blob::{data_blob, put_strings_frame, read_strings, strings_of, trailer_number};
use super::toc::MAGIC;
use crate::deflate::stored::CHECKSUM_LEN;
use crate::error::FormatError;
use crate::osm::ObjectKind;
use crate::pbf::frame::blob::{MAX_BLOB_HEADER_LEN, MAX_BLOB_LEN};
use crate::pbf::wire::{Varints, put_varint};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// The string that marks a blob as a section of a table of ids.
const SECTION_TITLE: &str = "HOGG table of ids";
/// The string that marks a blob as the directory of a table of ids.
const DIRECTORY_TITLE: &str = "HOGG table of ids, directory";
/// The version of the table of ids, which is stored in its directory.
const VERSION: u8 = 1;
/// The prefix of the last string in the directory. The size of the directory's frame follows it.
const TRAILER_TITLE: &str = "HOGG directory of ids, bytes: ";
/// The number of decimal digits of the frame size in the last string of the directory.
const LEN_DIGITS: usize = 10;
/// The length in bytes of the last string in the directory. Only the checksum of the blob follows it.
const TRAILER_LEN: usize = TRAILER_TITLE.len() + LEN_DIGITS;
/// The number of bytes at the end of a table that [`IdDirectory::frame_len`] needs.
pub const ID_TABLE_TAIL_LEN: usize = TRAILER_LEN + CHECKSUM_LEN;

/// The maximum size in bytes of a frame of a table of ids.
pub const MAX_TABLE_FRAME_LEN: u64 = (MAX_BLOB_LEN + MAX_BLOB_HEADER_LEN) as u64;

/// The size in bytes at which a section is complete. Its frame is a third larger.
const SECTION_LEN: usize = 24 << 10;
/// The minimum number of ids per blob in a complete range, for nodes, ways and relations. A range ends when the number
/// of its ids is this value times ([`HEAD`] + the number of its blobs). This limits the size of the table, because each
/// blob number in a range needs one to three bytes.
const IDS_PER_BLOB: [u32; 3] = [32, 8, 2];
/// The size of the header of a range, in units of the size of a blob number.
const HEAD: u32 = 2;

/// Returns a hash of the kinds, object counts and id ranges of all blobs of a file. A table of ids with another
/// fingerprint belongs to another file.
pub fn id_fingerprint(entries: &[BlobEntry]) -> u64 {
    let mut bytes = Vec::with_capacity(entries.len() * 21);
    for entry in entries {
        bytes.push(entry.kinds.bits());
        bytes.extend_from_slice(&entry.count.to_le_bytes());
        bytes.extend_from_slice(&entry.min_id.to_le_bytes());
        bytes.extend_from_slice(&entry.max_id.to_le_bytes());
    }
    XxHash3_64::oneshot(&bytes)
}

/// Builds a table of ids from the ids of all objects, which must be added in canonical order.
#[derive(Debug, Default)]
pub struct IdTableBuilder {
    /// The complete frames that have not been taken.
    frames: Vec<u8>,
    sections: Vec<IdSection>,
    /// The total size in bytes of all sections.
    len: u64,
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
    /// The blobs that contain ids of the range, in the order in which they were added.
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
    pub fn add(&mut self, kind: ObjectKind, rank: u64, blob: u32) -> Result<(), FormatError> {
        if self.range.kind != Some(kind) {
            self.end_section()?;
            self.range.kind = Some(kind);
        }
        if self.range.add(rank, blob, IDS_PER_BLOB[kind as usize]) {
            self.end_range();
            if self.section.bytes.len() >= SECTION_LEN {
                self.end_section()?;
            }
        }
        Ok(())
    }

    /// Returns the complete frames that have not been returned before.
    pub fn take_frames(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.frames)
    }

    /// Completes the table for a file with the given [fingerprint](id_fingerprint). Returns the frames that have not
    /// been returned by [`take_frames`](Self::take_frames).
    pub fn finish(mut self, fingerprint: u64) -> Result<Vec<u8>, FormatError> {
        self.end_section()?;
        let directory = IdDirectory {
            fingerprint,
            sections: self.sections,
        };
        directory.put_frame(&mut self.frames)?;
        Ok(self.frames)
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

    fn end_section(&mut self) -> Result<(), FormatError> {
        self.end_range();
        let Some(kind) = self.range.kind.filter(|_| !self.section.bytes.is_empty()) else {
            return Ok(());
        };
        let section = std::mem::take(&mut self.section);
        let before = self.frames.len();
        put_table_frame(SECTION_TITLE, &section.bytes, None, &mut self.frames)?;
        let len = (self.frames.len() - before) as u64;
        self.sections.push(IdSection {
            kind,
            first: section.first,
            last: section.last,
            frame: self.len..self.len + len,
        });
        self.len += len;
        Ok(())
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
        self.ids >= ids_per_blob * (HEAD + self.blobs.len() as u32)
    }
}

/// A section of a table of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdSection {
    /// The kind of the objects.
    pub kind: ObjectKind,
    /// The rank of the first id.
    pub first: u64,
    /// The rank of the last id.
    pub last: u64,
    /// The position of the section's frame, in bytes from the beginning of the table.
    pub frame: Range<u64>,
}

/// The directory of a table of ids. It is the last blob of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdDirectory {
    /// The [fingerprint](id_fingerprint) of the file.
    pub fingerprint: u64,
    /// The sections, in the order of kinds and ids.
    pub sections: Vec<IdSection>,
}

impl IdDirectory {
    fn put_frame(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let bytes = self.encode();
        // The last string has a fixed number of digits, so that the size of the frame does not depend on the number.
        let mut frame = Vec::new();
        put_table_frame(DIRECTORY_TITLE, &bytes, Some(0), &mut frame)?;
        put_table_frame(DIRECTORY_TITLE, &bytes, Some(frame.len()), out)
    }

    /// Returns the encoded directory.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.fingerprint.to_le_bytes());
        let mut last = 0;
        for section in &self.sections {
            put_varint(&mut bytes, section.kind.number().into());
            put_varint(&mut bytes, section.first.wrapping_sub(last));
            put_varint(&mut bytes, section.last - section.first);
            put_varint(&mut bytes, section.frame.end - section.frame.start);
            last = section.last;
        }
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Returns the size in bytes of the directory's frame, read from the last [`ID_TABLE_TAIL_LEN`] bytes of a table.
    /// Returns `None` if `tail` is not the end of a table.
    pub fn frame_len(tail: &[u8]) -> Option<u64> {
        trailer_number(tail, TRAILER_TITLE, LEN_DIGITS)
    }

    /// Reads the frame of a directory.
    pub fn read(frame: &[u8]) -> Result<Self, FormatError> {
        Self::decode(&read_table_frame(DIRECTORY_TITLE, frame)?)
    }

    /// Decodes a directory.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(damaged());
        }
        let rest = body.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let rest = rest
            .strip_prefix(&[VERSION])
            .ok_or_else(|| FormatError::new("it has a version that this program does not know"))?;
        let (fingerprint, rest) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        let mut fields = Varints::new(rest);
        let (mut sections, mut last, mut start) = (Vec::new(), 0u64, 0u64);
        let mut before = (ObjectKind::Node, 0);
        while !fields.is_done() {
            let kind = ObjectKind::from_number(fields.read()?).ok_or_else(damaged)?;
            let first = last.wrapping_add(fields.read()?);
            if (kind, first) < before {
                return Err(FormatError::new("its sections are out of order"));
            }
            last = first.checked_add(fields.read()?).ok_or_else(damaged)?;
            let len = Some(fields.read()?).filter(|len| *len <= MAX_TABLE_FRAME_LEN);
            let end = len
                .and_then(|len| start.checked_add(len))
                .ok_or_else(damaged)?;
            sections.push(IdSection {
                kind,
                first,
                last,
                frame: start..end,
            });
            start = end;
            before = (kind, last);
        }
        Ok(Self {
            fingerprint: u64::from_le_bytes(*fingerprint),
            sections,
        })
    }

    /// Returns the total size in bytes of all sections.
    pub fn sections_len(&self) -> u64 {
        self.sections.last().map_or(0, |section| section.frame.end)
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

impl IdSection {
    /// Reads the frame of this section and calls `take` with each of its ranges, in order. Stops at the first error of
    /// `take`.
    pub fn read(
        &self,
        frame: &[u8],
        take: impl FnMut(IdRange<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        self.decode(&read_table_frame(SECTION_TITLE, frame)?, take)
    }

    /// Decodes this section, as [`read`](Self::read) does.
    pub fn decode(
        &self,
        bytes: &[u8],
        mut take: impl FnMut(IdRange<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut fields = Varints::new(bytes);
        let (mut last, mut blobs) = (self.first, Vec::new());
        while !fields.is_done() {
            let first = last.checked_add(fields.read()?).ok_or_else(damaged)?;
            last = first.checked_add(fields.read()?).ok_or_else(damaged)?;
            let (count, mut next) = (fields.read()?, 0u64);
            blobs.clear();
            for _ in 0..count {
                let blob = next.checked_add(fields.read()?).ok_or_else(damaged)?;
                blobs.push(u32::try_from(blob).map_err(|_| damaged())?);
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
            Err(damaged())
        }
    }
}

fn damaged() -> FormatError {
    FormatError::new("it is damaged")
}

/// Appends a frame with the given title and bytes. If `len` is set, the last string states `len` as the size of the
/// frame.
fn put_table_frame(
    title: &str,
    bytes: &[u8],
    len: Option<usize>,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let text = STANDARD.encode(bytes);
    let mut strings = vec!["", title];
    strings.extend(strings_of(&text));
    let trailer = len.map(|len| format!("{TRAILER_TITLE}{len:0LEN_DIGITS$}"));
    strings.extend(trailer.as_deref());
    put_strings_frame(&strings, out)
}

/// Returns the bytes in a frame. Fails unless the frame has the given title.
fn read_table_frame(title: &str, frame: &[u8]) -> Result<Vec<u8>, FormatError> {
    let (body, _) = data_blob(frame)
        .filter(|(_, behind)| behind.is_empty())
        .ok_or_else(damaged)?;
    let text = read_strings(body, |strings| {
        let has_title = strings.get(1).is_ok_and(|found| found == title);
        let chunks = strings.iter().skip(2);
        let chunks = chunks.filter(|string| !string.starts_with(TRAILER_TITLE));
        has_title.then(|| chunks.collect::<String>())
    })?;
    let text = text.flatten().ok_or_else(damaged)?;
    STANDARD.decode(text).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns objects in eleven blobs. Nodes are in long runs of one blob, and the blobs of ways alternate.
    fn objects() -> Vec<(ObjectKind, u64, u32)> {
        let nodes =
            (0..100_000u64).map(|rank| (ObjectKind::Node, rank * 3, (rank / 40_000) as u32));
        let ways =
            (0..50_000u64).map(|rank| (ObjectKind::Way, (1 << 63) + rank, 3 + (rank % 7) as u32));
        let relations = [0, 5, u64::MAX].map(|rank| (ObjectKind::Relation, rank, 10));
        nodes.chain(ways).chain(relations).collect()
    }

    fn table(objects: &[(ObjectKind, u64, u32)]) -> Vec<u8> {
        let mut builder = IdTableBuilder::default();
        let mut frames = Vec::new();
        for (kind, rank, blob) in objects {
            builder.add(*kind, *rank, *blob).unwrap();
            frames.extend(builder.take_frames());
        }
        frames.extend(builder.finish(77).unwrap());
        frames
    }

    fn directory(table: &[u8]) -> IdDirectory {
        let len = IdDirectory::frame_len(table).unwrap() as usize;
        IdDirectory::read(&table[table.len() - len..]).unwrap()
    }

    #[test]
    fn a_table_lists_the_blob_of_each_id_and_few_others() {
        let objects = objects();
        let table = table(&objects);
        let directory = directory(&table);
        assert_eq!(directory.fingerprint, 77);
        let mut ranges = Vec::new();
        for section in &directory.sections {
            let frame = section.frame.start as usize..section.frame.end as usize;
            let take = |range: IdRange<'_>| {
                ranges.push((section.kind, range.first, range.last, range.blobs.to_vec()));
                Ok(())
            };
            section.read(&table[frame], take).unwrap();
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
        assert!(table.len() < objects.len() / 8, "{} bytes", table.len());
    }

    #[test]
    fn an_empty_table_has_a_directory() {
        let table = table(&[]);
        assert_eq!(directory(&table).sections, []);
    }

    #[test]
    fn a_frame_that_no_file_may_have_is_refused() {
        let mut directory = directory(&table(&objects()[99_990..]));
        directory.sections[0].frame = 0..MAX_TABLE_FRAME_LEN;
        assert!(IdDirectory::decode(&directory.encode()).is_ok());
        directory.sections[0].frame = 0..MAX_TABLE_FRAME_LEN + 1;
        assert!(IdDirectory::decode(&directory.encode()).is_err());
    }

    #[test]
    fn damage_is_an_error() {
        let table = table(&objects()[99_990..]);
        let directory = directory(&table);
        let section = &directory.sections[0];
        let frame = &table[..section.frame.end as usize];
        let tail = &table[directory.sections_len() as usize..];
        for at in 0..frame.len() {
            assert!(section.read(&frame[..at], |_| Ok(())).is_err());
        }
        for at in 0..tail.len() {
            assert!(IdDirectory::read(&tail[..at]).is_err());
            let mut damaged = tail.to_vec();
            damaged[at] ^= 1;
            let parsed = IdDirectory::read(&damaged);
            assert!(parsed.is_err() || parsed.unwrap() == directory, "{at}");
        }
    }
}
