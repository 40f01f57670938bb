//! Opens a PBF file, and reads its header and its table of contents.

use super::header_walker::{FrameHead, HeaderWalker};
use crate::error::{Advice, Error, ErrorKind, FormatError, FormatResult, Result};
use crate::io::{FileCompression, Input, decompressed_reader};
use crate::pbf::{
    Blob, BlobEntry, BlobHeader, BlobKind, Decompressor, HeaderBlock, Toc, TocPointer, TocSummary,
};
use crate::runtime::Context;
use std::io::Read;
use std::iter::Map;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

/// An open PBF file, with its header and, if it has a usable table of contents, this table.
#[derive(Debug)]
#[non_exhaustive]
pub struct PbfFile {
    /// The input that is read.
    pub input: Input,
    /// The decoded header blob.
    pub header: HeaderBlock,
    /// The table of contents; `None` if the file has no usable table, or if only the summary of the table was read.
    pub(crate) toc: Option<Toc>,
    /// The summary of the table of contents, from the header; `None` if the header has no valid summary, or if the
    /// table of contents is not used.
    pub(crate) summary: Option<Box<TocSummary>>,
    /// The reason why the file's table of contents is not used; `None` if the table is used or the file has none.
    pub toc_problem: Option<String>,
    /// The changesets of the text input that the file was converted from; `None` if there are none.
    pub(crate) changesets: Option<Box<TextChangesets>>,
    /// The offset in bytes of the first data frame.
    pub data_start: u64,
    /// The offset in bytes of the end of the last data frame. Equals the size of the file if the file has no table of
    /// contents, or if only the summary of the table was read.
    pub data_end: u64,
    /// The position of the table of ids; `None` if the file has no such table, or if `toc` is `None`.
    pub(crate) id_table: Option<IdTablePlace>,
    /// Set when the table of ids is found to be damaged, so that only one warning is given.
    pub(crate) id_table_is_damaged: OnceLock<()>,
}

/// The position of a table of ids in a file.
#[derive(Debug, Clone)]
pub(crate) struct IdTablePlace {
    /// The range of bytes from the first blob with a part of the table to the end of the last such blob.
    pub range: Range<u64>,
    /// The range of bytes of the frame with the directory; `None` for a table of version 1. The last bytes of a table
    /// of version 1 state the size of this frame instead.
    pub directory: Option<Range<u64>>,
}

/// Changesets in a text input that was converted to PBF, which cannot hold changesets.
#[derive(Debug)]
pub(crate) struct TextChangesets {
    /// The text input.
    pub text: Input,
    /// The number of changesets.
    pub count: u64,
}

/// The part of a table of contents that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TocNeeds {
    /// The entries of all blobs.
    Entries,
    /// The summary of the table. The table itself is read only if the header has no summary.
    Summary,
}

/// An iterator over the entries of frames.
pub(crate) type FrameEntries<'f> =
    Map<HeaderWalker<'f>, fn(Result<FrameHead>) -> Result<BlobEntry>>;

impl PbfFile {
    /// Whether the table of contents declares a spatial layout. In this layout, the objects of each kind are in the
    /// order of a space-filling curve, no object occurs twice, and entries have the bounding boxes of ways and
    /// relations.
    pub fn has_spatial_layout(&self) -> bool {
        self.toc.as_ref().is_some_and(|toc| toc.flags.spatial)
    }

    /// Opens a file and reads its header blob and its table of contents, normally in two or three reads. A table that
    /// cannot be used is ignored with a warning. Fails if the file is not a PBF file, if its header blob is damaged, or
    /// if the file is shorter than its header states.
    pub fn open(path: &Path, ctx: &Context) -> Result<Self> {
        Self::of_input(Input::open_in(path, ctx)?, ctx)
    }

    /// Reads the header and the table of contents of an input that is open already, as [`open`](Self::open) does.
    pub fn of_input(input: Input, ctx: &Context) -> Result<Self> {
        Self::read(input, TocNeeds::Entries, ctx)
    }

    /// Reads the header of a file and the needed part of its table of contents.
    pub(crate) fn read(input: Input, needs: TocNeeds, ctx: &Context) -> Result<Self> {
        let file = Self::read_header(input, needs, ctx)?;
        if let Some(problem) = &file.toc_problem {
            let path = file.input.path().display();
            ctx.warn(format!("{path}: {problem}; it is not used"));
        }
        Ok(file)
    }

