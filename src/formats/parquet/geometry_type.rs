//! The types of geometries in tables.

use crate::formats::features::Geometry;

/// The type of a geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GeometryType {
    Point,
    LineString,
    MultiLineString,
    MultiPolygon,
}

impl GeometryType {
    /// All types, in the order of their numbers.
    pub(crate) const ALL: [Self; 4] = [
        Self::Point,
        Self::LineString,
        Self::MultiLineString,
        Self::MultiPolygon,
    ];

    /// Returns the name of the type in GeoParquet.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Point => "Point",
            Self::LineString => "LineString",
            Self::MultiLineString => "MultiLineString",
            Self::MultiPolygon => "MultiPolygon",
        }
    }

    /// Returns the partition that contains geometries of the type.
    pub(super) const fn partition(self) -> GeometryPartition {
        match self {
            Self::Point => GeometryPartition::Point,
            Self::LineString | Self::MultiLineString => GeometryPartition::Line,
            Self::MultiPolygon => GeometryPartition::Polygon,
        }
    }

    pub(crate) const fn of(geometry: &Geometry<'_>) -> Self {
        match geometry {
            Geometry::Point(_) => Self::Point,
            Geometry::LineString(_) => Self::LineString,
            Geometry::MultiLineString(_) => Self::MultiLineString,
            Geometry::MultiPolygon(_) => Self::MultiPolygon,
        }
    }
}

/// The types of geometries by which tables are partitioned. Lines in one part and in several parts are one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GeometryPartition {
    Point,
    Line,
    Polygon,
}

impl GeometryPartition {
    pub(super) const fn of_number(number: u32) -> Self {
        match number {
            0 => Self::Point,
            1 => Self::Line,
            _ => Self::Polygon,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Line => "linestring",
            Self::Polygon => "polygon",
        }
    }
}
