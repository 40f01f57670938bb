//! Tables of features.

use crate::arguments::{BoxEdges, Texts, context, kinds, region, tags};
use crate::batches::{Batches, TableSource};
use crate::facts::{Fact, FactValues, Row, Rows};
use crate::geometry_column::{GeometryColumn, geometry_field};
use crate::lists::TagColumn;
use crate::source::Source;
use crate::table::Table;
use crate::warnings::Warnings;
use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pbfhogg::commands::export::{
    self, FeatureFormat, FeatureMaker, FeatureOptions, FeatureView, LINE_RELATIONS,
};
use pbfhogg::{Context, Info, ObjectKind, Observer, OutputTarget, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    Tag {
        key: String,
        values: StringBuilder,
        /// Whether a feature has the tag.
        is_found: Arc<AtomicBool>,
    },
    Measure(Measure, Float64Builder),
    Geometry(GeometryColumn),
}

impl Values {
    fn of((column, is_found): (&Column, &Arc<AtomicBool>)) -> Self {
        match column {
            Column::Fact(fact) => Self::Fact(*fact, FactValues::of(*fact)),
            Column::Tag(key) => Self::Tag {
                key: key.clone(),
                values: StringBuilder::new(),
                is_found: is_found.clone(),
            },
            Column::Measure(measure) => Self::Measure(*measure, Float64Builder::new()),
            Column::Geometry => Self::Geometry(GeometryColumn::default()),
        }
    }

    /// Adds the value of a feature. Returns its size in bytes, as far as it has no fixed size.
    fn push(&mut self, feature: &FeatureView<'_>) -> usize {
        match self {
            Self::Fact(fact, values) => values.push(*fact, feature),
            Self::Tag {
                key: wanted,
                values,
                is_found,
            } => {
                let mut tags = feature.tags().iter();
                let found = tags.find(|(key, _)| key == wanted).map(|(_, value)| *value);
                values.append_option(found);
                // Threads that only read share the cache line.
                if found.is_some() && !is_found.load(Ordering::Relaxed) {
                    is_found.store(true, Ordering::Relaxed);
                }
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
            Self::Tag { values, .. } => Arc::new(values.finish()),
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

/// The batches of a table, which warn in the end of columns that have no value.
struct FeatureBatches {
    batches: pbfhogg::Batches<RecordBatch>,
    columns: Arc<[Column]>,
    /// Whether a feature has the tag of a column.
    are_found: Arc<[Arc<AtomicBool>]>,
    /// Whether there are features.
    has_rows: bool,
    warnings: Arc<Warnings>,
}

impl Batches for FeatureBatches {
    fn next_within(&mut self, time: Duration) -> Option<Option<Result<RecordBatch>>> {
        let next = self.batches.next_within(time)?;
        match &next {
            Some(Ok(batch)) => self.has_rows |= batch.num_rows() > 0,
            Some(Err(_)) => {}
            None if std::mem::take(&mut self.has_rows) => self.warn_of_missing_tags(),
            None => {}
        }
        Some(next)
    }
}

impl FeatureBatches {
    fn warn_of_missing_tags(&self) {
        let columns = self.columns.iter().zip(self.are_found.iter());
        for (column, is_found) in columns {
            if let Column::Tag(key) = column
                && !is_found.load(Ordering::Relaxed)
            {
                let fact = Fact::ALL.into_iter().find(|fact| fact.name() == key);
                let hint = fact.map(name_of).filter(|name| name != key);
                let hint = hint.map(|name| format!("; what every object has is {name:?}"));
                self.warnings.warn(&format!(
                    "columns: no feature has the tag {key:?}{}",
                    hint.unwrap_or_default()
                ));
            }
        }
    }
}

/// A table of features.
#[derive(Clone)]
struct FeatureTable {
    options: export::Options,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    ctx: Context,
    warnings: Arc<Warnings>,
}

impl TableSource for FeatureTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn without_columns(&self) -> Box<dyn TableSource> {
        Box::new(Self {
            columns: [].into(),
            schema: Schema::empty().into(),
            ..self.clone()
        })
    }

    fn start(&self) -> Box<dyn Batches> {
        let (columns, schema) = (self.columns.clone(), self.schema.clone());
        let is_metadata =
            |column: &Column| matches!(column, Column::Fact(fact) if fact.is_metadata());
        let needs_info = columns.iter().any(is_metadata);
        let are_found: Arc<[_]> = columns.iter().map(|_| Arc::default()).collect();
        let own = are_found.clone();
        let maker = move || {
            let values = columns.iter().zip(own.iter()).map(Values::of);
            FeatureColumns(Rows::new(schema.clone(), values))
        };
        Box::new(FeatureBatches {
            batches: export::batches(self.options.clone(), needs_info, maker, &self.ctx),
            columns: self.columns.clone(),
            are_found,
            has_rows: false,
            warnings: self.warnings.clone(),
        })
    }
}

/// Opens a table of the features of a file.
#[pyfunction]
#[pyo3(signature = (
    path, *, kinds=None, tags=None, bbox=None, polygon=None, clip=false, columns=None, geometry=true, jobs=0
))]
#[expect(clippy::too_many_arguments)]
pub fn features(
    py: Python<'_>,
    path: Source,
    kinds: Option<Texts>,
    tags: Option<Texts>,
    bbox: Option<BoxEdges>,
    polygon: Option<PathBuf>,
    clip: bool,
    columns: Option<Texts>,
    geometry: bool,
    jobs: i64,
) -> PyResult<Table> {
    let format = export::ExportFormat::Text(FeatureOptions::new(FeatureFormat::GeoJson));
    let options = export::Options::new(&path.path, OutputTarget::Stdout, format)
        .kinds(self::kinds(kinds)?)
        .filter(self::tags("tags", tags)?)
        .line_relations(LINE_RELATIONS.map(str::to_owned).into())
        .temp_dir(Some(std::env::temp_dir()));
    let region = region(py, bbox, polygon)?;
    if clip && region.is_none() {
        return Err(PyValueError::new_err(
            "clip: there is no bbox or polygon to clip to",
        ));
    }
    let options = options.clip(region.clone().filter(|_| clip)).region(region);
    let names = columns.map(|Texts(names)| names);
    let names = names.unwrap_or_else(|| ["osm_type", "osm_id", "tags"].map(str::to_owned).into());
    let mut columns: Vec<Column> = names.iter().map(|name| Column::named(name)).collect();
    if geometry && !columns.contains(&Column::Geometry) {
        columns.push(Column::Geometry);
    }
    let fields: Vec<_> = columns.iter().map(Column::field).collect();
    let warnings = Arc::<Warnings>::default();
    let ctx = context(jobs, [&path])?.with_observer(warnings.clone());
    path.check(py, &ctx)?;
    let source = FeatureTable {
        options,
        schema: Arc::new(Schema::new(fields)),
        columns: columns.into(),
        ctx,
        warnings: warnings.clone(),
    };
    Ok(Table::new(source, warnings))
}
