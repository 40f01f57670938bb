//! Tables of augmented diffs.

use crate::arguments::{BoxEdges, Texts, columns_of, context, region, tags};
use crate::batches::{Batches, TableSource};
use crate::facts::{Fact, FactValues, Row, Rows};
use crate::geometry_column::{GeometryColumn, geometry_field};
use crate::lists::{TagColumn, tags_type};
use crate::source::{Source, Sources};
use crate::table::Table;
use crate::warnings::Warnings;
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int32Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use pbfhogg::commands::augmented_diff::{self, ActionMaker, ActionView, Selection};
use pbfhogg::{Context, Info, ObjectKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A column of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Action,
    /// A fact about the object after the changes.
    Fact(Fact),
    Indirect,
    OldVersion,
    OldTags,
    Bbox,
    OldGeometry,
    NewGeometry,
}

impl Column {
    /// All columns, in the order of a table. They are those of the tables that the program writes.
    const ALL: [Self; 15] = [
        Self::Action,
        Self::Fact(Fact::Type),
        Self::Fact(Fact::Id),
        Self::Indirect,
        Self::Fact(Fact::Changeset),
        Self::Fact(Fact::Timestamp),
        Self::Fact(Fact::Uid),
        Self::Fact(Fact::User),
        Self::OldVersion,
        Self::Fact(Fact::Version),
        Self::OldTags,
        Self::Fact(Fact::Tags),
        Self::Bbox,
        Self::OldGeometry,
        Self::NewGeometry,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Fact(Fact::Version) => "new_version",
            Self::Fact(Fact::Tags) => "new_tags",
            Self::Fact(fact) => fact.name(),
            Self::Indirect => "indirect",
            Self::OldVersion => "old_version",
            Self::OldTags => "old_tags",
            Self::Bbox => "bbox",
            Self::OldGeometry => "old_geometry",
            Self::NewGeometry => "new_geometry",
        }
    }

    fn field(self) -> Field {
        let (data_type, is_nullable) = match self {
            Self::Fact(Fact::Tags) => (tags_type(), true),
            Self::Fact(fact) => return fact.field(self.name()),
            Self::OldGeometry | Self::NewGeometry => return geometry_field(self.name(), true),
            Self::Action => (DataType::Utf8, false),
            Self::Indirect => (DataType::Boolean, false),
            Self::OldVersion => (DataType::Int32, true),
            Self::OldTags => (tags_type(), true),
            Self::Bbox => (DataType::Struct(edges()), true),
        };
        Field::new(self.name(), data_type, is_nullable)
    }
}

/// The fields of a box.
fn edges() -> Fields {
    let names = ["xmin", "ymin", "xmax", "ymax"];
    let fields = names.map(|name| Field::new(name, DataType::Float64, false));
    fields.to_vec().into()
}

impl Row for ActionView<'_> {
    fn kind(&self) -> ObjectKind {
        self.kind()
    }

    fn id(&self) -> i64 {
        self.id()
    }

    fn info(&self) -> Info<'_> {
        self.info()
    }

    fn put_tags(&self, tags: &mut TagColumn) -> usize {
        tags.push_optional(self.new_tags())
    }
}

/// The values of a column.
enum Values {
    Action(StringBuilder),
    Fact(Fact, FactValues),
    Indirect(BooleanBuilder),
    OldVersion(Int32Builder),
    OldTags(TagColumn),
    Bbox([Float64Builder; 4], NullBufferBuilder),
    OldGeometry(GeometryColumn),
    NewGeometry(GeometryColumn),
}

impl Values {
    fn of(column: Column) -> Self {
        match column {
            Column::Action => Self::Action(StringBuilder::new()),
            Column::Fact(fact) => Self::Fact(fact, FactValues::of(fact)),
            Column::Indirect => Self::Indirect(BooleanBuilder::new()),
            Column::OldVersion => Self::OldVersion(Int32Builder::new()),
            Column::OldTags => Self::OldTags(TagColumn::default()),
            Column::Bbox => Self::Bbox(Default::default(), NullBufferBuilder::new(0)),
            Column::OldGeometry => Self::OldGeometry(GeometryColumn::default()),
            Column::NewGeometry => Self::NewGeometry(GeometryColumn::default()),
        }
    }

