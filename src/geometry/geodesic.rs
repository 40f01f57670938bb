//! Lengths and areas on the ellipsoid of WGS 84, in metres and square metres.
//!
//! Most lines and rings of OSM are small, and have short edges. Their edges are measured with a series around the
//! middle latitude of the whole line or ring. In other lines and rings, long edges are divided along their geodesics,
//! and each short edge or part of an edge is measured at its own middle latitude. The relative error is at most 1e-7,
//! except within a few kilometres of a pole.

use super::{Extent, Point};
use crate::osm::DECIMICRO_PER_DEGREE;
use geographiclib_rs::{DirectGeodesic, Geodesic, InverseGeodesic};
use std::f64::consts::PI;
use std::sync::OnceLock;

/// The equatorial radius in metres.
const RADIUS: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
/// The square of the eccentricity.
const E2: f64 = FLATTENING * (2.0 - FLATTENING);
/// 1e-7 degree in radians.
const UNIT: f64 = PI / 180.0 / DECIMICRO_PER_DEGREE as f64;
/// The length in metres above which an edge is divided along its geodesic.
const LONG: f64 = 3_000.0;
/// The maximum difference, in radians, between a [`ReferenceLatitude`] and the latitudes that it approximates.
const NEAR: f64 = 1e-3;

/// A latitude around which edges are measured, with its sine and its cosine.
#[derive(Clone, Copy)]
struct ReferenceLatitude {
    /// The latitude in radians.
    lat: f64,
    sin: f64,
    cos: f64,
}

impl ReferenceLatitude {
    fn at(lat: f64) -> Self {
        let (sin, cos) = lat.sin_cos();
        Self { lat, sin, cos }
    }

    /// Returns the sine and the cosine of `lat`, which must be near this latitude.
    fn sin_cos(&self, lat: f64) -> (f64, f64) {
        let by = lat - self.lat;
        let (half, sixth) = (by * by / 2.0, by * by * by / 6.0);
        (
            self.sin * (1.0 - half) + self.cos * (by - sixth),
            self.cos * (1.0 - half) - self.sin * (by - sixth),
        )
    }

    /// Replaces this latitude with `lat` if the two differ by more than [`NEAR`].
    fn move_to(&mut self, lat: f64) {
        if (lat - self.lat).abs() > NEAR {
            *self = Self::at(lat);
        }
    }
}

/// An edge, in radians.
#[derive(Clone, Copy)]
struct RadianEdge {
    from_lat: f64,
    to_lat: f64,
    /// The longitude of the end minus that of the start.
    width: f64,
}

impl RadianEdge {
    fn of(from: Point, to: Point) -> Self {
        Self {
            from_lat: f64::from(from.lat_e7) * UNIT,
            to_lat: f64::from(to.lat_e7) * UNIT,
            width: (f64::from(to.lon_e7) - f64::from(from.lon_e7)) * UNIT,
        }
    }

    /// Returns the length of a short edge in metres.
    fn length(&self, reference: &mut ReferenceLatitude) -> f64 {
        let middle = (self.from_lat + self.to_lat) / 2.0;
        reference.move_to(middle);
        let (sin, cos) = reference.sin_cos(middle);
        // `along` and `across` are the radii of curvature along the meridian and across it.
        let shrink = 1.0 - E2 * sin * sin;
        let across = RADIUS / shrink.sqrt();
        let along = across * (1.0 - E2) / shrink;
        let height = self.to_lat - self.from_lat;
        // `square` is the square of the chord, by the haversine formula with two terms of the series of each squared
        // sine. The last line adds the difference between arc and chord.
        let halved = |angle: f64| angle * angle * (1.0 - angle * angle / 12.0);
        let parallel = across * across * (cos * cos - height * height / 4.0);
        let square = along * along * halved(height) + parallel * halved(self.width);
        square.sqrt() * (1.0 + square / (24.0 * RADIUS * RADIUS))
    }

