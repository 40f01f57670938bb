//! Cuts the polygons of region files at the antimeridian.
//!
//! RFC 7946 (3.1.9) asks that a polygon across the antimeridian is cut there. Many files have such a polygon in one
//! piece, in which an edge of a ring jumps from 179 to -179 degrees. As in OSM data, this edge goes the shorter way
//! around the earth, so it is 2 degrees wide, not 358.

use crate::geometry::{
    Antimeridian, MapTurn, Point, Polygon, Ring, Shape, doubled_area, is_edge_across_antimeridian,
    is_on_antimeridian, vertex_message,
};

/// The cause of an error about an area that crosses the antimeridian and cannot be cut there.
pub(super) const AROUND_POLE: &str = "it crosses the antimeridian and has a point at every longitude, as an area \
                                      around a pole has; such an area cannot be a region";

/// Makes a shape from outer rings and holes. `group` finds the outer ring of each hole. If a ring jumps across the
/// antimeridian, cuts the polygons there, unless `antimeridian` is [`Antimeridian::Keep`].
///
/// # Errors
///
/// `group` fails, or a polygon that has to be cut is not valid. Also fails if a ring jumps but the rings cannot be cut:
/// they have a point at every longitude, or they reach from pole to pole.
pub(super) fn shape_on_map(
    outers: Vec<Ring>,
    holes: Vec<Ring>,
    antimeridian: Antimeridian,
    group: impl FnOnce(Vec<Ring>, Vec<Ring>) -> Result<Shape, String>,
) -> Result<Shape, String> {
    let rings = || outers.iter().chain(&holes);
    let jumping = match antimeridian {
        Antimeridian::Keep => None,
        Antimeridian::Cut => rings()
            .find_map(|ring| Some((ring.name.clone(), find_antimeridian_jump(&ring.points)?))),
    };
    let Some((name, vertex)) = jumping else {
        return group(outers, holes);
    };
    let error = |cause: &str| Err(vertex_message(&name, vertex, cause));
    let Some(turn) = MapTurn::of(rings().map(|ring| closed_ring(&ring.points))) else {
        return error(AROUND_POLE);
    };
    if reaches_poles(rings().flat_map(|ring| &ring.points)) {
        let cause = "it crosses the antimeridian and reaches from pole to pole; a region around the world begins at \
                     -180 and ends at 180";
        return error(cause);
    }
    let turned = |rings: &[Ring]| -> Vec<Ring> {
        let turned = rings.iter().map(|ring| {
            let points = ring.points.iter().map(|point| turn.apply(*point));
            Ring::new(ring.name.clone(), points.collect())
        });
        turned.collect()
    };
    // Only valid polygons can be cut.
    let shape = group(turned(&outers), turned(&holes))?.checked()?;
    let polygons = shape.polygons.iter();
    Ok(Shape {
        polygons: polygons
            .flat_map(|polygon| cut_polygon(polygon, turn))
            .collect(),
    })
}

/// Cuts a polygon at the antimeridian. `turn` has been applied to the points of the polygon.
fn cut_polygon(polygon: &Polygon, turn: MapTurn) -> Vec<Polygon> {
    let outer = points_in_direction(&polygon.outer.points, true);
    let holes = polygon.holes.iter();
    let holes = holes.map(|hole| points_in_direction(&hole.points, false));
    let rings: Vec<Vec<Point>> = std::iter::once(outer).chain(holes).collect();
    let parts = (1..).zip(turn.cut(rings.iter()));
    let polygons = parts.filter_map(|(part, rings)| {
        let name = format!("{}, part {part}", polygon.outer.name);
        let mut rings = rings
            .into_iter()
            .map(|points| Ring::new(name.clone(), points));
        Some(Polygon {
            outer: rings.next()?,
            holes: rings.collect(),
        })
    });
    polygons.collect()
}

/// Returns the points of a ring in counter-clockwise or in clockwise order.
fn points_in_direction(points: &[Point], is_counter_clockwise: bool) -> Vec<Point> {
    let mut points = points.to_vec();
    if (doubled_area(&points) > 0) != is_counter_clockwise {
        points.reverse();
    }
    points
}

