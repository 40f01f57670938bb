//! `update`: brings a file up to date from a replication server.

mod applying;
mod cancellable_files;
mod clip;
mod download;
mod exec;
mod position;
mod record;

use crate::commands::augmented_diff::AugmentedDiffs;
use crate::commands::planet_step::{DataIdentity, PlanetStep};
use crate::commands::{apply_changes, augmented_diff, merge_changes, tags_edit};
use crate::engine::OutputOptions;
use crate::engine::tag_editor::TagEditor;
use crate::error::{Advice, Error, ErrorKind, Result, without_credentials};
use crate::file::Written;
use crate::formats::TextCompression;
use crate::geometry::Shape;
use crate::io::{FileLock, OutputTarget};
use crate::net::Fetcher;
use crate::osm::{TagRule, format_timestamp};
use crate::replication::{Cache, Ladder, Leg, Server};
use crate::runtime::Context;
use applying::Applying;
use cancellable_files::CancellableFiles;
pub use clip::Clipped;
use download::{Download, Downloader};
use exec::FollowUp;
use position::{FilePosition, Start, absolute_url};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::commands::extract::Strategy;
#[cfg(feature = "update")]
pub use crate::net::{AnyFiles, CookieJar, Credentials, WebFiles};
pub use crate::net::{BodyRange, Fault, LocalFiles, Transport};
pub use crate::replication::{End, State};
pub use exec::{Exec, Executed};

/// The number of seconds by which the time of a server may be ahead of this machine's clock without a warning.
const CLOCK_ERROR: i64 = 86_400;

/// The action that is taken with the fetched changes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Goal {
    /// The changes are applied to the file. The output may have the path of the file.
    File(OutputOptions),
    /// The changes are written as one change file. If there are none, the change file is empty.
    Changes(OutputTarget, TextCompression),
    /// The file is only compared with the server.
    Check,
}

impl Goal {
    /// Whether there is something to fetch or to write. `legs` are the change files that follow the state of the file.
    fn has_work(&self, legs: &[Leg<'_, '_>], is_server_behind: bool) -> bool {
        match self {
            // A change file is also written if there are no changes between the file and the server.
            Self::Changes(..) => !is_server_behind,
            Self::File(_) => !legs.is_empty(),
            Self::Check => false,
        }
    }
}

/// An augmented diff that an update writes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AugmentedDiff {
    /// A directory that gets an augmented diff for each change file. The file for a change file of the last server is
    /// called `SEQUENCE.adiff`. The files for change files of other servers are called `SERVER-SEQUENCE.adiff`, where
    /// `SERVER` is the last part of the server's URL.
    ByChangeFile(PathBuf),
    /// An output for all changes of a run together.
    OfRun(augmented_diff::Output),
}

options! {
    /// The options of `update`.
    pub struct Options {
        /// The file to update.
        pub file: PathBuf,
        /// The action that is taken with the fetched changes.
        pub goal: Goal,
    }
    /// By default, the server in the header is used, the changes may have up to a gigabyte, and the data may be at most
    /// 90 days old.
    new(file: impl Into<PathBuf>, goal: Goal);
    setters {
        /// The URLs of servers that publish the same changes. Servers with longer intervals between change files come
        /// first. If the list is empty, the server in the header of the file is used.
        servers: Vec<String>,
        /// The directory in which fetched files are kept.
        cache: Option<PathBuf>,
        /// The maximum size of the uncompressed change files of one run, in bytes. The first change file is applied
        /// whatever its size.
        max_diff_size: u64 = 1_000_000_000,
        /// The maximum age of the data in seconds.
        max_age: i64 = 90 * 86_400,
        /// The end of the wanted changes. Without an end, the file is updated to the newest state.
        end: End,
        /// The region to which the changes are cut before they are applied, and the strategy of the cut. Without a cut,
        /// an extract would grow by objects outside of its region. All objects of the file stay in the file. The
        /// strategy selects further objects of the changes for the file: nodes in the region, ways with a node in the
        /// region, and relations with a member that the file has or gets. With the strategies that complete ways, the
        /// file also gets the changed nodes of all its ways. A region in which the file has no object is an error.
        clip: Option<(Shape, Strategy)>,
        /// The rules that change the tags of the objects in the changes, before the changes are applied. The same rules
        /// must have changed the tags of the file.
        edit: Vec<TagRule>,
        /// For a file without the nodes that only ways need: the number of days for which changed nodes stay in the
        /// file ([details](apply_changes::Options::keep_days)).
        keep_days: u32 = apply_changes::KEEP_DAYS,
        /// The augmented diffs that are written: at most one with tiles, and at most one with actions. They are
        /// complete before the file is replaced. With [`Options::clip`], they describe the effect of the changes on the
        /// file, and have only objects of the region.
        augmented_diffs: Vec<AugmentedDiff>,
        /// The command that runs after the file was replaced; `None` for no command.
        exec: Option<Exec>,
        /// The time to wait while another run replaces the file, or while the command of the other run is still
        /// running. After this time, the update fails with an error of the kind [`ErrorKind::Locked`].
        wait: Duration = Duration::ZERO,
        /// The pause before a second attempt to get a file. The next pauses are longer.
        first_pause: Duration = Duration::from_secs(1),
        /// The time that a connection may last, in addition to one second for each thousand bytes that it transfers.
        patience: Duration = Duration::from_secs(60),
    }
}

