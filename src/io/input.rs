//! Input files: regular files, streams spooled to temporary files, and files on web servers.

use super::FIRST_READ;
use super::direct;
use super::direct::direct_reader;
use super::file_identity::FileIdentity;
use crate::error::{
    CANNOT_CREATE_TEMPORARY, CANNOT_WRITE_TEMPORARY, Error, FileResult, FormatError, Result,
    path_without_credentials,
};
#[cfg(feature = "update")]
use crate::net::RemoteFile;
use crate::runtime::{Context, IoMode, lock};
use crate::system;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// A file that is read at any offset. Standard input and other streams are first copied to a temporary file. For a file
/// on a web server, the path is the URL, and the ranges that are read are fetched to a temporary file. Clones share the
/// open file.
#[derive(Debug, Clone)]
pub struct Input(Arc<OpenInput>);

#[derive(Debug)]
struct OpenInput {
    path: PathBuf,
    file: File,
    /// The file on a web server; `None` for other inputs. For a file on a web server, `file` is a temporary file with
    /// the ranges that were fetched.
    #[cfg(feature = "update")]
    remote: Option<RemoteFile>,
    /// A second descriptor of the file, opened with `O_DIRECT`; `None` if reads use the page cache.
    direct: Option<File>,
    len: u64,
    /// Whether pages are dropped from the page cache after they are read. This is set for large files, which would
    /// evict other files from the cache.
    drop_behind: bool,
    /// The size in bytes of the original file if `file` is a converted copy of it; otherwise `None`.
    original_len: Option<u64>,
    /// The first [`FIRST_READ`] bytes of the file; unset until they are first requested.
    start: OnceLock<Vec<u8>>,
    /// The identity of a named file when it was opened.
    identity: Option<FileIdentity>,
}

/// The registered inputs of this process. Closed inputs stay in the list until it has to grow.
static OPEN: Mutex<Vec<Weak<OpenInput>>> = Mutex::new(Vec::new());

/// Finds the open inputs that read the file at `path`. For each, returns the identity that the file had when the input
/// was opened. `path` must have no symbolic links in it.
pub(super) fn open_input_identities(path: &Path) -> Vec<FileIdentity> {
    let open = lock(&OPEN);
    let inputs = open.iter().filter_map(Weak::upgrade);
    let inputs = inputs.filter(|input| input.path.canonicalize().is_ok_and(|real| real == path));
    inputs.filter_map(|input| input.identity).collect()
}

/// The name of standard input in messages.
const STANDARD_INPUT: &str = "standard input";

/// Returns the name of an input in messages.
fn path_for_messages(path: &Path) -> &Path {
    if path.as_os_str() == "-" {
        Path::new(STANDARD_INPUT)
    } else {
        path
    }
}

/// Registers an open input for [`open_input_identities`].
fn register(input: &Arc<OpenInput>) {
    let mut open = lock(&OPEN);
    if open.len() == open.capacity() {
        open.retain(|input| input.strong_count() > 0);
    }
    open.push(Arc::downgrade(input));
}

