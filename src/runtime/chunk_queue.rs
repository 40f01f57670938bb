//! Runs jobs that a caller adds one by one. Each job results in many chunks. The caller consumes the chunks in the
//! order of the jobs.
//!
//! The chunks of a job wait in a bounded channel, and the total size of all waiting chunks is bounded. The memory
//! therefore depends neither on the number of chunks nor on their size. Threads start the jobs in order, and the queue
//! always drains the first unfinished job. No thread waits forever.

use super::{Cancellation, Context, JobQueue, lock};
use crate::error::{Error, Result};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The capacity of the channel of each job, in chunks. The chunks wait there while earlier jobs are drained.
const MAX_CHUNKS: usize = 4;

/// Once the waiting chunks have this total size in bytes, the threads of all jobs except the first one block.
const MAX_BYTES: u64 = 32 << 20;

/// The maximum number of jobs per thread that are not drained. A job is drained when the caller has consumed all of its
/// chunks. Queued jobs keep the threads busy while the caller consumes chunks.
const MAX_JOBS: usize = 4;

/// The sending half of the channel for the chunks of a job.
pub(crate) struct ChunkSender<C> {
    /// The sender of the channel. `drop` sets it to `None`, which closes the channel before the bell rings.
    chunks: Option<SizedSender<C>>,
    /// The number of the job.
    job: u64,
    waiting: Arc<WaitingChunks>,
    bell: Arc<Bell>,
}

/// The sender of a channel that transmits each chunk of a job with its size in bytes.
type SizedSender<C> = Sender<Result<(C, u64)>>;
type SizedReceiver<C> = Receiver<Result<(C, u64)>>;

impl<C> ChunkSender<C> {
    /// Sends a chunk that takes `bytes` bytes of memory. Blocks while the channel is full, or while the chunks of all
    /// jobs take too much memory. Fails if the command has failed and dropped the queue.
    pub(crate) fn send(&self, chunk: C, bytes: usize) -> Result<()> {
        let bytes = bytes as u64;
        self.waiting.add(self.job, bytes);
        self.send_result(Ok((chunk, bytes)))
    }

    fn send_result(&self, chunk: Result<(C, u64)>) -> Result<()> {
        let sent = self
            .chunks
            .as_ref()
            .is_some_and(|chunks| chunks.send(chunk).is_ok());
        self.bell.ring();
        if sent {
            Ok(())
        } else {
            Err(Error::internal("the command has failed"))
        }
    }
}

impl<C> Drop for ChunkSender<C> {
    fn drop(&mut self) {
        self.chunks = None;
        self.bell.ring();
    }
}

/// The size of the chunks that wait to be consumed.
#[derive(Debug, Default)]
struct WaitingChunks {
    state: Mutex<WaitingState>,
    has_changed: Condvar,
}

#[derive(Debug, Default)]
struct WaitingState {
    bytes: u64,
    /// The number of the first job that is not drained.
    first: u64,
    has_ended: bool,
}

impl WaitingChunks {
    /// Adds the size of a chunk of a job. Blocks while the waiting chunks have [`MAX_BYTES`] or more. Never blocks for
    /// the first job, because the caller is consuming the chunks of this job.
    fn add(&self, job: u64, bytes: u64) {
        let is_full = |state: &mut WaitingState| {
            state.bytes >= MAX_BYTES && job != state.first && !state.has_ended
        };
        let waited = self.has_changed.wait_while(lock(&self.state), is_full);
        waited.unwrap_or_else(PoisonError::into_inner).bytes += bytes;
    }

    /// Changes the state, and wakes the threads that wait for a change.
    fn change(&self, change: impl FnOnce(&mut WaitingState)) {
        let mut state = lock(&self.state);
        change(&mut state);
        drop(state);
        self.has_changed.notify_all();
    }
}

