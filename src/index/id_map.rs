//! A map from ids to small numbers, compact where neighbouring ids have the same number.

use super::table::CHUNK_BITS;
use super::table::{ChunkTable, Offsets, id_at, split};
use super::values::OffsetMap;

/// A map from the ids of objects of one kind to numbers. Ids may be any `i64`, in any order. A look-up returns 0 for an
/// id without a number.
///
/// 65,536 neighbouring ids share a chunk. A chunk has one of three forms:
///
/// - a list of the ids that have a number, if all these numbers are the same: 2 bytes per id;
/// - a list of the ids that have a number, and of their numbers: 6 bytes per id;
/// - a palette of the distinct numbers, and the index of the number of each id in the palette: 1 to 32 bits for each of
///   the 65,536 ids. The indices into a palette with a single number need 8 kB. A palette is used if it is smaller than
///   a list.
#[derive(Debug, Default, Clone)]
pub struct IdMap {
    /// A filter for look-ups, small enough for the processor's cache. Most look-ups are of ids that have no number and
    /// are not close to an id with a number. One bit of the filter answers such a look-up.
    taken: ChunkTable<TakenGroups>,
    chunks: ChunkTable<OffsetMap>,
    len: u64,
}

/// One bit for each group of 1024 ids of a chunk. The bit is set if any of these ids has a number. The lowest bit is
/// for the first 1024 ids.
#[derive(Debug, Default, Clone, Copy)]
struct TakenGroups(u64);

impl TakenGroups {
    /// Returns the bit of the group of 1024 ids that contains `offset`.
    const fn bit(offset: u16) -> u64 {
        1 << (offset >> (CHUNK_BITS - 6))
    }

    /// Whether any id in the group of 1024 ids that contains `offset` has a number.
    #[inline]
    const fn may_have_number(self, offset: u16) -> bool {
        self.0 & Self::bit(offset) != 0
    }
}

impl Offsets for TakenGroups {
    fn meets(&self, low: u16, high: u16) -> bool {
        let from_low = self.0 & (u64::MAX << Self::bit(low).trailing_zeros());
        from_low & (Self::bit(high) | (Self::bit(high) - 1)) != 0
    }
}

impl IdMap {
    /// Returns the number of an id; 0 if the id has none.
    #[inline]
    pub fn get(&self, id: i64) -> u32 {
        let (number, offset) = split(id);
        let taken = self.taken.chunk(number);
        if !taken.is_some_and(|taken| taken.may_have_number(offset)) {
            return 0;
        }
        self.chunks
            .chunk(number)
            .map_or(0, |chunk| chunk.get(offset))
    }

    /// Assigns the number `more` to an id. If the id already has another number `old`, assigns `combine(old, more)`
    /// instead. `combine` must not return 0.
    pub fn add(&mut self, id: i64, more: u32, combine: impl FnOnce(u32, u32) -> u32) {
        let (number, offset) = split(id);
        let chunk = self.chunks.chunk_mut(number);
        let old = chunk.get(offset);
        let new = if old == 0 || old == more {
            more
        } else {
            combine(old, more)
        };
        if new != old {
            if old == 0 {
                self.taken.chunk_mut(number).0 |= TakenGroups::bit(offset);
            }
            chunk.set(offset, new);
            self.len += u64::from(old == 0);
        }
    }

    /// Returns a cursor for many look-ups of ids that are mostly in ascending order.
    pub fn walk(&self) -> IdMapCursor<'_> {
        IdMapCursor {
            map: self,
            number: None,
            taken: TakenGroups::default(),
            chunk: None,
            at: 0,
        }
    }

    /// Calls `visit` with each id that has a number, and that number. The order of the ids is unspecified.
    pub fn for_each(&self, mut visit: impl FnMut(i64, u32)) {
        let (below, above) = self.chunks.chunks();
        for (number, chunk) in below.iter().chain(&above) {
            chunk.for_each_number(|offset, value| visit(id_at(*number, offset), value));
        }
    }

    /// Whether an id from `first` to `last` (inclusive, in canonical order) may have a number. The result is exact for
    /// positive ids. If `first` is not positive, the range counts as if it contained 0 and all negative ids.
    pub fn may_meet(&self, first: i64, last: i64) -> bool {
        !self.is_empty() && self.chunks.may_meet(first, last)
    }

    /// Returns the number of ids that have a number.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the map is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the memory usage of the map in bytes.
    pub fn bytes(&self) -> u64 {
        let (below, above) = self.chunks.chunks();
        let chunks = below.iter().chain(&above);
        self.taken.bytes()
            + self.chunks.bytes()
            + chunks.map(|(_, chunk)| chunk.bytes()).sum::<u64>()
    }
}

/// A cursor that looks up ids in an [`IdMap`]. Fast if each id is a little larger than the previous id.
#[derive(Debug)]
pub struct IdMapCursor<'m> {
    map: &'m IdMap,
    /// The chunk number of the last id looked up; `None` before the first look-up.
    number: Option<u64>,
    /// The bits in [`IdMap::taken`] of the chunk of the last id looked up.
    taken: TakenGroups,
    /// The numbers of the ids in the chunk of the last id looked up; `None` until a look-up in the chunk needs them.
    chunk: Option<&'m OffsetMap>,
    /// The index in the list of the chunk at which the last look-up ended, for [`OffsetMap::get_with_hint`].
    at: usize,
}

impl IdMapCursor<'_> {
    /// Returns the number of an id; 0 if the id has none. Needs `&mut self`, because the cursor remembers the position
    /// of the look-up.
    #[inline]
    pub fn get(&mut self, id: i64) -> u32 {
        let (number, offset) = split(id);
        if self.number != Some(number) {
            self.move_to_chunk(number);
        }
        if !self.taken.may_have_number(offset) {
            return 0;
        }
        if self.chunk.is_none() {
            self.chunk = self.map.chunks.chunk(number);
        }
        self.chunk
            .map_or(0, |chunk| chunk.get_with_hint(offset, &mut self.at))
    }

    /// Moves the cursor to the chunk `number`, which may be absent.
    #[inline]
    fn move_to_chunk(&mut self, number: u64) {
        let taken = self.map.taken.chunk(number);
        self.taken = taken.copied().unwrap_or_default();
        (self.number, self.chunk, self.at) = (Some(number), None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_number_of_an_id_is_combined_with_the_old_one() {
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
        let mut found = Vec::new();
        map.for_each(|id, number| found.push((id, number)));
        found.sort_unstable();
        let mut all = ids.map(|id| (id, 3));
        all.sort_unstable();
        assert_eq!(found, all);
        assert!(map.may_meet(6, 70_000) && !map.may_meet(6, 69_999));
    }
}
