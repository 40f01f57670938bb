//! What the parallel phase is built on, in one place: tests put threads in its stead of which they decide who goes on.

use std::io;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::Builder;
pub(super) use std::thread::{Scope, ScopedJoinHandle, scope};

/// Starts a thread that ends before its scope does.
pub(super) fn spawn_in<'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: impl FnOnce() + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, ()>> {
    Builder::new().spawn_scoped(scope, run)
}
