//! Shapefiles (ESRI Shapefile Technical Description, July 1998) of lines and polygons, with tables in dBASE.

mod read;

pub(crate) use read::ShapefileReader;

use crate::area::AreaPolygon;
use crate::error::{Error, Result};
use crate::geometry::{Point, Projection};
use crate::io::{OpenOutput, StreamOutput};

/// The file name extensions of the files of a Shapefile.
pub(crate) const SHAPEFILE_ENDINGS: [&str; 5] = ["shp", "shx", "dbf", "prj", "cpg"];

/// The first bytes of `.shp` and `.shx`.
pub(crate) const FILE_CODE: [u8; 4] = 9994u32.to_be_bytes();
const VERSION: u32 = 1000;
/// The length of the header of `.shp` and `.shx` in bytes.
const HEADER_LEN: usize = 100;
/// The length in bytes of the header of a record, which has the number of the record and the length of the content.
const RECORD_HEADER_LEN: usize = 8;
/// The length in bytes of the description of a column in the header of a table.
const COLUMN_LEN: usize = 32;
/// The length in bytes of a value in a row of a table.
const VALUE_LEN: usize = 11;

/// The type of the shapes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShapeType {
    Line = 3,
    Polygon = 5,
}

/// The columns of the table of a Shapefile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShapeColumns {
    /// `FID`: the number of the shape, from 0.
    Number,
    /// `x` and `y`: the column and the row of the grid cell in which a shape lies.
    Cell,
}

impl ShapeColumns {
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Number => &["FID"],
            Self::Cell => &["x", "y"],
        }
    }
}

/// Consecutive shapes, which a worker encodes.
#[derive(Debug)]
pub(crate) struct ShapeRecords {
    projection: Projection,
    /// The records. Their numbers are filled in later, when the records are appended to the file.
    bytes: Vec<u8>,
    /// The lengths of the records in bytes, and the cells of the shapes.
    records: Vec<(usize, [i32; 2])>,
    extent: ShapeExtent,
}

/// The box around shapes: the lowest x and y, then the highest x and y.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ShapeExtent([f64; 4]);

impl ShapeExtent {
    const EMPTY: Self = Self([
        f64::INFINITY,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NEG_INFINITY,
    ]);

    fn add(&mut self, [x, y]: [f64; 2]) {
        let Self([west, south, east, north]) = *self;
        *self = Self([west.min(x), south.min(y), east.max(x), north.max(y)]);
    }

    fn put(&self, out: &mut Vec<u8>) {
        let edges = if *self == Self::EMPTY {
            [0.0; 4]
        } else {
            self.0
        };
        out.extend(edges.iter().flat_map(|edge| edge.to_le_bytes()));
    }
}

impl ShapeRecords {
    pub(crate) const fn new(projection: Projection) -> Self {
        Self {
            projection,
            bytes: Vec::new(),
            records: Vec::new(),
            extent: ShapeExtent::EMPTY,
        }
    }

    /// Adds a polygon, whose outer ring is counter-clockwise. In the file, the outer ring is clockwise.
    pub(crate) fn add_polygon(&mut self, polygon: &AreaPolygon, cell: [i32; 2]) {
        let rings = polygon.rings().map(|ring| {
            let closing = ring.first().copied();
            ring.iter().copied().chain(closing).rev()
        });
        self.add(ShapeType::Polygon, rings, cell);
    }

    /// Adds a line.
    pub(crate) fn add_line(&mut self, points: &[Point]) {
        let line = points.iter().copied();
        self.add(ShapeType::Line, std::iter::once(line), [0; 2]);
    }

    fn add<P: Iterator<Item = Point>>(
        &mut self,
        shape_type: ShapeType,
        parts: impl Iterator<Item = P>,
        cell: [i32; 2],
    ) {
        let (mut points, mut starts) = (Vec::new(), Vec::new());
        let mut extent = ShapeExtent::EMPTY;
        for part in parts {
            starts.push((points.len() / 16) as u32);
            points.reserve(16 * part.size_hint().0);
            let mut add = |point| {
                let point = self.projection.apply(point);
                extent.add(point);
                let [x, y] = point.map(f64::to_le_bytes);
                points.extend_from_slice(&x);
                points.extend_from_slice(&y);
            };
            let mut last = None;
            for point in part {
                if let Some(last) = last {
                    self.projection.between(last, point).for_each(&mut add);
                }
                add(point);
                last = Some(point);
            }
        }
        let content = 44 + 4 * starts.len() + points.len();
        let out = &mut self.bytes;
        out.reserve(RECORD_HEADER_LEN + content);
        out.extend([0; 4]);
        out.extend(len_in_words(content).to_be_bytes());
        out.extend((shape_type as u32).to_le_bytes());
        extent.put(out);
        out.extend((starts.len() as u32).to_le_bytes());
        out.extend(((points.len() / 16) as u32).to_le_bytes());
        out.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
        out.extend_from_slice(&points);
        self.records.push((RECORD_HEADER_LEN + content, cell));
        let ShapeExtent([west, south, east, north]) = extent;
        self.extent.add([west, south]);
        self.extent.add([east, north]);
    }
}

/// Returns a length in units of 16 bits.
const fn len_in_words(bytes: usize) -> u32 {
    (bytes / 2) as u32
}

/// A Shapefile that is being written.
pub(crate) struct ShapefileWriter {
    shape_type: ShapeType,
    columns: ShapeColumns,
    /// `.shp`, `.shx` and `.dbf`, whose headers are written last.
    shapes: StreamOutput,
    index: StreamOutput,
    table: StreamOutput,
    /// The files `.prj` and `.cpg`, which are complete.
    others: Vec<StreamOutput>,
    count: u32,
    extent: ShapeExtent,
}

