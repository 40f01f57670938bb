//! The locations of nodes by id, in memory.

use super::chunk::{Chunk, LastFound, RunCounts};
use super::id_set::IdSet;
use super::table::{CHUNK_BITS, ChunkTable, Offsets, join, split};
use crate::osm::{Location, id_rank};
use crate::system::{map_reserved, prefer_huge_pages};

/// The number of ids per chunk.
const CHUNK: usize = 1 << CHUNK_BITS;

/// The number of ids per page of a dense store. The locations of a page occupy 4 kB, the usual page size of operating
/// systems.
const PAGE: usize = 512;
/// The number of pages per chunk.
const PAGES: usize = CHUNK / PAGE;

/// The number of bytes that a chunk of a sparse store uses in addition to ids and locations, including the overhead of
/// the allocator.
const CHUNK_OVERHEAD: u64 = (size_of::<Closed>() + 48) as u64;

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
/// A sparse store expects nodes in ascending order of ids, as in a sorted file, because adding to an earlier chunk
/// copies that chunk, and it takes more memory. [`of_ids`](Self::of_ids) creates a sparse store for nodes in any order.
#[derive(Debug)]
pub struct LocationStore {
    form: StoreForm,
    /// Whether the ids of all nodes were given to [`of_ids`](Self::of_ids). In this case adding nodes only fills in
    /// locations.
    has_all_ids: bool,
    chunks: ChunkTable<LocationChunk>,
    /// The locations of the closed chunks, followed by those of `last`.
    locations: Vec<Option<Location>>,
    /// The chunk that was begun last. It is not in `chunks` yet. Only sparse stores have one, except those made by
    /// [`of_ids`](Self::of_ids).
    last: Option<LastChunk>,
}

/// The chunk of a sparse store to which a sorted file adds nodes. Their locations are at the end of
/// [`LocationStore::locations`], where they stay when the chunk is closed.
#[derive(Debug, Default)]
struct LastChunk {
    number: u64,
    /// The offsets of the nodes, in the order in which they were added.
    offsets: Vec<u16>,
    /// The index of the location of the first node.
    start: usize,
}

/// Nodes to be added to a [`LocationStore`], divided into runs of nodes of the same chunk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NodeBatch {
    /// The offset of each node in its chunk.
    offsets: Vec<u16>,
    locations: Vec<Option<Location>>,
    /// The chunk number of each run of nodes, and the index at which the run ends.
    runs: Vec<(u64, usize)>,
    /// Whether any run belongs to an earlier chunk than the previous run.
    is_unordered: bool,
}

impl NodeBatch {
    /// Adds a node.
    #[inline]
    pub fn push(&mut self, id: i64, location: Option<Location>) {
        let (chunk, offset) = split(id);
        self.offsets.push(offset);
        self.locations.push(location);
        self.end_run(chunk, self.offsets.len());
    }

    /// Adds successive nodes. `ids` and `locations` must have the same length.
    pub(crate) fn push_run(&mut self, ids: &[i64], locations: &[Option<Location>]) {
        let mut end = self.offsets.len();
        self.offsets.extend(ids.iter().map(|id| split(*id).1));
        self.locations.extend_from_slice(locations);
        for run in ids.chunk_by(|one, next| split(*one).0 == split(*next).0) {
            end += run.len();
            self.end_run(split(run[0]).0, end);
        }
    }

