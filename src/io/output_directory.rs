//! Directories of output files that appear as a whole or not at all.

use super::directory_content::{Content, IsOwn, remove_own};
use super::output::Directory;
use super::output_target::real_path;
use super::replaced_files::ReplacedFiles;
use super::staging::{self, MOVING, REPLACED, Staging, is_denied};
use super::{OpenOutput, unfinished};
use crate::error::{Error, Result};
use crate::runtime::{Cancellation, Context};
use crate::system::{self, Call};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A directory of new files, which get their names together. The files are removed unless [`complete`](Self::complete)
/// succeeds.
///
/// The files are written to a hidden directory beside the target (`staging`), which gets the name of the target when
/// all files are complete and on disk. The hidden directory replaces an older directory in one step where the system
/// can do that, and otherwise in two. If the target is a mount point or the working directory, cannot be renamed, or
/// has files of other programs, its files are replaced one after another instead. The next run removes the files that a
/// killed run has left.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    /// The path of the directory as the user wrote it.
    root: PathBuf,
    /// The path of the directory without symbolic links.
    real: PathBuf,
    staging: Staging,
    /// The files of an earlier run, whose access the new files get.
    replaced: ReplacedFiles,
    /// The warning that the new files cannot have all attributes of those that they replace.
    warning: Option<String>,
    is_own: IsOwn,
    overwrite: bool,
    cancellation: Cancellation,
}

impl OutputDirectory {
    /// Begins the output directory `root`. Fails if the directory exists and is not empty, unless `overwrite` is set.
    /// In that case, [`complete`](Self::complete) replaces the files that `is_own` recognises as written by an earlier
    /// run.
    pub(crate) fn create(
        root: &Path,
        overwrite: bool,
        is_own: IsOwn,
        ctx: &Context,
    ) -> Result<Self> {
        let real = real_path(root);
        staging::clear(&real, |directory| remove_own(directory, is_own));
        check_empty(root, &Content::of(&real, None, is_own), overwrite)?;
        let staging = Staging::begin(root, &real)?;
        let replaced = ReplacedFiles::of(&real, is_own);
        let opened = File::open(staging.path()).ok();
        let warning = opened.and_then(|directory| replaced.pass_to_root(&directory));
        Ok(Self {
            staging,
            root: root.to_owned(),
            real,
            replaced,
            warning,
            is_own,
            overwrite,
            cancellation: ctx.cancellation.clone(),
        })
    }

    /// Opens a new file at `path`, which is relative to this directory. Creates the directories of the path that do not
    /// exist yet. The file and the directories get the access of those that they replace.
    pub(crate) fn open(&mut self, path: &Path) -> Result<OpenOutput> {
        let mut below = PathBuf::new();
        for name in path.parent().into_iter().flatten() {
            below.push(name);
            if !self.staging.path().join(&below).is_dir() {
                let made = self.staging.make(&below);
                made.map_err(|error| {
                    Error::io(
                        &self.root.join(&below),
                        "cannot create the directory",
                        error,
                    )
                })?;
                if let Ok(directory) = File::open(self.staging.path().join(&below)) {
                    let warning = self.replaced.pass_to_directory(&below, &directory);
                    self.warning = self.warning.take().or(warning);
                }
            }
        }
        let place = self.staging.path().join(path);
        let output = OpenOutput::hidden(place.clone(), self.root.join(path), &self.cancellation)?;
        let warning = self.replaced.pass_to_file(path, &output.file);
        self.warning = self.warning.take().or(warning);
        self.staging.add(place);
        Ok(output)
    }

    /// Flushes all files to disk, and gives them their final names. Each file must have been committed in the staging
    /// directory. Files of other programs stay in the target directory, and a warning names the first of them. Fails if
    /// the work has been cancelled.
    pub(crate) fn complete(self, ctx: &Context) -> Result<()> {
        let (real, staged) = (&self.real, self.staging.path());
        let content = Content::of(real, Some(staged), self.is_own);
        check_empty(&self.root, &content, self.overwrite)?;
        if let Some(path) = self.staging.foreign_in_place(real, self.is_own) {
            let cause = "pbfhogg did not write this, and needs its name for a part of the table: move it away";
            return Err(Error::file(&self.root.join(path), cause));
        }
        if let Content::Foreign(path) = &content {
            ctx.warn(format!(
                "{}: {} was not written by pbfhogg: it stays, and programs that read the whole directory find it there",
                self.root.display(),
                path.display()
            ));
        }
        if let Some(warning) = &self.warning {
            ctx.warn(warning.clone());
        }
        let flushed = self.staging.flush();
        self.cancellation.check()?;
        let placed = flushed.and_then(|()| {
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
        })
    }
}

