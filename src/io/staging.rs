//! Staging directories: hidden directories that hold the files of an output directory until all files get their names
//! together.
//!
//! A staging directory for the directory NAME is called `.NAME.pbfhogg-….tmp`. It is beside NAME or, if NAME cannot be
//! renamed, inside NAME. A staging directory is locked as long as its process uses it. A later run with the same output
//! removes unlocked staging directories, which killed processes have left. If the file system has no locks on
//! directories (NFS), the staging directories of killed processes stay.

use super::output::check_directory;
use super::temporary::directory_of;
use super::{temporary, unfinished};
use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of the mark, a file in a staging directory. The mark means that files are being moved from there to the
/// target one by one.
pub(super) const MOVING: &str = ".moving";
/// The suffix of the temporary name of a directory that is being replaced. The directory is removed afterwards.
pub(super) const REPLACED: &str = "-replaced.tmp";

/// A staging directory. Dropping it removes the directory and its files, unless they have been moved to their final
/// place.
#[derive(Debug)]
pub(super) struct Staging {
    path: PathBuf,
    /// The paths of the staging directory and of everything in it. Parents come before their children.
    pub(super) created: Vec<PathBuf>,
    /// The lock on the staging directory; `None` on systems where directories cannot be opened.
    _lock: Option<File>,
}

impl Staging {
    /// Creates the staging directory for `real`, which the user calls `root`.
    pub(super) fn begin(root: &Path, real: &Path) -> Result<Self> {
        let failed = |error| Error::io(root, "cannot create the directory", error);
        if !real.is_dir() {
            check_directory(directory_of(real), root)?;
            if real.symlink_metadata().is_ok() {
                return Err(failed(io::ErrorKind::AlreadyExists.into()));
            }
        }
        Self::of(real).map_err(failed)
    }

    /// Creates a staging directory beside the directory `root`, or in it if `root` cannot be renamed.
    fn of(root: &Path) -> io::Result<Self> {
        let within = root.join(root.file_name().unwrap_or_default());
        if root.is_dir() && !can_be_renamed(root) {
            Self::named_as(&within)
        } else {
            match Self::named_as(root) {
                Err(error) if root.is_dir() && is_denied(&error) => Self::named_as(&within),
                result => result,
            }
        }
    }

    /// Creates a staging directory, named like a temporary file of the output `path`.
    pub(super) fn named_as(path: &Path) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = temporary::name(path, COUNTER.fetch_add(1, Ordering::Relaxed));
            unfinished::add(&name);
            let made = fs::create_dir(&name);
            if let Err(error) = made {
                unfinished::end_all(std::slice::from_ref(&name));
                match error.kind() {
                    // A killed process with the same process id left a directory of this name. Tries the next name.
                    io::ErrorKind::AlreadyExists => continue,
                    _ => return Err(error),
                }
            }
            let lock = File::open(&name).ok();
            if let Some(file) = &lock {
                temporary::lock(file);
            }
            let staging = Self {
                path: name.clone(),
                created: vec![name.clone()],
                _lock: lock,
            };
            // Another run may have removed the directory before it was locked. If so, tries the next name.
            if name.is_dir() {
                return Ok(staging);
            }
        }
    }

    /// The path of the directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Registers a file that was created in the staging directory.
    pub(super) fn add(&mut self, path: PathBuf) {
        unfinished::add(&path);
        self.created.push(path);
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        unfinished::abandon(&self.created);
    }
}

/// Whether a directory can be renamed. It must be neither a mount point nor the working directory or a parent of it. If
/// the working directory were renamed, the shell that started the process would stay in the old directory.
fn can_be_renamed(directory: &Path) -> bool {
    let current = std::env::current_dir().and_then(|current| current.canonicalize());
    let is_above = current.is_ok_and(|current| current.starts_with(directory));
    !is_above && directory.file_name().is_some() && !crate::system::is_mount_root(directory)
}

/// Whether an error means that the entries of the parent directory cannot be changed.
pub(super) fn is_denied(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    let kinds = [
        CrossesDevices,
        PermissionDenied,
        ReadOnlyFilesystem,
        ResourceBusy,
    ];
    kinds.contains(&error.kind())
}

/// Removes the staging directories of `root` that killed runs have left, and completes or undoes the replacements that
/// those runs had begun. `remove` removes from a directory the files that this program has written.
pub(super) fn clear(root: &Path, remove: impl Fn(&Path)) {
    let within = root.join(root.file_name().unwrap_or_default());
    let mut remnants = temporary::remnants(root);
    remnants.extend(temporary::remnants(&within));
    for remnant in remnants {
        let name = remnant.file_name().unwrap_or_default().to_string_lossy();
        let is_missing = root.symlink_metadata().is_err();
        if !remnant.is_dir() {
            let _ = fs::remove_file(&remnant);
        } else if name.ends_with(REPLACED) && is_missing {
            // The process was killed after it had moved the old directory away, and before the new one had its name.
            let _ = fs::rename(&remnant, root);
        } else {
            if remnant.join(MOVING).exists() {
                remove(root);
            }
            remove(&remnant);
            let _ = fs::remove_dir(&remnant);
        }
    }
}

/// Whether a name is that of a temporary file of this program, or of the mark of a staging directory.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    name == MOVING || temporary::is_name(name)
}
