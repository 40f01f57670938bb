//! Objects one by one.

use crate::arguments::{BoxEdges, GivenArea, Ids, Texts, context, selection};
use crate::batches::{interruptible, next};
use crate::error::OrRaise;
use crate::rows::MAX_BYTES;
use crate::source::Source;
use crate::warnings::Warnings;
use pbfhogg::model::UniqueTags;
use pbfhogg::read::BatchMaker;
use pbfhogg::{Batches, Element, FormatError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The number of objects at which a batch ends.
const AT_ONCE: usize = 4096;

/// A node, way or relation.
#[derive(Clone)]
#[pyclass(frozen, module = "pbfhogg._pbfhogg")]
pub struct Object {
    /// "node", "way" or "relation".
    #[pyo3(get)]
    r#type: &'static str,
    #[pyo3(get)]
    id: i64,
    #[pyo3(get)]
    version: Option<u32>,
    /// Seconds since 1970.
    #[pyo3(get)]
    timestamp: Option<i64>,
    #[pyo3(get)]
    changeset: Option<i64>,
    #[pyo3(get)]
    uid: Option<i32>,
    #[pyo3(get)]
    user: Option<String>,
    #[pyo3(get)]
    visible: bool,
    #[pyo3(get)]
    lat: Option<f64>,
    #[pyo3(get)]
    lon: Option<f64>,
    /// The ids of the nodes of a way; None for others.
    #[pyo3(get)]
    refs: Option<Vec<i64>>,
    /// The members of a relation as (type, id, role); None for others.
    #[pyo3(get)]
    members: Option<Vec<(&'static str, i64, String)>>,
    stored_tags: Vec<(String, String)>,
}

impl Object {
    fn of(element: &Element<'_>) -> Self {
        let info = element.info();
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let mut object = Self {
            r#type: element.kind().name(),
            id: element.id(),
            version: info.version,
            timestamp: info.timestamp,
            changeset: info.changeset,
            uid: info.uid,
            user: info.user.map(str::to_owned),
            visible: info.visible,
            lat: None,
            lon: None,
            refs: None,
            members: None,
            stored_tags: UniqueTags::new(element.tags()).map(owned).collect(),
        };
        match element {
            Element::Node(node) => {
                let location = node.location().filter(|_| info.visible);
                object.lat = location.map(|location| location.lat());
                object.lon = location.map(|location| location.lon());
            }
            Element::Way(way) => object.refs = Some(way.refs().collect()),
            Element::Relation(relation) => {
                let members = relation.members();
                let member =
                    members.map(|member| (member.kind.name(), member.id, member.role.to_owned()));
                object.members = Some(member.collect());
            }
        }
        object
    }

    /// The size of the texts and lists in bytes.
    fn bytes(&self) -> usize {
        let tags = self
            .stored_tags
            .iter()
            .map(|(key, value)| key.len() + value.len());
        let roles = self
            .members
            .iter()
            .flatten()
            .map(|(_, _, role)| role.len() + size_of::<i64>());
        let refs = self
            .refs
            .as_ref()
            .map_or(0, |refs| size_of_val(refs.as_slice()));
        tags.chain(roles).sum::<usize>() + refs
    }
}

#[pymethods]
impl Object {
    /// The tags as a dict.
    #[getter]
    fn tags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tags = PyDict::new(py);
        for (key, value) in &self.stored_tags {
            tags.set_item(key, value)?;
        }
        Ok(tags)
    }

    fn __repr__(&self) -> String {
        let tags = self.stored_tags.iter();
        let tags: Vec<_> = tags.map(|(key, value)| format!("{key}={value}")).collect();
        let version = self.version.map(|version| format!(" v{version}"));
        format!(
            "<{} {}{} {}>",
            self.r#type,
            self.id,
            version.as_deref().unwrap_or(""),
            tags.join(" ")
        )
    }
}

/// Collects objects.
#[derive(Default)]
struct Collected {
    objects: Vec<Object>,
    /// The approximate size of the texts and lists of the objects in bytes.
    bytes: usize,
}

impl BatchMaker for Collected {
    type Batch = Vec<Object>;

    fn add(&mut self, element: &Element<'_>) -> Result<(), FormatError> {
        let object = Object::of(element);
        self.bytes += object.bytes();
        self.objects.push(object);
        Ok(())
    }

    fn take(&mut self) -> Option<Vec<Object>> {
        let objects = std::mem::take(self).objects;
        (!objects.is_empty()).then_some(objects)
    }

    fn is_full(&self) -> bool {
        self.objects.len() >= AT_ONCE || self.bytes >= MAX_BYTES
    }
}

/// An iterator over objects.
#[pyclass(frozen, module = "pbfhogg._pbfhogg")]
pub struct ObjectIterator(Mutex<State>);

struct State {
    batches: Batches<Vec<Object>>,
    current: std::vec::IntoIter<Object>,
    warnings: Arc<Warnings>,
}

#[pymethods]
impl ObjectIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Object>> {
        let mut state = self
            .0
            .try_lock()
            .map_err(|_| PyValueError::new_err("another thread is waiting for the next object"))?;
        loop {
            if let Some(object) = state.current.next() {
                return Ok(Some(object));
            }
            let state = &mut *state;
            match next(py, |time| state.batches.next_within(time))? {
                Some(batch) => state.current = batch.into_iter(),
                None => {
                    state.warnings.raise(py)?;
                    return Ok(None);
                }
            }
        }
    }
}

/// Opens an iterator over the objects of a file.
#[pyfunction]
#[pyo3(signature = (path, *, kinds=None, tags=None, bbox=None, polygon=None, area=None, ids=None, jobs=0))]
#[expect(clippy::too_many_arguments)]
pub fn objects(
    py: Python<'_>,
    path: Source,
    kinds: Option<Texts>,
    tags: Option<Texts>,
    bbox: Option<BoxEdges>,
    polygon: Option<PathBuf>,
    area: Option<String>,
    ids: Option<Ids<'_>>,
    jobs: i64,
) -> PyResult<ObjectIterator> {
    let mut selection = selection(py, kinds, tags, bbox, ids, None)?;
    let warnings = Arc::<Warnings>::default();
    let ctx = context(jobs, [&path])?.with_observer(warnings.clone());
    let (given, has_bbox) = (GivenArea { polygon, area }, selection.bbox.is_some());
    selection.region = given.shape(py, has_bbox, &path.path, &ctx)?;
    let own = ctx.clone();
    let open = move || pbfhogg::read::open(&path.path, &own)?.select(selection);
    let reader = Arc::new(interruptible(py, &ctx, open)?.or_raise(py)?);
    Ok(ObjectIterator(Mutex::new(State {
        batches: reader.batches(Collected::default),
        current: Vec::new().into_iter(),
        warnings,
    })))
}