impl ShapefileWriter {
    /// Begins a Shapefile. `open` opens the file of the Shapefile that has the given ending. The files must not be
    /// streams.
    pub(crate) fn create(
        shape_type: ShapeType,
        columns: ShapeColumns,
        projection: Projection,
        mut open: impl FnMut(&str) -> Result<OpenOutput>,
    ) -> Result<Self> {
        let mut begin = |ending: &str, start: &[u8]| {
            let output = open(ending)?;
            if output.is_stream {
                let cause = "a Shapefile is several files, which cannot be a stream";
                return Err(Error::file(output.output.path(), cause));
            }
            let mut output = StreamOutput::new(output);
            output.write(start)?;
            Ok(output)
        };
        let [shp, shx, dbf, prj, cpg] = SHAPEFILE_ENDINGS;
        Ok(Self {
            shape_type,
            columns,
            shapes: begin(shp, &[0; HEADER_LEN])?,
            index: begin(shx, &[0; HEADER_LEN])?,
            table: begin(dbf, &dbase_table_header(columns, 0))?,
            others: vec![
                begin(prj, projection_wkt(projection).as_bytes())?,
                begin(cpg, b"UTF-8")?,
            ],
            count: 0,
            extent: ShapeExtent::EMPTY,
        })
    }

    /// Appends shapes.
    ///
    /// # Errors
    ///
    /// The file would reach 4 GiB, a size that its header cannot express, or the file cannot be written.
    pub(crate) fn add(&mut self, mut records: ShapeRecords) -> Result<()> {
        let (mut index, mut table, mut start) = (Vec::new(), Vec::new(), 0);
        for &(len, cell) in &records.records {
            let offset = self.shapes.len() + start as u64;
            if i32::try_from((offset + len as u64) / 2).is_err() {
                let cause = "a Shapefile has at most 4 GiB: divide the polygons into cells, or write GeoParquet";
                return Err(Error::file(self.shapes.path(), cause));
            };
            self.count += 1;
            records.bytes[start..start + 4].copy_from_slice(&self.count.to_be_bytes());
            index.extend(((offset / 2) as u32).to_be_bytes());
            index.extend(len_in_words(len - RECORD_HEADER_LEN).to_be_bytes());
            table.push(b' ');
            let numbers = match self.columns {
                ShapeColumns::Number => vec![i64::from(self.count) - 1],
                ShapeColumns::Cell => cell.map(i64::from).to_vec(),
            };
            for number in numbers {
                table.extend(format!("{number:>VALUE_LEN$}").bytes());
            }
            start += len;
        }
        let ShapeExtent([west, south, east, north]) = records.extent;
        if start > 0 {
            self.extent.add([west, south]);
            self.extent.add([east, north]);
        }
        self.shapes.write_owned(records.bytes)?;
        self.index.write_owned(index)?;
        self.table.write_owned(table)
    }

    /// Completes the files, which get their names when they are committed.
    pub(crate) fn finish(mut self) -> Result<Vec<StreamOutput>> {
        self.table.write(b"\x1a")?;
        for file in [&mut self.shapes, &mut self.index] {
            let mut header = Vec::with_capacity(HEADER_LEN);
            header.extend(FILE_CODE);
            header.extend([0; 20]);
            header.extend(((file.len() / 2) as u32).to_be_bytes());
            header.extend(VERSION.to_le_bytes());
            header.extend((self.shape_type as u32).to_le_bytes());
            self.extent.put(&mut header);
            header.extend([0; 32]);
            file.replace_start(&header)?;
        }
        self.table
            .replace_start(&dbase_table_header(self.columns, self.count))?;
        let files = [self.shapes, self.index, self.table];
        Ok(files.into_iter().chain(self.others).collect())
    }
}

/// Returns the header of a table in dBASE III. Its date is always 1 January 2000, so that equal tables give identical
/// files.
fn dbase_table_header(columns: ShapeColumns, rows: u32) -> Vec<u8> {
    let names = columns.names();
    let header_len = (COLUMN_LEN * (names.len() + 1) + 1) as u16;
    let row_len = (1 + VALUE_LEN * names.len()) as u16;
    let mut out = vec![3, 100, 1, 1];
    out.extend(rows.to_le_bytes());
    out.extend(header_len.to_le_bytes());
    out.extend(row_len.to_le_bytes());
    out.resize(COLUMN_LEN, 0);
    for name in names {
        let start = out.len();
        out.extend(name.bytes());
        out.resize(start + 11, 0);
        out.extend([b'N', 0, 0, 0, 0, VALUE_LEN as u8]);
        out.resize(start + COLUMN_LEN, 0);
    }
    out.push(b'\r');
    out
}

/// Returns the text of `.prj`: the coordinate reference system as well-known text.
pub(crate) fn projection_wkt(projection: Projection) -> String {
    const DEGREES: &str = "GEOGCS[\"GCS_WGS_1984\",DATUM[\"D_WGS_1984\",\
        SPHEROID[\"WGS_1984\",6378137.0,298.257223563]],PRIMEM[\"Greenwich\",0.0],\
        UNIT[\"Degree\",0.0174532925199433]]";
    match projection {
        Projection::Degrees => DEGREES.to_owned(),
        Projection::WebMercator => format!(
            "PROJCS[\"WGS_1984_Web_Mercator_Auxiliary_Sphere\",{DEGREES},\
             PROJECTION[\"Mercator_Auxiliary_Sphere\"],PARAMETER[\"False_Easting\",0.0],\
             PARAMETER[\"False_Northing\",0.0],PARAMETER[\"Central_Meridian\",0.0],\
             PARAMETER[\"Standard_Parallel_1\",0.0],PARAMETER[\"Auxiliary_Sphere_Type\",0.0],\
             UNIT[\"Meter\",1.0]]"
        ),
    }
}
