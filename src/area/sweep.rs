//! Decides whether segments cross, and finds the segment below a point. For n segments, a sweep takes O(n log n) time,
//! because it does not compare all pairs of segments.

use super::segment::{AreaSegment, Meeting, classify_meeting, compare_west_to_east};
use crate::geometry::Point;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Bound;

/// A segment that the sweep line meets. Segments are ordered from south to north along the line. The order is defined
/// only for segments that do not cross.
#[derive(Debug, Clone, Copy)]
struct Met(AreaSegment);

impl Ord for Met {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.0, &other.0);
        if a == b {
            return Ordering::Equal;
        }
        // One of the segments begins later in the sweep. It lies on one side of the earlier segment, because the two do
        // not cross.
        let (early, late, is_swapped) = match compare_west_to_east(a.first, b.first) {
            Ordering::Greater => (b, a, false),
            _ => (a, b, true),
        };
        let side = early.side(late.first).then_with(|| early.side(late.second));
        let side = if is_swapped { side.reverse() } else { side };
        // Collinear segments overlap, or share an end. Any order of these will do.
        side.then_with(|| compare_west_to_east(a.first, b.first))
            .then_with(|| compare_west_to_east(a.second, b.second))
            .then(a.way.cmp(&b.way))
    }
}

impl PartialOrd for Met {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Met {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Met {}

/// The segments that the sweep line meets.
#[derive(Default)]
struct SweepLine(BTreeSet<Met>);

impl SweepLine {
    /// Adds a segment. If the segment crosses one of its neighbours, returns the segment and this neighbour.
    fn insert(&mut self, segment: AreaSegment) -> Option<[AreaSegment; 2]> {
        let new = Met(segment);
        let near = self.neighbours(&new);
        self.0.insert(new);
        let mut near = near.into_iter().flatten();
        near.find_map(|near| pair_if_crossing(near, segment))
    }

    /// Removes a segment. If its two neighbours cross each other, returns these neighbours.
    fn remove(&mut self, segment: AreaSegment) -> Option<[AreaSegment; 2]> {
        let ended = Met(segment);
        self.0.remove(&ended);
        match self.neighbours(&ended) {
            [Some(below), Some(above)] => pair_if_crossing(below, above),
            _ => None,
        }
    }

    /// Returns the segments directly south and north of a segment.
    fn neighbours(&self, of: &Met) -> [Option<AreaSegment>; 2] {
        let below = self.0.range((Bound::Unbounded, Bound::Excluded(of)));
        let above = self.0.range((Bound::Excluded(of), Bound::Unbounded));
        let (mut below, mut above) = (below, above);
        [below.next_back(), above.next()].map(|near| near.map(|near| near.0))
    }
}

/// A sweep that finds the segment below each of several points. The points are passed in order from west to east.
pub(crate) struct OrderedSweep<'a> {
    /// The segments, sorted from west to east by their first ends, then by their second ends. They must not cross.
    segments: &'a [AreaSegment],
    /// The number of segments that have begun.
    begun: usize,
    /// The second end (longitude, latitude) and the index of each segment on the line. The segment that ends furthest
    /// west comes first.
    on_line: BinaryHeap<Reverse<([i32; 2], usize)>>,
    line: SweepLine,
}

impl<'a> OrderedSweep<'a> {
    pub(crate) fn new(segments: &'a [AreaSegment]) -> Self {
        Self {
            segments,
            begun: 0,
            on_line: BinaryHeap::new(),
            line: SweepLine::default(),
        }
    }

