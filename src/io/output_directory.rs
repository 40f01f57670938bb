//! Directories of output files that appear together or not at all.

use super::directory_content::{DirectoryContent, IsOwn, remove_own_files};
use super::output::Directory;
use super::output_target::real_path;
use super::replaced_files::ReplacedFiles;
use super::staging::{
    self, COMPLETE, Staging, flush_entries, is_directory_change_denied, move_entries,
};
use super::temporary::{self, MOVING};
use super::{OpenOutput, OutputTarget, StreamOutput, access, unfinished};
use crate::error::{Error, ErrorKind, FileResult, Result};
use crate::runtime::{Cancellation, Context};
use crate::system::{self, Call};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// New files of a directory, which get their names together. The files are removed unless [`complete`](Self::complete)
/// succeeds.
///
/// The files are written to a hidden directory ([`staging`]). When all of them are complete and on disk, they get their
/// names as the [`NamingPolicy`] says. With [`NamingPolicy::List`], there is no hidden directory. The next run removes
/// the files that a killed run has left. If the file system has no locks on directories (NFS), the staging directories
/// of killed runs stay.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    /// The path of the directory as the user wrote it.
    root: PathBuf,
    /// The path of the directory without symbolic links.
    real: PathBuf,
    staging: Staging,
    policy: NamingPolicy,
    /// The files of an earlier run. The new files get their access rights.
    replaced: ReplacedFiles,
    /// A warning if the new files do not get all attributes of the files that they replace.
    warning: Option<String>,
    cancellation: Cancellation,
}

/// The way in which the files of an [`OutputDirectory`] get their names.
#[derive(Debug)]
enum NamingPolicy {
    /// The staging directory gets the name of the directory. It replaces an existing directory in one step if the
    /// system can exchange names, and otherwise in two. A directory is not replaced as a whole if it is a mount point
    /// or the working directory, if it cannot be renamed, or if it has files that `is_own` does not recognise. In such
    /// a directory, the files that `is_own` recognises are replaced one after another.
    Replace { is_own: IsOwn, overwrite: bool },
    /// The files have their final names from the start, in a directory that exists. Readers use only the files that a
    /// list names, and this list is replaced last.
    List,
    /// The files are moved to the directory, in which other files stay as they are. Before the first move, the staging
    /// directory gets a mark. If the process is killed after this, the next update moves the remaining files. If the
    /// process is killed before the mark is set, the next update removes the staged files. The field is the lock on the
    /// directory; `None` on systems where directories cannot be opened.
    Update { _lock: Option<File> },
}

impl OutputDirectory {
    /// Begins the output directory `root`. Fails if the directory exists and is not empty, unless `overwrite` is set.
    /// With `overwrite`, [`complete`](Self::complete) replaces the files that `is_own` recognises as written by an
    /// earlier run.
    pub(crate) fn create(
        root: &Path,
        overwrite: bool,
        is_own: IsOwn,
        ctx: &Context,
    ) -> Result<Self> {
        let real = real_path(root);
        staging::recover_killed_runs(&real, is_own);
        check_empty(
            root,
            &DirectoryContent::scan(&real, None, is_own),
            overwrite,
        )?;
        let staging = Staging::begin(root, &real)?;
        let policy = NamingPolicy::Replace { is_own, overwrite };
        let replaced = ReplacedFiles::of(&real, is_own);
        let mut output = Self::with(root, real, staging, policy, replaced, ctx);
        let opened = File::open(output.staging.path()).ok();
        output.warning =
            opened.and_then(|directory| output.replaced.copy_access_to_root(&directory));
        Ok(output)
    }

    /// Begins a set of files, one of which is a list that names the other files to readers. A directory that does not
    /// exist is created. The new files get the access rights of the existing files that `is_own` recognises.
    /// [`complete_with_list`](Self::complete_with_list) completes the set.
    pub(crate) fn create_or_extend(root: &Path, is_own: IsOwn, ctx: &Context) -> Result<Self> {
        let real = real_path(root);
        if !real.is_dir() {
            return Self::create(root, false, is_own, ctx);
        }
        staging::recover_killed_runs(&real, is_own);
        let replaced = ReplacedFiles::of(&real, is_own);
        let staging = Staging::without_staging_directory(real.clone());
        Ok(Self::with(
            root,
            real,
            staging,
            NamingPolicy::List,
            replaced,
            ctx,
        ))
    }

