//! The rows of a range of keys in order, a part at a time.

use super::{BlockBuffer, KeyRange, RowBatch, SharedRows, SortedRows};
use crate::error::Result;
use std::ops::ControlFlow;

/// The rows of a range that were not returned yet. Each part is found by one pass over the rest of the range. In each
/// run, the pass ends after the keys of the part.
pub(crate) struct RowPortions<'s> {
    sorted: &'s SortedRows,
    range: KeyRange,
    taken: u64,
    /// The key and the bytes of the last row that was returned, and the number of returned rows that equal it.
    last: Option<(u64, Vec<u8>, usize)>,
}

impl<'s> RowPortions<'s> {
    pub(super) const fn new(sorted: &'s SortedRows, range: KeyRange) -> Self {
        Self {
            sorted,
            range,
            taken: 0,
            last: None,
        }
    }

    /// Returns the number of rows that are left.
    pub(crate) const fn left(&self) -> u64 {
        self.range.rows - self.taken
    }

    /// Returns the next rows, as many as fit into `memory` bytes, but at least one. During the call, rows of up to
    /// twice `memory` bytes are in memory.
    pub(crate) fn next(&mut self, memory: usize) -> Result<SharedRows> {
        let (mut held, mut buffer) = (RowBatch::with_room(2 * memory), BlockBuffer::default());
        // The last row of `held` after `held` was last cut. Rows that are not less than `end` are left for later parts.
        let mut end: Option<(u64, Vec<u8>)> = None;
        let last = self.last.as_ref();
        let last = last.map(|(key, row, count)| ((*key, row.as_slice()), *count));
        let first_key = last.map_or(self.range.keys.start, |((key, _), _)| key);
        let mut skipped = 0;
        self.sorted.for_each_until(
            &(first_key..self.range.keys.end),
            &mut buffer,
            |key, row| {
                let at = (key, row);
                if let Some((last, taken)) = last {
                    if at < last {
                        return ControlFlow::Continue(());
                    }
                    if at == last && skipped < taken {
                        skipped += 1;
                        return ControlFlow::Continue(());
                    }
                }
                if let Some((end_key, end_row)) = &end
                    && at >= (*end_key, end_row.as_slice())
                {
                    return if key > *end_key {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    };
                }
                held.push(key, |out| out.extend_from_slice(row));
                if held.len() / 2 >= memory {
                    held.keep_first(memory);
                    end = held.last().map(|(key, row)| (key, row.to_vec()));
                }
                ControlFlow::Continue(())
            },
        )?;
        held.keep_first(memory);
        self.taken += held.count() as u64;
        let last = held.last().map(|(key, row)| (key, row.to_vec()));
        self.last = last.map(|(key, row)| {
            let mut equal = held.count_of(key, &row);
            if let Some((before, row_before, taken)) = &self.last
                && (*before, row_before) == (key, &row)
            {
                equal += taken;
            }
            (key, row, equal)
        });
        Ok(held.shared())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{KeyBits, RowLimits, RowSorter};

    #[test]
    fn parts_of_any_length_give_the_same_order() {
        let bits = KeyBits {
            uncounted: 8,
            below_group: 32,
        };
        let directory = tempfile::tempdir().unwrap();
        let limits = RowLimits {
            run: 400,
            memory: 2000,
        };
        let sorter = RowSorter::new(limits, bits, directory.path());
        // Few keys, and many equal rows.
        let row = |number: u64| (number * 7919 % 3, vec![b'a' + (number * 31 % 5) as u8; 9]);
        let mut expected: Vec<(u64, Vec<u8>)> = (0..700).map(row).collect();
        for rows in expected.chunks(7) {
            let mut batch = RowBatch::default();
            for (key, row) in rows {
                batch.push(*key, |out| out.extend_from_slice(row));
            }
            sorter.add(batch);
        }
        expected.sort_unstable();
        let sorted = sorter.finish().unwrap();
        let ranges = sorted.ranges(1000);
        assert_eq!(ranges.len(), 1);
        // The memory usage of a row in bytes.
        const ROW: usize = 9 + 16;
        let counts = [1, 2, 3, 46, 47, 349, 350, 699, 700, 1000];
        let limits = counts.map(|rows| rows * ROW);
        for memory in limits.into_iter().chain([0, ROW + 3, 3 * ROW - 1]) {
            let mut portions = sorted.portions(ranges[0].clone());
            let mut found = Vec::new();
            while portions.left() > 0 {
                let rows = portions.next(memory).unwrap();
                let most = (memory / ROW).max(1);
                assert!((1..=most).contains(&rows.count()));
                let keys = rows.keys_and_lens().map(|(key, _)| key);
                found.extend(keys.zip(rows.rows(0..rows.count()).map(<[u8]>::to_vec)));
            }
            assert!(found == expected, "{memory}");
        }
    }
}
