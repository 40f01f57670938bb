//! The summary of a table of contents, which is stored in the header of a file. With the summary, questions about the
//! whole file can be answered without reading the table. `reference/format.md` has the layout.

use super::entry::{BlobEntry, BlobFlags};
use super::statistics::ObjectCounts;
use super::toc::TocFlags;
use super::toc_blob::TocPointer;
use crate::error::{FormatError, FormatResult};
use crate::osm::{Bbox, ObjectKind, id_rank};
use crate::pbf::wire::{Varints, put_sint, put_varint};

/// The version of the layout of a summary. Summaries of other versions are ignored.
const VERSION: u8 = 1;
/// The maximum number of blobs in [`TocSummary::sample`].
pub const SAMPLE_BLOBS: usize = 16;

/// Facts about a whole file, computed from all entries of its table of contents. The default is the summary of a file
/// without blobs and with unknown order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TocSummary {
    /// The blobs and objects of each kind.
    pub(crate) kinds: [KindTotals; 3],
    /// The box around the known bounding boxes of all blobs.
    pub(crate) bbox: Bbox,
    /// Whether all objects are in canonical order; `None` if unknown.
    pub(crate) sorted: Option<bool>,
    /// Whether any blob has deleted versions.
    pub(crate) has_deleted: bool,
    /// Whether any blob has ways with the coordinates of their nodes.
    pub(crate) has_locations: bool,
    /// Whether the file has a spatial layout ([`TocFlags::spatial`](crate::pbf::TocFlags::spatial)).
    pub(crate) is_spatial: bool,
    /// Whether the file has a table of ids ([`TocFlags::id_table`](crate::pbf::TocFlags::id_table)).
    pub(crate) has_id_table: bool,
    /// The number of objects that directly follow another version of the same object.
    pub(crate) further_versions: u64,
    /// The offsets of at most [`SAMPLE_BLOBS`] blobs, spread evenly over the file.
    pub(crate) sample: Vec<u64>,
}

/// The blobs and objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KindTotals {
    /// The number of blobs.
    pub blobs: u64,
    /// The total size in bytes of the blobs in the file.
    pub bytes: u64,
    /// The total size in bytes of the uncompressed payloads of the blobs.
    pub payload_bytes: u64,
    /// The first id and the last id in canonical order; both 0 without objects.
    pub ids: (i64, i64),
    /// Counts of the objects, and of their attributes.
    pub counts: ObjectCounts,
}

/// Returns the indices of at most `most` out of `blobs` blobs, spread evenly.
pub(crate) fn sample_indices(blobs: usize, most: usize) -> impl Iterator<Item = usize> {
    let step = blobs.div_ceil(most).max(1);
    (0..blobs).step_by(step)
}

impl TocSummary {
    /// Computes the summary of the entries of a file. `sorted` states whether the objects are in canonical order;
    /// `None` if unknown. `flags` states whether the file has a spatial layout and a table of ids. Returns `None`
    /// unless each blob has objects of one kind only and all facts about each blob are known.
    pub(crate) fn from_entries(
        entries: &[BlobEntry],
        sorted: Option<bool>,
        flags: TocFlags,
    ) -> Option<Self> {
        let mut summary = Self {
            sorted,
            is_spatial: flags.spatial,
            has_id_table: flags.id_table,
            ..Self::default()
        };
        let mut last = None;
        for entry in entries {
            let kind = entry.kinds.single()?;
            let statistics = entry.statistics?;
            if !entry.flags.has(BlobFlags::SCANNED) || entry.payload_len == 0 {
                return None;
            }
            if kind == ObjectKind::Node {
                summary.bbox = summary.bbox.union(&entry.bbox);
            }
            summary.has_deleted |= entry.flags.has(BlobFlags::DELETED);
            summary.has_locations |= entry.flags.has(BlobFlags::LOCATIONS);
            summary.further_versions += u64::from(statistics.further_versions);
            if entry.flags.has(BlobFlags::SORTED) {
                let goes_on = last.is_some() && last == entry.first_sort_key();
                summary.further_versions += u64::from(goes_on);
                last = entry.last_sort_key();
            }
            summary.kinds[kind as usize].add(entry, &statistics.counts(entry.count));
        }
        let sample = sample_indices(entries.len(), SAMPLE_BLOBS);
        summary.sample = sample.map(|index| entries[index].offset).collect();
        Some(summary)
    }

