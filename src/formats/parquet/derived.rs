//! Columns that are computed from the geometry or the tags of a feature.

use super::AdminAreas;
use crate::formats::features::{Geometry, label_point};
use crate::geometry::Point;
use crate::osm::is_language;

/// The columns that are computed from the geometry or the tags of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DerivedColumns {
    /// `area_m2`: the area of a polygon on the ellipsoid of WGS 84, in square metres. Null for points and lines.
    pub area: bool,
    /// `length_m`: the length of a line on the ellipsoid, in metres. Null for points and areas.
    pub length: bool,
    /// `centroid_lon` and `centroid_lat`: the centroid in the plane of longitude and latitude, in degrees. Parts that
    /// meet at the antimeridian count as one.
    pub centroid: bool,
    /// `country`: the code of the country that contains the feature. For an area, a point inside it decides, and for a
    /// line, its middle node. The boundaries of countries come from the file. If a boundary is incomplete, the code is
    /// null.
    pub country: bool,
    /// `names`: a map from the codes of languages to the values of tags such as `name:de`.
    pub names: bool,
    /// `h3_0` to `h3_15`: the cells of H3 that contain the centre of the box around the geometry, as text such as
    /// `85283083fffffff`. Bit N is set for the column with the cells of resolution N.
    pub h3: u16,
}

/// Returns the code of the language in a key such as `name:de` or `name:zh-Hant`. Returns `None` for other keys, and
/// for keys such as `name:left` and `name:etymology`.
pub(super) fn language(key: &[u8]) -> Option<&[u8]> {
    key.strip_prefix(b"name:").filter(|tag| is_language(tag))
}

/// Returns the code of the country in which a geometry lies.
pub(super) fn country_of<'a>(geometry: &Geometry<'_>, areas: &'a AdminAreas) -> Option<&'a str> {
    areas.country_at(place_in(geometry))
}

/// Returns the point that decides in which country a geometry lies: the point itself, a point inside an area, or the
/// middle node of a line. If a line has several parts, the first part counts.
fn place_in(geometry: &Geometry<'_>) -> Point {
    match geometry {
        Geometry::LineString(points) => points[points.len() / 2],
        Geometry::MultiLineString(lines) => lines[0][lines[0].len() / 2],
        Geometry::Point(_) | Geometry::MultiPolygon(_) => label_point(geometry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_codes_and_not_other_suffixes() {
        for (key, expected) in [
            ("name:de", Some("de")),
            ("name:zh-Hant", Some("zh-Hant")),
            ("name", None),
            ("name:", None),
            ("name:left", None),
            ("alt_name:de", None),
        ] {
            let found = language(key.as_bytes()).map(|code| std::str::from_utf8(code).unwrap());
            assert_eq!(found, expected, "{key}");
        }
    }
}
