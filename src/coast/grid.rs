//! Cells of a grid, into which areas are divided.

use super::box_part::{Axis, BoxPart};
use crate::area::AreaPolygon;
use crate::geometry::{Extent, Point};
use std::ops::Range;

/// The western and the southern edge of the world, in 1e-7 degree.
const WEST: i64 = -1_800_000_000;
const SOUTH: i64 = -900_000_000;

/// A grid of cells. The first cell begins at the south-western corner of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// The size of a cell in 1e-7 degree.
    pub cell_e7: u32,
    /// The distance by which a cell extends into each of its neighbours, in 1e-7 degree.
    pub overlap_e7: u32,
}

/// The part of an area in a cell.
#[derive(Debug)]
pub(crate) struct GridCell {
    /// The number of the column from the west, and of the row from the south.
    pub number: [i32; 2],
    pub part: BoxPart,
}

/// An iterator over the cells of a grid that overlap a box. Each cell comes with the part of an area that lies in the
/// cell.
pub(crate) struct GridCells {
    grid: Grid,
    bounds: Extent,
    /// Ranges of columns and of rows that are not divided into cells yet, each with its part of the area.
    pending: Vec<(Range<i32>, Range<i32>, BoxPart)>,
}

impl Grid {
    /// Returns the parts of an area in the cells. The area lies within `bounds`.
    pub(crate) fn cells<'p>(
        self,
        bounds: Extent,
        area: impl IntoIterator<Item = &'p AreaPolygon>,
    ) -> GridCells {
        let Extent { low, high } = bounds;
        let range = |low: i32, high: i32, start: i64| {
            let cell = i64::from(self.cell_e7);
            let first = (i64::from(low) - start) / cell;
            let end = (i64::from(high) - start + cell - 1) / cell;
            first as i32..end as i32
        };
        let columns = range(low.lon_e7, high.lon_e7, WEST);
        let rows = range(low.lat_e7, high.lat_e7, SOUTH);
        let pending = if columns.is_empty() || rows.is_empty() {
            Vec::new()
        } else {
            vec![(columns, rows, BoxPart::new(bounds, area))]
        };
        GridCells {
            grid: self,
            bounds,
            pending,
        }
    }

    /// Returns the box around some cells with their overlap, cut at `bounds`.
    fn extent(&self, columns: &Range<i32>, rows: &Range<i32>, bounds: &Extent) -> Extent {
        let (cell, overlap) = (i64::from(self.cell_e7), i64::from(self.overlap_e7));
        let edges = |range: &Range<i32>, start: i64, low: i32, high: i32| {
            let from = start + i64::from(range.start) * cell - overlap;
            let to = start + i64::from(range.end) * cell + overlap;
            [from.max(low.into()) as i32, to.min(high.into()) as i32]
        };
        let Extent { low, high } = bounds;
        let [west, east] = edges(columns, WEST, low.lon_e7, high.lon_e7);
        let [south, north] = edges(rows, SOUTH, low.lat_e7, high.lat_e7);
        let corner = |lat_e7, lon_e7| Point { lat_e7, lon_e7 };
        Extent {
            low: corner(south, west),
            high: corner(north, east),
        }
    }
}

impl Iterator for GridCells {
    type Item = GridCell;

    fn next(&mut self) -> Option<GridCell> {
        loop {
            let (columns, rows, part) = self.pending.pop()?;
            let (width, height) = (columns.len(), rows.len());
            if width == 1 && height == 1 {
                let number = [columns.start, rows.start];
                return Some(GridCell { number, part });
            }
            let halves = |range: &Range<i32>| {
                let middle = range.start.midpoint(range.end);
                [range.start..middle, middle..range.end]
            };
            let (axis, [low, high]) = if width >= height {
                (Axis::Lon, halves(&columns).map(|half| (half, rows.clone())))
            } else {
                (Axis::Lat, halves(&rows).map(|half| (columns.clone(), half)))
            };
            let extent = |(columns, rows)| self.grid.extent(columns, rows, &self.bounds);
            let boxes = [(&low.0, &low.1), (&high.0, &high.1)].map(extent);
            let [low_part, high_part] = part.divide(boxes[0], boxes[1], axis);
            self.pending.push((high.0, high.1, high_part));
            self.pending.push((low.0, low.1, low_part));
        }
    }
}

#[cfg(test)]
#[path = "grid_tests.rs"]
mod tests;
