//! `repack`: the same objects in the same order, in blocks of another size.
//!
//! Blobs that are as they should be are copied.

use crate::engine::{BlockPacker, Encoders, HeaderOptions, input};
use crate::error::{FormatError, Result};
use crate::file::{BlobPlan, BlobReader, PbfFile, PbfWriter, PlanNeeds, WriteOptions, Written};
use crate::io::{OutputTarget, SizeHint};
use crate::osm::ObjectKind;
use crate::pbf::{
    BlobEntry, BlobFlags, BlockBuilder, EncodedBlock, EncodedFrame, FrameEncoder, HeaderBlock,
    ParsedBlock, SourceStrings,
};
use crate::runtime::{Context, parallel_classify_phase};
use serde::Serialize;
use std::path::PathBuf;

/// What to repack, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Input file.
    pub input: PathBuf,
    /// Where the result goes.
    pub output: OutputTarget,
    /// How it is written.
    pub write: WriteOptions,
    /// What its header says.
    pub header: HeaderOptions,
    /// Objects in a blob; fewer where they take more than 4 MB.
    pub elements: usize,
}

/// What `repack` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// The file that was written.
    pub written: Written,
    /// Blobs that were copied as they were.
    pub blobs_copied: u64,
    /// Blobs that stayed what they were and are compressed otherwise.
    pub blobs_recompressed: u64,
    /// Blobs that were taken apart or joined.
    pub blobs_repacked: u64,
}

/// Repacks.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(1);
    let file = input::open_to_copy(&options.input, &options.write, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Order, ctx)?;
    let mut header = file.header.clone();
    options.header.apply(&mut header);
    let items = items(plan, options.elements);
    let mut sink = sink(options, header, ctx)?;
    let mut summary = Summary::default();
    let bytes = |entry: &BlobEntry| u64::from(entry.frame_len);
    let phase = ctx.phase("repack", items.iter().map(|(entry, _)| bytes(entry)).sum());
    parallel_classify_phase(
        ctx.jobs,
        ctx.byte_budget(),
        items.into_iter().map(Ok),
        |(entry, place)| match place {
            Position::Fits if !options.write.is_compression_asked => 0,
            Position::Fits | Position::Behind(_) => bytes(entry) * 4,
        },
        || Worker::new(&file, options, ctx),
        |worker, (entry, place)| Ok((entry, worker.repack(&entry, place)?)),
        |(entry, done)| {
            phase.advance(bytes(&entry));
            match done {
                Done::Copy => {
                    summary.blobs_copied += 1;
                    sink.copy(&file.input, entry)
                }
                Done::Recompressed(frames) => {
                    summary.blobs_recompressed += 1;
                    sink.frames(frames)
                }
                Done::Repacked(parts) => {
                    summary.blobs_repacked += 1;
                    parts.into_iter().try_for_each(|part| sink.block(part))
                }
            }
        },
    )?;
    drop(phase);
    summary.written = sink.finish()?.finish()?;
    Ok(summary)
}

/// The result of repacking a blob.
enum Done {
    Copy,
    Recompressed(Vec<EncodedFrame>),
    Repacked(Vec<EncodedBlock>),
}

/// Looks at blobs, one after the other.
struct Worker<'f> {
    options: &'f Options,
    reader: BlobReader<'f>,
    encoder: FrameEncoder,
}

impl<'f> Worker<'f> {
    fn new(file: &'f PbfFile, options: &'f Options, ctx: &Context) -> Self {
        Self {
            options,
            reader: BlobReader::new(&file.input, ctx),
            encoder: FrameEncoder::new(options.write.compression, options.write.blob_index),
        }
    }

    fn repack(&mut self, entry: &BlobEntry, place: Position) -> Result<Done> {
        let write = &self.options.write;
        match place {
            Position::Fits if !write.is_compression_asked => Ok(Done::Copy),
            Position::Fits => {
                let differs = |encoding| write.compression.differs_from(encoding);
                let Some(payload) = self.reader.payload_if(entry, differs)? else {
                    return Ok(Done::Copy);
                };
                let frames = self.encoder.add_payload_like(payload, entry);
                let frames = frames.and_then(|()| self.encoder.finish());
                let frames = frames.map_err(|error| self.reader.error(entry, error))?;
                Ok(Done::Recompressed(frames))
            }
            Position::Behind(before) => {
                let parts = parts(self.reader.payload(entry)?, before, self.options.elements);
                let parts = parts.map_err(|error| self.reader.error(entry, error))?;
                Ok(Done::Repacked(parts))
            }
        }
    }
}

fn sink<'f>(options: &Options, header: HeaderBlock, ctx: &Context) -> Result<BlockPacker<'f>> {
    let target = options.output.clone();
    let write = WriteOptions {
        // Blobs that are copied have the compression that was asked for.
        is_compression_asked: false,
        ..options.write
    };
    let writer = PbfWriter::create(target, header, write, SizeHint::default(), ctx)?;
    Ok(BlockPacker::new(
        writer,
        &Encoders::of_blocks(options.elements, write, ctx),
        1,
    ))
}

/// Where the objects of a blob come to stand.
#[derive(Debug, Clone, Copy)]
enum Position {
    /// Where they stand: the blob is full, or nothing that could fill it follows, and it begins where a blob has to.
    Fits,
    /// In a blob that has so many objects already, and in those behind it; `None` where that is not known beforehand.
    Behind(Option<usize>),
}

fn items(plan: BlobPlan, elements: usize) -> Vec<(BlobEntry, Position)> {
    let mut items = Vec::with_capacity(plan.entries.len());
    // The kind of the last objects, and how many of them wait for their blob to be full, where that is known.
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
            items.push((entry, Position::Behind(None)));
            continue;
        };
        let before = pending
            .filter(|pending| pending.0 == kind)
            .map_or(Some(0), |pending| pending.1);
        let next = entries.peek().and_then(|next| next.kinds.first());
        let is_full = count == elements || (count < elements && next != Some(kind));
        let is_known = entry.flags.has(BlobFlags::HASHED);
        let place = match before == Some(0) && is_full && is_known {
            true => Position::Fits,
            false => Position::Behind(before),
        };
        pending = match place {
            Position::Fits => None,
            Position::Behind(before) => {
                Some((kind, before.map(|before| (before + count) % elements)))
            }
        };
        items.push((entry, place));
    }
    items
}

/// The objects of a block as blocks of one kind, cut where `before` objects and those that follow are full blocks.
fn parts(
    payload: &[u8],
    before: Option<usize>,
    elements: usize,
) -> Result<Vec<EncodedBlock>, FormatError> {
    let block = ParsedBlock::parse(payload)?;
    if let Some((kind, count)) = block.single_kind()
        && before.is_none_or(|before| before + count <= elements)
    {
        return Ok(vec![EncodedBlock {
            payload: payload.to_vec(),
            kind,
            count,
        }]);
    }
    let mut builder = BlockBuilder::default();
    builder.set_max_objects(elements);
    let mut strings = SourceStrings::new(&block.strings);
    let (mut objects, mut count) = (block.cursor(), 0);
    while let Some(object) = objects.next()? {
        builder.add_raw(&object, &block.units, &mut strings)?;
        count += 1;
        if before.is_some_and(|before| before + count == elements) {
            builder.end_block();
        }
    }
    builder.end_block();
    Ok(builder.take_blocks())
}
