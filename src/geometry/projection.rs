//! Projections of maps.

use super::{Extent, Point};
use serde::Serialize;
use std::f64::consts::{FRAC_PI_4, PI};

/// The radius of the sphere of the Web Mercator projection, in metres.
const RADIUS_M: f64 = 6_378_137.0;
/// The greatest x and y of the square map of Web Mercator, in metres.
const EDGE_M: f64 = RADIUS_M * PI;

/// A coordinate reference system of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub enum Projection {
    /// Longitude and latitude in degrees: EPSG:4326.
    #[serde(rename = "4326")]
    Degrees,
    /// Web Mercator in metres: EPSG:3857. Its map ends at about 85.0511 degrees north and south.
    #[serde(rename = "3857")]
    WebMercator,
}

impl Projection {
    /// Returns the part of the world that a map in the projection shows.
    pub const fn bounds(self) -> Extent {
        let lat_e7 = match self {
            Self::Degrees => 900_000_000,
            Self::WebMercator => 850_511_288,
        };
        let lon_e7 = 1_800_000_000;
        Extent {
            low: Point::new(-lat_e7, -lon_e7),
            high: Point { lat_e7, lon_e7 },
        }
    }

    /// Returns the EPSG code of the coordinate reference system.
    pub const fn code(self) -> u32 {
        match self {
            Self::Degrees => 4326,
            Self::WebMercator => 3857,
        }
    }

    /// Returns the coordinates x and y of a point.
    pub fn apply(self, point: Point) -> [f64; 2] {
        match self {
            Self::Degrees => [point.lon(), point.lat()],
            Self::WebMercator => {
                let x = point.lon() / 180.0 * EDGE_M;
                let y = (FRAC_PI_4 + point.lat().to_radians() / 2.0).tan().ln() * RADIUS_M;
                [x, y.clamp(-EDGE_M, EDGE_M)]
            }
        }
    }

    /// Returns the point with the given coordinates; `None` if the map has no such point.
    pub fn undo(self, [x, y]: [f64; 2]) -> Option<Point> {
        let [lon, lat] = match self {
            Self::Degrees => [x, y],
            Self::WebMercator => {
                let lat = 2.0 * ((y / RADIUS_M).exp().atan() - FRAC_PI_4);
                [x / EDGE_M * 180.0, lat.to_degrees()]
            }
        };
        let is_on_map = lon.abs() <= 180.000_000_1 && lat.abs() <= 90.000_000_1;
        is_on_map.then(|| {
            Point::new(
                (lat * 1e7).round().clamp(-9e8, 9e8) as i32,
                (lon * 1e7).round().clamp(-1.8e9, 1.8e9) as i32,
            )
        })
    }

    /// Returns points to insert into a segment, which is straight in degrees. With these points, the projected line
    /// stays close to the image of the segment.
    pub fn between(self, from: Point, to: Point) -> impl Iterator<Item = Point> {
        /// The length of the pieces of a segment, in 1e-7 degree of latitude. At a latitude of 60 degrees, the straight
        /// line between the projected ends of a piece passes within 4 cm of the projected piece.
        const STEP_E7: i64 = 100_000;
        let wide = |value: i32| i64::from(value);
        let width = wide(to.lon_e7) - wide(from.lon_e7);
        let height = wide(to.lat_e7) - wide(from.lat_e7);
        let is_bent = self == Self::WebMercator && width != 0;
        let pieces = if is_bent {
            height.abs() / STEP_E7 + 1
        } else {
            1
        };
        let part = move |start: i32, len: i64, piece: i64| {
            (i64::from(start) + (len * piece + pieces / 2).div_euclid(pieces)) as i32
        };
        (1..pieces).map(move |piece| {
            Point::new(
                part(from.lat_e7, height, piece),
                part(from.lon_e7, width, piece),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_of_web_mercator_is_a_square() {
        let corner = Projection::WebMercator.bounds().high;
        let [x, y] = Projection::WebMercator.apply(corner);
        assert!((x - 20_037_508.342_789).abs() < 1e-6 && (y - x).abs() < 1e-6);
        let point = Point::new(-523_456_789, 134_567_891);
        for projection in [Projection::Degrees, Projection::WebMercator] {
            assert_eq!(projection.undo(projection.apply(point)), Some(point));
        }
        assert_eq!(Projection::Degrees.undo([181.0, 0.0]), None);
        assert_eq!(Projection::Degrees.undo([f64::NAN, 0.0]), None);
    }

    #[test]
    fn inserted_points_keep_long_segments_straight_in_degrees() {
        let at = |lon_e7, lat_e7| Point { lat_e7, lon_e7 };
        let (from, to) = (at(0, 600_000_000), at(10_000_000, 610_000_000));
        let between = |to| {
            Projection::WebMercator
                .between(from, to)
                .collect::<Vec<_>>()
        };
        assert_eq!(between(to).len(), 100);
        assert!(
            between(to)
                .iter()
                .all(|point| point.lat_e7 - 600_000_000 - point.lon_e7 <= 1)
        );
        assert!(between(at(0, 610_000_000)).is_empty());
        assert_eq!(Projection::Degrees.between(from, to).count(), 0);
    }
}
