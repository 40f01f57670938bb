//! Reads the lines of an input. In a table, a quoted field may have line breaks, and its row counts as one line.

use super::fields::BOM;
use crate::error::{Error, FileResult, Result};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The maximum number of lines that are read at once. These lines are answered before more lines are read.
const LINES: u64 = 1 << 15;
/// The size of the input buffer in bytes.
const BUFFER_LEN: usize = 1 << 20;
/// The maximum length of a line, in bytes.
const MAX_LINE: usize = 1 << 16;

/// The positions at which a quote begins a field that may have line breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// The form of the table is not known yet. A quote may begin a field after any separator.
    Undecided,
    /// Nowhere. The lines are pairs of numbers or JSON objects, or their columns are separated by spaces.
    Nowhere,
    /// After this separator, and at the start of a row.
    Behind(u8),
}

impl Quotes {
    /// Whether a quote may begin a field. `before` is the part of the row before the quote.
    fn may_begin_field_after(self, before: &[u8]) -> bool {
        let before = before.strip_prefix(BOM).unwrap_or(before);
        let last = before.last();
        match self {
            Self::Undecided => {
                let is_json = before.trim_ascii_start().starts_with(b"{");
                !is_json && last.is_none_or(|last| b",;\t".contains(last))
            }
            Self::Nowhere => false,
            Self::Behind(separator) => last.is_none_or(|last| *last == separator),
        }
    }
}

/// The position up to which a text was searched for the ends of lines.
#[derive(Debug, Clone, Copy, Default)]
struct LineScan {
    at: usize,
    /// Whether the position is in a quoted field.
    is_quoted: bool,
}

/// A line of the input, or a row of a table.
#[derive(Debug, Clone, Copy)]
struct Line {
    end: usize,
    /// The number of line breaks before the line.
    breaks: u64,
}

/// Consecutive lines with their line breaks.
#[derive(Debug, Default)]
pub(super) struct InputLines {
    text: Vec<u8>,
    lines: Vec<Line>,
    /// The number of line breaks in all lines.
    breaks: u64,
}

impl InputLines {
    pub(super) const fn count(&self) -> usize {
        self.lines.len()
    }

    /// Returns the number of line breaks in all lines. The last line of the input counts as if it ended with a line
    /// break.
    pub(super) const fn line_break_count(&self) -> u64 {
        self.breaks
    }

