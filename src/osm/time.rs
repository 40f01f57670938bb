use jiff::Timestamp;

/// Writes seconds since 1970 as ISO 8601 in UTC, as OSM does: `2026-11-20T00:00:00Z`.
pub fn format_timestamp(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(timestamp) => timestamp.to_string(),
        Err(_) => format!("@{seconds}"),
    }
}

/// Reads an ISO 8601 time with its offset as seconds since 1970; fractions are cut off.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    text.parse::<Timestamp>()
        .ok()
        .map(|timestamp| timestamp.as_second())
}

/// Reads a time as a person writes it, as seconds since 1970: ISO 8601, in UTC where no offset is given; a day, month or
/// year, which is its first moment; or seconds since 1970, of nine digits or more.
pub fn parse_moment(text: &str) -> Option<i64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let rest = match (is_number, text.len()) {
        (true, 9..) => return text.parse().ok(),
        (true, 8) => "T00:00:00Z",
        (_, 4) => "-01-01T00:00:00Z",
        (_, 7) => "-01T00:00:00Z",
        (_, 10) => "T00:00:00Z",
        (_, 16) => ":00Z",
        _ => "Z",
    };
    parse_timestamp(text).or_else(|| parse_timestamp(&format!("{text}{rest}")))
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
}
