//! A table that assigns a number to each distinct set of `u32` members.

use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The number of a set in a [`SetTable`].
pub type SetNumber = u32;

/// The number of the empty set.
pub const EMPTY_SET: SetNumber = 0;

/// A table of distinct sets of `u32` members, each stored as a bitmap. Equal sets have the same [`SetNumber`]; the
/// empty set has the number [`EMPTY_SET`]. Several threads may use the table at the same time. The order of their calls
/// decides which numbers the sets get.
#[derive(Debug)]
pub struct SetTable(RwLock<Sets>);

#[derive(Debug, Default)]
struct Sets {
    /// The members of each set as a bitmap without trailing zero words, by [`SetNumber`].
    sets: Vec<Arc<[u64]>>,
    /// The number of each set in `sets`.
    numbers: FxHashMap<Arc<[u64]>, SetNumber>,
}

impl Default for SetTable {
    fn default() -> Self {
        let mut sets = Sets::default();
        sets.intern(Vec::new());
        Self(RwLock::new(sets))
    }
}

impl Sets {
    /// Returns the number of the set with the bitmap `words`, and adds the set if it is new.
    fn intern(&mut self, mut words: Vec<u64>) -> SetNumber {
        while words.pop_if(|word| *word == 0).is_some() {}
        if let Some(number) = self.numbers.get(words.as_slice()) {
            return *number;
        }
        let (set, number) = (Arc::<[u64]>::from(words), self.sets.len() as SetNumber);
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }
}

impl SetTable {
    /// Returns the bitmap of a set of this table.
    fn words(&self, set: SetNumber) -> Arc<[u64]> {
        let sets = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sets.sets[set as usize].clone()
    }

    fn intern(&self, words: Vec<u64>) -> SetNumber {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .intern(words)
    }

    /// Returns the number of the set with the given members, and adds the set if it is new.
    pub fn of(&self, members: impl IntoIterator<Item = u32>) -> SetNumber {
        let mut words = Vec::new();
        for member in members {
            let word = (member / 64) as usize;
            if word >= words.len() {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (member % 64);
        }
        self.intern(words)
    }

    /// Returns the members of a set in ascending order.
    pub fn members(&self, set: SetNumber) -> Vec<u32> {
        let words = self.words(set);
        let in_word = |(word, bits): (u32, &u64)| {
            let bits = *bits;
            (0..64)
                .filter(move |bit| bits >> bit & 1 != 0)
                .map(move |bit| word * 64 + bit)
        };
        (0..).zip(words.iter()).flat_map(in_word).collect()
    }

    /// Whether a set contains a member.
    pub fn contains(&self, set: SetNumber, member: u32) -> bool {
        let words = self.words(set);
        let word = words.get((member / 64) as usize);
        word.is_some_and(|word| word >> (member % 64) & 1 != 0)
    }

    /// Combines the bitmaps of two sets word by word with `op`. Returns the number of the resulting set.
    fn combine(&self, one: SetNumber, two: SetNumber, op: impl Fn(u64, u64) -> u64) -> SetNumber {
        let (one, two) = (self.words(one), self.words(two));
        // Bitmaps are stored without zero words at the end, so a missing word is 0.
        let word = |set: &[u64], index: usize| set.get(index).map_or(0, |word| *word);
        let words = 0..one.len().max(two.len());
        self.intern(words.map(|at| op(word(&one, at), word(&two, at))).collect())
    }

    /// Returns the number of distinct sets in the table, including the empty set.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .sets
            .len()
    }
}

/// Set operations on the sets of a [`SetTable`], with a cache of their results. Each thread has its own `SetAlgebra`.
#[derive(Debug)]
pub struct SetAlgebra<'t> {
    table: &'t SetTable,
    unions: FxHashMap<(SetNumber, SetNumber), SetNumber>,
    differences: FxHashMap<(SetNumber, SetNumber), SetNumber>,
}

impl<'t> SetAlgebra<'t> {
    /// Creates a [`SetAlgebra`] with an empty cache for the sets of `table`.
    pub fn new(table: &'t SetTable) -> Self {
        Self {
            table,
            unions: FxHashMap::default(),
            differences: FxHashMap::default(),
        }
    }

    /// Returns the union of two sets.
    #[inline]
    pub fn union(&mut self, one: SetNumber, two: SetNumber) -> SetNumber {
        match (one, two) {
            (one, EMPTY_SET) => one,
            (EMPTY_SET, two) => two,
            (one, two) if one == two => one,
            (one, two) => self.cached_union(one, two),
        }
    }

    /// Returns the union of two sets, from the cache if possible.
    fn cached_union(&mut self, one: SetNumber, two: SetNumber) -> SetNumber {
        let pair = (one.min(two), one.max(two));
        let join = || self.table.combine(one, two, |one, two| one | two);
        *self.unions.entry(pair).or_insert_with(join)
    }

    /// Returns the difference of two sets: the members of `one` that are not in `two`.
    #[inline]
    pub fn difference(&mut self, one: SetNumber, two: SetNumber) -> SetNumber {
        match (one, two) {
            (one, EMPTY_SET) => one,
            (EMPTY_SET, _) => EMPTY_SET,
            (one, two) if one == two => EMPTY_SET,
            (one, two) => self.cached_difference(one, two),
        }
    }

    /// Returns the difference of two sets, from the cache if possible.
    fn cached_difference(&mut self, one: SetNumber, two: SetNumber) -> SetNumber {
        let subtract = || self.table.combine(one, two, |one, two| one & !two);
        *self.differences.entry((one, two)).or_insert_with(subtract)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_have_the_same_number() {
        let table = SetTable::default();
        let mut algebra = SetAlgebra::new(&table);
        let (low, high) = (table.of([1, 3]), table.of([3, 130]));
        assert_eq!(table.of([3, 1, 1]), low);
        assert_eq!(table.of([]), EMPTY_SET);
        let both = algebra.union(low, high);
        assert_eq!(table.members(both), [1, 3, 130]);
        assert_eq!(algebra.union(high, low), both);
        assert_eq!(algebra.difference(both, high), table.of([1]));
        assert_eq!(algebra.difference(low, both), EMPTY_SET);
        assert!(table.contains(both, 130) && !table.contains(low, 130));
        assert_eq!(table.len(), 5);
    }
}
