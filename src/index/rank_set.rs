//! The ranks of ids in a set.

use super::chunk::{LastFound, MAX_ARRAY_LEN, OffsetSet, RunCounts, find_near_last, window};
use super::id_batch::IdBatch;
use super::id_set::IdSet;
use super::table::{ChunkTable, Offsets, id_at, split};
use crate::osm::id_rank;
use crate::system::prefer_huge_pages;
use std::hint::black_box;

/// A set of ids that returns the rank of each id: its index in canonical order, from 0.
///
/// 65,536 neighbouring ids share a chunk, which uses two bytes per id for up to 4,096 ids, and 8.3 kB for more ids. The
/// table of chunks uses 17 bytes per chunk, and grows with the largest id, up to 9 MB. Chunks of negative ids and of
/// ids above 34 thousand million are in a hash table.
#[derive(Debug, Default, Clone)]
pub struct RankSet {
    chunks: ChunkTable<RankedChunk>,
    /// The lists of the chunks that have a list. Each list has the offsets of the ids of its chunk in ascending order.
    /// The lists are in one vector, ordered by the ranks of their ids, so that a list needs no allocation of its own
    /// and look-ups have few cache misses.
    lists: Vec<u16>,
    /// The chunks with bitmaps.
    maps: Vec<(OffsetSet, RunCounts)>,
    len: u64,
}

/// The ids of a chunk, and their ranks.
#[derive(Debug, Default, Clone, Copy)]
struct RankedChunk {
    /// The smallest rank in the chunk. For the chunk that contains the id 0: one less than the smallest rank of the
    /// other ids of the chunk.
    first: u64,
    /// In the low [`Self::COUNT_BITS`], the number of ids. In the other bits, the start of the list in
    /// [`RankSet::lists`], or for more than [`MAX_ARRAY_LEN`] ids the index in [`RankSet::maps`].
    place: u64,
}

impl RankedChunk {
    const COUNT_BITS: u32 = 17;

    const fn new(first: u64, start: usize, count: usize) -> Self {
        Self {
            first,
            place: (start as u64) << Self::COUNT_BITS | count as u64,
        }
    }

    const fn count(self) -> usize {
        (self.place & ((1 << Self::COUNT_BITS) - 1)) as usize
    }

    const fn start(self) -> usize {
        (self.place >> Self::COUNT_BITS) as usize
    }

    const fn has_list(self) -> bool {
        self.count() <= MAX_ARRAY_LEN
    }
}

impl Offsets for RankedChunk {
    fn meets(&self, _: u16, _: u16) -> bool {
        true
    }
}

impl From<IdSet> for RankSet {
    fn from(set: IdSet) -> Self {
        let mut ranks = RankSetBuilder {
            has_zero: set.contains(0),
            ..RankSetBuilder::default()
        };
        let (below, above) = set.chunks().chunks();
        let mut listed = Vec::new();
        for (number, chunk) in below.into_iter().chain(above) {
            ranks.push_chunk(number, chunk.sorted_slice(&mut listed));
        }
        ranks.finish()
    }
}

impl RankSet {
    /// Returns the rank of an id, which is the number of ids of the set that precede it in canonical order. Returns
    /// `None` if the id is not in the set.
    pub fn rank(&self, id: i64) -> Option<u64> {
        self.rank_in(self.chunk(id), id, &mut LastFound::default())
    }

    /// Whether the id is in the set.
    pub fn contains(&self, id: i64) -> bool {
        self.rank(id).is_some()
    }

    /// Returns the number of ids in the set.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the set has no ids.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Calls `visit` with the index of each id in `ids`, in ascending order, and with the rank of the id as
    /// [`rank`](Self::rank) returns it. Ids are looked up in batches whose cache misses overlap.
    #[inline]
    pub fn for_each_rank(&self, ids: &[i64], mut visit: impl FnMut(usize, Option<u64>)) {
        const AT_A_TIME: usize = 64;
        let mut chunks = [RankedChunk::default(); AT_A_TIME];
        let mut last = LastFound::default();
        for (batch, ids) in ids.chunks(AT_A_TIME).enumerate() {
            for (chunk, id) in chunks.iter_mut().zip(ids) {
                *chunk = self.chunk(*id);
            }
            for (chunk, id) in chunks.iter().zip(ids) {
                self.prefetch(*chunk, *id);
            }
            for (index, (chunk, id)) in chunks.iter().zip(ids).enumerate() {
                visit(
                    batch * AT_A_TIME + index,
                    self.rank_in(*chunk, *id, &mut last),
                );
            }
        }
    }

