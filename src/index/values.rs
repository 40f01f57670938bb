//! The numbers that an [`IdMap`](super::IdMap) assigns to the ids of a chunk of 65,536 neighbouring ids: a sorted list,
//! or a palette with a few bits per id.
//!
//! An id is represented by its offset in the chunk, which is its low 16 bits.

use super::chunk::find_in_list;
use super::table::CHUNK_BITS;
use super::table::Offsets;

/// The number of offsets in a chunk.
const OFFSETS_PER_CHUNK: usize = 1 << CHUNK_BITS;

/// The number of list entries that are compared one by one before the rest of the list is searched by bisection.
const NEAR: usize = 8;

/// A map from 16-bit offsets to numbers. A look-up returns 0 for an offset without a number.
#[derive(Debug, Clone, Default)]
pub(super) enum OffsetMap {
    #[default]
    Empty,
    /// The offsets that have a number, in ascending order, and the number that all of them have.
    SameNumber(Vec<u16>, u32),
    /// The offsets that have a number, in ascending order, and the number of each offset.
    Array(Vec<u16>, Vec<u32>),
    Packed(PackedValues),
}

/// For each of the 65,536 offsets, the index of its number in a palette, in as few bits as the palette needs.
#[derive(Debug, Clone)]
pub(super) struct PackedValues {
    /// The numbers that were set; the first is 0.
    palette: Vec<u32>,
    /// The number of bits per offset: 1, 2, 4, 8, 16 or 32.
    bits: u32,
    /// The palette index of each offset, [`bits`](Self::bits) bits each, from the lowest bit of the first word on.
    words: Vec<u64>,
    /// The number that was set last, and its index in the palette. Neighbouring ids often have the same number.
    last: (u32, u64),
}

/// Returns the number of bytes that 65,536 offsets need, with `bits` bits each.
const fn packed_bytes(bits: u32) -> usize {
    OFFSETS_PER_CHUNK / 8 * bits as usize
}

/// Returns the minimum number of bits per index into a palette of 0 and `numbers` other numbers.
const fn bits_for(numbers: usize) -> u32 {
    match numbers {
        0..=1 => 1,
        2..=3 => 2,
        4..=15 => 4,
        16..=255 => 8,
        256..=65_535 => 16,
        _ => 32,
    }
}

impl PackedValues {
    fn new(bits: u32) -> Self {
        Self {
            palette: vec![0],
            bits,
            words: vec![0; OFFSETS_PER_CHUNK / 64 * bits as usize],
            last: (0, 0),
        }
    }

    /// Returns the index of the word that contains the palette index of an offset, and the position of its lowest bit
    /// in the word.
    #[inline]
    const fn word_and_shift(&self, offset: u16) -> (usize, u32) {
        let bit = offset as u32 * self.bits;
        ((bit >> 6) as usize, bit & 63)
    }

    const fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }

    #[inline]
    fn get(&self, offset: u16) -> u32 {
        let (word, shift) = self.word_and_shift(offset);
        let index = self.words[word] >> shift & self.mask();
        self.palette[index as usize]
    }

    fn set(&mut self, offset: u16, number: u32) {
        if self.last.0 != number {
            let known = self.palette.iter().position(|known| *known == number);
            let index = known.unwrap_or_else(|| {
                self.palette.push(number);
                self.palette.len() - 1
            });
            self.last = (number, index as u64);
            let bits = bits_for(self.palette.len() - 1);
            if bits > self.bits {
                self.widen(bits);
            }
        }
        let ((word, shift), mask) = (self.word_and_shift(offset), self.mask());
        let word = &mut self.words[word];
        *word = *word & !(mask << shift) | self.last.1 << shift;
    }

    /// Increases the number of bits per offset to `bits`.
    fn widen(&mut self, bits: u32) {
        let mut wide = Self::new(bits);
        wide.palette.clone_from(&self.palette);
        wide.last = self.last;
        for offset in 0..=u16::MAX {
            let ((from, shift), (to, wide_shift)) =
                (self.word_and_shift(offset), wide.word_and_shift(offset));
            let index = self.words[from] >> shift & self.mask();
            wide.words[to] |= index << wide_shift;
        }
        *self = wide;
    }
}

