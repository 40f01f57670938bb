//! The error types. An error message is one line. It names the cause and, where they are known, the file and the
//! position in the file.

mod advice;

pub use advice::Advice;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The result of functions that read or write files.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The result of functions that decode parts of a file. Public signatures name [`FormatError`] instead of using this
/// alias.
pub(crate) type FormatResult<T> = Result<T, FormatError>;

/// The kind of an [`Error`], for callers that distinguish errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file or a directory does not exist.
    NotFound,
    /// The output exists, and the options do not allow replacing it.
    Exists,
    /// The operating system denies permission to read or write a file.
    Denied,
    /// A file ends too early.
    Truncated,
    /// A file violates its format.
    Damaged,
    /// A file is not OSM data, or is not in a format that the function reads.
    NotOsm,
    /// The objects of a file are not in the order that the function needs.
    Unsorted,
    /// A file is valid, but the function cannot use it, for example because it is a history file, needs an unknown
    /// feature, or lacks an index.
    Unsupported,
    /// The options contradict each other, or do not fit the environment, such as a memory limit.
    Usage,
    /// The output would replace a much larger file, and the options do not allow that.
    Shrunk,
    /// Another run is replacing the file, or writing to the directory.
    Locked,
    /// The caller ended the work with [`Context::cancel`](crate::Context::cancel).
    Cancelled,
    /// The reader of standard output or of another pipe closed the pipe.
    Closed,
    /// The options name a command to run after the output is written, and this command failed.
    Command,
    /// Another error of the operating system, such as a full disk.
    Io,
    /// A bug in this crate.
    Internal,
}

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call on a file failed.
    #[error("{}: {action}: {}", display_path(path), io_reason(source))]
    #[non_exhaustive]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The action that failed, in the words of the message: "cannot open", "cannot read" and so on.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A blob violates the PBF format.
    #[error("{}: blob {number} at byte {offset}: {source}", display_path(path))]
    #[non_exhaustive]
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
    /// A text input violates its format, for example a change file, OSM XML or OPL.
    #[error("{}: line {line}, column {column}: {cause}", display_path(path))]
    #[non_exhaustive]
    Text {
        /// The file concerned.
        path: PathBuf,
        /// The line number, counted from 1.
        line: u64,
        /// The column in bytes, counted from 1.
        column: u64,
        /// The cause.
        cause: String,
    },
    /// A file as a whole cannot be used.
    #[error("{}: {cause}", display_path(path))]
    #[non_exhaustive]
    File {
        /// The file concerned.
        path: PathBuf,
        /// The kind of the error.
        kind: ErrorKind,
        /// The cause.
        cause: String,
        /// The advice for the user.
        advice: Option<Advice>,
    },
    /// The command cannot run with these options or in this environment.
    #[error("{0}")]
    Usage(String),
    /// The reader of standard output closed the pipe, as `head` does. The command-line program then exits without a
    /// message.
    #[error("standard output was closed")]
    ClosedPipe,
    /// The caller ended the work with [`Context::cancel`](crate::Context::cancel).
    #[error("cancelled")]
    Cancelled,
    /// A bug in this crate.
    #[error("internal error: {0} (please report this)")]
    Internal(String),
}

/// The words with which the cause of an error ends if compressed text ends early.
pub(crate) const ENDS_EARLY: &str = "data ends early";

/// Returns the name of an input in messages. The path `-` stands for standard input. The credentials in a URL are
/// omitted.
pub(crate) fn display_path(path: &Path) -> impl fmt::Display + '_ {
    if path.as_os_str() == "-" {
        Cow::Borrowed("standard input")
    } else {
        path_without_credentials(path)
    }
}

/// Returns a path as text. If the path is a URL with credentials, they are omitted.
pub(crate) fn path_without_credentials(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) => without_credentials(text),
        None => path.to_string_lossy(),
    }
}

/// Removes the credentials from an HTTP or HTTPS URL: `https://user:password@host/` becomes `https://host/`. Returns
/// other text unchanged.
pub(crate) fn without_credentials(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Cow::Borrowed(url);
    };
    let is_web = ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) if is_web => Cow::Owned(format!("{scheme}://{host}{path}")),
        _ => Cow::Borrowed(url),
    }
}

/// Returns the cause of an error, shortened by [`abbreviate_message`].
fn abbreviate_cause(cause: impl Into<String>) -> String {
    let cause = cause.into();
    abbreviate_message(&cause).into_owned()
}