    /// Returns the area in square metres between a short edge and the equator. It is positive if the edge leads
    /// eastwards in the northern hemisphere.
    fn area_to_equator_m2(&self, reference: &mut ReferenceLatitude) -> f64 {
        let middle = (self.from_lat + self.to_lat) / 2.0;
        reference.move_to(middle);
        let height = self.to_lat - self.from_lat;
        let (sin, cos) = reference.sin_cos(middle);
        let shrink = 1.0 - E2 * sin * sin;
        let squares = RADIUS * RADIUS * (1.0 - E2) / (shrink * shrink);
        // `curved` is the mean area below the parallels of all points of the edge, minus the area below the middle
        // parallel. It comes from the second derivative of the area with respect to the latitude.
        let curved =
            -squares * sin * (1.0 - 4.0 * E2 * cos * cos / shrink) * height * height / 24.0;
        // Corrects for the geodesic, which is bent away from the equator in the plane of longitude and latitude.
        let curvature = cos * cos * self.width * self.width + 2.0 * height * height;
        let bent = squares * sin * curvature / 12.0;
        self.width * (area_to_parallel_per_radian(sin) + curved + bent)
    }
}

/// Returns the area in square metres between the equator and a parallel, for each radian of longitude. `sin` is the
/// sine of the latitude of the parallel.
fn area_to_parallel_per_radian(sin: f64) -> f64 {
    let x = E2 * sin * sin;
    // `sin * series` is the integral of 1 / (1 - e² s²)² over s, from 0 to `sin`.
    let series = 1.0
        + x * (2.0 / 3.0
            + x * (3.0 / 5.0
                + x * (4.0 / 7.0 + x * (5.0 / 9.0 + x * (6.0 / 11.0 + x * 7.0 / 13.0)))));
    RADIUS * RADIUS * (1.0 - E2) * sin * series
}

fn geodesic() -> &'static Geodesic {
    static WGS84: OnceLock<Geodesic> = OnceLock::new();
    WGS84.get_or_init(Geodesic::wgs84)
}

/// Calls `take` with an edge or, if the edge is long, with each of its parts.
fn for_each_short_edge(
    from: Point,
    to: Point,
    reference: &mut ReferenceLatitude,
    mut take: impl FnMut(RadianEdge, &mut ReferenceLatitude),
) {
    let edge = RadianEdge::of(from, to);
    let rough = RADIUS * (edge.to_lat - edge.from_lat).abs().max(edge.width.abs());
    if rough <= LONG {
        return take(edge, reference);
    }
    let (lat, lon) = (from.lat(), from.lon());
    let (end_lat, end_lon) = (to.lat(), to.lon());
    let (length, azimuth, _, _): (f64, f64, f64, f64) =
        geodesic().inverse(lat, lon, end_lat, end_lon);
    let parts = (length / LONG).ceil().max(1.0);
    let (mut before_lat, mut before_lon) = (lat, lon);
    for part in 1..=parts as u64 {
        let (next_lat, next_lon) = if part as f64 >= parts {
            (end_lat, end_lon)
        } else {
            geodesic().direct(lat, lon, azimuth, length * part as f64 / parts)
        };
        let mut width = next_lon - before_lon;
        // If the part crosses the antimeridian, the difference of its longitudes is off by 360 degrees. The next line
        // corrects this.
        width -= 360.0 * (width / 360.0).round();
        take(
            RadianEdge {
                from_lat: before_lat.to_radians(),
                to_lat: next_lat.to_radians(),
                width: width.to_radians(),
            },
            reference,
        );
        (before_lat, before_lon) = (next_lat, next_lon);
    }
}

/// A line or ring in which all edges are short and all latitudes are near the middle one.
struct Small {
    /// The middle latitude of the line or ring, in 1e-7 degree.
    middle_e7: i32,
}

impl Small {
    /// The maximum difference between the coordinates of the ends of a short edge, in 1e-7 degree. It is 333 metres
    /// along a meridian.
    const SHORT: u32 = 30_000;

