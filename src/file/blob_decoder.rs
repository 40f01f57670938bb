//! Reads and decompresses single blobs.

use crate::error::{Error, FormatError, FormatResult, Result};
use crate::io::Input;
use crate::pbf::{
    Blob, BlobEntry, BlobFlags, BlobHeader, BlobKind, BlobSegments, Decompressor, StringTable,
    put_host_objects, scan_payload, stale_index_error, verify_entry,
};
use crate::runtime::{Cancellation, Context, PayloadWatch, Stats};
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// The number of bytes that are read from the start of a frame for a prefilter. A prefilter decides by the string table
/// of a block, and most string tables are shorter than this.
const BEGINNING: usize = 16 << 10;

/// Reads and decompresses blobs of one file. Its buffers are reused. Each worker has its own decoder.
#[derive(Debug)]
pub struct BlobDecoder {
    cancellation: Cancellation,
    frame: Vec<u8>,
    state: DecoderState,
}

/// The parts of a decoder that decompress the frame that was read last.
#[derive(Debug)]
struct DecoderState {
    input: Input,
    stats: Arc<Stats>,
    decompressor: Decompressor,
    /// For a blob that has a part of the table of contents: its payload without that part.
    without_table: Vec<u8>,
    prefilters: PrefilterRecord,
    /// Receives each decompressed payload; `None` if there is no watch.
    watch: Option<Arc<dyn PayloadWatch>>,
}

/// Counts the calls of prefilters, and the calls that came to a decision.
#[derive(Debug, Default, Clone, Copy)]
struct PrefilterRecord {
    tried: u32,
    decided: u32,
}

impl PrefilterRecord {
    fn count(&mut self, decided: bool) {
        self.tried += 1;
        self.decided += u32::from(decided);
    }

    /// Whether to skip the next prefilter, because fewer than a third of the counted calls came to a decision. A
    /// skipped prefilter is counted as called. After 64 calls the counts are reset, so that prefilters are tried again.
    fn should_skip(&mut self) -> bool {
        const TRIES: u32 = 8;
        if self.tried < TRIES || self.decided * 3 >= self.tried {
            return false;
        }
        self.tried += 1;
        if self.tried > TRIES * 8 {
            *self = Self::default();
        }
        true
    }
}

impl BlobDecoder {
    /// Creates a decoder for the blobs of `input`.
    pub fn new(input: &Input, ctx: &Context) -> Self {
        Self {
            cancellation: ctx.cancellation.clone(),
            frame: Vec::new(),
            state: DecoderState {
                input: input.clone(),
                stats: ctx.stats.clone(),
                decompressor: Decompressor::default(),
                without_table: Vec::new(),
                prefilters: PrefilterRecord::default(),
                watch: ctx.watch.clone(),
            },
        }
    }

    /// Switches to another input. All later calls read blobs of `input`.
    pub(crate) fn switch_to_input(&mut self, input: &Input) {
        if !self.state.input.is_same_file(input) {
            self.state.input = input.clone();
        }
    }

    /// Returns the uncompressed payload of a blob, which is valid until the next call.
    ///
    /// Fails if the payload contradicts the content hash in `entry`, or the kinds, number, id range or order of objects
    /// in `entry`. A plan that relies on such an entry would be wrong.
    pub fn payload(&mut self, entry: &BlobEntry) -> Result<&[u8]> {
        self.read(entry)?.payload()
    }

    /// Returns the uncompressed payload of a blob, as [`payload`](Self::payload) does, for callers that hold several
    /// payloads.
    pub(crate) fn take_payload(&mut self, entry: &BlobEntry) -> Result<Vec<u8>> {
        self.read(entry)?.take_payload()
    }

    /// Calls `work` with the payload of a blob. Adds the file, and the number and offset of the blob, to errors of
    /// `work`.
    pub(crate) fn decode<R>(
        &mut self,
        entry: &BlobEntry,
        work: impl FnOnce(&[u8]) -> FormatResult<R>,
    ) -> Result<R> {
        let result = work(self.payload(entry)?);
        result.map_err(|error| self.error(entry, error))
    }

