//! Counts points per cell of a grid. The grid becomes coarser when too many cells have points.

use rustc_hash::FxHashMap;
use serde::Serialize;

/// The finest level, with cells of 360 / 2^24 degrees, or 2.4 m along a meridian.
const FINEST_LEVEL: u32 = 24;
/// The maximum number of cells with points.
const MAX_CELLS: usize = 40_000;
/// 360 degrees in units of 1e-7 degree.
const AROUND: u64 = 3_600_000_000;

/// A grid that counts the points of each of `N` classes in each cell. A cell of level `n` has an edge of 360 / 2^n
/// degrees. Column 0 begins at longitude -180, row 0 at latitude -90.
///
/// The level is the finest one, at most [`FINEST_LEVEL`], at which not more than 40,000 cells have points. The level
/// depends neither on the order of the points nor on how they were divided into grids that were merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Density<const N: usize> {
    level: u32,
    /// The number of points of each class in each cell. A key has the column in its upper half and the row in its lower
    /// half.
    cells: FxHashMap<u64, [u64; N]>,
}

/// The cells of a grid that have points. Column 0 begins at longitude -180, row 0 at latitude -90.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub(crate) struct CellCounts {
    /// The level of the grid. The edge of a cell is 360 / 2^`level` degrees. The level is the finest one, at most 24,
    /// at which not more than 40,000 cells have points.
    pub level: u32,
    /// The cells that have points, sorted by column and then by row. Each is a list of its column, its row, and the
    /// number of its points in each class.
    pub cells: Vec<Vec<u64>>,
}

impl<const N: usize> Default for Density<N> {
    fn default() -> Self {
        Self::at_level(FINEST_LEVEL)
    }
}

impl<const N: usize> Density<N> {
    /// Creates an empty grid at a level. The level must not be coarser than that of the finished grid.
    pub(crate) fn at_level(level: u32) -> Self {
        Self {
            level,
            cells: FxHashMap::default(),
        }
    }

    pub(crate) const fn level(&self) -> u32 {
        self.level
    }

    /// Adds a point of a class, in units of 1e-7 degree. The point must be on earth.
    pub(crate) fn add(&mut self, lat_e7: i64, lon_e7: i64, class: usize) {
        let index = |along: i64| {
            let cell = ((along.max(0) as u64) << FINEST_LEVEL) / AROUND;
            cell.min((1 << FINEST_LEVEL) - 1) >> (FINEST_LEVEL - self.level)
        };
        let half = AROUND as i64 / 2;
        let (column, row) = (index(lon_e7 + half), index(lat_e7 + half / 2));
        self.add_to(
            column << 32 | row,
            &std::array::from_fn(|of| u64::from(of == class)),
        );
    }

    /// Adds points to a cell, and coarsens the grid while too many cells have points.
    fn add_to(&mut self, cell: u64, points: &[u64; N]) {
        add_counts(&mut self.cells, cell, points);
        while self.cells.len() > MAX_CELLS && self.level > 0 {
            self.coarsen();
        }
    }

    /// Moves to the next coarser level, in which each cell is the union of four.
    fn coarsen(&mut self) {
        self.level -= 1;
        for (cell, points) in std::mem::take(&mut self.cells) {
            add_counts(&mut self.cells, ancestor_cell(cell, 1), &points);
        }
    }

    /// Adds all points of another grid.
    pub(crate) fn merge(&mut self, other: &Self) {
        while self.level > other.level {
            self.coarsen();
        }
        for (cell, points) in &other.cells {
            // `add_to` may make this grid coarser. Therefore, each call uses the current `self.level`.
            self.add_to(ancestor_cell(*cell, other.level - self.level), points);
        }
    }

    /// Returns the cells that have points.
    pub(crate) fn counts(&self) -> CellCounts {
        let cells = self.cells.iter();
        let row = u64::from(u32::MAX);
        let mut cells: Vec<_> = cells
            .map(|(cell, points)| [&[cell >> 32, cell & row][..], points].concat())
            .collect();
        cells.sort_unstable();
        CellCounts {
            level: self.level,
            cells,
        }
    }
}

/// Adds `points`, the number of points of each class, to the counts of a cell.
fn add_counts<const N: usize>(cells: &mut FxHashMap<u64, [u64; N]>, cell: u64, points: &[u64; N]) {
    let sums = cells.entry(cell).or_insert([0; N]);
    sums.iter_mut()
        .zip(points)
        .for_each(|(sum, more)| *sum += more);
}

/// Returns the cell that contains `cell` in a grid that is coarser by `levels` levels.
const fn ancestor_cell(cell: u64, levels: u32) -> u64 {
    let (column, row) = (cell >> 32, cell & u32::MAX as u64);
    (column >> levels) << 32 | row >> levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    /// Returns `count` random points in a square of the given width, and two points at opposite corners of the world.
    fn points(count: u64, width: u64) -> Vec<(i64, i64)> {
        let mut random = Random(1);
        let spread = (0..count).map(|_| (random.below(width) as i64, random.below(width) as i64));
        let ends = [(900_000_000, 1_800_000_000), (-900_000_000, -1_800_000_000)];
        spread.chain(ends).collect()
    }

    #[test]
    fn every_point_is_in_its_cell_at_the_finest_level_that_fits() {
        for (count, width) in [(10, 1_000), (100_000, 1_000_000), (90_000, 800_000_000)] {
            let points = points(count, width);
            let mut whole = Density::<1>::default();
            points
                .iter()
                .for_each(|(lat, lon)| whole.add(*lat, *lon, 0));
            let cells = whole.counts().cells;
            assert_eq!(
                cells.iter().map(|cell| cell[2]).sum::<u64>(),
                points.len() as u64
            );
            assert!(cells.len() <= MAX_CELLS);
            let cells_at = |level: u32| {
                let cell = |value: i64, half: u64| {
                    let along = (value + half as i64) as u64;
                    let cell = (u128::from(along) << 24) / u128::from(AROUND);
                    (cell as u64).min((1 << 24) - 1) >> (24 - level)
                };
                let mut counts = std::collections::BTreeMap::<[u64; 2], u64>::new();
                for (lat, lon) in &points {
                    *counts
                        .entry([cell(*lon, AROUND / 2), cell(*lat, AROUND / 4)])
                        .or_default() += 1;
                }
                counts
            };
            let expected = cells_at(whole.level());
            let expected = expected
                .iter()
                .map(|([column, row], count)| vec![*column, *row, *count]);
            assert_eq!(cells, expected.collect::<Vec<_>>());
            assert!(whole.level() == FINEST_LEVEL || cells_at(whole.level() + 1).len() > MAX_CELLS);
        }
    }

    #[test]
    fn parts_in_any_order_and_at_any_level_give_the_same_counts() {
        let points = points(120_000, 50_000_000);
        let mut whole = Density::<1>::default();
        points
            .iter()
            .for_each(|(lat, lon)| whole.add(*lat, *lon, 0));
        for backwards in [false, true] {
            let mut chunks: Vec<_> = points.chunks(7_000).collect();
            if backwards {
                chunks.reverse();
            }
            let mut sum = Density::<1>::default();
            for chunk in chunks {
                let mut part = Density::<1>::at_level(sum.level());
                chunk.iter().for_each(|(lat, lon)| part.add(*lat, *lon, 0));
                sum.merge(&part);
            }
            assert_eq!(sum, whole);
        }
    }
}
