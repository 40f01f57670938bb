//! Ordinary writes through the page cache, and copies within the kernel.

use super::Backend;
use crate::error::{Error, Result};
use crate::read::Input;
use crate::stats::Stats;
use rustix::fs::{Advice, copy_file_range, fadvise};
use std::fs::File;
use std::io::Write;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes gathered before they are written.
const BUFFER_LEN: usize = 1 << 20;
/// Most bytes that one kernel copy is asked for, so that a copy can be interrupted.
const COPY_LEN: u64 = 16 << 20;
/// Written bytes after which the disk is set to work on them.
const WRITEBACK_LEN: u64 = 16 << 20;

/// Writes through the page cache.
#[derive(Debug)]
pub(in crate::write) struct Buffered {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    kernel_copies: bool,
    /// Bytes handed to the operating system.
    position: u64,
    /// How many of them the disk was set to work on; `None` where the output is no file.
    writeback: Option<u64>,
    stats: Arc<Stats>,
}

impl Buffered {
    /// Writes to `file` from its start; `path` is for messages. Kernel copies only make sense
    /// where the output is a file.
    pub(in crate::write) fn new(
        path: PathBuf,
        file: File,
        is_file: bool,
        stats: Arc<Stats>,
    ) -> Self {
        let buffer = Vec::with_capacity(BUFFER_LEN);
        Self {
            path,
            file,
            buffer,
            kernel_copies: is_file,
            position: 0,
            writeback: is_file.then_some(0),
            stats,
        }
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io(&self.path, "cannot write", error)
    }

    fn write_through(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| self.failed(error))?;
        self.moved(bytes.len() as u64);
        Ok(())
    }

    /// Counts bytes that were written, and now and then sets the disk to work on them, so that it is
    /// busy while we are and the final `fsync` finds little to do.
    fn moved(&mut self, len: u64) {
        self.position += len;
        if let Some(from) = self.writeback
            && let Some(len) = NonZeroU64::new(self.position - from)
            && len.get() >= WRITEBACK_LEN
        {
            // Linux starts to write dirty pages that are declared not needed, and keeps them until
            // they are on the disk. It is advice: a failure changes nothing.
            let _ = fadvise(&self.file, from, Some(len), Advice::DontNeed);
            self.writeback = Some(self.position);
        }
    }

    /// Copies within the kernel as far as it is able to; returns how many bytes it copied.
    fn kernel_copy(&mut self, input: &Input, offset: u64, len: u64) -> Result<u64> {
        let mut done = 0;
        while self.kernel_copies && done < len {
            let mut from = offset + done;
            let wanted = (len - done).min(COPY_LEN);
            let wanted = usize::try_from(wanted).unwrap_or(1 << 20);
            match copy_file_range(input.file(), Some(&mut from), &self.file, None, wanted) {
                // The end of the input, or a file system that only pretends to copy.
                Ok(0) => break,
                Ok(count) => {
                    done += count as u64;
                    self.moved(count as u64);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(
                    rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT | rustix::io::Errno::FBIG,
                ) => {
                    // The fallback meets the same error and says it.
                    break;
                }
                Err(_) => self.kernel_copies = false,
            }
        }
        Ok(done)
    }

    /// Copies by reading and writing.
    fn plain_copy(&mut self, input: &Input, mut offset: u64, mut len: u64) -> Result<()> {
        let mut chunk = vec![0; BUFFER_LEN];
        while len > 0 {
            let wanted = usize::try_from(len).unwrap_or(BUFFER_LEN).min(BUFFER_LEN);
            let chunk = chunk.get_mut(..wanted).unwrap_or_default();
            if input.read_at(chunk, offset)? < wanted {
                return Err(Error::file(
                    input.path(),
                    "the file became shorter while it was read",
                ));
            }
            self.write_through(chunk)?;
            offset += wanted as u64;
            len -= wanted as u64;
        }
        Ok(())
    }
}

impl Backend for Buffered {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stats.bytes_written.add(bytes.len() as u64);
        if self.buffer.len() + bytes.len() > BUFFER_LEN {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_LEN {
            return self.write_through(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn copy(&mut self, input: &Input, offset: u64, len: u64) -> Result<()> {
        self.flush()?;
        self.stats.bytes_copied.add(len);
        let done = self.kernel_copy(input, offset, len)?;
        self.plain_copy(input, offset + done, len - done)
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let written = self.write_through(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        written
    }

    fn patch_start(&mut self, bytes: &[u8]) -> Result<()> {
        self.flush()?;
        self.file
            .write_all_at(bytes, 0)
            .map_err(|error| self.failed(error))
    }
}
