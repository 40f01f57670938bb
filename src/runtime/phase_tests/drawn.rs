//! Tests the parallel phase with threads that run one at a time, in a random order that `shuttle` can replay.

mod threads {
    pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use shuttle::thread::{Scope, ScopedJoinHandle, scope};
    use std::io;

    pub(super) fn spawn_in<'scope>(
        scope: &'scope Scope<'scope, '_>,
        run: impl FnOnce() + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, ()>> {
        Ok(scope.spawn(run))
    }
}

#[allow(clippy::duplicate_mod, reason = "the same phase over other threads")]
#[allow(
    dead_code,
    reason = "only the general function is tested with these threads"
)]
#[path = "../phase.rs"]
mod phase;

use super::{Scratch, failure};
use crate::error::{Error, Result};
use crate::for_tests::rounds::is_long_run;
use crate::runtime::Cancellation;
use phase::{ItemResults, PhaseLimits, parallel_results_phase};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::yield_now;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The part of a phase that fails.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wrong {
    Source,
    SourcePanic,
    Work,
    WorkPanic,
    Merge,
}

/// Panics without calling the panic hook, which would print a message.
fn panic_at(item: u64) -> ! {
    std::panic::resume_unwind(Box::new(format!("item {item}")))
}

/// Runs a phase over `items` items and checks the result. `wrong` lists the failures to cause: for each, the item at
/// which it happens, and its kind.
fn run_and_check_phase(items: u64, jobs: usize, budget: u64, wrong: &[(u64, Wrong)]) {
    let goes = |item: u64, what: Wrong| wrong.contains(&(item, what));
    let (alive, held, most) = (AtomicI64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let mut merged = Vec::new();
    let source = (0..items).map(|item| {
        if goes(item, Wrong::SourcePanic) {
            panic_at(item);
        }
        if goes(item, Wrong::Source) {
            Err(failure(item))
        } else {
            Ok(item)
        }
    });
    let result: Result<()> = parallel_results_phase(
        PhaseLimits {
            jobs,
            budget,
            cancellation: &Cancellation::default(),
        },
        source,
        |_| 1,
        || Scratch::new(&alive),
        |_, item, results: &ItemResults<'_, (u64, bool)>| {
            most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..thread_rng().gen_range(0..3) {
                yield_now();
            }
            for _ in 0..thread_rng().gen_range(0..7) {
                results.send((item, false), 20 << 20)?;
            }
            if goes(item, Wrong::WorkPanic) {
                panic_at(item);
            }
            if goes(item, Wrong::Work) {
                Err(failure(item))
            } else {
                Ok(Some((item, true)))
            }
        },
        |_| yield_now(),
        |(item, is_last)| {
            if !is_last {
                assert_eq!(item, merged.len() as u64, "a result of another item");
                return Ok(());
            }
            held.fetch_sub(1, Ordering::SeqCst);
            for _ in 0..thread_rng().gen_range(0..4) {
                yield_now();
            }
            if goes(item, Wrong::Merge) {
                return Err(failure(item));
            }
            merged.push(item);
            Ok(())
        },
    );
    // The phase must return the first error in item order, so failures of later items have no effect.
    let first = wrong
        .iter()
        .map(|(item, _)| *item)
        .filter(|item| *item < items)
        .min();
    match (first, &result) {
        (None, Ok(())) => {}
        (Some(item), Err(Error::Usage(message))) => assert_eq!(*message, format!("item {item}")),
        (Some(item), Err(Error::Internal(message))) => {
            assert_eq!(*message, format!("item {item}"));
        }
        _ => panic!("{wrong:?}: {result:?}"),
    }
    assert!(
        merged.iter().copied().eq(0..first.unwrap_or(items)),
        "{wrong:?}: {merged:?}"
    );
    assert!(
        most.load(Ordering::SeqCst) <= budget.max(1),
        "more than the budget is held"
    );
    assert_eq!(alive.load(Ordering::SeqCst), 0, "a worker is still there");
}

#[test]
fn results_come_in_order_and_the_first_error_wins_whatever_the_order_of_threads() {
    let draw = || {
        let mut dice = thread_rng();
        let items = dice.gen_range(0..14);
        let mut wrong = Vec::new();
        for _ in 0..dice.gen_range(0..4) {
            let kinds = [
                Wrong::Source,
                Wrong::SourcePanic,
                Wrong::Work,
                Wrong::WorkPanic,
                Wrong::Merge,
            ];
            wrong.push((dice.gen_range(0..14), kinds[dice.gen_range(0..kinds.len())]));
        }
        let (jobs, budget) = (dice.gen_range(1..5), dice.gen_range(1..6));
        run_and_check_phase(items, jobs, budget, &wrong);
    };
    let rounds = if is_long_run() { 200_000 } else { 3_000 };
    shuttle::check_random_with_seed(draw, 1, rounds);
    shuttle::check_pct(draw, rounds / 3, 3);
}
