//! Writes tables as comma-separated values (RFC 4180). Lines end with a line feed, as other text outputs do.

use super::numbers::{TimeFormatter, put_decimal_degrees, put_number};
use super::text_buffer::TextBuffer;
use std::collections::BTreeSet;

/// Appends a field, in quotes if it needs them.
pub(crate) fn put_csv_field(out: &mut Vec<u8>, text: impl AsRef<[u8]>, separator: u8) {
    let text = text.as_ref();
    let needs_quotes = |byte: u8| byte == separator || matches!(byte, b'"' | b'\n' | b'\r');
    if text.iter().copied().any(needs_quotes) {
        put_quoted(out, text);
    } else {
        out.extend_from_slice(text);
    }
}

/// Appends a field in quotes.
pub(crate) fn put_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// A buffer of rows. A field without a value is empty.
#[derive(Debug)]
pub(crate) struct CsvText {
    bytes: Vec<u8>,
    /// Whether the next field is the first one of its row.
    is_row_start: bool,
    /// The text of a field before it is quoted.
    field: TextBuffer,
    times: TimeFormatter,
}

impl CsvText {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            is_row_start: true,
            field: TextBuffer::new(),
            times: TimeFormatter::new(),
        }
    }

    /// Appends a row with the names of columns.
    pub(crate) fn put_header(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.put_text(Some(name)));
        self.end_row();
    }

    /// Appends a row with the names of columns. Fails if two columns have the same name.
    pub(super) fn put_unique_column_names(&mut self, names: &[&str]) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(**name)) {
            return Err(format!("{twice}: two columns would have this name"));
        }
        self.put_header(names);
        Ok(())
    }

    /// Appends a field of text.
    pub(crate) fn put_text(&mut self, text: Option<&str>) {
        self.put_separator();
        put_csv_field(&mut self.bytes, text.unwrap_or_default(), b',');
    }

    /// Appends a field that `put` writes, or an empty field if there is no value.
    pub(super) fn put_value<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut TextBuffer, T)) {
        match value {
            None => self.put_separator(),
            Some(value) => {
                self.field.truncate(0);
                put(&mut self.field, value);
                self.put_separator();
                put_csv_field(&mut self.bytes, self.field.bytes(), b',');
            }
        }
    }

    /// Appends a field with a number.
    pub(crate) fn put_integer(&mut self, number: Option<i64>) {
        self.put_value(number, put_number);
    }

    /// Appends a field with a coordinate in degrees.
    pub(crate) fn put_degrees(&mut self, e7: Option<i32>) {
        self.put_value(e7, put_decimal_degrees);
    }

    /// Appends a field with a time, which is given in seconds since 1970.
    pub(crate) fn put_time(&mut self, seconds: Option<i64>) {
        let mut times = std::mem::replace(&mut self.times, TimeFormatter::new());
        self.put_value(seconds, |text, seconds| times.put(text, seconds));
        self.times = times;
    }

    /// Ends a row.
    pub(crate) fn end_row(&mut self) {
        self.bytes.push(b'\n');
        self.is_row_start = true;
    }

    /// Removes and returns the text.
    pub(crate) fn take(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.bytes))
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// Appends the text to another text, and empties this buffer without freeing its memory.
    pub(super) fn move_to(&mut self, text: &mut TextBuffer) {
        text.push_str(&String::from_utf8_lossy(&self.bytes));
        self.bytes.clear();
    }

    /// Appends a comma, unless the next field is the first one of its row.
    fn put_separator(&mut self) {
        if !std::mem::take(&mut self.is_row_start) {
            self.bytes.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_the_format_requires_it() {
        let mut csv = CsvText::new();
        csv.put_header(&["name", "number", "lon", "time", "end"]);
        for text in ["plain", "a,b", "say \"yes\"", "two\nlines", " ä;'\t"] {
            csv.put_text(Some(text));
            csv.put_integer(Some(-7));
            csv.put_degrees(Some(-15_000_000));
            csv.put_time(Some(0));
            csv.put_text(None);
            csv.end_row();
        }
        csv.put_text(None);
        csv.put_integer(None);
        csv.put_degrees(None);
        csv.put_time(None);
        csv.put_text(Some("x"));
        csv.end_row();
        let rest = ",-7,-1.5,1970-01-01T00:00:00Z,\n";
        let names = [
            "plain",
            "\"a,b\"",
            "\"say \"\"yes\"\"\"",
            "\"two\nlines\"",
            " ä;'\t",
        ];
        let rows = names.map(|name| format!("{name}{rest}")).concat();
        assert_eq!(
            csv.take(),
            format!("name,number,lon,time,end\n{rows},,,,x\n")
        );
        assert_eq!(csv.take(), "");
    }
}
