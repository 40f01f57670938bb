//! Converts the arguments of Python functions to options of the library.

use crate::source::Source;
use pbfhogg::read::{FilePart, ObjectExpression, ObjectSelection};
use pbfhogg::{Bbox, Context, KindSet, ObjectId, ObjectKind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// One or several values of an argument.
#[derive(FromPyObject)]
pub enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

/// Parses the names of kinds.
pub fn kinds(names: Option<OneOrMany<String>>) -> PyResult<KindSet> {
    let Some(names) = names else {
        return Ok(KindSet::ALL);
    };
    let mut kinds = KindSet::EMPTY;
    for name in names.into_vec() {
        let found = ObjectKind::ALL.into_iter().find(|kind| kind.name() == name);
        kinds.insert(found.ok_or_else(|| {
            PyValueError::new_err(format!(
                "kinds: expected \"node\", \"way\" or \"relation\", not {name:?}"
            ))
        })?);
    }
    if kinds.is_empty() {
        return Err(PyValueError::new_err("kinds: the list is empty"));
    }
    Ok(kinds)
}

/// Parses tag expressions.
pub fn tags(
    argument: &str,
    expressions: Option<OneOrMany<String>>,
) -> PyResult<Vec<ObjectExpression>> {
    let expressions = expressions.map_or(Vec::new(), OneOrMany::into_vec);
    let parsed = expressions.iter().map(|text| {
        ObjectExpression::parse(text)
            .map_err(|cause| PyValueError::new_err(format!("{argument}: {cause}")))
    });
    parsed.collect()
}

/// The edges of a box in degrees: left, bottom, right, top.
pub type BoxEdges = (f64, f64, f64, f64);

/// Parses a box as the command line does: if it begins further east than it ends, it crosses the antimeridian. Warns of
/// a box that crosses it and is wider than half of the earth.
pub fn bbox(py: Python<'_>, edges: Option<BoxEdges>) -> PyResult<Option<Bbox>> {
    let Some(edges) = edges else {
        return Ok(None);
    };
    let bbox = box_of(edges)?;
    if let Some(warning) = bbox.crossing_warning() {
        warn(py, &format!("bbox: {warning}"))?;
    }
    Ok(Some(bbox))
}

fn box_of((left, bottom, right, top): BoxEdges) -> PyResult<Bbox> {
    Bbox::of_degrees([left, bottom, right, top]).map_err(|cause| {
        PyValueError::new_err(format!(
            "bbox: expected (left, bottom, right, top) in degrees: {cause}"
        ))
    })
}

/// Returns the plain boxes that make up a box on a map whose edges are the antimeridian.
#[pyfunction]
pub fn plain_boxes(bbox: BoxEdges) -> PyResult<Vec<BoxEdges>> {
    let boxes = box_of(bbox)?.on_map();
    let boxes = boxes.iter().filter(|bbox| !bbox.is_empty());
    let edges = boxes.map(|bbox| {
        let [left, bottom, right, top] = [
            bbox.min_lon_e7,
            bbox.min_lat_e7,
            bbox.max_lon_e7,
            bbox.max_lat_e7,
        ]
        .map(|e7| f64::from(e7) / 1e7);
        (left, bottom, right, top)
    });
    Ok(edges.collect())
}

/// Gives a warning to the module `warnings`.
pub fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    py.import("warnings")?.getattr("warn")?.call1((message,))?;
    Ok(())
}

/// Parses ids: numbers if one kind is selected, else texts such as `w123`.
pub fn ids(ids: Option<Vec<Bound<'_, PyAny>>>, kinds: KindSet) -> PyResult<Option<Vec<ObjectId>>> {
    let Some(ids) = ids else { return Ok(None) };
    let parse = |id: &Bound<'_, PyAny>| {
        if let Ok(id) = id.extract::<i64>() {
            let kind = kinds.single().ok_or_else(|| {
                PyValueError::new_err(format!(
                    "ids: {id} could be a node, a way or a relation; name one kind, or write \"w{id}\""
                ))
            })?;
            return Ok(ObjectId { kind, id });
        }
        let text: String = id.extract().map_err(|_| {
            PyTypeError::new_err("ids: expected numbers, or texts such as \"w123\"")
        })?;
        let starts_with_kind = text.starts_with(char::is_alphabetic);
        let kind = kinds
            .single()
            .or(starts_with_kind.then_some(ObjectKind::Node));
        let parsed = kind.ok_or_else(|| format!("{text:?} has no kind; write \"w123\" for a way"));
        parsed
            .and_then(|kind| ObjectId::parse(&text, kind))
            .map_err(|cause| PyValueError::new_err(format!("ids: {cause}")))
    };
    ids.iter().map(parse).collect::<PyResult<_>>().map(Some)
}

/// Converts names to columns of `known`. Fails if a name is unknown.
pub fn columns_of<C: Copy>(
    known: Vec<C>,
    name: impl Fn(C) -> &'static str,
    names: Vec<String>,
) -> PyResult<Vec<C>> {
    let parse = |wanted: &String| {
        let found = known.iter().find(|column| name(**column) == wanted);
        found.copied().ok_or_else(|| {
            let known: Vec<_> = known.iter().map(|column| name(*column)).collect();
            let known = known.join(", ");
            PyValueError::new_err(format!(
                "columns: there is no {wanted:?}; there are {known}"
            ))
        })
    };
    names.iter().map(parse).collect()
}

/// Creates the context of a call that reads `sources`.
pub fn context<'s>(
    jobs: usize,
    sources: impl IntoIterator<Item = &'s Source>,
) -> PyResult<Context> {
    const MAX_JOBS: usize = 1024;
    if jobs > MAX_JOBS {
        return Err(PyValueError::new_err(format!(
            "jobs: expected 0 (every core) to {MAX_JOBS}, not {jobs}"
        )));
    }
    let in_memory = sources
        .into_iter()
        .filter_map(|source| Some((&source.path, source.bytes.clone()?)));
    Ok(in_memory.fold(Context::new(jobs), |ctx, (path, bytes)| {
        ctx.with_file(path, bytes)
    }))
}

/// Builds the selection of objects.
pub fn selection(
    py: Python<'_>,
    names: Option<OneOrMany<String>>,
    expressions: Option<OneOrMany<String>>,
    edges: Option<BoxEdges>,
    wanted: Option<Vec<Bound<'_, PyAny>>>,
    part: Option<FilePart>,
) -> PyResult<ObjectSelection> {
    let mut selection = ObjectSelection::default();
    let kinds = kinds(names)?;
    selection.kinds = Some(kinds);
    selection.filter = tags("tags", expressions)?;
    selection.bbox = bbox(py, edges)?;
    selection.ids = ids(wanted, kinds)?;
    selection.part = part;
    Ok(selection)
}
