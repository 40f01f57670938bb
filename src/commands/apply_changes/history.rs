//! Applies changes to a history file by adding the versions in the change files to those in the base.

use super::Options;
use super::header::set_replication_state;
use crate::engine::input;
use crate::engine::sort::{Dedupe, EqualVersions, SortJob, Summary, sort_files};
use crate::engine::{HeaderOption, OutputOptions};
use crate::error::Result;
use crate::file::PbfFile;
use crate::formats::{change_sources, change_states};
use crate::io::Input;
use crate::pbf::feature;
use crate::runtime::Context;

/// The treatment of a version of an object that both the base and a change file have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SameVersion {
    /// Keeps the version of the base, unless the one in the change file is a deletion. In change files from
    /// `derive-changes`, a deletion has the same version number as the last version of the object.
    KeepBase,
    /// Replaces the version of the base with that of the change file. In this way, a change file can correct the
    /// history.
    Redact,
}

/// Adds the versions in change files to a history file. [`Options::locations_on_ways`] has no effect.
///
/// # Memory
///
/// The memory of [`sort`](crate::commands::sort::run), which is used to merge the versions.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, or it cannot be
///   written ([details](crate::commands#errors)).
/// - A change file has data instead of changes.
pub fn apply_to_history(
    options: &Options,
    same_version: SameVersion,
    ctx: &Context,
) -> Result<Summary> {
    let base = input::open_to_copy(&options.base, &options.output.encoding(), ctx)?;
    add_to_history(options, base, same_version, ctx)
}

/// Does the same as [`apply_to_history`], with a base that is open already.
pub(crate) fn add_to_history(
    options: &Options,
    mut base: PbfFile,
    same_version: SameVersion,
    ctx: &Context,
) -> Result<Summary> {
    let encoding = options.output.encoding();
    base.header.set_required(feature::HISTORY, true);
    let inputs = options.changes.iter().map(|path| Input::open_in(path, ctx));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let sources = change_sources(&inputs, ctx)?;
    let states = change_states(&options.changes, &sources)?;
    let mut header = base.header.clone();
    set_replication_state(&mut header, &states, options, ctx);
    let changes = inputs.into_iter().zip(&sources);
    let changes = changes.map(|(input, source)| {
        input::open_as_pbf(input, source.format(), encoding.compression, ctx)
    });
    let mut files = changes.collect::<Result<Vec<_>>>()?;
    // If the change files contain a version several times, the last occurrence counts. The result is the same as if the
    // files were applied one after the other.
    let equal = match same_version {
        SameVersion::Redact => EqualVersions::Last,
        SameVersion::KeepBase => {
            files = vec![merge_unique_versions(files, options, ctx)?];
            EqualVersions::FirstOrDeletion
        }
    };
    files.insert(0, base);
    let mut output = options.output.clone();
    let mut state = [
        header.replication_url.map(HeaderOption::ReplicationUrl),
        header
            .replication_timestamp
            .map(HeaderOption::ReplicationTimestamp),
        header
            .replication_sequence
            .map(HeaderOption::ReplicationSequence),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    state.append(&mut output.header.set);
    output.header.set = state;
    sort_files(
        files,
        &SortJob::new(output, Dedupe::EachVersion(equal)),
        ctx,
    )
}

/// Merges change files into a temporary file that contains each version of each object once. Of equal versions, the
/// last one is kept.
fn merge_unique_versions(files: Vec<PbfFile>, options: &Options, ctx: &Context) -> Result<PbfFile> {
    let directory = options.output.target.scratch_directory();
    let compression = options.output.encoding().compression;
    let (scratch, output) = OutputOptions::create_scratch(&directory, compression)?;
    let job = SortJob::new(output, Dedupe::EachVersion(EqualVersions::Last));
    let original = files.first().map(|file| file.input.clone());
    sort_files(files, &job, ctx)?;
    let input = match original {
        Some(original) => Input::from_sorted(scratch.open()?, &original)?,
        None => Input::from_temporary(scratch.open()?, std::path::Path::new("changes"))?,
    };
    PbfFile::of_input(input, ctx)
}
