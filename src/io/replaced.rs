//! The file that an output replaces, with its lock against other runs and its identity.

use super::file_identity::FileIdentity;
use super::{FileLock, input};
use crate::error::{Advice, Error, ErrorKind, Result};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An existing file that an output will replace. As long as this value exists, other runs that try to replace the file
/// fail.
#[derive(Debug)]
pub(super) struct ReplacedFile {
    path: PathBuf,
    identity: FileIdentity,
    /// The lock on the existing file; `None` if it cannot be opened or its file system has no locks.
    _lock: Option<Arc<FileLock>>,
}

impl ReplacedFile {
    /// Returns the regular file at `path`, or `None` if there is none. `path` must contain no symbolic link. Fails if
    /// another run is replacing the file, or if the file has changed since this process began to read it.
    pub(super) fn lock_at(path: &Path) -> Result<Option<Self>> {
        let lock = match FileLock::acquire(path) {
            Ok(lock) => Some(lock),
            Err(error @ Error::File { .. }) => return Err(error),
            Err(_) => None,
        };
        let Some(metadata) = path.metadata().ok().filter(Metadata::is_file) else {
            return Ok(None);
        };
        let identity = FileIdentity::of(&metadata);
        let replaced = Self {
            path: path.to_owned(),
            identity,
            _lock: lock,
        };
        let is_read = |read: FileIdentity| read == identity;
        if input::open_input_identities(path).into_iter().all(is_read) {
            Ok(Some(replaced))
        } else {
            Err(Error::file(path, CHANGED))
        }
    }

    /// Fails if the path leads to another file now, or if the file was written to. Call this directly before the
    /// replacement.
    pub(super) fn verify(&self) -> io::Result<()> {
        let is_same = self
            .path
            .metadata()
            .is_ok_and(|metadata| FileIdentity::of(&metadata) == self.identity);
        if is_same {
            return Ok(());
        }
        Err(io::Error::other(CHANGED))
    }

    /// Fails if the file that is to replace this one is too small, see [`check_shrink`].
    pub(super) fn check_len(&self, new: &File, max_shrink: u8) -> Result<()> {
        let len = |file: io::Result<Metadata>| file.map(|metadata| metadata.len());
        match (len(self.path.metadata()), len(new.metadata())) {
            (Ok(old), Ok(new)) => check_shrink(&self.path, old, new, max_shrink),
            _ => Ok(()),
        }
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Fails if a new file of `new` bytes is smaller than the file of `old` bytes at `path` by more than `max_shrink`
/// percent. A file that is suddenly small usually comes from an input that was incomplete.
pub(crate) fn check_shrink(path: &Path, old: u64, new: u64, max_shrink: u8) -> Result<()> {
    let least = u128::from(old) * u128::from(100 - max_shrink.min(100)) / 100;
    if u128::from(new) >= least {
        return Ok(());
    }
    let cause = format!(
        "the new file would have {new} bytes instead of {old}, which is less by more than {max_shrink} %, so that the \
         old one stays"
    );
    Err(Error::file_of(path, ErrorKind::Shrunk, cause).advise(Advice::AllowShrinking))
}

const CHANGED: &str = "the file was changed or replaced by another program while this run was at work, and is left as \
                       that program wrote it; run the command again";
