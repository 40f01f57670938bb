//! zlib data made of segments that inflate independently (`reference/format.md`, "Segments").
//!
//! Each segment begins with an empty window and ends with a marker, so that a blob of which a few objects change is made
//! of the compressed segments without changes and of new ones for the others. All of it is one zlib stream (RFC 1950),
//! which every program reads.

use super::deflate_end::{DeflateEnd, EndFinder};
use libdeflater::CompressionLvl;
use memchr::memmem;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// The length of the payload of a segment in bytes. Shorter ones take more space: on blobs of ways 0.9 % with 64 kB, 2 %
/// with 32 kB, 4 % with 16 kB.
const SEGMENT_LEN: usize = 32 << 10;
/// A segment that is shorter than this is joined with the next one.
const MIN_SEGMENT_LEN: usize = SEGMENT_LEN / 4;
/// The two empty stored blocks at the end of a segment, without the header of the first, which may begin in the middle of
/// a byte. No compressor writes two of them, and by chance they occur once in 2^72 bytes.
const MARKER: [u8; 9] = [0, 0, 0xff, 0xff, 0, 0, 0, 0xff, 0xff];
/// The empty stored block behind the last segment.
const END: [u8; 5] = [1, 0, 0, 0xff, 0xff];
/// The length of the header of zlib data.
const HEADER_LEN: usize = 2;
const CHECKSUM_LEN: usize = 4;
/// The maximum length of the content of the stored block with which [`SegmentInflater`] tries segments.
pub(super) const PROBE_LEN: usize = 512;
/// The length of the header of a stored block that begins with a byte.
const STORED_HEADER_LEN: usize = 5;

/// A segment: its range of the payload and its range of the zlib data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub payload: Range<usize>,
    pub data: Range<usize>,
}

/// A payload, and the zlib data in segments from which it was inflated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segmented<'a> {
    pub payload: &'a [u8],
    pub data: &'a [u8],
    pub segments: &'a [Segment],
}

/// The segments of a blob that was decompressed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BlobSegments<'a> {
    /// The blob has no segments.
    None,
    /// The data ends as segments do, but not all of them inflate independently. The blob is valid as a whole.
    Wrong,
    /// Each segment has been inflated independently.
    Found(Segmented<'a>),
}

impl<'a> BlobSegments<'a> {
    /// The segments, if they can be copied.
    pub(crate) const fn found(self) -> Option<Segmented<'a>> {
        match self {
            Self::Found(segments) => Some(segments),
            Self::None | Self::Wrong => None,
        }
    }
}

/// Whether zlib data ends as segments do.
pub(crate) fn ends_as_segments(data: &[u8]) -> bool {
    let body = data.split_last_chunk::<CHECKSUM_LEN>();
    let body = body.and_then(|(body, _)| body.strip_suffix(&END));
    body.is_some_and(|body| has_header(body) && body.ends_with(&MARKER))
}

