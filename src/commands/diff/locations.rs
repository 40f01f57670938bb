//! The rule that decides which stored locations of ways are compared.
//!
//! The location of a node reference is that of the node. If a file has the node, the node is compared, and the stored
//! location is not. If neither file has the node, the stored location is part of the way. The ids of the nodes are read
//! only when two ways with the same references store different locations.

use super::order;
use super::side::Side;
use super::{Format, Options};
use crate::engine::location_form::LocationForm;
use crate::engine::scan::Scan;
use crate::engine::stored_locations::for_each_stored_location;
use crate::error::{FormatResult, Result};
use crate::formats::WayLocations;
use crate::index::{IdSet, SharedIdSet};
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, BlobFlags, Block, ObjectBody, WayNodes, feature};
use crate::runtime::{Context, NoObserver, lock};
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex};

/// The selection of the stored locations that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Nothing,
    /// The locations of nodes that neither file has.
    OfAbsentNodes,
    /// The locations of all nodes.
    Everything,
}

/// The rule for a comparison, and the nodes that it depends on. All threads share it.
pub(super) struct LocationRule<'s> {
    compared: Compared,
    sides: &'s [order::Side; 2],
    dropped: DroppedNodes,
    /// The nodes with a location in either file; `None` until they are needed.
    nodes: Mutex<Option<Arc<IdSet>>>,
    /// A context without reports of progress, for reading nodes while the comparison is the current phase.
    ctx: Context,
}

/// The nodes that only the old file has, although ways of the new file store their locations. The change file deletes
/// these nodes, so the ways would lose the locations. Therefore these ways count as changed, even if they are equal in
/// both files.
#[derive(Default)]
struct DroppedNodes {
    ids: IdSet,
    /// The offsets of the blobs of the new file that contain these ways.
    blobs: FxHashSet<u64>,
}

impl<'s> LocationRule<'s> {
    /// Determines the rule for two files. If a change file is written, also looks for dropped nodes.
    pub(super) fn of(
        options: &Options,
        format: Option<&Format>,
        is_history: bool,
        sides: &'s [order::Side; 2],
        ctx: &Context,
    ) -> Result<Self> {
        let changes = match format {
            Some(Format::Osc(deletions)) => Some(deletions),
            _ => None,
        };
        let is_left_out =
            changes.is_some_and(|options| options.text.way_locations == WayLocations::Never);
        let compared = if !options.kinds.contains(ObjectKind::Way) || is_left_out {
            Compared::Nothing
        } else if changes.is_none() && options.equality.way_locations {
            Compared::Everything
        } else if !is_history && may_need_stored_locations(sides) {
            Compared::OfAbsentNodes
        } else {
            Compared::Nothing
        };
        let deletes_nodes = changes.is_some() && options.kinds.contains(ObjectKind::Node);
        let dropped = if compared == Compared::OfAbsentNodes && deletes_nodes {
            DroppedNodes::find(sides, ctx)?
        } else {
            DroppedNodes::default()
        };
        Ok(Self {
            compared,
            sides,
            dropped,
            nodes: Mutex::default(),
            ctx: ctx.clone().with_observer(Arc::new(NoObserver)),
        })
    }

    /// Whether there are dropped nodes. If so, a way may count as changed although it is equal in both files.
    pub(super) fn has_dropped_nodes(&self) -> bool {
        !self.dropped.ids.is_empty()
    }

    /// Whether a blob of the new file has to be compared although the old file has an equal blob.
    pub(super) fn must_compare_blob(&self, entry: &BlobEntry) -> bool {
        self.dropped.blobs.contains(&entry.offset)
    }

