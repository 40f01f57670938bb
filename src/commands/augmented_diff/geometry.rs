//! The nodes and the member ways that the geometry of the written objects needs.

use super::history::History;
use crate::engine::location_form::location_of_reference;
use crate::error::{Error, FormatResult, Result};
use crate::formats::{ChangeSet, PlacedNode};
use crate::index::{IdBatch, IdSet, RankSet};
use crate::io::Input;
use crate::io::Spool;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, Block, BlockUnits, KeptWay, StoredWay};
use crate::runtime::WorkItem;
use rustc_hash::FxHashMap;
use std::num::NonZeroU32;
use std::path::Path;

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NodeState {
    /// The version; 0 if it is unknown.
    pub version: u32,
    /// The location; `None` if it is unknown, or not on earth.
    pub location: Option<Location>,
}

/// The ids of the nodes whose state in the base is needed.
#[derive(Debug, Default)]
pub(super) struct NeededNodes {
    all: IdSet,
    /// The nodes whose location is needed. Of the other nodes in `all`, only the version is needed, because their ways
    /// store the location.
    unlocated: IdSet,
    /// Whether a location stored in a way of the base is used, so that the node need not be read for its location.
    takes_stored: bool,
}

impl NeededNodes {
    /// Creates an empty set. `takes_stored` is whether the locations stored in ways of the base are used.
    pub(super) fn new(takes_stored: bool) -> Self {
        Self {
            takes_stored,
            ..Self::default()
        }
    }

    /// Returns the ids of all nodes that are needed.
    pub(super) const fn all(&self) -> &IdSet {
        &self.all
    }

    /// Adds nodes of ways.
    pub(super) fn add_way_nodes(&mut self, nodes: &NodesOfWays) {
        let [unlocated, located] = &nodes.batches;
        unlocated
            .iter()
            .for_each(|ids| self.add_unlocated_batch(ids));
        located.iter().for_each(|ids| self.all.add(ids));
    }

    /// Adds nodes whose location is needed.
    pub(super) fn add_unlocated(&mut self, ids: impl Iterator<Item = i64> + Clone) {
        self.all.extend(ids.clone());
        self.unlocated.extend(ids);
    }

    /// Adds nodes whose location is needed.
    pub(super) fn add_unlocated_batch(&mut self, ids: &IdBatch) {
        self.all.add(ids);
        self.unlocated.add(ids);
    }
}

/// The nodes that a thread has found in ways of the base. The ways of a block of 32 MiB may have 30 million nodes.
#[derive(Debug, Default)]
pub(super) struct NodesOfWays {
    /// The nodes that are not in a batch yet, in two lists: first the nodes whose location is needed, then the nodes
    /// whose location is taken from their way.
    last: [Vec<i64>; 2],
    /// The batches of all other nodes, in two lists like `last`.
    batches: [Vec<IdBatch>; 2],
}

impl NodesOfWays {
    /// Adds a node. `is_located` is whether its location is taken from its way.
    pub(super) fn push(&mut self, id: i64, is_located: bool) {
        /// The number of nodes at which a batch ends.
        const BATCH: usize = 1 << 16;
        let list = usize::from(is_located);
        self.last[list].push(id);
        if self.last[list].len() == BATCH {
            self.end_batch(list);
        }
    }

    fn end_batch(&mut self, list: usize) {
        if !self.last[list].is_empty() {
            self.batches[list].push(IdBatch::from(self.last[list].as_slice()));
            self.last[list].clear();
        }
    }

    /// Ends the last batches, so that all nodes are in batches.
    pub(super) fn finish(&mut self) {
        (0..self.last.len()).for_each(|list| self.end_batch(list));
    }
}

/// The nodes of the base that are needed.
pub(super) struct Nodes {
    needed: RankSet,
    unlocated: IdSet,
    /// Whether the location stored in a way of the base takes precedence over the location of the node.
    takes_stored: bool,
    /// The states in the base, by the ranks of the ids in `needed`; `None` for a node that the base does not have.
    states: Vec<Option<NodeState>>,
}

impl Nodes {
    /// Returns the memory in bytes that the states of `count` nodes take.
    pub(super) const fn memory_of(count: u64) -> u64 {
        count.saturating_mul(size_of::<Option<NodeState>>() as u64)
    }

    pub(super) fn new(needed: NeededNodes) -> Self {
        let NeededNodes {
            all,
            unlocated,
            takes_stored,
        } = needed;
        let needed = RankSet::from(all);
        Self {
            states: vec![None; needed.len() as usize],
            needed,
            unlocated,
            takes_stored,
        }
    }

