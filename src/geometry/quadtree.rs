//! A quadtree over the edges of many groups, which finds the groups that contain a point.
//!
//! A group is a set of edges that has its own winding numbers: the edges of a region, or of one polygon of a region.
//! The borders of cells run between integer coordinates, so each point lies in exactly one leaf. A leaf stores the
//! groups that cover it completely. For each group with edges in the leaf, it also stores those edges and the winding
//! number at the leaf's south-western corner, from which the winding number anywhere in the leaf can be computed.

use super::edge::{Edge, HalfUnitBox, HalfUnitPoint};
use super::shape::Point;
use std::ops::Range;

/// A square of the plane in units of 1e-7 degree. Its side is a power of two.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// The longitude of the first column, in 1e-7 degree.
    pub x: i64,
    /// The latitude of the first row, in 1e-7 degree.
    pub y: i64,
    /// The binary logarithm of the side.
    pub level: u32,
}

impl Cell {
    /// Returns the number of rows, which is also the number of columns.
    #[inline]
    pub fn side(&self) -> i64 {
        1 << self.level
    }

    /// Returns the south-western corner, half a unit south-west of the first point of the cell.
    #[inline]
    pub fn corner(&self) -> HalfUnitPoint {
        HalfUnitPoint::new(2 * self.x - 1, 2 * self.y - 1)
    }

    /// Returns the closed box of the cell, border included.
    pub fn bounds(&self) -> HalfUnitBox {
        let min = self.corner();
        let max = HalfUnitPoint::new(min.x + 2 * self.side(), min.y + 2 * self.side());
        HalfUnitBox { min, max }
    }

    /// Divides the cell into quarters: south-west, south-east, north-west, north-east. The cell
    /// must be larger than one unit.
    pub fn quarters(&self) -> [Self; 4] {
        let level = self.level.saturating_sub(1);
        let half = 1i64 << level;
        [(0, 0), (half, 0), (0, half), (half, half)].map(|(x, y)| Self {
            x: self.x + x,
            y: self.y + y,
            level,
        })
    }

    /// Whether a point, given in 1e-7 degree, lies in the cell.
    #[inline]
    pub fn holds(&self, x: i64, y: i64) -> bool {
        let side = 1u64 << self.level;
        (x.wrapping_sub(self.x) as u64) < side && (y.wrapping_sub(self.y) as u64) < side
    }
}

/// The edges of a group in a leaf.
#[derive(Debug, Clone, Copy)]
pub struct GroupEdges {
    /// The number of the group.
    pub group: u32,
    /// The winding number of the group at the south-western corner of the leaf.
    pub winding: i32,
    /// The index of the first edge in [`Quadtree::references`].
    pub first: u32,
    /// One more than the index of the last edge in [`Quadtree::references`].
    pub end: u32,
}

/// A cell that is not divided.
#[derive(Debug, Clone, Copy, Default)]
pub struct Leaf {
    /// The index in [`Quadtree::sets`] of the groups that cover the whole leaf.
    pub set: u32,
    /// The index of the first part of the leaf in [`Quadtree::parts`].
    pub first: u32,
    /// One more than the index of the last part of the leaf in [`Quadtree::parts`].
    pub end: u32,
}

/// A node of the tree.
#[derive(Debug, Clone, Copy)]
pub enum QuadtreeNode {
    /// A cell that is divided into four.
    Inner {
        /// The index in [`Quadtree::nodes`] of the first of four consecutive quarters.
        quarters: u32,
        /// The index in [`Quadtree::crossing`] of the first group with edges in this cell.
        first: u32,
        /// One more than the index in [`Quadtree::crossing`] of the last group with edges in this cell.
        end: u32,
    },
    /// A cell that is not divided.
    Leaf(Leaf),
}

