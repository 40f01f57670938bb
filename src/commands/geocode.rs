//! `geocode`: finds the address, the street and the areas of places.

#[cfg(feature = "serve")]
mod answer_body;
#[cfg(feature = "serve")]
mod client_io;
#[cfg(feature = "serve")]
mod connection;
mod csv;
#[cfg(feature = "serve")]
mod geocode_json;
#[cfg(feature = "serve")]
mod map_text;
#[cfg(feature = "serve")]
mod place_json;
#[cfg(feature = "serve")]
mod place_xml;
mod places;
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
#[cfg(feature = "serve")]
mod subject;

use crate::error::{Error, Result};
use crate::geocode::{Answer, GeocodeIndex, QueryOptions};
use crate::geometry::Extent;
use crate::osm::{Bbox, Location};
use crossbeam_channel::Receiver;
use places::{Separator, TableForm};
use rayon::prelude::*;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

pub use places::parse_place;
#[cfg(feature = "serve")]
pub use serve::{MAX_CONNECTIONS, ServeOptions, TIMEOUT, serve};
#[cfg(feature = "serve")]
pub use service::parse_origin;

/// The maximum number of lines that are read at once. These lines are answered before more lines are read.
const LINES: u64 = 1 << 15;
/// The number of lines that a thread answers at a time.
const CHUNK: usize = 1 << 8;
/// The expected size of an answer, in bytes.
const ANSWER_LEN: usize = 1 << 10;
/// The size of the input buffer and of the output buffer, in bytes.
const BUFFER_LEN: usize = 1 << 20;
/// The maximum length of a line, in bytes.
const MAX_LINE: usize = 1 << 16;

/// The options of `geocode`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The directory of the index.
    pub index: PathBuf,
    /// The options of queries, such as the languages.
    pub query: QueryOptions,
    /// Whether answers are JSON objects rather than human-readable lines.
    pub is_json: bool,
    /// Whether each line of a table is copied, with its answer appended as columns.
    pub is_csv: bool,
    /// The indices of the columns with the latitude and the longitude. May be `None` if the first line has the names of
    /// the columns, or if the table has only these two columns.
    pub columns: Option<[usize; 2]>,
    /// The maximum number of input lines that are answered, not counting a line with column names; `None` for all.
    pub limit: Option<u64>,
    /// The number of threads.
    pub jobs: usize,
}

impl Options {
    /// Creates options with the given index, and defaults otherwise. Answers are human-readable lines, and one thread
    /// is used.
    pub fn new(index: impl Into<PathBuf>) -> Self {
        Self {
            index: index.into(),
            query: QueryOptions::default(),
            is_json: false,
            is_csv: false,
            columns: None,
            limit: None,
            jobs: 1,
        }
    }
}

setters!(Options {
    query: QueryOptions,
    is_json: bool,
    is_csv: bool,
    columns: Option<[usize; 2]>,
    limit: Option<u64>,
    jobs: usize,
});

/// The result of `geocode`: the places whose latitude and longitude look swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// The number of places that lie outside of the bounding box of the index, but would be in it if latitude and
    /// longitude were swapped.
    pub exchanged: u64,
    /// The number, counted from 1, of the first line with a place whose latitude and longitude look swapped; 0 if no
    /// line has such a place.
    pub first_exchanged: u64,
    /// The indices of the columns with the latitude and the longitude. Set only if `exchanged` is not 0.
    pub columns: [usize; 2],
}

/// Answers the query for one place. Also returns whether the place lies outside of the bounding box of the index, but
/// would be in it if latitude and longitude were swapped.
///
/// # Errors
///
/// The index cannot be opened, or is damaged.
pub fn at(options: &Options, place: Location) -> Result<(String, bool)> {
    let index = GeocodeIndex::open(&options.index)?;
    let mut line = Vec::new();
    put_answer(&mut line, options, &index.reverse(place, &options.query)?);
    let text = String::from_utf8(line).map_err(|error| Error::Internal(error.to_string()))?;
    Ok((text, is_exchanged(&index.bbox()?, place)))
}

/// Whether a place lies outside of a box, but would be in it if latitude and longitude were swapped.
fn is_exchanged(bbox: &Bbox, place: Location) -> bool {
    let (lat, lon) = (place.lat_e7(), place.lon_e7());
    !bbox.is_empty() && !bbox.contains(lat, lon) && bbox.contains(lon, lat)
}

/// Appends an answer without a line break.
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