    /// Returns the ids of the nodes whose location is needed.
    pub(super) const fn unlocated(&self) -> &IdSet {
        &self.unlocated
    }

    /// Sets the state of a node in the base.
    pub(super) fn set(&mut self, id: i64, state: NodeState) {
        if let Some(rank) = self.needed.rank(id) {
            self.states[rank as usize] = Some(state);
        }
    }

    /// Sets the location of a node that the base has only in its ways.
    pub(super) fn set_location_in_ways(&mut self, id: i64, location: Location) {
        if let Some(rank) = self.needed.rank(id) {
            self.states[rank as usize].get_or_insert(NodeState {
                version: 0,
                location: Some(location),
            });
        }
    }

    /// Returns the nodes whose location is needed but unavailable. Neither the base nor an effective change has these
    /// nodes.
    pub(super) fn missing_nodes(&self, history: &History<'_>) -> IdSet {
        let changed = history.changed_ids(ObjectKind::Node);
        let is_missing = |id: &i64| self.state_in_base(*id).is_none() && !changed.contains(*id);
        self.unlocated.ids().filter(is_missing).collect()
    }

    fn state_in_base(&self, id: i64) -> Option<NodeState> {
        let rank = self.needed.rank(id);
        rank.and_then(|rank| self.states[rank as usize])
    }

    /// Returns a node of a way at a moment. `given` is the location that the way stores for the node, if the way is
    /// from the base.
    pub(super) fn node_at(
        &self,
        id: i64,
        given: Option<Location>,
        history: &History<'_>,
        moment: u32,
    ) -> PlacedNode {
        if let Some(change) = history.last_change(ObjectKind::Node, id, moment) {
            let version = change.version.filter(|_| !change.is_deletion());
            return PlacedNode {
                id,
                version: version.and_then(NonZeroU32::new),
                location: ChangeSet::location(change),
            };
        }
        let state = self.state_in_base(id);
        let version = state.map(|state| state.version);
        PlacedNode {
            id,
            version: version.and_then(NonZeroU32::new),
            location: self.location_in_base_or(state, given),
        }
    }

    /// Returns the location of a node in the base. `state` is the state of the node, and `given` is the location that a
    /// way of the base stores for it.
    fn location_in_base_or(
        &self,
        state: Option<NodeState>,
        given: Option<Location>,
    ) -> Option<Location> {
        let location = state.and_then(|state| state.location);
        base_location(self.takes_stored, location, given)
    }

    /// Returns the location of a node at a moment. `given` is the location that a member way of the base stores for it.
    pub(super) fn location_at(
        &self,
        id: i64,
        given: Option<Location>,
        history: &History<'_>,
        moment: u32,
    ) -> Option<Location> {
        if let Some(change) = history.last_change(ObjectKind::Node, id, moment) {
            return ChangeSet::location(change);
        }
        self.location_in_base_or(self.state_in_base(id), given)
    }
}

/// Returns the location of a node in a way of the base. `node` is the location of the node itself. `stored` is the
/// location that the way stores for the node. `takes_stored` is whether `stored` takes precedence.
pub(super) fn base_location(
    takes_stored: bool,
    node: Option<Location>,
    stored: Option<Location>,
) -> Option<Location> {
    if takes_stored {
        stored.or(node)
    } else {
        location_of_reference(node, stored)
    }
}

/// The encoded references and locations of ways of one blob, without tags and metadata.
#[derive(Debug, Default)]
pub(super) struct StoredWays {
    /// The number of the blob, and its offset in the base.
    blob: (u64, u64),
    units: BlockUnits,
    /// The id of each way, and its offset in `bytes`.
    ways: Vec<(i64, u32)>,
    bytes: Vec<u8>,
}

