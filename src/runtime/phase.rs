//! The ordered parallel phase. Workers claim items in order, and results are merged in order. An item may have many
//! results.

use super::threads::{Condvar, Mutex, MutexGuard, Scope, ScopedJoinHandle, scope, spawn_in};
use crate::error::{Error, Result};
use crate::runtime::Cancellation;
use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The limits of a phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhaseLimits<'c> {
    /// The number of threads.
    pub jobs: usize,
    /// The memory budget in bytes. While the claimed items hold at least this many bytes, workers claim no more items.
    /// 0 counts as 1.
    pub budget: u64,
    /// The flag that ends the phase. It is checked before each item, and before each result is merged.
    pub cancellation: &'c Cancellation,
}

/// The maximum number of results of an item that wait to be merged. The worker waits before it sends another one.
const MAX_WAITING: usize = 4;
/// The number of ended items for which the merging thread is woken. Waking it takes some microseconds. Fewer items wake
/// it only if the work on an item takes [`SHORT_WORK`] or longer, if half of the budget is in use, or if no items are
/// left to claim.
const WAKING_ITEMS: usize = 8;
/// If the work on an item takes less time than this, the merging thread need not be woken at once.
const SHORT_WORK: Duration = Duration::from_micros(200);
/// The limit for the total size in bytes of the results that wait to be merged. While they have this size or more,
/// workers wait before they send another result. There is one exception: the item that is merged next may always have
/// one waiting result.
const MAX_WAITING_BYTES: u64 = 32 << 20;

/// Runs `work`, which returns one result, over the items of `source`. Otherwise does the same as
/// [`parallel_results_phase`].
pub(crate) fn parallel_single_result_phase<T: Send, S, R: Send>(
    limits: PhaseLimits<'_>,
    source: impl Iterator<Item = Result<T>> + Send,
    cost: impl Fn(&T) -> u64 + Sync,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> Result<R> + Sync,
    merge: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let work = |scratch: &mut S, item, _: &ItemResults<'_, R>| work(scratch, item).map(Some);
    parallel_results_phase(limits, source, cost, init, work, |_| (), merge)
}

/// Runs `work` over the items of `source`. Calls `merge` with each result on the calling thread, in the order of the
/// items. `work` sends the results of an item in their order. It may return the last one instead of sending it.
///
/// - `cost` must return the number of bytes that an item holds from its claim until its last result is merged. While
///   the claimed items hold the budget or more, no more items are claimed. So the memory does not grow with the number
///   of items. A worker also waits before it sends a result, as [`ItemResults::send`] says.
/// - `init` creates the scratch value of a worker (buffers, readers, compressors) before the worker's first item.
/// - After each item, `after` is called with the scratch value. The last result of the item may be merged at the same
///   time.
/// - The first error in item order, from `source`, `work` or `merge`, ends the phase and is returned. The results of
///   all items before the error are merged. A panic in `source`, `cost`, `init`, `work` or `after` is an error, too. A
///   panic in `merge` is resumed when the threads have ended.
/// - A phase that is cancelled fails with [`Error::Cancelled`]. Results that were sent before the cancellation are
///   possibly not merged.
pub(crate) fn parallel_results_phase<T: Send, S, R: Send>(
    limits: PhaseLimits<'_>,
    source: impl Iterator<Item = Result<T>> + Send,
    cost: impl Fn(&T) -> u64 + Sync,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T, &ItemResults<'_, R>) -> Result<Option<R>> + Sync,
    after: impl Fn(&mut S) + Sync,
    mut merge: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    // Only this function and its closures know the types of items and results. All other functions are compiled once,
    // and not for every phase.
    let source = Mutex::new(source);
    let next = Mutex::new(None);
    let queue = Queue::new(limits);
    let worker = || {
        let (claimed, mut scratch) = (Cell::new(None), None);
        let claim = || {
            let item = lock(&source).next()?;
            Some(item.map(|item| {
                let held = cost(&item);
                claimed.set(Some(item));
                held
            }))
        };
        let mut run = |index| {
            let Some(item) = claimed.take() else { return };
            let results = ItemResults {
                send: &|result, bytes| queue.receive(index, pending_result(result, &next), bytes),
                wait_until: &|is_done| queue.wait_until(is_done),
            };
            let scratch = scratch.get_or_insert_with(&init);
            let last = work(scratch, item, &results);
            queue.end_item(
                index,
                last.map(|last| last.map(|last| pending_result(last, &next))),
            );
            after(scratch);
        };
        queue.run_items(&claim, &mut run);
    };
    queue.run(&worker, &mut || {
        let result = lock(&next).take();
        result.map_or(Ok(()), &mut merge)
    })
}

