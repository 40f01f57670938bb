//! A plain and slow assembler of areas, for small coordinates. It looks at all pairs of segments and at each point of a
//! polygon by counting segments, and computes with floating-point numbers.

use std::collections::BTreeMap;

/// A point as x and y: small integers.
pub type Spot = (i64, i64);

/// Polygons, each with its outer ring (counter-clockwise) and its holes (clockwise). A ring begins with its smallest
/// point. Polygons and holes are sorted.
pub type Polygons = Vec<Vec<Vec<Spot>>>;

/// The reason why ways bound no area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Two segments have more in common than an end of both.
    Crossing,
    /// An odd number of segments ends at a point.
    Open,
    /// There are no segments.
    Empty,
}

/// The segments that an odd number of ways has, each from its smaller to its larger end.
pub fn segments_of(ways: &[Vec<Spot>]) -> Vec<[Spot; 2]> {
    let mut counts: BTreeMap<[Spot; 2], usize> = BTreeMap::new();
    for pair in ways.iter().flat_map(|way| way.windows(2)) {
        if pair[0] != pair[1] {
            let segment = [pair[0].min(pair[1]), pair[0].max(pair[1])];
            *counts.entry(segment).or_default() += 1;
        }
    }
    let odd = counts.into_iter().filter(|(_, count)| count % 2 == 1);
    odd.map(|(segment, _)| segment).collect()
}

/// Twice the area of the triangle of three points, positive if they run counter-clockwise.
fn turn(a: Spot, b: Spot, c: Spot) -> i64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

/// Whether two different segments have a point in common that is not an end of both.
fn cross(a: [Spot; 2], b: [Spot; 2]) -> bool {
    let within = |point: Spot, line: [Spot; 2]| {
        turn(line[0], line[1], point) == 0
            && (line[0].0.min(line[1].0)..=line[0].0.max(line[1].0)).contains(&point.0)
            && (line[0].1.min(line[1].1)..=line[0].1.max(line[1].1)).contains(&point.1)
    };
    let is_end = |point: Spot, line: [Spot; 2]| line.contains(&point);
    let ends_on = |one: [Spot; 2], other: [Spot; 2]| {
        one.iter()
            .any(|point| within(*point, other) && !is_end(*point, other))
    };
    let opposite = |line: [Spot; 2], other: [Spot; 2]| {
        turn(line[0], line[1], other[0]).signum() * turn(line[0], line[1], other[1]).signum() < 0
    };
    ends_on(a, b) || ends_on(b, a) || (opposite(a, b) && opposite(b, a))
}

/// Whether a point is inside by the even-odd rule.
fn is_inside(segments: &[[Spot; 2]], (x, y): (f64, f64)) -> bool {
    let below = segments.iter().filter(|[from, to]| {
        let (from, to) = ((from.0 as f64, from.1 as f64), (to.0 as f64, to.1 as f64));
        from.0 <= x && x < to.0 && from.1 + (to.1 - from.1) * (x - from.0) / (to.0 - from.0) < y
    });
    below.count() % 2 == 1
}

/// A point close to the middle of a segment, on its left.
fn left_of([from, to]: [Spot; 2]) -> (f64, f64) {
    const NEAR: f64 = 1e-5;
    let (dx, dy) = ((to.0 - from.0) as f64, (to.1 - from.1) as f64);
    // Not quite the middle, so that no other segment's end lies below.
    let along = 0.5 + 0.037_712_3;
    let len = dx.hypot(dy);
    (
        from.0 as f64 + dx * along - dy / len * NEAR,
        from.1 as f64 + dy * along + dx / len * NEAR,
    )
}

/// Twice the area of a ring.
pub fn doubled_area(ring: &[Spot]) -> i64 {
    let ends = ring.iter().cycle().skip(1);
    ring.iter()
        .zip(ends)
        .map(|(a, b)| a.0 * b.1 - b.0 * a.1)
        .sum()
}

/// The same ring, begun at its smallest point.
pub fn from_smallest(ring: &[Spot]) -> Vec<Spot> {
    let smallest = (0..ring.len()).min_by_key(|index| ring[*index]).unwrap();
    [&ring[smallest..], &ring[..smallest]].concat()
}