    /// Begins an update of the directory `root`, which is created if it does not exist. Completes or removes the files
    /// that killed updates have left.
    ///
    /// # Errors
    ///
    /// The directory cannot be created or changed, or another run updates it.
    pub(crate) fn update(root: &Path, ctx: &Context) -> Result<Self> {
        let failed = |error| Error::io(root, "cannot create the directory", error);
        if !root.is_dir() {
            fs::create_dir(root).map_err(failed)?;
        }
        let policy = NamingPolicy::Update { _lock: lock(root)? };
        let real = root.canonicalize().map_err(failed)?;
        let within = real.join("update");
        for remnant in temporary::stale_temporary_paths(&within) {
            staging::recover_update(&remnant, &real)
                .for_path(&remnant, "cannot complete an update")?;
        }
        let staging = Staging::create_named_like(&within).map_err(failed)?;
        let replaced = ReplacedFiles::with_paths(&real, Vec::new());
        Ok(Self::with(root, real, staging, policy, replaced, ctx))
    }

    fn with(
        root: &Path,
        real: PathBuf,
        staging: Staging,
        policy: NamingPolicy,
        replaced: ReplacedFiles,
        ctx: &Context,
    ) -> Self {
        Self {
            root: root.to_owned(),
            real,
            staging,
            policy,
            replaced,
            warning: None,
            cancellation: ctx.cancellation.clone(),
        }
    }

    /// Returns the directory in which the files are written. Unnamed temporary files may be created in it, too.
    pub(crate) fn scratch_directory(&self) -> &Path {
        self.staging.path()
    }

    /// Opens a new file at `path`, which is relative to this directory. Creates the directories of the path that do not
    /// exist yet. Before the first byte is written, the file and the new directories get the access rights of the old
    /// file and directories that they replace.
    pub(crate) fn open(&mut self, path: &Path) -> Result<OpenOutput> {
        let mut below = PathBuf::new();
        for name in path.parent().into_iter().flatten() {
            below.push(name);
            if !self.staging.path().join(&below).is_dir() {
                let made = self.staging.create_directory(&below);
                made.map_err(|error| {
                    let shown = self.root.join(&below);
                    Error::io(&shown, "cannot create the directory", error)
                })?;
                if let Ok(directory) = File::open(self.staging.path().join(&below)) {
                    let warning = self.replaced.copy_access_to_directory(&below, &directory);
                    self.warning = self.warning.take().or(warning);
                }
            }
        }
        let place = self.staging.path().join(path);
        let output =
            OpenOutput::open_hidden(place.clone(), self.root.join(path), &self.cancellation)?;
        let warning = self.replaced.copy_access_to_file(path, &output.file);
        self.warning = self.warning.take().or(warning);
        self.staging.add(place);
        Ok(output)
    }

    /// Flushes all files to disk, and gives them their final names. Each file must have been committed in the staging
    /// directory. Files of other programs stay in the target directory, and a warning names the first of them. Fails if
    /// the work has been cancelled.
    pub(crate) fn complete(self, ctx: &Context) -> Result<()> {
        if let NamingPolicy::Replace { is_own, overwrite } = self.policy {
            self.check_replaceable(is_own, overwrite, ctx)?;
        }
        if let Some(warning) = &self.warning {
            ctx.warn(warning.clone());
        }
        let flushed = self.staging.flush();
        self.cancellation.check()?;
        let named = flushed.and_then(|()| {
            unfinished::finish_output(None, &self.staging.created, || {
                system::admit(Call::Rename, 0)?;
                match self.policy {
                    NamingPolicy::Replace { is_own, .. } => {
                        move_into_place(&self.staging, &self.real, is_own)
                    }
                    NamingPolicy::Update { .. } => {
                        mark_staging_complete(self.staging.path(), &self.real)
                    }
                    NamingPolicy::List => Ok(()),
                }
            })
        });
        let named = named.and_then(|()| match self.policy {
            // The staging directory now has the mark, so it stays until all of its files have been moved.
            NamingPolicy::Update { .. } => {
                staging::recover_update(self.staging.path(), &self.real)?;
                flush_entries(&self.real)
            }
            NamingPolicy::Replace { .. } | NamingPolicy::List => Ok(()),
        });
        let action = "cannot give the finished output its name";
        named.for_path(&self.root, action)
    }

    /// Commits `files`, writes `list` to the file `name`, and completes the directory.
    pub(crate) fn complete_with_list(
        mut self,
        files: Vec<StreamOutput>,
        name: &Path,
        list: &[u8],
        ctx: &Context,
    ) -> Result<()> {
        if !matches!(self.policy, NamingPolicy::List) {
            let mut output = StreamOutput::new(self.open(name)?);
            output.write(list)?;
            for file in files.into_iter().chain([output]) {
                file.commit_unflushed()?;
            }
            return self.complete(ctx);
        }
        if let Some(warning) = &self.warning {
            ctx.warn(warning.clone());
        }
        // The locks keep other runs from mistaking the new files for files that a killed process left.
        let _held: Vec<_> = files.iter().map(StreamOutput::hold_lock).collect();
        for file in files {
            file.commit()?;
        }
        let target = OutputTarget::named_file(self.root.join(name), true);
        let output = OpenOutput::open(target, ctx)?;
        let _ = self.replaced.copy_access_to_file(name, &output.file);
        let mut output = StreamOutput::new(output);
        output.write(list)?;
        output
            .commit_with_completed(&self.staging.created)
            .map(drop)
    }

