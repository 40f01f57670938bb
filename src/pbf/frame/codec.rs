//! Compression and decompression of blobs.
//!
//! Whole zlib blobs are processed by libdeflate; `notes/codec.md` has the measurements behind this choice.

use super::blob::{Blob, BlobKind, Encoding, MAX_PAYLOAD_LEN, encode_frame, raw_size_error};
use crate::error::{FormatError, FormatResult};
use crate::pbf::segments::{
    BlobSegments, PROBE_LEN, Segment, SegmentEncoder, SegmentInflater, Segmented, may_have_segments,
};
use crate::pbf::wire::{MAX_VARINT_LEN, read_varint};
use std::fmt;
use std::str::FromStr;

/// The compression of new blobs. Copied blobs keep their compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    None,
    /// zlib, level 1 to 12; readable by every program.
    Zlib(u8),
    /// zstd, level 1 to 22.
    Zstd(u8),
    /// lz4, which has no level.
    Lz4,
}

impl Compression {
    /// Returns the encoding of a Blob with this compression.
    pub(crate) const fn encoding(self) -> Encoding {
        match self {
            Self::None => Encoding::Raw,
            Self::Zlib(_) => Encoding::Zlib,
            Self::Zstd(_) => Encoding::Zstd,
            Self::Lz4 => Encoding::Lz4,
        }
    }

    /// Whether the compression of a blob with `encoding` may differ from `self`. A Blob does not record its compression
    /// level, so this method assumes that the blob has the default level.
    pub(crate) fn may_differ_from(self, encoding: Encoding) -> bool {
        let is_usual = matches!(self, Self::None | Self::Lz4 | Self::Zlib(6) | Self::Zstd(3));
        self.encoding() != encoding || !is_usual
    }
}

impl Default for Compression {
    fn default() -> Self {
        Self::Zlib(6)
    }
}

impl FromStr for Compression {
    type Err = String;

    /// Parses `none`, `zlib`, `zlib:1` to `zlib:12`, `zstd`, `zstd:1` to `zstd:22`, or `lz4`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => {
                let level = level
                    .parse::<u8>()
                    .map_err(|_| format!("'{level}' is not a level"))?;
                (name, Some(level))
            }
            None => (text, None),
        };
        let in_range = |default: u8, most: u8| match level.unwrap_or(default) {
            level if (1..=most).contains(&level) => Ok(level),
            level => Err(format!("{name} has levels 1 to {most}, not {level}")),
        };
        match (name, level) {
            ("none", None) => Ok(Self::None),
            ("lz4", None) => Ok(Self::Lz4),
            ("zlib", _) => in_range(6, 12).map(Self::Zlib),
            ("zstd", _) => in_range(3, 22).map(Self::Zstd),
            _ => Err("expected none, zlib[:1-12], zstd[:1-22] or lz4".into()),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Zlib(level) => write!(f, "zlib:{level}"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Lz4 => f.write_str("lz4"),
        }
    }
}

/// Returns the libdeflate level that stands in for zlib at `level`. On OSM data, the output of libdeflate at this level
/// is not larger than that of zlib.
///
/// A user who asks for `zlib:6` expects the compression ratio of zlib at level 6, which libdeflate reaches at a lower
/// and faster level (`notes/codec.md`).
fn libdeflate_level(level: u8) -> libdeflater::CompressionLvl {
    let level = match level {
        0..=2 => 1,
        3 | 4 => 2,
        5 => 3,
        6 => 4,
        7 => 5,
        8 => 6,
        9 => 7,
        other => i32::from(other),
    };
    // A `Compression` that was not made by `from_str` may have a level above 12. In this case, the default level is
    // used.
    libdeflater::CompressionLvl::new(level).unwrap_or_default()
}

/// A decompressor of blobs. Each worker has its own, because a decompressor owns the state of the compression
/// libraries.
#[derive(Default)]
pub struct Decompressor {
    zlib: libdeflater::Decompressor,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    /// Inflates the beginning of zlib data, for [`prefix`](Self::prefix).
    stream: Option<flate2::Decompress>,
    payload: Vec<u8>,
    /// The segments of the blob that [`payload_and_segments`](Self::payload_and_segments) decompressed last.
    segments: Vec<Segment>,
    inflater: Option<SegmentInflater>,
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor")
            .field("payload_capacity", &self.payload.len())
            .finish()
    }
}

