//! Divides the ids of nodes into ranges, so that the locations of one range fit into memory.

use super::NodeParts;
use crate::error::Result;
use crate::file::PlannedFile;
use crate::index::{DiskJoin, LocationStore, StoreForm};
use crate::osm::{ObjectKind, id_rank};
use crate::pbf::{BlobEntry, WayNodes};
use std::ops::{Range, RangeInclusive};

/// Ranges of ids in canonical order, which together contain all ids.
pub(super) struct Partitions {
    /// The rank of each range's first id. The first rank is 0.
    starts: Vec<u64>,
    /// The blobs of each range, as indices into [`NodeParts::nodes`]; `None` if a blob may belong to several ranges.
    blobs: Option<Vec<Range<usize>>>,
}

impl Partitions {
    /// Divides the ids into ranges whose locations need about `limit` bytes each.
    pub(super) fn plan(parts: &NodeParts, limit: u64) -> Self {
        if parts.is_in_order() {
            Self::cut_at_blobs(&parts.nodes, limit)
        } else {
            Self::cut_within_blobs(parts, limit)
        }
    }

    /// Divides the ids only at the boundaries of blobs. The id ranges of the blobs must be in order and must not
    /// overlap.
    fn cut_at_blobs(nodes: &[BlobEntry], limit: u64) -> Self {
        let (mut starts, mut blobs) = (vec![0], Vec::new());
        let (mut first, mut bytes) = (0, 0);
        for (at, entry) in nodes.iter().enumerate() {
            let more = location_bytes(entry);
            if bytes + more > limit && at > first {
                blobs.push(first..at);
                starts.push(id_rank(entry.min_id));
                (first, bytes) = (at, 0);
            }
            bytes += more;
        }
        blobs.push(first..nodes.len());
        Self {
            starts,
            blobs: Some(blobs),
        }
    }

    /// Divides the ids also within the id ranges of blobs, on the assumption that the ids of a blob are spread evenly
    /// over its range.
    fn cut_within_blobs(parts: &NodeParts, limit: u64) -> Self {
        const SAMPLED: usize = 100_000;
        let blobs: Vec<&BlobEntry> = parts.blobs_with_nodes().collect();
        let points = (SAMPLED / blobs.len().max(1)).clamp(1, 64) as u64;
        let mut sample: Vec<(u64, u64)> = Vec::with_capacity(blobs.len() * points as usize);
        for entry in blobs {
            let (first, last) = (id_rank(entry.min_id), id_rank(entry.max_id));
            let step = last.saturating_sub(first) / points;
            let bytes = location_bytes(entry).div_ceil(points);
            sample.extend((0..points).map(|point| (first + step / 2 + step * point, bytes)));
        }
        sample.sort_unstable();
        let (mut starts, mut bytes) = (vec![0], 0);
        for (rank, more) in sample {
            if bytes + more > limit && starts.last().is_some_and(|start| *start < rank) {
                starts.push(rank);
                bytes = 0;
            }
            bytes += more;
        }
        let blobs = None;
        Self { starts, blobs }
    }

    /// Returns the number of ranges.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the rank of the first id of each range.
    pub(super) fn starts(&self) -> Vec<u64> {
        self.starts.clone()
    }

    /// Returns the blobs of range `number`, as indices into [`NodeParts::nodes`]; `None` if a blob may belong to
    /// several ranges.
    pub(super) fn blobs(&self, number: usize) -> Option<Range<usize>> {
        let blobs = self.blobs.as_ref()?;
        Some(blobs[number].clone())
    }

    /// Returns the ranks of the ids in range `number`.
    pub(super) fn ranks(&self, number: usize) -> RangeInclusive<u64> {
        let start = self.starts[number];
        let end = self.starts.get(number + 1).map(|next| next - 1);
        start..=end.unwrap_or(u64::MAX)
    }
}

/// Returns the maximum memory in bytes for the locations of a blob's nodes.
fn location_bytes(entry: &BlobEntry) -> u64 {
    LocationStore::bytes(
        StoreForm::Sparse,
        u64::from(entry.count),
        entry.min_id,
        entry.max_id,
    )
}

/// Reads the node references of all ways, and pushes them to a join as one list for each blob with ways, in file order.
pub(super) fn split_references(source: PlannedFile<'_>, join: &mut DiskJoin) -> Result<()> {
    let splitter = join.splitter();
    source.scan("references").try_run(
        |entry| entry.kinds.contains(ObjectKind::Way),
        |_, block| {
            let mut list = splitter.begin();
            block.visit_in_parts(|part| {
                list.add(&WayNodes::from_block(part)?.refs);
                Ok(())
            })?;
            Ok(list.finish())
        },
        |list| join.push(&list),
    )
}
