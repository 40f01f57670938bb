//! Actions for callers that make batches of them, such as tables in memory.

use super::action::{Action, Encoder, LeftOut, SendPart};
use super::actions::for_each;
use super::feed::Rows;
use super::filter::Filter;
use super::find::Findings;
use super::{Selection, find, with_changes};
use crate::error::Result;
use crate::formats::KeptVersions;
use crate::formats::features::ActionView;
use crate::runtime::{Batches, Context};
use std::path::PathBuf;

/// Makes batches of actions. Each thread has its own maker.
pub trait ActionMaker: Send {
    /// A batch of actions.
    type Batch: Send + 'static;

    /// Adds an action to the current batch.
    fn add(&mut self, action: &ActionView<'_>);

    /// Ends the current batch and returns it. Returns `None` if it has no actions.
    fn take(&mut self) -> Option<Self::Batch>;

    /// Whether the current batch should end.
    fn is_full(&self) -> bool;
}

/// Makes batches of what change files do to a file of current data, in the order nodes, ways and relations, each by id.
/// `base` and `changes` are as in [`Options`](super::Options).
///
/// Threads make batches ahead: up to two for each thread, and those of the actions in work. The threads end when the
/// iterator is dropped. The memory is that of [`run`](super::run), and that of the batches. Temporary files are in the
/// directory for temporary files of the system. Errors are those of [`run`](super::run), and items of the iterator.
pub fn batches<M: ActionMaker>(
    base: impl Into<PathBuf>,
    changes: Vec<PathBuf>,
    selection: Selection,
    maker: impl Fn() -> M + Send + Sync + 'static,
    ctx: &Context,
) -> Batches<M::Batch> {
    let path = base.into();
    Batches::start(2 * ctx.jobs, ctx, move |ctx, take| {
        let (scratch, newest) = (std::env::temp_dir(), KeptVersions::Newest);
        with_changes((&path, &changes), newest, &scratch, ctx, |base, changes| {
            let findings = find(base, changes, &selection, &scratch)?;
            let encoder = || Maker {
                rows: Rows::new(selection.whole_objects),
                maker: maker(),
            };
            let filter = Filter::of_features(&selection);
            for_each(base, &findings, &filter, encoder, |batches| {
                batches.into_iter().try_for_each(&mut *take)
            })?;
            Ok(())
        })
    })
}

/// Makes the batches of a thread.
struct Maker<M> {
    rows: Rows,
    maker: M,
}

impl<M: ActionMaker> Encoder for Maker<M> {
    type Part = Vec<M::Batch>;

    fn put(
        &mut self,
        action: &Action<'_>,
        findings: &Findings<'_>,
        _: &SendPart<'_, Self::Part>,
    ) -> Result<()> {
        self.rows.add(action, findings);
        Ok(())
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn take(&mut self) -> Result<Vec<M::Batch>> {
        let mut batches = Vec::new();
        for row in &self.rows.take()? {
            self.maker.add(&ActionView(row));
            if self.maker.is_full() {
                batches.extend(self.maker.take());
            }
        }
        batches.extend(self.maker.take());
        Ok(batches)
    }

    fn take_left_out(&mut self) -> LeftOut {
        self.rows.take_left_out()
    }
}
