//! Stores a table of ids in the last blobs of an output with a spatial layout, which keep their objects.

use super::last_blobs::{OutputBlob, WholeBlob};
use crate::error::FormatError;
use crate::pbf::{
    BlobEntry, IdDirectory, IdHostFrame, IdParts, IdSection, IdSectionBytes, encode_id_host,
};
use std::collections::VecDeque;

/// The size in bytes of the sections in a blob. As base64 text they are a third larger. The format recommends blobs
/// below 16 MiB.
const LEN_IN_A_BLOB: usize = 9 << 20;

/// Returns the number of blobs that get sections of a table of at most `len` bytes.
pub(super) fn max_section_blobs(len: u64) -> usize {
    // A blob may have half as much as a blob should have, because a long section follows.
    len.div_ceil(LEN_IN_A_BLOB as u64 / 2).max(1) as usize
}

/// A table of ids that is being written, and the blobs that can have its parts.
#[derive(Debug)]
pub(super) struct IdTableParts {
    /// The blobs of the output that are not written yet.
    blobs: VecDeque<WholeBlob>,
    /// The number of blobs at the end that get the table of contents.
    for_toc: usize,
    /// The sections that are not written yet.
    sections: Vec<IdSectionBytes>,
    /// The size of `sections` in bytes.
    len: usize,
    /// The places of the sections that are written.
    places: Vec<IdSection>,
    /// The offset of the table in the file.
    start: Option<u64>,
}

impl IdTableParts {
    /// Begins a table in the last blobs of an output. The last `for_toc` ones get the table of contents. Returns the
    /// blobs as an error if they are too few.
    pub fn new(blobs: Vec<WholeBlob>, for_toc: usize) -> Result<Self, Vec<WholeBlob>> {
        // One blob has the sections, and another one the directory.
        if blobs.len() < for_toc + 2 {
            return Err(blobs);
        }
        Ok(Self {
            blobs: blobs.into(),
            for_toc,
            sections: Vec::new(),
            len: 0,
            places: Vec::new(),
            start: None,
        })
    }

    /// Returns the entries of the blobs that are not written yet.
    pub fn entries(&self) -> impl Iterator<Item = &BlobEntry> {
        self.blobs.iter().map(|blob| &blob.host.entry)
    }

    /// Adds a section. Returns whether the sections that are not written yet fill a blob.
    pub fn add(&mut self, section: IdSectionBytes) -> bool {
        self.len += section.bytes.len();
        self.sections.push(section);
        self.len >= LEN_IN_A_BLOB
    }

    /// Returns the frame of the next blob, with all sections that are not written yet. The frame must be written at
    /// the offset `position`. Returns `None` if there are no such sections.
    pub fn sections_frame(
        &mut self,
        position: u64,
        blob_index: bool,
    ) -> Result<Option<IdHostFrame>, FormatError> {
        let sections = std::mem::take(&mut self.sections);
        if sections.is_empty() {
            return Ok(None);
        }
        self.len = 0;
        let parts: Vec<_> = sections.iter().map(IdSectionBytes::with_checksum).collect();
        let frame = self.next_frame(1, IdParts::Sections, &parts, blob_index)?;
        let start = *self.start.get_or_insert(position);
        let offset = position - start;
        for (section, place) in sections.iter().zip(&frame.parts) {
            self.places.push(IdSection {
                kind: section.kind,
                first: section.first,
                last: section.last,
                place: offset + place.start..offset + place.end,
            });
        }
        Ok(Some(frame))
    }

    /// Returns the next blob that gets no part of a table.
    pub fn next_ordinary(&mut self) -> Option<OutputBlob> {
        if self.blobs.len() <= self.for_toc + 1 {
            return None;
        }
        self.blobs.pop_front().map(|blob| blob.blob)
    }

