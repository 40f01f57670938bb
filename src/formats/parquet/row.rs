//! Encoding features as rows, which are sorted before they become columns.

use crate::area::AreaPolygon;
use crate::error::FormatError;
use crate::formats::features::{Feature, Geometry};
use crate::geometry::{Extent, Point};
use crate::osm::ObjectKind;
use crate::pbf::wire::{Varints, put_sint, put_text, put_varint, take_text};

/// The number of bits of a position on the Hilbert curve.
const CURVE_BITS: u32 = 32;

/// The type of a geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GeometryType {
    Point,
    LineString,
    MultiPolygon,
}

impl GeometryType {
    /// All types, in the order of their files.
    pub(crate) const ALL: [Self; 3] = [Self::Point, Self::LineString, Self::MultiPolygon];

    /// The name in GeoParquet.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Point => "Point",
            Self::LineString => "LineString",
            Self::MultiPolygon => "MultiPolygon",
        }
    }

    /// The name of the directory of a partition.
    pub(crate) const fn partition(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::LineString => "linestring",
            Self::MultiPolygon => "polygon",
        }
    }

    pub(crate) const fn of(geometry: &Geometry<'_>) -> Self {
        match geometry {
            Geometry::Point(_) => Self::Point,
            Geometry::LineString(_) => Self::LineString,
            Geometry::MultiPolygon(_) => Self::MultiPolygon,
        }
    }
}

/// A set of metadata attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InfoColumns(u8);

impl InfoColumns {
    pub(crate) const VERSION: Self = Self(1);
    pub(crate) const TIMESTAMP: Self = Self(2);
    pub(crate) const CHANGESET: Self = Self(4);
    pub(crate) const UID: Self = Self(8);
    pub(crate) const USER: Self = Self(16);

    pub(crate) const fn has(self, column: Self) -> bool {
        self.0 & column.0 != 0
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The box around a geometry; `None` without points.
pub(super) fn extent_of(geometry: &Geometry<'_>) -> Option<Extent> {
    match geometry {
        Geometry::Point(point) => Extent::of([point]),
        Geometry::LineString(points) => Extent::of(*points),
        // Holes lie within outer rings.
        Geometry::MultiPolygon(polygons) => {
            Extent::of(polygons.iter().flat_map(|polygon| &polygon.outer))
        }
    }
}

/// The sort key of a feature: the position on the Hilbert curve, with the type of the geometry above it if each type
/// has its own files.
pub(crate) fn sort_key(geometry: &Geometry<'_>, is_partitioned: bool) -> u64 {
    let position = extent_of(geometry).map_or(0, |extent| extent.curve_position(CURVE_BITS));
    let partition = if is_partitioned {
        GeometryType::of(geometry) as u64
    } else {
        0
    };
    partition << CURVE_BITS | position
}

/// Appends a feature as a row. Rows begin with kind and id, so that rows with equal sort keys compare by object.
/// Returns the metadata attributes that the object has.
pub(crate) fn put_row(out: &mut Vec<u8>, feature: &Feature<'_>) -> InfoColumns {
    out.push(feature.kind as u8);
    out.extend_from_slice(&(feature.id as u64 ^ 1 << 63).to_be_bytes());
    out.push(GeometryType::of(&feature.geometry) as u8);
    let info = &feature.info;
    let flags = [
        (info.version.is_some(), InfoColumns::VERSION),
        (info.timestamp.is_some(), InfoColumns::TIMESTAMP),
        (info.changeset.is_some(), InfoColumns::CHANGESET),
        (info.uid.is_some(), InfoColumns::UID),
        (info.user.is_some(), InfoColumns::USER),
    ];
    let present = flags.iter().filter(|(is_present, _)| *is_present);
    let present = present.fold(InfoColumns::default(), |all, (_, column)| all.and(*column));
    out.push(present.0);
    if let Some(version) = info.version {
        put_varint(out, version.into());
    }
    let numbers = [info.timestamp, info.changeset, info.uid.map(i64::from)];
    numbers
        .into_iter()
        .flatten()
        .for_each(|value| put_sint(out, value));
    if let Some(user) = info.user {
        put_text(out, user);
    }
    match &feature.geometry {
        Geometry::Point(point) => put_points(out, &[*point]),
        Geometry::LineString(points) => put_points(out, points),
        Geometry::MultiPolygon(polygons) => {
            put_varint(out, polygons.len() as u64);
            for polygon in *polygons {
                put_varint(out, 1 + polygon.holes.len() as u64);
                put_points(out, &polygon.outer);
                polygon.holes.iter().for_each(|hole| put_points(out, hole));
            }
        }
    }
    for (key, value) in feature.tags {
        put_text(out, key);
        put_text(out, value);
    }
    present
}

fn put_points(out: &mut Vec<u8>, points: &[Point]) {
    put_varint(out, points.len() as u64);
    let mut last = Point {
        lat_e7: 0,
        lon_e7: 0,
    };
    for point in points {
        put_sint(out, i64::from(point.lat_e7) - i64::from(last.lat_e7));
        put_sint(out, i64::from(point.lon_e7) - i64::from(last.lon_e7));
        last = *point;
    }
}

/// A feature that is stored as a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeatureRow<'a> {
    pub kind: ObjectKind,
    pub id: i64,
    pub version: Option<i32>,
    /// Seconds since 1970.
    pub timestamp: Option<i64>,
    pub changeset: Option<i64>,
    pub uid: Option<i32>,
    pub user: Option<&'a [u8]>,
    pub geometry_type: GeometryType,
    /// The geometry, and the tags behind it.
    rest: &'a [u8],
}

impl<'a> FeatureRow<'a> {
    /// Reads a row.
    pub(crate) fn parse(row: &'a [u8]) -> Result<Self, FormatError> {
        const BROKEN: FormatError = FormatError::new("a row is broken");
        let (head, rest) = row.split_first_chunk::<11>().ok_or(BROKEN)?;
        let [kind, id @ .., geometry, flags] = *head;
        let present = InfoColumns(flags);
        let mut values = Varints::new(rest);
        let version = if present.has(InfoColumns::VERSION) {
            Some(values.read()? as i32)
        } else {
            None
        };
        let mut row = Self {
            kind: ObjectKind::from_number(kind.into()).ok_or(BROKEN)?,
            id: (u64::from_be_bytes(id) ^ 1 << 63) as i64,
            version,
            timestamp: None,
            changeset: None,
            uid: None,
            user: None,
            geometry_type: *GeometryType::ALL.get(usize::from(geometry)).ok_or(BROKEN)?,
            rest: &[],
        };
        row.timestamp = read_if(present.has(InfoColumns::TIMESTAMP), &mut values)?;
        row.changeset = read_if(present.has(InfoColumns::CHANGESET), &mut values)?;
        row.uid = read_if(present.has(InfoColumns::UID), &mut values)?.map(|uid| uid as i32);
        let mut rest = values.rest();
        if present.has(InfoColumns::USER) {
            row.user = Some(take_text(&mut rest)?);
        }
        row.rest = rest;
        Ok(row)
    }

