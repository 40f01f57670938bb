//! The nodes of member ways, compressed in memory until the relations are assembled.

use super::nested::RouteWays;
use super::{AreaNode, MAX_NODES, NestedRelations};
use crate::error::FormatResult;
use crate::geometry::Point;
use crate::index::RankSet;
use crate::pbf::Member;
use crate::pbf::wire::{Varints, put_sint, put_varint};
use std::sync::Arc;

/// The nodes of a set of ways, indexed by way id.
#[derive(Default)]
pub(crate) struct WayStore {
    /// The ids of the ways that may be stored.
    wanted: Arc<RankSet>,
    has_node_ids: bool,
    /// The position of each wanted way, indexed by the rank of its id; `None` for a way that is not stored.
    positions: Vec<Option<StoredWayPosition>>,
    batches: Vec<Box<[u8]>>,
    /// The relations that are members of routes.
    nested: Arc<NestedRelations>,
    /// The number of nodes of the longest way that was added.
    longest: usize,
    /// The maximum total number of nodes of the ways of one area.
    pub(super) max_nodes: usize,
}

#[derive(Debug, Clone, Copy)]
struct StoredWayPosition {
    /// The index of the batch plus one. It is never zero, so `Option<StoredWayPosition>` needs no additional space.
    batch: std::num::NonZeroU32,
    start: u32,
}

/// Encoded ways that are added to a [`WayStore`] together.
pub(crate) struct WayBatch {
    bytes: Vec<u8>,
    /// For each way, the rank of its id and the offset of its encoded nodes in `bytes`.
    ways: Vec<(u64, u32)>,
    /// The number of nodes of the longest way.
    longest: usize,
    has_node_ids: bool,
}

/// The result of reading a way from a [`WayStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredWay {
    /// The way is not stored.
    Missing,
    /// A node of the way, with this id, has no location.
    Unlocated(i64),
    /// All nodes of the way have locations.
    Located,
}

impl WayStore {
    /// Creates an empty store for the ways with the given ids. Without `has_node_ids`, the ids of nodes are not stored,
    /// and are 0 when they are read.
    pub(crate) fn new(wanted: Arc<RankSet>, has_node_ids: bool) -> Self {
        let count = wanted.len() as usize;
        Self {
            wanted,
            has_node_ids,
            positions: vec![None; count],
            max_nodes: MAX_NODES,
            ..Self::default()
        }
    }

    /// Returns the number of nodes of the longest way that was added.
    pub(crate) const fn longest_way_node_count(&self) -> usize {
        self.longest
    }

    /// Sets the maximum total number of nodes of the ways of one area.
    pub(crate) const fn set_max_nodes(&mut self, max_nodes: usize) {
        self.max_nodes = max_nodes;
    }

    /// Sets the relations that are members of routes.
    pub(crate) fn with_nested(self, nested: Arc<NestedRelations>) -> Self {
        Self { nested, ..self }
    }

    /// Returns the ways of a route, as [`NestedRelations::ways_of`] does.
    pub(crate) fn ways_of_route<'m>(
        &self,
        id: i64,
        members: impl Iterator<Item = Member<'m>>,
    ) -> RouteWays {
        self.nested.ways_of(id, members)
    }

    /// Adds a batch of ways. A way replaces an earlier way with the same id.
    pub(crate) fn add(&mut self, batch: WayBatch) {
        if batch.ways.is_empty() {
            return;
        }
        let number = std::num::NonZeroU32::MIN.saturating_add(self.batches.len() as u32);
        self.batches.push(batch.bytes.into_boxed_slice());
        self.longest = self.longest.max(batch.longest);
        for (rank, start) in batch.ways {
            self.positions[rank as usize] = Some(StoredWayPosition {
                batch: number,
                start,
            });
        }
    }

    /// Returns the encoded nodes of a way; `None` if the way is not stored.
    fn encoded_nodes(&self, id: i64) -> Option<Varints<'_>> {
        let rank = self.wanted.rank(id)?;
        let StoredWayPosition { batch, start } = self.positions[rank as usize]?;
        let batch = &self.batches[batch.get() as usize - 1];
        Some(Varints::new(&batch[start as usize..]))
    }

    /// Returns the number of nodes of a way; 0 if the way is not stored, or one of its nodes has no location.
    pub(crate) fn node_count(&self, id: i64) -> u64 {
        let count = self
            .encoded_nodes(id)
            .and_then(|mut values| values.read().ok());
        count.unwrap_or(0).saturating_sub(1)
    }

    /// Appends the nodes of a way to `nodes`, unless one of them has no location.
    pub(crate) fn read(&self, id: i64, nodes: &mut Vec<AreaNode>) -> StoredWay {
        let Some(mut values) = self.encoded_nodes(id) else {
            return StoredWay::Missing;
        };
        match self.decode(&mut values, nodes) {
            Ok(way) => way,
            // Decoding cannot fail, because a `WayBatch` encoded these bytes and they never leave memory.
            Err(error) => unreachable!("way {id} of a store: {error}"),
        }
    }

    /// Decodes a way, and appends its nodes to `nodes`.
    fn decode(
        &self,
        values: &mut Varints<'_>,
        nodes: &mut Vec<AreaNode>,
    ) -> FormatResult<StoredWay> {
        let count = match values.read()? {
            0 => return Ok(StoredWay::Unlocated(values.read_sint()?)),
            count => count - 1,
        };
        let [mut lat, mut lon, mut node] = [0; 3];
        for _ in 0..count {
            lat += values.read_sint()?;
            lon += values.read_sint()?;
            if self.has_node_ids {
                node = values.read_sint()?.wrapping_add(node);
            }
            nodes.push(AreaNode {
                id: node,
                point: Point::new(lat as i32, lon as i32),
            });
        }
        Ok(StoredWay::Located)
    }
}

