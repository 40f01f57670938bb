//! `update`: brings a file up to date from a replication server.

mod download;
mod position;

use crate::commands::{apply_changes, augmented_diff, extract, merge_changes};
use crate::engine::{HeaderOption, OutputOptions};
use crate::error::{Error, Result};
use crate::file::{PbfFile, Written};
use crate::formats::{KeptVersions, TextCompression};
use crate::geometry::Shape;
use crate::io::{FileLock, Input, OutputTarget, ScratchFile};
use crate::net::Fetcher;
use crate::osm::format_timestamp;
use crate::replication::{Cache, Ladder, Server};
use crate::runtime::Context;
use download::{Download, Downloader};
use position::{Position, Start};
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

pub use crate::commands::extract::Strategy;
#[cfg(feature = "update")]
pub use crate::net::{AnyFiles, CookieJar, Credentials, WebFiles};
pub use crate::net::{BodyRange, Fault, LocalFiles, Transport};
pub use crate::replication::{End, State};

/// The number of seconds by which the time of a server may be ahead of this machine's clock without a warning.
const CLOCK_ERROR: i64 = 86_400;

/// The action that is taken with the fetched changes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Goal {
    /// The changes are applied to the file. The output may have the path of the file.
    File(OutputOptions),
    /// The changes are written as one change file.
    Changes(OutputTarget, TextCompression),
    /// The file is only compared with the server.
    Check,
}

/// The options of `update`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The file to update.
    pub file: PathBuf,
    /// The action that is taken with the fetched changes.
    pub goal: Goal,
    /// The URLs of servers that publish the same changes. Servers with longer intervals between change files come
    /// first. If the list is empty, the server in the header of the file is used.
    pub servers: Vec<String>,
    /// The directory in which fetched files are kept.
    pub cache: Option<PathBuf>,
    /// The maximum size of the uncompressed change files of one run, in bytes. The first change file is applied
    /// whatever its size.
    pub max_diff_size: u64,
    /// The maximum age of the data in seconds.
    pub max_age: i64,
    /// The last state to which the file is updated.
    pub end: End,
    /// The region to which the result is cut, so that an extract does not grow by the changes outside of it.
    pub clip: Option<(Shape, Strategy)>,
    /// The directory that gets an augmented diff for each change file; `None` for none. The file for a change file of
    /// the last server is called `SEQUENCE.adiff`. Those for change files of other servers are called
    /// `SERVER-SEQUENCE.adiff`, where `SERVER` is the last part of the server's URL. With [`Options::clip`], the
    /// augmented diffs have only objects of this region.
    pub augmented_diff: Option<PathBuf>,
    /// The pause before a second attempt to get a file. The next pauses are longer.
    pub first_pause: Duration,
    /// The time that a connection may last, in addition to one second for each thousand bytes that it transfers.
    pub patience: Duration,
}

impl Options {
    /// Options with the given file and goal. By default, the server in the header is used, the changes may have up to a
    /// gigabyte, and the data may be at most 90 days old.
    pub fn new(file: impl Into<PathBuf>, goal: Goal) -> Self {
        Self {
            file: file.into(),
            goal,
            servers: Vec::new(),
            cache: None,
            max_diff_size: 1_000_000_000,
            max_age: 90 * 86_400,
            end: End::default(),
            clip: None,
            augmented_diff: None,
            first_pause: Duration::from_secs(1),
            patience: Duration::from_secs(60),
        }
    }
}

setters!(Options {
    servers: Vec<String>,
    cache: Option<PathBuf>,
    max_diff_size: u64,
    max_age: i64,
    end: End,
    clip: Option<(Shape, Strategy)>,
    augmented_diff: Option<PathBuf>,
    first_pause: Duration,
    patience: Duration,
});

/// A replication state in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedState {
    /// The sequence number.
    pub sequence: i64,
    /// The time up to which the data contains all changes.
    pub timestamp: String,
}

impl From<State> for ReportedState {
    fn from(state: State) -> Self {
        Self {
            sequence: state.sequence,
            timestamp: format_timestamp(state.timestamp),
        }
    }
}

/// The result of `update`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The URL of the server that the sequence numbers of the file belong to.
    pub server: String,
    /// The state of the file before the update.
    pub before: ReportedState,
    /// The state of the file, or of the changes, after the update.
    pub after: ReportedState,
    /// The newest state of the server.
    pub newest: ReportedState,
    /// The number of seconds between the states of the file and of the server.
    pub seconds_behind: i64,
    /// The number of seconds between the state of the file and now.
    pub seconds_old: i64,
    /// Whether the file has all requested changes. False if the server is behind the file.
    pub is_current: bool,
    /// Whether the newest state of the server is older than the state of the file.
    pub is_server_behind: bool,
    /// The number of change files that were read.
    pub change_files: u64,
    /// The size in bytes of the compressed change files that were read.
    pub change_bytes: u64,
    /// The content of the augmented diffs; `None` if none were written.
    pub augmented_diff: Option<augmented_diff::Summary>,
    /// The number of created, modified and deleted objects; `None` if the file was not written.
    pub applied: Option<Applied>,
    /// The size of the output, and the numbers of its blobs and objects; `None` if the file was not written.
    pub written: Option<Written>,
}

