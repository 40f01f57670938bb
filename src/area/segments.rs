//! The segments of the ways that bound an area.

use super::{AreaNode, AreaProblem, AreaWay, ProblemKind};
use crate::geometry::{Edge, EdgeRelation, HalfUnitPoint, Point};
use rustc_hash::FxHashSet;
use std::cmp::Ordering;

/// A segment between two different locations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// The western end, or the southern end of a vertical segment.
    pub first: Point,
    /// The eastern end, or the northern end of a vertical segment.
    pub second: Point,
    /// The index of the way.
    pub way: u32,
}

/// The segments of an area, sorted by their ends. West precedes east, then south precedes north.
pub(super) struct Segments<'a> {
    pub ways: &'a [AreaWay<'a>],
    pub list: Vec<Segment>,
}

/// Compares two points: west before east, then south before north.
pub(super) fn from_west(a: Point, b: Point) -> Ordering {
    (a.lon_e7, a.lat_e7).cmp(&(b.lon_e7, b.lat_e7))
}

/// Returns the index of the first point in the order of [`from_west`]; 0 if there are no points.
pub(super) fn westernmost(points: &[Point]) -> usize {
    let indices = 0..points.len();
    let first = indices.min_by(|a, b| from_west(points[*a], points[*b]));
    first.unwrap_or(0)
}

/// Returns on which side of the line from `a` to `b` a point lies. Positive is left.
pub(super) fn turn(a: Point, b: Point, point: Point) -> i128 {
    Edge { from: a, to: b }.side(HalfUnitPoint::of(point))
}

impl Segment {
    fn new(a: Point, b: Point, way: u32) -> Self {
        let (first, second) = match from_west(a, b) {
            Ordering::Greater => (b, a),
            _ => (a, b),
        };
        Self { first, second, way }
    }

    fn ends(&self) -> (Point, Point) {
        (self.first, self.second)
    }

    /// Returns on which side of the segment a point lies. `Greater` is left, seen from the first end.
    pub(super) fn side(&self, point: Point) -> Ordering {
        turn(self.first, self.second, point).cmp(&0)
    }

    fn edge(&self) -> Edge {
        Edge {
            from: self.first,
            to: self.second,
        }
    }
}

/// How two different segments meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meeting {
    /// The segments share no point, or only a point that is an end of both.
    Allowed,
    /// The segments cross, or an end of one lies within the other.
    Crossing,
    /// The segments are collinear, and share more than one point.
    Overlap,
}

