//! Sorts rows of bytes by a key, in bounded memory.
//!
//! Workers sort batches of rows into runs, cut runs into blocks, and compress these. Blocks beyond the limit of memory
//! go to a temporary file. Rows are then read in order, one range of keys at a time: a range reads the blocks of all
//! runs that it meets. Ranges depend on the keys alone, so that neither the number of runs nor that of workers changes
//! the order of rows or the place where ranges end.

use crate::error::{Error, FormatError, Result};
use crate::io::system;
use crate::pbf::wire::{put_varint, read_varint};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The minimum number of bytes of rows in a block but the last of a run.
const BLOCK_LEN: usize = 32 << 10;
/// The number of low bits of a key that are not counted: ranges end where the other bits change.
const UNCOUNTED_BITS: u32 = 8;
/// The number of bits of a counted key that are counted together in a page.
const PAGE_BITS: u32 = 12;

/// Rows with their keys.
#[derive(Debug, Default)]
pub(crate) struct RowBatch {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

/// A row of a batch.
#[derive(Debug, Clone, Copy)]
struct Row {
    key: u64,
    start: u32,
    len: u32,
}

impl RowBatch {
    /// Adds a row, whose bytes `put` appends to a buffer.
    pub(crate) fn push(&mut self, key: u64, put: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        put(&mut self.bytes);
        self.rows.push(Row {
            key,
            start: start as u32,
            len: (self.bytes.len() - start) as u32,
        });
    }

    /// The memory of the batch in bytes. A batch must be taken before it reaches 4 GiB.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.rows.len() * size_of::<Row>()
    }

    /// The number of rows.
    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    /// The rows as parts of a shared buffer.
    pub(crate) fn shared(self) -> SharedRows {
        SharedRows {
            bytes: Bytes::from(self.bytes),
            rows: self.rows,
        }
    }

    fn row(&self, row: &Row) -> &[u8] {
        let start = row.start as usize;
        self.bytes
            .get(start..start + row.len as usize)
            .unwrap_or_default()
    }

    /// Sorts the rows by key, and rows with the same key by their bytes.
    pub(crate) fn sort(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable_by(|a, b| {
            let by_key = a.key.cmp(&b.key);
            by_key.then_with(|| self.row(a).cmp(self.row(b)))
        });
        self.rows = rows;
    }
}

/// Rows in a shared buffer.
#[derive(Debug)]
pub(crate) struct SharedRows {
    pub bytes: Bytes,
    rows: Vec<Row>,
}

impl SharedRows {
    /// The number of rows.
    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    /// The rows with numbers in a range.
    pub(crate) fn rows(&self, numbers: Range<usize>) -> impl ExactSizeIterator<Item = &[u8]> {
        let rows = self.rows.get(numbers).unwrap_or_default();
        rows.iter().map(|row| {
            let start = row.start as usize;
            let row = self.bytes.get(start..start + row.len as usize);
            row.unwrap_or_default()
        })
    }
}

/// Rows in order, compressed in blocks.
#[derive(Debug)]
pub(crate) struct SortedRun {
    blocks: Vec<(Range<u64>, Vec<u8>)>,
    /// The number of rows of each counted key, ascending.
    counts: Vec<(u64, u32)>,
}

/// Sorts the rows of batches into a run.
pub(crate) fn sort_run(batches: &[RowBatch]) -> SortedRun {
    let all = batches.iter().enumerate();
    let rows = all.flat_map(|(index, batch)| batch.rows.iter().map(move |row| (index, row)));
    let mut rows: Vec<(u64, u32, &Row)> = rows
        .map(|(index, row)| (row.key, index as u32, row))
        .collect();
    rows.sort_unstable_by_key(|(key, ..)| *key);
    let (mut blocks, mut counts) = (Vec::new(), Vec::<(u64, u32)>::new());
    let (mut block, mut first) = (Vec::new(), 0);
    let mut rows = rows.into_iter().peekable();
    while let Some((key, index, row)) = rows.next() {
        if block.is_empty() {
            first = key;
        }
        let bytes = batches.get(index as usize).map(|batch| batch.row(row));
        let bytes = bytes.unwrap_or_default();
        put_varint(&mut block, key - first);
        put_varint(&mut block, bytes.len() as u64);
        block.extend_from_slice(bytes);
        match counts.last_mut() {
            Some((last, count)) if *last == key >> UNCOUNTED_BITS => *count += 1,
            _ => counts.push((key >> UNCOUNTED_BITS, 1)),
        }
        if block.len() >= BLOCK_LEN || rows.peek().is_none() {
            let compressed = lz4_flex::block::compress_prepend_size(&block);
            blocks.push((first..key + 1, compressed));
            block.clear();
        }
    }
    SortedRun { blocks, counts }
}