/// The effect of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The number of objects that were added.
    pub created: u64,
    /// The number of objects that were replaced.
    pub modified: u64,
    /// The number of objects that were deleted.
    pub deleted: u64,
}

/// Brings a file up to date.
///
/// Fetches, through `transport`, the change files that follow the state of the file, merges them in memory, and applies
/// them together. The header of the result has the URL of the server, and the sequence number and the time up to which
/// the result contains all changes. If there are no changes, nothing is written. With [`Goal::File`], locks the file,
/// so another update of the same file fails while this run lasts.
///
/// A server is behind the file if its newest sequence number is smaller than that of the file. If its newest time is
/// nevertheless later, the server has restarted its numbering, and the following changes are found by time.
///
/// # Memory
///
/// The memory of [`apply_changes::run`], and a group of at most 16 change files.
///
/// # Errors
///
/// - The file has no replication state, and no server is given; or its data is older than [`Options::max_age`], and the
///   server has changes for it.
/// - The server cannot be reached, refuses access, or does not have the needed files.
/// - Applying the changes fails ([details](apply_changes::run#errors)).
pub fn run(options: &Options, transport: &dyn Transport, ctx: &Context) -> Result<Summary> {
    let _lock = match options.goal {
        Goal::File(_) => Some(FileLock::of(&options.file)?),
        Goal::Changes(..) | Goal::Check => None,
    };
    let position = Position::of(&options.file, ctx)?;
    let ladder = ladder(options, &position, transport)?;
    warn_of_future(&ladder, ctx);
    let Start {
        state: start,
        is_server_behind,
    } = position.start(options, &ladder, ctx)?;
    let legs = if is_server_behind {
        Vec::new()
    } else {
        ladder.legs(start, options.end)?
    };
    let summary = Summary {
        is_server_behind,
        ..Summary::of(&ladder, start)
    };
    if legs.is_empty() || matches!(options.goal, Goal::Check) {
        return Ok(Summary {
            is_current: legs.is_empty() && !is_server_behind,
            ..summary
        });
    }
    check_age(start, options)?;
    let scratch = match &options.goal {
        Goal::File(output) => output.target.scratch_directory(),
        Goal::Changes(target, _) => target.scratch_directory(),
        Goal::Check => std::env::temp_dir(),
    };
    let versions = match options.augmented_diff {
        Some(_) => KeptVersions::All,
        None => KeptVersions::Newest,
    };
    let downloader = Downloader::new(&ladder, scratch, options.max_diff_size, versions, ctx)?;
    let download = downloader.run(start, &legs)?;
    let mut summary = summary.with(&download, ladder.finest().1);
    match &options.goal {
        Goal::File(output) => apply(options, output, &position, download, &mut summary, ctx)?,
        Goal::Changes(target, compression) => {
            let to = merge_changes::Options::new(Vec::new(), target.clone());
            merge_changes::write(&to.compression(*compression), &download.changes, ctx)?;
        }
        Goal::Check => {}
    }
    Ok(summary)
}

impl Summary {
    /// Creates the summary of an update that has fetched nothing yet.
    fn of(ladder: &Ladder<'_>, start: State) -> Self {
        let (server, newest) = ladder.finest();
        Self {
            server: server.base().to_owned(),
            before: start.into(),
            after: start.into(),
            newest: newest.into(),
            seconds_behind: seconds_between(start.timestamp, newest.timestamp),
            seconds_old: seconds_between(start.timestamp, now()),
            is_current: false,
            is_server_behind: false,
            change_files: 0,
            change_bytes: 0,
            augmented_diff: None,
            applied: None,
            written: None,
        }
    }

    /// Adds the results of a download to the summary.
    fn with(self, download: &Download, newest: State) -> Self {
        Self {
            after: download.state.into(),
            seconds_behind: seconds_between(download.state.timestamp, newest.timestamp),
            seconds_old: seconds_between(download.state.timestamp, now()),
            is_current: download.is_complete,
            change_files: download.files,
            change_bytes: download.bytes,
            ..self
        }
    }
}

/// The current time in seconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs() as i64)
}

/// The number of seconds from one time to a later one; 0 if it is not later.
fn seconds_between(from: i64, to: i64) -> i64 {
    to.saturating_sub(from).max(0)
}

/// Warns if the newest state of the server lies in the future, because a file with that state would miss changes.
fn warn_of_future(ladder: &Ladder<'_>, ctx: &Context) {
    let (server, newest) = ladder.finest();
    if newest.timestamp > now().saturating_add(CLOCK_ERROR) {
        ctx.warn(format!(
            "{}: the server says that its newest changes are of {}, which is in the future: its clock is wrong, or \
             that of this machine",
            server.base(),
            format_timestamp(newest.timestamp)
        ));
    }
}

/// Waits before another attempt.
fn pause(time: Duration) -> Result<(), Fault> {
    std::thread::sleep(time);
    Ok(())
}

