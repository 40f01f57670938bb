//! `repack`: writes the same objects in blobs of another size or compression, or in another layout.
//!
//! Unless the layout is spatial, blobs of the requested size and compression are copied.

mod id_table;
mod relation_boxes;
mod spatial;

use crate::engine::sink::{BlobOutcome, Sink};
use crate::engine::{Encoders, OutputOptions, input, repeats};
use crate::error::{FormatResult, Result};
use crate::file::{BlobDecoder, BlobPass, BlobPlan, PlanNeeds, WriteOptions, Written};
use crate::io::{OpenOutput, SizeHint};
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, BlobFlags, Block, BlockBuilder, EncodedBlock, FrameEncoder, HeaderBlock,
    SourceStrings, TARGET_ELEMENTS,
};
use crate::runtime::{Context, WorkItem};
use serde::Serialize;
use std::path::PathBuf;

options! {
    /// The options of `repack`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
    }
    /// A full blob has 8,000 objects, and the order does not change.
    new(input: impl Into<PathBuf>, output: OutputOptions);
    setters {
        /// The number of objects in a full blob, at least 1. A new blob ends early if its objects reach 4 MiB
        /// uncompressed.
        objects_per_blob: usize = TARGET_ELEMENTS,
        /// The order of the objects of each kind.
        layout: Layout,
    }
}

/// The order of the objects of each kind in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// The order of the input.
    #[default]
    Unchanged,
    /// The order of a Hilbert curve. Queries for a place then read few blobs.
    Hilbert,
}

/// The result of `repack`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size of the output, and the numbers of its blobs and objects.
    pub written: Written,
    /// The number of blobs that were copied unchanged.
    pub blobs_copied: u64,
    /// The number of blobs with unchanged content that were recompressed.
    pub blobs_recompressed: u64,
    /// The number of blobs of the input that were divided, or joined with neighbouring blobs.
    pub blobs_repacked: u64,
}

/// Writes the same objects in the same order, in blobs of [`Options::objects_per_blob`] objects.
///
/// Reads one file, which may be unsorted or a history file, and writes one file. A blob is copied if it has the
/// requested compression, and if its objects form exactly one blob of the output.
///
/// With [`Layout::Hilbert`], writes the objects of each kind along a Hilbert curve instead. The input must be in order,
/// without history, and its ways must store the locations of their nodes. If the header does not declare which nodes
/// the file has, or if a blob has ways without locations, a temporary file is written first. Its ways have all known
/// locations. Blobs of ways have a quarter of [`Options::objects_per_blob`] objects, blobs of relations a sixty-fourth.
/// The table of contents has the boxes of all blobs, and a table of ids lists the blob of each object.
///
/// # Memory
///
/// The [base memory](crate::commands#memory). With [`Layout::Hilbert`], also 128 MB, 48 MB per job, 12 bytes for each
/// blob, and 18 bytes for each node and way that is a member of a relation. Objects and their ids are sorted in unnamed
/// files beside the output, which need about 1.25 times the space of the input.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - With [`Layout::Hilbert`], the input is a history file, is not in order, or has ways without locations, or the
///   options of a PBF output change the form of objects (no metadata, or nodes that are not dense).
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    if options.layout == Layout::Hilbert {
        return spatial::write(options, ctx);
    }
    ctx.expect_phases(1);
    let file = input::open_to_copy(&options.input, &options.output.encoding(), ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Order, ctx)?;
    repeats::warn_of_repeated_objects(&file, &plan, ctx)?;
    let mut header = file.header.clone();
    options.output.header.apply(&mut header);
    let recompresses = options.output.write.is_compression_explicit;
    let items = repack_items(plan, options.objects_per_blob, recompresses);
    let mut sink = open_sink(options, header, ctx)?;
    let mut summary = Summary::default();
    BlobPass::new("repack", &file.input, ctx).run(
        items,
        || RepackWorker::new(options),
        |reader, worker, item| {
            let outcome = worker.repack(reader, &item)?;
            Ok((item.position, outcome))
        },
        |(position, outcome)| {
            match (&outcome, position) {
                (BlobOutcome::Drop | BlobOutcome::Copy(_), _) => summary.blobs_copied += 1,
                (_, OutputPosition::Fits) => summary.blobs_recompressed += 1,
                (_, OutputPosition::After(_)) => summary.blobs_repacked += 1,
            }
            sink.add(&file.input, outcome)
        },
    )?;
    summary.written = sink.finish()?.written;
    Ok(summary)
}

/// A blob of the input, and the position of its objects in the blobs of the output.
struct RepackItem {
    entry: BlobEntry,
    position: OutputPosition,
    /// Whether the blob is read. A blob at [`OutputPosition::Fits`] is read only if its compression may have to change.
    is_read: bool,
}

impl WorkItem for RepackItem {
    fn input_bytes(&self) -> u64 {
        u64::from(self.entry.frame_len)
    }

    fn held_bytes(&self) -> u64 {
        if self.is_read {
            self.input_bytes() * 4
        } else {
            0
        }
    }
}

/// The options and the encoder of a worker.
struct RepackWorker<'o> {
    options: &'o Options,
    encoder: FrameEncoder,
}

impl<'o> RepackWorker<'o> {
    fn new(options: &'o Options) -> Self {
        Self {
            options,
            encoder: FrameEncoder::new(
                options.output.encoding().compression,
                options.output.encoding().blob_index,
            ),
        }
    }