/// A block of a run.
#[derive(Debug)]
struct Block {
    /// The keys from the first to the last row.
    keys: Range<u64>,
    bytes: BlockBytes,
}

#[derive(Debug)]
enum BlockBytes {
    InMemory(Box<[u8]>),
    OnDisk { offset: u64, len: u32 },
}

/// The runs of a sort.
#[derive(Debug)]
pub(crate) struct RowRuns {
    runs: Vec<Vec<Block>>,
    /// The number of rows of each counted key, in pages.
    counts: BTreeMap<u64, Box<[u32; 1 << PAGE_BITS]>>,
    /// The maximum number of bytes of blocks in memory.
    limit: usize,
    in_memory: usize,
    directory: PathBuf,
    scratch: Option<File>,
    scratch_len: u64,
}

impl RowRuns {
    /// No runs. Blocks of more than `limit` bytes go to an unnamed file in `directory`.
    pub(crate) fn new(limit: usize, directory: &Path) -> Self {
        Self {
            runs: Vec::new(),
            counts: BTreeMap::new(),
            limit,
            in_memory: 0,
            directory: directory.to_owned(),
            scratch: None,
            scratch_len: 0,
        }
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, run: SortedRun) -> Result<()> {
        for (key, more) in run.counts {
            let page = self.counts.entry(key >> PAGE_BITS);
            let page = page.or_insert_with(|| Box::new([0; 1 << PAGE_BITS]));
            let at = (key % (1 << PAGE_BITS)) as usize;
            if let Some(count) = page.get_mut(at) {
                *count += more;
            }
        }
        let mut blocks = Vec::with_capacity(run.blocks.len());
        let mut to_disk = Vec::new();
        for (keys, bytes) in run.blocks {
            let bytes = match self.in_memory + bytes.len() <= self.limit {
                true => {
                    self.in_memory += bytes.len();
                    BlockBytes::InMemory(bytes.into_boxed_slice())
                }
                false => {
                    let offset = self.scratch_len + to_disk.len() as u64;
                    to_disk.extend_from_slice(&bytes);
                    BlockBytes::OnDisk {
                        offset,
                        len: bytes.len() as u32,
                    }
                }
            };
            blocks.push(Block { keys, bytes });
        }
        self.runs.push(blocks);
        self.write(&to_disk)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let failed = |action| {
            let directory = self.directory.clone();
            move |error| Error::io(&directory, action, error)
        };
        let file = match self.scratch.take() {
            Some(file) => file,
            None => {
                let action = "cannot create a temporary file in this directory";
                tempfile::tempfile_in(&self.directory).map_err(failed(action))?
            }
        };
        let written = system::write(&file, bytes);
        written.map_err(failed("cannot write a temporary file in this directory"))?;
        self.scratch_len += bytes.len() as u64;
        self.scratch = Some(file);
        Ok(())
    }

    /// The number of bytes in the temporary file.
    pub(crate) const fn scratch_len(&self) -> u64 {
        self.scratch_len
    }

    /// Cuts the keys into ranges of about `rows` rows, at least one range for each value of the key's upper 32 bits
    /// that occurs. Also gives the number of rows of each range.
    pub(crate) fn ranges(&self, rows: u64) -> Vec<(Range<u64>, u64)> {
        let mut ranges: Vec<(Range<u64>, u64)> = Vec::new();
        for (page, counts) in &self.counts {
            for (at, count) in (0u64..).zip(counts.iter()).filter(|(_, count)| **count > 0) {
                let start = ((page << PAGE_BITS) + at) << UNCOUNTED_BITS;
                let end = start + (1 << UNCOUNTED_BITS);
                match ranges.last_mut() {
                    Some((range, of_range))
                        if *of_range < rows && range.start >> 32 == start >> 32 =>
                    {
                        range.end = end;
                        *of_range += u64::from(*count);
                    }
                    _ => ranges.push((start..end, u64::from(*count))),
                }
            }
        }
        ranges
    }

