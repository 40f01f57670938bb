//! Areas across the antimeridian, which are assembled on a map that is turned by half of the earth.

use super::AreaPolygon;
use crate::geometry::{Rings, cut_turned};

/// Cuts polygons of turned points at the antimeridian. Returns their parts, whose points are not turned.
pub(crate) fn cut_turned_polygons(polygons: &[AreaPolygon]) -> Vec<AreaPolygon> {
    let parts = polygons.iter().flat_map(|polygon| {
        let rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
        cut_turned(rings)
    });
    parts.filter_map(polygon_of).collect()
}

/// Makes a polygon of its outer ring and its holes.
pub(crate) fn polygon_of(rings: Rings) -> Option<AreaPolygon> {
    let mut rings = rings.into_iter();
    let outer = rings.next()?;
    Some(AreaPolygon {
        outer,
        holes: rings.collect(),
    })
}
