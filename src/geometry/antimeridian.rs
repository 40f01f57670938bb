//! Cuts geometries at the antimeridian, for maps whose edges are at 180 degrees of longitude.
//!
//! Between two points, a line or an outline goes the shorter way around the earth. It crosses the antimeridian if the
//! longitudes of the points are more than 180 degrees apart. 180 degrees east and 180 degrees west are the same
//! meridian.

use super::Extent;
use super::Point;
use super::intersection::{Rings, intersection};

/// 180 degrees in units of 1e-7 degree.
const HALF_TURN: i64 = 1_800_000_000;

/// The treatment of lines and areas that cross the antimeridian. A line is assumed to cross it between two consecutive
/// points whose longitudes are more than 180 degrees apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Antimeridian {
    /// Lines and areas are cut at 180 degrees, as in RFC 7946. Areas around a pole are not cut.
    #[default]
    Cut,
    /// Lines and areas are not cut. On a map, they appear to span the whole width.
    Keep,
}

/// Whether a point lies on the antimeridian.
pub(crate) const fn is_on_antimeridian(point: Point) -> bool {
    point.lon_e7.unsigned_abs() == HALF_TURN as u32
}

/// Returns the point with the sign of its longitude reversed. For a point on the antimeridian, this is the same place
/// on the earth, at the opposite edge of the map.
pub(crate) const fn point_at_opposite_map_edge(point: Point) -> Point {
    Point::new(point.lat_e7, point.lon_e7.wrapping_neg())
}

/// Cuts a line at the antimeridian. Returns `None` if the line does not cross the antimeridian. Parts without a length
/// are left out, so a line that lies at one point of the antimeridian has no parts.
pub(crate) fn cut_line_at_antimeridian(points: &[Point]) -> Option<Vec<Vec<Point>>> {
    if !has_edge_across(points.iter().copied()) {
        return None;
    }
    let (first, mut parts) = (points.first()?, Vec::new());
    let mut part = vec![*first];
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if is_edge_across_antimeridian(from, to) {
            let [end, start] = antimeridian_ends(from, to);
            part.push(end);
            parts.push(std::mem::replace(&mut part, vec![start]));
        }
        part.push(to);
    }
    parts.push(part);
    // A point on the antimeridian belongs to the parts on both sides. A part at an end of the line may consist of this
    // point only. If so, the part is removed.
    parts.iter_mut().for_each(Vec::dedup);
    parts.retain(|part| part.len() > 1);
    Some(parts)
}

/// Returns the points at which an edge across the antimeridian leaves the map and enters it again: `[exit, entry]`.
pub(crate) fn antimeridian_ends(from: Point, to: Point) -> [Point; 2] {
    let lat_e7 = lat_at_antimeridian(from, to);
    let side = |of: Point| HALF_TURN as i32 * of.lon_e7.signum();
    [from, to].map(side).map(|lon_e7| Point { lat_e7, lon_e7 })
}

/// Whether an edge crosses the antimeridian: the longitudes of its ends are more than 180 degrees apart.
pub(crate) fn is_edge_across_antimeridian(from: Point, to: Point) -> bool {
    (i64::from(from.lon_e7) - i64::from(to.lon_e7)).abs() > HALF_TURN
}

/// Returns by how much the longitude grows along an edge. An edge of exactly 180 degrees does not cross the
/// antimeridian.
pub(crate) fn wrapped_longitude_delta(from: Point, to: Point) -> i64 {
    match i64::from(to.lon_e7) - i64::from(from.lon_e7) {
        width if width > HALF_TURN => width - 2 * HALF_TURN,
        width if width < -HALF_TURN => width + 2 * HALF_TURN,
        width => width,
    }
}

