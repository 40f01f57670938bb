//! The sink of every command: chunks in order, a table of contents at the end.

use super::EncodedFrame;
use super::backends::{Backend, Buffered, Chunked, Destination, Pool, Ring};
use super::output::{OpenOutput, Output, OutputTarget};
use crate::error::{Error, Result};
use crate::osm::OrderKey;
use crate::pbf::{
    BlobEntry, BlobFlags, BlobKind, Compression, Compressor, HeaderBlock, Toc, TocFlags,
    encode_blob_header, encode_blob_index, feature, header_frame_with_toc, plain_header_len,
    reserved_header_len, reserved_header_len_alike,
};
use crate::read::Input;
use crate::stats::Stats;
use crate::sys;
use crate::{Context, IoMode, Observer, human_bytes, system};
use serde::Serialize;
use std::fs::File;
use std::sync::Arc;

/// How a file is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Compression of blobs that are made anew.
    pub compression: Compression,
    /// Whether the file gets a table of contents. A stream never does.
    pub toc: bool,
    /// Whether every blob gets an index in its BlobHeader, for programs that know it.
    pub blob_index: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            compression: Compression::default(),
            toc: true,
            blob_index: false,
        }
    }
}

/// What is known of an output before its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expected {
    /// Data blobs: room for so many is kept for the table of contents.
    pub blobs: u64,
    /// About how many bytes; 0 where that is not known.
    pub bytes: u64,
    /// Of them, those that are copied from inputs as they are, so that the output is no shorter.
    pub copied: u64,
    /// Where in its input the first blob stands that is copied.
    pub first_copy: Option<u64>,
    /// Whether `blobs` is but a limit that is perhaps by far not reached.
    pub open: bool,
    /// Whether that limit is near enough, so that little needs to be held back to learn more.
    pub is_near: bool,
    /// How many more outputs are written at the same time: each takes less memory then.
    pub others: usize,
}

impl Expected {
    /// Where everything is one range of an input that starts at `offset`.
    pub const fn copy_of(blobs: u64, offset: u64, bytes: u64) -> Self {
        Self {
            blobs,
            bytes,
            copied: bytes,
            first_copy: Some(offset),
            open: false,
            is_near: false,
            others: 0,
        }
    }

    /// What this output may take of a buffer of so many bytes.
    fn share_of(&self, bytes: u64) -> u64 {
        bytes / (self.others as u64 + 1).min(MOST_SHARES)
    }

    /// How many bytes are held back. Where the limit is near that does not depend on other outputs, and so the
    /// output does not.
    fn most_held(&self) -> u64 {
        match self.is_near {
            true => MOST_HELD / MOST_SHARES,
            false => self.share_of(MOST_HELD),
        }
    }

    /// This, and then `more`.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self {
            blobs: self.blobs.saturating_add(more.blobs),
            bytes: self.bytes.saturating_add(more.bytes),
            copied: self.copied.saturating_add(more.copied),
            first_copy: if self.bytes == 0 {
                more.first_copy
            } else {
                self.first_copy
            },
            open: self.open || more.open,
            is_near: self.is_near || more.is_near,
            others: self.others.max(more.others),
        }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Written {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Data blobs.
    pub blobs: u64,
    /// Objects.
    pub objects: u64,
    /// Whether all objects are known to stand in canonical order.
    pub sorted: bool,
    /// Whether the file has a table of contents.
    pub indexed: bool,
}

/// A range of an input that waits to be copied, because the next one may adjoin it.
#[derive(Debug)]
struct PendingCopy<'f> {
    input: &'f Input,
    offset: u64,
    len: u64,
}

/// Most bytes that wait to be copied: more would only delay the disk.
const MAX_PENDING_COPY: u64 = 16 << 20;
/// Bytes that wait in memory for the room that the header needs to be known, where it is not.
const MOST_HELD: u64 = 4 << 20;
/// Bytes gathered before they are written.
const BUFFER_LEN: u64 = 1 << 20;
/// Into how many parts such a buffer is cut where many outputs are written at the same time.
const MOST_SHARES: u64 = 8;
/// Bytes from which on the header is padded so that they can share blocks with the input.
const LEAST_ALIGNED: u64 = 1 << 20;
/// Outputs from this length on are written by several threads, where nothing else was asked for.
const LEAST_PARALLEL: u64 = 256 << 20;

/// A chunk that waits for the header.
#[derive(Debug)]
enum EarlyChunk<'f> {
    Frame(EncodedFrame),
    Copy(&'f Input, BlobEntry),
}

