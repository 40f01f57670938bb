//! Tests the order, errors and budget of the parallel phase, and random schedules of its threads.

mod drawn;

use super::Cancellation;
use super::phase::{
    ItemResults, PhaseLimits, parallel_results_phase, parallel_single_result_phase,
};
use crate::error::Error;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

fn failure(index: u64) -> Error {
    Error::Usage(format!("item {index}"))
}

fn limits(jobs: usize, budget: u64) -> PhaseLimits<'static> {
    static NEVER: LazyLock<Cancellation> = LazyLock::new(Cancellation::default);
    PhaseLimits {
        jobs,
        budget,
        cancellation: &NEVER,
    }
}

/// The scratch value of a worker. The field counts the scratch values that have not been dropped.
struct Scratch<'a>(&'a AtomicI64);

impl<'a> Scratch<'a> {
    fn new(alive: &'a AtomicI64) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(alive)
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn results_come_in_item_order_whatever_the_workers_do() {
    for jobs in [1, 2, 8] {
        let mut seen = Vec::new();
        let slow_evens = |(): &mut (), item: u64| {
            if item.is_multiple_of(2) {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            Ok(item * 2)
        };
        let source = (0..200).map(Ok);
        parallel_single_result_phase(
            limits(jobs, 10),
            source,
            |_| 1,
            || (),
            slow_evens,
            |result| {
                seen.push(result);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(seen, (0..200).map(|item| item * 2).collect::<Vec<_>>());
    }
}

#[test]
fn the_first_error_wins_and_earlier_results_are_merged() {
    let work = |(): &mut (), item: u64| {
        if item >= 40 {
            Err(failure(item))
        } else {
            Ok(item)
        }
    };
    let mut merged = 0;
    let source = (0..100).map(|item| {
        if item == 70 {
            Err(failure(item))
        } else {
            Ok(item)
        }
    });
    let error = parallel_single_result_phase(
        limits(4, 8),
        source,
        |_| 1,
        || (),
        work,
        |_| {
            merged += 1;
            Ok(())
        },
    )
    .unwrap_err();
    assert_eq!((merged, error.to_string().as_str()), (40, "item 40"));
}

#[test]
fn no_more_than_the_budget_is_held_at_a_time() {
    let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = |(): &mut (), item: u64| {
        most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        Ok(item)
    };
    parallel_single_result_phase(
        limits(8, 3),
        (0..500).map(Ok),
        |_| 1,
        || (),
        work,
        |_| {
            held.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        },
    )
    .unwrap();
    assert!(most.load(Ordering::SeqCst) <= 3);
}

#[test]
fn a_panic_in_a_worker_becomes_an_error() {
    let work = |(): &mut (), item: u64| if item == 5 { panic!("oops") } else { Ok(item) };
    let result = parallel_single_result_phase(
        limits(2, 8),
        (0..100).map(Ok),
        |_| 1,
        || (),
        work,
        |_| Ok(()),
    );
    assert!(result.unwrap_err().to_string().contains("oops"));
}

#[test]
fn a_panic_where_results_are_merged_ends_the_phase_and_its_threads() {
    let alive = AtomicI64::new(0);
    let phase = || {
        parallel_single_result_phase(
            limits(4, 8),
            (0..100).map(Ok),
            |_| 1,
            || Scratch::new(&alive),
            |_, item: u64| Ok(item),
            |item| match item {
                7 => std::panic::resume_unwind(Box::new("oops")),
                _ => Ok(()),
            },
        )
    };
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(phase)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"oops"));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_in_the_source_becomes_an_error() {
    let source = (0..100).map(|item| if item == 5 { panic!("oops") } else { Ok(item) });
    let work = |(): &mut (), item: u64| Ok(item);
    let mut merged = 0;
    let count = |_| {
        merged += 1;
        Ok(())
    };
    let result = parallel_single_result_phase(limits(2, 8), source, |_| 1, || (), work, count);
    assert!(result.unwrap_err().to_string().contains("oops"));
    assert_eq!(merged, 5);
}

/// Tests that the threads of a phase have ended when the phase returns. A thread scope waits only until the closures of
/// its threads have returned. The destructors of thread-local values may run later. If the phase does not join its
/// threads, the address sanitizer reports that names and results of threads are still allocated.
#[test]
fn threads_have_ended_when_the_phase_returns() {
    static ENDED: AtomicU64 = AtomicU64::new(0);
    struct LastWords;
    impl Drop for LastWords {
        fn drop(&mut self) {
            std::thread::sleep(std::time::Duration::from_millis(50));
            ENDED.fetch_add(1, Ordering::SeqCst);
        }
    }
    thread_local!(static LAST_WORDS: LastWords = const { LastWords });
    let started = AtomicU64::new(0);
    let init = || {
        started.fetch_add(1, Ordering::SeqCst);
        LAST_WORDS.with(|_| ());
    };
    let work = |(): &mut (), item: u64| Ok(item);
    parallel_single_result_phase(
        limits(3, 8),
        (0..100).map(Ok),
        |_| 1,
        init,
        work,
        |_| Ok(()),
    )
    .unwrap();
    assert_eq!(ENDED.load(Ordering::SeqCst), started.load(Ordering::SeqCst));
}

#[test]
fn a_cancelled_phase_claims_and_merges_nothing_more() {
    let ctx = crate::runtime::Context::default();
    let (mut merged, worked) = (0, AtomicU64::new(0));
    let work = |(): &mut (), item: u64| {
        worked.fetch_add(1, Ordering::SeqCst);
        Ok(item)
    };
    let limits = PhaseLimits {
        jobs: 3,
        ..ctx.limits(8)
    };
    let result = parallel_single_result_phase(
        limits,
        (0..1000).map(Ok),
        |_| 1,
        || (),
        work,
        |_| {
            merged += 1;
            if merged == 10 {
                ctx.cancel();
            }
            Ok(())
        },
    );
    assert!(matches!(result, Err(Error::Cancelled)));
    assert_eq!(merged, 10);
    assert!(worked.load(Ordering::SeqCst) < 100);
}

#[test]
fn results_of_an_item_come_in_order_and_only_a_few_wait() {
    let waiting = AtomicI64::new(0);
    for jobs in [1, 4] {
        let (mut seen, most) = (Vec::new(), AtomicI64::new(0));
        let work = |(): &mut (), item: u64, results: &ItemResults<'_, (u64, u64)>| {
            for number in 0..item % 9 {
                most.fetch_max(waiting.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                results.send((item, number), 0)?;
            }
            Ok(item.is_multiple_of(2).then(|| {
                waiting.fetch_add(1, Ordering::SeqCst);
                (item, 100)
            }))
        };
        let source = (0..300).map(Ok);
        parallel_results_phase(
            limits(jobs, 3),
            source,
            |_| 1,
            || (),
            work,
            |()| (),
            |result| {
                waiting.fetch_sub(1, Ordering::SeqCst);
                seen.push(result);
                Ok(())
            },
        )
        .unwrap();
        let of_item = |item: u64| {
            let sent = (0..item % 9).map(move |number| (item, number));
            sent.chain(item.is_multiple_of(2).then_some((item, 100)))
        };
        assert_eq!(seen, (0..300).flat_map(of_item).collect::<Vec<_>>());
        // Three items are in flight. Each has at most four results that wait, one that is being sent, and one that is
        // being merged.
        assert!(most.load(Ordering::SeqCst) <= 3 * 6);
    }
}

#[test]
fn only_a_few_large_results_of_the_first_item_wait() {
    let (held, most, merged) = (AtomicI64::new(0), AtomicI64::new(0), AtomicU64::new(0));
    let work = |(): &mut (), item: u64, results: &ItemResults<'_, u64>| {
        for _ in 0..6 {
            most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            results.send(item, 20 << 20)?;
        }
        Ok(None)
    };
    let merge = |_| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        held.fetch_sub(1, Ordering::SeqCst);
        merged.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let source = (0..5).map(Ok);
    parallel_results_phase(limits(1, 3), source, |_| 1, || (), work, |()| (), merge).unwrap();
    assert_eq!(merged.load(Ordering::SeqCst), 30);
    // Two results wait, one is being merged, and one is being sent.
    assert!(most.load(Ordering::SeqCst) <= 4, "{most:?}");
}

#[test]
fn a_worker_waits_for_a_merge_and_not_beyond_the_end_of_the_phase() {
    for fails in [false, true] {
        let is_merged = AtomicI64::new(0);
        let work = |(): &mut (), item: u64, results: &ItemResults<'_, u64>| {
            if item > 0 {
                results.send(item, 0)?;
                results.wait_until(&|| is_merged.load(Ordering::SeqCst) > 0)?;
            }
            Ok(Some(item))
        };
        let ended = parallel_results_phase(
            limits(3, 8),
            (0..20).map(Ok),
            |_| 1,
            || (),
            work,
            |()| (),
            |item| {
                if item > 0 && fails {
                    return Err(failure(item));
                }
                is_merged.fetch_add(i64::from(item > 0), Ordering::SeqCst);
                Ok(())
            },
        );
        assert_eq!(ended.is_err(), fails);
    }
}

#[test]
fn large_results_wait_for_results_of_earlier_items() {
    const BYTES: u64 = 10 << 20;
    let waiting = AtomicI64::new(0);
    let (mut seen, most) = (Vec::new(), AtomicI64::new(0));
    let work = |(): &mut (), item: u64, results: &ItemResults<'_, u64>| {
        for _ in 0..5 {
            results.send(item, BYTES)?;
            most.fetch_max(waiting.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        }
        Ok(None)
    };
    parallel_results_phase(
        limits(4, 16),
        (0..100).map(Ok),
        |_| 1,
        || (),
        work,
        |()| (),
        |item| {
            waiting.fetch_sub(1, Ordering::SeqCst);
            seen.push(item);
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(
        seen,
        (0..100).flat_map(|item| [item; 5]).collect::<Vec<_>>()
    );
    // At most four results of 10 MB wait, because four exceed the limit of 32 MB. In addition, four results of the
    // first item may wait, and one may be being merged.
    assert!(most.load(Ordering::SeqCst) <= 4 + 4 + 1);
}

#[test]
fn a_panic_after_an_item_becomes_an_error() {
    let work = |_: &mut (), item: u64, _: &ItemResults<'_, u64>| Ok(Some(item));
    let after = |_: &mut ()| panic!("oops");
    let merge = |_| Ok(());
    let result = parallel_results_phase(
        limits(2, 8),
        (0..9).map(Ok),
        |_| 1,
        || (),
        work,
        after,
        merge,
    );
    assert!(result.unwrap_err().to_string().contains("oops"));
}
