//! The reverse geocoder.

use crate::arguments::Texts;
use crate::batches::{Batches, TableSource};
use crate::error::OrRaise;
use crate::table::Table;
use crate::warnings::Warnings;
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pbfhogg::geocode::{Answer, GeocodeIndex, QueryOptions};
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

/// The parts of an address that are columns.
type Part = fn(&Answer<'_>) -> Option<String>;

const PARTS: [(&str, Part); 10] = [
    ("label", |answer| {
        Some(answer.label.clone()).filter(|label| !label.is_empty())
    }),
    ("house_number", |answer| answer.address.house_number.clone()),
    ("street", |answer| answer.address.street.map(str::to_owned)),
    ("postcode", |answer| {
        answer.address.postcode.map(str::to_owned)
    }),
    ("suburb", |answer| answer.address.suburb.map(str::to_owned)),
    ("city", |answer| answer.address.city.map(str::to_owned)),
    ("county", |answer| answer.address.county.map(str::to_owned)),
    ("state", |answer| answer.address.state.map(str::to_owned)),
    ("country", |answer| {
        answer.address.country.map(str::to_owned)
    }),
    ("country_code", |answer| answer.address.country_code.clone()),
];

fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let mut fields: Vec<_> = PARTS.iter().map(|(name, _)| text(name)).collect();
    fields.push(text("osm_type"));
    fields.push(Field::new("osm_id", DataType::Int64, true));
    fields.push(Field::new("distance_m", DataType::Float64, true));
    Arc::new(Schema::new(fields))
}

/// Answers as columns.
struct Answers {
    parts: [StringBuilder; PARTS.len()],
    kinds: StringBuilder,
    ids: Int64Builder,
    distances: Float64Builder,
}

impl Answers {
    fn new() -> Self {
        Self {
            parts: std::array::from_fn(|_| StringBuilder::new()),
            kinds: StringBuilder::new(),
            ids: Int64Builder::new(),
            distances: Float64Builder::new(),
        }
    }

    fn push(&mut self, answer: Option<&Answer<'_>>) {
        for (column, (_, part)) in self.parts.iter_mut().zip(PARTS) {
            column.append_option(answer.and_then(part));
        }
        let object = answer.and_then(|answer| answer.object.as_ref());
        let object = object.map(|answering| &answering.object);
        self.kinds
            .append_option(object.map(|object| object.kind.name()));
        self.ids.append_option(object.map(|object| object.id));
        self.distances
            .append_option(object.map(|object| object.distance_m));
    }

    fn finish(mut self) -> Vec<ArrayRef> {
        let parts = self.parts.iter_mut();
        let mut columns: Vec<ArrayRef> =
            parts.map(|column| Arc::new(column.finish()) as _).collect();
        columns.push(Arc::new(self.kinds.finish()));
        columns.push(Arc::new(self.ids.finish()));
        columns.push(Arc::new(self.distances.finish()));
        columns
    }
}

impl Queries {
    fn answer(&self, place: Location) -> Result<Answer<'_>> {
        self.index.reverse(place, &self.options)
    }

    /// Answers queries on all cores. A place that is not on earth has an empty row.
    fn answer_all(&self, places: &[Option<Location>]) -> Result<Answers> {
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
        let mut answers = Answers::new();
        for part in found {
            part?
                .iter()
                .for_each(|answer| answers.push(answer.as_ref()));
        }
        Ok(answers)
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
        schema()
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
        if places.is_empty() {
            return Some(None);
        }
        Some(Some(self.queries.answer_all(places).and_then(|answers| {
            RecordBatch::try_new(schema(), answers.finish())
                .map_err(|error| pbfhogg::Error::Internal(error.to_string()))
        })))
    }
}
