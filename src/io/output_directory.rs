//! Directories of output files that appear as a whole or not at all.

use super::directory_content::{Content, IsOwn, remove_own};
use super::output::Directory;
use super::output_target::real_path;
use super::staging::{self, MOVING, REPLACED, Staging, is_denied};
use super::{OpenOutput, StreamOutput, unfinished};
use crate::error::{Error, Result};
use crate::system::{self, Call};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A directory of new files, which get their names together. The files are removed unless [`complete`](Self::complete)
/// succeeds.
///
/// The files are written to a hidden directory beside the target (`staging`), which gets the name of the target when
/// all files are complete and on disk. The hidden directory replaces an older directory in one step where the system
/// can do that, and otherwise in two. In a mount point, in the working directory and in a directory that cannot be
/// renamed, files are replaced one after another. The next run removes the files that a killed run has left.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    /// The path of the directory as the user wrote it.
    root: PathBuf,
    /// The path of the directory without symbolic links.
    real: PathBuf,
    staging: Staging,
    is_own: IsOwn,
    overwrite: bool,
}

impl OutputDirectory {
    /// Begins the output directory `root`. Fails if the directory exists and is not empty, unless `overwrite` is set
    /// and `is_own` recognises all files in it as written by an earlier run.
    pub(crate) fn create(root: &Path, overwrite: bool, is_own: IsOwn) -> Result<Self> {
        let real = real_path(root);
        staging::clear(&real, |directory| remove_own(directory, is_own));
        check_content(root, &real, None, overwrite, is_own)?;
        Ok(Self {
            staging: Staging::begin(root, &real)?,
            root: root.to_owned(),
            real,
            is_own,
            overwrite,
        })
    }

    /// Opens a new file in the subdirectory `directory`, which is created with its first file.
    pub(crate) fn open_below(&mut self, directory: &str, name: &str) -> Result<OpenOutput> {
        let shown = self.root.join(directory);
        if !self.staging.path().join(directory).is_dir() {
            let made = self.staging.make(directory);
            made.map_err(|error| Error::io(&shown, "cannot create the directory", error))?;
        }
        let place = self.staging.path().join(directory).join(name);
        let output = OpenOutput::hidden(place.clone(), shown.join(name))?;
        self.staging.add(place);
        Ok(output)
    }

    /// Flushes the files to disk and gives all of them their names. Returns their total size in bytes.
    pub(crate) fn complete(self, files: Vec<StreamOutput>) -> Result<u64> {
        let mut bytes = 0;
        for file in files {
            bytes += file.commit()?;
        }
        let (real, staged) = (&self.real, self.staging.path());
        check_content(&self.root, real, Some(staged), self.overwrite, self.is_own)?;
        let placed = flush_entries(staged).and_then(|()| {
            unfinished::end(None, &self.staging.created, || {
                system::admit(Call::Rename, 0)?;
                put_in_place(&self.staging, real, self.is_own)
            })
        });
        placed.map_err(|error| {
            Error::io(
                &self.root,
                "cannot give the finished output its name",
                error,
            )
        })?;
        Ok(bytes)
    }
}

/// Fails if the directory `real`, which the user calls `root`, has files that may not be replaced. The content of
/// `staged` does not count.
fn check_content(
    root: &Path,
    real: &Path,
    staged: Option<&Path>,
    overwrite: bool,
    is_own: IsOwn,
) -> Result<()> {
    let cause = match Content::of(real, staged, is_own) {
        Content::Nothing => return Ok(()),
        Content::Own if overwrite => return Ok(()),
        Content::Foreign(path) if overwrite => format!(
            "the directory has something that pbfhogg did not write, and is not replaced: {}; move it away, or choose \
             another directory",
            path.display()
        ),
        _ => "the directory is not empty: remove it, or choose another".to_owned(),
    };
    Err(Error::file(root, cause))
}

