//! Tables of features.

use crate::arguments::{BoxEdges, OneOrMany, bbox, context, kinds, tags};
use crate::batches::{Batches, TableSource};
use crate::facts::{Fact, FactValues, Row, Rows};
use crate::geometry_column::{GeometryColumn, geometry_field};
use crate::lists::TagColumn;
use crate::source::Source;
use crate::table::Table;
use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pbfhogg::areas::Shape;
use pbfhogg::commands::export::{
    self, FeatureFormat, FeatureMaker, FeatureOptions, FeatureView, LINE_RELATIONS,
};
use pbfhogg::{Context, Info, ObjectKind, OutputTarget};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// A column of features.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Fact(Fact),
    /// The value of a tag.
    Tag(String),
    Measure(Measure),
    Geometry,
}

/// A measure of a geometry on the ellipsoid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Area,
    Length,
}

impl Column {
    /// Returns the column with a name, which is the key of a tag if no other column has it.
    fn named(name: &str) -> Self {
        let known = |fact: &Fact| name_of(*fact) == name && *fact != Fact::Visible;
        match Fact::ALL.into_iter().find(known) {
            Some(fact) => Self::Fact(fact),
            None if name == "geometry" => Self::Geometry,
            None if name == "area_m2" => Self::Measure(Measure::Area),
            None if name == "length_m" => Self::Measure(Measure::Length),
            None => Self::Tag(name.to_owned()),
        }
    }

    fn field(&self) -> Field {
        match self {
            Self::Fact(fact) => fact.field(name_of(*fact)),
            Self::Tag(key) => Field::new(key, DataType::Utf8, true),
            Self::Measure(Measure::Area) => Field::new("area_m2", DataType::Float64, true),
            Self::Measure(Measure::Length) => Field::new("length_m", DataType::Float64, true),
            Self::Geometry => geometry_field("geometry", false),
        }
    }
}

/// The name of a column of features, as in the tables that the program writes.
const fn name_of(fact: Fact) -> &'static str {
    match fact {
        Fact::Type => "osm_type",
        Fact::Id => "osm_id",
        _ => fact.name(),
    }
}

impl Row for FeatureView<'_> {
    fn kind(&self) -> ObjectKind {
        self.kind()
    }

    fn id(&self) -> i64 {
        self.id()
    }

    fn info(&self) -> Info<'_> {
        *self.info()
    }

    fn put_tags(&self, tags: &mut TagColumn) -> usize {
        tags.push(self.tags().iter().copied())
    }
}

/// The values of a column.
enum Values {
    Fact(Fact, FactValues),
    Tag(String, StringBuilder),
    Measure(Measure, Float64Builder),
    Geometry(GeometryColumn),
}

impl Values {
    fn of(column: &Column) -> Self {
        match column {
            Column::Fact(fact) => Self::Fact(*fact, FactValues::of(*fact)),
            Column::Tag(key) => Self::Tag(key.clone(), StringBuilder::new()),
            Column::Measure(measure) => Self::Measure(*measure, Float64Builder::new()),
            Column::Geometry => Self::Geometry(GeometryColumn::default()),
        }
    }

    /// Adds the value of a feature. Returns its size in bytes, as far as it has no fixed size.
    fn push(&mut self, feature: &FeatureView<'_>) -> usize {
        match self {
            Self::Fact(fact, values) => values.push(*fact, feature),
            Self::Tag(wanted, values) => {
                let mut tags = feature.tags().iter();
                let found = tags.find(|(key, _)| key == wanted).map(|(_, value)| *value);
                values.append_option(found);
                found.map_or(0, str::len)
            }
            Self::Measure(measure, values) => {
                values.append_option(match measure {
                    Measure::Area => feature.area_m2(),
                    Measure::Length => feature.length_m(),
                });
                0
            }
            Self::Geometry(geometries) => geometries.push(|wkb| {
                feature.put_wkb(wkb);
                true
            }),
        }
    }

    /// Ends the column, and returns it as an array.
    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Fact(_, values) => values.finish(),
            Self::Tag(_, values) => Arc::new(values.finish()),
            Self::Measure(_, values) => Arc::new(values.finish()),
            Self::Geometry(geometries) => geometries.finish(),
        }
    }
}

/// Collects features as record batches.
struct FeatureColumns(Rows<Values>);

impl FeatureMaker for FeatureColumns {
    type Batch = RecordBatch;

    fn add(&mut self, feature: &FeatureView<'_>) {
        self.0.add(|values| values.push(feature));
    }

    fn take(&mut self) -> Option<RecordBatch> {
        self.0.take(Values::finish)
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }
}

/// A table of features.
struct FeatureTable {
    options: export::Options,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    ctx: Context,
}

impl TableSource for FeatureTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn start(&self) -> Box<dyn Batches> {
        let (columns, schema) = (self.columns.clone(), self.schema.clone());
        let is_metadata =
            |column: &Column| matches!(column, Column::Fact(fact) if fact.is_metadata());
        let needs_info = columns.iter().any(is_metadata);
        let maker =
            move || FeatureColumns(Rows::new(schema.clone(), columns.iter().map(Values::of)));
        let batches = export::batches(self.options.clone(), needs_info, maker, &self.ctx);
        Box::new(batches)
    }
}

/// Opens a table of the features of a file.
#[pyfunction]
#[pyo3(signature = (
    path, *, kinds=None, tags=None, bbox=None, clip=false, columns=None, geometry=true, jobs=0
))]
#[expect(clippy::too_many_arguments)]
pub fn features(
    py: Python<'_>,
    path: Source,
    kinds: Option<OneOrMany<String>>,
    tags: Option<OneOrMany<String>>,
    bbox: Option<BoxEdges>,
    clip: bool,
    columns: Option<Vec<String>>,
    geometry: bool,
    jobs: usize,
) -> PyResult<Table> {
    let format = export::ExportFormat::Text(FeatureOptions::new(FeatureFormat::GeoJson));
    let mut options = export::Options::new(&path.path, OutputTarget::Stdout, format)
        .kinds(self::kinds(kinds)?)
        .filter(self::tags("tags", tags)?)
        .line_relations(LINE_RELATIONS.map(str::to_owned).into())
        .temp_dir(Some(std::env::temp_dir()));
    let region = self::bbox(py, bbox)?.map(|bbox| Shape::of_bbox(&bbox));
    if clip && region.is_none() {
        return Err(PyValueError::new_err("clip: there is no bbox to clip to"));
    }
    options.clip = region.clone().filter(|_| clip);
    options.region = region;
    let names = columns.unwrap_or_else(|| ["osm_type", "osm_id", "tags"].map(str::to_owned).into());
    let mut columns: Vec<Column> = names.iter().map(|name| Column::named(name)).collect();
    if geometry && !columns.contains(&Column::Geometry) {
        columns.push(Column::Geometry);
    }
    let fields: Vec<_> = columns.iter().map(Column::field).collect();
    let ctx = context(jobs, [&path])?;
    path.check(py, &ctx)?;
    Ok(Table::new(FeatureTable {
        options,
        schema: Arc::new(Schema::new(fields)),
        columns: columns.into(),
        ctx,
    }))
}
