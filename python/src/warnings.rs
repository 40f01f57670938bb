//! Warnings of the library as warnings of Python.

use pbfhogg::Observer;
use pyo3::prelude::*;
use std::sync::Mutex;

/// Keeps the warnings of threads until the thread of Python asks for them.
#[derive(Default)]
pub struct Warnings(Mutex<Vec<String>>);

impl Observer for Warnings {
    fn warn(&self, message: &str) {
        if let Ok(mut warnings) = self.0.lock() {
            warnings.push(message.to_owned());
        }
    }
}

impl Warnings {
    /// Takes the warnings.
    pub fn take(&self) -> Vec<String> {
        let warnings = self.0.lock();
        warnings.map_or_else(
            |_| Vec::new(),
            |mut warnings| std::mem::take(&mut *warnings),
        )
    }

    /// Gives the warnings to the module `warnings`.
    pub fn raise(&self, py: Python<'_>) -> PyResult<()> {
        self.take().iter().try_for_each(|message| warn(py, message))
    }
}

/// Gives a warning to the module `warnings`. It names the line that called the package.
pub fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    py.import("pbfhogg._warnings")?
        .getattr("warn")?
        .call1((message,))?;
    Ok(())
}
