//! A table of chunks, each for 65,536 neighbouring ids, by chunk number.
//!
//! The number of a chunk is the upper 48 bits of its ids; the low 16 bits are the offset of an id in the chunk, which
//! the code calls `place`.

use super::chunk::CHUNK_BITS;
use rustc_hash::FxHashMap;

/// The number of chunks that are in pages rather than in the hash table: those of the ids from 0 to 34 thousand
/// million.
const NEAR_CHUNKS: u64 = 1 << 19;
/// The number of chunks per page. A page is allocated with its first chunk, so that a few ids far apart take little
/// memory.
const PAGE: usize = 64;

/// A map from chunk numbers to chunks, for ids that may be any `i64`. The list of pages grows with the largest id.
/// Chunks of negative ids and of ids above 34 thousand million are in a hash table.
#[derive(Debug, Default, Clone)]
pub(super) struct ChunkTable<C> {
    near: Vec<Option<Page<C>>>,
    far: FxHashMap<u64, C>,
}

type Page<C> = Box<[C; PAGE]>;

/// The page of a near chunk, and the index of the chunk in that page.
const fn page_of(number: u64) -> (usize, usize) {
    (number as usize / PAGE, number as usize % PAGE)
}

/// Chunks and their numbers.
pub(super) type Numbered<'t, C> = Vec<(u64, &'t C)>;

/// The property of a chunk that [`ChunkTable::may_meet`] needs.
pub(super) trait Places {
    /// Whether the chunk contains an offset from `low` to `high`, inclusive.
    fn meets(&self, low: u16, high: u16) -> bool;
}

/// The number of the chunk of an id, and the offset of the id in the chunk.
pub(super) const fn split(id: i64) -> (u64, u16) {
    ((id as u64) >> CHUNK_BITS, id as u16)
}

/// The id at an offset of a chunk.
pub(super) const fn join(number: u64, place: u16) -> i64 {
    (number << CHUNK_BITS | place as u64) as i64
}

/// Whether a chunk holds negative ids.
const fn is_negative(number: u64) -> bool {
    join(number, 0) < 0
}

impl<C: Default + Places> ChunkTable<C> {
    /// The chunk with a number, created if absent.
    pub(super) fn chunk_mut(&mut self, number: u64) -> &mut C {
        if number >= NEAR_CHUNKS {
            return self.far.entry(number).or_default();
        }
        let (page, at) = page_of(number);
        if page >= self.near.len() {
            self.near.resize_with(page + 1, || None);
        }
        let page =
            self.near[page].get_or_insert_with(|| Box::new(std::array::from_fn(|_| C::default())));
        &mut page[at]
    }

    /// The chunk with a number. May be an empty chunk, where its page exists.
    #[inline]
    pub(super) fn chunk(&self, number: u64) -> Option<&C> {
        if number < NEAR_CHUNKS {
            let (page, at) = page_of(number);
            self.near.get(page)?.as_ref().map(|page| &page[at])
        } else {
            self.far.get(&number)
        }
    }

    /// The chunks of the allocated pages, from number `first` on, with their numbers.
    fn near_from(&self, first: u64) -> impl Iterator<Item = (u64, &C)> {
        let (start, _) = page_of(first.min(NEAR_CHUNKS));
        let pages = self.near.iter().enumerate().skip(start);
        pages
            .filter_map(|(page, chunks)| Some((page, chunks.as_ref()?)))
            .flat_map(|(page, chunks)| ((page * PAGE) as u64..).zip(chunks.iter()))
            .filter(move |(number, _)| *number >= first)
    }

    /// Calls `change` with every chunk.
    pub(super) fn for_each_mut(&mut self, change: impl FnMut(&mut C)) {
        let near = self
            .near
            .iter_mut()
            .flatten()
            .flat_map(|page| page.iter_mut());
        near.chain(self.far.values_mut()).for_each(change);
    }

    /// A table with the result of `change` for each chunk. The chunks are consumed one after another, so that they do
    /// not take their memory twice.
    pub(super) fn map<D>(self, mut change: impl FnMut(C) -> D) -> ChunkTable<D> {
        ChunkTable {
            near: (self.near.into_iter())
                .map(|page| page.map(|page| Box::new(page.map(&mut change))))
                .collect(),
            far: (self.far.into_iter())
                .map(|(number, chunk)| (number, change(chunk)))
                .collect(),
        }
    }

    /// Whether an id from `first` to `last` (inclusive, in canonical order) may be in the table. Exact for positive
    /// ids. If `first` is not positive, 0 and every negative id in the table count as in the range.
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
        let near_chunks = self.near_from(from.0);
        let mut near_chunks = near_chunks.take_while(|(number, _)| *number <= until.0);
        near_chunks.any(|(number, chunk)| meets(number, chunk))
            || self
                .far
                .iter()
                .any(|(number, chunk)| (from.0..=until.0).contains(number) && meets(*number, chunk))
    }

    /// The chunks with their numbers: those of negative ids with the largest number first, then those of other ids
    /// ascending. This is canonical order, except that 0 is in the first chunk of the second list.
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
        (below, self.near_from(0).chain(above).collect())
    }

    /// The number of chunks that the allocated pages hold, empty ones included.
    #[cfg(test)]
    pub(super) fn near_len(&self) -> usize {
        self.near.iter().flatten().count() * PAGE
    }

    /// The maximum number of bytes that the pages of a table take, for ids up to `largest`.
    pub(super) fn bytes_up_to(largest: i64) -> u64 {
        let chunks = split(largest.max(0)).0 + 1;
        chunks.min(NEAR_CHUNKS).next_multiple_of(PAGE as u64) * (size_of::<C>() as u64 + 1)
    }

    /// The number of bytes that pages and hash table take, without what the chunks allocate.
    pub(super) fn bytes(&self) -> u64 {
        let far = self.far.capacity() * (size_of::<C>() + 16);
        let pages = self.near.iter().flatten().count() * size_of::<[C; PAGE]>();
        (self.near.capacity() * size_of::<Option<Page<C>>>() + pages + far) as u64
    }
}
