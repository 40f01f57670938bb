//! Which of many regions hold a point, or a box.

use super::edge;
use super::edge::{HalfUnitBox, HalfUnitPoint};
use super::quadtree::{Cell, Leaf, Node, Quadtree, RegionEdges};
use super::shape::{Point, Shape};
use crate::osm::Bbox;

/// Regions prepared for questions. Regions are numbered as they were given; what lies on an edge of a
/// region, of a hole too, belongs to it. Answers are exact. [`Shape::check`] tells whether a shape
/// means something; one that does not is answered for by the winding numbers of its rings.
#[derive(Debug)]
pub struct AreaIndex {
    tree: Quadtree,
    regions: usize,
}

/// What regions have to do with a box. Both lists ascend and share nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cover {
    /// Regions that hold all of the box.
    pub inside: Vec<u32>,
    /// Other regions that may share a point with the box; none that does is missing.
    pub touched: Vec<u32>,
}

/// How edges of a region lie to a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Contact {
    /// No edge meets the box.
    None,
    /// Edges meet its border alone.
    Border,
    /// An edge runs within it.
    Inside,
}

impl AreaIndex {
    /// Prepares regions.
    pub fn new(shapes: &[Shape]) -> Self {
        let mut edges = Vec::new();
        let mut ends = Vec::with_capacity(shapes.len());
        for shape in shapes {
            for (ring, is_hole) in shape.rings() {
                edge::add_ring(ring, is_hole, &mut edges);
            }
            ends.push(edges.len());
        }
        Self {
            tree: Quadtree::build(edges, &ends),
            regions: shapes.len(),
        }
    }

    /// What finds the regions of points. Each thread has its own; points near the last are found faster.
    pub fn locator(&self) -> Locator<'_> {
        Locator {
            tree: &self.tree,
            cell: NOWHERE,
            set: 0,
            parts: &[],
        }
    }

    /// The sets of regions that [`Locator::at`] names, each ascending, all different. The first is empty.
    pub fn sets(&self) -> &[Vec<u32>] {
        &self.tree.sets
    }

    /// About how much memory it takes, in bytes.
    pub fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// Which regions hold all of a box, and which others may share a point with it. A box whose least
    /// coordinates are above its greatest holds nothing, so no region touches it.
    pub fn cover(&self, bbox: &Bbox) -> Cover {
        if bbox.is_empty() || bbox.min_lon_e7 > bbox.max_lon_e7 {
            return Cover::default();
        }
        let contacts = self.contacts(bbox);
        let is_flat = bbox.min_lat_e7 == bbox.max_lat_e7 || bbox.min_lon_e7 == bbox.max_lon_e7;
        let inside = if is_flat {
            self.inside_flat(bbox, &contacts)
        } else {
            self.inside(bbox, &contacts)
        };
        let touched = (0u32..).zip(&contacts).filter(|&(region, &contact)| {
            contact > Contact::None && inside.binary_search(&region).is_err()
        });
        Cover {
            touched: touched.map(|(region, _)| region).collect(),
            inside,
        }
    }

    /// Whether a region may share a point with a box.
    pub fn meets(&self, bbox: &Bbox) -> bool {
        let cover = self.cover(bbox);
        !cover.inside.is_empty() || !cover.touched.is_empty()
    }

    /// How the edges of each region lie to a box.
    fn contacts(&self, bbox: &Bbox) -> Vec<Contact> {
        let mut contacts = vec![Contact::None; self.regions];
        let bounds = HalfUnitBox {
            min: HalfUnitPoint::of(corner_of(bbox)),
            max: HalfUnitPoint::of(Point {
                lat_e7: bbox.max_lat_e7,
                lon_e7: bbox.max_lon_e7,
            }),
        };
        let mut pending = vec![(0usize, self.tree.root)];
        while let Some((number, cell)) = pending.pop() {
            let cell_bounds = cell.bounds();
            if !overlap(&cell_bounds, &bounds) {
                continue;
            }
            let is_within = is_within(&cell_bounds, &bounds);
            match self.tree.nodes.get(number) {
                Some(&Node::Inner {
                    quarters,
                    first,
                    end,
                }) => {
                    let groups = self.tree.crossing_in(first..end);
                    if is_within {
                        for &group in groups {
                            mark(&mut contacts, group, Contact::Inside);
                        }
                    } else if groups.iter().any(|&group| is_open(&contacts, group)) {
                        let quarters = quarters as usize..;
                        pending.extend(quarters.zip(cell.quarters()));
                    }
                }
                Some(&Node::Leaf(leaf)) => {
                    for part in self.tree.parts_of(leaf) {
                        if is_within {
                            mark(&mut contacts, part.group, Contact::Inside);
                        } else if is_open(&contacts, part.group) {
                            let contact = self.contact_of(part, &bounds);
                            mark(&mut contacts, part.group, contact);
                        }
                    }
                }
                None => {}
            }
        }
        contacts
    }

    /// How the edges of a part lie to a box.
    fn contact_of(&self, part: &RegionEdges, bounds: &HalfUnitBox) -> Contact {
        let mut contact = Contact::None;
        for edge in self.tree.edges_of(part) {
            if edge.meets_inside(bounds) {
                return Contact::Inside;
            }
            if contact == Contact::None && edge.meets(bounds) {
                contact = Contact::Border;
            }
        }
        contact
    }

    /// The regions that hold a box with an area: without an edge within it, it is held all or not at
    /// all, and any point within it tells which.
    fn inside(&self, bbox: &Bbox, contacts: &[Contact]) -> Vec<u32> {
        let corner = HalfUnitPoint::of(corner_of(bbox));
        let point = HalfUnitPoint {
            x: corner.x + 1,
            y: corner.y + 1,
        };
        let mut regions = self.regions_at(bbox, |cell, part| {
            is_open(contacts, part.group) && self.tree.winding_at(cell, part, point) > 0
        });
        regions.retain(|&region| is_open(contacts, region));
        regions
    }

    /// The regions that hold a box that is a point, or a line that no edge meets.
    fn inside_flat(&self, bbox: &Bbox, contacts: &[Contact]) -> Vec<u32> {
        let point = corner_of(bbox);
        let is_point = bbox.max_lat_e7 == point.lat_e7 && bbox.max_lon_e7 == point.lon_e7;
        let mut regions = self.regions_at(bbox, |cell, part| self.tree.contains(cell, part, point));
        regions.retain(|&region| is_point || contact_of(contacts, region) == Contact::None);
        regions
    }

    /// The regions that cover the leaf with the south-western corner of a box, and those with edges in
    /// the leaf that `is_held` accepts.
    fn regions_at(&self, bbox: &Bbox, is_held: impl Fn(&Cell, &RegionEdges) -> bool) -> Vec<u32> {
        let (x, y) = (i64::from(bbox.min_lon_e7), i64::from(bbox.min_lat_e7));
        let Some((cell, leaf)) = self.tree.leaf_at(x, y) else {
            return Vec::new();
        };
        let parts = self.tree.parts_of(leaf).iter();
        let held = parts.filter(|part| is_held(&cell, part));
        let mut regions: Vec<u32> = held.map(|part| part.group).collect();
        let covering = self.tree.sets.get(leaf.set as usize);
        regions.extend(covering.into_iter().flatten());
        regions.sort_unstable();
        regions
    }
}

