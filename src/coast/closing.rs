//! Joins pieces of coast into rings along the border of a region. The border is followed with the region on the left.
//! In this direction, a coastline that leaves the region starts a stretch of land, and a coastline that enters the
//! region ends it.

use super::border::{Border, BorderPlace};
use super::clipping::{CoastPiece, PieceEnd};
use super::path::{CoastPath, match_circular_brackets};
use super::problem::{CoastProblem, CoastProblemKind, ProblemPlace};
use crate::geometry::{Point, Rings, doubled_area};

/// The start or the end of a piece, at a place on the border.
#[derive(Clone, Copy)]
struct BorderEnd {
    place: BorderPlace,
    piece: usize,
    is_exit: bool,
}

/// Rings of land and water within a region.
pub(super) struct ClosedCoast {
    /// The rings, with land on their left. The segments along the border belong to no way.
    pub rings: Vec<CoastPath>,
    /// The rings of the border, with additional points where coastlines meet the border.
    pub border: Rings,
    /// For each ring of the border, whether coastlines meet it.
    pub is_met: Vec<bool>,
}

/// Closes pieces along the border.
pub(super) fn close_along_border(
    pieces: Vec<CoastPiece>,
    border: &Border,
    problems: &mut Vec<CoastProblem>,
) -> ClosedCoast {
    let mut ends: Vec<Vec<BorderEnd>> = vec![Vec::new(); border.rings.len()];
    for (piece, CoastPiece { ends: places, .. }) in pieces.iter().enumerate() {
        for (place, is_exit) in places.iter().zip([false, true]) {
            if let PieceEnd::Border(place) = *place {
                let (ring, _) = border.ring_and_index(place.edge);
                ends[ring].push(BorderEnd {
                    place,
                    piece,
                    is_exit,
                });
            }
        }
    }
    let mut walk = BorderWalk {
        next: vec![None; pieces.len()],
        is_entered: vec![false; pieces.len()],
    };
    let mut rings = Vec::with_capacity(ends.len());
    for (ring, ends) in border.rings.iter().zip(&mut ends) {
        let key = |end: &BorderEnd| (!end.is_exit, end.piece);
        ends.sort_by(|one, other| {
            let by_place = one.place.compare(&other.place);
            by_place.then_with(|| key(one).cmp(&key(other)))
        });
        walk.match_ends(ring, border, ends);
        rings.push(ring_with_coast_ends(ring, border, ends));
    }
    ClosedCoast {
        rings: walk.rings(pieces, problems),
        border: rings,
        is_met: ends.iter().map(|ends| !ends.is_empty()).collect(),
    }
}

/// Twice the area of half of the world, in squared units of 1e-7 degree.
const DOUBLED_HALF_WORLD: i128 = 3_600_000_000 * 1_800_000_000;

/// Removes rings around more than half of the world. Such a ring is a coastline in the wrong direction, for example a
/// reversed coastline of Antarctica.
pub(super) fn remove_world_rings(rings: &mut Vec<CoastPath>, problems: &mut Vec<CoastProblem>) {
    rings.retain(|ring| {
        let is_world = doubled_area(&ring.points) > DOUBLED_HALF_WORLD;
        if is_world {
            problems.push(not_closed_problem(ring));
        }
        !is_world
    });
}

/// Returns a problem of the kind `NotClosed` for a path.
fn not_closed_problem(path: &CoastPath) -> CoastProblem {
    let place = ProblemPlace::of_line(path.points.clone());
    CoastProblem::of_ways(CoastProblemKind::NotClosed, path.ways(), place)
}

/// Returns a ring of the border, with additional points where coastlines meet it.
fn ring_with_coast_ends(ring: &[Point], border: &Border, ends: &[BorderEnd]) -> Vec<Point> {
    let mut points = Vec::with_capacity(ring.len() + ends.len());
    let mut ends = ends.iter().peekable();
    for (index, point) in ring.iter().enumerate() {
        points.push(*point);
        while let Some(end) = ends.next_if(|end| border.ring_and_index(end.place.edge).1 <= index) {
            points.push(end.place.point);
        }
    }
    points.dedup();
    while points.len() > 1 && points.first() == points.last() {
        points.pop();
    }
    points
}

/// The connections along the border from piece to piece.
struct BorderWalk {
    /// For each piece, the piece that follows it along the border, and the points of the border between the two. `None`
    /// for a piece that does not leave the region, or that no piece follows.
    next: Vec<Option<(usize, Vec<Point>)>>,
    /// For each piece, whether a connection leads to its start.
    is_entered: Vec<bool>,
}

impl BorderWalk {
    /// Matches the exits and the entries along a ring of the border.
    fn match_ends(&mut self, ring: &[Point], border: &Border, ends: &[BorderEnd]) {
        let is_exit: Vec<bool> = ends.iter().map(|end| end.is_exit).collect();
        for (index, partner) in match_circular_brackets(&is_exit).into_iter().enumerate() {
            let (Some(exit), Some(other)) = (ends.get(index), partner) else {
                continue;
            };
            let Some(entry) = ends.get(other).filter(|_| exit.is_exit) else {
                continue;
            };
            let first = border.ring_and_index(exit.place.edge).1;
            let last = border.ring_and_index(entry.place.edge).1;
            let count = if first == last && other < index {
                ring.len()
            } else {
                (last + ring.len() - first) % ring.len()
            };
            let behind = ring.iter().cycle().skip(first + 1).take(count);
            self.next[exit.piece] = Some((entry.piece, behind.copied().collect()));
            self.is_entered[entry.piece] = true;
        }
    }

    /// Returns the rings that the pieces and the connections along the border form.
    fn rings(
        self,
        mut pieces: Vec<CoastPiece>,
        problems: &mut Vec<CoastProblem>,
    ) -> Vec<CoastPath> {
        let mut is_done = vec![false; pieces.len()];
        let mut rings = Vec::new();
        let open = (0..pieces.len()).filter(|piece| !self.is_entered[*piece]);
        for start in open.chain(0..pieces.len()) {
            if is_done[start] {
                continue;
            }
            if let PieceEnd::Closed = pieces[start].ends[0] {
                is_done[start] = true;
                rings.push(std::mem::take(&mut pieces[start].path));
                continue;
            }
            let (mut ring, mut at, mut is_closed) = (CoastPath::default(), Some(start), false);
            let mut members = Vec::new();
            while let Some(piece) = at.filter(|piece| !is_done[*piece]) {
                is_done[piece] = true;
                members.push(piece);
                ring.append(&pieces[piece].path);
                let next = self.next[piece].as_ref();
                if let Some((_, points)) = next {
                    ring.extend(points.iter().copied(), None);
                }
                at = next.map(|(next, _)| *next);
                is_closed = at == Some(start);
            }
            if is_closed {
                ring.extend(ring.points.first().copied(), None);
                ring.is_closed = true;
                rings.push(ring);
                continue;
            }
            problems.extend(
                members
                    .into_iter()
                    .map(|piece| not_closed_problem(&pieces[piece].path)),
            );
        }
        rings
    }
}