    /// Returns the decision of `prefilter` about the string table of a blob, or `Some(None)` if there is no decision.
    /// Reads only the beginning of the blob. Returns `None` if the beginning is damaged, or too short for the whole
    /// table. Also returns `None` for a short blob, without reading it. Like [`CompressedBlob::decide`], does not call
    /// `prefilter` if earlier calls rarely came to a decision.
    fn decide_by_beginning<R>(
        &mut self,
        entry: &BlobEntry,
        prefilter: impl FnOnce(&StringTable<'_>) -> Option<R>,
    ) -> Result<Option<Option<R>>> {
        if (entry.frame_len as usize) < 2 * BEGINNING {
            return Ok(None);
        }
        self.cancellation.check()?;
        if self.state.prefilters.should_skip() {
            return Ok(Some(None));
        }
        if self.frame.len() < BEGINNING {
            self.frame.resize(BEGINNING, 0);
        }
        let (frame, state) = (&mut self.frame[..BEGINNING], &mut self.state);
        if state.input.read_at(frame, entry.offset)? < frame.len() {
            return Ok(None);
        }
        state.stats.bytes_read.add(BEGINNING as u64);
        let header = BlobHeader::read(frame).ok().filter(|(header, rest)| {
            let header_len = frame.len() - rest.len();
            header.kind == BlobKind::Data
                && header_len == entry.header_len as usize
                && header_len + header.blob_len as usize == entry.frame_len as usize
        });
        let blob = header.and_then(|(_, rest)| Blob::parse_beginning(rest));
        let table = blob.and_then(|blob| state.decompressor.string_table(&blob).ok().flatten());
        let Some(table) = table else {
            return Ok(None);
        };
        let Ok(strings) = StringTable::parse(table) else {
            return Ok(None);
        };
        let decision = prefilter(&strings);
        state.stats.bytes_decoded.add(table.len() as u64);
        state.prefilters.count(decision.is_some());
        Ok(Some(decision))
    }

    /// Reads a blob. If `prefilter` returns `Some` for the strings of the blob, the blob is not needed, and the result
    /// is `None`. If possible, reads only the beginning of the blob for this decision.
    pub(crate) fn read_unless_decided<'d, 'e>(
        &'d mut self,
        entry: &'e BlobEntry,
        prefilter: Option<impl Fn(&StringTable<'_>) -> Option<()>>,
    ) -> Result<Option<CompressedBlob<'d, 'e>>> {
        let Some(prefilter) = prefilter else {
            return self.read(entry).map(Some);
        };
        let by_beginning = self.decide_by_beginning(entry, &prefilter)?;
        if by_beginning == Some(Some(())) {
            return Ok(None);
        }
        let mut blob = self.read(entry)?;
        let is_decided = by_beginning.is_none() && blob.decide(prefilter)?.is_some();
        Ok((!is_decided).then_some(blob))
    }

    /// Reads a blob without decompressing it. Fails if the work has been cancelled.
    pub(crate) fn read<'d, 'e>(
        &'d mut self,
        entry: &'e BlobEntry,
    ) -> Result<CompressedBlob<'d, 'e>> {
        self.cancellation.check()?;
        let len = entry.frame_len as usize;
        // The buffer is never shortened, so bytes of earlier frames may follow this frame.
        if self.frame.len() < len {
            self.frame.resize(len, 0);
        }
        let (frame, state) = (&mut self.frame[..len], &mut self.state);
        if state.input.read_at(frame, entry.offset)? < len {
            let cause = FormatError::truncated("the file ends within this blob");
            return Err(state.error(entry, cause));
        }
        state.stats.bytes_read.add(len as u64);
        let message =
            message_in_frame(frame, entry).map_err(|source| state.error(entry, source))?;
        let blob = Blob::parse(message).map_err(|source| state.error(entry, source))?;
        Ok(CompressedBlob {
            message,
            blob,
            entry,
            state,
        })
    }

    /// Returns an error about a blob of the decoder's file.
    pub fn error(&self, entry: &BlobEntry, source: FormatError) -> Error {
        self.state.error(entry, source)
    }
}

impl DecoderState {
    fn error(&self, entry: &BlobEntry, source: FormatError) -> Error {
        self.input
            .blob_error(u64::from(entry.number), entry.offset, source)
    }
}

/// A blob in the buffer of a [`BlobDecoder`], which is not decompressed yet.
pub(crate) struct CompressedBlob<'d, 'e> {
    /// The bytes of the Blob message.
    pub message: &'d [u8],
    /// The parsed Blob message.
    pub blob: Blob<'d>,
    entry: &'e BlobEntry,
    state: &'d mut DecoderState,
}

impl<'d> CompressedBlob<'d, '_> {
    /// Decompresses the blob, and compares the payload with the entry, as [`BlobDecoder::payload`] does.
    pub(crate) fn payload(self) -> Result<&'d [u8]> {
        let (payload, ..) = self.decompress(false)?;
        Ok(payload)
    }

    /// Decompresses the blob, and returns its payload.
    fn take_payload(self) -> Result<Vec<u8>> {
        let Self {
            message,
            blob,
            entry,
            state,
        } = self;
        let stored = CompressedBlob {
            message,
            blob,
            entry,
            state: &mut *state,
        };
        stored.payload()?;
        Ok(if entry.flags.has(BlobFlags::HAS_TABLE) {
            std::mem::take(&mut state.without_table)
        } else {
            state.decompressor.take_payload(&blob)
        })
    }

