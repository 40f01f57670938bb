//! Applying changes to a history file: the versions in the change files are added to those in the base.

use super::{HeaderOption, Options};
use crate::engine::input;
use crate::engine::sort::{Dedupe, SortJob, Summary, sort_files};
use crate::error::Result;
use crate::formats::{TextFormat, read_change_state};
use crate::io::Input;
use crate::pbf::feature;
use crate::runtime::Context;

/// The rule for a version of an object that both the base and a change file have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameVersion {
    /// The version of the base.
    KeepBase,
    /// The version of the change file, which patches the history.
    Redact,
}

/// Adds the versions in change files to a history file. [`Options::locations_on_ways`] has no effect.
///
/// # Memory
///
/// The memory of [`sort`](crate::commands::sort::run), which merges the versions.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, or it cannot be
///   written ([details](crate::commands#errors)).
/// - A change file is not OsmChange.
pub fn apply_to_history(
    options: &Options,
    same_version: SameVersion,
    ctx: &Context,
) -> Result<Summary> {
    let encoding = options.output.encoding();
    let mut base = input::open_to_copy(&options.base, &encoding, ctx)?;
    base.header.set_required(feature::HISTORY, true);
    let inputs = options.changes.iter().map(|path| Input::open(path));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let state = read_change_state(&options.changes, &inputs)?;
    let changes = inputs.into_iter().map(|input| {
        input::to_pbf(
            input,
            Some(TextFormat::OsmChange),
            encoding.compression,
            ctx,
        )
    });
    let mut files = changes.collect::<Result<Vec<_>>>()?;
    // Of equal versions, the one in the first file stays: the last change file wins over those before it.
    files.reverse();
    match same_version {
        SameVersion::KeepBase => files.insert(0, base),
        SameVersion::Redact => files.push(base),
    }
    let mut output = options.output.clone();
    let mut state = [
        state.timestamp.map(HeaderOption::ReplicationTimestamp),
        state.sequence.map(HeaderOption::ReplicationSequence),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    state.append(&mut output.header.set);
    output.header.set = state;
    let job = SortJob {
        output,
        dedupe: Dedupe::EachVersion,
    };
    sort_files(files, &job, ctx)
}
