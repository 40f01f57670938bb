//! Fetching and decompressing one blob.

use super::Input;
use crate::Context;
use crate::error::{Error, Result};
use crate::pbf::{
    Blob, BlobEntry, BlobFlags, BlobHeader, BlobKind, Decompressor, FRAME_PREFIX_LEN, FormatError,
};
use crate::stats::Stats;
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// Reads blobs of one file into buffers that live as long as the reader. One a worker.
#[derive(Debug)]
pub struct BlobReader<'f> {
    input: &'f Input,
    stats: Arc<Stats>,
    frame: Vec<u8>,
    decompressor: Decompressor,
}

impl<'f> BlobReader<'f> {
    /// A reader of blobs of `input`.
    pub fn new(input: &'f Input, ctx: &Context) -> Self {
        let decompressor = Decompressor::default();
        Self {
            input,
            stats: ctx.stats.clone(),
            frame: Vec::new(),
            decompressor,
        }
    }

    /// The uncompressed payload of a blob, which is valid until the next call.
    ///
    /// Where the entry knows the content's hash, a payload that differs is an error: the entry is
    /// stale, and what was planned by it would be wrong.
    pub fn payload(&mut self, entry: &BlobEntry) -> Result<&[u8]> {
        let input = self.input;
        let bad = |source| input.blob_error(u64::from(entry.number), entry.offset, source);
        if entry.blobs != 1 {
            return Err(bad(FormatError::new("several blobs cannot be read as one")));
        }
        let len = entry.frame_len as usize;
        if self.frame.len() < len {
            self.frame.resize(len, 0);
        }
        let frame = self.frame.get_mut(..len).unwrap_or_default();
        if input.read_at(frame, entry.offset)? < len {
            return Err(bad(FormatError::new("the file ends within this blob")));
        }
        let blob = blob_in_frame(frame, entry).map_err(bad)?;
        let payload = self.decompressor.payload(&blob).map_err(bad)?;
        self.stats.bytes_read.add(len as u64);
        self.stats.bytes_decoded.add(payload.len() as u64);
        self.stats.blobs_decoded.add(1);
        if entry.flags.has(BlobFlags::HASHED) && XxHash3_64::oneshot(payload) != entry.hash {
            return Err(bad(stale_index("the content differs")));
        }
        Ok(payload)
    }

    /// An error about a blob of this reader's file.
    pub fn error(&self, entry: &BlobEntry, source: FormatError) -> Error {
        self.input
            .blob_error(u64::from(entry.number), entry.offset, source)
    }
}

/// The error for a blob that is not what the index said.
pub(crate) fn stale_index(what: &str) -> FormatError {
    FormatError::with(format!(
        "the blob is not what the file's index says ({what}): \
         the file was changed in place; rebuild the index with `pbfhogg cat --force`"
    ))
}

/// The Blob in a frame, which must be as long as the entry says.
fn blob_in_frame<'a>(frame: &'a [u8], entry: &BlobEntry) -> Result<Blob<'a>, FormatError> {
    let misplaced = || stale_index("there is no data blob of that length");
    let prefix = frame
        .first_chunk::<FRAME_PREFIX_LEN>()
        .ok_or_else(misplaced)?;
    let header_end = FRAME_PREFIX_LEN + BlobHeader::len_from_prefix(*prefix)? as usize;
    let header = frame
        .get(FRAME_PREFIX_LEN..header_end)
        .ok_or_else(misplaced)?;
    let header = BlobHeader::parse(header)?;
    let body = frame.get(header_end..).unwrap_or_default();
    if header.kind != BlobKind::Data
        || header_end != entry.header_len as usize
        || header.blob_len as usize != body.len()
    {
        return Err(misplaced());
    }
    Blob::parse(body)
}
