//! Nodes that are collected by one thread, to be added to a store of locations by another.

use super::chunk::LastFound;
use super::location_chunk::LocationChunk;
use super::table::{ChunkTable, join, split};
use crate::osm::Location;
use std::borrow::Cow;
use std::sync::Arc;

/// The index of a node that the store does not have.
const ABSENT: usize = usize::MAX;

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
    /// The index of each location in the list of the store, or [`ABSENT`]. `offsets` and `runs` are then empty.
    indices: Option<Vec<usize>>,
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
                let index = chunk.and_then(|chunk| chunk.index(number, *offset, &mut last));
                index.unwrap_or(ABSENT)
            }));
        }
        Cow::Owned(indices)
    }

    /// Sorts the nodes by chunk and offset, unless the runs are already in ascending order of chunks. Nodes with the
    /// same id keep their order.
    fn sort(&mut self) {
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

/// Prepares batches for a store on the threads that make them, so that the thread that adds them has less to do.
#[derive(Debug, Clone, Default)]
pub struct Preparation(pub(super) Option<Arc<ChunkTable<LocationChunk>>>);

impl Preparation {
    /// Finds the indices of the nodes of a batch in the lists of the store, if it has the ids of all nodes. Otherwise
    /// sorts the nodes.
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
