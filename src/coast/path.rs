//! Paths of consecutive coastlines.

use crate::geometry::{
    Point, antimeridian_ends, is_edge_across_antimeridian, wrapped_longitude_delta,
};
use std::cmp::Ordering;

/// A run of consecutive segments of a path that belong to the same way. The run ends where the next span starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaySpan {
    /// The index of the first segment.
    pub start: usize,
    /// The id of the way; `None` for segments that were added to close a gap, and for those along a border.
    pub way: Option<i64>,
}

/// A path with land on its left.
#[derive(Debug, Clone, Default)]
pub(super) struct CoastPath {
    /// The points. Consecutive points differ. A closed path repeats its first point at the end.
    pub points: Vec<Point>,
    /// The runs of segments that belong to the same way, in the order of the path.
    pub spans: Vec<WaySpan>,
    pub is_closed: bool,
    /// The nodes at the start and at the end of an open path, if they are known.
    pub nodes: [Option<i64>; 2],
}

impl CoastPath {
    /// Appends points. Skips a point that equals the point before it. `way` is the way of the new segments.
    pub(super) fn extend(&mut self, points: impl IntoIterator<Item = Point>, way: Option<i64>) {
        for point in points {
            if self.points.last() == Some(&point) {
                continue;
            }
            if let Some(segment) = self.points.len().checked_sub(1)
                && self.spans.last().is_none_or(|span| span.way != way)
            {
                self.spans.push(WaySpan {
                    start: segment,
                    way,
                });
            }
            self.points.push(point);
        }
    }

    /// Returns the way of a segment.
    pub(super) fn way_of(&self, segment: usize) -> Option<i64> {
        let behind = self.spans.partition_point(|span| span.start <= segment);
        self.spans.get(behind.checked_sub(1)?)?.way
    }

    /// Returns the ids of the ways, each once, in the order of the path.
    pub(super) fn ways(&self) -> Vec<i64> {
        let mut ways: Vec<i64> = Vec::new();
        for span in &self.spans {
            if let Some(way) = span.way
                && !(ways.len() < 8 && ways.contains(&way))
            {
                ways.push(way);
            }
        }
        let mut known = rustc_hash::FxHashSet::default();
        ways.retain(|way| known.insert(*way));
        ways
    }

    /// Appends another path. If the other path does not begin where this one ends, a segment without a way bridges the
    /// gap.
    pub(super) fn append(&mut self, other: &Self) {
        self.extend(other.points.first().copied(), None);
        let mut spans = other.spans.iter().peekable();
        while let Some(span) = spans.next() {
            let end = spans
                .peek()
                .map_or(other.points.len(), |next| next.start + 1);
            let points = &other.points[span.start..end];
            self.extend(points.iter().copied(), span.way);
        }
    }

    /// Returns the first or the last point.
    pub(super) fn end(&self, is_last: bool) -> Option<Point> {
        if is_last {
            self.points.last().copied()
        } else {
            self.points.first().copied()
        }
    }

    /// Returns the first or the last known way.
    pub(super) fn way_at_end(&self, is_last: bool) -> Option<i64> {
        let mut ways = self.spans.iter().filter_map(|span| span.way);
        if is_last {
            ways.next_back()
        } else {
            ways.next()
        }
    }

    /// Returns the part of the path from the segment `first` to the segment `last`, both included.
    fn part(&self, first: usize, last: usize) -> Self {
        let mut part = Self::default();
        let before = self.spans.partition_point(|span| span.start <= first);
        let spans = &self.spans[before.saturating_sub(1)..];
        for (index, span) in spans.iter().enumerate() {
            let next = spans.get(index + 1).map_or(usize::MAX, |next| next.start);
            if span.start > last {
                break;
            }
            let range = span.start.max(first)..next.saturating_add(1).min(last + 2);
            let points = &self.points[range];
            part.extend(points.iter().copied(), span.way);
        }
        part
    }

    /// Returns the parts of the path that remain if the segments without ways are removed.
    pub(super) fn parts_of_ways(&self) -> Vec<Self> {
        if self.spans.iter().all(|span| span.way.is_some()) {
            return vec![self.clone()];
        }
        let mut parts = Vec::new();
        let mut first = None;
        for span in &self.spans {
            match (first, span.way) {
                (None, Some(_)) => first = Some(span.start),
                (Some(start), None) => {
                    parts.push(self.part(start, span.start.saturating_sub(1)));
                    first = None;
                }
                (None, None) | (Some(_), Some(_)) => {}
            }
        }
        if let Some(start) = first {
            parts.push(self.part(start, self.points.len().saturating_sub(2)));
        }
        parts
    }

    /// Cuts the path where it crosses the antimeridian. A closed path that crosses it is divided into open paths.
    pub(super) fn cut_at_antimeridian(self) -> Vec<Self> {
        let segments = self.points.windows(2).enumerate();
        let across = segments.filter(|(_, pair)| is_edge_across_antimeridian(pair[0], pair[1]));
        let across: Vec<usize> = across.map(|(index, _)| index).collect();
        if across.is_empty() {
            return vec![self];
        }
        let mut parts = Vec::with_capacity(across.len() + 1);
        let (mut part, mut from) = (Self::default(), 0);
        for segment in across {
            let (before, behind) = (self.points[segment], self.points[segment + 1]);
            let ([end, start], way) = (antimeridian_ends(before, behind), self.way_of(segment));
            if segment > from {
                part.append(&self.part(from, segment - 1));
            }
            part.extend([before, end], way);
            parts.push(std::mem::take(&mut part));
            part.extend([start, behind], way);
            from = segment + 1;
        }
        if from + 1 < self.points.len() {
            part.append(&self.part(from, self.points.len() - 2));
        }
        parts.push(part);
        if self.is_closed
            && let Some(mut last) = parts.pop()
            && let Some(first) = parts.first_mut()
        {
            last.append(first);
            *first = last;
        }
        parts
    }
}