impl EarlyChunk<'_> {
    const fn entry(&self) -> &BlobEntry {
        match self {
            Self::Frame(frame) => &frame.entry,
            Self::Copy(_, entry) => entry,
        }
    }
}

/// Refuses to begin what cannot end for want of space.
fn check_space(output: &Output, file: &File, expected: &Expected, ctx: &Context) -> Result<()> {
    // A copy that shares blocks takes no space.
    if system::shares_blocks(file) {
        return Ok(());
    }
    let Some(free) = output.free_space() else {
        return Ok(());
    };
    let message = |needed: u64| {
        format!(
            "the output takes about {}, and {} are free on its file system",
            human_bytes(needed),
            human_bytes(free)
        )
    };
    if free < expected.copied {
        return Err(Error::file(output.path(), message(expected.copied)));
    }
    if free < expected.bytes {
        ctx.warn(format!(
            "{}: this may fail: {}",
            output.path().display(),
            message(expected.bytes)
        ));
    }
    Ok(())
}

/// The backend that was asked for, or the nearest that the system can do.
fn backend(
    output: &Output,
    file: File,
    is_stream: bool,
    expected: &Expected,
    ctx: &Context,
) -> Result<Box<dyn Backend>> {
    let path = output.path();
    if !is_stream && expected.copied > 0 && !system::shares_blocks(&file) {
        match sys::reserve(&file, expected.copied) {
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                return Err(Error::io(path, "cannot reserve space", error));
            }
            // A file system that cannot reserve.
            _ => {}
        }
    }
    let mode = match ctx.io {
        _ if is_stream => IoMode::Buffered,
        IoMode::Auto | IoMode::Parallel if expected.others > 0 => IoMode::Buffered,
        IoMode::Auto if expected.bytes >= LEAST_PARALLEL => IoMode::Parallel,
        IoMode::Auto => IoMode::Buffered,
        asked => asked,
    };
    let direct = match mode {
        IoMode::Direct => output.direct_file(ctx),
        _ => None,
    };
    let destination = Destination::new(path.to_owned(), file, !is_stream, expected.bytes, ctx);
    if matches!(mode, IoMode::Auto | IoMode::Buffered) {
        let buffer_len = expected.share_of(BUFFER_LEN) as usize;
        return Ok(Box::new(Buffered::new(destination, buffer_len)));
    }
    let destination = Arc::new(destination);
    if mode == IoMode::IoUring {
        match Ring::start(&destination) {
            Ok(ring) => return Ok(Box::new(Chunked::new(destination, ring))),
            Err(reason) => ctx.warn(format!("{reason}: writing with threads instead")),
        }
    }
    let pool = Pool::start(destination.clone(), direct)?;
    Ok(Box::new(Chunked::new(destination, pool)))
}

/// Writes a PBF file from frames and ranges of input files, in order.
pub struct PbfWriter<'f> {
    output: Output,
    backend: Box<dyn Backend>,
    options: WriteOptions,
    header: HeaderBlock,
    /// Length of the header frame; what the table has to fit into.
    header_len: usize,
    is_stream: bool,
    entries: Vec<BlobEntry>,
    position: u64,
    written: Written,
    order: OrderSoFar,
    pending: Option<PendingCopy<'f>>,
    /// The first chunks, while the header's room is not decided.
    held: Option<Vec<EarlyChunk<'f>>>,
    expected: Expected,
    observer: Arc<dyn Observer>,
    stats: Arc<Stats>,
}

impl std::fmt::Debug for PbfWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PbfWriter")
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

/// What is known of the order of everything written so far.
#[derive(Debug, Clone, Copy, Default)]
struct OrderSoFar {
    last: Option<OrderKey>,
    broken: bool,
    unknown: bool,
}

impl OrderSoFar {
    fn add(&mut self, entry: &BlobEntry) {
        let scanned = entry.flags.has(BlobFlags::SCANNED);
        let first = entry.first_key();
        let unsorted = scanned && !entry.flags.has(BlobFlags::SORTED);
        self.broken |= unsorted || (first.is_some() && first < self.last);
        // Versions of one object may go on in the next blob: ranges do not tell their order.
        self.unknown |= !scanned || (first.is_some() && first == self.last);
        self.last = entry.last_key().max(self.last);
    }

    /// Whether all objects stand in order; `None` where an index did not tell.
    const fn verdict(self) -> Option<bool> {
        match (self.broken, self.unknown) {
            (true, _) => Some(false),
            (false, true) => None,
            (false, false) => Some(true),
        }
    }
}

