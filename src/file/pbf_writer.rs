//! Writes PBF files. Encoded frames and copied blobs are written in order, followed by a table of contents.

mod tables;

use super::blob_decoder::BlobDecoder;
use super::id_table_parts::{IdTableParts, max_section_blobs};
use super::last_blobs::{LastBlobs, OutputBlob};
use super::object_order::OrderSoFar;
use super::write_options::{BlobHistory, BlobLocations, WriteOptions};
use crate::error::{Advice, Error, FormatError, Result};
use crate::io::{
    Backend, Input, OpenOutput, Output, OutputTarget, SizeHint, check_space, open_backend,
};
use crate::osm::{Bbox, KindSet, ObjectKind};
use crate::pbf::{
    BlobEntry, BlobFlags, BlobKind, EncodedFrame, FrameEncoder, HeaderBlock, TableHost,
    encode_blob_header, encode_blob_index, feature, header_frame, max_table_len, plain_header_len,
    reserved_header_len, stream_header_frame,
};
use crate::runtime::{Context, Pass};
use serde::Serialize;

/// Properties of a file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Written {
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The number of data blobs.
    pub blobs: u64,
    /// The number of data blobs that were copied unchanged from an input.
    pub blobs_copied: u64,
    /// The number of objects; `None` if it is unknown for some copied blob.
    pub objects: Option<u64>,
    /// Whether all objects are known to be in canonical order.
    pub sorted: bool,
    /// Whether the file has a table of contents.
    pub indexed: bool,
}

/// A frame that is not written yet.
#[derive(Debug)]
struct HeldFrame {
    frame: EncodedFrame,
    /// The index of the frame's entry in the entries of the writer.
    index: usize,
}

/// A range of an input that is not copied yet. If the next range adjoins it, both can be copied together.
#[derive(Debug)]
struct PendingCopy {
    input: Input,
    offset: u64,
    len: u64,
}

/// The size in bytes at which a pending copy is no longer extended. A larger size would delay writing to the disk.
const MAX_PENDING_COPY: u64 = 16 << 20;
/// The minimum size in bytes of a copy for which the frame before it is padded. The padding lets the copy share file
/// system blocks with the input. The bytes of a shorter copy are written instead.
const MIN_SHARED_LEN: u64 = 256 << 10;
/// The minimum estimated size in bytes of an output whose header is padded. The padding lets copied blobs share file
/// system blocks with the input.
const MIN_ALIGNED_LEN: u64 = 1 << 20;

/// Writes a PBF file. The caller appends encoded frames and blobs of input files, in file order.
pub struct PbfWriter {
    output: Output,
    backend: Box<dyn Backend>,
    options: WriteOptions,
    header: HeaderBlock,
    /// The size in bytes of the header frame, which is overwritten at the end.
    header_len: usize,
    is_stream: bool,
    entries: Vec<BlobEntry>,
    position: u64,
    written: Written,
    order: OrderSoFar,
    /// The last frame, if it is not written yet. It is padded if a long copy follows. `pending` comes after this frame.
    held: Option<HeldFrame>,
    pending: Option<PendingCopy>,
    /// The copied blobs that still have to be verified.
    unverified: Vec<(Input, BlobEntry)>,
    /// The table of ids that is being written.
    id_parts: Option<IdTableParts>,
    /// An upper bound on the size in bytes of a table of ids for the blobs that have been appended so far.
    max_id_table_len: u64,
    has_id_table: bool,
    /// The blobs that are held back, because they may get parts of a table. There are none if the output gets no table
    /// of contents.
    last: LastBlobs,
    /// The box around the locations in ways; empty unless the header gets the box of the data.
    way_box: Bbox,
    ctx: Context,
}

impl std::fmt::Debug for PbfWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PbfWriter")
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

impl PbfWriter {
    /// Creates a file that begins with `header`, with default options. Frames must be appended in file order.
    ///
    /// # Errors
    ///
    /// The file exists, or cannot be created.
    pub fn new(target: OutputTarget, header: HeaderBlock, ctx: &Context) -> Result<Self> {
        let (options, size_hint) = (WriteOptions::default(), SizeHint::default());
        Self::create(target, header, options, size_hint, ctx)
    }

    /// Creates a file. Fails if the [`copied`](SizeHint::copied) bytes of `size_hint` exceed the free space of the file
    /// system. A file system in which files can share blocks is not checked.
    pub fn create(
        target: OutputTarget,
        header: HeaderBlock,
        options: WriteOptions,
        size_hint: SizeHint,
        ctx: &Context,
    ) -> Result<Self> {
        Self::with_output(
            OpenOutput::open(target, ctx)?,
            header,
            options,
            size_hint,
            ctx,
        )
    }

