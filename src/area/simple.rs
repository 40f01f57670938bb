//! Closed ways that are simple rings, which nearly all are: assembled without sorting segments.

use super::AreaPolygon;
use super::segments::from_west;
use crate::geometry::{Edge, EdgeRelation, Point, doubled_area};

/// The maximum number of corners for which all pairs of segments are compared.
const MAX_CORNERS: usize = 64;

/// Makes a polygon of a ring, whose last point equals the first, if no two of its segments meet but in the corner that
/// they share. Otherwise returns `false`, and the ring has to be assembled.
pub(crate) fn simple_polygon(ring: &[Point], polygon: &mut AreaPolygon) -> bool {
    let Some((_, corners)) = ring.split_last() else {
        return false;
    };
    if !(3..=MAX_CORNERS).contains(&corners.len()) || ring.first() != ring.last() {
        return false;
    }
    let edges = || ring.windows(2).filter_map(edge);
    for (index, edge) in edges().enumerate() {
        // The edge before shares a corner, and so do the last and the first edge.
        let before = edges().take(index.saturating_sub(1));
        let is_last = index + 1 == corners.len();
        let mut others = before.skip(usize::from(is_last));
        if others.any(|other| edge.relation_to(&other) != EdgeRelation::Apart) {
            return false;
        }
    }
    let next = edges().cycle().skip(1);
    if edges()
        .zip(next)
        .any(|(edge, next)| edge.forms_spike_with(&next))
    {
        return false;
    }
    let first = (0..corners.len()).min_by(|a, b| match (corners.get(*a), corners.get(*b)) {
        (Some(a), Some(b)) => from_west(*a, *b),
        _ => std::cmp::Ordering::Equal,
    });
    let (before, behind) = corners.split_at(first.unwrap_or_default());
    polygon.holes.clear();
    polygon.outer.clear();
    polygon.outer.extend_from_slice(behind);
    polygon.outer.extend_from_slice(before);
    if doubled_area(corners) < 0 {
        // The ring begins at its western corner in either direction.
        if let Some((_, others)) = polygon.outer.split_first_mut() {
            others.reverse();
        }
    }
    true
}

/// The edge between two points.
fn edge(points: &[Point]) -> Option<Edge> {
    match points {
        [from, to] => Some(Edge {
            from: *from,
            to: *to,
        }),
        _ => None,
    }
}
