//! Relations that are lines, such as routes.

use crate::area::{MAX_NODES, StoredWay, WayStore};
use crate::engine::geometry_pass::has_member_lines;
use crate::geometry::Point;
use crate::osm::ObjectKind;
use crate::pbf::Member;

/// The types of relations that are usually written as lines. Tables have these relations as lines by default.
pub const LINE_RELATIONS: [&str; 3] = ["route", "waterway", "superroute"];

/// The lines of a relation, and whether some of its ways, nodes of these ways, or member relations are missing.
pub(super) struct RelationLines {
    pub lines: Vec<Vec<Point>>,
    pub is_incomplete: bool,
    /// Whether the ways together have more than [`MAX_NODES`] nodes. In this case, `lines` is empty.
    pub is_too_large: bool,
}

impl RelationLines {
    /// Merges the member ways of a relation in the order of its members. A member relation that is a route or similar
    /// is replaced by its own ways. The member relations of an area are ignored.
    pub(super) fn of<'t, 'm>(
        id: i64,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
        members: impl Iterator<Item = Member<'m>>,
        ways: &WayStore,
    ) -> Self {
        let follows = has_member_lines(tags);
        let members = members.filter(|one| follows || one.kind != ObjectKind::Relation);
        let found = ways.ways_of_route(id, members);
        let mut nodes = Vec::new();
        let (mut merger, mut is_incomplete) = (LineMerger::default(), found.lack_relations);
        let mut count = 0;
        for id in found.ids {
            nodes.clear();
            match ways.read(id, &mut nodes) {
                StoredWay::Located => {
                    count += nodes.len();
                    if count > MAX_NODES {
                        return Self {
                            lines: Vec::new(),
                            is_incomplete,
                            is_too_large: true,
                        };
                    }
                    merger.add(nodes.iter().map(|node| node.point).collect());
                }
                StoredWay::Missing | StoredWay::Unlocated(_) => is_incomplete = true,
            }
        }
        Self {
            lines: merger.finish(),
            is_incomplete,
            is_too_large: false,
        }
    }
}

/// Joins lines that are added one after another. A line is joined with the previous one if they share an end point.
#[derive(Default)]
struct LineMerger {
    lines: Vec<Vec<Point>>,
    /// The number of added lines that make up the last line in `lines`.
    joined: usize,
}

impl LineMerger {
    /// Adds a line, and joins it with the previous line if they share an end point. The new line is reversed if
    /// necessary. So is the previous line, but only if it has not been joined with another line before.
    fn add(&mut self, mut points: Vec<Point>) {
        points.dedup();
        let (Some(first), Some(last), true) = (points.first(), points.last(), points.len() > 1)
        else {
            return;
        };
        if let Some(before) = self.lines.last_mut() {
            let continues = |end: Option<&Point>| end == Some(first) || end == Some(last);
            if self.joined == 1 && !continues(before.last()) && continues(before.first()) {
                before.reverse();
            }
            if continues(before.last()) {
                if before.last() != Some(first) {
                    points.reverse();
                }
                before.extend_from_slice(&points[1..]);
                self.joined += 1;
                return;
            }
        }
        self.lines.push(points);
        self.joined = 1;
    }

    fn finish(self) -> Vec<Vec<Point>> {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(lines: &[&[i32]]) -> Vec<Vec<i32>> {
        let mut merger = LineMerger::default();
        for line in lines {
            let points = line.iter().map(|at| Point::new(0, *at));
            merger.add(points.collect());
        }
        let lines = merger.finish().into_iter();
        lines
            .map(|line| line.iter().map(|point| point.lon_e7).collect())
            .collect()
    }

    #[test]
    fn lines_are_joined_end_to_end_in_their_order() {
        assert_eq!(merged(&[&[1, 2, 3], &[3, 4]]), [vec![1, 2, 3, 4]]);
        assert_eq!(merged(&[&[3, 2, 1], &[3, 4]]), [vec![1, 2, 3, 4]]);
        assert_eq!(
            merged(&[&[3, 2, 1], &[4, 3], &[5, 4]]),
            [vec![1, 2, 3, 4, 5]]
        );
        assert_eq!(
            merged(&[&[1, 2], &[5, 6], &[7, 6]]),
            [vec![1, 2], vec![5, 6, 7]]
        );
        // A line that has been joined keeps its direction.
        assert_eq!(
            merged(&[&[1, 2], &[2, 3], &[1, 9]]),
            [vec![1, 2, 3], vec![1, 9]]
        );
        // A roundabout, and below it a way that was added twice.
        assert_eq!(
            merged(&[&[1, 2], &[2, 7, 8, 2], &[2, 3]]),
            [vec![1, 2, 7, 8, 2, 3]]
        );
        assert_eq!(merged(&[&[1, 2], &[1, 2]]), [vec![1, 2, 1]]);
        assert!(merged(&[&[1, 1], &[]]).is_empty());
    }
}