impl OffsetMap {
    /// Returns the number of an offset; 0 if the offset has none.
    #[inline]
    pub(super) fn get(&self, offset: u16) -> u32 {
        match self {
            Self::Empty => 0,
            Self::SameNumber(offsets, number) => {
                find_in_list(offsets, offset).map_or(0, |_| *number)
            }
            Self::Array(offsets, numbers) => {
                find_in_list(offsets, offset).map_or(0, |at| numbers[at])
            }
            Self::Packed(packed) => packed.get(offset),
        }
    }

    /// Returns the same as [`get`](Self::get). Fast for offsets in ascending order, because the search in a list begins
    /// at index `at`. Sets `at` to the index of the offset, or to the index at which the offset would be inserted.
    #[inline]
    pub(super) fn get_with_hint(&self, offset: u16, at: &mut usize) -> u32 {
        let (Self::SameNumber(offsets, _) | Self::Array(offsets, _)) = self else {
            return self.get(offset);
        };
        if at.checked_sub(1).and_then(|before| offsets.get(before)) >= Some(&offset) {
            *at = 0;
        }
        let ahead = &offsets[*at..];
        let passed = ahead
            .iter()
            .take(NEAR)
            .take_while(|one| **one < offset)
            .count();
        *at += match passed {
            NEAR => ahead.partition_point(|one| *one < offset),
            near => near,
        };
        match (self, offsets.get(*at) == Some(&offset)) {
            (Self::SameNumber(_, number), true) => *number,
            (Self::Array(_, numbers), true) => numbers[*at],
            _ => 0,
        }
    }

    /// Sets the number of an offset. The number must not be 0.
    pub(super) fn set(&mut self, offset: u16, number: u32) {
        match self {
            Self::Empty => *self = Self::SameNumber(vec![offset], number),
            Self::SameNumber(offsets, all) if *all == number => {
                if insert(offsets, offset).is_ok() && 2 * offsets.len() > packed_bytes(1) {
                    self.pack();
                }
            }
            Self::SameNumber(offsets, all) => {
                let numbers = vec![*all; offsets.len()];
                *self = Self::Array(std::mem::take(offsets), numbers);
                self.set(offset, number);
            }
            Self::Array(offsets, numbers) => {
                match insert(offsets, offset) {
                    Ok(at) => {
                        numbers.reserve_exact(offsets.capacity() - numbers.len());
                        numbers.insert(at, number);
                    }
                    Err(at) => {
                        numbers[at] = number;
                        return;
                    }
                }
                // Counting the distinct numbers requires a sort, so they are counted only once per 1024 offsets.
                if offsets.len().is_multiple_of(1024) && self.bytes() > self.bytes_if_packed() {
                    self.pack();
                }
            }
            Self::Packed(packed) => packed.set(offset, number),
        }
    }

    /// Returns the number of bytes that an [`OffsetMap::Array`] would use as [`OffsetMap::Packed`].
    fn bytes_if_packed(&self) -> u64 {
        let mut numbers: Vec<u32> = match self {
            Self::Array(_, numbers) => numbers.clone(),
            _ => Vec::new(),
        };
        numbers.sort_unstable();
        numbers.dedup();
        (packed_bytes(bits_for(numbers.len())) + 4 * numbers.len()) as u64
    }

    /// Converts the map into [`OffsetMap::Packed`].
    fn pack(&mut self) {
        let mut packed = PackedValues::new(1);
        self.for_each_number(|offset, number| packed.set(offset, number));
        *self = Self::Packed(packed);
    }