/// Returns the servers in the options or, if there are none, the server in the header of the file.
fn ladder<'t>(
    options: &Options,
    position: &Position,
    transport: &'t dyn Transport,
) -> Result<Ladder<'t>> {
    let urls = match (options.servers.as_slice(), &position.url) {
        ([], Some(url)) => std::slice::from_ref(url),
        ([], None) => {
            let cause = "the header does not say where changes come from";
            return Err(Error::file(&options.file, cause).advise("name the server with --server"));
        }
        (urls, _) => urls,
    };
    let servers = urls.iter().map(|url| {
        let cache = options.cache.as_ref().map(|cache| Cache::new(cache, url));
        let fetcher = Fetcher::new(transport, &pause, options.first_pause);
        Server::new(&absolute(url), fetcher.patience(options.patience), cache)
    });
    Ladder::new(servers.collect())
}

/// Returns the URL of a server. The path of a local directory is made absolute, because it is stored in the header of
/// the file, and a later run may start in another directory.
fn absolute(url: &str) -> String {
    let absolute = |path: &str| Some(std::path::absolute(path).ok()?.to_str()?.to_owned());
    match url.split_once("://") {
        Some(("file", path)) => absolute(path).map(|path| format!("file://{path}")),
        Some(_) => None,
        None => absolute(url),
    }
    .unwrap_or_else(|| url.to_owned())
}

/// Fails if the data is older than [`Options::max_age`].
fn check_age(start: State, options: &Options) -> Result<()> {
    let age = seconds_between(start.timestamp, now());
    if age <= options.max_age {
        return Ok(());
    }
    let days = age / 86_400;
    let cause = format!(
        "the data is {days} days old, and a newer file takes less time than so many changes"
    );
    let advice = format!("--max-age {} gets them all the same", days + 1);
    Err(Error::file(&options.file, cause).advise(advice))
}

/// Applies changes to the file.
fn apply(
    options: &Options,
    output: &OutputOptions,
    position: &Position,
    download: Download,
    summary: &mut Summary,
    ctx: &Context,
) -> Result<()> {
    let mut output = output.clone();
    output.header.set.extend([
        HeaderOption::ReplicationUrl(summary.server.clone()),
        HeaderOption::ReplicationSequence(download.state.sequence),
        HeaderOption::ReplicationTimestamp(download.state.timestamp),
    ]);
    if position.has_locations {
        output = output.with_way_locations();
    }
    let applied_to = match &options.clip {
        Some(_) => {
            let scratch = ScratchFile::create(&output.target.scratch_directory())?;
            OutputOptions::new(OutputTarget::Scratch(scratch))
                .header(output.header.clone())
                .write(output.write)
        }
        None => output.clone(),
    };
    let apply = apply_changes::Options::new(&options.file, Vec::new(), applied_to.clone());
    let untagged = position
        .has_locations
        .then_some(apply_changes::UntaggedNodes::AsBase);
    let augmented = options.augmented_diff.clone().map(|directory| {
        let output = augmented_diff::Output::ByChangeFile {
            directory,
            names: download.names,
        };
        let region = options.clip.as_ref().map(|(shape, _)| shape.clone());
        (output, augmented_diff::Selection::default().region(region))
    });
    let apply = apply.locations_on_ways(untagged).augmented_diff(augmented);
    let applied = apply_changes::apply(&apply, || Ok(download.changes), ctx)?;
    summary.applied = Some(Applied {
        created: applied.created,
        modified: applied.modified,
        deleted: applied.deleted,
    });
    summary.written = Some(applied.written);
    summary.augmented_diff = applied.augmented_diff;
    if let Some((shape, strategy)) = &options.clip {
        summary.written = Some(clip(options, &applied_to, shape, strategy, output, ctx)?);
    }
    Ok(())
}

/// Cuts a region out of a temporary file.
fn clip(
    options: &Options,
    whole: &OutputOptions,
    shape: &Shape,
    strategy: &Strategy,
    output: OutputOptions,
    ctx: &Context,
) -> Result<Written> {
    let OutputTarget::Scratch(scratch) = &whole.target else {
        return Err(Error::Internal(
            "a clipped file that is not temporary".into(),
        ));
    };
    let whole = Input::from_temporary(scratch.open()?, &options.file)?;
    let whole = PbfFile::of_input(whole, ctx)?;
    let region = extract::Extract {
        shape: shape.clone(),
        output: output.target,
        format: output.format,
        header: output.header,
    };
    let cut = extract::Options::new(&options.file, vec![region]);
    let cut = cut.strategy(strategy.clone()).write(output.write);
    ctx.expect_phases(extract::PHASES);
    // If the region is wrong, the extract is empty. An empty extract must not replace the file.
    let summary = extract::cut(&whole, &cut.refuses_empty(true), ctx)?;
    let extracted = summary.extracts.into_iter().next();
    let extracted = extracted.ok_or_else(|| Error::Internal("an extract without region".into()))?;
    Ok(extracted.kept.written)
}