/// Returns the latitude at which an edge crosses the antimeridian.
fn lat_at_antimeridian(from: Point, to: Point) -> i32 {
    // Measures the edge from west to east, so that an edge and its reverse are cut at the same latitude.
    let turned = |point| MapTurn::HALF.apply(point);
    let (west, east) = if from.lon_e7 > to.lon_e7 {
        (turned(from), turned(to))
    } else {
        (turned(to), turned(from))
    };
    let by = -i128::from(west.lon_e7);
    let width = i128::from(east.lon_e7) + by;
    let height = i128::from(east.lat_e7) - i128::from(west.lat_e7);
    if width == 0 {
        // Both ends lie on the antimeridian, so there is no single intersection.
        return to.lat_e7;
    }
    west.lat_e7 + (2 * by * height + width).div_euclid(2 * width) as i32
}

fn has_edge_across(mut points: impl Iterator<Item = Point>) -> bool {
    let mut before = points.next();
    points.any(|point| {
        let last = before.replace(point);
        last.is_some_and(|last| is_edge_across_antimeridian(last, point))
    })
}

/// Whether a path has an edge across the antimeridian. Checks the width of the path first, because this is cheaper.
fn crosses_antimeridian(points: impl Iterator<Item = Point> + Clone) -> bool {
    let lons = points.clone().map(|point| point.lon_e7);
    let (low, high) = lons.fold((i32::MAX, i32::MIN), |(low, high), lon| {
        (low.min(lon), high.max(lon))
    });
    i64::from(high) - i64::from(low) > HALF_TURN && has_edge_across(points)
}

/// Whether the outlines of an area go around a pole: they cross the antimeridian and have points at all longitudes.
/// Such outlines are not cut. An edge along the antimeridian does not cross it.
pub(crate) fn goes_around_pole<L>(paths: impl Iterator<Item = L> + Clone) -> bool
where
    L: Iterator<Item = Point> + Clone,
{
    let crosses = |path: L| {
        let mut pairs = path.clone().zip(path.skip(1));
        pairs.any(|(from, to)| {
            let is_along = is_on_antimeridian(from) && is_on_antimeridian(to);
            is_edge_across_antimeridian(from, to) && !is_along
        })
    };
    paths.clone().any(crosses) && MapTurn::of(paths).is_none()
}

/// A turn of the map around the axis of the earth. The edges of the turned map are at another meridian, so that a
/// geometry across the antimeridian is in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapTurn {
    /// The longitude of the edges of the turned map in 1e-7 degree. It is even, because intersections of wide areas are
    /// exact only at even coordinates.
    edge_e7: i64,
}

impl MapTurn {
    /// The turn after which the prime meridian is at the edges of the map.
    const HALF: Self = Self { edge_e7: 0 };

    /// Returns a turn such that no outline of an area crosses the edges of the turned map. Returns `None` if no outline
    /// crosses the antimeridian, because the map then needs no turn. Also returns `None` if the outlines have points at
    /// all longitudes, as around a pole.
    pub(crate) fn of<L>(paths: impl Iterator<Item = L> + Clone) -> Option<Self>
    where
        L: Iterator<Item = Point> + Clone,
    {
        if !paths.clone().any(crosses_antimeridian) {
            return None;
        }
        if !paths.clone().any(|path| Self::HALF.tears_path(path)) {
            return Some(Self::HALF);
        }
        let mut spans = Vec::new();
        for path in paths {
            for (from, to) in path.clone().zip(path.skip(1)) {
                let lons = [from, to].map(|point| i64::from(point.lon_e7));
                let (west, east) = (lons[0].min(lons[1]), lons[0].max(lons[1]));
                if is_edge_across_antimeridian(from, to) {
                    spans.extend([(-HALF_TURN, west), (east, HALF_TURN)]);
                } else {
                    spans.push((west, east));
                }
            }
        }
        Self::of_widest_gap(spans)
    }

