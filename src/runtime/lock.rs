//! Functions that ignore the poisoning of a mutex. A mutex is poisoned if a thread panics while it holds the lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if it is poisoned.
pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Consumes a mutex and returns its value, even if the mutex is poisoned.
pub(crate) fn into_mutex_value<T>(value: Mutex<T>) -> T {
    value.into_inner().unwrap_or_else(PoisonError::into_inner)
}
