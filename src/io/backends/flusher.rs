//! Flushes an output to disk while it is still being written.

use crate::runtime::lock;
use crate::system;
use crossbeam_channel::{Sender, bounded};
use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The number of written bytes between two flushes. A flush costs a commit of the file system's journal.
const FLUSH_LEN: u64 = 128 << 20;

/// Flushes a file regularly, by default after each [`FLUSH_LEN`] written bytes. So the flush at the end has little left
/// to do. Starting writeback alone would not be enough: the data may only reach the cache of the disk, and the flush at
/// the end would wait until the disk has emptied its cache.
#[derive(Debug)]
pub(super) struct Flusher {
    /// The number of written bytes between two flushes.
    interval_bytes: u64,
    /// The number of bytes that were written.
    written: AtomicU64,
    /// The thread that flushes; `None` before the first flush.
    thread: Mutex<Option<FlushThread>>,
}

/// A thread that flushes a file when it is asked to. After a failed flush, it ends with the error.
#[derive(Debug)]
struct FlushThread {
    /// Requests to flush the file. At most one request waits.
    requests: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl FlushThread {
    fn start(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        let (requests, requested) = bounded(1);
        let thread = std::thread::Builder::new()
            .name("flush".into())
            .spawn(move || requested.iter().try_for_each(|()| system::sync_data(&file)))?;
        Ok(Self { requests, thread })
    }
}

impl Flusher {
    pub(super) const fn new() -> Self {
        Self::with_interval(FLUSH_LEN)
    }

    /// Creates a flusher that flushes whenever `interval_bytes` more bytes have been written.
    pub(super) const fn with_interval(interval_bytes: u64) -> Self {
        Self {
            interval_bytes,
            written: AtomicU64::new(0),
            thread: Mutex::new(None),
        }
    }

    /// Counts `len` bytes that were written to `file`, and requests a flush if it is due. Does not wait for the flush.
    pub(super) fn count_written(&self, file: &File, len: u64) {
        let before = self.written.fetch_add(len, Ordering::Relaxed);
        if before / self.interval_bytes == (before + len) / self.interval_bytes {
            return;
        }
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            // If the thread cannot be started, the flush at the end does all of the work.
            *thread = FlushThread::start(file).ok();
        }
        if let Some(thread) = &*thread {
            // The request is dropped if another one waits, or if the thread has ended with an error.
            let _ = thread.requests.try_send(());
        }
    }

    /// Waits for the flushes that were requested, and ends the thread. Fails if one of these flushes has failed. The
    /// system reports an error of the disk only once, so a later flush can succeed although data was lost.
    pub(super) fn end(&self) -> io::Result<()> {
        let Some(FlushThread { requests, thread }) = lock(&self.thread).take() else {
            return Ok(());
        };
        drop(requests);
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that flushes has panicked")))
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_flush_is_reported_at_the_end() {
        // A device without a disk cannot be flushed.
        let device = File::open("/dev/null").unwrap();
        let flusher = Flusher::with_interval(100);
        flusher.count_written(&device, 99);
        assert!(lock(&flusher.thread).is_none(), "no flush was due");
        flusher.count_written(&device, 1);
        assert!(flusher.end().is_err());
        assert!(flusher.end().is_ok(), "the error is reported once");
    }
}
