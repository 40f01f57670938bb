use jiff::Timestamp;
use std::ops::RangeInclusive;

/// Formats seconds since 1970 as ISO 8601 in UTC, as OSM files do: `2026-11-20T00:00:00Z`. A time that [`Timestamp`]
/// cannot represent becomes `@` and the seconds.
pub fn format_timestamp(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(timestamp) => timestamp.to_string(),
        Err(_) => format!("@{seconds}"),
    }
}

/// Parses an ISO 8601 time with an offset such as `Z` or `+01:00`. Returns the seconds since 1970 without fractions of
/// a second; `None` for any other text.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    text.parse::<Timestamp>()
        .ok()
        .map(|timestamp| timestamp.as_second())
}

/// Parses a time that a user gives. Returns seconds since 1970, or `None` if the text has none of these forms:
///
/// - an ISO 8601 time, in UTC if the offset is missing;
/// - a day (also as eight digits), a month or a year, which means its first second in UTC;
/// - seconds since 1970, with nine digits or more, up to the end of the year 9999.
pub fn parse_moment(text: &str) -> Option<i64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let rest = match (is_number, text.len()) {
        (true, 9..) => {
            return text
                .parse()
                .ok()
                .filter(|seconds| *seconds <= max_timestamp_seconds());
        }
        (true, 8) => "T00:00:00Z",
        (_, 4) => "-01-01T00:00:00Z",
        (_, 7) => "-01T00:00:00Z",
        (_, 10) => "T00:00:00Z",
        (_, 16) => ":00Z",
        _ => "Z",
    };
    parse_timestamp(text).or_else(|| parse_timestamp(&format!("{text}{rest}")))
}

/// Parses a time as [`parse_moment`] does. Returns the range of seconds that the text means: a whole year, month, day
/// or minute, or a single second.
pub fn parse_period(text: &str) -> Option<RangeInclusive<i64>> {
    let text = text.trim();
    let start = parse_moment(text)?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    // The month after the last representable month begins one second after the last representable second.
    let month = |year: i64, month: i64| {
        parse_moment(&format!("{year:04}-{month:02}")).unwrap_or(max_timestamp_seconds() + 1)
    };
    let end = match (is_number, text.len()) {
        (_, 4) => month(text.parse::<i64>().ok()? + 1, 1),
        (false, 7) => {
            let (year, number) = text.split_once('-')?;
            let (year, number) = (year.parse::<i64>().ok()?, number.parse::<i64>().ok()?);
            month(year + number / 12, number % 12 + 1)
        }
        (false, 10) | (true, 8) => start + 86_400,
        (false, 16) => start + 60,
        _ => start + 1,
    };
    Some(start..=end - 1)
}

/// Returns the last second that a [`Timestamp`] can represent, in the year 9999.
fn max_timestamp_seconds() -> i64 {
    Timestamp::MAX.as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip_in_utc() {
        assert_eq!(parse_timestamp("2020-05-01T20:21:02Z"), Some(1_588_364_462));
        assert_eq!(format_timestamp(1_588_364_462), "2020-05-01T20:21:02Z");
        assert_eq!(
            parse_timestamp("2020-05-01T22:21:02.5+02:00"),
            Some(1_588_364_462)
        );
        assert_eq!(parse_timestamp("yesterday"), None);
    }

    #[test]
    fn a_moment_is_read_as_people_write_it() {
        for text in [
            "2016",
            "2016-01",
            "2016-01-01",
            "2016-01-01T00:00",
            "2016-01-01 00:00",
            "2016-01-01T00:00:00",
            "2016-01-01 00:00:00",
            "2016-01-01T00:00:00Z",
            "2016-01-01T01:00:00+01:00",
            "20160101",
            "1451606400",
        ] {
            assert_eq!(parse_moment(text), Some(1_451_606_400), "{text}");
        }
        for text in [
            "",
            "16",
            "2016-13",
            "2016-1",
            "yesterday",
            "-2016",
            "2016-01-01T",
            "12345",
            "20161301",
        ] {
            assert_eq!(parse_moment(text), None, "{text}");
        }
    }

    #[test]
    fn a_period_spans_the_whole_year_month_day_or_minute() {
        for (text, start, end) in [
            ("2016", "2016-01-01T00:00:00Z", "2016-12-31T23:59:59Z"),
            ("2016-02", "2016-02-01T00:00:00Z", "2016-02-29T23:59:59Z"),
            ("2016-12", "2016-12-01T00:00:00Z", "2016-12-31T23:59:59Z"),
            ("2016-02-29", "2016-02-29T00:00:00Z", "2016-02-29T23:59:59Z"),
            ("20160229", "2016-02-29T00:00:00Z", "2016-02-29T23:59:59Z"),
            (
                "2016-01-01T10:30",
                "2016-01-01T10:30:00Z",
                "2016-01-01T10:30:59Z",
            ),
            (
                "2016-01-01T10:30:05Z",
                "2016-01-01T10:30:05Z",
                "2016-01-01T10:30:05Z",
            ),
            ("1451606400", "2016-01-01T00:00:00Z", "2016-01-01T00:00:00Z"),
        ] {
            let expected = parse_timestamp(start).unwrap()..=parse_timestamp(end).unwrap();
            assert_eq!(parse_period(text), Some(expected), "{text}");
        }
        assert_eq!(parse_period("2016-13"), None);
    }

    #[test]
    fn times_after_the_year_9999_are_rejected() {
        for text in ["9999", "9999-12"] {
            assert_eq!(
                parse_period(text).unwrap().end(),
                &max_timestamp_seconds(),
                "{text}"
            );
        }
        let last = max_timestamp_seconds();
        assert_eq!(parse_period(&last.to_string()), Some(last..=last));
        assert_eq!(parse_period(&(last + 1).to_string()), None);
        assert_eq!(parse_period(&format!("00{}", i64::MAX)), None);
    }
}
