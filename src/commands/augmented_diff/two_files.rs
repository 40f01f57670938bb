//! Augmented diffs of two files. The changes between them are derived first.

use super::actions::ActionSource;
use super::history::Replaces;
use super::{
    ActionList, Base, EditGroup, GroupBy, Output, Selection, Summary, feed, find_concerned_objects,
    with_base, write,
};
use crate::commands::diff;
use crate::error::Result;
use crate::file::PlannedFile;
use crate::formats::ChangeSet;
use crate::osm::ObjectId;
use crate::runtime::Context;
use std::path::PathBuf;

options! {
    /// Two files of current data, and the differences between them that count. The files must meet the same conditions
    /// as the inputs of [`diff`](crate::commands::diff::run).
    pub struct FilePair {
        /// The old file.
        pub old: PathBuf,
        /// The new file.
        pub new: PathBuf,
    }
    /// All differences count.
    new(old: impl Into<PathBuf>, new: impl Into<PathBuf>);
    setters {
        /// Whether objects that differ only in metadata or in the order of their tags count as different.
        metadata: bool = true,
        /// The rules that select the actions.
        selection: Selection,
        /// The maximum memory in bytes for the changes between the files; `None` for 64 MiB plus 64 bytes for each byte
        /// of the files, which is more than real data need. The maximum size of a row of a table is 64 MB for each GB
        /// of this memory; with `None`, it is 64 MB.
        max_memory: Option<u64>,
    }
}

/// Writes the augmented diff of two files. The new state of a deleted object has neither tags nor nodes nor members,
/// and features of deleted objects have no metadata, because neither file contains the deleted version.
///
/// # Errors
///
/// Those of [`run`](super::run) and of [`diff`](crate::commands::diff::run#errors); the changes between the files take
/// more than [`FilePair::max_memory`].
pub fn between(pair: &FilePair, output: &Output, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(7 + u64::from(output.has_features()));
    with_differences(pair, u64::MAX, ctx, |base, changes, counts| {
        let summary = write(base, changes, output, &pair.selection)?;
        Ok(Summary {
            new_version_only: counts.new_version_only,
            ..summary
        })
    })
}

/// Returns the actions between two files, as many as fit on a page.
///
/// # Errors
///
/// Those of [`between`], except those of the output. The changes may take at most 256 MiB in memory.
pub fn list_between(pair: &FilePair, ctx: &Context) -> Result<ActionList> {
    with_actions(pair, feed::MAX_CHANGES, ctx, |source, _| feed::list(source))
}

/// Returns the objects with an action between two files, in canonical order.
///
/// # Errors
///
/// Those of [`between`], except those of the output.
pub fn ids_between(pair: &FilePair, ctx: &Context) -> Result<Vec<ObjectId>> {
    with_actions(pair, u64::MAX, ctx, |source, _| feed::ids(source))
}

/// Returns the actions between two files by user or by changeset, and the numbers of all actions. The groups with the
/// most changes come first.
///
/// # Errors
///
/// Those of [`between`], except those of the output.
pub fn groups_between(
    pair: &FilePair,
    by: GroupBy,
    ctx: &Context,
) -> Result<(Vec<EditGroup>, Summary)> {
    ctx.expect_phases(8);
    with_actions(pair, u64::MAX, ctx, |source, counts| {
        let (groups, summary) = feed::group(source, by)?;
        let summary = Summary {
            new_version_only: counts.new_version_only,
            ..summary
        };
        Ok((groups, summary))
    })
}

/// Calls `take` with the actions between two files, and with the numbers of differences. Fails in the same cases as
/// [`with_differences`].
fn with_actions<T>(
    pair: &FilePair,
    most: u64,
    ctx: &Context,
    take: impl FnOnce(ActionSource<'_>, &diff::Summary) -> Result<T>,
) -> Result<T> {
    let (scratch, selection) = (std::env::temp_dir(), &pair.selection);
    with_differences(pair, most, ctx, |base, changes, counts| {
        let findings = &find_concerned_objects(base, changes, selection, &scratch)?;
        let source = ActionSource {
            base,
            findings,
            selection,
        };
        take(source, counts)
    })
}

/// Calls `take` with the old file as the base, with the changes that turn it into the new one, and with the numbers of
/// differences. Fails if the changes take more than [`FilePair::max_memory`] or `most` bytes.
fn with_differences<T>(
    pair: &FilePair,
    most: u64,
    ctx: &Context,
    take: impl FnOnce(&Base<'_>, &ChangeSet, &diff::Summary) -> Result<T>,
) -> Result<T> {
    let deletions = diff::Deletions {
        content_only: !pair.metadata,
        ..diff::Deletions::default()
    };
    let max_memory = |default| pair.max_memory.unwrap_or(default).min(most);
    let found = diff::changes_between(&pair.old, &pair.new, deletions, max_memory, ctx)?;
    let source = PlannedFile::new(&found.old, &found.plan, ctx);
    with_base(source, Replaces::Always, |base| {
        let base = base.with_memory(pair.max_memory);
        take(&base, &found.changes, &found.summary)
    })
}
