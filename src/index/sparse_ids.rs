//! Look-ups in a set that has few of the ids that are looked up.

use super::id_set::IdSet;
use std::borrow::Cow;

/// The number of words of [`SparseIds::remainders`]: 64 kB.
const WORDS: usize = 1 << 13;

/// A set of some thousands of ids, in which most look-ups find nothing.
#[derive(Debug)]
pub(crate) struct SparseIds<'i> {
    ids: Cow<'i, IdSet>,
    /// A bit for each remainder of an id. It is set if some id of the set has this remainder. The bits stay in the cache
    /// of a processor.
    remainders: Box<[u64; WORDS]>,
}

impl<'i> SparseIds<'i> {
    /// Prepares look-ups in a set.
    pub(crate) fn new(ids: Cow<'i, IdSet>) -> Self {
        let mut remainders = Box::new([0; WORDS]);
        for id in ids.ids() {
            let (word, bit) = Self::place(id);
            remainders[word] |= 1 << bit;
        }
        Self { ids, remainders }
    }

    /// Returns the word and the bit of an id.
    const fn place(id: i64) -> (usize, u32) {
        (((id >> 6) as usize) % WORDS, (id & 63) as u32)
    }

    /// Whether the set has `id`.
    #[inline]
    pub(crate) fn contains(&self, id: i64) -> bool {
        let (word, bit) = Self::place(id);
        self.remainders[word] >> bit & 1 != 0 && self.ids.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    #[test]
    fn a_set_has_what_it_has_without_its_bits() {
        let mut random = Random(9);
        let ids: IdSet = (0..3000)
            .map(|_| (random.below(1 << 30) - (1 << 29)) * 1001)
            .chain([i64::MIN, i64::MAX, 0, -1])
            .collect();
        let sparse = SparseIds::new(Cow::Borrowed(&ids));
        let far = (WORDS as i64) << 6;
        for id in ids.ids() {
            assert!(sparse.contains(id));
            // These ids have the same remainder, and the next one.
            for other in [
                id.wrapping_add(far),
                id.wrapping_sub(far),
                id.wrapping_add(1),
            ] {
                assert_eq!(sparse.contains(other), ids.contains(other), "{other}");
            }
        }
    }
}
