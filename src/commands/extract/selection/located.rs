//! Looks up the sets of regions that contain a location.

use crate::engine::scan::Scan;
use crate::error::Result;
use crate::file::{BlobPlan, PbfFile};
use crate::geometry::{AreaIndex, Locator};
use crate::index::{EMPTY_SET, SetNumber, SetTable};
use crate::osm::Location;
use crate::runtime::Context;
use rustc_hash::FxHashMap;

/// Finds the set of regions that contain a location. Fast if consecutive locations are near each other.
pub(super) struct RegionLookup<'s> {
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
    pub(super) fn new(areas: &'s AreaIndex, sets: &'s SetTable) -> Self {
        Self {
            sets,
            areas,
            locator: areas.locator(),
            partial: Vec::new(),
            last: (0, Vec::new(), EMPTY_SET),
        }
    }

    #[inline]
    pub(super) fn regions_at(&mut self, location: Location) -> SetNumber {
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

/// Counts the nodes in each region, in the blobs at `offsets`, which must ascend. Calls `take` with the index of a
/// region and a count, possibly several times per region.
pub(in crate::commands::extract) fn count_nodes(
    areas: &AreaIndex,
    offsets: &[u64],
    file: &PbfFile,
    plan: &BlobPlan,
    ctx: &Context,
    mut take: impl FnMut(u32, u64),
) -> Result<()> {
    let sets = SetTable::default();
    Scan::bare("estimate", file, plan, ctx).run(
        |entry| offsets.binary_search(&entry.offset).is_ok(),
        |_, block| {
            let mut located = RegionLookup::new(areas, &sets);
            let mut counts: FxHashMap<SetNumber, u64> = FxHashMap::default();
            block.for_each_location(|_, location| {
                if let Some(location) = location {
                    *counts.entry(located.regions_at(location)).or_default() += 1;
                }
            })?;
            Ok(counts)
        },
        |counts| {
            for (set, count) in counts {
                let regions = sets.members(set).into_iter();
                regions.for_each(|region| take(region, count));
            }
        },
    )
}
