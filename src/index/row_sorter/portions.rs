//! The rows of a range of keys in order, a part at a time.

use super::{BlockBuffer, KeyRange, RowBatch, SharedRows, SortedRows};
use crate::error::Result;

/// The rows of a range that are not taken yet. For each part, all rows of the range are read.
pub(crate) struct RowPortions<'s> {
    sorted: &'s SortedRows,
    range: KeyRange,
    taken: u64,
    /// The last row that was taken with its key, and the number of taken rows that equal it.
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

    /// The number of rows that are left.
    pub(crate) const fn left(&self) -> u64 {
        self.range.rows - self.taken
    }

    /// The next rows: `count`, or all that are left. Up to twice as many are held meanwhile.
    pub(crate) fn next(&mut self, count: u64) -> Result<SharedRows> {
        let count = count.min(self.left());
        self.taken += count;
        if count == self.range.rows {
            return self.sorted.read(&self.range.keys);
        }
        let count = count as usize;
        let (mut held, mut buffer) = (RowBatch::default(), BlockBuffer::default());
        // A row from which on all rows belong to later parts.
        let mut end: Option<(u64, Vec<u8>)> = None;
        let last = self.last.as_ref();
        let last = last.map(|(key, row, count)| ((*key, row.as_slice()), *count));
        let mut skipped = 0;
        self.sorted
            .for_each(&self.range.keys, &mut buffer, |key, row| {
                let at = (key, row);
                if let Some((last, taken)) = last {
                    if at < last {
                        return;
                    }
                    if at == last && skipped < taken {
                        skipped += 1;
                        return;
                    }
                }
                if end
                    .as_ref()
                    .is_some_and(|(key, row)| at >= (*key, row.as_slice()))
                {
                    return;
                }
                held.push(key, |out| out.extend_from_slice(row));
                if held.count() >= 2 * count {
                    held.keep_first(count);
                    end = held.last().map(|(key, row)| (key, row.to_vec()));
                }
            })?;
        held.keep_first(count);
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
        held.sort();
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
        // Few keys, and rows of which many are equal.
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
        for count in [1, 2, 3, 46, 47, 349, 350, 699, 700, 1000] {
            let mut portions = sorted.portions(ranges[0].clone());
            let mut found = Vec::new();
            while portions.left() > 0 {
                let rows = portions.next(count).unwrap();
                assert!((1..=count as usize).contains(&rows.count()));
                let keys = rows.keys_and_lens().map(|(key, _)| key);
                found.extend(keys.zip(rows.rows(0..rows.count()).map(<[u8]>::to_vec)));
            }
            assert!(found == expected, "{count}");
        }
    }
}
