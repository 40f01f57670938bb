//! Transports, which open files at a given byte.

use super::Fault;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// The bytes of a file from an offset to its end.
pub struct BodyRange {
    /// The offset of the first byte. It is the requested offset, or 0 if the server does not support ranges.
    pub start: u64,
    /// The number of bytes from the offset to the end, if the server states it.
    pub len: Option<u64>,
    /// A text that is different for each version of the file, such as its ETag; `None` if the version is unknown.
    pub version: Option<String>,
    /// A reader of the bytes.
    pub bytes: Box<dyn Read + Send>,
}

/// A source of files that are addressed by URLs.
pub trait Transport: Send + Sync {
    /// Opens the file at a URL from the byte `start` on.
    ///
    /// # Errors
    ///
    /// The server does not give the file.
    fn open(&self, url: &str, start: u64) -> Result<BodyRange, Fault>;
}

/// Files on this machine, such as those of a mirror, with URLs like `file:///srv/replication/day/state.txt`.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFiles;

impl Transport for LocalFiles {
    fn open(&self, url: &str, start: u64) -> Result<BodyRange, Fault> {
        let path = url.strip_prefix("file://").unwrap_or(url);
        // On Windows, the URL of a path with a drive is `file:///C:/mirror`, so the slash before the drive is removed.
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
                version: None,
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
