//! Input files and the opening of a PBF.

use super::HeaderWalker;
use super::direct::{self, direct_reader};
use crate::context::{Context, IoMode};
use crate::error::{Error, Result};
use crate::pbf::{
    Blob, BlobHeader, BlobKind, Decompressor, FRAME_PREFIX_LEN, FormatError, HeaderBlock, Toc,
    TocPointer,
};
use crate::sys;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file that is read at arbitrary places. Standard input is spooled to a temporary file. Clones
/// share the open file.
#[derive(Debug, Clone)]
pub struct Input(Arc<OpenInput>);

#[derive(Debug)]
struct OpenInput {
    path: PathBuf,
    file: File,
    /// The file opened once more, for reads past the page cache.
    direct: Option<File>,
    len: u64,
    /// Whether what was read is dropped from memory, so that the machine keeps what it held before.
    drop_behind: bool,
    /// The length of the file that this one was made of.
    original_len: Option<u64>,
    /// The first bytes, once they were asked for.
    start: OnceLock<Vec<u8>>,
}

impl Input {
    /// Opens a file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_by(path, |_| None)
    }

    /// Opens a file; `-` is standard input. It is read past the page cache where `ctx` asks for that.
    pub fn open_in(path: &Path, ctx: &Context) -> Result<Self> {
        match ctx.io {
            IoMode::Direct => Self::open_by(path, |path| direct_reader(path, ctx)),
            IoMode::Auto | IoMode::Buffered | IoMode::Parallel | IoMode::IoUring => {
                Self::open(path)
            }
        }
    }

    fn open_by(path: &Path, direct: impl FnOnce(&Path) -> Option<File>) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Self::spool_stdin();
        }
        let file = File::open(path).map_err(|error| Error::io(path, "cannot open", error))?;
        let metadata = file
            .metadata()
            .map_err(|error| Error::io(path, "cannot read", error))?;
        if metadata.is_dir() {
            return Err(Error::file(path, "is a directory, not a file"));
        }
        if !metadata.is_file() {
            return Self::spool(path, file);
        }
        let direct = direct(path);
        Ok(Self(Arc::new(OpenInput {
            path: path.to_owned(),
            len: metadata.len(),
            drop_behind: direct.is_none() && crate::system::is_large(metadata.len()),
            file,
            direct,
            original_len: None,
            start: OnceLock::new(),
        })))
    }

    fn spool_stdin() -> Result<Self> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Err(Error::Usage(
                "standard input is a terminal: give a file or a pipe".into(),
            ));
        }
        Self::spool(Path::new("standard input"), stdin.lock())
    }

    /// Copies a stream to a temporary file that has no name, so that it can be read at will.
    fn spool(path: &Path, mut stream: impl io::Read) -> Result<Self> {
        let directory = std::env::temp_dir();
        let mut file = tempfile::tempfile_in(&directory)
            .map_err(|error| Error::io(&directory, "cannot make a temporary file there", error))?;
        io::copy(&mut stream, &mut file)
            .map_err(|error| Error::io(path, "cannot copy it to a temporary file", error))?;
        Self::from_temporary(file, path)
    }

    /// A temporary file that `original` was converted to, which is what messages name.
    pub(crate) fn converted(file: File, original: &Self) -> Result<Self> {
        let Self(input) = Self::from_temporary(file, original.path())?;
        let original_len = Some(original.len());
        Ok(match Arc::try_unwrap(input) {
            Ok(input) => Self(Arc::new(OpenInput {
                original_len,
                ..input
            })),
            Err(input) => Self(input),
        })
    }

    /// A temporary file that the objects of `original` were sorted into, which is what messages name.
    pub(crate) fn sorted(file: File, original: &Self) -> Result<Self> {
        Self::from_temporary(file, original.path())
    }

    /// A temporary file of our own; `name` is for messages.
    pub(crate) fn from_temporary(file: File, name: &Path) -> Result<Self> {
        let metadata = file
            .metadata()
            .map_err(|error| Error::io(name, "cannot read", error))?;
        Ok(Self(Arc::new(OpenInput {
            path: name.to_owned(),
            len: metadata.len(),
            file,
            direct: None,
            drop_behind: false,
            original_len: None,
            start: OnceLock::new(),
        })))
    }

    /// The path, for messages.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// How long the file was that this one was made of, where it was converted.
    pub(crate) fn original_len(&self) -> Option<u64> {
        self.0.original_len
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The open file, for copies within the kernel.
    pub fn file(&self) -> &File {
        &self.0.file
    }

    /// Whether two inputs are one open file.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let read = match &self.0.direct {
            Some(direct) => direct::read_at(direct, buffer, offset),
            None => sys::read_at(&self.0.file, buffer, offset),
        };
        let count = read.map_err(|error| Error::io(self.path(), "cannot read", error))?;
        self.release(offset, count as u64);
        Ok(count)
    }

    /// The first 64 KiB of the file, or all of a shorter one. They are read once.
    pub(crate) fn start(&self) -> Result<&[u8]> {
        if let Some(start) = self.0.start.get() {
            return Ok(start);
        }
        let mut start =
            vec![0; usize::try_from(self.len()).map_or(FIRST_READ, |len| len.min(FIRST_READ))];
        let found = self.read_at(&mut start, 0)?;
        start.truncate(found);
        Ok(self.0.start.get_or_init(|| start))
    }

    /// Fills `buffer` from `offset` on. A file that has become shorter is an error.
    pub(crate) fn read_all_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if self.read_at(buffer, offset)? < buffer.len() {
            return Err(Error::file(
                self.path(),
                "the file became shorter while it was read",
            ));
        }
        Ok(())
    }

    /// Notes that a range was dealt with. Of a large file what lies well behind is dropped from memory:
    /// not the range itself, since what is decoded now may be copied next.
    pub(crate) fn release(&self, offset: u64, len: u64) {
        if self.0.drop_behind
            && let Some(behind) = offset.checked_sub(DROP_BEHIND)
        {
            sys::release(&self.0.file, behind, len);
        }
    }

    /// An error about the frame that starts at `offset`.
    pub fn blob_error(&self, number: u64, offset: u64, source: FormatError) -> Error {
        Error::Blob {
            path: self.path().to_owned(),
            number,
            offset,
            source,
        }
    }
}