/// Returns the points of a ring, and the first one again.
fn closed_ring(points: &[Point]) -> impl Iterator<Item = Point> + Clone {
    points.iter().chain(points.first()).copied()
}

/// Whether there are points beyond 80 degrees both in the north and in the south.
fn reaches_poles<'p>(points: impl Iterator<Item = &'p Point> + Clone) -> bool {
    const POLAR: i32 = 800_000_000;
    let mut north = points.clone();
    let mut south = points;
    north.any(|point| point.lat_e7 > POLAR) && south.any(|point| point.lat_e7 < -POLAR)
}

/// Returns the vertex, counted from 1, after which a ring jumps across the antimeridian; `None` if the ring does not
/// jump.
///
/// A ring jumps along an edge that is wider than 180 degrees. The ends of the edge must not be at 180 or -180 degrees:
/// with such an end, the author has usually chosen a side of the map, as in a box from -10 to 180. There is one
/// exception. An edge with one such end jumps if the ring continues beyond this end on the end's side of the map. For
/// example, the edge from 180 to -179 jumps in the ring 179, 180, -179.
fn find_antimeridian_jump(points: &[Point]) -> Option<usize> {
    let next = points.iter().cycle().skip(1);
    let mut edges = (1..).zip(points.iter().zip(next));
    let found = edges.find(|(vertex, (from, to))| {
        if !is_edge_across_antimeridian(**from, **to) {
            return false;
        }
        match (is_on_antimeridian(**from), is_on_antimeridian(**to)) {
            (false, false) => true,
            (true, true) => false,
            (true, false) => {
                let (after, before) = (points.iter().skip(*vertex), points.iter().take(*vertex));
                let backwards = before.rev().chain(after.rev());
                continues_on_same_side(**from, backwards)
            }
            (false, true) => {
                let (after, before) = (points.iter().skip(*vertex), points.iter().take(*vertex));
                continues_on_same_side(**to, after.chain(before))
            }
        }
    });
    found.map(|(vertex, _)| vertex)
}

