//! The output of a command: where it goes, how it is written, and its header.

use super::HeaderOptions;
use crate::file::WriteOptions;
use crate::io::OutputTarget;
use std::path::PathBuf;

/// The output of a command that writes one file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutputOptions {
    /// Where the file goes.
    pub target: OutputTarget,
    /// How blobs are written.
    pub write: WriteOptions,
    /// Header fields to set.
    pub header: HeaderOptions,
}

impl OutputOptions {
    /// A file that must not exist yet, written as usual: zlib at level 6, with a table of contents.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::new(OutputTarget::File {
            path: path.into(),
            overwrite: false,
        })
    }

    /// A target, written as usual.
    pub fn new(target: OutputTarget) -> Self {
        Self {
            target,
            write: WriteOptions::default(),
            header: HeaderOptions::default(),
        }
    }

    /// Replaces a file that exists.
    #[must_use]
    pub fn overwrite(mut self) -> Self {
        if let OutputTarget::File { overwrite, .. } = &mut self.target {
            *overwrite = true;
        }
        self
    }

    /// Sets how blobs are written.
    #[must_use]
    pub fn write(self, write: WriteOptions) -> Self {
        Self { write, ..self }
    }

    /// Sets header fields.
    #[must_use]
    pub fn header(self, header: HeaderOptions) -> Self {
        Self { header, ..self }
    }
}
