//! Counts the effects of changes.

use super::locations_summary::LocationsSummary;

/// The number of changes with each effect. The first five fields are explained in [`Summary`](super::Summary).
#[derive(Debug, Clone, Default)]
pub(super) struct ChangeCounts {
    pub created: u64,
    pub modified: u64,
    pub deleted: u64,
    pub outdated: u64,
    pub absent: u64,
    /// The number of ways whose coordinates were removed.
    pub locations_dropped: u64,
    /// The effect on the coordinates in ways and on nodes that only ways need. [`LocationsSummary::members_missing`] is
    /// not counted here.
    pub locations: LocationsSummary,
    /// The ids of nodes whose changes are older than the base. Empty unless the coordinates in ways are kept up to
    /// date.
    pub outdated_nodes: Vec<i64>,
}

impl ChangeCounts {
    pub(super) fn add(&mut self, other: Self) {
        self.created += other.created;
        self.modified += other.modified;
        self.deleted += other.deleted;
        self.outdated += other.outdated;
        self.absent += other.absent;
        self.locations_dropped += other.locations_dropped;
        self.locations.add(&other.locations);
        self.outdated_nodes.extend(other.outdated_nodes);
    }
}
