//! Edges of rings and the exact predicates on them.
//!
//! Longitude is x and latitude is y. Coordinates are counted in half units of 1e-7 degree. Vertices of rings have even
//! coordinates and borders of cells have odd ones, so no vertex lies on a border. The sum of two products of coordinate
//! differences needs 67 bits and a sign; `i128` holds it, and a product is one multiplication on 64-bit machines.

use super::shape::{Point, Ring};

/// A point in half units of 1e-7 degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfUnitPoint {
    /// Twice the longitude.
    pub x: i64,
    /// Twice the latitude.
    pub y: i64,
}

/// A closed box in half units.
#[derive(Debug, Clone, Copy)]
pub struct HalfUnitBox {
    /// The corner in the south-west.
    pub min: HalfUnitPoint,
    /// The corner in the north-east.
    pub max: HalfUnitPoint,
}

/// A directed edge. [`add_ring`] directs edges so that the polygon lies on the left of each edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The start of the edge.
    pub from: Point,
    /// The end of the edge.
    pub to: Point,
}

/// The relation between two edges, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeRelation {
    /// The edges share no point.
    Apart,
    /// The edges share at least one point, but do not cross, because an end of one lies on the other.
    Touching,
    /// The edges share one point, which is an end of neither.
    Crossing,
}

impl HalfUnitPoint {
    pub(crate) const fn new(x: i64, y: i64) -> Self {
        Self { x, y }
    }

    /// Converts a point from units of 1e-7 degree.
    #[inline]
    pub fn of(point: Point) -> Self {
        Self {
            x: 2 * i64::from(point.lon_e7),
            y: 2 * i64::from(point.lat_e7),
        }
    }
}

impl Edge {
    pub(crate) const fn new(from: Point, to: Point) -> Self {
        Self { from, to }
    }

    /// Whether both ends of the edge are the same point.
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Returns the longitude of the end minus that of the start, in 1e-7 degree.
    #[inline]
    pub fn width(&self) -> i64 {
        i64::from(self.to.lon_e7) - i64::from(self.from.lon_e7)
    }

    /// Returns the latitude of the end minus that of the start, in 1e-7 degree.
    #[inline]
    pub fn height(&self) -> i64 {
        i64::from(self.to.lat_e7) - i64::from(self.from.lat_e7)
    }

    /// Returns the side of the edge on which a point lies. Positive is left, negative is right, and zero is on the line
    /// of the edge.
    #[inline]
    pub fn side(&self, point: HalfUnitPoint) -> i128 {
        let from = HalfUnitPoint::of(self.from);
        i128::from(self.width()) * i128::from(point.y - from.y)
            - i128::from(self.height()) * i128::from(point.x - from.x)
    }

    /// Whether a point lies on the edge, ends included.
    #[inline]
    pub fn holds(&self, point: Point) -> bool {
        let (a, b) = (self.from, self.to);
        point.lon_e7 >= a.lon_e7.min(b.lon_e7)
            && point.lon_e7 <= a.lon_e7.max(b.lon_e7)
            && point.lat_e7 >= a.lat_e7.min(b.lat_e7)
            && point.lat_e7 <= a.lat_e7.max(b.lat_e7)
            && self.side(HalfUnitPoint::of(point)) == 0
    }

    /// Returns the contribution of this edge to the change of the winding number along a path that
    /// runs straight up from `start`, then straight right to `end`.
    ///
    /// Both points count as infinitesimally above their coordinates, so no vertex lies on the horizontal leg. `start`
    /// must be a corner of a cell, so no vertex lies on the vertical leg. `end` must be neither west nor south of
    /// `start`. `end` may lie on the edge only if the coordinates of `end` are odd, as for corners of cells.
    #[inline]
    pub fn winding_between(&self, start: HalfUnitPoint, end: HalfUnitPoint) -> i32 {
        let (a, b) = (HalfUnitPoint::of(self.from), HalfUnitPoint::of(self.to));
        if a.y.min(b.y) > end.y
            || a.x.min(b.x) > end.x
            || a.x.max(b.x) < start.x
            || a.y.max(b.y) < start.y
        {
            return 0;
        }
        let turn = HalfUnitPoint::new(start.x, end.y);
        let mut winding = self.winding_up(start, turn);
        if self.is_crossed_at(end.y) && self.is_east_of_point(turn) {
            let ends_left = a.x.max(b.x) >= end.x && self.is_point_west(end);
            if !ends_left {
                winding += self.winding_eastwards();
            }
        }
        winding
    }

