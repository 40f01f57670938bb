//! The border of a region, and its crossings with coastlines.
//!
//! All decisions are exact. The border is treated as if it were moved by an infinitesimal distance: by e to the east
//! and by e² to the north (H. Edelsbrunner, E. Mücke, "Simulation of simplicity", 1990). After this move, no point of a
//! coastline is on the border, and no vertex of the border is on a coastline. So no decision needs a special case.

use super::ratio::Ratio;
use crate::geometry::{Point, Rings};
use std::cmp::Ordering;

/// The border of a region.
pub(super) struct Border {
    /// The rings, with the region on their left. They do not repeat their first point.
    pub rings: Rings,
    /// For each ring, the number of its first edge. Edges are numbered consecutively through all rings.
    starts: Vec<usize>,
    /// For each strip of latitudes, the numbers of the edges that lie in it or extend into it.
    strips: Vec<Vec<u32>>,
    low_e7: i64,
    /// The height of a strip in 1e-7 degree.
    height_e7: i64,
}

/// A position on the border.
#[derive(Debug, Clone, Copy)]
pub(super) struct BorderPlace {
    /// The number of the edge.
    pub edge: usize,
    /// The position on the edge, from 0 to 1.
    share: Ratio,
    /// The infinitesimal part of the position, which gives the order of crossings with the same share.
    tie: Ratio,
    /// The position as a point, with rounded coordinates.
    pub point: Point,
}

impl BorderPlace {
    /// Compares places along a ring.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let by_edge = self.edge.cmp(&other.edge);
        by_edge
            .then_with(|| self.share.compare(other.share))
            .then_with(|| self.tie.compare(other.tie))
    }
}

/// A place at which a segment crosses the border.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossing {
    pub place: BorderPlace,
    /// Whether the segment leaves the region.
    pub is_exit: bool,
    /// The position on the segment, from 0 to 1.
    along: Ratio,
}

type Vector = (i128, i128);

/// Returns the differences of longitude and latitude from one point to another, in 1e-7 degree.
fn vector(from: Point, to: Point) -> Vector {
    let lon = i128::from(to.lon_e7) - i128::from(from.lon_e7);
    let lat = i128::from(to.lat_e7) - i128::from(from.lat_e7);
    (lon, lat)
}

/// Returns the cross product; it is positive if `other` points to the left of `one`.
const fn cross(one: Vector, other: Vector) -> i128 {
    one.0 * other.1 - one.1 * other.0
}

const fn dot(one: Vector, other: Vector) -> i128 {
    one.0 * other.0 + one.1 * other.1
}

/// Returns the sign of the first value that is not 0; 0 if all values are 0.
fn first_sign(values: [i128; 3]) -> i128 {
    let signs = values.map(i128::signum);
    signs.into_iter().find(|sign| *sign != 0).unwrap_or(0)
}

/// Returns the side of an edge of the border on which a point lies: 1 is left, -1 is right.
fn side_of_border(from: Point, to: Point, point: Point) -> i128 {
    let edge = vector(from, to);
    first_sign([cross(edge, vector(from, point)), edge.1, -edge.0])
}

/// Returns the side of a segment on which a vertex of the border lies: 1 is left, -1 is right.
fn side_of_segment(from: Point, to: Point, vertex: Point) -> i128 {
    let segment = vector(from, to);
    first_sign([cross(segment, vector(from, vertex)), -segment.1, segment.0])
}

/// Returns how often closed paths wind around a vertex of the border.
pub(super) fn winding_around<'p>(vertex: Point, paths: impl Iterator<Item = &'p [Point]>) -> i32 {
    let mut winding = 0;
    for pair in paths.flat_map(|path| path.windows(2)) {
        let (from, to) = (pair[0], pair[1]);
        let is_above = |point: Point| point.lat_e7 > vertex.lat_e7;
        // The ray from the vertex to the east crosses a segment if the vertex is west of the segment.
        match (is_above(from), is_above(to)) {
            (false, true) if side_of_segment(from, to, vertex) > 0 => winding += 1,
            (true, false) if side_of_segment(from, to, vertex) < 0 => winding -= 1,
            _ => {}
        }
    }
    winding
}

/// The maximum number of strips.
const MAX_STRIPS: usize = 4096;

