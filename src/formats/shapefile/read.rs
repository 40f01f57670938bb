//! Reads the polygons of Shapefiles.

use super::{FILE_CODE, HEADER_LEN, ShapeType};
use crate::error::{Error, FileResult, Result};
use crate::geometry::{Point, Projection};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The offset in bytes of the list of the rings' start indices in the content of a polygon record.
const POLYGON_HEADER_LEN: usize = 44;

/// A reader of a Shapefile of polygons.
pub(crate) struct ShapefileReader {
    path: PathBuf,
    file: BufReader<File>,
    projection: Projection,
    /// The number of bytes of the file that are not read yet.
    left: u64,
}

impl ShapefileReader {
    /// Opens a Shapefile. Its coordinates are degrees or, if some are too large for degrees, metres in Web Mercator.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |error| Error::io(path, "cannot read", error);
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut reader = Self {
            path: path.to_owned(),
            file: BufReader::with_capacity(1 << 18, file),
            projection: Projection::Degrees,
            left: len,
        };
        let header = reader.read(HEADER_LEN)?;
        if header[..4] != FILE_CODE || !has_polygon_type(&header[32..]) {
            return Err(reader.error("this is no Shapefile of polygons"));
        }
        let edges = header[36..68].chunks_exact(8).map(read_f64);
        if edges.map(f64::abs).fold(0.0, f64::max) > 181.0 {
            reader.projection = Projection::WebMercator;
        }
        Ok(reader)
    }

    /// Reads the rings of the next polygon, without their last points, which repeat the first ones. Returns `None` at
    /// the end of the file. Outer rings are clockwise.
    pub(crate) fn next_rings(&mut self) -> Result<Option<Vec<Vec<Point>>>> {
        if self.left == 0 {
            return Ok(None);
        }
        let head = self.read(8)?;
        let len = 2 * u64::from(u32::from_be_bytes([head[4], head[5], head[6], head[7]]));
        if len > self.left {
            return Err(self.error("the file ends within a polygon"));
        }
        let content = self.read(len as usize)?;
        if content.starts_with(&[0; 4]) {
            return Ok(Some(Vec::new()));
        }
        let rings = has_polygon_type(&content)
            .then(|| self.parse_rings(&content))
            .flatten();
        let broken = || self.error("a polygon is broken");
        rings.map(Some).ok_or_else(broken)
    }

    fn parse_rings(&self, content: &[u8]) -> Option<Vec<Vec<Point>>> {
        let number =
            |at: usize| Some(u32::from_le_bytes(*content.get(at..)?.first_chunk()?) as usize);
        let (parts, count) = (number(36)?, number(40)?);
        let starts = content
            .get(POLYGON_HEADER_LEN..)?
            .get(..parts.checked_mul(4)?)?;
        let points = &content[POLYGON_HEADER_LEN + starts.len()..];
        if points.len() != count.checked_mul(16)? {
            return None;
        }
        let starts = starts
            .chunks_exact(4)
            .map(|start| u32::from_le_bytes([start[0], start[1], start[2], start[3]]) as usize);
        let starts: Vec<usize> = starts.chain([count]).collect();
        let ring = |ends: &[usize]| -> Option<Vec<Point>> {
            let points = points.get(16 * ends[0]..16 * ends[1])?.chunks_exact(16);
            let point = |bytes: &[u8]| {
                self.projection
                    .undo([read_f64(bytes), read_f64(&bytes[8..])])
            };
            let mut ring: Vec<Point> = points.map(point).collect::<Option<_>>()?;
            ring.pop();
            Some(ring)
        };
        starts.windows(2).map(ring).collect()
    }

    fn read(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.file
            .read_exact(&mut bytes)
            .for_path(&self.path, "cannot read")?;
        self.left = self.left.saturating_sub(len as u64);
        Ok(bytes)
    }

    fn error(&self, cause: &str) -> Error {
        Error::file(&self.path, cause)
    }
}

/// Whether the bytes begin with the shape type of polygons.
fn has_polygon_type(bytes: &[u8]) -> bool {
    bytes.starts_with(&(ShapeType::Polygon as u32).to_le_bytes())
}

/// Returns the number in the first eight bytes; 0 if there are fewer.
fn read_f64(bytes: &[u8]) -> f64 {
    bytes
        .first_chunk()
        .map_or(0.0, |bytes| f64::from_le_bytes(*bytes))
}