/// Returns a message with at most about 2,000 bytes. Only the beginning and the end of a longer message are kept. A
/// message can quote a value from the input, and such a value can have megabytes.
pub(crate) fn abbreviate_message(message: &str) -> Cow<'_, str> {
    const HEAD: usize = 1500;
    const TAIL: usize = 500;
    if message.len() <= HEAD + TAIL {
        return Cow::Borrowed(message);
    }
    let is_boundary = |at: &usize| message.is_char_boundary(*at);
    let head = (0..=HEAD).rev().find(is_boundary).unwrap_or(0);
    let tail = (message.len() - TAIL..message.len()).find(is_boundary);
    let tail = tail.unwrap_or(message.len());
    Cow::Owned(format!("{} … {}", &message[..head], &message[tail..]))
}

/// Returns the message of an operating system error without the error number at its end. The messages of two errors
/// that the standard library itself raises are rephrased.
fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None if text == "failed to fill whole buffer" => "it ends early".into(),
        None if text == "stream did not contain valid UTF-8" => "it is not UTF-8".into(),
        None => text,
    }
}

/// The action of [`Error::io`] for a temporary file that cannot be created. The path of the error is the directory of
/// the file.
pub(crate) const CANNOT_CREATE_TEMPORARY: &str = "cannot create a temporary file in this directory";
/// The action of [`Error::io`] for a temporary file that cannot be written.
pub(crate) const CANNOT_WRITE_TEMPORARY: &str = "cannot write a temporary file in this directory";

/// The result of a system call on a file.
pub(crate) trait FileResult<T> {
    /// Names the file and the action in the error, as [`Error::io`] does.
    fn for_path(self, path: &Path, action: &'static str) -> Result<T>;

    /// Returns `None` if the file does not exist.
    fn if_exists(self) -> io::Result<Option<T>>;
}

impl<T> FileResult<T> for io::Result<T> {
    fn for_path(self, path: &Path, action: &'static str) -> Result<T> {
        self.map_err(|error| Error::io(path, action, error))
    }

    fn if_exists(self) -> io::Result<Option<T>> {
        match self {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }
}

impl Error {
    /// Creates an error about a failed system call on a file. If `source` is a broken pipe, returns
    /// [`Error::ClosedPipe`].
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

    /// Creates an error about a bug in the program itself.
    pub(crate) fn internal(cause: impl fmt::Display) -> Self {
        Self::Internal(cause.to_string())
    }

    /// Creates an error about a position in a text. Only the beginning and the end of a very long cause are kept.
    pub(crate) fn in_text(
        path: &Path,
        (line, column): (u64, u64),
        cause: impl Into<String>,
    ) -> Self {
        Self::Text {
            path: path.to_owned(),
            line,
            column,
            cause: abbreviate_cause(cause),
        }
    }

    /// Creates an error about a file as a whole, of the kind [`ErrorKind::Unsupported`].
    pub fn file(path: &Path, cause: impl Into<String>) -> Self {
        Self::file_of(path, ErrorKind::Unsupported, cause)
    }

    /// Creates an error of the given kind about a file as a whole. Only the beginning and the end of a very long cause
    /// are kept.
    pub fn file_of(path: &Path, kind: ErrorKind, cause: impl Into<String>) -> Self {
        Self::File {
            path: path.to_owned(),
            kind,
            cause: abbreviate_cause(cause),
            advice: None,
        }
    }

    /// Returns the same error with advice. Has no effect on errors other than [`Error::File`].
    #[must_use]
    pub(crate) fn advise(mut self, given: Advice) -> Self {
        if let Self::File { advice, .. } = &mut self {
            *advice = Some(given);
        }
        self
    }

    /// Returns the same error. Adds advice if an input lacks what the command needs and the error has no advice yet.
    #[must_use]
    #[cfg(feature = "cli")]
    pub(crate) fn advise_on_lack(mut self, advice: Advice) -> Self {
        if let Self::Blob { source, .. } = &mut self
            && source.flaw == Flaw::Lack
            && source.advice.is_none()
        {
            source.advice = Some(advice);
        }
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                io::ErrorKind::AlreadyExists => ErrorKind::Exists,
                io::ErrorKind::PermissionDenied => ErrorKind::Denied,
                io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
                _ => ErrorKind::Io,
            },
            Self::Blob { source, .. } => match source.flaw {
                Flaw::Damage => ErrorKind::Damaged,
                Flaw::Truncation => ErrorKind::Truncated,
                Flaw::Lack => ErrorKind::Unsupported,
            },
            Self::Text { .. } => ErrorKind::Damaged,
            Self::File { kind, .. } => *kind,
            Self::Usage(_) => ErrorKind::Usage,
            Self::ClosedPipe => ErrorKind::Closed,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// Returns advice for the user, which is not part of the error message.
    pub fn advice(&self) -> Option<Advice> {
        match self {
            Self::Io { path, action, .. }
                if action.contains("a temporary file in this directory") =>
            {
                Some(if *path == std::env::temp_dir() {
                    Advice::SetTmpdir
                } else {
                    Advice::UseScratchElsewhere
                })
            }
            Self::File { advice, .. } => advice.clone(),
            Self::Text { cause, .. } if cause.ends_with(ENDS_EARLY) => Some(Advice::FetchAgain),
            Self::Blob { source, .. } if source.flaw == Flaw::Lack => source.advice.clone(),
            Self::Blob { source, .. } => Some(source.advice.clone().unwrap_or(Advice::Repair)),
            _ => None,
        }
    }
}

/// A violation of a format in the bytes of an input.
///
/// The error contains only the cause ("DenseNodes: 8000 ids but 7999 latitudes"). The code that reads the file adds the
/// file name, the index of the blob and its byte offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct FormatError {
    cause: Cow<'static, str>,
    flaw: Flaw,
    /// The advice for the user. `None` stands for the advice to repair the file or, with [`Flaw::Lack`], for no advice.
    advice: Option<Advice>,
}

/// The kind of a [`FormatError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// The input is damaged.
    Damage,
    /// The input ends too early.
    Truncation,
    /// The input is whole, but lacks what the command needs.
    Lack,
}

