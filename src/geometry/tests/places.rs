//! Conversions between points and pairs of degrees.

use crate::geometry::Point;

/// Returns the points at `places`, which are pairs of a longitude and a latitude in degrees.
pub fn points(places: &[(f64, f64)]) -> Vec<Point> {
    let places = places.iter();
    places
        .map(|(lon, lat)| Point::new((lat * 1e7) as i32, (lon * 1e7) as i32))
        .collect()
}

/// Returns the longitude and latitude in degrees of each point, for each part of a line that was cut.
pub fn places_of_lines(parts: Option<Vec<Vec<Point>>>) -> Vec<Vec<(f64, f64)>> {
    let degrees = |point: &Point| (point.lon(), point.lat());
    let parts = parts.unwrap().into_iter();
    parts
        .map(|part| part.iter().map(degrees).collect())
        .collect()
}
