//! Walks over the frames of a file and reads their headers. Blobs are read only to recognise tables about the file,
//! such as the table of contents.

use super::frame_start::{FrameStart, read_blob_message};
use crate::error::{Advice, Error, FormatError, Result};
use crate::io::Input;
use crate::pbf::{BlobEntry, BlobFlags, BlobKind, TableBlob, find_toc, may_be_table_blob};
use std::ops::Range;

/// The header of a data frame.
#[derive(Debug, Clone)]
pub struct FrameHead {
    /// An entry with the offset, the lengths and the number of the frame, without facts about the contents of the blob.
    pub entry: BlobEntry,
    /// The entry with the facts in the index of the BlobHeader; `None` if there is no valid index.
    pub indexed: Option<BlobEntry>,
}

/// An iterator over the headers of the data frames of a file. Skips frames of unknown type, and tables about the file.
/// A second header frame is an error. The iterator ends after the first error.
#[derive(Debug)]
pub struct HeaderWalker<'f> {
    input: &'f Input,
    offset: u64,
    end: u64,
    number: u32,
    failed: bool,
    /// The number of tables of contents whose last part has been reached.
    pub(super) tables: u32,
}

impl<'f> HeaderWalker<'f> {
    /// Creates a walker over the frames in `range`, a range of bytes of the file. The range must begin at the start of
    /// a frame. That frame gets number 1, which is the number of the first frame after the header frame.
    pub const fn new(input: &'f Input, range: Range<u64>) -> Self {
        Self {
            input,
            offset: range.start,
            end: range.end,
            number: 1,
            failed: false,
            tables: 0,
        }
    }

    /// Returns the walker with another number for the first frame.
    pub(super) const fn with_first_number(self, number: u64) -> Self {
        Self {
            number: number as u32,
            ..self
        }
    }

    /// Reads the start of the frame at the current offset. Also determines whether its blob has a table.
    fn read_head(&mut self) -> Result<(BlobKind, FrameHead)> {
        let start = FrameStart::read(self.input, self.offset)?;
        let frame = start.parse().map_err(|error| self.frame_error(error))?;
        let mut entry = frame.entry;
        entry.number = self.number;
        let mut kind = frame.header.kind;
        if kind == BlobKind::Data && may_be_table_blob(frame.blob_start) {
            let table = self.read_table_kind(&entry)?;
            entry.flags.set(BlobFlags::HAS_TABLE, table.is_host());
            if table.has_no_objects() {
                kind = BlobKind::Unknown;
            }
        }
        let indexed = frame.indexed_entry(entry);
        Ok((kind, FrameHead { entry, indexed }))
    }

    /// Determines which table the blob of the current frame has. Counts the tables of contents.
    fn read_table_kind(&mut self, entry: &BlobEntry) -> Result<TableBlob> {
        let body = read_blob_message(self.input, entry)?;
        let table = TableBlob::of(&body);
        let is_part = matches!(table, TableBlob::TableOfContents | TableBlob::Host);
        self.tables += u32::from(is_part && find_toc(&body).is_some());
        Ok(table)
    }

    /// Returns an error about the current frame.
    fn frame_error(&self, error: FormatError) -> Error {
        self.input
            .blob_error(u64::from(self.number), self.offset, error)
    }
}

impl Iterator for HeaderWalker<'_> {
    type Item = Result<FrameHead>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed && self.offset < self.end {
            match self.read_head() {
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
                Ok((kind, head)) => {
                    if kind == BlobKind::Header {
                        self.failed = true;
                        let second = self.input.blob_error(
                            u64::from(self.number),
                            self.offset,
                            FormatError::new(
                                "a second OSMHeader: these are files one behind the other",
                            )
                            .advise(Advice::JoinFiles),
                        );
                        return Some(Err(second));
                    }
                    self.offset = head.entry.end();
                    self.number = self.number.saturating_add(1);
                    if kind == BlobKind::Data {
                        return Some(Ok(head));
                    }
                }
            }
        }
        None
    }
}
