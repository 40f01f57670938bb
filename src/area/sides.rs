//! Determines on which side of each segment the inside of the area lies.

use super::problems::ProblemList;
use super::segments::{AreaSegment, Segments, compare_west_to_east, side_of_line};
use super::sweep::OrderedSweep;
use super::{AreaProblem, ProblemKind};
use crate::geometry::Point;
use std::cmp::Ordering;

/// One end of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentEnd {
    pub point: Point,
    /// The index of the segment.
    pub segment: u32,
    /// Whether this is the first end of the segment.
    pub is_first: bool,
}

/// The ends of segments, grouped by location into corners. Corners are sorted from west to east, then from south to
/// north. The ends at a corner are in counter-clockwise order, starting just east of due south.
pub(super) struct Corners {
    ends: Vec<SegmentEnd>,
    /// For each corner, the index of its first end in `ends`. The last element is the length of `ends`.
    starts: Vec<u32>,
    /// For each segment, the indices of its first and its second end in `ends`.
    of_segment: Vec<[u32; 2]>,
    /// For each end, the index of its corner.
    of_end: Vec<u32>,
}

/// Whether the direction from `from` to `to` is in the western half-plane, which includes due south, but not due north.
/// The order around a corner compares half-planes first, because [`side_of_line`] can only compare directions in the
/// same half-plane.
fn is_western(from: Point, to: Point) -> bool {
    (to.lon_e7, to.lat_e7) < (from.lon_e7, from.lat_e7)
}

impl Corners {
    pub(super) fn of(segments: &Segments<'_>) -> Self {
        let mut ends = Vec::with_capacity(segments.list.len() * 2);
        for (index, segment) in (0..).zip(&segments.list) {
            for (point, is_first) in [(segment.first, true), (segment.second, false)] {
                ends.push(SegmentEnd {
                    point,
                    segment: index,
                    is_first,
                });
            }
        }
        let other = |end: &SegmentEnd| {
            let segment = &segments.list[end.segment as usize];
            if end.is_first {
                segment.second
            } else {
                segment.first
            }
        };
        ends.sort_unstable_by(|a, b| {
            compare_west_to_east(a.point, b.point).then_with(|| {
                let (to_a, to_b) = (other(a), other(b));
                let halves = is_western(a.point, to_a).cmp(&is_western(b.point, to_b));
                halves.then_with(|| 0.cmp(&side_of_line(a.point, to_a, to_b)))
            })
        });
        let mut corners = Self {
            starts: Vec::new(),
            of_segment: vec![[0; 2]; segments.list.len()],
            of_end: Vec::with_capacity(ends.len()),
            ends,
        };
        let mut last = None;
        for (index, end) in (0..).zip(&corners.ends) {
            if last != Some(end.point) {
                corners.starts.push(index);
                last = Some(end.point);
            }
            corners.of_end.push(corners.starts.len() as u32 - 1);
            corners.of_segment[end.segment as usize][usize::from(!end.is_first)] = index;
        }
        corners.starts.push(corners.ends.len() as u32);
        corners
    }

    /// Returns the number of corners.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the indices of the ends at a corner.
    fn range_of_ends(&self, corner: usize) -> std::ops::Range<usize> {
        self.starts[corner] as usize..self.starts[corner + 1] as usize
    }

    /// Returns the ends at a corner, counter-clockwise.
    pub(super) fn ends_at_corner(&self, corner: usize) -> &[SegmentEnd] {
        &self.ends[self.range_of_ends(corner)]
    }

    /// Returns the corner at one end of a segment, and the index of this end among the ends at the corner.
    pub(super) fn corner_and_index_of(&self, segment: u32, is_first: bool) -> (usize, usize) {
        let end = self.of_segment[segment as usize][usize::from(!is_first)] as usize;
        let corner = self.of_end[end] as usize;
        (corner, end - self.range_of_ends(corner).start)
    }

    /// Returns the next end, in clockwise order around the corner, after the given end of a segment.
    pub(super) fn next_clockwise(&self, segment: u32, is_first: bool) -> &SegmentEnd {
        let (corner, index) = self.corner_and_index_of(segment, is_first);
        let ends = self.ends_at_corner(corner);
        &ends[index.checked_sub(1).unwrap_or(ends.len() - 1)]
    }

    /// Adds a problem for each location where an odd number of segments ends.
    pub(super) fn report_open_ends(&self, segments: &Segments<'_>, problems: &mut ProblemList) {
        for corner in 0..self.len() {
            let ends = self.ends_at_corner(corner);
            let Some(end) = ends.first().filter(|_| !ends.len().is_multiple_of(2)) else {
                continue;
            };
            let way = segments.way_id(&segments.list[end.segment as usize]);
            let (kind, ways) = (ProblemKind::OpenRing, [Some(way), None]);
            problems.add(AreaProblem::new(kind, Some(end.point), ways));
        }
    }
}

/// For each segment, the side on which the inside lies. Also lists the connected groups of segments that are nested in
/// other groups.
pub(super) struct Sides {
    /// Whether the inside lies on the left of each segment, seen from the first end of the segment.
    pub inside_is_left: Vec<bool>,
    /// For each group of segments that is nested in another group: a segment on the outer boundary of the nested group,
    /// and the segment directly below the westernmost corner of the nested group.
    pub nested: Vec<(u32, u32)>,
}

