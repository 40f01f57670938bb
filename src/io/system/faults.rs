//! System calls that fail on demand, for tests.

use super::Call;
use rustix::io::Errno;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The fault of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call fails with this error.
    Fails(Errno),
    /// A signal interrupts the call before it transfers anything.
    Interrupted,
    /// The call transfers half of the bytes.
    Short,
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    call: Call,
    fault: Fault,
    /// The first call that has the fault, counted from 1.
    nth: u64,
    /// Whether all later calls have the fault, too.
    lasting: bool,
    seen: u64,
    happened: u64,
}

static PLAN: Mutex<Option<Plan>> = Mutex::new(None);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Exclusive use of the fault plan: tests that hold one run one at a time. Dropping it ends the plan.
pub(crate) struct Faults {
    _alone: MutexGuard<'static, ()>,
}

fn plan() -> MutexGuard<'static, Option<Plan>> {
    PLAN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faults {
    /// Waits until no other test holds the plan, and clears it.
    pub(crate) fn none() -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        *plan() = None;
        Self { _alone: alone }
    }

    /// Plans that the `nth` call of its kind from now on has `fault`. [`Fault::Fails`] also applies to all later
    /// calls, as a full disk stays full.
    pub(crate) fn plan(&self, call: Call, nth: u64, fault: Fault) {
        *plan() = Some(Plan {
            call,
            fault,
            nth,
            lasting: matches!(fault, Fault::Fails(_)),
            seen: 0,
            happened: 0,
        });
    }

    /// Ends the plan. Returns whether any call had the fault.
    pub(crate) fn end(&self) -> bool {
        plan().take().is_some_and(|plan| plan.happened > 0)
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        *plan() = None;
    }
}

pub(super) fn admit(call: Call, len: usize) -> io::Result<usize> {
    let mut guard = plan();
    let Some(plan) = guard.as_mut().filter(|plan| plan.call == call) else {
        return Ok(len);
    };
    plan.seen += 1;
    if plan.seen != plan.nth && !(plan.lasting && plan.seen > plan.nth) {
        return Ok(len);
    }
    plan.happened += 1;
    match plan.fault {
        Fault::Fails(error) => Err(error.into()),
        Fault::Interrupted => Err(io::ErrorKind::Interrupted.into()),
        Fault::Short => Ok(len.div_ceil(2)),
    }
}
