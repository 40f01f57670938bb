//! Fast formatting of numbers and times.

use crate::osm::{DECIMICRO_PER_DEGREE, format_timestamp};

/// Appends an integer in decimal.
pub(super) fn put_number(out: &mut String, value: i64) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// Appends a coordinate in units of 1e-7 degree as decimal degrees, without trailing zeros.
pub(super) fn put_e7(out: &mut String, value_e7: i32) {
    const ONE: u32 = DECIMICRO_PER_DEGREE as u32;
    let value = value_e7.unsigned_abs();
    let mut buffer = itoa::Buffer::new();
    if value_e7 < 0 {
        out.push('-');
    }
    out.push_str(buffer.format(value / ONE));
    if !value.is_multiple_of(ONE) {
        // The digits after a leading 1, which keeps the zeros before them.
        let digits = buffer.format(ONE + value % ONE);
        out.push('.');
        out.push_str(digits.get(1..).unwrap_or_default().trim_end_matches('0'));
    }
}

const SECONDS_PER_DAY: i64 = 86_400;
/// The number of days whose text a [`TimeFormatter`] keeps.
const DAYS_KEPT: usize = 1 << 10;

/// Formats times. The texts of days are kept, since many objects of a block have times of few days.
#[derive(Debug, Clone, Default)]
pub(super) struct TimeFormatter {
    /// A day since 1970 and its text, at the index that the low bits of the day give; empty before the first time.
    days: Vec<(i64, [u8; 10])>,
}

impl TimeFormatter {
    pub(super) const fn new() -> Self {
        Self { days: Vec::new() }
    }

    /// Appends a time, given in seconds since 1970, as ISO 8601 in UTC.
    pub(super) fn put(&mut self, out: &mut String, seconds: i64) {
        let day = seconds.div_euclid(SECONDS_PER_DAY);
        let Some(date) = self.date(day) else {
            out.push_str(&format_timestamp(seconds));
            return;
        };
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        let mut text = *b"0000-00-00T00:00:00Z";
        let (start, time) = text.split_at_mut(date.len());
        start.copy_from_slice(&date);
        let parts = [of_day / 3600, of_day / 60 % 60, of_day % 60];
        for (part, digits) in parts.into_iter().zip(time.chunks_exact_mut(3)) {
            if let [_, tens, ones] = digits {
                (*tens, *ones) = (b'0' + (part / 10) as u8, b'0' + (part % 10) as u8);
            }
        }
        out.push_str(std::str::from_utf8(&text).unwrap_or_default());
    }

    /// The date of a day since 1970; `None` if it has not ten characters.
    fn date(&mut self, day: i64) -> Option<[u8; 10]> {
        if self.days.is_empty() {
            self.days.resize(DAYS_KEPT, (i64::MIN, [0; 10]));
        }
        let kept = self.days.get_mut(day as usize % DAYS_KEPT)?;
        if kept.0 != day {
            let text = format_timestamp(day.checked_mul(SECONDS_PER_DAY)?);
            let date = text.strip_suffix("T00:00:00Z")?;
            *kept = (day, date.as_bytes().try_into().ok()?);
        }
        Some(kept.1)
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

    #[test]
    fn times_are_those_that_the_library_writes() {
        let mut times = TimeFormatter::new();
        let days = (0..3000).map(|day| day * SECONDS_PER_DAY * 7 + day * 77);
        let odd = [
            0,
            -1,
            86_399,
            86_400,
            i64::MIN,
            i64::MAX,
            -62_135_596_800 * 2,
            253_402_300_800,
        ];
        for seconds in days.chain(odd) {
            for _ in 0..2 {
                let mut text = String::new();
                times.put(&mut text, seconds);
                assert_eq!(text, format_timestamp(seconds));
            }
        }
    }
}
