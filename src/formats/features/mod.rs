//! Features, which are objects with a geometry, as text: GeoJSON, GeoJSON text sequences, WKT, tables for
//! PostgreSQL, and comma-separated values.

mod action;
mod action_columns;
mod coast_row;
mod csv;
mod document;
mod edit_group;
mod feature_id;
mod geojson;
mod geometry_types;
mod label_point;
mod options;
mod postgres;
mod table_csv;
mod text;
mod wkb;
mod wkt;

use crate::area::AreaPolygon;
use crate::geometry::{Extent, Point};
#[cfg(feature = "parquet")]
use crate::geometry::{length_m, ring_area_m2};
use crate::osm::ObjectKind;
use crate::pbf::Info;

pub(crate) use action::{ActionRow, ActionText, OwnedTags};
#[cfg(any(feature = "parquet", feature = "unstable"))]
pub use action_columns::ACTION_COLUMNS;
pub(crate) use action_columns::{ACTION_CSV, is_action_csv};
pub use action_columns::{ActionRows, ActionView};
#[cfg(feature = "parquet")]
pub(crate) use coast_row::CoastColumn;
pub(crate) use coast_row::{CoastColumns, CoastRow};
pub(crate) use document::FeatureDocument;
pub(crate) use edit_group::{EDIT_GROUP_COLUMNS, EditGroups};
pub use edit_group::{EditGroup, GroupBy};
pub(super) use geojson::put_tags as put_json_tags;
pub use geometry_types::GeometryTypes;
#[cfg(feature = "parquet")]
pub(crate) use label_point::centroid;
pub(crate) use label_point::label_point;
pub use options::{Attribute, Attributes, FeatureFormat, FeatureOptions, TagColumn, UniqueId};
pub(crate) use table_csv::{put_table_header, put_table_row};
pub(crate) use text::{FeatureChunk, FeatureText};
pub(crate) use wkb::put_wkb;

/// An object with its geometry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Feature<'a> {
    /// The kind of the object from which the feature was made.
    pub kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The metadata of the object.
    pub info: Info<'a>,
    /// The tags, in the order of the file.
    pub tags: &'a [(&'a str, &'a str)],
    /// The node ids of the way from which a line was made; `None` if they are not written.
    pub way_nodes: Option<&'a [i64]>,
    /// The geometry.
    pub geometry: Geometry<'a>,
}

impl<'a> Feature<'a> {
    /// Creates a feature without the ids of nodes.
    pub(crate) const fn new(
        (kind, id): (ObjectKind, i64),
        info: Info<'a>,
        tags: &'a [(&'a str, &'a str)],
        geometry: Geometry<'a>,
    ) -> Self {
        Self {
            kind,
            id,
            info,
            tags,
            way_nodes: None,
            geometry,
        }
    }

    /// Whether an attribute is left out. As in osmium, points and areas do not have [`Attribute::WayNodes`]. Lines that
    /// are made from relations have this attribute without a value; osmium does not write such lines.
    fn is_attribute_left_out(&self, attribute: Attribute) -> bool {
        let is_line = matches!(
            self.geometry,
            Geometry::LineString(_) | Geometry::MultiLineString(_)
        );
        attribute == Attribute::WayNodes && self.way_nodes.is_none() && !is_line
    }
}

/// The geometry of a feature.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Geometry<'a> {
    /// A point.
    Point(Point),
    /// A line with two points or more. No two consecutive points are equal.
    LineString(&'a [Point]),
    /// Lines, each with two points or more.
    MultiLineString(&'a [Vec<Point>]),
    /// Polygons.
    MultiPolygon(&'a [AreaPolygon]),
}

/// A geometry that owns its points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnedGeometry {
    Point(Point),
    LineString(Vec<Point>),
    MultiLineString(Vec<Vec<Point>>),
    MultiPolygon(Vec<AreaPolygon>),
}

impl OwnedGeometry {
    /// Returns a view of the geometry.
    pub(crate) fn view(&self) -> Geometry<'_> {
        match self {
            Self::Point(point) => Geometry::Point(*point),
            Self::LineString(points) => Geometry::LineString(points),
            Self::MultiLineString(lines) => Geometry::MultiLineString(lines),
            Self::MultiPolygon(polygons) => Geometry::MultiPolygon(polygons),
        }
    }
}

impl OwnedGeometry {
    /// Returns the number of points. The repeated first point at the end of a ring does not count.
    pub(crate) fn point_count(&self) -> usize {
        match self {
            Self::Point(_) => 1,
            Self::LineString(points) => points.len(),
            Self::MultiLineString(lines) => lines.iter().map(Vec::len).sum(),
            Self::MultiPolygon(polygons) => {
                let holes = polygons.iter().flat_map(|polygon| &polygon.holes);
                let outer = polygons.iter().map(|polygon| &polygon.outer);
                outer.chain(holes).map(Vec::len).sum()
            }
        }
    }
}

