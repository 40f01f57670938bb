//! The identity of a file on disk.

use std::fs::Metadata;

/// Distinguishes a file from other files, and from its own state before a later write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    place: (u64, u64),
    len: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    /// The device, the inode, the length and the time of the last write.
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            place: (metadata.dev(), metadata.ino()),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// The times of creation and of the last write, and the length.
    #[cfg(windows)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::windows::fs::MetadataExt;
        Self {
            place: (metadata.creation_time(), 0),
            len: metadata.len(),
            modified: (metadata.last_write_time() as i64, 0),
        }
    }
}
