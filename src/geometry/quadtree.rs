//! A quadtree over the edges of many groups that tells which group holds a point.
//!
//! A group is whatever has a winding number of its own: a region, or one polygon of it. The borders of
//! cells run between the whole numbers, so each point lies in exactly one leaf. A leaf knows the groups
//! that cover all of it and, for each group with edges in it, those edges and the winding number at
//! its south-western corner; the winding number anywhere in the leaf follows from these alone.

use super::edge::{Edge, HalfUnitBox, HalfUnitPoint};
use super::shape::Point;
use std::ops::Range;

/// A square of the plane, its side a power of two.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// The longitude of its first column.
    pub x: i64,
    /// The latitude of its first row.
    pub y: i64,
    /// The binary logarithm of its side.
    pub level: u32,
}

impl Cell {
    /// How many rows and columns it has.
    #[inline]
    pub fn side(&self) -> i64 {
        1 << self.level
    }

    /// Its south-western corner.
    #[inline]
    pub fn corner(&self) -> HalfUnitPoint {
        HalfUnitPoint {
            x: 2 * self.x - 1,
            y: 2 * self.y - 1,
        }
    }

    /// All of it, border included.
    pub fn bounds(&self) -> HalfUnitBox {
        let min = self.corner();
        let max = HalfUnitPoint {
            x: min.x + 2 * self.side(),
            y: min.y + 2 * self.side(),
        };
        HalfUnitBox { min, max }
    }

    /// Its quarters: south-west, south-east, north-west, north-east. It is larger than one unit.
    pub fn quarters(&self) -> [Self; 4] {
        let level = self.level.saturating_sub(1);
        let half = 1i64 << level;
        [(0, 0), (half, 0), (0, half), (half, half)].map(|(x, y)| Self {
            x: self.x + x,
            y: self.y + y,
            level,
        })
    }

    /// Whether a point of whole numbers lies in it.
    #[inline]
    pub fn holds(&self, x: i64, y: i64) -> bool {
        let side = 1u64 << self.level;
        (x.wrapping_sub(self.x) as u64) < side && (y.wrapping_sub(self.y) as u64) < side
    }
}

/// The edges of a group in a leaf.
#[derive(Debug, Clone, Copy)]
pub struct RegionEdges {
    /// Whose edges they are.
    pub group: u32,
    /// The winding number of the group at the corner of the leaf.
    pub winding: i32,
    /// The first of [`Quadtree::references`] that is in it.
    pub first: u32,
    /// The first behind it.
    pub end: u32,
}

/// A cell that is not divided.
#[derive(Debug, Clone, Copy, Default)]
pub struct Leaf {
    /// The number of the set of groups that cover all of it.
    pub set: u32,
    /// The first of [`Quadtree::parts`] that is in it.
    pub first: u32,
    /// The first behind it.
    pub end: u32,
}

/// A cell of the tree.
#[derive(Debug, Clone, Copy)]
pub enum Node {
    /// Divided into four.
    Inner {
        /// The first of its quarters among the nodes.
        quarters: u32,
        /// The first of the [`Quadtree::crossing`] groups.
        first: u32,
        /// The first behind them.
        end: u32,
    },
    /// Not divided.
    Leaf(Leaf),
}

/// The tree. [`Quadtree::build`] is in a file of its own.
#[derive(Debug)]
pub struct Quadtree {
    /// The cell of the first node, which holds all edges.
    pub root: Cell,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// For the inner nodes: the groups with edges in them.
    pub crossing: Vec<u32>,
    /// For the leaves: the groups with edges in them.
    pub parts: Vec<RegionEdges>,
    /// For the parts: which edges are in them.
    pub references: Vec<u32>,
    /// The edges of all groups.
    pub edges: Vec<Edge>,
    /// The sets of groups that cover a leaf, each ascending. The first is empty.
    pub sets: Vec<Vec<u32>>,
}

/// The elements of a range that the tree itself has stored.
#[inline]
fn stored<T>(items: &[T], first: u32, end: u32) -> &[T] {
    items.get(first as usize..end as usize).unwrap_or_default()
}

impl Quadtree {
    /// The leaf in which a point of whole numbers lies. `None` outside of the tree.
    #[inline]
    pub fn leaf_at(&self, x: i64, y: i64) -> Option<(Cell, Leaf)> {
        if !self.root.holds(x, y) {
            return None;
        }
        let (right, up) = (x - self.root.x, y - self.root.y);
        let mut level = self.root.level;
        let mut number = 0;
        loop {
            match *self.nodes.get(number)? {
                Node::Inner { quarters, .. } => {
                    level = level.saturating_sub(1);
                    let quarter = (right >> level & 1) | (up >> level & 1) << 1;
                    number = quarters as usize + quarter as usize;
                }
                Node::Leaf(leaf) => {
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

    /// The groups with edges in a leaf.
    #[inline]
    pub fn parts_of(&self, leaf: Leaf) -> &[RegionEdges] {
        stored(&self.parts, leaf.first, leaf.end)
    }

    /// The groups with edges in an inner node.
    pub fn crossing_in(&self, groups: Range<u32>) -> &[u32] {
        stored(&self.crossing, groups.start, groups.end)
    }

    /// The numbers of the edges of a part.
    #[inline]
    pub fn references_of(&self, part: &RegionEdges) -> &[u32] {
        stored(&self.references, part.first, part.end)
    }

    /// The edges of a part.
    #[inline]
    pub fn edges_of(&self, part: &RegionEdges) -> impl Iterator<Item = &Edge> {
        let references = self.references_of(part).iter();
        references.filter_map(|&number| self.edges.get(number as usize))
    }

    /// The winding number of a group at a point of a leaf, or of its border in the north or east, that
    /// is no point of an edge.
    pub fn winding_at(&self, cell: &Cell, part: &RegionEdges, point: HalfUnitPoint) -> i32 {
        let corner = cell.corner();
        self.edges_of(part).fold(part.winding, |winding, edge| {
            winding + edge.winding_between(corner, point)
        })
    }

    /// Whether a point of a leaf belongs to a group, by its inside or by an edge.
    #[inline]
    pub fn contains(&self, cell: &Cell, part: &RegionEdges, point: Point) -> bool {
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

    /// About how much memory it takes.
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
