//! Appends answers as columns to the lines of a table.

use super::fields::Fields;
use super::places::TableForm;
use crate::geocode::Answer;

/// The names of the appended columns.
const NAMES: [&str; 9] = [
    "address",
    "house_number",
    "street",
    "postcode",
    "city",
    "state",
    "country",
    "country_code",
    "error",
];

/// The form of the rows of a table to which columns are appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowForm {
    pub separator: u8,
    /// The number of columns of the table.
    pub width: usize,
    /// Whether lines end with a carriage return and a line feed.
    pub is_crlf: bool,
}

impl RowForm {
    /// Returns the form of the rows of a table.
    ///
    /// # Errors
    ///
    /// Columns are separated by spaces, or lines are JSON.
    pub(super) fn of(table: &TableForm) -> Result<Self, String> {
        Ok(Self {
            separator: table.csv_separator()?,
            width: table.width,
            is_crlf: table.is_crlf,
        })
    }

    /// Checks that a row has no more columns than the table. Empty fields at its end do not count.
    ///
    /// # Errors
    ///
    /// The row has too many columns. The error is a message that describes the problem.
    pub(super) fn check(&self, line: &[u8]) -> Result<(), String> {
        let (row, _) = split_end(line);
        let fields = Fields::of(row, self.separator);
        match fields.split(row, self.width) {
            (_, Some(more)) if !self.is_blank(more) => Err(format!(
                "{} columns, but the table has {}",
                fields.count(),
                self.width
            )),
            _ => Ok(()),
        }
    }

    /// Whether a part of a row has only empty fields.
    fn is_blank(&self, part: &[u8]) -> bool {
        let mut bytes = part.iter();
        bytes.all(|byte| *byte == self.separator || byte.is_ascii_whitespace())
    }

    /// Appends a row with as many fields as the table has columns. Missing fields are empty. Fields that are too many
    /// become part of the last one, unless they are empty. A row with a quote that does not end becomes the first
    /// field.
    fn put_fitted(&self, out: &mut Vec<u8>, row: &[u8]) {
        let fields = Fields::of(row, self.separator);
        let mut count = fields.count();
        let (first, more) = fields.split(row, self.width);
        if fields.is_open {
            put_quoted(out, row);
            count = 1;
        } else if more.is_some_and(|more| !self.is_blank(more)) {
            let before = fields.split(row, self.width - 1).0;
            if self.width > 1 {
                out.extend_from_slice(before);
                out.push(self.separator);
            }
            put_quoted(out, fields.from(row, self.width - 1));
        } else {
            out.extend_from_slice(first);
        }
        let missing = self.width.saturating_sub(count);
        out.extend(std::iter::repeat_n(self.separator, missing));
    }

    fn put_columns(&self, out: &mut Vec<u8>, line: &[u8], columns: [&str; NAMES.len()]) {
        let (row, end) = split_end(line);
        self.put_fitted(out, row);
        for column in columns {
            out.push(self.separator);
            put_field(out, column, self.separator);
        }
        // The last line may have no line break.
        let own: &[u8] = if self.is_crlf { b"\r\n" } else { b"\n" };
        out.extend_from_slice(if end.is_empty() { own } else { end });
    }

    /// Appends the header of the output: `line`, which has the column names of the table, and the names of the new
    /// columns.
    pub(super) fn put_header(&self, out: &mut Vec<u8>, line: &[u8]) {
        self.put_columns(out, line, NAMES);
    }

    /// Appends a line of the table with the columns of its answer. An empty line stays empty, as does one of spaces.
    pub(super) fn put_row(
        &self,
        out: &mut Vec<u8>,
        line: &[u8],
        answer: &Result<Answer<'_>, String>,
    ) {
        if line.trim_ascii().is_empty() && !line.contains(&self.separator) {
            put_blank(out, line);
            return;
        }
        let columns = match answer {
            Err(error) => ["", "", "", "", "", "", "", "", error],
            Ok(answer) => {
                let address = &answer.address;
                let text = Option::unwrap_or_default;
                [
                    answer.label.as_str(),
                    text(address.house_number.as_deref()),
                    text(address.street.or(address.place)),
                    text(address.postcode),
                    text(address.city),
                    text(address.state),
                    text(address.country),
                    text(address.country_code.as_deref()),
                    "",
                ]
            }
        };
        self.put_columns(out, line, columns);
    }
}

/// Appends an empty line that stands for a blank one.
pub(super) fn put_blank(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(split_end(line).1);
}

/// Splits a line before its line break.
fn split_end(line: &[u8]) -> (&[u8], &[u8]) {
    let row = line.strip_suffix(b"\n").unwrap_or(line);
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    line.split_at(row.len())
}

/// Appends a field, in quotes if it needs them.
fn put_field(out: &mut Vec<u8>, text: &str, separator: u8) {
    let needs_quotes = |byte: u8| byte == separator || matches!(byte, b'"' | b'\n' | b'\r');
    if text.bytes().any(needs_quotes) {
        put_quoted(out, text.as_bytes());
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Appends a field in quotes.
fn put_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_the_columns_of_the_table() {
        let form = RowForm {
            separator: b',',
            width: 3,
            is_crlf: false,
        };
        for (row, fitted, is_right) in [
            ("1,2,3", "1,2,3", true),
            ("1", "1,,", true),
            ("1,\"a,b\"", "1,\"a,b\",", true),
            ("1,2,3,, ,", "1,2,3", true),
            ("1,2,3,x,y", "1,2,\"3,x,y\"", false),
            ("1,2,\"3\",x", "1,2,\"\"\"3\"\",x\"", false),
            ("1,\"2,3", "\"1,\"\"2,3\",,", true),
            ("1,\"2,3,4,5", "\"1,\"\"2,3,4,5\",,", true),
            ("1,5\" pipe,", "1,5\" pipe,", true),
        ] {
            let mut out = Vec::new();
            form.put_fitted(&mut out, row.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), fitted);
            assert_eq!(form.check(row.as_bytes()).is_ok(), is_right, "{row}");
            assert_eq!(Fields::of(fitted.as_bytes(), b',').count(), 3);
        }
        let narrow = RowForm { width: 1, ..form };
        let mut out = Vec::new();
        narrow.put_fitted(&mut out, b"a,b");
        assert_eq!(out, b"\"a,b\"");
    }
}
