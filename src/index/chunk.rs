//! A set of ids within a chunk of 65,536 neighbouring ids: a sorted list, or a bitmap.
//!
//! An id is represented by its offset in the chunk, which is its low 16 bits.

use super::table::{CHUNK_BITS, Offsets};
use std::hint::black_box;

/// The number of words of a bitmap.
const WORDS: usize = 1 << (CHUNK_BITS - 6);
/// The maximum length of a list. A list of this length uses as much memory as a bitmap.
pub(super) const MAX_ARRAY_LEN: usize = 4096;
/// The length of the part of a list that is searched first, around the expected index of an offset.
const WINDOW: usize = 32;

/// A set of 16-bit offsets.
#[derive(Debug, Clone, Default)]
pub(super) enum OffsetSet {
    #[default]
    Empty,
    /// The offsets, in ascending order.
    Array(Vec<u16>),
    /// One bit per offset.
    Bitmap(Box<[u64; WORDS]>),
}

/// The memory that a look-up of one offset reads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum OffsetSlot<'a> {
    /// No memory, because the chunk is empty or absent.
    #[default]
    Nowhere,
    /// The whole list, and the part of it in which the offset is expected (see [`window`]).
    Array(&'a [u16], &'a [u16]),
    /// The word of the bitmap that contains the bit of the offset.
    Word(&'a u64),
}

impl OffsetSlot<'_> {
    /// Loads the memory into the processor's cache, so that the cache misses of several look-ups overlap.
    #[inline]
    pub(super) fn prefetch(&self) {
        match self {
            Self::Nowhere => {}
            Self::Array(_, window) => {
                let _ = black_box((window.first().copied(), window.last().copied()));
            }
            Self::Word(word) => {
                let _ = black_box(**word);
            }
        }
    }

    /// Whether the chunk contains `offset`. The slot must have been made for the same offset.
    #[inline(always)]
    pub(super) fn contains(&self, offset: u16) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Array(list, window) => {
                let is_there = window.first() <= Some(&offset) && window.last() >= Some(&offset);
                match window.first_chunk::<WINDOW>() {
                    // The loop has no early exit, so that the compiler uses vector instructions.
                    Some(window) if is_there => window
                        .iter()
                        .fold(false, |found, one| found | (*one == offset)),
                    _ => list.binary_search(&offset).is_ok(),
                }
            }
            Self::Word(word) => *word >> (offset & 63) & 1 != 0,
        }
    }
}

impl OffsetSet {
    /// Whether the set contains `offset`.
    pub(super) fn contains(&self, offset: u16) -> bool {
        self.slot(offset).contains(offset)
    }

