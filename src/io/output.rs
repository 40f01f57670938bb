//! Output files. A file appears under its name only when it is complete and flushed to disk.

use super::input::is_url;
use super::replaced::Replaced;
use super::temporary::{self, directory_of};
use super::writer_target::{self, WriterPipe, WriterTarget};
use super::{access, unfinished};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{Cancellation, Context};
use crate::system::{self, Call};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf, is_separator};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::NamedTempFile;

/// An unnamed temporary file, which disappears when its last descriptor is closed, even if the process is killed.
/// Clones share the open file.
#[derive(Debug, Clone)]
pub struct ScratchFile {
    file: Arc<File>,
    directory: PathBuf,
}

impl PartialEq for ScratchFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }
}

impl Eq for ScratchFile {}

impl ScratchFile {
    /// Creates an empty temporary file on the file system of `directory`.
    pub fn create(directory: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(directory).map_err(|error| {
            Error::io(
                directory,
                "cannot create a temporary file in this directory",
                error,
            )
        })?;
        Ok(Self {
            file: Arc::new(file),
            directory: directory.to_owned(),
        })
    }

    /// A new descriptor of the open file, which shares the file offset with the others.
    pub fn open(&self) -> Result<File> {
        let file = self.file.try_clone();
        file.map_err(|error| Error::io(&self.directory, "cannot open a temporary file", error))
    }
}

/// The target of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputTarget {
    /// Standard output, as a stream.
    Stdout,
    /// A temporary file.
    Scratch(ScratchFile),
    /// A [`Write`](std::io::Write) of the caller, as a stream; see [`OutputTarget::writer`].
    Writer(WriterTarget),
    /// A named file, device or pipe.
    File {
        /// The path of the file.
        path: PathBuf,
        /// Whether an existing file may be replaced.
        overwrite: bool,
    },
}

impl OutputTarget {
    /// A file that must not exist yet.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File {
            path: path.into(),
            overwrite: false,
        }
    }

    /// A writer, which gets the output as a stream while it is made, from another thread. It has got everything, and was
    /// flushed, when the command returns. Takes one output. If the writer fails, the command fails with
    /// [`Error::ClosedPipe`].
    ///
    /// ```
    /// use pbfhogg::commands::{cat, synth};
    /// use pbfhogg::{Context, OutputOptions, OutputTarget};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("world.osm.pbf");
    /// # let ctx = Context::default();
    /// # synth::run(&synth::Options::new(1_000, OutputOptions::file(&path)), &ctx)?;
    /// # let connection = std::fs::File::create(directory.path().join("connection"))?;
    /// let output = OutputOptions::new(OutputTarget::writer(connection));
    /// cat::run(&cat::Options::new(vec![path.clone()], output), &ctx)?;
    /// # let copied = directory.path().join("connection");
    /// # assert!(pbfhogg::ElementReader::from_path(copied)?.find_map(|_| Some(()))?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writer(writer: impl Write + Send + 'static) -> Self {
        Self::Writer(WriterTarget::new(Box::new(writer)))
    }

    /// Whether the output is written as a stream, without seeking: standard output, a device or a named pipe.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::Stdout | Self::Writer(_) => true,
            Self::Scratch(_) => false,
            // Devices and named pipes are written to, not replaced.
            Self::File { path, .. } => path
                .metadata()
                .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()),
        }
    }

    /// Fails if the target is a directory, or exists and may not be overwritten.
    pub fn check(&self) -> Result<()> {
        let Self::File { path, overwrite } = self else {
            return Ok(());
        };
        if is_url(path) {
            return Err(Error::file(path, "the output is a URL, not a file"));
        }
        if path.as_os_str().to_string_lossy().ends_with(is_separator) || path.is_dir() {
            return Err(Error::file(path, "the output is a directory, not a file"));
        }
        if !self.is_stream() && path.symlink_metadata().is_ok() && !overwrite {
            let error = Error::file_of(path, ErrorKind::Exists, "the output exists");
            return Err(error.advise("use --overwrite (-O) to replace it"));
        }
        Ok(())
    }

    /// The place of a file: its path without symbolic links, by which two names of one file are equal. `None` for
    /// streams and temporary files.
    fn place(&self) -> Option<PathBuf> {
        match self {
            Self::File { path, .. } if !self.is_stream() => Some(place_of(path)),
            _ => None,
        }
    }

    /// Fails if two targets are one file under the same or different names, or if a target is one of the inputs.
    pub(crate) fn check_distinct<'t>(
        targets: impl IntoIterator<Item = &'t Self>,
        inputs: &[&Path],
    ) -> Result<()> {
        let inputs: HashMap<PathBuf, &Path> =
            inputs.iter().map(|path| (place_of(path), *path)).collect();
        let mut seen: HashMap<PathBuf, &Path> = HashMap::new();
        for target in targets {
            let Some(place) = target.place() else {
                continue;
            };
            if inputs.contains_key(&place) {
                let cause = "this is an input, too: choose another name for the output";
                return Err(Error::file(target.path(), cause));
            }
            if let Some(other) = seen.insert(place, target.path()) {
                let cause = format!(
                    "two outputs have this file; the other one is called {}",
                    other.display()
                );
                return Err(Error::file(target.path(), cause));
            }
        }
        Ok(())
    }

    /// Whether an existing file may be replaced; false for targets other than [`OutputTarget::File`].
    pub(crate) const fn may_overwrite(&self) -> bool {
        matches!(
            self,
            Self::File {
                overwrite: true,
                ..
            }
        )
    }

    /// The directory for temporary files of the command: the directory of the output, whose file system must have room
    /// for large files in any case; for a stream, the system's temporary directory.
    pub fn scratch_directory(&self) -> PathBuf {
        match self {
            Self::File { path, .. } if !self.is_stream() => directory_of(path).to_owned(),
            Self::Scratch(scratch) => scratch.directory.clone(),
            _ => std::env::temp_dir(),
        }
    }

    /// The path, for messages: "standard output" for standard output, the directory for a temporary file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Stdout => Path::new("standard output"),
            Self::Writer(_) => Path::new(writer_target::NAME),
            Self::Scratch(scratch) => &scratch.directory,
            Self::File { path, .. } => path,
        }
    }
}

