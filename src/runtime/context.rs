//! What every command runs in: how many cores, who watches, what is counted.

use super::observer::{NoObserver, Observer};
use super::stats::{Phase, Stats};
use std::sync::Arc;
use std::thread::available_parallelism;

/// How bytes get from and to the disk. The bytes are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IoMode {
    /// [`IoMode::Buffered`] or [`IoMode::Parallel`], whichever suits the size of the output.
    #[default]
    Auto,
    /// Through the page cache, written by the thread that has the bytes.
    Buffered,
    /// Through the page cache, written by a few threads.
    Parallel,
    /// Past the page cache (`O_DIRECT`), reads too. Where the file system refuses, through it, with a
    /// warning.
    Direct,
    /// By io_uring. Where the system refuses, [`IoMode::Parallel`], with a warning.
    IoUring,
}

/// What format an input is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputFormat {
    /// What its content says.
    #[default]
    Auto,
    /// PBF.
    Pbf,
    /// OSM XML.
    Osm,
    /// OPL.
    Opl,
}

/// What a command runs in.
#[derive(Clone)]
pub struct Context {
    /// Worker threads, at least 1.
    pub jobs: usize,
    /// How bytes get from and to the disk.
    pub io: IoMode,
    /// What format inputs are in.
    pub input_format: InputFormat,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
    /// What is counted.
    pub stats: Arc<Stats>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}

impl Default for Context {
    /// Every core, nobody watching.
    fn default() -> Self {
        Self::new(0)
    }
}

impl Context {
    /// A context with that many worker threads; 0 means every core.
    pub fn new(jobs: usize) -> Self {
        let cores = || available_parallelism().map_or(1, usize::from);
        Self {
            jobs: if jobs == 0 { cores() } else { jobs },
            io: IoMode::default(),
            input_format: InputFormat::default(),
            observer: Arc::new(NoObserver),
            stats: Arc::default(),
        }
    }

    /// Bytes of blobs that may be in flight at a time: read, decoded or waiting to be written.
    pub const fn byte_budget(&self) -> u64 {
        (8 + 4 * if self.jobs > 1024 {
            1024
        } else {
            self.jobs as u64
        }) << 20
    }

    /// Tells the user something that is no error.
    pub fn warn(&self, message: impl AsRef<str>) {
        self.observer.warn(message.as_ref());
    }

    /// Tells the user something that may be of interest.
    pub fn info(&self, message: impl AsRef<str>) {
        self.observer.info(message.as_ref());
    }

    /// Tells the user something that is a detail.
    pub fn debug(&self, message: impl AsRef<str>) {
        self.observer.debug(message.as_ref());
    }

    /// Says that the command goes through so many more phases, so that progress can be shown of the whole.
    pub fn expect_phases(&self, more: u64) {
        self.observer.phases_expected(more);
    }

    /// Begins a phase; it ends when the result is dropped.
    pub fn phase(&self, name: &'static str, total_bytes: u64) -> Phase {
        Phase::start(name, total_bytes, self.observer.clone(), self.stats.clone())
    }
}
