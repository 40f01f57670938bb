//! Files that are added to a directory, or replaced in it, all together.

use super::output::Directory;
use super::output_directory::move_entries;
use super::replaced_files::ReplacedFiles;
use super::staging::Staging;
use super::{OpenOutput, access, temporary, unfinished};
use crate::error::{Error, Result};
use crate::runtime::{Cancellation, Context};
use crate::system::{self, Call};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The name of the mark in a staging directory that says that all its files are complete and on disk.
const COMPLETE: &str = ".complete";

/// New files of a directory, which get their names together. Other files of the directory stay as they are.
///
/// The files are written to a hidden staging directory in the directory. When all of them are on disk, the staging
/// directory gets a mark, and its files are moved. If the process is killed after the mark, the next update moves the
/// rest of the files. If it is killed before the mark, the next update removes them. If the file system has no locks on
/// directories (NFS), the staging directories of killed processes stay as they are.
#[derive(Debug)]
pub(crate) struct DirectoryUpdate {
    /// The path of the directory as the user wrote it.
    root: PathBuf,
    staging: Staging,
    cancellation: Cancellation,
    /// The lock on the directory; `None` on systems where directories cannot be opened.
    _lock: Option<File>,
}

impl DirectoryUpdate {
    /// Begins an update of the directory `root`, which is created if it does not exist. Completes or removes the files
    /// that killed updates have left.
    ///
    /// # Errors
    ///
    /// The directory cannot be created or changed, or another run updates it.
    pub(crate) fn begin(root: &Path, ctx: &Context) -> Result<Self> {
        let failed = |error| Error::io(root, "cannot create the directory", error);
        if !root.is_dir() {
            fs::create_dir(root).map_err(failed)?;
        }
        let lock = lock(root)?;
        let real = root.canonicalize().map_err(failed)?;
        let within = real.join("update");
        for remnant in temporary::remnants(&within) {
            let recovered = recover(&remnant, &real);
            recovered.map_err(|error| Error::io(&remnant, "cannot complete an update", error))?;
        }
        Ok(Self {
            staging: Staging::named_as(&within).map_err(failed)?,
            root: root.to_owned(),
            cancellation: ctx.cancellation.clone(),
            _lock: lock,
        })
    }

    /// The directory for temporary files.
    pub(crate) fn scratch_directory(&self) -> &Path {
        self.staging.path()
    }

    /// Opens a new file with the given name. It has to be committed before the update is completed. It gets the access
    /// of the file that it replaces before its first byte is written.
    pub(crate) fn open(&mut self, name: &Path) -> Result<OpenOutput> {
        let place = self.staging.path().join(name);
        let output = OpenOutput::hidden(place.clone(), self.root.join(name), &self.cancellation)?;
        let replaced = ReplacedFiles::named(&self.root, vec![name.to_owned()]);
        let _ = replaced.pass_to_file(name, &output.file);
        self.staging.add(place);
        Ok(output)
    }

    /// Flushes all files to disk, and gives them their names. A file gets the access rights of the file that it
    /// replaces. Fails if the work has been cancelled.
    pub(crate) fn complete(self) -> Result<()> {
        let staged = self.staging.path();
        let flushed = self.staging.flush();
        self.cancellation.check()?;
        // From the mark on, the staging directory stays until all of its files have been moved.
        let marked = flushed.and_then(|()| {
            unfinished::end(None, &self.staging.created, || {
                system::admit(Call::Rename, 0)?;
                mark(staged, &self.root)
            })
        });
        let placed = marked.and_then(|()| {
            recover(staged, &self.root)?;
            flush(&self.root)
        });
        let cause = "cannot give the finished files their names";
        placed.map_err(|error| Error::io(&self.root, cause, error))
    }
}

/// Locks a directory. Fails if another run has locked it.
fn lock(root: &Path) -> Result<Option<File>> {
    let Ok(file) = File::open(root) else {
        return Ok(None);
    };
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => {
            Err(Error::file(root, "another run writes to this directory"))
        }
        // Some file systems have no locks on directories.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// Passes the access of the files in `root` on to those that will replace them, and marks the staging directory as
/// complete.
fn mark(staged: &Path, root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(staged)? {
        let entry = entry?;
        let old = root.join(entry.file_name());
        if old.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if old.exists() {
            let file = OpenOptions::new().write(true).open(entry.path());
            let file = file.or_else(|_| File::open(entry.path()))?;
            let _ = access::keep(&old, &file);
        }
    }
    File::create(staged.join(COMPLETE))?.sync_all()?;
    flush(staged)?;
    flush(root)
}

/// Flushes the entries of a directory to disk.
fn flush(directory: &Path) -> io::Result<()> {
    Directory::of(&directory.join("entry")).sync()
}

/// Moves the files of a staging directory to `root` if the directory has the mark. Then removes the directory.
fn recover(staged: &Path, root: &Path) -> io::Result<()> {
    let mark = staged.join(COMPLETE);
    if mark.exists() {
        move_entries(staged, root, COMPLETE)?;
    }
    fs::remove_dir_all(staged)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;

    fn put(update: &mut DirectoryUpdate, name: &str, text: &str) {
        let mut output = update.open(Path::new(name)).unwrap();
        output.file.write_all(text.as_bytes()).unwrap();
        output.output.commit_unflushed().unwrap();
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn files_get_their_names_together() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("dir");
        let mut update = DirectoryUpdate::begin(&root, &Context::default()).unwrap();
        put(&mut update, "a", "1");
        assert!(DirectoryUpdate::begin(&root, &Context::default()).is_err());
        drop(update);
        assert!(names(&root).is_empty());
        let mut update = DirectoryUpdate::begin(&root, &Context::default()).unwrap();
        put(&mut update, "a", "1");
        put(&mut update, "b", "2");
        update.complete().unwrap();
        let mut update = DirectoryUpdate::begin(&root, &Context::default()).unwrap();
        put(&mut update, "b", "3");
        update.complete().unwrap();
        assert_eq!(names(&root), ["a", "b"]);
        assert_eq!(fs::read_to_string(root.join("b")).unwrap(), "3");
    }

    #[test]
    fn the_next_update_ends_what_a_killed_one_has_begun() {
        for is_complete in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path();
            let mut update = DirectoryUpdate::begin(root, &Context::default()).unwrap();
            put(&mut update, "a", "1");
            put(&mut update, "b", "2");
            // A killed process removes nothing.
            let left = root.join(".update.pbfhogg-1-1.tmp");
            fs::rename(update.staging.path(), &left).unwrap();
            drop(update);
            if is_complete {
                File::create(left.join(COMPLETE)).unwrap();
                fs::rename(left.join("a"), root.join("a")).unwrap();
            }
            drop(DirectoryUpdate::begin(root, &Context::default()).unwrap());
            let expected: &[&str] = if is_complete { &["a", "b"] } else { &[] };
            assert_eq!(names(root), expected);
        }
    }
}