    /// Begins a file like [`create`](Self::create), but in an output that is already open.
    pub(crate) fn with_output(
        output: OpenOutput,
        header: HeaderBlock,
        options: WriteOptions,
        size_hint: SizeHint,
        ctx: &Context,
    ) -> Result<Self> {
        let OpenOutput {
            output,
            file,
            is_stream,
            ..
        } = output;
        if is_stream && options.box_of_data {
            let cause = "the box of the data is known when all data is written, which is too late for a stream";
            return Err(Error::file(output.path(), cause));
        }
        if !is_stream {
            check_space(&output, &file, &size_hint, ctx)?;
        }
        let backend = open_backend(&output, file, is_stream, &size_hint, ctx)?;
        let mut writer = Self {
            output,
            backend,
            options,
            header,
            header_len: 0,
            is_stream,
            entries: Vec::new(),
            position: 0,
            written: Written {
                objects: Some(0),
                ..Written::default()
            },
            order: OrderSoFar::default(),
            held: None,
            pending: None,
            unverified: Vec::new(),
            id_parts: None,
            max_id_table_len: 0,
            has_id_table: false,
            last: LastBlobs::default(),
            way_box: Bbox::EMPTY,
            ctx: ctx.clone(),
        };
        writer.begin_file(&size_hint)?;
        Ok(writer)
    }

    /// Writes the header of a stream, or reserves space for the header of a file.
    fn begin_file(&mut self, size_hint: &SizeHint) -> Result<()> {
        // Nearly all files have dense nodes, and some readers expect this feature even in a file without nodes.
        self.header.set_required(feature::SCHEMA, true);
        self.header
            .set_required(feature::DENSE_NODES, self.options.dense_nodes);
        match self.options.history {
            BlobHistory::Keep => {}
            BlobHistory::Declare => self.header.set_required(feature::HISTORY, true),
            BlobHistory::Drop => self.header.set_required(feature::HISTORY, false),
        }
        if self.options.way_locations == BlobLocations::Drop {
            self.header.declare_locations(None);
        }
        let lens = self.header.check_limits();
        lens.map_err(|error| self.output_error(&error.within("the header")))?;
        let start = if self.is_stream {
            let frame = stream_header_frame(&self.header, self.options.toc);
            frame.map_err(|error| self.output_error(&error))?
        } else {
            // Padding lets copied blobs share file system blocks with the input, which is worth the space only in large
            // outputs.
            let alike = size_hint
                .first_copy
                .filter(|_| size_hint.bytes >= MIN_ALIGNED_LEN);
            vec![0; reserved_header_len(&self.header, alike)]
        };
        self.backend.write(&start)?;
        self.header_len = start.len();
        self.position = start.len() as u64;
        Ok(())
    }

    fn output_error(&self, error: &FormatError) -> Error {
        Error::file(self.output.path(), error.to_string())
    }

    /// Appends a newly encoded frame.
    pub fn frame(&mut self, frame: EncodedFrame) -> Result<()> {
        self.append(OutputBlob::Frame(frame))
    }

    /// Appends a blob of an input. The blob is copied unchanged, with two exceptions. Its BlobHeader is re-encoded if
    /// the output needs an index in it, or if it has more than the required fields. Its objects are re-encoded if the
    /// blob also has a part of a table about the input, or if it is one of the last blobs of the output and gets a part
    /// of a table.
    pub fn copy(&mut self, input: &Input, entry: &BlobEntry) -> Result<()> {
        self.append(OutputBlob::Copy(input.clone(), *entry))
    }

    /// Appends a blob. Writes the blobs that do not have to be held back.
    fn append(&mut self, blob: OutputBlob) -> Result<()> {
        self.ctx.cancellation.check()?;
        if self.options.box_of_data && blob.entry().may_have_locations() {
            self.way_box = self.way_box.union(&blob.box_of_ways(&self.ctx)?);
        }
        if !self.options.toc {
            return self.write_blob(blob);
        }
        if self.options.has_spatial_layout {
            let entry = blob.entry();
            let len = |kind| max_table_len(kind, u64::from(entry.count));
            self.max_id_table_len += entry.kinds.first().map_or(0, len);
        }
        self.last.push(blob);
        while let Some(blob) = self.pop_writable() {
            self.write_blob(blob)?;
        }
        Ok(())
    }