fn corner_of(bbox: &Bbox) -> Point {
    Point {
        lat_e7: bbox.min_lat_e7,
        lon_e7: bbox.min_lon_e7,
    }
}

fn overlap(a: &HalfUnitBox, b: &HalfUnitBox) -> bool {
    a.min.x <= b.max.x && b.min.x <= a.max.x && a.min.y <= b.max.y && b.min.y <= a.max.y
}

fn is_within(a: &HalfUnitBox, b: &HalfUnitBox) -> bool {
    a.min.x >= b.min.x && a.max.x <= b.max.x && a.min.y >= b.min.y && a.max.y <= b.max.y
}

fn contact_of(contacts: &[Contact], region: u32) -> Contact {
    contacts
        .get(region as usize)
        .copied()
        .unwrap_or(Contact::None)
}

fn is_open(contacts: &[Contact], region: u32) -> bool {
    contact_of(contacts, region) < Contact::Inside
}

fn mark(contacts: &mut [Contact], region: u32, contact: Contact) {
    if let Some(known) = contacts.get_mut(region as usize) {
        *known = contact.max(*known);
    }
}

/// No point lies in this one.
const NOWHERE: Cell = Cell {
    x: i64::MAX / 2,
    y: 0,
    level: 0,
};

/// Finds the regions of points, see [`AreaIndex::locator`].
#[derive(Debug, Clone)]
pub struct Locator<'a> {
    tree: &'a Quadtree,
    /// The leaf of the last point.
    cell: Cell,
    set: u32,
    parts: &'a [RegionEdges],
}

impl Locator<'_> {
    /// The regions of a point, given in 1e-7 degree: those of [`AreaIndex::sets`] with the number
    /// returned, and those in `partial`, which is cleared and then ascends. The two share nothing.
    #[inline]
    pub fn at(&mut self, lat_e7: i32, lon_e7: i32, partial: &mut Vec<u32>) -> u32 {
        partial.clear();
        let (x, y) = (i64::from(lon_e7), i64::from(lat_e7));
        if !self.cell.holds(x, y) && !self.enter(x, y) {
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

    /// Whether a point has the regions of the last one, as far as that is known without asking: both lie
    /// in one cell, and no edge does.
    #[inline]
    pub fn stays_at(&self, lat_e7: i32, lon_e7: i32) -> bool {
        self.parts.is_empty() && self.cell.holds(i64::from(lon_e7), i64::from(lat_e7))
    }

    /// Goes to the leaf of a point, or nowhere where that is outside of the tree.
    fn enter(&mut self, x: i64, y: i64) -> bool {
        let Some((cell, leaf)) = self.tree.leaf_at(x, y) else {
            self.cell = NOWHERE;
            return false;
        };
        let Leaf { set, .. } = leaf;
        self.cell = cell;
        self.set = set;
        self.parts = self.tree.parts_of(leaf);
        true
    }
}
