//! Keeps the coordinates in ways up to date.
//!
//! A way moves if the new location of a changed node differs from the coordinates in the way. The old location of the
//! node is not needed. The nodes of changed ways are looked up in the base. If the base may lack untagged nodes, the
//! ways of the base are read first, because the coordinates in ways also provide locations.

use super::base_nodes::{BaseNodes, LocatedBase, look_up};
use super::members::{Members, outdated_nodes_in_mixed_blobs};
use super::omitted::{LeavingNodes, LeavingRule, OmittedNodes};
use super::recent_nodes::RecentNodes;
use crate::engine::location_form::location_of_reference;
use crate::engine::stored_locations::{StoredLocations, WayAge};
use crate::engine::way_search::{FoundInWays, WaySearch};
use crate::error::Result;
use crate::file::{PbfFile, PlannedFile};
use crate::formats::ChangeSet;
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, WayNodes};
use crate::runtime::Context;
use rustc_hash::{FxHashMap, FxHashSet};

/// The locations of nodes after the changes, the blobs with ways that move, and the nodes to leave out.
#[derive(Debug, Default)]
pub(super) struct LocationUpdates {
    /// The new location of each changed node, or the location in the base if its change is outdated; `None` for a node
    /// without a location, such as a deleted node.
    moved: FxHashMap<i64, Option<Location>>,
    /// The ids of the nodes in `moved`.
    moved_ids: IdSet,
    /// The locations, in the base, of nodes that have no change of their own. Changed ways refer to these nodes, or the
    /// nodes become members of relations.
    known: FxHashMap<i64, Option<Location>>,
    /// The locations that ways store for the remaining nodes of changed ways. These nodes have no change, and no
    /// location in the base.
    stored: StoredLocations,
    /// The offsets of the blobs that contain a way whose nodes move. If the offsets are not known (`None`), every blob
    /// with ways has to be decoded.
    touched: Option<FxHashSet<u64>>,
    /// The nodes to leave out; `None` if the output has all nodes.
    pub omitted: Option<OmittedNodes>,
}

/// Warns if the changes are older than the base, which lacks untagged nodes. The versions of these nodes are not known.
/// An outdated change of such a node is therefore not recognized, and may move ways back.
fn warn_of_old_changes(file: &PbfFile, changes: &ChangeSet, ctx: &Context) {
    let (base, new) = (&file.header, changes.replication());
    let is_older =
        |new: Option<i64>, base: Option<i64>| new.zip(base).is_some_and(|(new, base)| new < base);
    if is_older(new.sequence, base.replication_sequence)
        || is_older(new.timestamp, base.replication_timestamp)
    {
        ctx.warn(format!(
            "{}: the changes are older than the base, which lacks the nodes that only ways need: ways may have moved \
             back to where these nodes were",
            file.input.path().display()
        ));
    }
}

impl LocationUpdates {
    /// Collects the new locations of changed nodes, the locations of the other nodes of changed ways, the blobs whose
    /// ways move, and the nodes to leave out.
    pub(super) fn find(
        base: &LocatedBase<'_>,
        changes: &ChangeSet,
        recent: RecentNodes,
    ) -> Result<Self> {
        let PlannedFile { file, ctx, .. } = base.source;
        let mut found = Self::of_changes(changes);
        let outdated = outdated_nodes_in_mixed_blobs(base.source, changes)?;
        found.restore_base_location(outdated, base.source)?;
        let (mut members, mut leaving) = (None, LeavingNodes::default());
        if base.omits_nodes() {
            warn_of_old_changes(file, changes, ctx);
            let of_relations = Members::find(base.source, changes)?;
            let rule = LeavingRule {
                members: &of_relations.now,
                no_longer_needed: &of_relations.no_longer_needed,
                recent,
            };
            leaving = LeavingNodes::find(base.source, &rule)?;
            members = Some(of_relations);
        }
        let refs = changes.changes().iter().flat_map(|way| changes.refs(way));
        let wanted: IdSet = refs
            .copied()
            .filter(|id| !found.moved.contains_key(id))
            .collect();
        let mut unknown = wanted.clone();
        unknown.extend(members.iter().flat_map(|members| members.new.ids()));
        found.known = look_up(base.source, &unknown)?;
        let is_missing = |id: &i64| found.known.get(id).copied().flatten().is_none();
        let missing: IdSet = wanted.ids().filter(is_missing).collect();
        let in_ways = found.search_ways_of_base(base, changes, &missing, &leaving.located)?;
        found.add_locations_of_changed_ways(changes, &missing);
        if let Some(members) = members {
            let mut leaving = leaving.except_needed(&in_ways.needed);
            let released = in_ways.released;
            leaving.extend(found.released_nodes(base, changes, released, &members.now, recent)?);
            let is_lost = |id: &i64| !found.known.contains_key(id) && !found.moved.contains_key(id);
            found.omitted = Some(OmittedNodes {
                lost: members.new.ids().filter(is_lost).count() as u64,
                members: members.now,
                leaving,
                needed_by_ways: in_ways.needed,
                recent,
            });
        }
        ctx.debug(match found.omitted {
            Some(_) => "the base has no nodes that only ways need: only recent ones are kept",
            None => "nodes that only ways need are kept",
        });
        Ok(found)
    }

    /// Collects the new locations of changed nodes.
    fn of_changes(changes: &ChangeSet) -> Self {
        let mut found = Self::default();
        for change in changes.changes() {
            if change.key.0 == ObjectKind::Node {
                found.moved.insert(change.id(), ChangeSet::location(change));
                found.moved_ids.insert(change.id());
            }
        }
        found
    }

