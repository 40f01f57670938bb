//! Finds the nodes that are members of relations, before and after the changes. Also finds the changes that are older
//! than the base.

use super::change_merge::{MergedObject, merge_changes};
use crate::error::{FormatResult, Result};
use crate::file::PlannedFile;
use crate::formats::{Change, ChangeSet};
use crate::index::IdSet;
use crate::osm::ObjectKind;
use crate::pbf::{BlobEntry, Block};
use rustc_hash::FxHashSet;

/// The nodes that are members of relations.
pub(super) struct Members {
    /// The nodes that are members of relations after the changes.
    pub now: IdSet,
    /// The nodes that were members of relations only before the changes.
    pub no_longer_needed: IdSet,
    /// The nodes that are members of relations only after the changes.
    pub new: IdSet,
}

impl Members {
    /// Reads the relations of the base, and merges them with the changes.
    pub(super) fn find(source: PlannedFile<'_>, changes: &ChangeSet) -> Result<Self> {
        let (mut now, mut before) = (IdSet::default(), IdSet::default());
        let mut outdated = FxHashSet::default();
        let of_relation = |entry: &BlobEntry| entry.kinds.contains(ObjectKind::Relation);
        source.scan("members").run(
            of_relation,
            |entry, block| {
                let mut found = Replaced::default();
                found.add_block(entry, block, changes)?;
                Ok(found)
            },
            |found| {
                now.extend(found.kept);
                before.extend(found.gone);
                outdated.extend(found.outdated);
            },
        )?;
        let effective =
            |change: &&Change| !change.is_deletion() && !outdated.contains(&change.id());
        let changed = changes.changes().iter().filter(effective);
        let mut new = IdSet::default();
        for id in changed.flat_map(|change| changes.node_members(change)) {
            if !now.contains(id) && !before.contains(id) {
                new.insert(id);
            }
            now.insert(id);
        }
        let no_longer_needed = before.ids().filter(|id| !now.contains(*id)).collect();
        Ok(Self {
            now,
            no_longer_needed,
            new,
        })
    }
}

/// The nodes that are members of the relations of a block, and the relations whose changes are outdated.
#[derive(Default)]
struct Replaced {
    /// The nodes that are members of relations without an effective change.
    kept: Vec<i64>,
    /// The nodes that are members of relations that changes replace or delete.
    gone: Vec<i64>,
    /// The relations whose changes are older than the base.
    outdated: Vec<i64>,
}

impl Replaced {
    /// Adds the relations of a block.
    fn add_block(
        &mut self,
        entry: &BlobEntry,
        block: &Block<'_>,
        changes: &ChangeSet,
    ) -> FormatResult<()> {
        let mut replaced = FxHashSet::default();
        let outdated = &mut self.outdated;
        for_each_change_in_block(entry, block, changes, |change, is_replaced| {
            match change.key.0 {
                ObjectKind::Relation if is_replaced => drop(replaced.insert(change.id())),
                ObjectKind::Relation => outdated.push(change.id()),
                ObjectKind::Node | ObjectKind::Way => {}
            };
        })?;
        block.for_each_member(|relation, kind, id| {
            if kind == ObjectKind::Node {
                if replaced.contains(&relation) {
                    self.gone.push(id)
                } else {
                    self.kept.push(id)
                }
            }
        })
    }
}

/// Finds nodes whose changes are older than the base. Reads only the blobs that contain nodes and objects of other
/// kinds. Blobs that contain only nodes are written before all ways. Their outdated changes are found at that time.
pub(super) fn outdated_nodes_in_mixed_blobs(
    source: PlannedFile<'_>,
    changes: &ChangeSet,
) -> Result<Vec<i64>> {
    let is_mixed = |entry: &BlobEntry| {
        entry.kinds.contains(ObjectKind::Node) && entry.kinds.single().is_none()
    };
    let mut all = Vec::new();
    source.scan("look up nodes").run(
        is_mixed,
        |entry, block| {
            let mut outdated = Vec::new();
            for_each_change_in_block(entry, block, changes, |change, is_replaced| {
                if change.key.0 == ObjectKind::Node && !is_replaced {
                    outdated.push(change.id());
                }
            })?;
            Ok(outdated)
        },
        |outdated| all.extend(outdated),
    )?;
    Ok(all)
}

/// Calls `visit(change, is_replaced)` for each change whose object is in the block. `is_replaced` tells whether the
/// change replaces or deletes the object. Otherwise the change is older than the object.
fn for_each_change_in_block(
    entry: &BlobEntry,
    block: &Block<'_>,
    changes: &ChangeSet,
    mut visit: impl FnMut(&Change, bool),
) -> FormatResult<()> {
    let (Some(first), Some(last)) = (entry.first_sort_key(), entry.last_sort_key()) else {
        return Ok(());
    };
    let changes = &changes.changes()[changes.range(first, last)];
    merge_changes(block, changes, false, |object| match object {
        MergedObject::Kept(_, Some(change)) => visit(change, false),
        MergedObject::Replaced(change) => visit(change, true),
        MergedObject::Absent(_) | MergedObject::Kept(_, None) => {}
    })
}
