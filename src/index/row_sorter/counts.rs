//! The number of rows of each key.

use crate::runtime::WorkItem;
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of low bits of a counted key that give the index of its count within a page of counts. Pages are small,
/// because larger pages would consist mostly of zeros if the keys are far apart.
const PAGE_BITS: u32 = 6;

/// The meaning of the bits of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyBits {
    /// The number of low bits that are ignored when keys are counted. A range ends only where higher bits change.
    pub uncounted: u32,
    /// The number of low bits that are not part of the group. The bits above them are the group of a key. All keys of a
    /// range are in one group.
    pub below_group: u32,
}

impl KeyBits {
    pub(crate) const fn new(uncounted: u32, below_group: u32) -> Self {
        Self {
            uncounted,
            below_group,
        }
    }
}

/// A range of keys, and the number of rows with these keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub keys: Range<u64>,
    /// The number of rows with keys in the range.
    pub rows: u64,
}

/// A pass over ranges measures its progress in rows. Each range counts as one held byte, so the memory limit of the
/// pass is a number of ranges.
impl WorkItem for KeyRange {
    const COUNTS_ROWS: bool = true;

    fn input_bytes(&self) -> u64 {
        self.rows
    }

    fn held_bytes(&self) -> u64 {
        1
    }
}

/// The number of rows of each counted key, which is a key without its uncounted bits.
#[derive(Debug)]
pub(super) struct KeyCounts {
    bits: KeyBits,
    pages: BTreeMap<u64, Box<[u16; 1 << PAGE_BITS]>>,
    /// For counted keys with more than [`u16::MAX`] rows, the number of rows above that limit.
    beyond: BTreeMap<u64, u64>,
}

impl KeyCounts {
    pub(super) const fn new(bits: KeyBits) -> Self {
        Self {
            bits,
            pages: BTreeMap::new(),
            beyond: BTreeMap::new(),
        }
    }

    /// Counts keys, which must be in ascending order.
    pub(super) fn add(&mut self, keys: impl Iterator<Item = u64>) {
        let uncounted = self.bits.uncounted;
        let mut counted = keys.map(|key| key >> uncounted).peekable();
        while let Some(first) = counted.peek().copied() {
            let page = first >> PAGE_BITS;
            let counts = self.pages.entry(page);
            let counts = counts.or_insert_with(|| Box::new([0; 1 << PAGE_BITS]));
            while let Some(key) = counted.next_if(|key| key >> PAGE_BITS == page) {
                let at = (key % (1 << PAGE_BITS)) as usize;
                match &mut counts[at] {
                    &mut u16::MAX => *self.beyond.entry(key).or_default() += 1,
                    count => *count += 1,
                }
            }
        }
    }

    /// Returns the number of keys that were added, which is the number of rows.
    #[cfg(feature = "parquet")]
    pub(super) fn total(&self) -> u64 {
        let pages = self.pages.values();
        let within: u64 = pages
            .flat_map(|counts| counts.iter())
            .map(|count| u64::from(*count))
            .sum();
        within + self.beyond.values().sum::<u64>()
    }

    /// Cuts the keys into ranges of about `rows` rows, with at least one range for each group that occurs.
    pub(super) fn ranges(&self, rows: u64) -> Vec<KeyRange> {
        let KeyBits {
            uncounted,
            below_group,
        } = self.bits;
        let mut ranges: Vec<KeyRange> = Vec::new();
        for (page, counts) in &self.pages {
            for (at, count) in (0u64..).zip(counts.iter()).filter(|(_, count)| **count > 0) {
                let counted = (page << PAGE_BITS) + at;
                let beyond = self.beyond.get(&counted).map_or(0, |more| *more);
                let count = u64::from(*count) + beyond;
                let start = counted << uncounted;
                let end = start + (1 << uncounted);
                match ranges.last_mut() {
                    Some(range)
                        if range.rows < rows
                            && range.keys.start >> below_group == start >> below_group =>
                    {
                        range.keys.end = end;
                        range.rows += count;
                    }
                    _ => ranges.push(KeyRange {
                        keys: start..end,
                        rows: count,
                    }),
                }
            }
        }
        ranges
    }
}
