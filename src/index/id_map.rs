//! A map from ids to small numbers that costs little where neighbours are alike.

use super::chunk::CHUNK_BITS;
use super::table::{ChunkTable, Places, join, split};
use super::values::Values;
use rustc_hash::FxHashMap;

/// Numbers of objects of one kind by their ids: any `i64`, in any order. An id that has no number has 0.
///
/// 65,536 neighbouring ids share a chunk: two bytes an id where few of them have a number, all the same;
/// six where they differ; and from where that is less, as many bits an id as it takes to tell the numbers
/// in the chunk apart: 8 kB where there is one.
#[derive(Debug, Default, Clone)]
pub struct IdMap {
    /// Most ids that are asked about have no number, and no neighbour that has: to know that takes a bit
    /// that is in the cache.
    taken: ChunkTable<Taken>,
    chunks: ChunkTable<Values>,
    len: u64,
}

/// A bit for each 1024 of 65,536 neighbours, the lowest for the first: whether any has a number.
#[derive(Debug, Default, Clone, Copy)]
struct Taken(u64);

impl Taken {
    const fn bit(place: u16) -> u64 {
        1 << (place >> (CHUNK_BITS - 6))
    }

    #[inline]
    const fn is_near(self, place: u16) -> bool {
        self.0 & Self::bit(place) != 0
    }
}

impl Places for Taken {
    fn meets(&self, low: u16, high: u16) -> bool {
        let from_low = self.0 & (u64::MAX << Self::bit(low).trailing_zeros());
        from_low & (Self::bit(high) | (Self::bit(high) - 1)) != 0
    }
}

impl IdMap {
    /// The number of an id, or 0.
    #[inline]
    pub fn get(&self, id: i64) -> u32 {
        let (number, place) = split(id);
        let taken = self.taken.chunk(number);
        if !taken.is_some_and(|taken| taken.is_near(place)) {
            return 0;
        }
        self.chunks
            .chunk(number)
            .map_or(0, |chunk| chunk.get(place))
    }

    /// Gives an id the number that `combine` makes of the one it has, or 0, and that one.
    pub fn add(&mut self, id: i64, more: u32, combine: impl FnOnce(u32, u32) -> u32) {
        let (number, place) = split(id);
        let chunk = self.chunks.chunk_mut(number);
        let old = chunk.get(place);
        let new = if old == 0 || old == more {
            more
        } else {
            combine(old, more)
        };
        if new != old {
            if old == 0 {
                self.taken.chunk_mut(number).0 |= Taken::bit(place);
            }
            chunk.set(place, new);
            self.len += u64::from(old == 0);
        }
    }

    /// For asking about many ids that are mostly in order.
    pub fn walk(&self) -> IdMapWalk<'_> {
        IdMapWalk {
            map: self,
            number: None,
            taken: Taken::default(),
            chunk: None,
            at: 0,
        }
    }

    /// Calls `look` with each id that has a number.
    pub fn for_each(&self, mut look: impl FnMut(i64, u32)) {
        let (below, above) = self.chunks.chunks();
        for (number, chunk) in below.iter().chain(&above) {
            chunk.each(|place, value| look(join(*number, place), value));
        }
    }

    /// How many ids have each number.
    pub fn counts(&self) -> FxHashMap<u32, u64> {
        let mut counts = FxHashMap::default();
        let (below, above) = self.chunks.chunks();
        for (_, chunk) in below.iter().chain(&above) {
            chunk.counts(|number, count| *counts.entry(number).or_default() += count);
        }
        counts
    }

    /// Whether an id between two others, in canonical order and both included, may have a number. Exact
    /// for positive ids.
    pub fn may_meet(&self, first: i64, last: i64) -> bool {
        !self.is_empty() && self.chunks.may_meet(first, last)
    }

    /// How many ids have a number.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether none has.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory that the map takes, in bytes.
    pub fn bytes(&self) -> u64 {
        let (below, above) = self.chunks.chunks();
        let chunks = below.iter().chain(&above);
        self.taken.bytes()
            + self.chunks.bytes()
            + chunks.map(|(_, chunk)| chunk.bytes()).sum::<u64>()
    }
}

/// Looks up ids in an [`IdMap`], quickly where each is a little behind the one before.
#[derive(Debug)]
pub struct IdMapWalk<'m> {
    map: &'m IdMap,
    /// The chunk of the last id, where one was asked for.
    number: Option<u64>,
    taken: Taken,
    /// Its numbers, once they were needed.
    chunk: Option<&'m Values>,
    /// Where in the chunk the last id was.
    at: usize,
}

impl IdMapWalk<'_> {
    /// The number of an id, or 0.
    #[inline]
    pub fn get(&mut self, id: i64) -> u32 {
        let (number, place) = split(id);
        if self.number != Some(number) {
            self.enter(number);
        }
        if !self.taken.is_near(place) {
            return 0;
        }
        if self.chunk.is_none() {
            self.chunk = self.map.chunks.chunk(number);
        }
        self.chunk
            .map_or(0, |chunk| chunk.get_near(place, &mut self.at))
    }

    #[inline]
    fn enter(&mut self, number: u64) {
        let taken = self.map.taken.chunk(number);
        self.taken = taken.copied().unwrap_or_default();
        (self.number, self.chunk, self.at) = (Some(number), None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_joined_with_what_was_there() {
        let mut map = IdMap::default();
        let ids = [0, -1, 5, 70_000, i64::MIN, i64::MAX, 1 << 40];
        for id in ids {
            map.add(id, 1, |_, _| unreachable!());
            map.add(id, 2, |old, more| old | more);
        }
        assert!(ids.iter().all(|id| map.get(*id) == 3) && map.get(6) == 0);
        let mut walk = map.walk();
        assert!(
            ids.iter()
                .all(|id| walk.get(*id) == 3 && walk.get(*id ^ 2) == 0)
        );
        assert_eq!(map.len(), ids.len() as u64);
        assert_eq!(map.counts(), [(3, ids.len() as u64)].into_iter().collect());
        let mut found = Vec::new();
        map.for_each(|id, number| found.push((id, number)));
        found.sort_unstable();
        let mut all = ids.map(|id| (id, 3));
        all.sort_unstable();
        assert_eq!(found, all);
        assert!(map.may_meet(6, 70_000) && !map.may_meet(6, 69_999));
    }
}
