//! The output file of a backend: writes and copies to given offsets.

use super::flusher::Flusher;
use crate::error::{Error, FileResult, Result};
use crate::io::input::Input;
use crate::runtime::{Cancellation, Context, Observer, Stats};
use crate::system;
use crate::system::Transfer;
use std::fs::File;
use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum size of one kernel copy in bytes. Copies must be short, because writeback starts after each of them.
const COPY_LEN: u64 = 16 << 20;
/// The number of bytes that are written before their writeback is started.
pub(super) const WRITEBACK_LEN: u64 = 16 << 20;
/// The buffer size in bytes of a copy by reads and writes.
const CHUNK_LEN: usize = 1 << 20;
/// The minimum size in bytes of a range that shares blocks with the input. For a shorter range, sharing is not worth a
/// system call.
const MIN_CLONE_LEN: u64 = 64 << 10;
/// The distance in bytes between the range being written and the pages of a large output that are dropped from the page
/// cache.
const DROP_BEHIND: u64 = 64 << 20;

/// An output file or stream, shared by the threads of a backend.
pub(crate) struct Destination {
    path: PathBuf,
    file: File,
    /// Whether the output is a regular file rather than a pipe or a device.
    is_file: bool,
    /// Whether the file system of the output can share blocks.
    shares_blocks: bool,
    /// Whether to try to share blocks. Set to false when sharing fails with an error other than `EXDEV`.
    clones: AtomicBool,
    /// Whether to try kernel copies. Set to false when a kernel copy fails. Failures because of `EXDEV`, a full disk, a
    /// quota or a limit on file sizes do not count.
    kernel_copies: AtomicBool,
    /// The alignment in bytes that offsets and lengths must have for sharing blocks.
    block_len: u64,
    /// Whether written pages are dropped from the page cache, so that a large output does not evict other files.
    drop_behind: bool,
    /// Flushes the file while it is written; `None` for a stream and for a file that need not survive a crash.
    flusher: Option<Flusher>,
    stats: Arc<Stats>,
    observer: Arc<dyn Observer>,
    cancellation: Cancellation,
}

impl Destination {
    /// Creates a destination that writes to `file`. `path` is for messages; `expected_bytes` is the estimated size of
    /// the output.
    pub(crate) fn new(
        path: PathBuf,
        file: File,
        is_file: bool,
        expected_bytes: u64,
        ctx: &Context,
    ) -> Self {
        let block_len = system::block_len(&file).max(4096);
        let shares_blocks = is_file && system::shares_blocks(&file);
        Self {
            path,
            file,
            is_file,
            shares_blocks,
            clones: AtomicBool::new(is_file),
            kernel_copies: AtomicBool::new(is_file),
            block_len,
            drop_behind: is_file && system::exceeds_half_of_memory(expected_bytes),
            flusher: None,
            stats: ctx.stats.clone(),
            observer: ctx.observer.clone(),
            cancellation: ctx.cancellation.clone(),
        }
    }

    /// Sets whether the file is flushed to disk while it is written. By default, it is not. A stream is never flushed.
    pub(crate) fn with_flushing(self, flushes: bool) -> Self {
        let flusher = (flushes && self.is_file).then(Flusher::new);
        Self { flusher, ..self }
    }

    /// Returns the length in bytes of blocks that can be shared with `input`, as
    /// [`Backend::shared_block_len`](super::Backend::shared_block_len) does.
    pub(super) fn shared_block_len(&self, input: &Input) -> Option<u64> {
        let is_shared =
            self.shares_blocks && system::are_on_same_file_system(&self.file, input.file());
        is_shared.then_some(self.block_len)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(target_os = "linux")]
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

    pub(super) fn write_error(&self, error: std::io::Error) -> Error {
        Error::io(&self.path, "cannot write", error)
    }

