//! An index that finds which of many regions contain a point or a box.

use super::antimeridian::{is_on_antimeridian, point_at_opposite_map_edge};
use super::edge;
use super::edge::{Edge, HalfUnitBox, HalfUnitPoint};
use super::quadtree::{Cell, GroupEdges, Leaf, Quadtree, QuadtreeNode};
use super::shape::{Point, Shape};
use crate::osm::Bbox;

/// An index of many regions. The number of a region is the index of its shape in the list given to [`AreaIndex::new`].
/// Points on an edge belong to the region, including those on the edge of a hole.
///
/// Answers about points are exact, even for shapes that [`Shape::check`] rejects. A point on an edge of a region
/// belongs to the region. For any other point, the winding numbers of the region's rings around the point are added up.
/// The point belongs to the region if the sum is positive.
#[derive(Debug)]
pub struct AreaIndex {
    tree: Quadtree,
    regions: usize,
}

/// The regions that contain or touch a box. Both lists are in ascending order and have no region in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cover {
    /// Regions that contain the whole box. A region with an edge in the box may be in `touched`
    /// instead.
    pub inside: Vec<u32>,
    /// All regions that share a point with the box but are not in `inside`. May also contain regions that share no
    /// point with the box.
    pub touched: Vec<u32>,
}

/// The kind of contact between the edges of a region and a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EdgeContact {
    /// No edge meets the box.
    None,
    /// Edges meet the border of the box, but none meets its interior.
    Border,
    /// An edge meets the interior of the box.
    Inside,
}

impl AreaIndex {
    /// Builds the index. Region `n` is `shapes[n]`.
    pub fn new(shapes: &[Shape]) -> Self {
        Self::build(shapes, |_| Vec::new())
    }

    /// Builds the index as [`new`](Self::new) does, for a map whose edges are the antimeridian. A region that has a
    /// point at 180 degrees east also has the point of the same latitude at 180 degrees west, and vice versa.
    pub fn on_map(shapes: &[Shape]) -> Self {
        Self::build(shapes, copies_at_opposite_map_edge)
    }

    /// Builds the index. `more_edges` returns the edges that a region has besides those of its rings.
    fn build(shapes: &[Shape], more_edges: impl Fn(&[Edge]) -> Vec<Edge>) -> Self {
        let mut edges = Vec::new();
        let mut ends = Vec::with_capacity(shapes.len());
        for shape in shapes {
            let start = edges.len();
            for (ring, is_hole) in shape.rings() {
                edge::add_ring(ring, is_hole, &mut edges);
            }
            let more = edges.get(start..).map(&more_edges);
            edges.extend(more.unwrap_or_default());
            ends.push(edges.len());
        }
        Self {
            tree: Quadtree::build(edges, &ends),
            regions: shapes.len(),
        }
    }

