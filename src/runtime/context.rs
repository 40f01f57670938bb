//! The context of a command: the number of worker threads, the I/O mode, the observer and the statistics.

use super::cancellation::Cancellation;
use super::observer::{NoObserver, Observer};
use super::payload_watch::PayloadWatch;
use super::phase::PhaseLimits;
use super::stats::{Phase, Stats};
use crate::error::{Advice, abbreviate_message};
use crate::osm::TextFormat;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;

/// The method of reading and writing files. The content of outputs does not depend on the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IoMode {
    /// [`IoMode::Parallel`] for a single large output file, otherwise [`IoMode::Buffered`]. A text or table that turns
    /// out to be long switches to [`IoMode::Parallel`].
    #[default]
    Auto,
    /// Writes through the page cache, in the thread that produces the bytes.
    Buffered,
    /// Writes through the page cache, in a small pool of threads. The output to a stream, and each output of a command
    /// with several outputs, is written as in [`IoMode::Buffered`].
    Parallel,
    /// Reads and writes bypass the page cache (`O_DIRECT`). If the file system does not support `O_DIRECT`, a warning
    /// is issued and the page cache is used.
    Direct,
    /// Writes use io_uring. If the system does not permit io_uring, a warning is issued and [`IoMode::Parallel`] is
    /// used.
    IoUring,
}

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InputFormat {
    /// Detected from the content of the file.
    #[default]
    Auto,
    /// PBF.
    Pbf,
    /// The given format.
    Text(TextFormat),
    /// OSM XML or OsmChange, which are distinguished by their root element.
    Xml,
    /// o5m or o5c, which are distinguished by their first bytes.
    O5m,
}

/// The treatment of inputs that are not in canonical order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Disorder {
    /// The command handles disorder and produces the correct result.
    #[default]
    Accept,
    /// The command fails if it detects disorder. It reads no additional data for this check.
    Refuse,
    /// The command handles disorder as with [`Disorder::Accept`]. If it merges several inputs, the observer also
    /// receives a notice about each input that is not in order.
    Tell {
        /// Whether the observer also receives notices about inputs with several versions of an object.
        versions: bool,
    },
}

/// The context that a command runs in.
#[derive(Clone)]
#[non_exhaustive]
pub struct Context {
    /// The number of worker threads, at least 1.
    pub jobs: usize,
    /// The method of reading and writing files.
    pub io: IoMode,
    /// The format of the inputs.
    pub input_format: InputFormat,
    /// Whether inputs in text formats are treated as history files, whatever their content.
    pub input_is_history: bool,
    /// Whether inputs are change files. This matters for PBF and OPL, which look the same for changes and for a
    /// history.
    pub input_is_change: bool,
    /// The format of the change files, for commands that read both data and change files. For these commands,
    /// [`input_format`](Self::input_format) is the format of the data.
    pub change_format: InputFormat,
    /// Whether data files are accepted as change files. Each of their objects then counts as created or modified.
    pub data_as_changes: bool,
    /// The treatment of inputs that are not in canonical order or that are history files. Applies to the commands for
    /// which osmium needs ordered or current data.
    pub disorder: Disorder,
    /// The percentage by which an output may be smaller than the file that it replaces; `None` for no limit. If the
    /// output is smaller still, the command fails, and the file stays unchanged.
    pub max_shrink: Option<u8>,
    /// The receiver of messages and progress.
    pub(crate) observer: Arc<dyn Observer>,
    /// Counters and phase times of the run.
    pub stats: Arc<Stats>,
    /// Pairs of a path and the open file that commands read in place of the file at this path.
    pub(crate) files: Vec<(PathBuf, Arc<File>)>,
    pub(crate) cancellation: Cancellation,
    /// The watch over the blobs that are decoded; `None` if there is none.
    pub(crate) watch: Option<Arc<dyn PayloadWatch>>,
    /// Whether phases are reported to the observer and recorded in the statistics.
    pub(crate) reports_phases: bool,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}

impl Default for Context {
    /// Creates a context with one worker thread per core and an observer that does nothing.
    fn default() -> Self {
        Self::new(0)
    }
}

impl Context {
    /// Creates a context with `jobs` worker threads; 0 means one per core.
    pub fn new(jobs: usize) -> Self {
        let cores = || available_parallelism().map_or(1, usize::from);
        Self {
            jobs: if jobs == 0 { cores() } else { jobs },
            io: IoMode::default(),
            input_format: InputFormat::default(),
            input_is_history: false,
            input_is_change: false,
            change_format: InputFormat::default(),
            data_as_changes: false,
            disorder: Disorder::default(),
            max_shrink: None,
            observer: Arc::new(NoObserver),
            stats: Arc::default(),
            files: Vec::new(),
            cancellation: Cancellation::default(),
            watch: None,
            reports_phases: true,
        }
    }

    /// Returns the context of a task that runs beside others within a phase. It has `jobs` worker threads, and its
    /// phases are not reported.
    pub(super) fn for_task(&self, jobs: usize) -> Self {
        Self {
            jobs,
            reports_phases: false,
            ..self.clone()
        }
    }

