//! Ids that are prepared to be added to a set.

use super::table::{id_at, split};
use std::ops::Range;

/// Ids that one thread has collected, grouped by chunk. A set adds a batch in a fraction of the time that it needs for
/// single ids. One thread can therefore add the batches of many threads. Uses two bytes per id.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct IdBatch {
    /// The number of each chunk, and the range of its offsets in `offsets`. A chunk may occur several times.
    chunks: Vec<(u64, Range<u32>)>,
    /// The offsets of ids in their chunks. The offsets of one entry of `chunks` are in ascending order, without
    /// duplicates.
    offsets: Vec<u16>,
}

impl IdBatch {
    /// Returns the number of each chunk and its offsets, which are ascending and distinct. A chunk may occur several
    /// times.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u64, &[u16])> {
        self.chunks.iter().map(|(number, range)| {
            let range = range.start as usize..range.end as usize;
            (*number, &self.offsets[range])
        })
    }

    /// Returns the ids. If the ids were added in strictly ascending order, they are returned in that order.
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        let ids = |(number, offsets): (u64, &'_ [u16])| {
            let ids: Vec<i64> = offsets
                .iter()
                .map(|offset| id_at(number, *offset))
                .collect();
            ids
        };
        self.chunks().flat_map(ids)
    }
}

impl From<&[i64]> for IdBatch {
    fn from(ids: &[i64]) -> Self {
        let mut batch = Self {
            chunks: Vec::new(),
            offsets: Vec::with_capacity(ids.len()),
        };
        for same in ids.chunk_by(|one, next| split(*one).0 == split(*next).0) {
            let start = batch.offsets.len();
            batch.offsets.extend(same.iter().map(|id| split(*id).1));
            let offsets = &mut batch.offsets[start..];
            if !offsets.is_sorted_by(|one, next| one < next) {
                offsets.sort_unstable();
                let mut distinct = offsets.to_vec();
                distinct.dedup();
                batch.offsets.truncate(start);
                batch.offsets.append(&mut distinct);
            }
            let range = start as u32..batch.offsets.len() as u32;
            batch.chunks.push((split(same[0]).0, range));
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::index::{IdSet, RankSetBuilder};
    use crate::osm::id_rank;

    #[test]
    fn a_batch_adds_the_same_ids_as_single_insertions() {
        let mut random = Random(11);
        // The cases give chunks with lists, with lists that become bitmaps, and with bitmaps. The ids of a case are
        // ascending, or are in any order and have duplicates.
        for (spread, count) in [(1 << 30, 400), (1 << 17, 900), (1 << 17, 20_000)] {
            for is_sorted in [true, false] {
                let (mut single, mut together) = (IdSet::default(), IdSet::default());
                for _ in 0..20 {
                    let place = random.below(2) * -spread;
                    let mut ids: Vec<i64> =
                        (0..count).map(|_| place + random.below(spread)).collect();
                    if is_sorted {
                        ids.sort_unstable();
                        ids.dedup();
                    }
                    let batch = IdBatch::from(ids.as_slice());
                    if is_sorted {
                        assert!(batch.ids().eq(ids.iter().copied()));
                    }
                    let is_new = ids.iter().all(|id| !single.contains(*id));
                    single.extend(ids);
                    let before = together.len();
                    if together.add_new(&batch) {
                        assert!(is_new);
                    } else {
                        assert_eq!(together.len(), before);
                        together.add(&batch);
                    }
                    assert_eq!(together.len(), single.len());
                }
                assert!(together.ids().eq(single.ids()));
            }
        }
    }

    #[test]
    fn ids_behind_all_others_are_added_as_new() {
        let mut set = IdSet::default();
        for start in [0, 100, 5000, 70_000, 1 << 40] {
            let ids: Vec<i64> = (start..start + 100).collect();
            assert!(set.add_new(&ids.as_slice().into()), "{start}");
            assert!(!set.add_new(&[start + 99].as_slice().into()));
        }
        assert_eq!(set.len(), 500);
        // The second `far` does not count as new, because an id of another chunk precedes it.
        let far = 1 << 50;
        assert!(!set.add_new(&[far, 2 * far, far].as_slice().into()));
        assert_eq!(set.len(), 500);
    }

    #[test]
    fn a_rank_set_accepts_batches() {
        let mut random = Random(12);
        let mut ids: Vec<i64> = (0..30_000)
            .map(|_| random.below(1 << 19) - (1 << 18))
            .collect();
        ids.extend([0, i64::MIN, i64::MAX]);
        ids.sort_unstable_by_key(|id| id_rank(*id));
        ids.dedup();
        let (mut single, mut together) = (RankSetBuilder::default(), RankSetBuilder::default());
        single.extend(ids.iter().copied());
        ids.chunks(700)
            .for_each(|ids| together.push_batch(&ids.into()));
        let (single, together) = (single.finish(), together.finish());
        assert!(single.ids().eq(ids.iter().copied()) && together.ids().eq(single.ids()));
        assert!(ids.iter().all(|id| together.rank(*id) == single.rank(*id)));
    }
}
