//! The paths of unfinished outputs that have a name on disk, and of temporary directories, so that an interrupted
//! process can remove them.

use crate::runtime::lock;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Temporary directories, which are removed with all that is in them.
static TREES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Held while several outputs get their names.
static TOGETHER: Mutex<()> = Mutex::new(());

fn trees() -> MutexGuard<'static, Vec<PathBuf>> {
    lock(&TREES)
}

fn names() -> MutexGuard<'static, Vec<PathBuf>> {
    lock(&NAMES)
}

/// Removes all unfinished outputs that have a name on disk, and all temporary directories. Any later attempt to finish
/// an output, in any thread, blocks forever. So call this only in a process that is about to exit.
pub fn abandon_unfinished() {
    let together = lock(&TOGETHER);
    let names = names();
    // A directory comes before its content in the list, so the list is processed from its end.
    for name in names.iter().rev() {
        if fs::remove_file(name).is_err() {
            let _ = fs::remove_dir(name);
        }
    }
    let trees = trees();
    for tree in trees.iter() {
        // Another thread may add a file while the directory is removed, so this is tried several times.
        for _ in 0..3 {
            let _ = fs::remove_dir_all(tree);
        }
    }
    // Never releases the locks, so that an output that is about to get its name waits for them until the process exits.
    std::mem::forget(names);
    std::mem::forget(trees);
    std::mem::forget(together);
}

/// Runs `finish`, which gives several outputs their names. [`abandon_unfinished`] runs entirely before or entirely
/// after `finish`.
pub(super) fn together<T>(finish: impl FnOnce() -> T) -> T {
    let _together = lock(&TOGETHER);
    finish()
}

/// Registers a temporary directory, which [`abandon_unfinished`] removes with all that is in it.
pub(super) fn add_tree(path: &Path) {
    trees().push(path.to_owned());
}

/// Unregisters a temporary directory.
pub(super) fn end_tree(path: &Path) {
    trees().retain(|noted| noted != path);
}

/// Registers the path of an unfinished output, which [`abandon_unfinished`] removes.
pub(super) fn add(name: &Path) {
    names().push(name.to_owned());
}

/// Runs `finish`, which gives an unfinished output its final name or fails. Unregisters `temporary`, the path that the
/// output had until then. If `finish` succeeds, also unregisters the paths `completed`, which are complete together
/// with this output. The list of paths is locked while `finish` runs, so [`abandon_unfinished`] runs entirely before or
/// entirely after `finish`.
pub(super) fn end<T, E>(
    temporary: Option<&Path>,
    completed: &[PathBuf],
    finish: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let mut names = names();
    let result = finish();
    let completed = if result.is_ok() { completed } else { &[] };
    let completed: HashSet<&PathBuf> = completed.iter().collect();
    names.retain(|noted| Some(noted.as_path()) != temporary && !completed.contains(noted));
    result
}

/// Unregisters paths, all at once.
pub(super) fn end_all(paths: &[PathBuf]) {
    let paths: HashSet<&PathBuf> = paths.iter().collect();
    names().retain(|noted| !paths.contains(noted));
}

/// Removes the files and empty directories among `paths` that are still registered, in reverse order.
pub(super) fn abandon(paths: &[PathBuf]) {
    let mut names = names();
    let registered: HashSet<&PathBuf> = names.iter().collect();
    for path in paths.iter().rev() {
        if registered.contains(path) && fs::remove_file(path).is_err() {
            let _ = fs::remove_dir(path);
        }
    }
    let paths: HashSet<&PathBuf> = paths.iter().collect();
    names.retain(|noted| !paths.contains(noted));
}
