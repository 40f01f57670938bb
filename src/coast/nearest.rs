//! Finds the nearest of many places on a sphere.

use crate::geometry::Point;

/// The radius of the earth in metres.
const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// A place on the unit sphere.
type SpherePoint = [f64; 3];

/// Projects a point to the unit sphere.
fn to_sphere_point(point: Point) -> SpherePoint {
    let (lat, lon) = (point.lat().to_radians(), point.lon().to_radians());
    [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
}

/// Returns the squared length of the straight line between two points.
fn squared_chord(one: &SpherePoint, other: &SpherePoint) -> f64 {
    let differences = one.iter().zip(other).map(|(a, b)| a - b);
    differences.map(|difference| difference * difference).sum()
}

/// Returns the distance between two points on a sphere, in metres.
#[cfg(test)]
fn distance_m(one: Point, other: Point) -> f64 {
    chord_to_metres(squared_chord(
        &to_sphere_point(one),
        &to_sphere_point(other),
    ))
}

/// Returns the distance on the sphere, in metres, for a squared chord of the unit sphere.
fn chord_to_metres(squared_chord: f64) -> f64 {
    2.0 * EARTH_RADIUS_M * (squared_chord.sqrt() / 2.0).clamp(0.0, 1.0).asin()
}

/// A k-d tree of places. Places can be removed from it. See J. Bentley, "Multidimensional binary search trees used for
/// associative searching", 1975.
pub(super) struct NearestPlaces {
    /// The places in the order of the tree. Each subtree is a range `low..high` of this list. The root of the subtree
    /// is at the index `(low + high) / 2`. Each level of the tree has an `axis`: `place[axis] <= root[axis]` for the
    /// places before the root, and `place[axis] >= root[axis]` for the places after it.
    places: Vec<SpherePoint>,
    /// The number of each place in `places`. It is the index of the place's point in the argument of
    /// [`new`](Self::new).
    numbers: Vec<usize>,
    /// For each number, the index of the place in `places`.
    index_of: Vec<usize>,
    is_there: Vec<bool>,
    /// For the root of each range, the number of places in the range that have not been removed.
    count: Vec<usize>,
    /// The number of steps that searches may still take. This limit bounds the time on hostile data.
    steps: u64,
}

impl NearestPlaces {
    /// Creates a tree of points. The number of a place is the index of its point.
    pub(super) fn new(points: &[Point]) -> Self {
        let mut items: Vec<(SpherePoint, usize)> = points
            .iter()
            .copied()
            .map(to_sphere_point)
            .zip(0..)
            .collect();
        order_as_kd_tree(&mut items, 0);
        let mut index_of = vec![0; items.len()];
        for (index, (_, number)) in items.iter().enumerate() {
            index_of[*number] = index;
        }
        let (places, numbers): (Vec<_>, Vec<_>) = items.into_iter().unzip();
        let mut tree = Self {
            is_there: vec![true; places.len()],
            count: vec![0; places.len()],
            steps: (places.len() as u64).saturating_mul(4096).max(1 << 24),
            places,
            numbers,
            index_of,
        };
        tree.set_counts(0, tree.places.len());
        tree
    }

    /// Sets the counts of a range, and returns the number of places in it.
    fn set_counts(&mut self, low: usize, high: usize) -> usize {
        if low >= high {
            return 0;
        }
        let middle = low.midpoint(high);
        let count = 1 + self.set_counts(low, middle) + self.set_counts(middle + 1, high);
        self.count[middle] = count;
        count
    }

    /// Removes a place.
    pub(super) fn remove(&mut self, number: usize) {
        let Some(index) = self.index_of.get(number).copied() else {
            return;
        };
        if !std::mem::replace(&mut self.is_there[index], false) {
            return;
        }
        let (mut low, mut high) = (0, self.places.len());
        while low < high {
            let middle = low.midpoint(high);
            self.count[middle] -= 1;
            match index.cmp(&middle) {
                std::cmp::Ordering::Less => high = middle,
                std::cmp::Ordering::Equal => return,
                std::cmp::Ordering::Greater => low = middle + 1,
            }
        }
    }

    /// Returns the number of the nearest place that has not been removed, and its distance in metres.
    pub(super) fn nearest(&mut self, point: Point) -> Option<(usize, f64)> {
        let mut best = None;
        self.search(&to_sphere_point(point), 0, self.places.len(), 0, &mut best);
        best.map(|(index, squared): (usize, f64)| (self.numbers[index], chord_to_metres(squared)))
    }

    /// Searches a range for a place that is nearer than `best`.
    fn search(
        &mut self,
        at: &SpherePoint,
        low: usize,
        high: usize,
        axis: usize,
        best: &mut Option<(usize, f64)>,
    ) {
        let middle = low.midpoint(high);
        if low >= high || self.count[middle] == 0 || self.steps == 0 {
            return;
        }
        self.steps -= 1;
        let place = self.places[middle];
        if self.is_there[middle] {
            let squared = squared_chord(at, &place);
            if best.is_none_or(|(_, known)| squared < known) {
                *best = Some((middle, squared));
            }
        }
        let apart = at[axis] - place[axis];
        let (near, far) = ((low, middle), (middle + 1, high));
        let (near, far) = if apart <= 0.0 {
            (near, far)
        } else {
            (far, near)
        };
        let next = (axis + 1) % 3;
        self.search(at, near.0, near.1, next, best);
        if best.is_none_or(|(_, known)| apart * apart < known) {
            self.search(at, far.0, far.1, next, best);
        }
    }
}

/// Orders items as a k-d tree: the middle item of each range is the root of the range.
fn order_as_kd_tree(items: &mut [(SpherePoint, usize)], axis: usize) {
    if items.len() < 2 {
        return;
    }
    let middle = items.len() / 2;
    items.select_nth_unstable_by(middle, |one, other| {
        one.0[axis]
            .total_cmp(&other.0[axis])
            .then(one.1.cmp(&other.1))
    });
    let (before, behind) = items.split_at_mut(middle);
    order_as_kd_tree(before, (axis + 1) % 3);
    order_as_kd_tree(&mut behind[1..], (axis + 1) % 3);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    #[test]
    fn a_search_finds_the_place_with_the_smallest_distance() {
        let mut random = Random(3);
        let mut point = || {
            Point::new(
                (random.below(1_800_000) - 900_000) * 1000,
                (random.below(3_600_000) - 1_800_000) * 1000,
            )
        };
        let points: Vec<Point> = (0..300).map(|_| point()).collect();
        let mut tree = NearestPlaces::new(&points);
        let mut left: Vec<usize> = (0..points.len()).collect();
        while !left.is_empty() {
            let at = point();
            let (number, distance) = tree.nearest(at).unwrap();
            let distances = left.iter().map(|other| distance_m(at, points[*other]));
            let expected = distances.fold(f64::INFINITY, f64::min);
            assert!((distance - expected).abs() < 1e-3, "{distance} {expected}");
            tree.remove(number);
            left.retain(|other| *other != number);
        }
        assert_eq!(tree.nearest(points[0]), None);
    }

    #[test]
    fn a_degree_has_the_same_length_across_the_antimeridian() {
        let at = |lon: f64, lat: f64| Point::new((lat * 1e7) as i32, (lon * 1e7) as i32);
        let degree = distance_m(at(0.0, 0.0), at(1.0, 0.0));
        assert!((degree - 111_195.0).abs() < 1.0, "{degree}");
        let across = distance_m(at(179.5, 0.0), at(-179.5, 0.0));
        assert!((across - degree).abs() < 1e-3);
        assert_eq!(distance_m(at(180.0, 5.0), at(180.0, 5.0)), 0.0);
    }
}
