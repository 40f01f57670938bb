//! The names on disk of unfinished outputs, so that a process that is interrupted can remove them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn names() -> MutexGuard<'static, Vec<PathBuf>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished outputs that have a name on disk, and blocks every attempt to finish an output from then
/// on. For a process that is about to exit.
pub fn abandon_unfinished() {
    let names = names();
    for name in names.iter() {
        let _ = std::fs::remove_file(name);
    }
    // Keep the lock: an output that is about to get its name waits for it until the process exits.
    std::mem::forget(names);
}

/// Registers the name of an unfinished output.
pub(super) fn add(name: &Path) {
    names().push(name.to_owned());
}

/// Runs `finish`, which ends an unfinished output successfully or not, and unregisters its name. The lock is held
/// meanwhile: [`abandon_unfinished`] runs entirely before or entirely after.
pub(super) fn end<T>(name: &Path, finish: impl FnOnce() -> T) -> T {
    let mut names = names();
    let result = finish();
    names.retain(|noted| noted != name);
    result
}