    /// Returns an iterator over the headers of the data frames, in file order.
    pub(crate) fn frames(&self) -> HeaderWalker<'_> {
        HeaderWalker::new(&self.input, self.data_start..self.data_end)
    }

    /// Returns the entries of the data frames with the facts from their headers and per-blob indexes.
    pub(crate) fn frame_entries(&self) -> FrameEntries<'_> {
        self.frame_entries_in(0..u64::MAX, 1)
    }

    /// Does the same as [`frame_entries`](Self::frame_entries), for the frames in a range of bytes. The range must
    /// begin at the start of a frame, whose number in the file is `number`.
    pub(crate) fn frame_entries_in(&self, bytes: Range<u64>, number: u64) -> FrameEntries<'_> {
        let bytes = bytes.start.max(self.data_start)..bytes.end.min(self.data_end);
        let heads = HeaderWalker::new(&self.input, bytes).with_first_number(number);
        let entry_of: fn(Result<FrameHead>) -> Result<BlobEntry> =
            |head| head.map(|head| head.indexed.unwrap_or(head.entry));
        heads.map(entry_of)
    }

    /// Reads the header of a file, and as much of its table of contents as `needs` requires.
    fn read_header(input: Input, needs: TocNeeds, ctx: &Context) -> Result<Self> {
        if input.is_empty() {
            return Err(Error::file(input.path(), "the file is empty"));
        }
        let frame = read_header_frame(&input)?;
        ctx.stats.bytes_read.add(frame.len() as u64);
        let bad = |source| input.blob_error(0, 0, source);
        let payload = header_payload(&frame).map_err(bad)?;
        let (header, about_toc) = HeaderBlock::parse(&payload).map_err(bad)?;
        let mut file = Self {
            input,
            header,
            toc: None,
            summary: None,
            toc_problem: None,
            changesets: None,
            data_start: frame.len() as u64,
            data_end: 0,
            id_table: None,
            id_table_is_damaged: OnceLock::new(),
        };
        file.data_end = file.input.len();
        let Some(bytes) = about_toc.toc else {
            return Ok(file);
        };
        match TocPointer::parse(bytes) {
            None => file.use_toc_of_header(bytes)?,
            Some(TocPointer::AtEnd) => file.use_toc_of_stream(ctx)?,
            Some(pointer @ TocPointer::At { start, file_len }) => {
                let summary = about_toc.summary;
                let summary = summary.and_then(|bytes| TocSummary::parse(bytes, pointer));
                let is_enough = summary.as_ref().is_some_and(|summary| {
                    !summary.is_spatial || file.header_allows_spatial_layout()
                }) && needs == TocNeeds::Summary
                    && file.ends_with_toc_from(start, file_len)?;
                if !is_enough {
                    file.use_toc_at(start, file_len, ctx)?;
                }
                let is_used = is_enough || file.toc.is_some();
                file.summary = summary.filter(|_| is_used).map(Box::new);
            }
        }
        Ok(file)
    }
}

/// Reads the first frame of a file, which must contain the header blob. Fails if the frame contains a blob of another
/// kind, or if its lengths exceed the limits of the format.
fn read_header_frame(input: &Input) -> Result<Vec<u8>> {
    let bad = |source| input.blob_error(0, 0, source);
    let mut frame = input.first_bytes()?.to_vec();
    if !may_begin_with_frame(&frame) {
        refuse_compressed_pbf(input, &decompressed_start(input)?)?;
        let start = decompressed_start(input)?;
        if let Some(name) = other_osm_format(if start.is_empty() { &frame } else { &start }) {
            let cause = format!("this is {name}, not a PBF file");
            let error = Error::file_of(input.path(), ErrorKind::NotOsm, cause);
            return Err(error.advise(Advice::ConvertToPbf));
        }
        let kind = guess_other_format(&frame)
            .map_or(String::new(), |kind| format!(" (it looks like {kind})"));
        let cause = format!("not an OSM file{kind}");
        return Err(Error::file_of(input.path(), ErrorKind::NotOsm, cause));
    }
    let len = header_frame_len(&frame).map_err(bad)?;
    let found = frame.len();
    frame.resize(len, 0);
    if len > found {
        let rest = &mut frame[found..];
        let wanted = rest.len();
        if input.read_at(rest, found as u64)? < wanted {
            return Err(bad(FormatError::truncated(
                "the file ends within its header blob",
            )));
        }
    }
    Ok(frame)
}

/// Whether a file whose first bytes are `start` may begin with a frame. A frame begins with the length of its
/// BlobHeader in four bytes. The first of these bytes is 0, because a BlobHeader is shorter than 16 MiB.
fn may_begin_with_frame(start: &[u8]) -> bool {
    match start {
        [0, _, _, _, ..] => true,
        // A file with fewer than four bytes that are all 0 may be a truncated PBF file.
        _ => start.iter().all(|byte| *byte == 0),
    }
}

/// Fails if `input` is a compressed PBF file. `start` is the beginning of its decompressed bytes. A PBF file must not
/// be compressed as a whole, because readers need access to any offset.
pub(crate) fn refuse_compressed_pbf(input: &Input, start: &[u8]) -> Result<()> {
    match FileCompression::detect(input.first_bytes()?) {
        Some(compression) if begins_with_header_frame(start) => Err(Error::file(
            input.path(),
            format!(
                "this is a PBF file that is compressed with {} as a whole: decompress it first (`{}`); PBF files are \
                 compressed inside",
                compression.name(),
                compression.command()
            ),
        )),
        _ => Ok(()),
    }
}

