//! The ranks of ids in a set.

use super::chunk::{Chunk, RunCounts};
use super::id_set::IdSet;
use super::table::{ChunkTable, Offsets, split};

/// A set of ids that returns the rank of each id: its index in canonical order, from 0. In addition to the memory of
/// the [`IdSet`], the ranks use 40 bytes per chunk and 256 bytes per bitmap. Where ids are dense, this is 4 % of the
/// memory of the [`IdSet`].
#[derive(Debug, Default, Clone)]
pub struct RankSet {
    set: IdSet,
    ranks: ChunkTable<Ranks>,
}

/// The ranks of the ids of a chunk.
#[derive(Debug, Default, Clone)]
struct Ranks {
    /// The smallest rank in the chunk. For the chunk that contains the id 0: one less than the smallest rank of the
    /// other ids of the chunk.
    first: u64,
    /// The number of ids in a chunk of negative ids, in which ranks descend as ids ascend; `None` for other chunks.
    backwards: Option<u64>,
    counts: RunCounts,
}

impl Offsets for Ranks {
    fn meets(&self, _: u16, _: u16) -> bool {
        true
    }
}

impl From<IdSet> for RankSet {
    fn from(set: IdSet) -> Self {
        let mut ranks = ChunkTable::<Ranks>::default();
        let (below, above) = set.chunks().chunks();
        let zeros = u64::from(set.contains(0));
        let mut next = zeros;
        for (backwards, chunks) in [(true, &below), (false, &above)] {
            for (number, chunk) in chunks {
                let (counts, count) = RunCounts::new(chunk);
                if count == 0 {
                    continue;
                }
                let mut found = Ranks {
                    first: next,
                    backwards: backwards.then_some(count),
                    counts,
                };
                next += count;
                if *number == 0 && zeros > 0 {
                    // Id 0 is the first id of this chunk, but its rank comes before the ranks of the negative ids. So
                    // the ranks of this chunk begin one lower.
                    found.first -= 1;
                    next -= 1;
                }
                *ranks.chunk_mut(*number) = found;
            }
        }
        Self { set, ranks }
    }
}

impl RankSet {
    /// Returns the rank of an id, which is the number of ids of the set that precede it in canonical order. Returns
    /// `None` if the id is not in the set.
    pub fn rank(&self, id: i64) -> Option<u64> {
        self.walk().rank(id)
    }

    /// Returns a cursor for many look-ups of ids that are close to each other.
    pub fn walk(&self) -> RankCursor<'_> {
        RankCursor {
            ranks: self,
            chunk: None,
            at: 0,
        }
    }

    /// Returns the ids of the set.
    pub const fn set(&self) -> &IdSet {
        &self.set
    }
}

/// A cursor that looks up ids in a [`RankSet`]. Fast if each id is close to the previous id.
#[derive(Debug, Clone)]
pub struct RankCursor<'r> {
    ranks: &'r RankSet,
    /// The chunk of the last look-up: the chunk's number, its ids and the ranks of these ids.
    chunk: Option<(u64, &'r Chunk, &'r Ranks)>,
    /// The list index of the last look-up, for [`RunCounts::rank`].
    at: usize,
}

impl RankCursor<'_> {
    /// Returns the rank of an id, as [`RankSet::rank`] does.
    #[inline]
    pub fn rank(&mut self, id: i64) -> Option<u64> {
        let (number, offset) = split(id);
        let (chunk, ranks) = match self.chunk {
            Some((last, chunk, ranks)) if last == number => (chunk, ranks),
            _ => {
                let (sets, ranks) = (self.ranks.set.chunks(), &self.ranks.ranks);
                let (chunk, ranks) = (sets.chunk(number)?, ranks.chunk(number)?);
                self.chunk = Some((number, chunk, ranks));
                (chunk, ranks)
            }
        };
        let within = ranks.counts.rank(chunk, offset, &mut self.at)?;
        Some(match ranks.backwards {
            _ if id == 0 => 0,
            None => ranks.first + within,
            Some(count) => ranks.first + (count - 1 - within),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_the_place_that_it_has_in_canonical_order() {
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
            for (rank, id) in (0..).zip(ranks.set().ids()) {
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
