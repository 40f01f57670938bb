//! Cuts paths at the border of a region.

use super::border::{Border, BorderPlace};
use super::gaps::BoundPath;
use super::path::CoastPath;

/// The end of a piece.
#[derive(Debug, Clone, Copy)]
pub(super) enum PieceEnd {
    /// The piece is closed and has no ends.
    Closed,
    Border(BorderPlace),
    /// The piece ends within the region.
    Loose,
}

/// A piece of a path within the region.
pub(super) struct CoastPiece {
    pub path: CoastPath,
    /// The start and the end.
    pub ends: [PieceEnd; 2],
}

/// A path that is being cut into pieces, one segment after another.
struct Clipper<'c> {
    border: &'c Border,
    pieces: Vec<CoastPiece>,
    /// The piece that has begun but has not ended yet.
    open: Option<CoastPiece>,
}

/// Cuts a path where it crosses the antimeridian. A new end gets a place on the border of the region if the border
/// passes through that end.
pub(super) fn cut_at_antimeridian(bound: BoundPath, border: &Border) -> Vec<BoundPath> {
    let places = bound.places;
    let mut is_closed = bound.path.is_closed;
    let parts = bound.path.cut_at_antimeridian();
    let count = parts.len();
    // From here on, `is_closed` means that the path was closed and has been cut. A closed path that was not cut has no
    // ends.
    is_closed &= count > 1 || parts.first().is_some_and(|part| !part.is_closed);
    let parts = parts.into_iter().enumerate().map(|(index, path)| {
        let is_cut = [is_closed || index > 0, is_closed || index + 1 < count];
        let place = |is_last: bool| match path.end(is_last) {
            Some(point) if is_cut[usize::from(is_last)] => {
                border.nearest(point, 0.5).map(|(place, _)| place)
            }
            _ => places[usize::from(is_last)],
        };
        let places = [place(false), place(true)];
        BoundPath { path, places }
    });
    parts.filter(|part| part.path.points.len() > 1).collect()
}

/// Returns the pieces of a path that lie within the region, in the order of the path.
pub(super) fn clip(bound: BoundPath, border: &Border) -> Vec<CoastPiece> {
    let BoundPath { path, places } = bound;
    let Some(first) = path.points.first().copied() else {
        return Vec::new();
    };
    let is_inside = border.has(first);
    let end_at = |place: Option<BorderPlace>| place.map_or(PieceEnd::Loose, PieceEnd::Border);
    if !border.may_cross(&path.points) {
        let ends = if path.is_closed {
            [PieceEnd::Closed; 2]
        } else {
            places.map(end_at)
        };
        let piece = CoastPiece { path, ends };
        return Vec::from_iter(is_inside.then_some(piece).map(with_border_points));
    }
    let mut clipper = Clipper {
        border,
        pieces: Vec::new(),
        open: is_inside.then(|| begin_piece(end_at(places[0]))),
    };
    let mut is_inside = is_inside;
    for (segment, pair) in path.points.windows(2).enumerate() {
        is_inside = clipper.add_segment([pair[0], pair[1]], path.way_of(segment), is_inside);
    }
    let Clipper {
        mut pieces, open, ..
    } = clipper;
    if let Some(mut last) = open {
        if path.is_closed && pieces.is_empty() {
            last.ends = [PieceEnd::Closed; 2];
            last.path.is_closed = true;
            return vec![last];
        }
        if path.is_closed {
            // The path begins and ends within the region, so its last piece continues with its first piece.
            let first = pieces.remove(0);
            last.path.append(&first.path);
            last.ends[1] = first.ends[1];
        } else {
            last.ends[1] = end_at(places[1]);
        }
        pieces.push(last);
    }
    let pieces = pieces.into_iter().map(with_border_points);
    pieces.filter(|piece| piece.path.points.len() > 1).collect()
}

fn begin_piece(start: PieceEnd) -> CoastPiece {
    CoastPiece {
        path: CoastPath::default(),
        ends: [start, PieceEnd::Loose],
    }
}

/// Adds the points on the border at which a piece begins and ends.
fn with_border_points(piece: CoastPiece) -> CoastPiece {
    let mut path = CoastPath::default();
    if let PieceEnd::Border(place) = piece.ends[0] {
        path.points.push(place.point);
    }
    if path.points.is_empty() {
        path = piece.path;
    } else {
        path.append(&piece.path);
        path.is_closed = piece.path.is_closed;
    }
    if let PieceEnd::Border(place) = piece.ends[1] {
        path.extend([place.point], None);
    }
    CoastPiece { path, ..piece }
}

impl Clipper<'_> {
    /// Adds a segment. Returns whether its end is in the region.
    fn add_segment(
        &mut self,
        [from, to]: [crate::geometry::Point; 2],
        way: Option<i64>,
        mut is_inside: bool,
    ) -> bool {
        if let Some(open) = &mut self.open {
            open.path.extend([from], way);
        }
        for crossing in self.border.crossings(from, to, is_inside) {
            if crossing.is_exit {
                if let Some(mut piece) = self.open.take() {
                    piece.path.extend([crossing.place.point], way);
                    piece.ends[1] = PieceEnd::Border(crossing.place);
                    self.pieces.push(piece);
                }
            } else {
                let mut piece = begin_piece(PieceEnd::Border(crossing.place));
                piece.path.extend([crossing.place.point], way);
                self.open = Some(piece);
            }
            is_inside = !crossing.is_exit;
        }
        if let Some(open) = &mut self.open {
            open.path.extend([to], way);
        }
        is_inside
    }
}
