//! The identity of a file on disk.

use std::fs::Metadata;

/// The facts that distinguish a file from other files, and from the same file after a later write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    /// The device and the inode; on Windows, the time of creation and 0.
    place: (u64, u64),
    len: u64,
    /// The time of the last write: seconds and nanoseconds; on Windows, the time as Windows stores it and 0.
    modified: (i64, i64),
}

impl FileIdentity {
    /// Returns the identity of a file, which consists of its device, its inode, its size and the time of its last
    /// write.
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            place: (metadata.dev(), metadata.ino()),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Returns the identity of a file, which consists of the times of its creation and of its last write, and its size.
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