    /// Makes `end` the index at which the run of `chunk` ends. This is the last run or a new one.
    #[inline]
    fn end_run(&mut self, chunk: u64, end: usize) {
        match self.runs.last_mut() {
            Some((last, run)) if *last == chunk => *run = end,
            last => {
                self.is_unordered |= last.is_some_and(|(last, _)| chunk < *last);
                self.runs.push((chunk, end));
            }
        }
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Sorts the nodes by chunk and offset, unless the runs are already in ascending order of chunks. Nodes with the
    /// same id keep their order.
    pub fn sort(&mut self) {
        if !self.is_unordered {
            return;
        }
        let unsorted = std::mem::take(self);
        let (mut nodes, mut start) = (Vec::with_capacity(unsorted.offsets.len()), 0);
        for (chunk, end) in unsorted.runs {
            let offsets = &unsorted.offsets[start..end];
            let pairs = offsets.iter().zip(&unsorted.locations[start..end]);
            nodes.extend(pairs.map(|(offset, location)| (join(chunk, *offset), *location)));
            start = end;
        }
        nodes.sort_by_key(|(id, _)| split(*id));
        nodes
            .into_iter()
            .for_each(|(id, location)| self.push(id, location));
    }
}

/// The locations of a chunk of 65,536 neighbouring ids. The variants are boxed because a page of the [`ChunkTable`] has
/// room for all chunks of the page, used or not.
#[derive(Debug, Default)]
enum LocationChunk {
    #[default]
    Empty,
    /// A chunk of a sparse store to which nodes were added after it was closed. Nodes cannot be looked up in it.
    Open(Box<Open>),
    /// A chunk of a sparse store in which nodes can be looked up.
    Closed(Box<Closed>),
    /// A chunk of a dense store, divided into pages. A page has the locations of all its ids. Only pages with a node
    /// are allocated.
    Full(Box<[Option<Page>; PAGES]>),
}

/// The locations of [`PAGE`] neighbouring ids.
type Page = Box<[Option<Location>; PAGE]>;

/// The nodes of an open chunk, in the order in which they were added.
#[derive(Debug, Default)]
struct Open {
    offsets: Vec<u16>,
    locations: Vec<Option<Location>>,
}

/// The ids of a closed chunk, and the position of their locations in [`LocationStore::locations`].
#[derive(Debug)]
struct Closed {
    ids: Chunk,
    counts: RunCounts,
    /// The index of the location of the first id. The locations of the other ids follow in ascending order of ids.
    start: usize,
}

impl Offsets for LocationChunk {
    fn meets(&self, _: u16, _: u16) -> bool {
        !matches!(self, Self::Empty)
    }
}

impl LocationChunk {
    /// Creates a [`LocationChunk::Full`] without pages.
    fn full() -> Self {
        Self::Full(Box::new([const { None }; PAGES]))
    }

    /// Adds nodes to a chunk that has nodes or is [`Full`](Self::Full). A closed chunk is opened again, and the locations
    /// of its nodes are copied from `known`, which is [`LocationStore::locations`].
    fn add(&mut self, offsets: &[u16], locations: &[Option<Location>], known: &[Option<Location>]) {
        match self {
            Self::Closed(closed) => {
                let offsets: Vec<u16> = closed.ids.offsets().collect();
                let locations = known[closed.start..closed.start + offsets.len()].to_vec();
                *self = Self::Open(Box::new(Open { offsets, locations }));
            }
            Self::Empty | Self::Open(_) | Self::Full(_) => {}
        }
        match self {
            Self::Open(known) => {
                known.offsets.extend_from_slice(offsets);
                known.locations.extend_from_slice(locations);
            }
            Self::Full(pages) => {
                for (offset, location) in offsets.iter().zip(locations) {
                    let (page, at) = page_of(*offset);
                    let page = pages[page].get_or_insert_with(|| Box::new([None; PAGE]));
                    page[at] = *location;
                }
            }
            Self::Empty | Self::Closed(_) => {}
        }
    }

    /// Closes an open chunk by appending the locations of its nodes to `known`, which is
    /// [`LocationStore::locations`]. Does nothing for other chunks.
    fn close(&mut self, known: &mut Vec<Option<Location>>) {
        if let Self::Open(open) = self {
            let mut open = std::mem::take(&mut **open);
            let start = known.len();
            append(known, &open.locations);
            *self = Self::closed(&mut open.offsets, start, known);
        }
    }

    /// Creates a chunk of nodes whose locations are at the end of `known`, which is [`LocationStore::locations`],
    /// beginning at `start`. Sorts the nodes.
    fn closed(offsets: &mut Vec<u16>, start: usize, known: &mut Vec<Option<Location>>) -> Self {
        if !offsets.is_sorted_by(|one, next| one < next) {
            let (sorted, locations) = in_order(offsets, &known[start..]);
            *offsets = sorted;
            known.truncate(start);
            known.extend(locations);
        }
        let ids = Chunk::of_ascending(offsets);
        let (counts, _) = RunCounts::new(&ids);
        Self::Closed(Box::new(Closed { ids, counts, start }))
    }

    /// Loads the memory that a look-up in a closed chunk reads first, so that the cache misses of several look-ups
    /// overlap.
    #[inline]
    fn fetch(&self, offset: u16) {
        if let Self::Closed(closed) = self {
            closed.ids.slot(offset).fetch();
        }
    }

