//! Collects the sections of the table of ids of an output with a spatial layout. The sections are written to some of
//! the last blobs, after the strings of the objects in these blobs.

use crate::pbf::{IdDirectory, IdSection, IdSectionBytes};
use std::ops::Range;

/// The total size in bytes at which sections are written to a blob. In the file, sections are base64 text, which is a
/// third larger. The format recommends blobs below 16 MiB.
const LEN_IN_A_BLOB: usize = 9 << 20;

/// Returns a number of blobs that suffices for the sections of a table of at most `len` bytes.
pub(super) fn max_section_blobs(len: u64) -> usize {
    // Every blob but the last one gets at least `LEN_IN_A_BLOB` bytes of sections, so this is up to twice the number of
    // blobs that are needed.
    len.div_ceil(LEN_IN_A_BLOB as u64 / 2).max(1) as usize
}

/// A table of ids that is being written.
#[derive(Debug, Default)]
pub(super) struct IdTableParts {
    /// The number of blobs at the end of the file that get the table of contents.
    pub for_toc: usize,
    /// The sections that are not written yet.
    sections: Vec<IdSectionBytes>,
    /// The size of `sections` in bytes.
    len: usize,
    /// The sections that are written, with their positions.
    places: Vec<IdSection>,
    /// The offset in the file of the first blob with sections.
    start: Option<u64>,
}

impl IdTableParts {
    /// Begins a table. The last `for_toc` blobs of the file get the table of contents.
    pub fn new(for_toc: usize) -> Self {
        Self {
            for_toc,
            ..Self::default()
        }
    }

    /// Adds a section. Returns whether the sections that are not written yet fill a blob.
    pub fn add(&mut self, section: IdSectionBytes) -> bool {
        self.len += section.bytes.len();
        self.sections.push(section);
        self.len >= LEN_IN_A_BLOB
    }

    /// Returns the sections that are not written yet, each with its checksum.
    pub fn unwritten(&self) -> Vec<Vec<u8>> {
        let sections = self.sections.iter();
        sections.map(IdSectionBytes::with_checksum).collect()
    }

    /// Records that the [`unwritten`](Self::unwritten) sections have been written to `ranges` of the file, in the blob
    /// at offset `position`.
    pub fn written(&mut self, position: u64, ranges: &[Range<u64>]) {
        let start = *self.start.get_or_insert(position);
        self.len = 0;
        for (section, range) in self.sections.drain(..).zip(ranges) {
            self.places.push(IdSection {
                kind: section.kind,
                first: section.first,
                last: section.last,
                place: range.start - start..range.end - start,
            });
        }
    }

    /// Returns the encoded directory of a table for a file with the given [fingerprint](crate::pbf::id_fingerprint).
    pub fn directory(self, fingerprint: u64) -> Vec<u8> {
        IdDirectory::new(fingerprint, self.places).encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::ObjectKind;

    #[test]
    fn a_long_table_is_in_several_blobs() {
        let mut parts = IdTableParts::new(1);
        let mut expected = Vec::new();
        for number in 0..5u64 {
            let section = IdSectionBytes {
                kind: ObjectKind::Node,
                first: number * 10,
                last: number * 10 + 9,
                bytes: vec![number as u8; LEN_IN_A_BLOB / 2 + 1],
            };
            // The table begins at byte 100, and the first section at byte 150.
            let range = |number: u64| 150 + number * 1000..150 + number * 1000 + 500;
            expected.push(IdSection {
                kind: section.kind,
                first: section.first,
                last: section.last,
                place: range(number).start - 100..range(number).end - 100,
            });
            assert_eq!(parts.add(section), number % 2 == 1);
            if number % 2 == 1 {
                let ranges = [range(number - 1), range(number)];
                parts.written(ranges[0].start - 50, &ranges);
            } else if number == 4 {
                parts.written(range(4).start - 50, &[range(4)]);
            }
        }
        assert!(parts.unwritten().is_empty());
        let directory = IdDirectory::decode(&parts.directory(5)).unwrap();
        assert_eq!((directory.fingerprint, directory.sections), (5, expected));
    }

    #[test]
    fn a_table_of_any_length_has_enough_blobs() {
        for (len, blobs) in [(0, 1), (1, 1), (LEN_IN_A_BLOB as u64 * 10, 20)] {
            assert_eq!(max_section_blobs(len), blobs);
        }
    }
}
