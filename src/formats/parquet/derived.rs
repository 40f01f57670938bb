//! Columns that are computed from the geometry or the tags of a feature.

use super::AdminAreas;
use super::columns::{GroupEncoder, Values};
use super::partition::h3_cell;
use super::schema::{optional, text_map};
use crate::error::Result;
use crate::formats::features::{Geometry, centroid, label_point};
use crate::geometry::Point;
use crate::osm::is_language;
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::schema::types::TypePtr;

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
const H3_NAMES: [&str; 16] = [
    "h3_0", "h3_1", "h3_2", "h3_3", "h3_4", "h3_5", "h3_6", "h3_7", "h3_8", "h3_9", "h3_10",
    "h3_11", "h3_12", "h3_13", "h3_14", "h3_15",
];

impl DerivedColumns {
    /// Returns the columns of the schema.
    pub(super) fn fields(self) -> Result<Vec<TypePtr>> {
        let mut fields = Vec::new();
        if self.names {
            fields.push(text_map("names")?);
        }
        for (is_wanted, names) in [
            (self.area, &["area_m2"][..]),
            (self.length, &["length_m"]),
            (self.centroid, &["centroid_lon", "centroid_lat"]),
        ] {
            for name in names.iter().filter(|_| is_wanted) {
                fields.push(optional(name, PhysicalType::DOUBLE, None)?);
            }
        }
        let country = self.country.then_some("country");
        let cells = self
            .h3_resolutions()
            .map(|resolution| H3_NAMES[usize::from(resolution)]);
        for name in country.into_iter().chain(cells) {
            let text = Some(LogicalType::String);
            fields.push(optional(name, PhysicalType::BYTE_ARRAY, text)?);
        }
        Ok(fields)
    }

    /// Returns the resolutions of the columns of H3 cells, in ascending order.
    fn h3_resolutions(self) -> impl Iterator<Item = u8> {
        (0..16).filter(move |resolution| self.h3 >> resolution & 1 == 1)
    }

    /// The names of the columns.
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

/// The values of derived columns for some rows.
#[derive(Default)]
pub(super) struct DerivedValues {
    wanted: DerivedColumns,
    languages: Values<ByteArray>,
    names: Values<ByteArray>,
    /// The number of names that belong to complete rows. The names after them belong to the row that is being read.
    names_before: usize,
    areas: Values<f64>,
    lengths: Values<f64>,
    /// The longitudes and the latitudes of the centroids.
    centroids: [Values<f64>; 2],
    countries: Values<ByteArray>,
    /// The H3 cells, for each resolution.
    cells: Vec<Values<ByteArray>>,
}

impl DerivedValues {
    pub(super) fn new(wanted: DerivedColumns) -> Self {
        Self {
            wanted,
            cells: wanted.h3_resolutions().map(|_| Values::default()).collect(),
            ..Self::default()
        }
    }

    pub(super) fn clear(&mut self) {
        self.languages.clear();
        self.names.clear();
        self.names_before = 0;
        self.countries.clear();
        self.cells.iter_mut().for_each(Values::clear);
        let [lon, lat] = &mut self.centroids;
        for values in [&mut self.areas, &mut self.lengths, lon, lat] {
            values.clear();
        }
    }

    /// Adds a tag of the next row. `text` must convert a slice of the row to a value.
    #[inline]
    pub(super) fn add_tag(&mut self, key: &[u8], value: &[u8], text: impl Fn(&[u8]) -> ByteArray) {
        if self.wanted.names
            && let Some(language) = language(key)
        {
            self.languages.values.push(text(language));
            self.names.values.push(text(value));
        }
    }

    /// Adds the values of a row. The tags of the row must have been added before with `add_tag`.
    pub(super) fn add(&mut self, geometry: &Geometry<'_>, areas: Option<&AdminAreas>) {
        if self.wanted.names {
            let count = self.names.values.len() - self.names_before;
            self.languages.end_list(count);
            self.names.end_list(count);
            self.names_before = self.names.values.len();
        }
        if self.wanted.area {
            self.areas.push_optional(geometry.area_m2());
        }
        if self.wanted.length {
            self.lengths.push_optional(geometry.length_m());
        }
        if self.wanted.centroid {
            let centroid = centroid(geometry);
            for (values, edge) in self.centroids.iter_mut().zip(centroid) {
                values.push_optional(Some(edge));
            }
        }
        if self.wanted.country {
            let country = areas.and_then(|areas| areas.country_at(place_in(geometry)));
            self.countries.push_optional(country.map(ByteArray::from));
        }
        if !self.cells.is_empty() {
            let centre = geometry.extent().map(|extent| extent.centre());
            for (cells, resolution) in self.cells.iter_mut().zip(self.wanted.h3_resolutions()) {
                let cell = centre.and_then(|centre| h3_cell(resolution, centre));
                cells.push_optional(cell.map(|cell| ByteArray::from(cell.to_string().as_str())));
            }
        }
    }

    /// Encodes the values, in the order of [`DerivedColumns::fields`].
    pub(super) fn put(&self, columns: &mut GroupEncoder<'_>) -> Result<()> {
        if self.wanted.names {
            columns.bytes(&self.languages)?;
            columns.bytes(&self.names)?;
        }
        if self.wanted.area {
            columns.double(&self.areas)?;
        }
        if self.wanted.length {
            columns.double(&self.lengths)?;
        }
        if self.wanted.centroid {
            self.centroids
                .iter()
                .try_for_each(|values| columns.double(values))?;
        }
        if self.wanted.country {
            columns.bytes(&self.countries)?;
        }
        self.cells
            .iter()
            .try_for_each(|cells| columns.bytes(cells))?;
        Ok(())
    }
}

/// Returns the code of the language in a key such as `name:de` or `name:zh-Hant`. Returns `None` for other keys, and
/// for keys such as `name:left` and `name:etymology`.
fn language(key: &[u8]) -> Option<&[u8]> {
    key.strip_prefix(b"name:").filter(|tag| is_language(tag))
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