impl Sides {
    pub(super) fn of(segments: &Segments<'_>, corners: &Corners) -> Self {
        let mut sides = Self {
            inside_is_left: vec![false; segments.list.len()],
            nested: Vec::new(),
        };
        let mut is_known = vec![false; corners.len()];
        let mut sweep = Sweep::new(segments);
        // Corners are sorted from west to east. The first corner of a group in this order is therefore its westernmost
        // corner.
        for corner in 0..corners.len() {
            if is_known[corner] {
                continue;
            }
            let lowest = &corners.ends_at_corner(corner)[0];
            let (is_inside, below) = sweep.segment_below(lowest.point, &sides.inside_is_left);
            if let Some(below) = below.filter(|_| is_inside) {
                sides.nested.push((lowest.segment, below));
            }
            // The point just west of this corner lies on the right of the corner's lowest segment, and outside of the
            // group. The point is in the area only if the group lies inside another group (`is_inside`). The left side
            // of the segment is the opposite.
            sides.propagate_sides(corners, corner, !is_inside, &mut is_known);
        }
        sides
    }

    /// Sets [`inside_is_left`](Self::inside_is_left) for all segments of a group. `is_left` tells whether the inside
    /// lies on the left of the first segment at `corner`, seen from the corner.
    fn propagate_sides(
        &mut self,
        corners: &Corners,
        corner: usize,
        is_left: bool,
        is_known: &mut [bool],
    ) {
        let mut waiting = vec![(corner, 0, is_left)];
        while let Some((corner, known, is_left)) = waiting.pop() {
            if std::mem::replace(&mut is_known[corner], true) {
                continue;
            }
            // Around a corner, inside and outside alternate, so the side changes from each segment to the next.
            for (index, end) in corners.ends_at_corner(corner).iter().enumerate() {
                let is_left = is_left ^ ((index ^ known) & 1 == 1);
                self.inside_is_left[end.segment as usize] = is_left == end.is_first;
                let (other, there) = corners.corner_and_index_of(end.segment, !end.is_first);
                if !is_known[other] {
                    waiting.push((other, there, !is_left));
                }
            }
        }
    }
}

/// The largest value of `looked_at / segments.len()` at which a [`Sweep`] still uses its list of active segments. At
/// larger values, an [`OrderedSweep`] replaces the list.
const MOST_LOOKED_AT: usize = 16;

/// A vertical sweep line that moves from west to east.
struct Sweep<'a> {
    segments: &'a [AreaSegment],
    /// The number of segments that begin on the line or west of it.
    begun: usize,
    /// The segments that the line may cross.
    active: Vec<u32>,
    /// The number of entries of `active` that all calls of `segment_below` together have looked at.
    looked_at: usize,
    /// The sweep that replaces `active` once `looked_at` is large.
    ordered: Option<OrderedSweep<'a>>,
}

impl<'a> Sweep<'a> {
    fn new(segments: &'a Segments<'_>) -> Self {
        Self {
            segments: &segments.list,
            begun: 0,
            active: Vec::new(),
            looked_at: 0,
            ordered: None,
        }
    }

    /// Returns whether the number of segments below a point is odd, and the highest of these segments. The points of
    /// successive calls must go from west to east, and must not lie on a segment that begins further west.
    /// `inside_is_left` tells, for each segment that begins west of the point, whether the inside lies on its left.
    ///
    /// In nearly all areas, the line crosses few segments, and an unordered list of them is fastest. The line crosses
    /// many segments if many rings of an area share a range of longitudes. In that case, an ordered sweep replaces the
    /// list.
    fn segment_below(&mut self, point: Point, inside_is_left: &[bool]) -> (bool, Option<u32>) {
        if self.looked_at > MOST_LOOKED_AT * self.segments.len() {
            let new = || OrderedSweep::new(self.segments);
            let below = self.ordered.get_or_insert_with(new).segment_below(point);
            // No segment lies between the segment `below` and the point above it. The upper side of a segment is its
            // left side, because segments run from west to east.
            let is_inside = below.is_some_and(|below| inside_is_left[below]);
            return (is_inside, below.map(|below| below as u32));
        }
        let segment = |index: u32| &self.segments[index as usize];
        while let Some(next) = self.segments.get(self.begun)
            && next.first.lon_e7 <= point.lon_e7
        {
            self.active.push(self.begun as u32);
            self.begun += 1;
        }
        self.active
            .retain(|index| segment(*index).second.lon_e7 > point.lon_e7);
        self.looked_at += self.active.len();
        let mut highest: Option<u32> = None;
        let mut is_odd = false;
        for index in &self.active {
            let found = segment(*index);
            if found.first == point || found.side(point) != Ordering::Greater {
                continue;
            }
            is_odd = !is_odd;
            let is_higher = |than: u32| is_above(found, segment(than));
            if highest.is_none_or(is_higher) {
                highest = Some(*index);
            }
        }
        (is_odd, highest)
    }
}

/// Whether `one` lies above `other`. A vertical line must cross both segments, and they must not cross each other.
fn is_above(one: &AreaSegment, other: &AreaSegment) -> bool {
    // Compares the more eastern of the two western ends with the other segment. If that end lies on the other segment,
    // compares the more western of the two eastern ends.
    let by = match compare_west_to_east(one.first, other.first) {
        Ordering::Less => one.side(other.first).reverse(),
        _ => other.side(one.first),
    };
    let by = by.then_with(|| match compare_west_to_east(one.second, other.second) {
        Ordering::Greater => one.side(other.second).reverse(),
        _ => other.side(one.second),
    });
    by == Ordering::Greater
}
