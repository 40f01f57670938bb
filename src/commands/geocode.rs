//! `geocode`: says what is at places.

#[cfg(feature = "serve")]
mod reverse;
#[cfg(feature = "serve")]
mod serve;

use crate::error::{Error, Result};
use crate::geocode::{Answer, GeocodeIndex, QueryOptions};
use crate::geometry::{Extent, point_of_text};
use crate::osm::Location;
use rayon::prelude::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

#[cfg(feature = "serve")]
pub use serve::{ServeOptions, serve};

/// The maximum number of lines that are read before they are answered.
const LINES: usize = 1 << 16;
/// The number of lines that a thread answers at a time.
const CHUNK: usize = 1 << 10;
/// The number of bytes that are read at a time.
const BUFFER_LEN: usize = 1 << 20;
/// The maximum number of bytes of a line.
const MAX_LINE: usize = 1 << 16;

/// The options of `geocode`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The directory of the index.
    pub index: PathBuf,
    /// Languages and other choices.
    pub query: QueryOptions,
    /// Whether answers are JSON objects rather than lines for a person.
    pub is_json: bool,
    /// The number of lines of the input that are answered; `None` for all.
    pub limit: Option<u64>,
    /// The number of threads.
    pub jobs: usize,
}

impl Options {
    /// Options with the given index: answers are lines, on one thread.
    pub fn new(index: impl Into<PathBuf>) -> Self {
        Self {
            index: index.into(),
            query: QueryOptions::default(),
            is_json: false,
            limit: None,
            jobs: 1,
        }
    }
}

setters!(Options {
    query: QueryOptions,
    is_json: bool,
    limit: Option<u64>,
    jobs: usize,
});

/// Reads a place: a latitude and a longitude in degrees, separated by a space, a comma, a semicolon or a tab, or as the
/// members `lat` and `lon` of a JSON object.
///
/// # Errors
///
/// The text is none of these, or the place is not on the earth. The message says so.
pub fn parse_place(text: &str) -> Result<Location, String> {
    let text = text.trim();
    let (lat, lon) = if text.starts_with('{') {
        let object: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("no JSON object: {error}"))?;
        let member = |name: &str| match object.get(name) {
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(serde_json::Value::Number(number)) => Ok(number.to_string()),
            _ => Err(format!("the JSON object has no member {name}")),
        };
        (member("lat")?, member("lon")?)
    } else {
        let is_separator = |char: char| char.is_whitespace() || char == ',' || char == ';';
        let mut parts = text.split(is_separator).filter(|part| !part.is_empty());
        match (parts.next(), parts.next()) {
            (Some(lat), Some(lon)) => (lat.to_owned(), lon.to_owned()),
            _ => return Err("expected a latitude and a longitude, such as 49.41 8.69".into()),
        }
    };
    let point = point_of_text(&lon, &lat)?;
    let place = Location::new(point.lat_e7, point.lon_e7);
    place.ok_or_else(|| "this place is not on the earth".to_owned())
}

/// Answers the question about one place.
///
/// # Errors
///
/// The index cannot be opened, or is damaged.
pub fn at(options: &Options, place: Location) -> Result<String> {
    let index = GeocodeIndex::open(&options.index)?;
    let mut line = Vec::new();
    put_answer(&mut line, options, &index.reverse(place, &options.query)?)?;
    String::from_utf8(line).map_err(|error| Error::Internal(error.to_string()))
}

/// Appends an answer without the end of its line.
fn put_answer(line: &mut Vec<u8>, options: &Options, answer: &Answer<'_>) -> Result<()> {
    if options.is_json {
        return serde_json::to_writer(line, answer)
            .map_err(|error| Error::Internal(error.to_string()));
    }
    let label = match answer.label.as_str() {
        "" => "nothing is known here",
        label => label,
    };
    line.extend_from_slice(label.as_bytes());
    Ok(())
}

