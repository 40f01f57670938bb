//! The files that functions read: paths, addresses, and bytes.

use crate::batches::interruptible;
use crate::error::{OrRaise, to_python};
use pbfhogg::{Context, Input};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PySlice, PyTuple};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// One file, or a list of files.
pub struct Sources(pub Vec<Source>);

impl<'a, 'py> FromPyObject<'a, 'py> for Sources {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        if !is_list {
            return object.extract().map(|source| Self(vec![source]));
        }
        let sources = object.try_iter()?.map(|source| source?.extract());
        sources.collect::<PyResult<_>>().map(Self)
    }
}

/// The file that a function reads: a path, an address, or bytes.
#[derive(Clone)]
pub struct Source {
    /// The path. Bytes have one, too, under which the context has them.
    pub path: PathBuf,
    /// A copy of the bytes; `None` for a path or an address.
    pub bytes: Option<Arc<File>>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Source {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let path: OsString = match object.extract::<PathBuf>() {
            Ok(path) => path.into(),
            Err(_) => return Self::of_bytes(&object),
        };
        if path == "-" {
            return Err(PyValueError::new_err(
                "\"-\" is standard input, which is not read; give a file",
            ));
        }
        Ok(Self {
            path: path.into(),
            bytes: None,
        })
    }
}

impl Source {
    /// Fails if the file does not exist, so that the call raises the error and not the first read. A file is not opened:
    /// a pipe can be read only once.
    pub fn check(&self, py: Python<'_>, ctx: &Context) -> PyResult<()> {
        let path = self.path.clone();
        if self.bytes.is_some() {
            return Ok(());
        }
        if path.to_string_lossy().contains("://") {
            let own = ctx.clone();
            return interruptible(py, ctx, move || Input::open_in(&path, &own).map(drop))?
                .or_raise(py);
        }
        let found = std::fs::metadata(&path).map(drop);
        found.map_err(|error| to_python(py, &pbfhogg::Error::io(&path, "cannot open", error)))
    }

    /// Copies an object that has bytes to a file in memory.
    fn of_bytes(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        /// The number of bytes that are copied at a time.
        const AT_ONCE: isize = 4 << 20;
        let py = object.py();
        let mut file = memory_file()?;
        if let Ok(bytes) = object.cast::<PyBytes>() {
            let bytes = bytes.as_bytes();
            py.detach(|| file.write_all(bytes))?;
        } else {
            let view = PyMemoryView::from(object).map_err(|_| {
                let kind = object.get_type();
                PyTypeError::new_err(format!("expected a path, an address or bytes, not {kind}"))
            })?;
            let view = view.call_method1("cast", ("B",))?;
            let end = view.len()? as isize;
            for start in (0..end).step_by(AT_ONCE as usize) {
                let part = view.get_item(PySlice::new(py, start, start + AT_ONCE, 1))?;
                let part = part.call_method0("tobytes")?;
                file.write_all(part.cast::<PyBytes>()?.as_bytes())?;
            }
        }
        Ok(Self {
            path: "<bytes>".into(),
            bytes: Some(Arc::new(file)),
        })
    }

    /// Returns the source with a path of its own if it is bytes.
    pub fn named(self, name: &str) -> Self {
        match self.bytes {
            None => self,
            Some(_) => Self {
                path: format!("<bytes of {name}>").into(),
                ..self
            },
        }
    }
}

#[cfg(target_os = "linux")]
fn memory_file() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("pbfhogg", MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn memory_file() -> io::Result<File> {
    tempfile::tempfile()
}
