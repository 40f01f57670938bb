//! The rings of an area, and the polygons that they bound.

use super::problems::ProblemList;
use super::segments::{Segments, westernmost};
use super::sides::{Corners, Sides};
use super::{AreaPolygon, AreaProblem, ProblemKind, Role};
use crate::geometry::{Extent, Point, doubled_area};
use std::cmp::{Ordering, Reverse};

/// A simple ring.
struct SimpleRing {
    points: Vec<Point>,
    is_outer: bool,
    /// The index of the boundary from which the ring was cut off. A boundary is a closed path that may touch itself.
    boundary: usize,
}

/// The rings of an area.
pub(super) struct AreaRings {
    rings: Vec<SimpleRing>,
    /// The parent of each boundary in a disjoint-set forest. Each set contains the boundaries of one polygon.
    polygon: Vec<usize>,
    /// For each segment, the index of its ring.
    ring_of: Vec<u32>,
}

/// A path along a boundary. When the path returns to a corner, the ring that it has closed is cut off from it.
/// `segments[i]` is the segment after `corners[i]`.
struct Path {
    corners: Vec<u32>,
    segments: Vec<u32>,
}

impl AreaRings {
    pub(super) fn of(segments: &Segments<'_>, corners: &Corners, sides: &Sides) -> Self {
        let count = segments.list.len();
        let mut rings = Self {
            rings: Vec::new(),
            polygon: Vec::new(),
            ring_of: vec![u32::MAX; count],
        };
        let mut boundary_of = vec![u32::MAX; count];
        let mut position = vec![u32::MAX; corners.len()];
        for start in 0..count as u32 {
            if boundary_of[start as usize] != u32::MAX {
                continue;
            }
            let boundary = rings.polygon.len();
            rings.polygon.push(boundary);
            rings.add_rings_of_boundary(
                start,
                segments,
                corners,
                sides,
                &mut boundary_of,
                &mut position,
            );
        }
        for (inner, below) in &sides.nested {
            let of = |segment: u32| boundary_of[segment as usize] as usize;
            rings.join_boundaries(of(*inner), of(*below));
        }
        rings
    }

    /// Follows the boundary that contains the segment `start`, with the inside on the left, and adds the rings of the
    /// boundary.
    fn add_rings_of_boundary(
        &mut self,
        start: u32,
        segments: &Segments<'_>,
        corners: &Corners,
        sides: &Sides,
        boundary_of: &mut [u32],
        position: &mut [u32],
    ) {
        let boundary = self.polygon.len() - 1;
        let mut path = Path {
            corners: Vec::new(),
            segments: Vec::new(),
        };
        let mut segment = start;
        while boundary_of[segment as usize] == u32::MAX {
            boundary_of[segment as usize] = boundary as u32;
            let is_forward = sides.inside_is_left[segment as usize];
            let (corner, _) = corners.corner_and_index_of(segment, is_forward);
            if position[corner] != u32::MAX {
                // The path has been at this corner before. The part of the path since then is a ring.
                let at = position[corner] as usize;
                self.cut_off_ring(&mut path, at, segments, corners, position);
            }
            position[corner] = path.corners.len() as u32;
            path.corners.push(corner as u32);
            path.segments.push(segment);
            segment = corners.next_clockwise(segment, !is_forward).segment;
        }
        self.cut_off_ring(&mut path, 0, segments, corners, position);
    }

    /// Removes the corners and segments of a path from index `at` on, and adds them as a ring.
    fn cut_off_ring(
        &mut self,
        path: &mut Path,
        at: usize,
        segments: &Segments<'_>,
        corners: &Corners,
        position: &mut [u32],
    ) {
        let mut points = Vec::with_capacity(path.corners.len() - at);
        for corner in path.corners.drain(at..) {
            position[corner as usize] = u32::MAX;
            points.push(corners.ends_at_corner(corner as usize)[0].point);
        }
        let is_outer = doubled_area(&points) > 0;
        let ring = self.rings.len() as u32;
        for segment in path.segments.drain(at..) {
            self.ring_of[segment as usize] = ring;
        }
        debug_assert!(points.len() > 2 && points.len() <= segments.list.len());
        let boundary = self.polygon.len() - 1;
        self.rings.push(SimpleRing {
            points: rotate_to_westernmost(points),
            is_outer,
            boundary,
        });
    }

    /// Returns the root of a boundary in the disjoint-set forest.
    fn root_of(&self, mut boundary: usize) -> usize {
        while self.polygon[boundary] != boundary {
            boundary = self.polygon[boundary];
        }
        boundary
    }

    /// Makes two boundaries belong to the same polygon.
    fn join_boundaries(&mut self, inner: usize, outer: usize) {
        let (inner, outer) = (self.root_of(inner), self.root_of(outer));
        self.polygon[inner] = outer;
    }

