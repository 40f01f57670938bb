//! Packs objects into leaves whose bounding boxes overlap little.

use super::leaf::LEAF_ITEMS;
use crate::geometry::{Extent, Point};

/// A radian in units of 1e-7 degree.
const RADIAN_E7: f64 = 1e7 * 180.0 / std::f64::consts::PI;

/// The centre of an object's bounding box, and the number of the object.
type Middle = (Point, u32);

/// Divides objects with the given bounding boxes into groups of up to [`LEAF_ITEMS`] neighbours. Returns the numbers of
/// the objects in each group. Consecutive groups are neighbours.
///
/// The objects come from a range of the Hilbert curve. They are halved recursively across the longer side of their
/// bounding box (top-down packing). If groups were runs of 16 objects along the curve, a search would visit twice as
/// many groups, because the boxes of runs overlap more.
pub(super) fn groups(extents: &[Extent]) -> Vec<Vec<usize>> {
    let middle = |extent: &Extent| {
        let [west, south, east, north] = extent.edges().into_array();
        Point::new(south.midpoint(north), west.midpoint(east))
    };
    let mut middles: Vec<Middle> = extents.iter().map(middle).zip(0..).collect();
    let mut groups = Vec::with_capacity(extents.len().div_ceil(LEAF_ITEMS));
    split_into_groups(&mut middles, &mut groups);
    groups
}

/// Halves the objects recursively, and appends the resulting groups.
fn split_into_groups(middles: &mut [Middle], groups: &mut Vec<Vec<usize>>) {
    let extent = Extent::of(middles.iter().map(|(middle, _)| middle));
    let Some(extent) = extent.filter(|_| middles.len() > LEAF_ITEMS) else {
        let mut group: Vec<usize> = middles.iter().map(|(_, number)| *number as usize).collect();
        group.sort_unstable();
        groups.extend((!group.is_empty()).then_some(group));
        return;
    };
    let [west, south, east, north] = extent.edges().map(f64::from).into_array();
    let narrow = ((south + north) / 2.0 / RADIAN_E7).cos();
    let is_tall = north - south > (east - west) * narrow;
    // The lower half gets a whole number of full groups, so at most one group is not full in the end.
    let half = middles.len().div_ceil(LEAF_ITEMS) / 2 * LEAF_ITEMS;
    middles.select_nth_unstable_by_key(half, |(middle, number)| {
        if is_tall {
            (middle.lat_e7, middle.lon_e7, *number)
        } else {
            (middle.lon_e7, middle.lat_e7, *number)
        }
    });
    let (low, high) = middles.split_at_mut(half);
    split_into_groups(low, groups);
    split_into_groups(high, groups);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_in_one_group_and_groups_hardly_overlap() {
        let extents: Vec<Extent> = (0..50 * 50)
            .map(|at| Extent::at(Point::new(100 * (at % 50), 100 * (at / 50))))
            .collect();
        let groups = groups(&extents);
        assert_eq!(groups.len(), extents.len().div_ceil(LEAF_ITEMS));
        let mut seen: Vec<usize> = groups.concat();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..extents.len()));
        let boxes: Vec<Extent> = groups
            .iter()
            .filter_map(|group| {
                let extents = group.iter().map(|number| extents[*number]);
                extents.reduce(|all, next| all.and(&next))
            })
            .collect();
        let overlaps = boxes.iter().enumerate().flat_map(|(at, one)| {
            let others = boxes.iter().skip(at + 1);
            others.filter(move |other| other.meets(one))
        });
        // Boxes may touch, because a cut along a row of points leaves some points of the row on each side.
        assert!(overlaps.count() < 2 * groups.len(), "{}", groups.len());
        assert!(super::groups(&[]).is_empty());
    }
}
