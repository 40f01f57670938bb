//! A point within an area.

use super::AreaPolygon;
use crate::geometry::{Edge, Extent, HalfUnitPoint, Point};

/// Returns a point inside the first of `polygons`, at some distance from its edges. The edges of the polygon cut the
/// parallel through the middle of its bounding box into segments. The point is the middle of the longest segment inside
/// the polygon. Returns `None` if there is no polygon.
pub(crate) fn interior_point(polygons: &[AreaPolygon]) -> Option<Point> {
    let polygon = polygons.first()?;
    let extent = Extent::of(&polygon.outer)?;
    let lat_e7 = extent.centre().lat_e7;
    let rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
    let mut crossings: Vec<f64> = rings
        .flat_map(|ring| crossing_longitudes(ring, lat_e7))
        .collect();
    crossings.sort_unstable_by(f64::total_cmp);
    let spans = crossings.chunks_exact(2).map(|span| (span[0], span[1]));
    let longest = spans.max_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)));
    let lon = longest.map(|(west, east)| (west + east) / 2.0);
    Some(Point::new(
        lat_e7,
        lon.map_or(polygon.outer[0].lon_e7, |lon| lon.round() as i32),
    ))
}

/// Returns the longitudes, in 1e-7 degree, at which the edges of a ring cross a parallel.
fn crossing_longitudes(ring: &[Point], lat_e7: i32) -> impl Iterator<Item = f64> {
    let next = ring.iter().cycle().skip(1);
    let edges = ring
        .iter()
        .zip(next)
        .map(|(from, to)| Edge::new(*from, *to));
    let y = HalfUnitPoint::of(Point { lat_e7, lon_e7: 0 }).y;
    let crossing = edges.filter(move |edge| edge.is_crossed_at(y));
    crossing.map(move |edge| {
        let up = f64::from(lat_e7) - f64::from(edge.from.lat_e7);
        f64::from(edge.from.lon_e7) + up * edge.width() as f64 / edge.height() as f64
    })
}
