//! Tests whether locations lie in a region.

use super::area_index::{AreaIndex, Locator};
use crate::osm::Location;

/// A test of whether locations lie in a region of an index. It is fast if consecutive locations are near each other.
/// Each thread needs a test of its own.
pub(crate) struct LocationTest<'r> {
    locator: Locator<'r>,
    /// A buffer for the regions that contain a location but do not cover its whole cell.
    partial: Vec<u32>,
}

impl<'r> LocationTest<'r> {
    /// Creates a test for the regions of an index.
    pub(crate) fn new(index: &'r AreaIndex) -> Self {
        Self {
            locator: index.locator(),
            partial: Vec::new(),
        }
    }

    /// Whether any region contains the location.
    pub(crate) fn has(&mut self, location: Location) -> bool {
        let (lat_e7, lon_e7) = (location.lat_e7(), location.lon_e7());
        // The set with index 0 is empty. Any other index means that a region covers the whole cell.
        let covering = self.locator.at(lat_e7, lon_e7, &mut self.partial);
        covering != 0 || !self.partial.is_empty()
    }
}
