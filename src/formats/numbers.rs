//! Fast formatting of numbers and times.

use crate::osm::{DECIMICRO_PER_DEGREE, format_timestamp};

/// Appends an integer in decimal.
pub(super) fn put_number(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    put_digits(out, value.unsigned_abs(), 1);
}

/// Appends an integer in decimal, padded with zeros to at least `least` digits.
fn put_digits(out: &mut String, mut value: u64, least: usize) {
    const MOST: usize = 20;
    let mut digits = [b'0'; MOST];
    let mut start = MOST;
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        if value == 0 && MOST - start >= least {
            break;
        }
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        start = index;
    }
    let digits = digits.get(start..).unwrap_or_default();
    out.push_str(std::str::from_utf8(digits).unwrap_or_default());
}

/// Appends a coordinate in units of 1e-7 degree as decimal degrees, without trailing zeros.
pub(super) fn put_e7(out: &mut String, value_e7: i32) {
    let one = DECIMICRO_PER_DEGREE as u64;
    let value = u64::from(value_e7.unsigned_abs());
    if value_e7 < 0 {
        out.push('-');
    }
    put_digits(out, value / one, 1);
    if value % one != 0 {
        out.push('.');
        put_digits(out, value % one, 7);
        out.truncate(out.trim_end_matches('0').len());
    }
}

/// Formats times. The last text is cached, since neighbouring objects often have the same time.
#[derive(Debug, Clone, Default)]
pub(super) struct TimeFormatter {
    last: Option<(i64, String)>,
}

impl TimeFormatter {
    /// Appends a time, given in seconds since 1970, as ISO 8601 in UTC.
    pub(super) fn put(&mut self, out: &mut String, seconds: i64) {
        match &self.last {
            Some((last, text)) if *last == seconds => out.push_str(text),
            _ => {
                let text = format_timestamp(seconds);
                out.push_str(&text);
                self.last = Some((seconds, text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::format_e7;

    #[test]
    fn numbers_are_those_that_the_library_writes() {
        let mut text = String::new();
        for value in [0, 1, -1, 10, 99, -100, i64::MAX, i64::MIN] {
            text.clear();
            put_number(&mut text, value);
            assert_eq!(text, value.to_string());
        }
        for value in [
            0,
            1,
            -1,
            10_000_000,
            -5_000_000,
            1_800_000_000,
            i32::MIN,
            70,
        ] {
            text.clear();
            put_e7(&mut text, value);
            assert_eq!(text, format_e7(value));
        }
    }
}
