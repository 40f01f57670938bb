//! Locks on files that a run replaces. A lock prevents two runs from replacing the same file at the same time.

use crate::error::{Error, ErrorKind, Result};
use crate::runtime::lock;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

/// A lock on a file. [`acquire`](Self::acquire) returns the lock in an `Arc`. The lock lasts until the last clone of
/// the `Arc` is dropped, or until the process ends. A run locks each existing file that it will replace. If a process
/// locks a file twice, both callers share the lock.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
}

impl Drop for FileLock {
    /// Unlocks the file. Closing the file would not be enough: a child process that another thread has just started
    /// holds a copy of the descriptor until it executes its program.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// The locks of this process.
static LOCKS: Mutex<Vec<Weak<FileLock>>> = Mutex::new(Vec::new());

/// The maximum number of attempts to lock the file at a path, if the file is replaced between opening and locking.
const ATTEMPTS: u32 = 10;

impl FileLock {
    /// Locks a file.
    ///
    /// # Errors
    ///
    /// - [`Error::File`], of the kind [`ErrorKind::Locked`]: another run has locked the file.
    /// - [`Error::Io`]: the file cannot be opened, or its file system has no locks.
    pub(crate) fn acquire(path: &Path) -> Result<Arc<Self>> {
        let failed = |error| Error::io(path, "cannot open", error);
        let mut locks = lock(&LOCKS);
        locks.retain(|lock| lock.strong_count() > 0);
        for _ in 0..ATTEMPTS {
            let file = open_to_lock(path).map_err(failed)?;
            for lock in locks.iter().filter_map(Weak::upgrade) {
                if is_same_file(&lock.file, &file).map_err(failed)? {
                    return Ok(lock);
                }
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let cause = if path.is_dir() {
                        "another run is at work on this directory"
                    } else {
                        "another run is replacing this file"
                    };
                    return Err(locked_error(path, cause));
                }
                Err(TryLockError::Error(error)) => {
                    return Err(Error::io(path, "cannot lock", error));
                }
            }
            if is_still_at(&file, path).map_err(failed)? {
                let lock = Arc::new(Self { file });
                locks.push(Arc::downgrade(&lock));
                return Ok(lock);
            }
        }
        Err(locked_error(
            path,
            "other runs replace this file again and again",
        ))
    }
}

fn locked_error(path: &Path, cause: &str) -> Error {
    Error::file_of(path, ErrorKind::Locked, cause)
}

/// Opens a file. Does not wait for a writer even if a named pipe is at the path.
pub(super) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    options.read(true).open(path)
}

/// Opens the file to be locked, which is the file at `path` itself.
#[cfg(unix)]
fn open_to_lock(path: &Path) -> io::Result<File> {
    open_without_waiting(path)
}

/// Opens the file to be locked. On Windows this is another file beside the file at `path`, because a locked file cannot
/// be read.
#[cfg(windows)]
fn open_to_lock(path: &Path) -> io::Result<File> {
    // The file may have several paths, but all of them must lead to the same lock file.
    let path = path.canonicalize()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    File::create(path.with_file_name(format!(".{name}.pbfhogg-lock")))
}

/// Whether two descriptors refer to the same file.
#[cfg(unix)]
fn is_same_file(one: &File, other: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Returns `false`, because it is unknown whether two descriptors refer to the same file.
#[cfg(windows)]
fn is_same_file(_: &File, _: &File) -> io::Result<bool> {
    Ok(false)
}

/// Whether a locked file is still the file at `path`.
#[cfg(unix)]
fn is_still_at(locked: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (locked, named) = (locked.metadata()?, path.metadata()?);
    Ok((locked.dev(), locked.ino()) == (named.dev(), named.ino()))
}

/// Whether a locked file is still the lock file for `path`. It always is, because lock files are never replaced.
#[cfg(windows)]
fn is_still_at(_: &File, path: &Path) -> io::Result<bool> {
    path.metadata().map(|_| true)
}
