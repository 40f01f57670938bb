//! Closes the gaps between the ends of paths, the starts of paths, and the border.

use super::border::{Border, BorderPlace};
use super::nearest::NearestPlaces;
use super::path::CoastPath;
use super::problem::{CoastProblem, CoastProblemKind, ProblemPlace};
use crate::geometry::Point;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The length of 1e-7 degree of latitude in metres.
const METRES_PER_UNIT: f64 = 0.011_119_5;

/// The distance in metres up to which an end counts as being on the border.
const AT_PLACE_M: f64 = 0.01;

/// The rules for closing gaps.
pub(super) struct GapRules<'g> {
    /// The maximum length in metres of the gaps to close; 0 closes no gaps.
    pub close_distance_m: f64,
    pub border: &'g Border,
    /// Whether the region is only a part of the world. If so, a path that ends within the region is continued to the
    /// nearest start of a path or to the border, at any distance.
    pub is_extract: bool,
}

/// A path whose ends may lie on the border.
#[derive(Default)]
pub(super) struct BoundPath {
    pub path: CoastPath,
    /// The places on the border to which the start and the end are joined.
    pub places: [Option<BorderPlace>; 2],
}

/// A possible continuation of a path beyond one of its ends.
struct Continuation {
    distance_m: f64,
    /// The end to continue: the index of the open path, and whether the end is its last point rather than its first.
    end: (usize, bool),
    target: ContinuationTarget,
}

#[derive(Clone, Copy)]
enum ContinuationTarget {
    Border(BorderPlace),
    /// The start of the open path with this index.
    Start(usize),
}

impl Continuation {
    /// Returns the sort key for continuations of the same length. Continuations to the border come before those to
    /// starts.
    fn key(&self) -> (bool, usize, bool) {
        (
            matches!(self.target, ContinuationTarget::Start(_)),
            self.end.0,
            self.end.1,
        )
    }
}

impl Ord for Continuation {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_distance = self.distance_m.total_cmp(&other.distance_m);
        by_distance.then_with(|| self.key().cmp(&other.key()))
    }
}

impl PartialOrd for Continuation {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Continuation {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Continuation {}

/// The open paths, and their continuations.
struct Gaps<'g> {
    rules: &'g GapRules<'g>,
    paths: Vec<CoastPath>,
    /// The starts that are joined neither with an end nor with the border.
    starts: NearestPlaces,
    /// The possible continuations, the shortest first.
    waiting: BinaryHeap<Reverse<Continuation>>,
    /// For each open path, the path that follows it.
    next: Vec<Option<usize>>,
    /// For each open path, whether another path precedes it.
    has_previous: Vec<bool>,
    /// For each open path, the places of its start and of its end on the border.
    places: Vec<[Option<BorderPlace>; 2]>,
}

/// Closes the gaps of open paths, the shortest first. Joins the last point of a path with the nearest start of a path,
/// or with the border if the border is nearer. Starts may be joined with the border, too.
pub(super) fn close_gaps(
    paths: Vec<CoastPath>,
    rules: &GapRules<'_>,
    problems: &mut Vec<CoastProblem>,
) -> Vec<BoundPath> {
    let (closed, open): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_closed);
    let starts: Vec<Point> = open.iter().filter_map(|path| path.end(false)).collect();
    let count = open.len();
    let mut gaps = Gaps {
        rules,
        paths: open,
        starts: NearestPlaces::new(&starts),
        waiting: BinaryHeap::new(),
        next: vec![None; count],
        has_previous: vec![false; count],
        places: vec![[None; 2]; count],
    };
    gaps.close(problems);
    let bound = |path| BoundPath {
        path,
        places: [None; 2],
    };
    let mut all: Vec<BoundPath> = closed.into_iter().map(bound).collect();
    all.extend(gaps.into_joined_paths());
    all
}

