//! Reads the datasets of an o5m file.

use super::objects::{self, DeltaState};
use super::varint::{self, Varint};
use super::{DatasetError, O5M_MAGIC_LEN};
use crate::error::{Error, Result};
use crate::formats::change_set::ChangeSet;
use crate::io::{FileCompression, Input, count_remaining_bytes, decompressed_reader};
use crate::osm::{ObjectKind, TextFormat};
use crate::runtime::Context;
use std::io::Read;
use std::path::PathBuf;

/// The maximum size of an object in bytes. A way of this size has a few million nodes.
const LONGEST: u64 = 8 << 20;
/// The number of bytes that are read at a time.
const READ: usize = 256 << 10;
/// A chunk ends when the estimated memory of its objects reaches this number of bytes.
const CHUNK_MEMORY: u64 = 2 << 20;

/// The types of datasets.
mod dataset {
    pub(super) const NODE: u8 = 0x10;
    pub(super) const WAY: u8 = 0x11;
    pub(super) const RELATION: u8 = 0x12;
    pub(super) const BOUNDS: u8 = 0xdb;
    pub(super) const TIMESTAMP: u8 = 0xdc;
    pub(super) const HEADER: u8 = 0xe0;
    /// Datasets of this type and of higher types consist of the type byte alone.
    pub(super) const FIRST_BARE: u8 = 0xf0;
    pub(super) const END: u8 = 0xfe;
    pub(super) const RESET: u8 = 0xff;
}

/// A reader of the objects of an o5m or o5c file, in chunks.
pub(in crate::formats) struct O5mChunks {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    is_compressed: bool,
    /// The bytes that were read. The first `at` of them are already parsed.
    buffer: Vec<u8>,
    at: usize,
    /// The offset of `buffer` in the file.
    before: u64,
    /// The file offset of the dataset that was read last.
    dataset_start: u64,
    /// The number of bytes after `buffer` that were read only to be counted. They follow damage.
    skipped: u64,
    is_read: bool,
    state: DeltaState,
    progress: Progress,
    /// The receiver of warnings; `None` if only the start of the file is read.
    ctx: Option<Context>,
    /// Whether the objects before damage are returned as a chunk. The damage is then stored in `failure`.
    salvages: bool,
    failure: Option<(Error, u64)>,
}

/// The position of the reader in the structure of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Before the magic of a file. Several files may be concatenated.
    Start,
    /// Within a file, before a dataset or the end mark.
    Inside,
    /// After the end mark.
    Ended,
    /// After the last byte, or after an error.
    Done,
}

impl O5mChunks {
    /// Creates a reader of `input`. Warnings go to `ctx`.
    pub(in crate::formats) fn new(input: &Input, ctx: Option<&Context>) -> Result<Self> {
        Ok(Self {
            path: input.path().to_owned(),
            is_compressed: FileCompression::detect(input.first_bytes()?).is_some(),
            reader: decompressed_reader(input)?,
            buffer: Vec::new(),
            at: 0,
            before: 0,
            dataset_start: 0,
            skipped: 0,
            is_read: false,
            state: DeltaState::default(),
            progress: Progress::Start,
            ctx: ctx.cloned(),
            salvages: false,
            failure: None,
        })
    }

    /// Makes the iterator return the objects before damage as the last chunk, instead of an error.
    pub(in crate::formats) const fn enable_salvage(&mut self) {
        self.salvages = true;
    }

    /// Removes and returns the damage at which the last chunk ends, and the offset of the damaged dataset in the
    /// decompressed file. [`enable_salvage`](Self::enable_salvage) must have been called.
    pub(in crate::formats) fn take_failure(&mut self) -> Option<(Error, u64)> {
        self.failure.take()
    }

    /// Returns the number of bytes of the decompressed file that were read.
    pub(in crate::formats) const fn bytes_read(&self) -> u64 {
        self.before + self.buffer.len() as u64 + self.skipped
    }

