//! `geocode`: finds the address, the street and the areas of places.

mod csv;
mod fields;
mod lines;
mod places;
#[cfg(feature = "serve")]
mod serve;

use crate::error::{Error, FileResult, Result};
use crate::geocode::{Answer, GeocodeIndex, QueryOptions};
use crate::geometry::Extent;
use crate::osm::{Bbox, Location};
use crossbeam_channel::Receiver;
use csv::RowForm;
use lines::{InputLines, LineInput, Quotes};
use places::LineForm;
use rayon::prelude::*;
use std::io::{BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

pub use places::parse_place;
#[cfg(feature = "serve")]
pub use serve::{MAX_CONNECTIONS, ServeOptions, TIMEOUT, parse_origin, serve};

/// The number of lines that a thread answers at a time.
const CHUNK: usize = 1 << 8;
/// The expected size of an answer, in bytes.
const ANSWER_LEN: usize = 1 << 10;
/// The size of the output buffer in bytes.
const BUFFER_LEN: usize = 1 << 20;

options! {
    /// The options of `geocode`.
    pub struct Options {
        /// The directory of the index.
        pub index: PathBuf,
    }
    /// By default, answers are human-readable lines, and one thread is used.
    new(index: impl Into<PathBuf>);
    setters {
        /// The options of queries, such as the languages.
        query: QueryOptions,
        /// Whether answers are JSON objects rather than human-readable lines.
        is_json: bool,
        /// Whether each line of a table is copied, with its answer appended as columns.
        is_csv: bool,
        /// The indices of the columns with the latitude and the longitude. They can be left out (`None`) if the first
        /// line names the columns, or if the table has no other columns.
        columns: Option<[usize; 2]>,
        /// The maximum number of input lines that are answered, not counting a line with column names; `None` for all.
        limit: Option<u64>,
        /// The name of the input in messages.
        name: PathBuf = "-".into(),
        /// The number of threads.
        jobs: usize = 1,
    }
}

/// The result of `geocode`: the places whose latitude and longitude look swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// The number of places whose latitude and longitude look swapped. Such a place is not in the bounding box of the
    /// index, but would be if the two numbers were swapped.
    pub exchanged: u64,
    /// The number, counted from 1, of the first line with a place whose latitude and longitude look swapped; 0 if no
    /// line has such a place.
    pub first_exchanged: u64,
    /// The indices of the columns with the latitude and the longitude. Set only if `exchanged` is not 0.
    pub columns: [usize; 2],
}

/// Answers the query for one place. Also returns whether the latitude and longitude of the place look swapped, as in
/// [`Summary::exchanged`].
///
/// # Errors
///
/// The index cannot be opened, or is damaged.
pub fn at(options: &Options, place: Location) -> Result<(String, bool)> {
    let index = GeocodeIndex::open(&options.index)?;
    let mut line = Vec::new();
    put_answer(&mut line, options, &index.reverse(place, &options.query)?);
    let text = String::from_utf8(line).map_err(Error::internal)?;
    Ok((text, may_have_swapped_lat_lon(&index.bbox()?, place)))
}

/// Whether a place is not in a box, but would be if its latitude and longitude were swapped.
fn may_have_swapped_lat_lon(bbox: &Bbox, place: Location) -> bool {
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
    let mut input = LineInput::new(input, options.limit).with_name(&options.name);
    let mut job = LookupRun {
        options,
        bbox: index.bbox()?,
        index: &index,
        table: None,
        rows: None,
        header: None,
        lines_before: 0,
    };
    let mut summary = Summary::default();
    // Answers are written while the next lines are answered.
    std::thread::scope(|scope| {
        let (sender, answers) = crossbeam_channel::bounded(0);
        let writer = scope.spawn(move || write_answers(&answers, output));
        let mut answer_next = || -> Result<bool> {
            let lines = input.read_lines()?;
            if lines.count() == 0 {
                return Ok(false);
            }
            job.detect_form(&lines)?;
            input.quotes = job.quotes();
            // The line with the names of the columns does not count as a place, so one more line may be read.
            input.left = input.left.saturating_add(u64::from(job.header.is_some()));
            let answers = threads.install(|| job.answer_lines(&lines))?;
            job.record_swapped_places(&answers, &mut summary);
            job.lines_before += lines.line_break_count();
            job.header = None;
            // Sending fails if the writer has failed, which is reported below.
            Ok(sender.send(answers).is_ok())
        };
        let answered = loop {
            match answer_next() {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        drop(sender);
        let stopped = |_| Err(Error::internal("the thread that writes answers panicked"));
        writer.join().unwrap_or_else(stopped)?;
        answered
    })?;
    Ok(summary)
}

/// Writes groups of answers.
fn write_answers(groups: &Receiver<Answers>, output: impl Write) -> Result<()> {
    let mut output = BufWriter::with_capacity(BUFFER_LEN, output);
    for answers in groups {
        let written = answers.iter().try_for_each(|line| output.write_all(line));
        written
            .and_then(|()| output.flush())
            .for_path(Path::new("-"), "cannot write")?;
    }
    Ok(())
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
    /// line with column names that is not written.
    places: Vec<Option<(usize, Range<usize>)>>,
    /// The numbers of the lines with a place whose latitude and longitude look swapped.
    exchanged: Vec<u64>,
}

impl Answers {
    /// Returns the answers in the order of the lines, each with a line break.
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let places = self.places.iter().flatten();
        places.map(|(chunk, range)| &self.chunks[*chunk][range.clone()])
    }
}

/// The state of a run over the lines of an input.
struct LookupRun<'o> {
    options: &'o Options,
    index: &'o GeocodeIndex,
    /// The box of the index.
    bbox: Bbox,
    /// The form of the table; `None` before the first line that is not blank.
    table: Option<LineForm>,
    /// The form of the rows of a table to which answers are appended.
    rows: Option<RowForm>,
    /// The line with column names, if it is in the current group of lines: its index, and its answer. The answer is
    /// empty without [`Options::is_csv`].
    header: Option<(usize, Vec<u8>)>,
    /// The number of line breaks before the current group of lines.
    lines_before: u64,
}

