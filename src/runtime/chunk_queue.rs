//! Runs jobs that each result in many chunks. The chunks are consumed in the order of the jobs.
//!
//! The chunks of a job wait in a bounded channel, so the memory does not depend on the number of chunks. Threads start
//! the jobs in order, and the queue always drains the first unfinished job, so no thread waits forever.

use super::JobQueue;
use crate::error::{Error, Result};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The capacity of the channel of each job, in chunks. The chunks wait there while earlier jobs are drained.
const MAX_CHUNKS: usize = 4;

/// The sending half of the channel for the chunks of a job.
pub(crate) struct ChunkSender<C>(Sender<Result<C>>);

impl<C> ChunkSender<C> {
    /// Sends a chunk. Blocks while the channel is full. Fails if the command has failed.
    pub(crate) fn send(&self, chunk: C) -> Result<()> {
        let sent = self.0.send(Ok(chunk));
        sent.map_err(|_| Error::Internal("the command has failed".into()))
    }
}

/// A queue of jobs, the threads that run them, and the chunks that have not been consumed.
pub(crate) struct ChunkQueue<J, C> {
    /// The channels of the jobs that are not drained yet. This field is declared before `queue`, so it is dropped
    /// first. Once a channel is dropped, sending a chunk to it fails, so the threads that `queue` joins can end.
    waiting: VecDeque<Receiver<Result<C>>>,
    queue: JobQueue<(J, ChunkSender<C>)>,
}

impl<J: Send + 'static, C: Send + 'static> ChunkQueue<J, C> {
    /// Starts threads that call `work` with each job. `init` creates the scratch value of a thread. If `work` fails or
    /// panics, an error is sent as the last chunk of the job, and the thread creates a new scratch value.
    pub(crate) fn start<S>(
        name: &'static str,
        threads: usize,
        init: impl Fn() -> S + Clone + Send + 'static,
        work: impl Fn(&mut S, J, &ChunkSender<C>) -> Result<()> + Clone + Send + 'static,
    ) -> Result<Self> {
        Self::start_with_flush(name, threads, init, work, |_| ())
    }

    /// Starts threads as [`start`](Self::start) does. The threads also call `flush` after each job, when all chunks of
    /// the job have been sent.
    pub(crate) fn start_with_flush<S>(
        name: &'static str,
        threads: usize,
        init: impl Fn() -> S + Clone + Send + 'static,
        work: impl Fn(&mut S, J, &ChunkSender<C>) -> Result<()> + Clone + Send + 'static,
        flush: impl Fn(&mut S) + Clone + Send + 'static,
    ) -> Result<Self> {
        let work = move |jobs: &Receiver<(J, ChunkSender<C>)>| {
            let mut scratch = init();
            for (job, chunks) in jobs {
                let done = catch_unwind(AssertUnwindSafe(|| work(&mut scratch, job, &chunks)));
                let stopped = |_| Err(Error::Internal(format!("a thread '{name}' panicked")));
                if let Err(error) = done.unwrap_or_else(stopped) {
                    scratch = init();
                    // Sending fails only if the command has failed and dropped the receiver. Nobody waits for the error
                    // then.
                    let _ = chunks.0.send(Err(error));
                }
                drop(chunks);
                flush(&mut scratch);
            }
        };
        Ok(Self {
            waiting: VecDeque::new(),
            queue: JobQueue::start(name, threads, work)?,
        })
    }

    /// Adds a job. Calls `take` with each chunk that is ready, and waits for chunks while the queue is full.
    pub(crate) fn push(&mut self, job: J, mut take: impl FnMut(C) -> Result<()>) -> Result<()> {
        let (sender, chunks) = bounded(MAX_CHUNKS);
        self.waiting.push_back(chunks);
        let mut job = (job, ChunkSender(sender));
        // A full queue contains earlier jobs, whose chunks have to be taken first.
        while let Some(back) = self.queue.try_send(job)? {
            job = back;
            self.take_next(&mut take)?;
        }
        self.take_ready(&mut take)
    }

    /// Waits for all chunks of all jobs, and calls `take` with each chunk.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(C) -> Result<()>) -> Result<()> {
        while !self.waiting.is_empty() {
            self.take_next(&mut take)?;
        }
        Ok(())
    }

    /// Waits for the next chunk of the first job that is not drained, and calls `take` with the chunk.
    fn take_next(&mut self, take: &mut impl FnMut(C) -> Result<()>) -> Result<()> {
        let next = self.waiting.front().map(Receiver::recv);
        match next {
            Some(Ok(chunk)) => take(chunk?),
            // The sender is gone, so the job has no more chunks.
            Some(Err(_)) => {
                self.waiting.pop_front();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Calls `take` with each chunk that is ready, without waiting.
    fn take_ready(&mut self, take: &mut impl FnMut(C) -> Result<()>) -> Result<()> {
        loop {
            let next = self.waiting.front().map(Receiver::try_recv);
            match next {
                Some(Ok(chunk)) => take(chunk?)?,
                None | Some(Err(TryRecvError::Empty)) => return Ok(()),
                Some(Err(TryRecvError::Disconnected)) => {
                    self.waiting.pop_front();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_in_the_order_of_jobs_and_an_error_behind_the_chunks_before_it() {
        for threads in [1, 3] {
            let work = |count: &mut u32, job: u32, chunks: &ChunkSender<(u32, u32)>| {
                *count += 1;
                for chunk in 0..job % 7 {
                    chunks.send((job, chunk))?;
                }
                match job {
                    90 => panic!("a panic is an error"),
                    _ => Ok(()),
                }
            };
            let mut queue = ChunkQueue::start("test", threads, || 0, work).unwrap();
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
            (0..1000).try_for_each(|chunk| chunks.send(chunk))
        };
        let mut queue = ChunkQueue::start("test", 2, || (), work).unwrap();
        for job in 0..2 {
            let _ = queue.push(job, |_| Err(Error::Usage("full".into())));
        }
    }
}
