//! System calls that fail on demand, for tests.

use super::Call;
use rustix::io::Errno;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// A way in which a system call fails or transfers too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call fails with this error.
    Fails(Errno),
    /// A signal interrupts the call before it transfers anything.
    Interrupted,
    /// The call transfers half of the bytes, rounded up.
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
    /// The thread whose calls count; `None` for those of all threads.
    thread: Option<ThreadId>,
    /// The number of calls of this kind so far.
    seen: u64,
    /// The number of calls that had the fault.
    happened: u64,
}

impl Plan {
    fn is_for(&self, call: Call) -> bool {
        let is_here = |thread| thread == thread::current().id();
        self.call == call && self.thread.is_none_or(is_here)
    }
}

static PLAN: Mutex<Option<Plan>> = Mutex::new(None);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A guard for the exclusive use of the fault plan: tests that own a guard run one at a time. Dropping the guard clears
/// the plan.
pub(crate) struct Faults {
    _alone: MutexGuard<'static, ()>,
}

fn plan() -> MutexGuard<'static, Option<Plan>> {
    PLAN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faults {
    /// Waits until no other test uses the plan, and clears the plan.
    pub(crate) fn none() -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        *plan() = None;
        Self { _alone: alone }
    }

    /// Plans that the `nth` system call of kind `call` has `fault`, counted from 1 from now on. [`Fault::Fails`] also
    /// applies to all later calls of that kind, as a full disk stays full.
    pub(crate) fn plan(&self, call: Call, nth: u64, fault: Fault) {
        Self::set(call, nth, fault, None);
    }

    /// Plans the same for the calls of this thread only, so that other tests go on meanwhile.
    pub(crate) fn plan_here(&self, call: Call, nth: u64, fault: Fault) {
        Self::set(call, nth, fault, Some(thread::current().id()));
    }

    fn set(call: Call, nth: u64, fault: Fault, thread: Option<ThreadId>) {
        *plan() = Some(Plan {
            thread,
            call,
            fault,
            nth,
            lasting: matches!(fault, Fault::Fails(_)),
            seen: 0,
            happened: 0,
        });
    }

    /// Clears the plan. Returns whether any call had the fault.
    pub(crate) fn end(&self) -> bool {
        plan().take().is_some_and(|plan| plan.happened > 0)
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        *plan() = None;
    }
}

/// Applies the planned fault, if there is one for this call. See [`super::admit`].
pub(super) fn admit(call: Call, len: usize) -> io::Result<usize> {
    let mut guard = plan();
    let Some(plan) = guard.as_mut().filter(|plan| plan.is_for(call)) else {
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
