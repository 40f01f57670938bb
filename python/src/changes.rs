//! Tables of change files.

use crate::arguments::{Texts, context, kinds};
use crate::batches::{Batches, TableSource};
use crate::facts::Row;
use crate::lists::TagColumn;
use crate::object_columns::{Column, ObjectColumns, ObjectRow, schema};
use crate::source::Source;
use crate::table::Table;
use crate::warnings::Warnings;
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use pbfhogg::changes::{Change, ChangeAction, ChangeMaker, batches};
use pbfhogg::{Context, Info, KindSet, Location, Member, Object, ObjectBody, ObjectKind};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A change and its object.
struct ChangedObject<'o>(&'o Change, &'o Object<'o>);

impl Row for ChangedObject<'_> {
    fn kind(&self) -> ObjectKind {
        self.1.kind()
    }

    fn id(&self) -> i64 {
        self.1.id
    }

    fn info(&self) -> Info<'_> {
        self.1.info
    }

    fn put_tags(&self, tags: &mut TagColumn) -> usize {
        tags.push(self.1.tags.iter().copied())
    }
}

impl ObjectRow for ChangedObject<'_> {
    fn action(&self) -> Option<ChangeAction> {
        Some(self.0.action)
    }

    fn location(&self) -> Option<Location> {
        match &self.1.body {
            ObjectBody::Node { location } => *location,
            _ => None,
        }
    }

    fn for_each_ref(&self, put: impl FnMut(i64)) {
        if let ObjectBody::Way { refs, .. } = &self.1.body {
            refs.iter().copied().for_each(put);
        }
    }

    fn for_each_location(&self, put: impl FnMut(Option<Location>)) {
        if let ObjectBody::Way { locations, .. } = &self.1.body {
            locations.iter().copied().for_each(put);
        }
    }

    fn for_each_member(&self, put: impl FnMut(Member<'_>)) {
        if let ObjectBody::Relation { members } = &self.1.body {
            members.iter().copied().for_each(put);
        }
    }
}

/// Collects the changes of some kinds of objects.
struct Changes {
    columns: ObjectColumns,
    kinds: KindSet,
}

impl ChangeMaker for Changes {
    type Batch = RecordBatch;

    fn add(&mut self, change: &Change, object: &Object<'_>) {
        if self.kinds.contains(object.kind()) {
            self.columns.add(&ChangedObject(change, object));
        }
    }

    fn take(&mut self) -> Option<RecordBatch> {
        self.columns.take()
    }

    fn is_full(&self) -> bool {
        self.columns.is_full()
    }
}

/// A table of the changes of a file.
#[derive(Clone)]
struct ChangeTable {
    path: PathBuf,
    kinds: KindSet,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    ctx: Context,
}

impl TableSource for ChangeTable {
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
        let (columns, schema, kinds) = (self.columns.clone(), self.schema.clone(), self.kinds);
        let maker = move || Changes {
            columns: ObjectColumns::new(&columns, schema.clone()),
            kinds,
        };
        Box::new(batches(&self.path, maker, &self.ctx))
    }
}

/// Opens a table of the changes of a file.
#[pyfunction]
#[pyo3(signature = (path, *, kinds=None, columns=None, jobs=0))]
pub fn changes(
    py: Python<'_>,
    path: Source,
    kinds: Option<Texts>,
    columns: Option<Texts>,
    jobs: i64,
) -> PyResult<Table> {
    let kinds = self::kinds(kinds)?;
    let is_default = |column: &Column| *column != Column::Locations;
    let defaults = || Column::of_changes().filter(is_default).collect();
    let columns = columns.map(Column::named_of_changes).transpose()?;
    let columns: Arc<[Column]> = columns.unwrap_or_else(defaults).into();
    let warnings = Arc::<Warnings>::default();
    let ctx = context(jobs, [&path])?.with_observer(warnings.clone());
    path.check(py, &ctx)?;
    let source = ChangeTable {
        path: path.path,
        kinds,
        schema: schema(&columns),
        columns,
        ctx,
    };
    Ok(Table::new(source, warnings))
}