    /// Adds a problem for each way with the role `inner` in an outer ring, and for each way with the role `outer` in a
    /// hole.
    pub(super) fn check_roles(&self, segments: &Segments<'_>, problems: &mut ProblemList) {
        let mut is_wrong = vec![false; segments.ways.len()];
        for (segment, ring) in segments.list.iter().zip(&self.ring_of) {
            let way = &segments.ways[segment.way as usize];
            let is_outer = self.rings[*ring as usize].is_outer;
            let contradicts = match way.role {
                Role::Outer => !is_outer,
                Role::Inner => is_outer,
                Role::Other => false,
            };
            let is_wrong = &mut is_wrong[segment.way as usize];
            if contradicts && !*is_wrong {
                *is_wrong = true;
                let (kind, ways) = (ProblemKind::WrongRole, [Some(way.id), None]);
                problems.add(AreaProblem {
                    segments: [Some(segment.ends().into()), None],
                    ..AreaProblem::new(kind, Some(segment.first), ways)
                });
            }
        }
    }

    /// Returns, for each segment, whether it is kept when lone holes are left out. Returns `None` if there are no lone
    /// holes.
    ///
    /// A lone hole is an outer ring whose ways all have the role `inner`: the ring around the hole is missing. If the
    /// bounding boxes of lone holes are nested, only the outermost lone holes are left out. The nested ones are kept,
    /// because they may be holes of other rings once the outermost lone holes are gone.
    pub(super) fn segments_kept_without_lone_holes(
        &self,
        segments: &Segments<'_>,
    ) -> Option<Vec<bool>> {
        let mut is_lone: Vec<bool> = self.rings.iter().map(|ring| ring.is_outer).collect();
        for (segment, ring) in segments.list.iter().zip(&self.ring_of) {
            if segments.ways[segment.way as usize].role != Role::Inner {
                is_lone[*ring as usize] = false;
            }
        }
        self.clear_flags_of_nested_rings(&mut is_lone);
        let is_kept = |ring: &u32| !is_lone[*ring as usize];
        let is_any = is_lone.contains(&true);
        is_any.then(|| self.ring_of.iter().map(is_kept).collect())
    }

    /// Clears the flag of each flagged ring whose bounding box lies in that of another flagged ring.
    fn clear_flags_of_nested_rings(&self, flags: &mut [bool]) {
        let marked = (0..)
            .zip(&self.rings)
            .zip(&*flags)
            .filter(|(_, flag)| **flag);
        let boxes = marked.filter_map(|((ring, SimpleRing { points, .. }), _)| {
            Extent::of(points).map(|extent| (ring, extent))
        });
        let mut boxes: Vec<(usize, Extent)> = boxes.collect();
        // A box must come before the boxes inside it, because the loop below compares each box only with earlier boxes.
        boxes.sort_by_key(|(_, Extent { low, high })| {
            let (east, north) = (Reverse(high.lon_e7), Reverse(high.lat_e7));
            (low.lon_e7, east, low.lat_e7, north)
        });
        let mut around: Vec<Extent> = Vec::new();
        for (ring, Extent { low, high }) in boxes {
            around.retain(|other| other.high.lon_e7 >= low.lon_e7);
            let is_inside = around.iter().any(|other| {
                other.high.lon_e7 >= high.lon_e7
                    && other.low.lat_e7 <= low.lat_e7
                    && other.high.lat_e7 >= high.lat_e7
            });
            if is_inside {
                flags[ring] = false;
            } else {
                around.push(Extent { low, high });
            }
        }
    }

    /// Returns the polygons with their holes. Polygons and holes are in the order of their westernmost corners.
    pub(super) fn into_polygons(mut self) -> Vec<AreaPolygon> {
        let rings = std::mem::take(&mut self.rings);
        let (outers, holes): (Vec<_>, Vec<_>) = rings.into_iter().partition(|ring| ring.is_outer);
        let mut index_of = vec![usize::MAX; self.polygon.len()];
        let mut polygons: Vec<AreaPolygon> = Vec::with_capacity(outers.len());
        let by_corner = |a: &SimpleRing, b: &SimpleRing| compare_rings(&a.points, &b.points);
        let sorted = |mut rings: Vec<SimpleRing>| {
            rings.sort_by(by_corner);
            rings
        };
        for outer in sorted(outers) {
            index_of[self.root_of(outer.boundary)] = polygons.len();
            polygons.push(AreaPolygon {
                outer: outer.points,
                holes: Vec::new(),
            });
        }
        for hole in sorted(holes) {
            let index = index_of[self.root_of(hole.boundary)];
            polygons[index].holes.push(hole.points);
        }
        polygons
    }
}

/// Compares rings by their points. West precedes east, then south precedes north.
fn compare_rings(a: &[Point], b: &[Point]) -> Ordering {
    let key = |point: &Point| (point.lon_e7, point.lat_e7);
    a.iter().map(key).cmp(b.iter().map(key))
}

/// Rotates a ring so that its westernmost corner comes first.
fn rotate_to_westernmost(mut points: Vec<Point>) -> Vec<Point> {
    let least = westernmost(&points);
    points.rotate_left(least);
    points
}
