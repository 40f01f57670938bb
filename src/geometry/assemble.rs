//! Assembles rings from the ways of a relation.

use super::degrees::{at_vertex, ring};
use super::shape::{Point, Ring};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// A node of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WayNode {
    /// The id of the node.
    pub id: i64,
    /// The location of the node.
    pub point: Point,
}

/// One end of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct End {
    way: usize,
    is_first: bool,
}

/// Joins ways at their end nodes into rings. The name of each ring begins with `owner`. Where more
/// than two ways meet at a node, ends that are adjacent in angular order are joined, so that rings
/// touch there and do not cross. No ring passes through a node twice.
///
/// Fails with a message that names ring and vertex if a ring does not close or has fewer than three
/// different points.
pub(crate) fn rings(owner: &str, ways: &[Vec<WayNode>]) -> Result<Vec<Ring>, String> {
    let partners = partners(ways);
    let mut rings = Rings {
        owner,
        rings: Vec::new(),
    };
    let mut done = vec![false; ways.len()];
    for first_way in 0..ways.len() {
        let (mut way, mut forwards) = (first_way, true);
        let mut corners: Vec<WayNode> = Vec::new();
        while let (Some(nodes), Some(done @ false)) = (ways.get(way), done.get_mut(way)) {
            *done = true;
            let len = nodes.len().saturating_sub(1);
            // The last node is the first node of the next way.
            if forwards {
                corners.extend(nodes.iter().take(len));
            } else {
                corners.extend(nodes.iter().rev().take(len));
            }
            let end = End {
                way,
                is_first: !forwards,
            };
            let Some(next) = partners.get(&end) else {
                let last = if forwards {
                    nodes.last()
                } else {
                    nodes.first()
                };
                return Err(rings.open(last, corners.len() + 1));
            };
            (way, forwards) = (next.way, next.is_first);
        }
        rings.add(corners)?;
    }
    Ok(rings.rings)
}

/// Maps each end of a way to the end with which it is joined. An end without a partner has no
/// entry.
fn partners(ways: &[Vec<WayNode>]) -> FxHashMap<End, End> {
    let mut partners = FxHashMap::default();
    let mut join = |a: End, b: End| {
        partners.insert(a, b);
        partners.insert(b, a);
    };
    let mut ends_at: FxHashMap<i64, Vec<(Direction, End)>> = FxHashMap::default();
    for (way, nodes) in ways.iter().enumerate() {
        let ends = [true, false].map(|is_first| End { way, is_first });
        let [first_end, last_end] = ends;
        match (nodes.first(), nodes.last()) {
            (Some(first), Some(last)) if first.id == last.id => join(first_end, last_end),
            (Some(first), Some(last)) => {
                let direction = Direction::of(first, nodes.iter());
                ends_at
                    .entry(first.id)
                    .or_default()
                    .push((direction, first_end));
                let direction = Direction::of(last, nodes.iter().rev());
                ends_at
                    .entry(last.id)
                    .or_default()
                    .push((direction, last_end));
            }
            _ => {}
        }
    }
    for ends in ends_at.values_mut() {
        ends.sort_by(|(a, _), (b, _)| a.around(b));
        for pair in ends.chunks_exact(2) {
            if let &[(_, a), (_, b)] = pair {
                join(a, b);
            }
        }
    }
    partners
}

/// The direction in which a way leaves its end node, as a vector in 1e-7 degree.
#[derive(Debug, Clone, Copy)]
struct Direction {
    x: i64,
    y: i64,
}

impl Direction {
    /// The direction from `from` to the first node with another location, or zero if all have the
    /// same.
    fn of<'a>(from: &WayNode, mut nodes: impl Iterator<Item = &'a WayNode>) -> Self {
        let other = nodes.find(|node| node.point != from.point);
        let point = other.map_or(from.point, |node| node.point);
        Self {
            x: i64::from(point.lon_e7) - i64::from(from.point.lon_e7),
            y: i64::from(point.lat_e7) - i64::from(from.point.lat_e7),
        }
    }

    /// 0 for a direction in the upper half-plane (0° to below 180°), 1 for the lower half-plane, 2
    /// for zero.
    const fn half(self) -> u8 {
        match (self.x, self.y) {
            (0, 0) => 2,
            (x, y) if y > 0 || (y == 0 && x > 0) => 0,
            _ => 1,
        }
    }

    /// Compares two directions by angle, counter-clockwise from east. Zero is last.
    fn around(&self, other: &Self) -> Ordering {
        let wide = i128::from;
        let left = wide(self.x) * wide(other.y);
        let right = wide(other.x) * wide(self.y);
        self.half().cmp(&other.half()).then(right.cmp(&left))
    }
}

/// The rings of a relation that are assembled so far.
struct Rings<'a> {
    owner: &'a str,
    rings: Vec<Ring>,
}