    /// Reads the ways of the base, if they may have locations of nodes that the base lacks. Finds the blobs with ways
    /// whose nodes move, and the locations of the `missing` nodes. Returns the other findings, such as the nodes among
    /// `leaving` that ways need.
    fn search_ways_of_base(
        &mut self,
        base: &LocatedBase<'_>,
        changes: &ChangeSet,
        missing: &IdSet,
        leaving: &IdSet,
    ) -> Result<FoundInWays> {
        let is_read = match base.nodes {
            BaseNodes::All => false,
            BaseNodes::Some => !missing.is_empty(),
            BaseNodes::Needed => true,
        };
        if !is_read {
            return Ok(FoundInWays::default());
        }
        let search = WaySearch {
            wanted: missing,
            moved: &self.moved,
            leaving,
            changes,
            finds_released: base.omits_nodes(),
        };
        let mut found = search.run(base.source)?;
        self.touched = Some(std::mem::take(&mut found.touched));
        self.stored = std::mem::take(&mut found.stored);
        Ok(found)
    }

    /// Returns the nodes to remove from the base. A node is removed if only ways that the changes replace needed it.
    /// `released` has the nodes to which these ways refer without storing their locations. `members` has the nodes that
    /// are members of relations after the changes. Nodes to remove are rare. If there may be some, reads all ways of
    /// the base again.
    fn released_nodes(
        &self,
        base: &LocatedBase<'_>,
        changes: &ChangeSet,
        released: IdSet,
        members: &IdSet,
        recent: RecentNodes,
    ) -> Result<Vec<i64>> {
        let is_unchanged = |id: &i64| !self.moved.contains_key(id);
        let released: IdSet = released.ids().filter(is_unchanged).collect();
        let rule = LeavingRule {
            members,
            no_longer_needed: &released,
            recent: recent.without_aging_base_nodes(),
        };
        let leaving = LeavingNodes::find(base.source, &rule)?;
        let search = WaySearch {
            wanted: &IdSet::default(),
            moved: &FxHashMap::default(),
            leaving: &leaving.located,
            changes,
            finds_released: false,
        };
        let found = search.run(base.source)?;
        Ok(leaving.except_needed(&found.needed).ids().collect())
    }

    /// Adds the locations that changed ways themselves store for the nodes in `missing`.
    fn add_locations_of_changed_ways(&mut self, changes: &ChangeSet, missing: &IdSet) {
        for way in changes.changes() {
            let age = WayAge {
                timestamp: way.timestamp,
                version: way.version,
                id: way.id(),
            };
            let given = changes.refs(way).iter().zip(changes.way_locations(way));
            for (id, location) in given {
                if let Some(location) = location.filter(|location| location.is_on_earth())
                    && missing.contains(*id)
                {
                    self.stored.add(*id, age, location);
                }
            }
        }
    }

    /// Whether a blob has to be decoded even if none of its objects has a change. This is so if its ways may get other
    /// coordinates, or if its nodes may have to be removed.
    pub(super) fn must_decode(&self, entry: &BlobEntry) -> bool {
        let omitted = self.omitted.as_ref();
        self.may_have_moved_ways(entry)
            || omitted.is_some_and(|omitted| omitted.leaving_nodes_for_blob(entry).is_some())
    }

    /// Whether a blob may contain a way whose nodes move.
    pub(super) fn may_have_moved_ways(&self, entry: &BlobEntry) -> bool {
        let is_touched = |touched: &FxHashSet<u64>| touched.contains(&entry.offset);
        entry.kinds.contains(ObjectKind::Way)
            && !self.moved_ids.is_empty()
            && self.touched.as_ref().is_none_or(is_touched)
    }

    /// Returns the changed nodes among the node references of a block's ways, as indices into [`WayNodes::refs`].
    pub(super) fn changed_node_indices(&self, nodes: &WayNodes) -> Vec<usize> {
        let mut moved = Vec::new();
        self.moved_ids.append_present(&nodes.refs, &mut moved);
        moved
    }

    /// Returns the new location of a changed node. Returns `None` if the node has no change, and `Some(None)` if it has
    /// a change but no location.
    pub(super) fn new_location(&self, id: i64) -> Option<Option<Location>> {
        self.moved.get(&id).copied()
    }

    /// Replaces the locations of the nodes in `outdated` with those in the base. The changes of these nodes turned out
    /// to be older than the base.
    pub(super) fn restore_base_location(
        &mut self,
        outdated: Vec<i64>,
        source: PlannedFile<'_>,
    ) -> Result<()> {
        if outdated.is_empty() {
            return Ok(());
        }
        let ids: IdSet = outdated.into_iter().collect();
        let locations = look_up(source, &ids)?;
        for id in ids.ids() {
            // The node stays in `moved`, with the location in the base. The coordinates that a way stores for the node
            // may be older than the node.
            let location = locations.get(&id).copied().flatten();
            self.moved.insert(id, location);
        }
        Ok(())
    }

    /// Sets the coordinates in changed ways. The location of a node comes from the change of the node or, if the node
    /// has no change, from the base. If the base does not have the node, the location comes from the newest way that
    /// stores it.
    pub(super) fn locate(&self, changes: &mut ChangeSet) {
        changes.set_way_locations(|id, given| {
            if let Some(new) = self.moved.get(&id) {
                // A change file may delete a node because only ways still need it. These ways store the location of the
                // node.
                return location_of_reference(*new, given);
            }
            let node = self.known.get(&id).copied().flatten();
            location_of_reference(node, self.stored.get(id).or(given))
        });
    }
}