    /// Returns a cursor for many look-ups of ids that are close to each other.
    pub fn walk(&self) -> RankCursor<'_> {
        RankCursor {
            ranks: self,
            chunk: None,
            last: LastFound::default(),
        }
    }

    /// Returns the ids in canonical order: 0, then negative ids by absolute value, then positive ones.
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        let (below, above) = self.chunks.chunks();
        let zero = self.contains(0).then_some(0);
        // Canonical order is by absolute value, so the offsets of negative ids are reversed.
        let below = below.into_iter().flat_map(|(number, chunk)| {
            let offsets = self.offsets(*chunk).rev();
            offsets.map(move |offset| id_at(number, offset))
        });
        let above = above.into_iter().flat_map(|(number, chunk)| {
            let offsets = self.offsets(*chunk);
            offsets.map(move |offset| id_at(number, offset))
        });
        zero.into_iter()
            .chain(below)
            .chain(above.filter(|id| *id != 0))
    }

    /// Returns the chunk of an id, or an empty chunk if there is none.
    #[inline]
    fn chunk(&self, id: i64) -> RankedChunk {
        let (number, _) = split(id);
        self.chunks.chunk(number).copied().unwrap_or_default()
    }

    /// Returns the list of a chunk; an empty list if the chunk has a bitmap.
    #[inline]
    fn list(&self, chunk: RankedChunk) -> &[u16] {
        if chunk.has_list() {
            &self.lists[chunk.start()..][..chunk.count()]
        } else {
            &[]
        }
    }

    /// Returns the offsets of a chunk in ascending order.
    fn offsets(&self, chunk: RankedChunk) -> impl DoubleEndedIterator<Item = u16> + '_ {
        let map = (!chunk.has_list()).then(|| &self.maps[chunk.start()].0);
        let in_map = map.into_iter().flat_map(OffsetSet::offsets);
        self.list(chunk).iter().copied().chain(in_map)
    }

    /// Loads into the processor's cache the memory that [`rank_in`](Self::rank_in) reads.
    #[inline]
    fn prefetch(&self, chunk: RankedChunk, id: i64) {
        let (_, offset) = split(id);
        if chunk.has_list() {
            let (_, window) = window(self.list(chunk), offset);
            black_box((window.first().copied(), window.last().copied()));
        } else {
            let (map, _) = &self.maps[chunk.start()];
            map.slot(offset).prefetch();
        }
    }

    /// Returns the rank of an id; `None` if the set does not have it. `chunk` is the chunk of the id, and `last` is the
    /// previous look-up.
    #[inline]
    fn rank_in(&self, chunk: RankedChunk, id: i64, last: &mut LastFound) -> Option<u64> {
        let (number, offset) = split(id);
        let within = if chunk.has_list() {
            find_near_last(number, self.list(chunk), offset, last)? as u64
        } else {
            let (map, counts) = &self.maps[chunk.start()];
            counts.rank(number, map, offset, last)?
        };
        Some(match id {
            0 => 0,
            ..0 => chunk.first + (chunk.count() as u64 - 1 - within),
            1.. => chunk.first + within,
        })
    }
}

/// A builder of a [`RankSet`], to which ids are added in canonical order.
#[derive(Debug, Default)]
pub struct RankSetBuilder {
    set: RankSet,
    /// The number of the chunk to which ids are added at the moment.
    open: Option<u64>,
    /// The offsets of the ids of the open chunk, in the order in which they were added.
    offsets: Vec<u16>,
    /// Whether the set has the id 0, but no chunk with this id yet. That chunk comes after the chunks of negative ids.
    has_zero: bool,
    last: Option<i64>,
}

impl RankSetBuilder {
    /// Adds an id. Must be called with distinct ids in canonical order.
    #[inline]
    pub fn push(&mut self, id: i64) {
        debug_assert!(self.last.map(id_rank) < Some(id_rank(id)));
        self.last = Some(id);
        let (number, offset) = split(id);
        if self.open != Some(number) {
            if id == 0 {
                self.has_zero = true;
                return;
            }
            self.open_chunk(number);
        }
        self.offsets.push(offset);
    }

    /// Adds the ids of a batch. As for [`push`](Self::push), they must follow the previous ids in canonical order.
    pub fn push_batch(&mut self, batch: &IdBatch) {
        for (number, offsets) in batch.chunks() {
            self.push_chunk(number, offsets);
        }
    }

