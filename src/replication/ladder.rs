//! Combines servers that publish the same changes in daily, hourly and minutely change files.

use super::missing_states::{Purpose, state_at_or_before};
use super::server::Server;
use super::state::State;
use crate::error::{Error, Result};

/// Servers that publish the same changes at different intervals, the longest interval first.
pub struct Ladder<'s> {
    rungs: Vec<(Server<'s>, State)>,
}

/// Consecutive change files of one server.
pub struct Leg<'l, 's> {
    /// The server.
    pub server: &'l Server<'s>,
    /// The sequence number of the first change file.
    pub first: i64,
    /// The state after the last change file.
    pub end: State,
}

/// The end of the wanted changes. If both fields are set, the earlier end applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct End {
    /// The last wanted sequence number of the server with the shortest interval.
    pub sequence: Option<i64>,
    /// The last wanted time, in seconds since 1970.
    pub timestamp: Option<i64>,
}

impl End {
    /// Whether a state of the server with the shortest interval is at the end or after it. If so, no further changes
    /// are wanted.
    pub(crate) fn is_reached(self, state: State) -> bool {
        self.sequence.is_some_and(|end| end <= state.sequence)
            || self.timestamp.is_some_and(|end| end <= state.timestamp)
    }
}

impl<'s> Ladder<'s> {
    /// Combines servers, which must be ordered by interval, the longest first. Fetches the newest state of each server.
    ///
    /// # Errors
    ///
    /// A server cannot be reached or is not a replication server, or `servers` is empty.
    pub fn new(servers: Vec<Server<'s>>) -> Result<Self> {
        let rungs = servers.into_iter().map(|server| {
            let newest = server.newest_state()?;
            Ok((server, newest))
        });
        let rungs: Vec<_> = rungs.collect::<Result<_>>()?;
        if rungs.is_empty() {
            Err(Error::Usage("there is no replication server".into()))
        } else {
            Ok(Self { rungs })
        }
    }

    /// Returns the server with the shortest interval, and its newest state. The sequence numbers in the headers of OSM
    /// files are those of this server.
    pub fn finest_server(&self) -> (&Server<'s>, State) {
        match self.rungs.as_slice() {
            [.., (server, newest)] => (server, *newest),
            [] => unreachable!("a ladder has a rung"),
        }
    }

    /// Returns the last state of the [finest](Self::finest_server) server that is not newer than `timestamp`.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or all its states are newer.
    pub fn state_at(&self, timestamp: i64) -> Result<State> {
        let (server, newest) = self.finest_server();
        state_at_or_before(server, newest, timestamp, Purpose::Start)
    }

    /// Returns the change files that lead from `start`, a state of the [finest](Self::finest_server) server, to the
    /// newest state or to `end`. The change files with the longest interval come first. Change files of a longer
    /// interval are left out if `start` already includes most of their time span.
    ///
    /// # Errors
    ///
    /// A server cannot be reached, or no longer has the required states.
    pub fn legs(&self, start: State, end: End) -> Result<Vec<Leg<'_, 's>>> {
        let mut legs = Vec::new();
        if end.is_reached(start) {
            return Ok(legs);
        }
        let (mut at, mut is_between) = (start, false);
        let last = self.last_wanted_state(start, end)?;
        let (finest, coarser) = self.rungs.split_last().ok_or(Error::internal("no rung"))?;
        for (server, newest) in coarser {
            let newest = if newest.timestamp <= last.timestamp {
                *newest
            } else {
                state_at_or_before(server, *newest, last.timestamp, Purpose::End)?
            };
            if newest.timestamp <= at.timestamp {
                continue;
            }
            let from = state_at_or_before(server, newest, at.timestamp, Purpose::Start)?;
            // The first change file of this server may begin before `at` and contain known changes. The server is left
            // out if its change files cover more known time (before `at`) than new time (after `at`).
            let (known, new) = (
                at.timestamp.saturating_sub(from.timestamp),
                newest.timestamp.saturating_sub(at.timestamp),
            );
            if known > new {
                continue;
            }
            legs.push(Leg {
                server,
                first: from.sequence.saturating_add(1),
                end: newest,
            });
            (at, is_between) = (newest, true);
        }
        let (server, newest) = finest;
        let first = if is_between {
            state_at_or_before(server, *newest, at.timestamp, Purpose::Start)?.sequence
        } else {
            start.sequence
        };
        legs.push(Leg {
            server,
            first: first.saturating_add(1),
            end: last,
        });
        Ok(legs
            .into_iter()
            .filter(|leg| leg.first <= leg.end.sequence)
            .collect())
    }