    /// Removes and returns the first of the blobs that are held back. Returns `None` if the tables may need all of
    /// them.
    fn pop_writable(&mut self) -> Option<OutputBlob> {
        let hosts = self.toc_host_count();
        if !self.options.has_spatial_layout {
            return self.last.pop_front_if_left(hosts as u64);
        }
        // In a spatial layout, whole blobs get parts of the tables. One of the two additional blobs is for the
        // directory of the table of ids. The other one is needed if the table of contents gets one more part after this
        // blob is written.
        let hosts = hosts + max_section_blobs(self.max_id_table_len) + 2;
        (self.last.len() > hosts).then(|| self.last.pop_front())?
    }

    /// Returns the number of hosts for the table of contents. A host is a blob that has both objects and a part of a
    /// table.
    fn toc_host_count(&self) -> usize {
        // From this number of blobs on, the table has several kilobytes, and is stored in at least two hosts. The last
        // host gets no text of the table, so that the last blob of the file stays short.
        const FEW: usize = 100;
        // The number of entries that fit into a part of the table, at 150 bytes per entry.
        const ENTRIES: usize = 60_000;
        match self.entries.len() {
            0..FEW => 1,
            entries => 2 + entries / ENTRIES,
        }
    }

    fn write_blob(&mut self, blob: OutputBlob) -> Result<()> {
        match blob {
            OutputBlob::Frame(frame) => self.write_frame(frame),
            // The blob also has a part of a table about the input. This table does not apply to the output, so only the
            // objects are written.
            OutputBlob::Copy(_, entry) if entry.flags.has(BlobFlags::HAS_TABLE) => {
                let payload = blob.payload(&self.ctx)?;
                let mut encoder =
                    FrameEncoder::new(self.options.compression, self.options.blob_index);
                let encoded = encoder.add_payload(&payload);
                encoded.map_err(|error| self.output_error(&error))?;
                for mut frame in encoder.take_frames() {
                    if frame.entry.kinds != KindSet::of(ObjectKind::Node) {
                        frame.entry.bbox = entry.bbox;
                    }
                    self.write_frame(frame)?;
                }
                Ok(())
            }
            OutputBlob::Copy(input, entry) => self.write_copy(&input, &entry),
        }
    }

    fn write_frame(&mut self, frame: EncodedFrame) -> Result<()> {
        self.flush()?;
        self.ctx.stats.blobs_rewritten.add(1);
        let index = self.entries.len();
        self.place_entry(frame.entry, frame.entry.header_len, frame.entry.frame_len);
        self.held = Some(HeldFrame { frame, index });
        Ok(())
    }

