//! Facts about a file.

use crate::arguments::context;
use crate::batches::interruptible;
use crate::error::OrRaise;
use crate::source::Source;
use pyo3::prelude::*;

/// Returns facts about a file as JSON.
#[pyfunction]
pub fn info(py: Python<'_>, path: Source) -> PyResult<String> {
    let ctx = context(0, [&path])?;
    let own = ctx.clone();
    let report = interruptible(py, &ctx, move || {
        let options = pbfhogg::commands::inspect::Options::new(path.path);
        pbfhogg::commands::inspect::run(&options, &own)
    })?;
    let report = report.or_raise(py)?;
    serde_json::to_string(&report)
        .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}