/// An output that is open and still empty. If it is opened before the input is read, an output that cannot be created
/// fails early.
#[derive(Debug)]
pub struct OpenOutput {
    pub(crate) output: Output,
    pub(crate) file: File,
    pub(crate) is_stream: bool,
}

impl OpenOutput {
    /// Opens an output, as [`Output::create`] does. Warns if the output cannot have all attributes of the file that it
    /// will replace.
    pub fn open(target: OutputTarget, ctx: &Context) -> Result<Self> {
        let is_stream = target.is_stream();
        let (mut output, file) = Output::create(target)?;
        output.cancellation = ctx.cancellation.clone();
        if let Some(warning) = &output.warning {
            ctx.warn(warning.clone());
        }
        Ok(Self {
            output,
            file,
            is_stream,
        })
    }

    /// Opens a new file at `place`, in a directory that has no name yet. Messages call the file `shown`.
    pub(super) fn hidden(place: PathBuf, shown: PathBuf) -> Result<Self> {
        let (pending, file) = begin_file(&shown, place)?;
        let target = OutputTarget::File {
            path: shown,
            overwrite: false,
        };
        let output = Output {
            target,
            pending,
            replaced: None,
            warning: None,
            claim: None,
            cancellation: Cancellation::default(),
        };
        Ok(Self {
            output,
            file,
            is_stream: false,
        })
    }
}

/// An unfinished output. [`Output::commit`] gives the complete file its name. If the output is dropped or the process
/// is killed before the commit, an existing file stays unchanged. A stream receives the data as it is written.
///
/// Before the commit, the file has no name (`O_TMPFILE`), so that even a killed process leaves nothing on disk. Where
/// the system does not support unnamed files, the data is in a hidden temporary file in the directory of the target.
#[derive(Debug)]
pub struct Output {
    target: OutputTarget,
    pending: Pending,
    /// The file that this output will replace.
    replaced: Option<Replaced>,
    /// The warning that the output cannot have all attributes of the file that it will replace.
    warning: Option<String>,
    /// The claim on the place of the file; `None` for streams and temporary files.
    claim: Option<Claim>,
    cancellation: Cancellation,
}

