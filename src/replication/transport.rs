//! Getting files from a server: what may go wrong, and what to do about it.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// The reason why a server did not give a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// There is no such file.
    Missing,
    /// The server does not let this user have the file. Asking again does not help.
    Refused(String),
    /// The server asks for a pause, of this length if it says so.
    Busy(Option<Duration>),
    /// The file is incomplete on the server, which may be writing it.
    Incomplete(String),
    /// Trouble that may pass: a broken connection, a time-out, a status of 500 or more.
    Transient(String),
    /// Trouble that stays.
    Permanent(String),
}

/// A file from some byte on.
pub struct BodyRange {
    /// The number of bytes of the file before the part: those that were asked for, or 0 if the server gives whole files
    /// only.
    pub start: u64,
    /// The number of bytes of the part, if the server says so.
    pub len: Option<u64>,
    /// The bytes.
    pub bytes: Box<dyn Read + Send>,
}

/// A way to get files.
pub trait Transport: Send + Sync {
    /// Opens the file at a URL from the byte `start` on.
    ///
    /// # Errors
    ///
    /// The server does not give the file.
    fn open(&self, url: &str, start: u64) -> Result<BodyRange, Fault>;
}

/// Files of this machine, such as a mirror: `file:///srv/replication/day/state.txt`.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFiles;

impl Transport for LocalFiles {
    fn open(&self, url: &str, start: u64) -> Result<BodyRange, Fault> {
        let path = url.strip_prefix("file://").unwrap_or(url);
        // On Windows, `file:///C:/mirror` leads to a drive.
        let path = path
            .strip_prefix('/')
            .filter(|_| cfg!(windows))
            .unwrap_or(path);
        let opened = File::open(Path::new(path)).and_then(|mut file| {
            let len = file.metadata()?.len();
            let start = start.min(len);
            file.seek(SeekFrom::Start(start))?;
            Ok(BodyRange {
                start,
                len: Some(len - start),
                bytes: Box::new(file),
            })
        });
        opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Fault::Missing,
            ErrorKind::PermissionDenied => Fault::Refused(error.to_string()),
            _ => Fault::Permanent(error.to_string()),
        })
    }
}
