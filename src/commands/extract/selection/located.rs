//! Looks up the sets of regions that contain a location.

use crate::engine::location_form::LocationForm;
use crate::error::{FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlannedFile};
use crate::geometry::{AreaIndex, Locator};
use crate::index::{EMPTY_SET, SetAlgebra, SetNumber, SetTable};
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, BlobFlags, Block, feature};
use rustc_hash::FxHashMap;

/// Finds the set of regions that contain a location. Fast if consecutive locations are near each other.
pub(in crate::commands) struct RegionLookup<'s> {
    sets: &'s SetTable,
    areas: &'s AreaIndex,
    locator: Locator<'s>,
    /// A buffer for the regions that contain the location but do not cover its whole cell.
    partial: Vec<u32>,
    /// The last result. The first field is the index, in [`AreaIndex::sets`], of the set of regions that cover the
    /// whole cell of the location. The second lists the other regions that contain the location. The third is the union
    /// of both.
    last: (u32, Vec<u32>, SetNumber),
}

impl<'s> RegionLookup<'s> {
    pub(in crate::commands) fn new(areas: &'s AreaIndex, sets: &'s SetTable) -> Self {
        Self {
            sets,
            areas,
            locator: areas.locator(),
            partial: Vec::new(),
            last: (0, Vec::new(), EMPTY_SET),
        }
    }

    #[inline]
    pub(in crate::commands) fn regions_at(&mut self, location: Location) -> SetNumber {
        let (lat_e7, lon_e7) = (location.lat_e7(), location.lon_e7());
        if self.locator.is_in_last_leaf(lat_e7, lon_e7) {
            return self.last.2;
        }
        let around = self.locator.at(lat_e7, lon_e7, &mut self.partial);
        // Tests for empty lists first. Both lists are mostly empty, and a call of memcmp would take longer than the
        // rest of the function.
        let both_empty = self.partial.is_empty() && self.last.1.is_empty();
        if around != self.last.0 || !(both_empty || self.partial == self.last.1) {
            let whole = &self.areas.sets()[around as usize];
            let regions = whole.iter().chain(&self.partial);
            self.last.2 = self.sets.of(regions.copied());
            self.last.0 = around;
            self.last.1.clone_from(&self.partial);
        }
        self.last.2
    }
}

/// Returns the form of a file with regard to the locations of its ways. If the entry of a blob does not tell whether
/// its ways store locations, they are assumed to store some. A file without any node does not have all nodes, whatever
/// its header says. In a history file, locations in ways do not count.
pub(in crate::commands) fn usable_location_form(file: &PbfFile, plan: &BlobPlan) -> LocationForm {
    if file.header.has(feature::HISTORY) || plan.has_entry_with_flag(BlobFlags::DELETED) {
        return LocationForm::Plain;
    }
    if !plan.entries.iter().any(BlobEntry::may_have_locations) {
        return LocationForm::Plain;
    }
    match LocationForm::of_header(&file.header, true) {
        LocationForm::AllNodes if !plan.kinds().contains(ObjectKind::Node) => LocationForm::Mixed,
        form => form,
    }
}

/// The number of objects in each set of regions.
type SetCounts = FxHashMap<SetNumber, u64>;

/// Some blobs of a file, whose objects in each region are counted.
pub(in crate::commands::extract) struct Sample<'a> {
    pub areas: &'a AreaIndex,
    /// The offsets of the blobs, in ascending order.
    pub offsets: &'a [u64],
    pub source: PlannedFile<'a>,
}

impl Sample<'_> {
    /// Counts the objects of a kind in each region: nodes, or ways that store a location in the region. Calls `take`
    /// with the index of a region and a count, possibly several times per region.
    pub(in crate::commands::extract) fn count(
        &self,
        kind: ObjectKind,
        mut take: impl FnMut(u32, u64),
    ) -> Result<()> {
        let sets = SetTable::default();
        self.source.scan("estimate").run(
            |entry| self.offsets.binary_search(&entry.offset).is_ok(),
            |_, block| match kind {
                ObjectKind::Node => count_nodes(self.areas, &sets, block),
                ObjectKind::Way => count_ways(self.areas, &sets, block),
                ObjectKind::Relation => Ok(SetCounts::default()),
            },
            |counts| {
                for (set, count) in counts {
                    let regions = sets.members(set).into_iter();
                    regions.for_each(|region| take(region, count));
                }
            },
        )
    }
}

/// Counts the nodes of a block.
fn count_nodes(areas: &AreaIndex, sets: &SetTable, block: &Block<'_>) -> FormatResult<SetCounts> {
    let mut lookup = RegionLookup::new(areas, sets);
    let mut counts = SetCounts::default();
    block.for_each_location(|_, location| {
        if let Some(location) = location {
            *counts.entry(lookup.regions_at(location)).or_default() += 1;
        }
    })?;
    Ok(counts)
}

/// Counts the ways of a block, each in the regions that contain a location which the way stores.
fn count_ways(areas: &AreaIndex, sets: &SetTable, block: &Block<'_>) -> FormatResult<SetCounts> {
    let (mut lookup, mut algebra) = (RegionLookup::new(areas, sets), SetAlgebra::new(sets));
    let mut counts = SetCounts::default();
    block.for_each_wanted_way(
        |_| true,
        |_, _, locations| {
            let mut set = EMPTY_SET;
            for location in locations.unwrap_or_default().iter().flatten() {
                if location.is_on_earth() {
                    set = algebra.union(set, lookup.regions_at(*location));
                }
            }
            *counts.entry(set).or_default() += 1;
        },
    )?;
    Ok(counts)
}