/// The state of an unfinished output: for a [`ScratchFile`], its directory; for a file without a name or with a
/// temporary name, the file and its final path.
#[derive(Debug)]
enum Pending {
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
                let file = system::standard_output()
                    .map_err(|error| Error::io(target.path(), "cannot open", error))?;
                (Pending::Stream, file)
            }
            OutputTarget::Writer(writer) => {
                let (pipe, file) = WriterPipe::open(writer)?;
                (Pending::Writer(pipe), file)
            }
            OutputTarget::Scratch(scratch) => {
                (Pending::Scratch(scratch.directory.clone()), scratch.open()?)
            }
            OutputTarget::File { path, .. } if target.is_stream() => {
                let file = OpenOptions::new().write(true).open(path);
                (
                    Pending::Stream,
                    file.map_err(|error| Error::io(path, "cannot open", error))?,
                )
            }
            OutputTarget::File { path, .. } => {
                claim = Some(Claim::on(path)?);
                let real_path = real_path(path);
                replaced = Replaced::at(&real_path)?;
                let (pending, file) = begin_file(path, real_path)?;
                // Before its first byte is written, the file gets the access of the old one.
                warning = replaced
                    .as_ref()
                    .and_then(|old| access::keep(old.path(), &file));
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
        };
        Ok((output, file))
    }

    /// The path, for messages.
    pub fn path(&self) -> &Path {
        self.target.path()
    }

    /// Free bytes on the output's file system; `None` for a stream, or if the file system does not report them.
    pub(super) fn free_space(&self) -> Option<u64> {
        match &self.pending {
            Pending::Stream | Pending::Writer(_) => None,
            Pending::Scratch(directory) => system::free_space(directory),
            Pending::Unnamed { real_path, .. } | Pending::Named { real_path, .. } => {
                system::free_space(directory_of(real_path))
            }
        }
    }

    /// A second descriptor of the output, opened with `O_DIRECT`. `None` for a stream or a temporary file; if the
    /// system refuses, warns and returns `None`.
    pub(super) fn direct_file(&self, ctx: &Context) -> Option<File> {
        let file = match &self.pending {
            Pending::Stream | Pending::Writer(_) | Pending::Scratch(_) => return None,
            Pending::Unnamed { file, .. } => file,
            Pending::Named { temp, .. } => temp.as_file(),
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

    /// Flushes a file to disk and gives it the path of the target. Fails if a file with that path has been created
    /// meanwhile and may not be replaced, or if the file to replace has changed since the output was opened. Does
    /// nothing for a stream or a temporary file.
    pub fn commit(self) -> Result<()> {
        self.commit_with(&[])
    }

    /// Commits as [`commit`](Self::commit) does, and completes other unfinished files in the same moment: a signal that
    /// ends the process leaves all of them or none.
    pub(super) fn commit_with(self, completed: &[PathBuf]) -> Result<()> {
        self.put(completed, system::sync)
    }

    /// Gives a file its name as [`commit`](Self::commit) does, but does not wait until it is on disk: after a crash of
    /// the machine the file may be empty or damaged, which its readers have to detect.
    pub(crate) fn commit_unflushed(self) -> Result<()> {
        self.put(&[], |_| Ok(()))
    }

    /// Flushes the file and its directory by `flush`, and gives the file its name.
    fn put(self, completed: &[PathBuf], flush: fn(&File) -> io::Result<()>) -> Result<()> {
        self.cancellation.check()?;
        let Self {
            target,
            pending,
            replaced,
            claim: _claim,
            ..
        } = self;
        let check = || replaced.as_ref().map_or(Ok(()), Replaced::check);
        let failed = |action| {
            let path = target.path();
            move |error| Error::io(path, action, error)
        };
        match pending {
            Pending::Stream | Pending::Scratch(_) => {
                unfinished::end_all(completed);
                Ok(())
            }
            Pending::Writer(pipe) => {
                unfinished::end_all(completed);
                pipe.finish()
            }
            Pending::Unnamed { file, real_path } => {
                flush(&file).map_err(failed("cannot flush to disk"))?;
                let _ = access::keep(&real_path, &file);
                let directory = Directory::of(&real_path);
                put_in_place(&file, &real_path, target.may_overwrite(), completed, check)
                    .and_then(|()| directory.flush(flush))
                    .map_err(failed("cannot give the finished output its name"))
            }
            Pending::Named { temp, real_path } => {
                flush(temp.as_file()).map_err(failed("cannot flush to disk"))?;
                let _ = access::keep(&real_path, temp.as_file());
                let name = temp.path().to_owned();
                let overwrite = target.may_overwrite();
                let directory = Directory::of(&real_path);
                let put_in_place = unfinished::end(Some(&name), completed, || {
                    system::admit(Call::Rename, 0)?;
                    check()?;
                    if overwrite {
                        replace(temp, &real_path)
                    } else {
                        let persisted = temp.persist_noclobber(&real_path);
                        persisted.map(|_| ()).map_err(|error| error.error)
                    }
                });
                let put_in_place = put_in_place.and_then(|()| directory.flush(flush));
                put_in_place.map_err(failed("cannot give the finished output its name"))
            }
        }
    }
}

/// Resolves symbolic links in `path`, so that an output replaces the file that a link points to, and not the link.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // The last link may point to a file that does not exist yet. A cycle of links makes a later system call fail.
    for _ in 0..40 {
        match (path.canonicalize(), path.read_link()) {
            (Ok(real), _) => return real,
            (Err(_), Ok(target)) => path = directory_of(&path).join(target),
            (Err(_), Err(_)) => break,
        }
    }
    path
}

