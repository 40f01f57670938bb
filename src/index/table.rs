//! A table of chunks, each for 65,536 neighbouring ids, by chunk number.
//!
//! The number of a chunk is the upper 48 bits of its ids. The low 16 bits of an id are its offset in the chunk.

use rustc_hash::FxHashMap;

/// The number of chunks that are stored in pages rather than in the hash table. They are the chunks of ids from 0 to 34
/// thousand million.
const NEAR_CHUNKS: u64 = 1 << 19;
/// The number of chunks per page. A page is allocated when the first of its chunks is created, so a few ids far apart
/// use little memory.
const PAGE: usize = 64;

/// A map from chunk numbers to chunks, for ids that may be any `i64`. The list of pages grows with the largest id.
/// Chunks of negative ids and of ids above 34 thousand million are in a hash table.
#[derive(Debug, Default, Clone)]
pub(super) struct ChunkTable<C> {
    /// The pages of the chunks below [`NEAR_CHUNKS`], by chunk number divided by [`PAGE`].
    near: Vec<Option<TablePage<C>>>,
    /// The chunks that are not in `near`, by chunk number.
    far: FxHashMap<u64, C>,
}

type TablePage<C> = Box<[C; PAGE]>;

/// Returns the page of a near chunk, and the index of the chunk in that page.
const fn page_of(number: u64) -> (usize, usize) {
    (number as usize / PAGE, number as usize % PAGE)
}

/// The number of low bits of an id that are its offset in a chunk.
pub(super) const CHUNK_BITS: u32 = 16;

/// A list of chunks, each with its chunk number.
pub(super) type Numbered<'t, C> = Vec<(u64, &'t C)>;

/// A chunk that can be tested for offsets in a range, as [`ChunkTable::may_meet`] requires.
pub(super) trait Offsets {
    /// Whether the chunk contains any offset from `low` to `high`, inclusive.
    fn meets(&self, low: u16, high: u16) -> bool;
}

/// Returns the number of the chunk of an id, and the offset of the id in the chunk.
pub(super) const fn split(id: i64) -> (u64, u16) {
    ((id as u64) >> CHUNK_BITS, id as u16)
}

/// Returns the id at an offset of a chunk, given the chunk's number. This is the inverse of [`split`].
pub(super) const fn id_at(number: u64, offset: u16) -> i64 {
    (number << CHUNK_BITS | offset as u64) as i64
}

/// Returns the index of the part that has the chunk with this number, if a set has `shards` parts. All chunks of a page
/// are in the same part.
pub(super) const fn shard_of(number: u64, shards: usize) -> usize {
    number as usize / PAGE % shards
}

/// Whether the chunk with this number is for negative ids.
const fn is_negative_chunk(number: u64) -> bool {
    id_at(number, 0) < 0
}

impl<C: Default + Offsets> ChunkTable<C> {
    /// Returns the chunk with a number, and creates it if it is absent.
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

    /// Returns the chunk with a number; `None` if absent. All chunks of an allocated page are present. The chunks of
    /// the page that were never created are empty.
    #[inline]
    pub(super) fn chunk(&self, number: u64) -> Option<&C> {
        if number < NEAR_CHUNKS {
            let (page, at) = page_of(number);
            self.near.get(page)?.as_ref().map(|page| &page[at])
        } else {
            self.far.get(&number)
        }
    }

    /// Returns the chunks in allocated pages that have a number of at least `first`, as pairs of number and chunk, in
    /// ascending order of numbers.
    fn near_chunks_from(&self, first: u64) -> impl Iterator<Item = (u64, &C)> {
        let (start, _) = page_of(first.min(NEAR_CHUNKS));
        let pages = self.near.iter().enumerate().skip(start);
        pages
            .filter_map(|(page, chunks)| Some((page, chunks.as_ref()?)))
            .flat_map(|(page, chunks)| ((page * PAGE) as u64..).zip(chunks.iter()))
            .filter(move |(number, _)| *number >= first)
    }

