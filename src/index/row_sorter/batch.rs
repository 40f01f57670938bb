//! Rows in memory.

use bytes::Bytes;
use std::cmp::Ordering;
use std::ops::Range;

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
    /// Creates a batch with room for rows of `memory` bytes in total, so that it does not grow by doubling. The
    /// operating system allocates memory only for the room that is used.
    pub(super) fn with_byte_capacity(memory: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(memory),
            rows: Vec::with_capacity(memory / size_of::<Row>()),
        }
    }

    /// Adds a row. `put` appends the bytes of the row to a buffer.
    pub(crate) fn push(&mut self, key: u64, put: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        put(&mut self.bytes);
        self.rows.push(Row {
            key,
            start: start as u32,
            len: (self.bytes.len() - start) as u32,
        });
    }

    /// Returns the memory usage of the batch in bytes. A batch must stay below 4 GiB, because the offsets of its rows
    /// have 32 bits.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.rows.len() * size_of::<Row>()
    }

    /// Returns the number of rows.
    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Converts the batch into rows that share one buffer.
    pub(crate) fn into_shared(self) -> SharedRows {
        SharedRows {
            bytes: Bytes::from(self.bytes),
            rows: self.rows,
        }
    }

    fn row(&self, row: &Row) -> &[u8] {
        let start = row.start as usize;
        &self.bytes[start..start + row.len as usize]
    }

    /// Compares two rows by key, and rows with the same key by their bytes.
    fn compare(&self, one: &Row, other: &Row) -> Ordering {
        let by_key = one.key.cmp(&other.key);
        by_key.then_with(|| self.row(one).cmp(self.row(other)))
    }

    /// Sorts the rows by key, and rows with the same key by their bytes.
    pub(super) fn sort(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable_by(|a, b| self.compare(a, b));
        self.rows = rows;
    }

    /// Sorts the rows and keeps as many of the first rows as fit into `memory` bytes, but at least one. Removes all
    /// other rows.
    pub(super) fn sort_and_truncate(&mut self, memory: usize) {
        self.sort();
        let mut len = 0;
        let fits = |row: &&Row| {
            len += row.len as usize + size_of::<Row>();
            len <= memory
        };
        let count = self.rows.iter().take_while(fits).count().max(1);
        if count >= self.rows.len() {
            return;
        }
        let mut kept = Self::with_byte_capacity(memory);
        for row in self.rows.iter().take(count) {
            kept.push(row.key, |out| out.extend_from_slice(self.row(row)));
        }
        *self = kept;
    }

    /// Returns the last row and its key.
    pub(super) fn last(&self) -> Option<(u64, &[u8])> {
        let last = self.rows.last()?;
        Some((last.key, self.row(last)))
    }

    /// Returns the number of rows with the given key and bytes.
    pub(super) fn count_equal_rows(&self, key: u64, row: &[u8]) -> usize {
        let equal = |other: &&Row| other.key == key && self.row(other) == row;
        self.rows.iter().filter(equal).count()
    }
}

/// The first bytes of a row as a number, by which rows with the same key are ordered in a run. In a run, rows with the
/// same key and the same prefix are in no particular order.
pub(super) type RowPrefix = u128;

/// Returns the prefix of a row.
pub(super) fn prefix_of(row: &[u8]) -> RowPrefix {
    let mut bytes = [0; size_of::<RowPrefix>()];
    let len = row.len().min(bytes.len());
    bytes[..len].copy_from_slice(&row[..len]);
    RowPrefix::from_be_bytes(bytes)
}

/// Returns the rows of batches with their keys, in the order of keys and prefixes.
pub(super) fn rows_by_key(batches: &[RowBatch]) -> impl Iterator<Item = (u64, &[u8])> {
    let row_at = |index: u32, number: u32| {
        let batch = &batches[index as usize];
        batch.row(&batch.rows[number as usize])
    };
    // The key of each row, the index of its batch, and its number in the batch.
    let mut rows: Vec<(u64, u32, u32)> =
        Vec::with_capacity(batches.iter().map(RowBatch::count).sum());
    for (index, batch) in (0..).zip(batches) {
        let numbered = batch.rows.iter().zip(0..);
        rows.extend(numbered.map(|(row, number)| (row.key, index, number)));
    }
    rows.sort_unstable_by_key(|(key, ..)| *key);
    // The prefix of each row is read once, and not in each comparison, because rows are scattered in memory.
    let mut prefixes: Vec<(RowPrefix, u32, u32)> = Vec::new();
    let equal_keys = rows.chunk_by_mut(|(one, ..), (other, ..)| one == other);
    for equal in equal_keys.filter(|equal| equal.len() > 1) {
        prefixes.clear();
        let rows = equal.iter();
        prefixes.extend(
            rows.map(|&(_, index, number)| (prefix_of(row_at(index, number)), index, number)),
        );
        prefixes.sort_unstable();
        for (row, (_, index, number)) in equal.iter_mut().zip(&prefixes) {
            (row.1, row.2) = (*index, *number);
        }
    }
    rows.into_iter()
        .map(move |(key, index, number)| (key, row_at(index, number)))
}

/// Rows in a shared buffer.
#[derive(Debug)]
pub(crate) struct SharedRows {
    pub bytes: Bytes,
    rows: Vec<Row>,
}

impl SharedRows {
    /// Returns the number of rows.
    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the key and the length in bytes of each row.
    pub(crate) fn keys_and_lens(&self) -> impl ExactSizeIterator<Item = (u64, usize)> {
        self.rows.iter().map(|row| (row.key, row.len as usize))
    }

    /// Returns all rows in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.rows(0..self.count())
    }

    /// Returns each row with its key, in order.
    pub(crate) fn keys_and_rows(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let keys = self.keys_and_lens().map(|(key, _)| key);
        keys.zip(self.iter())
    }

    /// Returns the rows whose numbers are in a range.
    pub(crate) fn rows(&self, numbers: Range<usize>) -> impl ExactSizeIterator<Item = &[u8]> {
        self.rows[numbers].iter().map(|row| {
            let start = row.start as usize;
            &self.bytes[start..start + row.len as usize]
        })
    }
}