/// A replication state in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
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
    /// Whether the file has all changes up to [`Options::end`], and the server will publish no more of them. Reports do
    /// not contain this field.
    #[serde(skip)]
    pub is_end_reached: bool,
    /// The number of change files that were read.
    pub change_files: u64,
    /// The size in bytes of the compressed change files that were read.
    pub change_bytes: u64,
    /// The number of changed versions whose tags [`Options::edit`] changed; `None` if there are no rules or no change
    /// files.
    pub edited: Option<u64>,
    /// The content of the augmented diff with actions; `None` if none was written.
    pub augmented_diff: Option<augmented_diff::Summary>,
    /// The content of the augmented diff with tiles; `None` if none was written.
    pub expired_tiles: Option<augmented_diff::Summary>,
    /// The number of created, modified and deleted objects; `None` if the file was not written.
    pub applied: Option<Applied>,
    /// The effect of the changes on the coordinates in ways; `None` if the file was not written, or if its ways have no
    /// coordinates.
    pub locations: Option<apply_changes::LocationsSummary>,
    /// The effect of [`Options::clip`]; `None` if there is no region, or if the file was not written.
    pub clipped: Option<Clipped>,
    /// The size of the output, and the numbers of its blobs and objects; `None` if the file was not written.
    pub written: Option<Written>,
    /// The result of the command; `None` if it did not run.
    pub exec: Option<Executed>,
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
/// the result contains all changes. If there are no changes, the file is not written. With [`Goal::File`], locks the
/// file, so another update of the same file waits ([`Options::wait`]) or fails while this run lasts.
///
/// A server is behind the file if its newest sequence number is smaller than that of the file. If the newest time of
/// this server is nevertheless later than that of the file, the server has restarted its numbering, and the following
/// changes are found by time.
///
/// [`Options::exec`] runs after the file is on disk under its name. If the command fails, or if the process ends before
/// the command, the command is pending ([`Summary::exec`]). The next update of the file that has a command then begins
/// with the pending command, for the same states. An update without a command warns, updates the file, and leaves the
/// command pending. The command then runs once for both updates, and gets no paths of outputs.
///
/// # Memory
///
/// The memory of [`apply_changes::run`], and a group of at most 16 change files. With [`Options::clip`], up to 20 bytes
/// for each object of the changes and for each of their references.
///
/// # Errors
///
/// - The file has no replication state, and no server is given; or its data is older than [`Options::max_age`], and the
///   server has changes for it.
/// - The server cannot be reached, refuses access, or does not have the needed files.
/// - Applying the changes fails ([details](apply_changes::run#errors)).
/// - The file has no object in the region of [`Options::clip`].
/// - The command is pending, and fails again. The file is not updated then.
pub fn run(options: &Options, transport: &dyn Transport, ctx: &Context) -> Result<Summary> {
    run_with_optional_step(options, transport, false, ctx).map(|(summary, _)| summary)
}

/// Does the same as [`run`]. Also returns the step from the file before the update to the file after it; `None` if no
/// file was written.
///
/// # Errors
///
/// As [`run`].
pub fn run_with_step(
    options: &Options,
    transport: &dyn Transport,
    ctx: &Context,
) -> Result<(Summary, Option<PlanetStep>)> {
    run_with_optional_step(options, transport, true, ctx)
}

/// Does the same as [`run`]. Also returns the step if `notes_step` is set.
fn run_with_optional_step(
    options: &Options,
    transport: &dyn Transport,
    notes_step: bool,
    ctx: &Context,
) -> Result<(Summary, Option<PlanetStep>)> {
    let files = CancellableFiles::new(transport, ctx);
    let pause = |time| files.pause(time);
    let updated = update(options, notes_step, &files, &pause, ctx);
    // If the update is cancelled, fetching a file fails with its own error. The cancellation is reported instead.
    updated.map_err(|error| ctx.cancellation.check().err().unwrap_or(error))
}

