//! The country of a feature.

use super::AdminAreas;
use crate::formats::features::{Geometry, label_point};
use crate::geometry::Point;

/// Returns the code of the country in which a geometry lies.
pub(super) fn country_of<'a>(geometry: &Geometry<'_>, areas: &'a AdminAreas) -> Option<&'a str> {
    areas.country_at(deciding_point(geometry))
}

/// Returns the point that decides in which country a geometry lies: the point itself, a point inside an area, or the
/// middle node of a line. If a line has several parts, the first part counts.
fn deciding_point(geometry: &Geometry<'_>) -> Point {
    match geometry {
        Geometry::LineString(points) => points[points.len() / 2],
        Geometry::MultiLineString(lines) => lines[0][lines[0].len() / 2],
        Geometry::Point(_) | Geometry::MultiPolygon(_) => label_point(geometry),
    }
}
