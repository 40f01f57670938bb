//! A parallel phase over parts of input files, with progress and a memory limit.

use super::phase::{ItemResults, parallel_results_phase, parallel_single_result_phase};
use super::{Context, Phase};
use crate::error::Result;

/// An item of work for one worker: a part of the input, such as a blob or several blobs that belong together.
pub(crate) trait WorkItem: Send {
    /// Whether progress is counted in rows. In this case [`input_bytes`](Self::input_bytes) returns a number of rows.
    const COUNTS_ROWS: bool = false;

    /// Returns the number of input bytes of the item. Progress is measured in these bytes.
    fn input_bytes(&self) -> u64;

    /// Returns the number of bytes of memory that the item occupies from its claim until its result is merged.
    fn held_bytes(&self) -> u64 {
        self.input_bytes()
    }
}

/// A named parallel phase of a command.
pub(crate) struct Pass<'c> {
    name: &'static str,
    budget: u64,
    /// The factor by which the bytes of an item are multiplied; `None` if each item counts as 1.
    memory_factor: Option<u64>,
    ctx: &'c Context,
}

/// The number of items per thread that may be in flight in a pass with an item limit. With more than one, a thread can
/// process further items while the results of its earlier items wait to be merged.
const ITEMS_PER_JOB: u64 = 4;

/// The sender for the results of one item of a pass.
pub(crate) struct PassResults<'r, R>(&'r ItemResults<'r, PassMessage<R>>);

/// A message of a worker: a result, or the number of input bytes of an item whose results were all sent.
enum PassMessage<R> {
    Result(R),
    End(u64),
}

impl<R> PassResults<'_, R> {
    /// Sends a result. Waits while several earlier results of the item are not merged yet. Fails if the pass has ended.
    pub(crate) fn send(&self, result: R) -> Result<()> {
        self.send_sized(result, 0)
    }

    /// Sends a result that takes `bytes` bytes of memory. Also waits while the results that are not merged take too
    /// many bytes.
    pub(crate) fn send_sized(&self, result: R, bytes: usize) -> Result<()> {
        self.0.send(PassMessage::Result(result), bytes as u64)
    }

    /// Waits until `is_done` returns true. `is_done` is called again after each result that is merged. Fails if the
    /// pass has ended.
    pub(crate) fn wait_until(&self, is_done: &dyn Fn() -> bool) -> Result<()> {
        self.0.wait_until(is_done)
    }
}

impl<'c> Pass<'c> {
    /// Creates a phase, which progress and statistics show as `name`. Its budget is [`Context::byte_budget`].
    pub(crate) fn new(name: &'static str, ctx: &'c Context) -> Self {
        Self {
            name,
            budget: ctx.byte_budget(),
            memory_factor: Some(1),
            ctx,
        }
    }

    /// Sets the maximum total memory of all items in flight, in bytes.
    pub(crate) const fn with_budget(self, budget: u64) -> Self {
        Self { budget, ..self }
    }

    /// Sets the factor by which the [`held_bytes`](WorkItem::held_bytes) of an item are multiplied before they count
    /// against the budget. The default is 1. A larger factor accounts for the memory that the work on the item uses.
    pub(crate) const fn with_memory_factor(self, memory_factor: u64) -> Self {
        Self {
            memory_factor: Some(memory_factor),
            ..self
        }
    }

    /// Limits the number of items in flight, and not their memory. This is for items whose results take more memory
    /// than the items themselves. At most a few results of each item wait to be merged, so the number of items bounds
    /// the memory.
    pub(crate) const fn with_item_limit(self) -> Self {
        Self {
            budget: ITEMS_PER_JOB * self.ctx.jobs as u64,
            memory_factor: None,
            ..self
        }
    }

    /// Returns the part of the budget that an item takes: a number of bytes if the pass has a memory factor, else 1.
    fn held_bytes(&self, item: &impl WorkItem) -> u64 {
        self.memory_factor
            .map_or(1, |factor| item.held_bytes() * factor)
    }

    /// Starts the phase that progress and statistics show.
    fn phase<T: WorkItem>(&self, total_bytes: u64) -> Phase {
        let phase = self.ctx.phase(self.name, total_bytes);
        if T::COUNTS_ROWS {
            phase.report_row_progress();
        }
        phase
    }

    /// Runs `work` over the items on [`Context::jobs`] threads. Calls `merge` with each result, in the order of the
    /// items. `init` creates the scratch value of a worker. The first error in item order ends the phase and is
    /// returned. A pass that is cancelled fails.
    pub(crate) fn run<T: WorkItem, S, R: Send>(
        self,
        items: Vec<T>,
        init: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, T) -> Result<R> + Sync,
        merge: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let bytes = items.iter().map(WorkItem::input_bytes).sum();
        self.run_stream(bytes, items.into_iter().map(Ok), init, work, merge)
    }

    /// Runs `work` over the items of an iterator, as [`run`](Self::run) does. `total_bytes` is the estimated sum of the
    /// items' [`input_bytes`](WorkItem::input_bytes), which is the total for progress; 0 if unknown.
    pub(crate) fn run_stream<T: WorkItem, S, R: Send>(
        self,
        total_bytes: u64,
        items: impl Iterator<Item = Result<T>> + Send,
        init: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, T) -> Result<R> + Sync,
        mut merge: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let phase = self.phase::<T>(total_bytes);
        parallel_single_result_phase(
            self.ctx.limits(self.budget),
            items,
            |item| self.held_bytes(item),
            init,
            |scratch, item| {
                let bytes = item.input_bytes();
                Ok((bytes, work(scratch, item)?))
            },
            |(bytes, result)| {
                phase.advance(bytes);
                merge(result)
            },
        )
    }

    /// Runs `work` over the items of an iterator, as [`run_stream`](Self::run_stream) does. `work` sends any number of
    /// results. After each item, `after` is called with the scratch value, while results of the item may still wait to
    /// be merged.
    pub(crate) fn run_results<T: WorkItem, S, R: Send>(
        self,
        total_bytes: u64,
        items: impl Iterator<Item = Result<T>> + Send,
        init: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, T, &PassResults<'_, R>) -> Result<()> + Sync,
        after: impl Fn(&mut S) + Sync,
        mut merge: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let phase = self.phase::<T>(total_bytes);
        parallel_results_phase(
            self.ctx.limits(self.budget),
            items,
            |item| self.held_bytes(item),
            init,
            |scratch, item, results| {
                let bytes = item.input_bytes();
                work(scratch, item, &PassResults(results))?;
                Ok(Some(PassMessage::End(bytes)))
            },
            after,
            |message| match message {
                PassMessage::Result(result) => merge(result),
                PassMessage::End(bytes) => {
                    phase.advance(bytes);
                    Ok(())
                }
            },
        )
    }
}