/// Wakes the thread that waits for chunks. This thread waits on a condition variable instead of a channel. A channel of
/// crossbeam calls `sched_yield` before it sleeps. If all processors are busy, the thread would lose its turn for some
/// milliseconds, and the other threads would run out of jobs meanwhile.
#[derive(Debug, Default)]
struct Bell {
    has_rung: Mutex<bool>,
    rings: Condvar,
}

impl Bell {
    /// Wakes the thread that waits, or lets the next call of [`wait`](Self::wait) return at once.
    fn ring(&self) {
        *lock(&self.has_rung) = true;
        self.rings.notify_one();
    }

    /// Waits until the bell rings. Returns at once if it has rung since the last call.
    fn wait(&self) {
        let waited = self
            .rings
            .wait_while(lock(&self.has_rung), |has_rung| !*has_rung);
        *waited.unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// A queue of jobs. It owns the threads that run the jobs, and the chunks that the caller has not consumed yet.
pub(crate) struct ChunkQueue<J, C> {
    /// The channels of the jobs that are not drained yet. This field is declared before `queue`, so it is dropped
    /// first. Once a channel is dropped, sending a chunk to it fails, so the threads that `queue` joins can end.
    waiting: VecDeque<SizedReceiver<C>>,
    queue: JobQueue<(J, ChunkSender<C>)>,
    /// The number of jobs that were added.
    added: u64,
    chunks: Arc<WaitingChunks>,
    /// The maximum number of jobs that are not drained.
    max_jobs: usize,
    bell: Arc<Bell>,
    cancellation: Cancellation,
}

impl<J: Send + 'static, C: Send + 'static> ChunkQueue<J, C> {
    /// Starts [`Context::jobs`] threads that call `work` with each job. `init` creates the scratch value of a thread.
    /// If `work` fails or panics, an error is sent as the last chunk of the job, and the thread creates a new scratch
    /// value. Once the context is cancelled, no further job is begun, and no further chunk is passed to the caller.
    pub(crate) fn start<S>(
        name: &'static str,
        ctx: &Context,
        init: impl Fn() -> S + Clone + Send + 'static,
        work: impl Fn(&mut S, J, &ChunkSender<C>) -> Result<()> + Clone + Send + 'static,
    ) -> Result<Self> {
        let (jobs, cancellation) = (ctx.jobs, ctx.cancellation.clone());
        let of_threads = cancellation.clone();
        let work = move |jobs: &Receiver<(J, ChunkSender<C>)>| {
            let mut scratch = init();
            for (job, chunks) in jobs {
                let done = catch_unwind(AssertUnwindSafe(|| {
                    of_threads.check()?;
                    work(&mut scratch, job, &chunks)
                }));
                let stopped = |_| Err(Error::internal(format!("a thread '{name}' panicked")));
                if let Err(error) = done.unwrap_or_else(stopped) {
                    scratch = init();
                    // Sending fails only if the command has failed and dropped the receiver. Nobody waits for the error
                    // then.
                    let _ = chunks.send_result(Err(error));
                }
            }
        };
        let max_jobs = jobs.max(1) * MAX_JOBS;
        Ok(Self {
            waiting: VecDeque::new(),
            queue: JobQueue::start(name, jobs, max_jobs, work)?,
            added: 0,
            chunks: Arc::default(),
            max_jobs,
            bell: Arc::default(),
            cancellation,
        })
    }

    /// Adds a job. Calls `take` with chunks that are ready, and waits for chunks while there are too many jobs.
    pub(crate) fn push(&mut self, job: J, mut take: impl FnMut(C) -> Result<()>) -> Result<()> {
        while self.waiting.len() >= self.max_jobs {
            self.take_next(&mut take)?;
        }
        let (sender, chunks) = bounded(MAX_CHUNKS);
        self.waiting.push_back(chunks);
        let sender = ChunkSender {
            chunks: Some(sender),
            job: self.added,
            waiting: self.chunks.clone(),
            bell: self.bell.clone(),
        };
        self.added += 1;
        self.queue.send((job, sender))?;
        self.take_ready(&mut take).map(drop)
    }

    /// Waits for all chunks of all jobs, and calls `take` with each chunk.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(C) -> Result<()>) -> Result<()> {
        while !self.waiting.is_empty() {
            self.take_next(&mut take)?;
        }
        Ok(())
    }

    /// Waits until the first job that is not drained has a chunk or has ended. Calls `take` with the chunks that are
    /// ready.
    fn take_next(&mut self, take: &mut impl FnMut(C) -> Result<()>) -> Result<()> {
        while self.take_ready(take)? {
            self.bell.wait();
        }
        Ok(())
    }

    /// Calls `take` with the chunks of the first job that are ready. Returns `true` if the caller has to wait: no chunk
    /// was ready, and the job has not ended.
    fn take_ready(&mut self, take: &mut impl FnMut(C) -> Result<()>) -> Result<bool> {
        let mut has_none = true;
        loop {
            let next = self.waiting.front().map(Receiver::try_recv);
            match next {
                Some(Ok(chunk)) => {
                    let (chunk, bytes) = chunk?;
                    self.chunks.change(|waiting| waiting.bytes -= bytes);
                    self.cancellation.check()?;
                    take(chunk)?;
                }
                Some(Err(TryRecvError::Empty)) => return Ok(has_none),
                // The sender is gone, so the job has no more chunks.
                Some(Err(TryRecvError::Disconnected)) => {
                    self.waiting.pop_front();
                    self.chunks.change(|waiting| waiting.first += 1);
                    return Ok(false);
                }
                None => return Ok(false),
            }
            has_none = false;
        }
    }
}

impl<J, C> Drop for ChunkQueue<J, C> {
    fn drop(&mut self) {
        // Wakes the threads that wait to send a chunk. Sending fails when the channels are dropped.
        self.chunks.change(|waiting| waiting.has_ended = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_in_job_order_and_an_error_after_earlier_chunks() {
        for threads in [1, 3] {
            let work = |count: &mut u32, job: u32, chunks: &ChunkSender<(u32, u32)>| {
                *count += 1;
                for chunk in 0..job % 7 {
                    chunks.send((job, chunk), 10 << 20)?;
                }
                match job {
                    90 => panic!("a panic is an error"),
                    _ => Ok(()),
                }
            };
            let mut queue = ChunkQueue::start("test", &Context::new(threads), || 0, work).unwrap();
            let mut taken = Vec::new();
            let mut take = |chunk| {
                taken.push(chunk);
                Ok(())
            };
            let pushed = (0..100).try_for_each(|job| queue.push(job, &mut take));
            let done = pushed.and_then(|()| queue.drain(&mut take));
            assert!(done.unwrap_err().to_string().contains("panicked"));
            let expected = (0..=90).flat_map(|job| (0..job % 7).map(move |chunk| (job, chunk)));
            assert_eq!(taken, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_command_that_fails_leaves_no_thread_that_waits() {
        let work = |(): &mut (), _: u32, chunks: &ChunkSender<u32>| {
            (0..1000).try_for_each(|chunk| chunks.send(chunk, 10 << 20))
        };
        let mut queue = ChunkQueue::start("test", &Context::new(2), || (), work).unwrap();
        for job in 0..2 {
            let _ = queue.push(job, |_| Err(Error::Usage("full".into())));
        }
    }

    #[test]
    fn a_cancelled_queue_takes_no_more_chunks() {
        let ctx = Context::new(2);
        let work = |(): &mut (), job: u32, chunks: &ChunkSender<u32>| chunks.send(job, 0);
        let mut queue = ChunkQueue::start("test", &ctx, || (), work).unwrap();
        let mut taken = 0;
        let mut take = |_| {
            taken += 1;
            if taken == 20 {
                ctx.cancel();
            }
            Ok(())
        };
        let pushed = (0..1000).try_for_each(|job| queue.push(job, &mut take));
        let done = pushed.and_then(|()| queue.drain(&mut take));
        assert!(matches!(done, Err(Error::Cancelled)));
        assert_eq!(taken, 20);
    }
}
