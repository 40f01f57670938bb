//! Columns that are computed from the geometry or the tags of a feature.

use super::AdminAreas;
use super::columns::{GroupEncoder, Values};
use super::partition::h3_cell;
use super::schema::{optional, text_map};
use crate::area::{AreaPolygon, interior_point};
use crate::error::Result;
use crate::formats::features::Geometry;
use crate::geometry::{Extent, MapTurn, Point};
use crate::osm::{DECIMICRO_PER_DEGREE, is_language};
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

/// The sum of the weights of points, and the weighted sums of their coordinates. Coordinates are in 1e-7 degree,
/// relative to an origin.
#[derive(Default)]
struct Weighted {
    weight: f64,
    lon: f64,
    lat: f64,
}

impl Weighted {
    fn add(&mut self, weight: f64, lon: f64, lat: f64) {
        self.weight += weight;
        self.lon += weight * lon;
        self.lat += weight * lat;
    }
}

/// Returns the longitude and the latitude of the centroid in degrees. The centroid of a line is weighted by length, and
/// the centroid of polygons by area. If parts of the geometry meet at the antimeridian, where they were cut, the
/// centroid is that of the geometry before the cut.
fn centroid(geometry: &Geometry<'_>) -> [f64; 2] {
    let turn = turn_of(geometry);
    let plane = Plane {
        origin: first_point(geometry),
        turn,
    };
    let mut sums = Weighted::default();
    match geometry {
        Geometry::Point(_) => {}
        Geometry::LineString(points) => add_line(&mut sums, points, plane),
        Geometry::MultiLineString(lines) => {
            let lines = lines.iter();
            lines.for_each(|line| add_line(&mut sums, line, plane));
        }
        Geometry::MultiPolygon(polygons) => {
            let rings = polygons.iter().flat_map(AreaPolygon::rings);
            rings.for_each(|ring| add_ring(&mut sums, ring, plane));
        }
    }
    let (lon, lat) = if sums.weight == 0.0 {
        (0.0, 0.0)
    } else {
        (sums.lon / sums.weight, sums.lat / sums.weight)
    };
    let origin = plane.on_map(plane.origin);
    let (lon, lat) = (
        f64::from(origin.lon_e7) + lon,
        f64::from(origin.lat_e7) + lat,
    );
    let lon = lon + turn.map_or(0.0, |turn| turn.back(lon));
    [lon, lat].map(|e7| e7 / DECIMICRO_PER_DEGREE as f64)
}

/// Returns the turn of the map after which the parts of a geometry lie side by side that were cut at the antimeridian;
/// `None` if there are none.
fn turn_of(geometry: &Geometry<'_>) -> Option<MapTurn> {
    if !geometry.extent()?.is_wide() {
        return None;
    }
    match geometry {
        Geometry::Point(_) | Geometry::LineString(_) => None,
        Geometry::MultiLineString(lines) => {
            let extents = lines.iter().map(|line| Extent::of(line.iter()));
            MapTurn::joining(extents.flatten())
        }
        Geometry::MultiPolygon(polygons) => {
            let extents = polygons.iter().map(|polygon| Extent::of(&polygon.outer));
            MapTurn::joining(extents.flatten())
        }
    }
}

fn first_point(geometry: &Geometry<'_>) -> Point {
    match geometry {
        Geometry::Point(point) => *point,
        Geometry::LineString(points) => points[0],
        Geometry::MultiLineString(lines) => lines[0][0],
        Geometry::MultiPolygon(polygons) => polygons[0].outer[0],
    }
}

/// The plane in which a centroid is computed.
#[derive(Clone, Copy)]
struct Plane {
    /// The point of the map to which coordinates are relative.
    origin: Point,
    /// The turn of the map.
    turn: Option<MapTurn>,
}

impl Plane {
    /// Returns where a point is on the map.
    fn on_map(self, point: Point) -> Point {
        self.turn.map_or(point, |turn| turn.apply(point))
    }

    /// Returns the longitude and the latitude of a point relative to the origin.
    fn relative(self, point: Point) -> (f64, f64) {
        let (point, origin) = (self.on_map(point), self.on_map(self.origin));
        (
            f64::from(point.lon_e7) - f64::from(origin.lon_e7),
            f64::from(point.lat_e7) - f64::from(origin.lat_e7),
        )
    }
}

