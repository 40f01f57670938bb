//! The part of an area within a box.

mod join;

use crate::area::AreaPolygon;
use crate::geometry::{Extent, Point};
use std::cmp::Ordering;

/// The part of an area within a box, stored as the lines that separate inside from outside. Cutting a smaller box out
/// of a part takes time in proportion to the lines of the part. [`rings`](Self::rings()) joins the lines along the
/// edges of the box.
#[derive(Debug, Clone)]
pub(crate) struct BoxPart {
    pub bounds: Extent,
    /// Lines through the box, which begin and end at its edges, and have the area on their left.
    chains: Vec<Vec<Point>>,
    /// Rings that do not touch the edges of the box.
    rings: Vec<Vec<Point>>,
    /// Whether the edges of the box lie in the area. The ends of the chains usually show which parts of the edges lie
    /// in the area. This flag is used if they do not, for example if there are no chains.
    is_edge_inside: bool,
}

/// A coordinate by which a box is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    Lon,
    Lat,
}

impl Axis {
    const fn of(self, point: Point) -> i32 {
        match self {
            Self::Lon => point.lon_e7,
            Self::Lat => point.lat_e7,
        }
    }
}

/// The part of an area in a smaller box, while it is being cut out of the part in a larger box. The two boxes differ in
/// one edge.
struct Half {
    part: BoxPart,
    axis: Axis,
    /// The coordinate of the edge that differs.
    edge: i32,
    /// Whether the half is on the side of the lower coordinates, which is west or south of the edge.
    is_low: bool,
}

impl Half {
    /// Whether a point lies on the same side of the edge as the half. A point at the edge lies on neither side.
    fn has(&self, point: Point) -> bool {
        let value = self.axis.of(point);
        if self.is_low {
            value < self.edge
        } else {
            value > self.edge
        }
    }

    fn has_all(&self, points: &[Point]) -> bool {
        points.iter().all(|point| self.has(*point))
    }

    fn add_whole_line(&mut self, points: Vec<Point>, is_ring: bool) {
        if is_ring {
            self.part.rings.push(points);
        } else {
            self.part.chains.push(points);
        }
    }

    /// Adds the parts of a line or a ring that lie in the half. At least one of the points must lie outside of the
    /// half.
    fn add_clipped_line(&mut self, points: &[Point], is_ring: bool) {
        let outer = points.iter().position(|point| !self.has(*point));
        let start = outer.filter(|_| is_ring).unwrap_or(0);
        let (after, before) = (&points[start + 1..], &points[..=start]);
        let mut last = points[start];
        let (mut chains, mut chain) = (Vec::new(), Vec::new());
        if self.has(last) {
            chain.push(last);
        }
        for rest in [after, if is_ring { before } else { &[] }] {
            for run in rest.chunk_by(|one, next| self.has(*one) == self.has(*next)) {
                let first = run[0];
                match (self.has(last), self.has(first)) {
                    (false, true) => chain.push(self.crossing(first, last)),
                    (true, false) => {
                        chain.push(self.crossing(last, first));
                        chains.push(std::mem::take(&mut chain));
                    }
                    _ => {}
                }
                if self.has(first) {
                    chain.extend_from_slice(run);
                }
                last = run[run.len() - 1];
            }
        }
        if chain.len() > 1 {
            chains.push(chain);
        }
        self.part.chains.append(&mut chains);
    }

