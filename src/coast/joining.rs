//! Joins ways by their nodes.

use super::doubled::flag_doubled_ways;
use super::path::{CoastPath, Direction, compare_directions, direction, match_circular_brackets};
use super::problem::{CoastProblem, CoastProblemKind, ProblemPlace};
use super::ways::{CoastWay, CoastWays};
use crate::geometry::Point;
use std::ops::Range;

/// A part of a way in which all nodes have known locations. It is the whole way, unless locations are missing.
struct WayPart {
    /// The index of the way.
    way: usize,
    /// The range of the way's nodes that belong to the part.
    nodes: Range<usize>,
    /// The nodes at the start and at the end of the part, where it may be joined with other parts. `None` at an end
    /// beyond which the way continues.
    ends: [Option<i64>; 2],
}

/// An end of a part at a node.
#[derive(Clone, Copy)]
struct PartEnd {
    node: i64,
    part: usize,
    is_last: bool,
}

/// Joins ways at common end nodes into paths with land on their left. Where several ways begin and end at a node, joins
/// the ways that have land between them.
pub(super) fn join(ways: &CoastWays, problems: &mut Vec<CoastProblem>) -> Vec<CoastPath> {
    let parts = parts_of(ways, problems);
    let next = Joints {
        ways,
        parts: &parts,
    }
    .next_parts(problems);
    let mut is_behind = vec![false; parts.len()];
    next.iter()
        .flatten()
        .for_each(|part| is_behind[*part] = true);
    let open = (0..parts.len()).filter(|part| !is_behind[*part]);
    let mut is_done = vec![false; parts.len()];
    let mut paths = Vec::new();
    // Each open path begins with a part that follows no other part. After the open paths are complete, the remaining
    // parts form closed paths.
    for first in open.chain(0..parts.len()) {
        let (mut path, mut at) = (CoastPath::default(), Some(first));
        let mut last = None;
        while let Some(part) = at.filter(|part| !is_done[*part]) {
            is_done[part] = true;
            let way = ways.way(parts[part].way);
            if let Some(way) = way {
                let points = parts[part].nodes.clone().filter_map(|node| way.point(node));
                path.extend(points, Some(way.id));
            }
            (last, at) = (Some(part), next[part]);
        }
        let Some(last) = last else { continue };
        path.is_closed = next[last] == Some(first);
        path.nodes = [parts[first].ends[0], parts[last].ends[1]];
        path.points.shrink_to_fit();
        add_path(path, &mut paths, problems);
    }
    paths
}

/// Adds a path, unless it has too few points for a line or a ring.
fn add_path(path: CoastPath, paths: &mut Vec<CoastPath>, problems: &mut Vec<CoastProblem>) {
    let mut points = path.points.iter();
    let (first, second) = (points.next(), points.next());
    let has_three = points.any(|point| Some(point) != first && Some(point) != second);
    if path.is_closed && !has_three {
        problems.push(CoastProblem {
            kind: CoastProblemKind::NotARing,
            ways: path.ways(),
            node: path.nodes[0],
            place: ProblemPlace::of_line(path.points),
        });
    } else if path.points.len() > 1 {
        paths.push(path);
    }
}

/// Returns the parts of the ways. Leaves out ways with fewer than two nodes, and the ways that [`flag_doubled_ways`]
/// flags.
fn parts_of(ways: &CoastWays, problems: &mut Vec<CoastProblem>) -> Vec<WayPart> {
    let mut parts = Vec::with_capacity(ways.len());
    let is_left_out = flag_doubled_ways(ways, problems);
    let kept = ways.iter().enumerate().zip(is_left_out);
    for ((index, way), _) in kept.filter(|(_, is_left_out)| !is_left_out) {
        let problem = |kind, ways: Vec<i64>, node, place| CoastProblem {
            kind,
            ways,
            node,
            place,
        };
        if let [node] = way.nodes {
            let place = way
                .point(0)
                .map_or(ProblemPlace::Unknown, ProblemPlace::Point);
            let kind = CoastProblemKind::SinglePointInRing;
            problems.push(problem(kind, vec![way.id], Some(*node), place));
            continue;
        }
        if way.nodes.is_empty() {
            continue;
        }
        let missing = (0..way.nodes.len()).find(|node| way.point(*node).is_none());
        if let Some(missing) = missing {
            let kind = CoastProblemKind::MissingNode;
            let near = [missing.checked_sub(1), Some(missing + 1)];
            let near = near.into_iter().flatten().find_map(|node| way.point(node));
            let place = near.map_or(ProblemPlace::Unknown, ProblemPlace::Point);
            let node = way.nodes.get(missing).copied();
            problems.push(problem(kind, vec![way.id], node, place));
        }
        add_parts(index, &way, &mut parts);
    }
    parts
}

