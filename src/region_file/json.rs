//! Parses JSON and accepts bare `NaN` and `Infinity` as null.

use serde_json::Value;

/// Parses JSON. Bare `NaN` and `Infinity` become null. JSON does not allow them, but some programs write them. With
/// null, the caller can report which coordinate is not a number. A JSON error would name only a line and a column.
pub(super) fn parse(text: &[u8]) -> Result<Value, String> {
    let first = match serde_json::from_slice(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let retried =
        replace_nan_and_infinity(text).and_then(|text| serde_json::from_slice(&text).ok());
    retried.ok_or_else(|| {
        let message = first.to_string();
        let cause = message.split_once(" at line ");
        let cause = cause.map_or(message.as_str(), |(cause, _)| cause);
        let (line, column) = (first.line(), first.column());
        format!("line {line}, column {column}: this is not JSON: {cause}")
    })
}

/// Replaces bare `NaN` and `Infinity`, and a minus sign before them, with `null`. Does not change strings. Returns
/// `None` if there is nothing to replace.
fn replace_nan_and_infinity(text: &[u8]) -> Option<Vec<u8>> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut found = false;
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        if byte == b'"' {
            let (string, behind) = rest.split_at(string_literal_len(rest));
            replaced.extend_from_slice(string);
            rest = behind;
            continue;
        }
        let words: [&[u8]; 4] = [b"NaN", b"-NaN", b"Infinity", b"-Infinity"];
        if let Some(behind) = words.iter().find_map(|word| rest.strip_prefix(*word)) {
            replaced.extend_from_slice(b"null");
            found = true;
            rest = behind;
            continue;
        }
        replaced.push(byte);
        rest = behind;
    }
    found.then_some(replaced)
}

/// Returns the length in bytes of the string literal at the start of `text`, including its quotes.
fn string_literal_len(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().skip(1).position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bare_words_become_null_but_not_in_strings() {
        let text = br#"{"NaN \" NaN": [NaN, -Infinity, "\\", Infinity]}"#;
        assert_eq!(
            parse(text).unwrap(),
            json!({"NaN \" NaN": [null, null, "\\", null]})
        );
    }

    #[test]
    fn an_error_tells_line_and_column() {
        for (text, place) in [
            ("", "line 1, column 0: "),
            ("{\n  \"a\": ]}", "line 2, column 8: "),
            ("[NaN, \n x]", "line 1, column 2: "),
            ("[1] x", "line 1, column 5: "),
            ("\"abc", "line 1, column 4: "),
            ("[1e999]", "line 1, column 6: "),
        ] {
            let message = parse(text.as_bytes()).unwrap_err();
            assert!(message.starts_with(place), "{message}");
        }
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }
}
