//! The reasons why a server does not give a file.

use std::fmt;
use std::io::Error as IoError;
use std::time::Duration;

/// The reason why a server did not give a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// There is no such file.
    Missing,
    /// The server denies the file to everybody, or to this address. Another attempt does not help.
    Refused(String),
    /// The server denies this user the file. It asks for cookies or a token, or does not accept those that were sent.
    /// Another attempt does not help.
    Unauthorized(String),
    /// The server sent an HTML page instead of the file, as some servers do for files that they do not have.
    Page,
    /// The server asks the client to wait. The duration is `None` if the server does not state it.
    Busy(Option<Duration>),
    /// The file is incomplete on the server, which may be writing it.
    Incomplete(String),
    /// A temporary fault, such as a broken connection, a timeout, or a status of 500 or more.
    Transient(String),
    /// A permanent fault, which another attempt does not remove.
    Permanent(String),
}

impl Fault {
    /// Returns the fault for fetched bytes that cannot be written to a temporary file.
    pub(crate) fn write_failure(error: &IoError) -> Self {
        Self::Permanent(format!("cannot write to a temporary file: {error}"))
    }

    /// Returns the fault for a file that is longer than `limit` bytes.
    pub(crate) fn too_long(limit: u64) -> Self {
        Self::Permanent(format!("the file is longer than {limit} bytes"))
    }

    /// Returns the fault for a server that sends less than a thousand bytes a second.
    pub(crate) fn too_slow() -> Self {
        Self::Transient("the server gives less than a thousand bytes a second".into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the server has no such file"),
            Self::Refused(cause) => write!(f, "the server refuses access ({cause})"),
            Self::Unauthorized(cause) => write!(
                f,
                "the server refuses access ({cause}); check the cookies or the token, and sign in again"
            ),
            Self::Page => f.write_str(
                "the server sent an HTML page instead of the file: it has no such file, or something on the way \
                 answers in its place",
            ),
            Self::Busy(_) => {
                f.write_str("the server asks to come back later; try again in some minutes")
            }
            Self::Transient(cause) | Self::Incomplete(cause) => {
                write!(f, "{cause}, also after several attempts; try again later")
            }
            Self::Permanent(cause) => f.write_str(cause),
        }
    }
}