/// How far behind its readers a large file is dropped from memory.
const DROP_BEHIND: u64 = 256 << 20;

/// Bytes fetched by the read that opens a file, and by the one that looks for the table of contents at its end.
pub(super) const FIRST_READ: usize = 64 * 1024;

/// An open PBF file: its header, and its table of contents where it has a good one.
#[derive(Debug)]
pub struct PbfFile {
    /// The file.
    pub input: Input,
    /// What the file says of itself.
    pub header: HeaderBlock,
    /// The table of contents, where there is one that fits the file.
    pub toc: Option<Toc>,
    /// Why a table that is there cannot be used.
    pub toc_problem: Option<String>,
    /// Where the first data frame starts.
    pub data_start: u64,
    /// Where the last data frame ends, as far as that is known: there the table of contents begins.
    pub data_end: u64,
}

impl PbfFile {
    /// Opens a file and reads its header blob and its table of contents: at most three reads.
    pub fn open(path: &Path, ctx: &Context) -> Result<Self> {
        Self::of_input(Input::open_in(path, ctx)?, ctx)
    }

    /// As [`open`](Self::open), of an input that is open.
    pub fn of_input(input: Input, ctx: &Context) -> Result<Self> {
        let file = Self::read_header(input, ctx)?;
        if let Some(problem) = &file.toc_problem {
            let path = file.input.path().display();
            ctx.warn(format!("{path}: {problem}; it is not used"));
        }
        Ok(file)
    }

    /// The frames of data in file order.
    pub fn frames(&self) -> HeaderWalker<'_> {
        HeaderWalker::new(&self.input, self.data_start..self.data_end)
    }

    fn read_header(input: Input, ctx: &Context) -> Result<Self> {
        if input.is_empty() {
            return Err(Error::file(input.path(), "the file is empty"));
        }
        let frame = read_header_frame(&input)?;
        ctx.stats.bytes_read.add(frame.len() as u64);
        let bad = |source| input.blob_error(0, 0, source);
        let (header, toc) = parse_header_frame(&frame).map_err(bad)?;
        let mut file = Self {
            input,
            header,
            toc: None,
            toc_problem: None,
            data_start: frame.len() as u64,
            data_end: 0,
        };
        file.data_end = file.input.len();
        match toc
            .as_deref()
            .map(|bytes| (TocPointer::parse(bytes), bytes))
        {
            None => {}
            Some((None, table)) => file.take_toc_of_header(table)?,
            Some((Some(TocPointer::At { start, file_len }), _)) => {
                file.take_toc_at(start, file_len, ctx)?;
            }
            Some((Some(TocPointer::AtEnd), _)) => file.take_toc_of_stream(ctx)?,
        }
        Ok(file)
    }
}

