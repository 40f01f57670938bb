//! A local projection for distances around a query point.
//!
//! A location `u` degrees east and `v` degrees north of the query point is projected to `u · cos(φ + v/2)` and `v`
//! degrees of a great circle, where φ is the latitude of the query point and the cosine is linearized in `v`. Within
//! ten kilometres, distances are exact to a millimetre up to a latitude of 85 degrees. Nearer to a pole, the projection
//! is azimuthal equidistant on the sphere.

use crate::geometry::Point;
use crate::osm::Edges;

/// The mean radius of the earth in metres.
const RADIUS: f64 = 6_371_008.8;
/// 1e-7 degree in radians.
const RADIANS: f64 = std::f64::consts::PI / 180.0 * 1e-7;
/// The absolute latitude, in 1e-7 degree, from which the azimuthal equidistant projection is used.
const POLAR_E7: i32 = 850_000_000;
/// The minimum absolute latitude, in 1e-7 degree, of the locations that can be found from a polar query point. All
/// other locations are too far away, because a polar query point is at [`POLAR_E7`] or nearer to a pole.
const SUBPOLAR_E7: i32 = 840_000_000;
/// 360 degrees in units of 1e-7 degree.
const CIRCLE_E7: i64 = 3_600_000_000;

/// The projection around a query point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalProjection {
    lat_e7: f64,
    lon_e7: f64,
    /// The length in metres of 1e-7 degree of longitude at the query point. The projection reduces this length by
    /// `decrease` for each 1e-7 degree to the north.
    metres: f64,
    decrease: f64,
    is_polar: bool,
    /// The sine of the latitude of the query point. `cos` is the cosine of this latitude.
    sin: f64,
    cos: f64,
}

impl LocalProjection {
    /// Returns the projection around a place.
    pub(crate) fn around(place: Point) -> Self {
        let lat_e7 = f64::from(place.lat_e7);
        let (sin, cos) = (lat_e7 * RADIANS).sin_cos();
        Self {
            lat_e7,
            lon_e7: f64::from(place.lon_e7),
            metres: RADIUS * RADIANS * cos,
            decrease: RADIUS * RADIANS * sin * RADIANS / 2.0,
            is_polar: place.lat_e7.unsigned_abs() >= POLAR_E7 as u32,
            sin,
            cos,
        }
    }

    /// Returns the projections that together cover all locations within `radius` metres. One is the projection around
    /// the place. Near the antimeridian, another one has the longitude of the place shifted by 360 degrees.
    pub(crate) fn covering(place: Point, radius: f64) -> impl Iterator<Item = Self> {
        let projection = Self::around(place);
        let near = (radius * 1.01 / projection.metres.max(1e-9)).min(CIRCLE_E7 as f64);
        let shift = |sign: f64| Self {
            lon_e7: projection.lon_e7 + sign * CIRCLE_E7 as f64,
            ..projection
        };
        let half = CIRCLE_E7 as f64 / 2.0;
        // Near a pole, no shifted projection is needed: the azimuthal projection gives the same result for longitudes
        // that differ by 360 degrees.
        let is_plane = !projection.is_polar;
        let is_west = is_plane && projection.lon_e7 - near < -half;
        let is_east = is_plane && projection.lon_e7 + near > half;
        [
            Some(projection),
            is_west.then(|| shift(1.0)),
            is_east.then(|| shift(-1.0)),
        ]
        .into_iter()
        .flatten()
    }

    /// Whether the query point is near a pole. Near a pole, segments are straight lines in the projection. Elsewhere,
    /// they are straight lines in longitude and latitude.
    pub(crate) const fn is_polar(&self) -> bool {
        self.is_polar
    }

    /// Returns the query point. Its longitude may lie beyond 180 degrees.
    pub(crate) const fn place(&self) -> Point {
        Point::new(self.lat_e7 as i32, self.lon_e7 as i32)
    }

    /// Projects a point to metres east and north of the query point.
    #[inline]
    pub(crate) fn project(&self, point: Point) -> [f64; 2] {
        let u = f64::from(point.lon_e7) - self.lon_e7;
        let v = f64::from(point.lat_e7) - self.lat_e7;
        if !self.is_polar {
            [
                u * (self.metres - self.decrease * v),
                v * (RADIUS * RADIANS),
            ]
        } else {
            self.project_azimuthally(u * RADIANS, f64::from(point.lat_e7) * RADIANS)
        }
    }

    /// Returns the metres to the east and to the north in the azimuthal equidistant projection. `longitudes` is the
    /// difference in longitude from the query point, in radians.
    fn project_azimuthally(&self, longitudes: f64, latitude: f64) -> [f64; 2] {
        let (sin, cos) = latitude.sin_cos();
        let (sin_lon, cos_lon) = longitudes.sin_cos();
        let east = cos * sin_lon;
        let north = self.cos * sin - self.sin * cos * cos_lon;
        let up = self.sin * sin + self.cos * cos * cos_lon;
        let across = east.hypot(north);
        if across == 0.0 {
            return [
                0.0,
                if up < 0.0 {
                    RADIUS * std::f64::consts::PI
                } else {
                    0.0
                },
            ];
        }
        let scale = RADIUS * across.atan2(up) / across;
        [east * scale, north * scale]
    }