/// Answers the questions about places that are read from `input`, one a line, in order. A line that is no place gets an
/// error as its answer.
///
/// # Errors
///
/// The index cannot be opened or is damaged, or the input or the output fails.
pub fn run(options: &Options, input: impl Read, mut output: impl Write) -> Result<()> {
    let index = GeocodeIndex::open(&options.index)?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(options.jobs);
    let threads = threads.build();
    let threads =
        threads.map_err(|error| Error::Usage(format!("cannot start threads: {error}")))?;
    let mut lines = Lines {
        input: BufReader::with_capacity(BUFFER_LEN, input),
        left: options.limit.unwrap_or(u64::MAX),
    };
    loop {
        let texts = lines.take()?;
        if texts.is_empty() {
            return Ok(());
        }
        let answers = threads.install(|| answers_to(options, &index, &texts))?;
        let written = output.write_all(&answers).and_then(|()| output.flush());
        written.map_err(|error| Error::io(Path::new("-"), "cannot write", error))?;
    }
}

/// A line of the input: the position of its place on a curve, its number, and its place.
type Question = (Option<u64>, usize, Result<Location, String>);

/// The answers to lines, in their order, each with the end of its line. Neighbours are looked up one after another: they
/// are in the same part of the index, which is then in the cache of the processor.
fn answers_to(options: &Options, index: &GeocodeIndex, texts: &[Vec<u8>]) -> Result<Vec<u8>> {
    let question = |(number, text): (usize, &Vec<u8>)| -> Question {
        let text = std::str::from_utf8(text).map_err(|_| "not UTF-8".to_owned());
        let place = text.and_then(parse_place);
        let point = place.as_ref().ok().map(|place| Extent::at((*place).into()));
        (point.map(|point| point.curve_position(32)), number, place)
    };
    let mut questions: Vec<Question> = texts.par_iter().enumerate().map(question).collect();
    questions.par_sort_unstable_by_key(|(position, number, _)| (*position, *number));
    let chunks: Result<Vec<(Vec<u8>, Vec<usize>)>> = questions
        .par_chunks(CHUNK)
        .map(|questions| {
            let (mut lines, mut ends) = (Vec::new(), Vec::new());
            for (_, _, place) in questions {
                match place {
                    Ok(place) => {
                        let answer = index.reverse(*place, &options.query)?;
                        put_answer(&mut lines, options, &answer)?;
                    }
                    Err(error) => put_error(&mut lines, options, error),
                }
                lines.push(b'\n');
                ends.push(lines.len());
            }
            Ok((lines, ends))
        })
        .collect();
    let chunks = chunks?;
    let mut in_order: Vec<&[u8]> = vec![&[]; texts.len()];
    for (questions, (lines, ends)) in questions.chunks(CHUNK).zip(&chunks) {
        let mut start = 0;
        for ((_, number, _), end) in questions.iter().zip(ends) {
            let line = lines.get(start..*end);
            if let Some((slot, line)) = in_order.get_mut(*number).zip(line) {
                *slot = line;
            }
            start = *end;
        }
    }
    Ok(in_order.concat())
}

/// Appends the answer to a line that is no place.
fn put_error(line: &mut Vec<u8>, options: &Options, error: &str) {
    let text = match options.is_json {
        true => serde_json::json!({ "error": error }).to_string(),
        false => format!("error: {error}"),
    };
    line.extend_from_slice(text.as_bytes());
}

/// The lines of an input.
struct Lines<R> {
    input: BufReader<R>,
    /// The number of lines that may still be taken.
    left: u64,
}

impl<R: Read> Lines<R> {
    /// The next lines: those that were read, without waiting for more if there are some.
    fn take(&mut self) -> Result<Vec<Vec<u8>>> {
        let failed = |error| Error::io(Path::new("-"), "cannot read", error);
        let mut lines: Vec<Vec<u8>> = Vec::new();
        while lines.len() < LINES && self.left > 0 {
            let mut line = Vec::new();
            let mut limited = self.input.by_ref().take(MAX_LINE as u64);
            let read = limited.read_until(b'\n', &mut line).map_err(failed)?;
            if read == 0 {
                break;
            }
            if !line.ends_with(b"\n") && read == MAX_LINE {
                let cause = format!("a line is longer than {MAX_LINE} bytes");
                return Err(Error::file(Path::new("-"), cause));
            }
            lines.push(line);
            self.left -= 1;
            // An interactive user wants the answer to each line.
            if self.input.buffer().is_empty() {
                break;
            }
        }
        Ok(lines)
    }
}