    /// Returns the location of the node `id`; `None` if the chunk does not have the node, or is open. `known` is
    /// [`LocationStore::locations`]; `last` is the previous look-up.
    #[inline]
    fn find<'s>(
        &'s self,
        id: i64,
        last: &mut LastFound,
        known: &'s [Option<Location>],
    ) -> Option<&'s Option<Location>> {
        let (number, offset) = split(id);
        match self {
            Self::Empty | Self::Open(_) => None,
            Self::Closed(closed) => {
                let rank = closed.counts.rank(number, &closed.ids, offset, last)?;
                Some(&known[closed.start + rank as usize])
            }
            Self::Full(pages) => {
                let (page, at) = page_of(offset);
                Some(&pages[page].as_ref()?[at])
            }
        }
    }
}

/// Appends locations. A list that grows prefers huge pages.
fn append(known: &mut Vec<Option<Location>>, locations: &[Option<Location>]) {
    let room = known.capacity();
    known.extend_from_slice(locations);
    if known.capacity() > room {
        prefer_huge_pages(known);
    }
}

/// Returns the index of the page that contains the location at `offset`, and the index of the location in that page.
const fn page_of(offset: u16) -> (usize, usize) {
    (offset as usize / PAGE, offset as usize % PAGE)
}

/// Sorts nodes by offset. Of nodes with the same offset, only the node that was added last is kept.
fn in_order(offsets: &[u16], locations: &[Option<Location>]) -> (Vec<u16>, Vec<Option<Location>>) {
    let mut nodes: Vec<_> = offsets
        .iter()
        .copied()
        .zip(locations.iter().copied())
        .collect();
    nodes.sort_by_key(|(offset, _)| *offset);
    // `dedup_by` removes the later of two nodes with the same offset, so the kept node gets the location of the later
    // one.
    nodes.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            kept.1 = later.1;
        }
        is_same
    });
    nodes.into_iter().unzip()
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
            has_all_ids: false,
            chunks: ChunkTable::default(),
            locations,
            last: None,
        }
    }

    /// Creates an empty store for exactly `nodes` nodes, as [`new`](Self::new) does. Maps the memory of their locations
    /// beforehand, on `threads` threads.
    pub(crate) fn of_count(form: StoreForm, nodes: u64, threads: usize) -> Self {
        let mut store = Self::new(form, nodes);
        map_reserved(&mut store.locations, threads);
        store
    }

    /// Creates a sparse store for nodes with the given ids, which may be added in any order. Nodes with other ids are
    /// ignored when they are added, and a node has no location before it is added. Nodes can be looked up without
    /// calling [`close`](Self::close). Maps the memory of the locations beforehand, on `threads` threads.
    pub fn of_ids(ids: IdSet, threads: usize) -> Self {
        let count = ids.len() as usize;
        let mut locations = Vec::with_capacity(count);
        prefer_huge_pages(&mut locations);
        map_reserved(&mut locations, threads);
        locations.resize(count, None);
        let mut start = 0;
        let chunks = ids.into_chunks().map(|ids| {
            let (counts, count) = RunCounts::new(&ids);
            if count == 0 {
                return LocationChunk::Empty;
            }
            let closed = Closed { ids, counts, start };
            start += count as usize;
            LocationChunk::Closed(Box::new(closed))
        });
        Self {
            form: StoreForm::Sparse,
            has_all_ids: true,
            chunks,
            locations,
            last: None,
        }
    }

    /// Returns the maximum number of bytes that the table of chunks uses for ids up to `largest`.
    pub fn table_bytes(largest: i64) -> u64 {
        // A table that grows is copied, and the old and the new table are both in memory during the copy.
        ChunkTable::<LocationChunk>::bytes_up_to(largest) * 3 / 2
    }

    /// Returns the maximum number of bytes that the locations of `nodes` nodes with ids from `first` to `last` use. The
    /// table of chunks is not included.
    pub fn bytes(form: StoreForm, nodes: u64, first: i64, last: i64) -> u64 {
        const CHUNK: u64 = self::CHUNK as u64;
        let span = id_rank(last)
            .saturating_sub(id_rank(first))
            .saturating_add(1);
        let chunks = (span / CHUNK + 1).min(nodes);
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

    /// Adds the nodes of a batch.
    pub fn add(&mut self, nodes: &NodeBatch) {
        let (mut start, is_dense) = (0, self.form == StoreForm::Dense);
        for &(number, end) in &nodes.runs {
            let (offsets, locations) = (&nodes.offsets[start..end], &nodes.locations[start..end]);
            start = end;
            if self.has_all_ids {
                self.fill(number, offsets, locations);
                continue;
            }
            if !self.is_last(number) {
                let chunk = self.chunks.chunk_mut(number);
                if is_dense && matches!(chunk, LocationChunk::Empty) {
                    *chunk = LocationChunk::full();
                }
                if !matches!(chunk, LocationChunk::Empty) {
                    chunk.add(offsets, locations, &self.locations);
                    continue;
                }
                self.begin_last(number);
            }
            self.add_to_last(offsets, locations);
        }
    }

    /// Whether `number` is the number of the last chunk.
    fn is_last(&self, number: u64) -> bool {
        self.last.as_ref().is_some_and(|last| last.number == number)
    }

    /// Closes the last chunk, and begins another one without nodes.
    fn begin_last(&mut self, number: u64) {
        let mut offsets = self.close_last();
        offsets.clear();
        self.last = Some(LastChunk {
            number,
            offsets,
            start: self.locations.len(),
        });
    }

    fn add_to_last(&mut self, offsets: &[u16], locations: &[Option<Location>]) {
        if let Some(last) = &mut self.last {
            last.offsets.extend_from_slice(offsets);
            append(&mut self.locations, locations);
        }
    }

    /// Closes the last chunk, if there is one. Returns a list whose memory can be used again.
    fn close_last(&mut self) -> Vec<u16> {
        let mut last = self.last.take().unwrap_or_default();
        if !last.offsets.is_empty() {
            let known = &mut self.locations;
            *self.chunks.chunk_mut(last.number) =
                LocationChunk::closed(&mut last.offsets, last.start, known);
        }
        last.offsets
    }

    /// Sets the locations of nodes of chunk `number`, in a store made by [`of_ids`](Self::of_ids). Ignores ids that the
    /// store does not have.
    fn fill(&mut self, number: u64, offsets: &[u16], found: &[Option<Location>]) {
        let Some(LocationChunk::Closed(chunk)) = self.chunks.chunk(number) else {
            return;
        };
        let mut last = LastFound::default();
        for (offset, location) in offsets.iter().zip(found) {
            let rank = chunk.counts.rank(number, &chunk.ids, *offset, &mut last);
            if let Some(rank) = rank {
                self.locations[chunk.start + rank as usize] = *location;
            }
        }
    }

    /// Closes all chunks. In a sparse store made by [`new`](Self::new), all nodes can be looked up only after this
    /// call.
    pub fn close(&mut self) {
        self.close_last();
        let locations = &mut self.locations;
        self.chunks.for_each_mut(|chunk| chunk.close(locations));
    }

    /// Returns the location of a node; `None` if the store does not have the node, or if the node has no location.
    #[cfg(test)]
    fn get(&self, id: i64) -> Option<Location> {
        let chunk = self.chunks.chunk(split(id).0);
        let mut last = LastFound::default();
        let location = chunk.and_then(|chunk| chunk.find(id, &mut last, &self.locations));
        location.copied().flatten()
    }

    /// Appends the location of the node with each id to `locations`, or `None` if the store does not have the node or
    /// the node has no location. Ids are looked up in batches whose cache misses overlap, which is several times as
    /// fast as single look-ups.
    pub fn get_all(&self, ids: &[i64], locations: &mut Vec<Option<Location>>) {
        const AT_A_TIME: usize = 64;
        const NONE: &Option<Location> = &None;
        let mut chunks = [&LocationChunk::Empty; AT_A_TIME];
        let mut found = [NONE; AT_A_TIME];
        let mut last = LastFound::default();
        for ids in ids.chunks(AT_A_TIME) {
            for (chunk, id) in chunks.iter_mut().zip(ids) {
                let known = self.chunks.chunk(split(*id).0);
                *chunk = known.unwrap_or(&LocationChunk::Empty);
            }
            for (chunk, id) in chunks.iter().zip(ids) {
                chunk.fetch(split(*id).1);
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
    fn a_store_holds_what_a_plain_map_holds_in_whatever_order_nodes_come() {
        let mut random = Random(7);
        let far = [i64::MIN, i64::MAX, -1, -65_536, 1 << 40, 0];
        let cases: [Vec<i64>; 4] = [
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
                for ids in ids.chunks(700) {
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
                    filled.add(&nodes);
                    nodes.sort();
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
