//! Determines how the blobs of a file are compressed. A Blob records the format of its compression, but not the level,
//! which is guessed.

use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobDecoder, HeaderWalker, PbfFile};
use crate::pbf::{
    Blob, BlobEntry, BlobFlags, Compression, Compressor, Encoding, SAMPLE_BLOBS, may_have_segments,
    sample_indices,
};
use crate::runtime::Context;
use serde::Serialize;
use std::fmt;

/// The highest zstd level that is tried. Higher levels need seconds for a blob.
const MAX_TRIED: u8 = 12;

/// The maximum size in bytes of a payload that is compressed to try levels. The thorough levels take ten seconds to
/// compress 32 MiB of repetitive data. A usual payload has less than 1 MiB.
const MAX_TRIED_LEN: usize = 4 << 20;

/// The highest zstd level.
const MAX_ZSTD: u8 = 22;

/// The compression levels that may have produced a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LevelGuess {
    /// The lowest level that may have produced the blob.
    pub min: u8,
    /// The highest level that may have produced the blob.
    pub max: u8,
}

impl fmt::Display for LevelGuess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (min, max) if min == max => write!(f, "{min}"),
            (min, MAX_ZSTD) => write!(f, "{min} or higher"),
            (min, max) => write!(f, "{min} to {max}"),
        }
    }
}

/// The compression of a sample of blobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SampledCompression {
    /// The number of blobs in the sample, which are spread evenly over the file.
    pub sampled_blobs: u64,
    /// The compressions that occur in the sample, the most frequent first.
    pub kinds: Vec<CompressionSummary>,
}

/// The blobs of a sample that have the same compression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompressionSummary {
    /// The name of the compression: "none", "zlib", "lz4" or "zstd".
    pub kind: &'static str,
    /// The compression levels that may have produced the blobs; `None` if there is no level, or if it cannot be
    /// guessed.
    pub level: Option<LevelGuess>,
    /// The number of blobs in the sample that have the compression.
    pub blobs: u64,
    /// The size of the compressed payloads in bytes.
    pub bytes: u64,
    /// The size of the uncompressed payloads in bytes.
    pub payload_bytes: u64,
}

/// Returns the entries of a sample of blobs that are spread evenly over the file.
pub(super) fn pick_sample_entries(entries: &[BlobEntry]) -> Vec<BlobEntry> {
    let indices = sample_indices(entries.len(), SAMPLE_BLOBS);
    indices.map(|index| entries[index]).collect()
}

/// Returns the entries of the blobs at `offsets`, without facts about their contents. Leaves out offsets at which no
/// blob begins: the offsets come from the header of the file, which can be wrong even if the blobs are whole.
pub(super) fn entries_at(file: &PbfFile, offsets: &[u64]) -> Result<Vec<BlobEntry>> {
    let mut entries = Vec::with_capacity(offsets.len());
    for offset in offsets {
        let bytes = *offset..file.data_end.max(*offset);
        match HeaderWalker::new(&file.input, bytes).next() {
            Some(Ok(head)) if head.entry.offset == *offset => entries.push(head.entry),
            None | Some(Ok(_) | Err(Error::Blob { .. })) => {}
            Some(Err(error)) => return Err(error),
        }
    }
    Ok(entries)
}

