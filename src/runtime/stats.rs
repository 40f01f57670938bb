//! The statistics of a run: the times of its phases, and counters. They can be serialised as JSON.

use super::lock::lock;
use super::observer::Observer;
use crate::system::{cpu_time, peak_memory};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A count that several threads may add to at the same time.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to the count.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Returns the count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares the counters of a run, and the snapshot that has their counts.
macro_rules! counters {
    ($($(#[$about:meta])* $counter:ident,)*) => {
        /// The counters and phases of one run.
        #[derive(Debug, Default)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$about])* pub $counter: Counter,)*
            phases: Mutex<Vec<PhaseTimes>>,
        }

        /// A snapshot of [`Stats`] that can be serialised.
        #[derive(Debug, Clone, Serialize)]
        #[non_exhaustive]
        pub struct StatsReport {
            /// The phases in the order in which they ended.
            pub phases: Vec<PhaseTimes>,
            /// Processor time of the process in seconds.
            pub cpu_seconds: f64,
            /// The maximum resident memory of the process in bytes; `None` if the system does not report it.
            pub peak_memory_bytes: Option<u64>,
            $($(#[$about])* pub $counter: u64,)*
        }

        impl Stats {
            /// Returns a snapshot of the counters and of the phases that have ended.
            pub fn report(&self) -> StatsReport {
                StatsReport {
                    phases: self.phases().clone(),
                    cpu_seconds: cpu_time().as_secs_f64(),
                    peak_memory_bytes: peak_memory(),
                    $($counter: self.$counter.get(),)*
                }
            }
        }
    };
}

counters! {
    /// Bytes read from input files into memory.
    bytes_read,
    /// Bytes of payload that were decompressed.
    bytes_decoded,
    /// Bytes written to outputs from memory.
    bytes_written,
    /// Bytes copied from inputs to outputs without decoding.
    bytes_copied,
    /// The part of `bytes_copied` for which the input and the output share blocks on disk.
    bytes_shared,
    /// Blobs that a pass skipped without decoding them.
    blobs_skipped,
    /// Skipped blobs that no pass of the run has decoded. Their contents are known only from an index.
    blobs_trusted,
    /// Blobs that were copied unchanged.
    blobs_copied,
    /// Blobs that were decoded.
    blobs_decoded,
    /// Newly encoded blobs that were written.
    blobs_rewritten,
    /// Objects of changes that were left out because they lie outside of the region of an updated file.
    objects_cut_away,
}

/// The times of one phase.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PhaseTimes {
    /// The name of the phase.
    pub name: &'static str,
    /// Elapsed time in seconds.
    pub wall_seconds: f64,
    /// Processor time of all threads in seconds.
    pub cpu_seconds: f64,
}

impl Stats {
    /// Counts a blob that a pass skips. `verified` states whether the run has decoded the blob.
    pub(crate) fn count_skipped_blob(&self, verified: bool) {
        self.blobs_skipped.add(1);
        if !verified {
            self.blobs_trusted.add(1);
        }
    }

    fn phases(&self) -> MutexGuard<'_, Vec<PhaseTimes>> {
        lock(&self.phases)
    }
}

/// A running phase. Dropping this value ends the phase and records its times.
pub struct Phase {
    name: &'static str,
    started: Instant,
    cpu_before: Duration,
    /// The receivers of the progress and of the times; `None` if the phase is not reported.
    receivers: Option<(Arc<dyn Observer>, Arc<Stats>)>,
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Phase")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Phase {
    pub(crate) fn start(
        name: &'static str,
        total_bytes: u64,
        receivers: Option<(Arc<dyn Observer>, Arc<Stats>)>,
    ) -> Self {
        if let Some((observer, _)) = &receivers {
            observer.phase_started(name, total_bytes);
        }
        Self {
            name,
            started: Instant::now(),
            cpu_before: cpu_time(),
            receivers,
        }
    }

    /// Reports that the progress of the phase counts rows, not bytes.
    pub(super) fn report_row_progress(&self) {
        if let Some((observer, _)) = &self.receivers {
            observer.counts_rows();
        }
    }

    /// Reports that the phase has processed `bytes` more bytes of input.
    pub fn advance(&self, bytes: u64) {
        if let Some((observer, _)) = &self.receivers {
            observer.advanced(bytes);
        }
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        let Some((observer, stats)) = &self.receivers else {
            return;
        };
        let times = PhaseTimes {
            name: self.name,
            wall_seconds: self.started.elapsed().as_secs_f64(),
            cpu_seconds: cpu_time().saturating_sub(self.cpu_before).as_secs_f64(),
        };
        stats.phases().push(times);
        observer.phase_ended();
    }
}
