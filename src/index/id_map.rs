//! A map from ids to small numbers that costs little where neighbours are alike.

use super::chunk::CHUNK_BITS;
use super::table::{ChunkTable, Places, split};
use super::values::Values;

/// Numbers of objects of one kind by their ids: any `i64`, in any order. An id that has no number has 0.
///
/// 65,536 neighbouring ids share a chunk: two bytes an id where few of them have a number, all the same;
/// six where they differ; and from where that is less, as many bits an id as it takes to tell the numbers
/// in the chunk apart: 8 kB where there is one.
#[derive(Debug, Default, Clone)]
pub struct IdMap {
    chunks: ChunkTable<Chunk>,
    len: u64,
}

/// The numbers of 65,536 neighbours.
#[derive(Debug, Default, Clone)]
struct Chunk {
    /// A bit for each 1024 of them, the lowest for the first: whether any has a number. Most ids that are
    /// asked about have none and no neighbour that has.
    taken: u64,
    values: Values,
}

impl Chunk {
    #[inline]
    const fn bit(place: u16) -> u64 {
        1 << (place >> (CHUNK_BITS - 6))
    }

    #[inline]
    fn get(&self, place: u16) -> u32 {
        if self.taken & Self::bit(place) == 0 {
            return 0;
        }
        self.values.get(place)
    }

    /// As [`get`](Self::get), see [`Values::get_near`].
    #[inline]
    fn get_near(&self, place: u16, at: &mut usize) -> u32 {
        if self.taken & Self::bit(place) == 0 {
            return 0;
        }
        self.values.get_near(place, at)
    }

    fn set(&mut self, place: u16, number: u32) {
        self.taken |= Self::bit(place);
        self.values.set(place, number);
    }
}

impl Places for Chunk {
    fn meets(&self, low: u16, high: u16) -> bool {
        self.values.meets(low, high)
    }
}

impl IdMap {
    /// The number of an id, or 0.
    #[inline]
    pub fn get(&self, id: i64) -> u32 {
        let (number, place) = split(id);
        self.chunks
            .chunk(number)
            .map_or(0, |chunk| chunk.get(place))
    }

    /// Gives an id the number that `join` makes of the one it has, or 0, and that one.
    pub fn add(&mut self, id: i64, more: u32, join: impl FnOnce(u32, u32) -> u32) {
        let (number, place) = split(id);
        let chunk = self.chunks.chunk_mut(number);
        let old = chunk.get(place);
        let new = if old == 0 || old == more {
            more
        } else {
            join(old, more)
        };
        if new != old {
            chunk.set(place, new);
            self.len += u64::from(old == 0);
        }
    }

    /// For asking about many ids that are mostly in order.
    pub fn walk(&self) -> IdMapWalk<'_> {
        IdMapWalk {
            map: self,
            number: None,
            chunk: None,
            at: 0,
        }
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
        self.chunks.bytes() + chunks.map(|(_, chunk)| chunk.values.bytes()).sum::<u64>()
    }
}

/// Looks up ids in an [`IdMap`], quickly where each is a little behind the one before.
#[derive(Debug)]
pub struct IdMapWalk<'m> {
    map: &'m IdMap,
    /// The chunk of the last id, where one was asked for.
    number: Option<u64>,
    chunk: Option<&'m Chunk>,
    /// Where in the chunk the last id was.
    at: usize,
}

impl IdMapWalk<'_> {
    /// The number of an id, or 0.
    #[inline]
    pub fn get(&mut self, id: i64) -> u32 {
        let (number, place) = split(id);
        if self.number != Some(number) {
            (self.number, self.at) = (Some(number), 0);
            self.chunk = self.map.chunks.chunk(number);
        }
        self.chunk
            .map_or(0, |chunk| chunk.get_near(place, &mut self.at))
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
        assert!(map.may_meet(6, 70_000) && !map.may_meet(6, 69_999));
    }
}