    /// Returns the point at which a segment meets the edge.
    fn crossing(&self, inner: Point, outer: Point) -> Point {
        if self.axis.of(outer) == self.edge {
            return outer;
        }
        // The ends are sorted, so that the result depends neither on the direction of the segment nor on the side of
        // the half.
        let (from, to) = (inner.min(outer), inner.max(outer));
        let other = match self.axis {
            Axis::Lon => Axis::Lat,
            Axis::Lat => Axis::Lon,
        };
        let wide = |axis: Axis, point| i128::from(axis.of(point));
        let len = wide(self.axis, to) - wide(self.axis, from);
        let share = i128::from(self.edge) - wide(self.axis, from);
        let rise = (wide(other, to) - wide(other, from)) * share * len.signum();
        let len = len.abs();
        let at = wide(other, from) + (2 * rise + len).div_euclid(2 * len);
        let (edge, at) = (self.edge, at as i32);
        let (lat_e7, lon_e7) = match self.axis {
            Axis::Lon => (at, edge),
            Axis::Lat => (edge, at),
        };
        Point { lat_e7, lon_e7 }
    }
}

/// A point at which a chain begins or ends at an edge of the box.
#[derive(Debug, Clone, Copy)]
struct ChainEnd {
    /// The length of the edges from the south-western corner to the point, counter-clockwise.
    position: i64,
    chain: usize,
    is_end: bool,
    /// The direction from the point along the chain into the box. The first component is along the edge,
    /// counter-clockwise; the second is away from the edge.
    direction: (i64, i64),
}

impl ChainEnd {
    /// Returns whether the edge of the box is in the area just after the last of `ends`. Returns `None` if the ends
    /// leave this open: at every point, as many chains begin as end.
    fn is_edge_inside_after_ends(ends: &[Self]) -> Option<bool> {
        let groups = ends.chunk_by(|one, other| one.position == other.position);
        let balance = |group: &[Self]| -> i64 {
            let signs = group.iter().map(|end| if end.is_end { 1 } else { -1 });
            signs.sum()
        };
        let mut shown = groups.rev().map(balance).filter(|balance| *balance != 0);
        shown.next().map(|balance| balance > 0)
    }

    /// Compares two ends at the same point. On a counter-clockwise walk along the edge, slightly inside the box, the
    /// chain of the lesser end comes first.
    fn cmp_direction(&self, other: &Self) -> Ordering {
        let along = |(along, away): (i64, i64)| if away == 0 { along.signum() } else { 0 };
        let ((a, b), (c, d)) = (self.direction, other.direction);
        let by_side = along(self.direction).cmp(&along(other.direction));
        by_side.then_with(|| {
            let turn = i128::from(c) * i128::from(b) - i128::from(d) * i128::from(a);
            turn.cmp(&0).reverse()
        })
    }
}

