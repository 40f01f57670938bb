//! The backend that cuts the output into chunks at known offsets, which an executor writes in any order.

use super::Backend;
use super::destination::Destination;
use crate::error::Result;
use crate::io::input::Input;
use crate::system::Transfer;
use std::io::IoSlice;
use std::sync::Arc;

/// The maximum size of a chunk in bytes. No chunk crosses a multiple of this size in the output, so chunks are aligned
/// to the blocks of the disk.
pub(super) const CHUNK_LEN: usize = 1 << 20;
/// The maximum size of one kernel copy in bytes.
const COPY_LEN: u64 = 16 << 20;
/// The minimum size in bytes of a range that is copied within the kernel. A shorter range is read into a chunk.
const MIN_KERNEL_COPY: u64 = 256 << 10;

/// The minimum size in bytes of a buffer that becomes a segment of a chunk without a copy. A smaller buffer is copied.
const MIN_OWNED_LEN: usize = 16 << 10;

/// A part of a chunk: either bytes in memory, or a range of an input, given by its offset and its length in bytes.
pub(crate) enum ChunkSegment {
    Bytes(Vec<u8>),
    Range(Input, u64, usize),
}

impl ChunkSegment {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Range(_, _, len) => *len,
        }
    }
}

/// A part of the output of at most [`CHUNK_LEN`] bytes, composed of segments.
#[derive(Default)]
pub(crate) struct Chunk {
    /// Offset of the chunk in the output.
    pub offset: u64,
    pub segments: Vec<ChunkSegment>,
}

impl Chunk {
    pub(super) fn len(&self) -> usize {
        self.segments.iter().map(ChunkSegment::len).sum()
    }

    /// Returns the bytes of the segments; `None` if a segment is a range of an input.
    pub(super) fn slices(&self) -> Option<Vec<IoSlice<'_>>> {
        let slices = self.segments.iter().map(|segment| match segment {
            ChunkSegment::Bytes(bytes) => Some(IoSlice::new(bytes)),
            ChunkSegment::Range(..) => None,
        });
        slices.collect()
    }

    /// Copies the segments one after another into `buffer`, which must be as long as the chunk. Segments that are
    /// ranges of inputs are read into `buffer`.
    pub(super) fn fill(&self, buffer: &mut [u8]) -> Result<()> {
        let mut rest = buffer;
        for segment in &self.segments {
            let (part, after) = rest.split_at_mut(segment.len());
            match segment {
                ChunkSegment::Bytes(bytes) => part.copy_from_slice(bytes),
                ChunkSegment::Range(input, from, _) => input.read_all_at(part, *from)?,
            }
            rest = after;
        }
        Ok(())
    }
}

/// A unit of work of an executor.
pub(crate) enum WriteJob {
    Write(Chunk),
    /// A range of an input, to be copied by [`Destination::copy`].
    Copy(Input, Transfer),
}

/// An executor of jobs, which may run in any order.
pub(crate) trait Executor: Send {
    /// Whether long ranges of inputs are submitted as [`WriteJob::Copy`] rather than read into chunks.
    fn copies_in_kernel(&self) -> bool;
    /// Starts or queues a job. Blocks while too many jobs are in flight. Fails if an earlier job is known to have
    /// failed.
    fn submit(&mut self, job: WriteJob) -> Result<()>;
    /// Waits until all jobs are done. Fails if a job failed. No job may be submitted afterwards.
    fn wait(&mut self) -> Result<()>;
}

/// The backend that cuts the output into jobs at known offsets and submits them to an executor.
pub(crate) struct Chunked<E> {
    destination: Arc<Destination>,
    executor: E,
    /// The chunk that is being filled. Its offset is set when it is submitted.
    current: Chunk,
    /// The size of [`current`](Self::current) in bytes.
    current_len: usize,
    /// The offset of the next byte in the output.
    position: u64,
}

impl<E: Executor> Chunked<E> {
    pub(crate) fn new(destination: Arc<Destination>, executor: E) -> Self {
        Self {
            destination,
            executor,
            current: Chunk::default(),
            current_len: 0,
            position: 0,
        }
    }

    /// Returns the number of bytes up to the next chunk boundary.
    fn room(&self) -> usize {
        CHUNK_LEN - (self.position % CHUNK_LEN as u64) as usize
    }

    /// Counts `len` bytes that were appended to the current chunk, and ends the chunk if it has reached a chunk
    /// boundary.
    fn advance(&mut self, len: usize) -> Result<()> {
        self.position += len as u64;
        self.current_len += len;
        if self.position.is_multiple_of(CHUNK_LEN as u64) {
            self.end_chunk()?;
        }
        Ok(())
    }

