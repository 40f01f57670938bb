//! The commands of the program.

use crate::arguments::context;
use crate::batches::interruptible;
use crate::error::to_python;
use crate::warnings::Warnings;
use pbfhogg::cli::{CallError, Called};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::sync::Arc;

/// Runs a command. Returns whether its exit status would be 0, and what it prints.
#[pyfunction]
pub fn call(py: Python<'_>, words: Vec<OsString>) -> PyResult<(bool, String)> {
    let warnings = Arc::new(Warnings::default());
    let ctx = context(0, [])?.with_observer(warnings.clone());
    let own = ctx.clone();
    let result = interruptible(py, &ctx, move || pbfhogg::cli::call(words, &own))?;
    warnings.raise(py)?;
    match result {
        Ok(Called { is_yes, printed }) => Ok((is_yes, printed)),
        Err(CallError::Failed(error)) => Err(to_python(py, &error)),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// Describes the commands as JSON.
#[pyfunction]
pub fn commands() -> PyResult<String> {
    serde_json::to_string(&pbfhogg::cli::commands())
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Runs the program with a command line, and returns its exit status.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| pbfhogg::cli::main_with(words))
}
