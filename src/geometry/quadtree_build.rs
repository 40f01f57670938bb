//! Builds a quadtree level by level. If the size limit is reached, all parts of the tree are equally coarse.

use super::edge::{Edge, HalfUnitPoint};
use super::quadtree::{Cell, GroupEdges, Leaf, Quadtree, QuadtreeNode};
use rustc_hash::FxHashMap;

/// A leaf with more edges than this is divided.
const EDGES_IN_A_LEAF: usize = 8;
/// While the tree has fewer nodes than this, every leaf with an edge is divided. The cost is small, and most points
/// then lie in a leaf without edges.
const NODES_FOR_FREE: usize = 4096;
/// The limit on the size of the tree, as the number of references and nodes per edge. Once the limit is reached, no
/// more leaves are divided. Without a limit, edges that run close together over a long distance would be stored again
/// and again.
const MAX_SIZE_PER_EDGE: usize = 16;
/// The constant part of the limit, added to [`MAX_SIZE_PER_EDGE`] times the number of edges.
const WEIGHT_FOR_FREE: usize = 8192;

/// A node that is to become an inner node or a leaf.
struct PendingNode {
    node: usize,
    cell: Cell,
    set: u32,
    /// The range in [`PendingLevel::parts`] of the groups with edges in the node.
    parts: (usize, usize),
    /// The range in [`Quadtree::crossing`] of the groups with edges in the parent node.
    crossing: (u32, u32),
}

/// The pending nodes of one level. All their cells have the same size.
#[derive(Default)]
struct PendingLevel {
    pending: Vec<PendingNode>,
    parts: Vec<GroupEdges>,
    references: Vec<u32>,
}

/// The content of one quarter of the cell that is being divided.
#[derive(Default)]
struct Quarter {
    parts: Vec<GroupEdges>,
    references: Vec<u32>,
    covering: Vec<u32>,
}

struct QuadtreeBuilder {
    tree: Quadtree,
    set_numbers: FxHashMap<Vec<u32>, u32>,
    quarters: [Quarter; 4],
    /// The number of references and nodes, stored and pending.
    weight: usize,
    max_weight: usize,
}

/// Converts an index or a length to 32 bits. `max_weight` keeps all lists of the tree shorter than 2^32.
fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Quadtree {
    /// Builds the tree of groups of edges. The edges of group `n` are `edges[ends[n - 1]..ends[n]]`;
    /// those of group 0 begin at index 0. Edges after the first 2^32 - 1 are ignored.
    pub fn build(edges: Vec<Edge>, ends: &[usize]) -> Self {
        let root = root_cell(&edges);
        let limit = edges.len().saturating_mul(MAX_SIZE_PER_EDGE) + WEIGHT_FOR_FREE;
        let mut builder = QuadtreeBuilder {
            weight: edges.len() + 1,
            max_weight: limit.min(u32::MAX as usize / 2),
            set_numbers: FxHashMap::from_iter([(Vec::new(), 0)]),
            quarters: Default::default(),
            tree: Self {
                root,
                nodes: vec![QuadtreeNode::Leaf(Leaf::default())],
                crossing: Vec::new(),
                parts: Vec::new(),
                references: Vec::new(),
                edges,
                sets: vec![Vec::new()],
            },
        };
        let mut level = builder.first_level(ends);
        while !level.pending.is_empty() {
            let mut below = PendingLevel::default();
            for pending in &level.pending {
                builder.split_or_make_leaf(pending, &level, &mut below);
            }
            level = below;
        }
        builder.tree
    }
}

/// Returns the smallest cell that contains all edges and begins at their minimum longitude and latitude.
fn root_cell(edges: &[Edge]) -> Cell {
    let points = || edges.iter().map(|edge| edge.from);
    let span = |coordinate: fn(super::Point) -> i32| {
        let least = points().map(coordinate).min().unwrap_or(0);
        let most = points().map(coordinate).max().unwrap_or(0);
        (i64::from(least), i64::from(most))
    };
    let (west, east) = span(|point| point.lon_e7);
    let (south, north) = span(|point| point.lat_e7);
    let side = (east - west).max(north - south) as u64 + 1;
    Cell {
        x: west,
        y: south,
        level: side.next_power_of_two().trailing_zeros(),
    }
}

