//! Points that stand for a geometry: its centroid, and a point on the geometry for a label.

use super::Geometry;
use crate::area::{AreaPolygon, interior_point};
use crate::geometry::{Extent, MapTurn, Point, wrapped_longitude_delta};
use crate::osm::DECIMICRO_PER_DEGREE;

/// Returns a point on a geometry: the point itself, the point halfway along a line, or a point inside an area. If a
/// geometry has several parts, the longest line or the first polygon counts.
pub(crate) fn label_point(geometry: &Geometry<'_>) -> Point {
    let on_geometry = match geometry {
        Geometry::Point(point) => Some(*point),
        Geometry::LineString(points) => halfway_point(points),
        Geometry::MultiLineString(lines) => {
            let longest = lines
                .iter()
                .max_by(|one, other| line_length(one).total_cmp(&line_length(other)));
            longest.and_then(|points| halfway_point(points))
        }
        Geometry::MultiPolygon(polygons) => interior_point(polygons),
    };
    on_geometry.unwrap_or_else(|| {
        let [lon, lat] = centroid(geometry);
        let e7 = |degrees: f64| (degrees * DECIMICRO_PER_DEGREE as f64).round() as i32;
        Point::new(e7(lat), e7(lon))
    })
}

/// Returns the differences of longitude and latitude between two points, and their distance in the plane of longitude
/// and latitude, in 1e-7 degree. The difference of longitude is that of the shorter way around the earth.
fn offset_and_distance(pair: &[Point]) -> (f64, f64, f64) {
    let lon = wrapped_longitude_delta(pair[0], pair[1]) as f64;
    let lat = f64::from(pair[1].lat_e7) - f64::from(pair[0].lat_e7);
    (lon, lat, lon.hypot(lat))
}

/// Returns the length of a line in the plane of longitude and latitude.
fn line_length(points: &[Point]) -> f64 {
    points
        .windows(2)
        .map(|pair| offset_and_distance(pair).2)
        .sum()
}

/// Returns the point halfway along a line; `None` for a line without points.
fn halfway_point(points: &[Point]) -> Option<Point> {
    let mut left = line_length(points) / 2.0;
    for pair in points.windows(2) {
        let (lon, lat, length) = offset_and_distance(pair);
        if left <= length && length > 0.0 {
            let part = left / length;
            return Some(Point::new(
                (f64::from(pair[0].lat_e7) + part * lat).round() as i32,
                wrapped_longitude_e7(f64::from(pair[0].lon_e7) + part * lon),
            ));
        }
        left -= length;
    }
    points.last().copied()
}

/// Converts a longitude in 1e-7 degree, which may lie beyond the antimeridian, to the range from -180 to 180 degrees.
fn wrapped_longitude_e7(lon: f64) -> i32 {
    const HALF_TURN: f64 = 180.0 * DECIMICRO_PER_DEGREE as f64;
    let turned = match lon {
        lon if lon > HALF_TURN => lon - 2.0 * HALF_TURN,
        lon if lon < -HALF_TURN => lon + 2.0 * HALF_TURN,
        lon => lon,
    };
    turned.round() as i32
}

/// The sum of the weights of points, and the weighted sums of their coordinates. Coordinates are in 1e-7 degree,
/// relative to an origin.
#[derive(Default)]
struct Weighted {
    weight: f64,
    lon: f64,
    lat: f64,
}

impl Weighted {
    fn add(&mut self, weight: f64, lon: f64, lat: f64) {
        self.weight += weight;
        self.lon += weight * lon;
        self.lat += weight * lat;
    }
}