impl Border {
    pub(super) fn new(rings: Rings) -> Self {
        let mut starts = Vec::with_capacity(rings.len());
        let mut edges = 0;
        for ring in &rings {
            starts.push(edges);
            edges += ring.len();
        }
        let lats = || rings.iter().flatten().map(|point| i64::from(point.lat_e7));
        let (low, high) = (lats().min().unwrap_or(0), lats().max().unwrap_or(0));
        let count = edges.clamp(1, MAX_STRIPS);
        let mut border = Self {
            starts,
            strips: vec![Vec::new(); count],
            low_e7: low,
            height_e7: (high - low) / count as i64 + 1,
            rings,
        };
        for edge in 0..edges {
            let (from, to) = border.edge(edge);
            let (first, last) = (from.lat_e7.min(to.lat_e7), from.lat_e7.max(to.lat_e7));
            for strip in border.strips_in_latitudes(first, last) {
                border.strips[strip].push(edge as u32);
            }
        }
        border
    }

    /// Returns the numbers of the strips that a range of latitudes overlaps.
    fn strips_in_latitudes(&self, first: i32, last: i32) -> std::ops::RangeInclusive<usize> {
        let strip = |lat: i32| {
            let strip = (i64::from(lat) - self.low_e7).div_euclid(self.height_e7);
            strip.clamp(0, self.strips.len() as i64 - 1) as usize
        };
        strip(first)..=strip(last)
    }

    /// Returns the number of the ring to which an edge belongs, and the index of the edge in that ring.
    pub(super) fn ring_and_index(&self, edge: usize) -> (usize, usize) {
        let ring = self
            .starts
            .partition_point(|start| *start <= edge)
            .saturating_sub(1);
        (ring, edge - self.starts.get(ring).copied().unwrap_or(0))
    }

    /// Returns the ends of an edge.
    fn edge(&self, edge: usize) -> (Point, Point) {
        let (ring, index) = self.ring_and_index(edge);
        let ring = &self.rings[ring];
        (ring[index], ring[(index + 1) % ring.len()])
    }

    /// Whether a point is in the region.
    pub(super) fn has(&self, point: Point) -> bool {
        let strip = *self.strips_in_latitudes(point.lat_e7, point.lat_e7).start();
        let mut is_inside = false;
        for edge in &self.strips[strip] {
            let (from, to) = self.edge(*edge as usize);
            let is_above = |vertex: Point| vertex.lat_e7 >= point.lat_e7;
            if is_above(from) != is_above(to) {
                // The point is west of an edge that leads north if the point is on the left of the edge.
                let is_west = (side_of_border(from, to, point) > 0) == is_above(to);
                is_inside ^= is_west;
            }
        }
        is_inside
    }

