//! zlib data made of segments that inflate independently (`reference/format.md`, "Segments").
//!
//! Each segment begins with an empty window and ends with a marker, so that a blob of which a few objects or columns
//! change is made of the compressed segments without changes and of new ones for the others. All of it is one zlib
//! stream (RFC 1950), which every program reads.

use super::columns::{Part, Values, parts_of};
use super::deflate_end::{DeflateEnd, EndFinder};
use super::literal_block::LiteralEncoder;
use libdeflater::CompressionLvl;
use memchr::memmem;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// The length of the payload of a segment in bytes. Shorter ones take more space: on blobs of ways 0.9 % with 64 kB, 2 %
/// with 32 kB, 4 % with 16 kB.
const SEGMENT_LEN: usize = 32 << 10;
/// A segment of ways or relations that is shorter than this is joined with the next one.
const MIN_SEGMENT_LEN: usize = SEGMENT_LEN / 4;
/// The number of old segments that are compared with a column.
const LOOK_AHEAD: usize = 64;
/// The length of a payload of columns from which on it has segments.
const MIN_COLUMNS_LEN: usize = 8 << 10;
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
    literals: LiteralEncoder,
    /// The header that libdeflate writes at this level.
    header: [u8; HEADER_LEN],
    end_finder: EndFinder,
    /// New segments as deflate streams, one after the other. It is never shortened: bytes of earlier ones may follow.
    deflated: Vec<u8>,
    /// The columns of the payload.
    parts: Vec<Part>,
    /// The ends of the streams of libdeflate.
    ends: Vec<DeflateEnd>,
}

/// Where a segment of new zlib data comes from.
enum Source<'a> {
    /// The zlib data of an old segment.
    Old(&'a [u8]),
    /// A range of [`SegmentEncoder::deflated`], and the end of the stream in it, if it is known.
    New(Range<usize>, Option<DeflateEnd>),
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
            literals: LiteralEncoder::default(),
            header,
            end_finder: EndFinder::default(),
            deflated: Vec::new(),
            parts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Compresses a payload to `out`. Segments of `old` whose payload occurs in the new one are copied. Returns `false`
    /// if the payload is too short for segments, or could not be compressed in segments.
    pub(super) fn compress(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
        out: &mut Vec<u8>,
    ) -> bool {
        if payload.len() < MIN_COLUMNS_LEN {
            return false;
        }
        parts_of(payload, &mut self.parts);
        let is_worth_it = !self.parts.is_empty() || payload.len() >= 2 * SEGMENT_LEN;
        is_worth_it && self.compress_parts(payload, old, out).is_some()
    }

    /// As [`compress`](Self::compress), once the columns are known.
    fn compress_parts(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let sources = match self.parts.is_empty() {
            true => self.deflate_evenly(payload, old)?,
            false => self.deflate_columns(payload, old)?,
        };
        self.put(payload, sources, out)
    }

    /// Makes zlib data of segments.
    fn put(&mut self, payload: &[u8], sources: Vec<Source<'_>>, out: &mut Vec<u8>) -> Option<()> {
        self.find_ends(&sources)?;
        out.clear();
        out.extend_from_slice(&self.header);
        let mut ends = self.ends.iter();
        for source in sources {
            match source {
                Source::Old(data) => out.extend_from_slice(data),
                Source::New(range, end) => {
                    let end = end.or_else(|| ends.next().copied())?;
                    put_segment(self.deflated.get(range)?, &end, out)?;
                }
            }
        }
        out.extend_from_slice(&END);
        out.extend_from_slice(&libdeflater::adler32(payload).to_be_bytes());
        Some(())
    }

    /// Deflates a payload as segments of about equal length, but for those that are copied.
    fn deflate_evenly<'o>(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'o>>,
    ) -> Option<Vec<Source<'o>>> {
        let (mut sources, mut done, mut start) = (Vec::new(), 0, 0);
        let kept = old.map(|old| kept(payload, old)).unwrap_or_default();
        let mut add = |range: Range<usize>, sources: &mut Vec<_>| {
            let part = payload.get(range)?;
            let count = (part.len() + SEGMENT_LEN / 2) / SEGMENT_LEN;
            let len = part.len().div_ceil(count.max(1)).max(1);
            for segment in part.chunks(len) {
                let end = self.deflate(segment, start)?;
                sources.push(Source::New(start..end, None));
                start = end;
            }
            Some(())
        };
        for (at, segment, data) in kept {
            add(done..at, &mut sources)?;
            sources.push(Source::Old(data));
            done = at + segment.payload.len();
        }
        add(done..payload.len(), &mut sources)?;
        Some(sources)
    }

    /// Deflates each column of a payload as a segment, but for those that are copied.
    fn deflate_columns<'o>(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'o>>,
    ) -> Option<Vec<Source<'o>>> {
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
                sources.push(Source::Old(data));
                continue;
            }
            let (end, known) = self.deflate_part(column, part.values, start)?;
            sources.push(Source::New(start..end, known));
            start = end;
        }
        self.parts = parts;
        Some(sources)
    }

    /// Deflates a segment to [`Self::deflated`] from `start` on, and returns its end there.
    fn deflate(&mut self, segment: &[u8], start: usize) -> Option<usize> {
        self.make_room(segment.len(), start);
        let out = self.deflated.get_mut(start..)?;
        Some(start + self.zlib.deflate_compress(segment, out).ok()?)
    }

    /// As [`deflate`](Self::deflate), without matches but for runs where they are rare. The end of the stream is known
    /// then.
    fn deflate_part(
        &mut self,
        part: &[u8],
        values: Values,
        start: usize,
    ) -> Option<(usize, Option<DeflateEnd>)> {
        self.make_room(part.len(), start);
        // A block of literals that is not shorter than the part is of no use.
        let out = self.deflated.get_mut(start..start + part.len())?;
        let bits = match values {
            Values::Singular => self.literals.encode(part, out),
            Values::Repeating => self.literals.encode_runs(part, out),
            Values::Any => None,
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

    fn make_room(&mut self, segment_len: usize, start: usize) {
        let most = start + self.zlib.deflate_compress_bound(segment_len);
        if self.deflated.len() < most {
            self.deflated.resize(most, 0);
        }
    }

    /// Finds the ends of all new segments that are not known.
    fn find_ends(&mut self, sources: &[Source<'_>]) -> Option<()> {
        let new = sources.iter().filter_map(|source| match source {
            Source::New(range, None) => self.deflated.get(range.clone()),
            Source::New(_, Some(_)) | Source::Old(_) => None,
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
    use crate::pbf::wire::put_bytes_field;

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
            parts_of(payload, &mut self.encoder.parts);
            self.encoder
                .compress_parts(payload, old, &mut data)
                .unwrap();
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
    fn an_encoder_compresses_as_if_it_were_new() {
        let columns = |seed: usize, len: usize| {
            let column = noise(len + seed).split_off(seed);
            let mut dense = Vec::new();
            put_bytes_field(&mut dense, 1, &column);
            put_bytes_field(&mut dense, 8, &payload(len, 9));
            let mut group = Vec::new();
            put_bytes_field(&mut group, 2, &dense);
            let mut block = Vec::new();
            put_bytes_field(&mut block, 2, &group);
            block
        };
        let mut used = Codec::new();
        used.round_trip(&columns(0, 300_000), None);
        for len in (4_000..4_200).step_by(11) {
            let block = columns(len, len);
            let (expected, segments) = Codec::new().round_trip(&block, None);
            assert_eq!(segments.len(), 2);
            assert!(used.round_trip(&block, None).0 == expected, "{len}");
        }
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