/// The area that ways bound.
pub fn assemble_slowly(ways: &[Vec<Spot>]) -> Result<Polygons, Refusal> {
    let segments = segments_of(ways);
    for (index, one) in segments.iter().enumerate() {
        if segments[..index].iter().any(|other| cross(*one, *other)) {
            return Err(Refusal::Crossing);
        }
    }
    let mut degrees: BTreeMap<Spot, usize> = BTreeMap::new();
    for point in segments.iter().flatten() {
        *degrees.entry(*point).or_default() += 1;
    }
    if degrees.values().any(|degree| degree % 2 == 1) {
        return Err(Refusal::Open);
    }
    if segments.is_empty() {
        return Err(Refusal::Empty);
    }
    let rings = rings_of(&segments);
    let (outer, holes): (Vec<_>, Vec<_>) =
        rings.into_iter().partition(|ring| doubled_area(ring) > 0);
    let mut polygons: Polygons = outer.iter().map(|ring| vec![from_smallest(ring)]).collect();
    for hole in holes {
        let inside = left_of([hole[0], hole[1]]);
        let around = (0..outer.len()).filter(|index| {
            let ring = &outer[*index];
            let closed = [ring.as_slice(), &ring[..1]].concat();
            is_inside(&segments_of(&[closed]), inside)
        });
        let smallest = around.min_by_key(|index| doubled_area(&outer[*index]));
        polygons[smallest.unwrap()].push(from_smallest(&hole));
    }
    for polygon in &mut polygons {
        polygon[1..].sort_unstable();
    }
    polygons.sort_unstable();
    Ok(polygons)
}

/// The simple rings of segments, with the inside on the left.
fn rings_of(segments: &[[Spot; 2]]) -> Vec<Vec<Spot>> {
    let directed = segments.iter().map(|[from, to]| {
        if is_inside(segments, left_of([*from, *to])) {
            [*from, *to]
        } else {
            [*to, *from]
        }
    });
    let mut left: Vec<[Spot; 2]> = directed.collect();
    let mut rings = Vec::new();
    while let Some(first) = left.pop() {
        let mut path = vec![first[0]];
        let mut last = first;
        loop {
            // A ring is complete where the path meets itself.
            if let Some(start) = path.iter().position(|point| *point == last[1]) {
                rings.push(path.split_off(start));
                if path.is_empty() {
                    break;
                }
            }
            path.push(last[1]);
            // The inside goes on along the segment that comes first, clockwise from where the path came from.
            let angle = |to: Spot| ((to.1 - last[1].1) as f64).atan2((to.0 - last[1].0) as f64);
            let back = angle(last[0]);
            let clockwise = |segment: &[Spot; 2]| {
                let turned = back - angle(segment[1]);
                if turned <= 1e-12 {
                    turned + std::f64::consts::TAU
                } else {
                    turned
                }
            };
            let next = (0..left.len()).filter(|index| left[*index][0] == last[1]);
            let next = next.min_by(|a, b| clockwise(&left[*a]).total_cmp(&clockwise(&left[*b])));
            last = left.swap_remove(next.unwrap());
        }
    }
    rings
}

/// Twice the area that is inside by the even-odd rule, of segments that do not cross: strip by strip.
pub fn even_odd_area(segments: &[[Spot; 2]]) -> f64 {
    let xs: Vec<i64> = segments.iter().flatten().map(|point| point.0).collect();
    let (first, last) = (xs.iter().min().copied(), xs.iter().max().copied());
    let strips = first.unwrap_or(0)..last.unwrap_or(0);
    let of_strip = |x: i64| {
        let spanning = segments.iter().filter(|[from, to]| from.0 <= x && x < to.0);
        let mut middles: Vec<f64> = spanning
            .map(|[from, to]| {
                let slope = (to.1 - from.1) as f64 / (to.0 - from.0) as f64;
                from.1 as f64 + slope * (x as f64 + 0.5 - from.0 as f64)
            })
            .collect();
        middles.sort_unstable_by(f64::total_cmp);
        middles.chunks(2).map(|pair| pair[1] - pair[0]).sum::<f64>()
    };
    2.0 * strips.map(of_strip).sum::<f64>()
}
