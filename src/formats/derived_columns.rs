//! Columns that are computed from the geometry or the tags of a feature.

use crate::geometry::Point;
use crate::osm::is_language_tag;

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

/// The names of the columns of H3 cells, by resolution.
pub(super) const H3_NAMES: [&str; 16] = [
    "h3_0", "h3_1", "h3_2", "h3_3", "h3_4", "h3_5", "h3_6", "h3_7", "h3_8", "h3_9", "h3_10",
    "h3_11", "h3_12", "h3_13", "h3_14", "h3_15",
];

impl DerivedColumns {
    /// No columns.
    pub const NONE: Self = Self {
        area: false,
        length: false,
        centroid: false,
        country: false,
        names: false,
        h3: 0,
    };

    /// Returns the resolutions of the columns of H3 cells, in ascending order.
    pub(super) fn h3_resolutions(self) -> impl Iterator<Item = u8> {
        (0..16).filter(move |resolution| self.h3 >> resolution & 1 == 1)
    }

    /// Returns the names of the columns.
    pub fn names(self) -> Vec<&'static str> {
        let names = [
            (self.names, &["names"][..]),
            (self.area, &["area_m2"]),
            (self.length, &["length_m"]),
            (self.centroid, &["centroid_lon", "centroid_lat"]),
            (self.country, &["country"]),
        ];
        let wanted = names.into_iter().filter(|(is_wanted, _)| *is_wanted);
        let cells = self
            .h3_resolutions()
            .map(|resolution| H3_NAMES[usize::from(resolution)]);
        wanted
            .flat_map(|(_, names)| names)
            .copied()
            .chain(cells)
            .collect()
    }
}

/// Returns the code of the language in a key such as `name:de` or `name:zh-Hant`. Returns `None` for other keys, and
/// for keys such as `name:left` and `name:etymology`.
pub(super) fn language_of_key(key: &[u8]) -> Option<&[u8]> {
    key.strip_prefix(b"name:")
        .filter(|tag| is_language_tag(tag))
}

/// Returns the H3 cell that contains a point; `None` if the resolution is greater than 15.
pub(super) fn h3_cell(resolution: u8, point: Point) -> Option<h3o::CellIndex> {
    let place = h3o::LatLng::new(point.lat(), point.lon()).ok()?;
    Some(place.to_cell(h3o::Resolution::try_from(resolution).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_name_keys_with_a_language_code_have_a_language() {
        for (key, expected) in [
            ("name:de", Some("de")),
            ("name:zh-Hant", Some("zh-Hant")),
            ("name", None),
            ("name:", None),
            ("name:left", None),
            ("alt_name:de", None),
        ] {
            let found =
                language_of_key(key.as_bytes()).map(|code| std::str::from_utf8(code).unwrap());
            assert_eq!(found, expected, "{key}");
        }
    }
}