    /// Reads the geometry. Also returns the tags, which follow it.
    pub(crate) fn geometry<'b>(
        &self,
        buffer: &'b mut GeometryBuffer,
    ) -> Result<(Geometry<'b>, StoredTags<'a>), FormatError> {
        let mut values = Varints::new(self.rest);
        if self.geometry_type != GeometryType::MultiPolygon {
            read_points(&mut values, &mut buffer.points)?;
            let geometry = match (self.geometry_type, buffer.points.as_slice()) {
                (GeometryType::Point, [point]) => Geometry::Point(*point),
                (_, points) => Geometry::LineString(points),
            };
            return Ok((geometry, StoredTags(values.rest())));
        }
        let count = values.read()? as usize;
        buffer.polygons.truncate(count);
        for at in 0..count {
            if buffer.polygons.len() <= at {
                buffer.polygons.push(AreaPolygon::default());
            }
            let rings = values.read()? as usize;
            let polygon = &mut buffer.polygons[at];
            read_points(&mut values, &mut polygon.outer)?;
            polygon.holes.resize(rings.saturating_sub(1), Vec::new());
            for hole in &mut polygon.holes {
                read_points(&mut values, hole)?;
            }
        }
        let tags = StoredTags(values.rest());
        Ok((Geometry::MultiPolygon(&buffer.polygons), tags))
    }
}

/// The tags of a row: alternating keys and values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredTags<'a>(&'a [u8]);

impl StoredTags<'_> {
    /// The number of bytes of the tags.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Iterator for StoredTags<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), FormatError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = &mut self.0;
        if rest.is_empty() {
            return None;
        }
        let tag = take_text(rest).and_then(|key| Ok((key, take_text(rest)?)));
        if tag.is_err() {
            *rest = &[];
        }
        Some(tag)
    }
}

fn read_if(is_present: bool, values: &mut Varints<'_>) -> Result<Option<i64>, FormatError> {
    if is_present {
        values.read_sint().map(Some)
    } else {
        Ok(None)
    }
}

/// Reusable memory for a geometry.
#[derive(Debug, Default)]
pub(crate) struct GeometryBuffer {
    points: Vec<Point>,
    polygons: Vec<AreaPolygon>,
}

fn read_points(values: &mut Varints<'_>, points: &mut Vec<Point>) -> Result<(), FormatError> {
    points.clear();
    let [mut lat, mut lon] = [0; 2];
    for _ in 0..values.read()? {
        lat += values.read_sint()?;
        lon += values.read_sint()?;
        points.push(Point {
            lat_e7: lat as i32,
            lon_e7: lon as i32,
        });
    }
    Ok(())
}