    /// Returns a line with its line break.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        let start = number
            .checked_sub(1)
            .map_or(0, |before| self.lines[before].end);
        &self.text[start..self.lines[number].end]
    }

    /// Returns the number of line breaks before a line.
    pub(super) fn line_breaks_before(&self, number: usize) -> u64 {
        self.lines[number].breaks
    }

    /// Returns the index of the first line that is not blank.
    pub(super) fn first_non_blank_line(&self) -> Option<usize> {
        (0..self.count()).find(|number| !self.get(*number).trim_ascii().is_empty())
    }

    /// Returns the offset in the text at which the last line ends. The text after this offset is not a complete line
    /// yet.
    fn last_line_end(&self) -> usize {
        self.lines.last().map_or(0, |line| line.end)
    }

    /// Returns the length of the longest line, in bytes.
    fn longest_line_len(&self) -> usize {
        let lens = (0..self.count()).map(|number| self.get(number).len());
        lens.max().unwrap_or(0)
    }

    /// Adds the line that ends at `end`.
    fn push(&mut self, end: usize) {
        let line = &self.text[self.last_line_end()..end];
        let found = memchr::memchr_iter(b'\n', line).count() as u64;
        let breaks = self.breaks;
        self.breaks += found + u64::from(!line.ends_with(b"\n"));
        self.lines.push(Line { end, breaks });
    }

    /// Adds the next line of the text, up to the first line break, and restarts `scan` after it. Used if a quoted field
    /// would have no end, or would make its row too long: the quote then probably does not begin a field. Returns
    /// `false` if the rest of the text has no line break.
    fn push_first_line(&mut self, scan: &mut LineScan) -> bool {
        let start = self.last_line_end();
        let Some(at) = memchr::memchr(b'\n', &self.text[start..]) else {
            return false;
        };
        let end = start + at + 1;
        self.push(end);
        *scan = LineScan {
            at: end,
            is_quoted: false,
        };
        true
    }

    /// Adds complete lines until there are `limit` lines. If `quotes` is [`Quotes::Undecided`], also stops after the
    /// first line that is not blank. Returns `false` if it needs more text to go on.
    fn push_complete_lines(&mut self, quotes: Quotes, limit: usize, scan: &mut LineScan) -> bool {
        while self.count() < limit {
            let rest = &self.text[scan.at..];
            let found = match (scan.is_quoted, quotes) {
                (true, _) => memchr::memchr(b'"', rest),
                (false, Quotes::Nowhere) => memchr::memchr(b'\n', rest),
                (false, _) => memchr::memchr2(b'"', b'\n', rest),
            };
            let Some(at) = found.map(|at| scan.at + at) else {
                scan.at = self.text.len();
                return false;
            };
            match (self.text[at], scan.is_quoted) {
                // Two consecutive quotes do not end a field. The byte after the first quote may not have been read yet.
                (b'"', true) => match self.text.get(at + 1) {
                    None => {
                        scan.at = at;
                        return false;
                    }
                    Some(b'"') => scan.at = at + 2,
                    Some(_) => {
                        *scan = LineScan {
                            at: at + 1,
                            is_quoted: false,
                        }
                    }
                },
                (b'"', false) => {
                    let before = &self.text[self.last_line_end()..at];
                    *scan = LineScan {
                        at: at + 1,
                        is_quoted: quotes.may_begin_field_after(before),
                    };
                }
                _ => {
                    let is_long = at - self.last_line_end() > MAX_LINE;
                    if !is_long || !self.push_first_line(scan) {
                        self.push(at + 1);
                        scan.at = at + 1;
                    }
                    let last = self.count() - 1;
                    if quotes == Quotes::Undecided && !self.get(last).trim_ascii().is_empty() {
                        return true;
                    }
                }
            }
        }
        true
    }
}

/// An input that is read line by line.
pub(super) struct LineInput<R> {
    reader: BufReader<R>,
    /// The name in messages.
    name: PathBuf,
    /// The number of lines that may still be read.
    pub left: u64,
    pub quotes: Quotes,
    /// Text that was read, but is not part of a returned line yet.
    rest: Vec<u8>,
}

impl<R: Read> LineInput<R> {
    pub(super) fn new(input: R, limit: Option<u64>) -> Self {
        Self {
            reader: BufReader::with_capacity(BUFFER_LEN, input),
            name: "-".into(),
            left: limit.unwrap_or(u64::MAX),
            quotes: Quotes::Undecided,
            rest: Vec::new(),
        }
    }

    /// Returns the same input with `name` as its name in messages.
    pub(super) fn with_name(self, name: &Path) -> Self {
        Self {
            name: name.to_owned(),
            ..self
        }
    }

    /// Reads the next lines; none at the end of the input. Waits for more input only if no line is complete yet, or if
    /// a part of a further line was read. An interactive user thus gets an answer after each line.
    pub(super) fn read_lines(&mut self) -> Result<InputLines> {
        let mut lines = InputLines {
            text: std::mem::take(&mut self.rest),
            ..InputLines::default()
        };
        let limit = usize::try_from(self.left.min(LINES)).unwrap_or(usize::MAX);
        let mut scan = LineScan::default();
        loop {
            let is_full = lines.push_complete_lines(self.quotes, limit, &mut scan);
            let unfinished = lines.text.len() - lines.last_line_end();
            if is_full || lines.count() > 0 && unfinished == 0 {
                break;
            }
            if unfinished > MAX_LINE {
                if scan.is_quoted && lines.push_first_line(&mut scan) {
                    continue;
                }
                return Err(self.too_long_error());
            }
            let text = self.reader.fill_buf().for_path(&self.name, "cannot read")?;
            if text.is_empty() {
                // If the last byte is a quote that ends its field, `push_complete_lines` has stopped before it. If
                // `scan` is at the end of the text, the field has no end.
                let end = lines.text.len();
                if scan.is_quoted && scan.at == end && lines.push_first_line(&mut scan) {
                    continue;
                }
                if unfinished > 0 {
                    lines.push(end);
                }
                break;
            }
            lines.text.extend_from_slice(text);
            let len = text.len();
            self.reader.consume(len);
        }
        if lines.longest_line_len() > MAX_LINE {
            return Err(self.too_long_error());
        }
        self.rest = lines.text.split_off(lines.last_line_end());
        self.left -= lines.count() as u64;
        Ok(lines)
    }