/// Reads places from `input`, one per line, and writes the answers to `output` in the same order. The answer to a line
/// without a valid place is an error message. The first line may name the columns of a table.
///
/// # Errors
///
/// The index cannot be opened or is damaged, the first line has column names but no name of a column of latitudes or of
/// longitudes, or the input or the output fails.
pub fn run(options: &Options, input: impl Read, output: impl Write + Send) -> Result<Summary> {
    let index = GeocodeIndex::open(&options.index)?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(options.jobs);
    let threads = threads.build();
    let threads =
        threads.map_err(|error| Error::Usage(format!("cannot start threads: {error}")))?;
    let mut input = Input {
        reader: BufReader::with_capacity(BUFFER_LEN, input),
        left: options.limit.unwrap_or(u64::MAX),
    };
    let mut job = Job {
        options,
        bbox: index.bbox()?,
        index: &index,
        table: None,
        header: None,
        lines_before: 0,
    };
    let mut summary = Summary::default();
    // Answers are written while the next lines are answered.
    std::thread::scope(|scope| {
        let (sender, answers) = crossbeam_channel::bounded(0);
        let writer = scope.spawn(move || write(&answers, output));
        let mut answer_next = || -> Result<bool> {
            let lines = input.take()?;
            if lines.ends.is_empty() {
                return Ok(false);
            }
            let header = job.begin(&lines)?;
            // The line with the names of the columns does not count as a place, so one more line may be read.
            input.left = input.left.saturating_add(u64::from(header.is_some()));
            let answers = threads.install(|| job.answers_to(&lines))?;
            job.count_exchanged(&answers, &mut summary);
            job.lines_before += lines.ends.len() as u64;
            job.header = None;
            // Sending fails if the writer has failed, which is reported below.
            Ok(sender.send((header, answers)).is_ok())
        };
        let answered = loop {
            match answer_next() {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        drop(sender);
        let stopped = |_| {
            Err(Error::Internal(
                "the thread that writes answers panicked".into(),
            ))
        };
        writer.join().unwrap_or_else(stopped)?;
        answered
    })?;
    Ok(summary)
}

/// Writes groups of answers, each after its header line if it has one.
fn write(groups: &Receiver<(Option<Vec<u8>>, Answers)>, output: impl Write) -> Result<()> {
    let mut output = BufWriter::with_capacity(BUFFER_LEN, output);
    for (header, answers) in groups {
        let header = header.as_deref();
        let mut lines = header.into_iter().chain(answers.iter());
        let written = lines.try_for_each(|line| output.write_all(line));
        written
            .and_then(|()| output.flush())
            .map_err(write_failed)?;
    }
    Ok(())
}

fn write_failed(error: io::Error) -> Error {
    Error::io(Path::new("-"), "cannot write", error)
}

/// A line of the input: the position of its place on a Hilbert curve (`None` without a valid place), the index of the
/// line in its group, and its place or an error message.
type Question = (Option<u64>, usize, Result<Location, String>);

/// The answer to a line, or the reason why the line has no place.
type Answered<'a> = std::result::Result<Answer<'a>, &'a str>;

/// The answers to consecutive lines.
struct Answers {
    chunks: Vec<Vec<u8>>,
    /// For each line, the index of the chunk with its answer, and the range of the answer in the chunk; `None` for a
    /// line with column names.
    places: Vec<Option<(usize, Range<usize>)>>,
    /// The indices of the lines with a place whose latitude and longitude look swapped.
    exchanged: Vec<usize>,
}

impl Answers {
    /// Returns the answers in the order of the lines, each with a line break.
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let places = self.places.iter().flatten();
        places.map(|(chunk, range)| &self.chunks[*chunk][range.clone()])
    }
}

/// The state of a run over the lines of an input.
struct Job<'o> {
    options: &'o Options,
    index: &'o GeocodeIndex,
    /// The box of the index.
    bbox: Bbox,
    /// The form of the table; `None` before the first line that is not blank.
    table: Option<TableForm>,
    /// The index of the line with column names, if that line is in the current group of lines.
    header: Option<usize>,
    lines_before: u64,
}