/// Returns the longitude and the latitude of the centroid in degrees. The centroid of a line is weighted by length, and
/// the centroid of polygons by area. Parts that meet at the antimeridian are joined first. So a geometry that was cut
/// there has the same centroid as before the cut.
pub(crate) fn centroid(geometry: &Geometry<'_>) -> [f64; 2] {
    let turn = map_turn_joining_parts(geometry);
    let plane = Plane {
        origin: geometry.first_point().unwrap_or(Point::new(0, 0)),
        turn,
    };
    let mut sums = Weighted::default();
    match geometry {
        Geometry::Point(_) => {}
        Geometry::LineString(points) => add_line(&mut sums, points, plane),
        Geometry::MultiLineString(lines) => {
            let lines = lines.iter();
            lines.for_each(|line| add_line(&mut sums, line, plane));
        }
        Geometry::MultiPolygon(polygons) => {
            let rings = polygons.iter().flat_map(AreaPolygon::rings);
            rings.for_each(|ring| add_ring(&mut sums, ring, plane));
        }
    }
    let (lon, lat) = if sums.weight == 0.0 {
        (0.0, 0.0)
    } else {
        (sums.lon / sums.weight, sums.lat / sums.weight)
    };
    let origin = plane.position_on_map(plane.origin);
    let (lon, lat) = (
        f64::from(origin.lon_e7) + lon,
        f64::from(origin.lat_e7) + lat,
    );
    let lon = lon + turn.map_or(0.0, |turn| turn.shift_to_true_longitude(lon));
    [lon, lat].map(|e7| e7 / DECIMICRO_PER_DEGREE as f64)
}

/// Returns the [`MapTurn`] that joins the parts of a geometry at the antimeridian. Returns `None` if no parts meet at
/// the antimeridian, or if the geometry has a point at every longitude.
fn map_turn_joining_parts(geometry: &Geometry<'_>) -> Option<MapTurn> {
    if !geometry.extent()?.spans_over_180_degrees() {
        return None;
    }
    match geometry {
        Geometry::Point(_) | Geometry::LineString(_) => None,
        Geometry::MultiLineString(lines) => {
            let extents = lines.iter().map(|line| Extent::of(line.iter()));
            MapTurn::joining(extents.flatten())
        }
        Geometry::MultiPolygon(polygons) => {
            let extents = polygons.iter().map(|polygon| Extent::of(&polygon.outer));
            MapTurn::joining(extents.flatten())
        }
    }
}

/// The plane in which a centroid is computed.
#[derive(Clone, Copy)]
struct Plane {
    /// The point of the map to which coordinates are relative.
    origin: Point,
    /// The turn of the map that joins parts at the antimeridian; `None` if the map is not turned.
    turn: Option<MapTurn>,
}

impl Plane {
    /// Returns the position of a point on the map, which may be turned.
    fn position_on_map(self, point: Point) -> Point {
        self.turn.map_or(point, |turn| turn.apply(point))
    }

    /// Returns the longitude and the latitude of a point relative to the origin.
    fn relative_position(self, point: Point) -> (f64, f64) {
        let (point, origin) = (
            self.position_on_map(point),
            self.position_on_map(self.origin),
        );
        (
            f64::from(point.lon_e7) - f64::from(origin.lon_e7),
            f64::from(point.lat_e7) - f64::from(origin.lat_e7),
        )
    }
}

/// Adds the middles of the edges of a line to `sums`, weighted by length.
fn add_line(sums: &mut Weighted, points: &[Point], plane: Plane) {
    for pair in points.windows(2) {
        let ((x, y), (to_x, to_y)) = (
            plane.relative_position(pair[0]),
            plane.relative_position(pair[1]),
        );
        let length = (to_x - x).hypot(to_y - y);
        sums.add(length, (x + to_x) / 2.0, (y + to_y) / 2.0);
    }
}