/// A result on its way from its worker to the calling thread, in the form of a function. The calling thread calls the
/// function to get the result.
type PendingResult<'q> = Box<dyn FnOnce() + Send + 'q>;

/// Returns a function that puts `result` into `next`.
fn pending_result<'q, R: Send + 'q>(result: R, next: &'q Mutex<Option<R>>) -> PendingResult<'q> {
    Box::new(move || *lock(next) = Some(result))
}

/// The sender for the results of one item.
pub(crate) struct ItemResults<'q, R> {
    send: &'q (dyn Fn(R, u64) -> Result<()> + Sync),
    wait_until: &'q (dyn Fn(&dyn Fn() -> bool) -> Result<()> + Sync),
}

impl<R> ItemResults<'_, R> {
    /// Sends a result that takes `bytes` bytes of memory. Waits while [`MAX_WAITING`] results of the item wait to be
    /// merged. Also waits while the waiting results of all items have [`MAX_WAITING_BYTES`] or more. The second limit
    /// does not apply if the item is merged next and none of its results waits. Fails if the phase has ended.
    pub(crate) fn send(&self, result: R, bytes: u64) -> Result<()> {
        (self.send)(result, bytes)
    }

    /// Waits until `is_done` returns true. `is_done` is called again after each result that is merged. Fails if the
    /// phase has ended.
    pub(crate) fn wait_until(&self, is_done: &dyn Fn() -> bool) -> Result<()> {
        (self.wait_until)(is_done)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `run` and turns a panic into an error.
fn catch_panic<R>(run: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(internal_error(&*panic)))
}

fn internal_error(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::Internal(text.unwrap_or_else(|| "a worker panicked".into()))
}

/// The threads of a phase. Dropping this value stops the queue and joins the threads, however the phase ends. A scope
/// alone does not wait for the end of its threads: it returns as soon as their closures have returned.
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

/// The items that have been claimed but not merged.
#[derive(Default)]
struct State<'q> {
    /// The claimed items in order.
    slots: VecDeque<ClaimedItem<'q>>,
    /// The index of the item in the first slot.
    front: u64,
    /// The total number of bytes of the items that have been claimed but not merged.
    held: u64,
    /// The number of items that ended and whose last result is not merged.
    ended: usize,
    /// The total size in bytes of the results that were sent and not merged.
    waiting: u64,
    /// Whether no more items are claimed.
    has_ended: bool,
    stopped: bool,
    /// The first error that occurred in a worker after the end of its item.
    failure: Option<Error>,
    /// Whether the thread that merges waits for a result.
    merger_waits: bool,
    /// The number of workers that wait until fewer bytes are held.
    waiting_claims: usize,
    /// The number of workers that wait until results are merged.
    waiting_sends: usize,
}

/// An item that was claimed and whose results are not all merged.
struct ClaimedItem<'q> {
    /// The number of bytes that the item holds.
    held: u64,
    claimed_at: Instant,
    /// The results that were sent and not merged yet, each with its size in bytes.
    sent: VecDeque<(PendingResult<'q>, u64)>,
    /// The last result or the error, once the worker is done with the item. The inner `None` means that all results
    /// were sent.
    end: Option<Result<Option<PendingResult<'q>>>>,
}

struct Queue<'q> {
    state: Mutex<State<'q>>,
    limits: PhaseLimits<'q>,
    /// Notified after results were merged, and at the end of the phase. The workers wait for this.
    has_merged: Condvar,
    /// The thread that merges waits for this. Notified when the first item has a result, and when the first item has
    /// ended and waking the thread is worth it ([`WAKING_ITEMS`]). Also notified when a worker waits, when no items are
    /// left to claim, and after an error.
    has_result: Condvar,
}

