//! Joins small blocks into full blocks, and encodes full blocks on every core, before a [`PbfWriter`] writes them.

use super::output_chunk::{OutputChunk, OutputChunkReader};
use super::text_sink::TextEncoders;
use crate::error::{Error, Result};
use crate::file::{BlobLocations, PbfWriter, WriteOptions};
use crate::io::Input;
use crate::pbf::{
    BlobEntry, EncodedBlock, EncodedFrame, FrameEncoder, TARGET_ELEMENTS, TARGET_PAYLOAD,
    clean_block,
};
use crate::runtime::{Context, JobQueue};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of chunks that wait in the queues of all outputs together. A chunk waits until it and all earlier
/// chunks of its output are encoded.
const MAX_WAITING: usize = 64;
/// The minimum number of chunks that may wait in the queue of an output, however small its share of [`MAX_WAITING`] is.
const MIN_WAITING: usize = 4;

/// A small block, and the range of its objects that belong to one full block. The other objects of the small block
/// belong to the previous or the next full block.
type BlockSlice = (Arc<EncodedBlock>, Range<usize>);

/// The objects to encode, and the channel for the encoded frames.
struct EncodingJob {
    source: JobSource,
    done: Sender<Result<Vec<EncodedFrame>>>,
}

/// The objects that an encoder thread encodes.
enum JobSource {
    /// A full block.
    Slices(Vec<BlockSlice>),
    /// A chunk whose objects are re-encoded in another form, for example without metadata.
    Chunk(OutputChunk),
    /// A blob to recompress. The job returns no frames if the blob already has the right compression.
    Compressed(Input, BlobEntry),
}

/// A chunk in the queue of an output. The chunk itself or an earlier chunk of the queue is not encoded yet.
enum Waiting {
    Copy(Input, BlobEntry),
    Frames(Vec<EncodedFrame>),
    Encoded(Receiver<Result<Vec<EncodedFrame>>>),
    /// A blob, and the channel for its recompressed frames. If there are no frames, the blob is copied.
    Compressed(Input, BlobEntry, Receiver<Result<Vec<EncodedFrame>>>),
}

impl Waiting {
    /// Whether the chunk can be written without waiting for a thread.
    fn is_ready(&self) -> bool {
        match self {
            Self::Copy(..) | Self::Frames(_) => true,
            Self::Encoded(frames) | Self::Compressed(.., frames) => !frames.is_empty(),
        }
    }
}

/// A [`PbfWriter`] that also accepts small blocks. Consecutive small blocks of one kind are joined into a full block. A
/// thread of [`Encoders`] encodes the full block while the caller continues. The boundaries between full blocks depend
/// only on the sequence of calls, not on timing.
pub(crate) struct BlockPacker {
    writer: PbfWriter,
    encoders: Rc<Encoders>,
    max_waiting: usize,
    /// The objects that have been collected for the next full block.
    slices: Vec<BlockSlice>,
    /// The number of objects in `slices`.
    count: usize,
    /// The estimated size in bytes of the objects in `slices`.
    bytes: usize,
    waiting: VecDeque<Waiting>,
}

