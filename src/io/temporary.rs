//! Temporary files beside outputs. A process that is killed can leave one: a later run with the same output removes it.
//!
//! A temporary file is locked as long as its process uses it, so that no other run takes it for a remnant.

use super::output::directory_of;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The maximum number of bytes of an output's name in the name of a temporary file, so that file systems take the latter.
const MAX_NAME: usize = 200;
const SUFFIX: &str = ".tmp";

/// How the names of the temporary files of an output begin.
fn prefix(path: &Path) -> OsString {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut prefix = OsString::from(".");
    prefix.push(OsStr::from_bytes(&name[..name.len().min(MAX_NAME)]));
    prefix.push(".pbfhogg-");
    prefix
}

/// A name for a temporary file of the output `path`.
pub(super) fn name(path: &Path, number: u64) -> PathBuf {
    let mut name = prefix(path);
    name.push(format!("{}-{number}{SUFFIX}", std::process::id()));
    path.with_file_name(name)
}

/// Creates a temporary file for the output `path`.
pub(super) fn create(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = prefix(path);
    loop {
        let temp = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(SUFFIX)
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory_of(path))?;
        lock(temp.as_file());
        // Another run may have removed it before it was locked.
        if temp.as_file().metadata()?.nlink() > 0 {
            return Ok(temp);
        }
    }
}

/// Says that a file is in use. Where the file system has no locks, remnants cannot be told from files in use and stay.
pub(super) fn lock(file: &File) {
    let _ = file.lock();
}

/// Says that a file is no longer in use as a temporary file.
pub(super) fn unlock(file: &File) {
    let _ = file.unlock();
}

/// Removes temporary files of the output `path` that no process uses. What cannot be removed stays.
pub(super) fn remove_remnants(path: &Path) {
    let Ok(entries) = fs::read_dir(directory_of(path)) else {
        return;
    };
    let prefix = prefix(path);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.as_bytes();
        if !name.starts_with(prefix.as_bytes()) || !name.ends_with(SUFFIX.as_bytes()) {
            continue;
        }
        let is_unused = |file: File| file.try_lock().is_ok();
        if File::open(entry.path()).is_ok_and(is_unused) {
            let _ = fs::remove_file(entry.path());
        }
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
            name(&directory.path().join("other.osm.pbf"), 1),
            path.clone(),
        ];
        for other in &others {
            fs::write(other, "").unwrap();
        }
        fs::write(name(&path, 7), "").unwrap();
        let entries = || fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(entries(), 4);
        remove_remnants(&path);
        assert_eq!(entries(), 3);
        assert!(used.path().exists() && others.iter().all(|other| other.exists()));
        // A long name.
        let long = directory.path().join("x".repeat(255));
        drop(create(&long).unwrap());
    }
}
