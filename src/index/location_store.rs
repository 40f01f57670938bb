//! The locations of nodes by id, in memory.

use super::chunk::LastFound;
use super::id_set::IdSet;
use super::location_chunk::{CHUNK, CHUNK_OVERHEAD, LocationChunk, PAGE, PAGES, append_locations};
use super::node_batch::{NodeBatch, Preparation};
use super::table::{ChunkTable, split};
use crate::osm::{Location, id_rank};
use crate::system::{map_reserved, prefer_huge_pages};
use std::sync::Arc;

/// The form in which a [`LocationStore`] keeps locations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreForm {
    /// Pages of 512 neighbouring ids, with eight bytes per id. Pages without nodes are not allocated.
    Dense,
    /// Eight bytes per node, and a set of the ids of the nodes. A chunk with many nodes stores the set as a bitmap (one
    /// bit per possible id), a chunk with few nodes as a list (two bytes per node).
    Sparse,
}

/// A map from node ids, which may be any `i64`, to locations. If a node is added twice, the second location replaces
/// the first.
///
/// A sparse store expects nodes in ascending order of ids, as in a sorted file. In any other order, a node may belong
/// to an earlier chunk. Adding it copies that chunk and takes more memory. [`of_ids`](Self::of_ids) creates a sparse
/// store for nodes in any order.
#[derive(Debug)]
pub struct LocationStore {
    form: StoreForm,
    chunks: ChunkTable<LocationChunk>,
    /// The chunks of a store made by [`of_ids`](Self::of_ids), which are used instead of `chunks`; `None` for other
    /// stores. Adding a node to these chunks only sets its location.
    fixed: Option<Arc<ChunkTable<LocationChunk>>>,
    /// The locations of the closed chunks, followed by the locations of `last`.
    locations: Vec<Option<Location>>,
    /// The chunk that was begun last. It is not in `chunks` yet. Dense stores, and stores made by
    /// [`of_ids`](Self::of_ids), never have such a chunk.
    last: Option<LastChunk>,
}

/// The chunk of a sparse store to which nodes of a sorted file are being added. The locations of these nodes are at the
/// end of [`LocationStore::locations`], where they stay when the chunk is closed.
#[derive(Debug, Default)]
struct LastChunk {
    number: u64,
    /// The offsets of the nodes, in the order in which they were added.
    offsets: Vec<u16>,
    /// The index of the location of the first node.
    start: usize,
}

impl LocationStore {
    /// Creates an empty store. A sparse store reserves memory for the locations of `nodes` nodes; a dense store ignores
    /// `nodes`.
    pub fn new(form: StoreForm, nodes: u64) -> Self {
        let locations = match form {
            StoreForm::Dense => 0,
            StoreForm::Sparse => usize::try_from(nodes).unwrap_or_default(),
        };
        let mut locations = Vec::with_capacity(locations);
        prefer_huge_pages(&mut locations);
        Self {
            form,
            chunks: ChunkTable::default(),
            fixed: None,
            locations,
            last: None,
        }
    }

    /// Creates an empty store for exactly `nodes` nodes, as [`new`](Self::new) does. Maps the memory of their locations
    /// beforehand, on `threads` threads.
    pub(crate) fn for_node_count(form: StoreForm, nodes: u64, threads: usize) -> Self {
        let mut store = Self::new(form, nodes);
        map_reserved(&mut store.locations, threads);
        store
    }

    /// Creates a sparse store for nodes with the given ids. The nodes may be added in any order. A node has no location
    /// until it is added. Nodes with other ids are ignored. Nodes can be looked up without calling
    /// [`close`](Self::close). Maps the memory of the locations beforehand, on `threads` threads.
    pub fn of_ids(ids: IdSet, threads: usize) -> Self {
        let count = ids.len() as usize;
        let mut locations = Vec::with_capacity(count);
        prefer_huge_pages(&mut locations);
        map_reserved(&mut locations, threads);
        locations.resize(count, None);
        let mut start = 0;
        let chunks = ids.into_chunks().map(|ids| {
            let (chunk, count) = LocationChunk::of_ids(ids, start);
            start += count;
            chunk
        });
        Self {
            form: StoreForm::Sparse,
            chunks: ChunkTable::default(),
            fixed: Some(Arc::new(chunks)),
            locations,
            last: None,
        }
    }