    /// Returns the frame of the next blob, with the directory of a table for a file with the given
    /// [fingerprint](crate::pbf::id_fingerprint).
    pub fn directory_frame(
        &mut self,
        fingerprint: u64,
        blob_index: bool,
    ) -> Result<IdHostFrame, FormatError> {
        let sections = std::mem::take(&mut self.places);
        let directory = IdDirectory::new(fingerprint, sections).encode();
        self.next_frame(0, IdParts::Directory, &[directory], blob_index)
    }

    /// Returns the frame of the next blob, with `parts`. At least `behind` blobs before those of the table of contents
    /// stay.
    fn next_frame(
        &mut self,
        behind: usize,
        kind: IdParts,
        parts: &[Vec<u8>],
        blob_index: bool,
    ) -> Result<IdHostFrame, FormatError> {
        let is_left = self.blobs.len() > self.for_toc + behind;
        let blob = self.blobs.pop_front().filter(|_| is_left);
        let blob = blob.ok_or(FormatError::new("no blob is left for the table of ids"))?;
        encode_id_host(&blob.host, kind, parts, blob_index)
    }

    /// Returns the blobs that are not written yet, and how many of them get the table of contents.
    pub fn into_rest(self) -> (VecDeque<WholeBlob>, usize) {
        (self.blobs, self.for_toc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::{Location, ObjectKind};
    use crate::pbf::{Compression, FrameEncoder, Object, TableHost};

    fn blob(id: i64) -> WholeBlob {
        let mut encoder = FrameEncoder::new(Compression::default(), false);
        let node = Object::node(id, Location::new(1, 2), Vec::new());
        encoder.add(&node).unwrap();
        let frame = encoder.finish().unwrap().remove(0);
        let payload = frame.payload(&mut Default::default()).unwrap().to_vec();
        let host = TableHost {
            payload,
            entry: frame.entry,
        };
        WholeBlob {
            blob: OutputBlob::Frame(frame),
            host,
        }
    }

    #[test]
    fn a_long_table_is_in_several_blobs() {
        let blobs = |count: i64| (1..=count).map(blob).collect::<Vec<_>>();
        assert!(IdTableParts::new(blobs(2), 1).is_err());
        let mut parts = IdTableParts::new(blobs(6), 1).unwrap();
        let sections: Vec<IdSectionBytes> = (0..5)
            .map(|number| IdSectionBytes {
                kind: ObjectKind::Node,
                first: number * 10,
                last: number * 10 + 9,
                bytes: vec![number as u8; LEN_IN_A_BLOB / 2 + 1],
            })
            .collect();
        let mut file = vec![7; 100];
        for section in &sections {
            if parts.add(section.clone()) {
                let frame = parts.sections_frame(file.len() as u64, false).unwrap();
                file.extend(frame.unwrap().bytes);
            }
        }
        let frame = parts.sections_frame(file.len() as u64, false).unwrap();
        file.extend(frame.unwrap().bytes);
        assert!(parts.sections_frame(0, false).unwrap().is_none());
        assert_eq!(parts.next_ordinary().unwrap().entry().min_id, 4);
        assert!(parts.next_ordinary().is_none());
        let frame = parts.directory_frame(5, false).unwrap();
        let directory = IdDirectory::read(&frame.bytes, false).unwrap();
        for (section, expected) in directory.sections.iter().zip(&sections) {
            let place = 100 + section.place.start as usize..100 + section.place.end as usize;
            let content = directory.read_section(section, &file[place]).unwrap();
            assert!(content == *expected);
        }
        assert_eq!(directory.sections.len(), 5);
        let (rest, for_toc) = parts.into_rest();
        assert_eq!((rest.len(), for_toc), (1, 1));
    }

    #[test]
    fn a_table_of_any_length_has_enough_blobs() {
        for (len, blobs) in [(0, 1), (1, 1), (LEN_IN_A_BLOB as u64 * 10, 20)] {
            assert_eq!(max_section_blobs(len), blobs);
        }
    }
}
