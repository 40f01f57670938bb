//! Tables of change files.

use crate::arguments::{Texts, columns_of, context, kinds};
use crate::rows::TableRows;
use crate::source::Source;
use crate::table::Table;
use crate::warnings::Warnings;
use arrow_array::RecordBatch;
use pbfhogg::changes::{Change, ChangeMaker, batches};
use pbfhogg::unstable::formats::{ElementRows, OBJECT_COLUMNS, ObjectView};
use pbfhogg::{KindSet, Object};
use pyo3::prelude::*;
use std::sync::Arc;

/// Collects the changes of some kinds of objects.
struct Changes {
    rows: TableRows<ElementRows>,
    kinds: KindSet,
}

impl ChangeMaker for Changes {
    type Batch = RecordBatch;

    fn add(&mut self, change: &Change, object: &Object<'_>) {
        if self.kinds.contains(object.kind()) {
            self.rows.add(&ObjectView::Changed(change, object));
        }
    }

    fn take(&mut self) -> Option<RecordBatch> {
        self.rows.take()
    }

    fn is_full(&self) -> bool {
        self.rows.is_full()
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
    let mut all = OBJECT_COLUMNS.to_vec();
    all.retain(|column| column.name != "visible");
    let columns = match columns {
        Some(names) => columns_of(&all, names)?,
        None => {
            all.retain(|column| column.name != "locations");
            all
        }
    };
    let warnings = Arc::<Warnings>::default();
    let ctx = context(jobs, [&path])?.with_observer(warnings.clone());
    path.check(py, &ctx)?;
    let path = path.path;
    Ok(Table::described(columns, warnings, move |rows| {
        let maker = move || Changes {
            rows: rows(),
            kinds,
        };
        Box::new(batches(&path, maker, &ctx))
    }))
}
