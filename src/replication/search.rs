//! Finds the state of a replication server at a given time.

use super::State;
use crate::error::Result;
use std::ops::Range;

/// The number of neighbouring sequence numbers that are tried on each side of a missing state.
const NEIGHBOURS: i64 = 4;

/// Finds the last state of a server that is not newer than `target`, in seconds since 1970. Returns `None` if all
/// states of the server are newer.
///
/// `newest` is the newest state. `state_of` must return the state with the given sequence number, or `None` if the
/// server does not have it. The server may have deleted its oldest states. If other states are missing, the result may
/// be a state before the missing ones. The search requests only about a dozen states. States are published at regular
/// intervals, so the time of a state gives its approximate sequence number.
///
/// # Errors
///
/// `state_of` fails.
pub fn state_at(
    newest: State,
    target: i64,
    mut state_of: impl FnMut(i64) -> Result<Option<State>>,
) -> Result<Option<State>> {
    if newest.timestamp <= target {
        return Ok(Some(newest));
    }
    let mut search = search_back_from_newest(newest, target, &mut state_of)?;
    let mut halves = false;
    while let Some(guess) = search.guess_sequence(target, halves) {
        // Every other guess halves the remaining range, so that irregular times cannot make the search long.
        halves = !halves;
        match existing_state(guess, &search.left, &mut state_of)? {
            Some(state) => search.narrow_range(state, target),
            // No state near the guess exists. If no state before the target is known yet, the server has probably
            // deleted all states up to the guess, so the search goes on with later ones. Otherwise it goes on with
            // earlier ones, because a state before the gap is good enough.
            None if search.lower.is_none() => search.left.start = guess + 1,
            None => search.left.end = guess,
        }
    }
    Ok(search.lower)
}

/// The bounds of the search for the wanted state.
struct StateSearch {
    /// The newest known state that is not newer than the target.
    lower: Option<State>,
    /// The oldest known state that is newer than the target.
    upper: State,
    /// The sequence numbers that remain to be searched.
    left: Range<i64>,
}

impl StateSearch {
    /// Makes a found state the new lower or upper bound.
    fn narrow_range(&mut self, state: State, target: i64) {
        if state.timestamp <= target {
            self.lower = Some(state);
            self.left.start = state.sequence + 1;
        } else {
            self.upper = state;
            self.left.end = state.sequence;
        }
    }

    /// Returns the sequence number to request next, or `None` if no numbers remain. With `halves`, or if the lower
    /// bound is unknown, the number is in the middle of the remaining range. Otherwise, it is estimated from the times
    /// of the bounds.
    fn guess_sequence(&self, target: i64, halves: bool) -> Option<i64> {
        let Range { start, end } = self.left;
        if start >= end {
            return None;
        }
        let guess = match self.lower {
            Some(lower) if !halves => {
                let seconds = (self.upper.timestamp - lower.timestamp).max(1) as f64;
                let part = (target - lower.timestamp) as f64 / seconds;
                lower.sequence + (part * (self.upper.sequence - lower.sequence) as f64) as i64
            }
            _ => start + (end - start) / 2,
        };
        Some(guess.clamp(start, end - 1))
    }
}

/// Goes back from the newest state in increasing steps, until a state is not newer than `target`.
fn search_back_from_newest(
    newest: State,
    target: i64,
    state_of: &mut impl FnMut(i64) -> Result<Option<State>>,
) -> Result<StateSearch> {
    let mut search = StateSearch {
        lower: None,
        upper: newest,
        left: 0..newest.sequence,
    };
    // The largest sequence number below `search.upper` that was tried, and near which no state exists.
    let mut missing = None;
    let mut step = 1;
    while search.lower.is_none() && !search.left.is_empty() {
        let guess = newest.sequence.saturating_sub(step).max(0);
        match existing_state(guess, &search.left, state_of)? {
            Some(state) => {
                search.narrow_range(state, target);
                missing = missing.filter(|number| *number < state.sequence);
            }
            None => missing = missing.or(Some(guess)),
        }
        if guess == 0 {
            break;
        }
        step = step.saturating_mul(4);
    }
    if search.lower.is_none() {
        search.left.start = missing.map_or(0, |number| number + 1);
    }
    Ok(search)
}

