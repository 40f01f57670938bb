//! The reverse geocoder.

use crate::arguments::Texts;
use crate::batches::{Batches, TableSource};
use crate::error::OrRaise;
use crate::rows::{TableRows, schema};
use crate::table::Table;
use crate::warnings::Warnings;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pbfhogg::geocode::{Answer, GeocodeIndex, NearObject, QueryOptions};
use pbfhogg::unstable::formats::{ColumnGetter, RowType, TableColumn};
use pbfhogg::{Location, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

/// An index that says what is at a place.
#[pyclass(frozen, module = "pbfhogg._pbfhogg")]
pub struct Geocoder(Arc<Queries>);

/// The number of places that are answered at a time.
const AT_ONCE: usize = 65_536;

/// An index, and the options of queries.
struct Queries {
    index: GeocodeIndex,
    options: QueryOptions,
}

#[pymethods]
impl Geocoder {
    #[new]
    fn new(py: Python<'_>, index: PathBuf, languages: Texts) -> PyResult<Self> {
        let Texts(languages) = languages;
        let index = py.detach(|| GeocodeIndex::open(&index)).or_raise(py)?;
        let options = QueryOptions {
            languages,
            ..QueryOptions::default()
        };
        Ok(Self(Arc::new(Queries { index, options })))
    }

    /// Returns what is at a place as JSON.
    fn reverse(&self, py: Python<'_>, lat: f64, lon: f64) -> PyResult<String> {
        let place = Location::from_degrees(lat, lon).ok_or_else(|| {
            PyValueError::new_err(format!("lat, lon: ({lat}, {lon}) is no place on earth"))
        })?;
        let answer = py.detach(|| self.0.answer(place).map(|answer| answer.json()));
        answer.or_raise(py)
    }

    /// Returns what is at many places. The arguments are little-endian doubles.
    fn reverse_many(&self, lats: &[u8], lons: &[u8]) -> PyResult<Table> {
        let [lats, lons] = [lats, lons].map(doubles);
        if lats.len() != lons.len() {
            return Err(PyValueError::new_err(format!(
                "lons: expected {} values, as many as lats, not {}",
                lats.len(),
                lons.len()
            )));
        }
        let places = lats.iter().zip(&lons);
        let places: Vec<_> = places
            .map(|(lat, lon)| Location::from_degrees(*lat, *lon))
            .collect();
        let source = Places {
            queries: self.0.clone(),
            places: places.into(),
        };
        Ok(Table::new(source, Arc::<Warnings>::default()))
    }
}

fn doubles(bytes: &[u8]) -> Vec<f64> {
    let (values, _) = bytes.as_chunks::<8>();
    values
        .iter()
        .map(|value| f64::from_le_bytes(*value))
        .collect()
}

/// The answers for places; `None` for a place that is not on earth.
#[derive(Clone, Copy)]
struct AnswerRows;

impl RowType for AnswerRows {
    type Row<'r> = Option<Answer<'r>>;
}

type AnswerColumn = TableColumn<AnswerRows>;

const COLUMNS: [AnswerColumn; 13] = {
    use ColumnGetter::{Double, Int64, Text};
    [
        AnswerColumn::optional("label", Text(|row| label(row.as_ref()?))),
        AnswerColumn::optional(
            "house_number",
            Text(|row| row.as_ref()?.address.house_number.as_deref()),
        ),
        AnswerColumn::optional("street", Text(|row| row.as_ref()?.address.street)),
        AnswerColumn::optional("postcode", Text(|row| row.as_ref()?.address.postcode)),
        AnswerColumn::optional("suburb", Text(|row| row.as_ref()?.address.suburb)),
        AnswerColumn::optional("city", Text(|row| row.as_ref()?.address.city)),
        AnswerColumn::optional("county", Text(|row| row.as_ref()?.address.county)),
        AnswerColumn::optional("state", Text(|row| row.as_ref()?.address.state)),
        AnswerColumn::optional("country", Text(|row| row.as_ref()?.address.country)),
        AnswerColumn::optional(
            "country_code",
            Text(|row| row.as_ref()?.address.country_code.as_deref()),
        ),
        AnswerColumn::optional("osm_type", Text(|row| Some(object(row)?.kind.name()))),
        AnswerColumn::optional("osm_id", Int64(|row| Some(object(row)?.id))),
        AnswerColumn::optional("distance_m", Double(|row| Some(object(row)?.distance_m))),
    ]
};

/// Returns the label of an answer; `None` if it is empty.
fn label<'a>(answer: &'a Answer<'_>) -> Option<&'a str> {
    Some(answer.label.as_str()).filter(|label| !label.is_empty())
}

/// Returns the object that has the address.
fn object<'a>(row: &'a Option<Answer<'_>>) -> Option<&'a NearObject> {
    Some(&row.as_ref()?.object.as_ref()?.object)
}

impl Queries {
    fn answer(&self, place: Location) -> Result<Answer<'_>> {
        self.index.reverse(place, &self.options)
    }

    /// Answers queries on all cores. A place that is not on earth has an empty row.
    fn answer_all(&self, places: &[Option<Location>]) -> Result<Option<RecordBatch>> {
        let cores = available_parallelism().map_or(1, usize::from);
        let share = places.len().div_ceil(cores).max(1);
        let answer = |places: &[Option<Location>]| -> Result<Vec<_>> {
            let answers = places.iter();
            answers
                .map(|place| place.map(|place| self.answer(place)).transpose())
                .collect()
        };
        let found: Vec<Result<Vec<_>>> = std::thread::scope(|scope| {
            let shares = places.chunks(share);
            let threads: Vec<_> = shares
                .map(|share| scope.spawn(move || answer(share)))
                .collect();
            let failed = |_| Err(pbfhogg::Error::Internal("a thread panicked".into()));
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(failed));
            joined.collect()
        });
        let mut rows = TableRows::new(&COLUMNS, schema(&COLUMNS));
        for part in found {
            part?.iter().for_each(|answer| rows.add(answer));
        }
        Ok(rows.take())
    }
}

/// A table of what is at places.
#[derive(Clone)]
struct Places {
    queries: Arc<Queries>,
    places: Arc<[Option<Location>]>,
}

impl TableSource for Places {
    fn schema(&self) -> SchemaRef {
        schema(&COLUMNS)
    }

    fn without_columns(&self) -> Box<dyn TableSource> {
        // The places are answered, so that an index that cannot be read is an error here as well.
        Box::new(self.clone())
    }

    fn start(&self) -> Box<dyn Batches> {
        Box::new(PlaceBatches {
            queries: self.queries.clone(),
            places: self.places.clone(),
            at: 0,
        })
    }
}

/// Answers that are made as they are read.
struct PlaceBatches {
    queries: Arc<Queries>,
    places: Arc<[Option<Location>]>,
    at: usize,
}

impl Batches for PlaceBatches {
    fn next_within(&mut self, _: Duration) -> Option<Option<Result<RecordBatch>>> {
        let end = (self.at + AT_ONCE).min(self.places.len());
        let places = &self.places[std::mem::replace(&mut self.at, end)..end];
        Some(self.queries.answer_all(places).transpose())
    }
}
