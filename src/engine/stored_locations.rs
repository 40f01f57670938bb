//! The locations that ways store for nodes which a file does not have.

use crate::error::FormatResult;
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{Block, WayNodes};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// The age of a way. Ages are compared by timestamp, then by version, then by id; the higher value is newer. A missing
/// timestamp or version counts as the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WayAge {
    /// The timestamp in seconds since 1970.
    pub timestamp: Option<i64>,
    pub version: Option<u32>,
    pub id: i64,
}

/// Returns the ages of the ways with the given indices. The index of the first way of the block is 0, and the indices
/// must ascend.
pub(crate) fn way_ages(block: &Block<'_>, ways: &[usize]) -> FormatResult<Vec<WayAge>> {
    let mut ages = Vec::with_capacity(ways.len());
    let mut wanted = ways.iter().copied().peekable();
    let (mut objects, mut index) = (block.walk(), 0);
    while wanted.peek().is_some()
        && let Some(kind) = objects.next()?
    {
        if kind != ObjectKind::Way {
            continue;
        }
        if wanted.next_if_eq(&index).is_some() {
            let info = objects.version_info()?;
            let seconds = block.units.seconds(info.timestamp);
            ages.push(WayAge {
                timestamp: (info.timestamp != 0).then_some(seconds),
                version: info.version_number(),
                id: objects.id()?,
            });
        }
        index += 1;
    }
    Ok(ages)
}

/// Returns the ways of a block that refer to a node in `ids`, as ascending indices into [`WayNodes::ways`].
pub(crate) fn ways_with_nodes(nodes: &WayNodes, ids: &IdSet) -> Vec<usize> {
    let mut ways = Vec::new();
    ids.for_each_present(&nodes.refs, |at| ways.push(nodes.way_index_of(at)));
    ways.dedup();
    ways
}

/// Calls `visit` for each reference to a node in `ids` from those ways of a block that store locations. The arguments
/// are the index of the way, the id of the node, and the location that the way stores for the node. `nodes` are the
/// references of the ways.
pub(crate) fn for_each_stored_location(
    block: &Block<'_>,
    nodes: &WayNodes,
    ids: &IdSet,
    mut visit: impl FnMut(usize, i64, Option<Location>),
) -> FormatResult<()> {
    let ways = ways_with_nodes(nodes, ids);
    if ways.is_empty() {
        return Ok(());
    }
    block.for_each_wanted_way(
        |way| ways.binary_search(&way).is_ok(),
        |way, refs, stored| {
            for (id, location) in refs.iter().zip(stored.unwrap_or_default()) {
                if ids.contains(*id) {
                    visit(way, *id, *location);
                }
            }
        },
    )
}

/// Returns the nodes whose locations the kept ways of a block store. `is_kept` has an element for each way. Nodes can
/// occur several times.
pub(crate) fn nodes_with_stored_locations(
    block: &Block<'_>,
    is_kept: &[bool],
) -> FormatResult<Vec<i64>> {
    let mut nodes = Vec::new();
    block.for_each_wanted_way(
        |index| is_kept.get(index) == Some(&true),
        |_, refs, stored| {
            let stored = refs.iter().zip(stored.unwrap_or_default());
            let known = stored.filter(|(_, location)| location.is_some_and(Location::is_on_earth));
            nodes.extend(known.map(|(id, _)| *id));
        },
    )?;
    Ok(nodes)
}

/// The locations of nodes according to the ways that refer to them. If ways store different locations for a node, the
/// location in the newest way is used.
#[derive(Debug, Default)]
pub(crate) struct StoredLocations(FxHashMap<i64, (WayAge, Location)>);

impl StoredLocations {
    /// Adds the location that a way stores for a node. Of several locations from ways of the same age, the one that was
    /// added last is used.
    pub(crate) fn add(&mut self, node: i64, age: WayAge, location: Location) {
        match self.0.entry(node) {
            Entry::Occupied(mut known) if known.get().0 <= age => {
                known.insert((age, location));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(unknown) => {
                unknown.insert((age, location));
            }
        }
    }

    /// Returns the location of a node according to the newest way; `None` if no way stores it.
    pub(crate) fn get(&self, node: i64) -> Option<Location> {
        self.0.get(&node).map(|(_, location)| *location)
    }

    /// Returns the nodes with their locations, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, Location)> + '_ {
        self.0.iter().map(|(id, (_, location))| (*id, *location))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_way_decides_the_location_in_any_order() {
        let age = |timestamp, version, id| WayAge {
            timestamp,
            version,
            id,
        };
        let at = |degrees: i32| Location::new(degrees * 10_000_000, 0).unwrap();
        let mut ways = [
            (age(None, Some(9), 9), at(1)),
            (age(Some(5), None, 9), at(2)),
            (age(Some(5), Some(2), 1), at(3)),
            (age(Some(5), Some(2), 2), at(4)),
        ];
        for _ in 0..ways.len() {
            ways.rotate_left(1);
            let mut stored = StoredLocations::default();
            ways.iter()
                .for_each(|(age, location)| stored.add(7, *age, *location));
            assert_eq!(stored.get(7), Some(at(4)));
            assert_eq!(stored.iter().collect::<Vec<_>>(), [(7, at(4))]);
        }
        assert_eq!(StoredLocations::default().get(7), None);
    }
}