    /// Returns the middle latitude of a path; `None` if an edge is not short or a latitude is not near the middle one.
    /// `edges` are the pairs of consecutive points.
    fn of<'p>(
        points: &[Point],
        mut edges: impl Iterator<Item = (&'p Point, &'p Point)>,
    ) -> Option<Self> {
        let extent = Extent::of(points)?;
        let (low, high) = (extent.low.lat_e7, extent.high.lat_e7);
        let is_near = f64::from(high) - f64::from(low) <= 2.0 * NEAR / UNIT;
        let is_short = |(from, to): (&Point, &Point)| {
            from.lat_e7.abs_diff(to.lat_e7) <= Self::SHORT
                && from.lon_e7.abs_diff(to.lon_e7) <= Self::SHORT
        };
        (is_near && edges.all(is_short)).then(|| Self {
            middle_e7: low + (high - low) / 2,
        })
    }

    /// Returns the sine and the cosine of the middle latitude, and 1 - e² sin².
    fn middle_terms(&self) -> (f64, f64, f64) {
        let (sin, cos) = (f64::from(self.middle_e7) * UNIT).sin_cos();
        (sin, cos, 1.0 - E2 * sin * sin)
    }

    /// Returns the latitude of the middle of an edge, relative to the middle latitude, and the height and the width of
    /// the edge, in radians.
    fn measures(&self, from: &Point, to: &Point) -> (f64, f64, f64) {
        let by = f64::from(from.lat_e7 - self.middle_e7) + f64::from(to.lat_e7 - self.middle_e7);
        (
            by * (UNIT / 2.0),
            f64::from(to.lat_e7 - from.lat_e7) * UNIT,
            f64::from(to.lon_e7 - from.lon_e7) * UNIT,
        )
    }

    fn length<'p>(&self, edges: impl Iterator<Item = (&'p Point, &'p Point)>) -> f64 {
        let (sin, cos, shrink) = self.middle_terms();
        let square = RADIUS * RADIUS;
        // `east` and `north` are the squares of the lengths of one radian of longitude and of latitude. `east_1`,
        // `east_2` and `north_1` are the further coefficients of `east` and `north` as series in the difference from
        // the middle latitude.
        let east = square * cos * cos / shrink;
        let bend = -2.0 * square * (1.0 - E2) / (shrink * shrink);
        let (east_1, east_2) = (bend * sin * cos, bend * (cos * cos - sin * sin) / 2.0);
        let north = square * (1.0 - E2) * (1.0 - E2) / (shrink * shrink * shrink);
        let north_1 = north * 6.0 * E2 * sin * cos / shrink;
        let length = |(from, to): (&Point, &Point)| {
            let (by, height, width) = self.measures(from, to);
            let (east, north) = (east + by * (east_1 + by * east_2), north + by * north_1);
            (east * width * width + north * height * height).sqrt()
        };
        edges.map(length).sum()
    }

    fn area<'p>(&self, edges: impl Iterator<Item = (&'p Point, &'p Point)>) -> f64 {
        let (sin, cos, shrink) = self.middle_terms();
        let squares = RADIUS * RADIUS * (1.0 - E2) / (shrink * shrink);
        // The coefficients of the area between the middle parallel and another one, for each radian of longitude, as a
        // series in the difference of their latitudes.
        let (below_1, below_3) = (squares * cos, -squares * cos / 6.0);
        let below_2 = -squares * sin * (1.0 - 4.0 * E2 * cos * cos / shrink) / 2.0;
        let bend = squares * sin / 12.0;
        let area = |(from, to): (&Point, &Point)| {
            let (by, height, width) = self.measures(from, to);
            let straight =
                by * (below_1 + by * (below_2 + by * below_3)) + below_2 * height * height / 12.0;
            let bent = bend * (cos * cos * width * width + 2.0 * height * height);
            width * (straight + bent)
        };
        -edges.map(area).sum::<f64>()
    }
}

