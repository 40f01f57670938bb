//! Sorts the objects of a block that is not in order.

use crate::error::FormatError;
use crate::osm::TypeThenId;
use crate::pbf::{Block, RawElement};

/// The maximum number of objects in a portion. An object needs at most 130 bytes. Blocks of real files have far fewer
/// objects.
const PORTION: usize = 100_000;

/// The position of an object in the sorted order: its key, its version, and its index in the block.
type SortPosition = (TypeThenId, i64, u32);

/// The objects of a block, sorted by key and version. Objects with equal keys and versions stay in the order of the
/// block. The objects are sorted in portions, so that the memory does not depend on the number of objects. Each portion
/// needs another walk over the whole block.
pub(super) struct Portions<'a> {
    block: &'a Block<'a>,
    /// The maximum number of objects of a portion.
    most: usize,
    /// The remaining objects of the current portion.
    portion: std::vec::IntoIter<(u32, RawElement<'a>)>,
    /// The position at which the next portion starts. Objects before it are in earlier portions or are not wanted.
    next: Option<SortPosition>,
    /// Whether there are no further portions.
    is_last: bool,
}

impl<'a> Portions<'a> {
    /// Sorts the objects of `block` whose keys are at least `from`.
    pub(super) fn new(block: &'a Block<'a>, from: Option<TypeThenId>) -> Self {
        Self {
            block,
            most: PORTION,
            portion: Vec::new().into_iter(),
            next: from.map(|key| (key, i64::MIN, 0)),
            is_last: false,
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<RawElement<'a>>, FormatError> {
        loop {
            if let Some((_, object)) = self.portion.next() {
                return Ok(Some(object));
            }
            if self.is_last {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// Collects and sorts the next portion.
    fn fill(&mut self) -> Result<(), FormatError> {
        let place = |(index, object): &(u32, RawElement<'a>)| (object.key, object.version, *index);
        let mut held: Vec<(u32, RawElement<'a>)> = Vec::new();
        // The lowest position among the objects that have so far been left for a later portion.
        let mut end: Option<SortPosition> = None;
        let mut cursor = self.block.cursor();
        let mut index = 0;
        while let Some(object) = cursor.next()? {
            let found = (index, object);
            index += 1;
            let at = place(&found);
            if self.next.is_some_and(|next| at < next) || end.is_some_and(|end| at >= end) {
                continue;
            }
            held.push(found);
            if held.len() == 2 * self.most {
                let (_, first_left_out, _) = held.select_nth_unstable_by_key(self.most, place);
                end = Some(place(first_left_out));
                held.truncate(self.most);
            }
        }
        held.sort_unstable_by_key(place);
        (self.next, self.is_last) = (end, end.is_none());
        self.portion = held.into_iter();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::ObjectKind;
    use crate::pbf::wire::{put_bytes_field, put_sint};

    /// Returns a payload of dense nodes with the given ids. The latitude of each node is its index.
    fn payload_of(ids: &[i64]) -> Vec<u8> {
        let [mut deltas, mut ones, mut zeros] = [vec![], vec![], vec![]];
        let mut last = 0;
        for &id in ids {
            put_sint(&mut deltas, id - last);
            let delta = i64::from(!ones.is_empty());
            put_sint(&mut ones, delta);
            zeros.push(0);
            last = id;
        }
        let (mut dense, mut group, mut payload) = (vec![], vec![], vec![]);
        put_bytes_field(&mut dense, 1, &deltas);
        put_bytes_field(&mut dense, 8, &ones);
        put_bytes_field(&mut dense, 9, &zeros);
        put_bytes_field(&mut group, 2, &dense);
        put_bytes_field(&mut payload, 1, &[]);
        put_bytes_field(&mut payload, 2, &group);
        payload
    }

    #[test]
    fn portions_of_any_size_give_the_same_order() {
        let ids: Vec<i64> = (0..500).map(|number| number * 7919 % 251).collect();
        let mut expected: Vec<(i64, i64)> = ids.iter().copied().zip(0..).collect();
        expected.sort_unstable();
        let payload = payload_of(&ids);
        let block = Block::parse(&payload).unwrap();
        for (most, from) in [
            (1, 0),
            (2, 7),
            (7, 0),
            (100, 100),
            (250, 1),
            (499, 0),
            (500, 0),
        ] {
            let start = (ObjectKind::Node, crate::osm::id_rank(from));
            let mut portions = Portions {
                most,
                ..Portions::new(&block, (from > 0).then_some(start))
            };
            let mut found = Vec::new();
            while let Some(object) = portions.next().unwrap() {
                let id = crate::osm::id_from_rank(object.key.1);
                found.push((id, object.location().unwrap().unwrap().0));
            }
            let wanted = expected.iter().filter(|(id, _)| *id >= from);
            assert!(found.iter().eq(wanted), "{most} from {from}");
        }
    }
}
