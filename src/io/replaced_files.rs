//! The files that a run replaces in a directory. The new files get the access of the replaced files: owner, permissions
//! and so on (see `access`).

use super::access;
use super::directory_content::{IsOwn, own_files};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The minimum permissions of the owner of each new file. The file may have to be read again before it gets its name.
const OF_FILE: u32 = 0o400;
/// The minimum permissions of the owner of each new directory. They allow the owner to create files in it.
const OF_DIRECTORY: u32 = 0o700;

/// The files that a run replaces in a directory, and the directories in which they are.
///
/// A new file gets the access of the old file of the same name. If there is no old file of this name, the new file gets
/// the narrowest access of all old files. Nobody can then read data that they could not read before.
#[derive(Debug, Default)]
pub(crate) struct ReplacedFiles {
    root: PathBuf,
    /// The paths of the files, relative to `root`.
    files: Vec<PathBuf>,
    /// The paths of the directories that contain the files, relative to `root`.
    directories: Vec<PathBuf>,
}

impl ReplacedFiles {
    /// Returns the files in the directory `root` that `is_own` recognises.
    pub(super) fn of(root: &Path, is_own: IsOwn) -> Self {
        Self::with_paths(root, own_files(root, is_own))
    }

    /// Returns the files with the paths `files` within the directory `root`. A file may be missing.
    pub(crate) fn with_paths(root: &Path, files: Vec<PathBuf>) -> Self {
        let above = files.iter().flat_map(|file| file.ancestors().skip(1));
        let mut directories: Vec<PathBuf> = above
            .filter(|path| !path.as_os_str().is_empty())
            .map(Path::to_owned)
            .collect();
        directories.sort_unstable();
        directories.dedup();
        Self {
            root: root.to_owned(),
            files,
            directories,
        }
    }

    /// Passes the access of the old files on to a new file. `name` is the later path of the new file within the output
    /// directory. Returns a warning if parts of the access could not be kept.
    pub(crate) fn copy_access_to_file(&self, name: &Path, new: &File) -> Option<String> {
        self.copy_access(&self.files, name, new, OF_FILE)
    }

    /// Passes the access of the old directories on to a new directory. `name` is the later path of the new directory
    /// within the output directory. Returns a warning if parts of the access could not be kept.
    pub(super) fn copy_access_to_directory(&self, name: &Path, new: &File) -> Option<String> {
        self.copy_access(&self.directories, name, new, OF_DIRECTORY)
    }

    /// Passes the access of the old directory on to the hidden directory in which the new files are written.
    pub(super) fn copy_access_to_root(&self, new: &File) -> Option<String> {
        access::copy_narrowest_access(std::slice::from_ref(&self.root), new, OF_DIRECTORY)
    }

    fn copy_access(&self, old: &[PathBuf], name: &Path, new: &File, least: u32) -> Option<String> {
        let same = self.root.join(name);
        let has_same = same.symlink_metadata().is_ok();
        let old = if has_same {
            vec![same]
        } else {
            old.iter().map(|old| self.root.join(old)).collect()
        };
        access::copy_narrowest_access(&old, new, least)
    }
}