    fn write_copy(&mut self, input: &Input, entry: &BlobEntry) -> Result<()> {
        self.ctx.stats.blobs_copied.add(1);
        self.written.blobs_copied += 1;
        // A blob that was decoded earlier in this run has already been compared with its entry.
        if self.options.verify && !entry.flags.has(BlobFlags::VERIFIED) {
            self.unverified.push((input.clone(), *entry));
        }
        let blob_len = entry.frame_len - entry.header_len.min(entry.frame_len);
        let keep = !self.options.blob_index && entry.header_len == plain_header_len(blob_len);
        if keep {
            self.copy_range(input, entry.offset, u64::from(entry.frame_len))?;
            self.place_entry(*entry, entry.header_len, entry.frame_len);
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
        self.flush()?;
        self.backend.write(&header)?;
        let body = entry.offset + u64::from(entry.header_len);
        self.copy_range(input, body, u64::from(blob_len))?;
        self.place_entry(*entry, header.len() as u32, header.len() as u32 + blob_len);
        Ok(())
    }

    /// Copies bytes of an input. Adds them to the pending copy if they adjoin it.
    fn copy_range(&mut self, input: &Input, offset: u64, len: u64) -> Result<()> {
        if let Some(pending) = &mut self.pending {
            let adjoins = pending.offset + pending.len == offset;
            if pending.input.is_same_file(input) && adjoins && pending.len < MAX_PENDING_COPY {
                pending.len += len;
                return Ok(());
            }
        }
        if self.pending.is_some() {
            self.flush()?;
        }
        self.pending = Some(PendingCopy {
            input: input.clone(),
            offset,
            len,
        });
        Ok(())
    }

    /// Passes the last frame and the pending copy to the backend.
    fn flush(&mut self) -> Result<()> {
        if let Some(held) = self.held.take() {
            match self.padded_frame(&held) {
                Some(frame) => {
                    self.shift_copies_after(held.index, &frame.entry);
                    self.backend.write_owned(frame.bytes)?;
                }
                None => self.backend.write_owned(held.frame.bytes)?,
            }
        }
        match self.pending.take() {
            Some(copy) => {
                copy.input.fetch(copy.offset, copy.len)?;
                self.backend.copy(&copy.input, copy.offset, copy.len)
            }
            None => Ok(()),
        }
    }

    /// Corrects the entries after a frame has been padded. The entry of the frame, which is at `index`, gets the
    /// lengths in `padded`. The entries of the copies after the frame are shifted.
    fn shift_copies_after(&mut self, index: usize, padded: &BlobEntry) {
        let frame = &mut self.entries[index];
        let by = u64::from(padded.frame_len - frame.frame_len);
        frame.frame_len = padded.frame_len;
        frame.header_len = padded.header_len;
        for copy in &mut self.entries[index + 1..] {
            copy.offset += by;
        }
        self.position += by;
    }

    /// Returns the frame with padding that makes the following copy share blocks with its input. Returns `None` if no
    /// long copy follows, if the copy shares blocks without padding, or if no padding helps.
    fn padded_frame(&self, held: &HeldFrame) -> Option<EncodedFrame> {
        let copy = self.pending.as_ref()?;
        if copy.len < MIN_SHARED_LEN {
            return None;
        }
        let block = self.backend.shared_block_len(&copy.input)?;
        let entry = &self.entries[held.index];
        let end = entry.offset + u64::from(entry.frame_len);
        let by = (copy.offset % block + block - end % block) % block;
        if by == 0 {
            return None;
        }
        // Not every small number is a possible length of padding. So padding that is longer by one block is tried, too.
        let lens = [by, by + block];
        lens.into_iter()
            .find_map(|by| held.frame.with_padding(by as usize))
    }

    /// Adds the entry of a frame at the current position, and moves the position to the end of the frame.
    fn place_entry(&mut self, mut entry: BlobEntry, header_len: u32, frame_len: u32) {
        entry.offset = self.position;
        entry.header_len = header_len;
        entry.frame_len = frame_len;
        self.position += u64::from(frame_len);
        self.add_entry(entry);
    }

    fn add_entry(&mut self, entry: BlobEntry) {
        self.order.add(&entry);
        self.written.blobs += 1;
        let count = entry.is_indexed().then_some(u64::from(entry.count));
        self.written.objects = self
            .written
            .objects
            .zip(count)
            .map(|(all, more)| all + more);
        self.entries.push(entry);
    }

    /// Declares in the header a feature that readers must support.
    pub(crate) fn require(&mut self, feature: &str) {
        self.header.set_required(feature, true);
    }

    /// Removes the declaration of an optional feature from the header.
    pub(crate) fn retract(&mut self, feature: &str) {
        self.header.set_optional(feature, false);
    }

    /// Completes the file. Verifies copied blobs if the options demand it, appends the table of contents, overwrites
    /// the header, flushes everything to disk, and gives the file its name.
    pub fn finish(mut self) -> Result<Written> {
        let hosts = self.write_last_blobs()?;
        self.verify_copies()?;
        self.declare_features();
        self.written.sorted = self.order.verdict() == Some(true);
        let (toc, summary) = if self.options.toc {
            self.write_toc(&hosts)?
        } else {
            (None, None)
        };
        self.written.indexed = self.options.toc;
        self.written.bytes = self.position;
        let start = if self.is_stream {
            Vec::new()
        } else {
            let frame = header_frame(&self.header, toc, summary.as_ref(), self.header_len);
            frame.map_err(|error| self.output_error(&error))?
        };
        self.backend.finish(&start, self.position)?;
        drop(self.backend);
        if self.options.is_compression_explicit && self.written.blobs_copied > 0 {
            let (path, copied) = (self.output.path().display(), self.written.blobs_copied);
            let message = format!(
                "{path}: {copied} of {} blobs were copied and keep the compression that they had",
                self.written.blobs
            );
            self.ctx.warn_with_advice(message, Advice::Recompress);
        }
        self.output.commit()?;
        Ok(self.written)
    }

    /// Puts the last objects into hosts for the table of contents, and returns the hosts. Writes the other objects that
    /// were held back.
    fn write_last_blobs(&mut self) -> Result<Vec<TableHost>> {
        let hosts = if !self.options.toc {
            Vec::new()
        } else if self.options.has_spatial_layout {
            self.take_last_blobs_as_hosts()?
        } else {
            self.last
                .take_hosts(self.toc_host_count(), &self.options, &self.ctx)?
        };
        while let Some(blob) = self.last.pop_front() {
            self.write_blob(blob)?;
        }
        self.flush()?;
        for host in &hosts {
            self.ctx.stats.blobs_rewritten.add(1);
            self.add_entry(host.entry);
        }
        Ok(hosts)
    }

    /// Decompresses the copied blobs on all cores and compares the blobs with their entries. If several blobs are
    /// damaged, returns the error of the one that comes first in the output.
    fn verify_copies(&mut self) -> Result<()> {
        let copies = std::mem::take(&mut self.unverified);
        let is_unhashed = |(_, entry): &&(Input, BlobEntry)| !entry.flags.has(BlobFlags::HASHED);
        let unhashed = copies.iter().filter(is_unhashed).count();
        if copies.is_empty() {
            return Ok(());
        }
        let copies = copies.into_iter().map(|(input, entry)| (entry, input));
        Pass::new("verify", &self.ctx).run(
            copies.collect(),
            || None,
            |reader: &mut Option<BlobDecoder>, (entry, input)| {
                let reader = reader.get_or_insert_with(|| BlobDecoder::new(&input, &self.ctx));
                reader.switch_to_input(&input);
                reader.payload(&entry).map(drop)
            },
            |()| Ok(()),
        )?;
        if unhashed > 0 {
            self.ctx.warn(format!(
                "{}: {unhashed} of the blobs that were copied have no content hash: they were decompressed, and \
                 compared with nothing",
                self.output.path().display()
            ));
        }
        Ok(())
    }

    /// Declares in the header the features that the blobs have. If the order of the objects is unknown, the header
    /// keeps its declaration of the order.
    fn declare_features(&mut self) {
        if let Some(sorted) = self.order.verdict() {
            self.header.set_optional(feature::SORTED, sorted);
        }
        if self.options.box_of_data {
            self.set_box_of_data();
        }
        let any = |flag| self.entries.iter().any(|entry| entry.flags.has(flag));
        if any(BlobFlags::DELETED) {
            self.header.set_required(feature::HISTORY, true);
        }
        if any(BlobFlags::LOCATIONS) {
            self.declare_locations();
        }
    }

    /// Declares that ways store locations, if no blob is known to have ways without locations. Otherwise removes this
    /// declaration, because other programs expect it to hold for all ways. In this case, also removes the declarations
    /// about the nodes of ways.
    fn declare_locations(&mut self) {
        let has_references = |entry: &BlobEntry| {
            let known = entry.statistics.as_ref();
            known.is_none_or(|known| known.references > 0)
        };
        let is_bare = |entry: &BlobEntry| {
            let (flags, has_ways) = (entry.flags, entry.kinds.contains(ObjectKind::Way));
            let is_plain = flags.has(BlobFlags::SCANNED) && !flags.has(BlobFlags::LOCATIONS);
            flags.has(BlobFlags::BARE_WAYS) || has_ways && is_plain && has_references(entry)
        };
        let is_declared = !self.entries.iter().any(is_bare);
        self.header.set_optional(feature::LOCATIONS, is_declared);
        if !is_declared {
            for promise in [feature::ALL_NODES, feature::NEEDED_NODES] {
                self.header.set_optional(promise, false);
            }
        }
    }

    /// Sets the bounding box in the header to the box around all nodes and around the locations in ways, whose nodes
    /// need not be in the file. If the box is unknown, the header gets none, and the user is warned.
    fn set_box_of_data(&mut self) {
        let holds_nodes = |entry: &&BlobEntry| entry.kinds.contains(ObjectKind::Node);
        let (mut unknown, mut around) = (0, self.way_box);
        for entry in self.entries.iter().filter(holds_nodes) {
            unknown += u64::from(!entry.flags.has(BlobFlags::SCANNED));
            around = around.union(&entry.bbox);
        }
        if unknown > 0 {
            let message = format!(
                "{}: the box of the data is not known, because {unknown} blobs were copied unread: the header has none",
                self.output.path().display()
            );
            self.ctx.warn_with_advice(message, Advice::ScanBlobs);
        }
        let is_known = unknown == 0 && !around.is_empty();
        self.header.set_bbox(is_known.then_some(around));
    }
}
