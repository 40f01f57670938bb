//! A fast path for closed ways that are simple rings, as nearly all closed ways are.

use super::AreaPolygon;
use super::segments::{side_of_line, westernmost};
use crate::geometry::{Edge, EdgeRelation, Point, doubled_area};

/// The maximum number of corners for which all pairs of segments are compared.
const MAX_CORNERS: usize = 64;

/// Replaces `polygon` with a closed ring if the ring is simple and has at most [`MAX_CORNERS`] corners. Otherwise
/// returns `false`, and [`assemble`](super::assemble) has to decide about the ring.
pub(crate) fn set_polygon_if_simple(ring: &[Point], polygon: &mut AreaPolygon) -> bool {
    let Some((_, corners)) = ring.split_last() else {
        return false;
    };
    if !(3..=MAX_CORNERS).contains(&corners.len()) || ring.first() != ring.last() {
        return false;
    }
    if !is_convex(ring) && !is_simple(ring) {
        return false;
    }
    let (before, behind) = corners.split_at(westernmost(corners));
    polygon.holes.clear();
    polygon.outer.clear();
    polygon.outer.extend_from_slice(behind);
    polygon.outer.extend_from_slice(before);
    if doubled_area(corners) < 0 {
        // Leaves out index 0, because the westernmost corner must stay the first one.
        polygon.outer[1..].reverse();
    }
    true
}

/// Returns the edges of a ring.
fn edges(ring: &[Point]) -> impl Iterator<Item = Edge> + Clone {
    ring.windows(2).filter_map(|points| match points {
        [from, to] => Some(Edge::new(*from, *to)),
        _ => None,
    })
}

/// Whether a ring is convex and thus simple. A convex ring turns in one direction only, and winds around once.
fn is_convex(ring: &[Point]) -> bool {
    let (mut direction, mut turns, mut last_width) = (0, 0, 0);
    let next = edges(ring).cycle().skip(1);
    for (edge, next) in edges(ring).zip(next) {
        let turn = side_of_line(edge.from, edge.to, next.to).signum();
        if turn == 0 && edge.forms_spike_with(&next) || turn * direction < 0 {
            return false;
        }
        direction = if turn == 0 { direction } else { turn };
    }
    // If a ring winds around once, the direction of its edges changes between east and west twice per round. This loop
    // goes round twice, so it counts at most four changes.
    for edge in edges(ring).chain(edges(ring)) {
        let width = edge.to.lon_e7.cmp(&edge.from.lon_e7) as i32;
        turns += i32::from(width * last_width < 0);
        last_width = if width == 0 { last_width } else { width };
    }
    direction != 0 && turns <= 4
}

/// Whether no two segments of a ring share a point, except the corner between consecutive segments.
fn is_simple(ring: &[Point]) -> bool {
    let count = ring.len() - 1;
    for (index, edge) in edges(ring).enumerate() {
        // Leaves out the earlier edges that share a corner with `edge`. These are the edge before it and, for the last
        // edge, the first edge.
        let before = edges(ring).take(index.saturating_sub(1));
        let mut others = before.skip(usize::from(index + 1 == count));
        if others.any(|other| edge.relation_to(&other) != EdgeRelation::Apart) {
            return false;
        }
    }
    let next = edges(ring).cycle().skip(1);
    let mut pairs = edges(ring).zip(next);
    !pairs.any(|(edge, next)| edge.forms_spike_with(&next))
}