impl<'q> Queue<'q> {
    fn new(limits: PhaseLimits<'q>) -> Self {
        Self {
            state: Mutex::new(State::default()),
            limits,
            has_merged: Condvar::new(),
            has_result: Condvar::new(),
        }
    }

    /// Calls `worker` on the threads of the phase. On the calling thread, calls each pending result in the order of the
    /// items, and calls `merge` after each.
    fn run(&self, worker: &(dyn Fn() + Sync), merge: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let stop = || self.stop();
        scope(|scope| {
            let workers = Workers::start(scope, self.limits.jobs, worker, &stop)?;
            while let Some((held, result)) = self.next_result()? {
                self.limits.cancellation.check()?;
                result();
                merge()?;
                self.release(held);
            }
            drop(workers);
            lock(&self.state).failure.take().map_or(Ok(()), Err)
        })
    }

    /// Claims items one after another, and calls `run` with the index of each. Returns when no item is left or the
    /// phase has stopped. `claim` returns the number of bytes that the next item holds. `run` must end the item unless
    /// it panics.
    fn run_items(&self, claim: &dyn Fn() -> Option<Result<u64>>, run: &mut dyn FnMut(u64)) {
        while let Some((index, claimed)) = self.claim(claim) {
            let done = claimed.and_then(|()| {
                catch_panic(|| {
                    run(index);
                    Ok(())
                })
            });
            if let Err(error) = done {
                self.fail_item(index, error);
            }
        }
    }

    /// Claims the next item and returns its index. Waits while the budget is exhausted. Returns `None` if no item is
    /// left or the phase has stopped. An error of the source is claimed like an item, so that it has a position in the
    /// order.
    fn claim(&self, next: &dyn Fn() -> Option<Result<u64>>) -> Option<(u64, Result<()>)> {
        let mut state = lock(&self.state);
        // A budget of 0 would make every claim wait forever, so it counts as 1.
        while !state.stopped && state.held >= self.limits.budget.max(1) {
            state.waiting_claims += 1;
            state = self.wait_for_merge(state);
            state.waiting_claims -= 1;
        }
        if state.has_ended {
            return None;
        }
        let Some(item) = catch_panic(|| Ok(next())).unwrap_or_else(|error| Some(Err(error))) else {
            state.has_ended = true;
            self.has_result.notify_all();
            return None;
        };
        let item = item.and_then(|held| self.limits.cancellation.check().map(|()| held));
        state.has_ended = item.is_err();
        let index = state.front + state.slots.len() as u64;
        let held = *item.as_ref().unwrap_or(&0);
        state.held += held;
        state.slots.push_back(ClaimedItem {
            held,
            claimed_at: Instant::now(),
            sent: VecDeque::new(),
            end: None,
        });
        Some((index, item.map(drop)))
    }

    /// Adds a result of an item. Waits as [`ItemResults::send`] says.
    fn receive(&self, index: u64, result: PendingResult<'q>, bytes: u64) -> Result<()> {
        let mut state = lock(&self.state);
        while !state.stopped {
            let slot = (index - state.front) as usize;
            // The first item waits only for its own results, so that it always ends.
            let has_room = state.waiting < MAX_WAITING_BYTES;
            let sent = &mut state.slots[slot].sent;
            let has_room = has_room || slot == 0 && sent.is_empty();
            if has_room && sent.len() < MAX_WAITING {
                sent.push_back((result, bytes));
                state.waiting += bytes;
                if slot == 0 {
                    self.wake_merger(&state);
                }
                return Ok(());
            }
            state = self.wait_to_send(state);
        }
        Err(Error::Cancelled)
    }

    /// Waits until `is_done` returns true. Fails if the phase was stopped.
    fn wait_until(&self, is_done: &dyn Fn() -> bool) -> Result<()> {
        let mut state = lock(&self.state);
        while !is_done() {
            if state.stopped {
                return Err(Error::Cancelled);
            }
            state = self.wait_to_send(state);
        }
        Ok(())
    }

