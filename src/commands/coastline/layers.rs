//! The layers of a coast, and the files to which they are written.

use super::{CoastLayer, LayerFormat};
use crate::error::Result;
use crate::formats::features::{
    CoastColumns, CoastRow, FeatureChunk, FeatureDocument, FeatureText, OwnedGeometry,
};
#[cfg(feature = "parquet")]
use crate::formats::parquet::CoastTable;
use crate::formats::shapefile::{
    FILE_CODE, SHAPEFILE_ENDINGS, ShapeColumns, ShapeRecords, ShapeType, ShapefileWriter,
    projection_wkt,
};
use crate::formats::{FeatureFormat, FeatureOptions};
use crate::geometry::Projection;
use crate::io::{OpenOutput, OutputDirectory, OutputTarget, StreamOutput};
use crate::runtime::Context;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name of the file of problems in an output directory.
const PROBLEMS: &str = "errors.geojson";

/// A file of a layer.
#[derive(Debug, Clone)]
pub(super) struct LayerSpec {
    pub layer: CoastLayer,
    /// Whether polygons are divided into cells.
    pub is_split: bool,
    pub projection: Projection,
    pub format: LayerFormat,
    pub place: LayerPlace,
}

/// The target of a file, or its path within the output directory.
#[derive(Debug, Clone)]
pub(super) enum LayerPlace {
    Target(OutputTarget),
    Directory(PathBuf),
}

impl LayerSpec {
    /// Returns the files of a directory: lines, undivided land, and problems. With `is_split`, adds land and water
    /// divided into cells; otherwise, adds undivided water. The names are those that map makers expect.
    pub(super) fn all_for_directory(is_split: bool, projections: &[Projection]) -> Vec<Self> {
        let mut specs = Vec::new();
        let mut add = |layer, is_split, projection, path: String, format| {
            specs.push(Self {
                layer,
                is_split,
                projection,
                format,
                place: LayerPlace::Directory(path.into()),
            });
        };
        for &projection in projections {
            let code = projection.code();
            let mut add = |layer, is_split, directory: String, name: &str| {
                let path = format!("{directory}-{code}/{name}.shp");
                add(layer, is_split, projection, path, LayerFormat::Shapefile);
            };
            add(CoastLayer::Lines, false, "coastlines".into(), "lines");
            for (layer, name) in [(CoastLayer::Land, "land"), (CoastLayer::Water, "water")] {
                let file = format!("{name}_polygons");
                if layer == CoastLayer::Land || !is_split {
                    add(layer, false, format!("{name}-polygons-complete"), &file);
                }
                if is_split {
                    add(layer, true, format!("{name}-polygons-split"), &file);
                }
            }
        }
        let text = LayerFormat::Features(FeatureOptions::new(FeatureFormat::GeoJson));
        add(
            CoastLayer::Errors,
            false,
            Projection::Degrees,
            PROBLEMS.into(),
            text,
        );
        specs
    }

    /// Returns the kind of the columns in the file.
    const fn columns(&self) -> CoastColumns {
        match self.layer {
            CoastLayer::Lines => CoastColumns::Lines,
            CoastLayer::Land | CoastLayer::Water if self.is_split => CoastColumns::Cells,
            CoastLayer::Land | CoastLayer::Water => CoastColumns::Polygons,
            CoastLayer::Errors => CoastColumns::Problems,
        }
    }

    /// Returns the targets of the files; an empty list if the files are in the output directory.
    pub(super) fn targets(&self) -> Vec<OutputTarget> {
        match (&self.place, &self.format) {
            (LayerPlace::Directory(_), _) => Vec::new(),
            (LayerPlace::Target(target), LayerFormat::Shapefile) => {
                let ending = |ending: &str| target_with_ending(target, ending);
                SHAPEFILE_ENDINGS.into_iter().map(ending).collect()
            }
            (LayerPlace::Target(target), _) => vec![target.clone()],
        }
    }

    /// Encodes rows in the format of the file.
    pub(super) fn encode(&self, rows: &[CoastRow]) -> Result<EncodedRows> {
        Ok(match &self.format {
            LayerFormat::Shapefile => {
                let mut records = ShapeRecords::new(self.projection);
                for row in rows {
                    match &row.geometry {
                        OwnedGeometry::MultiPolygon(polygons) => {
                            let cell = row.cell.unwrap_or_default();
                            polygons
                                .iter()
                                .for_each(|one| records.add_polygon(one, cell));
                        }
                        OwnedGeometry::LineString(points) => records.add_line(points),
                        OwnedGeometry::Point(_) | OwnedGeometry::MultiLineString(_) => {}
                    }
                }
                EncodedRows::Shapes(records)
            }
            LayerFormat::Features(options) => {
                let (mut text, mut chunks) = (FeatureText::new(options), Vec::new());
                for row in rows {
                    row.with_feature(|feature| text.put(feature));
                }
                while let Some(chunk) = text.take().map_err(crate::Error::internal)? {
                    chunks.push(chunk);
                }
                EncodedRows::Features(chunks)
            }
            #[cfg(feature = "parquet")]
            LayerFormat::GeoParquet => EncodedRows::Rows(rows.to_vec()),
        })
    }

