//! A set of ids: a sorted list or a bitmap for each 65,536 neighbouring ids.

use super::chunk::{OffsetSet, OffsetSlot};
use super::id_batch::IdBatch;
use super::table::{ChunkTable, id_at, split};
use crate::osm::ObjectKind;
use crate::pbf::BlobEntry;

/// A set of the ids of objects of one kind. Ids may be any `i64`, dense or sparse, in any order.
///
/// 65,536 neighbouring ids share a chunk, which uses two bytes per id for up to 4,096 ids, and 8 kB for more ids. The
/// table of chunks grows with the largest id, up to 12 MB. Chunks of negative ids and of ids above 34 thousand million
/// are in a hash table.
#[derive(Debug, Default, Clone)]
pub struct IdSet {
    chunks: ChunkTable<OffsetSet>,
    len: u64,
}

impl IdSet {
    /// Adds an id. Returns whether the id was absent before.
    pub fn insert(&mut self, id: i64) -> bool {
        let (chunk, offset) = split(id);
        let is_new = self.chunks.chunk_mut(chunk).insert(offset);
        self.len += u64::from(is_new);
        is_new
    }

    /// Adds the ids of a batch.
    pub fn add(&mut self, batch: &IdBatch) {
        for (number, offsets) in batch.chunks() {
            let added = self.chunks.chunk_mut(number).add(offsets);
            self.len += added as u64;
        }
    }

    /// Creates a set from its chunks.
    pub(super) fn of_chunks(chunks: ChunkTable<OffsetSet>) -> Self {
        let (below, above) = chunks.chunks();
        let len = below.iter().chain(&above).map(|(_, chunk)| chunk.len());
        Self {
            len: len.sum(),
            chunks,
        }
    }

    /// Returns the union of two sets, which must not have ids in the same page of chunks.
    pub(super) fn join(mut self, other: Self) -> Self {
        self.chunks.join(other.chunks);
        self.len += other.len;
        self
    }

    /// If all ids of a batch are known to be new, adds them and returns `true`. Otherwise adds nothing and returns
    /// `false`. An id is known to be new if it is greater than all ids of its chunk, or if its chunk is a bitmap
    /// without the id. Other ids may be new, too, but they are not looked up. Also returns `false` if the chunks of the
    /// batch are not in ascending order. An id that the batch repeats within a run of ids of the same chunk counts
    /// once.
    pub fn add_new(&mut self, batch: &IdBatch) -> bool {
        let takes = |(number, offsets): (u64, &[u16])| {
            let chunk = self.chunks.chunk(number);
            chunk.is_none_or(|chunk| chunk.is_known_to_lack(offsets))
        };
        let is_ascending = batch.chunks().is_sorted_by(|one, next| one.0 < next.0);
        if !is_ascending || !batch.chunks().all(takes) {
            return false;
        }
        self.add(batch);
        true
    }

    /// Whether the id is in the set.
    #[inline]
    pub fn contains(&self, id: i64) -> bool {
        let (number, offset) = split(id);
        match self.chunks.chunk(number) {
            None | Some(OffsetSet::Empty) => false,
            Some(chunk) => chunk.contains(offset),
        }
    }

    /// Calls `absent` with the index in `ids` of each id that is not in the set, in ascending order.
    pub fn for_each_absent(&self, ids: &[i64], mut absent: impl FnMut(usize)) {
        self.look_up(ids, |index, is_there| {
            if !is_there {
                absent(index);
            }
        });
    }

    /// Calls `present` with the index in `ids` of each id that is in the set, in ascending order.
    pub fn for_each_present(&self, ids: &[i64], mut present: impl FnMut(usize)) {
        self.look_up(ids, |index, is_there| {
            if is_there {
                present(index);
            }
        });
    }

    /// Appends to `indices` the index in `ids` of each id that is in the set, in ascending order.
    pub fn append_present(&self, ids: &[i64], indices: &mut Vec<usize>) {
        self.for_each_present(ids, |index| indices.push(index));
    }

    /// Calls `visit` with the index of each id in `ids`, and with whether the set contains the id. Ids are looked up in
    /// batches whose cache misses overlap, which is several times as fast as single look-ups.
    #[inline(always)]
    fn look_up(&self, ids: &[i64], mut visit: impl FnMut(usize, bool)) {
        const AT_A_TIME: usize = 64;
        let mut spots = [OffsetSlot::default(); AT_A_TIME];
        for (batch, ids) in ids.chunks(AT_A_TIME).enumerate() {
            for (slot, id) in spots.iter_mut().zip(ids) {
                *slot = self.slot(*id);
            }
            spots.iter().take(ids.len()).for_each(OffsetSlot::prefetch);
            for (index, (slot, id)) in spots.iter().zip(ids).enumerate() {
                visit(batch * AT_A_TIME + index, slot.contains(*id as u16));
            }
        }
    }

