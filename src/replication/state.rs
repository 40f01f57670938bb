//! The states of a replication server, and the paths of its files.

use crate::osm::{format_timestamp, parse_timestamp};

/// The largest possible sequence number. The paths of files have room for nine digits.
pub const LAST_SEQUENCE: i64 = 999_999_999;

/// A state of a replication server. All changes up to `timestamp` are in the change files up to `sequence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The sequence number of the last change file.
    pub sequence: i64,
    /// The time up to which the change files have all changes, in seconds since 1970.
    pub timestamp: i64,
}

impl State {
    /// Parses a state file. Returns `None` if the sequence number or the time is missing or negative. For example, a
    /// truncated file may lack one of them. Also returns `None` if the sequence number is larger than `LAST_SEQUENCE`.
    pub fn parse(text: &str) -> Option<Self> {
        let (sequence, timestamp) = parse_sequence_and_time(text);
        Some(Self {
            sequence: sequence.filter(|sequence| *sequence <= LAST_SEQUENCE)?,
            timestamp: timestamp?,
        })
    }

    /// Returns the content of a state file.
    pub fn to_text(&self) -> String {
        let time = format_timestamp(self.timestamp).replace(':', "\\:");
        format!("sequenceNumber={}\ntimestamp={time}\n", self.sequence)
    }
}

/// Returns the sequence number and the time in a state file. Each is `None` if it is missing or negative, see
/// [`non_negative_number`]. State files are Java properties, which escape the colons in the time.
pub(crate) fn parse_sequence_and_time(text: &str) -> (Option<i64>, Option<i64>) {
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(name, _)| name.trim() == key);
        found.map(|(_, value)| value.trim())
    };
    let sequence = value("sequenceNumber").and_then(|number| number.parse().ok());
    let timestamp = value("timestamp").and_then(|time| parse_timestamp(&time.replace('\\', "")));
    (
        non_negative_number(sequence),
        non_negative_number(timestamp),
    )
}

/// Returns a sequence number or a time; `None` if it is negative. Some programs write -1 for an unknown value.
pub(crate) fn non_negative_number(number: Option<i64>) -> Option<i64> {
    number.filter(|number| *number >= 0)
}

/// Returns the common path of the state file and the change file with a sequence number. The path is relative to the
/// URL of the server and has no suffix, as in `004/711/042`.
///
/// # Examples
///
/// ```
/// assert_eq!(pbfhogg::unstable::replication::path_of(4_711_042), "004/711/042");
/// ```
pub fn path_of(sequence: i64) -> String {
    let [thousands, ones] = [sequence / 1000, sequence % 1000];
    format!("{:03}/{:03}/{ones:03}", thousands / 1000, thousands % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_and_broken_ones_are_not() {
        let text = "#Sun Nov 22 00:00:00 UTC 2026\nsequenceNumber=4711\ntimestamp=2026-11-22T00\\:00\\:00Z\n";
        let state = State {
            sequence: 4711,
            timestamp: 1_795_305_600,
        };
        assert_eq!(State::parse(text), Some(state));
        assert_eq!(State::parse(&state.to_text()), Some(state));
        assert_eq!(State::parse(&text.replace('\n', "\r\n")), Some(state));
        let turned = "timestamp = 2026-11-22T00:00:00Z\nsequenceNumber = 4711";
        assert_eq!(State::parse(turned), Some(state));
        for broken in [
            "",
            "sequenceNumber=4711\n",
            "sequenceNumber=4711\ntimestamp=2026-11-2",
            "sequenceNumber=-1\ntimestamp=2026-11-22T00\\:00\\:00Z",
            "sequenceNumber=4711\ntimestamp=-1",
            "sequenceNumber=9223372036854775807\ntimestamp=2026-11-22T00\\:00\\:00Z",
            "<html>sign in first</html>",
        ] {
            assert_eq!(State::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn paths_have_nine_digits_or_more() {
        assert_eq!(path_of(0), "000/000/000");
        assert_eq!(path_of(1_000), "000/001/000");
        assert_eq!(path_of(999_999_999), "999/999/999");
        assert_eq!(path_of(1_000_000_000), "1000/000/000");
    }
}