    /// Returns the index of the highest segment below a point. A segment that ends at the longitude of the point does
    /// not count. A segment that begins there and continues to the east counts. The points of successive calls must go
    /// from west to east, and must not lie on a segment that begins further west.
    pub(crate) fn segment_below(&mut self, point: Point) -> Option<usize> {
        let place = |point: Point| [point.lon_e7, point.lat_e7];
        while let Some(Reverse((end, index))) = self.on_line.peek()
            && *end <= place(point)
        {
            self.line.0.remove(&Met(self.segments[*index]));
            self.on_line.pop();
        }
        // A segment that begins and ends between two successive points is never added to the line.
        while let Some(next) = self.segments.get(self.begun)
            && compare_west_to_east(next.first, point) == Ordering::Less
        {
            if compare_west_to_east(next.second, point) == Ordering::Greater {
                self.line.0.insert(Met(*next));
                self.on_line.push(Reverse((place(next.second), self.begun)));
            }
            self.begun += 1;
        }
        let at = Met(AreaSegment {
            first: point,
            second: point,
            way: 0,
        });
        let [below, _] = self.line.neighbours(&at);
        let below = below?;
        let order = |segment: &AreaSegment| {
            let first = compare_west_to_east(segment.first, below.first);
            first.then_with(|| compare_west_to_east(segment.second, below.second))
        };
        self.segments.binary_search_by(order).ok()
    }
}

/// Returns two segments if they cross or overlap. The one that begins further west comes first.
fn pair_if_crossing(a: AreaSegment, b: AreaSegment) -> Option<[AreaSegment; 2]> {
    let [a, b] = match compare_west_to_east(a.first, b.first) {
        Ordering::Greater => [b, a],
        _ => [a, b],
    };
    (classify_meeting(&a, &b) != Meeting::Allowed).then_some([a, b])
}

/// Returns two segments that cross or overlap; `None` if no two segments do. The segments are sorted by their ends,
/// from west to east, and are all different. A line sweeps over the segments, and each segment is compared only with
/// its neighbours on the line (M. Shamos, D. Hoey, "Geometric intersection problems", 1976).
pub(crate) fn first_crossing(segments: &[AreaSegment]) -> Option<[AreaSegment; 2]> {
    let mut by_end = segments.to_vec();
    by_end.sort_unstable_by(|a, b| compare_west_to_east(a.second, b.second));
    let mut ends = by_end.into_iter().peekable();
    let mut line = SweepLine::default();
    for segment in segments {
        // Segments may share an end. Therefore, a segment that ends where this one begins leaves the line first.
        let is_over = |end: &AreaSegment| {
            compare_west_to_east(end.second, segment.first) != Ordering::Greater
        };
        while let Some(ended) = ends.next_if(is_over) {
            if let Some(found) = line.remove(ended) {
                return Some(found);
            }
        }
        if let Some(found) = line.insert(*segment) {
            return Some(found);
        }
    }
    ends.find_map(|ended| line.remove(ended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::geometry::Point;

    fn segment(ends: [[i32; 2]; 2]) -> AreaSegment {
        let [a, b] = ends.map(|[lon_e7, lat_e7]| Point { lat_e7, lon_e7 });
        AreaSegment::new(a, b, 0)
    }

    fn sorted(mut segments: Vec<AreaSegment>) -> Vec<AreaSegment> {
        let ends = |segment: &AreaSegment| [segment.first, segment.second];
        segments.sort_unstable_by(|a, b| {
            compare_west_to_east(a.first, b.first).then(compare_west_to_east(a.second, b.second))
        });
        segments.dedup_by_key(|segment| ends(segment));
        segments
    }

    #[test]
    fn a_sweep_finds_a_crossing_if_a_comparison_of_pairs_finds_one() {
        let mut random = Random(7);
        let mut found = [0, 0];
        for round in 0..20_000u64 {
            let (count, size) = (2 + round % 9, 2 + round / 9 % 7);
            let mut at = || random.below(size) as i32;
            let all = (0..count).map(|_| segment([[at(), at()], [at(), at()]]));
            let all = sorted(all.filter(|one| one.first != one.second).collect());
            let mut pairs = all.iter().enumerate();
            let by_pairs = pairs.any(|(index, a)| {
                let mut others = all[index + 1..].iter();
                others.any(|b| classify_meeting(a, b) != Meeting::Allowed)
            });
            let swept = first_crossing(&all);
            assert_eq!(swept.is_some(), by_pairs, "{all:?}");
            if let Some([a, b]) = swept {
                assert_ne!(classify_meeting(&a, &b), Meeting::Allowed);
            }
            found[usize::from(by_pairs)] += 1;
        }
        assert!(found.iter().all(|count| *count > 2000), "{found:?}");
    }

    #[test]
    fn the_segment_below_a_point_is_found_as_by_testing_all() {
        let mut random = Random(11);
        for count in [0, 1, 10, 100, 300] {
            // Each segment lies in a band of latitudes of its own. The points lie outside of all bands.
            let segments = (0..count).map(|band| {
                let mut end = || [random.below(100), 10 * band + random.below(8)];
                segment([end(), end()])
            });
            let segments = sorted(segments.filter(|one| one.first != one.second).collect());
            let mut points: Vec<Point> = (0..200)
                .map(|_| Point {
                    lat_e7: 10 * random.below(count as usize + 2) as i32 - 1,
                    lon_e7: random.below(100),
                })
                .collect();
            points.sort_by(|a, b| compare_west_to_east(*a, *b));
            let mut sweep = OrderedSweep::new(&segments);
            for point in points {
                let is_met = |segment: &AreaSegment| {
                    compare_west_to_east(segment.first, point).is_lt()
                        && compare_west_to_east(segment.second, point).is_gt()
                };
                let below = |segment: &AreaSegment| segment.first.lat_e7 < point.lat_e7;
                let expected = (0..segments.len())
                    .filter(|index| is_met(&segments[*index]) && below(&segments[*index]))
                    .max_by_key(|index| segments[*index].first.lat_e7);
                assert_eq!(sweep.segment_below(point), expected);
            }
        }
    }

    #[test]
    fn segments_in_one_range_are_swept_quickly() {
        const COUNT: i32 = 100_000;
        // A comb of parallel slanted segments, and a star of segments with a common end.
        let comb = (0..COUNT).map(|at| segment([[0, at * 2], [COUNT, at * 2 + COUNT]]));
        assert_eq!(first_crossing(&sorted(comb.collect())), None);
        let star = (0..COUNT).map(|at| segment([[0, 0], [COUNT, at]]));
        assert_eq!(first_crossing(&sorted(star.collect())), None);
    }
}
