//! Nodes that are collected by one thread, to be added to a store of locations by another.

use super::chunk::LastFound;
use super::location_chunk::LocationChunk;
use super::table::{ChunkTable, id_at, split};
use crate::osm::Location;
use std::borrow::Cow;
use std::sync::Arc;

/// The index of a node that the store does not have.
const ABSENT: usize = usize::MAX;

/// The maximum number of nodes that are sorted together, with 16 bytes each. Blocks of real files have far fewer nodes.
const SORTED: usize = 1 << 20;
/// The number of runs after which nodes are sorted. Sorting reduces the number of runs.
const RUNS: usize = 1 << 16;

/// Nodes to be added to a [`LocationStore`], divided into runs of nodes of the same chunk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NodeBatch {
    /// The offset of each node in its chunk.
    offsets: Vec<u16>,
    locations: Vec<Option<Location>>,
    /// The chunk number of each run of nodes, and the index at which the run ends.
    runs: Vec<(u64, usize)>,
    /// The index of the first node that is not sorted yet, and the index of its run.
    sorted: (usize, usize),
    /// Whether any run that is not sorted yet belongs to an earlier chunk than the previous run.
    is_unordered: bool,
    /// The index of each location in the list of the store, or [`ABSENT`]. If the indices are set, `offsets` and `runs`
    /// are empty.
    indices: Option<Vec<usize>>,
}

impl NodeBatch {
    /// Adds a node.
    #[inline]
    pub fn push(&mut self, id: i64, location: Option<Location>) {
        let (chunk, offset) = split(id);
        self.offsets.push(offset);
        self.locations.push(location);
        self.extend_or_begin_run(chunk, self.offsets.len());
    }

    /// Adds successive nodes. `ids` and `locations` must have the same length.
    pub(crate) fn push_run(&mut self, ids: &[i64], locations: &[Option<Location>]) {
        let mut end = self.offsets.len();
        self.offsets.extend(ids.iter().map(|id| split(*id).1));
        self.locations.extend_from_slice(locations);
        for run in ids.chunk_by(|one, next| split(*one).0 == split(*next).0) {
            end += run.len();
            self.extend_or_begin_run(split(run[0]).0, end);
        }
    }

    /// Extends the last run to the index `end`. If the last run is not of `chunk` or is sorted already, begins a new
    /// run that ends there. Sorts the nodes first if there are many runs that are not sorted.
    #[inline]
    fn extend_or_begin_run(&mut self, chunk: u64, end: usize) {
        if self.is_unordered && self.runs.len() >= self.sorted.1 + RUNS {
            self.sort();
        }
        self.extend_run_without_sorting(chunk, end);
    }

    /// Does the same as [`extend_or_begin_run`](Self::extend_or_begin_run), but never sorts.
    #[inline]
    fn extend_run_without_sorting(&mut self, chunk: u64, end: usize) {
        let is_sorted = self.runs.len() == self.sorted.1;
        match self.runs.last_mut() {
            Some((last, run)) if *last == chunk && !is_sorted => *run = end,
            last => {
                self.is_unordered |= !is_sorted && last.is_some_and(|(last, _)| chunk < *last);
                self.runs.push((chunk, end));
            }
        }
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.locations.len()
    }

    pub(super) fn locations(&self) -> &[Option<Location>] {
        &self.locations
    }

    /// Returns the chunk number, the offsets and the locations of each run of nodes.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u64, &[u16], &[Option<Location>])> {
        let mut start = 0;
        self.runs.iter().map(move |(chunk, end)| {
            let run = std::mem::replace(&mut start, *end)..*end;
            (*chunk, &self.offsets[run.clone()], &self.locations[run])
        })
    }

    /// Returns the index of each location in the list of a store with the given chunks. An index beyond the list stands
    /// for a node that the store does not have.
    pub(super) fn indices(&self, chunks: &ChunkTable<LocationChunk>) -> Cow<'_, [usize]> {
        if let Some(indices) = &self.indices {
            return Cow::Borrowed(indices);
        }
        let (mut indices, mut last) = (Vec::with_capacity(self.len()), LastFound::default());
        for (number, offsets, _) in self.runs() {
            let chunk = chunks.chunk(number);
            indices.extend(offsets.iter().map(|offset| {
                let index =
                    chunk.and_then(|chunk| chunk.location_index(number, *offset, &mut last));
                index.unwrap_or(ABSENT)
            }));
        }
        Cow::Owned(indices)
    }

    /// Sorts the nodes that are not sorted yet by chunk and offset. Does nothing if the runs are already in ascending
    /// order of chunks. If there are many nodes, each group of [`SORTED`] nodes is sorted separately. Nodes with the
    /// same id keep their order.
    fn sort(&mut self) {
        if !std::mem::take(&mut self.is_unordered) {
            return;
        }
        let (mut start, first_run) = self.sorted;
        let runs = self.runs.split_off(first_run);
        let count = runs.last().map_or(start, |(_, end)| *end);
        let (mut runs, mut nodes) = (runs.into_iter(), Vec::new());
        let mut run = (0, start);
        while start < count {
            let end = count.min(start + SORTED);
            nodes.clear();
            for index in start..end {
                while index >= run.1
                    && let Some(next) = runs.next()
                {
                    run = next;
                }
                nodes.push((id_at(run.0, self.offsets[index]), self.locations[index]));
            }
            nodes.sort_by_key(|(id, _)| split(*id));
            for (index, (id, location)) in (start..end).zip(&nodes) {
                let (chunk, offset) = split(*id);
                (self.offsets[index], self.locations[index]) = (offset, *location);
                self.extend_run_without_sorting(chunk, index + 1);
            }
            start = end;
        }
        self.sorted = (count, self.runs.len());
        self.is_unordered = false;
    }
}

/// Prepares batches before they are added to a store. The threads that collect the nodes do this work, so that the
/// thread that adds the batches has less to do.
#[derive(Debug, Clone, Default)]
pub struct Preparation(pub(super) Option<Arc<ChunkTable<LocationChunk>>>);

impl Preparation {
    /// If the store was created with the ids of its nodes, finds the indices of the nodes of a batch in the list of the
    /// store. Otherwise sorts the nodes.
    pub fn prepare(&self, nodes: &mut NodeBatch) {
        let Some(chunks) = &self.0 else {
            return nodes.sort();
        };
        let indices = nodes.indices(chunks).into_owned();
        *nodes = NodeBatch {
            locations: std::mem::take(&mut nodes.locations),
            indices: Some(indices),
            ..NodeBatch::default()
        };
    }
}
