//! Compresses payloads in segments.

use super::kept::kept_segments;
use super::{END, HEADER_LEN, MARKER, SEGMENT_LEN, Segment, Segmented};
use crate::deflate::end::{DeflateEnd, EndFinder};
use crate::deflate::literals::LiteralEncoder;
use crate::pbf::segments::columns::{PartRepetition, PayloadPart, cut_into_parts};
use libdeflater::CompressionLvl;
use std::ops::Range;

/// The minimum length in bytes of a payload that is compressed in segments.
const MIN_COLUMNS_LEN: usize = 8 << 10;
/// The maximum number of old segments that are compared with a column.
const LOOK_AHEAD: usize = 64;

/// Compresses payloads in segments.
pub(in crate::pbf) struct SegmentEncoder {
    zlib: libdeflater::Compressor,
    literals: LiteralEncoder,
    /// The zlib header that libdeflate writes at the level of the encoder.
    header: [u8; HEADER_LEN],
    end_finder: EndFinder,
    /// New segments as consecutive deflate streams. The vector is never shortened, so bytes of earlier payloads may
    /// follow the streams.
    deflated: Vec<u8>,
    /// The parts of the payload; empty if the payload has no columns.
    pub(super) parts: Vec<PayloadPart>,
    /// The ends of the deflate streams that libdeflate has written.
    ends: Vec<DeflateEnd>,
}

/// The source of a segment in the new zlib data.
enum SegmentSource<'a> {
    /// The zlib data of an old segment.
    Old(&'a [u8]),
    /// The range of a deflate stream in [`SegmentEncoder::deflated`], and the end of the stream if it is known.
    New(Range<usize>, Option<DeflateEnd>),
}

impl SegmentEncoder {
    /// Creates an encoder that compresses at `level`.
    pub(in crate::pbf) fn new(level: CompressionLvl) -> Self {
        let mut zlib = libdeflater::Compressor::new(level);
        let mut empty = [0; 64];
        let header = match zlib.zlib_compress(b"", &mut empty) {
            Ok(HEADER_LEN..) => [empty[0], empty[1]],
            _ => [0x78, 0x9c],
        };
        Self {
            zlib,
            literals: LiteralEncoder::default(),
            header,
            end_finder: EndFinder::default(),
            deflated: Vec::new(),
            parts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Compresses `payload` in segments to `out`. Segments of `old` are copied if their uncompressed bytes occur in
    /// `payload`. Returns `false` if the payload is too short for segments, or could not be compressed in segments.
    pub(in crate::pbf) fn compress(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
        out: &mut Vec<u8>,
    ) -> bool {
        if payload.len() < MIN_COLUMNS_LEN {
            return false;
        }
        cut_into_parts(payload, &mut self.parts);
        let is_worth_it = !self.parts.is_empty() || payload.len() >= 2 * SEGMENT_LEN;
        is_worth_it && self.compress_parts(payload, old, out).is_some()
    }

    /// Compresses `payload` as [`compress`](Self::compress) does, with the parts that are already in `self.parts`.
    /// Returns `None` on failure.
    pub(super) fn compress_parts(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let sources = if self.parts.is_empty() {
            self.deflate_evenly(payload, old)?
        } else {
            self.deflate_columns(payload, old)?
        };
        self.write_zlib_data(payload, sources, out)
    }

    /// Replaces the content of `out` by zlib data with the segments in `sources`.
    fn write_zlib_data(
        &mut self,
        payload: &[u8],
        sources: Vec<SegmentSource<'_>>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        self.find_ends(&sources)?;
        out.clear();
        out.extend_from_slice(&self.header);
        let mut ends = self.ends.iter();
        for source in sources {
            match source {
                SegmentSource::Old(data) => out.extend_from_slice(data),
                SegmentSource::New(range, end) => {
                    let end = end.or_else(|| ends.next().copied())?;
                    put_segment(self.deflated.get(range)?, &end, out)?;
                }
            }
        }
        out.extend_from_slice(&END);
        out.extend_from_slice(&libdeflater::adler32(payload).to_be_bytes());
        Some(())
    }

    /// Copies the segments of `old` that the payload still contains. Deflates the rest as segments of about equal
    /// length.
    fn deflate_evenly<'o>(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'o>>,
    ) -> Option<Vec<SegmentSource<'o>>> {
        let (mut sources, mut done, mut start) = (Vec::new(), 0, 0);
        let kept = old
            .map(|old| kept_segments(payload, old))
            .unwrap_or_default();
        let mut add = |range: Range<usize>, sources: &mut Vec<_>| {
            let part = payload.get(range)?;
            let count = (part.len() + SEGMENT_LEN / 2) / SEGMENT_LEN;
            let len = part.len().div_ceil(count.max(1)).max(1);
            for segment in part.chunks(len) {
                let end = self.deflate(segment, start)?;
                sources.push(SegmentSource::New(start..end, None));
                start = end;
            }
            Some(())
        };
        for (at, segment, data) in kept {
            add(done..at, &mut sources)?;
            sources.push(SegmentSource::Old(data));
            done = at + segment.payload.len();
        }
        add(done..payload.len(), &mut sources)?;
        Some(sources)
    }

