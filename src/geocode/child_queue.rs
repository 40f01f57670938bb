//! A queue of up to 16 boxes, nearest first.

use super::local_projection::LocalProjection;
use crate::osm::Edges;

/// The maximum number of boxes in a queue.
pub(super) const QUEUE_LEN: usize = 16;
/// The bits of a key that hold the number of a box.
const NUMBER: i32 = QUEUE_LEN as i32 - 1;

/// The numbers of the boxes in a queue.
const NUMBERS: [i32; QUEUE_LEN] = {
    let (mut numbers, mut number) = ([0; QUEUE_LEN], 0);
    while number < QUEUE_LEN {
        numbers[number] = number as i32;
        number += 1;
    }
    numbers
};

/// The southern, western, northern and eastern edges of boxes in 1e-7 degree.
pub(super) type EdgeRows = [[f64; QUEUE_LEN]; 4];

/// The children of a node or the items of a leaf, ordered by the lower bounds of their distances.
///
/// The key of a box consists of its bound as an `f32`, rounded down, and of its number in the lowest bits. Bounds are
/// not negative, so comparing keys as integers orders the boxes by bound. The next box has the smallest key above
/// `last`. Scanning all keys with vector instructions is faster than sorting them.
pub(super) struct ChildQueue {
    keys: [i32; QUEUE_LEN],
    last: i32,
}

impl ChildQueue {
    /// Creates a queue of the first `count` boxes.
    #[inline(always)]
    pub(super) fn of(projection: &LocalProjection, count: usize, edges: &EdgeRows) -> Self {
        // This factor lowers the bounds by more than the error of rounding to `f32`.
        const LESS: f64 = 1.0 - 1e-6;
        let [souths, wests, norths, easts] = edges;
        let mut bounds = [0f32; QUEUE_LEN];
        let meridians = wests.iter().zip(easts);
        let parallels = souths.iter().zip(norths);
        for ((bound, (south, north)), (west, east)) in
            bounds.iter_mut().zip(parallels).zip(meridians)
        {
            *bound = (projection.squared_distance_bound(Edges {
                west: *west,
                south: *south,
                east: *east,
                north: *north,
            }) * LESS) as f32;
        }
        let count = count.min(QUEUE_LEN) as i32;
        let mut keys = NUMBERS;
        for (key, bound) in keys.iter_mut().zip(bounds) {
            let number = *key;
            let ranked = bound.to_bits() as i32 & !NUMBER | number;
            *key = if number < count { ranked } else { i32::MAX };
        }
        Self { keys, last: -1 }
    }

    /// Removes the next box from the queue and returns its number. Returns `None` if its bound is above `limit`, or if
    /// no box is left.
    #[inline]
    pub(super) fn next(&mut self, limit: f64) -> Option<u8> {
        let mut least = [i32::MAX; 4];
        for keys in self.keys.as_chunks::<4>().0 {
            for (least, key) in least.iter_mut().zip(keys) {
                let key = if *key > self.last { *key } else { i32::MAX };
                *least = if key < *least { key } else { *least };
            }
        }
        let next = least.into_iter().fold(i32::MAX, i32::min);
        let bound = f32::from_bits((next & !NUMBER) as u32);
        self.last = next;
        // `i32::MAX` marks the end of the queue. Its bits are a NaN, so the comparison with `limit` is false.
        (f64::from(bound) <= limit).then_some((next & NUMBER) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Point;

    #[test]
    fn boxes_come_in_order_and_up_to_a_limit() {
        let place = Point::new(500_000_000, 80_000_000);
        let projection = LocalProjection::around(place);
        let far = |number: usize| {
            let east = place.lon_e7 + [700, 0, 20_000, 300_000, 3000][number % 5];
            [place.lat_e7, east, place.lat_e7, east]
        };
        let order = |count, limit| {
            let mut rows = [[0.0; QUEUE_LEN]; 4];
            for number in 0..QUEUE_LEN {
                for (row, edge) in rows.iter_mut().zip(far(number)) {
                    row[number] = f64::from(edge);
                }
            }
            let mut queue = ChildQueue::of(&projection, count, &rows);
            std::iter::from_fn(|| queue.next(limit)).collect::<Vec<u8>>()
        };
        assert_eq!(order(5, f64::INFINITY), [1, 0, 4, 2, 3]);
        assert_eq!(order(5, 150f64.powi(2)), [1, 0, 4, 2]);
        assert_eq!(order(2, f64::INFINITY), [1, 0]);
        assert!(order(0, f64::INFINITY).is_empty());
        // Boxes with the same bound come in the order of their numbers.
        let all = order(16, f64::INFINITY);
        assert_eq!(all, [1, 6, 11, 0, 5, 10, 15, 4, 9, 14, 2, 7, 12, 3, 8, 13]);
    }
}
