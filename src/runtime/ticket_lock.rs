//! A lock that workers acquire in the order of their items, for a small part of the work in a parallel phase.

use super::lock::lock;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A value that workers change one after the other, in the order of their items.
///
/// The items are numbered from 0 without gaps, and workers claim them in this order. Therefore, whenever a worker
/// waits, another worker has claimed the item whose turn it is, and no worker waits forever.
#[derive(Debug)]
pub(crate) struct TicketLock<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// The number of the item whose turn it is.
    next: u64,
    /// The lowest number of an item that failed before its turn.
    failed: Option<u64>,
    value: T,
}

impl<T> TicketLock<T> {
    /// Creates the lock with its initial value.
    pub(crate) const fn new(value: T) -> Self {
        Self {
            state: Mutex::new(State {
                next: 0,
                failed: None,
                value,
            }),
            changed: Condvar::new(),
        }
    }

    /// Returns the turn of an item. If the turn is dropped without a call of [`Turn::take`], the item counts as failed,
    /// and later items get no turn.
    pub(crate) const fn turn(&self, number: u64) -> Turn<'_, T> {
        Turn {
            lock: self,
            number,
            is_taken: false,
        }
    }

    /// Returns the value. Called after the last item.
    pub(crate) fn into_inner(self) -> T {
        let state = self.state.into_inner();
        state.unwrap_or_else(PoisonError::into_inner).value
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }
}

/// The turn of an item.
#[derive(Debug)]
pub(crate) struct Turn<'t, T> {
    lock: &'t TicketLock<T>,
    number: u64,
    is_taken: bool,
}

impl<T> Turn<'_, T> {
    /// Waits for the turn and calls `change` with the value. Returns `None` if an earlier item has failed.
    pub(crate) fn take<R>(mut self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut state = self.lock.lock();
        while state.next != self.number {
            if state.failed.is_some_and(|failed| failed < self.number) {
                return None;
            }
            let waited = self.lock.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let result = change(&mut state.value);
        state.next += 1;
        self.is_taken = true;
        drop(state);
        self.lock.changed.notify_all();
        Some(result)
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if !self.is_taken {
            let mut state = self.lock.lock();
            let failed = state.failed.unwrap_or(self.number);
            state.failed = Some(failed.min(self.number));
            drop(state);
            self.lock.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Runs 100 items on four threads. The item with the number `fails` fails. Returns the numbers of the items that
    /// got a turn.
    fn items_with_turn(fails: Option<u64>) -> Vec<u64> {
        let (turns, claimed) = (TicketLock::new(Vec::new()), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let number = claimed.fetch_add(1, Ordering::SeqCst);
                        if number >= 100 {
                            return;
                        }
                        let turn = turns.turn(number);
                        if number % 3 == 0 {
                            std::thread::yield_now();
                        }
                        if Some(number) != fails {
                            let taken = turn.take(|taken| taken.push(number));
                            let is_behind = fails.is_some_and(|fails| number > fails);
                            assert_eq!(taken.is_none(), is_behind);
                        }
                    }
                });
            }
        });
        turns.into_inner()
    }

    #[test]
    fn items_have_their_turn_in_order() {
        assert_eq!(items_with_turn(None), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn items_after_a_failed_item_get_no_turn() {
        for fails in [0, 1, 57, 99] {
            assert_eq!(items_with_turn(Some(fails)), (0..fails).collect::<Vec<_>>());
        }
    }
}