    /// Calls `visit` with each offset that has a number and with that number, in ascending order of offsets.
    pub(super) fn for_each_number(&self, mut visit: impl FnMut(u16, u32)) {
        match self {
            Self::Empty => {}
            Self::SameNumber(offsets, number) => {
                offsets.iter().for_each(|offset| visit(*offset, *number))
            }
            Self::Array(offsets, numbers) => offsets
                .iter()
                .zip(numbers)
                .for_each(|(offset, number)| visit(*offset, *number)),
            Self::Packed(packed) => (0..=u16::MAX).for_each(|offset| match packed.get(offset) {
                0 => {}
                number => visit(offset, number),
            }),
        }
    }

    /// Returns the number of bytes that the map has allocated.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Empty => 0,
            Self::SameNumber(offsets, _) => 2 * offsets.capacity(),
            Self::Array(offsets, numbers) => 2 * offsets.capacity() + 4 * numbers.capacity(),
            Self::Packed(packed) => 8 * packed.words.capacity() + 4 * packed.palette.capacity(),
        };
        bytes as u64
    }
}

impl Offsets for OffsetMap {
    fn meets(&self, low: u16, high: u16) -> bool {
        match self {
            Self::Empty => false,
            Self::SameNumber(offsets, _) | Self::Array(offsets, _) => {
                let at = offsets.partition_point(|offset| *offset < low);
                offsets.get(at).is_some_and(|offset| *offset <= high)
            }
            Self::Packed(packed) => (low..=high).any(|offset| packed.get(offset) != 0),
        }
    }
}

/// Inserts an offset into an ascending list. Returns the index of the offset. If the list already contains the offset,
/// the index is the `Err` value.
fn insert(offsets: &mut Vec<u16>, offset: u16) -> Result<usize, usize> {
    let at = match offsets.last() {
        // Most ids are inserted in order, and need no search.
        Some(&last) if last < offset => offsets.len(),
        _ => match offsets.binary_search(&offset) {
            Ok(at) => return Err(at),
            Err(at) => at,
        },
    };
    if offsets.len() == offsets.capacity() {
        // Grows by less than `Vec` does, because a map has many lists.
        offsets.reserve_exact(offsets.len() / 4 + 4);
    }
    offsets.insert(at, offset);
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use std::collections::BTreeMap;

    #[test]
    fn every_form_holds_what_a_plain_map_holds() {
        let mut random = Random(1);
        for (count, numbers) in [
            (5, 1),
            (6000, 1),
            (3000, 3),
            (60_000, 3),
            (60_000, 40),
            (60_000, 50_000),
        ] {
            let (mut values, mut plain) = (OffsetMap::default(), BTreeMap::new());
            for _ in 0..count {
                let (offset, number) = (
                    random.below(1 << 16) as u16,
                    1 + random.below(numbers) as u32,
                );
                values.set(offset, number);
                plain.insert(offset, number);
            }
            let mut all = BTreeMap::new();
            values.for_each_number(|offset, number| {
                all.insert(offset, number);
            });
            assert_eq!(all, plain);
            let mut at = 0;
            for offset in 0..=u16::MAX {
                let number = plain.get(&offset).copied().unwrap_or(0);
                assert_eq!(values.get(offset), number);
                assert_eq!(values.get_with_hint(offset, &mut at), number);
            }
            for _ in 0..5000 {
                let offset = random.below(1 << 16) as u16;
                assert_eq!(values.get_with_hint(offset, &mut at), values.get(offset));
            }
            for _ in 0..50 {
                let low = random.below(1 << 16) as u16;
                let high = low.saturating_add(random.below(40) as u16);
                assert_eq!(
                    values.meets(low, high),
                    plain.range(low..=high).next().is_some()
                );
            }
            let most = (6 * plain.len() * 5 / 4).max(2 * 8192) as u64;
            assert!(
                values.bytes() <= most,
                "{count}, {numbers}: {}",
                values.bytes()
            );
        }
    }
}
