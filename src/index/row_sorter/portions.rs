//! The rows of a range of keys in order, a part at a time.

use super::batch::{RowPrefix, prefix_of};
use super::{BlockBuffer, KeyRange, RowBatch, SharedRows, SortedRows};
use crate::error::Result;
use std::ops::ControlFlow;

/// The rows of a range that were not returned yet. Each part is found by one pass over these rows. In each run, the
/// pass begins at the first block of the previous part, and ends after the rows of the new part. A row is therefore
/// read only a few times, even if all rows have the same key.
pub(crate) struct RowPortions<'s> {
    sorted: &'s SortedRows,
    range: KeyRange,
    /// The maximum size in bytes of a part.
    memory: usize,
    taken: u64,
    /// The last row that was returned.
    last: Option<LastRow>,
    /// For each run, the place at which the next pass begins.
    starts: Vec<RunStart>,
}

/// The last row of a part.
struct LastRow {
    key: u64,
    row: Vec<u8>,
    /// The number of returned rows that equal this row.
    equal: usize,
}

/// A place in a run. All rows of the range that precede this place were returned.
#[derive(Clone, Copy, Default)]
struct RunStart {
    /// The index of the block that contains the place.
    block: usize,
    /// The key and the prefix of the row at the place, or lower values.
    first: (u64, RowPrefix),
}

/// The rows of the next part, while it is collected.
struct NextRows<'l> {
    held: RowBatch,
    memory: usize,
    last: Option<&'l LastRow>,
    /// The number of rows that equal `last` and were skipped.
    skipped: usize,
    /// The last row of `held` when `held` was last truncated. Rows that are equal to this row or greater are left for
    /// later parts.
    end: Option<(u64, Vec<u8>)>,
}

impl NextRows<'_> {
    /// Whether all rows of a run, from the key and prefix `first` on, are left for later parts.
    fn is_past_end(&self, first: (u64, RowPrefix)) -> bool {
        let end = self.end.as_ref();
        end.is_some_and(|(key, row)| first > (*key, prefix_of(row)))
    }

    /// Adds the next row of a run. Skips a row that was returned before or is left for a later part. Returns `Break` if
    /// all further rows of the run are left for later parts.
    fn add_row(&mut self, key: u64, row: &[u8]) -> ControlFlow<()> {
        let at = (key, row);
        if let Some(last) = self.last {
            let last_at = (last.key, last.row.as_slice());
            if at < last_at {
                return ControlFlow::Continue(());
            }
            if at == last_at && self.skipped < last.equal {
                self.skipped += 1;
                return ControlFlow::Continue(());
            }
        }
        if let Some((end_key, end_row)) = &self.end
            && at >= (*end_key, end_row.as_slice())
        {
            return if self.is_past_end((key, prefix_of(row))) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            };
        }
        self.held.push(key, |out| out.extend_from_slice(row));
        if self.held.memory_bytes() / 2 >= self.memory {
            self.held.sort_and_truncate(self.memory);
            self.end = self.held.last().map(|(key, row)| (key, row.to_vec()));
        }
        ControlFlow::Continue(())
    }
}

impl<'s> RowPortions<'s> {
    pub(super) fn new(sorted: &'s SortedRows, range: KeyRange, memory: usize) -> Self {
        Self {
            sorted,
            range,
            memory,
            taken: 0,
            last: None,
            starts: vec![RunStart::default(); sorted.all_runs().count()],
        }
    }

    /// Returns the number of rows that are left.
    pub(crate) const fn rows_left(&self) -> u64 {
        self.range.rows - self.taken
    }

    /// Returns the next rows, as many as fit into the memory of a part, but at least one.
    fn next_part(&mut self) -> Result<SharedRows> {
        let mut held = self.read_candidates()?;
        held.sort_and_truncate(self.memory);
        self.taken += held.count() as u64;
        let last = held.last().map(|(key, row)| (key, row.to_vec()));
        self.last = last.map(|(key, row)| {
            let mut equal = held.count_equal_rows(key, &row);
            if let Some(before) = &self.last
                && (before.key, &before.row) == (key, &row)
            {
                equal += before.equal;
            }
            LastRow { key, row, equal }
        });
        Ok(held.into_shared())
    }