    /// Returns by how much this edge changes the winding number along a path straight up from `start` to `turn`.
    #[inline]
    pub fn winding_up(&self, start: HalfUnitPoint, turn: HalfUnitPoint) -> i32 {
        let (a, b) = (HalfUnitPoint::of(self.from), HalfUnitPoint::of(self.to));
        if (a.x < start.x) == (b.x < start.x) {
            return 0;
        }
        let direction = if a.x < b.x { 1 } else { -1 };
        let is_above = |point| self.side(point) * i128::from(direction) >= 0;
        if is_above(turn) && !is_above(start) {
            direction
        } else {
            0
        }
    }

    /// Returns by how much the winding number changes where a path crosses the edge from west to east.
    #[inline]
    pub fn winding_eastwards(&self) -> i32 {
        if self.height() > 0 { -1 } else { 1 }
    }

    /// Whether the edge crosses the horizontal line infinitesimally above `y`.
    #[inline]
    pub fn is_crossed_at(&self, y: i64) -> bool {
        (HalfUnitPoint::of(self.from).y <= y) != (HalfUnitPoint::of(self.to).y <= y)
    }

    /// Whether a ray from a point to the east crosses the edge. If a ring passes from one side of the ray to the other
    /// at a corner on the ray, the ray crosses exactly one of the two edges that meet at this corner.
    #[inline]
    pub fn crosses_ray_east_of(&self, point: Point) -> bool {
        let point = HalfUnitPoint::of(point);
        self.is_crossed_at(point.y) && self.is_east_of_point(point)
    }

    /// Whether the edge lies east of a point. The edge must cross the horizontal line just above the point
    /// ([`Edge::is_crossed_at`]).
    #[inline]
    pub fn is_east_of_point(&self, point: HalfUnitPoint) -> bool {
        HalfUnitPoint::of(self.from)
            .x
            .min(HalfUnitPoint::of(self.to).x)
            > point.x
            || self.is_point_west(point)
    }

    /// Whether the point infinitesimally above `point` lies west of the line of the edge.
    #[inline]
    fn is_point_west(&self, point: HalfUnitPoint) -> bool {
        let upwards = if self.height() > 0 { 1 } else { -1 };
        let side = self.side(point) * upwards;
        side > 0 || (side == 0 && self.width() * upwards as i64 > 0)
    }

    /// Whether the edge shares a point with a closed box.
    #[inline]
    pub fn meets(&self, bounds: &HalfUnitBox) -> bool {
        let (a, b) = (HalfUnitPoint::of(self.from), HalfUnitPoint::of(self.to));
        if a.x.max(b.x) < bounds.min.x
            || a.x.min(b.x) > bounds.max.x
            || a.y.max(b.y) < bounds.min.y
            || a.y.min(b.y) > bounds.max.y
        {
            return false;
        }
        let (least, most) = self.side_range(bounds);
        least <= 0 && most >= 0
    }

    /// Whether the edge shares a point with the interior of a box.
    pub fn meets_inside(&self, bounds: &HalfUnitBox) -> bool {
        let (a, b) = (HalfUnitPoint::of(self.from), HalfUnitPoint::of(self.to));
        if a.x.max(b.x) <= bounds.min.x
            || a.x.min(b.x) >= bounds.max.x
            || a.y.max(b.y) <= bounds.min.y
            || a.y.min(b.y) >= bounds.max.y
        {
            return false;
        }
        let (least, most) = self.side_range(bounds);
        least < 0 && most > 0
    }

