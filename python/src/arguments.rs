//! Converts the arguments of Python functions to options of the library.

use crate::batches::interruptible;
use crate::error::OrRaise;
use crate::source::Source;
use crate::warnings::warn;
use pbfhogg::areas::Antimeridian;
use pbfhogg::areas::Shape;
use pbfhogg::commands::extract::{AreaOfFile, read_area, read_shape};
use pbfhogg::read::{FilePart, ObjectExpression, ObjectSelection};
use pbfhogg::unstable::formats::{RowType, TableColumn};
use pbfhogg::{Bbox, Context, KindSet, ObjectId, ObjectKind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyInt, PyString};
use std::path::{Path, PathBuf};

/// The error for a value of a wrong type. PyO3 adds a note with the name of the argument, which the package puts before
/// the message.
fn wrong_type(expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let kind = found.get_type();
    match kind.name() {
        Ok(name) => PyTypeError::new_err(format!("expected {expected}, not {name}")),
        Err(error) => error,
    }
}

/// Returns the items of a list, an array, or anything else that can be iterated over and is no text.
fn items<'py>(expected: &str, list: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_one = list.is_instance_of::<PyString>()
        || list.is_instance_of::<PyBytes>()
        || list.is_instance_of::<PyByteArray>()
        || list.is_instance_of::<PyDict>();
    match list.try_iter() {
        Ok(items) if !is_one => items.collect(),
        _ => Err(wrong_type(expected, list)),
    }
}

/// A text or several.
pub struct Texts(pub Vec<String>);

impl<'a, 'py> FromPyObject<'a, 'py> for Texts {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        const EXPECTED: &str = "a text or a list of texts";
        if let Ok(text) = object.extract::<String>() {
            return Ok(Self(vec![text]));
        }
        let texts = items(EXPECTED, &object)?.into_iter();
        let texts = texts.map(|text| text.extract().map_err(|_| wrong_type(EXPECTED, &text)));
        texts.collect::<PyResult<_>>().map(Self)
    }
}

/// Ids: numbers, or texts such as `w123`.
pub struct Ids<'py>(Vec<Bound<'py, PyAny>>);

impl<'a, 'py> FromPyObject<'a, 'py> for Ids<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyInt>() {
            return Ok(Self(vec![object.to_owned()]));
        }
        items("numbers, or texts such as \"w123\"", &object).map(Self)
    }
}

/// The numbers of a box in degrees: left, bottom, right, top. Any four numbers do, such as those of an array of numpy.
pub struct BoxEdges(Vec<f64>);

impl<'a, 'py> FromPyObject<'a, 'py> for BoxEdges {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        const EXPECTED: &str = "four numbers (left, bottom, right, top)";
        let edges = items(EXPECTED, &object)?.into_iter();
        let edges = edges.map(|edge| {
            edge.extract()
                .map_err(|_| wrong_type("a number for each of left, bottom, right, top", &edge))
        });
        edges.collect::<PyResult<_>>().map(Self)
    }
}

