//! Compares the blobs of a file with its id table.
//!
//! The id table lists pairs of an id range and a blob in id order, but blobs are read in another order. Therefore each
//! pair is hashed. The sum of the hashes does not depend on the order. It must be the same for the table and the blobs.

use crate::error::{FormatResult, Result};
use crate::file::PbfFile;
use crate::osm::{ObjectKind, id_rank};
use crate::pbf::{BlobEntry, Block};
use crate::runtime::Context;
use twox_hash::XxHash3_64;

/// The ranges of an id table, and the sum of one hash per pair (id range, blob).
pub(super) struct IdRanges<'f> {
    /// The entries of the table of contents. The number of a blob is the index of its entry.
    entries: &'f [BlobEntry],
    /// The ranks of the first and the last id of each range, for each kind.
    ranges: [Vec<(u64, u64)>; 3],
    sum: u64,
}

/// The result of comparing the objects of a blob with the ranges of the id table.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct IdsOfBlob {
    /// The number of objects whose id is in a range.
    pub in_ranges: u64,
    /// The number of objects whose id is in no range.
    pub outside: u64,
    /// The sum of one hash per pair (id range, blob) of this blob.
    pub sum: u64,
}

impl<'f> IdRanges<'f> {
    /// Reads the id table of a file. Returns `None` if the file has no id table. The inner result is an error if the
    /// table is damaged. The outer result is an error if the file cannot be read.
    pub(super) fn read(file: &'f PbfFile, ctx: &Context) -> Result<Option<FormatResult<Self>>> {
        let table = match file.open_id_table(ctx)? {
            Some(Ok(table)) => table,
            Some(Err(problem)) => return Ok(Some(Err(problem))),
            None => return Ok(None),
        };
        let mut found = Self {
            entries: table.entries(),
            ranges: Default::default(),
            sum: 0,
        };
        let read = table.for_each_range(ctx, |section, range| {
            for blob in range.blobs {
                let hash = hash_of_pair(section.kind, range.first, *blob);
                found.sum = found.sum.wrapping_add(hash);
            }
            let ranges = &mut found.ranges[section.kind as usize];
            ranges.push((range.first, range.last));
            Ok(())
        })?;
        Ok(Some(read.map(|()| found)))
    }

    /// Returns the sum of the hashes of all pairs in the table.
    pub(super) const fn hash_sum(&self) -> u64 {
        self.sum
    }

    /// Compares the objects of a blob with the ranges.
    pub(super) fn compare_blob(
        &self,
        entry: &BlobEntry,
        payload: &[u8],
    ) -> FormatResult<IdsOfBlob> {
        let mut ranks: [Vec<u64>; 3] = Default::default();
        Block::parse_without_strings(payload)?
            .for_each_id(|kind, id| ranks[kind as usize].push(id_rank(id)))?;
        let number = self
            .entries
            .partition_point(|other| other.offset < entry.offset) as u32;
        let mut found = IdsOfBlob::default();
        for ((kind, mut ranks), ranges) in ObjectKind::ALL.into_iter().zip(ranks).zip(&self.ranges)
        {
            ranks.sort_unstable();
            let mut rest = ranks.as_slice();
            while let Some(rank) = rest.first() {
                let at = ranges.partition_point(|(_, end)| end < rank);
                let Some((first, last)) = ranges.get(at).filter(|(first, _)| first <= rank) else {
                    let before = ranges.get(at).map_or(u64::MAX, |(first, _)| first - 1);
                    let count = rest.partition_point(|rank| *rank <= before);
                    found.outside += count as u64;
                    rest = &rest[count..];
                    continue;
                };
                let count = rest.partition_point(|rank| rank <= last).max(1);
                found.in_ranges += count as u64;
                found.sum = found.sum.wrapping_add(hash_of_pair(kind, *first, number));
                rest = &rest[count..];
            }
        }
        Ok(found)
    }
}

/// Returns the hash of a pair (id range, blob). The range is identified by its kind and the rank of its first id, and
/// the blob by its number.
fn hash_of_pair(kind: ObjectKind, first: u64, blob: u32) -> u64 {
    let pair = u128::from(first) << 64 | u128::from(kind.number()) << 32 | u128::from(blob);
    XxHash3_64::oneshot(&pair.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::index::check_index;
    use crate::engine::{OutputOptions, sink::Sink};
    use crate::file::PbfFile;
    use crate::io::SizeHint;
    use crate::osm::{Location, ObjectKind, id_rank};
    use crate::pbf::{Compression, FrameEncoder, HeaderBlock, IdTableBuilder, Object, feature};
    use crate::runtime::Context;

    /// Writes three blobs, with the nodes 1 to 100, 101 to 199, and 200, and an id table with the pairs (node id, blob
    /// number) in `table`. Returns the findings of `check --index`.
    fn findings_for_table(table: impl IntoIterator<Item = (i64, u32)>) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let (path, ctx) = (directory.path().join("a.osm.pbf"), Context::default());
        let mut output = OutputOptions::file(&path);
        output.write.has_spatial_layout = true;
        let mut header = HeaderBlock::default();
        header.set_optional(feature::LOCATIONS, true);
        let mut sink = Sink::create(&output, header, SizeHint::default(), &ctx).unwrap();
        for ids in [1..101, 101..200, 200..201] {
            let mut encoder = FrameEncoder::new(Compression::default(), false);
            for id in ids {
                let location = Location::new(id as i32, 5);
                let node = Object::node(id, location, Vec::new());
                encoder.add(&node).unwrap();
            }
            sink.append(encoder.finish().unwrap()).unwrap();
        }
        let mut closed = sink.close().unwrap();
        let writer = closed.begin_id_table().unwrap();
        let mut builder = IdTableBuilder::default();
        for (id, blob) in table {
            builder.add(ObjectKind::Node, id_rank(id), blob);
        }
        for section in builder.finish() {
            writer.put_id_section(section).unwrap();
        }
        let fingerprint = writer.id_fingerprint();
        writer.finish_id_table(fingerprint).unwrap();
        closed.finish().unwrap();
        let report = check_index(&PbfFile::open(&path, &ctx).unwrap(), 10, &ctx).unwrap();
        let findings = report.listed.into_iter();
        findings.map(|finding| finding.what).collect()
    }

    #[test]
    fn an_id_table_that_leads_to_wrong_blobs_is_reported() {
        let right = || (1..=200).map(|id| (id, u32::from(id > 100) + u32::from(id > 199)));
        assert!(findings_for_table(right()).is_empty());
        let all_in_one = findings_for_table(right().map(|(id, _)| (id, 0)));
        assert!(all_in_one[0].contains("other blobs"), "{all_in_one:?}");
        let exchanged = findings_for_table(right().map(|(id, blob)| (id, 2 - blob)));
        assert!(exchanged[0].contains("other blobs"), "{exchanged:?}");
        let more =
            findings_for_table(right().map(|(id, blob)| (id, blob + 3 * u32::from(id == 77))));
        assert!(more[0].contains("other blobs"), "{more:?}");
        let missing = findings_for_table(right().filter(|(id, _)| *id != 200));
        assert!(
            missing[0].contains("not lead to 1 of its objects"),
            "{missing:?}"
        );
    }
}
