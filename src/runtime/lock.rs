//! Locks of values that stay usable if a thread panics while it holds one.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a value.
pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value itself, after all other threads have ended.
pub(crate) fn unlocked<T>(value: Mutex<T>) -> T {
    value.into_inner().unwrap_or_else(PoisonError::into_inner)
}
