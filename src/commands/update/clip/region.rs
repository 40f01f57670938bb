//! The region of an updated extract.

use crate::formats::{Change, ChangeSet};
use crate::geometry::{AreaIndex, LocationTest, Shape};
use crate::index::IdSet;
use crate::pbf::BlobEntry;

/// The region to which changes are cut. A location belongs to the region by the same rules as in `extract`.
pub(super) struct ClipRegion(AreaIndex);

impl ClipRegion {
    pub(super) fn new(shape: &Shape) -> Self {
        Self(AreaIndex::new(std::slice::from_ref(shape)))
    }

    /// Whether a node of a blob may lie in the region, according to the box of the blob.
    pub(super) fn may_have_node_of(&self, entry: &BlobEntry) -> bool {
        entry.bbox.is_empty() || self.0.meets(&entry.bbox)
    }

    /// Returns the nodes that lie in the region according to the changes. If the changes have several versions of a
    /// node, one version in the region is enough.
    pub(super) fn changed_nodes_inside(&self, changes: &ChangeSet) -> IdSet {
        let (mut test, changes) = (self.location_test(), changes.changes().iter());
        let is_inside = |change: &&Change| change.location().is_some_and(|at| test.has(at));
        changes
            .filter(is_inside)
            .map(|change| change.id())
            .collect()
    }

    /// Returns a test for single locations. Each thread needs a test of its own.
    pub(super) fn location_test(&self) -> LocationTest<'_> {
        LocationTest::new(&self.0)
    }
}