    /// Returns the memory that a look-up of `offset` reads.
    #[inline]
    pub(super) fn slot(&self, offset: u16) -> OffsetSlot<'_> {
        match self {
            Self::Empty => OffsetSlot::Nowhere,
            Self::Array(list) => OffsetSlot::Array(list, window(list, offset).1),
            Self::Bitmap(words) => OffsetSlot::Word(&words[usize::from(offset >> 6)]),
        }
    }

    /// Adds an offset. Returns whether the offset was absent before.
    pub(super) fn insert(&mut self, offset: u16) -> bool {
        match self {
            Self::Empty => {
                *self = Self::Array(vec![offset]);
                true
            }
            Self::Array(list) => {
                let at = match list.last() {
                    // Most ids are inserted in order, and need no search.
                    Some(&last) if last < offset => list.len(),
                    _ => match list.binary_search(&offset) {
                        Ok(_) => return false,
                        Err(at) => at,
                    },
                };
                if list.len() < MAX_ARRAY_LEN {
                    if list.len() == list.capacity() {
                        // Grows by less than `Vec` does, because a set has many lists.
                        list.reserve_exact(list.len() / 4 + 4);
                    }
                    list.insert(at, offset);
                    return true;
                }
                *self = self.to_bitmap();
                self.insert(offset)
            }
            Self::Bitmap(words) => set_bit(words, offset),
        }
    }

    /// Adds ascending distinct offsets. Returns the number of those that were absent before.
    pub(super) fn add(&mut self, offsets: &[u16]) -> usize {
        if let Self::Empty = self {
            *self = Self::of_ascending(offsets);
            return offsets.len();
        }
        // If there are few offsets, adding them one by one is faster than merging them with the list.
        let is_few =
            |list: &[u16]| offsets.len() * 8 < list.len() && list.last() >= offsets.first();
        if let Self::Array(list) = self
            && list.len() + offsets.len() <= MAX_ARRAY_LEN
            && !is_few(list)
        {
            let before = list.len();
            if list.last() < offsets.first() {
                append_offsets(list, offsets);
            } else {
                *list = merge_offsets(list, offsets);
            }
            return list.len() - before;
        }
        let added = offsets.iter().filter(|offset| self.insert(**offset));
        added.count()
    }

    /// Adds ascending distinct offsets. The list of the chunk can become unsorted and get duplicates, so the chunk can
    /// be read only after [`sort_and_compact`](Self::sort_and_compact).
    pub(super) fn add_unsorted(&mut self, offsets: &[u16]) {
        match self {
            Self::Empty => *self = Self::of_ascending(offsets),
            Self::Bitmap(words) => offsets.iter().for_each(|offset| {
                set_bit(words, *offset);
            }),
            Self::Array(list) if list.len() + offsets.len() <= MAX_ARRAY_LEN => {
                append_offsets(list, offsets);
            }
            Self::Array(list) => {
                sort_and_dedup_offsets(list);
                // If the list is still long without its duplicates, it becomes a bitmap. Otherwise it would soon be
                // full and be sorted again.
                if list.len() > MAX_ARRAY_LEN / 2 || list.len() + offsets.len() > MAX_ARRAY_LEN {
                    *self = self.to_bitmap();
                }
                self.add_unsorted(offsets);
            }
        }
    }

    /// Sorts a list that [`add_unsorted`](Self::add_unsorted) has made, and converts a bitmap with few offsets to a
    /// list.
    pub(super) fn sort_and_compact(&mut self) {
        match self {
            Self::Array(list) => sort_and_dedup_offsets(list),
            Self::Bitmap(_) if self.len() <= MAX_ARRAY_LEN as u64 => {
                *self = Self::Array(self.offsets().collect());
            }
            Self::Empty | Self::Bitmap(_) => {}
        }
    }

    /// Whether all of the ascending distinct `offsets` are known to be absent. A list is not searched: its last offset
    /// must be less than all of `offsets`. A bitmap is checked for each offset.
    pub(super) fn is_known_to_lack(&self, offsets: &[u16]) -> bool {
        match self {
            Self::Empty => true,
            Self::Array(list) => list.last() < offsets.first(),
            Self::Bitmap(words) => offsets
                .iter()
                .all(|offset| words[usize::from(offset >> 6)] >> (offset & 63) & 1 == 0),
        }
    }

    /// Returns an [`OffsetSet::Bitmap`] with the same offsets.
    fn to_bitmap(&self) -> Self {
        Self::new_bitmap(self.offsets())
    }

    /// Returns the number of offsets.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Array(list) => list.len() as u64,
            Self::Bitmap(words) => count_ones(words.as_slice()),
        }
    }

    /// Returns the offsets in ascending order. If the set is a bitmap, the offsets replace the content of `listed`.
    pub(super) fn sorted_slice<'o>(&'o self, listed: &'o mut Vec<u16>) -> &'o [u16] {
        match self {
            Self::Empty => &[],
            Self::Array(list) => list,
            Self::Bitmap(_) => {
                listed.clear();
                listed.extend(self.offsets());
                listed
            }
        }
    }

    /// Returns the offsets in ascending order.
    pub(super) fn offsets(&self) -> impl DoubleEndedIterator<Item = u16> + '_ {
        let (listed, words): (&[u16], &[u64]) = match self {
            Self::Empty => (&[], &[]),
            Self::Array(listed) => (listed, &[]),
            Self::Bitmap(words) => (&[], words.as_slice()),
        };
        let in_word = |(number, word): (usize, &u64)| {
            let (number, word) = (number as u16, *word);
            (0..64u16)
                .filter(move |bit| word >> bit & 1 != 0)
                .map(move |bit| number << 6 | bit)
        };
        let mapped = words.iter().enumerate().flat_map(in_word);
        listed.iter().copied().chain(mapped)
    }
}