/// Examines the compression of a sample of blobs.
pub(super) fn examine_sample(
    file: &PbfFile,
    mut sample: Vec<BlobEntry>,
    ctx: &Context,
) -> Result<SampledCompression> {
    // Blobs with a part of the table of contents are always stored uncompressed. They are left out, unless the sample
    // has no other blobs.
    let is_ordinary = |entry: &BlobEntry| !entry.flags.has(BlobFlags::HAS_TABLE);
    if sample.iter().any(is_ordinary) {
        sample.retain(is_ordinary);
    }
    let mut reader = BlobDecoder::new(&file.input, ctx);
    let (mut sampled_blobs, mut kinds) = (0, Vec::<(Encoding, u8, CompressionSummary)>::new());
    for entry in &sample {
        let blob = reader.read(entry)?.blob;
        let (encoding, flags) = (blob.encoding, zlib_flags(&blob));
        let (bytes, payload_bytes) = (blob.data.len(), u64::from(blob.payload_len));
        sampled_blobs += 1;
        let known = kinds
            .iter_mut()
            .find(|known| (known.0, known.1) == (encoding, flags));
        if let Some((.., known)) = known {
            known.blobs += 1;
            known.bytes += bytes as u64;
            known.payload_bytes += payload_bytes;
            continue;
        }
        let in_segments = encoding == Encoding::Zlib && may_have_segments(blob.data);
        let payload = reader.payload(entry)?;
        let level = match encoding {
            Encoding::Raw | Encoding::Lz4 => Ok(None),
            Encoding::Zlib => guess_zlib_level(flags, bytes, payload, in_segments).map(Some),
            Encoding::Zstd => guess_zstd_level(bytes, payload),
        };
        let found = CompressionSummary {
            kind: encoding.name(),
            level: level.map_err(|error| reader.error(entry, error))?,
            blobs: 1,
            bytes: bytes as u64,
            payload_bytes,
        };
        kinds.push((encoding, flags, found));
    }
    let mut kinds: Vec<_> = kinds.into_iter().map(|(.., kind)| kind).collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.blobs));
    Ok(SampledCompression {
        sampled_blobs,
        kinds,
    })
}

/// Returns the field FLEVEL of a zlib stream. In this field, compressors record whether they were fast (0) or thorough
/// (3). Returns 0 for another encoding.
fn zlib_flags(blob: &Blob<'_>) -> u8 {
    let flags = blob.data.get(1).filter(|_| blob.encoding == Encoding::Zlib);
    flags.map_or(0, |flags| flags >> 6)
}

/// Returns the zlib levels at which this program compresses `payload` to exactly `len` bytes, in segments or as a
/// whole. If there is no such level, or the payload is too long to try levels, returns the levels at which zlib sets
/// FLEVEL to `flags`.
fn guess_zlib_level(
    flags: u8,
    len: usize,
    payload: &[u8],
    in_segments: bool,
) -> FormatResult<LevelGuess> {
    // `own` are the levels of this program at which libdeflate sets FLEVEL to `flags`. `others` are the lowest and the
    // highest level at which zlib does so. The levels differ, because libdeflate reaches the compression ratio of a
    // zlib level at another level of its own.
    let (own, others) = match flags {
        0 => (1..=2, (1, 1)),
        1 => (3..=7, (2, 5)),
        2 => (8..=9, (6, 6)),
        _ => (10..=12, (7, 9)),
    };
    let mut exact: Option<LevelGuess> = None;
    let is_tried = payload.len() <= MAX_TRIED_LEN;
    for level in own.filter(|_| is_tried) {
        let mut compressor = Compressor::new(Compression::Zlib(level));
        let segmented = if in_segments {
            compressor
                .compress_in_segments(payload, None)
                .map(<[u8]>::len)
        } else {
            None
        };
        let found = match segmented {
            Some(found) => found,
            None => compressor.compress(payload)?.1.len(),
        };
        if found == len {
            exact
                .get_or_insert(LevelGuess {
                    min: level,
                    max: level,
                })
                .max = level;
        }
    }
    let (min, max) = others;
    Ok(exact.unwrap_or(LevelGuess { min, max }))
}

/// Returns the zstd level at which the compressed size of `payload` is closest to `len`. Levels are tried from 1
/// upwards, until the compressed size is at most `len`. Returns `None` for a payload that is too long to try levels.
fn guess_zstd_level(len: usize, payload: &[u8]) -> FormatResult<Option<LevelGuess>> {
    if payload.len() > MAX_TRIED_LEN {
        return Ok(None);
    }
    let mut closest: Option<(usize, u8)> = None;
    for level in 1..=MAX_TRIED {
        let mut compressor = Compressor::new(Compression::Zstd(level));
        let found = compressor.compress(payload)?.1.len();
        let distance = found.abs_diff(len);
        if closest.is_none_or(|(least, _)| distance < least) {
            closest = Some((distance, level));
        }
        if found <= len {
            break;
        }
    }
    Ok(closest.map(|(_, level)| LevelGuess {
        min: level,
        max: if level == MAX_TRIED { MAX_ZSTD } else { level },
    }))
}
