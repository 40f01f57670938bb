//! The segments of the ways that bound an area.

use super::problems::{MOST_OF_KIND, ProblemList};
pub(super) use super::segment::{AreaSegment, compare_west_to_east, side_of_line};
use super::segment::{Meeting, classify_meeting, intersection};
use super::sweep::first_crossing;
use super::{AreaProblem, AreaWay, ProblemKind};
use crate::geometry::Point;
use rustc_hash::FxHashSet;
use std::cmp::Ordering;

/// The segments of an area, sorted by their ends. West precedes east, then south precedes north.
pub(super) struct Segments<'a> {
    pub ways: &'a [AreaWay<'a>],
    pub list: Vec<AreaSegment>,
}

/// Returns the index of the first point in the order of [`compare_west_to_east`]; 0 if there are no points.
pub(super) fn westernmost(points: &[Point]) -> usize {
    let indices = 0..points.len();
    let first = indices.min_by(|a, b| compare_west_to_east(points[*a], points[*b]));
    first.unwrap_or(0)
}

/// The maximum average number of pairs per segment that are compared without a sweep. If there are more pairs, a sweep
/// decides whether any segments cross at all.
const FEW_PAIRS: u64 = 64;
/// The maximum average number of pairs per segment that are compared after a sweep has found a crossing. [`MOST_PAIRS`]
/// is the maximum total number.
const MOST_PAIRS_OF_SEGMENT: u64 = 256;
const MOST_PAIRS: u64 = 1 << 28;

impl<'a> Segments<'a> {
    /// Cuts ways into segments. Pairs of equal segments cancel each other.
    pub(super) fn of(ways: &'a [AreaWay<'a>], problems: &mut ProblemList) -> Self {
        let mut segments = Self {
            ways,
            list: Vec::with_capacity(ways.iter().map(|way| way.nodes.len()).sum()),
        };
        let (mut known, mut repeated) = (FxHashSet::default(), FxHashSet::default());
        for (index, way) in (0..).zip(ways) {
            if !known.insert(way.id) {
                if repeated.insert(way.id) {
                    problems.add_for_area(ProblemKind::DuplicateWay, Some(way.id));
                }
                continue;
            }
            for pair in way.nodes.windows(2) {
                let &[from, to] = pair else { continue };
                if from.point != to.point {
                    segments
                        .list
                        .push(AreaSegment::new(from.point, to.point, index));
                } else if from.id != to.id {
                    let (kind, ways) = (ProblemKind::DuplicateNode, [Some(way.id), None]);
                    problems.add(AreaProblem {
                        node: Some(to.id),
                        ..AreaProblem::new(kind, Some(to.point), ways)
                    });
                }
            }
        }
        let order = |a: &AreaSegment, b: &AreaSegment| {
            let ends = compare_west_to_east(a.first, b.first)
                .then(compare_west_to_east(a.second, b.second));
            ends.then(a.way.cmp(&b.way))
        };
        segments.list.sort_unstable_by(order);
        segments.remove_equal_pairs(problems);
        segments
    }

    /// Removes pairs of equal segments, and adds a problem for each group of equal segments.
    fn remove_equal_pairs(&mut self, problems: &mut ProblemList) {
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
                let ways = [one, other].map(|segment| Some(self.way_id(segment)));
                problems.add(AreaProblem {
                    segments: [Some(one.ends().into()), None],
                    ..AreaProblem::new(ProblemKind::DuplicateSegment, Some(one.first), ways)
                });
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the id of the way to which a segment belongs.
    pub(super) fn way_id(&self, segment: &AreaSegment) -> i64 {
        self.ways[segment.way as usize].id
    }

    /// Adds a problem for each place where segments cross or overlap, up to [`MOST_OF_KIND`] places.
    ///
    /// Compares the pairs of segments whose ranges of longitudes overlap. Nearly all areas have few such pairs. If
    /// there are many, as in a narrow strip, a sweep first decides whether any segments cross at all. The comparison of
    /// pairs then ends after [`MOST_PAIRS_OF_SEGMENT`] pairs per segment on average, or [`MOST_PAIRS`] in total.
    pub(super) fn report_crossings(&self, problems: &mut ProblemList) {
        let (mut known, mut pairs) = (FxHashSet::default(), 0u64);
        // Two segments that cross; `None` until a sweep has found them.
        let mut swept = None;
        let few_pairs = FEW_PAIRS * self.list.len() as u64;
        let most_pairs = MOST_PAIRS.min(MOST_PAIRS_OF_SEGMENT * self.list.len() as u64);
        for (index, a) in self.list.iter().enumerate() {
            let others = &self.list[index + 1..];
            let near = others.partition_point(|b| b.first.lon_e7 <= a.second.lon_e7);
            pairs += near as u64;
            if pairs > few_pairs && swept.is_none() {
                swept = first_crossing(&self.list);
                if swept.is_none() {
                    return;
                }
            }
            if let Some([a, b]) = swept.filter(|_| pairs > most_pairs) {
                self.add_crossing(&a, &b, &mut known, problems);
                return;
            }
            for b in &others[..near] {
                self.add_crossing(a, b, &mut known, problems);
                if known.len() >= MOST_OF_KIND {
                    return;
                }
            }
        }
    }

    /// Adds a problem if two segments cross or overlap. Does nothing if `known` already has this location with the same
    /// ways. The second segment must not begin west of the first.
    fn add_crossing(
        &self,
        a: &AreaSegment,
        b: &AreaSegment,
        known: &mut FxHashSet<(Point, [Option<i64>; 2])>,
        problems: &mut ProblemList,
    ) {
        let (kind, point) = match classify_meeting(a, b) {
            Meeting::Allowed => return,
            Meeting::Crossing => (ProblemKind::Crossing, intersection(a, b)),
            Meeting::Overlap => (ProblemKind::Overlap, b.first),
        };
        let ways = [a, b].map(|segment| Some(self.way_id(segment)));
        if known.insert((point, ways)) {
            problems.add(AreaProblem {
                segments: [a, b].map(|segment| Some(segment.ends().into())),
                ..AreaProblem::new(kind, Some(point), ways)
            });
        }
    }

    /// Removes segments until no location is the end of exactly one segment.
    pub(super) fn leave_out_open_ends(&mut self) {
        let mut ends: Vec<(Point, usize)> = Vec::with_capacity(self.list.len() * 2);
        for (index, segment) in self.list.iter().enumerate() {
            ends.extend([(segment.first, index), (segment.second, index)]);
        }
        ends.sort_unstable_by(|a, b| compare_west_to_east(a.0, b.0).then(a.1.cmp(&b.1)));
        let at = |point: Point| {
            let start =
                ends.partition_point(|end| compare_west_to_east(end.0, point) == Ordering::Less);
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
