//! Formats numbers and times. This has to be fast, because OPL and XML consist mostly of numbers and times.

use super::text_buffer::{ShortText, TextBuffer};
use crate::osm::{DECIMICRO_PER_DEGREE, format_timestamp};

/// 10^8, because eight digits are formatted at a time.
const EIGHT_DIGITS: u64 = 100_000_000;

/// Returns the eight decimal digits of a number below 10^8, each as a byte from 0 to 9. The first digit is in the
/// lowest byte.
#[inline(always)]
const fn eight_digits(number: u32) -> u64 {
    // Splits the number into halves of four digits, then into pairs, then into single digits. All parts lie side by
    // side in one word. A multiplication and a shift divide all parts by 100 or 10 at once. The result is exact for
    // numbers of this size.
    let halves = (number / 10_000) as u64 | ((number % 10_000) as u64) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - 10 * tens) << 8
}

/// Eight characters `0`.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Appends an integer in decimal.
#[inline]
pub(super) fn put_number(out: &mut TextBuffer, value: i64) {
    out.push_short(|text| text.put_number(value));
}

/// Appends a coordinate in units of 1e-7 degree as decimal degrees, without trailing zeros.
#[inline]
pub(super) fn put_decimal_degrees(out: &mut TextBuffer, value_e7: i32) {
    out.push_short(|text| text.put_decimal_degrees(value_e7));
}

impl ShortText<'_> {
    /// Appends an integer in decimal.
    #[inline(always)]
    pub(super) fn put_number(&mut self, value: i64) {
        if value < 0 {
            self.put(*b"-");
        }
        let value = value.unsigned_abs();
        match value / EIGHT_DIGITS {
            0 => self.put_unpadded(value as u32),
            high if high < EIGHT_DIGITS => {
                self.put_unpadded(high as u32);
                self.put_last_eight_digits(value);
            }
            high => {
                self.put_unpadded((high / EIGHT_DIGITS) as u32);
                self.put_last_eight_digits(high);
                self.put_last_eight_digits(value);
            }
        }
    }

    /// Appends a number below 10^8 without leading zeros.
    #[inline(always)]
    fn put_unpadded(&mut self, number: u32) {
        let digits = eight_digits(number);
        // The last digit is kept even if it is 0.
        let zeros = (digits | 1 << 56).trailing_zeros() / 8;
        self.put_word((digits | ZEROS) >> (8 * zeros), 8 - zeros as usize);
    }

    /// Appends the last eight digits of a number, with leading zeros.
    #[inline(always)]
    fn put_last_eight_digits(&mut self, number: u64) {
        let digits = eight_digits((number % EIGHT_DIGITS) as u32);
        self.put_word(digits | ZEROS, 8);
    }

    /// Appends a coordinate in units of 1e-7 degree as decimal degrees, without trailing zeros: at most 12 bytes.
    #[inline(always)]
    pub(super) fn put_decimal_degrees(&mut self, value_e7: i32) {
        const ONE: u32 = DECIMICRO_PER_DEGREE as u32;
        let value = value_e7.unsigned_abs();
        let ([first, second, third], len) = SMALL[(value / ONE) as usize];
        let (mut whole, mut len) = (
            u32::from_le_bytes([first, second, third, 0]),
            usize::from(len),
        );
        if value_e7 < 0 {
            (whole, len) = (whole << 8 | u32::from(b'-'), len + 1);
        }
        self.put_word(whole.into(), len);
        let fraction = value % ONE;
        if fraction != 0 {
            // The fraction has seven digits, so the first of the eight digits is 0. The decimal point replaces it.
            let digits = eight_digits(fraction);
            let zeros = digits.leading_zeros() / 8;
            let point_and_digits = (digits | ZEROS) & !0xff | u64::from(b'.');
            self.put_word(point_and_digits, 8 - zeros as usize);
        }
    }
}

/// For each number below 1000, its digits without leading zeros, and the number of these digits.
const SMALL: [([u8; 3], u8); 1000] = {
    let mut table = [([0; 3], 0); 1000];
    let mut number = 0;
    while number < 1000 {
        let digits = [
            b'0' + (number / 100) as u8,
            b'0' + (number / 10 % 10) as u8,
            b'0' + (number % 10) as u8,
        ];
        table[number] = match number {
            0..10 => ([digits[2], 0, 0], 1),
            10..100 => ([digits[1], digits[2], 0], 2),
            _ => (digits, 3),
        };
        number += 1;
    }
    table
};

const SECONDS_PER_DAY: i64 = 86_400;
/// The number of formatted dates that a [`TimeFormatter`] caches.
const DAYS_KEPT: usize = 1 << 10;

/// A formatter of times. It caches formatted dates, because many objects of a block have the same few dates.
#[derive(Debug, Clone, Default)]
pub(super) struct TimeFormatter {
    /// A direct-mapped cache of days since 1970 and their formatted dates. The index of a day is the day modulo
    /// [`DAYS_KEPT`]. Empty until the first time is formatted.
    days: Vec<(i64, [u8; 10])>,
}

impl TimeFormatter {
    pub(super) const fn new() -> Self {
        Self { days: Vec::new() }
    }

    /// Appends a time, given in seconds since 1970, as ISO 8601 in UTC.
    pub(super) fn put(&mut self, out: &mut TextBuffer, seconds: i64) {
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
        out.push_ascii(text);
    }

    /// Returns the formatted date of a day since 1970; `None` if it does not have exactly ten characters.
    fn date(&mut self, day: i64) -> Option<[u8; 10]> {
        if self.days.is_empty() {
            self.days.resize(DAYS_KEPT, (i64::MIN, [0; 10]));
        }
        let kept = &mut self.days[day as usize % DAYS_KEPT];
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
    fn numbers_match_to_string_and_format_e7() {
        let mut text = TextBuffer::new();
        let powers = (0..19).map(|digits| 10_i64.pow(digits));
        let near = powers.flat_map(|power| [power - 1, power, power + 1, power / 3, power * 7 / 8]);
        let all_digits = (0..10_000).map(|number| number * 10_007 % 100_000_000);
        let values = near.chain(all_digits).chain([i64::MAX, i64::MIN]);
        for value in values.flat_map(|value| [value, value.wrapping_neg()]) {
            put_number(&mut text, value);
            assert_eq!(text.take(), value.to_string());
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
        ]
        .into_iter()
        .chain((0..10_000).map(|number| number * 180_017 - 900_000_000))
        {
            put_decimal_degrees(&mut text, value);
            assert_eq!(text.take(), format_e7(value));
        }
    }

    #[test]
    fn times_match_format_timestamp() {
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
                let mut text = TextBuffer::new();
                times.put(&mut text, seconds);
                assert_eq!(text.take(), format_timestamp(seconds));
            }
        }
    }
}