impl StoredWays {
    /// Creates an empty list of ways of a block.
    pub(super) fn of(entry: &BlobEntry, block: &Block<'_>) -> Self {
        Self {
            blob: (entry.number.into(), entry.offset),
            units: block.units,
            ways: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Returns the size in memory, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.ways.capacity() * size_of::<(i64, u32)>()
    }

    /// Adds a way with its nodes, and with their locations if the way has them. Does not check the nodes and locations.
    pub(super) fn push(&mut self, id: i64, way: StoredWay<'_>) -> FormatResult<()> {
        // The ways of one blob have at most 32 MiB, so the offset fits in 32 bits.
        self.ways.push((id, self.bytes.len() as u32));
        way.append_kept_way(&mut self.bytes)
    }

    /// Frees unused capacity.
    pub(super) fn shrink(&mut self) {
        self.ways.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }

    /// Selects the ways whose ids are in `wanted`. `takes_stored` is whether the locations stored in the ways are used.
    /// Fails if the nodes or locations of a selected way are malformed; the error names the blob of `base`.
    pub(super) fn select(
        self,
        base: &Input,
        wanted: &IdSet,
        takes_stored: bool,
    ) -> Result<SelectedWays> {
        let (number, offset) = self.blob;
        let selected = self.select_in_blob(wanted, takes_stored);
        selected.map_err(|error| base.blob_error(number, offset, error))
    }

    /// Selects ways as [`select`](Self::select) does, but with an error that does not name the blob.
    pub(super) fn select_in_blob(
        self,
        wanted: &IdSet,
        takes_stored: bool,
    ) -> FormatResult<SelectedWays> {
        let (mut places, mut unlocated) = (Vec::new(), Vec::new());
        let ends = self.ways.iter().skip(1).map(|(_, start)| *start);
        let ends = ends.chain([self.bytes.len() as u32]);
        for ((id, start), end) in self.ways.iter().zip(ends) {
            if !wanted.contains(*id) {
                continue;
            }
            let way = KeptWay(&self.bytes[*start as usize..end as usize]);
            way.check(*id)?;
            let mut count = 0;
            way.for_each_node(&self.units, |node, location| {
                count += 1;
                if location.is_none() || !takes_stored {
                    unlocated.push(node);
                }
            })?;
            let place = PlaceOfWay {
                start: *start,
                len: end - start,
                count,
            };
            places.push((*id, place));
        }
        Ok(SelectedWays {
            units: self.units,
            places,
            bytes: self.bytes,
            unlocated: IdBatch::from(unlocated.as_slice()),
        })
    }
}

impl WorkItem for StoredWays {
    fn input_bytes(&self) -> u64 {
        self.memory() as u64
    }
}

/// The position of a way in the bytes of the ways of a blob.
#[derive(Debug, Clone, Copy)]
struct PlaceOfWay {
    start: u32,
    len: u32,
    /// The number of nodes.
    count: u32,
}

/// Ways of one blob that are members of written relations.
pub(super) struct SelectedWays {
    units: BlockUnits,
    /// For each way, its id, and its position in `bytes`.
    places: Vec<(i64, PlaceOfWay)>,
    bytes: Vec<u8>,
    /// The nodes whose location is not taken from the ways.
    pub unlocated: IdBatch,
}

/// The ways of the base that are members of written relations.
#[derive(Debug)]
pub(super) struct MemberWays {
    spool: Spool,
    /// The units of the ways of each piece of the spool.
    units: Vec<BlockUnits>,
    /// For each wanted way, the number of its piece, and its position in the piece.
    places: FxHashMap<i64, (u32, PlaceOfWay)>,
}

impl MemberWays {
    /// Creates an empty collection, which holds up to `limit` bytes in memory. Further bytes go to a temporary file in
    /// `directory`.
    pub(super) fn new(limit: usize, directory: &Path) -> Self {
        Self {
            spool: Spool::new(limit, directory),
            units: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    /// Adds the ways of a blob.
    pub(super) fn add(&mut self, ways: SelectedWays) -> Result<()> {
        if ways.places.is_empty() {
            return Ok(());
        }
        let piece = self.spool.add(ways.bytes)? as u32;
        self.units.push(ways.units);
        let places = ways.places.into_iter();
        self.places
            .extend(places.map(|(id, place)| (id, (piece, place))));
        Ok(())
    }

    /// Returns the number of nodes of a way; 0 if the base does not have it.
    pub(super) fn node_count(&self, id: i64) -> usize {
        let place = self.places.get(&id);
        place.map_or(0, |(_, place)| place.count as usize)
    }

    /// Calls `take` with each node of a way and its location in the way. Returns whether the base has the way.
    pub(super) fn for_each_node(
        &self,
        id: i64,
        take: impl FnMut(i64, Option<Location>),
    ) -> Result<bool> {
        let Some((piece, place)) = self.places.get(&id) else {
            return Ok(false);
        };
        let start = place.start as usize;
        let bytes = self
            .spool
            .read(*piece as usize, start..start + place.len as usize)?;
        let decoded = KeptWay(&bytes).for_each_node(&self.units[*piece as usize], take);
        decoded.map_err(|error| Error::internal(format!("a kept way is broken: {error}")))?;
        Ok(true)
    }
}
