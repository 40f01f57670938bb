//! The parallel phase: order, errors, budget, and every order of threads that can be drawn.

mod drawn;

use super::phase::parallel_classify_phase;
use crate::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

fn failure(index: u64) -> Error {
    Error::Usage(format!("item {index}"))
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
        parallel_classify_phase(
            jobs,
            10,
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
fn the_first_error_in_item_order_wins_and_what_came_before_is_merged() {
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
    let error = parallel_classify_phase(
        4,
        8,
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
    parallel_classify_phase(
        8,
        3,
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
    let result = parallel_classify_phase(2, 8, (0..100).map(Ok), |_| 1, || (), work, |_| Ok(()));
    assert!(result.unwrap_err().to_string().contains("oops"));
}
