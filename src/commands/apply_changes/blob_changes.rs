//! The effect of changes on the objects of a blob.

use super::change_counts::ChangeCounts;
use super::change_merge::{MergedObject, merge_changes};
use super::locations::LocationUpdates;
use crate::error::FormatResult;
use crate::formats::ChangeSet;
use crate::osm::{ObjectKind, id_from_rank};
use crate::pbf::{BlobEntry, BlobFlags, Block, EditScript, MovedWays, Object};
use std::ops::Range;

/// The effect of changes on the objects of a block.
#[derive(Default)]
pub(super) struct BlobChanges<'c> {
    /// The edit script of the block. Its insert steps refer to `inserted`.
    pub script: EditScript,
    /// The objects that are inserted.
    pub inserted: Vec<Object<'c>>,
    /// The ways that the script drops, as ascending indices among the ways of the block.
    pub dropped_ways: Vec<usize>,
    /// The ways of the block with moved nodes, except the ways that the script drops.
    pub moved: MovedWays,
    pub counts: ChangeCounts,
}

impl<'c> BlobChanges<'c> {
    /// Merges the changes in a range of `set` with the objects of a block. `locations` is `Some` if the coordinates in
    /// ways are kept up to date. The caller has to set `moved`. Fails if the objects are out of order or an object
    /// occurs twice.
    pub(super) fn of_block(
        entry: &BlobEntry,
        block: &Block<'_>,
        set: &'c ChangeSet,
        range: &Range<usize>,
        locations: Option<&LocationUpdates>,
    ) -> FormatResult<Self> {
        let mut merged = Self::default();
        let omitted = locations.and_then(|locations| locations.omitted.as_ref());
        let leaving = omitted.and_then(|omitted| omitted.leaving_nodes_for_blob(entry));
        if range.is_empty() && leaving.is_none() && entry.flags.has(BlobFlags::UNIQUE_IDS) {
            merged.script.keep_many(entry.count as usize);
            return Ok(merged);
        }
        let (script, counts, mut ways) = (&mut merged.script, &mut merged.counts, 0);
        merge_changes(block, &set.changes()[range.clone()], true, |object| {
            let (change, deleted, written) = match object {
                MergedObject::Kept((kind, rank), outdated) => {
                    ways += usize::from(kind == ObjectKind::Way);
                    let is_node = kind == ObjectKind::Node;
                    if let Some(change) = outdated {
                        counts.outdated += 1;
                        if is_node && locations.is_some() {
                            counts.outdated_nodes.push(change.id());
                        }
                    }
                    if is_node && leaving.is_some_and(|ids| ids.contains(id_from_rank(rank))) {
                        counts.locations.nodes_removed += 1;
                        script.remove();
                    } else {
                        script.keep();
                    }
                    return;
                }
                MergedObject::Replaced(change) => {
                    if change.key.0 == ObjectKind::Way {
                        merged.dropped_ways.push(ways);
                        ways += 1;
                    }
                    script.remove();
                    (change, &mut counts.deleted, &mut counts.modified)
                }
                MergedObject::Absent(change) => (change, &mut counts.absent, &mut counts.created),
            };
            if change.is_deletion() {
                *deleted += 1;
            } else if omitted.is_none_or(|omitted| omitted.keeps(change, &mut counts.locations)) {
                *written += 1;
                script.insert(merged.inserted.len());
                merged.inserted.push(set.object(change));
            }
        })?;
        let locations = &mut merged.counts.locations;
        (merged.inserted.iter()).for_each(|object| locations.count_inserted_object(object));
        Ok(merged)
    }

    /// Whether the blob stays as it is.
    pub(super) fn is_unchanged(&self) -> bool {
        self.script.is_unchanged() && self.moved.is_empty() && self.counts.locations_dropped == 0
    }
}