    /// Returns the maximum number of bytes that the table of chunks uses for ids up to `largest`.
    pub fn table_bytes(largest: i64) -> u64 {
        // A table that grows is copied, and the old and the new table are both in memory during the copy.
        ChunkTable::<LocationChunk>::bytes_for_ids_up_to(largest) * 3 / 2
    }

    /// Returns the maximum number of bytes that the locations of `nodes` nodes with ids from `first` to `last` use. The
    /// table of chunks is not included.
    pub fn bytes(form: StoreForm, nodes: u64, first: i64, last: i64) -> u64 {
        let span = id_rank(last)
            .saturating_sub(id_rank(first))
            .saturating_add(1);
        let chunks = (span / CHUNK as u64 + 1).min(nodes);
        match form {
            StoreForm::Dense => {
                let pages = (span / PAGE as u64 + 1).min(nodes);
                8 * PAGE as u64 * pages + 16 * PAGES as u64 * chunks
            }
            StoreForm::Sparse => {
                let ids = (2 * nodes).min(span / 8 + 256);
                8 * nodes + ids + CHUNK_OVERHEAD * chunks
            }
        }
    }

    /// Returns a [`Preparation`] of batches for this store. Other threads may use it while nodes are added.
    pub fn preparation(&self) -> Preparation {
        Preparation(self.fixed.clone())
    }

    /// Adds the nodes of a batch. In a store made by [`of_ids`](Self::of_ids), ignores ids that the store does not
    /// have.
    pub fn add(&mut self, nodes: &NodeBatch) {
        if let Some(chunks) = &self.fixed {
            let indices = nodes.indices(chunks);
            for (index, location) in indices.iter().zip(nodes.locations()) {
                if let Some(stored) = self.locations.get_mut(*index) {
                    *stored = *location;
                }
            }
            return;
        }
        let is_dense = self.form == StoreForm::Dense;
        for (number, offsets, locations) in nodes.runs() {
            if !self.is_last_chunk(number) {
                let chunk = self.chunks.chunk_mut(number);
                if is_dense && matches!(chunk, LocationChunk::Empty) {
                    *chunk = LocationChunk::new_full();
                }
                if !matches!(chunk, LocationChunk::Empty) {
                    chunk.add(offsets, locations, &self.locations);
                    continue;
                }
                self.begin_chunk(number);
            }
            self.add_to_last(offsets, locations);
        }
    }

    /// Whether `number` is the number of the last chunk.
    fn is_last_chunk(&self, number: u64) -> bool {
        self.last.as_ref().is_some_and(|last| last.number == number)
    }

    /// Closes the last chunk, and begins another one without nodes.
    fn begin_chunk(&mut self, number: u64) {
        let mut offsets = self.close_last();
        offsets.clear();
        self.last = Some(LastChunk {
            number,
            offsets,
            start: self.locations.len(),
        });
    }

    /// Adds nodes to the last chunk.
    fn add_to_last(&mut self, offsets: &[u16], locations: &[Option<Location>]) {
        if let Some(last) = &mut self.last {
            last.offsets.extend_from_slice(offsets);
            append_locations(&mut self.locations, locations);
        }
    }

    /// Closes the last chunk, if there is one. Returns a list whose memory can be used again.
    fn close_last(&mut self) -> Vec<u16> {
        let mut last = self.last.take().unwrap_or_default();
        if !last.offsets.is_empty() {
            let known = &mut self.locations;
            *self.chunks.chunk_mut(last.number) =
                LocationChunk::new_closed(&mut last.offsets, last.start, known);
        }
        last.offsets
    }

    /// Closes all chunks. In a sparse store made by [`new`](Self::new), some nodes cannot be looked up before this
    /// call.
    pub fn close(&mut self) {
        self.close_last();
        let locations = &mut self.locations;
        self.chunks.for_each_mut(|chunk| chunk.close(locations));
    }

    /// Returns the chunks of all nodes that can be looked up.
    fn table(&self) -> &ChunkTable<LocationChunk> {
        self.fixed.as_deref().unwrap_or(&self.chunks)
    }

