//! Lines in degrees.

use crate::geometry::Point;

/// Returns the points at places. A place is a pair of a longitude and a latitude in degrees.
pub fn points(places: &[(f64, f64)]) -> Vec<Point> {
    let places = places.iter();
    places
        .map(|(lon, lat)| Point::new((lat * 1e7) as i32, (lon * 1e7) as i32))
        .collect()
}

/// Returns the places of the points of each part of a line that was cut.
pub fn places_of_lines(parts: Option<Vec<Vec<Point>>>) -> Vec<Vec<(f64, f64)>> {
    let degrees = |point: &Point| (point.lon(), point.lat());
    let parts = parts.unwrap().into_iter();
    parts
        .map(|part| part.iter().map(degrees).collect())
        .collect()
}