/// Whether a ring continues beyond `edge`, a point on the antimeridian, on the same side of the map as `edge`. `points`
/// is the continuation of the ring. Its first point that is not on the antimeridian decides.
fn continues_on_same_side<'p>(edge: Point, mut points: impl Iterator<Item = &'p Point>) -> bool {
    let other = points.find(|point| !is_on_antimeridian(**point));
    other.is_some_and(|other| other.lon_e7.signum() == edge.lon_e7.signum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Extent;

    fn ring(name: &str, places: &[(f64, f64)]) -> Ring {
        let points = places
            .iter()
            .map(|(lon, lat)| Point::new((lat * 1e7).round() as i32, (lon * 1e7).round() as i32));
        Ring::new(name.to_owned(), points.collect())
    }

    fn polygons_with_all_holes(outers: Vec<Ring>, holes: Vec<Ring>) -> Result<Shape, String> {
        let polygons = outers.into_iter().map(|outer| Polygon {
            outer,
            holes: holes.clone(),
        });
        Ok(Shape {
            polygons: polygons.collect(),
        })
    }

    /// Cuts a ring at the antimeridian. Returns the western and the eastern edge of each polygon in degrees, in
    /// ascending order.
    fn spans(places: &[(f64, f64)]) -> Result<Vec<(f64, f64)>, String> {
        let shape = shape_on_map(
            vec![ring("r", places)],
            Vec::new(),
            Antimeridian::Cut,
            polygons_with_all_holes,
        )?
        .checked()?;
        let mut spans: Vec<(f64, f64)> = shape
            .polygons
            .iter()
            .map(|polygon| Extent::of(&polygon.outer.points).unwrap())
            .map(|extent| (extent.low.lon(), extent.high.lon()))
            .collect();
        spans.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(spans)
    }

    fn box_corners(west: f64, east: f64) -> Vec<(f64, f64)> {
        vec![(west, -2.0), (east, -2.0), (east, 2.0), (west, 2.0)]
    }

    #[test]
    fn a_ring_that_jumps_encloses_the_smaller_side() {
        let halves = Ok(vec![(-180.0, -179.0), (179.0, 180.0)]);
        assert_eq!(spans(&box_corners(179.0, -179.0)), halves);
        let mut clockwise = box_corners(179.0, -179.0);
        clockwise.reverse();
        assert_eq!(spans(&clockwise), halves);
        // A ring with vertices on the antimeridian jumps, too.
        for edge in [180.0, -180.0] {
            let mut places = vec![(179.0, -2.0), (edge, -2.0), (-179.0, -2.0)];
            places.extend([(-179.0, 2.0), (edge, 2.0), (179.0, 2.0)]);
            for _ in 0..places.len() {
                assert_eq!(spans(&places), halves, "{places:?}");
                places.rotate_left(1);
            }
        }
        let pacific = Ok(vec![(-180.0, -120.0), (150.0, 180.0)]);
        assert_eq!(spans(&box_corners(150.0, -120.0)), pacific);
    }

    #[test]
    fn a_ring_that_does_not_jump_is_not_cut() {
        for (west, east) in [
            (-180.0, 180.0),
            (-10.0, 180.0),
            (-180.0, 10.0),
            (-90.0, 90.0),
            (7.0, 8.0),
            (179.0, 180.0),
            (-180.0, -179.0),
        ] {
            assert_eq!(spans(&box_corners(west, east)), Ok(vec![(west, east)]));
        }
        let antarctica = [
            (-180.0, -90.0),
            (180.0, -90.0),
            (180.0, -75.0),
            (60.0, -66.0),
            (-60.0, -64.0),
            (-180.0, -78.0),
        ];
        assert_eq!(spans(&antarctica), Ok(vec![(-180.0, 180.0)]));
    }

    #[test]
    fn holes_are_cut_with_their_ring() {
        let hole = |west, east| {
            let places: Vec<_> = box_corners(west, east)
                .iter()
                .map(|(lon, lat)| (*lon, lat / 2.0))
                .collect();
            ring("hole", &places)
        };
        let outer = vec![ring("r", &box_corners(178.0, -178.0))];
        let shape = shape_on_map(
            outer.clone(),
            vec![hole(179.0, -179.0)],
            Antimeridian::Cut,
            polygons_with_all_holes,
        )
        .unwrap();
        let shape = shape.checked().unwrap();
        assert_eq!(shape.polygons.len(), 2);
        // The hole reaches the cut, so the hole becomes a part of the outlines.
        assert!(
            shape
                .polygons
                .iter()
                .all(|polygon| polygon.holes.is_empty())
        );
        let shape = shape_on_map(
            outer.clone(),
            vec![hole(178.5, 179.5)],
            Antimeridian::Cut,
            polygons_with_all_holes,
        )
        .unwrap();
        let holes: usize = shape
            .polygons
            .iter()
            .map(|polygon| polygon.holes.len())
            .sum();
        assert_eq!((shape.polygons.len(), holes), (2, 1));
        let kept = shape_on_map(
            outer.clone(),
            Vec::new(),
            Antimeridian::Keep,
            polygons_with_all_holes,
        )
        .unwrap();
        let rings: Vec<Ring> = kept
            .polygons
            .into_iter()
            .map(|polygon| polygon.outer)
            .collect();
        assert_eq!(rings, outer);
    }

    #[test]
    fn a_ring_that_cannot_be_cut_is_an_error() {
        let polar = [(-120.0, 70.0), (0.0, 75.0), (120.0, 70.0)];
        let error = spans(&polar).unwrap_err();
        assert_eq!(error, vertex_message("r", 3, AROUND_POLE));
        let world = [
            (-179.9, -89.9),
            (179.9, -89.9),
            (179.9, 89.9),
            (-179.9, 89.9),
        ];
        let error = spans(&world).unwrap_err();
        assert!(
            error.contains("vertex 1") && error.contains("from pole to pole"),
            "{error}"
        );
        let crossed = [(179.0, 0.0), (-179.0, 1.0), (-179.0, 0.0), (179.0, 1.0)];
        assert!(spans(&crossed).is_err());
    }
}
