//! The per-blob index in the `indexdata` of a BlobHeader, 42 bytes that describe a blob with objects of one kind.

use super::entry::{BlobEntry, BlobFlags};
use crate::osm::{Bbox, KindSet, ObjectKind};

/// The size in bytes of a version 2 index.
pub const BLOB_INDEX_LEN: usize = 42;
/// The size in bytes of a version 1 index, which has no bounding box.
const V1_LEN: usize = 26;

/// Returns the index of a blob. Returns `None` if the blob has no objects, objects of several kinds, ids below 1, or
/// nodes without a known bounding box.
pub fn encode_blob_index(entry: &BlobEntry) -> Option<[u8; BLOB_INDEX_LEN]> {
    let kind = entry.kinds.single()?;
    // A blob with an id below 1 gets no index, because an index orders ids numerically and an entry orders them
    // canonically. The two orders agree for positive ids only. A blob of nodes with an unknown bounding box gets no
    // index, because an index cannot express an unknown box.
    let has_unknown_box = kind == ObjectKind::Node && entry.bbox.is_empty();
    if entry.min_id <= 0 || has_unknown_box {
        return None;
    }
    let bbox = match kind {
        ObjectKind::Node => stored_edges(&entry.bbox),
        ObjectKind::Way | ObjectKind::Relation => [0; 4],
    };
    let parts: [&[u8]; 8] = [
        &[2, kind.number()],
        &entry.min_id.to_le_bytes(),
        &entry.max_id.to_le_bytes(),
        &u64::from(entry.count).to_le_bytes(),
        &bbox[0].to_le_bytes(),
        &bbox[1].to_le_bytes(),
        &bbox[2].to_le_bytes(),
        &bbox[3].to_le_bytes(),
    ];
    let (mut bytes, mut at) = ([0; BLOB_INDEX_LEN], 0);
    for part in parts {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    Some(bytes)
}

/// Returns the edges of a box in the order in which a per-blob index stores them.
const fn stored_edges(bbox: &Bbox) -> [i32; 4] {
    [
        bbox.min_lat_e7,
        bbox.max_lat_e7,
        bbox.min_lon_e7,
        bbox.max_lon_e7,
    ]
}

/// Fills in `entry` from an index. Returns `None`, with `entry` unchanged, if the index has an unknown version, is
/// damaged, or has ids below 1. In these cases, the blob must be decoded.
pub fn decode_blob_index(indexdata: &[u8], entry: &mut BlobEntry) -> Option<()> {
    let (&[version, kind], rest) = indexdata.split_first_chunk::<2>()?;
    let has_box = match (version, indexdata.len()) {
        (1, V1_LEN..) => false,
        (2, BLOB_INDEX_LEN..) => true,
        _ => return None,
    };
    let (min_id, rest) = rest.split_first_chunk::<8>()?;
    let (max_id, rest) = rest.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk::<8>()?;
    let (min_id, max_id) = (i64::from_le_bytes(*min_id), i64::from_le_bytes(*max_id));
    let count = u32::try_from(u64::from_le_bytes(*count)).ok()?;
    let kind = ObjectKind::from_number(u64::from(kind))?;
    if min_id <= 0 || max_id < min_id || count == 0 {
        return None;
    }
    let mut bbox = Bbox::EMPTY;
    if has_box && kind == ObjectKind::Node {
        let mut edges = rest.as_chunks::<4>().0.iter();
        let mut edge = || edges.next().map(|edge| i32::from_le_bytes(*edge));
        bbox = Bbox {
            min_lat_e7: edge()?,
            max_lat_e7: edge()?,
            min_lon_e7: edge()?,
            max_lon_e7: edge()?,
        };
        if bbox.is_inside_out() {
            return None;
        }
    }
    let mut flags = BlobFlags::default();
    let has_table = entry.flags.has(BlobFlags::HAS_TABLE);
    flags.set(BlobFlags::HAS_TABLE, has_table);
    *entry = BlobEntry {
        kinds: KindSet::of(kind),
        min_id,
        max_id,
        count,
        bbox,
        flags,
        ..*entry
    };
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_reads_back_as_it_was_written() {
        let entry = BlobEntry {
            kinds: KindSet::of(ObjectKind::Node),
            min_id: 5,
            max_id: 1 << 40,
            count: 8000,
            bbox: Bbox {
                min_lat_e7: -1,
                max_lat_e7: 2,
                min_lon_e7: -3,
                max_lon_e7: 4,
            },
            ..BlobEntry::default()
        };
        let bytes = encode_blob_index(&entry).unwrap();
        let mut read = BlobEntry::default();
        decode_blob_index(&bytes, &mut read).unwrap();
        assert_eq!(read, entry);
    }

    #[test]
    fn a_blob_index_with_an_inverted_box_is_ignored() {
        let entry = BlobEntry {
            kinds: KindSet::of(ObjectKind::Node),
            min_id: 5,
            max_id: 9,
            count: 3,
            bbox: Bbox {
                min_lat_e7: 0,
                max_lat_e7: 1,
                min_lon_e7: 1_700_000_000,
                max_lon_e7: -1_700_000_000,
            },
            ..BlobEntry::default()
        };
        let bytes = encode_blob_index(&entry).unwrap();
        let mut read = BlobEntry::default();
        assert_eq!(decode_blob_index(&bytes, &mut read), None);
        assert_eq!(read, BlobEntry::default());
    }

    #[test]
    fn an_entry_that_an_index_cannot_hold_is_not_written_or_read() {
        let mixed = BlobEntry {
            kinds: KindSet::ALL,
            min_id: 1,
            ..BlobEntry::default()
        };
        assert_eq!(encode_blob_index(&mixed), None);
        let negative = BlobEntry {
            kinds: KindSet::of(ObjectKind::Way),
            min_id: -1,
            ..BlobEntry::default()
        };
        assert_eq!(encode_blob_index(&negative), None);
        for bytes in [&[][..], &[3; 42], &[2; 26], &[1; 10], &[0xff; 42]] {
            assert_eq!(decode_blob_index(bytes, &mut BlobEntry::default()), None);
        }
    }
}