impl LookupRun<'_> {
    /// Detects the form of the table from the first line that is not blank. Does nothing if the form is already known.
    fn detect_form(&mut self, lines: &InputLines) -> Result<()> {
        let Some(first) = lines
            .first_non_blank_line()
            .filter(|_| self.table.is_none())
        else {
            return Ok(());
        };
        let line = lines.get(first);
        let failed = |cause: String| {
            let number = self.line_number(lines, first);
            Error::file(&self.options.name, format!("line {number}: {cause}"))
        };
        let form = LineForm::of(&String::from_utf8_lossy(line), self.options.columns);
        let form = form.map_err(failed)?;
        let mut header = Vec::new();
        if self.options.is_csv {
            let rows = RowForm::of(&form).map_err(failed)?;
            if form.has_header {
                rows.put_header(&mut header, line);
            }
            self.rows = Some(rows);
        }
        self.header = form.has_header.then_some((first, header));
        self.table = Some(form);
        Ok(())
    }

    /// Returns the positions at which a quote begins a field that may have line breaks.
    fn quotes(&self) -> Quotes {
        self.table
            .as_ref()
            .map_or(Quotes::Undecided, LineForm::quotes)
    }

    /// Returns the number of a line of the current group, counted from 1 on.
    fn line_number(&self, lines: &InputLines, line: usize) -> u64 {
        self.lines_before + lines.line_breaks_before(line) + 1
    }

    /// Adds the places whose latitude and longitude look swapped to `summary`.
    fn record_swapped_places(&self, answers: &Answers, summary: &mut Summary) {
        for line in answers.exchanged.iter().copied() {
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
        if let Some(rows) = &self.rows {
            rows.check(line)?;
        }
        let text = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?;
        match &self.table {
            Some(table) => table.place_in(text),
            None => parse_place(text),
        }
    }

    /// Appends the answer to a line, and a line break. `number` is the number of the line.
    fn put_line(&self, out: &mut Vec<u8>, line: &[u8], number: u64, answer: Answered<'_>) {
        let answer = answer.map_err(|cause| format!("line {number}: {cause}"));
        if let Some(rows) = &self.rows {
            rows.put_row(out, line, &answer);
            return;
        }
        if self.options.is_csv {
            // The form of the rows is not known yet, so the line is blank: only blank lines come before the first line
            // of a table.
            csv::put_blank_line(out, line);
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
    fn answer_lines(&self, lines: &InputLines) -> Result<Answers> {
        let question = |number: usize| -> Question {
            let place = self.place_in(lines.get(number));
            let point = place.as_ref().ok().map(|place| Extent::at((*place).into()));
            (point.map(|point| point.curve_position(32)), number, place)
        };
        let header = self.header.as_ref();
        let numbers = (0..lines.count()).into_par_iter();
        let numbers = numbers.filter(|number| header.is_none_or(|(header, _)| header != number));
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
                let line = self.line_number(lines, *number);
                self.put_line(&mut chunk, lines.get(*number), line, answer);
                ends.push(chunk.len());
            }
            Ok((chunk, ends))
        };
        let answered: Result<Vec<_>> = questions.par_chunks(CHUNK).map(answer).collect();
        let is_exchanged = |(_, number, place): &Question| {
            let place = place.as_ref().ok()?;
            may_have_swapped_lat_lon(&self.bbox, *place).then(|| self.line_number(lines, *number))
        };
        let mut answers = Answers {
            chunks: Vec::new(),
            places: vec![None; lines.count()],
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
        if let Some((number, text)) = header {
            answers.places[*number] = Some((answers.chunks.len(), 0..text.len()));
            answers.chunks.push(text.clone());
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
