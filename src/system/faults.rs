//! System calls that fail on demand, for tests.

use super::Call;
use rustix::io::Errno;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// A way in which a system call fails or transfers too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFault {
    /// The call fails with the given error.
    Fails(Errno),
    /// A signal interrupts the call before it transfers anything.
    Interrupted,
    /// The call transfers half of the bytes, rounded up.
    Short,
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    call: Call,
    fault: CallFault,
    /// The number of the first call that has the fault, counted from 1.
    nth: u64,
    /// Whether all later calls also have the fault.
    lasting: bool,
    /// The thread to which the plan applies; `None` for all threads.
    thread: Option<ThreadId>,
    /// The number of matching calls so far.
    seen: u64,
    /// The number of calls that have had the fault.
    happened: u64,
}

impl Plan {
    fn applies_to(&self, call: Call) -> bool {
        let is_here = |thread| thread == thread::current().id();
        self.call == call && self.thread.is_none_or(is_here)
    }
}

static PLAN: Mutex<Option<Plan>> = Mutex::new(None);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A guard for the exclusive use of the fault plan. Tests that own a guard run one at a time. Dropping the guard clears
/// the plan.
pub struct Faults {
    _alone: MutexGuard<'static, ()>,
}

fn lock_plan() -> MutexGuard<'static, Option<Plan>> {
    PLAN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faults {
    /// Waits until no other test uses the plan, and clears the plan.
    pub fn none() -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        *lock_plan() = None;
        Self { _alone: alone }
    }

    /// Plans `fault` for the `nth` system call of kind `call`. Calls are counted from 1, beginning now.
    /// [`CallFault::Fails`] also applies to all later calls of that kind, because a full disk stays full.
    pub fn plan(&self, call: Call, nth: u64, fault: CallFault) {
        Self::set(call, nth, fault, None);
    }

    /// Plans a fault as [`plan`](Self::plan) does, but only for calls of the current thread, so that other tests can
    /// run concurrently.
    pub fn plan_here(&self, call: Call, nth: u64, fault: CallFault) {
        Self::set(call, nth, fault, Some(thread::current().id()));
    }

    fn set(call: Call, nth: u64, fault: CallFault, thread: Option<ThreadId>) {
        *lock_plan() = Some(Plan {
            thread,
            call,
            fault,
            nth,
            lasting: matches!(fault, CallFault::Fails(_)),
            seen: 0,
            happened: 0,
        });
    }

    /// Clears the plan. Returns whether any call has had the fault.
    pub fn end(&self) -> bool {
        lock_plan().take().is_some_and(|plan| plan.happened > 0)
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        *lock_plan() = None;
    }
}

/// Applies the planned fault to a call, if there is one. See [`super::admit`].
pub(super) fn admit(call: Call, len: usize) -> io::Result<usize> {
    let mut guard = lock_plan();
    let Some(plan) = guard.as_mut().filter(|plan| plan.applies_to(call)) else {
        return Ok(len);
    };
    plan.seen += 1;
    if plan.seen != plan.nth && !(plan.lasting && plan.seen > plan.nth) {
        return Ok(len);
    }
    plan.happened += 1;
    match plan.fault {
        CallFault::Fails(error) => Err(error.into()),
        CallFault::Interrupted => Err(io::ErrorKind::Interrupted.into()),
        CallFault::Short => Ok(len.div_ceil(2)),
    }
}
