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
    /// A file that must not exist yet, with default options: zlib at level 6, and a table of contents.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::new(OutputTarget::File {
            path: path.into(),
            overwrite: false,
        })
    }

    /// An output to `target`, with default options.
    pub fn new(target: OutputTarget) -> Self {
        Self {
            target,
            write: WriteOptions::default(),
            header: HeaderOptions::default(),
        }
    }

    /// Allows the output to replace an existing file. A target that is not a file stays as it is.
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