    /// Adds the pages and the far chunks of another table. The two tables must have no page and no far chunk in common.
    pub(super) fn join(&mut self, other: Self) {
        if self.near.len() < other.near.len() {
            self.near.resize_with(other.near.len(), || None);
        }
        for (own, added) in self.near.iter_mut().zip(other.near) {
            *own = own.take().or(added);
        }
        self.far.extend(other.far);
    }

    /// Calls `change` with every chunk, in no particular order.
    pub(super) fn for_each_mut(&mut self, change: impl FnMut(&mut C)) {
        let near = self
            .near
            .iter_mut()
            .flatten()
            .flat_map(|page| page.iter_mut());
        near.chain(self.far.values_mut()).for_each(change);
    }

    /// Returns a table with the result of `change` for each chunk. Consumes one chunk after another. Thus old and new
    /// chunks are not all in memory at the same time.
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

    /// Whether an id from `first` to `last` (inclusive, in canonical order) may be in the table. The result is exact
    /// for positive ids. If `first` is not positive, the range counts as if it contained 0 and all negative ids.
    pub(super) fn may_meet(&self, first: i64, last: i64) -> bool {
        let zero = || self.chunk(0).is_some_and(|chunk| chunk.meets(0, 0));
        let negative = || self.far.keys().any(|number| is_negative_chunk(*number));
        (first <= 0 && (zero() || negative()))
            || (last > 0 && self.has_positive_id_between(first.max(1), last))
    }

    /// Whether the table contains an id from `first` to `last`, both positive.
    fn has_positive_id_between(&self, first: i64, last: i64) -> bool {
        let (from, until) = (split(first), split(last));
        let meets = |number: u64, chunk: &C| {
            let low = if number == from.0 { from.1 } else { 0 };
            let high = if number == until.0 { until.1 } else { u16::MAX };
            chunk.meets(low, high)
        };
        let near_chunks = self.near_chunks_from(from.0);
        let mut near_chunks = near_chunks.take_while(|(number, _)| *number <= until.0);
        near_chunks.any(|(number, chunk)| meets(number, chunk))
            || self
                .far
                .iter()
                .any(|(number, chunk)| (from.0..=until.0).contains(number) && meets(*number, chunk))
    }

    /// Returns two lists of chunks with their numbers. The first list has the chunks of negative ids, by descending
    /// number. The second list has the chunks of other ids, by ascending number. Together, the lists are in canonical
    /// order, except for the id 0: in canonical order, 0 comes before the negative ids.
    pub(super) fn chunks(&self) -> (Numbered<'_, C>, Numbered<'_, C>) {
        let mut far: Vec<(u64, &C)> = self
            .far
            .iter()
            .map(|(number, chunk)| (*number, chunk))
            .collect();
        far.sort_unstable_by_key(|(number, _)| *number);
        let (mut below, above): (Vec<_>, Vec<_>) = far
            .into_iter()
            .partition(|(number, _)| is_negative_chunk(*number));
        below.reverse();
        (below, self.near_chunks_from(0).chain(above).collect())
    }

    /// Returns the number of chunks in the allocated pages, including empty chunks.
    #[cfg(test)]
    pub(super) fn near_len(&self) -> usize {
        self.near.iter().flatten().count() * PAGE
    }

    /// Returns the maximum number of bytes that the pages of a table use for ids up to `largest`. Memory that the
    /// chunks allocate is not included.
    pub(super) fn bytes_for_ids_up_to(largest: i64) -> u64 {
        let chunks = split(largest.max(0)).0 + 1;
        chunks.min(NEAR_CHUNKS).next_multiple_of(PAGE as u64) * (size_of::<C>() as u64 + 1)
    }

    /// Returns the number of bytes that the pages and the hash table use. Memory that the chunks allocate is not
    /// included.
    pub(super) fn bytes(&self) -> u64 {
        let far = self.far.capacity() * (size_of::<C>() + 16);
        let pages = self.near.iter().flatten().count() * size_of::<[C; PAGE]>();
        (self.near.capacity() * size_of::<Option<TablePage<C>>>() + pages + far) as u64
    }
}
