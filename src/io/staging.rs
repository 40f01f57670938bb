//! Staging directories: hidden directories that hold the files of an output directory until all files get their names
//! together.
//!
//! A staging directory for the directory NAME is called `.NAME.pbfhogg-….tmp`. It is beside NAME or, if NAME cannot be
//! renamed, inside NAME. The staging directory of an update is called `.update.pbfhogg-….tmp` and is inside NAME. A
//! staging directory is locked as long as its process uses it. A later run with the same output removes unlocked
//! staging directories, which killed processes have left. If the file system has no locks on directories (NFS), the
//! staging directories of killed processes stay.

use super::directory_content::{IsOwn, remove_own_files};
use super::output::{Directory, check_directory};
use super::temporary::{MOVING, directory_of};
use super::{temporary, unfinished};
use crate::error::{Error, Result};
use crate::system;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of a mark, which is a file in the staging directory of an update. The mark means that all files of the
/// update are on disk, in the staging directory or already at their final paths. If the process was killed, the next
/// run moves the remaining files.
pub(super) const COMPLETE: &str = ".complete";
/// The suffix of the temporary name of a directory that is being replaced. The directory is removed afterwards.
const REPLACED: &str = "-replaced.tmp";

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
    /// Creates the staging directory for the directory `real`. `root` is its path as the user wrote it, for messages.
    pub(super) fn begin(root: &Path, real: &Path) -> Result<Self> {
        let failed = |error| Error::io(root, "cannot create the directory", error);
        if !real.is_dir() {
            check_directory(directory_of(real), root)?;
            if real.symlink_metadata().is_ok() {
                return Err(failed(io::ErrorKind::AlreadyExists.into()));
            }
        }
        Self::create_beside_or_within(real).map_err(failed)
    }

    /// Creates a staging directory beside the directory `root`, or in it if `root` cannot be renamed.
    fn create_beside_or_within(root: &Path) -> io::Result<Self> {
        let within = root.join(root.file_name().unwrap_or_default());
        if root.is_dir() && !can_be_renamed(root) {
            Self::create_named_like(&within)
        } else {
            match Self::create_named_like(root) {
                Err(error) if root.is_dir() && is_directory_change_denied(&error) => {
                    Self::create_named_like(&within)
                }
                result => result,
            }
        }
    }

    /// Creates a staging directory, named like a temporary file of the output `path`.
    pub(super) fn create_named_like(path: &Path) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = temporary::temporary_path(path, COUNTER.fetch_add(1, Ordering::Relaxed));
            unfinished::register(&name);
            let made = fs::create_dir(&name);
            if let Err(error) = made {
                unfinished::unregister_all(std::slice::from_ref(&name));
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

    /// Returns a value without a staging directory, for files that are created with their final names in the existing
    /// directory `root`.
    pub(super) const fn without_staging_directory(root: PathBuf) -> Self {
        Self {
            path: root,
            created: Vec::new(),
            _lock: None,
        }
    }

    /// Returns the path of the directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the staging directory is in `root`, and not beside it.
    pub(super) fn is_within(&self, root: &Path) -> bool {
        self.path().parent() == Some(root)
    }

    /// Registers a file that was created in the staging directory.
    pub(super) fn add(&mut self, path: PathBuf) {
        unfinished::register(&path);
        self.created.push(path);
    }

    /// Creates a directory in the staging directory.
    pub(super) fn create_directory(&mut self, name: &Path) -> io::Result<()> {
        let path = self.path().join(name);
        self.add(path.clone());
        fs::create_dir(path)
    }

    /// Returns the temporary path to which the old directory is moved before the new one takes its place. The path is
    /// beside the staging directory.
    pub(super) fn path_for_old_directory(&self) -> PathBuf {
        let name = self.path().file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let name = name.trim_end_matches(".tmp");
        self.path().with_file_name(format!("{name}{REPLACED}"))
    }

    /// Flushes the files and the entries of all directories to disk.
    pub(super) fn flush(&self) -> io::Result<()> {
        // One flush of the whole file system takes less time than flushes of many files.
        const MANY: usize = 32;
        if self.created.len() > MANY && system::sync_file_system(self.path())? {
            return Ok(());
        }
        for path in &self.created {
            if path.is_dir() {
                flush_entries(path)?;
            } else {
                system::sync(&open_for_update(path)?)?;
            }
        }
        Ok(())
    }

    /// Returns the first path within `root` that a staged file or directory needs but that is occupied: by a file that
    /// `is_own` does not recognise, or by something of another type. Does not follow symbolic links.
    pub(super) fn first_obstacle(&self, root: &Path, is_own: IsOwn) -> Option<PathBuf> {
        let in_the_way = |staged: &&Path| {
            let place = root.join(staged);
            place.symlink_metadata().is_ok_and(|found| {
                if self.path().join(staged).is_dir() {
                    !found.is_dir()
                } else {
                    let is_own = |file| is_own(staged, &file);
                    !found.is_file() || !File::open(place).is_ok_and(is_own)
                }
            })
        };
        let below = self.created.iter().skip(1);
        let mut below = below.filter_map(|path| path.strip_prefix(self.path()).ok());
        below.find(in_the_way).map(Path::to_owned)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        unfinished::remove_unfinished_paths(&self.created);
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
pub(super) fn is_directory_change_denied(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    let kinds = [
        CrossesDevices,
        PermissionDenied,
        ReadOnlyFilesystem,
        ResourceBusy,
    ];
    kinds.contains(&error.kind())
}

/// Opens a file of this program to flush it or to change its access. On Unix, a file that nobody may write is opened
/// for reading, which is enough to flush it.
pub(super) fn open_for_update(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().write(true).open(path);
    opened.or_else(|_| File::open(path))
}

/// Flushes the entries of a directory to disk.
pub(super) fn flush_entries(directory: &Path) -> io::Result<()> {
    // `Directory::containing` opens the directory that contains a path.
    Directory::containing(&directory.join("entry")).sync()
}

/// Moves the entries of the directory `from` to the directory `to`, one after another. The entry named `mark` is not
/// moved. If both directories contain a subdirectory of the same name, moves the entries of that subdirectory.
pub(super) fn move_entries(from: &Path, to: &Path, mark: &str) -> io::Result<()> {
    let names: io::Result<Vec<_>> = fs::read_dir(from)?
        .map(|entry| Ok(entry?.file_name()))
        .collect();
    let mut names = names?;
    names.sort_unstable();
    for name in names.iter().filter(|name| *name != mark) {
        let (old, new) = (from.join(name), to.join(name));
        if old.is_dir() && new.is_dir() {
            move_entries(&old, &new, mark)?;
            flush_entries(&new)?;
            fs::remove_dir(old)?;
        } else {
            fs::rename(old, new)?;
        }
    }
    Ok(())
}

/// Cleans up after killed runs with the output directory `root`. Removes their staging directories. If a killed run had
/// begun to replace `root`, completes or undoes the replacement.
pub(super) fn recover_killed_runs(root: &Path, is_own: IsOwn) {
    let within = root.join(root.file_name().unwrap_or_default());
    let mut remnants = temporary::stale_temporary_paths(root);
    remnants.extend(temporary::stale_temporary_paths(&within));
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
                remove_own_files(root, is_own);
            }
            remove_own_files(&remnant, is_own);
            let _ = fs::remove_dir(&remnant);
        }
    }
}

/// Moves the files of a staging directory to `root` if the update that wrote them is complete. Then removes the staging
/// directory.
pub(super) fn recover_update(staged: &Path, root: &Path) -> io::Result<()> {
    if staged.join(COMPLETE).exists() {
        move_entries(staged, root, COMPLETE)?;
    }
    fs::remove_dir_all(staged)
}
