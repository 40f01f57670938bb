//! The error types. An error message is one line that names the cause and, where they are known, the file and the
//! position in the file.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The result of functions that read or write files.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call on a file failed.
    #[error("{}: {action}: {}{}", path.display(), reason(source), advice(path, action))]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The action that failed, in the words of the message: "cannot open", "cannot read" and so on.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A blob violates the PBF format.
    #[error("{}: blob {number} at byte {offset}: {source}", path.display())]
    Blob {
        /// The file concerned.
        path: PathBuf,
        /// The index of the blob in the file; the header blob is 0.
        number: u64,
        /// The offset of the blob's frame in the file, in bytes.
        offset: u64,
        /// The cause.
        source: FormatError,
    },
    /// A text input (a change file, OSM XML or OPL) violates its format.
    #[error("{}: line {line}, column {column}: {cause}", path.display())]
    Text {
        /// The file concerned.
        path: PathBuf,
        /// Line number, counted from 1.
        line: u64,
        /// Column in bytes, counted from 1.
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
    /// The command cannot run with these options or in this environment.
    #[error("{0}")]
    Usage(String),
    /// The reader of standard output closed the pipe, as `head` does. The program ends without a message.
    #[error("standard output was closed")]
    ClosedPipe,
    /// A bug in this program.
    #[error("internal error: {0} (please report this)")]
    Internal(String),
}

/// The message of an operating system error, without the error number at its end.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// The way out if a directory cannot hold a temporary file.
fn advice(path: &Path, action: &str) -> &'static str {
    match (
        action.contains("a temporary file in this directory"),
        path == std::env::temp_dir(),
    ) {
        (false, _) => "",
        (true, true) => "; set TMPDIR to a directory that can be written and has room",
        (true, false) => {
            "; name another one with --temp-dir, if the command has it, or write the output to another one"
        }
    }
}

impl Error {
    /// An error of a system call on a file. A broken pipe becomes [`Error::ClosedPipe`].
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

/// A violation of the format in the bytes of an input.
///
/// The error carries the cause alone ("DenseNodes: 8000 ids but 7999 latitudes"); the code that reads the file adds
/// the file name, the index of the blob and its byte offset.
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

    /// The same error with `place` before the cause: the part of the input that is wrong, such as a protobuf message.
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