    /// Returns a locator, which finds the regions of points. Each thread needs its own. A locator remembers the leaf of
    /// the previous point, so points near the previous point are found faster.
    pub fn locator(&self) -> Locator<'_> {
        Locator {
            tree: &self.tree,
            cell: EMPTY_CELL,
            set: 0,
            parts: &[],
        }
    }

    /// Returns the regions that contain a point, in ascending order. A [`Locator`] is faster for many points.
    pub fn regions_of(&self, point: Point) -> Vec<u32> {
        let mut regions = Vec::new();
        let set = self.locator().at(point.lat_e7, point.lon_e7, &mut regions);
        let covering = self.sets().get(set as usize);
        regions.extend(covering.into_iter().flatten());
        regions.sort_unstable();
        regions
    }

    /// Returns the sets of regions to which [`Locator::at`] refers by index. Each set is in ascending order, no two
    /// sets are equal, and the first is empty.
    pub fn sets(&self) -> &[Vec<u32>] {
        &self.tree.sets
    }

    /// Returns the approximate memory usage of the index in bytes.
    pub fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// Returns the regions that contain a box, and the other regions that may share a point with
    /// it. A box with a minimum above its maximum is empty, and no region contains or touches it.
    pub fn cover(&self, bbox: &Bbox) -> Cover {
        if bbox.is_empty() || bbox.min_lon_e7 > bbox.max_lon_e7 {
            return Cover::default();
        }
        let contacts = self.contacts(bbox);
        let is_flat = bbox.min_lat_e7 == bbox.max_lat_e7 || bbox.min_lon_e7 == bbox.max_lon_e7;
        let inside = if is_flat {
            self.regions_around_flat_box(bbox, &contacts)
        } else {
            self.enclosing_regions(bbox, &contacts)
        };
        let touched = (0u32..).zip(&contacts).filter(|&(region, &contact)| {
            contact > EdgeContact::None && inside.binary_search(&region).is_err()
        });
        Cover {
            touched: touched.map(|(region, _)| region).collect(),
            inside,
        }
    }

    /// Whether any region may share a point with a box.
    pub fn meets(&self, bbox: &Bbox) -> bool {
        let cover = self.cover(bbox);
        !cover.inside.is_empty() || !cover.touched.is_empty()
    }

    /// Returns the kind of contact between each region and a box.
    fn contacts(&self, bbox: &Bbox) -> Vec<EdgeContact> {
        let mut contacts = vec![EdgeContact::None; self.regions];
        let bounds = HalfUnitBox {
            min: HalfUnitPoint::of(south_west_corner(bbox)),
            max: HalfUnitPoint::of(Point::new(bbox.max_lat_e7, bbox.max_lon_e7)),
        };
        let mut pending = vec![(0usize, self.tree.root)];
        while let Some((number, cell)) = pending.pop() {
            let cell_bounds = cell.bounds();
            if !boxes_overlap(&cell_bounds, &bounds) {
                continue;
            }
            let is_within = is_within(&cell_bounds, &bounds);
            match self.tree.nodes[number] {
                QuadtreeNode::Inner {
                    quarters,
                    first,
                    end,
                } => {
                    let groups = self.tree.crossing_in(first..end);
                    if is_within {
                        for &group in groups {
                            raise_contact(&mut contacts, group, EdgeContact::Inside);
                        }
                    } else if groups
                        .iter()
                        .any(|&group| has_no_inner_edge(&contacts, group))
                    {
                        let quarters = quarters as usize..;
                        pending.extend(quarters.zip(cell.quarters()));
                    }
                }
                QuadtreeNode::Leaf(leaf) => {
                    for part in self.tree.group_edges_of(leaf) {
                        if is_within {
                            raise_contact(&mut contacts, part.group, EdgeContact::Inside);
                        } else if has_no_inner_edge(&contacts, part.group) {
                            let contact = self.edge_contact_with_box(part, &bounds);
                            raise_contact(&mut contacts, part.group, contact);
                        }
                    }
                }
            }
        }
        contacts
    }

    /// Returns the kind of contact between a box and the edges of one group in a leaf.
    fn edge_contact_with_box(&self, part: &GroupEdges, bounds: &HalfUnitBox) -> EdgeContact {
        let mut contact = EdgeContact::None;
        for edge in self.tree.edges_of(part) {
            if edge.meets_inside(bounds) {
                return EdgeContact::Inside;
            }
            if contact == EdgeContact::None && edge.meets(bounds) {
                contact = EdgeContact::Border;
            }
        }
        contact
    }

    /// Returns the regions that contain a box with an area. If no edge of a region meets the interior of the box, the
    /// region contains all of the interior or none of it, so one interior point decides.
    fn enclosing_regions(&self, bbox: &Bbox, contacts: &[EdgeContact]) -> Vec<u32> {
        let corner = HalfUnitPoint::of(south_west_corner(bbox));
        let point = HalfUnitPoint::new(corner.x + 1, corner.y + 1);
        let mut regions = self.regions_at_corner(bbox, |cell, part| {
            has_no_inner_edge(contacts, part.group) && self.tree.winding_at(cell, part, point) > 0
        });
        regions.retain(|&region| has_no_inner_edge(contacts, region));
        regions
    }

    /// Returns the regions that contain a box without an area. Such a box is a point or a line. If it is a line,
    /// regions with an edge that meets the line are omitted.
    fn regions_around_flat_box(&self, bbox: &Bbox, contacts: &[EdgeContact]) -> Vec<u32> {
        let point = south_west_corner(bbox);
        let is_point = bbox.max_lat_e7 == point.lat_e7 && bbox.max_lon_e7 == point.lon_e7;
        let mut regions =
            self.regions_at_corner(bbox, |cell, part| self.tree.contains(cell, part, point));
        regions.retain(|&region| is_point || contacts[region as usize] == EdgeContact::None);
        regions
    }

    /// Finds the leaf that contains the south-western corner of a box. Returns the regions that cover the whole leaf,
    /// and those regions with edges in the leaf for which `is_held` returns true. The regions are in ascending order.
    fn regions_at_corner(
        &self,
        bbox: &Bbox,
        is_held: impl Fn(&Cell, &GroupEdges) -> bool,
    ) -> Vec<u32> {
        let (x, y) = (i64::from(bbox.min_lon_e7), i64::from(bbox.min_lat_e7));
        let Some((cell, leaf)) = self.tree.leaf_at(x, y) else {
            return Vec::new();
        };
        let parts = self.tree.group_edges_of(leaf).iter();
        let held = parts.filter(|part| is_held(&cell, part));
        let mut regions: Vec<u32> = held.map(|part| part.group).collect();
        regions.extend(&self.tree.sets[leaf.set as usize]);
        regions.sort_unstable();
        regions
    }
}

