//! Checks the validity of shapes. Finds rings that have no area, rings that cross themselves or each other, and holes
//! outside of their outer ring.
//!
//! Rings may touch, in points and along edges. They may have spikes, which run back on themselves. The check has two
//! steps:
//!
//! 1. No two edges of a polygon may cross. Only edges in the same leaf of a quadtree are compared.
//! 2. The winding number of the polygon must be 0 (outside) or 1 (inside) on both sides of each edge, at its lower end
//!    and at its middle. This finds rings that cross at a vertex, and misplaced holes. Winding numbers are constant
//!    along a ring that touches nothing, so one edge of that ring is enough.

use super::edge;
use super::edge::{Edge, EdgeRelation, HalfUnitPoint};
use super::quadtree::{Cell, Leaf, Quadtree};
use super::shape::{Point, Ring, Shape, ShapeError};
use crate::osm::{DECIMICRO_PER_DEGREE, format_e7};

impl Shape {
    /// Checks each of the polygons. Different polygons may overlap.
    ///
    /// # Errors
    /// Looks for these kinds of errors in this order, and returns the first error that it finds: a ring with too few
    /// points, without an area, or with a point out of range; an edge that crosses another edge of its polygon; an edge
    /// of a hole that lies outside of the outer ring; an edge with a winding number other than 0 and 1 on one of its
    /// sides.
    pub fn check(&self) -> Result<(), ShapeError> {
        for (ring, _) in self.rings() {
            check_points(ring)?;
        }
        let polygons = Polygons::of(self);
        let meetings = polygons.find_contacts();
        if let Some((edge, other)) = meetings.first_crossing {
            return Err(polygons.crossing_error(edge, other));
        }
        match polygons.first_wrong_winding(&meetings.touched) {
            Some((edge, winding)) => Err(polygons.winding_error(edge, winding)),
            None => Ok(()),
        }
    }
}

impl Shape {
    /// Returns the shape if [`check`](Self::check) accepts it. Otherwise returns the message of the error.
    pub(crate) fn checked(self) -> Result<Self, String> {
        self.check().map_err(|error| error.to_string())?;
        Ok(self)
    }
}

/// Checks that the points of a ring are in range and do not all lie on one line.
fn check_points(ring: &Ring) -> Result<(), ShapeError> {
    let error = |vertex, cause: String| {
        let ring = ring.name.clone();
        Err(ShapeError {
            ring,
            vertex,
            cause,
        })
    };
    for (vertex, point) in (1..).zip(&ring.points) {
        for (name, value, limit) in [
            ("latitude", point.lat_e7, 90),
            ("longitude", point.lon_e7, 180),
        ] {
            if i64::from(value).abs() > limit * DECIMICRO_PER_DEGREE {
                let degrees = format_e7(value);
                let cause = format!("{name} {degrees} is beyond {limit} degrees");
                return error(Some(vertex), cause);
            }
        }
    }
    let mut points = ring.points.iter().copied();
    let Some(first) = points.next() else {
        return error(None, "is empty".into());
    };
    let Some(second) = points.find(|&point| point != first) else {
        return error(None, "has fewer than three different points".into());
    };
    let line = Edge::new(first, second);
    let mut others = points.filter(|&point| point != first && point != second);
    let Some(third) = others.next() else {
        return error(None, "has fewer than three different points".into());
    };
    let mut others = std::iter::once(third).chain(others);
    if others.all(|point| line.side(HalfUnitPoint::of(point)) == 0) {
        return error(None, "has no area: its points lie on one line".into());
    }
    Ok(())
}

/// The polygons of a shape. In the tree, each polygon is a group of edges. Edges are numbered over all rings, and
/// within a ring in the order of its points. The first edge of a ring joins vertices 1 and 2.
struct Polygons<'a> {
    tree: Quadtree,
    /// Each ring, with the number of its first edge, and with a flag that is true for a hole.
    rings: Vec<(usize, &'a Ring, bool)>,
    /// For each polygon, the number of its last edge plus one.
    ends: Vec<usize>,
}

/// An edge, and its range from `least` to `most` along the direction of the sweep.
struct SweepEdge {
    least: i64,
    most: i64,
    number: u32,
    edge: Edge,
}

/// The crossings and contacts between edges of the same polygon.
struct Contacts {
    /// The first edge that crosses another edge of its polygon, and the other edge.
    first_crossing: Option<(u32, u32)>,
    /// For each ring, whether it touches itself or another ring of its polygon.
    touched: Vec<bool>,
}

impl<'a> Polygons<'a> {
    fn of(shape: &'a Shape) -> Self {
        let mut edges = Vec::new();
        let mut rings = Vec::new();
        let mut ends = Vec::new();
        for polygon in &shape.polygons {
            let holes = polygon.holes.iter().map(|hole| (hole, true));
            for (ring, is_hole) in std::iter::once((&polygon.outer, false)).chain(holes) {
                rings.push((edges.len(), ring, is_hole));
                edge::add_ring(ring, is_hole, &mut edges);
            }
            ends.push(edges.len());
        }
        Self {
            tree: Quadtree::build(edges, &ends),
            rings,
            ends,
        }
    }