    /// Adds the value of an action. Returns its size in bytes, as far as it has no fixed size.
    fn push(&mut self, action: &ActionView<'_>) -> usize {
        match self {
            Self::Action(values) => values.append_value(action.action().name()),
            Self::Fact(fact, values) => return values.push(*fact, action),
            Self::Indirect(values) => values.append_value(action.is_indirect()),
            Self::OldVersion(values) => {
                values.append_option(action.old_version().map(|version| version as i32));
            }
            Self::OldTags(tags) => return tags.push_optional(action.old_tags()),
            Self::Bbox(values, is_there) => {
                let edges = action.edges();
                is_there.append(edges.is_some());
                let edges = edges.unwrap_or_default();
                let edges = [edges.west, edges.south, edges.east, edges.north];
                for (values, edge) in values.iter_mut().zip(edges) {
                    values.append_value(f64::from(edge) / 1e7);
                }
            }
            Self::OldGeometry(column) => return column.push(|wkb| action.put_old_wkb(wkb)),
            Self::NewGeometry(column) => return column.push(|wkb| action.put_new_wkb(wkb)),
        }
        0
    }

    /// Ends the column, and returns it as an array.
    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Action(values) => Arc::new(values.finish()),
            Self::Fact(_, values) => values.finish(),
            Self::Indirect(values) => Arc::new(values.finish()),
            Self::OldVersion(values) => Arc::new(values.finish()),
            Self::OldTags(tags) => tags.finish(),
            Self::Bbox(values, is_there) => {
                let columns = values.iter_mut();
                let columns = columns.map(|values| Arc::new(values.finish()) as ArrayRef);
                Arc::new(StructArray::new(
                    edges(),
                    columns.collect(),
                    is_there.finish(),
                ))
            }
            Self::OldGeometry(column) | Self::NewGeometry(column) => column.finish(),
        }
    }
}

/// Collects actions as record batches.
struct ActionColumns(Rows<Values>);

impl ActionMaker for ActionColumns {
    type Batch = RecordBatch;

    fn add(&mut self, action: &ActionView<'_>) {
        self.0.add(|values| values.push(action));
    }

    fn take(&mut self) -> Option<RecordBatch> {
        self.0.take(Values::finish)
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }
}

/// A table of what changes do to a file.
#[derive(Clone)]
struct ActionTable {
    base: PathBuf,
    changes: Vec<PathBuf>,
    selection: Selection,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    ctx: Context,
}

impl TableSource for ActionTable {
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
        let values = move || columns.iter().copied().map(Values::of).collect::<Vec<_>>();
        let maker = move || ActionColumns(Rows::new(schema.clone(), values()));
        let (changes, selection) = (self.changes.clone(), self.selection.clone());
        let batches = augmented_diff::batches(&self.base, changes, selection, maker, &self.ctx);
        Box::new(batches)
    }
}

/// Opens a table of what changes do to a file.
#[pyfunction]
#[pyo3(signature = (
    base, changes, *, direct_only=false, filter=None, bbox=None, polygon=None, max_relation_members=None,
    columns=None, jobs=0
))]
#[expect(clippy::too_many_arguments)]
pub fn actions(
    py: Python<'_>,
    base: Source,
    changes: Sources,
    direct_only: bool,
    filter: Option<Texts>,
    bbox: Option<BoxEdges>,
    polygon: Option<PathBuf>,
    max_relation_members: Option<i64>,
    columns: Option<Texts>,
    jobs: i64,
) -> PyResult<Table> {
    let max_relation_members = max_relation_members.map(|count| {
        u64::try_from(count).map_err(|_| {
            let cause = format!("max_relation_members: expected at least 0, not {count}");
            PyValueError::new_err(cause)
        })
    });
    let selection = Selection::default()
        .direct_only(direct_only)
        .filter(tags("filter", filter)?)
        .region(region(py, bbox, polygon)?)
        .max_relation_members(max_relation_members.transpose()?);
    let all = Column::ALL.to_vec();
    let columns = match columns {
        None => all,
        Some(names) => columns_of(all, Column::name, names)?,
    };
    let base = base.named("base");
    let changes = changes.0.into_iter().enumerate();
    let changes: Vec<_> = changes
        .map(|(index, source)| source.named(&format!("changes[{index}]")))
        .collect();
    let sources: Vec<_> = changes.iter().chain([&base]).cloned().collect();
    let warnings = Arc::<Warnings>::default();
    let ctx = context(jobs, &sources)?.with_observer(warnings.clone());
    sources
        .iter()
        .try_for_each(|source| source.check(py, &ctx))?;
    let fields: Vec<_> = columns.iter().map(|column| column.field()).collect();
    let source = ActionTable {
        base: base.path,
        changes: changes.into_iter().map(|source| source.path).collect(),
        selection,
        columns: columns.into(),
        schema: Arc::new(Schema::new(fields)),
        ctx,
    };
    Ok(Table::new(source, warnings))
}
