//! Divides files into parts of consecutive blobs.

use super::PbfFile;
use crate::error::Result;
use crate::osm::{Bbox, KindSet};
use crate::pbf::BlobEntry;
use std::ops::Range;

/// The number or the size of the parts of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parts {
    /// This many parts of about the same size. There are fewer if the file has fewer blobs.
    Count(u64),
    /// Parts of at most this many bytes of blobs. A part has at least one blob, even if the blob is larger.
    Size(u64),
}

/// Consecutive blobs of a file, which can be read without the rest of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// The offset of the first blob, in bytes.
    pub offset: u64,
    /// The size of the blobs in bytes.
    pub len: u64,
    /// The number of the first blob. The header blob has number 0.
    pub first_blob: u64,
    /// The number of blobs.
    pub blobs: u64,
    /// The kinds of the objects; `None` if no index states them.
    pub kinds: Option<KindSet>,
    /// The number of objects; `None` if no index states it.
    pub objects: Option<u64>,
    /// The box around all objects; `None` if no index states it. Indexes rarely have the boxes of ways and relations.
    pub bbox: Option<Bbox>,
}

impl FilePart {
    /// Returns the range of bytes that the blobs occupy in the file.
    pub const fn bytes(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.len)
    }

    /// Returns the part that consists of the blobs of `entries`; `None` if there are no entries.
    fn of(entries: &[BlobEntry]) -> Option<Self> {
        let (first, last) = (entries.first()?, entries.last()?);
        let is_indexed = entries.iter().all(BlobEntry::is_indexed);
        let has_boxes = entries.iter().all(|entry| !entry.bbox.is_empty());
        let mut part = Self {
            offset: first.offset,
            len: last.end() - first.offset,
            first_blob: first.number.into(),
            blobs: entries.len() as u64,
            kinds: is_indexed.then_some(KindSet::default()),
            objects: is_indexed.then_some(0),
            bbox: has_boxes.then_some(Bbox::EMPTY),
        };
        for entry in entries {
            part.kinds = part.kinds.map(|kinds| kinds.union(entry.kinds));
            part.objects = part.objects.map(|objects| objects + u64::from(entry.count));
            part.bbox = part.bbox.map(|bbox| bbox.union(&entry.bbox));
        }
        Some(part)
    }
}

impl PbfFile {
    /// Whether a part agrees with the table of contents about its first and last byte, its first blob and its number of
    /// blobs. Returns `true` if there is no table of contents.
    pub(crate) fn has_part(&self, part: &FilePart) -> bool {
        let Some(toc) = &self.toc else { return true };
        let bytes = part.bytes();
        let first = toc
            .entries
            .partition_point(|entry| entry.offset < bytes.start);
        let end = toc
            .entries
            .partition_point(|entry| entry.offset < bytes.end);
        let entries = toc.entries.get(first..end).unwrap_or(&[]);
        match (entries.first(), entries.last()) {
            (Some(first), Some(last)) => {
                (first.offset, last.end()) == (bytes.start, bytes.end)
                    && u64::from(first.number) == part.first_blob
                    && entries.len() as u64 == part.blobs
            }
            _ => false,
        }
    }

    /// Divides the file into parts. If the file has no table of contents, the headers of its frames are read.
    ///
    /// # Errors
    ///
    /// The file has no table of contents, and cannot be read or is damaged.
    pub fn parts(&self, parts: Parts) -> Result<Vec<FilePart>> {
        let read: Vec<BlobEntry>;
        let entries = match &self.toc {
            Some(toc) => &toc.entries,
            None => {
                read = self.frame_entries().collect::<Result<_>>()?;
                &read
            }
        };
        let parts = divide_blobs(entries, parts).into_iter();
        Ok(parts.filter_map(FilePart::of).collect())
    }
}

/// Divides the blobs of a file into consecutive ranges.
pub(crate) fn divide_blobs(entries: &[BlobEntry], parts: Parts) -> Vec<&[BlobEntry]> {
    let len = |entry: &BlobEntry| u64::from(entry.frame_len);
    let total: u64 = entries.iter().map(len).sum();
    let (mut ranges, mut rest) = (Vec::new(), entries);
    let mut end = 0u64;
    while !rest.is_empty() {
        let start = end;
        // With a number of parts, a blob belongs to the part in which its middle lies, so only half of its size must
        // fit below `limit` (`share` is 2). With a maximum size, the whole blob must fit (`share` is 1).
        let (limit, share) = match parts {
            Parts::Count(count) => {
                let next = ranges.len() as u128 + 1;
                let limit = u128::from(total) * next / u128::from(count.max(1));
                (limit as u64, 2)
            }
            Parts::Size(size) => (start.saturating_add(size), 1),
        };
        let mut before = start;
        let fits = |entry: &&BlobEntry| {
            let fits = before + len(entry) / share <= limit;
            before += len(entry);
            fits
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (range, later) = rest.split_at(count);
        end += range.iter().map(len).sum::<u64>();
        ranges.push(range);
        rest = later;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part_lengths(lens: &[u32], parts: Parts) -> Vec<usize> {
        let entries = lens.iter().map(|len| BlobEntry {
            frame_len: *len,
            ..BlobEntry::default()
        });
        let entries: Vec<_> = entries.collect();
        divide_blobs(&entries, parts)
            .into_iter()
            .map(<[_]>::len)
            .collect()
    }

    #[test]
    fn parts_have_about_equal_sizes_or_at_most_the_given_size() {
        assert_eq!(part_lengths(&[10; 9], Parts::Count(3)), [3, 3, 3]);
        assert_eq!(part_lengths(&[10; 10], Parts::Count(3)), [3, 4, 3]);
        assert_eq!(part_lengths(&[90, 1, 1, 1, 1, 1], Parts::Count(2)), [1, 5]);
        assert_eq!(part_lengths(&[10; 3], Parts::Count(8)), [1, 1, 1]);
        assert_eq!(part_lengths(&[10; 5], Parts::Size(25)), [2, 2, 1]);
        assert_eq!(part_lengths(&[10, 99, 10], Parts::Size(25)), [1, 1, 1]);
        assert_eq!(part_lengths(&[10; 3], Parts::Size(u64::MAX)), [3]);
        assert!(part_lengths(&[], Parts::Count(3)).is_empty());
    }
}