/// Returns how two segments meet. The second must not begin west of the first.
fn meeting(a: &Segment, b: &Segment) -> Meeting {
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
fn intersection(a: &Segment, b: &Segment) -> Point {
    let (one, two) = (
        turn(b.first, b.second, a.first),
        turn(b.first, b.second, a.second),
    );
    let along = |from: i32, to: i32| {
        let way = i128::from(to) - i128::from(from);
        // The segments cross, so the ends of `a` lie on different sides of `b`, and the divisor is not 0.
        (i128::from(from) + one * way / (one - two)) as i32
    };
    Point {
        lat_e7: along(a.first.lat_e7, a.second.lat_e7),
        lon_e7: along(a.first.lon_e7, a.second.lon_e7),
    }
}

impl<'a> Segments<'a> {
    /// Cuts ways into segments. Pairs of equal segments cancel each other.
    pub(super) fn of(ways: &'a [AreaWay<'a>], problems: &mut Vec<AreaProblem>) -> Self {
        let mut segments = Self {
            ways,
            list: Vec::with_capacity(ways.iter().map(|way| way.nodes.len()).sum()),
        };
        let mut known = FxHashSet::default();
        for (index, way) in (0..).zip(ways) {
            if !known.insert(way.id) {
                problems.push(segments.problem(ProblemKind::DuplicateWay, Some(way.id)));
                continue;
            }
            for pair in way.nodes.windows(2) {
                let &[from, to] = pair else { continue };
                if from.point != to.point {
                    segments
                        .list
                        .push(Segment::new(from.point, to.point, index));
                } else if from.id != to.id {
                    problems.push(AreaProblem {
                        kind: ProblemKind::DuplicateNode,
                        point: Some(to.point),
                        node: Some(to.id),
                        ways: [Some(way.id), None],
                    });
                }
            }
        }
        let order = |a: &Segment, b: &Segment| {
            let ends = from_west(a.first, b.first).then(from_west(a.second, b.second));
            ends.then(a.way.cmp(&b.way))
        };
        segments.list.sort_unstable_by(order);
        segments.leave_out_pairs(problems);
        segments
    }

    fn leave_out_pairs(&mut self, problems: &mut Vec<AreaProblem>) {
        let all = std::mem::take(&mut self.list);
        self.list.reserve(all.len());
        for same in all.chunk_by(|a, b| a.ends() == b.ends()) {
            let Some((one, others)) = same.split_first() else {
                continue;
            };
            if others.len().is_multiple_of(2) {
                self.list.push(*one);
            }
            if let Some(other) = others.first() {
                problems.push(AreaProblem {
                    kind: ProblemKind::DuplicateSegment,
                    point: Some(one.first),
                    node: self.node_at(one.first),
                    ways: [one, other].map(|segment| Some(self.way_id(segment))),
                });
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Creates a problem that concerns the whole area. It has no location, and names `way` if given.
    pub(super) const fn problem(&self, kind: ProblemKind, way: Option<i64>) -> AreaProblem {
        AreaProblem {
            kind,
            point: None,
            node: None,
            ways: [way, None],
        }
    }

    /// Returns the id of the way to which a segment belongs.
    pub(super) fn way_id(&self, segment: &Segment) -> i64 {
        self.ways[segment.way as usize].id
    }

    /// Returns the id of a node at a location, if there is one.
    pub(super) fn node_at(&self, point: Point) -> Option<i64> {
        let mut nodes = self.ways.iter().flat_map(|way| way.nodes);
        let node: Option<&AreaNode> = nodes.find(|node| node.point == point);
        node.map(|node| node.id)
    }

    /// Adds a problem for each place where segments cross or overlap.
    pub(super) fn find_crossings(&self, problems: &mut Vec<AreaProblem>) {
        let mut known = FxHashSet::default();
        for (index, a) in self.list.iter().enumerate() {
            let near = self.list[index + 1..]
                .iter()
                .take_while(|b| b.first.lon_e7 <= a.second.lon_e7);
            for b in near {
                let (kind, point) = match meeting(a, b) {
                    Meeting::Allowed => continue,
                    Meeting::Crossing => (ProblemKind::Crossing, intersection(a, b)),
                    Meeting::Overlap => (ProblemKind::Overlap, b.first),
                };
                let ways = [a, b].map(|segment| Some(self.way_id(segment)));
                if known.insert((point, ways)) {
                    problems.push(AreaProblem {
                        kind,
                        point: Some(point),
                        node: self.node_at(point),
                        ways,
                    });
                }
            }
        }
    }

    /// Removes segments until no location is the end of exactly one segment.
    pub(super) fn leave_out_open_ends(&mut self) {
        let mut ends: Vec<(Point, usize)> = Vec::with_capacity(self.list.len() * 2);
        for (index, segment) in self.list.iter().enumerate() {
            ends.extend([(segment.first, index), (segment.second, index)]);
        }
        ends.sort_unstable_by(|a, b| from_west(a.0, b.0).then(a.1.cmp(&b.1)));
        let at = |point: Point| {
            let start = ends.partition_point(|end| from_west(end.0, point) == Ordering::Less);
            ends[start..].iter().take_while(move |end| end.0 == point)
        };
        let mut is_kept = vec![true; self.list.len()];
        let degrees = |point: Point, is_kept: &[bool]| {
            let mut kept = at(point).filter(|end| is_kept[end.1]);
            (kept.next().map(|end| end.1), kept.next().is_none())
        };
        for start in &ends {
            let mut point = start.0;
            while let (Some(index), true) = degrees(point, &is_kept) {
                is_kept[index] = false;
                let segment = &self.list[index];
                point = if segment.first == point {
                    segment.second
                } else {
                    segment.first
                };
            }
        }
        self.retain(is_kept);
    }

    /// Keeps the segments whose flag is set.
    pub(super) fn retain(&mut self, is_kept: Vec<bool>) {
        let mut index = 0;
        self.list.retain(|_| {
            index += 1;
            is_kept[index - 1]
        });
    }
}
