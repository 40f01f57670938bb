//! Outputs that are written from their start to their end.

use super::{OpenOutput, Output, temporary, unfinished};
use crate::error::{Error, Result};
use crate::system;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The number of written bytes after which the system is told to start writing them to disk.
const WRITEBACK_LEN: u64 = 8 << 20;

/// An output that is written from its start to its end, in large portions.
#[derive(Debug)]
pub(crate) struct StreamOutput {
    output: Output,
    file: File,
    is_stream: bool,
    /// The number of bytes written.
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
        } = output;
        Self {
            output,
            file,
            is_stream,
            len: 0,
            written_back: 0,
        }
    }

    /// The path of the output, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.output.path()
    }

    /// The number of bytes written.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Locks the file until the returned descriptor is closed, so that other runs see that it is in use.
    pub(super) fn hold(&self) -> std::io::Result<File> {
        temporary::lock(&self.file);
        self.file.try_clone()
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = system::write(&self.file, bytes);
        written.map_err(|error| Error::io(self.output.path(), "cannot write", error))?;
        self.len += bytes.len() as u64;
        let ready = self.len - self.len % WRITEBACK_LEN;
        if !self.is_stream && ready > self.written_back {
            // Makes the system start writing to disk, so that the flush at the end has little left to do.
            system::release(&self.file, self.written_back, ready - self.written_back);
            self.written_back = ready;
        }
        Ok(())
    }

    /// Flushes the file to disk and gives it its name. Returns its size in bytes.
    pub(crate) fn commit(self) -> Result<u64> {
        self.commit_with(&[])
    }

    /// Gives the file its name without waiting until the file is on disk. The caller flushes the file later. Returns
    /// its size in bytes.
    pub(crate) fn commit_unflushed(self) -> Result<u64> {
        // Makes the system start writing to disk, so that the later flush has little left to do.
        let rest = self.len - self.written_back;
        system::release(&self.file, self.written_back, rest);
        self.output.commit_unflushed()?;
        Ok(self.len)
    }

    /// Flushes the file to disk.
    fn flush(&self) -> Result<()> {
        let flushed = if self.is_stream {
            Ok(())
        } else {
            system::sync(&self.file)
        };
        flushed.map_err(|error| Error::io(self.path(), "cannot flush to disk", error))
    }

    /// Commits as [`commit`](Self::commit) does, and at the same time marks the unfinished files `completed` as
    /// complete.
    pub(super) fn commit_with(self, completed: &[PathBuf]) -> Result<u64> {
        self.output.commit_with(completed)?;
        Ok(self.len)
    }
}

/// Flushes files to disk, and then gives all of them their names. A signal that the program handles ends the process
/// before the first name is given or after the last one. If the process is killed in between, some files may have their
/// names and others may not.
pub(crate) fn commit_together(files: Vec<StreamOutput>) -> Result<()> {
    files.iter().try_for_each(StreamOutput::flush)?;
    unfinished::together(|| {
        files
            .into_iter()
            .try_for_each(|file| file.commit().map(drop))
    })
}
