//! Rows in memory.

use bytes::Bytes;
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
    pub(super) fn sort(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable_by(|a, b| {
            let by_key = a.key.cmp(&b.key);
            by_key.then_with(|| self.row(a).cmp(self.row(b)))
        });
        self.rows = rows;
    }
}

/// The rows of batches and their keys, by key. Rows with the same key are in no particular order.
pub(super) fn by_key(batches: &[RowBatch]) -> impl Iterator<Item = (u64, &[u8])> {
    let all = (0u32..).zip(batches);
    let rows = all.flat_map(|(index, batch)| batch.rows.iter().map(move |row| (index, row)));
    let mut rows: Vec<(u64, u32, &Row)> = rows.map(|(index, row)| (row.key, index, row)).collect();
    rows.sort_unstable_by_key(|(key, ..)| *key);
    rows.into_iter().map(|(key, index, row)| {
        let bytes = batches.get(index as usize).map(|batch| batch.row(row));
        (key, bytes.unwrap_or_default())
    })
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

    /// The keys and the lengths in bytes of all rows.
    pub(crate) fn keys_and_lens(&self) -> impl ExactSizeIterator<Item = (u64, usize)> {
        self.rows.iter().map(|row| (row.key, row.len as usize))
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
