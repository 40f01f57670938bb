//! Counts the effects of changes.

use crate::pbf::{Object, ObjectBody};

/// The number of changes with each effect. The first five fields are explained in [`Summary`](super::Summary).
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub created: u64,
    pub modified: u64,
    pub deleted: u64,
    pub outdated: u64,
    pub absent: u64,
    /// The number of ways whose coordinates were removed.
    pub locations_dropped: u64,
    /// The number of ways without a change of their own that got new coordinates because their nodes moved.
    pub ways_moved: u64,
    /// The number of references to nodes without a location. In a changed way, a reference counts if the location of
    /// the node is unknown. In any other way, a reference counts if the node lost its location.
    pub missing_references: u64,
    /// The number of ways with at least one of these references.
    pub incomplete_ways: u64,
    /// The number of changed nodes that the output leaves out.
    pub left_out: u64,
    /// The number of changed nodes without tags and relations that stay, because they are recent or because a way needs
    /// them.
    pub kept: u64,
    /// The number of nodes of the base that the output leaves out.
    pub removed: u64,
    /// The ids of nodes whose changes are older than the base. Empty unless the coordinates in ways are kept up to
    /// date.
    pub outdated_nodes: Vec<i64>,
    /// The number of blobs of the base that were joined with neighbours.
    pub blobs_joined: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.created += other.created;
        self.modified += other.modified;
        self.deleted += other.deleted;
        self.outdated += other.outdated;
        self.absent += other.absent;
        self.locations_dropped += other.locations_dropped;
        self.ways_moved += other.ways_moved;
        self.missing_references += other.missing_references;
        self.incomplete_ways += other.incomplete_ways;
        self.left_out += other.left_out;
        self.kept += other.kept;
        self.removed += other.removed;
        self.outdated_nodes.extend(other.outdated_nodes);
        self.blobs_joined += other.blobs_joined;
    }

    /// Counts the node references without a location in the ways among new objects.
    pub(super) fn add_missing(&mut self, objects: &[Object<'_>]) {
        for object in objects {
            if let ObjectBody::Way { locations, .. } = &object.body {
                let missing = locations.iter().filter(|location| location.is_none());
                let missing = missing.count() as u64;
                self.missing_references += missing;
                self.incomplete_ways += u64::from(missing > 0);
            }
        }
    }
}
