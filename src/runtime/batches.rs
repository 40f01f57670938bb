//! Batches of results that another thread produces in advance, while the caller takes them one by one.

use super::Context;
use crate::error::{Error, Result};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// An iterator over batches that another thread produces in advance. Dropping the iterator cancels the work. If the
/// work fails, the error is the last item of the iterator.
#[derive(Debug)]
pub struct Batches<B> {
    /// `None` after the end.
    batches: Option<Receiver<Result<B>>>,
    ctx: Context,
}

impl<B: Send + 'static> Batches<B> {
    /// Calls `make` in a new thread, with a context and a function that takes a batch. The function blocks while
    /// `ahead` batches wait for the caller, and fails once the iterator has been dropped. The context is cancelled when
    /// the iterator is dropped.
    pub(crate) fn start(
        ahead: usize,
        ctx: &Context,
        make: impl FnOnce(&Context, &mut dyn FnMut(B) -> Result<()>) -> Result<()> + Send + 'static,
    ) -> Self {
        let (send, batches) = bounded(ahead);
        let ctx = ctx.clone().with_own_cancellation();
        let own = ctx.clone();
        std::thread::spawn(move || {
            let mut take = |batch| send.send(Ok(batch)).map_err(|_| Error::Cancelled);
            let made = catch_unwind(AssertUnwindSafe(|| make(&own, &mut take)));
            let panicked = |_| Err(Error::internal("a thread panicked"));
            if let Err(error) = made.unwrap_or_else(panicked) {
                let _ = send.send(Err(error));
            }
        });
        Self {
            batches: Some(batches),
            ctx,
        }
    }

    /// Waits for the next batch, but no longer than `time`. Returns `None` if no batch arrives in that time. Otherwise,
    /// returns the result of [`next`](Iterator::next).
    pub fn next_within(&mut self, time: Duration) -> Option<Option<Result<B>>> {
        let Some(batches) = &self.batches else {
            return Some(None);
        };
        let next = match batches.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => None,
            Ok(next) => Some(next),
        };
        if !matches!(next, Some(Ok(_))) {
            self.batches = None;
        }
        Some(next)
    }
}

impl<B: Send + 'static> Iterator for Batches<B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Result<B>> {
        loop {
            if let Some(next) = self.next_within(Duration::from_secs(3600)) {
                return next;
            }
        }
    }
}

impl<B> Drop for Batches<B> {
    fn drop(&mut self) {
        self.ctx.cancel();
    }
}
