//! Sorts the objects of a block that is not in order.

use crate::error::FormatResult;
use crate::osm::TypeThenId;
use crate::pbf::{Block, RawElement};

/// The maximum number of objects in a portion. An object needs at most 130 bytes. Blocks of real files have far fewer
/// objects.
const PORTION: usize = 600_000;
/// The maximum number of positions in the sample of a block.
const SAMPLE: usize = 8192;

/// The position of an object in the sorted order: its key, its version, and its index in the block.
type SortPosition = (TypeThenId, i64, u32);

/// The objects of a block, sorted by key and version. Objects with equal keys and versions stay in the order of the
/// block. The objects are sorted in portions, so that the memory does not depend on the number of objects. Each portion
/// needs another walk over the whole block. The first walk takes a sample of the positions, from which the ends of the
/// other portions are estimated.
pub(super) struct Portions<'a> {
    block: &'a Block<'a>,
    /// The maximum number of objects of a portion.
    most: usize,
    /// The remaining objects of the current portion.
    portion: std::vec::IntoIter<(u32, RawElement<'a>)>,
    /// The object that was returned last.
    current: RawElement<'a>,
    /// The position at which the next portion starts. Objects before it are in earlier portions or are not wanted.
    next: Option<SortPosition>,
    /// The estimated ends of further portions, the last one first.
    ends: Vec<SortPosition>,
    /// Whether there are no further portions.
    is_last: bool,
}

/// A sample of the positions in a block: the positions whose index is a multiple of `step`. The sample has a bounded
/// size.
struct PositionSample {
    positions: Vec<SortPosition>,
    /// The number of objects in the block for each position in the sample.
    step: u32,
}

impl PositionSample {
    fn new() -> Self {
        Self {
            positions: Vec::new(),
            step: 1,
        }
    }

    fn add(&mut self, position: SortPosition) {
        if position.2.is_multiple_of(self.step) {
            self.positions.push(position);
            if self.positions.len() == SAMPLE {
                self.step *= 2;
                let step = self.step;
                self.positions
                    .retain(|(.., index)| index.is_multiple_of(step));
            }
        }
    }

    /// Returns the estimated ends of portions after `end`, in descending order. According to the sample, fewer than
    /// `most` objects lie between two consecutive ends.
    fn portion_ends(mut self, end: SortPosition, most: usize) -> Vec<SortPosition> {
        // An eighth of a portion is left for the error of the estimate.
        let objects = (most / 8 * 7 / self.step as usize).max(1);
        self.positions.retain(|position| *position > end);
        self.positions.sort_unstable();
        let ends = self.positions.into_iter().skip(objects - 1);
        let mut ends: Vec<SortPosition> = ends.step_by(objects).collect();
        ends.reverse();
        ends
    }
}

impl<'a> Portions<'a> {
    /// Prepares to sort the objects of `block` whose keys are at least `from`.
    pub(super) fn new(block: &'a Block<'a>, from: Option<TypeThenId>) -> Self {
        Self {
            block,
            most: PORTION,
            portion: Vec::new().into_iter(),
            current: RawElement::default(),
            next: from.map(|key| (key, i64::MIN, 0)),
            ends: Vec::new(),
            is_last: false,
        }
    }

    /// Returns the object that [`next`](Self::next) returned last; the default object before the first call.
    pub(super) const fn current(&self) -> &RawElement<'a> {
        &self.current
    }

    /// Returns the next object; `None` after the last one.
    pub(super) fn next(&mut self) -> FormatResult<Option<&RawElement<'a>>> {
        loop {
            if let Some((_, object)) = self.portion.next() {
                self.current = object;
                return Ok(Some(&self.current));
            }
            if self.is_last {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// Collects and sorts the next portion.
    fn fill(&mut self) -> FormatResult<()> {
        let place = |(index, object): &(u32, RawElement<'a>)| (object.key, object.version, *index);
        let mut held: Vec<(u32, RawElement<'a>)> = Vec::new();
        // Objects from this position on are left for later portions.
        let mut end = self.ends.pop();
        let (estimated, mut sample) = (end, end.is_none().then(PositionSample::new));
        let mut cursor = self.block.cursor();
        let mut index = 0;
        while let Some(object) = cursor.next()? {
            let found = (index, *object);
            index += 1;
            let at = place(&found);
            if self.next.is_some_and(|next| at < next) {
                continue;
            }
            if let Some(sample) = &mut sample {
                sample.add(at);
            }
            if end.is_some_and(|end| at >= end) {
                continue;
            }
            held.push(found);
            if held.len() > self.most + self.most / 4 {
                let (_, first_left_out, _) = held.select_nth_unstable_by_key(self.most, place);
                end = Some(place(first_left_out));
                held.truncate(self.most);
            }
        }
        held.sort_unstable_by_key(place);
        if let (Some(end), Some(sample)) = (end, sample) {
            self.ends = sample.portion_ends(end, self.most);
        } else if end != estimated {
            // The portion ends before its estimated end, so the estimated end is left for the next portion.
            self.ends.extend(estimated);
        }
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