    /// Returns the newest state of the finest server or, if `end` is earlier, the state at `end`. If the server has no
    /// state at or shortly before the last wanted sequence number, the time of the result is not known and is set to
    /// that of `start`. No server with a longer interval is then used.
    fn last_wanted_state(&self, start: State, end: End) -> Result<State> {
        let (server, mut last) = self.finest_server();
        if let Some(timestamp) = end.timestamp.filter(|end| *end < last.timestamp) {
            last = state_at_or_before(server, last, timestamp, Purpose::End)?;
        }
        if let Some(sequence) = end.sequence.filter(|end| *end < last.sequence) {
            let timestamp = server.time_of(sequence)?;
            last = State {
                sequence,
                timestamp: timestamp.unwrap_or(start.timestamp),
            };
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Fetcher;
    use crate::net::{BodyRange, Fault, Transport};
    use std::time::Duration;

    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    /// The current time: 9 days, 7 hours and 12 minutes after the first state of each server.
    const NOW: i64 = 9 * DAY + 7 * HOUR + 12 * MINUTE;

    /// Servers with the URLs `v:/STEP`, where `STEP` is the interval in seconds. Their first states have the time 0.
    struct Steps;

    impl Transport for Steps {
        fn open(&self, url: &str, _: u64) -> Result<BodyRange, Fault> {
            let path = url.strip_prefix("v:/").unwrap();
            let (step, path) = path.split_once('/').unwrap();
            let step: i64 = step.parse().unwrap();
            let digits: String = path.chars().filter(char::is_ascii_digit).collect();
            let sequence = digits.parse().unwrap_or(NOW / step);
            if sequence > NOW / step {
                return Err(Fault::Missing);
            }
            let timestamp = sequence * step;
            let text = State {
                sequence,
                timestamp,
            };
            Ok(BodyRange {
                start: 0,
                len: None,
                version: None,
                bytes: Box::new(std::io::Cursor::new(text.to_text())),
            })
        }
    }

    /// Returns the legs from a time, each as its interval and its first and last sequence number.
    fn legs_from(time: i64, end: End) -> Vec<(i64, i64, i64)> {
        let pause = |_: Duration| Ok(());
        let servers = [DAY, HOUR, MINUTE].map(|step| {
            let fetcher = Fetcher::new(&Steps, &pause, Duration::ZERO);
            Server::new(&format!("v:/{step}/"), fetcher, None)
        });
        let ladder = Ladder::new(servers.into()).unwrap();
        let start = ladder.state_at(time).unwrap();
        let legs = ladder.legs(start, end).unwrap();
        let step = |leg: &Leg<'_, '_>| {
            leg.server
                .base()
                .strip_prefix("v:/")
                .unwrap()
                .parse()
                .unwrap()
        };
        legs.iter()
            .map(|leg| (step(leg), leg.first, leg.end.sequence))
            .collect()
    }

    #[test]
    fn longer_intervals_are_used_where_they_save_downloads() {
        let end = End::default();
        let (hours, minutes) = (
            (HOUR, 9 * 24 + 1, 9 * 24 + 7),
            (MINUTE, NOW / 60 - 11, NOW / 60),
        );
        assert_eq!(legs_from(5 * DAY, end), [(DAY, 6, 9), hours, minutes]);
        // A daily change file whose day begins before the start is fetched as a whole.
        assert_eq!(
            legs_from(5 * DAY + HOUR, end),
            [(DAY, 6, 9), hours, minutes]
        );
        // The daily change file is not fetched, because most of its changes are known.
        let known = legs_from(8 * DAY + 20 * HOUR, end);
        assert_eq!(known, [(HOUR, 8 * 24 + 21, 9 * 24 + 7), minutes]);
        assert_eq!(
            legs_from(NOW - 5 * MINUTE, end),
            [(MINUTE, NOW / 60 - 4, NOW / 60)]
        );
        assert_eq!(legs_from(NOW, end), []);
    }

    #[test]
    fn the_end_applies_to_each_server() {
        let at = |timestamp| End {
            timestamp: Some(timestamp),
            sequence: None,
        };
        let day = 7 * DAY / MINUTE;
        assert_eq!(legs_from(5 * DAY, at(7 * DAY)), [(DAY, 6, 7)]);
        let expected = [(DAY, 6, 7), (MINUTE, day + 1, day + 30)];
        assert_eq!(legs_from(5 * DAY, at(7 * DAY + 30 * MINUTE + 5)), expected);
        let sequence = End {
            sequence: Some(day + 30),
            timestamp: None,
        };
        assert_eq!(legs_from(5 * DAY, sequence), expected);
    }
}