impl<'f> PbfWriter<'f> {
    /// Begins a file. Fails where there is too little space for what is expected.
    pub fn create(
        target: OutputTarget,
        header: HeaderBlock,
        options: WriteOptions,
        expected: Expected,
        ctx: &Context,
    ) -> Result<Self> {
        Self::begun(OpenOutput::open(target)?, header, options, expected, ctx)
    }

    /// As [`create`](Self::create), to an output that was begun before.
    pub(crate) fn begun(
        output: OpenOutput,
        header: HeaderBlock,
        options: WriteOptions,
        expected: Expected,
        ctx: &Context,
    ) -> Result<Self> {
        let OpenOutput {
            output,
            file,
            is_stream,
        } = output;
        if !is_stream {
            check_space(&output, &file, &expected, ctx)?;
        }
        let backend = backend(&output, file, is_stream, &expected, ctx)?;
        let mut writer = Self {
            output,
            backend,
            options,
            header,
            header_len: 0,
            is_stream,
            entries: Vec::new(),
            position: 0,
            written: Written::default(),
            order: OrderSoFar::default(),
            pending: None,
            held: Some(Vec::new()),
            expected,
            observer: ctx.observer.clone(),
            stats: ctx.stats.clone(),
        };
        if !expected.open || is_stream || !options.toc {
            writer.begin(expected.blobs)?;
        }
        Ok(writer)
    }

    /// Writes the header of a stream, or keeps room for that of a file with `blobs` blobs, and what was
    /// held until then.
    fn begin(&mut self, blobs: u64) -> Result<()> {
        let held = self.held.take().unwrap_or_default();
        let start = if self.is_stream {
            self.stream_header()?
        } else {
            let blobs = if self.options.toc { blobs } else { 0 };
            // Padding for the sake of shared blocks pays where there are some.
            let alike = self
                .expected
                .first_copy
                .filter(|_| self.expected.bytes >= LEAST_ALIGNED);
            vec![
                0;
                match alike {
                    Some(offset) => reserved_header_len_alike(&self.header, blobs, offset),
                    None => reserved_header_len(&self.header, blobs),
                }
            ]
        };
        self.backend.write(&start)?;
        self.header_len = start.len();
        self.position = start.len() as u64;
        held.into_iter().try_for_each(|held| match held {
            EarlyChunk::Frame(frame) => self.frame(&frame),
            EarlyChunk::Copy(input, entry) => self.copy(input, &entry),
        })
    }

    fn stream_header(&mut self) -> Result<Vec<u8>> {
        // It is written before it is known which blocks are made anew: those have dense nodes.
        self.header.set_required(feature::DENSE_NODES, true);
        let (mut frame, mut message) = (Vec::new(), Vec::new());
        self.header.encode(&mut message);
        Compressor::new(Compression::Zlib(6))
            .frame(BlobKind::Header, None, &message, &mut frame)
            .map_err(|error| Error::file(self.output.path(), error.to_string()))?;
        Ok(frame)
    }

    /// Keeps a chunk back: the header's room is not decided yet.
    fn hold(&mut self, chunk: EarlyChunk<'f>) -> Result<()> {
        let held = self.held.get_or_insert_default();
        held.push(chunk);
        let bytes = held.iter().map(|held| u64::from(held.entry().frame_len));
        if bytes.sum::<u64>() > self.expected.most_held() {
            self.begin(self.expected.blobs)?;
        }
        Ok(())
    }

    /// Appends a frame that was made anew.
    pub fn frame(&mut self, frame: &EncodedFrame) -> Result<()> {
        if self.held.is_some() {
            return self.hold(EarlyChunk::Frame(frame.clone()));
        }
        self.flush_copies()?;
        self.backend.write(&frame.bytes)?;
        self.stats.blobs_rewritten.add(1);
        self.take_entry(frame.entry, frame.entry.header_len, frame.entry.frame_len);
        Ok(())
    }

