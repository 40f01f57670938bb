//! Assigns holes to outer rings, with exact integer arithmetic.

use super::shape::{Point, Polygon, Ring, Shape};
use crate::osm::Bbox;
use std::cmp::Ordering;

/// The position of a point relative to a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingSide {
    Inside,
    Edge,
    Outside,
}

/// A point as x and y in half units of 1e-7 degree. In these units, the middle of an edge has integer coordinates, too.
type HalfUnitPosition = (i64, i64);

/// Converts a point to half units.
fn to_half_units(point: Point) -> HalfUnitPosition {
    (i64::from(point.lon_e7) * 2, i64::from(point.lat_e7) * 2)
}

/// Returns the edges of a ring. The last edge joins the last point to the first.
fn edges(points: &[Point]) -> impl Iterator<Item = (Point, Point)> + '_ {
    let ends = points.iter().skip(1).chain(points.first());
    points.iter().copied().zip(ends.copied())
}

/// Returns the side of the line from `a` to `b` on which a point lies. `Greater` is left, `Less` is right, and `Equal`
/// is on the line.
fn side_of_line(a: HalfUnitPosition, b: HalfUnitPosition, point: HalfUnitPosition) -> Ordering {
    let wide = i128::from;
    let left = wide(b.0 - a.0) * wide(point.1 - a.1);
    let right = wide(b.1 - a.1) * wide(point.0 - a.0);
    left.cmp(&right)
}

/// Returns the position of a point relative to a ring.
fn side_of_ring(ring: &[Point], point: HalfUnitPosition) -> RingSide {
    let mut inside = false;
    for (a, b) in edges(ring) {
        let (a, b) = (to_half_units(a), to_half_units(b));
        let turn = side_of_line(a, b, point);
        let beside = |a: i64, b: i64, value: i64| a.min(b) <= value && value <= a.max(b);
        if turn == Ordering::Equal && beside(a.0, b.0, point.0) && beside(a.1, b.1, point.1) {
            return RingSide::Edge;
        }
        // Counts the edges that a ray from the point to the east crosses. The point lies on the left of such an edge if
        // the edge leads upwards, and on the right if it leads downwards.
        let upwards = a.1 <= point.1 && point.1 < b.1;
        let downwards = b.1 <= point.1 && point.1 < a.1;
        if (upwards && turn == Ordering::Greater) || (downwards && turn == Ordering::Less) {
            inside = !inside;
        }
    }
    if inside {
        RingSide::Inside
    } else {
        RingSide::Outside
    }
}

/// A ring with its area, and with its bounding box, which quickly rules out most containments.
struct Measured<'a> {
    points: &'a [Point],
    envelope: Bbox,
    /// Twice the area, in squared units of 1e-7 degree.
    area: i128,
}

impl<'a> Measured<'a> {
    fn new(ring: &'a Ring) -> Self {
        let points = ring.points.as_slice();
        let mut envelope = Bbox::EMPTY;
        let mut area = 0i128;
        for (a, b) in edges(points) {
            envelope.add(a.lat_e7, a.lon_e7);
            area += i128::from(a.lon_e7) * i128::from(b.lat_e7)
                - i128::from(b.lon_e7) * i128::from(a.lat_e7);
        }
        let area = area.abs();
        Self {
            points,
            envelope,
            area,
        }
    }

    /// Whether this ring contains another ring, which must not cross this ring. Tests the vertices of the other ring,
    /// and then the middles of its edges. The first of these points that does not lie on an edge of this ring decides.
    /// If all lie on edges of this ring, the result is true.
    fn holds(&self, other: &Self) -> bool {
        if self.envelope.union(&other.envelope) != self.envelope {
            return false;
        }
        let corners = other.points.iter().map(|&point| to_half_units(point));
        let middles = edges(other.points).map(|(a, b)| {
            let (a, b) = (to_half_units(a), to_half_units(b));
            (a.0.midpoint(b.0), a.1.midpoint(b.1))
        });
        let mut sides = corners
            .chain(middles)
            .map(|point| side_of_ring(self.points, point));
        sides.find(|&side| side != RingSide::Edge) != Some(RingSide::Outside)
    }
}

