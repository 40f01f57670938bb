//! Tables of objects.

use crate::arguments::{BoxEdges, GivenArea, Ids, Texts, columns_of, context, selection};
use crate::batches::interruptible;
use crate::error::OrRaise;
use crate::rows::TableRows;
use crate::source::Source;
use crate::splits::part_of;
use crate::table::Table;
use crate::warnings::Warnings;
use arrow_array::RecordBatch;
use pbfhogg::read::BatchMaker;
use pbfhogg::unstable::formats::{ElementRows, OBJECT_COLUMNS, ObjectView, TableColumn};
use pbfhogg::{Element, FormatError, KindSet, ObjectKind};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

impl BatchMaker for TableRows<ElementRows> {
    type Batch = RecordBatch;

    fn add(&mut self, element: &Element<'_>) -> Result<(), FormatError> {
        self.add(&ObjectView::Stored(element));
        Ok(())
    }

    fn take(&mut self) -> Option<RecordBatch> {
        self.take()
    }

    fn is_full(&self) -> bool {
        self.is_full()
    }
}

/// The columns of a table of some kinds, if none are asked for. The table of a history has deletions.
fn default_columns(kinds: KindSet, is_history: bool) -> Vec<TableColumn<ElementRows>> {
    let is_default = |column: &TableColumn<ElementRows>| match column.name {
        "type" => kinds.single().is_none(),
        "visible" => is_history,
        "lat" | "lon" => kinds.contains(ObjectKind::Node),
        "refs" => kinds.contains(ObjectKind::Way),
        "action" | "locations" => false,
        "members" => kinds.contains(ObjectKind::Relation),
        _ => true,
    };
    OBJECT_COLUMNS.into_iter().filter(is_default).collect()
}

/// Opens a table of the objects of a file.
#[pyfunction]
#[pyo3(signature = (
    path, *, kinds=None, tags=None, bbox=None, polygon=None, area=None, ids=None, columns=None, split=None, jobs=0
))]
#[expect(clippy::too_many_arguments)]
pub fn read(
    py: Python<'_>,
    path: Source,
    kinds: Option<Texts>,
    tags: Option<Texts>,
    bbox: Option<BoxEdges>,
    polygon: Option<PathBuf>,
    area: Option<String>,
    ids: Option<Ids<'_>>,
    columns: Option<Texts>,
    split: Option<Bound<'_, PyAny>>,
    jobs: i64,
) -> PyResult<Table> {
    let part = split.as_ref().map(part_of).transpose()?;
    let mut selection = selection(py, kinds, tags, bbox, ids, part)?;
    let kinds = selection.kinds.unwrap_or(pbfhogg::KindSet::ALL);
    let named = columns.map(|names| {
        let mut all = OBJECT_COLUMNS.to_vec();
        all.retain(|column| column.name != "action");
        columns_of(&all, names)
    });
    let named = named.transpose()?;
    let warnings = Arc::<Warnings>::default();
    let ctx = context(jobs, [&path])?.with_observer(warnings.clone());
    let (given, has_bbox) = (GivenArea { polygon, area }, selection.bbox.is_some());
    selection.region = given.shape(py, has_bbox, &path.path, &ctx)?;
    let own = ctx.clone();
    let open = move || pbfhogg::read::open(&path.path, &own)?.select(selection);
    let reader = Arc::new(interruptible(py, &ctx, open)?.or_raise(py)?);
    let columns = named.unwrap_or_else(|| default_columns(kinds, reader.is_history()));
    Ok(Table::described(columns, warnings, move |rows| {
        Box::new(reader.batches(rows))
    }))
}
