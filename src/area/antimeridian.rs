//! Areas that cross the antimeridian. They are assembled on a map whose longitudes are turned by 180 degrees.

use super::AreaPolygon;
use crate::geometry::{Rings, cut_turned};

/// Cuts polygons at the antimeridian. The points of `polygons` have longitudes that are turned by 180 degrees. The
/// points of the returned parts have their true longitudes.
pub(crate) fn cut_turned_polygons(polygons: &[AreaPolygon]) -> Vec<AreaPolygon> {
    let parts = polygons.iter().flat_map(|polygon| {
        let rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
        cut_turned(rings)
    });
    parts.filter_map(polygon_of).collect()
}

/// Makes a polygon from rings. The first ring is the outer ring, and all further rings are holes. Returns `None` if
/// there are no rings.
pub(crate) fn polygon_of(rings: Rings) -> Option<AreaPolygon> {
    let mut rings = rings.into_iter();
    let outer = rings.next()?;
    Some(AreaPolygon {
        outer,
        holes: rings.collect(),
    })
}