/// Returns the index of the smallest outer ring that contains `inner`.
fn smallest_container(outers: &[Measured<'_>], inner: &Measured<'_>) -> Option<usize> {
    let holders = outers
        .iter()
        .enumerate()
        .filter(|(_, outer)| outer.holds(inner));
    let smallest = holders.min_by_key(|(_, outer)| outer.area);
    smallest.map(|(index, _)| index)
}

/// Creates polygons from outer rings and holes. Each hole belongs to the smallest outer ring that contains it. Fails
/// with the first hole that no outer ring contains.
pub(crate) fn nest_holes(outers: Vec<Ring>, holes: Vec<Ring>) -> Result<Shape, Ring> {
    let measured: Vec<_> = outers.iter().map(Measured::new).collect();
    let mut placed = Vec::with_capacity(holes.len());
    for hole in holes {
        match smallest_container(&measured, &Measured::new(&hole)) {
            Some(outer) => placed.push((outer, hole)),
            None => return Err(hole),
        }
    }
    Ok(shape_with_holes(outers, placed))
}

/// Creates polygons from outer rings and holes. Each hole comes with the index of its outer ring.
fn shape_with_holes(outers: Vec<Ring>, holes: Vec<(usize, Ring)>) -> Shape {
    let outers = outers.into_iter().map(|outer| Polygon {
        outer,
        holes: Vec::new(),
    });
    let mut polygons: Vec<Polygon> = outers.collect();
    for (outer, hole) in holes {
        polygons[outer].holes.push(hole);
    }
    Shape { polygons }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(name: &str, points: &[(i32, i32)]) -> Ring {
        let points = points
            .iter()
            .map(|&(lon_e7, lat_e7)| Point { lat_e7, lon_e7 });
        Ring::new(name.to_owned(), points.collect())
    }

    fn square(name: &str, low: i32, high: i32) -> Ring {
        ring(name, &[(low, low), (high, low), (high, high), (low, high)])
    }

    fn ring_names(shape: &Shape) -> Vec<(&str, Vec<&str>)> {
        let polygons = shape.polygons.iter().map(|polygon| {
            let holes = polygon.holes.iter().map(|hole| hole.name.as_str());
            (polygon.outer.name.as_str(), holes.collect())
        });
        polygons.collect()
    }

    #[test]
    fn a_hole_goes_to_the_smallest_outer_ring_around_it() {
        let outers = vec![
            square("large", 0, 100),
            square("small", 10, 50),
            square("other", 60, 70),
        ];
        let holes = vec![square("x", 20, 30), square("y", 80, 90)];
        let shape = nest_holes(outers, holes).unwrap();
        assert_eq!(
            ring_names(&shape),
            [
                ("large", vec!["y"]),
                ("small", vec!["x"]),
                ("other", vec![])
            ]
        );
        let lost = nest_holes(vec![square("a", 0, 1)], vec![square("b", 2, 3)]);
        assert_eq!(lost.unwrap_err().name, "b");
    }

    #[test]
    fn corners_on_an_outer_ring_do_not_decide_what_it_contains() {
        // Every corner of the hole lies on the edge of the square.
        let diamond = ring("diamond", &[(5, 0), (10, 5), (5, 10), (0, 5)]);
        let shape = nest_holes(vec![square("square", 0, 10)], vec![diamond]).unwrap();
        assert_eq!(ring_names(&shape), [("square", vec!["diamond"])]);
        // `cup` has the shape of a U, and `plug` fills its notch. All corners of `plug` lie on edges of `cup`. `plug`
        // lies in the envelope of `cup`, but not inside `cup`.
        let cup = [
            (0, 0),
            (9, 0),
            (9, 9),
            (6, 9),
            (6, 3),
            (3, 3),
            (3, 9),
            (0, 9),
        ];
        let plug = ring("plug", &[(3, 3), (6, 3), (6, 9), (3, 9)]);
        assert!(nest_holes(vec![ring("cup", &cup)], vec![plug]).is_err());
        let twins = nest_holes(vec![square("a", 0, 3)], vec![square("b", 0, 3)]);
        assert_eq!(ring_names(&twins.unwrap()), [("a", vec!["b"])]);
    }

    #[test]
    fn the_whole_earth_does_not_overflow() {
        let (x, y) = (1_800_000_000, 900_000_000);
        let earth = ring("earth", &[(-x, -y), (x, -y), (x, y), (-x, y)]);
        let sliver = ring("sliver", &[(-x, -y), (x, y), (x - 1, y)]);
        assert_eq!(
            ring_names(&nest_holes(vec![earth], vec![sliver]).unwrap()),
            [("earth", vec!["sliver"])]
        );
    }
}
