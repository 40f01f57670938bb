//! The paths of unfinished outputs that have a name on disk, and of temporary directories. They are recorded so that an
//! interrupted process can remove these outputs and directories.

use crate::runtime::lock;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

static NAMES: Mutex<RegisteredPaths> = Mutex::new(RegisteredPaths {
    by_number: BTreeMap::new(),
    numbers: BTreeMap::new(),
    next: 0,
});

/// Temporary directories, which are removed with all that is in them.
static TREES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A lock that is held while several outputs get their names.
static TOGETHER: Mutex<()> = Mutex::new(());

fn trees() -> MutexGuard<'static, Vec<PathBuf>> {
    lock(&TREES)
}

fn names() -> MutexGuard<'static, RegisteredPaths> {
    lock(&NAMES)
}

/// Registered paths, in the order in which they were registered. Paths are looked up in a map, because the update of a
/// directory can register many thousands of files.
struct RegisteredPaths {
    by_number: BTreeMap<u64, PathBuf>,
    /// The number of each path.
    numbers: BTreeMap<PathBuf, u64>,
    /// The number of the next path.
    next: u64,
}

impl RegisteredPaths {
    fn add(&mut self, path: &Path) {
        if self.numbers.contains_key(path) {
            return;
        }
        self.numbers.insert(path.to_owned(), self.next);
        self.by_number.insert(self.next, path.to_owned());
        self.next += 1;
    }

    /// Removes a path. Returns whether it was registered.
    fn remove(&mut self, path: &Path) -> bool {
        let number = self.numbers.remove(path);
        number.is_some_and(|number| self.by_number.remove(&number).is_some())
    }
}

/// Removes all unfinished outputs that have a name on disk, and all temporary directories. Any later attempt to finish
/// an output, in any thread, blocks forever. So call this only in a process that is about to exit.
pub fn abandon_unfinished() {
    let together = lock(&TOGETHER);
    let names = names();
    // A directory comes before its content in the list, so the list is processed from its end.
    for name in names.by_number.values().rev() {
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
    // The locks are never released. A thread that is about to name an output waits for them until the process exits.
    std::mem::forget(names);
    std::mem::forget(trees);
    std::mem::forget(together);
}

/// Runs `finish`, which gives several outputs their names. [`abandon_unfinished`] runs entirely before or entirely
/// after `finish`.
pub(super) fn run_uninterrupted<T>(finish: impl FnOnce() -> T) -> T {
    let _together = lock(&TOGETHER);
    finish()
}

/// Registers a temporary directory, which [`abandon_unfinished`] removes with all that is in it.
pub(super) fn register_tree(path: &Path) {
    trees().push(path.to_owned());
}

/// Unregisters a temporary directory.
pub(super) fn unregister_tree(path: &Path) {
    trees().retain(|noted| noted != path);
}

/// Registers the path of an unfinished output, which [`abandon_unfinished`] removes.
pub(super) fn register(name: &Path) {
    names().add(name);
}

/// Runs `finish`, which gives an unfinished output its final name or fails. Unregisters `temporary`, the previous path
/// of the output. If `finish` succeeds, also unregisters the paths `completed`, which are complete together with this
/// output. The list of paths is locked while `finish` runs. So [`abandon_unfinished`] never runs at the same time as
/// `finish`.
pub(super) fn finish_output<T, E>(
    temporary: Option<&Path>,
    completed: &[PathBuf],
    finish: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let mut names = names();
    let result = finish();
    let completed = if result.is_ok() { completed } else { &[] };
    let completed = completed.iter().map(PathBuf::as_path);
    temporary.into_iter().chain(completed).for_each(|path| {
        names.remove(path);
    });
    result
}

/// Unregisters paths, all at once.
pub(super) fn unregister_all(paths: &[PathBuf]) {
    let mut names = names();
    for path in paths {
        names.remove(path);
    }
}

/// Removes the files and empty directories among `paths` that are still registered, in reverse order.
pub(super) fn remove_unfinished_paths(paths: &[PathBuf]) {
    let mut names = names();
    for path in paths.iter().rev() {
        if names.remove(path) && fs::remove_file(path).is_err() {
            let _ = fs::remove_dir(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_paths_are_unregistered_quickly() {
        const COUNT: usize = 100_000;
        let directory = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..COUNT)
            .map(|number| directory.path().join(number.to_string()))
            .collect();
        for path in &paths {
            register(path);
        }
        std::fs::write(&paths[0], "").unwrap();
        std::fs::write(&paths[COUNT - 1], "").unwrap();
        for path in &paths[1..] {
            finish_output(Some(path), &[], || Ok::<_, ()>(())).unwrap();
        }
        remove_unfinished_paths(&paths);
        assert!(!paths[0].exists());
        assert!(paths[COUNT - 1].exists());
    }
}