    fn too_long_error(&self) -> Error {
        let cause = format!("a line is longer than {MAX_LINE} bytes");
        Error::file(&self.name, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns at most `len` bytes at a time.
    struct Slow<'t> {
        text: &'t [u8],
        len: usize,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let len = self.len.min(self.text.len()).min(buffer.len());
            let (now, later) = self.text.split_at(len);
            buffer[..len].copy_from_slice(now);
            self.text = later;
            Ok(len)
        }
    }

    /// Returns the lines of a text, and the number of line breaks before each.
    fn lines_of(text: &str, len: usize, quotes: Quotes) -> Vec<(String, u64)> {
        let bytes = text.as_bytes();
        let mut input = LineInput::new(Slow { text: bytes, len }, None);
        let (mut found, mut before) = (Vec::new(), 0);
        loop {
            let lines = input.read_lines().unwrap();
            if lines.count() == 0 {
                return found;
            }
            for number in 0..lines.count() {
                let line = String::from_utf8(lines.get(number).to_vec()).unwrap();
                found.push((line, before + lines.line_breaks_before(number)));
            }
            before += lines.line_break_count();
            if lines.first_non_blank_line().is_some() {
                input.quotes = quotes;
            }
        }
    }

    #[test]
    fn a_row_continues_after_a_line_break_in_quotes() {
        let text = "\n\"a\nb\",c\n1,\"x\n\"\"y\"\"\n\",2\r\n5\" pipe\n\n\"open,1\n2,3\n\"\"\n4,end";
        let expected = [
            ("\n", 0),
            ("\"a\nb\",c\n", 1),
            ("1,\"x\n\"\"y\"\"\n\",2\r\n", 3),
            ("5\" pipe\n", 6),
            ("\n", 7),
            ("\"open,1\n", 8),
            ("2,3\n", 9),
            ("\"\"\n", 10),
            ("4,end", 11),
        ];
        let expected = expected.map(|(line, before)| (line.to_owned(), before));
        for len in [1, 2, 3, 7, 1000] {
            assert_eq!(lines_of(text, len, Quotes::Behind(b',')), expected, "{len}");
        }
        let found = lines_of("a,b\n1,\"end\"", 1, Quotes::Behind(b','));
        assert_eq!(found[1].0, "1,\"end\"");
        let lines = text.split_inclusive('\n').skip(3).map(str::to_owned);
        let found = lines_of(text, 1000, Quotes::Nowhere).into_iter().skip(2);
        assert!(found.map(|(line, _)| line).eq(lines));
    }

    #[test]
    fn an_unclosed_quote_affects_only_its_own_line() {
        let rows = "1,2\n".repeat(MAX_LINE);
        let text = format!("a,b\n\"{rows}\"\n");
        let found = lines_of(&text, 1 << 20, Quotes::Behind(b','));
        assert_eq!(found.len(), MAX_LINE + 2);
        assert_eq!(found[1].0, "\"1,2\n");
        let long = format!("a,b\n{}", "x".repeat(MAX_LINE + 1));
        let mut input = LineInput::new(long.as_bytes(), None);
        assert!(input.read_lines().is_ok() && input.read_lines().is_err());
    }
}