    /// Returns the number of data blobs.
    pub(crate) fn blob_count(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.blobs).sum()
    }

    /// Returns the encoded summary of the table that `pointer` points to.
    pub(in crate::pbf) fn encode(&self, pointer: TocPointer) -> Vec<u8> {
        let mut out = vec![VERSION];
        let has_box = !self.bbox.is_empty();
        let flags = [
            self.sorted.is_some(),
            self.sorted == Some(true),
            self.has_deleted,
            self.has_locations,
            has_box,
            self.is_spatial,
            self.has_id_table,
        ];
        let bits = flags
            .iter()
            .rev()
            .fold(0, |bits, flag| bits << 1 | u64::from(*flag));
        put_varint(&mut out, bits);
        put_varint(&mut out, self.further_versions);
        if has_box {
            for edge in self.bbox.edges_e7().into_array() {
                put_sint(&mut out, edge.into());
            }
        }
        for totals in &self.kinds {
            totals.encode(&mut out);
        }
        let mut last = 0;
        for offset in &self.sample {
            put_varint(&mut out, offset - last);
            last = *offset;
        }
        let crc = checksum(pointer, &out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Decodes the summary of the table that `pointer` points to. Returns `None` if the bytes are damaged, belong to
    /// another table, have another version, or name more than [`SAMPLE_BLOBS`] blobs, or the same blob twice.
    pub(crate) fn parse(bytes: &[u8], pointer: TocPointer) -> Option<Self> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        if checksum(pointer, body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let fields = body.strip_prefix(&[VERSION])?;
        Self::read(&mut Varints::new(fields)).ok()
    }

    fn read(fields: &mut Varints<'_>) -> FormatResult<Self> {
        let bits = fields.read()?;
        let has = |bit: u32| bits >> bit & 1 != 0;
        let mut summary = Self {
            sorted: has(0).then(|| has(1)),
            has_deleted: has(2),
            has_locations: has(3),
            is_spatial: has(5),
            has_id_table: has(6),
            further_versions: read_count(fields)?,
            ..Self::default()
        };
        if has(4) {
            let mut edges = [0; 4];
            for edge in &mut edges {
                *edge = i32::try_from(fields.read_sint()?)
                    .map_err(|_| FormatError::new("a value is out of range"))?;
            }
            let [west, south, east, north] = edges;
            summary.bbox.add(south, west);
            summary.bbox.add(north, east);
        }
        for totals in &mut summary.kinds {
            *totals = KindTotals::read(fields)?;
        }
        let mut offset = 0u64;
        while !fields.is_done() {
            let next = offset.checked_add(fields.read()?);
            offset = next.filter(|next| *next > offset).ok_or(BAD_SAMPLE)?;
            if summary.sample.len() == SAMPLE_BLOBS {
                return Err(BAD_SAMPLE);
            }
            summary.sample.push(offset);
        }
        Ok(summary)
    }
}

impl KindTotals {
    /// Adds a blob, and the counts of its objects.
    fn add(&mut self, entry: &BlobEntry, counts: &ObjectCounts) {
        let (first, last) = match self.blobs {
            0 => (entry.min_id, entry.max_id),
            _ => self.ids,
        };
        self.ids = (
            std::cmp::min_by_key(first, entry.min_id, |id| id_rank(*id)),
            std::cmp::max_by_key(last, entry.max_id, |id| id_rank(*id)),
        );
        self.blobs += 1;
        self.bytes += u64::from(entry.frame_len);
        self.payload_bytes += u64::from(entry.payload_len);
        self.counts.add(counts);
    }

    /// Appends the encoded totals. A kind without blobs needs a single byte.
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.blobs);
        if self.blobs == 0 {
            return;
        }
        put_varint(out, self.bytes);
        put_varint(out, self.payload_bytes);
        let (first, last) = self.ids;
        let (earliest, latest) = self.counts.times.unwrap_or_default();
        for value in [first, last, earliest, latest] {
            put_sint(out, value);
        }
        let mut counts = self.counts;
        for count in counts.sums() {
            put_varint(out, *count);
        }
        put_varint(out, counts.most_references);
    }

    fn read(fields: &mut Varints<'_>) -> FormatResult<Self> {
        let blobs = read_count(fields)?;
        if blobs == 0 {
            return Ok(Self::default());
        }
        let (bytes, payload_bytes) = (read_count(fields)?, read_count(fields)?);
        let ids = (fields.read_sint()?, fields.read_sint()?);
        let times = (fields.read_sint()?, fields.read_sint()?);
        let mut counts = ObjectCounts::default();
        for sum in counts.sums() {
            *sum = read_count(fields)?;
        }
        counts.most_references = read_count(fields)?;
        counts.times = (counts.with_timestamp > 0).then_some(times);
        Ok(Self {
            blobs,
            bytes,
            payload_bytes,
            ids,
            counts,
        })
    }
}

/// The error for an impossible sample.
const BAD_SAMPLE: FormatError =
    FormatError::new("the sample has too many blobs, or they are not in order");

/// Reads a number of objects, blobs or bytes. Fails if the number is so large that sums could overflow.
fn read_count(fields: &mut Varints<'_>) -> FormatResult<u64> {
    let count = fields.read()?;
    match count >> 56 {
        0 => Ok(count),
        _ => Err(FormatError::new("a value is out of range")),
    }
}

