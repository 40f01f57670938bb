//! Reads and decompresses single blobs.

use crate::error::{Error, FormatError, Result};
use crate::io::Input;
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{
    Blob, BlobEntry, BlobFlags, BlobHeader, BlobKind, BlobSegments, Block, Decompressor, Encoding,
    NodeVersions, Segmented, StringTable, VersionedNodes, are_all_objects, bytes_to_first_kind,
    first_kind, put_host_objects, scan_payload, stale_index, verify_entry,
};
use crate::runtime::{Cancellation, Context, PayloadWatch, Stats};
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// Reads and decompresses blobs of one file. Its buffers are reused. Each worker has its own decoder.
#[derive(Debug)]
pub struct BlobDecoder {
    input: Input,
    stats: Arc<Stats>,
    cancellation: Cancellation,
    frame: Vec<u8>,
    decompressor: Decompressor,
    /// For a blob that has a part of the table of contents: its payload without that part.
    without_table: Vec<u8>,
    prefilters: PrefilterRecord,
    /// Sees the payloads; `None` if nobody watches.
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

    /// Whether to skip the next prefilter, because less than a third of the counted calls came to a decision. A skipped
    /// prefilter is counted as called. After 64 calls the counts are reset, so that prefilters are tried again.
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
        let decompressor = Decompressor::default();
        Self {
            input: input.clone(),
            stats: ctx.stats.clone(),
            cancellation: ctx.cancellation.clone(),
            frame: Vec::new(),
            decompressor,
            without_table: Vec::new(),
            prefilters: PrefilterRecord::default(),
            watch: ctx.watch.clone(),
        }
    }

    /// Switches to another input. All later calls read blobs of `input`.
    pub(crate) fn switch_to(&mut self, input: &Input) {
        if !self.input.is(input) {
            self.input = input.clone();
        }
    }

    /// Returns the uncompressed payload of a blob, which is valid until the next call.
    ///
    /// Fails if the payload contradicts the content hash in `entry`, or the kinds, number, id range or order of objects
    /// in `entry`. A plan that relies on such an entry would be wrong.
    pub fn payload(&mut self, entry: &BlobEntry) -> Result<&[u8]> {
        self.read_frame(entry)?;
        self.decompress(entry)
    }

    /// Returns the compressed blob, which is valid until the next call.
    pub(crate) fn blob(&mut self, entry: &BlobEntry) -> Result<Blob<'_>> {
        self.read_frame(entry)?;
        blob_in_frame(&self.frame, entry).map_err(|source| self.error(entry, source))
    }

    /// Returns the bytes of the Blob message, which are valid until the next call.
    pub(super) fn blob_message(&mut self, entry: &BlobEntry) -> Result<&[u8]> {
        self.blob(entry)?;
        Ok(&self.frame[entry.header_len as usize..entry.frame_len as usize])
    }

    /// Returns the same as [`payload`](Self::payload), if `is_wanted` accepts the compression of the blob. Otherwise
    /// returns `None`, and does not decompress the blob.
    pub(crate) fn payload_if(
        &mut self,
        entry: &BlobEntry,
        is_wanted: impl FnOnce(Encoding) -> bool,
    ) -> Result<Option<&[u8]>> {
        self.read_frame(entry)?;
        let blob = blob_in_frame(&self.frame, entry).map_err(|source| self.error(entry, source))?;
        if is_wanted(blob.encoding) {
            self.decompress(entry).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Reads the frame of a blob into the start of `self.frame`. The buffer is never shortened, so bytes of earlier
    /// frames may follow. Fails if the work has been cancelled.
    fn read_frame(&mut self, entry: &BlobEntry) -> Result<()> {
        self.cancellation.check()?;
        let len = entry.frame_len as usize;
        if self.frame.len() < len {
            self.frame.resize(len, 0);
        }
        if self.input.read_at(&mut self.frame[..len], entry.offset)? < len {
            let cause = FormatError::truncated("the file ends within this blob");
            return Err(self.error(entry, cause));
        }
        self.stats.bytes_read.add(len as u64);
        Ok(())
    }

    /// Decompresses the blob of the frame that was read last, and compares the payload with `entry`.
    fn decompress(&mut self, entry: &BlobEntry) -> Result<&[u8]> {
        let input = &self.input;
        let bad = |source| input.blob_error(u64::from(entry.number), entry.offset, source);
        let blob = blob_in_frame(&self.frame, entry).map_err(bad)?;
        let payload = if entry.flags.has(BlobFlags::HAS_TABLE) {
            self.without_table.clear();
            put_host_objects(&blob, &mut self.without_table).map_err(bad)?;
            &self.without_table
        } else {
            self.decompressor.payload(&blob).map_err(bad)?
        };
        check(payload, entry, &self.stats).map_err(bad)?;
        if let Some(watch) = &self.watch {
            watch.see(input.number(), entry, payload).map_err(bad)?;
        }
        Ok(payload)
    }

    /// Does the same as [`decompress`](Self::decompress), and also returns the segments of the blob.
    fn decompress_in_segments(&mut self, entry: &BlobEntry) -> Result<(&[u8], BlobSegments<'_>)> {
        if entry.flags.has(BlobFlags::HAS_TABLE) {
            return Ok((self.decompress(entry)?, BlobSegments::None));
        }
        let input = &self.input;
        let bad = |source| input.blob_error(u64::from(entry.number), entry.offset, source);
        let blob = blob_in_frame(&self.frame, entry).map_err(bad)?;
        let decompressed = self.decompressor.payload_in_segments(&blob);
        let (payload, segments) = decompressed.map_err(bad)?;
        check(payload, entry, &self.stats).map_err(bad)?;
        if let Some(watch) = &self.watch {
            watch.see(input.number(), entry, payload).map_err(bad)?;
        }
        Ok((payload, segments))
    }

    /// Calls `work` with the payload of a blob. Adds the file, and the number and offset of the blob, to errors of
    /// `work`.
    pub(crate) fn decode<R>(
        &mut self,
        entry: &BlobEntry,
        work: impl FnOnce(&[u8]) -> Result<R, FormatError>,
    ) -> Result<R> {
        let result = work(self.payload(entry)?);
        result.map_err(|error| self.error(entry, error))
    }

    /// Does the same as [`decode`](Self::decode), but `work` also receives the segments of the blob. Then `work` can
    /// copy unchanged segments instead of compressing them again.
    pub(crate) fn decode_in_segments<R>(
        &mut self,
        entry: &BlobEntry,
        work: impl FnOnce(&[u8], BlobSegments<'_>) -> Result<R, FormatError>,
    ) -> Result<R> {
        self.read_frame(entry)?;
        let (payload, segments) = self.decompress_in_segments(entry)?;
        let result = work(payload, segments);
        result.map_err(|error| self.error(entry, error))
    }

    /// Does the same as [`decode`](Self::decode), but `work` also receives the segments if the blob is segmented and
    /// has only nodes. In such a blob, each segment is a column. An edit that leaves most columns unchanged can copy
    /// these columns.
    pub(crate) fn decode_in_columns<R>(
        &mut self,
        entry: &BlobEntry,
        work: impl FnOnce(&[u8], Option<Segmented<'_>>) -> Result<R, FormatError>,
    ) -> Result<R> {
        if entry.kinds == KindSet::of(ObjectKind::Node) {
            self.decode_in_segments(entry, |payload, segments| work(payload, segments.found()))
        } else {
            self.decode(entry, |payload| work(payload, None))
        }
    }

    /// Does the same as [`decode_in_segments`](Self::decode_in_segments), unless `prefilter` can decide from the string
    /// table of the block alone. In that case, decompresses only the string table, and returns the decision. Does not
    /// call `prefilter` if earlier prefilters rarely came to a decision.
    pub(crate) fn decode_unless_decided<R>(
        &mut self,
        entry: &BlobEntry,
        prefilter: Option<impl FnOnce(&StringTable<'_>) -> Option<R>>,
        work: impl FnOnce(&[u8], Option<Segmented<'_>>) -> Result<R, FormatError>,
    ) -> Result<R> {
        self.read_frame(entry)?;
        if let Some(prefilter) = prefilter
            && !self.prefilters.should_skip()
        {
            let input = &self.input;
            let bad = |source| input.blob_error(u64::from(entry.number), entry.offset, source);
            let blob = blob_in_frame(&self.frame, entry).map_err(bad)?;
            let table = self.decompressor.string_table(&blob).map_err(bad)?;
            let strings = table.map(StringTable::parse).transpose().map_err(bad)?;
            let decision = strings.and_then(|strings| prefilter(&strings));
            let len = table.map_or(0, <[u8]>::len);
            self.stats.bytes_decoded.add(len as u64);
            self.prefilters.count(decision.is_some());
            if let Some(decision) = decision {
                return Ok(decision);
            }
        }
        let (payload, segments) = self.decompress_in_segments(entry)?;
        let result = work(payload, segments.found());
        result.map_err(|error| self.error(entry, error))
    }

    /// Does the same as [`decode`](Self::decode) for the nodes of a blob. Without `needs_locations`, decompresses only the
    /// ids and versions if they are at the beginning of the payload.
    pub(crate) fn decode_versions<R>(
        &mut self,
        entry: &BlobEntry,
        needs_locations: bool,
        work: impl FnOnce(VersionedNodes<'_, '_>) -> Result<R, FormatError>,
    ) -> Result<R> {
        self.read_frame(entry)?;
        if !needs_locations && !entry.flags.has(BlobFlags::HAS_TABLE) {
            let prefix = self.prefix(entry, NodeVersions::needed_bytes)?;
            if let Ok(versions) = NodeVersions::in_prefix(prefix)
                && are_all_objects(versions.ids(), entry)
            {
                let result = work(VersionedNodes::Versions(&versions));
                self.stats.blobs_decoded.add(1);
                return result.map_err(|error| self.error(entry, error));
            }
        }
        let payload = self.decompress(entry)?;
        let result =
            Block::parse_bare(payload).and_then(|block| work(VersionedNodes::Block(&block)));
        result.map_err(|error| self.error(entry, error))
    }

    /// Returns the kind of the first object of a blob, for which only the beginning of the payload is decompressed.
    /// Returns `None` if the kind is not found there.
    pub(super) fn first_kind(&mut self, entry: &BlobEntry) -> Result<Option<ObjectKind>> {
        self.read_frame(entry)?;
        let prefix = self.prefix(entry, bytes_to_first_kind)?;
        Ok(first_kind(prefix).ok())
    }

    /// Decompresses the beginning of the blob of the frame that was read last, as [`Decompressor::prefix`] does.
    fn prefix(
        &mut self,
        entry: &BlobEntry,
        needed: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<&[u8]> {
        let input = &self.input;
        let bad = |source| input.blob_error(u64::from(entry.number), entry.offset, source);
        let blob = blob_in_frame(&self.frame, entry).map_err(bad)?;
        let prefix = self.decompressor.prefix(&blob, needed).map_err(bad)?;
        self.stats.bytes_decoded.add(prefix.len() as u64);
        Ok(prefix)
    }

    /// Returns an error about a blob of the decoder's file.
    pub fn error(&self, entry: &BlobEntry, source: FormatError) -> Error {
        self.input
            .blob_error(u64::from(entry.number), entry.offset, source)
    }
}

/// Counts a decoded payload in `stats`, and fails if the payload contradicts the entry of its blob.
fn check(payload: &[u8], entry: &BlobEntry, stats: &Stats) -> Result<(), FormatError> {
    stats.bytes_decoded.add(payload.len() as u64);
    stats.blobs_decoded.add(1);
    check_entry(payload, entry)
}

/// Fails if a payload contradicts an entry.
pub(super) fn check_entry(payload: &[u8], entry: &BlobEntry) -> Result<(), FormatError> {
    if entry.flags.has(BlobFlags::HASHED) && XxHash3_64::oneshot(payload) != entry.hash {
        return Err(stale_index("the content differs"));
    }
    verify_entry(payload, entry)
}

/// Completes `entry` with all facts about its blob, which are read from the blob's payload. Returns an entry with a
/// content hash unchanged, because such an entry is already complete. Callers then trust all its facts, even those that
/// [`BlobDecoder::payload`] does not compare, such as the bounding box.
pub(crate) fn completed_entry(
    mut entry: BlobEntry,
    payload: &[u8],
) -> Result<BlobEntry, FormatError> {
    if !entry.flags.has(BlobFlags::HASHED) {
        scan_payload(payload, &mut entry)?;
    }
    Ok(entry)
}

/// Returns the Blob message in `frame`. Fails unless the frame is a data frame with the lengths in `entry`.
fn blob_in_frame<'a>(frame: &'a [u8], entry: &BlobEntry) -> Result<Blob<'a>, FormatError> {
    let frame = &frame[..entry.frame_len as usize];
    let misplaced = || stale_index("there is no data blob of that length");
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
    Blob::parse(body)
}