impl Decompressor {
    /// Returns the uncompressed payload of `blob`, which is valid until the next call.
    ///
    /// Fails if the stored bytes are damaged or the payload does not have exactly `payload_len` bytes.
    pub fn payload<'a>(&'a mut self, blob: &Blob<'a>) -> Result<&'a [u8], FormatError> {
        let len = blob.payload_len as usize;
        if blob.encoding == Encoding::Raw {
            return Ok(blob.data);
        }
        if self.payload.len() < len {
            self.payload.resize(len, 0);
        }
        let out = &mut self.payload[..len];
        let found = match blob.encoding {
            Encoding::Raw => len,
            Encoding::Zlib => inflate(&mut self.zlib, blob.data, out)?,
            Encoding::Lz4 => lz4_flex::block::decompress_into(blob.data, out)
                .map_err(|error| FormatError::with(format!("lz4 data: {error}")))?,
            Encoding::Zstd => decompress_zstd(&mut self.zstd, blob.data, out)?,
        };
        if found != len {
            return Err(raw_size_error(blob.payload_len, found));
        }
        Ok(out)
    }
}

impl Decompressor {
    /// Moves the payload of `blob` out of the decompressor. `blob` must be the blob that was decompressed last. Copies
    /// the payload if it is stored uncompressed.
    pub(crate) fn take_payload(&mut self, blob: &Blob<'_>) -> Vec<u8> {
        if blob.encoding == Encoding::Raw {
            return blob.data.to_vec();
        }
        self.payload.truncate(blob.payload_len as usize);
        std::mem::take(&mut self.payload)
    }

    /// Does the same as [`payload`](Self::payload), but also returns the segments of the blob.
    pub(crate) fn payload_and_segments<'a>(
        &'a mut self,
        blob: &Blob<'a>,
    ) -> FormatResult<(&'a [u8], BlobSegments<'a>)> {
        let len = blob.payload_len as usize;
        if blob.encoding != Encoding::Zlib || !may_have_segments(blob.data) {
            return Ok((self.payload(blob)?, BlobSegments::None));
        }
        if self.payload.len() < len + PROBE_LEN {
            self.payload.resize(len + PROBE_LEN, 0);
        }
        let out = (self.payload.as_mut_slice(), len);
        let inflater = self.inflater.get_or_insert_default();
        if !inflater.inflate(&mut self.zlib, blob.data, out, &mut self.segments) {
            return Ok((self.payload(blob)?, BlobSegments::Wrong));
        }
        let payload = &self.payload[..len];
        let segmented = Segmented {
            payload,
            data: blob.data,
            segments: &self.segments,
        };
        Ok((payload, BlobSegments::Found(segmented)))
    }

    /// Returns the StringTable message at the beginning of the block in `blob`. Returns `None` if the block begins with
    /// another field, or if the message is longer than the block. Inflates zlib data only up to the end of the message.
    pub(crate) fn string_table<'a>(
        &'a mut self,
        blob: &Blob<'a>,
    ) -> FormatResult<Option<&'a [u8]>> {
        const HEAD: usize = MAX_VARINT_LEN + 1;
        let prefix = self.prefix(blob, |prefix| match string_table_offset_and_len(prefix) {
            _ if prefix.len() < HEAD => Some(HEAD),
            Some((start, len)) => start.checked_add(len),
            None => None,
        })?;
        Ok(string_table_offset_and_len(prefix)
            .and_then(|(start, len)| prefix.get(start..start.checked_add(len)?)))
    }

    /// Returns the beginning of the payload of `blob`. Calls `needed` with the bytes that are known so far. `needed`
    /// returns the total number of bytes that it needs, or `None` if the known bytes suffice. Inflates zlib data only
    /// as far as needed, and does not check the rest. Returns the whole payload if `needed` asks for more than that, or
    /// if the data is not zlib data.
    pub(crate) fn prefix<'a>(
        &'a mut self,
        blob: &Blob<'a>,
        needed: impl Fn(&[u8]) -> Option<usize>,
    ) -> FormatResult<&'a [u8]> {
        if blob.encoding != Encoding::Zlib {
            return self.payload(blob);
        }
        let len = blob.payload_len as usize;
        if self.payload.len() < len {
            self.payload.resize(len, 0);
        }
        let out = &mut self.payload[..len];
        let stream = self
            .stream
            .get_or_insert_with(|| flate2::Decompress::new(true));
        stream.reset(true);
        let mut known = 0;
        while let Some(end) = needed(&out[..known]).map(|end| end.min(len))
            && end > known
        {
            inflate_until(stream, blob.data, out, end)?;
            known = end;
        }
        Ok(&out[..known])
    }
}