    /// Sets `moved` to the indices of the references for which the stored locations of two ways count as different.
    /// Leaves `moved` empty if the references differ, or if the objects are not ways.
    pub(super) fn find_moved(
        &self,
        old: &Side<'_>,
        new: &Side<'_>,
        moved: &mut Vec<usize>,
    ) -> Result<()> {
        moved.clear();
        let Some((refs, [before, after])) = shared_references(old, new) else {
            return Ok(());
        };
        if self.compared == Compared::Nothing || (before == after && !self.has_dropped_nodes()) {
            return Ok(());
        }
        let is_dropped = |id: &i64| self.dropped.ids.contains(*id);
        let pairs = refs.iter().enumerate().filter(|(index, id)| {
            let [before, after] = [before, after].map(|list| self.known_location(list, *index));
            if is_dropped(id) {
                after.is_some()
            } else {
                before != after
            }
        });
        moved.extend(pairs.map(|(index, _)| index));
        let mut ids = moved.iter().filter_map(|index| refs.get(*index));
        if self.compared == Compared::Everything || ids.all(is_dropped) {
            return Ok(());
        }
        let nodes = self.ids_of_nodes()?;
        moved.retain(|index| {
            let id = refs.get(*index);
            id.is_some_and(|id| is_dropped(id) || !nodes.contains(*id))
        });
        Ok(())
    }

    /// Returns a location that a way stores. A location that is not on earth counts as unknown, unless all locations
    /// are compared.
    fn known_location(&self, locations: &[Option<Location>], index: usize) -> Option<Location> {
        let all = self.compared == Compared::Everything;
        let location = locations.get(index).copied().flatten();
        location.filter(|location| all || location.is_on_earth())
    }

    /// Returns the ids of the nodes of both files. Reads them at the first call.
    fn ids_of_nodes(&self) -> Result<Arc<IdSet>> {
        let mut known = lock(&self.nodes);
        if let Some(nodes) = &*known {
            return Ok(nodes.clone());
        }
        let ids = SharedIdSet::default();
        for side in self.sides.iter() {
            read_nodes(side, |_| true, &ids, &self.ctx)?;
        }
        let nodes = Arc::new(ids.into_set(self.ctx.jobs));
        *known = Some(nodes.clone());
        Ok(nodes)
    }
}