    /// Returns a lower bound of the squared distance, in square metres, from the query point to a box. The edges of the
    /// box are in 1e-7 degree.
    #[inline(always)]
    pub(crate) fn squared_distance_bound(&self, edges: Edges<f64>) -> f64 {
        let [west, south, east, north] = edges.into_array();
        // These are faster than `f64::max` and `f64::min`, which also handle NaN.
        let larger = |one: f64, other: f64| if one > other { one } else { other };
        let smaller = |one: f64, other: f64| if one < other { one } else { other };
        if self.is_polar {
            let is_far = south > f64::from(-SUBPOLAR_E7) && north < f64::from(SUBPOLAR_E7);
            return if is_far { f64::INFINITY } else { 0.0 };
        }
        let [south, north] = [south, north].map(|edge| edge - self.lat_e7);
        let [west, east] = [west, east].map(|edge| edge - self.lon_e7);
        let v = larger(larger(south, -north), 0.0) * (RADIUS * RADIANS);
        let u = larger(larger(west, -east), 0.0);
        // The projected box is a trapezoid with its southern and its northern edge as parallel sides. The bound uses
        // the shorter of the two.
        let sides = [south, north].map(|edge| self.metres - self.decrease * edge);
        let least = larger(smaller(sides[0], sides[1]), 0.0);
        let u = u * least;
        u * u + v * v
    }
}

/// Whether a ray from the origin to the east crosses a segment.
pub(crate) fn crosses_ray(from: [f64; 2], to: [f64; 2]) -> bool {
    let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    (from[1] > 0.0) != (to[1] > 0.0) && from[0] - from[1] * dx / dy > 0.0
}

/// Returns the squared distance between the origin and a segment.
#[inline]
pub(crate) fn squared_segment_distance(from: [f64; 2], to: [f64; 2]) -> f64 {
    let [x, y] = nearest_point(from, to, segment_fraction_nearest_origin(from, to));
    x * x + y * y
}

/// Returns the point of a segment that is nearest to the origin, as a fraction of the segment: 0 is the start of the
/// segment, and 1 its end.
#[inline]
pub(crate) fn segment_fraction_nearest_origin(from: [f64; 2], to: [f64; 2]) -> f64 {
    let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    let squared = dx * dx + dy * dy;
    if squared > 0.0 {
        (-(from[0] * dx + from[1] * dy) / squared).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

fn nearest_point(from: [f64; 2], to: [f64; 2], along: f64) -> [f64; 2] {
    [
        from[0] + along * (to[0] - from[0]),
        from[1] + along * (to[1] - from[1]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::geometry::Extent;

    /// Returns the distance on a sphere, by the haversine formula.
    fn haversine(a: Point, b: Point) -> f64 {
        let [lat_a, lat_b] = [a, b].map(|point| f64::from(point.lat_e7) * RADIANS);
        let lon = (f64::from(a.lon_e7) - f64::from(b.lon_e7)) * RADIANS;
        let lat = ((lat_a - lat_b) / 2.0).sin().powi(2);
        let h = lat + lat_a.cos() * lat_b.cos() * (lon / 2.0).sin().powi(2);
        2.0 * RADIUS * h.sqrt().min(1.0).asin()
    }

    /// Returns the squared distance in square metres between a place and a line.
    fn squared_line_distance(projection: &LocalProjection, line: &[Point]) -> f64 {
        let corners: Vec<[f64; 2]> = line
            .iter()
            .map(|point| projection.project(*point))
            .collect();
        let first = corners.first().map(|[x, y]| x * x + y * y);
        let segments = corners.windows(2).filter_map(|pair| match pair {
            [from, to] => Some(squared_segment_distance(*from, *to)),
            _ => None,
        });
        segments.chain(first).fold(f64::INFINITY, f64::min)
    }

    fn point(lat: f64, lon: f64) -> Point {
        Point::new((lat * 1e7).round() as i32, (lon * 1e7).round() as i32)
    }

    #[test]
    fn distances_match_the_haversine_formula() {
        for lat in [
            0.0, 30.0, -47.1, 60.0, 71.2, 84.9, 85.1, -89.0, 89.999, 90.0, -90.0,
        ] {
            for lon in [0.0, 13.4, -180.0, 179.9999] {
                let place = point(lat, lon);
                for (dlat, dlon) in [(0.0, 0.0), (1e-4, 0.0), (0.003, 0.01), (-0.02, 0.05)] {
                    if (lat + dlat).abs() > 90.0 {
                        continue;
                    }
                    let wrapped = if lon + dlon > 180.0 {
                        lon + dlon - 360.0
                    } else {
                        lon + dlon
                    };
                    let other = point(lat + dlat, wrapped);
                    let expected = haversine(place, other);
                    let found = LocalProjection::covering(place, 20_000.0)
                        .map(|projection| squared_line_distance(&projection, &[other]).sqrt())
                        .fold(f64::INFINITY, f64::min);
                    let error = (found - expected).abs();
                    assert!(
                        error < 0.001 + expected * 2e-6,
                        "{lat} {lon}: {found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_bound_of_a_box_is_below_all_distances_to_lines_in_it() {
        let mut random = Random(5);
        for _ in 0..20_000 {
            let lat = random.fraction(178.0) - 89.0;
            let place = point(lat, random.fraction(360.0) - 180.0);
            let projection = LocalProjection::around(place);
            let size = 10f64.powf(-random.fraction(5.0));
            let mut near = |place: Point| {
                Point::new(
                    place.lat_e7 + ((random.fraction(2.0) - 1.0) * size * 1e7) as i32,
                    place.lon_e7 + ((random.fraction(2.0) - 1.0) * size * 1e7) as i32,
                )
            };
            let (one, other) = (near(place), near(place));
            let extent = Extent::of([&one, &other]).unwrap();
            let distance = squared_line_distance(&projection, &[one, other]);
            assert!(
                projection.squared_distance_bound(extent.edges().map(f64::from))
                    <= distance * (1.0 + 1e-12),
                "{place:?} {extent:?}"
            );
        }
    }
}
