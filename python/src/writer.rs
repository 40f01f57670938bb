//! Writes files object by object.

use crate::batches::{join, send, wait};
use crate::error::{OrRaise, to_python};
use crossbeam_channel::{Receiver, Sender, bounded};
use pbfhogg::{
    Context, ElementWriter, Error, Info, Location, Member, Object, ObjectKind, OutputOptions,
    Result, Written,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Metadata, which is a tuple in Python.
struct Metadata {
    version: Option<u32>,
    /// Seconds since 1970.
    timestamp: Option<i64>,
    changeset: Option<i64>,
    uid: Option<i32>,
    user: Option<String>,
    visible: bool,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Metadata {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let fields = object.cast::<PyTuple>()?;
        Ok(Self {
            version: field(&fields, 0, "version")?,
            timestamp: field(&fields, 1, "timestamp")?,
            changeset: field(&fields, 2, "changeset")?,
            uid: field(&fields, 3, "uid")?,
            user: field(&fields, 4, "user")?,
            visible: field(&fields, 5, "visible")?,
        })
    }
}

/// Extracts a field. An error names it.
fn field<'py, T>(fields: &Bound<'py, PyTuple>, index: usize, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    fields.get_item(index)?.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        let message = format!("{name}: {}", error.value(fields.py()));
        if error.is_instance_of::<PyTypeError>(fields.py()) {
            PyTypeError::new_err(message)
        } else {
            PyValueError::new_err(message)
        }
    })
}

type Tags = Vec<(String, String)>;

/// Writes an object.
type Write = dyn FnOnce(&mut ElementWriter) -> Result<()> + Send;

/// Work for the thread that writes.
enum Job {
    Write(Box<Write>),
    /// Writes the file, and sends the result.
    Finish(Sender<Result<Written>>),
}

/// A writer, which sorts the objects. They are written in a thread of their own.
#[pyclass(frozen, module = "pbfhogg._pbfhogg")]
pub struct Writer(Mutex<Option<Open>>);

struct Open {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    ctx: Context,
    /// The first error of the thread.
    failed: Arc<Mutex<Option<Error>>>,
}

/// The number of objects that wait for the thread.
const WAITING: usize = 4096;