/// The references of a way, which are the same in both versions, and the locations that each version stores.
type StoredOfBoth<'s> = (&'s [i64], [&'s [Option<Location>]; 2]);

/// Returns the references of two ways and the locations that each way stores; `None` if the references differ, or if
/// the objects are not ways.
fn shared_references<'s>(old: &'s Side<'_>, new: &'s Side<'_>) -> Option<StoredOfBoth<'s>> {
    let (
        ObjectBody::Way {
            refs,
            locations: before,
        },
        ObjectBody::Way {
            refs: new_refs,
            locations: after,
        },
    ) = (&old.object.body, &new.object.body)
    else {
        return None;
    };
    let parts: (&[i64], [&[Option<Location>]; 2]) = (refs, [before, after]);
    (refs == new_refs).then_some(parts)
}

/// Whether, for any of the reference indices in `moved`, the old way stores a location and the new way does not.
pub(super) fn loses_location(old: &Side<'_>, new: &Side<'_>, moved: &[usize]) -> bool {
    shared_references(old, new).is_some_and(|(_, [before, after])| {
        let is_known = |list: &[Option<Location>], index: usize| {
            let location = list.get(index).copied().flatten();
            location.is_some()
        };
        let mut moved = moved.iter();
        moved.any(|index| is_known(before, *index) && !is_known(after, *index))
    })
}

/// Calls `put` once for each node to which a reference in `moved` refers. The arguments are the id of the node, and the
/// locations that the old and the new way store for it.
pub(super) fn for_each_moved_node(
    old: &Side<'_>,
    new: &Side<'_>,
    moved: &[usize],
    mut put: impl FnMut(i64, [Option<Location>; 2]),
) {
    let Some((refs, lists)) = shared_references(old, new) else {
        return;
    };
    let mut seen = FxHashSet::default();
    for index in moved {
        if let Some(id) = refs.get(*index)
            && seen.insert(*id)
        {
            let locations = lists.map(|list| list.get(*index).copied().flatten());
            put(*id, locations);
        }
    }
}

/// Whether the ways of both files store locations, and one of the files may lack nodes of its ways.
fn may_need_stored_locations(sides: &[order::Side; 2]) -> bool {
    let form = |side: &order::Side| LocationForm::of_header(&side.file.header, true);
    sides.iter().all(has_located_ways) && sides.iter().any(|side| form(side).may_lack_nodes())
}

/// Whether ways of a file store locations, according to the entries of its blobs. For blobs whose entries do not show
/// this, the header decides.
fn has_located_ways(side: &order::Side) -> bool {
    let declares = side.file.header.has(feature::LOCATIONS);
    side.plan.entries.iter().any(|entry| {
        let is_known = entry.flags.has(BlobFlags::SCANNED);
        entry.may_have_locations() && (is_known || declares)
    })
}

/// Adds to `ids` all nodes that have a location. Reads only the blobs that `picks` selects.
fn read_nodes(
    side: &order::Side,
    picks: impl Fn(&BlobEntry) -> bool,
    ids: &SharedIdSet,
    ctx: &Context,
) -> Result<()> {
    Scan::without_strings("look up nodes", &side.file, &side.plan, ctx).run(
        |entry| entry.kinds.contains(ObjectKind::Node) && picks(entry),
        |_, block| {
            let mut found = Vec::new();
            block.for_each_node(|id, location, _| {
                if location.is_some_and(Location::is_on_earth) {
                    found.push(id);
                }
            })?;
            ids.add(&found.as_slice().into());
            Ok(())
        },
        |()| {},
    )
}

/// Returns the content hash of a blob, and the length of its payload; `None` if the hash is not known.
fn content_key(entry: &BlobEntry) -> Option<(u64, u32)> {
    let is_known = entry.flags.has(BlobFlags::HASHED);
    is_known.then_some((entry.hash, entry.payload_len))
}

impl DroppedNodes {
    /// Finds the nodes that only the old file has, although ways of the new file store their locations. Also finds the
    /// blobs of the new file that contain these ways.
    fn find(sides: &[order::Side; 2], ctx: &Context) -> Result<Self> {
        let [old, new] = sides;
        let gone = nodes_only_in_first([old, new], ctx)?;
        let mut dropped = Self::default();
        if gone.is_empty() {
            return Ok(dropped);
        }
        ctx.expect_phases(1);
        Scan::without_strings("look up ways", &new.file, &new.plan, ctx).run(
            BlobEntry::may_have_locations,
            |entry, block| Ok((entry.offset, nodes_with_stored_location(&gone, block)?)),
            |(offset, ids)| {
                if !ids.is_empty() {
                    dropped.blobs.insert(offset);
                    dropped.ids.extend(ids);
                }
            },
        )?;
        Ok(dropped)
    }
}

/// Returns the nodes that only the first of two files has. Does not read blobs that both files have.
fn nodes_only_in_first(sides: [&order::Side; 2], ctx: &Context) -> Result<IdSet> {
    let contents = sides.map(|side| {
        let contents = side.plan.entries.iter().filter_map(content_key);
        contents.collect::<FxHashSet<_>>()
    });
    let mut sets = Vec::new();
    for (side, others) in sides.into_iter().zip(contents.iter().rev()) {
        let ids = SharedIdSet::default();
        let is_shared =
            |entry: &BlobEntry| content_key(entry).is_some_and(|key| others.contains(&key));
        ctx.expect_phases(1);
        read_nodes(side, |entry| !is_shared(entry), &ids, ctx)?;
        sets.push(ids.into_set(ctx.jobs));
    }
    let [old, new] = sets.as_slice() else {
        return Ok(IdSet::default());
    };
    Ok(old.ids().filter(|id| !new.contains(*id)).collect())
}

/// Returns the ids of the `wanted` nodes for which the ways of a block store a location.
fn nodes_with_stored_location(wanted: &IdSet, block: &Block<'_>) -> FormatResult<Vec<i64>> {
    let (nodes, mut found) = (WayNodes::from_block(block)?, Vec::new());
    for_each_stored_location(block, &nodes, wanted, |_, id, location| {
        if location.is_some_and(Location::is_on_earth) {
            found.push(id);
        }
    })?;
    Ok(found)
}
