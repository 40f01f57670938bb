//! Repeated attempts to fetch a file, and the pauses between them.

use super::{Fault, Pace};
use std::time::Duration;

/// The maximum pause that a server can ask for. Longer pauses are shortened to it.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// The rules by which failed attempts to fetch a file are repeated.
#[derive(Clone, Copy)]
pub(crate) struct Attempts<'a> {
    /// Waits before another attempt. Fails if the user wants to stop.
    pub pause: &'a (dyn Fn(Duration) -> Result<(), Fault> + Sync),
    /// The pause after the first failed attempt. Each further pause is twice as long as the one before.
    pub first_pause: Duration,
    /// The number of failed attempts after which the file is given up. An attempt that brings new bytes restarts the
    /// count at 1.
    pub most: u32,
}

impl Attempts<'_> {
    /// Calls `attempt` until it succeeds. `attempt` also returns the number of bytes that have arrived in all attempts
    /// so far.
    ///
    /// Fails with the last fault in any of these cases: the fault is permanent; the number of failed attempts reaches
    /// `most`; the bytes arrived more slowly than `pace` allows. Also fails if the user wants to stop.
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
            // An attempt that brought new bytes restarts the count, so only attempts without progress add up.
            failures = if arrived > before { 1 } else { failures + 1 };
            before = arrived;
            let is_too_slow = pace.as_ref().is_some_and(|pace| pace.is_too_slow(arrived));
            let pause = match &fault {
                Fault::Missing
                | Fault::Refused(_)
                | Fault::Unauthorized(_)
                | Fault::Permanent(_) => return Err(fault),
                _ if failures >= self.most || is_too_slow => return Err(fault),
                // If the server asks for a pause that is shorter than the usual one, the pause is the usual one.
                Fault::Busy(Some(pause)) => {
                    (*pause).min(LONGEST_PAUSE).max(self.pause_length(failures))
                }
                _ => self.pause_length(failures),
            };
            if let Some(pace) = &mut pace {
                pace.allow(pause);
            }
            (self.pause)(pause)?;
        }
    }

    /// Returns the pause after `failures` consecutive failures.
    fn pause_length(&self, failures: u32) -> Duration {
        self.first_pause * 2u32.pow(failures.saturating_sub(1))
    }

    /// Waits after `failures` consecutive failures.
    pub(crate) fn wait_after(&self, failures: u32) -> Result<(), Fault> {
        (self.pause)(self.pause_length(failures))
    }
}
