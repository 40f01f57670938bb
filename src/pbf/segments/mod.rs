//! Reads and writes zlib data made of segments that inflate independently (`reference/format.md`, "Segments").
//!
//! Each segment begins with an empty window and ends with a marker. After an edit of a few objects or columns of a
//! blob, the unchanged segments are copied, and only the changed ones are compressed again. Together, the segments are
//! one zlib stream (RFC 1950), which every program can read.
//!
//! `encoder` compresses payloads in segments, `columns` cuts payloads into parts, `kept` finds unchanged segments, and
//! [`SegmentInflater`] inflates segments.

mod columns;
mod encoder;
mod kept;
#[cfg(test)]
mod tests;

use crate::deflate::padding::padding_len;
pub(super) use encoder::SegmentEncoder;
use memchr::memmem;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// The marker at the end of a segment. It consists of two empty stored blocks, without the header of the first, which
/// may begin in the middle of a byte. No compressor writes two consecutive empty stored blocks, and by chance the
/// marker occurs once in 2^72 bytes.
const MARKER: [u8; 9] = [0, 0, 0xff, 0xff, 0, 0, 0, 0xff, 0xff];
/// The empty stored block after the last segment.
const END: [u8; 5] = [1, 0, 0, 0xff, 0xff];
/// The length in bytes of the uncompressed content of a segment. Segments need more space than a single stream. On
/// blobs of ways, the overhead is 0.9 % with segments of 64 kB, 2 % with 32 kB and 4 % with 16 kB.
const SEGMENT_LEN: usize = 32 << 10;
/// The length in bytes of the header of zlib data.
const HEADER_LEN: usize = 2;
const CHECKSUM_LEN: usize = 4;
/// The maximum length in bytes of the content of the stored block with which [`SegmentInflater`] probes segments.
pub(super) const PROBE_LEN: usize = 512;
/// The length in bytes of the header of a byte-aligned stored block.
const STORED_HEADER_LEN: usize = 5;

/// A segment, as its range in the payload and its range in the zlib data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub payload: Range<usize>,
    pub data: Range<usize>,
}

/// A payload, and the segmented zlib data from which it was inflated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segmented<'a> {
    pub payload: &'a [u8],
    pub data: &'a [u8],
    pub segments: &'a [Segment],
}

/// The segments of a decompressed blob.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BlobSegments<'a> {
    /// The blob has no segments.
    None,
    /// The data ends as segmented data does, but not all segments inflate independently. The blob is valid as a whole.
    Wrong,
    /// Each segment has been inflated independently.
    Found(Segmented<'a>),
}

impl<'a> BlobSegments<'a> {
    /// Returns the segments, if they can be copied.
    pub(crate) const fn into_segmented(self) -> Option<Segmented<'a>> {
        match self {
            Self::Found(segments) => Some(segments),
            Self::None | Self::Wrong => None,
        }
    }
}

/// Whether zlib data ends as segmented data does.
pub(crate) fn may_have_segments(data: &[u8]) -> bool {
    let body = data.split_last_chunk::<CHECKSUM_LEN>();
    let body = body.and_then(|(body, _)| body.strip_suffix(&END));
    body.is_some_and(|body| has_zlib_header(body) && body.ends_with(&MARKER))
}

/// Whether zlib data begins with a header that declares deflate and no dictionary.
fn has_zlib_header(data: &[u8]) -> bool {
    const DEFLATE: u8 = 8;
    const DICTIONARY: u8 = 1 << 5;
    match data.first_chunk::<HEADER_LEN>() {
        Some(&[method, flags]) => {
            method & 15 == DEFLATE
                && flags & DICTIONARY == 0
                && u16::from_be_bytes([method, flags]).is_multiple_of(31)
        }
        None => false,
    }
}

/// Inflates segments independently.
///
/// A stored block with unpredictable content (the probe) is appended to each segment. The content of the probe appears
/// at the end of the output only if the segment is a sequence of whole blocks and none of them is marked as the last. A
/// segment that is not such a sequence cannot be copied.
#[derive(Debug)]
pub(super) struct SegmentInflater {
    /// The probe, followed by [`END`].
    probe: Vec<u8>,
    /// A segment, followed by the probe.
    input: Vec<u8>,
}

impl Default for SegmentInflater {
    fn default() -> Self {
        let random = RandomState::new();
        let content: Vec<u8> = (0..PROBE_LEN as u64 / 8)
            .flat_map(|number| random.hash_one(number).to_le_bytes())
            .collect();
        // The probe must be unpredictable, so three things are random in each run: its content, its length, and the
        // upper five bits of its first byte, which decoders ignore.
        let [padding, len, ..] = random.hash_one(()).to_le_bytes();
        let len = PROBE_LEN / 2 + usize::from(len) % (PROBE_LEN / 2);
        let [low, high] = (len as u16).to_le_bytes();
        let mut probe = vec![padding << 3, low, high, !low, !high];
        probe.extend_from_slice(&content[..len]);
        probe.extend_from_slice(&END);
        Self {
            probe,
            input: Vec::new(),
        }
    }
}

impl SegmentInflater {
    /// Inflates zlib data segment by segment to `out`, and lists the segments in `segments`. The payload must have
    /// `payload_len` bytes, and `out` must have space for [`PROBE_LEN`] bytes more. Returns `false` if the data has no
    /// segments or invalid ones. In this case, the content of `out` and `segments` is unspecified, and the data may
    /// still be valid as a whole.
    ///
    /// If the result is `true`, each segment has been inflated independently, and the checksum in the data matches the
    /// payload.
    pub(super) fn inflate(
        &mut self,
        zlib: &mut libdeflater::Decompressor,
        data: &[u8],
        (out, payload_len): (&mut [u8], usize),
        segments: &mut Vec<Segment>,
    ) -> bool {
        segments.clear();
        if !may_have_segments(data) {
            return false;
        }
        let Some((body, checksum)) = data.split_last_chunk::<CHECKSUM_LEN>() else {
            return false;
        };
        let Some(body) = body.strip_suffix(&END) else {
            return false;
        };
        // Padding belongs to no segment, so that it does not accumulate where segments are copied.
        let Some(stream) = body.get(HEADER_LEN..) else {
            return false;
        };
        let start = HEADER_LEN + padding_len(stream);
        let (mut at, mut done) = (start, 0);
        for marker in memmem::find_iter(&body[start..], &MARKER) {
            let end = start + marker + MARKER.len();
            // The range is never empty, because the markers from `find_iter` do not overlap.
            let Some(segment) = body.get(at..end).filter(|segment| !segment.is_empty()) else {
                continue;
            };
            let Some(len) = self.inflate_one(zlib, segment, &mut out[done..]) else {
                return false;
            };
            segments.push(Segment {
                payload: done..done + len,
                data: at..end,
            });
            (at, done) = (end, done + len);
        }
        let sum = libdeflater::adler32(&out[..payload_len]).to_be_bytes();
        at == body.len() && done == payload_len && *checksum == sum
    }

    /// Inflates a segment to the start of `out` and returns its uncompressed length. Returns `None` if the segment is
    /// not a sequence of whole blocks.
    fn inflate_one(
        &mut self,
        zlib: &mut libdeflater::Decompressor,
        segment: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        self.input.clear();
        self.input.extend_from_slice(segment);
        self.input.extend_from_slice(&self.probe);
        let len = zlib.deflate_decompress(&self.input, out).ok()?;
        let content = self
            .probe
            .get(STORED_HEADER_LEN..self.probe.len() - END.len())?;
        let payload = out.get(..len)?.strip_suffix(content)?;
        Some(payload.len())
    }
}