    /// Opens the file for writing.
    pub(super) fn open(
        &self,
        directory: &mut Option<OutputDirectory>,
        ctx: &Context,
    ) -> Result<LayerWriter> {
        let mut open = |ending: &str| -> Result<OpenOutput> {
            match (&self.place, directory.as_mut()) {
                (LayerPlace::Target(target), _) => {
                    OpenOutput::open(target_with_ending(target, ending), ctx)
                }
                (LayerPlace::Directory(path), Some(directory)) => {
                    directory.open(&path.with_extension(ending))
                }
                (LayerPlace::Directory(_), None) => {
                    Err(crate::Error::internal("a layer without a directory"))
                }
            }
        };
        let own_ending = match &self.place {
            LayerPlace::Target(_) => String::new(),
            LayerPlace::Directory(path) => path
                .extension()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        };
        Ok(match &self.format {
            LayerFormat::Shapefile => {
                let (shape_type, columns) = match self.columns() {
                    CoastColumns::Lines => (ShapeType::Line, ShapeColumns::Number),
                    CoastColumns::Cells => (ShapeType::Polygon, ShapeColumns::Cell),
                    _ => (ShapeType::Polygon, ShapeColumns::Number),
                };
                let writer = ShapefileWriter::create(shape_type, columns, self.projection, open);
                LayerWriter::Shapefile(writer?)
            }
            LayerFormat::Features(options) => {
                LayerWriter::Features(FeatureDocument::create(open(&own_ending)?, options)?)
            }
            #[cfg(feature = "parquet")]
            LayerFormat::GeoParquet => {
                LayerWriter::Table(CoastTable::create(self.columns(), open(&own_ending)?)?)
            }
        })
    }
}

/// Returns the target of one of the files that form a Shapefile: the file with the given ending. Returns `target`
/// itself if the ending is empty or the target is not a file.
fn target_with_ending(target: &OutputTarget, ending: &str) -> OutputTarget {
    match target {
        OutputTarget::File { path, overwrite } if !ending.is_empty() => {
            OutputTarget::named_file(path.with_extension(ending), *overwrite)
        }
        target => target.clone(),
    }
}

/// Rows that are encoded for a file.
pub(super) enum EncodedRows {
    Shapes(ShapeRecords),
    Features(Vec<FeatureChunk>),
    #[cfg(feature = "parquet")]
    Rows(Vec<CoastRow>),
}

/// A file that is being written.
pub(super) enum LayerWriter {
    Shapefile(ShapefileWriter),
    Features(FeatureDocument),
    #[cfg(feature = "parquet")]
    Table(CoastTable),
}

impl LayerWriter {
    /// Appends rows, which must have been encoded for this file.
    pub(super) fn add(&mut self, rows: EncodedRows) -> Result<()> {
        match (self, rows) {
            (Self::Shapefile(writer), EncodedRows::Shapes(records)) => writer.add(records),
            (Self::Features(document), EncodedRows::Features(chunks)) => {
                chunks.into_iter().try_for_each(|chunk| document.add(chunk))
            }
            #[cfg(feature = "parquet")]
            (Self::Table(table), EncodedRows::Rows(rows)) => {
                rows.into_iter().try_for_each(|row| table.add(row))
            }
            _ => Err(crate::Error::internal("rows of another format")),
        }
    }

    /// Completes the file. Returns its parts, which get their names when they are committed.
    pub(super) fn finish(self) -> Result<Vec<StreamOutput>> {
        Ok(match self {
            Self::Shapefile(writer) => writer.finish()?,
            Self::Features(document) => vec![document.finish_uncommitted()?],
            #[cfg(feature = "parquet")]
            Self::Table(table) => vec![table.finish()?],
        })
    }
}

/// Whether an open file in an output directory was written by an earlier run.
pub(super) fn is_from_earlier_run(path: &Path, file: &File) -> bool {
    let mut start = Vec::new();
    let read = file.take(1 << 12).read_to_end(&mut start);
    let shown = path.to_string_lossy();
    let Some((_, ending)) = shown.rsplit_once('.').filter(|_| read.is_ok()) else {
        return false;
    };
    let specs = [true, false].map(|is_split| {
        LayerSpec::all_for_directory(is_split, &[Projection::Degrees, Projection::WebMercator])
    });
    let mut names = specs.iter().flatten().filter_map(|spec| match &spec.place {
        LayerPlace::Directory(path) => Some((path, spec.projection)),
        LayerPlace::Target(_) => None,
    });
    if shown == super::SUMMARY || shown == super::WAYS {
        return start.is_empty()
            || start.starts_with(b"{")
            || start[0].is_ascii_digit()
            || start[0] == b'-';
    }
    let found = names.find(|(name, _)| path == name.with_extension(ending));
    found.is_some_and(|(_, projection)| match ending {
        "shp" | "shx" => start.starts_with(&FILE_CODE),
        "dbf" => start.starts_with(&[3]),
        "prj" => start == projection_wkt(projection).as_bytes(),
        "cpg" => start == b"UTF-8",
        _ => start.starts_with(b"{\"type\":\"FeatureCollection\""),
    })
}
