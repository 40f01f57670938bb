//! Intersections and differences of areas, and the polygons around which rings wind.

use super::{Extent, Point, doubled_area};
use i_overlay::core::fill_rule::FillRule;
use i_overlay::core::overlay::{IntOverlayOptions, Overlay, ShapeType};
use i_overlay::core::overlay_rule::OverlayRule;
use i_overlay::core::solver::Solver;
use i_overlay::i_float::int::point::IntPoint;

/// The intersection of polygons is exact if all coordinates, relative to the middle of the polygons, are below this
/// limit.
const MAX_EXACT: i64 = 1 << 30;

/// A polygon: its outer ring, counter-clockwise, and its holes, clockwise. Rings do not repeat their first point.
pub(crate) type Rings = Vec<Vec<Point>>;

/// Returns the polygons in which two areas intersect. The rings of both areas must be directed as in [`Rings`].
pub(crate) fn intersection<'r>(
    one: impl Iterator<Item = &'r Vec<Point>> + Clone,
    other: &[Vec<Point>],
) -> Vec<Rings> {
    overlay(one, other, OverlayRule::Intersect, FillRule::NonZero)
}

/// Returns the polygons in which the winding number of the rings is positive. There, the rings wind counter-clockwise
/// more often than clockwise. If `is_clockwise` is true, returns the polygons in which the winding number is negative.
/// The rings may cross.
pub(crate) fn polygons_with_winding_sign<'r>(
    rings: impl Iterator<Item = &'r Vec<Point>> + Clone,
    is_clockwise: bool,
) -> Vec<Rings> {
    let fill = if is_clockwise {
        FillRule::Negative
    } else {
        FillRule::Positive
    };
    overlay(rings, &[], OverlayRule::Subject, fill)
}

/// Returns the polygons of the part of `one` that lies outside of `other`. The rings of both areas must be directed as
/// in [`Rings`].
pub(crate) fn difference<'r>(
    one: impl Iterator<Item = &'r Vec<Point>> + Clone,
    other: &[Vec<Point>],
) -> Vec<Rings> {
    overlay(one, other, OverlayRule::Difference, FillRule::NonZero)
}

fn overlay<'r>(
    one: impl Iterator<Item = &'r Vec<Point>> + Clone,
    other: &[Vec<Point>],
    rule: OverlayRule,
    fill: FillRule,
) -> Vec<Rings> {
    let extents = (
        Extent::of(one.clone().flatten()),
        Extent::of(other.iter().flatten()),
    );
    let Extent { low, high } = match extents {
        (None, _) => return Vec::new(),
        (Some(of_one), None) => of_one,
        (Some(of_one), Some(of_other)) => of_one.and(&of_other),
    };
    let (lon, lon_reach) = middle(low.lon_e7, high.lon_e7);
    let (lat, lat_reach) = middle(low.lat_e7, high.lat_e7);
    // Intersections are exact only below `MAX_EXACT`, so the coordinates of wide areas are halved.
    let unit = 1 + i64::from(lon_reach.max(lat_reach) >= MAX_EXACT);
    let scaled = |point: &Point| {
        let scaled = |value_e7: i32, middle: i64| ((i64::from(value_e7) - middle) / unit) as i32;
        IntPoint::new(scaled(point.lon_e7, lon), scaled(point.lat_e7, lat))
    };
    let options = IntOverlayOptions {
        preserve_input_collinear: true,
        preserve_output_collinear: true,
        ..IntOverlayOptions::ogc()
    };
    let edges = one.clone().map(Vec::len).sum();
    let mut overlay = Overlay::new_custom(edges, options, Solver::default());
    for ring in one.clone() {
        overlay.add_path_iter(ring.iter().map(scaled), ShapeType::Subject);
    }
    for ring in other {
        overlay.add_path_iter(ring.iter().map(scaled), ShapeType::Clip);
    }
    let point = |point: IntPoint| {
        Point::new(
            (i64::from(point.y) * unit + lat) as i32,
            (i64::from(point.x) * unit + lon) as i32,
        )
    };
    let polygons = overlay.overlay(rule, fill);
    let ring = |(index, ring): (usize, Vec<IntPoint>)| {
        let mut points: Vec<Point> = ring.into_iter().map(point).collect();
        // A hole that touches the outer ring at a corner may have the direction of the outer ring.
        if (doubled_area(&points) < 0) != (index > 0) {
            points.reverse();
        }
        points
    };
    let polygons = polygons.into_iter();
    polygons
        .map(|rings| rings.into_iter().enumerate().map(ring).collect())
        .collect()
}

/// Returns the middle between two coordinates, and the distance from the middle to the farther of the two. The middle
/// is even. If the distances of points from the middle are halved, the antimeridian and all other even coordinates stay
/// exact.
fn middle(low: i32, high: i32) -> (i64, i64) {
    let (low, high) = (i64::from(low), i64::from(high));
    let middle = (low + high) / 4 * 2;
    (middle, (high - middle).max(middle - low))
}
