//! Sorts in memory on several threads.

use super::Context;
use rayon::slice::ParallelSliceMut;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cmp::Ordering;

/// The minimum number of items to sort on several threads. For fewer items, starting threads costs more time than it
/// saves.
const MIN_PARALLEL: usize = 1 << 16;

/// Sorts items on [`Context::jobs`] threads. The sort is stable, so the result does not depend on the number of
/// threads. Allocates at most as many additional bytes as the items occupy.
pub(crate) fn sort_by<T: Send>(
    items: &mut [T],
    ctx: &Context,
    compare: impl Fn(&T, &T) -> Ordering + Send + Sync,
) {
    match build_sort_pool(items.len(), ctx) {
        Some(pool) => pool.install(|| items.par_sort_by(&compare)),
        None => items.sort_by(compare),
    }
}

/// Sorts items as [`sort_by`] does, without additional memory. Items that compare as equal must be equal.
pub(crate) fn sort_unstable_by<T: Send>(
    items: &mut [T],
    ctx: &Context,
    compare: impl Fn(&T, &T) -> Ordering + Send + Sync,
) {
    match build_sort_pool(items.len(), ctx) {
        Some(pool) => pool.install(|| items.par_sort_unstable_by(&compare)),
        None => items.sort_unstable_by(compare),
    }
}

/// Creates the threads that sort items. Returns `None` if there are few items, or if only one job is allowed. Also
/// returns `None` if the system refuses to start threads. In all these cases, the calling thread sorts the items.
fn build_sort_pool(items: usize, ctx: &Context) -> Option<ThreadPool> {
    let threads = ThreadPoolBuilder::new().num_threads(ctx.jobs);
    let is_parallel = ctx.jobs > 1 && items >= MIN_PARALLEL;
    is_parallel.then(|| threads.build().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_threads_gives_the_same_stable_order() {
        let items = || (0u32..200_000).map(|at| (at.wrapping_mul(2_654_435_761) >> 22, at));
        let mut expected: Vec<_> = items().collect();
        expected.sort_by_key(|item| item.0);
        for jobs in [1, 2, 5] {
            let mut sorted: Vec<_> = items().collect();
            sort_by(&mut sorted, &Context::new(jobs), |a, b| a.0.cmp(&b.0));
            assert!(sorted == expected, "{jobs}");
        }
    }
}
