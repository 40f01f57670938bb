//! Actions for callers that make batches of them, such as tables in memory.

use super::actions::ActionSource;
use super::feed::encode_rows;
use super::{Selection, find_concerned_objects, with_changes};
use crate::formats::KeptVersions;
use crate::formats::features::{ActionRow, ActionView};
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

/// Makes batches of the actions that result from applying change files to a file of current data. The actions are
/// ordered by kind (nodes, ways, relations) and id. `base` and `changes` are as in [`Options`](super::Options).
///
/// Threads make batches in advance: up to two for each thread, in addition to the batches of the actions that are being
/// processed. The threads end when the iterator is dropped. The memory is that of [`run`](super::run) plus that of the
/// batches. Temporary files are in the directory for temporary files of the system. The errors are those of
/// [`run`](super::run). They are items of the iterator.
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
            let findings = find_concerned_objects(base, changes, &selection, &scratch)?;
            let new_encode = || {
                let mut maker = maker();
                move |rows: Vec<ActionRow>| batches_of(&rows, &mut maker)
            };
            let source = ActionSource {
                base,
                findings: &findings,
                selection: &selection,
            };
            encode_rows(source, new_encode, |batches| {
                batches.into_iter().try_for_each(&mut *take)
            })?;
            Ok(())
        })
    })
}

/// Makes batches of rows.
fn batches_of<M: ActionMaker>(rows: &[ActionRow], maker: &mut M) -> Vec<M::Batch> {
    let mut batches = Vec::new();
    for row in rows {
        maker.add(&ActionView(row));
        if maker.is_full() {
            batches.extend(maker.take());
        }
    }
    batches.extend(maker.take());
    batches
}
