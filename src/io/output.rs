//! Output files. A file appears under its name only when it is complete and flushed to disk.

use super::output_target::{OutputTarget, path_without_links, real_path};
use super::replaced::ReplacedFile;
use super::temporary::{self, directory_of};
use super::writer_target::WriterPipe;
use super::{access, unfinished};
use crate::error::{Error, FileResult, Result};
use crate::runtime::{Cancellation, Context, IoMode, lock};
use crate::system::{self, Call};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::NamedTempFile;

/// An output that is open and still empty. Outputs are opened before the input is read. A run therefore fails early if
/// an output cannot be created.
#[derive(Debug)]
pub struct OpenOutput {
    pub(crate) output: Output,
    pub(crate) file: File,
    pub(crate) is_stream: bool,
    /// The I/O mode from the context of the command.
    pub(super) io: IoMode,
}

impl OpenOutput {
    /// Opens an output, as [`Output::create`] does. Warns if some attributes of the file to replace cannot be copied to
    /// the output.
    pub fn open(target: OutputTarget, ctx: &Context) -> Result<Self> {
        let is_stream = target.is_stream();
        let (mut output, file) = Output::create(target)?;
        output.cancellation = ctx.cancellation.clone();
        output.max_shrink = ctx.max_shrink;
        if let Some(warning) = &output.warning {
            ctx.warn(warning.clone());
        }
        Ok(Self {
            output,
            file,
            is_stream,
            io: ctx.io,
        })
    }

    /// Opens a new file, which gets the path `final_path` when it is committed. The commit fails if another file
    /// already has this path, or if `cancellation` is set. `shown` is the path of the new file in messages.
    pub(super) fn open_hidden(
        final_path: PathBuf,
        shown: PathBuf,
        cancellation: &Cancellation,
    ) -> Result<Self> {
        let (pending, file) = begin_file(&shown, final_path)?;
        let target = OutputTarget::file(shown);
        let output = Output {
            target,
            pending,
            replaced: None,
            warning: None,
            claim: None,
            cancellation: cancellation.clone(),
            max_shrink: None,
        };
        Ok(Self {
            output,
            file,
            is_stream: false,
            io: IoMode::Auto,
        })
    }
}

/// An unfinished output. [`Output::commit`] gives the complete file its name. If the output is dropped or the process
/// is killed before the commit, an existing file stays unchanged. A stream receives the data as it is written.
///
/// Before the commit, the file has no name (`O_TMPFILE`), so even a killed process leaves nothing on disk. Where the
/// system does not support unnamed files, the data is in a hidden temporary file in the directory of the target.
#[derive(Debug)]
pub struct Output {
    target: OutputTarget,
    pending: UnfinishedFile,
    /// The file that this output will replace.
    replaced: Option<ReplacedFile>,
    /// The warning that some attributes of the file to replace cannot be copied to the output.
    warning: Option<String>,
    /// The claim on the path of the file; `None` for streams and temporary files.
    claim: Option<Claim>,
    pub(super) cancellation: Cancellation,
    /// The maximum percentage by which the file may be smaller than the file that it replaces; `None` for no limit.
    max_shrink: Option<u8>,
}

/// The state of an unfinished output. `Scratch` holds the directory of the temporary file. `Unnamed` and `Named` hold
/// the file, which has no name or a temporary name, and its final path.
#[derive(Debug)]
enum UnfinishedFile {
    Stream,
    Writer(WriterPipe),
    Scratch(PathBuf),
    Unnamed {
        file: File,
        real_path: PathBuf,
    },
    Named {
        temp: NamedTempFile,
        real_path: PathBuf,
    },
}

impl Output {
    /// Opens an output. Returns the output and the file to write to.
    ///
    /// # Errors
    ///
    /// - The target exists and may not be overwritten, or is a directory.
    /// - Another unfinished output of this process has the same file.
    /// - Another run is replacing the target, or has replaced it since this process began to read it.
    pub fn create(target: OutputTarget) -> Result<(Self, File)> {
        target.check()?;
        let (mut replaced, mut warning, mut claim) = (None, None, None);
        let (pending, file) = match &target {
            OutputTarget::Stdout => {
                let file = system::standard_output().for_path(target.path(), "cannot open")?;
                (UnfinishedFile::Stream, file)
            }
            OutputTarget::Writer(writer) => {
                let (pipe, file) = WriterPipe::open(writer)?;
                (UnfinishedFile::Writer(pipe), file)
            }
            OutputTarget::Scratch(scratch) => (
                UnfinishedFile::Scratch(scratch.directory.clone()),
                scratch.open()?,
            ),
            OutputTarget::File { path, .. } if target.is_stream() => {
                let file = OpenOptions::new().write(true).open(path);
                (UnfinishedFile::Stream, file.for_path(path, "cannot open")?)
            }
            OutputTarget::File { path, .. } => {
                claim = Some(Claim::acquire(path)?);
                let real_path = real_path(path);
                replaced = ReplacedFile::lock_at(&real_path)?;
                let (pending, file) = begin_file(path, real_path)?;
                // The new file gets the permissions of the old one before its first byte is written.
                warning = replaced
                    .as_ref()
                    .and_then(|old| access::copy_attributes(old.path(), &file));
                (pending, file)
            }
        };
        let output = Self {
            target,
            pending,
            replaced,
            warning,
            claim,
            cancellation: Cancellation::default(),
            max_shrink: None,
        };
        Ok((output, file))
    }