/// Fails if the directory `root` has files, unless `overwrite` is set.
fn check_empty(root: &Path, content: &Content, overwrite: bool) -> Result<()> {
    if overwrite || *content == Content::Nothing {
        return Ok(());
    }
    let cause = "the directory is not empty: remove it, or choose another";
    Err(Error::file(root, cause))
}

impl Staging {
    /// Whether the staging directory is in `root`, and not beside it.
    pub(super) fn is_within(&self, root: &Path) -> bool {
        self.path().parent() == Some(root)
    }

    /// Creates a directory in the staging directory.
    pub(super) fn make(&mut self, name: &Path) -> io::Result<()> {
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

    /// Moves the content of the staging directory to `root`, one entry after another. The [mark](Self::mark) stays.
    pub(super) fn move_to(&self, root: &Path) -> io::Result<()> {
        move_entries(self.path(), root, MOVING)
    }

    /// Flushes the files and the entries of all directories to disk.
    pub(super) fn flush(&self) -> io::Result<()> {
        // One flush of the whole file system takes less time than flushes of many files.
        const MANY: usize = 32;
        if self.created.len() > MANY && system::sync_file_system(self.path())? {
            return Ok(());
        }
        for path in &self.created {
            if path.is_dir() {
                flush_entries(path)?;
            } else {
                // A file that only its owner may read, and nobody write, can be flushed on Unix all the same.
                let opened = OpenOptions::new().write(true).open(path);
                system::sync(&opened.or_else(|_| File::open(path))?)?;
            }
        }
        Ok(())
    }

    /// Returns the first path within `root` at which a staged file or directory must be placed, but where something
    /// exists that `is_own` does not recognise. Does not follow symbolic links.
    fn foreign_in_place(&self, root: &Path, is_own: IsOwn) -> Option<PathBuf> {
        let in_the_way = |staged: &&Path| {
            let place = root.join(staged);
            place.symlink_metadata().is_ok_and(|found| {
                if self.path().join(staged).is_dir() {
                    !found.is_dir()
                } else {
                    let is_own = |file| is_own(staged, &file);
                    !found.is_file() || !File::open(place).is_ok_and(is_own)
                }
            })
        };
        let below = self.created.iter().skip(1);
        let mut below = below.filter_map(|path| path.strip_prefix(self.path()).ok());
        below.find(in_the_way).map(Path::to_owned)
    }

    /// Creates the mark in the staging directory. The mark tells later runs that the files are being moved one by one,
    /// and that the target is incomplete until the mark is removed.
    pub(super) fn mark(&self) -> io::Result<()> {
        File::create(self.path().join(MOVING)).map(drop)
    }

    /// Removes the mark, and then the staging directory, which is empty without the mark.
    pub(super) fn end(&self) {
        let _ = fs::remove_file(self.path().join(MOVING));
        let _ = fs::remove_dir(self.path());
    }
}

/// Moves the entries of a directory to another directory, one after another, except the one that is called `mark`. If
/// both directories contain a subdirectory of the same name, moves the entries of that subdirectory.
pub(super) fn move_entries(from: &Path, to: &Path, mark: &str) -> io::Result<()> {
    let names: io::Result<Vec<_>> = fs::read_dir(from)?
        .map(|entry| Ok(entry?.file_name()))
        .collect();
    let mut names = names?;
    names.sort_unstable();
    for name in names.iter().filter(|name| *name != mark) {
        let (old, new) = (from.join(name), to.join(name));
        if old.is_dir() && new.is_dir() {
            move_entries(&old, &new, mark)?;
            flush_entries(&new)?;
            fs::remove_dir(old)?;
        } else {
            fs::rename(old, new)?;
        }
    }
    Ok(())
}

/// Flushes the entries of a directory to disk.
fn flush_entries(directory: &Path) -> io::Result<()> {
    Directory::of(&directory.join("entry")).sync()
}

/// Gives the files in a staging directory their names in the directory `real`.
fn put_in_place(staging: &Staging, real: &Path, is_own: IsOwn) -> io::Result<()> {
    let has_foreign = matches!(Content::of(real, None, is_own), Content::Foreign(_));
    if staging.is_within(real) || has_foreign {
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
