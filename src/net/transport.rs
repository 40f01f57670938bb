//! Ways to files: what gives a file from some byte on.

use super::Fault;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

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