/// Returns the length of a line in metres.
pub(crate) fn length_m(points: &[Point]) -> f64 {
    let edges = || points.iter().zip(points.iter().skip(1));
    if let Some(small) = Small::of(points, edges()) {
        return small.length(edges());
    }
    let mut reference = ReferenceLatitude::at(0.0);
    let mut sum = 0.0;
    for (from, to) in edges() {
        for_each_short_edge(*from, *to, &mut reference, |edge, reference| {
            sum += edge.length(reference);
        });
    }
    sum
}

/// Returns the area within a ring in square metres. It is positive if the ring is counter-clockwise. The ring does not
/// repeat its first point.
pub(crate) fn ring_area_m2(ring: &[Point]) -> f64 {
    let edges = || ring.iter().zip(ring.iter().skip(1).chain(ring.first()));
    if let Some(small) = Small::of(ring, edges()) {
        return small.area(edges());
    }
    let mut reference = ReferenceLatitude::at(0.0);
    let (mut sum, mut turn) = (0.0, 0.0);
    for (from, to) in edges() {
        for_each_short_edge(*from, *to, &mut reference, |edge, reference| {
            sum -= edge.area_to_equator_m2(reference);
            turn += edge.width;
        });
    }
    // The edges of a ring around a pole lead once around the axis of the earth. For such a ring, `sum` is the area
    // between the ring and the equator. The area between the ring and the pole is the rest of the hemisphere.
    if turn.abs() > PI {
        let half = 2.0 * PI * area_to_parallel_per_radian(1.0);
        sum += if sum < 0.0 { half } else { -half };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use geographiclib_rs::{PolygonArea, Winding};

    fn point(lat: f64, lon: f64) -> Point {
        Point::new((lat * 1e7).round() as i32, (lon * 1e7).round() as i32)
    }

    /// Returns a ring around a place, with corners that are about `radius` degrees away.
    fn ring(random: &mut Random, lat: f64, lon: f64, radius: f64) -> Vec<Point> {
        let count = 3 + random.below(9u64);
        let corner = |number: u64, random: &mut Random| {
            let angle = number as f64 / count as f64 * 2.0 * PI;
            let distance = radius * (0.5 + random.below(500u64) as f64 / 1000.0);
            point(
                lat + distance * angle.sin(),
                lon + distance * angle.cos() / lat.to_radians().cos(),
            )
        };
        (0..count).map(|number| corner(number, random)).collect()
    }

    #[test]
    fn a_ring_around_a_pole_contains_the_pole() {
        let ring: Vec<Point> = (0..360)
            .map(|lon| point(-70.0, f64::from(lon) - 180.0))
            .collect();
        let cap = 2.0
            * PI
            * (area_to_parallel_per_radian(1.0)
                - area_to_parallel_per_radian(70f64.to_radians().sin()));
        assert!((ring_area_m2(&ring).abs() - cap).abs() < cap * 1e-3);
    }

    /// The areas that `geographiclib_rs` computes are exact to about a square centimetre.
    #[test]
    fn lengths_and_areas_match_geographiclib() {
        let mut random = Random(7);
        for round in 0..2000 {
            let radius = [0.0001, 0.001, 0.03, 0.4, 7.0][round % 5];
            let lat = random.below(150u64) as f64 - 75.0;
            let lon = random.below(320u64) as f64 - 160.0;
            let ring = ring(&mut random, lat, lon, radius);
            let mut exact = PolygonArea::new(geodesic(), Winding::CounterClockwise);
            let mut length = 0.0;
            for point in &ring {
                exact.add_point(point.lat(), point.lon());
            }
            for pair in ring.windows(2) {
                let [from, to] = [pair[0], pair[1]];
                let part: f64 = geodesic().inverse(from.lat(), from.lon(), to.lat(), to.lon());
                length += part;
            }
            let (_, area, _) = exact.compute(true);
            let found = ring_area_m2(&ring);
            assert!(
                (found - area).abs() <= 1e-3 + area.abs() * 1e-7,
                "{radius} {lat}: {found} {area}"
            );
            let found = length_m(&ring);
            assert!(
                (found - length).abs() <= 1e-6 + length * 3e-8,
                "{radius} {lat}: {found} {length}"
            );
        }
    }
}