impl Gaps<'_> {
    /// Closes the gaps, the shortest first, and reports them. Then reports the ends that are not joined.
    fn close(&mut self, problems: &mut Vec<CoastProblem>) {
        for path in 0..self.paths.len() {
            for is_last in [false, true] {
                self.queue_nearest_border(path, is_last);
            }
            self.queue_nearest_start(path);
        }
        while let Some(Reverse(continuation)) = self.waiting.pop() {
            let (path, is_last) = continuation.end;
            if self.is_joined(path, is_last) {
                continue;
            }
            match continuation.target {
                ContinuationTarget::Border(place) => {
                    self.places[path][usize::from(is_last)] = Some(place);
                    if !is_last {
                        self.starts.remove(path);
                    }
                    if continuation.distance_m > self.rules.close_distance_m.max(AT_PLACE_M) {
                        self.report(CoastProblemKind::EndPoint, path, is_last, problems);
                    }
                }
                ContinuationTarget::Start(start) if self.is_joined(start, false) => {
                    self.queue_nearest_start(path);
                }
                ContinuationTarget::Start(start) => {
                    self.starts.remove(start);
                    self.next[path] = Some(start);
                    self.has_previous[start] = true;
                    self.report_gap(path, start, continuation.distance_m, problems);
                }
            }
        }
        for path in 0..self.paths.len() {
            for is_last in [false, true] {
                if !self.is_joined(path, is_last) {
                    self.report(CoastProblemKind::EndPoint, path, is_last, problems);
                }
            }
        }
    }

    fn is_joined(&self, path: usize, is_last: bool) -> bool {
        let is_continued = if is_last {
            self.next[path].is_some()
        } else {
            self.has_previous[path]
        };
        is_continued || self.places[path][usize::from(is_last)].is_some()
    }

    /// Whether an end is in the region, so that its continuation matters. If the region is the world, all ends are in
    /// it.
    fn is_inside(&self, point: Point) -> bool {
        !self.rules.is_extract || self.rules.border.has(point)
    }

    /// Queues the continuation of an end to the border, if the border is near enough.
    fn queue_nearest_border(&mut self, path: usize, is_last: bool) {
        let Some(point) = self.paths[path].end(is_last) else {
            return;
        };
        if !self.is_inside(point) {
            return;
        }
        let longest_m = if self.rules.is_extract {
            f64::INFINITY
        } else {
            self.rules.close_distance_m.max(AT_PLACE_M)
        };
        if let Some((place, distance)) = self
            .rules
            .border
            .nearest(point, longest_m / METRES_PER_UNIT)
        {
            self.waiting.push(Reverse(Continuation {
                distance_m: distance * METRES_PER_UNIT,
                end: (path, is_last),
                target: ContinuationTarget::Border(place),
            }));
        }
    }

    /// Queues the continuation of the end of a path to the nearest start of a path, if the start is near enough.
    fn queue_nearest_start(&mut self, path: usize) {
        let close_distance_m = self.rules.close_distance_m;
        if close_distance_m <= 0.0 {
            return;
        }
        let Some(end) = self.paths[path].end(true) else {
            return;
        };
        let Some((start, distance_m)) = self.starts.nearest(end) else {
            return;
        };
        let is_far = distance_m > close_distance_m;
        let start_point = self.paths[start].end(false);
        let may_be_far = || {
            self.rules.is_extract
                && self.is_inside(end)
                && start_point.is_some_and(|start| self.is_inside(start))
        };
        if is_far && !may_be_far() {
            return;
        }
        self.waiting.push(Reverse(Continuation {
            distance_m,
            end: (path, true),
            target: ContinuationTarget::Start(start),
        }));
    }

    /// Adds a problem for an end, if the end is in the region.
    fn report(
        &self,
        kind: CoastProblemKind,
        path: usize,
        is_last: bool,
        problems: &mut Vec<CoastProblem>,
    ) {
        let path = &self.paths[path];
        let place = path.end(is_last).filter(|point| self.is_inside(*point));
        problems.extend(place.map(|point| CoastProblem {
            kind,
            ways: path.way_at_end(is_last).into_iter().collect(),
            node: path.nodes[usize::from(is_last)],
            place: ProblemPlace::Point(point),
        }));
    }

    fn report_gap(
        &self,
        path: usize,
        start: usize,
        distance_m: f64,
        problems: &mut Vec<CoastProblem>,
    ) {
        let kind = if distance_m > self.rules.close_distance_m {
            CoastProblemKind::EndPoint
        } else {
            CoastProblemKind::FixedEndPoint
        };
        self.report(kind, path, true, problems);
        self.report(kind, start, false, problems);
        let (path, start) = (&self.paths[path], &self.paths[start]);
        if let (Some(from), Some(to)) = (path.end(true), start.end(false))
            && from != to
            && (self.is_inside(from) || self.is_inside(to))
        {
            let ways = [path.way_at_end(true), start.way_at_end(false)];
            let ways = ways.into_iter().flatten().collect();
            let place = ProblemPlace::Line(vec![from, to]);
            problems.push(CoastProblem::of_ways(
                CoastProblemKind::AddedLine,
                ways,
                place,
            ));
        }
    }

    /// Joins the paths whose gaps were closed, and returns the resulting paths.
    fn into_joined_paths(self) -> Vec<BoundPath> {
        let count = self.paths.len();
        let first = (0..count).filter(|path| !self.has_previous[*path]);
        let mut is_done = vec![false; count];
        let mut joined = Vec::new();
        for start in first.chain(0..count) {
            let (mut bound, mut at, mut last) = (BoundPath::default(), Some(start), None);
            while let Some(index) = at.filter(|index| !is_done[*index]) {
                is_done[index] = true;
                bound.path.append(&self.paths[index]);
                (last, at) = (Some(index), self.next[index]);
            }
            let Some(last) = last else { continue };
            let path = &mut bound.path;
            path.is_closed = self.next[last] == Some(start);
            if path.is_closed {
                path.extend(self.paths[start].end(false), None);
            } else {
                bound.places = [self.places[start][0], self.places[last][1]];
                path.nodes = [self.paths[start].nodes[0], self.paths[last].nodes[1]];
            }
            joined.push(bound);
        }
        joined
    }
}
