//! Appends answers as columns to the lines of a table.

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

/// Appends the header of the output: `line`, which has the column names of the table, and the names of the new columns.
pub(super) fn put_header(out: &mut Vec<u8>, line: &str, separator: u8) {
    put_columns(out, line.as_bytes(), separator, NAMES);
}

/// Appends a line of the table with the columns of its answer.
pub(super) fn put_row(
    out: &mut Vec<u8>,
    line: &[u8],
    separator: u8,
    answer: &Result<Answer<'_>, String>,
) {
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
    put_columns(out, line, separator, columns);
}

fn put_columns(out: &mut Vec<u8>, line: &[u8], separator: u8, columns: [&str; NAMES.len()]) {
    let row = line.strip_suffix(b"\n").unwrap_or(line);
    let (row, end): (_, &[u8]) = match row.strip_suffix(b"\r") {
        Some(row) => (row, b"\r\n"),
        None => (row, b"\n"),
    };
    out.extend_from_slice(row);
    for column in columns {
        out.push(separator);
        put_field(out, column, separator);
    }
    out.extend_from_slice(end);
}

/// Appends a field, in quotes if it needs them.
fn put_field(out: &mut Vec<u8>, text: &str, separator: u8) {
    let needs_quotes = |byte: u8| byte == separator || matches!(byte, b'"' | b'\n' | b'\r');
    if !text.bytes().any(needs_quotes) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}
