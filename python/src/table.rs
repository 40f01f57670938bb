//! Tables, and the batches of their rows.

use crate::batches::{Batches, Ended, LastErrors, Stream, TableSource, next, remember_main_thread};
use crate::error::to_python;
use crate::rows::{TableRows, schema};
use crate::warnings::Warnings;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{Schema, SchemaRef};
use pbfhogg::Result;
use pbfhogg::unstable::formats::{RowType, TableColumn};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A table of a file. Its rows are read each time that a stream is asked for.
#[pyclass(frozen, module = "pbfhogg._pbfhogg")]
pub struct Table {
    source: Box<dyn TableSource>,
    last_errors: LastErrors,
    /// The warnings of readers that have not been raised yet.
    warnings: Arc<Warnings>,
}

impl Table {
    /// Creates a table. `warnings` observes the context of the source.
    pub fn new(source: impl TableSource + 'static, warnings: Arc<Warnings>) -> Self {
        Self {
            source: Box::new(source),
            last_errors: LastErrors::default(),
            warnings,
        }
    }

    /// Creates a table whose columns the library describes. `start` begins to make its batches. It gets a function that
    /// creates the rows of a thread.
    pub fn described<T: RowType>(
        columns: Vec<TableColumn<T>>,
        warnings: Arc<Warnings>,
        start: impl Fn(NewRows<T>) -> Box<dyn Batches> + Send + Sync + 'static,
    ) -> Self {
        let source: MadeTable<TableColumn<T>> = MadeTable {
            schema: schema(&columns),
            columns: columns.into(),
            start: Arc::new(move |columns, schema| {
                start(Box::new(move || TableRows::new(&columns, schema.clone())))
            }),
        };
        Self::new(source, warnings)
    }
}

/// Creates the rows of a thread.
pub type NewRows<T> = Box<dyn Fn() -> TableRows<T> + Send + Sync>;

/// Begins to make the batches of some columns, which have a schema.
pub type StartBatches<C> = Arc<dyn Fn(Arc<[C]>, SchemaRef) -> Box<dyn Batches> + Send + Sync>;

/// A table whose batches a function makes.
pub struct MadeTable<C> {
    pub columns: Arc<[C]>,
    pub schema: SchemaRef,
    pub start: StartBatches<C>,
}

impl<C: Send + Sync + 'static> TableSource for MadeTable<C> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn without_columns(&self) -> Box<dyn TableSource> {
        Box::new(Self {
            columns: [].into(),
            schema: Schema::empty().into(),
            start: self.start.clone(),
        })
    }

    fn start(&self) -> Box<dyn Batches> {
        (self.start)(self.columns.clone(), self.schema.clone())
    }
}

fn to_runtime_error(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(to_runtime_error)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.source.schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.source.schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer ignore the wish for another schema.
        drop(requested_schema);
        remember_main_thread(py)?;
        let stream = Stream::new(self.source.as_ref(), self.last_errors.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(stream));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn batches(&self) -> BatchIterator {
        BatchIterator {
            batches: Mutex::new(self.source.start()),
            warnings: self.warnings.clone(),
        }
    }

    /// Counts the rows. Reads the file, but makes no columns.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let mut batches = self.source.without_columns().start();
        let mut rows = 0;
        while let Some(batch) = next(py, |time| batches.next_within(time))? {
            rows += batch.num_rows();
        }
        // A reader of the rows gives the same warnings again.
        drop(self.warnings.take());
        Ok(rows)
    }

    /// Raises the warnings of the streams that were read.
    fn raise_warnings(&self, py: Python<'_>) -> PyResult<()> {
        self.warnings.raise(py)
    }

    /// Raises the error that ended the last stream of this thread, if there was one.
    fn raise_last_error(&self, py: Python<'_>) -> PyResult<()> {
        let thread = std::thread::current().id();
        let last = self.last_errors.lock();
        let last = last.ok().and_then(|mut last| last.remove(&thread));
        match last {
            None => Ok(()),
            Some(Ended::Failed(error)) => Err(to_python(py, &error)),
            Some(Ended::Raised(error)) => Err(error),
        }
    }
}

/// An iterator over the batches of a table.
#[pyclass(frozen, module = "pbfhogg._pbfhogg")]
pub struct BatchIterator {
    batches: Mutex<Box<dyn Batches>>,
    warnings: Arc<Warnings>,
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let mut batches = self
            .batches
            .try_lock()
            .map_err(|_| PyValueError::new_err("another thread is waiting for the next batch"))?;
        let batches = batches.as_mut();
        let rows = next(py, |time| batches.next_within(time))?;
        if rows.is_none() {
            self.warnings.raise(py)?;
        }
        Ok(rows.map(|rows| Batch { rows }))
    }
}

/// Rows of a table.
#[pyclass(frozen, module = "pbfhogg._pbfhogg")]
pub struct Batch {
    rows: RecordBatch,
}

#[pymethods]
impl Batch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.rows.schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.rows.schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let rows = StructArray::from(self.rows.clone());
        let array =
            PyCapsule::new_with_value(py, FFI_ArrowArray::new(&rows.to_data()), c"arrow_array")?;
        PyTuple::new(py, [schema_capsule(py, &self.rows.schema())?, array])
    }
}

impl Batches for pbfhogg::Batches<RecordBatch> {
    fn next_within(&mut self, time: Duration) -> Option<Option<Result<RecordBatch>>> {
        pbfhogg::Batches::next_within(self, time)
    }
}