    /// Returns the path of the output, for messages.
    pub fn path(&self) -> &Path {
        self.target.path()
    }

    /// Whether the commit flushes the output to disk. Returns `false` for a stream and for a temporary file.
    pub(super) const fn is_flushed_on_commit(&self) -> bool {
        matches!(
            self.pending,
            UnfinishedFile::Unnamed { .. } | UnfinishedFile::Named { .. }
        )
    }

    /// Returns the number of free bytes on the file system of the output; `None` for a stream, or if the file system
    /// does not report them.
    pub(super) fn free_space(&self) -> Option<u64> {
        match &self.pending {
            UnfinishedFile::Stream | UnfinishedFile::Writer(_) => None,
            UnfinishedFile::Scratch(directory) => system::free_space(directory),
            UnfinishedFile::Unnamed { real_path, .. } | UnfinishedFile::Named { real_path, .. } => {
                system::free_space(directory_of(real_path))
            }
        }
    }

    /// Opens a second descriptor of the output with `O_DIRECT`. Returns `None` for a stream or a temporary file. If the
    /// system refuses, warns and returns `None`.
    pub(super) fn open_direct(&self, ctx: &Context) -> Option<File> {
        let file = match &self.pending {
            UnfinishedFile::Stream | UnfinishedFile::Writer(_) | UnfinishedFile::Scratch(_) => {
                return None;
            }
            UnfinishedFile::Unnamed { file, .. } => file,
            UnfinishedFile::Named { temp, .. } => temp.as_file(),
        };
        system::reopen_direct(file)
            .map_err(|error| {
                ctx.warn(format!(
                    "{}: the file system refuses direct writes ({error}): writing through the page cache",
                    self.path().display()
                ));
            })
            .ok()
    }

    /// Flushes a file to disk and gives it the path of the target. For a writer, waits until the writer has received
    /// all data. Other streams and temporary files are left as they are.
    ///
    /// Fails if the work has been cancelled, or if the file to replace has changed since the output was opened. Also
    /// fails if a file exists at the path and may not be replaced, or if the new file is smaller than
    /// [`Context::max_shrink`] allows.
    pub fn commit(self) -> Result<()> {
        self.commit_and_complete(&[])
    }

    /// Commits as [`commit`](Self::commit) does, and at the same time marks the unfinished files `completed` as
    /// complete. A signal that ends the process leaves either all of the files or none.
    pub(super) fn commit_and_complete(self, completed: &[PathBuf]) -> Result<()> {
        self.commit_flushing(completed, system::sync)
    }

    /// Gives a file its name as [`commit`](Self::commit) does, but does not wait until it is on disk. After a crash of
    /// the machine, the file may be empty or damaged. Its readers have to detect this.
    pub(crate) fn commit_unflushed(self) -> Result<()> {
        self.commit_flushing(&[], |_| Ok(()))
    }

    /// Flushes the file with `flush`, gives it its name, and flushes its directory.
    fn commit_flushing(
        self,
        completed: &[PathBuf],
        flush: fn(&File) -> io::Result<()>,
    ) -> Result<()> {
        self.cancellation.check()?;
        let Self {
            target,
            pending,
            replaced,
            claim: _claim,
            cancellation,
            max_shrink,
            ..
        } = self;
        let check = || replaced.as_ref().map_or(Ok(()), ReplacedFile::verify);
        let failed = |action| {
            let path = target.path();
            move |error| Error::io(path, action, error)
        };
        let flush_file = |new: &File| {
            if let (Some(old), Some(most)) = (&replaced, max_shrink) {
                old.check_len(new, most)?;
            }
            flush(new).map_err(failed("cannot flush to disk"))?;
            cancellation.check()
        };
        match pending {
            UnfinishedFile::Stream | UnfinishedFile::Scratch(_) => {
                unfinished::unregister_all(completed);
                Ok(())
            }
            UnfinishedFile::Writer(pipe) => {
                unfinished::unregister_all(completed);
                pipe.finish()
            }
            UnfinishedFile::Unnamed { file, real_path } => {
                flush_file(&file)?;
                let _ = access::copy_attributes(&real_path, &file);
                let directory = Directory::containing(&real_path);
                link_or_replace(&file, &real_path, target.may_overwrite(), completed, check)
                    .and_then(|()| directory.flush(flush))
                    .map_err(failed("cannot give the finished output its name"))
            }
            UnfinishedFile::Named { temp, real_path } => {
                flush_file(temp.as_file())?;
                let _ = access::copy_attributes(&real_path, temp.as_file());
                let name = temp.path().to_owned();
                let directory = Directory::containing(&real_path);
                let put_in_place = unfinished::finish_output(Some(&name), completed, || {
                    system::admit(Call::Rename, 0)?;
                    check()?;
                    rename(temp, &real_path, target.may_overwrite())
                });
                let put_in_place = put_in_place.and_then(|()| directory.flush(flush));
                put_in_place.map_err(failed("cannot give the finished output its name"))
            }
        }
    }
}

