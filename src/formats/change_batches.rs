//! Changes for callers that make batches of them, such as tables in memory.

use super::change_files::change_source;
use super::change_set::{Change, ChangeSet};
use super::read::read_sources;
use crate::io::Input;
use crate::pbf::Object;
use crate::runtime::{Batches, Context};
use std::path::PathBuf;

/// Makes batches of changes. Each thread has its own maker.
pub trait ChangeMaker {
    /// A batch of changes.
    type Batch: Send + 'static;

    /// Adds a change to the current batch. `object` is the new version. In a deletion, `object` has only the content
    /// that the file lists.
    fn add(&mut self, change: &Change, object: &Object<'_>);

    /// Ends the current batch and returns it. Returns `None` if it has no changes.
    fn take(&mut self) -> Option<Self::Batch>;

    /// Whether the current batch should end.
    fn is_full(&self) -> bool;
}

/// Makes batches of all changes of a change file (OsmChange, o5c, OPL or PBF), in the order of the file.
///
/// Threads make batches ahead of the caller. Up to two finished batches per thread wait for the caller. The text that
/// is being parsed, its objects and its batches take up to another 24 MB. The threads end when the iterator is dropped.
/// If the file cannot be opened, is not a change file, or is damaged, the last item of the iterator is the error.
pub fn batches<M: ChangeMaker>(
    path: impl Into<PathBuf>,
    maker: impl Fn() -> M + Send + Sync + 'static,
    ctx: &Context,
) -> Batches<M::Batch> {
    let path = path.into();
    Batches::start(2 * ctx.jobs, ctx, move |ctx, take| {
        let source = change_source(&Input::open_in(&path, ctx)?, ctx)?;
        read_sources(
            &[source],
            ctx,
            &maker,
            |maker, _, changes: ChangeSet| {
                let mut batches = Vec::new();
                for (change, object) in changes.iter() {
                    maker.add(change, &object);
                    if maker.is_full() {
                        batches.extend(maker.take());
                    }
                }
                batches.extend(maker.take());
                Ok(batches)
            },
            |batches| batches.into_iter().try_for_each(&mut *take),
        )
    })
}
