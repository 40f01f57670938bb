//! Compares the area index and the shape check with brute-force results for pseudo-random shapes from fixed seeds.

mod check;
mod cover;
mod index;
mod places;

use crate::for_tests::random::Random;
use crate::for_tests::rounds::rounds;

use super::shape::{Point, Polygon, Ring, Shape};
pub(super) use places::{places_of_lines, points};

/// Returns a random point whose coordinates are from 0 to `limit` - 1.
fn random_point(random: &mut Random, limit: i32) -> (i32, i32) {
    (random.below(limit), random.below(limit))
}

fn point((x, y): (i32, i32)) -> Point {
    Point::new(y, x)
}

fn ring(name: &str, corners: &[(i32, i32)]) -> Ring {
    Ring::new(name.into(), corners.iter().copied().map(point).collect())
}

fn polygon(outer: &[(i32, i32)], holes: &[&[(i32, i32)]]) -> Polygon {
    let holes = holes.iter().enumerate();
    Polygon {
        outer: ring("outer", outer),
        holes: holes
            .map(|(number, hole)| ring(&format!("hole {}", number + 1), hole))
            .collect(),
    }
}

fn shape(polygons: Vec<Polygon>) -> Shape {
    Shape { polygons }
}

fn rectangle(west: i32, south: i32, east: i32, north: i32) -> [(i32, i32); 4] {
    [(west, south), (east, south), (east, north), (west, north)]
}

/// Returns a ring whose corners lie around a center, in the order of their angles.
fn star(
    random: &mut Random,
    (x, y): (i32, i32),
    radii: (i32, i32),
    corners: i32,
) -> Vec<(i32, i32)> {
    let corner = |number| {
        let angle = std::f64::consts::TAU * f64::from(number) / f64::from(corners);
        let radius = f64::from(random.between(radii.0, radii.1));
        let (sin, cos) = angle.sin_cos();
        (x + (radius * cos) as i32, y + (radius * sin) as i32)
    };
    (0..corners).map(corner).collect()
}

/// Returns a shape of random rings on a grid. The shape is invalid in most cases.
fn scribble(random: &mut Random, grid: i32, scale: i32) -> Shape {
    let mut corners = |most| -> Vec<(i32, i32)> {
        let count = random.between(1, most);
        let corners = (0..count).map(|_| random_point(random, grid));
        corners.map(|(x, y)| (x * scale, y * scale)).collect()
    };
    let polygons = corners(2).len();
    let polygons = (0..polygons).map(|_| {
        let (outer, hole) = (corners(8), corners(5));
        let holes = [hole.as_slice()];
        polygon(&outer, if hole.len() > 2 { &holes } else { &[] })
    });
    shape(polygons.collect())
}

/// Returns the edges of a ring, each as its two ends.
fn ring_edges(ring: &Ring) -> impl Iterator<Item = (Point, Point)> {
    let next = ring.points.iter().cycle().skip(1);
    ring.points.iter().copied().zip(next.copied())
}

/// Returns the side of the line from `a` to `b` on which `c` lies: positive is left, negative is right.
fn side_of_line(a: Point, b: Point, c: Point) -> i128 {
    let x = |p: Point| i128::from(p.lon_e7);
    let y = |p: Point| i128::from(p.lat_e7);
    (x(b) - x(a)) * (y(c) - y(a)) - (y(b) - y(a)) * (x(c) - x(a))
}

fn is_on_ring(ring: &Ring, p: Point) -> bool {
    ring_edges(ring).any(|(a, b)| {
        let within = |p: i32, a: i32, b: i32| a.min(b) <= p && p <= a.max(b);
        side_of_line(a, b, p) == 0
            && within(p.lon_e7, a.lon_e7, b.lon_e7)
            && within(p.lat_e7, a.lat_e7, b.lat_e7)
    })
}

/// Returns the winding number of a ring around a point: the number of counter-clockwise turns minus the number of
/// clockwise turns. The point must not lie on the ring.
fn winding(ring: &Ring, p: Point) -> i32 {
    ring_edges(ring).fold(0, |winding, (a, b)| {
        if a.lat_e7 <= p.lat_e7 && b.lat_e7 > p.lat_e7 && side_of_line(a, b, p) > 0 {
            winding + 1
        } else if b.lat_e7 <= p.lat_e7 && a.lat_e7 > p.lat_e7 && side_of_line(a, b, p) < 0 {
            winding - 1
        } else {
            winding
        }
    })
}

fn is_clockwise(ring: &Ring) -> bool {
    let origin = point((0, 0));
    ring_edges(ring)
        .map(|(a, b)| side_of_line(origin, a, b))
        .sum::<i128>()
        < 0
}

/// Returns the winding number of a polygon. The outer ring counts as counter-clockwise, and holes as clockwise.
fn polygon_winding(polygon: &Polygon, p: Point) -> i32 {
    let ring_winding = |ring: &Ring| {
        let winding = winding(ring, p);
        if is_clockwise(ring) {
            -winding
        } else {
            winding
        }
    };
    let holes: i32 = polygon.holes.iter().map(ring_winding).sum();
    ring_winding(&polygon.outer) - holes
}

/// Whether a shape contains a point, by its winding numbers. The shape need not be valid.
fn holds_by_winding(shape: &Shape, p: Point) -> bool {
    let windings = shape
        .polygons
        .iter()
        .map(|polygon| polygon_winding(polygon, p));
    shape.rings().any(|(ring, _)| is_on_ring(ring, p)) || windings.sum::<i32>() > 0
}

/// Whether a valid shape contains a point, by the even-odd rule.
fn holds_by_even_odd(shape: &Shape, p: Point) -> bool {
    let is_in = |ring: &Ring| winding(ring, p) % 2 != 0;
    shape.rings().any(|(ring, _)| is_on_ring(ring, p))
        || shape
            .polygons
            .iter()
            .any(|polygon| is_in(&polygon.outer) && !polygon.holes.iter().any(is_in))
}
