//! `update`: brings a file up to date from a replication server.

mod download;
mod position;

use crate::commands::{apply_changes, extract, merge_changes};
use crate::engine::{HeaderOption, OutputOptions};
use crate::error::{Error, Result};
use crate::file::{PbfFile, Written};
use crate::formats::TextCompression;
use crate::geometry::Shape;
use crate::io::{FileLock, Input, OutputTarget, ScratchFile};
use crate::osm::format_timestamp;
use crate::replication::{Cache, End, Fault, Fetcher, Ladder, Server, State, Transport};
use crate::runtime::Context;
use download::{Download, Downloader};
use position::Position;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

pub use crate::commands::extract::Strategy;

/// The use of the changes.
#[derive(Debug, Clone)]
pub enum Goal {
    /// They are applied to the file. The output may have its path.
    File(OutputOptions),
    /// They are written as one change file.
    Changes(OutputTarget, TextCompression),
    /// Nothing: the file is compared with the server.
    Check,
}

/// The options of `update`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The file.
    pub file: PathBuf,
    /// The use of the changes.
    pub goal: Goal,
    /// The URLs of servers that publish the same changes, those with the longest steps first. If there is none, the server
    /// is the one in the header of the file.
    pub servers: Vec<String>,
    /// The directory in which fetched files are kept.
    pub cache: Option<PathBuf>,
    /// The maximum number of bytes of text of the changes of one run. One change file is applied however long it is.
    pub max_diff_size: u64,
    /// The maximum age of the data in seconds.
    pub max_age: i64,
    /// The data up to which the file is updated.
    pub end: End,
    /// The region to which the result is cut back, so that an extract does not grow by the changes of the whole.
    pub clip: Option<(Shape, Strategy)>,
    /// The pause before a second attempt to get a file. The next pauses are longer.
    pub first_pause: Duration,
}

impl Options {
    /// Options with the given file and goal, and defaults otherwise: the server of the header, a gigabyte of changes, and
    /// data of 90 days.
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
            first_pause: Duration::from_secs(1),
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
    first_pause: Duration,
});

/// A state of replication, as reports have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedState {
    /// The sequence number.
    pub sequence: i64,
    /// The time up to which the data has all changes.
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
    /// The URL of the server whose sequence numbers the file has.
    pub server: String,
    /// The state of the file before.
    pub before: ReportedState,
    /// The state of the file, or of the changes, now.
    pub after: ReportedState,
    /// The newest state of the server.
    pub newest: ReportedState,
    /// The number of seconds between the states of the file and of the server.
    pub seconds_behind: i64,
    /// Whether the file has all changes that were asked for.
    pub is_current: bool,
    /// The number of change files that were read.
    pub change_files: u64,
    /// The number of their bytes.
    pub change_bytes: u64,
    /// The number of created, modified and deleted objects; `None` if the file was not written.
    pub applied: Option<Applied>,
    /// The length, blobs and objects of the output; `None` if the file was not written.
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
/// Gets the change files that the file does not have yet by `transport`, merges them in memory, and applies them in one
/// go. The header of the result has the URL, the sequence number and the time up to which it has all changes. If there
/// are no changes, nothing is written. Another run on the same file fails as long as this one lasts.
///
/// # Memory
///
/// That of [`apply_changes::run`], and a group of change files.
///
/// # Errors
///
/// - The file has no replication state, and no server is given; or its data is older than [`Options::max_age`].
/// - The server cannot be reached, refuses access, or has not what is needed.
/// - Applying the changes fails ([details](apply_changes::run#errors)).
pub fn run(options: &Options, transport: &dyn Transport, ctx: &Context) -> Result<Summary> {
    let _lock = match options.goal {
        Goal::File(_) => Some(FileLock::of(&options.file)?),
        Goal::Changes(..) | Goal::Check => None,
    };
    let position = Position::of(&options.file, ctx)?;
    let ladder = ladder(options, &position, transport)?;
    let start = position.state(options, &ladder, ctx)?;
    check_age(start, options)?;
    let legs = ladder.legs(start, options.end)?;
    let summary = Summary::of(&ladder, start);
    if legs.is_empty() || matches!(options.goal, Goal::Check) {
        return Ok(Summary {
            is_current: legs.is_empty(),
            ..summary
        });
    }
    let scratch = match &options.goal {
        Goal::File(output) => output.target.scratch_directory(),
        Goal::Changes(target, _) => target.scratch_directory(),
        Goal::Check => std::env::temp_dir(),
    };
    let downloader = Downloader::new(&ladder, scratch, options.max_diff_size, ctx)?;
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
    /// The summary before anything was fetched.
    fn of(ladder: &Ladder<'_>, start: State) -> Self {
        let (server, newest) = ladder.finest();
        Self {
            server: server.base().to_owned(),
            before: start.into(),
            after: start.into(),
            newest: newest.into(),
            seconds_behind: (newest.timestamp - start.timestamp).max(0),
            is_current: false,
            change_files: 0,
            change_bytes: 0,
            applied: None,
            written: None,
        }
    }

    /// The summary with what was fetched.
    fn with(self, download: &Download, newest: State) -> Self {
        Self {
            after: download.state.into(),
            seconds_behind: (newest.timestamp - download.state.timestamp).max(0),
            is_current: download.is_complete,
            change_files: download.files,
            change_bytes: download.bytes,
            ..self
        }
    }
}

/// Waits before another attempt.
fn pause(time: Duration) -> Result<(), Fault> {
    std::thread::sleep(time);
    Ok(())
}

/// The servers that the user named, or the one in the header of the file.
fn ladder<'t>(
    options: &Options,
    position: &Position,
    transport: &'t dyn Transport,
) -> Result<Ladder<'t>> {
    let urls = match (options.servers.as_slice(), &position.url) {
        ([], Some(url)) => std::slice::from_ref(url),
        ([], None) => {
            let cause =
                "the header does not say where changes come from; name the server with --server";
            return Err(Error::file(&options.file, cause));
        }
        (urls, _) => urls,
    };
    let servers = urls.iter().map(|url| {
        let cache = options.cache.as_ref().map(|cache| Cache::new(cache, url));
        Server::new(
            url,
            Fetcher::new(transport, &pause, options.first_pause),
            cache,
        )
    });
    Ladder::new(servers.collect())
}

/// Fails if the data is older than the user wants to fetch changes for.
fn check_age(start: State, options: &Options) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let age = now.map_or(0, |now| now.as_secs() as i64) - start.timestamp;
    if age <= options.max_age {
        return Ok(());
    }
    let days = age / 86_400;
    let cause = format!(
        "the data is {days} days old, and a newer file takes less time than so many changes; --max-age {} gets them \
         all the same",
        days + 1
    );
    Err(Error::file(&options.file, cause))
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
    let apply = apply.locations_on_ways(untagged);
    let applied = apply_changes::apply(&apply, || Ok(download.changes), ctx)?;
    summary.applied = Some(Applied {
        created: applied.created,
        modified: applied.modified,
        deleted: applied.deleted,
    });
    summary.written = Some(applied.written);
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
    // A wrong region must not cost the user the file.
    let summary = extract::cut(&whole, &cut.refuses_empty(true), ctx)?;
    let extracted = summary.extracts.into_iter().next();
    let extracted = extracted.ok_or_else(|| Error::Internal("an extract without region".into()))?;
    Ok(extracted.kept.written)
}
