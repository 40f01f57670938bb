//! The locations of the nodes of a chunk of 65,536 neighbouring ids.

use super::chunk::{LastFound, OffsetSet, RunCounts};
use super::table::{CHUNK_BITS, Offsets, split};
use crate::osm::Location;
use crate::system::prefer_huge_pages;

/// The number of ids per chunk.
pub(super) const CHUNK: usize = 1 << CHUNK_BITS;

/// The number of ids per page of a dense store. The locations of a page occupy 4 kB, the usual page size of operating
/// systems.
pub(super) const PAGE: usize = 512;
/// The number of pages per chunk.
pub(super) const PAGES: usize = CHUNK / PAGE;

/// The number of bytes that a chunk of a sparse store uses in addition to ids and locations, including the overhead of
/// the allocator.
pub(super) const CHUNK_OVERHEAD: u64 = (size_of::<Closed>() + 48) as u64;

/// The locations of a chunk of 65,536 neighbouring ids. The variants are boxed because a page of the
/// [`ChunkTable`](super::table::ChunkTable) has room for all chunks of the page, used or not.
///
/// The locations of closed chunks are in one list of the store, which is called `known` here.
#[derive(Debug, Default)]
pub(super) enum LocationChunk {
    #[default]
    Empty,
    /// A chunk of a sparse store to which nodes were added after it was closed. Nodes cannot be looked up in it.
    Open(Box<Open>),
    /// A chunk of a sparse store in which nodes can be looked up.
    Closed(Box<Closed>),
    /// A chunk of a dense store, divided into pages. A page has the locations of all its ids. Only pages with a node
    /// are allocated.
    Full(Box<[Option<LocationPage>; PAGES]>),
}

/// The locations of [`PAGE`] neighbouring ids.
type LocationPage = Box<[Option<Location>; PAGE]>;

/// The nodes of an open chunk, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Open {
    offsets: Vec<u16>,
    locations: Vec<Option<Location>>,
}

/// The ids of a closed chunk, and the position of their locations in the list of the store.
#[derive(Debug)]
pub(super) struct Closed {
    ids: OffsetSet,
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
    pub(super) fn new_full() -> Self {
        Self::Full(Box::new([const { None }; PAGES]))
    }

    /// Adds nodes to a chunk that has nodes or is [`Full`](Self::Full). A closed chunk is opened again, and the
    /// locations of its nodes are copied from `known`.
    pub(super) fn add(
        &mut self,
        offsets: &[u16],
        locations: &[Option<Location>],
        known: &[Option<Location>],
    ) {
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

    /// Closes an open chunk by appending the locations of its nodes to `known`. Does nothing for other chunks.
    pub(super) fn close(&mut self, known: &mut Vec<Option<Location>>) {
        if let Self::Open(open) = self {
            let mut open = std::mem::take(&mut **open);
            let start = known.len();
            append_locations(known, &open.locations);
            *self = Self::new_closed(&mut open.offsets, start, known);
        }
    }

    /// Creates a closed chunk of nodes whose locations are at the end of `known`, beginning at `start`. Sorts the
    /// nodes.
    pub(super) fn new_closed(
        offsets: &mut Vec<u16>,
        start: usize,
        known: &mut Vec<Option<Location>>,
    ) -> Self {
        if !offsets.is_sorted_by(|one, next| one < next) {
            let (sorted, locations) = sorted_by_offset(offsets, &known[start..]);
            *offsets = sorted;
            known.truncate(start);
            known.extend(locations);
        }
        Self::of_ids(OffsetSet::of_ascending(offsets), start).0
    }

    /// Creates a closed chunk of nodes whose locations begin at `start` in `known`. Also returns the number of nodes.
    pub(super) fn of_ids(ids: OffsetSet, start: usize) -> (Self, usize) {
        let (counts, count) = RunCounts::new(&ids);
        let chunk = match count {
            0 => Self::Empty,
            _ => Self::Closed(Box::new(Closed { ids, counts, start })),
        };
        (chunk, count as usize)
    }

    /// Returns the index in `known` of the location of the node at `offset`, if the chunk is closed and has the node.
    /// `number` is the number of the chunk, and `last` is the previous look-up.
    #[inline]
    pub(super) fn location_index(
        &self,
        number: u64,
        offset: u16,
        last: &mut LastFound,
    ) -> Option<usize> {
        let Self::Closed(closed) = self else {
            return None;
        };
        let rank = closed.counts.rank(number, &closed.ids, offset, last)?;
        Some(closed.start + rank as usize)
    }

    /// Loads the memory that a look-up in a closed chunk reads first, so that the cache misses of several look-ups
    /// overlap.
    #[inline]
    pub(super) fn prefetch(&self, offset: u16) {
        if let Self::Closed(closed) = self {
            closed.ids.slot(offset).prefetch();
        }
    }

    /// Returns the location of the node `id`; `None` if the chunk does not have the node, or is open. `last` is the
    /// previous look-up.
    #[inline]
    pub(super) fn find<'s>(
        &'s self,
        id: i64,
        last: &mut LastFound,
        known: &'s [Option<Location>],
    ) -> Option<&'s Option<Location>> {
        let (number, offset) = split(id);
        match self {
            Self::Empty | Self::Open(_) => None,
            Self::Closed(_) => Some(&known[self.location_index(number, offset, last)?]),
            Self::Full(pages) => {
                let (page, at) = page_of(offset);
                Some(&pages[page].as_ref()?[at])
            }
        }
    }
}

/// Appends locations. If the list needs more memory, asks the system for huge pages.
pub(super) fn append_locations(known: &mut Vec<Option<Location>>, locations: &[Option<Location>]) {
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
fn sorted_by_offset(
    offsets: &[u16],
    locations: &[Option<Location>],
) -> (Vec<u16>, Vec<Option<Location>>) {
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
