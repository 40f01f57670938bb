//! Tables of features.

use crate::arguments::{BoxEdges, GivenArea, Texts, context, kinds, region, tags};
use crate::batches::Batches;
use crate::builders::{ColumnBuilder, field};
use crate::rows::Rows;
use crate::source::Source;
use crate::table::{MadeTable, Table};
use crate::warnings::Warnings;
use arrow_array::RecordBatch;
use arrow_array::builder::StringBuilder;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pbfhogg::commands::export::{self, FeatureMaker, FeatureRules, FeatureView, LookupOptions};
use pbfhogg::unstable::formats::{ColumnGetter, RowType, TableColumn};
use pbfhogg::{Context, Observer, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The rows of a table of features.
#[derive(Clone, Copy)]
struct FeatureRows;

impl RowType for FeatureRows {
    type Row<'r> = FeatureView<'r>;
}

type FeatureColumn = TableColumn<FeatureRows>;

/// The columns that all features have, under the names of the tables that the program writes.
const COLUMNS: [FeatureColumn; 11] = {
    use ColumnGetter::{Double, Geometry};
    let [version, timestamp, changeset, uid, user] = FeatureColumn::METADATA;
    [
        FeatureColumn::TYPE.named("osm_type"),
        FeatureColumn::ID.named("osm_id"),
        version,
        timestamp,
        changeset,
        uid,
        user,
        FeatureColumn::TAGS,
        FeatureColumn::optional("area_m2", Double(|feature| feature.area_m2())),
        FeatureColumn::optional("length_m", Double(|feature| feature.length_m())),
        FeatureColumn::required(
            "geometry",
            Geometry(|feature, out| {
                feature.put_wkb(out);
                true
            }),
        ),
    ]
};

/// A column of features.
#[derive(Clone)]
enum Column {
    Known(FeatureColumn),
    /// The value of a tag.
    Tag(String),
}

impl Column {
    /// Returns the column with a name, which is the key of a tag if no other column has it.
    fn named(name: &str) -> Self {
        let known = COLUMNS.into_iter().find(|column| column.name == name);
        known.map_or_else(|| Self::Tag(name.to_owned()), Self::Known)
    }

    fn field(&self) -> Field {
        match self {
            Self::Known(column) => field(column),
            Self::Tag(key) => Field::new(key, DataType::Utf8, true),
        }
    }

    fn is_metadata(&self) -> bool {
        let is = |name| {
            FeatureColumn::METADATA
                .iter()
                .any(|column| column.name == name)
        };
        matches!(self, Self::Known(column) if is(column.name))
    }
}

/// The values of a column.
struct Values {
    source: ValueSource,
    builder: ColumnBuilder,
}

/// The source of the values of a column.
enum ValueSource {
    Known(ColumnGetter<FeatureRows>),
    /// The tag with a key, and whether a feature has it.
    Tag(String, Arc<AtomicBool>),
}

impl Values {
    fn of((column, is_found): (&Column, &Arc<AtomicBool>)) -> Self {
        match column {
            Column::Known(FeatureColumn { getter, .. }) => Self {
                source: ValueSource::Known(*getter),
                builder: ColumnBuilder::of(getter),
            },
            Column::Tag(key) => Self {
                source: ValueSource::Tag(key.clone(), is_found.clone()),
                builder: ColumnBuilder::Text(StringBuilder::new()),
            },
        }
    }

    /// Adds the value of a feature. Returns its size in bytes, as far as it has no fixed size.
    fn push(&mut self, feature: &FeatureView<'_>) -> usize {
        match &self.source {
            ValueSource::Known(getter) => self.builder.push(getter, feature),
            ValueSource::Tag(wanted, is_found) => {
                let mut tags = feature.tags().iter();
                let found = tags.find(|(key, _)| key == wanted).map(|(_, value)| *value);
                // Threads that only read share the cache line.
                if found.is_some() && !is_found.load(Ordering::Relaxed) {
                    is_found.store(true, Ordering::Relaxed);
                }
                self.builder.push_text(found)
            }
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
        self.0.take(|values| values.builder.finish())
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
    fn start(
        path: &Path,
        rules: &FeatureRules,
        columns: Arc<[Column]>,
        schema: SchemaRef,
        ctx: &Context,
        warnings: &Arc<Warnings>,
    ) -> Self {
        let needs_info = columns.iter().any(Column::is_metadata);
        let are_found: Arc<[_]> = columns.iter().map(|_| Arc::default()).collect();
        let (of_makers, own) = (columns.clone(), are_found.clone());
        let maker = move || {
            let values = of_makers.iter().zip(own.iter()).map(Values::of);
            FeatureColumns(Rows::new(schema.clone(), values))
        };
        Self {
            batches: export::batches(
                path,
                rules.clone(),
                LookupOptions::default(),
                needs_info,
                maker,
                ctx,
            ),
            columns,
            are_found,
            has_rows: false,
            warnings: warnings.clone(),
        }
    }

    fn warn_of_missing_tags(&self) {
        let columns = self.columns.iter().zip(self.are_found.iter());
        for (column, is_found) in columns {
            if let Column::Tag(key) = column
                && !is_found.load(Ordering::Relaxed)
            {
                let name = format!("osm_{key}");
                let hint = COLUMNS.iter().any(|column| column.name == name);
                let hint = hint.then(|| format!("; what every object has is {name:?}"));
                self.warnings.warn(&format!(
                    "columns: no feature has the tag {key:?}{}",
                    hint.unwrap_or_default()
                ));
            }
        }
    }
}

/// Opens a table of the features of a file.
#[pyfunction]
#[pyo3(signature = (
    path, *, kinds=None, tags=None, bbox=None, polygon=None, area=None, clip=false, columns=None, geometry=true,
    jobs=0
))]
#[expect(clippy::too_many_arguments)]
pub fn features(
    py: Python<'_>,
    path: Source,
    kinds: Option<Texts>,
    tags: Option<Texts>,
    bbox: Option<BoxEdges>,
    polygon: Option<PathBuf>,
    area: Option<String>,
    clip: bool,
    columns: Option<Texts>,
    geometry: bool,
    jobs: i64,
) -> PyResult<Table> {
    let rules = FeatureRules::default()
        .with_line_relations()
        .kinds(self::kinds(kinds)?)
        .filter(self::tags("tags", tags)?);
    let warnings = Arc::<Warnings>::default();
    let ctx = context(jobs, [&path])?.with_observer(warnings.clone());
    path.check(py, &ctx)?;
    let region = region(py, bbox, GivenArea { polygon, area }, &path.path, &ctx)?;
    if clip && region.is_none() {
        return Err(PyValueError::new_err(
            "clip: there is no bbox, polygon or area to clip to",
        ));
    }
    let rules = rules.clip(region.clone().filter(|_| clip)).region(region);
    let names = columns.map(|Texts(names)| names);
    let mut names =
        names.unwrap_or_else(|| ["osm_type", "osm_id", "tags"].map(str::to_owned).into());
    if geometry && !names.iter().any(|name| name == "geometry") {
        names.push("geometry".to_owned());
    }
    let columns: Vec<Column> = names.iter().map(|name| Column::named(name)).collect();
    let fields: Vec<_> = columns.iter().map(Column::field).collect();
    let own = warnings.clone();
    let path = path.path;
    let source: MadeTable<Column> = MadeTable {
        schema: Arc::new(Schema::new(fields)),
        columns: columns.into(),
        start: Arc::new(move |columns, schema| {
            Box::new(FeatureBatches::start(
                &path, &rules, columns, schema, &ctx, &own,
            ))
        }),
    };
    Ok(Table::new(source, warnings))
}