    /// Copies, recompresses or divides a blob, as its position in the output requires.
    fn repack(&mut self, reader: &mut BlobDecoder, item: &RepackItem) -> Result<BlobOutcome> {
        let (write, entry) = (&self.options.output.encoding(), &item.entry);
        match item.position {
            OutputPosition::Fits if !item.is_read => Ok(BlobOutcome::Copy(*entry)),
            OutputPosition::Fits => {
                let stored = reader.read(entry)?;
                if !write.compression.may_differ_from(stored.blob.encoding) {
                    return Ok(BlobOutcome::Copy(*entry));
                }
                let payload = stored.payload()?;
                let checked = write.check_strings(payload);
                let added =
                    checked.and_then(|()| self.encoder.add_payload_with_entry(payload, entry));
                let frames = added.and_then(|()| self.encoder.finish());
                let frames = frames.map_err(|error| reader.error(entry, error))?;
                Ok(BlobOutcome::Frames(frames))
            }
            OutputPosition::After(before) => {
                let most = self.options.objects_per_blob;
                let cut = |payload: &[u8]| {
                    write.check_strings(payload)?;
                    divide_block(payload, before, most)
                };
                reader.decode(entry, cut).map(BlobOutcome::Blocks)
            }
        }
    }
}

/// Opens the output.
fn open_sink(options: &Options, header: HeaderBlock, ctx: &Context) -> Result<Sink> {
    let write = WriteOptions {
        // Blobs are copied only if they have the requested compression, so the sink need neither recompress them nor
        // warn of their compression.
        is_compression_explicit: false,
        recompress: false,
        ..options.output.write
    };
    let output = OpenOutput::open(options.output.target.clone(), ctx)?;
    let encoders = Encoders::with_max_objects(options.objects_per_blob, write, ctx);
    let (format, size_hint) = (options.output.format.clone(), SizeHint::default());
    Sink::begin_in_output(output, format, write, header, size_hint, &encoders, ctx)
}

/// The position of a blob's objects in the blobs of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputPosition {
    /// The objects form exactly one blob of the output. That blob is full, or no further object of the same kind
    /// follows it directly.
    Fits,
    /// The objects are written to new blobs. The value is the number of objects that the first of these blobs has
    /// already; `None` if this number is not known in advance.
    After(Option<usize>),
}

/// Determines the position of each blob's objects in the blobs of the output.
fn repack_items(plan: BlobPlan, objects_per_blob: usize, recompresses: bool) -> Vec<RepackItem> {
    let mut items = Vec::with_capacity(plan.entries.len());
    // The kind of the objects in the unfinished output blob and, if known, their number. `None` if no output blob is
    // unfinished.
    let mut pending: Option<(ObjectKind, Option<usize>)> = None;
    let mut entries = plan
        .entries
        .into_iter()
        .filter(|entry| entry.count > 0)
        .peekable();
    while let Some(entry) = entries.next() {
        let count = entry.count as usize;
        let Some(kind) = entry.kinds.single() else {
            pending = entry.kinds.last().map(|kind| (kind, None));
            items.push(RepackItem {
                entry,
                position: OutputPosition::After(None),
                is_read: true,
            });
            continue;
        };
        let before = pending
            .filter(|pending| pending.0 == kind)
            .map_or(Some(0), |pending| pending.1);
        let next = entries.peek().and_then(|next| next.kinds.first());
        let is_full = count == objects_per_blob || (count < objects_per_blob && next != Some(kind));
        let is_known = entry.flags.has(BlobFlags::HASHED);
        let position = if before == Some(0) && is_full && is_known {
            OutputPosition::Fits
        } else {
            OutputPosition::After(before)
        };
        pending = match position {
            OutputPosition::Fits => None,
            OutputPosition::After(before) => Some((
                kind,
                before.map(|before| (before + count) % objects_per_blob),
            )),
        };
        items.push(RepackItem {
            entry,
            position,
            is_read: recompresses || position != OutputPosition::Fits,
        });
    }
    items
}

/// Divides a block into blocks of one kind with up to `objects_per_blob` objects. `before` is the number of objects
/// that the unfinished blob of the output has already. The first block has at most `objects_per_blob - before` objects,
/// so that it completes this blob. Returns a block of one kind unchanged if it fits into the unfinished blob, or if
/// `before` is `None`.
fn divide_block(
    payload: &[u8],
    before: Option<usize>,
    objects_per_blob: usize,
) -> FormatResult<Vec<EncodedBlock>> {
    let block = Block::parse(payload)?;
    if let Some((kind, count)) = block.single_kind_and_count()
        && before.is_none_or(|before| before + count <= objects_per_blob)
    {
        return Ok(vec![EncodedBlock {
            payload: payload.to_vec(),
            kind,
            count,
        }]);
    }
    let mut builder = BlockBuilder::default();
    builder.set_max_objects(objects_per_blob);
    let mut strings = SourceStrings::new(&block.strings);
    let (mut objects, mut count) = (block.cursor(), 0);
    while let Some(object) = objects.next()? {
        builder.add_raw(object, &block.units, &mut strings)?;
        count += 1;
        if before.is_some_and(|before| before + count == objects_per_blob) {
            builder.end_block();
        }
    }
    builder.end_block();
    Ok(builder.take_blocks())
}
