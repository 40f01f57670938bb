//! `geocode`: says what is at places.

#[cfg(feature = "serve")]
mod answer_body;
#[cfg(feature = "serve")]
mod client_io;
#[cfg(feature = "serve")]
mod connection;
#[cfg(feature = "serve")]
mod map_text;
#[cfg(feature = "serve")]
mod refusal;
#[cfg(feature = "serve")]
mod reverse;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod service;
#[cfg(feature = "serve")]
mod service_signals;

use crate::error::{Error, Result};
use crate::geocode::{Answer, GeocodeIndex, QueryOptions};
use crate::geometry::{Extent, point_of_text};
use crate::osm::Location;
use rayon::prelude::*;
use std::borrow::Cow;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

#[cfg(feature = "serve")]
pub use serve::{MAX_CONNECTIONS, ServeOptions, TIMEOUT, serve};
#[cfg(feature = "serve")]
pub use service::parse_origin;

/// The maximum number of lines that are read before they are answered.
const LINES: u64 = 1 << 16;
/// The number of lines that a thread answers at a time.
const CHUNK: usize = 1 << 8;
/// The number of bytes of an answer that are expected.
const ANSWER_LEN: usize = 1 << 10;
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
    let (lat, lon): (Cow<'_, str>, Cow<'_, str>) = if text.starts_with('{') {
        let object: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("no JSON object: {error}"))?;
        let member = |name: &str| match object.get(name) {
            Some(serde_json::Value::String(text)) => Ok(Cow::Owned(text.clone())),
            Some(serde_json::Value::Number(number)) => Ok(Cow::Owned(number.to_string())),
            _ => Err(format!("the JSON object has no member {name}")),
        };
        (member("lat")?, member("lon")?)
    } else {
        let is_separator = |char: char| char.is_whitespace() || char == ',' || char == ';';
        let mut parts = text.split(is_separator).filter(|part| !part.is_empty());
        match (parts.next(), parts.next()) {
            (Some(lat), Some(lon)) => (lat.into(), lon.into()),
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
    put_answer(&mut line, options, &index.reverse(place, &options.query)?);
    String::from_utf8(line).map_err(|error| Error::Internal(error.to_string()))
}

/// Appends an answer without the end of its line.
fn put_answer(line: &mut Vec<u8>, options: &Options, answer: &Answer<'_>) {
    if options.is_json {
        answer.put_json(line);
        return;
    }
    let label = match answer.label.as_str() {
        "" => "nothing is known here",
        label => label,
    };
    line.extend_from_slice(label.as_bytes());
}

/// Answers the questions about places that are read from `input`, one a line, in order. A line that is no place gets an
/// error as its answer.
///
/// # Errors
///
/// The index cannot be opened or is damaged, or the input or the output fails.
pub fn run(options: &Options, input: impl Read, output: impl Write) -> Result<()> {
    let index = GeocodeIndex::open(&options.index)?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(options.jobs);
    let threads = threads.build();
    let threads =
        threads.map_err(|error| Error::Usage(format!("cannot start threads: {error}")))?;
    let mut input = Input {
        reader: BufReader::with_capacity(BUFFER_LEN, input),
        left: options.limit.unwrap_or(u64::MAX),
    };
    let mut output = BufWriter::with_capacity(BUFFER_LEN, output);
    loop {
        let lines = input.take()?;
        if lines.ends.is_empty() {
            return Ok(());
        }
        let answers = threads.install(|| answers_to(options, &index, &lines))?;
        let written = answers.iter().try_for_each(|line| output.write_all(line));
        let written = written.and_then(|()| output.flush());
        written.map_err(|error| Error::io(Path::new("-"), "cannot write", error))?;
    }
}

/// A line of the input: the position of its place on a curve, its number, and its place.
type Question = (Option<u64>, usize, Result<Location, String>);

/// The answers to lines, in the order of these.
struct Answers {
    chunks: Vec<Vec<u8>>,
    /// The chunk of each answer, and where in the chunk it is.
    places: Vec<(usize, Range<usize>)>,
}

impl Answers {
    /// The answers, each with the end of its line.
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let answer = |(chunk, range): &(usize, Range<usize>)| {
            let chunk = self.chunks.get(*chunk)?;
            chunk.get(range.clone())
        };
        self.places.iter().filter_map(answer)
    }
}

