//! Reads the changed nodes of the base.

use super::Base;
use super::blobs::{for_each_node, ids_of_changed_objects};
use super::geometry::NodeState;
use super::history::{Replaces, Status};
use super::kept::{KeptObjects, KeptRows};
use crate::engine::block_observer::{BlockObserver, CandidateRefs};
use crate::error::{Error, FormatResult, Result};
use crate::formats::ChangeSet;
use crate::index::{IdSet, SortedIds};
use crate::osm::{ObjectKind, id_rank};
use crate::pbf::{BlobEntry, Block, Object, ObjectBody};
use crate::runtime::{into_mutex_value, lock};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;
use std::sync::Mutex;

/// The search for the nodes of the base that have a change.
pub(crate) struct ChangedNodes {
    ids: IdSet,
    sorted_ids: SortedIds,
    replaces: Replaces,
    tally: Mutex<NodeTally>,
}

/// The changed nodes that were found so far.
pub(super) struct NodeTally {
    /// The states in the base.
    pub states: FxHashMap<i64, NodeState>,
    /// The index and the status of each change.
    pub status: Vec<(usize, Status)>,
    pub kept: KeptObjects,
    /// The numbers of the blobs that were searched.
    seen: FxHashSet<u64>,
    /// The first error that [`observe`](ChangedNodes::observe) could not return.
    failed: Option<Error>,
}

/// The changed nodes of a blob.
#[derive(Default)]
struct FoundNodes {
    states: Vec<(i64, NodeState)>,
    status: Vec<(usize, Status)>,
    kept: KeptRows,
}

impl NodeTally {
    fn add(&mut self, entry: &BlobEntry, found: FoundNodes) -> Result<()> {
        self.seen.insert(entry.number.into());
        self.states.extend(found.states);
        self.status.extend(found.status);
        self.kept.add(found.kept)
    }
}

impl ChangedNodes {
    /// Begins a search that has not seen any blob. Temporary files will be in the directory `scratch`.
    pub(super) fn new(changes: &ChangeSet, replaces: Replaces, scratch: &Path) -> Self {
        let ids = ids_of_changed_objects(changes, ObjectKind::Node);
        Self {
            sorted_ids: ids.ids().collect(),
            ids,
            replaces,
            tally: Mutex::new(NodeTally {
                states: FxHashMap::default(),
                status: Vec::new(),
                kept: KeptObjects::new(scratch),
                seen: FxHashSet::default(),
                failed: None,
            }),
        }
    }

    /// Returns the changed nodes of a block.
    fn find_in_block(&self, changes: &ChangeSet, block: &Block<'_>) -> FormatResult<FoundNodes> {
        let mut found = FoundNodes::default();
        for_each_node(block, &self.sorted_ids, |node: &Object<'_>| {
            if let ObjectBody::Node { location } = &node.body {
                let version = node.info.version.unwrap_or(0);
                let location = location.filter(|location| location.is_on_earth());
                found
                    .states
                    .push((node.id, NodeState { version, location }));
                let key = (ObjectKind::Node, id_rank(node.id));
                for index in changes.range(key, key) {
                    let change = &changes.changes()[index];
                    let status = self.replaces.status(change, &node.info);
                    found.status.push((index, status));
                }
                found.kept.push(node);
            }
        })?;
        Ok(found)
    }

    /// Reads the blobs that were not shown to [`observe`](Self::observe), and returns all changed nodes.
    pub(super) fn finish(self, base: &Base<'_>, changes: &ChangeSet) -> Result<NodeTally> {
        let mut tally = lock(&self.tally);
        tally.failed.take().map_or(Ok(()), Err)?;
        tally.kept.set_in_order(true);
        let seen = tally.seen.clone();
        base.source.scan("changed nodes").with_strings().try_run(
            |entry| {
                self.ids.may_meet_blob(entry, ObjectKind::Node)
                    && !seen.contains(&entry.number.into())
            },
            |entry, block| Ok((*entry, self.find_in_block(changes, block)?)),
            |(entry, found)| tally.add(&entry, found),
        )?;
        drop(tally);
        Ok(into_mutex_value(self.tally))
    }
}

/// Finds changed nodes in blobs that another command has decoded.
impl BlockObserver for ChangedNodes {
    fn observe(
        &self,
        changes: &ChangeSet,
        entry: &BlobEntry,
        block: &Block<'_>,
        _: Option<CandidateRefs<'_>>,
    ) -> FormatResult<()> {
        if !self.ids.may_meet_blob(entry, ObjectKind::Node) {
            return Ok(());
        }
        let found = self.find_in_block(changes, block)?;
        let mut tally = lock(&self.tally);
        tally.kept.set_in_order(false);
        if let Err(error) = tally.add(entry, found) {
            tally.failed.get_or_insert(error);
        }
        Ok(())
    }
}