    /// Adds ids of a chunk, as [`push`](Self::push) does. `offsets` are in ascending order.
    fn push_chunk(&mut self, number: u64, offsets: &[u16]) {
        let offsets = match offsets {
            [0, others @ ..] if number == 0 => {
                self.has_zero = true;
                others
            }
            offsets => offsets,
        };
        if offsets.is_empty() {
            return;
        }
        if self.open != Some(number) {
            self.open_chunk(number);
        }
        if id_at(number, 0) < 0 {
            self.offsets.extend(offsets.iter().rev());
        } else {
            self.offsets.extend_from_slice(offsets);
        }
    }

    /// Returns the set of all ids.
    pub fn finish(mut self) -> RankSet {
        self.open_chunk(0);
        self.close_chunk();
        self.set.lists.shrink_to_fit();
        self.set
    }

    /// Closes the open chunk and opens another one. Adds the id 0 before the first chunk without negative ids.
    fn open_chunk(&mut self, number: u64) {
        self.close_chunk();
        let is_negative = id_at(number, 0) < 0;
        if self.has_zero && !is_negative {
            self.has_zero = false;
            self.offsets.push(0);
            if number != 0 {
                self.open = Some(0);
                self.close_chunk();
            }
        }
        self.open = Some(number);
    }

    /// Adds the open chunk to the set.
    fn close_chunk(&mut self) {
        let (Some(number), count) = (self.open.take(), self.offsets.len()) else {
            return;
        };
        if count == 0 {
            return;
        }
        if id_at(number, 0) < 0 {
            self.offsets.reverse();
        }
        let set = &mut self.set;
        // The id 0 has the lowest rank, although its chunk comes after the chunks of negative ids.
        let first = set.len + u64::from(self.has_zero);
        let start = if count <= MAX_ARRAY_LEN {
            let room = set.lists.capacity();
            set.lists.extend_from_slice(&self.offsets);
            if set.lists.capacity() > room {
                prefer_huge_pages(&mut set.lists);
            }
            set.lists.len() - count
        } else {
            let map = OffsetSet::of_ascending(&self.offsets);
            let (counts, _) = RunCounts::new(&map);
            set.maps.push((map, counts));
            set.maps.len() - 1
        };
        *set.chunks.chunk_mut(number) = RankedChunk::new(first, start, count);
        set.len += count as u64;
        self.offsets.clear();
    }
}

impl Extend<i64> for RankSetBuilder {
    /// Adds ids, as [`push`](Self::push) does.
    fn extend<T: IntoIterator<Item = i64>>(&mut self, ids: T) {
        ids.into_iter().for_each(|id| self.push(id));
    }
}

/// A cursor that looks up ids in a [`RankSet`]. Fast if each id is close to the previous id.
#[derive(Debug, Clone)]
pub struct RankCursor<'r> {
    ranks: &'r RankSet,
    /// The number of the chunk of the last look-up, and the chunk.
    chunk: Option<(u64, RankedChunk)>,
    last: LastFound,
}

impl RankCursor<'_> {
    /// Returns the rank of an id, as [`RankSet::rank`] does.
    #[inline]
    pub fn rank(&mut self, id: i64) -> Option<u64> {
        let (number, _) = split(id);
        let chunk = match self.chunk {
            Some((last, chunk)) if last == number => chunk,
            _ => {
                let chunk = self.ranks.chunk(id);
                self.chunk = Some((number, chunk));
                chunk
            }
        };
        self.ranks.rank_in(chunk, id, &mut self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_of_an_id_is_its_place_in_canonical_order() {
        let dense = (0..20_000).map(|i| i * 3 - 30_000);
        let far = [
            i64::MIN,
            i64::MAX,
            1 << 40,
            -(1 << 40),
            65_536,
            -65_536,
            -65_537,
        ];
        let many: Vec<i64> = dense.chain(far).collect();
        for ids in [
            vec![],
            vec![0],
            vec![-1, 1],
            vec![0, 1, -1],
            (1..10).collect(),
            many,
        ] {
            let ranks = RankSet::from(ids.iter().copied().collect::<IdSet>());
            let mut count = 0;
            for (rank, id) in (0..).zip(ranks.ids()) {
                assert_eq!(ranks.rank(id), Some(rank), "{id}");
                count += 1;
            }
            assert_eq!(count, ids.len());
            let absent = [2, -2, 7_000_000, i64::MIN + 1, 40_000]
                .into_iter()
                .filter(|id| !ids.contains(id));
            assert!(absent.map(|id| ranks.rank(id)).all(|rank| rank.is_none()));
            let (mut walk, mut order) = (ranks.walk(), ids.clone());
            for _ in 0..2 {
                for id in &order {
                    assert_eq!(walk.rank(*id), ranks.rank(*id), "{id}");
                }
                order.reverse();
            }
        }
    }
}
