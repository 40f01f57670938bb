//! The nodes that the output leaves out. If the base lacks the nodes that only ways need, the output leaves out such
//! nodes, too.

use super::locations_summary::LocationsSummary;
use super::recent_nodes::RecentNodes;
use crate::error::{FormatResult, Result};
use crate::file::PlannedFile;
use crate::formats::{Change, ChangeSet};
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, Block};

/// The nodes to leave out. Such a node has no tags, is a member of no relation, and is not recent. All ways that refer
/// to the node store its location. If the node was already too old at the time in the base's header, it is left out
/// only if the changes replace an object that needed it.
#[derive(Debug)]
pub(super) struct OmittedNodes {
    /// The nodes that are members of relations after the changes.
    pub members: IdSet,
    /// The nodes of the base that are removed, unless a change replaces them.
    pub leaving: IdSet,
    /// The nodes whose location a way of the base needs, but does not store. Ways that the changes replace do not
    /// count.
    pub needed_by_ways: IdSet,
    /// The rule for recent nodes.
    pub recent: RecentNodes,
    /// The number of nodes that become members of relations, but are neither in the base nor in the changes.
    pub lost: u64,
}

impl OmittedNodes {
    /// Whether the output contains the object of a change. The change must not be a deletion. A node without tags that
    /// is a member of no relation is counted in `counts`.
    pub(super) fn keeps(&self, change: &Change, counts: &mut LocationsSummary) -> bool {
        let is_extra = change.key.0 == ObjectKind::Node
            && !ChangeSet::has_tags(change)
            && !self.members.contains(change.id());
        // A file stores a missing timestamp as 0.
        let timestamp = change.timestamp.filter(|time| *time != 0);
        let is_kept = !is_extra
            || self.recent.is_recent(timestamp)
            || self.needed_by_ways.contains(change.id());
        counts.nodes_left_out += u64::from(!is_kept);
        counts.nodes_kept += u64::from(is_extra && is_kept);
        is_kept
    }

    /// Returns the nodes in `leaving` if a blob may contain some of them; `None` otherwise.
    pub(super) fn leaving_nodes_for_blob(&self, entry: &BlobEntry) -> Option<&IdSet> {
        let may_have = self.leaving.may_meet_blob(entry, ObjectKind::Node);
        may_have.then_some(&self.leaving)
    }
}

/// The rule that says which nodes of a base are removed. It concerns only untagged nodes that are members of no
/// relation after the changes.
pub(super) struct LeavingRule<'r> {
    /// The nodes that are members of relations after the changes.
    pub members: &'r IdSet,
    /// The nodes that relations or ways needed before the changes. They are removed unless they are recent.
    pub no_longer_needed: &'r IdSet,
    /// The rule for the age of nodes. A node outside of `no_longer_needed` is removed if it has become too old since
    /// the time in the base's header.
    pub recent: RecentNodes,
}

impl LeavingRule<'_> {
    /// Whether a blob may contain a node that has to be removed.
    fn may_have(&self, entry: &BlobEntry) -> bool {
        let is_needed_no_longer = || self.no_longer_needed.may_meet_blob(entry, ObjectKind::Node);
        entry.kinds.contains(ObjectKind::Node) && self.recent.may_have_old_nodes(entry)
            || is_needed_no_longer()
    }

    /// Whether the node with this id is removed if it is old enough and has no tags.
    fn may_remove(&self, id: i64) -> bool {
        let is_examined =
            self.recent.may_have_aged_base_nodes() || self.no_longer_needed.contains(id);
        is_examined && !self.members.contains(id)
    }

    /// Whether a node without tags is removed. [`may_remove`](Self::may_remove) must have accepted the node.
    fn removes(&self, id: i64, timestamp: Option<i64>) -> bool {
        self.recent.has_become_old(timestamp)
            || self.no_longer_needed.contains(id) && !self.recent.is_recent(timestamp)
    }

    /// Returns the ids of the nodes of a block that are removed, and for each node whether it has a location.
    fn leaving_nodes_of_block(&self, block: &Block<'_>) -> FormatResult<Vec<(i64, bool)>> {
        let mut candidates = Vec::new();
        block.for_each_node(|id, location, has_tags| {
            if !has_tags && self.may_remove(id) {
                candidates.push((id, location.is_some_and(Location::is_on_earth)));
            }
        })?;
        let mut leaving = Vec::new();
        let mut candidates = candidates.into_iter().peekable();
        let mut objects = block.walk();
        while let Some((id, is_located)) = candidates.peek().copied()
            && let Some(kind) = objects.next()?
        {
            if kind != ObjectKind::Node || objects.id()? != id {
                continue;
            }
            candidates.next();
            let info = objects.version_info()?;
            let seconds = block.units.seconds(info.timestamp);
            if self.removes(id, (info.timestamp != 0).then_some(seconds)) {
                leaving.push((id, is_located));
            }
        }
        Ok(leaving)
    }
}

/// The nodes of a base that are removed unless a way needs them.
#[derive(Debug, Default)]
pub(super) struct LeavingNodes {
    pub all: IdSet,
    /// The nodes in `all` that have a location.
    pub located: IdSet,
}

impl LeavingNodes {
    /// Finds the nodes in those blobs of the base that may contain some of them.
    pub(super) fn find(source: PlannedFile<'_>, rule: &LeavingRule<'_>) -> Result<Self> {
        let mut leaving = Self::default();
        if !rule.recent.may_have_aged_base_nodes() && rule.no_longer_needed.is_empty() {
            return Ok(leaving);
        }
        source.scan("old nodes").run(
            |entry| rule.may_have(entry),
            |_, block| rule.leaving_nodes_of_block(block),
            |found| {
                for (id, is_located) in found {
                    leaving.all.insert(id);
                    if is_located {
                        leaving.located.insert(id);
                    }
                }
            },
        )?;
        Ok(leaving)
    }

    /// Returns the nodes without those in `needed_by_ways`.
    pub(super) fn except_needed(&self, needed_by_ways: &IdSet) -> IdSet {
        let stays = |id: &i64| !needed_by_ways.contains(*id);
        self.all.ids().filter(stays).collect()
    }
}
