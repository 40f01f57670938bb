//! Runs several tasks at a time. Each task is a whole command.

use super::context::Context;
use super::phase::parallel_single_result_phase;
use crate::error::Result;

/// Calls `run` with each of `tasks`, up to [`Context::jobs`] at a time, as one phase `name`. Calls `take` with the
/// results on the calling thread, in the order of the tasks.
///
/// Each task has a size, in any unit. A task gets a context with a share of the jobs that is proportional to its size,
/// and at least one job. Phases in this context are not reported. The first error in the order of the tasks ends the
/// phase.
///
/// # Memory
///
/// The memory of the tasks that run at the same time. At most [`Context::jobs`] tasks do.
pub(crate) fn run_tasks<T: Send, R: Send>(
    name: &'static str,
    tasks: Vec<(T, u64)>,
    ctx: &Context,
    run: impl Fn(T, &Context) -> Result<R> + Sync,
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let total = tasks.iter().map(|(_, size)| size).sum::<u64>();
    let phase = ctx.phase(name, total);
    let jobs = |size: u64| match total {
        0 => 1,
        _ => (ctx.jobs as u128 * u128::from(size)).div_ceil(u128::from(total)) as usize,
    };
    // Tasks are few, and each limits its own memory, so the budget of the phase is unlimited.
    const COST: u64 = 1;
    parallel_single_result_phase(
        ctx.limits(u64::MAX),
        tasks.into_iter().map(Ok),
        |_| COST,
        || (),
        |(), (task, size)| {
            let result = run(task, &ctx.for_task(jobs(size).max(1)))?;
            Ok((result, size))
        },
        |(result, size)| {
            phase.advance(size);
            take(result)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};

    #[test]
    fn results_come_in_order_and_jobs_are_shared_by_size() {
        let ctx = Context::new(8);
        let mut taken = Vec::new();
        let tasks = vec![("half", 50), ("rest", 49), ("small", 1), ("empty", 0)];
        let run = |name: &'static str, ctx: &Context| {
            let _unreported = ctx.phase("of a task", 0);
            Ok((name, ctx.jobs))
        };
        let take = |result| {
            taken.push(result);
            Ok(())
        };
        run_tasks("tasks", tasks, &ctx, run, take).unwrap();
        assert_eq!(
            taken,
            [("half", 4), ("rest", 4), ("small", 1), ("empty", 1)]
        );
        let phases = ctx.stats.report().phases;
        let names = phases.iter().map(|phase| phase.name);
        assert_eq!(names.collect::<Vec<_>>(), ["tasks"]);
    }

    #[test]
    fn the_first_error_ends_the_tasks() {
        let ctx = Context::new(2);
        let tasks = (0..100).map(|number| (number, 1)).collect();
        let run = |number: u64, _: &Context| match number {
            3.. => Err(Error::Internal(number.to_string())),
            _ => Ok(number),
        };
        let mut taken = Vec::new();
        let take = |number| {
            taken.push(number);
            Ok(())
        };
        let error = run_tasks("tasks", tasks, &ctx, run, take).unwrap_err();
        assert!(error.to_string().contains(": 3 ("), "{error}");
        assert_eq!(taken, [0, 1, 2]);
        ctx.cancel();
        let tasks = vec![((), 0)];
        let error = run_tasks("tasks", tasks, &ctx, |(), _| Ok(()), |()| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
}
