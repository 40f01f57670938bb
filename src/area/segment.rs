//! Segments of the ways that bound an area, and how two of them meet.

use crate::geometry::{Edge, EdgeRelation, HalfUnitPoint, Point};
use std::cmp::Ordering;

/// A segment between two different locations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AreaSegment {
    /// The western end. In a vertical segment, this is the southern end.
    pub first: Point,
    /// The eastern end. In a vertical segment, this is the northern end.
    pub second: Point,
    /// The index of the way.
    pub way: u32,
}

/// Compares two points: west before east, then south before north.
pub(crate) fn compare_west_to_east(a: Point, b: Point) -> Ordering {
    (a.lon_e7, a.lat_e7).cmp(&(b.lon_e7, b.lat_e7))
}

/// Returns on which side of the line from `a` to `b` a point lies. A positive result means left.
pub(super) fn side_of_line(a: Point, b: Point, point: Point) -> i128 {
    Edge { from: a, to: b }.side(HalfUnitPoint::of(point))
}

impl AreaSegment {
    pub(crate) fn new(a: Point, b: Point, way: u32) -> Self {
        let (first, second) = match compare_west_to_east(a, b) {
            Ordering::Greater => (b, a),
            _ => (a, b),
        };
        Self { first, second, way }
    }

    pub(crate) fn ends(&self) -> (Point, Point) {
        (self.first, self.second)
    }

    /// Returns on which side of the segment a point lies. `Greater` means left, as seen from the first end.
    pub(crate) fn side(&self, point: Point) -> Ordering {
        side_of_line(self.first, self.second, point).cmp(&0)
    }

    /// Returns the segment as an edge, from its first to its second end.
    fn edge(&self) -> Edge {
        Edge::new(self.first, self.second)
    }
}

/// The relation between two different segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// The segments share no point, or only a point that is an end of both.
    Allowed,
    /// The segments cross, or an end of one lies within the other.
    Crossing,
    /// The segments are collinear, and share more than one point.
    Overlap,
}

/// Returns how two segments meet. `b` must not begin west of `a`.
pub(crate) fn classify_meeting(a: &AreaSegment, b: &AreaSegment) -> Meeting {
    match a.edge().relation_to(&b.edge()) {
        EdgeRelation::Apart => Meeting::Allowed,
        EdgeRelation::Crossing => Meeting::Crossing,
        EdgeRelation::Touching => {
            let is_on_line = |point| a.side(point) == Ordering::Equal;
            let ends = [b.first, b.second];
            if is_on_line(b.first) && is_on_line(b.second) {
                // The segments touch and lie on one line. `b` does not begin west of `a`, so it begins where `a` ends,
                // or the two overlap.
                if b.first == a.second {
                    Meeting::Allowed
                } else {
                    Meeting::Overlap
                }
            } else if ends.contains(&a.first) || ends.contains(&a.second) {
                Meeting::Allowed
            } else {
                Meeting::Crossing
            }
        }
    }
}

/// Returns the intersection of two segments that cross, rounded.
pub(crate) fn intersection(a: &AreaSegment, b: &AreaSegment) -> Point {
    let (one, two) = (
        side_of_line(b.first, b.second, a.first),
        side_of_line(b.first, b.second, a.second),
    );
    let along = |from: i32, to: i32| {
        let way = i128::from(to) - i128::from(from);
        // The segments cross, so the ends of `a` do not lie on the same side of `b`, and `one` and `two` differ.
        (i128::from(from) + one * way / (one - two)) as i32
    };
    Point::new(
        along(a.first.lat_e7, a.second.lat_e7),
        along(a.first.lon_e7, a.second.lon_e7),
    )
}
