//! The output file as all backends see it: writes and copies at given offsets.

use crate::error::{Error, Result};
use crate::io::input::Input;
use crate::io::system;
use crate::io::system::Transfer;
use crate::runtime::{Context, Observer, Stats};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most bytes that one kernel copy is asked for, so that the disk is set to work on them soon.
const COPY_LEN: u64 = 16 << 20;
/// Written bytes after which the disk is set to work on them.
pub(super) const WRITEBACK_LEN: u64 = 16 << 20;
/// Bytes of a copy by reading and writing.
const CHUNK_LEN: usize = 1 << 20;
/// Ranges shorter than this are not worth sharing blocks for.
const LEAST_CLONE: u64 = 64 << 10;
/// How far behind the writes pages of a large output are dropped from memory.
const DROP_BEHIND: u64 = 64 << 20;

/// An output file. Shared by the threads of a backend.
pub(crate) struct Destination {
    path: PathBuf,
    file: File,
    /// Whether this is a file, rather than a pipe or a device.
    is_file: bool,
    clones: AtomicBool,
    kernel_copies: AtomicBool,
    /// What is a multiple of this can share blocks with another file.
    block_len: u64,
    drop_behind: bool,
    stats: Arc<Stats>,
    observer: Arc<dyn Observer>,
}

impl Destination {
    /// `path` is for messages; `expected_bytes` is about how long the output will be.
    pub(crate) fn new(
        path: PathBuf,
        file: File,
        is_file: bool,
        expected_bytes: u64,
        ctx: &Context,
    ) -> Self {
        let block_len = system::block_len(&file).max(4096);
        Self {
            path,
            file,
            is_file,
            clones: AtomicBool::new(is_file),
            kernel_copies: AtomicBool::new(is_file),
            block_len,
            drop_behind: is_file && system::is_large(expected_bytes),
            stats: ctx.stats.clone(),
            observer: ctx.observer.clone(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn stats(&self) -> &Stats {
        &self.stats
    }

    pub(super) fn warn(&self, message: &str) {
        self.observer
            .warn(&format!("{}: {message}", self.path.display()));
    }

    pub(super) fn failed(&self, error: std::io::Error) -> Error {
        Error::io(&self.path, "cannot write", error)
    }

    /// Writes bytes; `offset` is where the output of a stream stands.
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let written = if self.is_file {
            system::write_at(&self.file, bytes, offset)
        } else {
            system::write(&self.file, bytes)
        };
        written.map_err(|error| self.failed(error))
    }

    /// Sets the disk to work on a range that was written, so that it is busy while we are and the
    /// final `fsync` finds little to do. Of a large output, what lies well behind is dropped from
    /// memory, so that the machine keeps what it held before.
    pub(super) fn start_writeback(&self, from: u64, len: u64) {
        if !self.is_file {
            return;
        }
        system::release(&self.file, from, len);
        if self.drop_behind && from >= DROP_BEHIND {
            system::release(&self.file, from - DROP_BEHIND, len);
        }
    }

    /// Writes what the output starts with, and gives back space that was reserved beyond its end.
    pub(super) fn end(&self, start: &[u8], len: u64) -> Result<()> {
        if !self.is_file {
            return Ok(());
        }
        self.write_at(start, 0)?;
        self.file.set_len(len).map_err(|error| self.failed(error))
    }

    /// As [`start_writeback`](Self::start_writeback) for chunks that are written in any order: the disk is told of many
    /// at a time.
    pub(super) fn start_writeback_of_chunk(&self, from: u64, len: u64) {
        let end = from + len;
        if end.is_multiple_of(WRITEBACK_LEN) {
            self.start_writeback(end - WRITEBACK_LEN, WRITEBACK_LEN);
        }
    }

    /// Copies a range of `input`: shares blocks where the file system can, else within the kernel, else
    /// by reading and writing.
    pub(super) fn copy(&self, input: &Input, transfer: Transfer) -> Result<()> {
        let (head, tail) = self.clone_middle(input, transfer);
        for part in [head, tail] {
            let done = self.kernel_copy(input, part);
            self.plain_copy(input, part.skip(done))?;
        }
        Ok(())
    }

    /// Has the middle of a range share its blocks with the input, where both lie alike on blocks.
    /// Returns what is left to copy before and behind it.
    pub(super) fn clone_middle(&self, input: &Input, whole: Transfer) -> (Transfer, Transfer) {
        let nothing = (whole, whole.skip(whole.len));
        let block = self.block_len;
        let alike = whole.from % block == whole.to % block;
        if !alike || whole.len < LEAST_CLONE || !self.clones.load(Ordering::Relaxed) {
            return nothing;
        }
        let head_len = (block - whole.to % block) % block;
        let middle_len = whole.len.saturating_sub(head_len) / block * block;
        if middle_len == 0 {
            return nothing;
        }
        let (head, rest) = whole.split(head_len);
        let (middle, tail) = rest.split(middle_len);
        match system::clone_range(input.file(), &self.file, middle) {
            Ok(()) => {
                self.stats.bytes_shared.add(middle_len);
                (head, tail)
            }
            Err(error) => {
                // Another input may lie on the output's file system.
                if !is(&error, Errno::XDEV) {
                    self.clones.store(false, Ordering::Relaxed);
                }
                nothing
            }
        }
    }

    /// Copies within the kernel as far as it is able to; returns how many bytes it copied.
    fn kernel_copy(&self, input: &Input, whole: Transfer) -> u64 {
        let mut left = whole;
        while left.len > 0 && self.kernel_copies.load(Ordering::Relaxed) {
            let (part, _) = left.split(left.len.min(COPY_LEN));
            match system::copy_range(input.file(), &self.file, part) {
                // The end of the input, or a file system that only pretends to copy.
                Ok(0) => break,
                Ok(count) => {
                    self.start_writeback(part.to, count);
                    input.release(part.from, count);
                    left = left.skip(count);
                }
                Err(error) => {
                    // The fallback meets an error of the disk again and says it; another input may
                    // lie on the output's file system.
                    let passing = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::XDEV];
                    if !passing.into_iter().any(|errno| is(&error, errno)) {
                        self.kernel_copies.store(false, Ordering::Relaxed);
                    }
                    break;
                }
            }
        }
        whole.len - left.len
    }

    /// Copies by reading and writing.
    fn plain_copy(&self, input: &Input, mut left: Transfer) -> Result<()> {
        let mut chunk = vec![0; CHUNK_LEN.min(usize::try_from(left.len).unwrap_or(CHUNK_LEN))];
        while left.len > 0 {
            let len = chunk
                .len()
                .min(usize::try_from(left.len).unwrap_or(CHUNK_LEN));
            let bytes = chunk.get_mut(..len).unwrap_or_default();
            input.read_all_at(bytes, left.from)?;
            self.write_at(bytes, left.to)?;
            self.start_writeback(left.to, len as u64);
            left = left.skip(len as u64);
        }
        Ok(())
    }
}

fn is(error: &std::io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
