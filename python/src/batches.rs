//! Streams of record batches, and their C interface.

use crate::error::to_python;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use crossbeam_channel::{
    Receiver, RecvTimeoutError, SendTimeoutError, Sender, TrySendError, bounded,
};
use pbfhogg::{Context, Result};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

/// The time that a stream waits for a batch before it looks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Remembers the current thread as the one that handles signals, if it is Python's main thread.
pub fn remember_main_thread(py: Python<'_>) -> PyResult<()> {
    if MAIN_THREAD.get().is_none() {
        let threading = py.import("threading")?;
        let [current, main] =
            ["current_thread", "main_thread"].map(|name| threading.call_method0(name));
        if current?.is(&main?) {
            let _ = MAIN_THREAD.set(std::thread::current().id());
        }
    }
    Ok(())
}

/// Batches that are made while they are read.
pub trait Batches: Send {
    /// Waits for the next batch, at most as long as `time`. Returns `None` if the time is over. A source that makes batches
    /// itself may take longer.
    fn next_within(&mut self, time: Duration) -> Option<Option<Result<RecordBatch>>>;
}

/// A table whose rows can be read again and again.
pub trait TableSource: Send + Sync {
    fn schema(&self) -> SchemaRef;

    /// Returns the same table without columns, to count its rows.
    fn without_columns(&self) -> Box<dyn TableSource>;

    /// Begins to read the rows.
    fn start(&self) -> Box<dyn Batches>;
}

/// The errors of the last streams, by the threads that asked for the streams. Readers of the C interface pass on their
/// text only.
pub type LastErrors = Arc<Mutex<HashMap<ThreadId, Ended>>>;

/// The reason for the end of a stream.
pub enum Ended {
    Failed(pbfhogg::Error),
    /// A signal handler has raised an exception.
    Raised(PyErr),
}

/// Waits for the next batch, and raises an exception if a signal asks for it. `next_within` waits at most as long as it
/// is told, and returns `None` if that time is over.
pub fn next<B: Send>(
    py: Python<'_>,
    mut next_within: impl FnMut(Duration) -> Option<Option<Result<B>>> + Send,
) -> PyResult<Option<B>> {
    loop {
        match py.detach(|| next_within(PATIENCE)) {
            Some(batch) => return batch.transpose().map_err(|error| to_python(py, &error)),
            None => py.check_signals()?,
        }
    }
}

/// A stream for the C interface.
pub struct Stream {
    schema: SchemaRef,
    batches: Box<dyn Batches>,
    last_errors: LastErrors,
    /// The thread that asked for the stream.
    thread: ThreadId,
    /// The last time that the stream looked for signals.
    looked: Instant,
}

impl Stream {
    pub fn new(source: &dyn TableSource, last_errors: LastErrors) -> Self {
        let thread = std::thread::current().id();
        if let Ok(mut last) = last_errors.lock() {
            last.remove(&thread);
        }
        Self {
            schema: source.schema(),
            batches: source.start(),
            last_errors,
            thread,
            looked: Instant::now(),
        }
    }

    fn end(&self, ended: Ended) -> Option<std::result::Result<RecordBatch, ArrowError>> {
        let text = match &ended {
            Ended::Failed(error) => error.to_string(),
            Ended::Raised(error) => Python::attach(|py| raised_again(py, error)),
        };
        if let Ok(mut last) = self.last_errors.lock() {
            last.insert(self.thread, ended);
        }
        Some(Err(ArrowError::ExternalError(text.into())))
    }

    /// Returns the exception that a signal handler raises, if signals have not been looked for lately. Python looks for
    /// signals in its main thread alone; other threads must not wait for the interpreter here, because the thread that
    /// has it may wait for them.
    fn signal(&mut self) -> Option<PyErr> {
        let is_main = MAIN_THREAD.get() == Some(&std::thread::current().id());
        if !is_main || self.looked.elapsed() < PATIENCE {
            return None;
        }
        self.looked = Instant::now();
        Python::attach(|py| py.check_signals().err())
    }
}

/// Returns the text of an exception that a signal has raised. The reader of the stream raises an exception of its own, so
/// an interrupt is there again when the reader has returned.
fn raised_again(py: Python<'_>, error: &PyErr) -> String {
    // Python looks for signals while it makes a text of an exception, so the text comes first.
    let text = error.to_string();
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        let thread = py.import("_thread");
        let again = thread.and_then(|thread| thread.call_method0("interrupt_main"));
        drop(again);
    }
    text
}

impl Iterator for Stream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = self.batches.next_within(PATIENCE);
            if let Some(error) = self.signal() {
                return self.end(Ended::Raised(error));
            }
            match next {
                Some(Some(Ok(batch))) => return Some(Ok(batch)),
                Some(Some(Err(error))) => return self.end(Ended::Failed(error)),
                Some(None) => return None,
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

/// Runs work in a thread, so that this one can look for signals. The context of the work is cancelled if a signal raises
/// an exception.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    ctx: &Context,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, done) = bounded(1);
    let thread = std::thread::spawn(move || {
        let _ = send.send(work());
    });
    let result = wait(py, ctx, &done);
    if result.is_err() {
        join(py, thread)?;
    }
    result
}

/// Waits for the end of a thread. Raises an exception, and leaves the thread alone, if a signal asks for it.
pub fn join(py: Python<'_>, thread: JoinHandle<()>) -> PyResult<()> {
    let mut pause = Duration::from_millis(1);
    while !thread.is_finished() {
        py.detach(|| std::thread::sleep(pause));
        pause = (pause * 2).min(PATIENCE);
        py.check_signals()?;
    }
    let _ = thread.join();
    Ok(())
}

/// Sends a job. Returns whether it was sent, which it is not if the receiver is gone. Cancels `ctx` if a signal raises
/// an exception while the channel is full.
pub fn send<J: Send>(py: Python<'_>, ctx: &Context, jobs: &Sender<J>, job: J) -> PyResult<bool> {
    let mut job = match jobs.try_send(job) {
        Ok(()) => return Ok(true),
        Err(TrySendError::Disconnected(_)) => return Ok(false),
        Err(TrySendError::Full(job)) => job,
    };
    loop {
        match py.detach(|| jobs.send_timeout(job, PATIENCE)) {
            Ok(()) => return Ok(true),
            Err(SendTimeoutError::Disconnected(_)) => return Ok(false),
            Err(SendTimeoutError::Timeout(unsent)) => job = unsent,
        }
        check_signals(py, ctx)?;
    }
}

/// Raises an exception if a signal asks for it, and cancels `ctx` then.
fn check_signals(py: Python<'_>, ctx: &Context) -> PyResult<()> {
    py.check_signals().inspect_err(|_| ctx.cancel())
}

/// Waits for a result. Cancels `ctx` if a signal raises an exception.
pub fn wait<T: Send>(py: Python<'_>, ctx: &Context, done: &Receiver<T>) -> PyResult<T> {
    loop {
        match py.detach(|| done.recv_timeout(PATIENCE)) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => {
                let error = pbfhogg::Error::Internal("a thread panicked".into());
                return Err(to_python(py, &error));
            }
            Err(RecvTimeoutError::Timeout) => check_signals(py, ctx)?,
        }
    }
}