impl OffsetSet {
    /// Creates a chunk with the given offsets, which must be strictly ascending. This is not checked.
    pub(super) fn of_ascending(offsets: &[u16]) -> Self {
        match offsets.len() {
            0 => Self::Empty,
            1..=MAX_ARRAY_LEN => Self::Array(offsets.to_vec()),
            _ => Self::new_bitmap(offsets.iter().copied()),
        }
    }

    /// Creates an [`OffsetSet::Bitmap`].
    pub(super) fn new_bitmap(offsets: impl IntoIterator<Item = u16>) -> Self {
        let mut words = Box::new([0; WORDS]);
        for offset in offsets {
            set_bit(&mut words, offset);
        }
        Self::Bitmap(words)
    }
}

/// Appends offsets to a list. The list grows by less than a `Vec` does, because a set has many lists.
fn append_offsets(list: &mut Vec<u16>, offsets: &[u16]) {
    if list.capacity() - list.len() < offsets.len() {
        list.reserve_exact(offsets.len().max(list.len() / 4 + 4));
    }
    list.extend_from_slice(offsets);
}

/// Sorts a list, and removes duplicates.
fn sort_and_dedup_offsets(list: &mut Vec<u16>) {
    if !list.is_sorted_by(|one, next| one < next) {
        list.sort_unstable();
        list.dedup();
    }
}

/// Returns the offsets of two ascending lists in ascending order, without duplicates.
fn merge_offsets(one: &[u16], other: &[u16]) -> Vec<u16> {
    let mut all = Vec::with_capacity(one.len() + other.len());
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(first), Some(second)) = (one.peek(), other.peek()) {
        let least = **first.min(second);
        all.push(least);
        one.next_if_eq(&&least);
        other.next_if_eq(&&least);
    }
    all.extend(one);
    all.extend(other);
    all
}

/// Returns the part of an ascending list in which `offset` is expected, and the index at which the part starts. The
/// offsets are assumed to be evenly distributed.
#[inline]
pub(super) fn window(list: &[u16], offset: u16) -> (usize, &[u16]) {
    let guess = (list.len() * usize::from(offset)) >> CHUNK_BITS;
    let start = guess.saturating_sub(WINDOW / 2);
    (start, &list[start..(start + WINDOW).min(list.len())])
}

/// Returns the same as [`find_in_list`] for the list of the chunk `number`. First looks near `last`, the position that
/// the previous look-up found, and updates `last`.
#[inline]
pub(super) fn find_near_last(
    number: u64,
    list: &[u16],
    offset: u16,
    last: &mut LastFound,
) -> Option<usize> {
    let at = match last.0 {
        // The most likely entries are the one just after and the one just before the entry of the previous look-up.
        // They are tried first, but only in the same chunk: in another chunk, they would be in memory that the look-up
        // does not need.
        Some((same, at)) if same == number => match list.get(at + 1) {
            Some(found) if *found == offset => at + 1,
            _ if at >= 1 && list.get(at - 1) == Some(&offset) => at - 1,
            _ => find_in_list(list, offset)?,
        },
        _ => find_in_list(list, offset)?,
    };
    last.0 = Some((number, at));
    Some(at)
}

