//! Streams of record batches, and their C interface.

use crate::error::to_python;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pbfhogg::Result;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

/// How long a stream waits for a batch before it looks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Remembers the current thread as the one that handles signals. Called when the module is imported.
pub fn remember_main_thread() {
    let _ = MAIN_THREAD.set(std::thread::current().id());
}

/// Batches that are made while they are read.
pub trait Batches: Send {
    /// Waits for the next batch, at most as long as `time`. Returns `None` if the time is over.
    fn next_within(&mut self, time: Duration) -> Option<Option<Result<RecordBatch>>>;
}

/// A table whose rows can be read again and again.
pub trait TableSource: Send + Sync {
    fn schema(&self) -> SchemaRef;

    /// Begins to read the rows.
    fn start(&self) -> Box<dyn Batches>;
}

/// The last error of a stream. Readers of the C interface pass on its text only.
pub type LastError = Arc<Mutex<Option<pbfhogg::Error>>>;

/// Waits for the next batch, and raises an exception if a signal asks for it.
pub fn next(py: Python<'_>, batches: &mut dyn Batches) -> PyResult<Option<RecordBatch>> {
    loop {
        match py.detach(|| batches.next_within(PATIENCE)) {
            Some(Some(Ok(batch))) => return Ok(Some(batch)),
            Some(Some(Err(error))) => return Err(to_python(py, &error)),
            Some(None) => return Ok(None),
            None => py.check_signals()?,
        }
    }
}

/// A stream for the C interface.
pub struct Stream {
    pub schema: SchemaRef,
    pub batches: Box<dyn Batches>,
    pub last_error: LastError,
}

impl Iterator for Stream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.batches.next_within(PATIENCE) {
                Some(Some(Ok(batch))) => return Some(Ok(batch)),
                Some(Some(Err(error))) => {
                    let text = error.to_string();
                    if let Ok(mut last) = self.last_error.lock() {
                        *last = Some(error);
                    }
                    return Some(Err(ArrowError::ExternalError(text.into())));
                }
                Some(None) => return None,
                None if is_interrupted() => {
                    return Some(Err(ArrowError::ExternalError("interrupted".into())));
                }
                None => {}
            }
        }
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Whether a signal asks to end the work. Python looks for signals in its main thread alone; other threads must not
/// wait for the interpreter here, because the thread that has it may wait for them.
fn is_interrupted() -> bool {
    if MAIN_THREAD.get() != Some(&std::thread::current().id()) {
        return false;
    }
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(_) => {
            // The reader of the stream raises an exception of its own. The signal is sent again, so that Python raises
            // its own when the reader has returned.
            let again = py
                .import("signal")
                .and_then(|signal| signal.call_method1("raise_signal", (2,)));
            drop(again);
            true
        }
    })
}
