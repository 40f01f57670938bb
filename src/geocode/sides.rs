//! Streets whose two sides have different names.

use super::folding::fold_name;
use super::index::Hit;
use super::item::{ItemShape, nonblank_tag};
use super::local_projection::{LocalProjection, squared_segment_distance};
use crate::error::FormatResult;

/// The maximum distance in metres at which a query point counts as on a street, and thus on neither side of it.
const ON_STREET: f64 = 0.01;
/// The maximum difference, in square metres, between the squared distances of two segments that count as equally near.
const EQUALLY_NEAR: f64 = 1e-6;

/// The side of a street, as seen along its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreetSide {
    Left,
    Right,
}

/// Whether `name` is the name of one side of a street, or consists of the names of both sides, as in "A / B".
fn is_side_name(name: &str, [left, right]: [&str; 2]) -> bool {
    name == left
        || name == right
        || [[left, right], [right, left]]
            .iter()
            .any(|both| fold_name(&both.join(" ")) == fold_name(name))
}

/// Returns the side of the nearest line on which the origin, the query point, lies; `None` if it is on that line.
fn side_of_origin(lines: &[Vec<[f64; 2]>]) -> Option<StreetSide> {
    // `nearest` is the squared distance of the nearest segment. `across` is the distance of the origin from the
    // straight line through this segment, and is positive on the left. At a corner, two segments are equally near. The
    // side is then that of the segment whose straight line is farther away.
    let (mut nearest, mut across) = (f64::INFINITY, 0.0_f64);
    for pair in lines.iter().flat_map(|line| line.windows(2)) {
        let [from, to] = pair else { continue };
        let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
        let length = dx.hypot(dy);
        if length == 0.0 {
            continue;
        }
        let squared = squared_segment_distance(*from, *to);
        let to_left = (dy * from[0] - dx * from[1]) / length;
        let is_nearer = squared < nearest - EQUALLY_NEAR;
        let is_as_near = squared <= nearest + EQUALLY_NEAR;
        if is_nearer || is_as_near && to_left.abs() > across.abs() {
            across = to_left;
        }
        nearest = nearest.min(squared);
    }
    match across {
        across if across > ON_STREET => Some(StreetSide::Left),
        across if across < -ON_STREET => Some(StreetSide::Right),
        _ => None,
    }
}

/// If the two sides of a street have different names, sets the tag `name` to the name of the side on which the query
/// point is. Keeps a `name` that is neither one of these names nor composed of both.
pub(super) fn set_side_name<'i>(
    tags: &mut [(&'i str, &'i str)],
    found: &Hit<'_>,
) -> FormatResult<()> {
    let [Some(left), Some(right)] = ["name:left", "name:right"].map(|key| nonblank_tag(tags, key))
    else {
        return Ok(());
    };
    if found.item.shape != ItemShape::Line || left == right {
        return Ok(());
    }
    let Some((_, name)) = tags.iter_mut().find(|(key, _)| *key == "name") else {
        return Ok(());
    };
    if !is_side_name(name, [left, right]) {
        return Ok(());
    }
    let projection = LocalProjection::around(found.place);
    let lines = found.item.lines()?;
    let project = |line: &Vec<_>| {
        line.iter()
            .map(|point| projection.project(*point))
            .collect()
    };
    let lines: Vec<Vec<[f64; 2]>> = lines.iter().map(project).collect();
    match side_of_origin(&lines) {
        Some(StreetSide::Left) => *name = left,
        Some(StreetSide::Right) => *name = right,
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_of_a_line_is_that_of_its_nearest_segment() {
        let corner = [[-10.0, 5.0], [5.0, 5.0], [5.0, -10.0]];
        let moved = |by: [f64; 2]| {
            let line = corner.map(|[x, y]| [x - by[0], y - by[1]]);
            side_of_origin(&[line.to_vec()])
        };
        for (place, side) in [
            ([0.0, 0.0], Some(StreetSide::Right)),
            ([0.0, 7.0], Some(StreetSide::Left)),
            ([7.0, 0.0], Some(StreetSide::Left)),
            ([6.0, 7.0], Some(StreetSide::Left)),
            // Beyond the end of the line.
            ([4.0, -12.0], Some(StreetSide::Right)),
            ([0.0, 5.0], None),
        ] {
            assert_eq!(moved(place), side, "{place:?}");
        }
        assert_eq!(side_of_origin(&[vec![[0.0, 0.0], [0.0, 0.0]]]), None);
    }

    #[test]
    fn names_of_one_or_both_sides_are_recognized() {
        for name in [
            "A Street",
            "B Road",
            "A Street / B Road",
            "B Road - A Street",
        ] {
            assert!(is_side_name(name, ["A Street", "B Road"]), "{name}");
        }
        assert!(!is_side_name("Border Lane", ["A Street", "B Road"]));
    }
}