    /// Records that the worker is done with an item.
    fn end_item(&self, index: u64, end: Result<Option<PendingResult<'q>>>) {
        let mut state = lock(&self.state);
        let slot = (index - state.front) as usize;
        let item = &mut state.slots[slot];
        let is_short = end.is_ok() && item.claimed_at.elapsed() < SHORT_WORK;
        item.end = Some(end);
        state.ended += 1;
        let is_first_ended = state.slots.front().is_some_and(|first| first.end.is_some());
        let is_worth_waking = !is_short
            || state.ended >= WAKING_ITEMS
            || state.held >= self.limits.budget / 2
            || state.has_ended;
        if is_first_ended && is_worth_waking {
            self.wake_merger(&state);
        }
    }

    /// Ends an item with an error. If the item has already ended, the error ends the phase at once.
    fn fail_item(&self, index: u64, error: Error) {
        let mut state = lock(&self.state);
        let slot = index.checked_sub(state.front);
        match slot.and_then(|slot| state.slots.get_mut(slot as usize)) {
            Some(item) if item.end.is_none() => {
                item.end = Some(Err(error));
                state.ended += 1;
            }
            _ => {
                state.failure.get_or_insert(error);
            }
        }
        self.has_result.notify_all();
    }

    /// Waits for the next result of the first item that is not merged. Returns the number of bytes to release when the
    /// result is merged, and the result. Returns `None` if all items are merged.
    fn next_result(&self) -> Result<Option<(u64, PendingResult<'q>)>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(error) = state.failure.take() {
                return Err(error);
            }
            let has_ended = state.has_ended;
            let Some(first) = state.slots.front_mut() else {
                if has_ended {
                    return Ok(None);
                }
                state = self.wait_for_result(state);
                continue;
            };
            if let Some((result, bytes)) = first.sent.pop_front() {
                state.waiting -= bytes;
                return Ok(Some((0, result)));
            }
            let Some(end) = first.end.take() else {
                state = self.wait_for_result(state);
                continue;
            };
            let held = first.held;
            state.slots.pop_front();
            state.front += 1;
            state.ended -= 1;
            if let Some(result) = end? {
                return Ok(Some((held, result)));
            }
            state.held -= held;
            self.wake_workers(&state);
        }
    }

    /// Subtracts `held` from the memory in use, and wakes waiting workers.
    fn release(&self, held: u64) {
        let mut state = lock(&self.state);
        state.held -= held;
        self.wake_workers(&state);
    }

    /// Ends the phase: no worker takes a further item.
    fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        state.has_ended = true;
        self.has_merged.notify_all();
    }

    /// Wakes the thread that merges, if it waits.
    fn wake_merger(&self, state: &State<'_>) {
        if state.merger_waits {
            self.has_result.notify_all();
        }
    }

    /// Wakes the workers that wait, after a result was merged. If all of them wait to claim items, they are woken only
    /// when a quarter of the budget is free, and not for each item.
    fn wake_workers(&self, state: &State<'_>) {
        let budget = self.limits.budget.max(1);
        let has_room = state.held <= budget - budget / 4;
        if state.waiting_sends > 0 || state.waiting_claims > 0 && has_room {
            self.has_merged.notify_all();
        }
    }

    fn wait_for_result<'s>(
        &self,
        mut state: MutexGuard<'s, State<'q>>,
    ) -> MutexGuard<'s, State<'q>> {
        state.merger_waits = true;
        let waited = self.has_result.wait(state);
        state = waited.unwrap_or_else(PoisonError::into_inner);
        state.merger_waits = false;
        state
    }

    fn wait_to_send<'s>(&self, mut state: MutexGuard<'s, State<'q>>) -> MutexGuard<'s, State<'q>> {
        state.waiting_sends += 1;
        state = self.wait_for_merge(state);
        state.waiting_sends -= 1;
        state
    }

    fn wait_for_merge<'s>(&self, state: MutexGuard<'s, State<'q>>) -> MutexGuard<'s, State<'q>> {
        self.wake_merger(&state);
        let waited = self.has_merged.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}
