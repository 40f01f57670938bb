//! Runs: rows in the order of their keys and, for equal keys, of their prefixes ([`RowPrefix`]). They are compressed in
//! blocks, in memory or in a temporary file.

use super::batch::{RowPrefix, prefix_of};
use crate::error::{
    CANNOT_CREATE_TEMPORARY, CANNOT_WRITE_TEMPORARY, Error, FileResult, FormatError, FormatResult,
    Result,
};
use crate::pbf::wire::{put_varint, read_varint};
use crate::runtime::Cancellation;
use crate::system;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::path::Path;

/// The minimum number of bytes of rows in a block, except in the last block of a run.
const BLOCK_LEN: usize = 32 << 10;
/// The size in bytes of the uncompressed length, which is stored before a compressed block.
const SIZE_LEN: usize = size_of::<u32>();
/// The number of compressed bytes that are written to a file at once.
const WRITE_LEN: usize = 1 << 20;

/// Rows in the order of their keys and prefixes, compressed in blocks.
#[derive(Debug)]
pub(super) struct SortedRun {
    blocks: Vec<RunBlock>,
    bytes: RunBytes,
}

/// A block of a run.
#[derive(Debug)]
struct RunBlock {
    /// The keys of the rows, from the key of the first row up to and including the key of the last row.
    keys: Range<u64>,
    start: u64,
    len: u32,
}

#[derive(Debug)]
enum RunBytes {
    InMemory(Vec<u8>),
    InFile(File),
}

impl SortedRun {
    /// Returns the number of compressed bytes in memory.
    pub(super) const fn bytes_in_memory(&self) -> usize {
        match &self.bytes {
            RunBytes::InMemory(bytes) => bytes.len(),
            RunBytes::InFile(_) => 0,
        }
    }

    /// Returns the number of compressed bytes.
    pub(super) fn len(&self) -> u64 {
        self.blocks
            .last()
            .map_or(0, |last| last.start + u64::from(last.len))
    }

    /// Returns the number of blocks.
    pub(super) const fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Moves the bytes to an unnamed file.
    pub(super) fn move_to_file(&mut self, directory: &Path) -> Result<()> {
        if let RunBytes::InMemory(bytes) = &self.bytes {
            let file =
                tempfile::tempfile_in(directory).for_path(directory, CANNOT_CREATE_TEMPORARY)?;
            system::write(&file, bytes).for_path(directory, CANNOT_WRITE_TEMPORARY)?;
            self.bytes = RunBytes::InFile(file);
        }
        Ok(())
    }