    /// Appends a blob of an input as it is. Only its BlobHeader is written anew, where it is not
    /// what the options ask for.
    pub fn copy(&mut self, input: &'f Input, entry: &BlobEntry) -> Result<()> {
        if self.held.is_some() {
            return self.hold(EarlyChunk::Copy(input, *entry));
        }
        self.stats.blobs_copied.add(u64::from(entry.blobs));
        let blob_len = entry.frame_len - entry.header_len.min(entry.frame_len);
        // Several blobs under one entry are copied as they stand: their headers are not known.
        let keep = entry.blobs > 1
            || (!self.options.blob_index && entry.header_len == plain_header_len(blob_len));
        if keep {
            self.copy_range(input, entry.offset, u64::from(entry.frame_len))?;
            self.take_entry(*entry, entry.header_len, entry.frame_len);
            return Ok(());
        }
        let index = if self.options.blob_index {
            encode_blob_index(entry)
        } else {
            None
        };
        let mut header = Vec::with_capacity(96);
        let index = index.as_ref().map(<[u8; _]>::as_slice);
        encode_blob_header(&mut header, BlobKind::Data, index, blob_len);
        self.flush_copies()?;
        self.backend.write(&header)?;
        let body = entry.offset + u64::from(entry.header_len);
        self.copy_range(input, body, u64::from(blob_len))?;
        self.take_entry(*entry, header.len() as u32, header.len() as u32 + blob_len);
        Ok(())
    }

    fn copy_range(&mut self, input: &'f Input, offset: u64, len: u64) -> Result<()> {
        if let Some(pending) = &mut self.pending {
            let adjoins = pending.offset + pending.len == offset;
            if pending.input.is(input) && adjoins && pending.len < MAX_PENDING_COPY {
                pending.len += len;
                return Ok(());
            }
        }
        self.flush_copies()?;
        self.pending = Some(PendingCopy { input, offset, len });
        Ok(())
    }

    fn flush_copies(&mut self) -> Result<()> {
        match self.pending.take() {
            Some(copy) => self.backend.copy(copy.input, copy.offset, copy.len),
            None => Ok(()),
        }
    }

    fn take_entry(&mut self, mut entry: BlobEntry, header_len: u32, frame_len: u32) {
        entry.offset = self.position;
        entry.header_len = header_len;
        entry.frame_len = frame_len;
        self.position += u64::from(frame_len);
        self.order.add(&entry);
        self.written.blobs += u64::from(entry.blobs);
        self.written.objects += u64::from(entry.count);
        self.entries.push(entry);
    }

    /// Declares a feature that readers have to know.
    pub(crate) fn require(&mut self, feature: &str) {
        self.header.set_required(feature, true);
    }

    /// Ends the file: patches the header with the table of contents, makes everything durable,
    /// and lets the file take its name.
    pub fn finish(mut self) -> Result<Written> {
        if let Some(held) = &self.held {
            let blobs = held.iter().map(|held| u64::from(held.entry().blobs));
            self.begin(blobs.sum())?;
        }
        self.flush_copies()?;
        self.settle_features();
        self.written.bytes = self.position;
        self.written.sorted = self.order.verdict() == Some(true);
        let start = if self.is_stream {
            Vec::new()
        } else {
            self.header_frame()?
        };
        self.backend.finish(&start, self.position)?;
        drop(self.backend);
        self.output.commit()?;
        Ok(self.written)
    }

    /// Declares what the blobs turned out to be, and nothing else.
    fn settle_features(&mut self) {
        if let Some(sorted) = self.order.verdict() {
            self.header.set_optional(feature::SORTED, sorted);
        }
        self.header.set_required(feature::SCHEMA, true);
        let any = |flag| self.entries.iter().any(|entry| entry.flags.has(flag));
        let (dense, deleted) = (any(BlobFlags::DENSE), any(BlobFlags::DELETED));
        let located = any(BlobFlags::LOCATIONS);
        // What a blob is known to hold is declared; a declaration is taken back only where
        // everything is known of every blob.
        let all_known = self
            .entries
            .iter()
            .all(|entry| entry.flags.has(BlobFlags::SCANNED));
        if dense || all_known {
            self.header.set_required(feature::DENSE_NODES, dense);
        }
        if deleted {
            self.header.set_required(feature::HISTORY, true);
        }
        if located {
            self.header.set_optional(feature::LOCATIONS, true);
        }
    }

    fn header_frame(&mut self) -> Result<Vec<u8>> {
        let toc = self.options.toc.then(|| Toc {
            file_len: self.position,
            flags: TocFlags {
                sorted: self.written.sorted,
                history: self.header.has(feature::HISTORY),
                locations: self.header.has(feature::LOCATIONS),
            },
            entries: std::mem::take(&mut self.entries),
        });
        let (frame, has_table) = header_frame_with_toc(&self.header, toc, self.header_len)
            .map_err(|error| Error::file(self.output.path(), error.to_string()))?;
        self.written.indexed = has_table;
        if self.options.toc && !has_table {
            self.observer.warn(&format!(
                "{}: too many blobs of several kinds for a table of contents: the file has none",
                self.output.path().display()
            ));
        }
        Ok(frame)
    }
}
