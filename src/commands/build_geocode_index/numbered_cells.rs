//! The cells of a grid over the earth that contain nodes with a house number.
//!
//! The index keeps a building if a node with a house number may lie in it. To bound the memory, blocks of cells share a
//! fixed number of slots, to which they are hashed. The index may therefore keep a building needlessly, which uses a
//! little space and changes no answer.

use crate::geometry::{Extent, Point};
use crate::osm::Edges;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The binary logarithm of the height and the width of a cell, in units of 1e-7 degree. A cell is about 2.8 metres high.
const CELL_BITS: u32 = 8;
/// The binary logarithm of the number of rows, and of the number of columns, in a block of cells.
const BLOCK_BITS: u32 = 6;
/// The number of rows, and of columns, in a block of cells.
const BLOCK_LEN: usize = 1 << BLOCK_BITS;
/// The binary logarithm of the number of slots for blocks. A block uses 512 bytes.
const BLOCKS_BITS: u32 = 18;
/// The maximum number of cells that are looked up for a box. A larger box is assumed to contain a node.
const MAX_CELLS: i64 = 1 << 16;

/// The rows of a block of cells, with one bit per cell.
type Rows = Box<[AtomicU64; BLOCK_LEN]>;

/// A set of cells. Threads may add to it concurrently.
#[derive(Debug)]
pub(super) struct NumberedCells {
    blocks: Vec<OnceLock<Rows>>,
}

/// Returns the slot of a block of cells.
fn slot_of(row: i32, column: i32) -> usize {
    let block = u64::from(row as u32) << 32 | u64::from(column as u32);
    (block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BLOCKS_BITS)) as usize
}

/// Divides the row or the column of a cell into that of its block, and that of the cell in the block.
fn split(at: i32) -> (i32, usize) {
    const MASK: i32 = (1 << BLOCK_BITS) - 1;
    (at >> BLOCK_BITS, (at & MASK) as usize)
}

impl NumberedCells {
    pub(super) fn new() -> Self {
        let mut blocks = Vec::new();
        blocks.resize_with(1 << BLOCKS_BITS, OnceLock::new);
        Self { blocks }
    }

    /// Adds the cell that contains a node.
    pub(super) fn add(&self, point: Point) {
        let [(block_row, row), (block_column, column)] =
            [point.lat_e7, point.lon_e7].map(|edge| split(edge >> CELL_BITS));
        let rows = self.blocks[slot_of(block_row, block_column)]
            .get_or_init(|| Box::new([const { AtomicU64::new(0) }; BLOCK_LEN]));
        rows[row].fetch_or(1 << column, Ordering::Relaxed);
    }

    /// Whether a box may contain a node that was added.
    pub(super) fn may_meet(&self, extent: &Extent) -> bool {
        let Edges {
            west,
            south,
            east,
            north,
        } = extent.edges().map(|edge| edge >> CELL_BITS);
        let count = (i64::from(north - south) + 1) * (i64::from(east - west) + 1);
        let ((first, low), (last, high)) = (split(west), split(east));
        // Whether a row of cells has a cell between `west` and `east`.
        let has = |row: i32| {
            let (block_row, row) = split(row);
            (first..=last).any(|block| {
                let low = if block == first { low } else { 0 };
                let high = if block == last { high } else { BLOCK_LEN - 1 };
                let rows = self.blocks[slot_of(block_row, block)].get();
                let cells = rows.map_or(0, |rows| rows[row].load(Ordering::Relaxed));
                cells >> low << low << (BLOCK_LEN - 1 - high) != 0
            })
        };
        count > MAX_CELLS || (south..=north).any(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_around_a_node_meets_its_cell_and_one_beside_it_does_not() {
        let cells = NumberedCells::new();
        let at = |lat_e7, lon_e7| Point { lat_e7, lon_e7 };
        for (lat, lon) in [
            (490_000_000, 80_000_000),
            (-5, -5),
            (-900_000_000, 1_800_000_000),
        ] {
            cells.add(at(lat, lon));
            let around =
                |size: i32| Extent::at(at(lat - size, lon - size)).and(&Extent::at(at(lat, lon)));
            assert!(
                [0, 1, 1000, 100_000]
                    .into_iter()
                    .all(|size| cells.may_meet(&around(size)))
            );
            let aside = Extent::at(at(lat + 5000, lon - 5000));
            assert!(!cells.may_meet(&aside));
        }
    }
}
