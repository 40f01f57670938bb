//! Gives complete files the names under which other programs read them, and creates their directories.

use super::access;
use super::output::Directory;
use super::temporary::directory_of;
use crate::error::{FileResult, Result};
use crate::runtime::Cancellation;
use crate::system::{self, Call};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Renames a complete file, which is on disk, to `place` in the same file system. Replaces an existing file atomically,
/// so that a reader sees either the old file or the new one. The new file gets the permissions of the old one.
pub(crate) fn publish(file: &Path, place: &Path, cancellation: &Cancellation) -> Result<()> {
    cancellation.check()?;
    let renamed = File::open(file).and_then(|opened| {
        let _ = access::copy_attributes(place, &opened);
        let directory = Directory::containing(place);
        system::admit(Call::Rename, 0)?;
        fs::rename(file, place)?;
        directory.sync()
    });
    renamed.for_path(place, "cannot give the finished output its name")
}

/// Creates a directory and its missing parents, and flushes them to disk.
pub(crate) fn create_directories(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let above = directory_of(path);
    create_directories(above)?;
    let created = match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.and_then(|()| Directory::containing(path).sync()),
    };
    created.for_path(path, "cannot create this directory")
}
