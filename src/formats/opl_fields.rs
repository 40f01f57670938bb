//! The values of fields in OPL: numbers, coordinates, and strings with escaped characters.

use crate::osm::parse_stored_e7;

/// Returns the value of a field; `None` if the field is empty.
pub(super) fn non_empty(value: &str) -> Option<&str> {
    (!value.is_empty()).then_some(value)
}

pub(super) fn parse_number<T: std::str::FromStr>(field: &str, value: &str) -> Result<T, String> {
    let bad = |_| format!("'{field}': '{value}' is not a number in range");
    value.parse().map_err(bad)
}

/// Parses a latitude or a longitude, which need not be on earth.
pub(super) fn parse_degrees(value: &str) -> Result<i32, String> {
    parse_stored_e7(value).map_err(|cause| format!("'{value}' {cause}"))
}

/// Decodes the `%hex%` escapes in `text`, and replaces the contents of `out` with the result.
pub(super) fn decode_escapes(out: &mut String, text: &str) -> Result<(), String> {
    out.clear();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        let bad = || format!("'{text}': % begins the number of a character, which ends with %");
        let (code, behind) = behind.split_once('%').ok_or_else(bad)?;
        let is_hex = (1..=8).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_hexdigit());
        let code = u32::from_str_radix(code, 16).ok().filter(|_| is_hex);
        out.push(code.and_then(char::from_u32).ok_or_else(bad)?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_and_invalid_ones_are_refused() {
        let mut out = String::new();
        for (text, decoded) in [
            ("", ""),
            ("a%20%b", "a b"),
            ("%25%%2c%%1f600%", "%,\u{1f600}"),
        ] {
            assert_eq!(decode_escapes(&mut out, text), Ok(()));
            assert_eq!(out, decoded);
        }
        for text in ["%", "a%20", "%%", "%+20%", "%d800%", "%123456789%", "%xyz%"] {
            assert!(decode_escapes(&mut out, text).is_err(), "{text}");
        }
    }
}