    /// Fails if the new files cannot replace the files in the directory. Warns of files that stay in the directory.
    fn check_replaceable(&self, is_own: IsOwn, overwrite: bool, ctx: &Context) -> Result<()> {
        let (root, real) = (&self.root, &self.real);
        let content = DirectoryContent::scan(real, Some(self.staging.path()), is_own);
        check_empty(root, &content, overwrite)?;
        if let Some(path) = self.staging.first_obstacle(real, is_own) {
            let cause = "pbfhogg did not write this, and needs its name for a part of the table: move it away";
            return Err(Error::file(&root.join(path), cause));
        }
        if let DirectoryContent::Foreign(path) = &content {
            ctx.warn(format!(
                "{}: {} was not written by pbfhogg: it stays, and programs that read the whole directory find it there",
                root.display(),
                path.display()
            ));
        }
        Ok(())
    }
}

/// Fails if the directory `root` has files, unless `overwrite` is set.
fn check_empty(root: &Path, content: &DirectoryContent, overwrite: bool) -> Result<()> {
    if overwrite || *content == DirectoryContent::Nothing {
        return Ok(());
    }
    let cause = "the directory is not empty: remove it, or choose another";
    Err(Error::file(root, cause))
}

/// Locks a directory. Fails if another run has locked it.
fn lock(root: &Path) -> Result<Option<File>> {
    let Ok(file) = File::open(root) else {
        return Ok(None);
    };
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => {
            let cause = "another run writes to this directory";
            Err(Error::file_of(root, ErrorKind::Locked, cause))
        }
        // Some file systems have no locks on directories.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// Gives the files in a staging directory their names in the directory `real`.
fn move_into_place(staging: &Staging, real: &Path, is_own: IsOwn) -> io::Result<()> {
    let has_foreign = matches!(
        DirectoryContent::scan(real, None, is_own),
        DirectoryContent::Foreign(_)
    );
    if staging.is_within(real) || has_foreign {
        return move_files(staging.path(), real, is_own);
    }
    match rename_into_place(staging, real, is_own) {
        Err(error) if is_directory_change_denied(&error) && real.is_dir() => {
            move_files(staging.path(), real, is_own)
        }
        result => result,
    }
}

/// Renames a staging directory to `real`, and removes the old directory of this name.
fn rename_into_place(staging: &Staging, real: &Path, is_own: IsOwn) -> io::Result<()> {
    let (staged, parent) = (staging.path(), Directory::containing(real));
    if let (true, Ok(file)) = (real.is_dir(), File::open(staged)) {
        let _ = access::copy_attributes(real, &file);
    }
    if DirectoryContent::scan(real, None, is_own) == DirectoryContent::Nothing {
        #[cfg(windows)]
        let _ = fs::remove_dir(real);
        fs::rename(staged, real)?;
        return parent.sync();
    }
    let old = match system::exchange(staged, real) {
        Ok(()) => staged.to_owned(),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let old = staging.path_for_old_directory();
            fs::rename(real, &old)?;
            fs::rename(staged, real).inspect_err(|_| {
                let _ = fs::rename(&old, real);
            })?;
            old
        }
        Err(error) => return Err(error),
    };
    parent.sync()?;
    remove_own_files(&old, is_own);
    let _ = fs::remove_dir(old);
    Ok(())
}

/// Removes the old files from the directory `real`, and then moves the files of a staging directory there one by one.
fn move_files(staged: &Path, real: &Path, is_own: IsOwn) -> io::Result<()> {
    File::create(staged.join(MOVING))?;
    flush_entries(staged)?;
    remove_own_files(real, is_own);
    let moved = move_entries(staged, real, MOVING)
        .and_then(|()| flush_entries(real))
        .inspect_err(|_| remove_own_files(real, is_own));
    let _ = fs::remove_file(staged.join(MOVING));
    let _ = fs::remove_dir(staged);
    moved
}

/// Copies the access rights of the files in `real` to the staged files that will replace them, and marks the update in
/// the staging directory as complete.
fn mark_staging_complete(staged: &Path, real: &Path) -> io::Result<()> {
    for entry in fs::read_dir(staged)? {
        let entry = entry?;
        let old = real.join(entry.file_name());
        if old.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if old.exists() {
            let _ = access::copy_attributes(&old, &staging::open_for_update(&entry.path())?);
        }
    }
    File::create(staged.join(COMPLETE))?.sync_all()?;
    flush_entries(staged)?;
    flush_entries(real)
}

#[cfg(all(test, unix))]
#[path = "output_directory_tests.rs"]
mod tests;