/// The bytes of the first frame, limits checked.
fn read_header_frame(input: &Input) -> Result<Vec<u8>> {
    let bad = |source| input.blob_error(0, 0, source);
    let mut frame = input.start()?.to_vec();
    if !is_like_pbf(&frame) {
        let kind =
            other_kind(&frame).map_or(String::new(), |kind| format!(" (it looks like {kind})"));
        return Err(Error::file(input.path(), format!("not an OSM file{kind}")));
    }
    let len = header_frame_len(&frame).map_err(bad)?;
    let found = frame.len();
    frame.resize(len, 0);
    if len > found {
        let rest = frame.get_mut(found..).unwrap_or_default();
        let wanted = rest.len();
        if input.read_at(rest, found as u64)? < wanted {
            return Err(bad(FormatError::new(
                "the file ends within its header blob",
            )));
        }
    }
    Ok(frame)
}

/// The BlobHeader message in the first bytes of a frame.
pub(super) fn blob_header_bytes(frame: &[u8]) -> Result<&[u8], FormatError> {
    let prefix = frame
        .first_chunk::<FRAME_PREFIX_LEN>()
        .ok_or(FormatError::new(
            "the file ends within the length of a frame",
        ))?;
    let len = BlobHeader::len_from_prefix(*prefix)? as usize;
    frame
        .get(FRAME_PREFIX_LEN..FRAME_PREFIX_LEN + len)
        .ok_or(FormatError::new("the file ends within a BlobHeader"))
}

/// Whether a file begins as a frame does: with a length below 16 MiB.
fn is_like_pbf(start: &[u8]) -> bool {
    match start {
        [0, _, _, _, ..] => true,
        // A file that ends here is a PBF that was cut off, or it is nothing.
        _ => start.iter().all(|byte| *byte == 0),
    }
}

/// The likely format of a file that does not begin like a PBF, by its first bytes.
fn other_kind(start: &[u8]) -> Option<&'static str> {
    let is_text = || {
        let start = start.get(..start.len().min(512)).unwrap_or_default();
        let is_plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
        start.iter().all(is_plain)
    };
    binary_kind(start).or(match start {
        [0x1f, 0x8b, ..] => Some("gzip data of something else"),
        [b'B', b'Z', b'h', ..] => Some("bzip2 data of something else"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstd data of something else"),
        [b'{' | b'[', ..] => Some("JSON"),
        [b'<', ..] => Some("XML"),
        _ if is_text() => Some("text"),
        _ => None,
    })
}

/// The likely format of a file that is no OSM data in any format, by its first bytes.
pub(crate) fn binary_kind(start: &[u8]) -> Option<&'static str> {
    Some(match start {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz data",
        [b'P', b'K', 3 | 5, ..] => "a zip archive",
        [b'7', b'z', 0xbc, 0xaf, ..] => "a 7z archive",
        [0x89, b'P', b'N', b'G', ..] => "a PNG picture",
        [0xff, 0xd8, 0xff, ..] => "a JPEG picture",
        [b'%', b'P', b'D', b'F', ..] => "a PDF document",
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => "an SQLite database",
        [b'P', b'A', b'R', b'1', ..] => "a Parquet file",
        [0xff, 0xe0, ..] => "an o5m file; osmconvert makes PBF of it",
        [0x7f, b'E', b'L', b'F', ..] => "a program",
        _ if start.get(257..262) == Some(b"ustar") => "a tar archive",
        _ => return None,
    })
}

fn header_frame_len(frame: &[u8]) -> Result<usize, FormatError> {
    let header_bytes = blob_header_bytes(frame)?;
    let header = BlobHeader::parse(header_bytes)?;
    if header.kind != BlobKind::Header {
        return Err(FormatError::new("the first blob is not an OSMHeader"));
    }
    Ok(FRAME_PREFIX_LEN + header_bytes.len() + header.blob_len as usize)
}

/// The header in a frame, and what it says of the table of contents.
fn parse_header_frame(frame: &[u8]) -> Result<(HeaderBlock, Option<Vec<u8>>), FormatError> {
    let start = FRAME_PREFIX_LEN + blob_header_bytes(frame)?.len();
    let blob = Blob::parse(frame.get(start..).unwrap_or_default())?;
    let mut decompressor = Decompressor::default();
    let (header, toc) = HeaderBlock::parse(decompressor.payload(&blob)?)?;
    Ok((header, toc.map(<[u8]>::to_vec)))
}