/// Adds the parts into which nodes without a known location divide a way.
fn add_parts(index: usize, way: &CoastWay<'_>, parts: &mut Vec<WayPart>) {
    let count = way.nodes.len();
    let mut start = 0;
    while start < count {
        let known = |node: &usize| way.point(*node).is_some();
        let end = (start..count).find(|node| !known(node)).unwrap_or(count);
        if end > start + 1 {
            let end_at =
                |is_end: bool, node: usize| way.nodes.get(node).copied().filter(|_| is_end);
            parts.push(WayPart {
                way: index,
                nodes: start..end,
                ends: [end_at(start == 0, start), end_at(end == count, end - 1)],
            });
        }
        start = end + 1;
    }
}

/// The nodes at which parts are joined.
struct Joints<'j> {
    ways: &'j CoastWays,
    parts: &'j [WayPart],
}

impl Joints<'_> {
    /// Returns, for each part, the part that follows it.
    fn next_parts(&self, problems: &mut Vec<CoastProblem>) -> Vec<Option<usize>> {
        let mut ends = Vec::with_capacity(2 * self.parts.len());
        for (part, WayPart { ends: nodes, .. }) in self.parts.iter().enumerate() {
            for (node, is_last) in nodes.iter().zip([false, true]) {
                ends.extend(node.map(|node| PartEnd {
                    node,
                    part,
                    is_last,
                }));
            }
        }
        ends.sort_unstable_by_key(|end| (end.node, end.part, end.is_last));
        let mut next = vec![None; self.parts.len()];
        for at_node in ends.chunk_by(|one, other| one.node == other.node) {
            match at_node {
                [one, other] if one.is_last != other.is_last => {
                    let [before, behind] = if one.is_last {
                        [one, other]
                    } else {
                        [other, one]
                    };
                    next[before.part] = Some(behind.part);
                }
                [_] => {}
                _ => self.join_parts_at_node(at_node, &mut next, problems),
            }
        }
        next
    }

    /// Returns the location of the node at an end, and the direction in which the part leaves this node. The direction
    /// points to the first of the part's following nodes whose location differs.
    fn direction(&self, end: &PartEnd) -> Option<(Point, Direction)> {
        let part = self.parts.get(end.part)?;
        let way = self.ways.way(part.way)?;
        let (first, last) = (part.nodes.start, part.nodes.end - 1);
        let centre = way.point(if end.is_last { last } else { first })?;
        let mut places = part.nodes.clone().filter_map(|node| way.point(node));
        let other = if end.is_last {
            places.rev().find(|place| *place != centre)
        } else {
            places.find(|place| *place != centre)
        };
        Some((centre, direction(centre, other?)))
    }

    /// Joins the parts that end at a node with the parts that begin at the node. Clockwise from a part that ends, there
    /// is land up to the next part that begins. These two parts are joined. The pairs nest like parentheses, so paths
    /// do not cross at the node.
    fn join_parts_at_node(
        &self,
        ends: &[PartEnd],
        next: &mut [Option<usize>],
        problems: &mut Vec<CoastProblem>,
    ) {
        let directions = ends.iter().map(|end| (self.direction(end), *end));
        let mut ends: Vec<(Option<(Point, Direction)>, PartEnd)> = directions.collect();
        ends.sort_by(|(one, one_end), (other, other_end)| {
            let by_direction = match (one, other) {
                (Some((_, one)), Some((_, other))) => compare_directions(one, other),
                (one, other) => one.is_some().cmp(&other.is_some()),
            };
            by_direction.then(one_end.is_last.cmp(&other_end.is_last))
        });
        let is_opening: Vec<bool> = ends.iter().map(|(_, end)| !end.is_last).collect();
        let partners = match_circular_brackets(&is_opening);
        for ((_, end), partner) in ends.iter().zip(&partners) {
            if let Some(partner) = partner
                && end.is_last
            {
                next[end.part] = Some(ends[*partner].1.part);
            }
        }
        if is_opening.contains(&true) && is_opening.contains(&false) {
            return;
        }
        let way = |end: &PartEnd| Some(self.ways.way(self.parts.get(end.part)?.way)?.id);
        let mut ways: Vec<i64> = ends.iter().filter_map(|(_, end)| way(end)).collect();
        ways.sort_unstable();
        ways.dedup();
        let place = ends.iter().find_map(|(direction, _)| *direction);
        problems.push(CoastProblem {
            kind: CoastProblemKind::Direction,
            ways,
            node: ends.first().map(|(_, end)| end.node),
            place: place.map_or(ProblemPlace::Unknown, |(centre, _)| {
                ProblemPlace::Point(centre)
            }),
        });
    }
}