    /// Reads until the buffer has `count` unparsed bytes, or until the file ends.
    fn fill(&mut self, count: usize) -> Result<()> {
        if self.is_read || self.buffer.len() - self.at >= count {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.before += self.at as u64;
        self.at = 0;
        let wanted = count.saturating_sub(self.buffer.len()).max(READ);
        let mut part = self.reader.by_ref().take(wanted as u64);
        match part.read_to_end(&mut self.buffer) {
            Ok(found) => self.is_read = found < wanted,
            // If the input cannot be read, the error already is an `Error` that names the file.
            Err(error) => {
                self.is_read = true;
                return Err(error
                    .downcast::<Error>()
                    .unwrap_or_else(|error| self.error_at(self.buffer.len(), &error.to_string())));
            }
        }
        Ok(())
    }

    fn unparsed_bytes(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Returns an error at an offset in the buffer.
    fn error_at(&self, at: usize, cause: &str) -> Error {
        self.error_at_file_offset(self.before + at as u64, cause)
    }

    /// Returns an error at an offset in the file.
    fn error_at_file_offset(&self, offset: u64, cause: &str) -> Error {
        let of = if self.is_compressed {
            " of the decompressed data"
        } else {
            ""
        };
        Error::file(&self.path, format!("byte {offset}{of}: {cause}"))
    }

    fn error(&self, cause: &str) -> Error {
        self.error_at(self.at, cause)
    }

    /// Adds the objects of the next chunk to an empty set. After an error, the set has the objects before the damage.
    fn read_chunk(&mut self, set: &mut ChangeSet) -> Result<()> {
        self.state.strings.begin_set();
        while memory(set) < CHUNK_MEMORY && self.progress != Progress::Done {
            self.dataset_start = self.before + self.at as u64;
            match self.progress {
                Progress::Start => self.read_magic()?,
                Progress::Inside => self.read_dataset(set)?,
                Progress::Ended => self.check_bytes_after_end_mark()?,
                Progress::Done => {}
            }
        }
        Ok(())
    }

    /// Reads the magic of a file.
    fn read_magic(&mut self) -> Result<()> {
        self.fill(O5M_MAGIC_LEN)?;
        let format = TextFormat::from_magic(self.unparsed_bytes());
        let format = format.ok_or_else(|| {
            self.error("this is not the start of an o5m or o5c file (ff e0 04, and o5m2 or o5c2)")
        })?;
        self.state.is_change = format == TextFormat::O5c;
        self.state.reset();
        self.at += O5M_MAGIC_LEN;
        self.progress = Progress::Inside;
        Ok(())
    }

    /// Checks that the end mark is followed by nothing or by another file.
    fn check_bytes_after_end_mark(&mut self) -> Result<()> {
        self.fill(O5M_MAGIC_LEN)?;
        self.progress = match self.unparsed_bytes() {
            [] => Progress::Done,
            rest if TextFormat::from_magic(rest).is_some() => Progress::Start,
            _ => return Err(self.error("there is something behind the mark of the end (fe)")),
        };
        Ok(())
    }

    /// Reads a dataset.
    fn read_dataset(&mut self, set: &mut ChangeSet) -> Result<()> {
        // Eleven bytes are enough for the type, which has one byte, and for the length, which has at most ten.
        self.fill(11)?;
        let Some(&kind) = self.unparsed_bytes().first() else {
            return self.finish_without_end_mark();
        };
        if kind >= dataset::FIRST_BARE {
            match kind {
                dataset::RESET => self.state.reset(),
                dataset::END => self.progress = Progress::Ended,
                _ => {}
            }
            self.at += 1;
            return Ok(());
        }
        let (len, len_bytes) = match varint::parse_unsigned(&self.unparsed_bytes()[1..]) {
            Varint::Number(len, len_bytes) => (len, len_bytes),
            Varint::Incomplete => return Err(self.error("the file ends within a dataset")),
            Varint::TooLong => {
                return Err(self.error("the length of a dataset has more than 64 bits"));
            }
        };
        let object = match kind {
            dataset::NODE => Some(ObjectKind::Node),
            dataset::WAY => Some(ObjectKind::Way),
            dataset::RELATION => Some(ObjectKind::Relation),
            dataset::BOUNDS | dataset::TIMESTAMP | dataset::HEADER => None,
            // Skips jump marks, and datasets that later versions of the format may add.
            _ => return self.skip(1 + len_bytes, len),
        };
        if len > LONGEST {
            let cause = format!(
                "a dataset of {len} bytes; at most {} MB are read",
                LONGEST >> 20
            );
            return Err(self.error(&cause));
        }
        let len = len as usize;
        self.fill(1 + len_bytes + len)?;
        let start = self.at + 1 + len_bytes;
        let Some(bytes) = self.buffer.get(start..start + len) else {
            return Err(self.cut_off_error(len as u64));
        };
        let read = match (object, kind) {
            (Some(kind), _) => self.state.read_object(kind, bytes, set),
            (None, dataset::BOUNDS) => objects::read_bounds(bytes, set),
            (None, dataset::TIMESTAMP) => objects::read_timestamp(bytes, set),
            (None, _) => Err(DatasetError::new(0, "a second header within the file")),
        };
        read.map_err(|error| self.error_at(start + error.at, &error.cause))?;
        self.at = start + len;
        Ok(())
    }

    /// Ends a file that has no end mark. If `salvages` is set, the missing mark counts as damage and is an error.
    /// Otherwise, it causes a warning.
    fn finish_without_end_mark(&mut self) -> Result<()> {
        self.progress = Progress::Done;
        if self.salvages {
            return Err(self.error("the file ends without the mark of its end (fe)"));
        }
        if let Some(ctx) = &self.ctx {
            ctx.warn(format!(
                "{}: the file ends without the mark of its end (fe): it may not be complete",
                self.path.display()
            ));
        }
        Ok(())
    }

    /// Skips a dataset with a header of `header_len` bytes and contents of `len` bytes.
    fn skip(&mut self, header_len: usize, len: u64) -> Result<()> {
        let mut left = len;
        self.at += header_len;
        while left > 0 {
            self.fill(1)?;
            let here = (self.unparsed_bytes().len() as u64).min(left);
            if here == 0 {
                let cause = format!("the file ends within a dataset of {len} bytes");
                return Err(self.error_at_file_offset(self.dataset_start, &cause));
            }
            self.at += here as usize;
            left -= here;
        }
        Ok(())
    }

    fn cut_off_error(&self, len: u64) -> Error {
        self.error(&format!("the file ends within a dataset of {len} bytes"))
    }
}

/// Returns the estimated memory of a set, in bytes.
pub(in crate::formats) fn memory(set: &ChangeSet) -> u64 {
    let changes = size_of_val(set.changes());
    let lists = set.tags.len() * 4 + set.refs.len() * 16;
    (changes + lists + set.strings.text_len() + set.strings.len() * 16) as u64
}

impl Iterator for O5mChunks {
    type Item = Result<ChangeSet>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.progress == Progress::Done {
            return None;
        }
        let mut set = ChangeSet::default();
        let read = self.read_chunk(&mut set);
        if read.is_err() {
            self.progress = Progress::Done;
        }
        match read {
            Ok(()) => Some(Ok(set)),
            // Only an error in the data is damage. An error while reading the input is not.
            Err(error @ Error::File { .. }) if self.salvages => {
                self.failure = Some((error, self.dataset_start));
                if !self.is_read {
                    self.skipped = count_remaining_bytes(&mut self.reader);
                }
                Some(Ok(set))
            }
            Err(error) => Some(Err(error)),
        }
    }
}
