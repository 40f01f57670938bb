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
}
