//! Selects the changes that are applied to a base.

use crate::error::Result;
use crate::file::PlannedFile;
use crate::formats::ChangeSet;
use crate::osm::Location;

/// A selection of changes that depends on the base to which they are applied.
pub(crate) trait ChangeFilter {
    /// Removes the changes that are not applied to the base. The base is in canonical order. If an augmented diff needs
    /// all versions of changes, the function is called a second time, when only the newest versions are left.
    fn filter(&mut self, base: PlannedFile<'_>, changes: &mut ChangeSet) -> Result<()>;

    /// Whether the bounding box in the header has to contain a changed node at `location`.
    fn widens_box(&self, location: Location) -> bool;
}
