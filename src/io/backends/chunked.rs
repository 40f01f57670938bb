//! The output cut into chunks whose places are known, to be written in any order.

use super::Backend;
use super::destination::Destination;
use crate::error::Result;
use crate::io::input::Input;
use crate::io::system::Transfer;
use std::sync::Arc;

/// Length of a chunk. Chunks end at multiples of it, so that they lie on the blocks of a disk.
pub(super) const CHUNK_LEN: usize = 1 << 20;
/// Most bytes of one copy that is handed over.
const COPY_LEN: u64 = 16 << 20;
/// Ranges shorter than this become part of a chunk.
const LEAST_COPY: u64 = 256 << 10;

/// Where the bytes of a chunk come from.
pub(crate) enum Segment {
    Bytes(Vec<u8>),
    Range(Input, u64, usize),
}

impl Segment {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Range(_, _, len) => *len,
        }
    }
}

/// A part of the output, at most [`CHUNK_LEN`] long.
#[derive(Default)]
pub(crate) struct Chunk {
    pub offset: u64,
    pub pieces: Vec<Segment>,
}

impl Chunk {
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(Segment::len).sum()
    }

    /// Puts the pieces side by side; `buffer` is as long as the chunk.
    pub(super) fn fill(&self, buffer: &mut [u8]) -> Result<()> {
        let mut rest = buffer;
        for piece in &self.pieces {
            let (place, behind) = rest.split_at_mut(piece.len().min(rest.len()));
            match piece {
                Segment::Bytes(bytes) => place.copy_from_slice(bytes),
                Segment::Range(input, from, _) => input.read_all_at(place, *from)?,
            }
            rest = behind;
        }
        Ok(())
    }
}

/// What an executor does.
pub(crate) enum Job {
    Write(Chunk),
    /// A copy within the kernel, or by reading and writing where that cannot be.
    Copy(Input, Transfer),
}

/// Carries out jobs in any order.
pub(crate) trait Executor: Send {
    /// Whether ranges of inputs are copied within the kernel rather than read into chunks.
    fn copies_in_kernel(&self) -> bool;
    /// Takes a job; waits where too much is in flight. Fails where an earlier job has failed.
    fn submit(&mut self, job: Job) -> Result<()>;
    /// Waits for all jobs.
    fn wait(&mut self) -> Result<()>;
}

/// Assigns offsets and hands chunks to an executor.
pub(crate) struct Chunked<E> {
    destination: Arc<Destination>,
    executor: E,
    current: Chunk,
    current_len: usize,
    /// Where the next byte goes.
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

    /// Bytes until the next boundary of chunks.
    fn room(&self) -> usize {
        CHUNK_LEN - (self.position % CHUNK_LEN as u64) as usize
    }

    fn advance(&mut self, len: usize) -> Result<()> {
        self.position += len as u64;
        self.current_len += len;
        if self.position.is_multiple_of(CHUNK_LEN as u64) {
            self.end_chunk()?;
        }
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<()> {
        let mut chunk = std::mem::take(&mut self.current);
        let len = std::mem::take(&mut self.current_len);
        if len == 0 {
            return Ok(());
        }
        chunk.offset = self.position - len as u64;
        self.executor.submit(Job::Write(chunk))
    }

    /// Copies without reading: in parts of some length, so that several can be under way.
    fn copy_in_kernel(&mut self, input: &Input, mut left: Transfer) -> Result<()> {
        self.end_chunk()?;
        self.position += left.len;
        while left.len > 0 {
            // Parts end on blocks, so that each can share them.
            let to_boundary = COPY_LEN - left.to % COPY_LEN;
            let (part, rest) = left.split(left.len.min(to_boundary));
            self.executor.submit(Job::Copy(input.clone(), part))?;
            left = rest;
        }
        Ok(())
    }

    fn read_into_chunks(&mut self, input: &Input, mut left: Transfer) -> Result<()> {
        while left.len > 0 {
            let len = usize::try_from(left.len)
                .unwrap_or(CHUNK_LEN)
                .min(self.room());
            let piece = Segment::Range(input.clone(), left.from, len);
            self.current.pieces.push(piece);
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
            match self.current.pieces.last_mut() {
                Some(Segment::Bytes(gathered)) => gathered.extend_from_slice(part),
                _ => {
                    // Most chunks are of one piece.
                    let len = match self.current.pieces.is_empty() {
                        true => self.room(),
                        false => part.len(),
                    };
                    let mut gathered = Vec::with_capacity(len);
                    gathered.extend_from_slice(part);
                    self.current.pieces.push(Segment::Bytes(gathered));
                }
            }
            self.advance(part.len())?;
            rest = behind;
        }
        Ok(())
    }

    fn copy(&mut self, input: &Input, offset: u64, len: u64) -> Result<()> {
        self.destination.stats().bytes_copied.add(len);
        let whole = Transfer {
            from: offset,
            to: self.position,
            len,
        };
        if self.executor.copies_in_kernel() {
            return if len < LEAST_COPY {
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

    fn finish(&mut self, start: &[u8], len: u64) -> Result<()> {
        self.end_chunk()?;
        self.executor.wait()?;
        self.destination.end(start, len)
    }
}