    /// Returns a turn that puts the parts of a geometry side by side. `parts` are the bounding boxes of the parts into
    /// which the geometry was cut at the antimeridian. Returns `None` unless one part reaches 180 degrees west and one
    /// part reaches 180 degrees east. Also returns `None` if the parts have points at all longitudes.
    pub(crate) fn joining(parts: impl Iterator<Item = Extent>) -> Option<Self> {
        let edges = parts.map(|part| part.edges().map(i64::from));
        let spans: Vec<_> = edges.map(|edges| (edges.west, edges.east)).collect();
        let meet = spans.iter().any(|(west, _)| *west == -HALF_TURN)
            && spans.iter().any(|(_, east)| *east == HALF_TURN);
        meet.then(|| Self::of_widest_gap(spans)).flatten()
    }

    /// Returns the turn whose edge is in the middle of the widest gap between intervals of longitude. Returns `None` if
    /// there is no gap.
    fn of_widest_gap(mut spans: Vec<(i64, i64)>) -> Option<Self> {
        spans.sort_unstable();
        spans.push((HALF_TURN, HALF_TURN));
        let (mut reached, mut widest) = (-HALF_TURN, (0, 0));
        for (west, east) in spans {
            widest = widest.max((west - reached, (west + reached) / 2));
            reached = reached.max(east);
        }
        let (width, middle) = widest;
        // In a gap of this width, the middle stays inside of the gap when it is rounded to an even longitude.
        (width > 4).then_some(Self {
            edge_e7: middle / 2 * 2,
        })
    }

    /// Whether the turned map tears an edge of a path. An edge is torn if its longitudes on the turned map do not
    /// differ by [`wrapped_longitude_delta`]. Such an edge crosses the edges of the turned map, or it spans exactly 180
    /// degrees and goes around the other side of the earth there.
    fn tears_path(self, path: impl Iterator<Item = Point> + Clone) -> bool {
        let mut pairs = path.clone().zip(path.skip(1));
        pairs.any(|(from, to)| {
            let turned = [from, to].map(|point| i64::from(self.apply(point).lon_e7));
            turned[1] - turned[0] != wrapped_longitude_delta(from, to)
        })
    }

    /// Returns the position of a point on the turned map.
    pub(crate) fn apply(self, point: Point) -> Point {
        let lon = i64::from(point.lon_e7);
        let by = if lon >= self.edge_e7 {
            -HALF_TURN
        } else {
            HALF_TURN
        };
        Point::new(point.lat_e7, (lon - self.edge_e7 + by) as i32)
    }

    /// Returns the point that has this position on the turned map.
    pub(crate) fn undo(self, point: Point) -> Point {
        let by = self.shift_to_true_longitude(point.lon_e7.into());
        Point::new(point.lat_e7, (i64::from(point.lon_e7) + by as i64) as i32)
    }

    /// Returns the shift from a longitude on the turned map to the true longitude. The longitudes and the shift are in
    /// 1e-7 degree.
    pub(crate) fn shift_to_true_longitude(self, turned_lon: f64) -> f64 {
        let by = if turned_lon < -self.edge_e7 as f64 {
            HALF_TURN
        } else {
            -HALF_TURN
        };
        (self.edge_e7 + by) as f64
    }

