//! A set for fast look-ups of many ids, few of which are in the set.

use super::id_set::IdSet;
use std::borrow::Cow;

/// A set that may also report ids that were not added. It consists of 64 times `WORDS` bits, one for each remainder of
/// an id divided by the number of bits. Its size in memory does not depend on the ids.
#[derive(Debug)]
pub(crate) struct Remainders<const WORDS: usize>(Vec<u64>);

impl<const WORDS: usize> Remainders<WORDS> {
    /// Returns the word and the bit of an id.
    const fn word_and_bit(id: i64) -> (usize, u32) {
        (((id >> 6) as usize) % WORDS, (id & 63) as u32)
    }

    /// Whether the set may have `id`. The probability that an id is reported although it was not added is at most the
    /// number of added ids divided by the number of bits.
    #[inline]
    pub(crate) fn may_have(&self, id: i64) -> bool {
        let (word, bit) = Self::word_and_bit(id);
        self.0[word] >> bit & 1 != 0
    }
}

impl<const WORDS: usize> Default for Remainders<WORDS> {
    fn default() -> Self {
        Self(vec![0; WORDS])
    }
}

impl<const WORDS: usize> Extend<i64> for Remainders<WORDS> {
    fn extend<I: IntoIterator<Item = i64>>(&mut self, ids: I) {
        for id in ids {
            let (word, bit) = Self::word_and_bit(id);
            self.0[word] |= 1 << bit;
        }
    }
}

/// A set of some thousands of ids. Most look-ups are for ids outside of the set.
#[derive(Debug)]
pub(crate) struct SparseIds<'i> {
    ids: Cow<'i, IdSet>,
    /// The set that look-ups test first. Its 64 kB stay in the processor's cache.
    remainders: Remainders<{ 1 << 13 }>,
}

impl<'i> SparseIds<'i> {
    /// Prepares look-ups in a set.
    pub(crate) fn new(ids: Cow<'i, IdSet>) -> Self {
        let mut remainders = Remainders::default();
        remainders.extend(ids.ids());
        Self { ids, remainders }
    }

    /// Whether the set has `id`.
    #[inline]
    pub(crate) fn contains(&self, id: i64) -> bool {
        self.remainders.may_have(id) && self.ids.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    #[test]
    fn a_sparse_set_contains_the_same_ids_as_its_plain_set() {
        let mut random = Random(9);
        let ids: IdSet = (0..3000)
            .map(|_| (random.below(1 << 30) - (1 << 29)) * 1001)
            .chain([i64::MIN, i64::MAX, 0, -1])
            .collect();
        let sparse = SparseIds::new(Cow::Borrowed(&ids));
        let far = 1 << 19;
        for id in ids.ids() {
            assert!(sparse.contains(id));
            // The first two ids have the same remainder as `id`, and the third has the next one.
            for other in [
                id.wrapping_add(far),
                id.wrapping_sub(far),
                id.wrapping_add(1),
            ] {
                assert_eq!(sparse.contains(other), ids.contains(other), "{other}");
            }
        }
    }

    #[test]
    fn sparse_ids_find_every_id_and_few_others() {
        let mut random = Random(10);
        let ids: IdSet = (0..5000).map(|_| random.below(1 << 30) * 7).collect();
        let mut remainders = Remainders::<{ 1 << 13 }>::default();
        remainders.extend(ids.ids());
        assert!(ids.ids().all(|id| remainders.may_have(id)));
        let others = (0..100_000).map(|_| random.below(1 << 30) * 7 + 1);
        let added = others.filter(|id| remainders.may_have(*id)).count();
        // 5000 of 2^19 bits are 1 %.
        assert!(added < 2000, "{added}");
    }
}