    /// Writes bytes at `offset`. A stream ignores the offset, so the caller must write the bytes of a stream in order.
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let written = if self.is_file {
            system::write_at(&self.file, bytes, offset)
        } else {
            system::write(&self.file, bytes)
        };
        written.map_err(|error| self.write_error(error))
    }

    /// Writes slices one after another at `offset`, as [`write_at`](Self::write_at) does.
    pub(super) fn write_slices_at(&self, slices: &mut [IoSlice<'_>], offset: u64) -> Result<()> {
        let written = if self.is_file {
            system::write_slices_at(&self.file, slices, offset)
        } else {
            let mut slices = slices.iter();
            slices.try_for_each(|slice| system::write(&self.file, slice))
        };
        written.map_err(|error| self.write_error(error))
    }

    /// Starts writeback of a written range, and requests a flush if one is due. The flushes then have little left to
    /// write. For a large output, also drops a range of the same length from the page cache. That range lies
    /// [`DROP_BEHIND`] bytes earlier. Does nothing for a stream.
    pub(super) fn start_writeback(&self, from: u64, len: u64) {
        self.release_cached_range(from, len);
        self.count_written(len);
    }

    /// Does the same as [`start_writeback`](Self::start_writeback) after a chunk was written, but for backends that
    /// write chunks in any order. Only a chunk that reaches a multiple of [`WRITEBACK_LEN`] starts writeback, for the
    /// [`WRITEBACK_LEN`] bytes before this multiple. Chunks in this range that are not written yet are left to the
    /// flushes.
    pub(super) fn start_writeback_of_chunk(&self, from: u64, len: u64) {
        let end = from + len;
        let reached = end - end % WRITEBACK_LEN;
        if reached > from {
            self.release_cached_range(reached - WRITEBACK_LEN, WRITEBACK_LEN);
        }
        self.count_written(len);
    }

    /// Starts writeback of a range, and drops earlier pages of a large output from the page cache.
    fn release_cached_range(&self, from: u64, len: u64) {
        if !self.is_file {
            return;
        }
        system::release_cached_range(&self.file, from, len);
        if self.drop_behind && from >= DROP_BEHIND {
            system::release_cached_range(&self.file, from - DROP_BEHIND, len);
        }
    }

    /// Counts written bytes, and requests a flush if one is due.
    fn count_written(&self, len: u64) {
        if let Some(flusher) = &self.flusher {
            flusher.count_written(&self.file, len);
        }
    }

    /// Waits for the flushes that were requested. Fails if one of them has failed.
    pub(super) fn wait_for_flushes(&self) -> Result<()> {
        self.flusher
            .as_ref()
            .map_or(Ok(()), Flusher::end)
            .for_path(&self.path, "cannot flush to disk")
    }

    /// Overwrites the start of the file with `start`, and sets the size of the file to `len` bytes. Disk space that was
    /// reserved beyond this size is freed. Does nothing for a stream.
    pub(super) fn set_start_and_len(&self, start: &[u8], len: u64) -> Result<()> {
        if !self.is_file {
            return Ok(());
        }
        self.wait_for_flushes()?;
        self.write_at(start, 0)?;
        self.file
            .set_len(len)
            .map_err(|error| self.write_error(error))
    }

    /// Copies a range of `input`. Uses the first of these methods that works: sharing blocks, kernel copies, reads and
    /// writes. Short parts are always read and written.
    pub(super) fn copy(&self, input: &Input, transfer: Transfer) -> Result<()> {
        let (head, tail) = self.clone_middle(input, transfer);
        for part in [head, tail] {
            if part.len < MIN_CLONE_LEN {
                self.copy_short_range(input, part)?;
            } else {
                let done = self.copy_in_kernel(input, part)?;
                self.copy_by_read_and_write(input, part.skip(done))?;
            }
        }
        Ok(())
    }

    /// Lets the block-aligned middle of a range share blocks with the input, if the range has the same alignment in
    /// both files. Returns the remaining ranges before and after the middle. If nothing is shared, returns the whole
    /// range and an empty range.
    pub(super) fn clone_middle(&self, input: &Input, whole: Transfer) -> (Transfer, Transfer) {
        let nothing = (whole, whole.skip(whole.len));
        let block = self.block_len;
        let same_alignment = whole.from % block == whole.to % block;
        if !same_alignment || whole.len < MIN_CLONE_LEN || !self.clones.load(Ordering::Relaxed) {
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
                // `EXDEV` concerns only this input, because another input may be on the file system of the output.
                if error.kind() != ErrorKind::CrossesDevices {
                    self.clones.store(false, Ordering::Relaxed);
                }
                nothing
            }
        }
    }

    /// Copies a range with kernel copies, until one fails or copies nothing. Returns the number of bytes copied. Fails
    /// if the work has been cancelled.
    fn copy_in_kernel(&self, input: &Input, whole: Transfer) -> Result<u64> {
        let mut left = whole;
        while left.len > 0 && self.kernel_copies.load(Ordering::Relaxed) {
            self.cancellation.check()?;
            let (part, _) = left.split(left.len.min(COPY_LEN));
            match system::copy_range(input.file(), &self.file, part) {
                // The input has ended, or its file system cannot copy and reports no error.
                Ok(0) => break,
                Ok(count) => {
                    self.start_writeback(part.to, count);
                    input.drop_pages_behind(part.from, count);
                    left = left.skip(count);
                }
                Err(error) => {
                    // These errors do not disable kernel copies. If the disk is full or a limit is reached, the writes
                    // that follow fail and report the cause. After `EXDEV`, another input may still be on the file
                    // system of the output.
                    let passing = [
                        ErrorKind::StorageFull,
                        ErrorKind::QuotaExceeded,
                        ErrorKind::FileTooLarge,
                        ErrorKind::CrossesDevices,
                    ];
                    if !passing.contains(&error.kind()) {
                        self.kernel_copies.store(false, Ordering::Relaxed);
                    }
                    break;
                }
            }
        }
        Ok(whole.len - left.len)
    }

    /// Copies a short range, such as the start or the end of a range whose middle shares blocks, by a read and a write.
    /// On some file systems, a kernel copy of a part of a block takes ten times as long.
    fn copy_short_range(&self, input: &Input, part: Transfer) -> Result<()> {
        if part.len == 0 {
            return Ok(());
        }
        let mut bytes = vec![0; part.len as usize];
        input.read_all_at(&mut bytes, part.from)?;
        self.write_at(&bytes, part.to)
    }

    /// Copies a range by reading and writing.
    fn copy_by_read_and_write(&self, input: &Input, mut left: Transfer) -> Result<()> {
        let mut chunk = vec![0; CHUNK_LEN.min(usize::try_from(left.len).unwrap_or(CHUNK_LEN))];
        while left.len > 0 {
            self.cancellation.check()?;
            let len = chunk
                .len()
                .min(usize::try_from(left.len).unwrap_or(CHUNK_LEN));
            let bytes = &mut chunk[..len];
            input.read_all_at(bytes, left.from)?;
            self.write_at(bytes, left.to)?;
            self.start_writeback(left.to, len as u64);
            left = left.skip(len as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_flush_during_writing_fails_the_output() {
        // A device without a disk can be written to, but not flushed.
        let path = PathBuf::from("/dev/null");
        let device = File::options().write(true).open(&path).unwrap();
        let destination = Destination {
            flusher: Some(Flusher::with_interval(4)),
            ..Destination::new(path, device, true, 0, &Context::default())
        };
        destination.write_at(b"abcd", 0).unwrap();
        destination.start_writeback(0, 4);
        let error = destination
            .set_start_and_len(&[], 4)
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot flush to disk"), "{error}");
    }
}