    /// Cuts a polygon of the turned map at the antimeridian. Returns the parts of the polygon, with their true
    /// longitudes.
    pub(crate) fn cut<'r>(self, rings: impl Iterator<Item = &'r Vec<Point>> + Clone) -> Vec<Rings> {
        const QUARTER: i32 = (HALF_TURN / 2) as i32;
        let at = -self.edge_e7;
        let mut parts = Vec::new();
        // Each side of the antimeridian: its western and eastern edge on the turned map, and the shift back to true
        // longitudes.
        for (west, east, back) in [
            (-HALF_TURN, at, self.edge_e7 + HALF_TURN),
            (at, HALF_TURN, self.edge_e7 - HALF_TURN),
        ] {
            let corner = |lon, lat_e7| Point::new(lat_e7, lon as i32);
            let side = vec![
                corner(west, -QUARTER),
                corner(east, -QUARTER),
                corner(east, QUARTER),
                corner(west, QUARTER),
            ];
            let mut found = intersection(rings.clone(), &[side]);
            for point in found.iter_mut().flatten().flatten() {
                point.lon_e7 = (i64::from(point.lon_e7) + back) as i32;
            }
            parts.extend(found);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::tests::{places_of_lines, points};
    use crate::geometry::{Extent, doubled_area};

    fn turn_of(paths: &[Vec<Point>]) -> Option<MapTurn> {
        MapTurn::of(paths.iter().map(|path| path.iter().copied()))
    }

    fn is_around_pole(path: &[(f64, f64)]) -> bool {
        let path = points(path);
        goes_around_pole(std::iter::once(path.iter().copied()))
    }

    #[test]
    fn lines_are_cut_at_the_antimeridian() {
        assert_eq!(
            cut_line_at_antimeridian(&points(&[(0.0, 0.0), (179.0, 0.0)])),
            None
        );
        let line = points(&[(170.0, 0.0), (-170.0, 10.0), (-160.0, 10.0)]);
        assert_eq!(
            places_of_lines(cut_line_at_antimeridian(&line)),
            [
                vec![(170.0, 0.0), (180.0, 5.0)],
                vec![(-180.0, 5.0), (-170.0, 10.0), (-160.0, 10.0)]
            ]
        );
        // A line that reaches the antimeridian from the west, runs along it, and leaves it to the east.
        let line = points(&[(179.0, 0.0), (180.0, 1.0), (-180.0, 2.0), (-179.0, 3.0)]);
        assert_eq!(
            places_of_lines(cut_line_at_antimeridian(&line)),
            [
                vec![(179.0, 0.0), (180.0, 1.0), (180.0, 2.0)],
                vec![(-180.0, 2.0), (-179.0, 3.0)]
            ]
        );
        // A line that crosses the antimeridian twice.
        let line = points(&[(179.0, 0.0), (-179.0, 0.0), (179.0, 0.0)]);
        let parts = places_of_lines(cut_line_at_antimeridian(&line));
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().flatten().all(|(_, lat)| *lat == 0.0));
    }

    #[test]
    fn a_line_at_one_place_on_the_antimeridian_has_no_parts() {
        let line = points(&[(180.0, 0.0), (-180.0, 0.0), (180.0, 0.0)]);
        assert!(places_of_lines(cut_line_at_antimeridian(&line)).is_empty());
        let line = points(&[(179.0, 0.0), (180.0, 0.0), (-180.0, 0.0)]);
        assert_eq!(
            places_of_lines(cut_line_at_antimeridian(&line)),
            [[(179.0, 0.0), (180.0, 0.0)]]
        );
    }

    fn area(parts: &[Rings]) -> i128 {
        parts.iter().flatten().map(|ring| doubled_area(ring)).sum()
    }

    #[test]
    fn polygons_are_cut_at_the_antimeridian() {
        let outer = points(&[
            (178.0, -2.0),
            (-178.0, -2.0),
            (-178.0, 2.0),
            (178.0, 2.0),
            (178.0, -2.0),
        ]);
        let hole = points(&[(179.0, -1.0), (179.0, 1.0), (-179.0, 1.0), (-179.0, -1.0)]);
        let turn = turn_of(std::slice::from_ref(&outer)).unwrap();
        assert_eq!(turn, MapTurn::HALF);
        let apply = |ring: &[Point]| -> Vec<Point> {
            ring.iter().map(|point| turn.apply(*point)).collect()
        };
        let parts = turn.cut([apply(&outer[..4]), apply(&hole)].iter());
        assert_eq!(parts.len(), 2);
        assert_eq!(area(&parts), 2 * 12 * 100_000_000_000_000);
        for ring in parts.iter().flatten() {
            let extent = Extent::of(ring).unwrap();
            let width = i64::from(extent.high.lon_e7) - i64::from(extent.low.lon_e7);
            assert_eq!(width, 20_000_000);
        }
        let east = points(&[(170.0, 0.0), (179.0, 0.0), (179.0, 5.0)]);
        assert_eq!(turn_of(&[east]), None);
    }

    #[test]
    fn a_map_is_turned_so_that_no_outline_crosses_its_edges() {
        // One outline crosses the antimeridian, and the other crosses the prime meridian.
        let fiji = points(&[(179.0, 0.0), (-179.0, 0.0), (-179.0, 1.0), (179.0, 0.0)]);
        let greenwich = points(&[(-1.0, 50.0), (3.0, 50.0), (0.0, 51.0), (-1.0, 50.0)]);
        let turn = turn_of(&[greenwich.clone(), fiji.clone()]).unwrap();
        for (ring, area) in [(&fiji, 2), (&greenwich, 4)] {
            let turned: Vec<Point> = ring.iter().map(|point| turn.apply(*point)).collect();
            assert!(!turn.tears_path(ring.iter().copied()));
            assert!(
                turned
                    .iter()
                    .zip(ring)
                    .all(|(one, of)| turn.undo(*one) == *of)
            );
            assert_eq!(doubled_area(&turned), area * 100_000_000_000_000);
        }
        // An area that is wider than half of the earth, from 5 degrees west eastwards to 20 degrees west.
        let wide = points(&[
            (-5.0, 0.0),
            (90.0, 0.0),
            (-150.0, 0.0),
            (-20.0, 0.0),
            (-20.0, 9.0),
            (-150.0, 9.0),
            (90.0, 9.0),
            (-5.0, 9.0),
            (-5.0, 0.0),
        ]);
        let turn = turn_of(std::slice::from_ref(&wide)).unwrap();
        assert_eq!(turn.edge_e7, -125_000_000);
        let ring: Vec<Point> = wide[..8].iter().map(|point| turn.apply(*point)).collect();
        let parts = turn.cut(std::iter::once(&ring));
        assert_eq!(parts.len(), 2);
        assert_eq!(area(&parts), 2 * 345 * 9 * 100_000_000_000_000);
    }

    #[test]
    fn outlines_around_a_pole_are_not_turned() {
        let polar = [
            (-120.0, -70.0),
            (0.0, -70.0),
            (120.0, -70.0),
            (-120.0, -70.0),
        ];
        assert_eq!(turn_of(&[points(&polar)]), None);
        assert!(is_around_pole(&polar));
        // A ring that goes along the antimeridian does not cross it.
        assert!(!is_around_pole(&[
            (-180.0, -60.0),
            (0.0, -60.0),
            (180.0, -60.0),
            (180.0, -90.0),
            (-180.0, -90.0),
            (-180.0, -60.0)
        ]));
        let hemisphere = [
            (-180.0, -90.0),
            (0.0, -90.0),
            (180.0, -90.0),
            (180.0, 0.0),
            (-180.0, 0.0),
            (-180.0, -90.0),
        ];
        assert_eq!(turn_of(&[points(&hemisphere)]), None);
        assert!(!is_around_pole(&[
            (179.0, 0.0),
            (-179.0, 0.0),
            (179.0, 1.0)
        ]));
    }

    #[test]
    fn parts_on_both_sides_of_the_antimeridian_are_joined() {
        let extent =
            |west: f64, east: f64| Extent::of(&points(&[(west, 0.0), (east, 1.0)])).unwrap();
        let parts = [
            extent(-180.0, -170.0),
            extent(100.0, 110.0),
            extent(175.0, 180.0),
        ];
        let turn = MapTurn::joining(parts.into_iter()).unwrap();
        let lons: Vec<i32> = points(&[(100.0, 0.0), (180.0, 0.0), (-180.0, 0.0), (-170.0, 0.0)])
            .iter()
            .map(|point| turn.apply(*point).lon_e7)
            .collect();
        assert!(
            lons.is_sorted() && lons[3] - lons[0] == 900_000_000,
            "{lons:?}"
        );
        assert_eq!(MapTurn::joining(parts[..2].iter().copied()), None);
        assert_eq!(MapTurn::joining([extent(-180.0, 180.0)].into_iter()), None);
    }
}
