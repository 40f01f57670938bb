//! Writes geometries as well-known binary (WKB), little-endian.

use super::{Geometry, closed_rings};
use crate::geometry::Point;
use crate::osm::DECIMICRO_PER_DEGREE;

/// The number of coordinate units (1e-7 degree) per degree.
const ONE: f64 = DECIMICRO_PER_DEGREE as f64;
const LITTLE_ENDIAN: u8 = 1;
const POINT: u32 = 1;
const LINE_STRING: u32 = 2;
const POLYGON: u32 = 3;
const MULTI_LINE_STRING: u32 = 5;
const MULTI_POLYGON: u32 = 6;
/// The flag in the type of a geometry whose reference system (SRID) follows the type. Only EWKB, the WKB dialect of
/// PostGIS, has this flag.
const HAS_SRID: u32 = 0x2000_0000;

/// Appends a geometry. If `srid` is given, writes EWKB: the geometry and its parts name that reference system, as
/// PostGIS expects.
pub(crate) fn put_wkb(out: &mut Vec<u8>, geometry: &Geometry<'_>, srid: Option<u32>) {
    match geometry {
        Geometry::Point(point) => {
            put_header(out, POINT, srid);
            put_point(out, *point);
        }
        Geometry::LineString(points) => put_line(out, points, srid),
        Geometry::MultiLineString(lines) => {
            put_header(out, MULTI_LINE_STRING, srid);
            put_count(out, lines.len());
            lines.iter().for_each(|line| put_line(out, line, srid));
        }
        Geometry::MultiPolygon(polygons) => {
            put_header(out, MULTI_POLYGON, srid);
            put_count(out, polygons.len());
            for polygon in *polygons {
                put_header(out, POLYGON, srid);
                put_count(out, 1 + polygon.holes.len());
                for ring in closed_rings(polygon) {
                    put_count(out, ring.len());
                    ring.for_each(|point| put_point(out, point));
                }
            }
        }
    }
}

fn put_line(out: &mut Vec<u8>, points: &[Point], srid: Option<u32>) {
    put_header(out, LINE_STRING, srid);
    put_count(out, points.len());
    points.iter().for_each(|point| put_point(out, *point));
}

fn put_header(out: &mut Vec<u8>, geometry_type: u32, srid: Option<u32>) {
    out.push(LITTLE_ENDIAN);
    match srid {
        None => out.extend_from_slice(&geometry_type.to_le_bytes()),
        Some(srid) => {
            out.extend_from_slice(&(geometry_type | HAS_SRID).to_le_bytes());
            out.extend_from_slice(&srid.to_le_bytes());
        }
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

fn put_point(out: &mut Vec<u8>, point: Point) {
    for value in [point.lon_e7, point.lat_e7] {
        let degrees = f64::from(value) / ONE;
        out.extend_from_slice(&degrees.to_le_bytes());
    }
}