    /// Returns the numbers of the edges whose bounding boxes intersect the given box, in ascending order.
    fn edges_near(&self, south: i32, north: i32, west: i32, east: i32) -> Vec<usize> {
        let mut found = Vec::new();
        for strip in self.strips_in_latitudes(south, north) {
            for edge in &self.strips[strip] {
                let (from, to) = self.edge(*edge as usize);
                if from.lon_e7.max(to.lon_e7) >= west
                    && from.lon_e7.min(to.lon_e7) <= east
                    && from.lat_e7.max(to.lat_e7) >= south
                    && from.lat_e7.min(to.lat_e7) <= north
                {
                    found.push(*edge as usize);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether the border may cross a path with these points.
    pub(super) fn may_cross(&self, points: &[Point]) -> bool {
        let lons = points.iter().map(|point| point.lon_e7);
        let lats = points.iter().map(|point| point.lat_e7);
        let (Some(west), Some(east)) = (lons.clone().min(), lons.max()) else {
            return false;
        };
        let (Some(south), Some(north)) = (lats.clone().min(), lats.max()) else {
            return false;
        };
        !self.edges_near(south, north, west, east).is_empty()
    }

    /// Returns the crossings of a segment with the border, in their order along the segment. Exits and entries
    /// alternate. `is_inside` tells whether `from` is in the region.
    pub(super) fn crossings(&self, from: Point, to: Point, is_inside: bool) -> Vec<Crossing> {
        let edges = self.edges_near(
            from.lat_e7.min(to.lat_e7),
            from.lat_e7.max(to.lat_e7),
            from.lon_e7.min(to.lon_e7),
            from.lon_e7.max(to.lon_e7),
        );
        let found = edges
            .into_iter()
            .filter_map(|edge| self.crossing(edge, from, to));
        let mut left: Vec<Crossing> = found.collect();
        left.sort_by(|one, other| one.along.compare(other.along));
        let mut is_exit = is_inside;
        let mut ordered = Vec::with_capacity(left.len());
        // Crossings at the same position on the segment are ordered so that exits and entries alternate.
        while let Some(first) = left.first().copied() {
            let is_same = |one: &Crossing| one.along.compare(first.along) == Ordering::Equal;
            let tied = left.iter().take_while(|one| is_same(one));
            let index = tied
                .clone()
                .position(|one| one.is_exit == is_exit)
                .unwrap_or(0);
            ordered.push(left.remove(index));
            is_exit = !is_exit;
        }
        ordered
    }

    /// Returns the crossing of a segment with an edge; `None` if they do not cross.
    fn crossing(&self, number: usize, from: Point, to: Point) -> Option<Crossing> {
        let (a, b) = self.edge(number);
        let (start, end) = (side_of_border(a, b, from), side_of_border(a, b, to));
        if start == end || side_of_segment(from, to, a) == side_of_segment(from, to, b) {
            return None;
        }
        let (edge, segment) = (vector(a, b), vector(from, to));
        let (on_left, on_right) = (cross(edge, vector(a, from)), cross(edge, vector(a, to)));
        let (before, behind) = (
            cross(segment, vector(from, a)),
            cross(segment, vector(from, b)),
        );
        let width = on_left - on_right;
        if width == 0 || before == behind {
            return None;
        }
        // The fraction `on_left / width` with a positive divisor, so that halves are always rounded up.
        let (part, whole) = (on_left * width.signum(), width.abs());
        let at = |start: i32, length: i128| {
            let moved = 2 * length * part + whole;
            (i128::from(start) + moved.div_euclid(2 * whole)) as i32
        };
        // Positive if the infinitesimal move shifts the edge to its left.
        let moved = first_sign([-edge.1, edge.0, 0]);
        Some(Crossing {
            place: BorderPlace {
                edge: number,
                share: Ratio::new(before, before - behind),
                tie: Ratio::new(moved * dot(edge, segment), cross(edge, segment)),
                point: Point::new(at(from.lat_e7, segment.1), at(from.lon_e7, segment.0)),
            },
            is_exit: start > 0,
            along: Ratio::new(on_left, width),
        })
    }

    /// Returns the place on the border that is nearest to a point, and its distance in 1e-7 degree of latitude.
    /// Distances are measured in a plane in which a degree of longitude has the length that it has at the point.
    /// Ignores places farther away than `longest`.
    pub(super) fn nearest(&self, point: Point, longest: f64) -> Option<(BorderPlace, f64)> {
        let home = *self.strips_in_latitudes(point.lat_e7, point.lat_e7).start();
        let mut best: Option<(BorderPlace, f64)> = None;
        let count = self.strips.len();
        for step in 0..count {
            // The strips that are `step` strips away are at least this far from the point.
            let apart = (step as i64 - 1).max(0) * self.height_e7;
            let limit = best.as_ref().map_or(longest, |(_, known)| *known);
            if apart as f64 > limit {
                break;
            }
            let below = home.checked_sub(step);
            let above = (step > 0)
                .then_some(home + step)
                .filter(|strip| *strip < count);
            for strip in below.into_iter().chain(above) {
                for edge in &self.strips[strip] {
                    let (place, distance) = self.nearest_on_edge(*edge as usize, point);
                    let is_nearer = best.as_ref().is_none_or(|(_, known)| distance < *known);
                    if is_nearer && distance <= longest {
                        best = Some((place, distance));
                    }
                }
            }
        }
        best
    }

    /// Returns the nearest place on one edge, and its distance, as [`nearest`](Self::nearest) does for all edges.
    fn nearest_on_edge(&self, number: usize, point: Point) -> (BorderPlace, f64) {
        /// The number of equal parts into which an edge is divided. A position is rounded down to the start of its
        /// part.
        const PARTS: f64 = (1u64 << 40) as f64;
        let (a, b) = self.edge(number);
        let scale = point.lat().to_radians().cos();
        let plane = |of: Vector| (of.0 as f64 * scale, of.1 as f64);
        let (edge, to) = (plane(vector(a, b)), plane(vector(a, point)));
        let square = edge.0 * edge.0 + edge.1 * edge.1;
        let share = if square > 0.0 {
            ((edge.0 * to.0 + edge.1 * to.1) / square).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let at = |from: i32, to: i32| {
            let moved = (f64::from(to) - f64::from(from)) * share;
            (f64::from(from) + moved).round() as i32
        };
        let place = BorderPlace {
            edge: number,
            share: Ratio::new((share * PARTS) as i128, PARTS as i128),
            tie: Ratio::ZERO,
            point: Point::new(at(a.lat_e7, b.lat_e7), at(a.lon_e7, b.lon_e7)),
        };
        let (width, height) = (edge.0 * share - to.0, edge.1 * share - to.1);
        (place, width.hypot(height))
    }
}