/// Returns the offset and the length in bytes of the StringTable message at the beginning of a payload; `None` if the
/// payload begins with another field.
fn string_table_offset_and_len(payload: &[u8]) -> Option<(usize, usize)> {
    const TAG: u8 = 1 << 3 | 2;
    let mut pos = 1;
    if payload.first() != Some(&TAG) {
        return None;
    }
    let len = read_varint(payload, &mut pos).ok()?;
    Some((pos, usize::try_from(len).ok()?))
}

/// Continues to inflate `data` into `out` until `out` has `wanted` bytes or is full. Fails if `data` ends too early.
fn inflate_until(
    stream: &mut flate2::Decompress,
    data: &[u8],
    out: &mut [u8],
    wanted: usize,
) -> FormatResult<()> {
    let damaged = || FormatError::new("zlib data is damaged");
    let wanted = wanted.min(out.len());
    loop {
        let done = stream.total_out() as usize;
        let Some(rest) = out.get_mut(done..wanted).filter(|rest| !rest.is_empty()) else {
            return Ok(());
        };
        let used = stream.total_in();
        let status = stream.decompress(&data[used as usize..], rest, flate2::FlushDecompress::None);
        status.map_err(|_| damaged())?;
        if (stream.total_in(), stream.total_out()) == (used, done as u64) {
            return Err(damaged());
        }
    }
}

/// Decompresses zlib data to `out`, and returns the number of bytes.
fn inflate(
    zlib: &mut libdeflater::Decompressor,
    data: &[u8],
    out: &mut [u8],
) -> FormatResult<usize> {
    zlib.zlib_decompress(data, out)
        .map_err(|error| match error {
            libdeflater::DecompressionError::BadData => FormatError::new("zlib data is damaged"),
            libdeflater::DecompressionError::InsufficientSpace => FormatError::with(format!(
                "zlib data holds more than raw_size ({} bytes)",
                out.len()
            )),
        })
}

fn decompress_zstd(
    state: &mut Option<zstd::bulk::Decompressor<'static>>,
    data: &[u8],
    out: &mut [u8],
) -> FormatResult<usize> {
    let damaged = |error: std::io::Error| FormatError::with(format!("zstd data: {error}"));
    let zstd = match state {
        Some(zstd) => zstd,
        None => state.insert(zstd::bulk::Decompressor::new().map_err(damaged)?),
    };
    zstd.decompress_to_buffer(data, out).map_err(damaged)
}

/// A compressor that makes frames from payloads. Each worker has its own, because a compressor owns the state of the
/// compression libraries.
#[derive(Default)]
pub struct Compressor {
    compression: Compression,
    zlib: Option<libdeflater::Compressor>,
    segments: Option<SegmentEncoder>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    stored: Vec<u8>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor")
            .field("compression", &self.compression)
            .finish()
    }
}

impl Compressor {
    /// Creates a compressor with the given compression.
    pub fn new(compression: Compression) -> Self {
        Self {
            compression,
            ..Self::default()
        }
    }

    /// Compresses `payload` and appends it to `out` as a whole frame. If `indexdata` is given, it is stored in the
    /// BlobHeader. Fails if the payload or the Blob exceeds a limit of the format.
    pub fn frame(
        &mut self,
        kind: BlobKind,
        indexdata: Option<&[u8]>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        let payload_len = checked_len(payload)?;
        let (encoding, data) = self.compress(payload)?;
        let blob = Blob {
            encoding,
            data,
            payload_len,
        };
        encode_frame(out, kind, indexdata, &blob)
    }

    /// Does the same as [`frame`](Self::frame), for a data frame. zlib data has segments if the payload is long enough.
    /// Segments of `old` whose payload has not changed are copied.
    pub(crate) fn frame_in_segments(
        &mut self,
        indexdata: Option<&[u8]>,
        payload: &[u8],
        old: Option<Segmented<'_>>,
        out: &mut Vec<u8>,
    ) -> FormatResult<()> {
        let payload_len = checked_len(payload)?;
        if let Some(data) = self.compress_in_segments(payload, old) {
            let blob = Blob {
                encoding: Encoding::Zlib,
                data,
                payload_len,
            };
            return encode_frame(out, BlobKind::Data, indexdata, &blob);
        }
        self.frame(BlobKind::Data, indexdata, payload, out)
    }

