//! Trying again: the attempts at a file, and the pauses between them.

use super::{Fault, Pace};
use std::time::Duration;

/// The longest pause that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// The attempts at a file of a server.
#[derive(Clone, Copy)]
pub(crate) struct Attempts<'a> {
    /// Waits before another attempt. Fails if the user wants to end.
    pub pause: &'a (dyn Fn(Duration) -> Result<(), Fault> + Sync),
    /// The pause after the first attempt. Each one is twice as long as the one before.
    pub first_pause: Duration,
    /// The number of attempts in a row that bring nothing before the file is given up.
    pub most: u32,
}

impl Attempts<'_> {
    /// Calls `attempt` until it succeeds. `attempt` also returns the number of bytes that have arrived in all attempts
    /// so far.
    ///
    /// Fails with the last fault if it is not worth another attempt: it is permanent, `most` attempts in a row brought
    /// nothing, or the bytes did not keep `pace`.
    pub(crate) fn run<T>(
        &self,
        mut pace: Option<Pace>,
        mut attempt: impl FnMut() -> (Result<T, Fault>, u64),
    ) -> Result<T, Fault> {
        let (mut failures, mut before) = (0, 0);
        loop {
            let (result, arrived) = attempt();
            let fault = match result {
                Ok(found) => return Ok(found),
                Err(fault) => fault,
            };
            // An attempt that brought something was worth its while.
            failures = if arrived > before { 1 } else { failures + 1 };
            before = arrived;
            let is_lost = pace.as_ref().is_some_and(|pace| pace.is_lost(arrived));
            let pause = match &fault {
                Fault::Missing | Fault::Refused(_) | Fault::Permanent(_) => return Err(fault),
                _ if failures >= self.most || is_lost => return Err(fault),
                // A server that asks for no pause gets one all the same.
                Fault::Busy(Some(pause)) => {
                    (*pause).min(LONGEST_PAUSE).max(self.pause_after(failures))
                }
                _ => self.pause_after(failures),
            };
            if let Some(pace) = &mut pace {
                pace.allow(pause);
            }
            (self.pause)(pause)?;
        }
    }

    /// The pause after some failures in a row.
    fn pause_after(&self, failures: u32) -> Duration {
        self.first_pause * 2u32.pow(failures.saturating_sub(1))
    }

    /// Waits after some failures in a row.
    pub(crate) fn wait_after(&self, failures: u32) -> Result<(), Fault> {
        (self.pause)(self.pause_after(failures))
    }
}