impl BlockPacker {
    /// Creates a packer for one of `outputs` outputs that are written at the same time and share `encoders`.
    pub(crate) fn new(writer: PbfWriter, encoders: &Rc<Encoders>, outputs: usize) -> Self {
        Self {
            writer,
            encoders: encoders.clone(),
            max_waiting: (MAX_WAITING / outputs.max(1)).max(MIN_WAITING),
            slices: Vec::new(),
            count: 0,
            bytes: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Whether objects are written in a form that differs from the input. In this case, no blob is copied.
    pub(crate) fn changes_objects(&self) -> bool {
        self.encoders.options.changes_objects()
    }

    /// Whether blobs are recompressed instead of copied.
    pub(crate) fn recompresses(&self) -> bool {
        self.encoders.options.recompress
    }

    /// Queues a chunk whose objects an encoder thread encodes in another form.
    fn queue_reencoding(&mut self, chunk: OutputChunk) -> Result<()> {
        self.end_block()?;
        let frames = self.encoders.start_encoding(JobSource::Chunk(chunk))?;
        self.queue_chunk(Waiting::Encoded(frames))
    }

    /// Appends a blob of an input. The blob is copied, unless objects are written in another form or blobs are
    /// recompressed.
    pub(crate) fn copy(&mut self, input: &Input, entry: BlobEntry) -> Result<()> {
        if self.changes_objects() {
            return self.queue_reencoding(OutputChunk::Blob(input.clone(), entry));
        }
        self.end_block()?;
        if self.recompresses() {
            let job = JobSource::Compressed(input.clone(), entry);
            let frames = self.encoders.start_encoding(job)?;
            return self.queue_chunk(Waiting::Compressed(input.clone(), entry, frames));
        }
        if self.waiting.is_empty() {
            return self.writer.copy(input, &entry);
        }
        self.queue_chunk(Waiting::Copy(input.clone(), entry))
    }

    /// Appends encoded blobs.
    pub(crate) fn add_frames(&mut self, frames: Vec<EncodedFrame>) -> Result<()> {
        if self.changes_objects() {
            return self.queue_reencoding(OutputChunk::Frames(frames));
        }
        self.end_block()?;
        self.queue_chunk(Waiting::Frames(frames))
    }

    /// Appends the objects of a block, which may be small.
    pub(crate) fn add_block(&mut self, block: EncodedBlock) -> Result<()> {
        let other_kind = |(slice, _): &BlockSlice| slice.kind != block.kind;
        if self.slices.first().is_some_and(other_kind) {
            self.end_block()?;
        }
        let block = Arc::new(block);
        let mut start = 0;
        while start < block.count {
            let end = block.count.min(start + (self.encoders.most - self.count));
            self.slices.push((block.clone(), start..end));
            self.count += end - start;
            self.bytes += block.payload.len() * (end - start) / block.count.max(1);
            start = end;
            if self.count >= self.encoders.most || self.bytes >= TARGET_PAYLOAD {
                self.end_block()?;
            }
        }
        Ok(())
    }

    /// Ends the current block, even if it is not full, and hands it to an encoder thread.
    pub(crate) fn end_block(&mut self) -> Result<()> {
        let slices = std::mem::take(&mut self.slices);
        (self.count, self.bytes) = (0, 0);
        if slices.is_empty() {
            return Ok(());
        }
        let frames = self.encoders.start_encoding(JobSource::Slices(slices))?;
        self.queue_chunk(Waiting::Encoded(frames))
    }

    /// Queues a chunk. Then writes the encoded chunks at the front of the queue. While the queue is full, also waits
    /// for its first chunk and writes it.
    fn queue_chunk(&mut self, chunk: Waiting) -> Result<()> {
        self.waiting.push_back(chunk);
        while let Some(chunk) = self.waiting.pop_front() {
            if self.waiting.len() < self.max_waiting && !chunk.is_ready() {
                self.waiting.push_front(chunk);
                break;
            }
            self.write(chunk)?;
        }
        Ok(())
    }

    /// Writes a chunk to the output. Waits for the frames of the chunk if a thread still encodes them.
    fn write(&mut self, chunk: Waiting) -> Result<()> {
        let frames = match chunk {
            Waiting::Copy(input, entry) => return self.writer.copy(&input, &entry),
            Waiting::Frames(frames) => frames,
            Waiting::Encoded(frames) => frames.recv().map_err(|_| stopped_error())??,
            Waiting::Compressed(input, entry, frames) => {
                let frames = frames.recv().map_err(|_| stopped_error())??;
                if frames.is_empty() {
                    return self.writer.copy(&input, &entry);
                }
                frames
            }
        };
        frames
            .into_iter()
            .try_for_each(|frame| self.writer.frame(frame))
    }

    /// Writes all chunks and returns the writer, so that the caller can complete the file.
    pub(crate) fn finish(mut self) -> Result<PbfWriter> {
        self.end_block()?;
        while let Some(chunk) = self.waiting.pop_front() {
            self.write(chunk)?;
        }
        Ok(self.writer)
    }
}

fn stopped_error() -> Error {
    Error::internal("an encoder thread stopped")
}

/// Threads that encode full blocks, for one output or for several. The threads are started when the first block is
/// encoded.
pub(crate) struct Encoders {
    ctx: Context,
    options: WriteOptions,
    /// The number of objects in a full block.
    most: usize,
    queue: OnceCell<JobQueue<EncodingJob>>,
    /// The threads that encode text outputs.
    pub(crate) text: Rc<TextEncoders>,
}

impl Encoders {
    pub(crate) fn new(options: WriteOptions, ctx: &Context) -> Rc<Self> {
        Self::with_max_objects(TARGET_ELEMENTS, options, ctx)
    }

    /// Creates encoders for which a block is full when it has `most` objects.
    pub(crate) fn with_max_objects(most: usize, options: WriteOptions, ctx: &Context) -> Rc<Self> {
        Rc::new(Self {
            ctx: ctx.clone(),
            options,
            most: most.max(1),
            queue: OnceCell::new(),
            text: TextEncoders::new(ctx),
        })
    }

    /// Hands objects to an encoder thread. Returns the channel for their frames.
    fn start_encoding(&self, source: JobSource) -> Result<Receiver<Result<Vec<EncodedFrame>>>> {
        if self.queue.get().is_none() {
            let (most, options, ctx) = (self.most, self.options, self.ctx.clone());
            let work = move |jobs: &Receiver<EncodingJob>| encode_jobs(jobs, most, options, &ctx);
            let _ = self.queue.set(JobQueue::start(
                "encode",
                self.ctx.jobs,
                self.ctx.jobs,
                work,
            )?);
        }
        let (done, frames) = bounded(1);
        let queue = self.queue.get().ok_or_else(stopped_error)?;
        queue.send(EncodingJob { source, done })?;
        Ok(frames)
    }
}

fn encode_jobs(jobs: &Receiver<EncodingJob>, most: usize, options: WriteOptions, ctx: &Context) {
    let mut worker = EncodeWorker::new(most, options, ctx);
    for job in jobs {
        let encoded = catch_unwind(AssertUnwindSafe(|| {
            ctx.cancellation.check()?;
            worker.encode(&job.source)
        }));
        let frames = encoded.unwrap_or_else(|_| Err(stopped_error()));
        // Sending fails only if the command has failed and dropped the receiver. Nobody waits for the frames then.
        let _ = job.done.send(frames);
    }
}

/// The state of a thread that encodes blocks.
struct EncodeWorker {
    encoder: FrameEncoder,
    parts: OutputChunkReader,
    options: WriteOptions,
    cleaned: Vec<u8>,
}

impl EncodeWorker {
    fn new(most: usize, options: WriteOptions, ctx: &Context) -> Self {
        let mut encoder = FrameEncoder::new(options.compression, options.blob_index);
        encoder.set_max_objects(most);
        if options.way_locations == BlobLocations::Drop {
            encoder.drop_locations();
        }
        if !options.dense_nodes {
            encoder.write_plain_nodes();
        }
        Self {
            encoder,
            parts: OutputChunkReader::new(ctx),
            options,
            cleaned: Vec::new(),
        }
    }

    /// Encodes the objects of a job.
    fn encode(&mut self, source: &JobSource) -> Result<Vec<EncodedFrame>> {
        let (encoder, without) = (&mut self.encoder, self.options.without);
        let mut add = |payload: &[u8], range: Range<usize>| {
            let payload = if without.is_empty() {
                payload
            } else {
                self.cleaned.clear();
                clean_block(payload, without, &mut self.cleaned)?;
                &self.cleaned
            };
            encoder.add_objects(payload, range)
        };
        match source {
            JobSource::Slices(slices) => match slices.as_slice() {
                [(block, range)]
                    if range.len() == block.count && !self.options.changes_objects() =>
                {
                    encoder
                        .add_payload(&block.payload)
                        .map_err(Error::internal)?;
                }
                slices => {
                    let mut slices = slices.iter();
                    let added =
                        slices.try_for_each(|(block, range)| add(&block.payload, range.clone()));
                    added.map_err(Error::internal)?;
                }
            },
            JobSource::Chunk(chunk) => self
                .parts
                .for_each_payload(chunk, |payload| add(payload, 0..usize::MAX))?,
            JobSource::Compressed(input, entry) => {
                let stored = self.parts.decoder_of(input).read(entry)?;
                if (self.options.compression).may_differ_from(stored.blob.encoding) {
                    let added = encoder.add_payload_with_entry(stored.payload()?, entry);
                    added.map_err(Error::internal)?;
                }
            }
        }
        self.encoder.finish().map_err(Error::internal)
    }
}
