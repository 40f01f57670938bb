//! An executor with a small pool of threads that write chunks, through the page cache or with `O_DIRECT`.

use super::aligned::{ALIGNMENT, AlignedBuffer};
use super::chunked::{Chunk, ChunkSegment, Executor, WriteJob};
use super::destination::Destination;
use crate::error::{Error, Result};
use crate::runtime::{Context, lock};
use crate::system;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The number of threads of a pool. Two are enough because writes wait for the disk, not for a core.
const THREADS: usize = 2;
/// The maximum number of jobs that wait for a thread.
const QUEUE_LEN: usize = 8;

/// Threads that write the portions of a file, each portion at its offset.
pub(crate) struct FilePool(Pool);

impl std::fmt::Debug for FilePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilePool").finish_non_exhaustive()
    }
}

impl FilePool {
    /// Starts threads that write to `file`. `path` is for messages. With `flushes`, the file is flushed to disk while
    /// it is written.
    pub(crate) fn start(path: &Path, file: &File, flushes: bool) -> Result<Self> {
        let failed = |error| Error::io(path, "cannot write", error);
        let file = file.try_clone().map_err(failed)?;
        let destination = Destination::new(path.to_owned(), file, true, 0, &Context::default())
            .with_flushing(flushes);
        Pool::start(Arc::new(destination), None).map(Self)
    }

    /// Queues a portion. Fails if an earlier portion could not be written.
    pub(crate) fn write(&mut self, bytes: Vec<u8>, offset: u64) -> Result<()> {
        let segments = vec![ChunkSegment::Bytes(bytes)];
        self.0.submit(WriteJob::Write(Chunk { offset, segments }))
    }

    /// Waits until all portions are written. Fails if one could not be written, or if a flush has failed.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.0.wait()?;
        self.0.shared.destination.wait_for_flushes()
    }
}

/// An executor that runs jobs in its own threads.
pub(crate) struct Pool {
    /// The queue of jobs; `None` once the pool accepts no more jobs.
    queue: Option<Sender<WriteJob>>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<PoolState>,
}

struct PoolState {
    destination: Arc<Destination>,
    /// A second descriptor of the output, opened with `O_DIRECT`.
    direct: Option<File>,
    /// Whether to use direct writes. Set to false when the file system refuses one.
    direct_works: AtomicBool,
    /// Whether the threads skip the remaining jobs, because a job has failed or the output is abandoned.
    failed: AtomicBool,
    /// The error of the failed job at the lowest offset of the output, with that offset.
    failure: Mutex<Option<(u64, Error)>>,
}

impl Pool {
    /// Starts a pool that writes to `destination`. `direct` is the same file opened with `O_DIRECT`. If it is set,
    /// writes bypass the page cache until the file system refuses one of them. Fails if no thread can be started.
    pub(crate) fn start(destination: Arc<Destination>, direct: Option<File>) -> Result<Self> {
        let (queue, jobs) = bounded(QUEUE_LEN);
        let shared = Arc::new(PoolState {
            direct_works: AtomicBool::new(direct.is_some()),
            destination,
            direct,
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        });
        let mut pool = Self {
            queue: Some(queue),
            threads: Vec::new(),
            shared,
        };
        for _ in 0..THREADS {
            let (jobs, shared) = (jobs.clone(), pool.shared.clone());
            let thread = std::thread::Builder::new()
                .name("write".into())
                .spawn(move || shared.run_jobs(&jobs));
            match thread {
                Ok(thread) => pool.threads.push(thread),
                // One thread is enough, so a failure to start a further thread is no error.
                Err(_) if !pool.threads.is_empty() => break,
                Err(error) => {
                    return Err(Error::io(
                        pool.shared.destination.path(),
                        "cannot start a writer thread",
                        error,
                    ));
                }
            }
        }
        Ok(pool)
    }