/// Whether an edge has no length and lies at an end of the next edge. Such an edge can be left out, because the next
/// edge contains the point.
fn is_redundant_point(edge: &Edge, next: Option<&Edge>) -> bool {
    edge.is_empty() && next.is_some_and(|next| next.from == edge.from || next.to == edge.from)
}

impl QuadtreeBuilder {
    /// Returns the level of the root, which has all edges.
    fn first_level(&self, ends: &[usize]) -> PendingLevel {
        let mut level = PendingLevel::default();
        let mut start = 0;
        for (group, &end) in ends.iter().enumerate() {
            let first = to_u32(level.references.len());
            let edges = &self.tree.edges[start..end];
            let next = edges.iter().skip(1).map(Some).chain([None]);
            let numbered = (to_u32(start)..u32::MAX).zip(edges.iter().zip(next));
            let drawn = numbered.filter(|(_, (edge, next))| !is_redundant_point(edge, *next));
            level.references.extend(drawn.map(|(number, _)| number));
            let end_reference = to_u32(level.references.len());
            if end_reference > first {
                level.parts.push(GroupEdges {
                    group: to_u32(group),
                    winding: 0,
                    first,
                    end: end_reference,
                });
            }
            start = end;
        }
        level.pending.push(PendingNode {
            node: 0,
            cell: self.tree.root,
            set: 0,
            parts: (0, level.parts.len()),
            crossing: (0, 0),
        });
        level
    }

    /// Turns a pending node into a leaf, or into an inner node whose quarters become pending in the level below.
    fn split_or_make_leaf(
        &mut self,
        pending: &PendingNode,
        level: &PendingLevel,
        below: &mut PendingLevel,
    ) {
        let (first, end) = pending.parts;
        let parts = &level.parts[first..end];
        let edges: usize = parts
            .iter()
            .map(|part| (part.end - part.first) as usize)
            .sum();
        let is_crowded = edges > EDGES_IN_A_LEAF;
        let is_free = edges > 0 && self.tree.nodes.len() < NODES_FOR_FREE;
        let may_grow = pending.cell.level > 0 && self.weight < self.max_weight;
        let node = if may_grow && (is_crowded || is_free) {
            self.weight -= edges;
            self.divide(pending, parts, &level.references, below)
        } else {
            let leaf = self.add_leaf(pending.set, parts, &level.references);
            QuadtreeNode::Leaf(leaf)
        };
        self.tree.nodes[pending.node] = node;
    }

    /// Appends the parts and references of a leaf to the tree, and returns the leaf.
    fn add_leaf(&mut self, set: u32, parts: &[GroupEdges], references: &[u32]) -> Leaf {
        let first = to_u32(self.tree.parts.len());
        for part in parts {
            let edges = &references[part.first as usize..part.end as usize];
            let first = to_u32(self.tree.references.len());
            self.tree.references.extend_from_slice(edges);
            self.tree.parts.push(GroupEdges {
                first,
                end: to_u32(self.tree.references.len()),
                ..*part
            });
        }
        Leaf {
            set,
            first,
            end: to_u32(self.tree.parts.len()),
        }
    }

    /// Distributes the parts of a pending node over its quarters, and returns the inner node.
    fn divide(
        &mut self,
        pending: &PendingNode,
        parts: &[GroupEdges],
        references: &[u32],
        below: &mut PendingLevel,
    ) -> QuadtreeNode {
        let cells = pending.cell.quarters();
        for part in parts {
            let edges = &references[part.first as usize..part.end as usize];
            self.divide_part(part, edges, &pending.cell, &cells);
        }
        let crossing = self.add_crossing_range(parts, pending.crossing);
        let quarters = self.tree.nodes.len();
        for (number, cell) in cells.into_iter().enumerate() {
            self.add_quarter(number, cell, pending.set, crossing, below);
        }
        QuadtreeNode::Inner {
            quarters: to_u32(quarters),
            first: crossing.0,
            end: crossing.1,
        }
    }