impl BoxPart {
    /// Creates the part from polygons, all of which must lie within the box.
    pub(crate) fn new<'p>(
        bounds: Extent,
        polygons: impl IntoIterator<Item = &'p AreaPolygon>,
    ) -> Self {
        let mut part = Self::empty(bounds);
        let mut has_edge = false;
        for polygon in polygons {
            for ring in polygon.rings() {
                has_edge |= part.add_ring(ring);
            }
        }
        part.is_edge_inside = has_edge;
        part
    }

    const fn empty(bounds: Extent) -> Self {
        Self {
            bounds,
            chains: Vec::new(),
            rings: Vec::new(),
            is_edge_inside: false,
        }
    }

    /// Adds a ring without its segments along the edges of the box. Returns whether the ring has such segments.
    fn add_ring(&mut self, ring: &[Point]) -> bool {
        let Some(start) = ring.iter().position(|point| self.is_at_edge(*point)) else {
            self.rings.push(ring.to_vec());
            return false;
        };
        let (mut has_edge, mut chain) = (false, vec![ring[start]]);
        for point in ring[start + 1..].iter().chain(&ring[..=start]) {
            chain.push(*point);
            if self.is_at_edge(*point) {
                let is_along = matches!(chain[..], [from, to] if self.is_along_edge(from, to));
                if !is_along {
                    self.chains.push(std::mem::take(&mut chain));
                }
                has_edge |= is_along;
                chain.clear();
                chain.push(*point);
            }
        }
        has_edge
    }

    fn is_at_edge(&self, point: Point) -> bool {
        let Extent { low, high } = self.bounds;
        point.lon_e7 == low.lon_e7
            || point.lon_e7 == high.lon_e7
            || point.lat_e7 == low.lat_e7
            || point.lat_e7 == high.lat_e7
    }

    fn is_along_edge(&self, from: Point, to: Point) -> bool {
        let Extent { low, high } = self.bounds;
        let is_at = |axis: Axis| {
            let value = axis.of(from);
            value == axis.of(to) && (value == axis.of(low) || value == axis.of(high))
        };
        is_at(Axis::Lon) || is_at(Axis::Lat)
    }

    /// Returns the number of points of all lines.
    pub(crate) fn point_count(&self) -> usize {
        self.chains.iter().chain(&self.rings).map(Vec::len).sum()
    }

    /// Whether the box contains no lines, so that all of it is inside or outside of the area.
    pub(crate) fn is_uniform(&self) -> bool {
        self.chains.is_empty() && self.rings.is_empty()
    }

    /// Whether the whole box is in the area.
    pub(crate) fn is_full(&self) -> bool {
        self.is_uniform() && self.is_edge_inside
    }

    /// Whether the whole box is outside of the area.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_uniform() && !self.is_edge_inside
    }

    /// Cuts the part into the parts for two smaller boxes, which may overlap. The boxes differ from the whole box only
    /// in the coordinate `axis`: `low` in its upper edge, `high` in its lower edge.
    pub(crate) fn divide(self, low: Extent, high: Extent, axis: Axis) -> [Self; 2] {
        let mut halves = [
            self.begin_half(low, axis, true),
            self.begin_half(high, axis, false),
        ];
        for (points, is_ring) in self.into_lines() {
            match halves.each_ref().map(|half| half.has_all(&points)) {
                [true, true] => {
                    let [low, high] = &mut halves;
                    low.add_whole_line(points.clone(), is_ring);
                    high.add_whole_line(points, is_ring);
                }
                fits => {
                    for (half, _) in halves.iter_mut().zip(fits).filter(|(_, fits)| !fits) {
                        half.add_clipped_line(&points, is_ring);
                    }
                    if let Some((half, _)) = halves.iter_mut().zip(fits).find(|(_, fits)| *fits) {
                        half.add_whole_line(points, is_ring);
                    }
                }
            }
        }
        halves.map(|half| half.part)
    }

    /// Returns the part of the area within a smaller box.
    pub(crate) fn cut_to_box(self, bounds: Extent) -> Self {
        let mut part = self;
        for axis in [Axis::Lon, Axis::Lat] {
            for is_low in [true, false] {
                let mut rest = part.bounds;
                let (from, to) = if is_low {
                    (bounds.high, &mut rest.high)
                } else {
                    (bounds.low, &mut rest.low)
                };
                match axis {
                    Axis::Lon => to.lon_e7 = from.lon_e7,
                    Axis::Lat => to.lat_e7 = from.lat_e7,
                }
                if rest == part.bounds {
                    continue;
                }
                let mut half = part.begin_half(rest, axis, is_low);
                for (points, is_ring) in part.into_lines() {
                    if half.has_all(&points) {
                        half.add_whole_line(points, is_ring);
                    } else {
                        half.add_clipped_line(&points, is_ring);
                    }
                }
                part = half.part;
            }
        }
        part
    }

    /// Returns the rings and the chains, with a flag that is true for rings.
    fn into_lines(self) -> impl Iterator<Item = (Vec<Point>, bool)> {
        let rings = self.rings.into_iter().map(|ring| (ring, true));
        rings.chain(self.chains.into_iter().map(|chain| (chain, false)))
    }

    /// Creates the part for a smaller box, without lines. On `axis`, the smaller box shares the lower edge of this box
    /// if `is_low`, otherwise the upper edge. The opposite edge differs.
    fn begin_half(&self, bounds: Extent, axis: Axis, is_low: bool) -> Half {
        let corner = match (axis, is_low) {
            (Axis::Lon, true) => 3,
            (Axis::Lon, false) => 1,
            (Axis::Lat, true) => 0,
            (Axis::Lat, false) => 2,
        };
        // The shared edge begins at this corner.
        let (position, _) = self.corners()[corner];
        let mut part = Self::empty(bounds);
        part.is_edge_inside = self.is_edge_inside_after(&self.chain_ends(), position);
        let moved = if is_low { bounds.high } else { bounds.low };
        Half {
            part,
            axis,
            edge: axis.of(moved),
            is_low,
        }
    }

    /// Returns the position of a point at an edge of the box, as [`ChainEnd::position`].
    fn position(&self, point: Point) -> i64 {
        let Extent { low, high } = self.bounds;
        let (width, height) = self.size();
        let wide = i64::from;
        if point.lat_e7 == low.lat_e7 {
            wide(point.lon_e7) - wide(low.lon_e7)
        } else if point.lon_e7 == high.lon_e7 {
            width + wide(point.lat_e7) - wide(low.lat_e7)
        } else if point.lat_e7 == high.lat_e7 {
            width + height + wide(high.lon_e7) - wide(point.lon_e7)
        } else {
            2 * width + height + wide(high.lat_e7) - wide(point.lat_e7)
        }
    }

    /// Returns the width and the height of the box.
    fn size(&self) -> (i64, i64) {
        let Extent { low, high } = self.bounds;
        (
            i64::from(high.lon_e7) - i64::from(low.lon_e7),
            i64::from(high.lat_e7) - i64::from(low.lat_e7),
        )
    }

    /// Returns the corners of the box counter-clockwise, with their positions.
    fn corners(&self) -> [(i64, Point); 4] {
        let Extent { low, high } = self.bounds;
        let (width, height) = self.size();
        let corner = |lat_e7, lon_e7| Point { lat_e7, lon_e7 };
        [
            (0, low),
            (width, corner(low.lat_e7, high.lon_e7)),
            (width + height, high),
            (2 * width + height, corner(high.lat_e7, low.lon_e7)),
        ]
    }

    /// Returns the ends of the chains in their counter-clockwise order along the edges of the box, from the
    /// south-western corner.
    fn chain_ends(&self) -> Vec<ChainEnd> {
        let mut ends = Vec::with_capacity(2 * self.chains.len());
        for (index, chain) in self.chains.iter().enumerate() {
            let count = chain.len();
            for (point, inner, is_end) in [
                (chain[0], chain[1], false),
                (chain[count - 1], chain[count - 2], true),
            ] {
                let position = self.position(point);
                ends.push(ChainEnd {
                    position,
                    chain: index,
                    is_end,
                    direction: self.direction(position, point, inner),
                });
            }
        }
        ends.sort_by(|one, other| {
            let by_position = one.position.cmp(&other.position);
            by_position.then_with(|| one.cmp_direction(other))
        });
        ends
    }

    /// Returns the direction from a point at the edge into the box, as [`ChainEnd::direction`].
    fn direction(&self, position: i64, from: Point, to: Point) -> (i64, i64) {
        let (width, height) = self.size();
        let east = i64::from(to.lon_e7) - i64::from(from.lon_e7);
        let north = i64::from(to.lat_e7) - i64::from(from.lat_e7);
        match position {
            _ if position <= width => (east, north),
            _ if position <= width + height => (north, -east),
            _ if position <= 2 * width + height => (-east, -north),
            _ => (-north, east),
        }
    }

    /// Returns whether the edge of the box is inside of the area directly after a position.
    fn is_edge_inside_after(&self, ends: &[ChainEnd], position: i64) -> bool {
        let (before, after) = ends.split_at(ends.partition_point(|end| end.position <= position));
        let shown = ChainEnd::is_edge_inside_after_ends(before)
            .or_else(|| ChainEnd::is_edge_inside_after_ends(after));
        shown.unwrap_or(self.is_edge_inside)
    }
}
