//! The targets of outputs, which are files, temporary files, standard output and writers.

use super::input::is_url;
use super::temporary::directory_of;
use super::writer_target::{self, WriterTarget};
use crate::error::{Advice, CANNOT_CREATE_TEMPORARY, Error, ErrorKind, FileResult, Result};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf, is_separator};
use std::sync::Arc;

/// An unnamed temporary file. It disappears when its last descriptor is closed, even if the process is killed. Clones
/// share the open file.
#[derive(Debug, Clone)]
pub struct ScratchFile {
    file: Arc<File>,
    pub(super) directory: PathBuf,
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
        let file = tempfile::tempfile_in(directory).for_path(directory, CANNOT_CREATE_TEMPORARY)?;
        Ok(Self {
            file: Arc::new(file),
            directory: directory.to_owned(),
        })
    }

    /// Returns a new descriptor of the open file. All descriptors share one file offset.
    pub fn open(&self) -> Result<File> {
        self.file
            .try_clone()
            .for_path(&self.directory, "cannot open a temporary file")
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
    /// A [`std::io::Write`] that the caller provides, as a stream; see [`OutputTarget::writer`].
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
    /// Creates the target for a file that must not exist yet.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::named_file(path, false)
    }

    /// Creates the target for a file, which may be replaced if `overwrite` is set.
    pub(crate) fn named_file(path: impl Into<PathBuf>, overwrite: bool) -> Self {
        let path = path.into();
        Self::File { path, overwrite }
    }

    /// Creates the target for a writer. While the command runs, another thread writes the output to the writer as a
    /// stream. When the command returns, everything is written and the writer is flushed. A writer accepts only one
    /// output. If the writer fails, the command fails with [`Error::ClosedPipe`], or with the error of the writer if
    /// the command had already passed on all data.
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

    /// Whether the output is written as a stream, without seeking. This holds for standard output, writers, devices and
    /// named pipes.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::Stdout | Self::Writer(_) => true,
            Self::Scratch(_) => false,
            // Devices and named pipes are not replaced. The output is written to them.
            Self::File { path, .. } => path
                .metadata()
                .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()),
        }
    }

    /// Fails if the target is a URL, a directory, or an existing file that may not be overwritten.
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
            return Err(error.advise(Advice::Replace));
        }
        Ok(())
    }

    /// Returns the path of the file without symbolic links; `None` for streams and temporary files. Two targets that
    /// are the same file have the same path here.
    fn path_without_symlinks(&self) -> Option<PathBuf> {
        match self {
            Self::File { path, .. } if !self.is_stream() => Some(path_without_links(path)),
            _ => None,
        }
    }

    /// Fails if two targets are the same file, or if a target is one of the inputs. Paths are compared after symbolic
    /// links are resolved.
    pub(crate) fn check_distinct<'t>(
        targets: impl IntoIterator<Item = &'t Self>,
        inputs: &[&Path],
    ) -> Result<()> {
        let inputs: HashMap<PathBuf, &Path> = inputs
            .iter()
            .map(|path| (path_without_links(path), *path))
            .collect();
        let mut seen: HashMap<PathBuf, &Path> = HashMap::new();
        for target in targets {
            let Some(place) = target.path_without_symlinks() else {
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

    /// Returns the directory for temporary files of the command. For a file, it is the directory of that file: its file
    /// system needs room for large files in any case. For a stream, it is the system's temporary directory.
    pub fn scratch_directory(&self) -> PathBuf {
        match self {
            Self::File { path, .. } if !self.is_stream() => directory_of(path).to_owned(),
            Self::Scratch(scratch) => scratch.directory.clone(),
            _ => std::env::temp_dir(),
        }
    }

    /// Returns the path of the target, for messages. It is "standard output" for standard output, "the writer" for a
    /// writer, and the directory for a temporary file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Stdout => Path::new("standard output"),
            Self::Writer(_) => Path::new(writer_target::NAME),
            Self::Scratch(scratch) => &scratch.directory,
            Self::File { path, .. } => path,
        }
    }
}

/// Resolves symbolic links in `path`. An output thus replaces the file that a link points to, and not the link.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // `canonicalize` fails if the last link points to a file that does not exist yet. The loop resolves such links one
    // by one. If the links form a cycle, a later system call fails.
    for _ in 0..40 {
        match (path.canonicalize(), path.read_link()) {
            (Ok(real), _) => return real,
            (Err(_), Ok(target)) => path = directory_of(&path).join(target),
            (Err(_), Err(_)) => break,
        }
    }
    path
}

/// Returns the path of a file without symbolic links. The file need not exist.
pub(super) fn path_without_links(path: &Path) -> PathBuf {
    let real = real_path(path);
    match (directory_of(&real).canonicalize(), real.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => real,
    }
}