    /// Returns the context with a watch over the blobs that are decoded.
    pub(crate) fn with_watch(self, watch: Arc<dyn PayloadWatch>) -> Self {
        let watch = Some(watch);
        Self { watch, ..self }
    }

    /// Returns the context with another receiver of messages and progress.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer, ..self }
    }

    /// Returns the context with an open file. A command that has an input with the path `path` reads the open file
    /// instead. The path need not exist in the file system. The file can be data in memory (`memfd_create` on Linux),
    /// or a temporary file without a name.
    ///
    /// ```
    /// use pbfhogg::{Context, PbfFile};
    /// use std::io::Write;
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/table-version-1.osm.pbf");
    /// let mut file = tempfile::tempfile()?;
    /// file.write_all(&std::fs::read(path)?)?;
    /// let ctx = Context::default().with_file("<memory>", file);
    /// assert!(PbfFile::open("<memory>".as_ref(), &ctx).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>, file: impl Into<Arc<File>>) -> Self {
        self.files.push((path.into(), file.into()));
        self
    }

    /// Returns the open file that commands read in place of `path`; `None` if they read `path` from the file system.
    pub(crate) fn file(&self, path: &Path) -> Option<&File> {
        let mut files = self.files.iter();
        let found = files.find(|(name, _)| name == path);
        found.map(|(_, file)| file.as_ref())
    }

    /// Returns the context with a cancellation of its own. Cancelling the original context also cancels the returned
    /// one. Cancelling the returned context does not cancel the original one.
    pub(crate) fn with_own_cancellation(self) -> Self {
        let cancellation = self.cancellation.child();
        Self {
            cancellation,
            ..self
        }
    }

    /// Cancels the commands of this context when they check for cancellation for the `number`-th time, counted from 0.
    /// Tests use this to make the moment of cancelling deterministic.
    #[cfg(feature = "unstable")]
    pub fn cancel_at_check(&self, number: u64) {
        self.cancellation.set_at_check(number);
    }

    /// Returns the number of checks for cancelling so far.
    #[cfg(feature = "unstable")]
    pub fn cancellation_checks(&self) -> u64 {
        self.cancellation.checks_made()
    }

    /// Cancels the commands that run in this context or a clone of it, as Ctrl-C does in the program. The commands
    /// finish the blobs in flight, fail with [`Error::Cancelled`](crate::Error::Cancelled), and leave no output. A
    /// cancelled context remains cancelled. May be called from any thread.
    ///
    /// ```
    /// use pbfhogg::{Context, ElementReader, ErrorKind};
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/table-version-1.osm.pbf");
    /// let ctx = Context::default();
    /// let reader = ElementReader::with_context(path, ctx.clone())?;
    /// ctx.cancel(); // as another thread would
    /// let error = reader.for_each(|_| ()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Cancelled);
    /// # Ok::<(), pbfhogg::Error>(())
    /// ```
    pub fn cancel(&self) {
        self.cancellation.set();
    }

    /// Returns the maximum number of bytes of blobs in flight (read, decoded or waiting to be written). It is 8 MiB,
    /// plus 4 MiB for each of at most 1024 jobs.
    pub const fn byte_budget(&self) -> u64 {
        (8 + 4 * if self.jobs > 1024 {
            1024
        } else {
            self.jobs as u64
        }) << 20
    }

    /// Returns the limits of a parallel phase whose items may hold `budget` bytes together.
    pub(crate) const fn limits(&self, budget: u64) -> PhaseLimits<'_> {
        PhaseLimits {
            jobs: self.jobs,
            budget,
            cancellation: &self.cancellation,
        }
    }

    /// Reports a problem that does not stop the command.
    pub fn warn(&self, message: impl AsRef<str>) {
        self.observer.warn(&abbreviate_message(message.as_ref()));
    }

    /// Reports a problem with advice; see [`Observer::warn_with_advice`].
    pub(crate) fn warn_with_advice(&self, message: impl AsRef<str>, advice: Advice) {
        let message = abbreviate_message(message.as_ref());
        self.observer.warn_with_advice(&message, &advice);
    }

    /// Reports a fact that may interest the user.
    pub fn info(&self, message: impl AsRef<str>) {
        self.observer.info(message.as_ref());
    }

    /// Reports a detail, for users who asked for details.
    pub fn debug(&self, message: impl AsRef<str>) {
        self.observer.debug(message.as_ref());
    }

    /// Announces `more` further phases, so that progress can be shown for the whole command.
    pub fn expect_phases(&self, more: u64) {
        if self.reports_phases {
            self.observer.phases_expected(more);
        }
    }

    /// Begins a phase that processes `total_bytes` bytes of input, 0 if unknown. The phase ends when the returned
    /// [`Phase`] is dropped.
    pub fn phase(&self, name: &'static str, total_bytes: u64) -> Phase {
        let receivers = || (self.observer.clone(), self.stats.clone());
        Phase::start(name, total_bytes, self.reports_phases.then(receivers))
    }
}