    /// Appends bytes that fit into the current chunk.
    fn push(&mut self, bytes: Vec<u8>) -> Result<()> {
        let len = bytes.len();
        self.current.segments.push(ChunkSegment::Bytes(bytes));
        self.advance(len)
    }

    /// Submits the current chunk, unless it is empty.
    fn end_chunk(&mut self) -> Result<()> {
        let mut chunk = std::mem::take(&mut self.current);
        let len = std::mem::take(&mut self.current_len);
        if len == 0 {
            return Ok(());
        }
        chunk.offset = self.position - len as u64;
        self.executor.submit(WriteJob::Write(chunk))
    }

    /// Submits kernel copies of at most [`COPY_LEN`] bytes, so that several can run at the same time.
    fn copy_in_kernel(&mut self, input: &Input, mut left: Transfer) -> Result<()> {
        self.end_chunk()?;
        self.position += left.len;
        while left.len > 0 {
            // Copies end at multiples of `COPY_LEN` in the output, so that each copy can share blocks with the input.
            let to_boundary = COPY_LEN - left.to % COPY_LEN;
            let (part, rest) = left.split(left.len.min(to_boundary));
            self.executor.submit(WriteJob::Copy(input.clone(), part))?;
            left = rest;
        }
        Ok(())
    }

    /// Appends a range of an input to the chunks as segments, which the executor reads.
    fn read_into_chunks(&mut self, input: &Input, mut left: Transfer) -> Result<()> {
        while left.len > 0 {
            let len = usize::try_from(left.len)
                .unwrap_or(CHUNK_LEN)
                .min(self.room());
            let segment = ChunkSegment::Range(input.clone(), left.from, len);
            self.current.segments.push(segment);
            self.advance(len)?;
            left = left.skip(len as u64);
        }
        Ok(())
    }
}

impl<E: Executor> Backend for Chunked<E> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.destination
            .stats()
            .bytes_written
            .add(bytes.len() as u64);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(self.room()));
            match self.current.segments.last_mut() {
                // A buffer without room is not extended, because that would copy it. Buffers from `write_owned` are
                // usually full.
                Some(ChunkSegment::Bytes(gathered))
                    if gathered.capacity() - gathered.len() >= part.len() =>
                {
                    gathered.extend_from_slice(part);
                }
                _ => {
                    // A chunk to which only `write` appends has a single segment, so its first buffer gets the size of
                    // the whole chunk.
                    let len = if self.current.segments.is_empty() {
                        self.room()
                    } else {
                        self.room().min(MIN_OWNED_LEN.max(part.len()))
                    };
                    let mut gathered = Vec::with_capacity(len);
                    gathered.extend_from_slice(part);
                    self.current.segments.push(ChunkSegment::Bytes(gathered));
                }
            }
            self.advance(part.len())?;
            rest = behind;
        }
        Ok(())
    }

    fn write_owned(&mut self, mut bytes: Vec<u8>) -> Result<()> {
        if bytes.len() < MIN_OWNED_LEN {
            return self.write(&bytes);
        }
        self.destination
            .stats()
            .bytes_written
            .add(bytes.len() as u64);
        while bytes.len() > self.room() {
            let behind = bytes.split_off(self.room());
            self.push(bytes)?;
            bytes = behind;
        }
        self.push(bytes)
    }

    fn copy(&mut self, input: &Input, offset: u64, len: u64) -> Result<()> {
        self.destination.stats().bytes_copied.add(len);
        let whole = Transfer {
            from: offset,
            to: self.position,
            len,
        };
        if self.executor.copies_in_kernel() {
            return if len < MIN_KERNEL_COPY {
                self.read_into_chunks(input, whole)
            } else {
                self.copy_in_kernel(input, whole)
            };
        }
        let (head, tail) = self.destination.clone_middle(input, whole);
        self.read_into_chunks(input, head)?;
        if head.len < len {
            self.end_chunk()?;
            self.position = tail.to;
        }
        self.read_into_chunks(input, tail)
    }

    fn shared_block_len(&self, input: &Input) -> Option<u64> {
        self.destination.shared_block_len(input)
    }

    fn finish(&mut self, start: &[u8], len: u64) -> Result<()> {
        self.end_chunk()?;
        self.executor.wait()?;
        self.destination.set_start_and_len(start, len)
    }
}
