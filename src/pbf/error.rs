//! What can be wrong with bytes.

use std::borrow::Cow;
use std::fmt;

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