/// Whether zlib data begins with a header that declares deflate and no dictionary.
fn has_header(data: &[u8]) -> bool {
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
/// A stored block with unpredictable content is put behind each segment. It comes out at the end only if the segment is
/// a sequence of whole blocks, none of which is marked as the last: only then can the segment be copied.
#[derive(Debug)]
pub(super) struct SegmentInflater {
    /// The stored block, and the end of the data.
    probe: Vec<u8>,
    /// A segment and the probe.
    input: Vec<u8>,
}

impl Default for SegmentInflater {
    fn default() -> Self {
        let random = RandomState::new();
        let content: Vec<u8> = (0..PROBE_LEN as u64 / 8)
            .flat_map(|number| random.hash_one(number).to_le_bytes())
            .collect();
        // Each run has a block of another length. The upper bits of the first byte have no meaning.
        let [padding, len, ..] = random.hash_one(()).to_le_bytes();
        let len = PROBE_LEN / 2 + usize::from(len) % (PROBE_LEN / 2);
        let [low, high] = (len as u16).to_le_bytes();
        let mut probe = vec![padding << 3, low, high, !low, !high];
        probe.extend_from_slice(content.get(..len).unwrap_or_default());
        probe.extend_from_slice(&END);
        Self {
            probe,
            input: Vec::new(),
        }
    }
}

impl SegmentInflater {
    /// Inflates zlib data segment by segment, and lists the segments in `segments`. `out` gets the payload, which must
    /// have `payload_len` bytes, and needs [`PROBE_LEN`] more. Returns `false` if the data has no segments, or wrong
    /// ones. The content of `out` and `segments` is unspecified then, and the data may still be valid as a whole.
    ///
    /// If the result is `true`, each segment has been inflated independently, and the checksum of the data is that of
    /// the payload.
    pub(super) fn inflate(
        &mut self,
        zlib: &mut libdeflater::Decompressor,
        data: &[u8],
        (out, payload_len): (&mut [u8], usize),
        segments: &mut Vec<Segment>,
    ) -> bool {
        segments.clear();
        if !ends_as_segments(data) {
            return false;
        }
        let Some((body, checksum)) = data.split_last_chunk::<CHECKSUM_LEN>() else {
            return false;
        };
        let body = body.strip_suffix(&END).unwrap_or_default();
        let (mut at, mut done) = (HEADER_LEN, 0);
        for marker in memmem::find_iter(body, &MARKER) {
            let end = marker + MARKER.len();
            // A marker within another marker.
            let Some(segment) = body.get(at..end).filter(|segment| !segment.is_empty()) else {
                continue;
            };
            let rest = out.get_mut(done..).unwrap_or_default();
            let Some(len) = self.inflate_one(zlib, segment, rest) else {
                return false;
            };
            segments.push(Segment {
                payload: done..done + len,
                data: at..end,
            });
            (at, done) = (end, done + len);
        }
        let payload = out.get(..payload_len).unwrap_or_default();
        let sum = libdeflater::adler32(payload).to_be_bytes();
        at == body.len() && done == payload_len && *checksum == sum
    }

    /// Inflates a segment to the start of `out`, and returns the length of its payload. `None` if it is no sequence of
    /// whole blocks.
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

/// Compresses payloads in segments.
pub(super) struct SegmentEncoder {
    zlib: libdeflater::Compressor,
    /// The header that libdeflate writes at this level.
    header: [u8; HEADER_LEN],
    end_finder: EndFinder,
    /// New segments as libdeflate made them, one after the other. It is never shortened: bytes of earlier ones may
    /// follow.
    deflated: Vec<u8>,
    ends: Vec<DeflateEnd>,
}

/// Where a segment of new zlib data comes from.
enum Source<'a> {
    /// The zlib data of an old segment.
    Old(&'a [u8]),
    /// A range of [`SegmentEncoder::deflated`].
    New(Range<usize>),
}

impl Source<'_> {
    /// The end of the range of new data; 0 for an old segment.
    const fn new_end(&self) -> usize {
        match self {
            Self::Old(_) => 0,
            Self::New(range) => range.end,
        }
    }
}

impl SegmentEncoder {
    /// An encoder with a level of libdeflate.
    pub(super) fn new(level: CompressionLvl) -> Self {
        let mut zlib = libdeflater::Compressor::new(level);
        let mut empty = [0; 64];
        let header = match zlib.zlib_compress(b"", &mut empty) {
            Ok(HEADER_LEN..) => [empty[0], empty[1]],
            _ => [0x78, 0x9c],
        };
        Self {
            zlib,
            header,
            end_finder: EndFinder::default(),
            deflated: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Whether a payload is long enough for segments.
    pub(super) const fn is_worth_it(payload: &[u8]) -> bool {
        payload.len() >= 2 * SEGMENT_LEN
    }

    /// Compresses a payload to `out`. Segments of `old` whose payload occurs in the new one are copied. Returns `false`
    /// if the payload could not be compressed in segments.
    pub(super) fn compress(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
        out: &mut Vec<u8>,
    ) -> bool {
        self.try_compress(payload, old, out).is_some()
    }

    fn try_compress(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let (mut sources, mut done) = (Vec::new(), 0);
        for (at, segment, data) in old.map(|old| kept(payload, old)).unwrap_or_default() {
            self.deflate(payload.get(done..at)?, &mut sources)?;
            sources.push(Source::Old(data));
            done = at + segment.payload.len();
        }
        self.deflate(payload.get(done..)?, &mut sources)?;
        self.find_ends(&sources)?;

        out.clear();
        out.extend_from_slice(&self.header);
        let mut ends = self.ends.iter();
        for source in sources {
            match source {
                Source::Old(data) => out.extend_from_slice(data),
                Source::New(range) => {
                    put_segment(self.deflated.get(range)?, ends.next()?, out)?;
                }
            }
        }
        out.extend_from_slice(&END);
        out.extend_from_slice(&libdeflater::adler32(payload).to_be_bytes());
        Some(())
    }

    /// Deflates a part of a payload as segments of about equal length.
    fn deflate(&mut self, part: &[u8], sources: &mut Vec<Source<'_>>) -> Option<()> {
        let count = (part.len() + SEGMENT_LEN / 2) / SEGMENT_LEN;
        let len = part.len().div_ceil(count.max(1)).max(1);
        let mut start = sources.iter().map(Source::new_end).max().unwrap_or(0);
        for segment in part.chunks(len) {
            let most = start + self.zlib.deflate_compress_bound(segment.len());
            if self.deflated.len() < most {
                self.deflated.resize(most, 0);
            }
            let out = self.deflated.get_mut(start..)?;
            let end = start + self.zlib.deflate_compress(segment, out).ok()?;
            sources.push(Source::New(start..end));
            start = end;
        }
        Some(())
    }

    /// Finds the ends of all new segments.
    fn find_ends(&mut self, sources: &[Source<'_>]) -> Option<()> {
        let new = sources.iter().filter_map(|source| match source {
            Source::New(range) => self.deflated.get(range.clone()),
            Source::Old(_) => None,
        });
        let new: Vec<_> = new.collect();
        self.ends.clear();
        self.end_finder.find(&new, &mut self.ends)
    }
}

/// Appends a deflate stream as a segment: its last block is no longer the last, and the marker follows it.
fn put_segment(stream: &[u8], end: &DeflateEnd, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.extend_from_slice(stream);
    *out.get_mut(start + end.last_block / 8)? &= !(1 << (end.last_block % 8));
    // The header of a stored block is three zeros, and fills the byte.
    out.resize(start + (end.bits + 3).div_ceil(8), 0);
    out.extend_from_slice(&MARKER);
    Some(())
}

/// The segments of `old` whose bytes occur in `payload`, in the same order: the offset in `payload`, the segment and its
/// compressed bytes. Segments are left out if a new segment beside them would be too short.
fn kept<'a>(payload: &[u8], old: Segmented<'a>) -> Vec<(usize, &'a Segment, &'a [u8])> {
    let (mut kept, mut done) = (Vec::new(), 0);
    let mut search = Search {
        payload,
        done: 0,
        old_done: 0,
    };
    for segment in old.segments {
        let bytes = old.payload.get(segment.payload.clone());
        let (Some(bytes), Some(data)) = (bytes, old.data.get(segment.data.clone())) else {
            return Vec::new();
        };
        if bytes.len() < MIN_SEGMENT_LEN {
            continue;
        }
        let Some(at) = search.find(bytes, segment.payload.start) else {
            continue;
        };
        if at == done || at - done >= MIN_SEGMENT_LEN {
            kept.push((at, segment, data));
            done = at + bytes.len();
        }
    }
    if (1..MIN_SEGMENT_LEN).contains(&(payload.len() - done)) {
        kept.pop();
    }
    kept
}

/// Looks for parts of an old payload in a new one, from the first to the last.
struct Search<'p> {
    payload: &'p [u8],
    /// The ends of the last part that was found.
    done: usize,
    old_done: usize,
}

impl Search<'_> {
    /// The number of bytes that may be inserted between two parts.
    const SLACK: usize = 1 << 18;
    /// The number of bytes by which a part is looked for.
    const NEEDLE: usize = 64;
    /// The number of places that are compared.
    const PLACES: usize = 8;

    fn find(&mut self, part: &[u8], old_start: usize) -> Option<usize> {
        let rest = self.payload.get(self.done..)?;
        // Mostly nothing has been inserted or removed since the part before, or since the beginning.
        let usual = old_start - self.old_done;
        let at = match rest.get(usual..).is_some_and(|rest| rest.starts_with(part)) {
            true => usual,
            false => {
                let within = rest.get(..rest.len().min(usual + part.len() + Self::SLACK))?;
                let needle = part.get(..Self::NEEDLE)?;
                memmem::find_iter(within, needle)
                    .take(Self::PLACES)
                    .find(|at| rest.get(*at..).is_some_and(|rest| rest.starts_with(part)))?
            }
        };
        let at = self.done + at;
        (self.done, self.old_done) = (at + part.len(), old_start + part.len());
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that look like objects: repetitive, with some noise.
    fn payload(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 33
        };
        let mut out = Vec::new();
        while out.len() < len {
            out.extend_from_slice(b"highway residential \x08\x01\x12");
            let noise = next() % 40;
            out.extend((0..noise).map(|_| next() as u8));
        }
        out.truncate(len);
        out
    }

    struct Codec {
        encoder: SegmentEncoder,
        zlib: libdeflater::Decompressor,
    }

    impl Codec {
        fn new() -> Self {
            Self {
                encoder: SegmentEncoder::new(CompressionLvl::new(4).unwrap()),
                zlib: libdeflater::Decompressor::new(),
            }
        }

        /// Compresses a payload. All of it must inflate as one stream and by segments, which are returned.
        fn round_trip(
            &mut self,
            payload: &[u8],
            old: Option<Segmented<'_>>,
        ) -> (Vec<u8>, Vec<Segment>) {
            let mut data = Vec::new();
            assert!(self.encoder.compress(payload, old, &mut data));
            let mut whole = vec![0; payload.len()];
            assert_eq!(
                self.zlib.zlib_decompress(&data, &mut whole).unwrap(),
                payload.len()
            );
            assert!(whole == payload);
            let mut other = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&data[..]), &mut other)
                .unwrap();
            assert!(other == payload);
            let mut segments = Vec::new();
            whole.fill(0);
            assert!(self.inflate(&data, &mut whole, &mut segments));
            assert!(whole == payload);
            (data, segments)
        }

        fn inflate(&mut self, data: &[u8], out: &mut [u8], segments: &mut Vec<Segment>) -> bool {
            let mut room = vec![0; out.len() + PROBE_LEN];
            let inflater = &mut SegmentInflater::default();
            let is_found = inflater.inflate(&mut self.zlib, data, (&mut room, out.len()), segments);
            out.copy_from_slice(&room[..out.len()]);
            is_found
        }
    }

    #[test]
    fn every_length_comes_back() {
        let mut codec = Codec::new();
        for level in [1, 2, 4, 6, 9, 12] {
            codec.encoder = SegmentEncoder::new(CompressionLvl::new(level).unwrap());
            for len in [1, 100, 9_999, 32_768, 65_536, 70_000, 300_000] {
                for bytes in [payload(len, 3), vec![0; len], noise(len)] {
                    codec.round_trip(&bytes, None);
                }
            }
        }
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 88_172_645_463_325_252u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..len).map(next).collect()
    }

    #[test]
    fn segments_without_changes_are_copied() {
        let mut codec = Codec::new();
        let old = payload(600_000, 1);
        let (data, segments) = codec.round_trip(&old, None);
        assert_eq!(segments.len(), 18);
        let source = Segmented {
            payload: &old,
            data: &data,
            segments: &segments,
        };
        let fourth = &segments[4].payload;
        // Bytes to remove and to insert, from the last place to the first.
        type Splice<'a> = (usize, usize, &'a [u8]);
        let cases: [(&str, &[Splice<'_>], usize); 6] = [
            ("nothing", &[], 18),
            ("a byte", &[(300_000, 1, b"x")], 17),
            (
                "inserted bytes",
                &[(400_000, 0, b"some more bytes"), (5, 0, b"and more")],
                16,
            ),
            ("removed bytes", &[(101_000, 3_000, b"")], 17),
            (
                "a removed segment",
                &[(fourth.start, fourth.len(), b"")],
                17,
            ),
            ("most", &[(0, 590_000, b"z")], 0),
        ];
        for (name, splices, expected) in cases {
            let mut new = old.clone();
            for &(at, len, with) in splices {
                new.splice(at..at + len, with.iter().copied());
            }
            let (again, found) = codec.round_trip(&new, Some(source));
            let is_copied = |segment: &&Segment| {
                segments
                    .iter()
                    .any(|old| data[old.data.clone()] == again[segment.data.clone()])
            };
            assert_eq!(found.iter().filter(is_copied).count(), expected, "{name}");
        }
    }

    #[test]
    fn edits_for_years_leave_no_short_segments() {
        let mut codec = Codec::new();
        let mut old = payload(400_000, 2);
        let (mut data, mut segments) = codec.round_trip(&old, None);
        let first = data.len();
        for day in 0..200usize {
            let at = day * 7919 % old.len();
            let end = (at + day % 3 * 50).min(old.len());
            let mut new = old.clone();
            new.splice(at..end, payload(day % 4 * 37, day as u64));
            let source = Segmented {
                payload: &old,
                data: &data,
                segments: &segments,
            };
            (data, segments) = codec.round_trip(&new, Some(source));
            old = new;
        }
        let (fresh, _) = codec.round_trip(&old, None);
        assert!(
            data.len() < fresh.len() + fresh.len() / 100,
            "{first} {} {}",
            data.len(),
            fresh.len()
        );
        assert!(
            segments
                .iter()
                .all(|segment| segment.payload.len() >= MIN_SEGMENT_LEN)
        );
    }

    #[test]
    fn data_without_segments_or_with_wrong_ones_has_none() {
        let mut codec = Codec::new();
        let bytes = payload(200_000, 5);
        let (data, segments) = codec.round_trip(&bytes, None);
        let (mut out, mut found) = (vec![0; bytes.len()], Vec::new());
        for index in (0..data.len())
            .step_by(41)
            .chain(data.len() - 20..data.len())
        {
            let mut wrong = data.clone();
            wrong[index] ^= 1;
            assert!(
                !codec.inflate(&wrong, &mut out, &mut found) || out == bytes,
                "{index}"
            );
            assert!(!codec.inflate(&data[..index], &mut out, &mut found));
        }
        // A segment that needs the window of the one before it.
        let mut zlib = flate2::Compress::new(flate2::Compression::new(6), true);
        let mut stream = Vec::with_capacity(400_000);
        for part in [&bytes[..100_000], &bytes[..50_000]] {
            zlib.compress_vec(part, &mut stream, flate2::FlushCompress::Sync)
                .unwrap();
            stream.extend_from_slice(&[0, 0, 0, 0xff, 0xff]);
        }
        stream.extend_from_slice(&END);
        let whole = [&bytes[..100_000], &bytes[..50_000]].concat();
        stream.extend_from_slice(&libdeflater::adler32(&whole).to_be_bytes());
        let mut out = vec![0; whole.len()];
        assert_eq!(
            codec.zlib.zlib_decompress(&stream, &mut out).unwrap(),
            whole.len()
        );
        assert!(!codec.inflate(&stream, &mut out, &mut found));
        assert_eq!(segments.len(), 6);
    }

    /// Segments that inflate, but that are not whole blocks: copied, they would end a blob in the middle.
    #[test]
    fn segments_that_are_marked_as_the_last_or_take_what_follows_are_not_found() {
        let mut codec = Codec::new();
        let payload = b"abcdefgh";
        let stored = |flags: u8, len: u16| {
            let [low, high] = len.to_le_bytes();
            [&[flags, low, high, !low, !high], &payload[..]].concat()
        };
        for (block, is_found) in [
            (stored(0, 8), true),
            (stored(1, 8), false),
            // The marker and the end of the data become content.
            (stored(1, 8 + 10 + 5), false),
            (stored(0, 8 + 10), false),
        ] {
            let mut data = vec![0x78, 0x9c];
            data.extend(block);
            data.push(0);
            data.extend(MARKER);
            data.extend(END);
            data.extend(libdeflater::adler32(payload).to_be_bytes());
            let found = codec.inflate(&data, &mut [0; 8], &mut Vec::new());
            assert_eq!(found, is_found, "{data:?}");
        }
    }
}
