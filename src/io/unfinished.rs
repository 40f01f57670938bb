//! Names that outputs have on disk before they are finished, so that a process that has to end can
//! take them away.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn names() -> MutexGuard<'static, Vec<PathBuf>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes whatever unfinished outputs have a name on disk, and lets no output be finished from here
/// on. For a process that is about to end.
pub fn abandon_unfinished() {
    let names = names();
    for name in names.iter() {
        let _ = std::fs::remove_file(name);
    }
    // An output that was about to take its name waits for this lock, in vain.
    std::mem::forget(names);
}

/// Notes a name.
pub(super) fn add(name: &Path) {
    names().push(name.to_owned());
}

/// Ends an unfinished output, by `finish` or otherwise, and forgets its name. [`abandon_unfinished`]
/// happens before that or behind it.
pub(super) fn end<T>(name: &Path, finish: impl FnOnce() -> T) -> T {
    let mut names = names();
    let result = finish();
    names.retain(|noted| noted != name);
    result
}