/// A quadtree over the edges of many groups. [`Quadtree::build`] is in `quadtree_build.rs`.
#[derive(Debug)]
pub struct Quadtree {
    /// The cell of the root, which contains all edges.
    pub root: Cell,
    /// The nodes; the first is the root.
    pub nodes: Vec<QuadtreeNode>,
    /// The groups with edges in each inner node, node by node. Nodes with the same groups share a range.
    pub crossing: Vec<u32>,
    /// The groups with edges in each leaf, leaf by leaf. An entry is called a part of the leaf.
    pub parts: Vec<GroupEdges>,
    /// The indices in [`Quadtree::edges`] of the edges of each part in [`Quadtree::parts`], part by part.
    pub references: Vec<u32>,
    /// The edges of all groups, group by group.
    pub edges: Vec<Edge>,
    /// The distinct sets of groups that cover a leaf, each in ascending order. The first is empty.
    pub sets: Vec<Vec<u32>>,
}

/// Returns a range of a list. All ranges were made by the builder, so they are valid.
#[inline]
fn stored_slice<T>(items: &[T], first: u32, end: u32) -> &[T] {
    &items[first as usize..end as usize]
}

impl Quadtree {
    /// Returns the leaf that contains a point, given in 1e-7 degree, and its cell; `None` for a
    /// point outside of the tree.
    #[inline]
    pub fn leaf_at(&self, x: i64, y: i64) -> Option<(Cell, Leaf)> {
        if !self.root.holds(x, y) {
            return None;
        }
        let (right, up) = (x - self.root.x, y - self.root.y);
        let mut level = self.root.level;
        let mut number = 0;
        loop {
            match self.nodes[number] {
                QuadtreeNode::Inner { quarters, .. } => {
                    level = level.saturating_sub(1);
                    let quarter = (right >> level & 1) | (up >> level & 1) << 1;
                    number = quarters as usize + quarter as usize;
                }
                QuadtreeNode::Leaf(leaf) => {
                    let cell = Cell {
                        x: self.root.x + (right >> level << level),
                        y: self.root.y + (up >> level << level),
                        level,
                    };
                    return Some((cell, leaf));
                }
            }
        }
    }

    /// Returns the groups with edges in a leaf, and the edges of each.
    #[inline]
    pub fn group_edges_of(&self, leaf: Leaf) -> &[GroupEdges] {
        stored_slice(&self.parts, leaf.first, leaf.end)
    }

    /// Returns the groups with edges in an inner node, given their range in [`Quadtree::crossing`].
    pub fn crossing_in(&self, groups: Range<u32>) -> &[u32] {
        stored_slice(&self.crossing, groups.start, groups.end)
    }

    /// Returns the indices in [`Quadtree::edges`] of the edges of a part.
    #[inline]
    pub fn edge_indices_of(&self, part: &GroupEdges) -> &[u32] {
        stored_slice(&self.references, part.first, part.end)
    }

    /// Returns the edges of a part.
    #[inline]
    pub fn edges_of(&self, part: &GroupEdges) -> impl Iterator<Item = &Edge> {
        let references = self.edge_indices_of(part).iter();
        references.map(|&number| &self.edges[number as usize])
    }

    /// Returns the winding number of a group at a point in a leaf or on the border of the leaf. The point must not lie
    /// on an edge.
    pub fn winding_at(&self, cell: &Cell, part: &GroupEdges, point: HalfUnitPoint) -> i32 {
        let corner = cell.corner();
        self.edges_of(part).fold(part.winding, |winding, edge| {
            winding + edge.winding_between(corner, point)
        })
    }

    /// Whether a group contains a point of a leaf. Points on an edge belong to the group.
    #[inline]
    pub fn contains(&self, cell: &Cell, part: &GroupEdges, point: Point) -> bool {
        let (corner, at) = (cell.corner(), HalfUnitPoint::of(point));
        let mut winding = part.winding;
        for edge in self.edges_of(part) {
            if edge.holds(point) {
                return true;
            }
            winding += edge.winding_between(corner, at);
        }
        winding > 0
    }

    /// Returns the approximate memory usage of the tree in bytes.
    pub fn bytes(&self) -> u64 {
        let sets: usize = self
            .sets
            .iter()
            .map(|set| size_of::<Vec<u32>>() + size_of_val(set.as_slice()))
            .sum();
        let bytes = size_of_val(self.nodes.as_slice())
            + size_of_val(self.crossing.as_slice())
            + size_of_val(self.parts.as_slice())
            + size_of_val(self.references.as_slice())
            + size_of_val(self.edges.as_slice())
            + sets;
        bytes as u64
    }
}
