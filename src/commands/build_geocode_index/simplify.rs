//! Simplifies polygons so that they have fewer corners.

use crate::area::AreaPolygon;
use crate::geometry::Point;

/// The least tolerance, in units of 1e-7 degree.
const LEAST_TOLERANCE: f64 = 100.0;
/// The least number of corners of a ring.
const LEAST_CORNERS: usize = 3;

/// Simplifies polygons to at most `max` corners. Returns `None` if they already have at most `max` corners. Doubles the
/// tolerance until few enough corners are left, or until only one polygon with at most four outer corners is left.
/// Leaves out holes that would keep fewer than three corners, and polygons whose outer ring would keep fewer than three
/// corners. The first polygon is always kept: instead of fewer than three corners, its outer ring keeps up to four.
pub(super) fn simplify_polygons(polygons: &[AreaPolygon], max: usize) -> Option<Vec<AreaPolygon>> {
    let count = |polygons: &[AreaPolygon]| -> usize {
        let rings = polygons.iter();
        let rings = rings.flat_map(|polygon| std::iter::once(&polygon.outer).chain(&polygon.holes));
        rings.map(Vec::len).sum()
    };
    if count(polygons) <= max {
        return None;
    }
    let mut tolerance = LEAST_TOLERANCE;
    loop {
        let kept = polygons.iter().enumerate().filter_map(|(number, polygon)| {
            let outer = match simplify_ring(&polygon.outer, tolerance) {
                Some(outer) => outer,
                None if number == 0 => coarse_ring(&polygon.outer),
                None => return None,
            };
            let holes = polygon.holes.iter();
            let holes = holes.filter_map(|hole| simplify_ring(hole, tolerance));
            Some(AreaPolygon {
                holes: holes.collect(),
                outer,
            })
        });
        let kept: Vec<AreaPolygon> = kept.collect();
        let is_least = kept.len() == 1 && kept.iter().all(|it| it.outer.len() <= LEAST_CORNERS + 1);
        if count(&kept) <= max || is_least {
            return Some(kept);
        }
        tolerance *= 2.0;
    }
}

/// Returns at most four corners of a ring, evenly spaced.
fn coarse_ring(ring: &[Point]) -> Vec<Point> {
    let step = (ring.len() / 4).max(1);
    ring.iter().copied().step_by(step).take(4).collect()
}

/// Returns the corners that a ring keeps at a tolerance in units of 1e-7 degree; `None` if fewer than three are left.
fn simplify_ring(corners: &[Point], tolerance: f64) -> Option<Vec<Point>> {
    let first = corners.first()?;
    let from_first = |point: &Point| distance(*point, *first, *first);
    let farthest = corners.iter().enumerate();
    let farthest = farthest.max_by(|one, other| from_first(one.1).total_cmp(&from_first(other.1)));
    let (middle, _) = farthest?;
    let mut is_kept = vec![false; corners.len()];
    let closed: Vec<Point> = corners.iter().chain([first]).copied().collect();
    let mut parts = vec![(0, middle), (middle, corners.len())];
    while let Some((from, to)) = parts.pop() {
        is_kept[from] = true;
        // The pattern fails only for a range of one corner, which occurs only if the whole ring has one corner.
        let [start, between @ .., end] = &closed[from..=to] else {
            continue;
        };
        let between = between.iter();
        let between = between.map(|point| distance(*point, *start, *end));
        let worst = (from + 1..)
            .zip(between)
            .max_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((at, _)) = worst.filter(|(_, distance)| *distance > tolerance) {
            parts.extend([(from, at), (at, to)]);
        }
    }
    let kept = corners.iter().zip(is_kept).filter(|(_, is_kept)| *is_kept);
    let kept: Vec<Point> = kept.map(|(point, _)| *point).collect();
    (kept.len() >= LEAST_CORNERS).then_some(kept)
}

/// Returns the distance between a point and a segment, in units of 1e-7 degree.
fn distance(point: Point, from: Point, to: Point) -> f64 {
    let number = |point: Point| [f64::from(point.lon_e7), f64::from(point.lat_e7)];
    let ([px, py], [ax, ay], [bx, by]) = (number(point), number(from), number(to));
    let (dx, dy) = (bx - ax, by - ay);
    let squared = dx * dx + dy * dy;
    let along = if squared > 0.0 {
        (((px - ax) * dx + (py - ay) * dy) / squared).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (px - ax - along * dx).hypot(py - ay - along * dy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(corners: usize, radius: f64) -> Vec<Point> {
        let turn = std::f64::consts::TAU / corners as f64;
        let point = |at: usize| {
            let (sin, cos) = (turn * at as f64).sin_cos();
            Point::new((sin * radius) as i32, (cos * radius) as i32)
        };
        (0..corners).map(point).collect()
    }

    #[test]
    fn simplified_polygons_keep_some_of_their_corners() {
        let polygons = [
            AreaPolygon {
                outer: circle(5000, 1e7),
                holes: vec![circle(1000, 1e6), circle(50, 20.0)],
            },
            AreaPolygon {
                outer: circle(100, 30.0),
                holes: Vec::new(),
            },
        ];
        assert!(simplify_polygons(&polygons, 7000).is_none());
        for max in [3000, 500, 50, 8, 3, 0] {
            let found = simplify_polygons(&polygons, max).unwrap();
            let corners = found[0].outer.len();
            assert!((3..=max.max(4)).contains(&corners), "{max}: {corners}");
            assert!(
                found[0]
                    .outer
                    .iter()
                    .all(|point| polygons[0].outer.contains(point))
            );
            let area = |ring: &[Point]| {
                let next = ring.iter().cycle().skip(1);
                let cross = ring.iter().zip(next).map(|(a, b)| {
                    f64::from(a.lon_e7) * f64::from(b.lat_e7)
                        - f64::from(b.lon_e7) * f64::from(a.lat_e7)
                });
                cross.sum::<f64>() / 2.0
            };
            let share = area(&found[0].outer) / area(&polygons[0].outer);
            assert!(max < 50 || share > 0.95, "{max}: {share}");
        }
        let dots = [AreaPolygon {
            outer: vec![circle(3, 10.0)[0]; 10],
            holes: Vec::new(),
        }];
        assert!(simplify_polygons(&dots, 5).unwrap()[0].outer.len() <= 4);
    }
}
