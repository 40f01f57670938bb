//! The nodes that the output leaves out if the base contains only the nodes that are needed as nodes.

use super::members::Members;
use super::recent_nodes::RecentNodes;
use crate::engine::scan::Scan;
use crate::error::{FormatError, Result};
use crate::file::{BlobPlan, PbfFile};
use crate::formats::{Change, ChangeSet};
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, Block};
use crate::runtime::Context;

/// The nodes to leave out: those that have no tags, are members of no relation, are not recent, and whose locations are
/// in all ways that refer to them.
#[derive(Debug)]
pub(super) struct OmittedNodes {
    /// The nodes that are members of relations after the changes.
    pub members: IdSet,
    /// The nodes of the base that have to go, unless a change replaces them.
    pub leaving: IdSet,
    /// The nodes that a way of the base needs, because it does not have their locations.
    pub needed_by_ways: IdSet,
    /// The rule for recent nodes.
    pub recent: RecentNodes,
    /// The number of nodes that become members of relations, but are neither in the base nor in the changes.
    pub lost: u64,
}

impl OmittedNodes {
    /// Whether a change gives a node no tags, and the node is a member of no relation. Returns `false` for deletions.
    pub(super) fn is_extra(&self, change: &Change) -> bool {
        change.key.0 == ObjectKind::Node
            && !change.is_deletion()
            && !ChangeSet::has_tags(change)
            && !self.members.contains(change.id)
    }

    /// Whether the node of a change is left out.
    pub(super) fn drops(&self, change: &Change) -> bool {
        // A file stores a missing timestamp as 0.
        let timestamp = change.timestamp.filter(|time| *time != 0);
        self.is_extra(change)
            && !self.recent.is_recent(timestamp)
            && !self.needed_by_ways.contains(change.id)
    }

    /// Whether a blob contains nodes that have to go.
    pub(super) fn may_omit(&self, entry: &BlobEntry) -> bool {
        entry.kinds.contains(ObjectKind::Node)
            && !self.leaving.is_empty()
            && (entry.kinds.single().is_none() || self.leaving.may_meet(entry.min_id, entry.max_id))
    }
}

/// The nodes of a base that have no tags, are members of no relation after the changes, and are not recent.
#[derive(Debug, Default)]
pub(super) struct LeavingNodes {
    pub all: IdSet,
    /// The nodes among them that have a location.
    pub located: IdSet,
}

impl LeavingNodes {
    /// Reads the nodes that are no longer members of a relation. Reads all nodes of the base if some of them may have
    /// become too old.
    pub(super) fn find(
        file: &PbfFile,
        plan: &BlobPlan,
        members: &Members,
        recent: RecentNodes,
        ctx: &Context,
    ) -> Result<Self> {
        let mut leaving = Self::default();
        let (examines_all, no_longer) = (recent.examines_base(), &members.no_longer_needed);
        if !examines_all && no_longer.is_empty() {
            return Ok(leaving);
        }
        let may_have = |entry: &BlobEntry| {
            entry.kinds.contains(ObjectKind::Node)
                && (examines_all
                    || entry.kinds.single().is_none()
                    || no_longer.may_meet(entry.min_id, entry.max_id))
        };
        let may_leave = |id: i64| {
            if examines_all {
                !members.now.contains(id)
            } else {
                no_longer.contains(id)
            }
        };
        Scan::bare("old nodes", file, plan, ctx).run(
            may_have,
            |_, block| {
                let mut candidates = Vec::new();
                block.for_each_node(|id, location, has_tags| {
                    if !has_tags && may_leave(id) {
                        candidates.push((id, location.is_some_and(Location::is_on_earth)));
                    }
                })?;
                old_among(block, candidates, recent)
            },
            |old| {
                for (id, is_located) in old {
                    leaving.all.insert(id);
                    if is_located {
                        leaving.located.insert(id);
                    }
                }
            },
        )?;
        Ok(leaving)
    }
}

/// Returns the nodes among `candidates` that are not recent. The candidates must be in the order of the block.
fn old_among(
    block: &Block<'_>,
    candidates: Vec<(i64, bool)>,
    recent: RecentNodes,
) -> Result<Vec<(i64, bool)>, FormatError> {
    let mut old = Vec::new();
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
        if !recent.is_recent((info.timestamp != 0).then_some(seconds)) {
            old.push((id, is_located));
        }
    }
    Ok(old)
}
