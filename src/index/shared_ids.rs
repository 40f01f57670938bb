//! A set of ids that several threads fill.

use super::id_batch::IdBatch;
use super::id_set::IdSet;
use super::table::shard_of;
use crate::runtime::{lock, unlocked};
use std::sync::Mutex;

/// The number of parts of a set. Threads that add ids to different parts do not wait for each other.
const SHARDS: usize = 64;

/// A set of ids that several threads fill. The result does not depend on the order in which ids are added. Uses the
/// memory of an [`IdSet`].
#[derive(Debug)]
pub struct SharedIdSet([Mutex<IdSet>; SHARDS]);

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
            let mut set = lock(&self.0[shard]);
            set.add_chunk(number, offsets);
            // Neighbouring chunks are mostly in one part.
            while let Some((number, offsets)) =
                chunks.next_if(|(number, _)| shard_of(*number, SHARDS) == shard)
            {
                set.add_chunk(number, offsets);
            }
        }
    }

    /// Returns the set of all ids that were added.
    pub fn into_set(self) -> IdSet {
        let sets = self.0.into_iter().map(unlocked);
        sets.reduce(IdSet::joined).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    #[test]
    fn threads_add_what_one_adds() {
        let mut random = Random(7);
        let batches: Vec<Vec<i64>> = (0..40)
            .map(|_| {
                let place = random.below(6) * (1 << 22) - (1 << 22);
                let mut ids: Vec<i64> = (0..2000)
                    .map(|_| place + random.below(1 << 20))
                    .chain([0, i64::MIN, i64::MAX])
                    .collect();
                ids.sort_unstable();
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
        let all = shared.into_set();
        assert_eq!(all.len(), one.len());
        assert!(all.ids().eq(one.ids()));
    }
}