    /// Returns the minimum and the maximum of [`Edge::side`] over the corners of a box.
    #[inline]
    fn side_range(&self, bounds: &HalfUnitBox) -> (i128, i128) {
        let (low, high) = if self.width() >= 0 {
            (bounds.min.y, bounds.max.y)
        } else {
            (bounds.max.y, bounds.min.y)
        };
        let (left, right) = if self.height() >= 0 {
            (bounds.min.x, bounds.max.x)
        } else {
            (bounds.max.x, bounds.min.x)
        };
        let least = self.side(HalfUnitPoint { x: right, y: low });
        let most = self.side(HalfUnitPoint { x: left, y: high });
        (least, most)
    }

    /// Returns the relation of this edge to another.
    pub fn relation_to(&self, other: &Self) -> EdgeRelation {
        let apart = |a: (i32, i32), b: (i32, i32)| a.0.max(a.1) < b.0.min(b.1);
        let lons = |edge: &Self| (edge.from.lon_e7, edge.to.lon_e7);
        let lats = |edge: &Self| (edge.from.lat_e7, edge.to.lat_e7);
        if apart(lons(self), lons(other))
            || apart(lons(other), lons(self))
            || apart(lats(self), lats(other))
            || apart(lats(other), lats(self))
        {
            return EdgeRelation::Apart;
        }
        let sides = |edge: &Self, of: &Self| {
            let from = edge.side(HalfUnitPoint::of(of.from)).signum();
            let to = edge.side(HalfUnitPoint::of(of.to)).signum();
            from * to
        };
        let (there, here) = (sides(self, other), sides(other, self));
        if there > 0 || here > 0 {
            EdgeRelation::Apart
        } else if there < 0 && here < 0 {
            EdgeRelation::Crossing
        } else {
            EdgeRelation::Touching
        }
    }

    /// Whether two edges form a spike: they lie on one line and run in opposite directions. The edges must share an
    /// end. An empty edge counts as opposite to every edge.
    pub fn forms_spike_with(&self, other: &Self) -> bool {
        let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
        let (width, height) = (other.width(), other.height());
        product(self.width(), height) == product(self.height(), width)
            && product(self.width(), width) + product(self.height(), height) <= 0
    }
}

/// Tells whether edges enclose a point, by the even-odd rule. Points on an edge are enclosed.
#[derive(Debug)]
pub struct Enclosure {
    point: Point,
    is_inside: bool,
    is_on_edge: bool,
}

impl Enclosure {
    /// Begins the test of a point. Without edges, the point is not enclosed.
    pub fn of(point: Point) -> Self {
        Self {
            point,
            is_inside: false,
            is_on_edge: false,
        }
    }

    /// Adds an edge.
    #[inline]
    pub fn add(&mut self, edge: &Edge) {
        self.is_on_edge |= edge.holds(self.point);
        self.is_inside ^= edge.crosses_ray_east_of(self.point);
    }

    /// Whether the point is on one of the edges, so that further edges do not matter.
    pub const fn is_on_edge(&self) -> bool {
        self.is_on_edge
    }

    /// Whether the edges enclose the point.
    pub const fn holds(&self) -> bool {
        self.is_inside || self.is_on_edge
    }
}

/// Appends the edges of a ring in the order of its points. The last edge closes the ring. An edge is reversed if the
/// area of the polygon would otherwise lie on its right. The area lies inside of an outer ring, and outside of a hole.
pub fn add_ring(ring: &Ring, is_hole: bool, edges: &mut Vec<Edge>) {
    let reversed = (doubled_area(&ring.points) < 0) != is_hole;
    let ends = ring.points.iter().cycle().skip(1);
    edges.extend(ring.points.iter().zip(ends).map(|(&from, &to)| {
        if reversed {
            Edge { from: to, to: from }
        } else {
            Edge { from, to }
        }
    }));
}

/// Returns twice the signed area of a ring, in squared units of 1e-7 degree. The area of a clockwise ring is negative.
pub fn doubled_area(points: &[Point]) -> i128 {
    let Some(&origin) = points.first() else {
        return 0;
    };
    let next = points.iter().skip(1);
    points.iter().zip(next).fold(0, |area, (&a, &b)| {
        let to_a = Edge::new(origin, a);
        let to_b = Edge::new(origin, b);
        let cross = i128::from(to_a.width()) * i128::from(to_b.height())
            - i128::from(to_a.height()) * i128::from(to_b.width());
        area + cross
    })
}