    /// The rows with keys in a range, in order.
    pub(crate) fn read(&self, keys: &Range<u64>) -> Result<SharedRows> {
        let mut batch = RowBatch::default();
        let mut buffer = Vec::new();
        for run in &self.runs {
            let start = run.partition_point(|block| block.keys.end <= keys.start);
            let blocks = run.iter().skip(start);
            for block in blocks.take_while(|block| block.keys.start < keys.end) {
                let bytes: &[u8] = match &block.bytes {
                    BlockBytes::InMemory(bytes) => bytes,
                    BlockBytes::OnDisk { offset, len } => {
                        buffer.resize(*len as usize, 0);
                        self.read_at(&mut buffer, *offset)?;
                        &buffer
                    }
                };
                decode(bytes, block.keys.start, keys, &mut batch)
                    .map_err(|error| Error::Internal(format!("a temporary file: {error}")))?;
            }
        }
        batch.sort();
        Ok(batch.shared())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let read = match &self.scratch {
            Some(file) => file.read_exact_at(bytes, offset),
            None => Ok(()),
        };
        let action = "cannot read a temporary file in this directory";
        read.map_err(|error| Error::io(&self.directory, action, error))
    }
}

/// Appends the rows of a block with keys in a range.
fn decode(
    bytes: &[u8],
    first: u64,
    keys: &Range<u64>,
    batch: &mut RowBatch,
) -> Result<(), FormatError> {
    let block = lz4_flex::block::decompress_size_prepended(bytes);
    let block = block.map_err(|error| FormatError::with(error.to_string()))?;
    let mut at = 0;
    while at < block.len() {
        let key = first + read_varint(&block, &mut at)?;
        let len = read_varint(&block, &mut at)? as usize;
        let row = block.get(at..at + len);
        let row = row.ok_or(FormatError::new("a row ends behind its block"))?;
        at += len;
        if keys.contains(&key) {
            batch.push(key, |out| out.extend_from_slice(row));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_order_whatever_the_runs() {
        let mut state = 3u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut expected: Vec<(u64, Vec<u8>)> = (0..30_000)
            .map(|number| {
                let key = next(3) << 32 | next(4) << 20 | next(70_000);
                let len = next(40) as usize;
                (
                    key,
                    [vec![7; len], number.to_string().into_bytes()].concat(),
                )
            })
            .collect();
        let mut all_ranges = Vec::new();
        for (limit, run_len) in [(usize::MAX, 30_000), (50_000, 7_000), (0, 100)] {
            let directory = tempfile::tempdir().unwrap();
            let mut runs = RowRuns::new(limit, directory.path());
            for rows in expected.chunks(run_len) {
                let mut batches = [RowBatch::default(), RowBatch::default()];
                for (index, (key, row)) in rows.iter().enumerate() {
                    batches[index % 2].push(*key, |out| out.extend_from_slice(row));
                }
                runs.add(sort_run(&batches)).unwrap();
            }
            assert_eq!(runs.scratch_len() > 0, limit < usize::MAX);
            let ranges = runs.ranges(1000);
            let mut found = Vec::new();
            for (range, count) in &ranges {
                let batch = runs.read(range).unwrap();
                assert_eq!(batch.count() as u64, *count);
                assert!(*count < 1_000 + 70_000 && range.start >> 32 == (range.end - 1) >> 32);
                found.extend(batch.rows(0..batch.count()).map(<[u8]>::to_vec));
            }
            expected.sort_unstable();
            assert!(found.iter().eq(expected.iter().map(|(_, row)| row)));
            all_ranges.push(ranges);
        }
        assert!(all_ranges.windows(2).all(|pair| pair[0] == pair[1]));
        assert!(all_ranges[0].len() > 12);
    }
}
