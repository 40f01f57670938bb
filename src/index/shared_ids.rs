//! A set of ids that several threads fill.

use super::chunk::OffsetSet;
use super::id_batch::IdBatch;
use super::id_set::IdSet;
use super::table::{ChunkTable, shard_of};
use crate::runtime::{into_mutex_value, lock};
use std::sync::Mutex;

/// The number of parts of a set. Threads that add ids to different parts do not wait for each other.
const SHARDS: usize = 64;

/// A set of ids that several threads fill. The result does not depend on the order in which ids are added. Uses as much
/// memory as an [`IdSet`], but up to twice as much while ids are added.
///
/// Ids are appended to the lists of their chunks, and the lists are sorted at the end. So ids in any order take about
/// as long as ids in ascending order.
#[derive(Debug)]
pub struct SharedIdSet(
    /// The parts. The lists of their chunks may be unsorted and have duplicates.
    [Mutex<ChunkTable<OffsetSet>>; SHARDS],
);

impl Default for SharedIdSet {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl SharedIdSet {
    /// Adds the ids of a batch.
    pub fn add(&self, batch: &IdBatch) {
        let mut chunks = batch.chunks().peekable();
        while let Some((number, offsets)) = chunks.next() {
            let shard = shard_of(number, SHARDS);
            let mut part = lock(&self.0[shard]);
            part.chunk_mut(number).add_unsorted(offsets);
            // Neighbouring chunks are mostly in the same part, so the part stays locked for them.
            while let Some((number, offsets)) =
                chunks.next_if(|(number, _)| shard_of(*number, SHARDS) == shard)
            {
                part.chunk_mut(number).add_unsorted(offsets);
            }
        }
    }

    /// Returns the set of all ids that were added. Sorts them on `threads` threads.
    pub fn into_set(self, threads: usize) -> IdSet {
        let parts = Mutex::new(self.0.into_iter());
        let all = Mutex::new(IdSet::default());
        let join_parts = || {
            loop {
                let Some(part) = lock(&parts).next() else {
                    return;
                };
                let mut chunks = into_mutex_value(part);
                chunks.for_each_mut(OffsetSet::sort_and_compact);
                let set = IdSet::of_chunks(chunks);
                let mut all = lock(&all);
                *all = std::mem::take(&mut *all).join(set);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                let thread = std::thread::Builder::new().name("sort ids".into());
                // If the thread cannot be started, the other threads do its work.
                let _ = thread.spawn_scoped(scope, join_parts);
            }
            join_parts();
        });
        into_mutex_value(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::index::RankSet;

    #[test]
    fn several_threads_add_the_same_ids_as_one() {
        let mut random = Random(7);
        // The spreads lead to lists; to bitmaps; to many duplicates, so that lists have to be sorted before their chunk
        // is full; and to bitmaps that become lists again.
        for spread in [1 << 20, 1 << 14, 1500, 3000] {
            let batches: Vec<Vec<i64>> = (0..40)
                .map(|_| {
                    let place = random.below(6) * (1 << 22) - (1 << 22);
                    let mut ids: Vec<i64> = (0..2000)
                        .map(|_| place + random.below(spread))
                        .chain([0, i64::MIN, i64::MAX])
                        .collect();
                    if random.below(2) == 0 {
                        ids.sort_unstable();
                    }
                    ids
                })
                .collect();
            let one: IdSet = batches.iter().flatten().copied().collect();
            let shared = SharedIdSet::default();
            std::thread::scope(|scope| {
                for part in batches.chunks(10) {
                    let shared = &shared;
                    scope.spawn(move || {
                        part.iter()
                            .for_each(|ids| shared.add(&ids.as_slice().into()))
                    });
                }
            });
            let all = shared.into_set(3);
            assert_eq!(all.len(), one.len());
            assert!(all.ids().eq(one.ids()));
            let ranks = RankSet::from(all);
            assert!(ranks.ids().eq(one.ids()));
            assert!(
                (0..)
                    .zip(one.ids())
                    .all(|(rank, id)| ranks.rank(id) == Some(rank))
            );
        }
    }

    #[test]
    fn a_batch_may_be_larger_than_a_list() {
        let shared = SharedIdSet::default();
        let ids: Vec<i64> = (0..70_000).collect();
        shared.add(&ids[..10].into());
        shared.add(&ids.as_slice().into());
        assert!(shared.into_set(1).ids().eq(ids));
    }
}
