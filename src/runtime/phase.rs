//! The ordered parallel phase. Workers claim items in order, and results are merged in order.

use super::threads::{Condvar, Mutex, MutexGuard, Scope, ScopedJoinHandle, scope, spawn_in};
use crate::error::{Error, Result};
use crate::runtime::Cancellation;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

/// The limits of a phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhaseLimits<'c> {
    /// The number of threads.
    pub jobs: usize,
    /// The number of bytes held at which workers wait. 0 counts as 1.
    pub budget: u64,
    /// The flag that ends the phase. It is checked before each item, and before each result is merged.
    pub cancellation: &'c Cancellation,
}

/// Runs `work` over the items of `source`. Calls `merge` with each result on the calling thread, in the order of the
/// items.
///
/// - `cost` must return the number of bytes that an item holds from its claim until its result is merged. Workers wait
///   to claim items while the bytes of the budget or more are held, so that memory does not grow with the number of
///   items.
/// - `init` creates the scratch value of a worker (buffers, readers, compressors) before the worker's first item.
/// - The first error in item order, from `source`, `work` or `merge`, ends the phase and is returned. The results of
///   all items before the error are merged. A panic in `source`, `cost`, `init` or `work` is an error, too. A panic in
///   `merge` is resumed when the threads have ended.
/// - A phase that is cancelled fails with [`Error::Cancelled`]. Results of items that are done by then may not be merged.
pub(crate) fn parallel_classify_phase<T, S, R>(
    limits: PhaseLimits<'_>,
    source: impl Iterator<Item = Result<T>> + Send,
    cost: impl Fn(&T) -> u64 + Sync,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> Result<R> + Sync,
    mut merge: impl FnMut(R) -> Result<()>,
) -> Result<()>
where
    T: Send,
    R: Send,
{
    // A budget of 0 would make every claim wait forever, so it counts as 1.
    let PhaseLimits {
        jobs,
        budget,
        cancellation,
    } = limits;
    let source = source.map(|item| item.and_then(|item| cancellation.check().map(|()| item)));
    let queue = Queue::new(source, budget.max(1));
    let worker = || {
        let mut scratch = None;
        while let Some((index, claimed)) = queue.claim(&cost) {
            let done =
                claimed.and_then(|item| caught(|| work(scratch.get_or_insert_with(&init), item)));
            queue.deliver(index, done);
        }
    };
    let stop = || queue.stop();
    scope(|scope| {
        let _workers = Workers::start(scope, jobs, &worker, &stop)?;
        while let Some((held, result)) = queue.next_result() {
            let result = result?;
            cancellation.check()?;
            merge(result)?;
            queue.release(held);
        }
        Ok(())
    })
}

/// Calls `run` and turns a panic into an error.
fn caught<R>(run: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(internal(&*panic)))
}

fn internal(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::Internal(text.unwrap_or_else(|| "a worker panicked".into()))
}

/// The threads of a phase. Dropping this value stops the queue and joins the threads, however the phase ends. The scope
/// alone would wait only until the closures of the threads return, not until the threads end.
///
/// The type has no type parameters, so that the code that starts threads is compiled once and not for every phase.
struct Workers<'scope, 'q> {
    threads: Vec<ScopedJoinHandle<'scope, ()>>,
    stop: &'q dyn Fn(),
}

impl<'scope, 'q> Workers<'scope, 'q> {
    /// Starts `jobs` threads, or fewer if the system refuses more. Fails if not even one can be started.
    fn start(
        scope: &'scope Scope<'scope, '_>,
        jobs: usize,
        worker: &'scope (dyn Fn() + Sync),
        stop: &'q dyn Fn(),
    ) -> Result<Self> {
        let mut workers = Self {
            threads: Vec::new(),
            stop,
        };
        for _ in 0..jobs.max(1) {
            match spawn_in(scope, worker) {
                Ok(thread) => workers.threads.push(thread),
                Err(error) if workers.threads.is_empty() => {
                    return Err(Error::Usage(format!(
                        "cannot start a worker thread: {error}"
                    )));
                }
                Err(_) => break,
            }
        }
        Ok(workers)
    }
}

impl Drop for Workers<'_, '_> {
    fn drop(&mut self) {
        (self.stop)();
        for thread in self.threads.drain(..) {
            // `join` cannot fail, because panics in `work` have already been caught and turned into errors.
            let _ = thread.join();
        }
    }
}

/// The source of the items, and the items that have been claimed but not merged.
struct State<I, R> {
    source: Option<I>,
    /// The claimed items in order. Each slot has the number of bytes that the item holds, and the result once it is
    /// available.
    slots: VecDeque<(u64, Option<Result<R>>)>,
    /// The index of the item in the first slot.
    front: u64,
    /// The total number of bytes of the items that have been claimed but not merged.
    held: u64,
    stopped: bool,
}

struct Queue<I, R> {
    state: Mutex<State<I, R>>,
    budget: u64,
    may_claim: Condvar,
    has_result: Condvar,
}

impl<I, R, T> Queue<I, R>
where
    I: Iterator<Item = Result<T>>,
{
    fn new(source: I, budget: u64) -> Self {
        Self {
            state: Mutex::new(State {
                source: Some(source),
                slots: VecDeque::new(),
                front: 0,
                held: 0,
                stopped: false,
            }),
            budget,
            may_claim: Condvar::new(),
            has_result: Condvar::new(),
        }
    }

    /// Claims the next item and returns it with its index. Waits while the budget is exhausted. Returns `None` if no
    /// item is left or the phase has stopped. An error of the source is claimed like an item, so that it has a position
    /// in the order.
    fn claim(&self, cost: &impl Fn(&T) -> u64) -> Option<(u64, Result<T>)> {
        let mut state = self.lock();
        while !state.stopped && state.held >= self.budget {
            state = self
                .may_claim
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped {
            return None;
        }
        let claimed = state.source.as_mut().and_then(|source| {
            let next = || {
                let item = source.next();
                Ok(item.map(|item| (item.as_ref().map_or(0, cost), item)))
            };
            caught(next).unwrap_or_else(|error| Some((0, Err(error))))
        });
        let Some((held, item)) = claimed else {
            state.source = None;
            self.has_result.notify_all();
            return None;
        };
        if item.is_err() {
            state.source = None;
        }
        let index = state.front + state.slots.len() as u64;
        state.held += held;
        state.slots.push_back((held, None));
        Some((index, item))
    }

    fn deliver(&self, index: u64, result: Result<R>) {
        let mut state = self.lock();
        let slot = (index - state.front) as usize;
        state.slots[slot].1 = Some(result);
        if slot == 0 {
            self.has_result.notify_all();
        }
    }

    /// Waits for the result of the first item that is not merged. Returns the number of bytes that the item holds, and
    /// the result. Returns `None` if all items are merged.
    fn next_result(&self) -> Option<(u64, Result<R>)> {
        let mut state = self.lock();
        loop {
            match state.slots.front() {
                Some((_, Some(_))) => {
                    let (held, result) = state.slots.pop_front()?;
                    state.front += 1;
                    return result.map(|result| (held, result));
                }
                None if state.source.is_none() => return None,
                _ => {
                    state = self
                        .has_result
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    fn release(&self, held: u64) {
        self.lock().held -= held;
        self.may_claim.notify_all();
    }
}

impl<I, R> Queue<I, R> {
    fn lock(&self) -> MutexGuard<'_, State<I, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.source = None;
        self.may_claim.notify_all();
    }
}
