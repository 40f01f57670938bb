//! The paths of unfinished outputs that have a name on disk, so that an interrupted process can remove the files and
//! empty directories.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn names() -> MutexGuard<'static, Vec<PathBuf>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished outputs that have a name on disk. Any later attempt to finish an output, in any thread,
/// blocks forever: call this only in a process that is about to exit.
pub fn abandon_unfinished() {
    let names = names();
    // A directory comes before what it holds.
    for name in names.iter().rev() {
        if std::fs::remove_file(name).is_err() {
            let _ = std::fs::remove_dir(name);
        }
    }
    // Never release the lock: an output that is about to get its name waits for the lock until the process exits.
    std::mem::forget(names);
}

/// Registers the path of an unfinished output, which [`abandon_unfinished`] removes.
pub(super) fn add(name: &Path) {
    names().push(name.to_owned());
}

/// Runs `finish`, which gives an unfinished output its final name or fails, and unregisters the output's path `name`.
/// The list of paths is locked meanwhile, so that [`abandon_unfinished`] runs entirely before `finish` or entirely
/// after it.
pub(super) fn end<T>(name: &Path, finish: impl FnOnce() -> T) -> T {
    let mut names = names();
    let result = finish();
    names.retain(|noted| noted != name);
    result
}

/// Runs `finish` as [`end`] does, for an output whose path is not registered, or stays so.
pub(super) fn undisturbed<T>(finish: impl FnOnce() -> T) -> T {
    let _names = names();
    finish()
}

/// Unregisters paths, all at once.
pub(super) fn end_all(paths: &[PathBuf]) {
    names().retain(|noted| !paths.contains(noted));
}