    /// Returns the index of the ring to which an edge belongs.
    fn ring_of(&self, edge: usize) -> usize {
        self.rings.partition_point(|&(first, ..)| first <= edge) - 1
    }

    /// Returns the name of the ring of an edge, the number of the vertex at which the edge starts, and whether the ring
    /// is a hole. The first vertex has the number 1.
    fn ring_and_vertex_of_edge(&self, edge: usize) -> (&str, usize, bool) {
        let (first, ring, is_hole) = self.rings[self.ring_of(edge)];
        (&ring.name, edge + 1 - first, is_hole)
    }

    /// Finds the crossings and contacts between edges of the same polygon.
    fn find_contacts(&self) -> Contacts {
        let mut meetings = Contacts {
            first_crossing: None,
            touched: vec![false; self.rings.len()],
        };
        let mut spans = Vec::new();
        for part in &self.tree.parts {
            self.collect_spans(self.tree.edge_indices_of(part), &mut spans);
            let mut rest = spans.as_slice();
            while let Some((span, others)) = rest.split_first() {
                rest = others;
                for other in others.iter().take_while(|other| other.least <= span.most) {
                    self.record_contact(span, other, &mut meetings);
                }
            }
        }
        meetings
    }

    /// Collects the [`SweepEdge`] of each edge into `spans`, sorted by `least`. The sweep runs perpendicular to the
    /// longest edge.
    fn collect_spans(&self, references: &[u32], spans: &mut Vec<SweepEdge>) {
        let edges = || {
            let numbers = references.iter();
            numbers.map(|&number| (number, self.tree.edges[number as usize]))
        };
        let length = |edge: &Edge| edge.width().abs() + edge.height().abs();
        let Some((_, longest)) = edges().max_by_key(|(_, edge)| length(edge)) else {
            spans.clear();
            return;
        };
        // Each edge is at most 2^32 wide and high, so `width` and `height` are at most 2^30. Coordinates are at most
        // 2^31, so each product is at most 2^61, and the difference of two products fits into 64 bits.
        let (width, height) = (longest.width() >> 2, longest.height() >> 2);
        let across =
            |point: Point| width * i64::from(point.lat_e7) - height * i64::from(point.lon_e7);
        spans.clear();
        spans.extend(edges().map(|(number, edge)| {
            let (from, to) = (across(edge.from), across(edge.to));
            SweepEdge {
                least: from.min(to),
                most: from.max(to),
                number,
                edge,
            }
        }));
        spans.sort_unstable_by_key(|span| span.least);
    }

    fn record_contact(&self, span: &SweepEdge, other: &SweepEdge, meetings: &mut Contacts) {
        match span.edge.relation_to(&other.edge) {
            EdgeRelation::Apart => {}
            EdgeRelation::Crossing => {
                let pair = (span.number.min(other.number), span.number.max(other.number));
                let first = meetings.first_crossing.get_or_insert(pair);
                *first = pair.min(*first);
            }
            EdgeRelation::Touching => {
                let (ring, other_ring) = (
                    self.ring_of(span.number as usize),
                    self.ring_of(other.number as usize),
                );
                let is_turn = ring == other_ring
                    && self.are_consecutive_edges(ring, span.number, other.number)
                    && !span.edge.forms_spike_with(&other.edge);
                for ring in [ring, other_ring] {
                    meetings.touched[ring] |= !is_turn;
                }
            }
        }
    }

    /// Whether two edges of a ring are consecutive.
    fn are_consecutive_edges(&self, ring: usize, a: u32, b: u32) -> bool {
        let apart = a.abs_diff(b) as usize;
        let (_, ring, _) = self.rings[ring];
        apart == 1 || apart + 1 == ring.points.len()
    }

    fn crossing_error(&self, edge: u32, other: u32) -> ShapeError {
        let (ring, vertex, _) = self.ring_and_vertex_of_edge(edge as usize);
        let (other_ring, other_vertex, _) = self.ring_and_vertex_of_edge(other as usize);
        let [edge, other] = [edge, other].map(|number| &self.tree.edges[number as usize]);
        let point = crossing_point(edge, other);
        let (lat, lon) = (format_e7(point.lat_e7), format_e7(point.lon_e7));
        ShapeError {
            ring: ring.into(),
            vertex: Some(vertex),
            cause: format!(
                "the edge from here crosses the edge from vertex {other_vertex} of {other_ring} at latitude {lat}, \
                 longitude {lon}"
            ),
        }
    }