/// Returns the checksum of a summary together with the pointer to its table. A program that does not know summaries may
/// copy a summary to another file. There the checksum is wrong, because that file has another pointer.
fn checksum(pointer: TocPointer, body: &[u8]) -> u32 {
    let mut start = pointer.encode();
    // Removes the CRC at the end of the encoded pointer. If the pointer kept its CRC, the result would not depend on
    // the pointer, because the CRC of data followed by the CRC of the data is a constant.
    start.truncate(start.len() - 4);
    crc32c::crc32c_append(crc32c::crc32c(&start), body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::{KindSet, ObjectKind};
    use crate::pbf::ObjectStatistics;

    fn entry(kind: ObjectKind, index: u32) -> BlobEntry {
        let mut flags = BlobFlags::SCANNED;
        flags.set(BlobFlags::SORTED, true);
        let mut bbox = Bbox::EMPTY;
        if kind == ObjectKind::Node {
            bbox.add(i32::MIN + index as i32, -5);
            bbox.add(7, i32::MAX);
        }
        BlobEntry {
            offset: u64::from(index + 1) << 40,
            min_id: -i64::from(index),
            max_id: i64::MAX - i64::from(index),
            bbox,
            frame_len: u32::MAX,
            payload_len: u32::MAX - 1,
            count: u32::MAX,
            kinds: KindSet::of(kind),
            flags,
            statistics: Some(ObjectStatistics {
                first_timestamp: index,
                last_timestamp: u32::MAX,
                with_timestamp: 3,
                most_references: index,
                ..ObjectStatistics::default()
            }),
            ..BlobEntry::default()
        }
    }

    const POINTER: TocPointer = TocPointer::At {
        start: 77,
        file_len: 99,
    };

    fn entries() -> Vec<BlobEntry> {
        let kinds = ObjectKind::ALL.into_iter().flat_map(|kind| [kind; 9]);
        kinds
            .zip(0..)
            .map(|(kind, index)| entry(kind, index))
            .collect()
    }

    #[test]
    fn a_damaged_or_foreign_summary_is_refused() {
        for (entries, sorted) in [
            (entries(), Some(false)),
            (entries(), None),
            (vec![], Some(true)),
        ] {
            let flags = TocFlags {
                spatial: sorted.is_none(),
                id_table: sorted.is_none(),
                ..TocFlags::default()
            };
            let summary = TocSummary::from_entries(&entries, sorted, flags).unwrap();
            assert!(summary.sample.len() <= SAMPLE_BLOBS);
            let bytes = summary.encode(POINTER);
            assert!(bytes.len() < 600, "{}", bytes.len());
            assert_eq!(TocSummary::parse(&bytes, POINTER), Some(summary));
            for index in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[index] ^= 8;
                assert_eq!(TocSummary::parse(&damaged, POINTER), None);
                assert_eq!(TocSummary::parse(&bytes[..index], POINTER), None);
            }
            let other = TocPointer::At {
                start: 77,
                file_len: 98,
            };
            assert_eq!(TocSummary::parse(&bytes, other), None);
        }
    }

    #[test]
    fn a_summary_with_too_many_or_equal_samples_is_refused() {
        let flags = TocFlags::default();
        let summary = TocSummary::from_entries(&entries(), Some(true), flags).unwrap();
        let with = |sample: Vec<u64>| {
            let changed = TocSummary {
                sample,
                ..summary.clone()
            };
            TocSummary::parse(&changed.encode(POINTER), POINTER)
        };
        assert!(with((1..=SAMPLE_BLOBS as u64).collect()).is_some());
        assert!(with((1..=SAMPLE_BLOBS as u64 + 1).collect()).is_none());
        assert!(with(vec![7, 7]).is_none());
        assert!(with(vec![0]).is_none());
    }

    #[test]
    fn a_blob_with_unknown_facts_prevents_a_summary() {
        let changes: [fn(&mut BlobEntry); 4] = [
            |entry| entry.statistics = None,
            |entry| entry.payload_len = 0,
            |entry| entry.flags = BlobFlags::default(),
            |entry| entry.kinds = KindSet::of(ObjectKind::Node).union(KindSet::of(ObjectKind::Way)),
        ];
        for change in changes {
            let mut entries = entries();
            change(&mut entries[4]);
            assert_eq!(
                TocSummary::from_entries(&entries, None, TocFlags::default()),
                None
            );
        }
    }

    #[test]
    fn versions_that_continue_in_the_next_blob_are_counted() {
        let mut entries = vec![entry(ObjectKind::Way, 1); 3];
        for entry in &mut entries {
            (entry.min_id, entry.max_id) = (5, 5);
        }
        let summary = TocSummary::from_entries(&entries, None, TocFlags::default()).unwrap();
        assert_eq!(summary.further_versions, 2);
    }
}
