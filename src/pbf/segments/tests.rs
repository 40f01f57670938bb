//! Tests that write and read segments, edit them, and damage them.

use super::kept::MIN_SEGMENT_LEN;
use super::*;
use crate::for_tests::random::Random;
use crate::pbf::segments::columns::cut_into_parts;
use crate::pbf::wire::put_bytes_field;
use libdeflater::CompressionLvl;

/// Returns bytes that resemble encoded objects: a repeated text with random bytes in between.
fn payload(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut out = Vec::new();
    while out.len() < len {
        out.extend_from_slice(b"highway residential \x08\x01\x12");
        let noise = random.below(40);
        out.extend((0..noise).map(|_| random.bits(8) as u8));
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

    /// Compresses a payload and returns the zlib data and its segments. Asserts that the data inflates to the payload,
    /// both as one stream and segment by segment.
    fn round_trip(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
    ) -> (Vec<u8>, Vec<Segment>) {
        let mut data = Vec::new();
        cut_into_parts(payload, &mut self.encoder.parts);
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
fn payloads_of_every_length_round_trip() {
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
fn a_used_encoder_compresses_like_a_new_one() {
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
    // An offset, the number of bytes to remove there, and the bytes to insert there. The splices of a case are ordered
    // from the last offset to the first.
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
fn many_successive_edits_leave_no_short_segments() {
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
fn damaged_or_dependent_segments_are_not_inflated() {
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
    // The second segment needs the window of the first one.
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

/// Tests segments that inflate but are not whole blocks. Copies of them would end a blob prematurely.
#[test]
fn segments_that_are_not_whole_blocks_are_not_found() {
    let mut codec = Codec::new();
    let payload = b"abcdefgh";
    let stored = |flags: u8, len: u16| {
        let [low, high] = len.to_le_bytes();
        [&[flags, low, high, !low, !high], &payload[..]].concat()
    };
    for (block, is_found) in [
        (stored(0, 8), true),
        (stored(1, 8), false),
        // The stored block is so long that its content includes the marker and, in the first case, the end of the data.
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