/// Opens the output, sends whether that succeeded, and does jobs until there are no more.
fn work(
    output: OutputOptions,
    ctx: Context,
    opened: &Sender<Result<()>>,
    jobs: &Receiver<Job>,
    failed: &Mutex<Option<Error>>,
) {
    let mut writer = match ElementWriter::sorting(output, ctx) {
        Ok(writer) => writer,
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    let _ = opened.send(Ok(()));
    for job in jobs {
        match job {
            Job::Write(write) => {
                if let Err(error) = write(&mut writer) {
                    if let Ok(mut failed) = failed.lock() {
                        *failed = Some(error);
                    }
                    return;
                }
            }
            Job::Finish(done) => {
                let _ = done.send(writer.finish());
                return;
            }
        }
    }
}

fn tag_pairs(tags: &[(String, String)]) -> Vec<(&str, &str)> {
    tags.iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

fn info_of(metadata: &Metadata) -> Info<'_> {
    Info {
        version: metadata.version,
        timestamp: metadata.timestamp,
        changeset: metadata.changeset,
        uid: metadata.uid,
        user: metadata.user.as_deref(),
        visible: metadata.visible,
    }
}

#[pymethods]
impl Writer {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<Self> {
        let mut output = OutputOptions::file(path);
        if overwrite {
            output = output.overwrite();
        }
        let (send, opened) = bounded(1);
        let (jobs, receive) = bounded(WAITING);
        let failed = Arc::<Mutex<Option<Error>>>::default();
        let own = failed.clone();
        let ctx = Context::default();
        let of_thread = ctx.clone();
        let thread = std::thread::spawn(move || work(output, of_thread, &send, &receive, &own));
        wait(py, &ctx, &opened)?.or_raise(py)?;
        let open = Open {
            jobs,
            thread,
            ctx,
            failed,
        };
        Ok(Self(Mutex::new(Some(open))))
    }

    fn node(
        &self,
        py: Python<'_>,
        id: i64,
        place: Option<(f64, f64)>,
        tags: Tags,
        metadata: Metadata,
    ) -> PyResult<()> {
        let location = place.map(|(lat, lon)| {
            Location::from_degrees(lat, lon).ok_or_else(|| {
                PyValueError::new_err(format!("lat, lon: ({lat}, {lon}) is no place on earth"))
            })
        });
        let location = location.transpose()?;
        self.write(py, move |writer| {
            let tags = tag_pairs(&tags);
            let node = Object::node(id, location, tags.as_slice());
            writer.write(&node.with_info(info_of(&metadata)))
        })
    }

    fn way(
        &self,
        py: Python<'_>,
        id: i64,
        refs: Vec<i64>,
        tags: Tags,
        metadata: Metadata,
    ) -> PyResult<()> {
        self.write(py, move |writer| {
            let tags = tag_pairs(&tags);
            let way = Object::way(id, refs.as_slice(), tags.as_slice());
            writer.write(&way.with_info(info_of(&metadata)))
        })
    }

    fn relation(
        &self,
        py: Python<'_>,
        id: i64,
        members: Vec<(String, i64, String)>,
        tags: Tags,
        metadata: Metadata,
    ) -> PyResult<()> {
        let kind_of = |(name, _, _): &(String, i64, String)| {
            let found = ObjectKind::ALL.into_iter().find(|kind| kind.name() == name);
            found.ok_or_else(|| {
                PyValueError::new_err(format!(
                    "members: expected \"node\", \"way\" or \"relation\", not {name:?}"
                ))
            })
        };
        let kinds = members.iter().map(kind_of).collect::<PyResult<Vec<_>>>()?;
        self.write(py, move |writer| {
            let members = kinds.iter().zip(&members);
            let members: Vec<_> = members
                .map(|(kind, (_, id, role))| Member {
                    kind: *kind,
                    id: *id,
                    role,
                })
                .collect();
            let tags = tag_pairs(&tags);
            let relation = Object::relation(id, members.as_slice(), tags.as_slice());
            writer.write(&relation.with_info(info_of(&metadata)))
        })
    }

    /// Writes the file, and returns the number of objects.
    fn finish(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let open = self.take()?;
        let (sender, done) = bounded(1);
        let written = send(py, &open.ctx, &open.jobs, Job::Finish(sender))
            .and_then(|_| wait(py, &open.ctx, &done));
        join(py, open.thread)?;
        match written {
            Ok(written) => Ok(written.or_raise(py)?.objects),
            Err(raised) => Err(first_error(py, &open.failed).unwrap_or(raised)),
        }
    }

    /// Ends without a file.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        let Ok(Open {
            jobs, thread, ctx, ..
        }) = self.take()
        else {
            return Ok(());
        };
        ctx.cancel();
        drop(jobs);
        join(py, thread)
    }
}

impl Writer {
    fn take(&self) -> PyResult<Open> {
        let taken = self.0.lock().ok().and_then(|mut writer| writer.take());
        taken.ok_or_else(closed)
    }

    fn write(
        &self,
        py: Python<'_>,
        write: impl FnOnce(&mut ElementWriter) -> Result<()> + Send + 'static,
    ) -> PyResult<()> {
        let (jobs, failed, ctx) = {
            let open = self.0.lock().map_err(|_| closed())?;
            let open = open.as_ref().ok_or_else(closed)?;
            (open.jobs.clone(), open.failed.clone(), open.ctx.clone())
        };
        if send(py, &ctx, &jobs, Job::Write(Box::new(write)))? {
            Ok(())
        } else {
            Err(first_error(py, &failed).unwrap_or_else(closed))
        }
    }
}

/// Returns the error that ended the thread.
fn first_error(py: Python<'_>, failed: &Mutex<Option<Error>>) -> Option<PyErr> {
    let error = failed.lock().ok().and_then(|mut failed| failed.take());
    error.map(|error| to_python(py, &error))
}

fn closed() -> PyErr {
    PyValueError::new_err("the writer is closed")
}
