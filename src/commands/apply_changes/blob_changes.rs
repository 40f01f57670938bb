//! The effect of changes on the objects of a blob.

use super::change_counts::ChangeCounts;
use super::change_merge::{ChangeMerge, MergedObject};
use super::locations::LocationUpdates;
use super::omitted::OmittedNodes;
use crate::error::FormatResult;
use crate::formats::{Change, ChangeSet};
use crate::index::IdSet;
use crate::osm::{ObjectKind, TypeThenId, id_from_rank};
use crate::pbf::{BlobEntry, BlobFlags, Block, EditScript, MovedWays, Object, ObjectBody};

/// The effect of changes on the objects of a blob, or between two blobs.
pub(super) struct BlobChanges<'c> {
    locations: Option<&'c LocationUpdates>,
    /// The edit script of the block. Its insert steps refer to `inserted`.
    pub script: EditScript,
    /// The changes whose objects are inserted.
    inserted: Vec<&'c Change>,
    /// The ways that the script drops, as ascending indices among the ways of the block.
    pub dropped_ways: Vec<usize>,
    /// The other ways of the block whose nodes have moved.
    pub moved: MovedWays,
    pub counts: ChangeCounts,
}

impl<'c> BlobChanges<'c> {
    /// Merges changes with the objects of a block. `locations` are the locations of nodes if the coordinates in ways
    /// are kept up to date. The caller has to find the moved ways. Fails if the objects are out of order or an object
    /// occurs twice.
    pub(super) fn of_block(
        entry: &BlobEntry,
        block: &Block<'_>,
        changes: &'c [Change],
        locations: Option<&'c LocationUpdates>,
    ) -> FormatResult<Self> {
        let mut merged = Self::new(locations);
        let leaving = merged
            .omitted_nodes()
            .and_then(|omitted| omitted.leaving_in(entry));
        let is_in_order = entry.flags.has(BlobFlags::UNIQUE_IDS);
        if changes.is_empty() && leaving.is_none() && is_in_order {
            merged.script.keep_many(entry.count as usize);
            return Ok(merged);
        }
        let (mut merge, mut ways) = (ChangeMerge::new(block, changes), 0);
        while let Some(object) = merge.next()? {
            let (key, is_kept) = match object {
                MergedObject::Absent(change) => {
                    merged.create(change);
                    continue;
                }
                MergedObject::Unchanged(key) => (key, merged.keep(key, leaving)),
                MergedObject::Outdated(change) => {
                    merged.count_outdated(change);
                    (change.key, merged.keep(change.key, leaving))
                }
                MergedObject::Replaced(change) => {
                    merged.replace(change);
                    (change.key, false)
                }
            };
            if key.0 == ObjectKind::Way {
                if !is_kept {
                    merged.dropped_ways.push(ways);
                }
                ways += 1;
            }
        }
        Ok(merged)
    }

    /// Returns the effect of changes of objects that lie between two blobs of the base.
    pub(super) fn between_blobs(
        changes: &'c [Change],
        locations: Option<&'c LocationUpdates>,
    ) -> Self {
        let mut merged = Self::new(locations);
        changes.iter().for_each(|change| merged.create(change));
        merged
    }

    fn new(locations: Option<&'c LocationUpdates>) -> Self {
        Self {
            locations,
            script: EditScript::default(),
            inserted: Vec::new(),
            dropped_ways: Vec::new(),
            moved: MovedWays::default(),
            counts: ChangeCounts::default(),
        }
    }

    fn omitted_nodes(&self) -> Option<&'c OmittedNodes> {
        self.locations?.omitted.as_ref()
    }

    /// Whether the blob stays as it is.
    pub(super) fn is_unchanged(&self) -> bool {
        self.script.is_unchanged() && self.moved.is_empty() && self.counts.locations_dropped == 0
    }

    /// Returns the inserted objects. Counts the node references without a location in the ways among them.
    pub(super) fn new_objects<'s>(&mut self, set: &'s ChangeSet) -> Vec<Object<'s>> {
        let objects = self.inserted.iter().map(|change| set.object(change));
        let objects: Vec<Object<'s>> = objects.collect();
        for object in &objects {
            if let ObjectBody::Way { locations, .. } = &object.body {
                let missing = locations.iter().filter(|location| location.is_none());
                self.counts.locations.add_way(missing.count() as u64);
            }
        }
        objects
    }

    /// Sets the ways whose nodes have moved.
    pub(super) fn set_moved(&mut self, moved: MovedWays) {
        let counts = &mut self.counts.locations;
        counts.ways_moved = moved.count;
        counts.missing_references = moved.lost;
        counts.incomplete_ways = moved.incomplete;
        self.moved = moved;
    }

    /// Keeps the next object of the block, or removes it if it is one of the `leaving` nodes. Returns whether the
    /// object is kept.
    fn keep(&mut self, (kind, rank): TypeThenId, leaving: Option<&IdSet>) -> bool {
        let contains = |leaving: &IdSet| leaving.contains(id_from_rank(rank));
        if kind == ObjectKind::Node && leaving.is_some_and(contains) {
            self.counts.locations.nodes_removed += 1;
            self.script.remove();
            return false;
        }
        self.script.keep();
        true
    }

    /// Counts a change that has no effect, because it is older than its object.
    fn count_outdated(&mut self, change: &Change) {
        self.counts.outdated += 1;
        if change.key.0 == ObjectKind::Node && self.locations.is_some() {
            self.counts.outdated_nodes.push(change.id());
        }
    }

    /// Removes the next object of the block, and inserts its new version unless the change is a deletion or the object
    /// is left out.
    fn replace(&mut self, change: &'c Change) {
        self.script.remove();
        if change.is_deletion() {
            self.counts.deleted += 1;
        } else if self.insert(change) {
            self.counts.modified += 1;
        }
    }

    /// Inserts the object of a change that the base does not have, unless the change is a deletion or the object is
    /// left out.
    fn create(&mut self, change: &'c Change) {
        if change.is_deletion() {
            self.counts.absent += 1;
        } else if self.insert(change) {
            self.counts.created += 1;
        }
    }

    /// Inserts the object of a change, and returns `true`. Returns `false` if the output leaves out the object.
    fn insert(&mut self, change: &'c Change) -> bool {
        if let Some(omitted) = self.omitted_nodes() {
            if omitted.drops(change) {
                self.counts.locations.nodes_left_out += 1;
                return false;
            }
            self.counts.locations.nodes_kept += u64::from(omitted.is_extra(change));
        }
        self.script.insert(self.inserted.len());
        self.inserted.push(change);
        true
    }
}
