//! Appends answers as columns to the lines of a table.

use super::fields::RowFields;
use super::places::{LineForm, column_names};
use crate::formats::csv::{put_csv_field, put_quoted};
use crate::geocode::Answer;

/// The names of the appended columns, if the table has no columns with these names.
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
    /// Returns the form of rows that are written like the lines of `table`. Fails if `table` separates columns by
    /// spaces, or has lines of JSON.
    pub(super) fn of(table: &LineForm) -> Result<Self, String> {
        Ok(Self {
            separator: table.csv_separator()?,
            width: table.width,
            is_crlf: table.is_crlf,
        })
    }

    /// Checks that a row has no more columns than the table. Empty fields at the end of the row do not count.
    ///
    /// # Errors
    ///
    /// The row has too many columns. The error is a message that describes the problem.
    pub(super) fn check(&self, line: &[u8]) -> Result<(), String> {
        let (row, _) = split_line_break(line);
        let fields = RowFields::of(row, self.separator);
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

    /// Appends a row with as many fields as the table has columns. Missing fields are empty. Surplus fields become part
    /// of the last field, unless they are all empty. If a quote in the row is not closed, the whole row becomes the
    /// first field.
    fn put_fitted_row(&self, out: &mut Vec<u8>, row: &[u8]) {
        let fields = RowFields::of(row, self.separator);
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
            put_quoted(out, fields.rest_from_field(row, self.width - 1));
        } else {
            out.extend_from_slice(first);
        }
        let missing = self.width.saturating_sub(count);
        out.extend(std::iter::repeat_n(self.separator, missing));
    }

    /// Appends a line of the table with new columns.
    fn put_columns(&self, out: &mut Vec<u8>, line: &[u8], columns: [&str; NAMES.len()]) {
        let (row, end) = split_line_break(line);
        self.put_fitted_row(out, row);
        for column in columns {
            out.push(self.separator);
            put_csv_field(out, column, self.separator);
        }
        // The last line may have no line break.
        let own: &[u8] = if self.is_crlf { b"\r\n" } else { b"\n" };
        out.extend_from_slice(if end.is_empty() { own } else { end });
    }

    /// Appends the header of the output: `line`, which has the column names of the table, and the names of the new
    /// columns. A new column with the name of a column of the table gets a number after its name.
    pub(super) fn put_header(&self, out: &mut Vec<u8>, line: &[u8]) {
        let taken = column_names(&String::from_utf8_lossy(line), self.separator);
        let names = NAMES.map(|name| distinct_name(name, &taken));
        self.put_columns(out, line, names.each_ref().map(String::as_str));
    }

    /// Appends a line of the table with the columns of its answer. For a blank line, appends only its line break.
    pub(super) fn put_row(
        &self,
        out: &mut Vec<u8>,
        line: &[u8],
        answer: &Result<Answer<'_>, String>,
    ) {
        if line.trim_ascii().is_empty() && !line.contains(&self.separator) {
            put_blank_line(out, line);
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

/// Returns a name that is not in `taken`: `name` itself, or `name` with the lowest free number from 2 on, such as
/// `city_2`. Ignores the case of letters, as many programs do.
fn distinct_name(name: &str, taken: &[String]) -> String {
    let is_taken = |name: &str| taken.iter().any(|taken| taken.eq_ignore_ascii_case(name));
    if !is_taken(name) {
        return name.to_owned();
    }
    // One of these numbers is free, because there are more numbers than names in `taken`.
    let numbered = (2..=taken.len() + 2).map(|number| format!("{name}_{number}"));
    let mut free = numbered.filter(|name| !is_taken(name));
    free.next().unwrap_or_else(|| name.to_owned())
}

/// Appends an empty line for a blank line of the input.
pub(super) fn put_blank_line(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(split_line_break(line).1);
}

/// Splits a line before its line break.
fn split_line_break(line: &[u8]) -> (&[u8], &[u8]) {
    let row = line.strip_suffix(b"\n").unwrap_or(line);
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    line.split_at(row.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_columns_get_distinct_names() {
        let header = |line: &str| {
            let form = RowForm {
                separator: b';',
                width: RowFields::of(line.as_bytes(), b';').count(),
                is_crlf: false,
            };
            let mut out = Vec::new();
            form.put_header(&mut out, line.as_bytes());
            String::from_utf8(out).unwrap()
        };
        let of_us = "house_number;street;postcode";
        let rest = "state;country;country_code;error\n";
        for (line, address, city) in [
            ("lat;lon", "address", "city"),
            ("lat;lon;address", "address_2", "city"),
            ("lat;lon;\"Address\";CITY ", "address_2", "city_2"),
            (
                "\u{feff}address;lat;lon;address_2;city_3",
                "address_3",
                "city",
            ),
            ("city;city;city_2;lat;lon", "address", "city_3"),
        ] {
            let expected = format!("{line};{address};{of_us};{city};{rest}");
            assert_eq!(header(line), expected);
        }
        // The output of one run is the input of another.
        let once = header("lat;lon");
        let twice = header(once.trim_end());
        let mut names: Vec<&str> = twice.trim_end().split(';').collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), count), (20, 20));
    }

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
            form.put_fitted_row(&mut out, row.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), fitted);
            assert_eq!(form.check(row.as_bytes()).is_ok(), is_right, "{row}");
            assert_eq!(RowFields::of(fitted.as_bytes(), b',').count(), 3);
        }
        let narrow = RowForm { width: 1, ..form };
        let mut out = Vec::new();
        narrow.put_fitted_row(&mut out, b"a,b");
        assert_eq!(out, b"\"a,b\"");
    }
}