/// The path of a file that need not exist, without symbolic links in it.
fn place_of(path: &Path) -> PathBuf {
    let real = real_path(path);
    match (directory_of(&real).canonicalize(), real.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => real,
    }
}

/// The places of the unfinished outputs of this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The claim of an unfinished output on its place, until it is dropped.
#[derive(Debug)]
struct Claim(PathBuf);

impl Claim {
    /// Fails if another unfinished output of this process has the same place.
    fn on(path: &Path) -> Result<Self> {
        let place = place_of(path);
        let mut places = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        if places.contains(&place) {
            return Err(Error::file(path, "two outputs have this file"));
        }
        places.push(place.clone());
        Ok(Self(place))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut places = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
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
        // Creating the output reports the cause.
        Err(_) => return Ok(()),
    };
    let cause = format!(
        "{cause}, in which to write {}: make it, or write to another one",
        output.display()
    );
    Err(Error::file(directory, cause))
}

/// Creates the file of an output: unnamed if the system supports it, otherwise a hidden temporary file.
fn begin_file(path: &Path, real_path: PathBuf) -> Result<(Pending, File)> {
    check_directory(directory_of(&real_path), path)?;
    let failed = |error| Error::io(path, "cannot create", error);
    if real_path.exists() {
        temporary::remove_remnants(&real_path);
    }
    match system::create_unnamed(directory_of(&real_path)).map_err(failed)? {
        Some(file) => {
            let second = file.try_clone().map_err(failed)?;
            Ok((Pending::Unnamed { file, real_path }, second))
        }
        None => {
            temporary::remove_remnants(&real_path);
            let temp = temporary::create(&real_path).map_err(failed)?;
            unfinished::add(temp.path());
            let second = temp.as_file().try_clone().map_err(failed)?;
            Ok((Pending::Named { temp, real_path }, second))
        }
    }
}

/// Gives a temporary file the name `path`, and replaces an existing file. Unlike `NamedTempFile::persist`, this also
/// replaces files that are open on Windows.
fn replace(temp: NamedTempFile, path: &Path) -> io::Result<()> {
    let (_file, name) = temp.keep().map_err(|error| error.error)?;
    fs::rename(&name, path).inspect_err(|_| {
        let _ = fs::remove_file(&name);
    })
}

/// Gives an unnamed file the name `path`. An existing file is replaced atomically if `overwrite` is set and `check`
/// allows it, and is an error otherwise. The unfinished files `completed` are complete from then on.
fn put_in_place(
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
        // A file that is not there needs no temporary name, which a killed process could leave.
        let linked = unfinished::end(None, completed, || check().and_then(|()| link(path)));
        match linked {
            Err(error) if overwrite && error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result,
        }
    }
    // `linkat` cannot replace a file, but `rename` can: give the file a temporary name first.
    temporary::lock(file);
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let between = temporary::name(path, count);
        unfinished::add(&between);
        let done = unfinished::end(Some(&between), completed, || {
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
            // A killed process with the same process id left a file of this name: try the next name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// The directory of an output, opened before its entries change; `None` if it cannot be opened, such as a directory
/// that is writable but not readable.
pub(super) struct Directory(Option<File>);

impl Directory {
    /// The directory that contains `path`.
    pub(super) fn of(path: &Path) -> Self {
        Self(File::open(directory_of(path)).ok())
    }

    /// Flushes the entries of the directory to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.flush(system::sync)
    }

    /// Flushes the entries of the directory by `flush`. Does nothing if the directory could not be opened.
    fn flush(&self, flush: fn(&File) -> io::Result<()>) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), flush)
    }
}
