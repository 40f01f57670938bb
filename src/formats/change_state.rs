//! The replication states of change files, and of the data to which they are applied.

use super::document_header::{DocumentHeader, Replication};
use crate::osm::format_timestamp;
use crate::replication::is_same_server;
use std::fmt;

/// The replication states before and after changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeState {
    /// The URL of the server; `None` if the change file does not have it.
    pub url: Option<String>,
    /// The state before the changes. If the change file does not give this state, only the sequence number is set: to
    /// that of [`after`](Self::after), minus 1.
    pub before: Replication,
    /// The state after the changes.
    pub after: Replication,
}

/// The replication state of data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DataState {
    /// The URL of the server.
    pub url: Option<String>,
    /// The sequence number of the last change file in the data, and the time up to which the data contains all changes.
    pub state: Replication,
}

impl ChangeState {
    /// Returns the states of a change file. `sidecar` is the content of the state file beside the change file. It gives
    /// the values that `header` lacks. Returns `None` if neither has a state.
    pub(super) fn of(header: &DocumentHeader, sidecar: Option<Replication>) -> Option<Self> {
        let beside = sidecar.unwrap_or_default();
        let after = Replication {
            sequence: header.replication.sequence.or(beside.sequence),
            timestamp: header.replication.timestamp.or(beside.timestamp),
        };
        let mut before = header.previous.clone();
        if before.is_unknown() {
            before.sequence = after.sequence.and_then(|number| number.checked_sub(1));
        }
        (!after.is_unknown()).then(|| Self {
            url: header.replication_url.clone(),
            before,
            after,
        })
    }

    /// Whether the changes include everything that happened between the state of `data` and the state after the
    /// changes.
    fn continues(&self, data: &DataState) -> bool {
        let is_later =
            |new: Option<i64>, old: Option<i64>| new.zip(old).is_none_or(|(n, o)| n >= o);
        if !self.comes_from_server_of(data) || !is_later(self.after.timestamp, data.state.timestamp)
        {
            return false;
        }
        let within =
            |before: Option<i64>, at: Option<i64>, after: Option<i64>| match (before, at, after) {
                (Some(before), Some(at), Some(after)) => before <= at && at < after,
                _ => false,
            };
        let (before, at, after) = (&self.before, &data.state, &self.after);
        match at.sequence {
            Some(_) => within(before.sequence, at.sequence, after.sequence),
            None => within(before.timestamp, at.timestamp, after.timestamp),
        }
    }

    /// Whether `data` already includes the changes.
    fn is_included_in(&self, data: &DataState) -> bool {
        let is_in = |new: Option<i64>, old: Option<i64>| new.zip(old).is_some_and(|(n, o)| n <= o);
        let (new, old) = (&self.after, &data.state);
        self.comes_from_server_of(data)
            && match (new.sequence, old.sequence) {
                (Some(new), Some(old)) if new == old => true,
                (Some(_), Some(_)) => {
                    is_in(new.sequence, old.sequence)
                        && (new.timestamp.is_none() || is_in(new.timestamp, old.timestamp))
                }
                _ => is_in(new.timestamp, old.timestamp),
            }
    }

    /// Whether the changes come from the server of the data. An unknown server matches any.
    fn comes_from_server_of(&self, data: &DataState) -> bool {
        let urls = self.url.as_deref().zip(data.url.as_deref());
        urls.is_none_or(|(one, other)| is_same_server(one, other))
    }

    /// Returns the state before the first change file and the state after the last one. Returns `None` if the files do
    /// not follow each other, or come from several servers.
    pub(crate) fn join(states: &[Self]) -> Option<Self> {
        let ordered = ordered_states(states);
        let (first, rest) = ordered.split_first()?;
        let mut data = first.data_state_after();
        let left_out = data.advance(rest.iter().copied());
        left_out.is_empty().then(|| Self {
            url: data.url,
            before: first.before.clone(),
            after: data.state,
        })
    }

    fn data_state_after(&self) -> DataState {
        DataState {
            url: self.url.clone(),
            state: self.after.clone(),
        }
    }
}

/// Displays the state after the changes, as in `sequence 4711 of 2026-11-20T00:00:00Z`.
impl fmt::Display for ChangeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.data_state_after().state.fmt(f)
    }
}

impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.sequence, self.timestamp.map(format_timestamp)) {
            (Some(sequence), Some(time)) => write!(f, "sequence {sequence} of {time}"),
            (Some(sequence), None) => write!(f, "sequence {sequence}"),
            (None, Some(time)) => f.write_str(&time),
            (None, None) => f.write_str("no state"),
        }
    }
}

/// Sorts states, the oldest first.
fn ordered_states(states: &[ChangeState]) -> Vec<&ChangeState> {
    let mut ordered: Vec<&ChangeState> = states.iter().collect();
    ordered.sort_by_key(|state| {
        let number = (state.before.sequence, state.after.sequence);
        (number, state.before.timestamp, state.after.timestamp)
    });
    ordered
}