/// Returns the point that decides in which country a geometry lies: the point itself, a point inside an area, or the
/// middle node of a line. If a line has several parts, the first part counts.
fn place_in(geometry: &Geometry<'_>) -> Point {
    match geometry {
        Geometry::LineString(points) => return points[points.len() / 2],
        Geometry::MultiLineString(lines) => return lines[0][lines[0].len() / 2],
        Geometry::MultiPolygon(polygons) => {
            if let Some(point) = interior_point(polygons) {
                return point;
            }
        }
        Geometry::Point(_) => {}
    }
    let [lon, lat] = centroid(geometry);
    let e7 = |degrees: f64| (degrees * DECIMICRO_PER_DEGREE as f64).round() as i32;
    Point {
        lat_e7: e7(lat),
        lon_e7: e7(lon),
    }
}

/// Adds the middles of the edges of a line to `sums`, weighted by length.
fn add_line(sums: &mut Weighted, points: &[Point], plane: Plane) {
    for pair in points.windows(2) {
        let ((x, y), (to_x, to_y)) = (plane.relative(pair[0]), plane.relative(pair[1]));
        let length = (to_x - x).hypot(to_y - y);
        sums.add(length, (x + to_x) / 2.0, (y + to_y) / 2.0);
    }
}

/// For each edge of a ring, adds the centroid of the triangle between the edge and the origin to `sums`, weighted by
/// the area of the triangle. Holes run in the opposite direction, so the total weight of a hole is negative.
fn add_ring(sums: &mut Weighted, ring: &[Point], plane: Plane) {
    let next = ring.iter().cycle().skip(1);
    for (from, to) in ring.iter().zip(next) {
        let ((x, y), (to_x, to_y)) = (plane.relative(*from), plane.relative(*to));
        let doubled = x * to_y - to_x * y;
        sums.add(doubled, (x + to_x) / 3.0, (y + to_y) / 3.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(places: &[(i32, i32)]) -> Vec<Point> {
        let places = places.iter();
        places
            .map(|&(lon, lat)| Point {
                lat_e7: lat * 1_000_000,
                lon_e7: lon * 1_000_000,
            })
            .collect()
    }

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

    #[test]
    fn centroids_are_weighted_by_length_and_area() {
        let line = points(&[(10, 10), (10, 30), (20, 30)]);
        let [lon, lat] = centroid(&Geometry::LineString(&line));
        assert!((lon - 35.0 / 30.0).abs() < 1e-9 && (lat - 70.0 / 30.0).abs() < 1e-9);
        let polygon = AreaPolygon {
            outer: points(&[(0, 0), (40, 0), (40, 40), (0, 40)]),
            holes: vec![points(&[(20, 10), (20, 30), (40, 30), (40, 10)])],
        };
        let [lon, lat] = centroid(&Geometry::MultiPolygon(&[polygon]));
        // The polygon is a square with the area 1600 and the centre (20, 20), minus a hole with the area 400 and the
        // centre (30, 20).
        assert!(
            (lon - 20.0 / 12.0).abs() < 1e-9 && (lat - 2.0).abs() < 1e-9,
            "{lon} {lat}"
        );
    }

    #[test]
    fn the_centroid_of_parts_that_were_cut_lies_between_them() {
        let rectangle = |west: i32, east: i32| AreaPolygon {
            outer: points(&[(west, 0), (east, 0), (east, 40), (west, 40)]),
            holes: Vec::new(),
        };
        let parts = [rectangle(1790, 1800), rectangle(-1800, -1770)];
        let [lon, lat] = centroid(&Geometry::MultiPolygon(&parts));
        assert!(
            (lon + 179.0).abs() < 1e-9 && (lat - 2.0).abs() < 1e-9,
            "{lon} {lat}"
        );
        let lines = [
            points(&[(1790, 10), (1800, 10)]),
            points(&[(-1800, 10), (-1790, 10)]),
        ];
        let [lon, lat] = centroid(&Geometry::MultiLineString(&lines));
        assert!(
            (lon.abs() - 180.0).abs() < 1e-9 && (lat - 1.0).abs() < 1e-9,
            "{lon} {lat}"
        );
        // Parts that do not meet at the antimeridian.
        let apart = [rectangle(1780, 1790), rectangle(-1790, -1780)];
        let [lon, _] = centroid(&Geometry::MultiPolygon(&apart));
        assert!(lon.abs() < 1e-9, "{lon}");
    }
}