    /// Distributes the edges of a part over the quarters that they meet. A quarter without an edge
    /// is covered by the group if the winding number is positive there.
    fn divide_part(
        &mut self,
        part: &GroupEdges,
        references: &[u32],
        cell: &Cell,
        cells: &[Cell; 4],
    ) {
        let middle = cells[3].corner();
        let corner = cell.corner();
        let bounds = cells.map(|cell| cell.bounds());
        let firsts = [0, 1, 2, 3].map(|quarter: usize| self.quarters[quarter].references.len());
        let mut windings = [part.winding; 4];
        for &reference in references {
            let edge = &self.tree.edges[reference as usize];
            for (winding, cell) in windings.iter_mut().zip(cells).skip(1) {
                *winding += edge.winding_between(corner, cell.corner());
            }
            let quarter_of = |point: HalfUnitPoint| {
                usize::from(point.x > middle.x) | usize::from(point.y > middle.y) << 1
            };
            let quarter = quarter_of(HalfUnitPoint::of(edge.from));
            if quarter == quarter_of(HalfUnitPoint::of(edge.to)) {
                self.quarters[quarter].references.push(reference);
                continue;
            }
            for (quarter, bounds) in self.quarters.iter_mut().zip(&bounds) {
                if edge.meets(bounds) {
                    quarter.references.push(reference);
                }
            }
        }
        for ((quarter, first), winding) in self.quarters.iter_mut().zip(firsts).zip(windings) {
            if quarter.references.len() > first {
                quarter.parts.push(GroupEdges {
                    group: part.group,
                    winding,
                    first: to_u32(first),
                    end: to_u32(quarter.references.len()),
                });
            } else if winding > 0 {
                quarter.covering.push(part.group);
            }
        }
    }

    /// Returns the range in [`Quadtree::crossing`] that lists the groups with edges in a node. The groups of a node are
    /// a subset of those of its parent. If both lists have the same length, they are equal, and the node shares the
    /// range `above` of the parent.
    fn add_crossing_range(&mut self, parts: &[GroupEdges], above: (u32, u32)) -> (u32, u32) {
        if (above.1 - above.0) as usize == parts.len() {
            return above;
        }
        let first = to_u32(self.tree.crossing.len());
        let groups = parts.iter().map(|part| part.group);
        self.tree.crossing.extend(groups);
        (first, to_u32(self.tree.crossing.len()))
    }

    /// Adds the node of a quarter. A node without edges is a leaf. Any other node becomes pending in the level below.
    fn add_quarter(
        &mut self,
        quarter: usize,
        cell: Cell,
        set: u32,
        crossing: (u32, u32),
        below: &mut PendingLevel,
    ) {
        let set = self.union_with_covering(set, quarter);
        let Quarter {
            parts,
            references,
            covering,
        } = &mut self.quarters[quarter];
        let node = self.tree.nodes.len();
        self.tree.nodes.push(QuadtreeNode::Leaf(Leaf {
            set,
            ..Leaf::default()
        }));
        self.weight += references.len() + 1;
        if !parts.is_empty() {
            let (first, moved) = (below.parts.len(), to_u32(below.references.len()));
            below.parts.extend(parts.iter().map(|part| GroupEdges {
                first: part.first + moved,
                end: part.end + moved,
                ..*part
            }));
            below.references.extend_from_slice(references);
            below.pending.push(PendingNode {
                node,
                cell,
                set,
                parts: (first, below.parts.len()),
                crossing,
            });
        }
        parts.clear();
        references.clear();
        covering.clear();
    }

    /// Returns the index in [`Quadtree::sets`] of the union of a set and the groups that cover a quarter. Adds the
    /// union to the sets if it is new.
    fn union_with_covering(&mut self, set: u32, quarter: usize) -> u32 {
        let covering = &self.quarters[quarter].covering;
        if covering.is_empty() {
            return set;
        }
        let mut groups = covering.clone();
        groups.extend_from_slice(&self.tree.sets[set as usize]);
        groups.sort_unstable();
        if let Some(&known) = self.set_numbers.get(&groups) {
            return known;
        }
        let set = to_u32(self.tree.sets.len());
        self.tree.sets.push(groups.clone());
        self.set_numbers.insert(groups, set);
        set
    }
}
