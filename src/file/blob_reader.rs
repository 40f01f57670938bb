//! Fetching and decompressing one blob.

use crate::error::{Error, FormatError, Result};
use crate::io::Input;
use crate::pbf::{
    Blob, BlobEntry, BlobFlags, BlobHeader, BlobKind, Decompressor, Encoding, FRAME_PREFIX_LEN,
    StringTable, check_claims, scan_payload, stale_index,
};
use crate::runtime::{Context, Stats};
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// Reads blobs of one file into buffers that live as long as the reader. One a worker.
#[derive(Debug)]
pub struct BlobReader<'f> {
    input: &'f Input,
    stats: Arc<Stats>,
    frame: Vec<u8>,
    decompressor: Decompressor,
    glances: Glances,
}

/// What came of a glance at the strings of a block.
#[derive(Debug)]
pub(crate) enum Glanced<'a, T> {
    /// They were enough.
    Answered(T),
    /// The whole payload.
    Payload(&'a [u8]),
}

/// How often glances were enough.
#[derive(Debug, Default, Clone, Copy)]
struct Glances {
    tried: u32,
    answered: u32,
}

impl Glances {
    fn count(&mut self, answered: bool) {
        self.tried += 1;
        self.answered += u32::from(answered);
    }

    /// Whether most glances were in vain; every now and then it is tried again.
    fn are_in_vain(&mut self) -> bool {
        const TRIES: u32 = 8;
        if self.tried < TRIES || self.answered * 3 >= self.tried {
            return false;
        }
        self.tried += 1;
        if self.tried > TRIES * 8 {
            *self = Self::default();
        }
        true
    }
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
            glances: Glances::default(),
        }
    }

    /// The uncompressed payload of a blob, which is valid until the next call.
    ///
    /// A payload that is not what the entry claims, its hash or its ids, is an error: what was planned by it would
    /// be wrong.
    pub fn payload(&mut self, entry: &BlobEntry) -> Result<&[u8]> {
        read_frame(self.input, &mut self.frame, entry, &self.stats)?;
        self.decompress(entry)
    }

    /// The payload of a blob, as [`payload`](Self::payload) gives it, if it is compressed in a way that is wanted.
    pub(crate) fn payload_if(
        &mut self,
        entry: &BlobEntry,
        is_wanted: impl FnOnce(Encoding) -> bool,
    ) -> Result<Option<&[u8]>> {
        read_frame(self.input, &mut self.frame, entry, &self.stats)?;
        let blob = blob_in_frame(&self.frame, entry).map_err(|source| self.error(entry, source))?;
        match is_wanted(blob.encoding) {
            true => self.decompress(entry).map(Some),
            false => Ok(None),
        }
    }

    /// The payload of the frame that was read.
    fn decompress(&mut self, entry: &BlobEntry) -> Result<&[u8]> {
        let input = self.input;
        let bad = |source| input.blob_error(u64::from(entry.number), entry.offset, source);
        let blob = blob_in_frame(&self.frame, entry).map_err(bad)?;
        let payload = self.decompressor.payload(&blob).map_err(bad)?;
        self.stats.bytes_decoded.add(payload.len() as u64);
        self.stats.blobs_decoded.add(1);
        if entry.flags.has(BlobFlags::HASHED) && XxHash3_64::oneshot(payload) != entry.hash {
            return Err(bad(stale_index("the content differs")));
        }
        check_claims(payload, entry).map_err(bad)?;
        Ok(payload)
    }

    /// As [`payload`](Self::payload), unless `glance` can answer from the block's strings alone: then no
    /// more is decompressed than these. Where that mostly turns out to be in vain it is not tried.
    pub(crate) fn payload_unless<T>(
        &mut self,
        entry: &BlobEntry,
        glance: Option<impl FnOnce(&StringTable<'_>) -> Option<T>>,
    ) -> Result<Glanced<'_, T>> {
        let Some(glance) = glance else {
            return self.payload(entry).map(Glanced::Payload);
        };
        if self.glances.are_in_vain() {
            return self.payload(entry).map(Glanced::Payload);
        }
        let input = self.input;
        let bad = |source| input.blob_error(u64::from(entry.number), entry.offset, source);
        read_frame(input, &mut self.frame, entry, &self.stats)?;
        let blob = blob_in_frame(&self.frame, entry).map_err(bad)?;
        let table = self.decompressor.string_table(&blob).map_err(bad)?;
        let strings = table.map(StringTable::parse).transpose().map_err(bad)?;
        let answer = strings.and_then(|strings| glance(&strings));
        self.stats
            .bytes_decoded
            .add(table.map_or(0, <[u8]>::len) as u64);
        self.glances.count(answer.is_some());
        match answer {
            Some(answer) => Ok(Glanced::Answered(answer)),
            None => self.decompress(entry).map(Glanced::Payload),
        }
    }

    /// An error about a blob of this reader's file.
    pub fn error(&self, entry: &BlobEntry, source: FormatError) -> Error {
        self.input
            .blob_error(u64::from(entry.number), entry.offset, source)
    }
}

/// Reads the frame of a blob.
fn read_frame(input: &Input, frame: &mut Vec<u8>, entry: &BlobEntry, stats: &Stats) -> Result<()> {
    let bad = |source| input.blob_error(u64::from(entry.number), entry.offset, source);
    let len = entry.frame_len as usize;
    if frame.len() < len {
        frame.resize(len, 0);
    }
    if input.read_at(frame.get_mut(..len).unwrap_or_default(), entry.offset)? < len {
        return Err(bad(FormatError::new("the file ends within this blob")));
    }
    stats.bytes_read.add(len as u64);
    Ok(())
}

/// Fills in what an entry does not say of its blob. An entry with the content's hash says everything; what of that is
/// not compared where a blob is decoded goes along as it was said, as it does where a blob is copied.
pub(crate) fn complete(entry: &mut BlobEntry, payload: &[u8]) -> Result<(), FormatError> {
    match entry.flags.has(BlobFlags::HASHED) {
        true => Ok(()),
        false => scan_payload(payload, entry),
    }
}

/// The Blob in a frame, which must be as long as the entry says.
fn blob_in_frame<'a>(frame: &'a [u8], entry: &BlobEntry) -> Result<Blob<'a>, FormatError> {
    let frame = frame.get(..entry.frame_len as usize).unwrap_or_default();
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