    /// Returns the memory that a look-up of the id reads.
    #[inline]
    fn slot(&self, id: i64) -> OffsetSlot<'_> {
        let (number, offset) = split(id);
        let chunk = self.chunks.chunk(number);
        chunk.map_or(OffsetSlot::Nowhere, |chunk| chunk.slot(offset))
    }

    /// Returns the chunks of the set.
    pub(super) const fn chunks(&self) -> &ChunkTable<OffsetSet> {
        &self.chunks
    }

    /// Converts the set into its chunks.
    pub(super) fn into_chunks(self) -> ChunkTable<OffsetSet> {
        self.chunks
    }

    /// Whether an id from `first` to `last` (inclusive, in canonical order) may be in the set. The result is exact for
    /// positive ids. If `first` is not positive, the range is treated as if it contained 0 and all negative ids.
    pub fn may_meet(&self, first: i64, last: i64) -> bool {
        !self.is_empty() && self.chunks.may_meet(first, last)
    }

    /// Whether a blob may contain an object of `kind` with an id of the set. The id range of the blob is compared only
    /// if the blob has objects of a single kind.
    pub(crate) fn may_meet_blob(&self, entry: &BlobEntry, kind: ObjectKind) -> bool {
        let may_meet = || match entry.kinds.single() {
            Some(_) => self.may_meet(entry.min_id, entry.max_id),
            None => true,
        };
        !self.is_empty() && entry.kinds.contains(kind) && may_meet()
    }

    /// Returns the number of ids in the set.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the set has no ids.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the ids in canonical order: 0, then negative ids by absolute value, then positive ones.
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        let (below, above) = self.chunks.chunks();
        let zero = self.contains(0).then_some(0);
        // Canonical order sorts negative ids by absolute value, but -1 has the largest chunk number and offset. So the
        // chunks and the offsets of negative ids are reversed.
        let below = below.into_iter().flat_map(|(number, chunk)| {
            chunk
                .offsets()
                .rev()
                .map(move |offset| id_at(number, offset))
        });
        let above = above
            .into_iter()
            .flat_map(|(number, chunk)| chunk.offsets().map(move |offset| id_at(number, offset)));
        zero.into_iter()
            .chain(below)
            .chain(above.filter(|id| *id != 0))
    }
}

impl Extend<i64> for IdSet {
    fn extend<T: IntoIterator<Item = i64>>(&mut self, ids: T) {
        for id in ids {
            self.insert(id);
        }
    }
}

impl FromIterator<i64> for IdSet {
    fn from_iter<T: IntoIterator<Item = i64>>(ids: T) -> Self {
        let mut set = Self::default();
        set.extend(ids);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::osm::id_rank;
    use std::collections::BTreeSet;

    #[test]
    fn a_set_holds_what_a_plain_set_holds() {
        let mut random = Random(1);
        for (spread, count) in [(1u64 << 8, 300), (1 << 18, 60_000), (1 << 44, 2_000)] {
            let (mut set, mut plain) = (IdSet::default(), BTreeSet::new());
            for _ in 0..count {
                let id =
                    (random.bits(44) % spread) as i64 * if random.below(3) == 0 { -1 } else { 1 };
                assert_eq!(set.insert(id), plain.insert(id));
            }
            for id in [0, 1, -1, i64::MIN, i64::MAX, 1 << 35, (1 << 35) - 1] {
                assert_eq!(set.contains(id), plain.contains(&id));
                assert_eq!(set.insert(id), plain.insert(id));
            }
            assert_eq!(set.len(), plain.len() as u64);
            assert!(plain.iter().all(|id| set.contains(*id)));
            let asked: Vec<i64> = (0..1000)
                .map(|_| (random.bits(44) % spread) as i64)
                .collect();
            let mut absent = Vec::new();
            set.for_each_absent(&asked, |index| absent.push(index));
            let is_absent = |index: &usize| !plain.contains(&asked[*index]);
            assert!(absent.into_iter().eq((0..1000).filter(is_absent)));
            let mut present = Vec::new();
            set.for_each_present(&asked, |index| present.push(index));
            let is_present = |index: &usize| plain.contains(&asked[*index]);
            assert!(present.into_iter().eq((0..1000).filter(is_present)));
            let mut ordered: Vec<i64> = plain.into_iter().collect();
            ordered.sort_by_key(|id| id_rank(*id));
            assert!(set.ids().eq(ordered));
        }
    }

    #[test]
    fn may_meet_is_exact_for_positive_ids_and_never_misses_an_id() {
        let ids = [5, 70_000, 70_001, 1 << 35, i64::MAX];
        let set: IdSet = ids.into_iter().collect();
        let edges = [
            1,
            4,
            5,
            6,
            69_999,
            70_001,
            70_002,
            1 << 34,
            1 << 35,
            1 << 36,
            i64::MAX,
        ];
        for first in edges {
            for last in edges.into_iter().filter(|last| *last >= first) {
                let meets = ids.iter().any(|id| (first..=last).contains(id));
                assert_eq!(set.may_meet(first, last), meets, "{first} to {last}");
            }
        }
        let below: IdSet = [i64::MIN, -7].into_iter().collect();
        assert!(below.may_meet(0, -8) && below.may_meet(-7, 3) && !below.may_meet(1, i64::MAX));
    }

    #[test]
    fn ids_far_apart_use_little_memory() {
        let set: IdSet = (0..1000).map(|number| i64::MIN + (number << 53)).collect();
        assert_eq!(set.len(), 1000);
        assert_eq!(set.chunks.near_len(), 0);
    }
}