/// Renames a temporary file. Fails if the path exists and may not be overwritten.
fn rename(temp: NamedTempFile, path: &Path, may_overwrite: bool) -> io::Result<()> {
    if may_overwrite {
        return replace(temp, path);
    }
    let persisted = temp.persist_noclobber(path);
    persisted.map(|_| ()).map_err(|error| error.error)
}

/// The paths, without symbolic links, of the unfinished outputs of this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The claim of an unfinished output on its path. The claim lasts until this value is dropped.
#[derive(Debug)]
struct Claim(PathBuf);

impl Claim {
    /// Claims a path. Fails if another unfinished output of this process has claimed it.
    fn acquire(path: &Path) -> Result<Self> {
        let place = path_without_links(path);
        let mut places = lock(&UNFINISHED);
        if places.contains(&place) {
            return Err(Error::file(path, "two outputs have this file"));
        }
        places.push(place.clone());
        Ok(Self(place))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut places = lock(&UNFINISHED);
        places.retain(|place| *place != self.0);
    }
}

/// Fails if `directory`, which is to hold `output`, is not a directory.
pub(super) fn check_directory(directory: &Path, output: &Path) -> Result<()> {
    let cause = match directory.metadata() {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => "this is a file, not a directory",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "there is no such directory",
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => "this is no directory",
        // After any other error, creating the output fails and reports the cause.
        Err(_) => return Ok(()),
    };
    let cause = format!(
        "{cause}, in which to write {}: make it, or write to another one",
        output.display()
    );
    Err(Error::file(directory, cause))
}

/// Creates the file of an output. It is unnamed if the system supports that, and otherwise a hidden temporary file.
fn begin_file(path: &Path, real_path: PathBuf) -> Result<(UnfinishedFile, File)> {
    check_directory(directory_of(&real_path), path)?;
    let failed = |error| Error::io(path, "cannot create", error);
    if real_path.exists() {
        temporary::remove_stale_temporaries(&real_path);
    }
    match system::create_unnamed(directory_of(&real_path)).map_err(failed)? {
        Some(file) => {
            let second = file.try_clone().map_err(failed)?;
            Ok((UnfinishedFile::Unnamed { file, real_path }, second))
        }
        None => {
            temporary::remove_stale_temporaries(&real_path);
            let temp = temporary::create(&real_path).map_err(failed)?;
            unfinished::register(temp.path());
            let second = temp.as_file().try_clone().map_err(failed)?;
            Ok((UnfinishedFile::Named { temp, real_path }, second))
        }
    }
}

/// Gives a temporary file the name `path`, and replaces an existing file. On Windows, this also replaces files that are
/// open, which `NamedTempFile::persist` does not do.
fn replace(temp: NamedTempFile, path: &Path) -> io::Result<()> {
    let (_file, name) = temp.keep().map_err(|error| error.error)?;
    fs::rename(&name, path).inspect_err(|_| {
        let _ = fs::remove_file(&name);
    })
}

/// Gives an unnamed file the name `path`. Replaces an existing file atomically if `overwrite` is set and `check`
/// succeeds. Otherwise, an existing file is an error. In the same step, marks the unfinished files `completed` as
/// complete.
fn link_or_replace(
    file: &File,
    path: &Path,
    overwrite: bool,
    completed: &[PathBuf],
    check: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let link = |name: &Path| system::give_name(file, name);
    system::admit(Call::Rename, 0)?;
    if !overwrite || path.symlink_metadata().is_err() {
        // If there is nothing to replace, the file gets its name directly. A temporary name could be left behind by a
        // killed process.
        let linked =
            unfinished::finish_output(None, completed, || check().and_then(|()| link(path)));
        match linked {
            Err(error) if overwrite && error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result,
        }
    }
    // `linkat` cannot replace a file, but `rename` can, so the file first gets a temporary name.
    temporary::lock(file);
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let between = temporary::temporary_path(path, count);
        unfinished::register(&between);
        let done = unfinished::finish_output(Some(&between), completed, || {
            check()?;
            link(&between)?;
            fs::rename(&between, path).inspect_err(|_| {
                let _ = fs::remove_file(&between);
            })
        });
        match done {
            Ok(()) => {
                temporary::unlock(file);
                return Ok(());
            }
            // A killed process with the same process id left a file of this name. Tries the next name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// The directory of an output, opened before its entries change; `None` if it cannot be opened, for example because it
/// is writable but not readable.
pub(super) struct Directory(Option<File>);

impl Directory {
    /// Opens the directory that contains `path`.
    pub(super) fn containing(path: &Path) -> Self {
        Self(File::open(directory_of(path)).ok())
    }

    /// Flushes the entries of the directory to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.flush(system::sync)
    }

    /// Flushes the entries of the directory with `flush`. Does nothing if the directory could not be opened.
    fn flush(&self, flush: fn(&File) -> io::Result<()>) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), flush)
    }
}
