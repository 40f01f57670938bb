//! The runtime of all commands: context, progress, statistics, and the ordered parallel phase.

mod batches;
mod cancellation;
mod chunk_queue;
mod context;
mod job_queue;
mod lock;
mod observer;
mod parallel_sort;
mod pass;
mod payload_watch;
mod phase;
#[cfg(test)]
mod phase_tests;
mod stats;
mod tasks;
mod threads;
mod ticket_lock;

pub use batches::Batches;
pub(crate) use cancellation::Cancellation;
pub(crate) use chunk_queue::{ChunkQueue, ChunkSender};
pub use context::{Context, Disorder, InputFormat, IoMode};
pub(crate) use job_queue::JobQueue;
pub(crate) use lock::{into_mutex_value, lock};
pub use observer::{NoObserver, Observer, human_bytes};
pub(crate) use parallel_sort::{sort_by, sort_unstable_by};
pub(crate) use pass::{Pass, PassResults, WorkItem};
pub(crate) use payload_watch::PayloadWatch;
pub(crate) use phase::{PhaseLimits, parallel_results_phase, parallel_single_result_phase};
pub use stats::{Counter, Phase, PhaseTimes, Stats, StatsReport};
pub(crate) use tasks::run_tasks;
pub(crate) use ticket_lock::{TicketLock, Turn};