    /// Returns the first edge that belongs to a hole and lies outside of the outer ring. If there is no such edge,
    /// returns the first edge with a winding number other than 0 and 1 on one of its sides. The second value is the
    /// wrong winding number.
    fn first_wrong_winding(&self, touched: &[bool]) -> Option<(usize, i32)> {
        let mut found = None;
        let mut last = None;
        for ((first, ring, is_hole), &is_touched) in self.rings.iter().zip(touched) {
            let group = self.ends.partition_point(|end| end <= first);
            let numbers = *first..first + ring.points.len();
            let edges = &self.tree.edges[numbers.clone()];
            let rising = numbers.zip(edges).filter(|(_, edge)| edge.height() != 0);
            let count = if is_touched { usize::MAX } else { 1 };
            for (number, edge) in rising.take(count) {
                match self.wrong_winding(edge, group as u32, &mut last) {
                    Some(winding) if *is_hole && winding < 0 => return Some((number, winding)),
                    Some(winding) => found = found.or(Some((number, winding))),
                    None => {}
                }
            }
        }
        found
    }

    /// Returns a winding number other than 0 and 1 beside an edge, if one exists. The edge must not be horizontal.
    /// `last` caches the leaf of the previous call's last point.
    fn wrong_winding(
        &self,
        edge: &Edge,
        group: u32,
        last: &mut Option<(Cell, Leaf)>,
    ) -> Option<i32> {
        let (from, to) = (HalfUnitPoint::of(edge.from), HalfUnitPoint::of(edge.to));
        let lower = if from.y < to.y { from } else { to };
        let middle = HalfUnitPoint::new((from.x + to.x) / 2, (from.y + to.y) / 2);
        [lower, middle].into_iter().find_map(|point| {
            let (left, right) = self.windings_beside(edge, group, point, last)?;
            [left, right]
                .into_iter()
                .find(|winding| !(0..=1).contains(winding))
        })
    }

    /// Returns the winding numbers of a polygon just west and just east of `edge`, infinitesimally above `point`. The
    /// point must lie on `edge`.
    fn windings_beside(
        &self,
        edge: &Edge,
        group: u32,
        point: HalfUnitPoint,
        last: &mut Option<(Cell, Leaf)>,
    ) -> Option<(i32, i32)> {
        let (x, y) = (point.x.div_euclid(2), point.y.div_euclid(2));
        if last.is_none_or(|(cell, _)| !cell.holds(x, y)) {
            *last = self.tree.leaf_at(x, y);
        }
        let (cell, leaf) = (*last)?;
        let mut parts = self.tree.group_edges_of(leaf).iter();
        let part = parts.find(|part| part.group == group)?;
        let start = cell.corner();
        let turn = HalfUnitPoint::new(start.x, point.y);
        let (mut left, mut step) = (part.winding, 0);
        for other in self.tree.edges_of(part) {
            left += other.winding_up(start, turn);
            if !other.is_crossed_at(point.y) || !other.is_east_of_point(turn) {
                continue;
            }
            match side_of_edge(edge, other, point) {
                1.. => left += other.winding_eastwards(),
                0 => step += other.winding_eastwards(),
                _ => {}
            }
        }
        Some((left, left + step))
    }

    fn winding_error(&self, edge: usize, winding: i32) -> ShapeError {
        let (ring, vertex, is_hole) = self.ring_and_vertex_of_edge(edge);
        let cause = match (is_hole, winding < 0) {
            (true, true) => "this hole lies outside of its outer ring or within another hole",
            (true, false) => "this hole winds around what lies in its outer ring",
            (false, true) => "this ring crosses itself at a vertex, or a hole is larger than it",
            (false, false) => "this ring winds around the same place twice",
        };
        ShapeError {
            ring: ring.into(),
            vertex: Some(vertex),
            cause: cause.into(),
        }
    }
}

/// Returns the side of `edge` on which `other` lies, infinitesimally above `point`, which is on `edge`. Positive is
/// west, negative is east, and zero means that the edges coincide. Neither edge is horizontal.
fn side_of_edge(edge: &Edge, other: &Edge, point: HalfUnitPoint) -> i128 {
    let upwards = |edge: &Edge| if edge.height() > 0 { 1 } else { -1 };
    match other.side(point) * upwards(other) {
        0 => {
            let cross = i128::from(edge.width()) * i128::from(other.height())
                - i128::from(edge.height()) * i128::from(other.width());
            cross * upwards(edge) * upwards(other)
        }
        side => -side,
    }
}

/// Returns the point at which two edges cross, rounded to 1e-7 degree.
fn crossing_point(edge: &Edge, other: &Edge) -> Point {
    let from = other.side(HalfUnitPoint::of(edge.from)) as f64;
    let to = other.side(HalfUnitPoint::of(edge.to)) as f64;
    let share = from / (from - to);
    let at = |start: i32, length: i64| (f64::from(start) + share * length as f64).round() as i32;
    Point::new(
        at(edge.from.lat_e7, edge.height()),
        at(edge.from.lon_e7, edge.width()),
    )
}