/// For each edge of a ring, adds the centroid of the triangle between the edge and the origin to `sums`, weighted by
/// the area of the triangle. Holes run in the opposite direction, so the total weight of a hole is negative.
fn add_ring(sums: &mut Weighted, ring: &[Point], plane: Plane) {
    let next = ring.iter().cycle().skip(1);
    for (from, to) in ring.iter().zip(next) {
        let ((x, y), (to_x, to_y)) = (plane.relative_position(*from), plane.relative_position(*to));
        let doubled = x * to_y - to_x * y;
        sums.add(doubled, (x + to_x) / 3.0, (y + to_y) / 3.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(places: &[(i32, i32)]) -> Vec<Point> {
        let places = places.iter();
        places
            .map(|&(lon, lat)| Point::new(lat * 1_000_000, lon * 1_000_000))
            .collect()
    }

    #[test]
    fn centroids_are_weighted_by_length_and_area() {
        let line = points(&[(10, 10), (10, 30), (20, 30)]);
        let [lon, lat] = centroid(&Geometry::LineString(&line));
        assert!((lon - 35.0 / 30.0).abs() < 1e-9 && (lat - 70.0 / 30.0).abs() < 1e-9);
        let polygon = AreaPolygon {
            outer: points(&[(0, 0), (40, 0), (40, 40), (0, 40)]),
            holes: vec![points(&[(20, 10), (20, 30), (40, 30), (40, 10)])],
        };
        let [lon, lat] = centroid(&Geometry::MultiPolygon(&[polygon]));
        // The polygon is a square with the area 1600 and the centre (20, 20), minus a hole with the area 400 and the
        // centre (30, 20).
        assert!(
            (lon - 20.0 / 12.0).abs() < 1e-9 && (lat - 2.0).abs() < 1e-9,
            "{lon} {lat}"
        );
    }

    #[test]
    fn the_centroid_of_parts_that_were_cut_lies_between_them() {
        let rectangle = |west: i32, east: i32| AreaPolygon {
            outer: points(&[(west, 0), (east, 0), (east, 40), (west, 40)]),
            holes: Vec::new(),
        };
        let parts = [rectangle(1790, 1800), rectangle(-1800, -1770)];
        let [lon, lat] = centroid(&Geometry::MultiPolygon(&parts));
        assert!(
            (lon + 179.0).abs() < 1e-9 && (lat - 2.0).abs() < 1e-9,
            "{lon} {lat}"
        );
        let lines = [
            points(&[(1790, 10), (1800, 10)]),
            points(&[(-1800, 10), (-1790, 10)]),
        ];
        let [lon, lat] = centroid(&Geometry::MultiLineString(&lines));
        assert!(
            (lon.abs() - 180.0).abs() < 1e-9 && (lat - 1.0).abs() < 1e-9,
            "{lon} {lat}"
        );
        // Parts that do not meet at the antimeridian.
        let apart = [rectangle(1780, 1790), rectangle(-1790, -1780)];
        let [lon, _] = centroid(&Geometry::MultiPolygon(&apart));
        assert!(lon.abs() < 1e-9, "{lon}");
    }

    #[test]
    fn the_label_of_a_line_lies_halfway_along_it() {
        let at = |lon: i32, lat: i32| points(&[(lon, lat)])[0];
        let bent = points(&[(0, 0), (10, 0), (10, 30)]);
        assert_eq!(label_point(&Geometry::LineString(&bent)), at(10, 10));
        let lines = [points(&[(0, 0), (1, 0)]), points(&[(0, 5), (4, 5)])];
        assert_eq!(label_point(&Geometry::MultiLineString(&lines)), at(2, 5));
        let across = points(&[(1790, 0), (-1770, 0)]);
        assert_eq!(label_point(&Geometry::LineString(&across)), at(-1790, 0));
        assert_eq!(label_point(&Geometry::Point(at(3, 4))), at(3, 4));
    }

    #[test]
    fn the_label_of_an_area_lies_inside_it() {
        let polygon = AreaPolygon {
            outer: points(&[(0, 0), (40, 0), (40, 40), (0, 40)]),
            holes: vec![points(&[(10, 10), (10, 30), (40, 30), (40, 10)])],
        };
        let place = label_point(&Geometry::MultiPolygon(&[polygon]));
        assert_eq!(place, points(&[(5, 20)])[0]);
    }
}
