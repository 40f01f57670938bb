//! The commands of the program.

use crate::arguments::context;
use crate::error::to_python;
use crossbeam_channel::{RecvTimeoutError, bounded};
use pbfhogg::cli::{CallError, Called};
use pbfhogg::{Context, Observer};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Keeps warnings until the command has ended.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Observer for Warnings {
    fn warn(&self, message: &str) {
        if let Ok(mut warnings) = self.0.lock() {
            warnings.push(message.to_owned());
        }
    }
}

/// Runs a command. Returns whether its exit status would be 0, and what it prints.
#[pyfunction]
pub fn call(py: Python<'_>, words: Vec<OsString>) -> PyResult<(bool, String)> {
    let warnings = Arc::new(Warnings::default());
    let ctx = context(0).with_observer(warnings.clone());
    let result = in_thread(py, words, &ctx)?;
    if let Ok(warnings) = warnings.0.lock() {
        let warn = py.import("warnings")?.getattr("warn")?;
        for warning in warnings.iter() {
            warn.call1((warning,))?;
        }
    }
    match result {
        Ok(Called { is_yes, printed }) => Ok((is_yes, printed)),
        Err(CallError::Failed(error)) => Err(to_python(py, &error)),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// Runs a command in a thread, so that this one can look for signals. The command is cancelled if a signal raises an
/// exception.
fn in_thread(
    py: Python<'_>,
    words: Vec<OsString>,
    ctx: &Context,
) -> PyResult<Result<Called, CallError>> {
    let (send, done) = bounded(1);
    let own = ctx.clone();
    let thread = std::thread::spawn(move || {
        let _ = send.send(pbfhogg::cli::call(words, &own));
    });
    let broken = || PyRuntimeError::new_err("the command ended without a result");
    loop {
        match py.detach(|| done.recv_timeout(Duration::from_millis(20))) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => return Err(broken()),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals() {
                    ctx.cancel();
                    let _ = py.detach(|| thread.join());
                    return Err(raised);
                }
            }
        }
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
