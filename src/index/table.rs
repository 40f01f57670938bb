//! Chunks of ids, found by their number.

use super::chunk::CHUNK_BITS;
use rustc_hash::FxHashMap;

/// Chunks that are found by their number in a plain table: ids from 0 to 34 thousand million.
const NEAR_CHUNKS: u64 = 1 << 19;

/// A chunk of 65,536 neighbouring ids for each that is in use: any `i64`. The table grows with the largest
/// id; ids beyond 34 thousand million, and negative ones, go through a hash table.
#[derive(Debug, Default, Clone)]
pub(super) struct ChunkTable<C> {
    near: Vec<C>,
    far: FxHashMap<u64, C>,
}

/// Chunks and their numbers.
pub(super) type Numbered<'t, C> = Vec<(u64, &'t C)>;

/// What the table asks of a chunk.
pub(super) trait Places {
    /// Whether a place between two others, both included, is taken.
    fn meets(&self, low: u16, high: u16) -> bool;
}

/// The chunk of an id, and its place there.
pub(super) const fn split(id: i64) -> (u64, u16) {
    ((id as u64) >> CHUNK_BITS, id as u16)
}

/// The id at a place of a chunk.
pub(super) const fn join(number: u64, place: u16) -> i64 {
    (number << CHUNK_BITS | place as u64) as i64
}

/// Whether a chunk holds negative ids.
const fn is_negative(number: u64) -> bool {
    join(number, 0) < 0
}

impl<C: Default + Places> ChunkTable<C> {
    /// The chunk with that number, made where it is not there.
    pub(super) fn chunk_mut(&mut self, number: u64) -> &mut C {
        if number >= NEAR_CHUNKS {
            return self.far.entry(number).or_default();
        }
        let number = number as usize;
        if number >= self.near.len() {
            self.near.resize_with(number + 1, C::default);
        }
        &mut self.near[number]
    }

    /// The chunk with that number.
    #[inline]
    pub(super) fn chunk(&self, number: u64) -> Option<&C> {
        if number < NEAR_CHUNKS {
            self.near.get(number as usize)
        } else {
            self.far.get(&number)
        }
    }

    /// Calls `change` with every chunk.
    pub(super) fn for_each_mut(&mut self, change: impl FnMut(&mut C)) {
        self.near
            .iter_mut()
            .chain(self.far.values_mut())
            .for_each(change);
    }

    /// The table of what `change` makes of each chunk, which is dropped on the way.
    pub(super) fn map<D>(self, mut change: impl FnMut(C) -> D) -> ChunkTable<D> {
        ChunkTable {
            near: self.near.into_iter().map(&mut change).collect(),
            far: (self.far.into_iter())
                .map(|(number, chunk)| (number, change(chunk)))
                .collect(),
        }
    }

    /// Whether an id between two others, in canonical order and both included, may be there. Exact for
    /// positive ids; where the range begins with others, any of those counts.
    pub(super) fn may_meet(&self, first: i64, last: i64) -> bool {
        let zero = || self.chunk(0).is_some_and(|chunk| chunk.meets(0, 0));
        let negative = || self.far.keys().any(|number| is_negative(*number));
        (first <= 0 && (zero() || negative()))
            || (last > 0 && self.meets_positive(first.max(1), last))
    }

    fn meets_positive(&self, first: i64, last: i64) -> bool {
        let (from, until) = (split(first), split(last));
        let meets = |number: u64, chunk: &C| {
            let low = if number == from.0 { from.1 } else { 0 };
            let high = if number == until.0 { until.1 } else { u16::MAX };
            chunk.meets(low, high)
        };
        let near = (from.0 as usize).min(self.near.len())..=(until.0.min(NEAR_CHUNKS) as usize);
        let near_chunks = self.near.iter().enumerate().skip(*near.start());
        let mut near_chunks = near_chunks.take_while(|(number, _)| near.contains(number));
        near_chunks.any(|(number, chunk)| meets(number as u64, chunk))
            || self
                .far
                .iter()
                .any(|(number, chunk)| (from.0..=until.0).contains(number) && meets(*number, chunk))
    }

    /// Chunks, with their numbers, by the ids that they hold: negative ones with the largest number first,
    /// then positive ones ascending. Canonical order but for the place of 0.
    pub(super) fn chunks(&self) -> (Numbered<'_, C>, Numbered<'_, C>) {
        let mut far: Vec<(u64, &C)> = self
            .far
            .iter()
            .map(|(number, chunk)| (*number, chunk))
            .collect();
        far.sort_unstable_by_key(|(number, _)| *number);
        let (mut below, above): (Vec<_>, Vec<_>) = far
            .into_iter()
            .partition(|(number, _)| is_negative(*number));
        below.reverse();
        let near = (0..).zip(&self.near);
        (below, near.chain(above).collect())
    }

    /// How many chunks the plain table has.
    #[cfg(test)]
    pub(super) fn near_len(&self) -> usize {
        self.near.len()
    }

    /// Room for chunks that a table with ids up to `largest` takes, in bytes.
    pub(super) fn bytes_up_to(largest: i64) -> u64 {
        let chunks = split(largest.max(0)).0 + 1;
        chunks.min(NEAR_CHUNKS) * size_of::<C>() as u64
    }

    /// Room for chunks that the table takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let far = self.far.capacity() * (size_of::<C>() + 16);
        (self.near.capacity() * size_of::<C>() + far) as u64
    }
}