impl Job<'_> {
    /// Detects the form of the table from the first line that is not blank, unless the form is known. If that line has
    /// column names, returns the header line of the output, which is empty without [`Options::is_csv`].
    fn begin(&mut self, lines: &Lines) -> Result<Option<Vec<u8>>> {
        let is_blank = |number: &usize| lines.get(*number).trim_ascii().is_empty();
        let first = (0..lines.ends.len()).find(|number| !is_blank(number));
        let Some(first) = first.filter(|_| self.table.is_none()) else {
            return Ok(None);
        };
        let line = String::from_utf8_lossy(lines.get(first));
        let line = line.trim_end_matches(['\n', '\r']);
        let failed = |cause: String| {
            let number = self.lines_before + first as u64 + 1;
            Error::file(Path::new("-"), format!("line {number}: {cause}"))
        };
        let form = TableForm::of(line, self.options.columns).map_err(failed)?;
        let mut header = Vec::new();
        if self.options.is_csv {
            let separator = form.csv_separator().map_err(failed)?;
            if form.has_header {
                csv::put_header(&mut header, line, separator);
            }
        }
        let has_header = form.has_header;
        self.header = has_header.then_some(first);
        self.table = Some(form);
        Ok(has_header.then_some(header))
    }

    /// Adds the places whose latitude and longitude look swapped to `summary`.
    fn count_exchanged(&self, answers: &Answers, summary: &mut Summary) {
        for line in &answers.exchanged {
            let line = self.lines_before + *line as u64 + 1;
            let columns = self.table.as_ref().and_then(|table| table.columns);
            summary.columns = columns.unwrap_or([0, 1]);
            summary.exchanged += 1;
            summary.first_exchanged = match summary.first_exchanged {
                0 => line,
                first => first.min(line),
            };
        }
    }

    /// Returns the place in a line, or the reason why there is none.
    fn place_in(&self, line: &[u8]) -> Result<Location, String> {
        let text = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?;
        match &self.table {
            Some(table) => table.place_in(text),
            None => parse_place(text),
        }
    }

    /// Appends the answer to a line, and a line break.
    fn put_line(&self, out: &mut Vec<u8>, line: &[u8], number: usize, answer: Answered<'_>) {
        let number = self.lines_before + number as u64 + 1;
        let answer = answer.map_err(|cause| format!("line {number}: {cause}"));
        let separator = self.table.as_ref().map(|table| table.separator);
        if let (true, Some(Separator::Byte(separator))) = (self.options.is_csv, separator) {
            csv::put_row(out, line, separator, &answer);
            return;
        }
        match answer {
            Ok(answer) => put_answer(out, self.options, &answer),
            Err(error) => put_error(out, self.options, &error),
        }
        out.push(b'\n');
    }

    /// Answers lines. Places are looked up in the order of a Hilbert curve, because places near each other use the same
    /// parts of the index. These parts then stay in the processor cache.
    fn answers_to(&self, lines: &Lines) -> Result<Answers> {
        let question = |number: usize| -> Question {
            let place = self.place_in(lines.get(number));
            let point = place.as_ref().ok().map(|place| Extent::at((*place).into()));
            (point.map(|point| point.curve_position(32)), number, place)
        };
        let numbers = (0..lines.ends.len()).into_par_iter();
        let numbers = numbers.filter(|number| self.header != Some(*number));
        let mut questions: Vec<Question> = numbers.map(question).collect();
        questions.par_sort_unstable_by_key(|(position, number, _)| (*position, *number));
        let answer = |questions: &[Question]| -> Result<(Vec<u8>, Vec<usize>)> {
            let mut chunk = Vec::with_capacity(questions.len() * ANSWER_LEN);
            let mut ends = Vec::with_capacity(questions.len());
            for (_, number, place) in questions {
                let answer = match place {
                    Ok(place) => Ok(self.index.reverse(*place, &self.options.query)?),
                    Err(error) => Err(error.as_str()),
                };
                self.put_line(&mut chunk, lines.get(*number), *number, answer);
                ends.push(chunk.len());
            }
            Ok((chunk, ends))
        };
        let answered: Result<Vec<_>> = questions.par_chunks(CHUNK).map(answer).collect();
        let is_exchanged = |(_, number, place): &Question| {
            let place = place.as_ref().ok()?;
            is_exchanged(&self.bbox, *place).then_some(*number)
        };
        let mut answers = Answers {
            chunks: Vec::new(),
            places: vec![None; lines.ends.len()],
            exchanged: questions.iter().filter_map(is_exchanged).collect(),
        };
        for (questions, (chunk, ends)) in questions.chunks(CHUNK).zip(answered?) {
            let mut start = 0;
            for ((_, number, _), end) in questions.iter().zip(ends) {
                answers.places[*number] = Some((answers.chunks.len(), start..end));
                start = end;
            }
            answers.chunks.push(chunk);
        }
        Ok(answers)
    }
}

/// Appends the error message that answers a line without a valid place.
fn put_error(line: &mut Vec<u8>, options: &Options, error: &str) {
    let text = if options.is_json {
        serde_json::json!({ "error": error }).to_string()
    } else {
        format!("error: {error}")
    };
    line.extend_from_slice(text.as_bytes());
}

/// An input that is read line by line.
struct Input<R> {
    reader: BufReader<R>,
    /// The number of lines that may still be read.
    left: u64,
}

/// Consecutive lines with their line breaks.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Lines {
    /// Returns a line with its line break.
    fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[number]]
    }

    /// Returns the length in bytes of the last line if it has no line break yet, and otherwise 0.
    fn unfinished(&self) -> usize {
        self.text.len() - self.ends.last().map_or(0, |end| *end)
    }

    /// The length of the longest line, in bytes.
    fn longest(&self) -> usize {
        let lens = (0..self.ends.len()).map(|number| self.get(number).len());
        lens.max().unwrap_or(0).max(self.unfinished())
    }

    /// Adds text up to its last line break, but at most `limit` lines. Text without a line break is added whole.
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
        self.text.extend_from_slice(&text[..added]);
        added
    }
}

impl<R: Read> Input<R> {
    /// Reads the next lines. Does not wait for more input if at least one line was read.
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
            // If no more bytes have arrived, the lines are answered at once, because an interactive user expects an
            // answer after each line.
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
