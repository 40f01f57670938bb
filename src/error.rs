//! What can go wrong, said in one line that names the file, the place and the cause.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The result of everything that reads or writes files.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("{}: {action}: {}", path.display(), reason(source))]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// What was tried: "cannot open", "cannot read" and so on.
        action: &'static str,
        /// The reason given.
        source: io::Error,
    },
    /// A blob is not what the format says it must be.
    #[error("{}: blob {number} at byte {offset}: {source}", path.display())]
    Blob {
        /// The file concerned.
        path: PathBuf,
        /// Number of the frame in the file; the header is 0.
        number: u64,
        /// Where the frame starts, in bytes.
        offset: u64,
        /// The cause.
        source: FormatError,
    },
    /// A change file, or a file of objects as XML, is not what the format says it must be.
    #[error("{}: line {line}, column {column}: {cause}", path.display())]
    ChangeFile {
        /// The file concerned.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column in bytes, from 1.
        column: u64,
        /// The cause.
        cause: String,
    },
    /// A file as a whole cannot be used.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file concerned.
        path: PathBuf,
        /// The cause, and what to do about it.
        cause: String,
    },
    /// The options do not make sense.
    #[error("{0}")]
    Usage(String),
    /// The reader of our standard output went away, which is its right.
    #[error("standard output was closed")]
    ClosedPipe,
    /// A mistake in this program.
    #[error("internal error: {0} (please report this)")]
    Internal(String),
}

/// The words of the operating system, without the number that stands behind them.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

impl Error {
    /// An operating system error on a file.
    pub fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            return Self::ClosedPipe;
        }
        Self::Io {
            path: path.to_owned(),
            action,
            source,
        }
    }

    /// An error about a file as a whole.
    pub fn file(path: &Path, cause: impl Into<String>) -> Self {
        Self::File {
            path: path.to_owned(),
            cause: cause.into(),
        }
    }
}

/// Bytes that are not what the format says they must be.
///
/// It carries the cause alone ("DenseNodes: 8000 ids but 7999 latitudes"); the reading layer adds
/// the file, the blob's number and its byte offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError(Cow<'static, str>);

impl FormatError {
    /// An error with a fixed cause.
    pub const fn new(cause: &'static str) -> Self {
        Self(Cow::Borrowed(cause))
    }

    /// An error whose cause names values found in the input.
    pub fn with(cause: impl Into<String>) -> Self {
        Self(Cow::Owned(cause.into()))
    }

    /// The same error, with the place it happened in put before the cause.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self::with(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormatError {}
