//! The cells of a grid over the earth that contain nodes with a house number.
//!
//! The index keeps a building if a node with a house number may lie in it. To bound the memory, blocks of cells are
//! hashed to a fixed number of slots. Blocks with the same slot cannot be told apart, so the index may keep a building
//! needlessly. This uses a little space and changes no answer.

use crate::geometry::{Extent, Point};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The binary logarithm of the height and the width of a cell, in units of 1e-7 degree. A cell is about 11 metres high.
const CELL_BITS: u32 = 10;
/// The binary logarithm of the number of rows, and of the number of columns, in a block of cells.
const BLOCK_BITS: u32 = 6;
/// The binary logarithm of the number of slots for blocks. A block uses 512 bytes.
const BLOCKS_BITS: u32 = 18;
/// The maximum number of cells that are looked up for a box. A larger box is assumed to contain a node.
const MAX_CELLS: i64 = 4096;

/// The rows of a block of cells, with one bit per cell.
type CellRows = Box<[AtomicU64; 1 << BLOCK_BITS]>;

/// A set of cells. Threads may add to it concurrently.
#[derive(Debug)]
pub(super) struct NumberedCells {
    blocks: Vec<OnceLock<CellRows>>,
}

/// Returns the position of a cell as the slot of its block, and the row and the column in the block.
fn slot_of_cell(row: i32, column: i32) -> (usize, usize, u32) {
    const MASK: i32 = (1 << BLOCK_BITS) - 1;
    let [high_row, high_column] = [row, column].map(|at| (at >> BLOCK_BITS) as u32);
    let block = u64::from(high_row) << 32 | u64::from(high_column);
    let mixed = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BLOCKS_BITS);
    (
        mixed as usize,
        (row & MASK) as usize,
        (column & MASK) as u32,
    )
}

impl NumberedCells {
    pub(super) fn new() -> Self {
        let mut blocks = Vec::new();
        blocks.resize_with(1 << BLOCKS_BITS, OnceLock::new);
        Self { blocks }
    }

    /// Adds the cell that contains a node.
    pub(super) fn add(&self, point: Point) {
        let (block, row, column) =
            slot_of_cell(point.lat_e7 >> CELL_BITS, point.lon_e7 >> CELL_BITS);
        let rows = self.blocks[block]
            .get_or_init(|| Box::new([const { AtomicU64::new(0) }; 1 << BLOCK_BITS]));
        rows[row].fetch_or(1 << column, Ordering::Relaxed);
    }

    /// Whether a box may contain a node that was added.
    pub(super) fn may_contain_node(&self, extent: &Extent) -> bool {
        let [west, south, east, north] = extent.edges().map(|edge| edge >> CELL_BITS).into_array();
        let count = (i64::from(north - south) + 1) * (i64::from(east - west) + 1);
        let has = |row: i32, column: i32| {
            let (block, row, column) = slot_of_cell(row, column);
            let rows = self.blocks[block].get();
            rows.is_some_and(|rows| rows[row].load(Ordering::Relaxed) >> column & 1 == 1)
        };
        count > MAX_CELLS || (south..=north).any(|row| (west..=east).any(|column| has(row, column)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_may_contain_nodes_only_in_added_cells() {
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
                    .all(|size| cells.may_contain_node(&around(size)))
            );
            let aside = Extent::at(at(lat + 5000, lon - 5000));
            assert!(!cells.may_contain_node(&aside));
        }
    }
}
