//! The replication state of a file that is to be updated.

use super::{Options, ReportedState};
use crate::engine::ElementReader;
use crate::error::{Advice, Error, Result};
use crate::file::PbfFile;
use crate::osm::format_timestamp;
use crate::pbf::{Element, feature};
use crate::replication::{Ladder, State, is_same_server};
use crate::runtime::Context;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The maximum time in seconds from a change to its publication. If the newest object of a file has the time `t`, the
/// file contains all changes up to `t - PUBLICATION`.
const PUBLICATION: i64 = 3600;

/// The replication state in the header of a file. Each part can be missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeaderState {
    pub url: Option<String>,
    pub sequence: Option<i64>,
    pub timestamp: Option<i64>,
}

/// The state of a file.
pub(super) struct FilePosition {
    pub header: HeaderState,
    /// Whether the ways of the file have the locations of their nodes.
    pub has_locations: bool,
}

/// The state from which a file is updated.
pub(super) struct Start {
    /// The state of the file, as a state of the server with the shortest interval.
    pub state: State,
    /// Whether the newest state of the server is older than that of the file.
    pub is_server_behind: bool,
}

impl From<State> for Start {
    fn from(state: State) -> Self {
        Self {
            state,
            is_server_behind: false,
        }
    }
}

impl FilePosition {
    pub(super) fn read(path: &Path, ctx: &Context) -> Result<Self> {
        let header = PbfFile::open(path, ctx)?.header;
        if header.has(feature::HISTORY) {
            let cause = "this is a history file, which update cannot bring up to date";
            return Err(Error::file(path, cause).advise(Advice::AddVersions));
        }
        Ok(Self {
            has_locations: header.has(feature::LOCATIONS),
            header: HeaderState {
                url: header.replication_url,
                sequence: header.replication_sequence,
                timestamp: header.replication_timestamp,
            },
        })
    }

    /// Whether the header has this state.
    pub(super) fn is_at(&self, state: &ReportedState) -> bool {
        let timestamp = self.header.timestamp.map(format_timestamp);
        self.header.sequence == Some(state.sequence) && timestamp.as_ref() == Some(&state.timestamp)
    }

    /// Finds the state of the file, as a state of the server with the shortest interval.
    pub(super) fn find_start(
        &self,
        options: &Options,
        ladder: &Ladder<'_>,
        ctx: &Context,
    ) -> Result<Start> {
        let (server, newest) = ladder.finest_server();
        let header = &self.header;
        let url = header.url.as_deref();
        let is_known = url.is_some_and(|url| is_same_server(url, server.base()));
        match (header.sequence.filter(|_| is_known), header.timestamp) {
            (Some(sequence), Some(timestamp)) => {
                let state = State {
                    sequence,
                    timestamp,
                };
                start_at_server_state(state, options, ladder, ctx)
            }
            (Some(sequence), None) => Ok(fetch_untimed_state(sequence, options, ladder)?.into()),
            (None, Some(timestamp)) => start_at_time(ladder, timestamp),
            (None, None) => {
                let published = newest_timestamp(&options.file, ctx)?.saturating_sub(PUBLICATION);
                if published > newest.timestamp {
                    start_at_time(ladder, published)
                } else {
                    Ok(ladder.state_at(published)?.into())
                }
            }
        }
    }
}

/// Finds the start for a file whose header has a state of the server.
fn start_at_server_state(
    state: State,
    options: &Options,
    ladder: &Ladder<'_>,
    ctx: &Context,
) -> Result<Start> {
    let (server, newest) = ladder.finest_server();
    let is_behind = newest.sequence < state.sequence;
    if is_behind && state.timestamp < newest.timestamp {
        ctx.warn(format!(
            "{}: the sequence number {} of the header is larger than the newest of {}, which is {} of a later \
             time: the numbers of the server began anew, and what follows is found by time",
            options.file.display(),
            state.sequence,
            server.base(),
            newest.sequence
        ));
        return start_at_time(ladder, state.timestamp);
    }
    Ok(Start {
        state,
        is_server_behind: is_behind,
    })
}

/// Fetches the server's state with the sequence number `sequence`, for a file whose header has no time.
fn fetch_untimed_state(sequence: i64, options: &Options, ladder: &Ladder<'_>) -> Result<State> {
    let (server, newest) = ladder.finest_server();
    if newest.sequence < sequence {
        let cause = format!(
            "the header has the sequence number {sequence} and no time, and the newest state of {} is {} of {}: the \
             server is behind the file, or its numbers began anew",
            server.base(),
            newest.sequence,
            format_timestamp(newest.timestamp)
        );
        return Err(Error::file(&options.file, cause).advise(Advice::SetTime));
    }
    server.state(sequence)?.ok_or_else(|| {
        let cause =
            format!("the server has no state with the sequence number {sequence} of the header");
        Error::file(&options.file, cause)
    })
}

/// Finds the state of a file that contains all changes up to `timestamp`.
fn start_at_time(ladder: &Ladder<'_>, timestamp: i64) -> Result<Start> {
    Ok(Start {
        state: State {
            timestamp,
            ..ladder.state_at(timestamp)?
        },
        is_server_behind: ladder.finest_server().1.timestamp < timestamp,
    })
}

/// Returns the timestamp of the newest object of a file.
fn newest_timestamp(path: &Path, ctx: &Context) -> Result<i64> {
    let reader = ElementReader::with_context(path, ctx.clone())?;
    let timestamp = |element: Element<'_>| element.info().timestamp;
    let newest =
        reader.par_map_reduce(timestamp, || None, |one: Option<i64>, other| one.max(other))?;
    newest.ok_or_else(|| {
        let cause = "neither the header nor the objects say how old the data is";
        Error::file(path, cause).advise(Advice::SetTime)
    })
}

/// Returns the URL of a server. The path of a local directory is made absolute, because it is stored in the header of
/// the file, and a later run may start in another directory.
pub(super) fn absolute_url(url: &str) -> String {
    let absolute = |path: &str| Some(std::path::absolute(path).ok()?.to_str()?.to_owned());
    match url.split_once("://") {
        Some(("file", path)) => absolute(path).map(|path| format!("file://{path}")),
        Some(_) => None,
        None => absolute(url),
    }
    .unwrap_or_else(|| url.to_owned())
}