/// Updates a file as [`run`] does, and returns the step if `notes_step` is set. `pause` waits before another attempt to
/// fetch a file.
fn update(
    options: &Options,
    notes_step: bool,
    transport: &dyn Transport,
    pause: &(dyn Fn(Duration) -> Result<(), Fault> + Sync),
    ctx: &Context,
) -> Result<(Summary, Option<PlanetStep>)> {
    let lock = lock_file(options, ctx)?;
    let before = notes_step.then(|| DataIdentity::of_path(&options.file, ctx));
    let before = before.transpose()?;
    let follow_up = FollowUp::of(options);
    let position = FilePosition::read(&options.file, ctx)?;
    let caught_up = exec::run_pending_or_warn(follow_up.as_ref(), options, &position, ctx)?;
    let ladder = build_server_ladder(options, &position, transport, pause)?;
    warn_of_state_in_future(&ladder, ctx);
    let Start {
        state: start,
        is_server_behind,
    } = position.find_start(options, &ladder, ctx)?;
    let legs = if is_server_behind {
        Vec::new()
    } else {
        ladder.legs(start, options.end)?
    };
    let summary = Summary {
        is_server_behind,
        exec: caught_up,
        ..Summary::of(&ladder, start)
    };
    if !options.goal.has_work(&legs, is_server_behind) {
        let is_current = legs.is_empty() && !is_server_behind;
        let summary = Summary {
            is_current,
            is_end_reached: is_end_reached(options.end, start, &ladder, is_current),
            ..summary
        };
        return Ok((summary, None));
    }
    let download = download(options, &ladder, start, &legs, ctx)?;
    let mut summary = summary.with_download(&download, &ladder, options.end);
    let mut step = None;
    match &options.goal {
        Goal::File(output) => {
            let applying = Applying::new(options, output, (&position, start), before, ctx);
            step = applying.run(download, &mut summary, follow_up.as_ref())?;
            // The lock is on the old file. It must be released before `run_after_update` locks the file that replaced
            // it.
            drop(lock);
            if let Some(follow_up) = &follow_up {
                summary.exec = follow_up.run_after_update(&summary, &position, ctx)?;
            }
        }
        Goal::Changes(target, compression) => {
            let to = merge_changes::Options::new(Vec::new(), target.clone());
            merge_changes::write(&to.compression(*compression), &download.changes, ctx)?;
        }
        Goal::Check => {}
    }
    Ok((summary, step))
}

/// Locks the file if changes are applied to it. Waits for another run for at most [`Options::wait`]. Fails if an
/// augmented diff may not be written.
fn lock_file(options: &Options, ctx: &Context) -> Result<Option<Arc<FileLock>>> {
    /// The time between two attempts to lock the file.
    const PAUSE: Duration = Duration::from_millis(100);
    let Goal::File(output) = &options.goal else {
        return Ok(None);
    };
    augmented_diffs(options, &[]).check(&output.target, &[options.file.as_path()])?;
    let start = Instant::now();
    loop {
        let left = options.wait.saturating_sub(start.elapsed());
        match FileLock::acquire(&options.file) {
            Err(error) if error.kind() == ErrorKind::Locked && !left.is_zero() => {
                ctx.cancellation.check()?;
                std::thread::sleep(left.min(PAUSE));
            }
            locked => return locked.map(Some),
        }
    }
}

/// Fetches, reads and edits the change files of `legs`. Keeps the versions that the augmented diffs need. Fails if
/// there are change files and the data is too old.
fn download(
    options: &Options,
    ladder: &Ladder<'_>,
    start: State,
    legs: &[Leg<'_, '_>],
    ctx: &Context,
) -> Result<Download> {
    if !legs.is_empty() {
        check_data_age(start, options)?;
    }
    let scratch = match &options.goal {
        Goal::File(output) => output.target.scratch_directory(),
        Goal::Changes(target, _) => target.scratch_directory(),
        Goal::Check => std::env::temp_dir(),
    };
    let versions = augmented_diffs(options, &[]).kept_versions();
    let downloader = Downloader::new(ladder, scratch, options.max_diff_size, versions, ctx);
    let mut download = downloader.run(start, legs)?;
    if !options.edit.is_empty() {
        let editor = TagEditor::of_rules(&options.edit);
        let counts = tags_edit::changes::edit_changes(&editor, &mut download.changes);
        let counts = counts.map_err(|error| Error::file(&options.file, error.to_string()))?;
        download.edited = Some(counts.objects);
    }
    Ok(download)
}

