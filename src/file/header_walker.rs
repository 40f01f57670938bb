//! Walks over the frames of a file and reads their headers. Blobs are read only to recognise tables about the file.

use crate::error::{Advice, Error, FormatError, Result};
use crate::io::Input;
use crate::pbf::{
    BlobEntry, BlobFlags, BlobHeader, BlobKind, FRAME_PREFIX_LEN, FRAME_PROBE_LEN, TableBlob,
    find_toc, may_be_table_blob,
};
use std::ops::Range;

/// The header of a data frame.
#[derive(Debug, Clone)]
pub struct FrameHead {
    /// An entry with the offset, the lengths and the number of the frame, without facts about the contents of the blob.
    pub entry: BlobEntry,
    /// The `indexdata` of the BlobHeader, if it has any.
    pub indexdata: Option<Vec<u8>>,
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
    tables: u32,
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
    pub(super) const fn numbered_from(self, number: u64) -> Self {
        Self {
            number: number as u32,
            ..self
        }
    }

    /// Returns the number of tables of contents whose last part has been reached.
    pub(super) const fn tables(&self) -> u32 {
        self.tables
    }

    fn read_head(&mut self) -> Result<(BlobKind, FrameHead)> {
        let mut probe = [0; FRAME_PROBE_LEN];
        let found = self.input.read_at(&mut probe, self.offset)?;
        let probe = &probe[..found];
        let prefix = probe.first_chunk::<FRAME_PREFIX_LEN>().ok_or_else(|| {
            self.bad(FormatError::truncated(
                "the file ends within the length of a frame",
            ))
        })?;
        let len = BlobHeader::len_from_prefix(*prefix).map_err(|error| self.bad(error))? as usize;
        let long;
        let bytes = match probe.get(FRAME_PREFIX_LEN..FRAME_PREFIX_LEN + len) {
            Some(bytes) => bytes,
            None => {
                long = self.read_long_header(len)?;
                &long
            }
        };
        let header = BlobHeader::parse(bytes).map_err(|error| self.bad(error))?;
        let header_len = FRAME_PREFIX_LEN + len;
        let frame_len = header_len as u32 + header.blob_len;
        if self.offset + u64::from(frame_len) > self.input.len() {
            let blob_start = self.offset + header_len as u64;
            let found = self.input.len().saturating_sub(blob_start);
            return Err(self.bad(FormatError::with(format!(
                "the file ends within this blob: {} bytes announced, {found} there",
                header.blob_len
            ))));
        }
        // If the header fills the probe, `blob_start` is empty, and the blob is treated as one that has no table. This
        // is right, because blobs with tables have short headers.
        let blob_start = probe.get(header_len..).unwrap_or_default();
        let mut entry = BlobEntry {
            offset: self.offset,
            frame_len,
            header_len: header_len as u32,
            number: self.number,
            ..BlobEntry::default()
        };
        let mut kind = header.kind;
        if kind == BlobKind::Data && may_be_table_blob(blob_start) {
            let table = self.table(header_len, &header)?;
            entry.flags.set(BlobFlags::HAS_TABLE, table.is_host());
            if table.has_no_objects() {
                kind = BlobKind::Unknown;
            }
        }
        let indexdata = header.indexdata.map(<[u8]>::to_vec);
        Ok((kind, FrameHead { entry, indexdata }))
    }

    /// Reads the BlobHeader of the current frame, which is longer than the probe.
    fn read_long_header(&self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let offset = self.offset + FRAME_PREFIX_LEN as u64;
        if self.input.read_at(&mut bytes, offset)? < len {
            return Err(self.bad(FormatError::truncated("the file ends within a BlobHeader")));
        }
        Ok(bytes)
    }

    /// Returns an error about the current frame.
    fn bad(&self, error: FormatError) -> Error {
        self.input
            .blob_error(u64::from(self.number), self.offset, error)
    }
}

impl HeaderWalker<'_> {
    /// Returns the table in the blob of the current frame. Counts the tables of contents.
    fn table(&mut self, header_len: usize, header: &BlobHeader<'_>) -> Result<TableBlob> {
        let mut body = vec![0; header.blob_len as usize];
        self.input
            .read_all_at(&mut body, self.offset + header_len as u64)?;
        let table = TableBlob::of(&body);
        let is_part = matches!(table, TableBlob::TableOfContents | TableBlob::Host);
        self.tables += u32::from(is_part && find_toc(&body).is_some());
        Ok(table)
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