/// Returns copies of the points that a region's edges have on the antimeridian, moved to the opposite edge of the map.
/// Each copy is an edge without a length, or a pair of an edge and its reverse, so the copies do not change winding
/// numbers.
fn copies_at_opposite_map_edge(edges: &[Edge]) -> Vec<Edge> {
    let mut others = Vec::new();
    for edge in edges.iter().filter(|edge| is_on_antimeridian(edge.from)) {
        let from = point_at_opposite_map_edge(edge.from);
        if edge.to.lon_e7 == edge.from.lon_e7 {
            let to = point_at_opposite_map_edge(edge.to);
            others.extend([Edge { from, to }, Edge { from: to, to: from }]);
        } else {
            others.push(Edge { from, to: from });
        }
    }
    others
}

fn south_west_corner(bbox: &Bbox) -> Point {
    Point::new(bbox.min_lat_e7, bbox.min_lon_e7)
}

fn boxes_overlap(a: &HalfUnitBox, b: &HalfUnitBox) -> bool {
    a.min.x <= b.max.x && b.min.x <= a.max.x && a.min.y <= b.max.y && b.min.y <= a.max.y
}

fn is_within(a: &HalfUnitBox, b: &HalfUnitBox) -> bool {
    a.min.x >= b.min.x && a.max.x <= b.max.x && a.min.y >= b.min.y && a.max.y <= b.max.y
}

fn has_no_inner_edge(contacts: &[EdgeContact], region: u32) -> bool {
    contacts[region as usize] < EdgeContact::Inside
}

/// Sets the contact of a region, unless a closer contact is known.
fn raise_contact(contacts: &mut [EdgeContact], region: u32, contact: EdgeContact) {
    let known = &mut contacts[region as usize];
    *known = contact.max(*known);
}

/// A cell that contains no point, because its longitude is beyond the range of `i32`.
const EMPTY_CELL: Cell = Cell {
    x: i64::MAX / 2,
    y: 0,
    level: 0,
};

/// Finds the regions that contain points. Created by [`AreaIndex::locator`].
#[derive(Debug, Clone)]
pub struct Locator<'a> {
    tree: &'a Quadtree,
    /// The leaf of the previous point.
    cell: Cell,
    set: u32,
    parts: &'a [GroupEdges],
}

impl Locator<'_> {
    /// Finds the regions that contain a point, given in 1e-7 degree. Returns the index in [`AreaIndex::sets`] of the
    /// set of regions that cover the whole leaf of the point. Clears `partial` and adds to it, in ascending order, the
    /// other regions that contain the point. No region is in both the set and `partial`.
    #[inline]
    pub fn at(&mut self, lat_e7: i32, lon_e7: i32, partial: &mut Vec<u32>) -> u32 {
        partial.clear();
        let (x, y) = (i64::from(lon_e7), i64::from(lat_e7));
        if !self.cell.holds(x, y) && !self.move_to_leaf_of(x, y) {
            return 0;
        }
        if !self.parts.is_empty() {
            let point = Point { lat_e7, lon_e7 };
            let tree = self.tree;
            let held = self
                .parts
                .iter()
                .filter(|part| tree.contains(&self.cell, part, point));
            partial.extend(held.map(|part| part.group));
        }
        self.set
    }

    /// Whether a point is known to lie in the same regions as the last point, because both lie in the same leaf and the
    /// leaf has no edges.
    #[inline]
    pub fn is_in_last_leaf(&self, lat_e7: i32, lon_e7: i32) -> bool {
        self.parts.is_empty() && self.cell.holds(i64::from(lon_e7), i64::from(lat_e7))
    }

    /// Moves to the leaf of a point and returns true. If the point lies outside of the tree, leaves the locator without
    /// a leaf and returns false.
    fn move_to_leaf_of(&mut self, x: i64, y: i64) -> bool {
        let Some((cell, leaf)) = self.tree.leaf_at(x, y) else {
            self.cell = EMPTY_CELL;
            return false;
        };
        let Leaf { set, .. } = leaf;
        self.cell = cell;
        self.set = set;
        self.parts = self.tree.group_edges_of(leaf);
        true
    }
}
