//! A file of features that show where problems are.

use crate::error::Result;
use crate::formats::features::{Feature, FeatureDocument, FeatureText, Geometry};
use crate::formats::{Attribute, FeatureOptions};
use crate::geometry::Point;
use crate::io::{OpenOutput, OutputTarget};
use crate::osm::ObjectKind;
use crate::pbf::Info;
use crate::runtime::Context;

/// The size in bytes at which buffered features are written.
const CHUNK: usize = 1 << 20;

/// The properties of problems, which are columns in CSV.
const PROPERTIES: [&str; 7] = [
    "problem",
    "severity",
    "description",
    "node",
    "ways",
    "key",
    "same_as",
];

/// A file to which problems with a location are written as features.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProblemFile {
    /// The file.
    pub target: OutputTarget,
    /// The format of the features. Features always have the attributes `@type` and `@id`.
    pub format: FeatureOptions,
}

impl ProblemFile {
    /// Creates a problem file with the given target and format.
    pub fn new(target: OutputTarget, format: FeatureOptions) -> Self {
        Self { target, format }
    }
}

/// Writes a [`ProblemFile`].
pub(super) struct ProblemWriter {
    document: FeatureDocument,
    text: FeatureText,
    /// Whether the format is a table, in which a problem is a single row.
    is_table: bool,
}

impl ProblemWriter {
    pub(super) fn create(file: &ProblemFile, ctx: &Context) -> Result<Self> {
        let mut format = file.format.clone();
        for attribute in [Attribute::Type, Attribute::Id] {
            format
                .attributes
                .set(attribute, format!("@{}", attribute.name()));
        }
        let is_table = format.format.is_table();
        format.tag_columns = is_table.then(|| PROPERTIES.map(str::to_owned).into());
        let output = OpenOutput::open(file.target.clone(), ctx)?;
        Ok(Self {
            document: FeatureDocument::create(output, &format)?,
            text: FeatureText::new(&format),
            is_table,
        })
    }

    /// Writes `point` as a feature and, unless `lines` is empty, the lines as a second feature. Both features have the
    /// same properties. A table has a row for the point only.
    pub(super) fn put(
        &mut self,
        (kind, id): (ObjectKind, i64),
        properties: &[(&str, &str)],
        point: Point,
        lines: &[Vec<Point>],
    ) -> Result<()> {
        let line = match lines {
            _ if self.is_table => None,
            [] => None,
            [line] => Some(Geometry::LineString(line)),
            lines => Some(Geometry::MultiLineString(lines)),
        };
        for geometry in [Some(Geometry::Point(point)), line].into_iter().flatten() {
            let object = (kind, id);
            self.text
                .put(&Feature::new(object, Info::EMPTY, properties, geometry));
        }
        if self.text.len() < CHUNK {
            return Ok(());
        }
        self.document.put(&mut self.text)
    }

    /// Completes the file.
    pub(super) fn finish(mut self, ctx: &Context) -> Result<()> {
        self.document.put(&mut self.text)?;
        ctx.stats.bytes_written.add(self.document.finish()?);
        Ok(())
    }
}
