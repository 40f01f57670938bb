//! A set of ids that costs bits per id in use, whatever the ids are.

use rustc_hash::FxHashMap;

/// Bits of an id that say where in a chunk it is.
const CHUNK_BITS: u32 = 16;
/// Ids of one chunk from which on it is a bitmap: the list would be as large.
const MOST_LISTED: usize = 4096;
/// Chunks that are found by their number in a plain table: ids from 0 to 34 thousand million.
const NEAR_CHUNKS: u64 = 1 << 19;

type Bitmap = [u64; 1 << (CHUNK_BITS - 6)];

/// A set of ids of one kind of objects: any `i64`, close together or far apart, in any order.
///
/// 65,536 neighbouring ids share a chunk, which takes two bytes an id while there are few of them and
/// 8 kB in all from 4,096 on. The table of chunks grows with the largest id, up to 12 MB; ids beyond
/// 34 thousand million, and negative ones, go through a hash table.
#[derive(Debug, Default, Clone)]
pub struct IdSet {
    near: Vec<Chunk>,
    far: FxHashMap<u64, Chunk>,
    len: u64,
}

#[derive(Debug, Clone, Default)]
enum Chunk {
    #[default]
    Empty,
    /// Ascending.
    Listed(Vec<u16>),
    Mapped(Box<Bitmap>),
}

impl Chunk {
    fn contains(&self, place: u16) -> bool {
        match self {
            Self::Empty => false,
            Self::Listed(list) => list.binary_search(&place).is_ok(),
            Self::Mapped(bits) => bits
                .get(usize::from(place >> 6))
                .is_some_and(|word| word & (1 << (place & 63)) != 0),
        }
    }

    /// Whether the place was not there.
    fn insert(&mut self, place: u16) -> bool {
        match self {
            Self::Empty => {
                *self = Self::Listed(vec![place]);
                true
            }
            Self::Listed(list) => {
                let at = match list.last() {
                    // Ids mostly come in order.
                    Some(&last) if last < place => list.len(),
                    _ => match list.binary_search(&place) {
                        Ok(_) => return false,
                        Err(at) => at,
                    },
                };
                if list.len() < MOST_LISTED {
                    list.insert(at, place);
                } else {
                    *self = Self::map(list, place);
                }
                true
            }
            Self::Mapped(bits) => set(bits, place),
        }
    }

    fn map(list: &[u16], more: u16) -> Self {
        let mut bits: Box<Bitmap> = Box::new([0; _]);
        for &place in list.iter().chain([&more]) {
            set(&mut bits, place);
        }
        Self::Mapped(bits)
    }

    /// Places in ascending order.
    fn places(&self) -> Box<dyn Iterator<Item = u16> + '_> {
        match self {
            Self::Empty => Box::new(std::iter::empty()),
            Self::Listed(list) => Box::new(list.iter().copied()),
            Self::Mapped(bits) => Box::new(
                (0..=u16::MAX)
                    .filter(|place| bits[usize::from(place >> 6)] & (1 << (place & 63)) != 0),
            ),
        }
    }
}

/// Sets a bit; whether it was not set.
fn set(bits: &mut Bitmap, place: u16) -> bool {
    let Some(word) = bits.get_mut(usize::from(place >> 6)) else {
        return false;
    };
    let bit = 1 << (place & 63);
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}

/// The chunk of an id, and its place there.
const fn split(id: i64) -> (u64, u16) {
    ((id as u64) >> CHUNK_BITS, id as u16)
}

impl IdSet {
    /// Adds an id; whether it was not in the set.
    pub fn insert(&mut self, id: i64) -> bool {
        let (chunk, place) = split(id);
        let is_new = self.chunk(chunk).insert(place);
        self.len += u64::from(is_new);
        is_new
    }

    fn chunk(&mut self, number: u64) -> &mut Chunk {
        if number >= NEAR_CHUNKS {
            return self.far.entry(number).or_default();
        }
        let number = number as usize;
        if number >= self.near.len() {
            self.near.resize_with(number + 1, Chunk::default);
        }
        &mut self.near[number]
    }

    /// Whether the id is in the set.
    pub fn contains(&self, id: i64) -> bool {
        let (chunk, place) = split(id);
        let chunk = if chunk < NEAR_CHUNKS {
            self.near.get(chunk as usize)
        } else {
            self.far.get(&chunk)
        };
        chunk.is_some_and(|chunk| chunk.contains(place))
    }

    /// How many ids there are.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ids in canonical order: 0, then negative ids by absolute value, then positive ones.
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        let mut far: Vec<u64> = self.far.keys().copied().collect();
        far.sort_unstable();
        let negative = move |number: &u64| ((*number << CHUNK_BITS) as i64) < 0;
        let (below, above): (Vec<u64>, Vec<u64>) = far.into_iter().partition(negative);
        let far_ids = |number: u64| {
            let places: Vec<u16> = self
                .far
                .get(&number)
                .map_or(Vec::new(), |chunk| chunk.places().collect());
            places
                .into_iter()
                .map(move |place| (number << CHUNK_BITS | u64::from(place)) as i64)
        };
        let near_ids = self.near.iter().enumerate().flat_map(|(number, chunk)| {
            chunk
                .places()
                .map(move |place| ((number as u64) << CHUNK_BITS | u64::from(place)) as i64)
        });
        let zero = self.contains(0).then_some(0);
        // -1 has the largest bits: negative ids run backwards.
        let negative_ids = below.into_iter().rev().flat_map(move |number| {
            let mut ids: Vec<i64> = far_ids(number).collect();
            ids.reverse();
            ids
        });
        zero.into_iter()
            .chain(negative_ids)
            .chain(near_ids.filter(|id| *id != 0))
            .chain(above.into_iter().flat_map(far_ids))
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
    use crate::osm::id_rank;
    use std::collections::BTreeSet;

    #[test]
    fn it_holds_what_a_plain_set_holds() {
        let mut numbers = 1u64;
        let mut next = move || {
            numbers = numbers
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            numbers >> 20
        };
        for (spread, count) in [(1u64 << 8, 300), (1 << 18, 60_000), (1 << 44, 2_000)] {
            let (mut set, mut plain) = (IdSet::default(), BTreeSet::new());
            for _ in 0..count {
                let id = (next() % spread) as i64 * if next() % 3 == 0 { -1 } else { 1 };
                assert_eq!(set.insert(id), plain.insert(id));
            }
            for id in [0, 1, -1, i64::MIN, i64::MAX, 1 << 35, (1 << 35) - 1] {
                assert_eq!(set.contains(id), plain.contains(&id));
                assert_eq!(set.insert(id), plain.insert(id));
            }
            assert_eq!(set.len(), plain.len() as u64);
            assert!(plain.iter().all(|id| set.contains(*id)));
            let mut ordered: Vec<i64> = plain.into_iter().collect();
            ordered.sort_by_key(|id| id_rank(*id));
            assert!(set.ids().eq(ordered));
        }
    }

    #[test]
    fn ids_far_apart_cost_little() {
        let set: IdSet = (0..1000).map(|number| i64::MIN + (number << 53)).collect();
        assert_eq!(set.len(), 1000);
        assert!(set.near.is_empty());
    }
}
