//! Walking from frame to frame by their headers; bodies are never read.

use super::Input;
use crate::error::Result;
use crate::pbf::{BlobEntry, BlobHeader, BlobKind, FRAME_PREFIX_LEN, FormatError};

/// Bytes fetched at each frame: enough for every BlobHeader that carries no tag keys.
const PROBE: usize = 80;

/// What stands before a blob.
#[derive(Debug, Clone)]
pub struct FrameHead {
    /// Where and how long the frame is; nothing is known of its contents yet.
    pub entry: BlobEntry,
    /// The `indexdata` of the BlobHeader.
    pub indexdata: Option<Vec<u8>>,
}

/// Walks the data frames of a file. Frames of unknown type are passed over.
#[derive(Debug)]
pub struct HeaderWalker<'f> {
    input: &'f Input,
    offset: u64,
    number: u32,
    failed: bool,
}

impl<'f> HeaderWalker<'f> {
    /// Starts at the frame with that number and offset.
    pub const fn new(input: &'f Input, offset: u64, number: u32) -> Self {
        Self {
            input,
            offset,
            number,
            failed: false,
        }
    }

    fn read_head(&mut self) -> Result<(BlobKind, FrameHead)> {
        let mut probe = [0; PROBE];
        let found = self.input.read_at(&mut probe, self.offset)?;
        let bad = |source| {
            self.input
                .blob_error(u64::from(self.number), self.offset, source)
        };
        let probe = probe.get(..found).unwrap_or_default();
        let prefix = probe.first_chunk::<FRAME_PREFIX_LEN>().ok_or_else(|| {
            bad(FormatError::new(
                "the file ends within the length of a frame",
            ))
        })?;
        let len = BlobHeader::len_from_prefix(*prefix).map_err(bad)? as usize;
        let long;
        let bytes = match probe.get(FRAME_PREFIX_LEN..FRAME_PREFIX_LEN + len) {
            Some(bytes) => bytes,
            None => {
                let mut bytes = vec![0; len];
                let offset = self.offset + FRAME_PREFIX_LEN as u64;
                if self.input.read_at(&mut bytes, offset)? < len {
                    return Err(bad(FormatError::new("the file ends within a BlobHeader")));
                }
                long = bytes;
                &long
            }
        };
        let header = BlobHeader::parse(bytes).map_err(bad)?;
        let header_len = FRAME_PREFIX_LEN + len;
        let frame_len = header_len as u32 + header.blob_len;
        if self.offset + u64::from(frame_len) > self.input.len() {
            let found = self
                .input
                .len()
                .saturating_sub(self.offset + header_len as u64);
            return Err(bad(FormatError::with(format!(
                "the file ends within this blob: {} bytes announced, {found} there",
                header.blob_len
            ))));
        }
        let entry = BlobEntry {
            offset: self.offset,
            frame_len,
            header_len: header_len as u32,
            number: self.number,
            ..BlobEntry::default()
        };
        Ok((
            header.kind,
            FrameHead {
                entry,
                indexdata: header.indexdata.map(<[u8]>::to_vec),
            },
        ))
    }
}

impl Iterator for HeaderWalker<'_> {
    type Item = Result<FrameHead>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed && self.offset < self.input.len() {
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
                                "a second OSMHeader: these are files one behind the other, \
                                 which `pbfhogg cat FILE FILE` joins",
                            ),
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