    /// Returns the location of a node. Returns `None` if the store does not have the node, or if the node has no
    /// location.
    #[cfg(test)]
    fn get(&self, id: i64) -> Option<Location> {
        let chunk = self.table().chunk(split(id).0);
        let mut last = LastFound::default();
        let location = chunk.and_then(|chunk| chunk.find(id, &mut last, &self.locations));
        location.copied().flatten()
    }

    /// Looks up the node with each id and appends its location to `locations`. Appends `None` if the store does not
    /// have the node, or if the node has no location. Ids are looked up in batches, and the cache misses of a batch
    /// overlap. This is several times as fast as single look-ups.
    pub fn get_all(&self, ids: &[i64], locations: &mut Vec<Option<Location>>) {
        const AT_A_TIME: usize = 64;
        const NONE: &Option<Location> = &None;
        let mut chunks = [&LocationChunk::Empty; AT_A_TIME];
        let mut found = [NONE; AT_A_TIME];
        let (table, mut last) = (self.table(), LastFound::default());
        for ids in ids.chunks(AT_A_TIME) {
            for (chunk, id) in chunks.iter_mut().zip(ids) {
                let known = table.chunk(split(*id).0);
                *chunk = known.unwrap_or(&LocationChunk::Empty);
            }
            for (chunk, id) in chunks.iter().zip(ids) {
                chunk.prefetch(split(*id).1);
            }
            for ((found, chunk), id) in found.iter_mut().zip(&chunks).zip(ids) {
                *found = chunk.find(*id, &mut last, &self.locations).unwrap_or(NONE);
            }
            locations.extend(found.iter().take(ids.len()).map(|location| **location));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use std::collections::BTreeMap;

    #[test]
    fn a_store_equals_a_map_for_nodes_added_in_any_order() {
        let mut random = Random(7);
        let far = [i64::MIN, i64::MAX, -1, -65_536, 1 << 40, 0];
        let cases: [Vec<i64>; 5] = [
            // These ids have so many runs that a part of the runs is sorted early.
            (0..150_000)
                .map(|number| (number % 2) * (1 << 30) + number * 7919 % 65_536)
                .collect(),
            (1..200_000).filter(|id| id % 3 > 0).collect(),
            (1..200_000).rev().step_by(50).collect(),
            (0..50_000)
                .map(|_| random.below(150_000) - 70_000)
                .collect(),
            far.to_vec(),
        ];
        for ids in cases {
            for form in [StoreForm::Dense, StoreForm::Sparse] {
                let (mut store, mut plain) =
                    (LocationStore::new(form, ids.len() as u64), BTreeMap::new());
                let mut filled = LocationStore::of_ids(ids.iter().copied().collect(), 2);
                let len = if ids.len() == 150_000 { 140_000 } else { 700 };
                for ids in ids.chunks(len) {
                    let (mut nodes, mut again) = (NodeBatch::default(), NodeBatch::default());
                    let mut locations = Vec::new();
                    for id in ids {
                        let location = match random.below(20) {
                            0 => None,
                            1 => Location::new(0, 0),
                            _ => Location::new(random.below(1 << 30), -(random.below(1 << 30))),
                        };
                        nodes.push(*id, location);
                        locations.push(location);
                        plain.insert(*id, location);
                    }
                    let at = random.below(ids.len());
                    again.push_run(&ids[..at], &locations[..at]);
                    again.push_run(&ids[at..], &locations[at..]);
                    assert_eq!(again, nodes);
                    // A batch can be added without being prepared.
                    filled.add(&nodes);
                    filled.preparation().prepare(&mut again);
                    filled.add(&again);
                    store.preparation().prepare(&mut nodes);
                    store.add(&nodes);
                }
                store.close();
                filled.close();
                let mut asked: Vec<i64> = (-1000..1000).chain(far).chain(ids.clone()).collect();
                asked.extend((0..1000).map(|_| random.below(300_000)));
                let mut found = Vec::new();
                store.get_all(&asked, &mut found);
                for (id, found) in asked.iter().zip(found) {
                    let expected = plain.get(id).copied().unwrap_or_default();
                    assert_eq!(found, expected, "{id} {form:?}");
                    assert_eq!(store.get(*id), expected);
                    assert_eq!(filled.get(*id), expected);
                }
            }
        }
    }
}