/// Decompresses the beginning of a compressed input. Returns no bytes if the input is not compressed or cannot be
/// decompressed. The error of decompressing is reported when the input is read.
fn decompressed_start(input: &Input) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    if FileCompression::detect(input.first_bytes()?).is_some()
        && let Ok(bytes) = decompressed_reader(input)
    {
        let _ = bytes.take(START_LEN as u64).read_to_end(&mut start);
    }
    Ok(start)
}

/// The number of bytes at the start of a file that determine its format.
const START_LEN: usize = 1024;

/// Returns the name of the OSM format, other than PBF, of a file that begins with `start`.
fn other_osm_format(start: &[u8]) -> Option<&'static str> {
    let start = &start[..start.len().min(START_LEN)];
    let has = |text: &[u8]| memchr::memmem::find(start, text).is_some();
    let is_opl = matches!(start, [b'n' | b'w' | b'r', b'-' | b'0'..=b'9', ..]);
    match start {
        _ if has(b"<osmChange") => Some("an OsmChange file"),
        _ if has(b"<osm") => Some("an OSM XML file"),
        [0xff, 0xe0, 4, b'o', b'5', ..] => Some("an o5m or o5c file"),
        _ if is_opl && has(b" v") => Some("an OPL file"),
        _ => None,
    }
}

/// Guesses a format other than PBF from `start`, the first bytes of a file. Returns `None` if the bytes match no known
/// format.
fn guess_other_format(start: &[u8]) -> Option<&'static str> {
    let is_text = || {
        let is_plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
        start.iter().take(512).all(is_plain)
    };
    guess_binary_format(start).or(match start {
        [0x1f, 0x8b, ..] => Some("gzip data without OSM data"),
        [b'B', b'Z', b'h', ..] => Some("bzip2 data without OSM data"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Some("zstd data without OSM data")
        }
        [b'{' | b'[', ..] => Some("JSON"),
        [b'<', ..] => Some("XML"),
        [0xff, 0xe0, ..] => Some("an o5m file with a damaged start"),
        _ if is_text() => Some("text"),
        _ => None,
    })
}

/// Whether a file whose first bytes are `start` begins with the frame of a header blob. The BlobHeader of such a frame
/// has fewer than 256 bytes, and its first field is the type of the blob.
pub(crate) const fn begins_with_header_frame(start: &[u8]) -> bool {
    matches!(start, [0, 0, 0, _, b'\n', ..])
}

/// Guesses a binary format from `start`, the first bytes of a file. Knows only formats that this program cannot read.
/// Returns `None` if the bytes match no known format.
pub(crate) fn guess_binary_format(start: &[u8]) -> Option<&'static str> {
    Some(match start {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz data",
        [b'P', b'K', 3 | 5, ..] => "a zip archive",
        [b'7', b'z', 0xbc, 0xaf, ..] => "a 7z archive",
        [0x89, b'P', b'N', b'G', ..] => "a PNG picture",
        [0xff, 0xd8, 0xff, ..] => "a JPEG picture",
        [b'%', b'P', b'D', b'F', ..] => "a PDF document",
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => "an SQLite database",
        [b'P', b'A', b'R', b'1', ..] => "a Parquet file",
        [0x7f, b'E', b'L', b'F', ..] => "a program",
        _ if start.get(257..262) == Some(b"ustar") => "a tar archive",
        _ => return None,
    })
}

/// Returns the size in bytes of the header frame that begins with the bytes in `frame`.
fn header_frame_len(frame: &[u8]) -> FormatResult<usize> {
    let (header, rest) = BlobHeader::read(frame)?;
    if header.kind != BlobKind::Header {
        return Err(FormatError::new("the first blob is not an OSMHeader"));
    }
    Ok(frame.len() - rest.len() + header.blob_len as usize)
}

/// Returns the HeaderBlock message of the header blob in `frame`.
fn header_payload(frame: &[u8]) -> FormatResult<Vec<u8>> {
    let (_, blob) = BlobHeader::read(frame)?;
    let blob = Blob::parse(blob)?;
    let mut decompressor = Decompressor::default();
    Ok(decompressor.payload(&blob)?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pbf_file_is_known_by_the_frame_of_its_header() {
        for start in [&b"\0\0\0\x0d\x0a\x09OSMHeader"[..], b"\0\0\0\xff\x0a"] {
            assert!(begins_with_header_frame(start), "{start:?}");
        }
        for start in [
            &b""[..],
            b"\0\0\0\x0d",
            b"\0\0\0<\0",
            b"\0\0\x01\x0d\x0a\x09OSMHeader",
            b"\x0a\x09OSMHeader",
        ] {
            assert!(!begins_with_header_frame(start), "{start:?}");
        }
    }
}
