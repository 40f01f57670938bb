//! Buffers for the bytes of a file that is being fetched, in memory or on disk.

use crate::osm::CHANGE_ROOT;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// The number of bytes from the start of a file on disk that are also kept in memory.
const HEAD_LEN: usize = 4096;
/// The number of bytes after which a file on disk is given up if its start is neither gzip data nor a change file.
const LOOK_LEN: u64 = 1 << 16;

/// A buffer for the bytes of a file that is being fetched.
pub(crate) trait Body {
    /// Returns the number of bytes that have arrived.
    fn len(&self) -> u64;

    /// Returns the start of the file: at least 4096 bytes, or all bytes if fewer have arrived.
    fn head(&self) -> &[u8];

    /// Appends bytes.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Removes all bytes.
    fn clear(&mut self) -> io::Result<()>;

    /// Whether the bytes that have arrived cannot be the start of a file of the expected format. In this case fetching
    /// the rest is useless.
    fn has_wrong_start(&self) -> bool {
        false
    }
}

impl Body for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn head(&self) -> &[u8] {
        self
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.truncate(0);
        Ok(())
    }
}

/// The format of a change file that is not compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeForm {
    Xml,
    Opl,
    O5c,
    Pbf,
}

impl ChangeForm {
    /// Returns the format that a change file may have if it begins with `start`. Byte order marks and white space may
    /// come before text. Returns `None` for the start of anything else, such as gzip data.
    pub(crate) fn detect(start: &[u8]) -> Option<Self> {
        if matches!(start, [0, 0, 0, _, b'\n', ..]) {
            return Some(Self::Pbf);
        }
        if start.starts_with(b"\xff\xe0\x04o5") {
            return Some(Self::O5c);
        }
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        let start = start.trim_ascii_start();
        let begins = |words: &[u8]| {
            let len = words.len().min(start.len());
            len > 0 && start.get(..len) == words.get(..len)
        };
        if begins(b"<?xml") || begins(CHANGE_ROOT) || begins(b"<!--") {
            return Some(Self::Xml);
        }
        begins_like_opl(start).then_some(Self::Opl)
    }
}

/// Whether a text begins like OPL: its first line that is neither empty nor a comment is an object. A text of comments
/// alone counts as OPL. A state file also begins with a comment, but its next line is no object.
fn begins_like_opl(start: &[u8]) -> bool {
    let mut lines = start.split(|byte| *byte == b'\n');
    let line = lines.find(|line| !line.starts_with(b"#") && !line.trim_ascii().is_empty());
    match line {
        Some(line) => matches!(line, [b'n' | b'w' | b'r' | b'c', b'-' | b'0'..=b'9', ..]),
        None => start.starts_with(b"#"),
    }
}

/// A gzip file of any size, in an unnamed temporary file. Servers and proxies may have decompressed the file.
pub(crate) struct GzipFile {
    file: File,
    head: Vec<u8>,
    len: u64,
}

impl GzipFile {
    /// Creates an empty temporary file in a directory.
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile_in(directory)?,
            head: Vec::new(),
            len: 0,
        })
    }

    /// Returns the temporary file, positioned at its start.
    pub(crate) fn rewind_file(&mut self) -> io::Result<&mut File> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok(&mut self.file)
    }

    /// Returns the temporary file.
    pub(crate) fn into_file(self) -> File {
        self.file
    }
}

impl Body for GzipFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn head(&self) -> &[u8] {
        &self.head
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = HEAD_LEN.saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(room));
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.head.clear();
        self.len = 0;
        self.file.set_len(0)?;
        self.rewind_file().map(drop)
    }

    fn has_wrong_start(&self) -> bool {
        let may_be_good =
            self.head.starts_with(b"\x1f\x8b") || ChangeForm::detect(&self.head).is_some();
        self.len > LOOK_LEN && !may_be_good
    }
}