impl Geometry<'_> {
    /// Returns a copy that owns its points.
    pub(crate) fn to_owned(self) -> OwnedGeometry {
        match self {
            Self::Point(point) => OwnedGeometry::Point(point),
            Self::LineString(points) => OwnedGeometry::LineString(points.to_vec()),
            Self::MultiLineString(lines) => OwnedGeometry::MultiLineString(lines.to_vec()),
            Self::MultiPolygon(polygons) => OwnedGeometry::MultiPolygon(polygons.to_vec()),
        }
    }

    /// Returns the first point; `None` for lines or polygons without points.
    pub(crate) fn first_point(&self) -> Option<Point> {
        match self {
            Self::Point(point) => Some(*point),
            Self::LineString(points) => points.first().copied(),
            Self::MultiLineString(lines) => lines.first()?.first().copied(),
            Self::MultiPolygon(polygons) => polygons.first()?.outer.first().copied(),
        }
    }

    /// Returns the area of polygons on the ellipsoid of WGS 84, in square metres; `None` for other geometries.
    #[cfg(feature = "parquet")]
    pub(crate) fn area_m2(&self) -> Option<f64> {
        let Geometry::MultiPolygon(polygons) = self else {
            return None;
        };
        let area = |polygon: &AreaPolygon| {
            let holes = polygon.holes.iter();
            let holes: f64 = holes.map(|hole| ring_area_m2(hole).abs()).sum();
            ring_area_m2(&polygon.outer).abs() - holes
        };
        Some(polygons.iter().map(area).sum())
    }

    /// Returns the length of lines on the ellipsoid of WGS 84, in metres; `None` for other geometries.
    #[cfg(feature = "parquet")]
    pub(crate) fn length_m(&self) -> Option<f64> {
        match self {
            Geometry::LineString(points) => Some(length_m(points)),
            Geometry::MultiLineString(lines) => Some(lines.iter().map(|line| length_m(line)).sum()),
            Geometry::Point(_) | Geometry::MultiPolygon(_) => None,
        }
    }

    /// Returns the box around the geometry; `None` if it has no points.
    pub(crate) fn extent(&self) -> Option<Extent> {
        match self {
            Self::Point(point) => Some(Extent::at(*point)),
            Self::LineString(points) => Extent::of(*points),
            Self::MultiLineString(lines) => Extent::of(lines.iter().flatten()),
            // Holes lie within outer rings, so they do not extend the box.
            Self::MultiPolygon(polygons) => {
                Extent::of(polygons.iter().flat_map(|polygon| &polygon.outer))
            }
        }
    }
}

impl Feature<'_> {
    /// Returns the value of a numeric attribute; 0 if the object does not have the attribute. Times are in seconds
    /// since 1970.
    fn numeric_value(&self, attribute: Attribute) -> i64 {
        match attribute {
            Attribute::Id => self.id,
            Attribute::Version => self.info.version.unwrap_or(0).into(),
            Attribute::Changeset => self.info.changeset.unwrap_or(0),
            Attribute::Uid => self.info.uid.unwrap_or(0).into(),
            Attribute::Timestamp => self.info.timestamp.unwrap_or(0),
            Attribute::Type | Attribute::User | Attribute::WayNodes => 0,
        }
    }

    /// Returns the letter and the number of an id that is unique among all features. Points have `n` and the id of the
    /// node. Lines have `w` and the id of the way, or `r` and the id of the relation. Areas have `a` and twice the id
    /// of the object; for a relation, 1 is added (subtracted if the id is negative).
    fn unique_id(&self) -> (char, i128) {
        match self.geometry {
            Geometry::Point(_) => ('n', self.id.into()),
            Geometry::LineString(_) | Geometry::MultiLineString(_) => {
                let letter = if self.kind == ObjectKind::Relation {
                    'r'
                } else {
                    'w'
                };
                (letter, self.id.into())
            }
            Geometry::MultiPolygon(_) => {
                let of_relation = i128::from(self.kind == ObjectKind::Relation);
                let id = i128::from(self.id);
                (
                    'a',
                    2 * id + if id < 0 { -of_relation } else { of_relation },
                )
            }
        }
    }
}

/// Returns the rings of a polygon, the outer ring first. Each ring begins and ends with the same point.
fn closed_rings(polygon: &AreaPolygon) -> impl Iterator<Item = ClosedRing<'_>> {
    let rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
    rings.map(|points| ClosedRing { points, next: 0 })
}

/// An iterator over the points of a ring. It returns the first point again at the end.
struct ClosedRing<'a> {
    points: &'a [Point],
    next: usize,
}

impl Iterator for ClosedRing<'_> {
    type Item = Point;

    #[inline]
    fn next(&mut self) -> Option<Point> {
        let at = self.next;
        let is_end = at == self.points.len();
        let point = self.points.get(if is_end { 0 } else { at });
        self.next += 1;
        point.copied().filter(|_| at <= self.points.len())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.points.len() + 1).saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for ClosedRing<'_> {}
