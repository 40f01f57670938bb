//! Finds the state of a server at a time. If there is none, the error says whether the server lacks old change files,
//! or lacks state files next to its change files.

use super::search::state_at;
use super::server::Server;
use super::state::State;
use crate::error::{Advice, Error, Result};
use crate::osm::format_timestamp;
use std::path::Path;

/// The number of sequence numbers to try directly before the oldest known state, in the search for an older change
/// file.
const NEIGHBOURS: i64 = 4;

/// The purpose for which the state at a time is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Changes are wanted from this time on.
    Start,
    /// Changes are wanted up to this time.
    End,
}

/// Returns the last state of a server that is not newer than `timestamp`. Fails if all its states are newer. `newest`
/// is the newest state of the server.
pub(super) fn state_at_or_before(
    server: &Server<'_>,
    newest: State,
    timestamp: i64,
    purpose: Purpose,
) -> Result<State> {
    let mut oldest: Option<i64> = None;
    let state = state_at(newest, timestamp, |sequence| {
        let state = server.state(sequence)?;
        if state.is_some() {
            oldest = Some(oldest.map_or(sequence, |oldest| oldest.min(sequence)));
        }
        Ok(state)
    })?;
    if let Some(state) = state {
        return Ok(state);
    }
    let unknown = |cause: &str| missing_states_error(server, timestamp, purpose, cause);
    if oldest.is_none() && server.state(newest.sequence)?.is_none() {
        let cause = "the server has state.txt, but no states beside its change files";
        let such = missing_state_url(server, newest.sequence);
        return Err(unknown(&format!("{cause}, such as {such}")));
    }
    let mut oldest = oldest.unwrap_or(newest.sequence);
    while let Some(older) = older_sequence(server, oldest)? {
        match server.state(older)? {
            Some(state) if state.timestamp <= timestamp => return Ok(state),
            Some(_) => oldest = older,
            None => {
                let cause = "the server has no states beside some of its change files";
                let such = missing_state_url(server, older);
                return Err(unknown(&format!("{cause}, such as {such}")));
            }
        }
    }
    let cause = format!(
        "the oldest change file of the server is newer than {}",
        format_timestamp(timestamp)
    );
    Err(Error::file(Path::new(server.base()), cause).advise(Advice::GetOlderChanges))
}

/// Searches for change files before `oldest`. Tries the sequence numbers 0 and 1, the numbers directly before `oldest`,
/// and numbers at growing distances from `oldest`. Returns the smallest of them that has a change file; `None` if none
/// has one.
fn older_sequence(server: &Server<'_>, oldest: i64) -> Result<Option<i64>> {
    let steps = std::iter::successors(Some(NEIGHBOURS), |step: &i64| step.checked_mul(4));
    let mut numbers: Vec<i64> = (1..NEIGHBOURS)
        .chain(steps)
        .map_while(|step| oldest.checked_sub(step))
        .take_while(|number| *number >= 0)
        .chain([1, 0])
        .filter(|number| *number < oldest)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        if server.has_changes(number)? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Returns the URL of a missing state, with a note if the server sends an HTML page instead.
fn missing_state_url(server: &Server<'_>, sequence: i64) -> String {
    let url = server.state_url(sequence);
    if server.sends_page_for_state(sequence) {
        format!("{url} (an HTML page comes instead of a state file)")
    } else {
        url
    }
}

/// Returns the error for missing states. The error says which change file cannot be determined without them.
fn missing_states_error(
    server: &Server<'_>,
    timestamp: i64,
    purpose: Purpose,
    cause: &str,
) -> Error {
    let (unknown, advice) = match purpose {
        Purpose::Start => {
            let advice = Advice::NameServerOfStates(server.base().to_owned());
            ("which change file follows", advice)
        }
        Purpose::End => (
            "which change file is the last one up to",
            Advice::EndBySequence,
        ),
    };
    let time = format_timestamp(timestamp);
    let cause = format!("{cause}: {unknown} {time} is not known");
    Error::file(Path::new(server.base()), cause).advise(advice)
}