    /// Calls `take` with each row whose key is in `keys`, until `take` returns [`ControlFlow::Break`]. The arguments of
    /// `take` are the index of the block, the key and the row. Blocks with an index below `from` are skipped.
    pub(super) fn for_each(
        &self,
        keys: &Range<u64>,
        from: usize,
        buffer: &mut BlockBuffer,
        directory: &Path,
        take: &mut impl FnMut(usize, u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let start = self
            .blocks
            .partition_point(|block| block.keys.end <= keys.start);
        let blocks = self.blocks.iter().enumerate().skip(start.max(from));
        for (index, block) in blocks.take_while(|(_, block)| block.keys.start < keys.end) {
            buffer.load(self, block, directory)?;
            while let Some((key, row)) = buffer.next()? {
                if keys.contains(&key) && take(index, key, row).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// A block that is being read.
#[derive(Debug, Default)]
pub(super) struct BlockBuffer {
    compressed: Vec<u8>,
    rows: Vec<u8>,
    at: usize,
    /// The key of the first row of the block.
    first: u64,
}

impl BlockBuffer {
    /// Reads and decompresses a block of a run.
    fn load(&mut self, run: &SortedRun, block: &RunBlock, directory: &Path) -> Result<()> {
        let bytes: &[u8] = match &run.bytes {
            RunBytes::InMemory(bytes) => {
                let start = block.start as usize;
                &bytes[start..start + block.len as usize]
            }
            RunBytes::InFile(file) => {
                self.compressed.resize(block.len as usize, 0);
                system::read_exact_at(file, &mut self.compressed, block.start)
                    .for_path(directory, "cannot read a temporary file in this directory")?;
                &self.compressed
            }
        };
        (self.at, self.first) = (0, block.keys.start);
        let broken = |error: lz4_flex::block::DecompressError| {
            Error::internal(format!("a temporary file: {error}"))
        };
        let (len, bytes) = lz4_flex::block::uncompressed_size(bytes).map_err(broken)?;
        self.rows.resize(len, 0);
        let written = lz4_flex::block::decompress_into(bytes, &mut self.rows).map_err(broken)?;
        self.rows.truncate(written);
        Ok(())
    }

    /// Returns the next row of the block and its key.
    fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        if self.at == self.rows.len() {
            return Ok(None);
        }
        let next = next_row(&self.rows, &mut self.at);
        let (key, row) =
            next.map_err(|error| Error::internal(format!("a temporary file: {error}")))?;
        Ok(Some((self.first + key, &self.rows[row])))
    }
}

/// Returns the key of the next row, relative to the key of the first row of the block, and the range of the row's
/// bytes.
fn next_row(rows: &[u8], at: &mut usize) -> FormatResult<(u64, Range<usize>)> {
    let key = read_varint(rows, at)?;
    let len = read_varint(rows, at)? as usize;
    let row = *at..*at + len;
    *at = row.end;
    if row.end <= rows.len() {
        Ok((key, row))
    } else {
        Err(FormatError::new("a row ends behind its block"))
    }
}

/// A run that is being built.
#[derive(Default)]
pub(super) struct RunBuilder {
    blocks: Vec<RunBlock>,
    /// The encoded rows of the current block. Their keys are in the range `keys`.
    block: Vec<u8>,
    keys: Range<u64>,
    /// A buffer in which a block is compressed.
    compressed: Vec<u8>,
    /// The compressed blocks that are not written to the file yet. `in_file` is the number of bytes that the file has.
    bytes: Vec<u8>,
    in_file: u64,
}

impl RunBuilder {
    /// Adds a row. Rows must be added in the order of keys and prefixes.
    pub(super) fn push(&mut self, key: u64, row: &[u8]) -> Result<()> {
        if self.block.is_empty() {
            self.keys.start = key;
        }
        self.keys.end = key + 1;
        put_varint(&mut self.block, key - self.keys.start);
        put_varint(&mut self.block, row.len() as u64);
        self.block.extend_from_slice(row);
        if self.block.len() >= BLOCK_LEN {
            self.end_block()?;
        }
        Ok(())
    }

    /// Compresses the current block, unless it is empty.
    fn end_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let most = lz4_flex::block::get_maximum_output_size(self.block.len());
        if self.compressed.len() < most {
            self.compressed.resize(most, 0);
        }
        let compressed = lz4_flex::block::compress_into(&self.block, &mut self.compressed);
        let len = compressed.map_err(|error| Error::internal(format!("a block: {error}")))?;
        self.blocks.push(RunBlock {
            keys: self.keys.clone(),
            start: self.in_file + self.bytes.len() as u64,
            len: (SIZE_LEN + len) as u32,
        });
        let size = self.block.len() as u32;
        self.bytes.extend_from_slice(&size.to_le_bytes());
        self.bytes.extend_from_slice(&self.compressed[..len]);
        self.block.clear();
        Ok(())
    }

    /// Writes the compressed blocks to the file of the run.
    fn write(&mut self, file: &File, directory: &Path) -> Result<()> {
        system::write(file, &self.bytes).for_path(directory, CANNOT_WRITE_TEMPORARY)?;
        self.in_file += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    /// Returns the run, which is in memory.
    pub(super) fn finish(mut self) -> Result<SortedRun> {
        self.end_block()?;
        self.bytes.shrink_to_fit();
        Ok(SortedRun {
            blocks: self.blocks,
            bytes: RunBytes::InMemory(self.bytes),
        })
    }
}

/// Merges runs into one run, which is stored in an unnamed file. Fails if the work has been cancelled.
pub(super) fn merge_runs(
    runs: Vec<SortedRun>,
    directory: &Path,
    cancellation: &Cancellation,
) -> Result<SortedRun> {
    let file = tempfile::tempfile_in(directory).for_path(directory, CANNOT_CREATE_TEMPORARY)?;
    let mut builder = RunBuilder::default();
    let mut cursors: Vec<RunCursor<'_>> = runs.iter().map(RunCursor::new).collect();
    let mut heap = BinaryHeap::new();
    for (index, cursor) in cursors.iter_mut().enumerate() {
        let next = cursor.advance(directory)?;
        heap.extend(next.map(|(key, prefix)| Reverse((key, prefix, index))));
    }
    while let Some(Reverse((key, _, index))) = heap.pop() {
        let cursor = &mut cursors[index];
        builder.push(key, cursor.row())?;
        let next = cursor.advance(directory)?;
        heap.extend(next.map(|(key, prefix)| Reverse((key, prefix, index))));
        if builder.bytes.len() >= WRITE_LEN {
            cancellation.check()?;
            builder.write(&file, directory)?;
        }
    }
    builder.end_block()?;
    builder.write(&file, directory)?;
    Ok(SortedRun {
        blocks: builder.blocks,
        bytes: RunBytes::InFile(file),
    })
}

/// A reader of the rows of a run, in order.
struct RunCursor<'r> {
    run: &'r SortedRun,
    next_block: usize,
    buffer: BlockBuffer,
    /// The range of the current row in the buffer.
    row: Range<usize>,
}

impl<'r> RunCursor<'r> {
    fn new(run: &'r SortedRun) -> Self {
        Self {
            run,
            next_block: 0,
            buffer: BlockBuffer::default(),
            row: 0..0,
        }
    }

    /// Moves to the next row, and returns its key and its prefix.
    fn advance(&mut self, directory: &Path) -> Result<Option<(u64, RowPrefix)>> {
        loop {
            if let Some((key, row)) = self.buffer.next()? {
                let (len, prefix) = (row.len(), prefix_of(row));
                self.row = self.buffer.at - len..self.buffer.at;
                return Ok(Some((key, prefix)));
            }
            let Some(block) = self.run.blocks.get(self.next_block) else {
                return Ok(None);
            };
            self.next_block += 1;
            self.buffer.load(self.run, block, directory)?;
        }
    }

    /// Returns the current row.
    fn row(&self) -> &[u8] {
        &self.buffer.rows[self.row.clone()]
    }
}
