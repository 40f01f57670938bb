//! A parallel phase over parts of input files, with its progress and its memory.

use super::{Context, parallel_classify_phase};
use crate::error::Result;

/// A part of the input that a worker takes at a time: a blob, or several that belong together.
pub(crate) trait WorkItem: Send {
    /// Bytes of the input that the item stands for. Progress is counted in them.
    fn input_bytes(&self) -> u64;

    /// Bytes of memory that the item takes from its claim until its result is merged.
    fn held_bytes(&self) -> u64 {
        self.input_bytes()
    }
}

/// A named phase of a command.
pub(crate) struct Pass<'c> {
    name: &'static str,
    budget: u64,
    memory_factor: u64,
    ctx: &'c Context,
}

impl<'c> Pass<'c> {
    /// A phase that is shown as `name`.
    pub(crate) fn new(name: &'static str, ctx: &'c Context) -> Self {
        Self {
            name,
            budget: ctx.byte_budget(),
            memory_factor: 1,
            ctx,
        }
    }

    /// Sets how many bytes of memory all items in flight may take; [`Context::byte_budget`] without it.
    pub(crate) const fn with_budget(self, budget: u64) -> Self {
        Self { budget, ..self }
    }

    /// Sets how many times an item's [`held_bytes`](WorkItem::held_bytes) its work takes.
    pub(crate) const fn holding(self, memory_factor: u64) -> Self {
        Self {
            memory_factor,
            ..self
        }
    }

    /// Runs `work` over the items on every core, and hands the results to `merge` in the order of the items. `init`
    /// makes a worker's scratch. The first error in the order of the items ends the phase.
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

    /// Runs `work` over items that are found on the way, as [`run`](Self::run) does. `total_bytes` is the sum of their
    /// input bytes, as far as it is known.
    pub(crate) fn run_stream<T: WorkItem, S, R: Send>(
        self,
        total_bytes: u64,
        items: impl Iterator<Item = Result<T>> + Send,
        init: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, T) -> Result<R> + Sync,
        mut merge: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let phase = self.ctx.phase(self.name, total_bytes);
        parallel_classify_phase(
            self.ctx.jobs,
            self.budget,
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