impl DataState {
    /// Advances the state by change files, which may be in any order. A change file counts only if it continues the
    /// data. Returns the change files that neither continue the data nor are included in the data.
    pub(crate) fn advance_by<'c>(&mut self, changes: &'c [ChangeState]) -> Vec<&'c ChangeState> {
        self.advance(ordered_states(changes).into_iter())
    }

    /// Advances the state as [`advance_by`](Self::advance_by) does. The change files must be ordered, the oldest first.
    fn advance<'c>(
        &mut self,
        ordered: impl Iterator<Item = &'c ChangeState>,
    ) -> Vec<&'c ChangeState> {
        let mut left_out = Vec::new();
        for change in ordered {
            if change.continues(self) {
                self.url = self.url.take().or_else(|| change.url.clone());
                let after = change.after.clone();
                self.state.sequence = after.sequence.or(self.state.sequence);
                self.state.timestamp = after.timestamp.or(self.state.timestamp);
            } else {
                left_out.push(change);
            }
        }
        left_out.retain(|change| !change.is_included_in(self));
        left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replication(
        sequence: impl Into<Option<i64>>,
        timestamp: impl Into<Option<i64>>,
    ) -> Replication {
        Replication {
            sequence: sequence.into(),
            timestamp: timestamp.into(),
        }
    }

    /// Returns the states of a change file that does not give the URL of its server.
    fn state_of_change(sequence: i64, timestamp: i64) -> ChangeState {
        let header = DocumentHeader {
            replication: replication(sequence, timestamp),
            ..DocumentHeader::default()
        };
        ChangeState::of(&header, None).unwrap()
    }

    fn with_url(url: &str, state: ChangeState) -> ChangeState {
        ChangeState {
            url: Some(url.into()),
            ..state
        }
    }

    /// Advances the state of data by `changes`. Returns the new state, and the number of changes that neither continue
    /// the data nor are included in it.
    fn state_after(
        url: Option<&str>,
        state: Replication,
        changes: &[ChangeState],
    ) -> (Replication, usize) {
        let mut data = DataState {
            url: url.map(str::to_owned),
            state,
        };
        let left_out = data.advance_by(changes).len();
        (data.state, left_out)
    }

    #[test]
    fn a_state_moves_on_only_by_changes_that_continue_it() {
        const URL: &str = "https://osm.example/day";
        let base = || replication(72, 7200);
        let on_base = |changes: &[ChangeState]| state_after(Some(URL), base(), changes);
        assert_eq!(on_base(&[]), (base(), 0));
        let next = [
            state_of_change(74, 7400),
            with_url(URL, state_of_change(73, 7300)),
        ];
        assert_eq!(on_base(&next), (replication(74, 7400), 0));
        // A change file without a time keeps the time of the data.
        assert_eq!(
            on_base(&[with_url(
                &format!("{URL}/"),
                ChangeState {
                    after: replication(73, None),
                    ..state_of_change(73, 0)
                }
            )]),
            (replication(73, 7200), 0)
        );
        // The state stays, because the data includes the changes already.
        assert_eq!(
            on_base(&[state_of_change(72, 7200), state_of_change(60, 6000)]),
            (base(), 0)
        );
        // These changes do not continue the state. A change file before them is missing, or they come from another
        // server. Another server is recognised by the URL, the time or the sequence number.
        assert_eq!(on_base(&[state_of_change(74, 7400)]), (base(), 1));
        assert_eq!(
            on_base(&[state_of_change(73, 7300), state_of_change(75, 7500)]),
            (replication(73, 7300), 1)
        );
        assert_eq!(
            on_base(&[with_url(
                "https://osm.example/hour",
                state_of_change(73, 7300)
            )]),
            (base(), 1)
        );
        assert_eq!(on_base(&[state_of_change(73, 300)]), (base(), 1));
        assert_eq!(on_base(&[state_of_change(7, 7300)]), (base(), 1));
        // The state of the data is unknown, wholly or in part.
        let none = || replication(None, None);
        assert_eq!(
            state_after(None, none(), &[state_of_change(73, 7300)]),
            (none(), 1)
        );
        assert_eq!(
            state_after(None, replication(None, 7200), &[state_of_change(73, 7300)]),
            (replication(None, 7200), 1)
        );
        let derived = ChangeState {
            before: replication(None, 7100),
            ..state_of_change(73, 7300)
        };
        assert_eq!(
            state_after(None, replication(None, 7200), &[derived]),
            (replication(73, 7300), 0)
        );
    }

    #[test]
    fn consecutive_change_files_are_joined_into_one_state() {
        let joined = ChangeState::join(&[
            state_of_change(5, 500),
            state_of_change(3, 300),
            state_of_change(4, 400),
            state_of_change(4, 400),
        ])
        .unwrap();
        assert_eq!(joined.before, replication(2, None));
        assert_eq!(joined.after, replication(5, 500));
        for base in 2..5 {
            let all = std::slice::from_ref(&joined);
            assert_eq!(
                state_after(None, replication(base, 100 * base), all),
                (replication(5, 500), 0)
            );
        }
        assert_eq!(
            state_after(None, replication(1, 100), &[joined]),
            (replication(1, 100), 1)
        );
        assert_eq!(ChangeState::join(&[]), None);
        for apart in [
            [state_of_change(3, 300), state_of_change(5, 500)],
            [state_of_change(3, 300), state_of_change(4, 200)],
            [
                with_url("https://a", state_of_change(3, 300)),
                with_url("https://b", state_of_change(4, 400)),
            ],
        ] {
            assert_eq!(ChangeState::join(&apart), None);
        }
    }
}