/// Returns the state with the sequence number `guess` or a neighbouring one in `left`, or `None` if none of them
/// exists.
fn existing_state(
    guess: i64,
    left: &Range<i64>,
    state_of: &mut impl FnMut(i64) -> Result<Option<State>>,
) -> Result<Option<State>> {
    let around = (1..=NEIGHBOURS).flat_map(|distance| [guess + distance, guess - distance]);
    for number in std::iter::once(guess).chain(around) {
        if left.contains(&number)
            && let Some(state) = state_of(number)?
        {
            return Ok(Some(state));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Returns the result of a search on a server with the given states, and the number of requested states.
    fn find_and_count_requests(states: &BTreeMap<i64, i64>, target: i64) -> (Option<State>, usize) {
        let state = |(sequence, timestamp): (&i64, &i64)| State {
            sequence: *sequence,
            timestamp: *timestamp,
        };
        let newest = states.last_key_value().map(state).unwrap();
        let mut asked = 0;
        let found = state_at(newest, target, |sequence| {
            asked += 1;
            Ok(states.get_key_value(&sequence).map(state))
        });
        (found.unwrap(), asked)
    }

    /// Returns the sequence number of the last state that is not newer than `target`.
    fn expected_sequence(states: &BTreeMap<i64, i64>, target: i64) -> Option<i64> {
        let mut old = states.iter().rev().filter(|(_, time)| **time <= target);
        old.next().map(|(sequence, _)| *sequence)
    }

    #[test]
    fn the_state_at_each_time_is_found_with_few_requests() {
        let regular: BTreeMap<i64, i64> = (0..2_000_000).map(|at| (at, 60 * at + at % 7)).collect();
        for target in [
            -1,
            0,
            59,
            60,
            61,
            3_599_999,
            59_999_999,
            119_999_990,
            200_000_000,
        ] {
            let (state, asked) = find_and_count_requests(&regular, target);
            assert_eq!(
                state.map(|state| state.sequence),
                expected_sequence(&regular, target)
            );
            assert!(asked < 60, "{target}: {asked}");
        }
        // The states have irregular times, with a gap of a day after each 5000 states.
        let irregular: BTreeMap<i64, i64> = (0..100_000)
            .map(|at| (at, 60 * at + at / 5000 * 86_400))
            .collect();
        for target in (0..8_000_000).step_by(77_777) {
            let (state, asked) = find_and_count_requests(&irregular, target);
            assert_eq!(
                state.map(|state| state.sequence),
                expected_sequence(&irregular, target)
            );
            assert!(asked < 60, "{target}: {asked}");
        }
    }

    #[test]
    fn lost_states_take_few_requests_and_never_lead_to_newer_data() {
        let all = (0..30_000).map(|at| (at, 3600 * at));
        let is_lost = |at: i64| at < 12_345 || at % 11 == 3 || (20_000..20_003).contains(&at);
        let states: BTreeMap<i64, i64> = all.filter(|(at, _)| !is_lost(*at)).collect();
        for target in (12_000..30_001).step_by(97) {
            let (state, asked) = find_and_count_requests(&states, 3600 * target + 5);
            assert_eq!(
                state.map(|state| state.sequence),
                expected_sequence(&states, 3600 * target + 5),
                "{target}"
            );
            assert!(asked < 200, "{target}: {asked}");
        }
        // The gap is longer than the range of neighbours that are tried.
        let all = (0..30_000).map(|at| (at, 3600 * at));
        let states: BTreeMap<i64, i64> = all
            .filter(|(at, _)| !(15_000..16_000).contains(at))
            .collect();
        for target in (0..30_000).step_by(89) {
            let (state, asked) = find_and_count_requests(&states, 3600 * target);
            let state = state.unwrap();
            let expected = expected_sequence(&states, 3600 * target).unwrap();
            assert!(
                state.sequence <= expected && expected - state.sequence <= 1000,
                "{target}"
            );
            assert!(asked < 200, "{target}: {asked}");
        }
    }
}