/// Answers lines. Neighbours are looked up one after another: they are in the same part of the index, which is then in the
/// cache of the processor.
fn answers_to(options: &Options, index: &GeocodeIndex, lines: &Lines) -> Result<Answers> {
    let question = |number: usize| -> Question {
        let text = std::str::from_utf8(lines.get(number)).map_err(|_| "not UTF-8".to_owned());
        let place = text.and_then(parse_place);
        let point = place.as_ref().ok().map(|place| Extent::at((*place).into()));
        (point.map(|point| point.curve_position(32)), number, place)
    };
    let numbers = (0..lines.ends.len()).into_par_iter();
    let mut questions: Vec<Question> = numbers.map(question).collect();
    questions.par_sort_unstable_by_key(|(position, number, _)| (*position, *number));
    let answer = |questions: &[Question]| -> Result<(Vec<u8>, Vec<usize>)> {
        let mut chunk = Vec::with_capacity(questions.len() * ANSWER_LEN);
        let mut ends = Vec::with_capacity(questions.len());
        for (_, _, place) in questions {
            match place {
                Ok(place) => {
                    let answer = index.reverse(*place, &options.query)?;
                    put_answer(&mut chunk, options, &answer);
                }
                Err(error) => put_error(&mut chunk, options, error),
            }
            chunk.push(b'\n');
            ends.push(chunk.len());
        }
        Ok((chunk, ends))
    };
    let answered: Result<Vec<_>> = questions.par_chunks(CHUNK).map(answer).collect();
    let mut answers = Answers {
        chunks: Vec::new(),
        places: vec![(0, 0..0); questions.len()],
    };
    for (questions, (chunk, ends)) in questions.chunks(CHUNK).zip(answered?) {
        let mut start = 0;
        for ((_, number, _), end) in questions.iter().zip(ends) {
            if let Some(place) = answers.places.get_mut(*number) {
                *place = (answers.chunks.len(), start..end);
            }
            start = end;
        }
        answers.chunks.push(chunk);
    }
    Ok(answers)
}

/// Appends the answer to a line that is no place.
fn put_error(line: &mut Vec<u8>, options: &Options, error: &str) {
    let text = match options.is_json {
        true => serde_json::json!({ "error": error }).to_string(),
        false => format!("error: {error}"),
    };
    line.extend_from_slice(text.as_bytes());
}

/// An input of lines.
struct Input<R> {
    reader: BufReader<R>,
    /// The number of lines that may still be taken.
    left: u64,
}

/// Lines, one after the other.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Lines {
    /// A line, with its end.
    fn get(&self, number: usize) -> &[u8] {
        let end = |number: usize| self.ends.get(number).copied();
        let start = number.checked_sub(1).and_then(end).unwrap_or(0);
        let range = start..end(number).unwrap_or(start);
        self.text.get(range).unwrap_or_default()
    }

    /// The number of bytes of the line that has not ended yet.
    fn unfinished(&self) -> usize {
        self.text.len() - self.ends.last().copied().unwrap_or(0)
    }

    /// The number of bytes of the longest line.
    fn longest(&self) -> usize {
        let lens = (0..self.ends.len()).map(|number| self.get(number).len());
        lens.max().unwrap_or(0).max(self.unfinished())
    }

    /// Adds text up to the end of its last line, and at most `limit` lines; text without a line end is added as it is.
    /// Returns the number of bytes that were added.
    fn add(&mut self, text: &[u8], limit: u64) -> usize {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let ends = memchr::memchr_iter(b'\n', text).map(|end| end + 1);
        let before = self.text.len();
        self.ends.extend(ends.take(limit).map(|end| before + end));
        let added = match self.ends.last() {
            Some(end) if *end > before => end - before,
            _ => text.len(),
        };
        self.text
            .extend_from_slice(text.get(..added).unwrap_or_default());
        added
    }
}

impl<R: Read> Input<R> {
    /// The next lines: those that were read, without waiting for more if there are some.
    fn take(&mut self) -> Result<Lines> {
        let mut lines = Lines::default();
        let limit = self.left.min(LINES);
        while (lines.ends.len() as u64) < limit {
            let text = self.reader.fill_buf();
            let text = text.map_err(|error| Error::io(Path::new("-"), "cannot read", error))?;
            if text.is_empty() {
                if lines.unfinished() > 0 {
                    lines.ends.push(lines.text.len());
                }
                break;
            }
            let added = lines.add(text, limit - lines.ends.len() as u64);
            self.reader.consume(added);
            if lines.unfinished() > MAX_LINE {
                break;
            }
            // An interactive user wants the answer to each line.
            if self.reader.buffer().is_empty() && lines.unfinished() == 0 {
                break;
            }
        }
        if lines.longest() > MAX_LINE {
            let cause = format!("a line is longer than {MAX_LINE} bytes");
            return Err(Error::file(Path::new("-"), cause));
        }
        self.left -= lines.ends.len() as u64;
        Ok(lines)
    }
}