    /// Compresses `payload` in segments. Returns the data of a zlib Blob, which is valid until the next call; `None` if
    /// the compression is not zlib, or the payload is too short for segments.
    pub(crate) fn compress_in_segments(
        &mut self,
        payload: &[u8],
        old: Option<Segmented<'_>>,
    ) -> Option<&[u8]> {
        let Compression::Zlib(level) = self.compression else {
            return None;
        };
        let segments = self
            .segments
            .get_or_insert_with(|| SegmentEncoder::new(libdeflate_level(level)));
        segments
            .compress(payload, old, &mut self.stored)
            .then_some(self.stored.as_slice())
    }

    /// Compresses `payload`. Returns the data of a Blob, which is valid until the next call, and its encoding.
    pub(crate) fn compress<'a>(
        &'a mut self,
        payload: &'a [u8],
    ) -> FormatResult<(Encoding, &'a [u8])> {
        match self.compression {
            Compression::None => Ok((Encoding::Raw, payload)),
            Compression::Zlib(level) => {
                let zlib = self
                    .zlib
                    .get_or_insert_with(|| libdeflater::Compressor::new(libdeflate_level(level)));
                self.stored
                    .resize(zlib.zlib_compress_bound(payload.len()), 0);
                let len = zlib
                    .zlib_compress(payload, &mut self.stored)
                    .map_err(|_| FormatError::new("zlib could not compress the payload"))?;
                Ok((Encoding::Zlib, &self.stored[..len]))
            }
            Compression::Zstd(level) => {
                let failed = |error: std::io::Error| FormatError::with(format!("zstd: {error}"));
                let zstd = match &mut self.zstd {
                    Some(zstd) => zstd,
                    None => {
                        let new = zstd::bulk::Compressor::new(i32::from(level)).map_err(failed)?;
                        self.zstd.insert(new)
                    }
                };
                self.stored = zstd.compress(payload).map_err(failed)?;
                Ok((Encoding::Zstd, &self.stored))
            }
            Compression::Lz4 => {
                self.stored
                    .resize(lz4_flex::block::get_maximum_output_size(payload.len()), 0);
                let len = lz4_flex::block::compress_into(payload, &mut self.stored)
                    .map_err(|error| FormatError::with(format!("lz4: {error}")))?;
                Ok((Encoding::Lz4, &self.stored[..len]))
            }
        }
    }
}

/// Returns the length of a payload. Fails if the length exceeds the limit of the format.
fn checked_len(payload: &[u8]) -> FormatResult<u32> {
    u32::try_from(payload.len())
        .ok()
        .filter(|&len| len <= MAX_PAYLOAD_LEN)
        .ok_or_else(|| {
            FormatError::with(format!("a payload of {} bytes is too large", payload.len()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::frame::blob::{BlobHeader, FRAME_PREFIX_LEN};

    fn parse_blob(frame: &[u8]) -> Blob<'_> {
        let len = BlobHeader::len_from_prefix(frame[..4].try_into().unwrap()).unwrap() as usize;
        Blob::parse(&frame[FRAME_PREFIX_LEN + len..]).unwrap()
    }

    #[test]
    fn every_compression_gives_its_payload_back() {
        let payload: Vec<u8> = (0..100_000u32)
            .flat_map(|n| (n / 7).to_le_bytes())
            .collect();
        for text in [
            "none", "zlib", "zlib:1", "zlib:12", "zstd", "zstd:19", "lz4",
        ] {
            let mut frame = Vec::new();
            let mut compressor = Compressor::new(text.parse().unwrap());
            compressor
                .frame(BlobKind::Data, None, &payload, &mut frame)
                .unwrap();
            let mut decompressor = Decompressor::default();
            assert_eq!(
                decompressor.payload(&parse_blob(&frame)).unwrap(),
                payload,
                "{text}"
            );
        }
    }

    #[test]
    fn a_wrong_raw_size_is_detected_in_every_encoding() {
        let payload = vec![7u8; 1000];
        for text in ["zlib", "zstd", "lz4"] {
            let mut frame = Vec::new();
            let mut compressor = Compressor::new(text.parse().unwrap());
            compressor
                .frame(BlobKind::Data, None, &payload, &mut frame)
                .unwrap();
            for payload_len in [999, 1001] {
                let blob = Blob {
                    payload_len,
                    ..parse_blob(&frame)
                };
                assert!(
                    Decompressor::default().payload(&blob).is_err(),
                    "{text} {payload_len}"
                );
            }
        }
    }

    #[test]
    fn a_parsed_compression_is_displayed_as_it_was_given() {
        for text in ["none", "zlib:6", "zstd:3", "lz4"] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
        }
        for text in ["zlib:0", "zlib:13", "zstd:23", "gzip", "lz4:1", "zlib:x"] {
            assert!(text.parse::<Compression>().is_err(), "{text}");
        }
    }
}
