//! Errors of the library as Python exceptions.

use pbfhogg::ErrorKind;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    pbfhogg,
    Error,
    PyException,
    "A file could not be read or written."
);

/// Converts an error of the library to an exception.
pub fn to_python(py: Python<'_>, error: &pbfhogg::Error) -> PyErr {
    let message = match error.advice() {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    };
    if error.kind() == ErrorKind::Usage {
        return PyValueError::new_err(message);
    }
    let raised = Error::new_err(message);
    let value = raised.value(py);
    let (path, blob, byte) = match error {
        pbfhogg::Error::Io { path, .. } | pbfhogg::Error::File { path, .. } => {
            (Some(path), None, None)
        }
        pbfhogg::Error::Blob {
            path,
            number,
            offset,
            ..
        } => (Some(path), Some(*number), Some(*offset)),
        pbfhogg::Error::Text { path, .. } => (Some(path), None, None),
        _ => (None, None, None),
    };
    let set = || {
        value.setattr("kind", kind_name(error.kind()))?;
        value.setattr("path", path)?;
        value.setattr("blob", blob)?;
        value.setattr("byte", byte)
    };
    match set() {
        Ok(()) => raised,
        Err(error) => error,
    }
}

/// The name of a kind of error, in snake case.
fn kind_name(kind: ErrorKind) -> String {
    let mut name = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// Converts results of the library.
pub trait OrRaise<T> {
    /// Converts an error to an exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for pbfhogg::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_python(py, &error))
    }
}
