//! Outputs that are written from their start to their end.

use super::backends::FilePool;
use super::{OpenOutput, Output, temporary, unfinished};
use crate::error::{FileResult, Result};
use crate::runtime::IoMode;
use crate::system;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The number of written bytes after which the system is told to start writing them to disk.
const WRITEBACK_LEN: u64 = 8 << 20;
/// The number of bytes after which the rest of a file is written by threads of its own. For large texts, copying to the
/// page cache takes longer than all other work that must be done in order.
const MIN_PARALLEL_LEN: u64 = 64 << 20;

/// An output that is written from its start to its end, in large portions.
#[derive(Debug)]
pub(crate) struct StreamOutput {
    output: Output,
    file: File,
    is_stream: bool,
    /// Whether a long file is written by threads of its own.
    may_use_threads: bool,
    /// The threads that write the rest of a long file.
    pool: Option<FilePool>,
    /// The number of bytes written, or handed to the threads that write.
    len: u64,
    /// The number of bytes whose writeback to disk was started.
    written_back: u64,
}

impl StreamOutput {
    /// Begins to write an open output.
    pub(crate) fn new(output: OpenOutput) -> Self {
        let OpenOutput {
            output,
            file,
            is_stream,
            io,
        } = output;
        Self {
            output,
            file,
            is_stream,
            may_use_threads: !is_stream && io != IoMode::Buffered,
            pool: None,
            len: 0,
            written_back: 0,
        }
    }

    /// Returns the path of the output, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.output.path()
    }

    /// Returns the number of bytes written.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Locks the file to show other runs that it is in use. The returned descriptor keeps the lock when the output is
    /// closed.
    pub(super) fn hold_lock(&self) -> std::io::Result<File> {
        temporary::lock(&self.file);
        self.file.try_clone()
    }

    /// Appends bytes. Fails if the work has been cancelled.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.cancellation.check()?;
        if self.pool.is_some() {
            return self.write_owned(bytes.to_vec());
        }
        system::write(&self.file, bytes).for_path(self.output.path(), "cannot write")?;
        self.len += bytes.len() as u64;
        self.start_writeback();
        if self.may_use_threads && self.len >= MIN_PARALLEL_LEN {
            self.pool = Some(FilePool::start(
                self.output.path(),
                &self.file,
                self.output.is_flushed_on_commit(),
            )?);
        }
        Ok(())
    }

    /// Appends bytes, which are kept until they are written. Fails if the work has been cancelled.
    pub(crate) fn write_owned(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.output.cancellation.check()?;
        let Some(pool) = &mut self.pool else {
            return self.write(&bytes);
        };
        let len = bytes.len() as u64;
        pool.write(bytes, self.len)?;
        self.len += len;
        Ok(())
    }

    /// Overwrites the start of the output with `bytes`. The output must not be a stream, and must be at least as long
    /// as `bytes`. Nothing can be appended afterwards.
    pub(crate) fn replace_start(&mut self, bytes: &[u8]) -> Result<()> {
        self.wait_until_written()?;
        system::write_at(&self.file, bytes, 0).for_path(self.output.path(), "cannot write")
    }

    /// Makes the system start writing to disk, so that the flush at the end has little left to do. The threads of
    /// `pool` do this themselves.
    fn start_writeback(&mut self) {
        let ready = self.len - self.len % WRITEBACK_LEN;
        if !self.is_stream && ready > self.written_back {
            system::release_cached_range(&self.file, self.written_back, ready - self.written_back);
            self.written_back = ready;
        }
    }

    /// Waits until all bytes are written.
    fn wait_until_written(&mut self) -> Result<()> {
        match self.pool.take() {
            Some(pool) => pool.finish(),
            None => Ok(()),
        }
    }

    /// Flushes the file to disk and gives it its name. Returns its size in bytes.
    pub(crate) fn commit(self) -> Result<u64> {
        self.commit_with_completed(&[])
    }

    /// Gives the file its name without waiting until the file is on disk. The caller flushes the file later. Returns
    /// its size in bytes.
    pub(crate) fn commit_unflushed(mut self) -> Result<u64> {
        self.wait_until_written()?;
        // Makes the system start writing to disk, so that the later flush has little left to do.
        let rest = self.len - self.written_back;
        system::release_cached_range(&self.file, self.written_back, rest);
        self.output.commit_unflushed()?;
        Ok(self.len)
    }

    /// Flushes the file to disk.
    fn flush(&mut self) -> Result<()> {
        self.wait_until_written()?;
        let flushed = if self.is_stream {
            Ok(())
        } else {
            system::sync(&self.file)
        };
        flushed.for_path(self.path(), "cannot flush to disk")
    }

    /// Commits as [`commit`](Self::commit) does, and at the same time marks the unfinished files `completed` as
    /// complete.
    pub(super) fn commit_with_completed(mut self, completed: &[PathBuf]) -> Result<u64> {
        self.wait_until_written()?;
        self.output.commit_and_complete(completed)?;
        Ok(self.len)
    }
}

/// Flushes files to disk, and then gives all of them their names. A cancellation takes effect only before the first
/// name is given. A signal that the program handles never ends the process between two names. If the process is killed
/// between two names, only some of the files have their names.
pub(crate) fn commit_together(mut files: Vec<StreamOutput>) -> Result<()> {
    files.iter_mut().try_for_each(StreamOutput::flush)?;
    for file in &mut files {
        let cancellation = std::mem::take(&mut file.output.cancellation);
        cancellation.check()?;
    }
    unfinished::run_uninterrupted(|| {
        files
            .into_iter()
            .try_for_each(|file| file.commit().map(drop))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::OutputTarget;
    use crate::runtime::Context;

    #[test]
    fn a_long_file_is_what_was_written_with_and_without_threads() {
        let directory = tempfile::tempdir().unwrap();
        let portion = |number: usize| vec![number as u8; 700_000 + 1000 * (number % 7)];
        let mut expected = Vec::new();
        for io in [IoMode::Buffered, IoMode::Auto] {
            let path = directory.path().join(format!("{io:?}"));
            let target = OutputTarget::file(&path);
            let ctx = Context {
                io,
                ..Context::default()
            };
            let mut output = StreamOutput::new(OpenOutput::open(target, &ctx).unwrap());
            for number in 0..100 {
                match number % 3 {
                    0 => output.write(&portion(number)).unwrap(),
                    _ => output.write_owned(portion(number)).unwrap(),
                }
            }
            assert_eq!(output.pool.is_some(), io == IoMode::Auto);
            let len = output.commit().unwrap();
            let found = std::fs::read(&path).unwrap();
            assert_eq!(len, found.len() as u64);
            match io {
                IoMode::Buffered => expected = found,
                _ => assert!(found == expected),
            }
        }
        let portions: Vec<u8> = (0..100).flat_map(portion).collect();
        assert!(portions == expected);
    }
}