/// Returns the augmented diffs of a run that has read change files with the given names.
fn augmented_diffs(options: &Options, names: &[String]) -> AugmentedDiffs {
    let outputs = options.augmented_diffs.iter().map(|output| match output {
        AugmentedDiff::ByChangeFile(directory) => augmented_diff::Output::ByChangeFile {
            directory: directory.clone(),
            names: names.to_vec(),
        },
        AugmentedDiff::OfRun(output) => output.clone(),
    });
    let region = options.clip.as_ref().map(|(shape, _)| shape.clone());
    AugmentedDiffs::default()
        .outputs(outputs.collect())
        .selection(augmented_diff::Selection::default().region(region))
}

impl Summary {
    /// Creates the summary of an update that has fetched nothing yet.
    fn of(ladder: &Ladder<'_>, start: State) -> Self {
        let (server, newest) = ladder.finest_server();
        Self {
            server: server.base().to_owned(),
            before: start.into(),
            after: start.into(),
            newest: newest.into(),
            seconds_behind: seconds_between(start.timestamp, newest.timestamp),
            seconds_old: seconds_between(start.timestamp, now()),
            ..Self::default()
        }
    }

    /// Adds the results of a download to the summary.
    fn with_download(self, download: &Download, ladder: &Ladder<'_>, end: End) -> Self {
        let newest = ladder.finest_server().1;
        Self {
            is_end_reached: is_end_reached(end, download.state, ladder, download.is_complete),
            after: download.state.into(),
            seconds_behind: seconds_between(download.state.timestamp, newest.timestamp),
            seconds_old: seconds_between(download.state.timestamp, now()),
            is_current: download.is_complete,
            change_files: download.files,
            change_bytes: download.bytes,
            edited: download.edited,
            ..self
        }
    }
}

/// Whether data with the given state has all changes up to `end`, and the server will publish no more of them.
/// `is_current` means that the data has all changes up to `end` that the server has.
fn is_end_reached(end: End, state: State, ladder: &Ladder<'_>, is_current: bool) -> bool {
    end.is_reached(state) || is_current && end.is_reached(ladder.finest_server().1)
}

/// Returns the current time in seconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs() as i64)
}

/// Returns the number of seconds from one time to a later one; 0 if the second time is not later.
fn seconds_between(from: i64, to: i64) -> i64 {
    to.saturating_sub(from).max(0)
}

/// Warns if the newest state of the server lies in the future. A file with such a state would miss changes.
fn warn_of_state_in_future(ladder: &Ladder<'_>, ctx: &Context) {
    let (server, newest) = ladder.finest_server();
    if newest.timestamp > now().saturating_add(CLOCK_ERROR) {
        ctx.warn(format!(
            "{}: the server says that its newest changes are of {}, which is in the future: its clock is wrong, or \
             that of this machine",
            server.base(),
            format_timestamp(newest.timestamp)
        ));
    }
}

/// Returns the servers in the options or, if there are none, the server in the header of the file.
fn build_server_ladder<'t>(
    options: &Options,
    position: &FilePosition,
    transport: &'t dyn Transport,
    pause: &'t (dyn Fn(Duration) -> Result<(), Fault> + Sync),
) -> Result<Ladder<'t>> {
    let urls = match (options.servers.as_slice(), &position.header.url) {
        ([], Some(url)) => std::slice::from_ref(url),
        ([], None) => {
            let cause = "the header does not say where changes come from";
            return Err(Error::file(&options.file, cause).advise(Advice::NameServer));
        }
        (urls, _) => urls,
    };
    let servers = urls.iter().map(|url| {
        let cache = options
            .cache
            .as_ref()
            .map(|cache| Cache::new(cache, &without_credentials(url)));
        let fetcher = Fetcher::new(transport, pause, options.first_pause);
        Server::new(
            &absolute_url(url),
            fetcher.patience(options.patience),
            cache,
        )
    });
    Ladder::new(servers.collect())
}

/// Fails if the data is older than [`Options::max_age`].
fn check_data_age(start: State, options: &Options) -> Result<()> {
    let age = seconds_between(start.timestamp, now());
    if age <= options.max_age {
        return Ok(());
    }
    let days = age / 86_400;
    let cause = format!(
        "the data is {days} days old, and a newer file takes less time than so many changes"
    );
    Err(Error::file(&options.file, cause).advise(Advice::MaxAge(days + 1)))
}
