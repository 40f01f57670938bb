//! A parallel phase over parts of input files, with progress and a memory limit.

use super::{Context, parallel_classify_phase};
use crate::error::Result;

/// A part of the input that one worker processes at a time, such as a blob or several blobs that belong together.
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
    memory_factor: u64,
    ctx: &'c Context,
}

impl<'c> Pass<'c> {
    /// Creates a phase, which progress and statistics show as `name`. Its budget is [`Context::byte_budget`].
    pub(crate) fn new(name: &'static str, ctx: &'c Context) -> Self {
        Self {
            name,
            budget: ctx.byte_budget(),
            memory_factor: 1,
            ctx,
        }
    }

    /// Sets the maximum total memory of all items in flight, in bytes.
    pub(crate) const fn with_budget(self, budget: u64) -> Self {
        Self { budget, ..self }
    }

    /// Sets the factor by which the [`held_bytes`](WorkItem::held_bytes) of an item are multiplied before they count
    /// against the budget. The default is 1. A larger factor accounts for the memory that the work on the item uses.
    pub(crate) const fn holding(self, memory_factor: u64) -> Self {
        Self {
            memory_factor,
            ..self
        }
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
        let phase = self.ctx.phase(self.name, total_bytes);
        if T::COUNTS_ROWS {
            self.ctx.observer.counts_rows();
        }
        parallel_classify_phase(
            self.ctx.limits(self.budget),
            items,
            |item| item.held_bytes() * self.memory_factor,
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
}