/// A direction on the map: the differences of longitude and latitude, in 1e-7 degree.
pub(super) type Direction = (i64, i64);

/// Returns the direction from one point to another.
pub(super) fn direction(from: Point, to: Point) -> Direction {
    let height = i64::from(to.lat_e7) - i64::from(from.lat_e7);
    (wrapped_longitude_delta(from, to), height)
}

/// Compares directions by their angles, which are measured counter-clockwise from the south.
pub(super) fn compare_directions(one: &Direction, other: &Direction) -> Ordering {
    let is_western = |(width, height): &Direction| *width < 0 || (*width == 0 && *height > 0);
    let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
    let cross = product(one.0, other.1) - product(one.1, other.0);
    is_western(one).cmp(&is_western(other)).then(0.cmp(&cross))
}

/// Matches the openings and the closings of a circular list as parentheses are matched. Returns, for each item, the
/// index of its partner.
pub(super) fn match_circular_brackets(is_opening: &[bool]) -> Vec<Option<usize>> {
    let mut partners = vec![None; is_opening.len()];
    let mut open = Vec::new();
    for round in 0..2 {
        for (index, is_opening) in is_opening.iter().enumerate() {
            if *is_opening {
                if round == 0 {
                    open.push(index);
                }
            } else if partners[index].is_none()
                && let Some(opening) = open.pop()
            {
                partners[index] = Some(opening);
                partners[opening] = Some(index);
            }
        }
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(places: &[(i32, i32)], spans: &[(usize, Option<i64>)], is_closed: bool) -> CoastPath {
        let point = |(lon, lat): &(i32, i32)| Point::new(lat * 10_000_000, lon * 10_000_000);
        let span = |(start, way): &(usize, Option<i64>)| WaySpan {
            start: *start,
            way: *way,
        };
        CoastPath {
            points: places.iter().map(point).collect(),
            spans: spans.iter().map(span).collect(),
            is_closed,
            nodes: [None; 2],
        }
    }

    /// Returns the points in degrees, and the way of each segment.
    fn points_and_ways(path: &CoastPath) -> (Vec<(i32, i32)>, Vec<Option<i64>>) {
        let degrees = |point: &Point| (point.lon_e7 / 10_000_000, point.lat_e7 / 10_000_000);
        let segments = 0..path.points.len().saturating_sub(1);
        let ways = segments.map(|segment| path.way_of(segment)).collect();
        (path.points.iter().map(degrees).collect(), ways)
    }

    #[test]
    fn paths_that_are_joined_keep_the_ways_of_their_segments() {
        let mut one = path(
            &[(0, 0), (1, 0), (2, 0)],
            &[(0, Some(7)), (1, Some(8))],
            false,
        );
        one.append(&path(&[(2, 0), (3, 0)], &[(0, Some(8))], false));
        one.append(&path(&[(5, 0), (6, 0)], &[(0, Some(9))], false));
        let (points, ways) = points_and_ways(&one);
        assert_eq!(points.len(), 6);
        assert_eq!(ways, [Some(7), Some(8), Some(8), None, Some(9)]);
        assert_eq!(one.ways(), [7, 8, 9]);
        let parts = one.parts_of_ways();
        let parts: Vec<_> = parts.iter().map(points_and_ways).collect();
        assert_eq!(parts[0].1, [Some(7), Some(8), Some(8)]);
        assert_eq!(parts[1], (vec![(5, 0), (6, 0)], vec![Some(9)]));
    }

    #[test]
    fn a_ring_across_the_antimeridian_is_cut_into_open_paths() {
        let ring = path(
            &[(179, 0), (-179, 0), (-179, 1), (179, 1), (179, 0)],
            &[(0, Some(1)), (2, Some(2))],
            true,
        );
        let parts = ring.cut_at_antimeridian();
        let parts: Vec<_> = parts.iter().map(points_and_ways).collect();
        assert_eq!(
            parts,
            [
                (
                    vec![(180, 1), (179, 1), (179, 0), (180, 0)],
                    vec![Some(2), Some(2), Some(1)]
                ),
                (
                    vec![(-180, 0), (-179, 0), (-179, 1), (-180, 1)],
                    vec![Some(1), Some(1), Some(2)]
                ),
            ]
        );
    }

    #[test]
    fn openings_and_closings_are_matched_as_parentheses_in_a_circle() {
        let matched = |text: &str| {
            let is_opening: Vec<bool> = text.chars().map(|letter| letter == '(').collect();
            match_circular_brackets(&is_opening)
        };
        assert_eq!(matched("()"), [Some(1), Some(0)]);
        assert_eq!(matched(")("), [Some(1), Some(0)]);
        assert_eq!(matched("(())"), [Some(3), Some(2), Some(1), Some(0)]);
        assert_eq!(matched("())"), [Some(1), Some(0), None]);
        assert_eq!(matched(")(()"), [Some(1), Some(0), Some(3), Some(2)]);
    }

    #[test]
    fn directions_go_around_counter_clockwise() {
        let around = [
            (0, -1),
            (1, -1),
            (1, 0),
            (1, 1),
            (0, 1),
            (-1, 1),
            (-1, 0),
            (-1, -1),
        ];
        assert!(around.is_sorted_by(|one, other| compare_directions(one, other).is_lt()));
    }
}