impl Staging {
    /// Whether the staging directory is in `root`, and not beside it.
    pub(super) fn is_within(&self, root: &Path) -> bool {
        self.path().parent() == Some(root)
    }

    /// Creates a directory in the staging directory.
    pub(super) fn make(&mut self, name: &str) -> io::Result<()> {
        let path = self.path().join(name);
        self.add(path.clone());
        fs::create_dir(path)
    }

    /// The temporary path to which the old directory is moved before it is replaced. It is beside the staging
    /// directory.
    pub(super) fn name_for_replaced(&self) -> PathBuf {
        let name = self
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let name = name.trim_end_matches(".tmp");
        self.path().with_file_name(format!("{name}{REPLACED}"))
    }

    /// Moves the entries of the staging directory to `root`, one after another. The [mark](Self::mark) stays.
    pub(super) fn move_to(&self, root: &Path) -> io::Result<()> {
        let names: io::Result<Vec<_>> = fs::read_dir(self.path())?
            .map(|entry| Ok(entry?.file_name()))
            .collect();
        let mut names = names?;
        names.sort_unstable();
        for name in names.iter().filter(|name| *name != MOVING) {
            fs::rename(self.path().join(name), root.join(name))?;
        }
        Ok(())
    }

    /// Creates the mark in the staging directory. The mark tells later runs that the files are being moved one by one,
    /// and that the target is incomplete until the mark is removed.
    pub(super) fn mark(&self) -> io::Result<()> {
        File::create(self.path().join(MOVING)).map(drop)
    }

    /// Removes the mark, and then the staging directory, which is empty.
    pub(super) fn end(&self) {
        let _ = fs::remove_file(self.path().join(MOVING));
        let _ = fs::remove_dir(self.path());
    }
}

/// Flushes the entries of a directory to disk.
fn flush_entries(directory: &Path) -> io::Result<()> {
    Directory::of(&directory.join("entry")).sync()
}

/// Gives the files in a staging directory their names in the directory `real`.
fn put_in_place(staging: &Staging, real: &Path, is_own: IsOwn) -> io::Result<()> {
    if staging.is_within(real) {
        return move_files(staging, real, is_own);
    }
    match rename(staging, real, is_own) {
        Err(error) if is_denied(&error) && real.is_dir() => move_files(staging, real, is_own),
        result => result,
    }
}

/// Renames a staging directory to `real`, and removes the old directory of this name.
fn rename(staging: &Staging, real: &Path, is_own: IsOwn) -> io::Result<()> {
    let (staged, parent) = (staging.path(), Directory::of(real));
    if let (true, Ok(file)) = (real.is_dir(), File::open(staged)) {
        let _ = super::access::keep(real, &file);
    }
    if Content::of(real, None, is_own) == Content::Nothing {
        #[cfg(windows)]
        let _ = fs::remove_dir(real);
        fs::rename(staged, real)?;
        return parent.sync();
    }
    let old = match system::exchange(staged, real) {
        Ok(()) => staged.to_owned(),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let old = staging.name_for_replaced();
            fs::rename(real, &old)?;
            fs::rename(staged, real).inspect_err(|_| {
                let _ = fs::rename(&old, real);
            })?;
            old
        }
        Err(error) => return Err(error),
    };
    parent.sync()?;
    remove_own(&old, is_own);
    let _ = fs::remove_dir(old);
    Ok(())
}

/// Removes the old files from the directory `real`, and then moves the files of a staging directory there one by one.
fn move_files(staging: &Staging, real: &Path, is_own: IsOwn) -> io::Result<()> {
    staging.mark()?;
    flush_entries(staging.path())?;
    remove_own(real, is_own);
    let moved = staging
        .move_to(real)
        .and_then(|()| flush_entries(real))
        .inspect_err(|_| remove_own(real, is_own));
    staging.end();
    moved
}

#[cfg(all(test, unix))]
#[path = "output_directory_tests.rs"]
mod tests;
