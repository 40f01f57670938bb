//! Parts of a file, for several processes.

use crate::arguments::context;
use crate::batches::interruptible;
use crate::error::OrRaise;
use crate::source::Source;
use pbfhogg::read::{FilePart, Parts};
use pbfhogg::{KindSet, ObjectKind, PbfFile};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Divides a file into about `count` parts of the same size.
#[pyfunction]
pub fn splits<'py>(py: Python<'py>, path: Source, count: i64) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let count = u64::try_from(count).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| PyValueError::new_err("count: expected at least 1"))?;
    let ctx = context(0, [&path])?;
    let own = ctx.clone();
    let parts = interruptible(py, &ctx, move || {
        PbfFile::open(&path.path, &own)?.parts(Parts::Count(count))
    })?;
    let split = py.import("pbfhogg._splits")?.getattr("Split")?;
    let parts = parts.or_raise(py)?.into_iter();
    parts.map(|part| to_split(py, &split, &part)).collect()
}

fn to_split<'py>(
    py: Python<'py>,
    split: &Bound<'py, PyAny>,
    part: &FilePart,
) -> PyResult<Bound<'py, PyAny>> {
    let kinds = part.kinds.map(|kinds| {
        let all = ObjectKind::ALL.into_iter();
        let names = all
            .filter(|kind| kinds.contains(*kind))
            .map(ObjectKind::name);
        PyTuple::new(py, names.collect::<Vec<_>>())
    });
    let degrees = |e7: i32| f64::from(e7) / 1e7;
    let bbox = part.bbox.map(|bbox| {
        (
            degrees(bbox.min_lon_e7),
            degrees(bbox.min_lat_e7),
            degrees(bbox.max_lon_e7),
            degrees(bbox.max_lat_e7),
        )
    });
    split.call1((
        part.offset,
        part.len,
        kinds.transpose()?,
        bbox,
        part.objects,
        part.first_blob,
        part.blobs,
    ))
}

/// Converts a `Split` back to a part. Only its place in the file is needed.
pub fn part_of(split: &Bound<'_, PyAny>) -> PyResult<FilePart> {
    let number = |name: &str| -> PyResult<u64> {
        let value = split.getattr(name).map_err(|_| {
            PyTypeError::new_err("split: expected one of the values that pbfhogg.splits returns")
        })?;
        value.extract()
    };
    Ok(FilePart {
        offset: number("offset")?,
        len: number("length")?,
        first_blob: number("blob")?,
        blobs: number("blobs")?,
        kinds: None::<KindSet>,
        objects: None,
        bbox: None,
    })
}