impl FormatError {
    const fn of(cause: Cow<'static, str>, flaw: Flaw) -> Self {
        Self {
            cause,
            flaw,
            advice: None,
        }
    }

    /// Creates an error with a fixed cause.
    pub const fn new(cause: &'static str) -> Self {
        Self::of(Cow::Borrowed(cause), Flaw::Damage)
    }

    /// Creates an error whose cause names values found in the input. Only the beginning and the end of a very long
    /// cause are kept.
    pub fn with(cause: impl Into<String>) -> Self {
        Self::of(Cow::Owned(abbreviate_cause(cause)), Flaw::Damage)
    }

    /// Returns the same error with `place` before the cause. `place` names the part of the input that is wrong, such as
    /// a protobuf message.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self {
            cause: Cow::Owned(format!("{place}: {}", self.cause)),
            ..self
        }
    }

    /// Returns the same error with advice.
    #[must_use]
    pub(crate) fn advise(self, advice: Advice) -> Self {
        Self {
            advice: Some(advice),
            ..self
        }
    }

    /// Creates an error with a fixed cause for an input that ends too early.
    pub(crate) const fn truncated(cause: &'static str) -> Self {
        Self::of(Cow::Borrowed(cause), Flaw::Truncation)
    }

    /// Whether the input ends too early.
    pub(crate) const fn is_truncated(&self) -> bool {
        matches!(self.flaw, Flaw::Truncation)
    }

    /// Creates an error about an object that occurs twice in a file of current data. `need` tells why the command
    /// needs each object once.
    pub(crate) fn repetition(object: impl fmt::Display, need: &str) -> Self {
        Self::lacking(
            format!("{object} occurs twice: {need}"),
            Some(Advice::Merge),
        )
    }

    /// Creates an error about an input that is whole, but lacks what the command needs. A very long cause is shortened
    /// as by [`with`](Self::with).
    pub(crate) fn lacking(cause: impl Into<String>, advice: Option<Advice>) -> Self {
        Self {
            advice,
            ..Self::of(Cow::Owned(abbreviate_cause(cause)), Flaw::Lack)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_cause_keeps_its_beginning_and_its_end() {
        let long = format!("string '{}' is too long", "é".repeat(1_000_000));
        let expected = |cause: &str| {
            assert!(cause.len() < 2100, "{} bytes", cause.len());
            assert!(cause.starts_with("string 'éé") && cause.ends_with("éé' is too long"));
        };
        expected(&FormatError::with(long.clone()).to_string());
        let path = Path::new("f");
        for error in [
            Error::file(path, long.clone()),
            Error::in_text(path, (1, 1), long),
        ] {
            let (Error::File { cause, .. } | Error::Text { cause, .. }) = error else {
                panic!("{error}");
            };
            expected(&cause);
        }
    }

    #[test]
    fn a_message_names_a_url_without_its_credentials() {
        for (url, named) in [
            (
                "https://me:secret@osm.example/a@b",
                "https://osm.example/a@b",
            ),
            ("HTTP://secret@osm.example:80", "HTTP://osm.example:80"),
            ("https://me:se@cret@[::1]?a", "https://[::1]?a"),
            ("https://osm.example/me@home", "https://osm.example/me@home"),
            ("file:///me@home/a", "file:///me@home/a"),
            ("me@home", "me@home"),
        ] {
            assert_eq!(without_credentials(url), named);
            let error = Error::file(Path::new(url), "no");
            assert_eq!(error.to_string(), format!("{named}: no"));
        }
    }
}