impl Input {
    /// Opens a file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with_direct(path, |_| None)
    }

    /// Opens a file; `-` is standard input. For a path that was passed to [`Context::with_file`], uses the open file of
    /// the context. Reads of a regular file bypass the page cache if `ctx` asks for direct I/O and the file system
    /// supports it.
    pub fn open_in(path: &Path, ctx: &Context) -> Result<Self> {
        if let Some(file) = ctx.file(path) {
            let file = file.try_clone().for_path(path, "cannot open")?;
            return Self::from_temporary(file, path_for_messages(path));
        }
        match ctx.io {
            IoMode::Direct => Self::open_with_direct(path, |path| direct_reader(path, ctx)),
            IoMode::Auto | IoMode::Buffered | IoMode::Parallel | IoMode::IoUring => {
                Self::open(path)
            }
        }
    }

    /// Opens a file; `-` is standard input. `direct` opens the `O_DIRECT` descriptor of a regular file.
    fn open_with_direct(path: &Path, direct: impl FnOnce(&Path) -> Option<File>) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Self::spool_stdin();
        }
        if is_url(path) {
            return Self::open_url(path);
        }
        let file = File::open(path).for_path(path, "cannot open")?;
        let metadata = file.metadata().for_path(path, "cannot read")?;
        if metadata.is_dir() {
            return Err(Error::file(path, "is a directory, not a file"));
        }
        if !metadata.is_file() {
            return Self::spool(path, file);
        }
        let direct = direct(path);
        let input = Arc::new(OpenInput {
            path: path.to_owned(),
            len: metadata.len(),
            drop_behind: direct.is_none() && system::exceeds_half_of_memory(metadata.len()),
            file,
            #[cfg(feature = "update")]
            remote: None,
            direct,
            original_len: None,
            start: OnceLock::new(),
            identity: Some(FileIdentity::of(&metadata)),
        });
        register(&input);
        Ok(Self(input))
    }

    /// Opens a file on a web server, and fetches its beginning.
    #[cfg(feature = "update")]
    fn open_url(url: &Path) -> Result<Self> {
        let (remote, file) = RemoteFile::open(url, super::FIRST_READ as u64)?;
        Ok(Self(Arc::new(OpenInput {
            path: PathBuf::from(path_without_credentials(url).into_owned()),
            len: remote.len(),
            file,
            remote: Some(remote),
            direct: None,
            drop_behind: false,
            original_len: None,
            start: OnceLock::new(),
            identity: None,
        })))
    }

    #[cfg(not(feature = "update"))]
    fn open_url(url: &Path) -> Result<Self> {
        let cause = "files of web servers need the feature `update` of this library";
        Err(Error::file(url, cause))
    }

    /// Spools standard input. Fails if standard input is a terminal.
    fn spool_stdin() -> Result<Self> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Err(Error::Usage(
                "standard input is a terminal: give a file or a pipe".into(),
            ));
        }
        Self::spool(Path::new(STANDARD_INPUT), stdin.lock())
    }

    /// Copies a stream to an unnamed temporary file, so that it can be read at any offset. `path` is for messages.
    pub(crate) fn spool(path: &Path, mut stream: impl io::Read) -> Result<Self> {
        let directory = std::env::temp_dir();
        let mut file =
            tempfile::tempfile_in(&directory).for_path(&directory, CANNOT_CREATE_TEMPORARY)?;
        io::copy(&mut stream, &mut file).map_err(|error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Error::io(&directory, CANNOT_WRITE_TEMPORARY, error)
            }
            _ => Error::io(path, "cannot copy the stream to a temporary file", error),
        })?;
        Self::from_temporary(file, path)
    }

    /// Creates an input that reads `file`, a temporary file that `original` was converted to. Messages name `original`.
    pub(crate) fn from_converted(file: File, original: &Self) -> Result<Self> {
        Self::with_original_len(file, original.path(), Some(original.len()))
    }

    /// Creates an input that reads `file`, a temporary file with the sorted objects of `original`. Messages name
    /// `original`.
    pub(crate) fn from_sorted(file: File, original: &Self) -> Result<Self> {
        Self::from_temporary(file, original.path())
    }

    /// Creates an input that reads a temporary file of this process. `name` is for messages.
    pub(crate) fn from_temporary(file: File, name: &Path) -> Result<Self> {
        Self::with_original_len(file, name, None)
    }

    /// Creates an input that reads a temporary file. `name` is for messages.
    fn with_original_len(file: File, name: &Path, original_len: Option<u64>) -> Result<Self> {
        let metadata = file.metadata().for_path(name, "cannot read")?;
        Ok(Self(Arc::new(OpenInput {
            path: name.to_owned(),
            len: metadata.len(),
            file,
            #[cfg(feature = "update")]
            remote: None,
            direct: None,
            drop_behind: false,
            original_len,
            start: OnceLock::new(),
            identity: None,
        })))
    }

    /// Returns the path, for messages.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the size in bytes of the file that this input was converted from; `None` if it was not converted.
    pub(crate) fn original_len(&self) -> Option<u64> {
        self.0.original_len
    }

    /// Returns the size in bytes of the file that the user gave. If this input reads a converted copy, this is the size
    /// of the original file.
    pub(crate) fn user_file_len(&self) -> u64 {
        self.original_len().unwrap_or_else(|| self.len())
    }

    /// Returns the size that the file had when it was opened, in bytes.
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fetches a range of a file on a web server, so that [`file`](Self::file) contains it. Does nothing for other
    /// files.
    pub(crate) fn fetch(&self, offset: u64, len: u64) -> Result<()> {
        #[cfg(feature = "update")]
        if let Some(remote) = &self.0.remote {
            return remote.fetch(offset..offset.saturating_add(len), &self.0.file);
        }
        let _ = (offset, len);
        Ok(())
    }

    /// Returns the open file, for kernel copies. For a file on a web server, it has only the ranges that were fetched.
    pub fn file(&self) -> &File {
        &self.0.file
    }

    /// Whether reads bypass the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.0.direct.is_some()
    }

    /// Whether two inputs are clones that share one open file.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns a number that identifies the open input. Only clones of the input have the same number.
    pub(crate) fn number(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the file. Returns the number of bytes
    /// read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.fetch(offset, buffer.len() as u64)?;
        let read = match &self.0.direct {
            Some(direct) => direct::read_at(direct, buffer, offset),
            None => system::read_at(&self.0.file, buffer, offset),
        };
        let count = read.for_path(self.path(), "cannot read")?;
        self.drop_pages_behind(offset, count as u64);
        Ok(count)
    }

    /// Returns the first 64 KiB of the file, or the whole file if it is shorter. The bytes are read on the first call
    /// and cached.
    pub(crate) fn first_bytes(&self) -> Result<&[u8]> {
        if let Some(start) = self.0.start.get() {
            return Ok(start);
        }
        let mut start =
            vec![0; usize::try_from(self.len()).map_or(FIRST_READ, |len| len.min(FIRST_READ))];
        let found = self.read_at(&mut start, 0)?;
        start.truncate(found);
        Ok(self.0.start.get_or_init(|| start))
    }

    /// Fills `buffer` with the bytes from `offset` on. Fails if the file has become shorter.
    pub(crate) fn read_all_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if self.read_at(buffer, offset)? < buffer.len() {
            return Err(Error::file_of(
                self.path(),
                crate::error::ErrorKind::Truncated,
                "the file was truncated while it was being read",
            ));
        }
        Ok(())
    }

    /// Drops pages of a large file from the page cache after a range was read or copied: the range of the same length
    /// that lies [`DROP_BEHIND`] bytes earlier. The range itself stays cached, because a blob that was decoded may be
    /// copied next.
    pub(crate) fn drop_pages_behind(&self, offset: u64, len: u64) {
        if self.0.drop_behind
            && let Some(behind) = offset.checked_sub(DROP_BEHIND)
        {
            system::release_cached_range(&self.0.file, behind, len);
        }
    }

    /// Returns an [`Error::Blob`] for blob `number` of this file, whose frame starts at `offset`.
    pub fn blob_error(&self, number: u64, offset: u64, source: FormatError) -> Error {
        Error::Blob {
            path: self.path().to_owned(),
            number,
            offset,
            source,
        }
    }
}

/// Whether a path is the URL of a file on a web server.
pub(super) fn is_url(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    text.starts_with("https://") || text.starts_with("http://")
}

/// The distance in bytes between the range being read and the pages of a large file that are dropped from the page
/// cache.
const DROP_BEHIND: u64 = 256 << 20;