/// Returns the index of `offset` in an ascending list; `None` if the list does not contain it.
#[inline]
pub(super) fn find_in_list(list: &[u16], offset: u16) -> Option<usize> {
    let (start, window) = window(list, offset);
    if window.first() <= Some(&offset) && window.last() >= Some(&offset) {
        // The count has no early exit, so that the compiler uses vector instructions.
        let before = |window: &[u16]| window.iter().filter(|one| **one < offset).count();
        let at = match window.first_chunk::<WINDOW>() {
            Some(window) => before(window),
            None => before(window),
        };
        return (window.get(at) == Some(&offset)).then_some(start + at);
    }
    list.binary_search(&offset).ok()
}

impl Offsets for OffsetSet {
    fn meets(&self, low: u16, high: u16) -> bool {
        match self {
            Self::Empty => false,
            Self::Array(list) => {
                let at = list.partition_point(|offset| *offset < low);
                list.get(at).is_some_and(|offset| *offset <= high)
            }
            Self::Bitmap(_) => self.offsets().any(|offset| (low..=high).contains(&offset)),
        }
    }
}

/// The position that the previous look-up in a list found: the number of the chunk, and the index in its list. `None`
/// if there was no such look-up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastFound(Option<(u64, usize)>);

/// Counts of the offsets in parts of a chunk, from which the rank of an offset is computed.
#[derive(Debug, Default, Clone)]
pub(super) struct RunCounts {
    /// The number of bits that are set in a bitmap before each group of [`Self::STRIDE`] words. Empty for a list.
    before: Box<[u16]>,
}

impl RunCounts {
    /// The number of bitmap words per entry of [`Self::before`].
    const STRIDE: usize = 8;

    /// Counts the offsets of a chunk. Returns the counts and the total number of offsets.
    pub(super) fn new(chunk: &OffsetSet) -> (Self, u64) {
        let (mut before, mut count) = (Vec::new(), 0);
        match chunk {
            OffsetSet::Empty => {}
            OffsetSet::Array(list) => count = list.len() as u64,
            OffsetSet::Bitmap(words) => {
                for words in words.chunks(Self::STRIDE) {
                    before.push(count as u16);
                    count += count_ones(words);
                }
            }
        }
        let before = before.into();
        (Self { before }, count)
    }

    /// Returns the rank of `offset`, which is the number of smaller offsets in the chunk; `None` if the chunk does not
    /// contain `offset`. `chunk` must be the chunk that was counted, and `number` is its number. `last` is the result
    /// of the previous look-up in a list.
    #[inline]
    pub(super) fn rank(
        &self,
        number: u64,
        chunk: &OffsetSet,
        offset: u16,
        last: &mut LastFound,
    ) -> Option<u64> {
        match chunk {
            OffsetSet::Empty => None,
            OffsetSet::Array(list) => {
                let at = find_near_last(number, list, offset, last)?;
                Some(at as u64)
            }
            OffsetSet::Bitmap(words) => {
                let (at, bit) = (usize::from(offset >> 6), offset & 63);
                let word = words[at];
                if word >> bit & 1 == 0 {
                    return None;
                }
                let start = at / Self::STRIDE * Self::STRIDE;
                let run = &words[start..at];
                let ones: u32 = run.iter().map(|word| word.count_ones()).sum();
                let ones = ones + (word & ((1 << bit) - 1)).count_ones();
                Some(u64::from(self.before[at / Self::STRIDE]) + u64::from(ones))
            }
        }
    }
}

/// Returns the number of bits that are set.
fn count_ones(words: &[u64]) -> u64 {
    let ones = words.iter().map(|word| u64::from(word.count_ones()));
    ones.sum()
}

/// Sets a bit. Returns whether the bit was clear before.
fn set_bit(words: &mut [u64; WORDS], offset: u16) -> bool {
    let word = &mut words[usize::from(offset >> 6)];
    let bit = 1 << (offset & 63);
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}
