//! The thread primitives of the parallel phase. Tests replace this module with one that runs threads in a random order.

use std::io;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::Builder;
pub(super) use std::thread::{Scope, ScopedJoinHandle, scope};

/// Starts a thread in a scope. Fails if the system refuses another thread.
pub(super) fn spawn_in<'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: impl FnOnce() + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, ()>> {
    Builder::new().spawn_scoped(scope, run)
}