    /// Calls `work` with the payload of the blob, as [`BlobDecoder::decode`] does, and with its segments. So `work` can
    /// copy unchanged segments instead of compressing them again.
    pub(crate) fn decode_in_segments<R>(
        self,
        work: impl FnOnce(&[u8], BlobSegments<'_>) -> FormatResult<R>,
    ) -> Result<R> {
        let entry = self.entry;
        let (payload, segments, input) = self.decompress(true)?;
        let result = work(payload, segments);
        result.map_err(|source| input.blob_error(entry.number.into(), entry.offset, source))
    }

    /// Returns the payload, its segments if `in_segments` is set, and the file of the blob. Fails if the payload
    /// contradicts the entry.
    fn decompress(self, in_segments: bool) -> Result<(&'d [u8], BlobSegments<'d>, &'d Input)> {
        let Self {
            blob, entry, state, ..
        } = self;
        let input = &state.input;
        let bad = |source| input.blob_error(u64::from(entry.number), entry.offset, source);
        let (payload, segments) = if entry.flags.has(BlobFlags::HAS_TABLE) {
            state.without_table.clear();
            put_host_objects(&blob, &mut state.without_table).map_err(bad)?;
            (state.without_table.as_slice(), BlobSegments::None)
        } else if in_segments {
            let decompressed = state.decompressor.payload_and_segments(&blob);
            decompressed.map_err(bad)?
        } else {
            let payload = state.decompressor.payload(&blob).map_err(bad)?;
            (payload, BlobSegments::None)
        };
        state.stats.bytes_decoded.add(payload.len() as u64);
        state.stats.blobs_decoded.add(1);
        check_payload_against_entry(payload, entry).map_err(bad)?;
        if let Some(watch) = &state.watch {
            watch.see(input.number(), entry, payload).map_err(bad)?;
        }
        Ok((payload, segments, input))
    }

    /// Returns the decision of `prefilter` about the string table of the block, or `None` if there is no decision.
    /// Decompresses only this table. Does not call `prefilter` if earlier calls rarely came to a decision.
    pub(crate) fn decide<R>(
        &mut self,
        prefilter: impl FnOnce(&StringTable<'_>) -> Option<R>,
    ) -> Result<Option<R>> {
        if self.state.prefilters.should_skip() {
            return Ok(None);
        }
        let table = self.state.decompressor.string_table(&self.blob);
        let decided = table.and_then(|table| {
            let len = table.map_or(0, <[u8]>::len);
            let strings = table.map(StringTable::parse).transpose()?;
            Ok((len, strings.and_then(|strings| prefilter(&strings))))
        });
        let (len, decision) = decided.map_err(|source| self.state.error(self.entry, source))?;
        self.state.stats.bytes_decoded.add(len as u64);
        self.state.prefilters.count(decision.is_some());
        Ok(decision)
    }

    /// Decompresses the beginning of the blob, as [`Decompressor::prefix`] does.
    pub(crate) fn prefix(&mut self, needed: impl Fn(&[u8]) -> Option<usize>) -> Result<&[u8]> {
        let DecoderState {
            decompressor,
            input,
            stats,
            ..
        } = &mut *self.state;
        let prefix = decompressor.prefix(&self.blob, needed).map_err(|source| {
            input.blob_error(u64::from(self.entry.number), self.entry.offset, source)
        })?;
        stats.bytes_decoded.add(prefix.len() as u64);
        Ok(prefix)
    }
}

/// Fails if a payload contradicts an entry.
pub(super) fn check_payload_against_entry(payload: &[u8], entry: &BlobEntry) -> FormatResult<()> {
    if entry.flags.has(BlobFlags::HASHED) && XxHash3_64::oneshot(payload) != entry.hash {
        return Err(stale_index_error("the content differs"));
    }
    verify_entry(payload, entry)
}

/// Completes `entry` with all facts about its blob, which are read from the blob's payload. Returns a complete entry
/// unchanged. Callers trust all facts of a complete entry, even those that [`BlobDecoder::payload`] does not compare
/// with the blob, such as the bounding box.
pub(crate) fn completed_entry(mut entry: BlobEntry, payload: &[u8]) -> FormatResult<BlobEntry> {
    if !entry.is_complete() {
        scan_payload(payload, &mut entry)?;
    }
    Ok(entry)
}

/// Returns the Blob message in `frame`. Fails unless the frame is a data frame with the lengths in `entry`.
fn message_in_frame<'a>(frame: &'a [u8], entry: &BlobEntry) -> FormatResult<&'a [u8]> {
    let misplaced = || stale_index_error("there is no data blob of that length");
    let (header, body) = BlobHeader::read(frame).map_err(|error| {
        if error.is_truncated() {
            misplaced()
        } else {
            error
        }
    })?;
    if header.kind != BlobKind::Data
        || frame.len() - body.len() != entry.header_len as usize
        || header.blob_len as usize != body.len()
    {
        return Err(misplaced());
    }
    Ok(body)
}