/// Parses the names of kinds.
pub fn kinds(names: Option<Texts>) -> PyResult<KindSet> {
    let Some(Texts(names)) = names else {
        return Ok(KindSet::ALL);
    };
    let mut kinds = KindSet::EMPTY;
    for name in names {
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
pub fn tags(argument: &str, expressions: Option<Texts>) -> PyResult<Vec<ObjectExpression>> {
    let expressions = expressions.map_or(Vec::new(), |Texts(expressions)| expressions);
    let parsed = expressions.iter().map(|text| {
        ObjectExpression::parse(text)
            .map_err(|cause| PyValueError::new_err(format!("{argument}: {cause}")))
    });
    parsed.collect()
}

/// Parses a box as the command line does: if it begins further east than it ends, it crosses the antimeridian. Warns of
/// a box that crosses it and is wider than half of the earth.
pub fn bbox(py: Python<'_>, edges: Option<BoxEdges>) -> PyResult<Option<Bbox>> {
    let Some(edges) = edges else {
        return Ok(None);
    };
    let bbox = box_of(&edges)?;
    if let Some(warning) = bbox.crossing_warning() {
        warn(py, &format!("bbox: {warning}"))?;
    }
    Ok(Some(bbox))
}

/// The polygons that a call gives: those of a file, or an area of the file that is read.
pub struct GivenArea {
    /// The path of a file, or the id of an area.
    pub polygon: Option<PathBuf>,
    /// The name of a boundary.
    pub area: Option<String>,
}

impl GivenArea {
    /// Reads the polygons; `None` if none are given. `source` is the file with the areas. Fails if there is a box, too.
    pub fn shape(
        self,
        py: Python<'_>,
        has_bbox: bool,
        source: &Path,
        ctx: &Context,
    ) -> PyResult<Option<Shape>> {
        let refuse = |argument: &str, other: &str| {
            let cause = format!("{argument}: there is a {other} already");
            Err(PyValueError::new_err(cause))
        };
        let area = match (self.polygon, self.area) {
            (None, None) => return Ok(None),
            (Some(_), _) if has_bbox => return refuse("polygon", "bbox"),
            (None, Some(_)) if has_bbox => return refuse("area", "bbox"),
            (Some(_), Some(_)) => return refuse("area", "polygon"),
            (Some(polygon), None) => AreaOfFile::of_path(&polygon).ok_or(polygon),
            (None, Some(name)) => Ok(AreaOfFile::Name(name)),
        };
        let (source, own) = (source.to_owned(), ctx.clone());
        let read = move || match area {
            Ok(area) => read_area(&source, &area, Antimeridian::Cut, &own),
            Err(polygon) => read_shape(&polygon, None),
        };
        interruptible(py, ctx, read)?.or_raise(py).map(Some)
    }
}

/// Returns the region of a box or of polygons; `None` if there is neither. `source` is the file with the areas that
/// `given` may name.
pub fn region(
    py: Python<'_>,
    edges: Option<BoxEdges>,
    given: GivenArea,
    source: &Path,
    ctx: &Context,
) -> PyResult<Option<Shape>> {
    let bbox = bbox(py, edges)?;
    let shape = given.shape(py, bbox.is_some(), source, ctx)?;
    Ok(shape.or_else(|| bbox.map(|bbox| Shape::of_bbox(&bbox))))
}

fn box_of(BoxEdges(edges): &BoxEdges) -> PyResult<Bbox> {
    let bbox = match edges[..].try_into() {
        Ok(edges) => Bbox::of_degrees(edges),
        Err(_) => Err(format!("there are {} numbers", edges.len())),
    };
    bbox.map_err(|cause| {
        PyValueError::new_err(format!(
            "bbox: expected (left, bottom, right, top) in degrees: {cause}"
        ))
    })
}

/// Returns the plain boxes that make up a box on a map whose edges are the antimeridian.
#[pyfunction]
pub fn plain_boxes(bbox: BoxEdges) -> PyResult<Vec<(f64, f64, f64, f64)>> {
    let boxes = box_of(&bbox)?.on_map();
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

/// Parses ids: numbers if one kind is selected, else texts such as `w123`.
pub fn ids(ids: Option<Ids<'_>>, kinds: KindSet) -> PyResult<Option<Vec<ObjectId>>> {
    let Some(Ids(ids)) = ids else { return Ok(None) };
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

/// Returns the columns of `known` with some names. Fails if a name is unknown.
pub fn columns_of<T: RowType>(
    known: &[TableColumn<T>],
    Texts(names): Texts,
) -> PyResult<Vec<TableColumn<T>>> {
    let parse = |wanted: &String| {
        let found = known.iter().find(|column| column.name == wanted);
        found.copied().ok_or_else(|| {
            let known: Vec<_> = known.iter().map(|column| column.name).collect();
            let known = known.join(", ");
            PyValueError::new_err(format!(
                "columns: there is no {wanted:?}; there are {known}"
            ))
        })
    };
    names.iter().map(parse).collect()
}

/// Creates the context of a call that reads `sources`.
pub fn context<'s>(jobs: i64, sources: impl IntoIterator<Item = &'s Source>) -> PyResult<Context> {
    const MAX_JOBS: usize = 1024;
    let count = usize::try_from(jobs).ok().filter(|jobs| *jobs <= MAX_JOBS);
    let jobs = count.ok_or_else(|| {
        PyValueError::new_err(format!(
            "jobs: expected 0 (every core) to {MAX_JOBS}, not {jobs}"
        ))
    })?;
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
    names: Option<Texts>,
    expressions: Option<Texts>,
    edges: Option<BoxEdges>,
    wanted: Option<Ids<'_>>,
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