    /// Fails with the error of a failed job. Only the first call after the failure returns the error.
    fn check_for_failure(&self) -> Result<()> {
        let mut failure = lock(&self.shared.failure);
        match failure.take() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Closes the queue and waits until the threads have run all jobs and ended. Returns false if a thread panicked.
    fn join(&mut self) -> bool {
        self.queue = None;
        let results: Vec<bool> = self
            .threads
            .drain(..)
            .map(|thread| thread.join().is_ok())
            .collect();
        results.into_iter().all(|fine| fine)
    }
}

impl Executor for Pool {
    fn copies_in_kernel(&self) -> bool {
        self.shared.direct.is_none()
    }

    fn submit(&mut self, job: WriteJob) -> Result<()> {
        let taken = match &self.queue {
            Some(queue) if !self.shared.failed.load(Ordering::Acquire) => queue.send(job).is_ok(),
            _ => false,
        };
        if taken {
            return Ok(());
        }
        self.wait()?;
        Err(Error::internal("the writer threads have ended"))
    }

    fn wait(&mut self) -> Result<()> {
        let fine = self.join();
        self.check_for_failure()?;
        if fine {
            Ok(())
        } else {
            Err(Error::internal("a writer thread panicked"))
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // If jobs are still queued, the output is being abandoned, and the threads skip these jobs.
        self.shared.failed.store(true, Ordering::Release);
        self.join();
    }
}

impl PoolState {
    /// Runs jobs until the queue is closed. After a failure, receives the remaining jobs without running them.
    fn run_jobs(&self, jobs: &Receiver<WriteJob>) {
        let mut buffer = AlignedBuffer::default();
        for job in jobs {
            if self.failed.load(Ordering::Acquire) {
                continue;
            }
            let (offset, done) = match job {
                WriteJob::Write(chunk) => (chunk.offset, self.write(&chunk, &mut buffer)),
                WriteJob::Copy(input, transfer) => {
                    (transfer.to, self.destination.copy(&input, transfer))
                }
            };
            if let Err(error) = done {
                self.fail(offset, error);
            }
        }
    }

    /// Records the error of the job at `offset` of the output.
    fn fail(&self, offset: u64, error: Error) {
        let mut failure = lock(&self.failure);
        if failure.as_ref().is_none_or(|(first, _)| offset < *first) {
            *failure = Some((offset, error));
        }
        self.failed.store(true, Ordering::Release);
    }

    /// Writes a chunk, with `O_DIRECT` if that works.
    fn write(&self, chunk: &Chunk, buffer: &mut AlignedBuffer) -> Result<()> {
        let len = chunk.len();
        if let Some(direct) = self
            .direct
            .as_ref()
            .filter(|_| self.direct_works.load(Ordering::Relaxed))
        {
            let bytes = buffer.slice(len);
            chunk.fill(bytes)?;
            return self.write_direct(direct, bytes, chunk.offset);
        }
        if let Some(mut slices) = chunk.slices() {
            self.destination
                .write_slices_at(&mut slices, chunk.offset)?;
        } else {
            let bytes = buffer.slice(len);
            chunk.fill(bytes)?;
            self.destination.write_at(bytes, chunk.offset)?;
        }
        self.destination
            .start_writeback_of_chunk(chunk.offset, len as u64);
        Ok(())
    }

    /// Writes the block-aligned part of a chunk with `O_DIRECT` and the remainder of the chunk through the page cache.
    /// If the file system refuses the direct write, warns once and writes all of the chunk through the page cache.
    fn write_direct(&self, direct: &File, bytes: &[u8], offset: u64) -> Result<()> {
        let aligned = if offset.is_multiple_of(ALIGNMENT as u64) {
            bytes.len() / ALIGNMENT * ALIGNMENT
        } else {
            0
        };
        let (blocks, tail) = bytes.split_at(aligned);
        match system::write_at(direct, blocks, offset) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                if self.direct_works.swap(false, Ordering::Relaxed) {
                    self.destination
                        .warn("the file system refuses direct writes (EINVAL): writing through the page cache");
                }
                self.destination.write_at(blocks, offset)?;
            }
            Err(error) => return Err(self.destination.write_error(error)),
        }
        self.destination.write_at(tail, offset + aligned as u64)
    }
}
