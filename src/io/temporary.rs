//! Temporary files beside outputs. A killed process can leave one behind. A later run with the same output removes it.
//!
//! A temporary file is locked as long as its process uses it, so that no other run mistakes it for a remnant.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The maximum number of bytes that the name of a temporary file takes from the name of its output. File systems limit
/// the length of names.
const MAX_NAME: usize = 200;
const SUFFIX: &str = ".tmp";

/// The name of a mark, which is a file in a staging directory. The mark exists while files are moved one by one from
/// the staging directory to the target. Until the mark is removed, the target is incomplete. If the process is killed,
/// the next run removes the files in both directories.
pub(super) const MOVING: &str = ".moving";

/// Returns the prefix of the names of temporary files of the output `path`.
fn prefix(path: &Path) -> OsString {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut len = name.len().min(MAX_NAME);
    while !name.is_char_boundary(len) {
        len -= 1;
    }
    format!(".{}.pbfhogg-", &name[..len]).into()
}

/// Returns a name for a temporary file of the output `path`.
pub(super) fn temporary_path(path: &Path, number: u64) -> PathBuf {
    let mut name = prefix(path);
    name.push(format!("{}-{number}{SUFFIX}", std::process::id()));
    path.with_file_name(name)
}

/// Creates a temporary file for the output `path`.
pub(super) fn create(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = prefix(path);
    loop {
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(SUFFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let temp = builder.tempfile_in(directory_of(path))?;
        lock(temp.as_file());
        // Another run may have removed the file before it was locked. If so, tries another name.
        if temp.path().exists() {
            return Ok(temp);
        }
    }
}

/// Locks a file to mark it as in use. Where the file system has no locks, remnants cannot be told apart from files in
/// use, and stay.
pub(super) fn lock(file: &File) {
    let _ = file.lock();
}

/// Unlocks a file that is no longer temporary.
pub(super) fn unlock(file: &File) {
    let _ = file.unlock();
}

/// Whether a name is that of a temporary file or directory of this program.
pub(super) fn is_temporary_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let mark = b".pbfhogg-";
    name.starts_with(b".")
        && name.ends_with(SUFFIX.as_bytes())
        && name.windows(mark.len()).any(|part| part == mark)
}

/// Whether a name is that of a temporary file of this program, or of the mark of a staging directory.
pub(super) fn is_temporary_or_mark(name: &OsStr) -> bool {
    name == MOVING || is_temporary_name(name)
}

/// Returns the temporary files and directories of the output `path` that no process uses.
pub(super) fn stale_temporary_paths(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory_of(path)) else {
        return Vec::new();
    };
    let prefix = prefix(path);
    let is_unused = |path: &PathBuf| {
        // Opens only regular files and directories, because opening anything else, such as a named pipe, may block
        // forever.
        let is_ours = |found: fs::Metadata| found.is_file() || found.is_dir();
        path.symlink_metadata().is_ok_and(is_ours)
            && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
    };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let begins = name
                .as_encoded_bytes()
                .starts_with(prefix.as_encoded_bytes());
            begins && is_temporary_name(&name)
        })
        .map(|entry| entry.path())
        .filter(is_unused)
        .collect()
}

/// Removes temporary files of the output `path` that no process uses. Failures are ignored.
pub(super) fn remove_stale_temporaries(path: &Path) {
    for remnant in stale_temporary_paths(path) {
        let _ = fs::remove_file(remnant);
    }
}

/// Returns the directory that contains `path`; `.` for a bare file name.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remnants_are_removed_and_files_in_use_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.osm.pbf");
        let used = create(&path).unwrap();
        let others = [
            temporary_path(&directory.path().join("other.osm.pbf"), 1),
            path.clone(),
        ];
        for other in &others {
            fs::write(other, "").unwrap();
        }
        fs::write(temporary_path(&path, 7), "").unwrap();
        let entries = || fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(entries(), 4);
        remove_stale_temporaries(&path);
        assert_eq!(entries(), 3);
        assert!(used.path().exists() && others.iter().all(|other| other.exists()));
        // The name of the output has the maximum length, so the temporary name contains only a part of it.
        let long = directory.path().join("x".repeat(255));
        drop(create(&long).unwrap());
    }
}
