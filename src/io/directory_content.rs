//! Tells whether all files of a directory that is to be replaced were written by this program.

use super::staging::is_temporary;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A function that tells whether this program has written a file, given the path of the file within its directory, and
/// the open file.
pub(crate) type IsOwn = fn(&Path, &File) -> bool;

/// The maximum depth of directories that are searched. This program never creates deeper directories.
const DEPTH: u32 = 5;

/// The content of a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The directory is missing or empty.
    Nothing,
    /// This program has written all files in the directory.
    Own,
    /// The directory has entries that this program has not written. The field is the path of the first such entry,
    /// relative to the directory.
    Foreign(PathBuf),
}

impl Content {
    /// Returns the content of a directory, ignoring the entry `staged`. Does not follow symbolic links.
    pub(super) fn of(directory: &Path, staged: Option<&Path>, is_own: IsOwn) -> Self {
        match walk(directory, Path::new(""), DEPTH, staged, is_own) {
            Ok(true) => Self::Own,
            Ok(false) => Self::Nothing,
            Err(path) => Self::Foreign(path),
        }
    }
}

/// Whether a directory has entries. The error is the path of the first entry that this program has not written.
fn walk(
    root: &Path,
    below: &Path,
    depth: u32,
    staged: Option<&Path>,
    is_own: IsOwn,
) -> Result<bool, PathBuf> {
    let entries = match fs::read_dir(root.join(below)) {
        Ok(entries) => entries,
        // The directory is missing, or its path is that of a file. In the second case, creating the directory fails
        // later and reports the cause.
        Err(_) if below.as_os_str().is_empty() => return Ok(false),
        Err(_) => return Err(below.to_owned()),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|_| below.to_owned())?;
        if staged != Some(entry.path().as_path()) {
            paths.push((below.join(entry.file_name()), entry.file_type().ok()));
        }
    }
    paths.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (path, kind) in &paths {
        let is_good = match kind {
            Some(kind) if kind.is_dir() && depth > 1 => {
                walk(root, path, depth - 1, staged, is_own)?
            }
            Some(kind) if kind.is_file() => {
                File::open(root.join(path)).is_ok_and(|file| is_own(path, &file))
            }
            _ => false,
        };
        if !is_good {
            return Err(path.clone());
        }
    }
    Ok(!paths.is_empty())
}

/// Returns the paths, relative to a directory, of the files in it that this program has written. Does not follow
/// symbolic links.
pub(super) fn own_files(directory: &Path, is_own: IsOwn) -> Vec<PathBuf> {
    let mut files = Vec::new();
    find_own(directory, Path::new(""), DEPTH, is_own, &mut files);
    files
}

fn find_own(root: &Path, below: &Path, depth: u32, is_own: IsOwn, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(root.join(below)) else {
        return;
    };
    for entry in entries
        .flatten()
        .filter(|entry| !is_temporary(&entry.file_name()))
    {
        let path = below.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 1 => {
                find_own(root, &path, depth - 1, is_own, files);
            }
            Ok(kind)
                if kind.is_file()
                    && File::open(entry.path()).is_ok_and(|file| is_own(&path, &file)) =>
            {
                files.push(path);
            }
            _ => {}
        }
    }
}

/// Removes from a directory all files that this program has written, including temporary files. Then removes the empty
/// directories within the directory.
pub(super) fn remove_own(directory: &Path, is_own: IsOwn) {
    remove_below(directory, Path::new(""), DEPTH, is_own);
}

fn remove_below(root: &Path, below: &Path, depth: u32, is_own: IsOwn) {
    let Ok(entries) = fs::read_dir(root.join(below)) else {
        return;
    };
    for entry in entries.flatten() {
        let path = below.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 1 && !is_temporary(&entry.file_name()) => {
                remove_below(root, &path, depth - 1, is_own);
                let _ = fs::remove_dir(root.join(path));
            }
            Ok(kind) if kind.is_file() => {
                let is_own = |file| is_temporary(&entry.file_name()) || is_own(&path, &file);
                if File::open(entry.path()).is_ok_and(is_own) {
                    let _ = fs::remove_file(entry.path());
                }
            }
            _ => {}
        }
    }
}
