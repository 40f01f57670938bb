//! Facts about the rows of a file, for its GeoParquet metadata.

use super::geometry_type::GeometryType;
use crate::geometry::Extent;
use std::collections::BTreeSet;

/// Facts about the rows of a file, or of a part of one.
#[derive(Debug, Default)]
pub(crate) struct TableFacts {
    pub(super) extent: Option<Extent>,
    pub(super) types: BTreeSet<GeometryType>,
}

impl TableFacts {
    /// Adds facts about further rows.
    pub(crate) fn add(&mut self, other: &Self) {
        self.types.extend(&other.types);
        self.extent = match (self.extent, other.extent) {
            (Some(one), Some(other)) => Some(one.and(&other)),
            (one, other) => one.or(other),
        };
    }
}