    /// Makes a segment of each column of a payload. Copies the segment from `old` if `old` has the same column.
    /// Deflates the column otherwise.
    fn deflate_columns<'o>(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'o>>,
    ) -> Option<Vec<SegmentSource<'o>>> {
        let parts = std::mem::take(&mut self.parts);
        let (mut sources, mut start) = (Vec::with_capacity(parts.len()), 0);
        let mut old_segments = old.map_or(&[][..], |old| old.segments);
        for part in &parts {
            let column = payload.get(part.range.clone())?;
            let same = old.and_then(|old| {
                let is_same = |segment: &Segment| {
                    let range = segment.payload.clone();
                    range.len() == column.len() && old.payload.get(range) == Some(column)
                };
                let index = old_segments.iter().take(LOOK_AHEAD).position(is_same)?;
                let segment = old_segments.get(index)?;
                old_segments = old_segments.get(index + 1..)?;
                old.data.get(segment.data.clone())
            });
            if let Some(data) = same {
                sources.push(SegmentSource::Old(data));
                continue;
            }
            let (end, known) = self.deflate_part(column, part.values, start)?;
            sources.push(SegmentSource::New(start..end, known));
            start = end;
        }
        self.parts = parts;
        Some(sources)
    }

    /// Deflates a segment to [`Self::deflated`] at offset `start`. Returns the end offset of the stream.
    fn deflate(&mut self, segment: &[u8], start: usize) -> Option<usize> {
        self.grow_deflated_buffer(segment.len(), start);
        let out = self.deflated.get_mut(start..)?;
        Some(start + self.zlib.deflate_compress(segment, out).ok()?)
    }

    /// Deflates a part as [`deflate`](Self::deflate) does, but encodes a column as literals and runs if matches other
    /// than runs are rare in the column. Returns the end offset of the stream. For a stream of literals and runs, also
    /// returns its [`DeflateEnd`].
    fn deflate_part(
        &mut self,
        part: &[u8],
        values: PartRepetition,
        start: usize,
    ) -> Option<(usize, Option<DeflateEnd>)> {
        self.grow_deflated_buffer(part.len(), start);
        // `out` has no room for a block of literals that is longer than the part, so encoding such a block fails.
        let out = self.deflated.get_mut(start..start + part.len())?;
        let bits = match values {
            PartRepetition::Singular => self.literals.encode(part, out),
            PartRepetition::Repeating => self.literals.encode_runs(part, out),
            PartRepetition::Any => None,
        };
        match bits {
            Some(bits) => {
                let last_block = 0;
                let end = DeflateEnd { last_block, bits };
                Some((start + bits.div_ceil(8), Some(end)))
            }
            None => Some((self.deflate(part, start)?, None)),
        }
    }

    /// Makes room in `deflated` for the stream of a segment at offset `start`.
    fn grow_deflated_buffer(&mut self, segment_len: usize, start: usize) {
        let most = start + self.zlib.deflate_compress_bound(segment_len);
        if self.deflated.len() < most {
            self.deflated.resize(most, 0);
        }
    }

    /// Finds the ends of the new deflate streams for which `sources` has no end, and stores them in [`Self::ends`].
    fn find_ends(&mut self, sources: &[SegmentSource<'_>]) -> Option<()> {
        let new = sources.iter().filter_map(|source| match source {
            SegmentSource::New(range, None) => self.deflated.get(range.clone()),
            SegmentSource::New(_, Some(_)) | SegmentSource::Old(_) => None,
        });
        let new: Vec<_> = new.collect();
        self.ends.clear();
        self.end_finder.find(&new, &mut self.ends)
    }
}

/// Appends a deflate stream as a segment. Clears the flag that marks its last block, and adds the marker at its end.
fn put_segment(stream: &[u8], end: &DeflateEnd, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.extend_from_slice(stream);
    *out.get_mut(start + end.last_block / 8)? &= !(1 << (end.last_block % 8));
    // Appends the header of a stored block, which is three zero bits and padding up to the next byte. `MARKER` follows.
    out.resize(start + (end.bits + 3).div_ceil(8), 0);
    out.extend_from_slice(&MARKER);
    Some(())
}