    /// Reads the rows of the next part, and perhaps some of the rows after this part.
    fn read_candidates(&mut self) -> Result<RowBatch> {
        let (memory, mut buffer) = (self.memory, BlockBuffer::default());
        let last = self.last.as_ref();
        let mut next = NextRows {
            held: RowBatch::with_byte_capacity(2 * memory),
            memory,
            last,
            skipped: 0,
            end: None,
        };
        let last_at = last.map(|last| (last.key, prefix_of(&last.row)));
        let first_key = last.map_or(self.range.keys.start, |last| last.key);
        let keys = first_key..self.range.keys.end;
        let directory = &self.sorted.directory;
        // The run with the lowest rows is read first. The end of the part is then soon known, and most other runs are
        // skipped, in whichever order the rows were added.
        let mut runs: Vec<_> = self.sorted.all_runs().zip(&mut self.starts).collect();
        runs.sort_by_key(|(_, start)| start.first);
        for (run, start) in runs {
            if next.is_past_end(start.first) {
                continue;
            }
            // The place of the first row of the run that does not precede the last returned row; `None` until this row
            // is found.
            let mut first = None;
            run.for_each(
                &keys,
                start.block,
                &mut buffer,
                directory,
                &mut |block, key, row| {
                    if first.is_none() {
                        let at = (key, prefix_of(row));
                        let is_left = last_at.is_none_or(|last| at >= last);
                        first = is_left.then_some(RunStart { block, first: at });
                    }
                    next.add_row(key, row)
                },
            )?;
            *start = first.unwrap_or(RunStart {
                block: run.block_count(),
                first: (u64::MAX, RowPrefix::MAX),
            });
        }
        Ok(next.held)
    }
}

impl Iterator for RowPortions<'_> {
    type Item = Result<SharedRows>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.rows_left() > 0).then(|| self.next_part())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{KeyBits, RowLimits, RowSorter};
    use crate::runtime::Context;

    #[test]
    fn a_pass_skips_the_blocks_of_earlier_parts() {
        let bits = KeyBits::new(8, 32);
        let directory = tempfile::tempdir().unwrap();
        // The rows are long and have the same key. Each row is a block of its own, and the runs with rows are in files.
        const ROW: usize = 40_000;
        let limits = RowLimits::new(20 * ROW, 1000);
        let sorter = RowSorter::new(limits, bits, directory.path(), &Context::default());
        for number in 0..100u8 {
            let mut batch = RowBatch::default();
            batch.push(7, |out| {
                out.push(number);
                out.resize(ROW, 0);
            });
            sorter.add(batch);
        }
        let sorted = sorter.finish().unwrap();
        let mut portions = sorted.portions(sorted.ranges(1000)[0].clone(), 10 * (ROW + 16));
        let mut taken: usize = 0;
        while let Some(rows) = portions.next() {
            assert_eq!(rows.unwrap().count(), 10);
            let passed: usize = portions.starts.iter().map(|start| start.block).sum();
            // The next pass begins at the block with the last row of the part before this one.
            assert_eq!(passed, taken.saturating_sub(1));
            taken += 10;
        }
        assert_eq!(taken, 100);
    }

    #[test]
    fn parts_of_any_length_give_the_same_order() {
        let bits = KeyBits::new(8, 32);
        let directory = tempfile::tempdir().unwrap();
        let limits = RowLimits::new(400, 2000);
        let sorter = RowSorter::new(limits, bits, directory.path(), &Context::default());
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
            let mut found = Vec::new();
            for rows in sorted.portions(ranges[0].clone(), memory) {
                let rows = rows.unwrap();
                let most = (memory / ROW).max(1);
                assert!((1..=most).contains(&rows.count()));
                found.extend(rows.keys_and_rows().map(|(key, row)| (key, row.to_vec())));
            }
            assert!(found == expected, "{memory}");
        }
    }
}