impl WayBatch {
    /// Creates an empty batch for a store that was created with the same `has_node_ids`.
    pub(crate) const fn new(has_node_ids: bool) -> Self {
        Self {
            bytes: Vec::new(),
            ways: Vec::new(),
            longest: 0,
            has_node_ids,
        }
    }

    /// Adds a way. `rank` is the rank of its id among the wanted ways; `nodes` are the ids and locations of its nodes.
    pub(crate) fn push(
        &mut self,
        rank: u64,
        nodes: impl ExactSizeIterator<Item = (i64, Option<Point>)> + Clone,
    ) {
        // A batch contains the ways of one blob, which has at most 32 MB, so offsets fit into 32 bits.
        self.ways.push((rank, self.bytes.len() as u32));
        let out = &mut self.bytes;
        if let Some((node, _)) = nodes.clone().find(|(_, point)| point.is_none()) {
            put_varint(out, 0);
            return put_sint(out, node);
        }
        self.longest = self.longest.max(nodes.len());
        put_varint(out, nodes.len() as u64 + 1);
        let (mut last, mut last_id) = (Point::new(0, 0), 0i64);
        for (id, point) in nodes {
            let Some(point) = point else {
                continue;
            };
            put_sint(out, i64::from(point.lat_e7) - i64::from(last.lat_e7));
            put_sint(out, i64::from(point.lon_e7) - i64::from(last.lon_e7));
            if self.has_node_ids {
                put_sint(out, id.wrapping_sub(last_id));
            }
            (last, last_id) = (point, id);
        }
    }

    /// Returns the size of the batch in memory, in bytes.
    pub(crate) fn memory_size(&self) -> usize {
        self.bytes.len() + self.ways.len() * size_of::<(u64, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::IdSet;

    #[test]
    fn a_way_is_read_as_it_was_added() {
        let point =
            |at: i64| Point::new(i32::MIN + at as i32 * 17, i32::MAX - at as i32 * 1_000_003);
        let ids = [i64::MIN, i64::MAX, 0, -3, 7];
        for has_node_ids in [true, false] {
            let wanted: IdSet = [5, -5, 9, 12, 13].into_iter().collect();
            let wanted = Arc::new(RankSet::from(wanted));
            let mut store = WayStore::new(wanted.clone(), has_node_ids);
            for (way, nodes) in [(9, 1), (5, 3), (-5, 0), (9, 5)] {
                let mut batch = WayBatch::new(has_node_ids);
                let nodes = (0..nodes).map(|at| (ids[at], Some(point(at as i64))));
                batch.push(wanted.rank(way).unwrap(), nodes);
                let unlocated = [(3, Some(point(1))), (-4, None)];
                batch.push(wanted.rank(12).unwrap(), unlocated.into_iter());
                store.add(batch);
            }
            let read = |way| {
                let mut nodes = Vec::new();
                let found = store.read(way, &mut nodes);
                (found, nodes)
            };
            for (way, nodes) in [(5, 3), (-5, 0), (9, 5)] {
                let nodes = ids.iter().zip(0..).take(nodes);
                let nodes = nodes.map(|(id, at)| AreaNode {
                    id: if has_node_ids { *id } else { 0 },
                    point: point(at),
                });
                assert_eq!(read(way), (StoredWay::Located, nodes.collect()));
            }
            assert_eq!(read(12), (StoredWay::Unlocated(-4), Vec::new()));
            let counts = [5, -5, 9, 12, 13, 14].map(|way| store.node_count(way));
            assert_eq!(
                (counts, store.longest_way_node_count()),
                ([3, 0, 5, 0, 0, 0], 5)
            );
            assert_eq!(read(13), (StoredWay::Missing, Vec::new()));
            assert_eq!(read(14), (StoredWay::Missing, Vec::new()));
        }
    }
}