impl Rings<'_> {
    fn next_name(&self) -> String {
        format!("{}, ring {}", self.owner, self.rings.len() + 1)
    }

    fn open(&self, last: Option<&WayNode>, vertex: usize) -> String {
        let node = last.map_or(0, |corner| corner.id);
        let cause = format!("the ring does not close: it ends at node {node}");
        at_vertex(&self.next_name(), vertex, cause)
    }

    /// Adds the rings of a closed line of nodes. The line is cut wherever it visits a node again,
    /// so each ring visits a node once. Segments that run there and back have no area and are
    /// dropped.
    fn add(&mut self, corners: Vec<WayNode>) -> Result<(), String> {
        if corners.is_empty() {
            return Ok(());
        }
        let before = self.rings.len();
        let mut path: Vec<WayNode> = Vec::new();
        let mut index_of: FxHashMap<i64, usize> = FxHashMap::default();
        for corner in corners {
            if let Some(&start) = index_of.get(&corner.id) {
                let around = path.split_off(start);
                for passed in &around {
                    index_of.remove(&passed.id);
                }
                if around.len() > 2 {
                    self.push(&around)?;
                }
            }
            index_of.insert(corner.id, path.len());
            path.push(corner);
        }
        // If no ring was found, `ring` reports the remainder as too short.
        if path.len() > 2 || self.rings.len() == before {
            self.push(&path)?;
        }
        Ok(())
    }

    fn push(&mut self, corners: &[WayNode]) -> Result<(), String> {
        let points = corners.iter().map(|corner| corner.point);
        self.rings.push(ring(self.next_name(), points.collect())?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Assembles ways given as node ids, and returns each ring as node ids. The digits of an id are
    /// the coordinates of the node: node 34 lies at (3, 4).
    fn assembled(ways: &[&[i64]]) -> Result<Vec<Vec<i32>>, String> {
        let corner = |&id: &i64| WayNode {
            id,
            point: Point {
                lon_e7: i32::try_from(id / 10).unwrap(),
                lat_e7: i32::try_from(id % 10).unwrap(),
            },
        };
        let ways: Vec<Vec<WayNode>> = ways
            .iter()
            .map(|way| way.iter().map(corner).collect())
            .collect();
        let rings = rings("relation 7", &ways)?;
        let ids = rings.iter().map(|ring| {
            let points = ring.points.iter();
            points
                .map(|point| point.lon_e7 * 10 + point.lat_e7)
                .collect()
        });
        Ok(ids.collect())
    }

    #[test]
    fn ways_are_joined_whatever_their_order_and_direction() {
        let ways: [&[i64]; 4] = [&[0, 30, 33], &[63, 66, 96], &[33, 3, 0], &[63, 93, 96]];
        assert_eq!(
            assembled(&ways).unwrap(),
            [vec![0, 30, 33, 3], vec![63, 66, 96, 93]]
        );
        assert_eq!(assembled(&[&[0, 30, 33, 0]]).unwrap(), [[0, 30, 33]]);
        assert!(assembled(&[]).unwrap().is_empty());
    }

    #[test]
    fn rings_that_touch_at_ends_stay_apart() {
        // Four ways from node 50 to node 56 form two rings that touch at both nodes.
        let ways: [&[i64]; 4] = [&[50, 20, 56], &[50, 60, 56], &[50, 40, 56], &[50, 80, 56]];
        let mut rings = assembled(&ways).unwrap();
        for ring in &mut rings {
            ring.sort_unstable();
        }
        rings.sort();
        assert!(
            rings == [vec![20, 40, 50, 56], vec![50, 56, 60, 80]]
                || rings == [vec![20, 50, 56, 80], vec![40, 50, 56, 60]],
            "{rings:?}"
        );
        // A bow tie around node 33: of two closed ways, then of two open ways that pass through the
        // node.
        let ways: [&[i64]; 2] = [&[33, 63, 66, 33], &[33, 3, 0, 33]];
        assert_eq!(assembled(&ways).unwrap().len(), 2);
        let ways: [&[i64]; 2] = [&[63, 33, 0], &[0, 3, 33, 66, 63]];
        assert_eq!(
            assembled(&ways).unwrap(),
            [vec![33, 0, 3], vec![63, 33, 66]]
        );
    }

    #[test]
    fn spikes_and_repeated_nodes_leave_no_trace() {
        let way: &[i64] = &[0, 30, 30, 60, 30, 33, 0];
        assert_eq!(assembled(&[way]).unwrap(), [[0, 30, 33]]);
        let message = assembled(&[&[0, 30, 0]]).unwrap_err();
        assert!(message.starts_with("relation 7, ring 1, vertex 2: the ring has fewer"));
    }

    #[test]
    fn a_ring_that_does_not_close_names_its_end() {
        let ways: [&[i64]; 3] = [&[90, 93, 96, 90], &[0, 30, 33], &[33, 3]];
        assert_eq!(
            assembled(&ways).unwrap_err(),
            "relation 7, ring 2, vertex 4: the ring does not close: it ends at node 3"
        );
        // Three ways that meet at one node.
        let ways: [&[i64]; 4] = [&[0, 30], &[30, 33, 0], &[30, 60], &[]];
        assert!(assembled(&ways).is_err());
    }
}
