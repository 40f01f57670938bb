//! The nodes and the member ways that the geometry of the written objects needs.

use super::history::History;
use crate::formats::{ChangeSet, PlacedNode};
use crate::index::{IdSet, RankSet};
use crate::osm::{Location, ObjectKind};
use crate::pbf::wire::{Varints, put_sint, put_varint};
use rustc_hash::FxHashMap;

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NodeState {
    /// The version; 0 if it is unknown.
    pub version: u32,
    pub location: Option<Location>,
}

/// The nodes of the base that are needed.
pub(super) struct Nodes {
    needed: RankSet,
    /// The states in the base, by the ranks of the ids in `needed`; `None` for a node that the base does not have.
    states: Vec<Option<NodeState>>,
}

impl Nodes {
    pub(super) fn new(needed: IdSet) -> Self {
        let needed = RankSet::from(needed);
        Self {
            states: vec![None; needed.set().len() as usize],
            needed,
        }
    }

    /// Returns the ids of the nodes of the base that are needed.
    pub(super) const fn needed(&self) -> &IdSet {
        self.needed.set()
    }

    /// Sets the state of a node in the base.
    pub(super) fn set(&mut self, id: i64, state: NodeState) {
        if let Some(rank) = self.needed.rank(id) {
            self.states[rank as usize] = Some(state);
        }
    }

    /// Returns the needed nodes that the base does not have.
    pub(super) fn missing(&self) -> IdSet {
        let is_missing = |id: &i64| self.in_base(*id).is_none();
        self.needed().ids().filter(is_missing).collect()
    }

    fn in_base(&self, id: i64) -> Option<NodeState> {
        let rank = self.needed.rank(id);
        rank.and_then(|rank| self.states[rank as usize])
    }

    /// Returns a node at a moment. `given` is its location in a way of the base.
    pub(super) fn at(
        &self,
        id: i64,
        given: Option<Location>,
        history: &History<'_>,
        moment: u32,
    ) -> PlacedNode {
        if let Some(change) = history.last_change(ObjectKind::Node, id, moment) {
            return PlacedNode {
                id,
                version: change.version.filter(|_| !change.is_deletion()),
                location: ChangeSet::location(change),
            };
        }
        let state = self.in_base(id);
        let version = state.map(|state| state.version);
        PlacedNode {
            id,
            version: version.filter(|version| *version > 0),
            location: given.or(state.and_then(|state| state.location)),
        }
    }

    /// Returns the location of a node of a member at a moment. `given` is its location in the member in the base.
    pub(super) fn place_at(
        &self,
        id: i64,
        given: Option<Location>,
        history: &History<'_>,
        moment: u32,
    ) -> Option<Location> {
        if let Some(change) = history.last_change(ObjectKind::Node, id, moment) {
            return ChangeSet::location(change);
        }
        given.or_else(|| self.in_base(id).and_then(|state| state.location))
    }
}

/// The ways of the base that are members of written relations.
#[derive(Debug, Default)]
pub(super) struct MemberWays(FxHashMap<i64, Box<[u8]>>);

impl MemberWays {
    /// Adds ways that [`encode_way`] has encoded.
    pub(super) fn extend(&mut self, ways: Vec<(i64, Box<[u8]>)>) {
        self.0.extend(ways);
    }

    /// Calls `take` with each node of a way and its location in the way. Returns whether the base has the way.
    pub(super) fn for_each_node(
        &self,
        id: i64,
        mut take: impl FnMut(i64, Option<Location>),
    ) -> bool {
        let Some(bytes) = self.0.get(&id) else {
            return false;
        };
        let mut values = Varints::new(bytes);
        let (mut node, mut lat, mut lon) = (0i64, 0i64, 0i64);
        // `encode_way` wrote the values, and they never left memory.
        while let (false, Ok(step)) = (values.is_done(), values.read_sint()) {
            node = node.wrapping_add(step);
            let is_located = values.read().unwrap_or(0) == 1;
            let mut location = None;
            if is_located {
                lat += values.read_sint().unwrap_or(0);
                lon += values.read_sint().unwrap_or(0);
                location = Location::new(lat as i32, lon as i32);
            }
            take(node, location);
        }
        true
    }
}

/// Encodes the nodes of a way, with their locations as far as the way has them.
pub(super) fn encode_way(refs: &[i64], locations: &[Option<Location>]) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(refs.len() * 6);
    let (mut last, mut lat, mut lon) = (0i64, 0i64, 0i64);
    for (index, node) in refs.iter().enumerate() {
        put_sint(&mut bytes, node.wrapping_sub(last));
        last = *node;
        let location = locations.get(index).copied().flatten();
        put_varint(&mut bytes, u64::from(location.is_some()));
        if let Some(location) = location {
            let (new_lat, new_lon) = (i64::from(location.lat_e7()), i64::from(location.lon_e7()));
            put_sint(&mut bytes, new_lat - lat);
            put_sint(&mut bytes, new_lon - lon);
            (lat, lon) = (new_lat, new_lon);
        }
    }
    bytes.into()
}
