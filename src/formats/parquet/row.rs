//! Encodes features as rows, which are sorted before their values are written as columns.

use super::geometry_type::GeometryType;
use crate::area::AreaPolygon;
use crate::error::{FormatError, FormatResult};
use crate::formats::features::{Feature, Geometry};
use crate::geometry::{Point, put_points, read_points};
use crate::osm::ObjectKind;
use crate::pbf::wire::{Varints, put_text, put_varint};
use crate::pbf::{RowInfo, put_row_info};

/// Appends a feature as a row. Rows begin with kind and id, so rows with equal sort keys are ordered by kind and id.
pub(crate) fn put_row(out: &mut Vec<u8>, feature: &Feature<'_>) {
    out.push(feature.kind as u8);
    out.extend_from_slice(&(feature.id as u64 ^ 1 << 63).to_be_bytes());
    out.push(GeometryType::of(&feature.geometry) as u8);
    put_row_info(out, &feature.info);
    match &feature.geometry {
        Geometry::Point(point) => put_points(out, &[*point]),
        Geometry::LineString(points) => put_points(out, points),
        Geometry::MultiLineString(lines) => {
            put_varint(out, lines.len() as u64);
            lines.iter().for_each(|line| put_points(out, line));
        }
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
}

/// A feature that is stored as a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeatureRow<'a> {
    pub kind: ObjectKind,
    pub id: i64,
    pub info: RowInfo<'a>,
    pub geometry_type: GeometryType,
    /// The geometry, followed by the tags.
    rest: Varints<'a>,
}

impl<'a> FeatureRow<'a> {
    /// Reads a row.
    pub(crate) fn parse(row: &'a [u8]) -> FormatResult<Self> {
        const BROKEN: FormatError = FormatError::new("a row is broken");
        let mut rest = Varints::new(row);
        let [kind, id @ .., geometry] = rest.read_array::<10>()?;
        Ok(Self {
            kind: ObjectKind::from_number(kind.into()).ok_or(BROKEN)?,
            id: (u64::from_be_bytes(id) ^ 1 << 63) as i64,
            info: RowInfo::read(&mut rest)?,
            geometry_type: *GeometryType::ALL.get(usize::from(geometry)).ok_or(BROKEN)?,
            rest,
        })
    }

    /// Reads the geometry. Also returns the tags, which follow it.
    pub(crate) fn read_geometry_and_tags<'b>(
        &self,
        buffer: &'b mut GeometryBuffer,
    ) -> FormatResult<(Geometry<'b>, StoredTags<'a>)> {
        let mut values = self.rest;
        let GeometryBuffer {
            points,
            lines,
            polygons,
        } = buffer;
        let geometry = match self.geometry_type {
            GeometryType::Point | GeometryType::LineString => {
                read_points(&mut values, points)?;
                match (self.geometry_type, points.as_slice()) {
                    (GeometryType::Point, [point]) => Geometry::Point(*point),
                    (_, points) => Geometry::LineString(points),
                }
            }
            GeometryType::MultiLineString => {
                lines.resize(values.read()? as usize, Vec::new());
                for line in lines.iter_mut() {
                    read_points(&mut values, line)?;
                }
                Geometry::MultiLineString(lines)
            }
            GeometryType::MultiPolygon => {
                polygons.resize(values.read()? as usize, AreaPolygon::default());
                for polygon in polygons.iter_mut() {
                    let rings = values.read()? as usize;
                    read_points(&mut values, &mut polygon.outer)?;
                    polygon.holes.resize(rings.saturating_sub(1), Vec::new());
                    for hole in &mut polygon.holes {
                        read_points(&mut values, hole)?;
                    }
                }
                Geometry::MultiPolygon(polygons)
            }
        };
        Ok((geometry, StoredTags(values)))
    }
}

/// An iterator over the tags of a row, which are stored as alternating keys and values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredTags<'a>(Varints<'a>);

impl StoredTags<'_> {
    /// Returns the size in bytes of the tags that were not returned yet.
    pub(super) fn remaining_len(&self) -> usize {
        self.0.rest().len()
    }
}

impl<'a> Iterator for StoredTags<'a> {
    type Item = FormatResult<(&'a [u8], &'a [u8])>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let texts = &mut self.0;
        if texts.is_done() {
            return None;
        }
        let tag = texts
            .read_text()
            .and_then(|key| Ok((key, texts.read_text()?)));
        if tag.is_err() {
            *texts = Varints::new(&[]);
        }
        Some(tag)
    }
}

/// The buffers of a geometry, which are reused for the next geometry.
#[derive(Debug, Default)]
pub(crate) struct GeometryBuffer {
    points: Vec<Point>,
    lines: Vec<Vec<Point>>,
    polygons: Vec<AreaPolygon>,
}
