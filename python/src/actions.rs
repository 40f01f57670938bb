//! Tables of augmented diffs.

use crate::arguments::{BoxEdges, GivenArea, Texts, columns_of, context, region, tags};
use crate::rows::TableRows;
use crate::source::{Source, Sources};
use crate::table::Table;
use crate::warnings::Warnings;
use arrow_array::RecordBatch;
use pbfhogg::commands::augmented_diff::{self, ActionMaker, ActionView, Selection};
use pbfhogg::unstable::formats::{ACTION_COLUMNS, ActionRows};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

impl ActionMaker for TableRows<ActionRows> {
    type Batch = RecordBatch;

    fn add(&mut self, action: &ActionView<'_>) {
        self.add(action);
    }

    fn take(&mut self) -> Option<RecordBatch> {
        self.take()
    }

    fn is_full(&self) -> bool {
        self.is_full()
    }
}

/// Opens a table of what changes do to a file.
#[pyfunction]
#[pyo3(signature = (
    base, changes, *, direct_only=false, filter=None, bbox=None, polygon=None, area=None,
    max_relation_members=None, columns=None, jobs=0
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
    area: Option<String>,
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
    let (filter, max_relation_members) =
        (tags("filter", filter)?, max_relation_members.transpose()?);
    let columns = match columns {
        None => ACTION_COLUMNS.to_vec(),
        Some(names) => columns_of(&ACTION_COLUMNS, names)?,
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
    let region = region(py, bbox, GivenArea { polygon, area }, &base.path, &ctx)?;
    let selection = Selection::default()
        .direct_only(direct_only)
        .filter(filter)
        .region(region)
        .max_relation_members(max_relation_members);
    let base = base.path;
    let changes: Vec<_> = changes.into_iter().map(|source| source.path).collect();
    Ok(Table::described(columns, warnings, move |rows| {
        let (changes, selection) = (changes.clone(), selection.clone());
        Box::new(augmented_diff::batches(
            &base, changes, selection, rows, &ctx,
        ))
    }))
}
