//! Servers that publish the same changes by the day, by the hour and by the minute.

use super::search::state_at;
use super::server::Server;
use super::state::State;
use crate::error::{Error, Result};
use std::path::Path;

/// Servers that publish the same changes, those with the longest steps first.
pub struct Ladder<'s> {
    rungs: Vec<(Server<'s>, State)>,
}

/// Change files of one server that follow each other.
pub struct Leg<'l, 's> {
    /// The server.
    pub server: &'l Server<'s>,
    /// The sequence number of the first change file.
    pub first: i64,
    /// The state after the last change file.
    pub end: State,
}

/// The data up to which changes are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct End {
    /// The last sequence number of the server with the shortest steps.
    pub sequence: Option<i64>,
    /// The last time, in seconds since 1970.
    pub timestamp: Option<i64>,
}

impl<'s> Ladder<'s> {
    /// The ladder of servers, those with the longest steps first. Asks each for its newest state.
    ///
    /// # Errors
    ///
    /// A server cannot be reached, or is no replication server.
    pub fn new(servers: Vec<Server<'s>>) -> Result<Self> {
        let rungs = servers.into_iter().map(|server| {
            let newest = server.newest()?;
            Ok((server, newest))
        });
        let rungs: Vec<_> = rungs.collect::<Result<_>>()?;
        match rungs.is_empty() {
            true => Err(Error::Usage("there is no replication server".into())),
            false => Ok(Self { rungs }),
        }
    }

    /// The server with the shortest steps, whose sequence numbers files have in their headers, and its newest state.
    pub fn finest(&self) -> (&Server<'s>, State) {
        match self.rungs.as_slice() {
            [.., (server, newest)] => (server, *newest),
            [] => unreachable!("a ladder has a rung"),
        }
    }

    /// The last state of the finest server whose data is not newer than `timestamp`.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or all its states are newer.
    pub fn state_at(&self, timestamp: i64) -> Result<State> {
        let (server, newest) = self.finest();
        state_of(server, newest, timestamp)
    }

    /// The change files that lead from a state of the finest server to the newest, or to `end`. Servers with longer steps
    /// come first, as far as they save downloads.
    ///
    /// # Errors
    ///
    /// A server cannot be reached, or no longer has the states.
    pub fn legs(&self, start: State, end: End) -> Result<Vec<Leg<'_, 's>>> {
        let mut legs = Vec::new();
        let (mut at, mut is_between) = (start, false);
        let last = self.last(end)?;
        let (finest, coarser) = self
            .rungs
            .split_last()
            .ok_or(Error::Internal("no rung".into()))?;
        for (server, newest) in coarser {
            let newest = match newest.timestamp <= last.timestamp {
                true => *newest,
                false => state_of(server, *newest, last.timestamp)?,
            };
            if newest.timestamp <= at.timestamp {
                continue;
            }
            let from = state_of(server, newest, at.timestamp)?;
            // Longer steps begin earlier: they are worth it unless most of them is known.
            let (known, new) = (
                at.timestamp - from.timestamp,
                newest.timestamp - at.timestamp,
            );
            if known > new {
                continue;
            }
            legs.push(Leg {
                server,
                first: from.sequence + 1,
                end: newest,
            });
            (at, is_between) = (newest, true);
        }
        let (server, newest) = finest;
        let first = match is_between {
            true => state_of(server, *newest, at.timestamp)?.sequence,
            false => start.sequence,
        };
        legs.push(Leg {
            server,
            first: first + 1,
            end: last,
        });
        Ok(legs
            .into_iter()
            .filter(|leg| leg.first <= leg.end.sequence)
            .collect())
    }

    /// The last state of the finest server that is wanted.
    fn last(&self, end: End) -> Result<State> {
        let (server, mut last) = self.finest();
        if let Some(timestamp) = end.timestamp.filter(|end| *end < last.timestamp) {
            last = state_of(server, last, timestamp)?;
        }
        if let Some(sequence) = end.sequence.filter(|end| *end < last.sequence) {
            let state = server.state(sequence)?;
            last = state.ok_or_else(|| {
                let cause = format!("the server has no state with the sequence number {sequence}");
                Error::file(Path::new(server.base()), cause)
            })?;
        }
        Ok(last)
    }
}

/// The last state of a server whose data is not newer than `timestamp`.
fn state_of(server: &Server<'_>, newest: State, timestamp: i64) -> Result<State> {
    let state = state_at(newest, timestamp, |sequence| server.state(sequence))?;
    state.ok_or_else(|| {
        let time = crate::osm::format_timestamp(timestamp);
        let cause = format!(
            "the oldest change file of the server is newer than {time}; get a newer file, or name a server that \
             keeps older changes with --server"
        );
        Error::file(Path::new(server.base()), cause)
    })
}
