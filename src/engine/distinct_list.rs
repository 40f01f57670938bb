//! Collects values that may repeat, such as the members of relations.

/// The number of values that are collected before repeated ones are removed.
const FEW: usize = 1 << 17;

/// A list that drops most repeated values. Its memory is in proportion to the number of distinct values.
#[derive(Debug)]
pub(crate) struct DistinctList<T> {
    list: Vec<T>,
    /// The number of values after the last removal of repeated values.
    distinct: usize,
}

impl<T> Default for DistinctList<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            distinct: 0,
        }
    }
}

impl<T: Copy + Ord> DistinctList<T> {
    /// Adds a value.
    pub(crate) fn push(&mut self, value: T) {
        if self.list.last() == Some(&value) {
            return;
        }
        if self.list.len() >= FEW.max(self.distinct * 2) {
            self.list.sort_unstable();
            self.list.dedup();
            self.distinct = self.list.len();
        }
        self.list.push(value);
    }

    /// Returns the values, in no particular order. A value may still occur several times.
    pub(crate) fn finish(self) -> Vec<T> {
        self.list
    }
}

impl<T: Copy + Ord> Extend<T> for DistinctList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn repeated_values_take_no_more_memory_than_distinct_ones() {
        let mut repeated = DistinctList::default();
        repeated.extend((0..1_000_000).map(|at| at % 1000));
        assert!(repeated.list.capacity() <= 2 * FEW);
        let found: BTreeSet<i64> = repeated.finish().into_iter().collect();
        assert!(found.into_iter().eq(0..1000));
        let mut all = DistinctList::default();
        all.extend((0..500_000).rev());
        let found: BTreeSet<i64> = all.finish().into_iter().collect();
        assert!(found.into_iter().eq(0..500_000));
    }
}
