//! Joins small blocks into full blocks and encodes these on every core, before a [`PbfWriter`] writes them.

use super::text_sink::TextEncoders;
use crate::error::{Error, FormatError, Result};
use crate::file::{PbfWriter, WriteOptions};
use crate::io::Input;
use crate::pbf::{
    BlobEntry, Block, EncodedBlock, EncodedFrame, FrameEncoder, SourceStrings, TARGET_ELEMENTS,
    TARGET_PAYLOAD,
};
use crate::runtime::{Context, JobQueue};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of chunks that wait for a block that is being encoded, in all outputs together.
const MAX_WAITING: usize = 64;
/// The number of chunks that may wait in an output even if its share of [`MAX_WAITING`] is smaller.
const MIN_WAITING: usize = 4;

/// A block, and the range of its objects that go into one full block: a small block is cut where the full block ends.
type BlockSlice = (Arc<EncodedBlock>, Range<usize>);

/// A full block to be encoded, and the channel for its frames.
struct Job {
    slices: Vec<BlockSlice>,
    done: Sender<Result<Vec<EncodedFrame>>>,
}

/// A chunk of the output that is not written yet, because it or a chunk before it is not encoded yet.
enum Waiting {
    Copy(Input, BlobEntry),
    Frames(Vec<EncodedFrame>),
    Encoded(Receiver<Result<Vec<EncodedFrame>>>),
}

/// A [`PbfWriter`] that also accepts small blocks. Consecutive small blocks of one kind are joined into a full block,
/// which a thread of [`Encoders`] encodes while the caller continues. The cuts between full blocks depend on the
/// sequence of calls alone, not on timing.
pub(crate) struct BlockPacker {
    writer: PbfWriter,
    encoders: Rc<Encoders>,
    max_waiting: usize,
    /// The objects of the next full block so far.
    slices: Vec<BlockSlice>,
    /// The number of objects in `slices`.
    count: usize,
    /// The estimated length of the payloads of `slices`, in bytes.
    bytes: usize,
    waiting: VecDeque<Waiting>,
}

impl BlockPacker {
    /// A packer for one of `outputs` outputs that are written at the same time and share `encoders`.
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

    /// Appends an unchanged blob of an input.
    pub(crate) fn copy(&mut self, input: &Input, entry: BlobEntry) -> Result<()> {
        self.end_block()?;
        if self.waiting.is_empty() {
            return self.writer.copy(input, &entry);
        }
        self.wait(Waiting::Copy(input.clone(), entry))
    }

    /// Appends encoded blobs.
    pub(crate) fn frames(&mut self, frames: Vec<EncodedFrame>) -> Result<()> {
        self.end_block()?;
        self.wait(Waiting::Frames(frames))
    }

    /// Appends the objects of a small block.
    pub(crate) fn block(&mut self, block: EncodedBlock) -> Result<()> {
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

    /// Ends the block that is being joined, even if it is not full, and hands it to an encoder thread.
    pub(crate) fn end_block(&mut self) -> Result<()> {
        let slices = std::mem::take(&mut self.slices);
        (self.count, self.bytes) = (0, 0);
        if slices.is_empty() {
            return Ok(());
        }
        let frames = self.encoders.encode(slices)?;
        self.wait(Waiting::Encoded(frames))
    }

    /// Queues a chunk, then writes the chunks at the head of the queue that are encoded. Waits for the first chunk if
    /// the queue is full.
    fn wait(&mut self, chunk: Waiting) -> Result<()> {
        self.waiting.push_back(chunk);
        while let Some(chunk) = self.waiting.pop_front() {
            match chunk {
                Waiting::Encoded(frames)
                    if self.waiting.len() < self.max_waiting && frames.is_empty() =>
                {
                    self.waiting.push_front(Waiting::Encoded(frames));
                    break;
                }
                chunk => self.write(chunk)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, chunk: Waiting) -> Result<()> {
        let frames = match chunk {
            Waiting::Copy(input, entry) => return self.writer.copy(&input, &entry),
            Waiting::Frames(frames) => frames,
            Waiting::Encoded(frames) => frames.recv().map_err(|_| stopped())??,
        };
        frames.iter().try_for_each(|frame| self.writer.frame(frame))
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

fn stopped() -> Error {
    Error::Internal("an encoder thread stopped".into())
}

/// Threads that encode full blocks, for one output or for several. They are started with the first block.
pub(crate) struct Encoders {
    threads: usize,
    options: WriteOptions,
    /// The number of objects in a full block.
    most: usize,
    queue: OnceCell<JobQueue<Job>>,
    /// The threads for outputs that are text.
    pub(crate) text: Rc<TextEncoders>,
}

impl Encoders {
    pub(crate) fn new(options: WriteOptions, ctx: &Context) -> Rc<Self> {
        Self::of_blocks(TARGET_ELEMENTS, options, ctx)
    }

    /// Encoders for which a block is full when it has `most` objects.
    pub(crate) fn of_blocks(most: usize, options: WriteOptions, ctx: &Context) -> Rc<Self> {
        Rc::new(Self {
            threads: ctx.jobs,
            options,
            most: most.max(1),
            queue: OnceCell::new(),
            text: TextEncoders::new(ctx),
        })
    }

    fn encode(&self, slices: Vec<BlockSlice>) -> Result<Receiver<Result<Vec<EncodedFrame>>>> {
        if self.queue.get().is_none() {
            let (most, options) = (self.most, self.options);
            let work = move |jobs: &Receiver<Job>| work(jobs, most, options);
            let _ = self
                .queue
                .set(JobQueue::start("encode", self.threads, work)?);
        }
        let (done, frames) = bounded(1);
        let queue = self.queue.get().ok_or_else(stopped)?;
        queue.send(Job { slices, done })?;
        Ok(frames)
    }
}

fn work(jobs: &Receiver<Job>, most: usize, options: WriteOptions) {
    let mut encoder = FrameEncoder::new(options.compression, options.blob_index);
    encoder.set_max_objects(most);
    for job in jobs {
        let encoded = catch_unwind(AssertUnwindSafe(|| encode(&mut encoder, &job.slices)));
        let frames = match encoded {
            Ok(encoded) => encoded.map_err(|error| Error::Internal(error.to_string())),
            Err(_) => Err(stopped()),
        };
        // The receiver is gone if the command has failed.
        let _ = job.done.send(frames);
    }
}

/// Encodes the objects of some slices as one full block.
fn encode(
    encoder: &mut FrameEncoder,
    slices: &[BlockSlice],
) -> Result<Vec<EncodedFrame>, FormatError> {
    if let [(block, range)] = slices
        && range.len() == block.count
    {
        encoder.add_payload(&block.payload)?;
        return encoder.finish();
    }
    for (block, range) in slices {
        let block = Block::parse(&block.payload)?;
        let mut strings = SourceStrings::new(&block.strings);
        let mut objects = block.cursor();
        for index in 0..range.end {
            if let Some(object) = objects.next()?
                && index >= range.start
            {
                encoder.add_raw(&object, &block.units, &mut strings)?;
            }
        }
    }
    encoder.finish()
}
