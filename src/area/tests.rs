use super::*;
use crate::for_tests::random::Random;
use crate::for_tests::rounds::rounds;
use crate::geometry::Point;
use std::collections::BTreeSet;

/// Returns a node whose location is given by the digits of its id. For example, node 34 lies at (3, 4).
fn node(id: i64) -> AreaNode {
    node_at(id / 10, id % 10)
}

fn node_at(x: i64, y: i64) -> AreaNode {
    AreaNode {
        id: x * 10 + y,
        point: Point::new(i32::try_from(y).unwrap(), i32::try_from(x).unwrap()),
    }
}

fn assemble_ways(ways: &[&[i64]], open_rings: OpenRings) -> Assembly {
    let ways: Vec<(i64, Vec<AreaNode>)> = (1..)
        .zip(ways)
        .map(|(id, way)| (id, way.iter().copied().map(node).collect()))
        .collect();
    assemble(&area_ways(&ways), open_rings)
}

fn area_ways(ways: &[(i64, Vec<AreaNode>)]) -> Vec<AreaWay<'_>> {
    ways.iter()
        .map(|(id, nodes)| AreaWay {
            id: *id,
            role: Role::Other,
            nodes,
        })
        .collect()
}

/// Returns the polygons of ways. Each polygon is a list of rings of node ids, the outer ring first.
fn polygons(ways: &[&[i64]]) -> Vec<Vec<Vec<i32>>> {
    let assembly = assemble_ways(ways, OpenRings::Refuse);
    assert!(assembly.is_valid(), "{:?}", assembly.problems);
    let ids = |ring: &Vec<Point>| -> Vec<i32> {
        ring.iter()
            .map(|point| point.lon_e7 * 10 + point.lat_e7)
            .collect()
    };
    let of_polygon = |polygon: &AreaPolygon| {
        let rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
        rings.map(ids).collect()
    };
    assembly.polygons.iter().map(of_polygon).collect()
}

/// Returns the kind and the node of each problem that is found when `ways` are assembled.
fn problems(ways: &[&[i64]]) -> Vec<(ProblemKind, Option<i64>)> {
    let assembly = assemble_ways(ways, OpenRings::Refuse);
    let problems = assembly.problems.iter();
    problems
        .map(|problem| (problem.kind, problem.node))
        .collect()
}

#[test]
fn ways_are_joined_whatever_their_order_and_direction() {
    let ways: [&[i64]; 4] = [&[0, 30, 33], &[63, 66, 96], &[33, 3, 0], &[63, 93, 96]];
    assert_eq!(
        polygons(&ways),
        [vec![vec![0, 30, 33, 3]], vec![vec![63, 93, 96, 66]]]
    );
    assert_eq!(polygons(&[&[0, 3, 33, 30, 0]]), [[[0, 30, 33, 3]]]);
}

#[test]
fn rings_in_rings_are_holes_and_islands() {
    let square = |low: i64, high: i64| {
        let at = |x: i64, y: i64| x * 10 + y;
        vec![
            at(low, low),
            at(high, low),
            at(high, high),
            at(low, high),
            at(low, low),
        ]
    };
    let squares = [
        square(0, 9),
        square(1, 8),
        square(2, 7),
        square(3, 4),
        square(5, 6),
    ];
    let ways: Vec<&[i64]> = squares.iter().map(Vec::as_slice).collect();
    assert_eq!(
        polygons(&ways),
        [
            vec![vec![0, 90, 99, 9], vec![11, 18, 88, 81]],
            vec![
                vec![22, 72, 77, 27],
                vec![33, 34, 44, 43],
                vec![55, 56, 66, 65]
            ]
        ]
    );
}

#[test]
fn rings_that_touch_are_cut_where_they_touch() {
    // Two triangles that meet in a corner are two polygons, whether they are one way or two.
    let expected = [vec![vec![0, 33, 3]], vec![vec![33, 63, 66]]];
    assert_eq!(polygons(&[&[0, 33, 63, 66, 33, 3, 0]]), expected);
    assert_eq!(polygons(&[&[33, 0, 3, 33], &[66, 33, 63, 66]]), expected);
    // A hole that meets the outer ring in a corner stays a hole.
    assert_eq!(
        polygons(&[&[0, 90, 99, 9, 0], &[0, 42, 24, 0]]),
        [[vec![0, 90, 99, 9], vec![0, 24, 42]]]
    );
    // A hole that meets the outer ring in two corners divides the polygon.
    assert_eq!(
        polygons(&[&[0, 60, 66, 6, 0], &[0, 24, 66, 42, 0]]),
        [[vec![0, 24, 66, 6]], [vec![0, 60, 66, 42]]]
    );
    // Two holes that meet in a corner stay two holes. Rings that share an edge are joined.
    assert_eq!(
        polygons(&[&[0, 90, 99, 9, 0], &[22, 42, 44, 22], &[44, 64, 66, 44]]),
        [[vec![0, 90, 99, 9], vec![22, 44, 42], vec![44, 66, 64]]]
    );
    assert_eq!(
        polygons(&[&[0, 30, 33, 3, 0], &[30, 60, 63, 33, 30]]),
        [[[0, 30, 60, 63, 33, 3]]]
    );
}

#[test]
fn every_problem_names_the_node_where_it_occurs() {
    use ProblemKind::*;
    assert_eq!(
        problems(&[&[0, 30, 33]]),
        [(OpenRing, Some(0)), (OpenRing, Some(33))]
    );
    assert_eq!(
        problems(&[&[0, 66, 60, 6, 0]]),
        [(Crossing, Some(33))].map(|(kind, _)| (kind, None))
    );
    assert_eq!(
        problems(&[&[0, 60, 66, 6, 0], &[3, 23, 20, 3]]),
        [(Crossing, Some(3)), (Crossing, Some(20))]
    );
    assert_eq!(
        problems(&[&[0, 60, 66, 0], &[10, 30, 31, 10]]).first(),
        Some(&(Overlap, Some(10)))
    );
    assert_eq!(
        problems(&[&[0, 30, 0]]),
        [(DuplicateSegment, Some(0)), (NoArea, None)]
    );
    assert_eq!(problems(&[]), [(NoArea, None)]);
    let nodes = [0, 30, 33, 0].map(node);
    let way = AreaWay {
        id: 5,
        role: Role::Outer,
        nodes: &nodes,
    };
    let twice = assemble(&[way, way], OpenRings::Refuse);
    assert_eq!(twice.polygons.len(), 1);
    assert_eq!(
        twice.problems.first().map(|problem| problem.kind),
        Some(DuplicateWay)
    );
    let mut nodes = nodes.to_vec();
    nodes.insert(1, AreaNode { id: 77, ..node(0) });
    let way = AreaWay {
        id: 5,
        role: Role::Inner,
        nodes: &nodes,
    };
    let assembly = assemble(&[way], OpenRings::Refuse);
    let found: Vec<_> = assembly
        .problems
        .iter()
        .map(|problem| (problem.kind, problem.node, problem.ways))
        .collect();
    assert_eq!(
        found,
        [
            (DuplicateNode, Some(77), [Some(5), None]),
            (WrongRole, Some(0), [Some(5), None])
        ]
    );
    assert!(assembly.is_valid());
}

#[test]
fn open_rings_can_be_left_out() {
    let ways: [&[i64]; 3] = [&[0, 30, 33, 0], &[33, 66, 96], &[60, 90]];
    assert_eq!(assemble_ways(&ways, OpenRings::Refuse).polygons, []);
    let assembly = assemble_ways(&ways, OpenRings::LeaveOut);
    assert_eq!(assembly.polygons.len(), 1);
    assert!(assembly.problems.is_empty());
    let none = assemble_ways(&[&[0, 30, 33]], OpenRings::LeaveOut);
    assert!(!none.is_valid());
}

/// The width and height of the grid of cells.
const SIDE: i64 = 7;

/// The coordinates (x, y) of the cells that the area covers.
type Cells = BTreeSet<(i64, i64)>;

/// Returns the edges of the cells, cut into ways of random lengths. An edge between two of the cells occurs twice.
fn ways_around(cells: &Cells, random: &mut Random) -> Vec<(i64, Vec<AreaNode>)> {
    let mut ways = Vec::new();
    for &(x, y) in cells {
        let corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)];
        let corner = |index: usize| {
            let (x, y) = corners[index % 4];
            node_at(x, y)
        };
        let mut from = random.below(4);
        let end = from + 4;
        while from < end {
            let to = (from + 1 + random.below(4)).min(end);
            let mut nodes: Vec<AreaNode> = (from..=to).map(corner).collect();
            if random.below(2) == 0 {
                nodes.reverse();
            }
            ways.push((ways.len() as i64, nodes));
            from = to;
        }
    }
    ways
}

/// Returns the number of groups of cells. Cells in a group are connected by common edges.
fn count_groups(cells: &Cells) -> usize {
    let (mut left, mut groups) = (cells.clone(), 0);
    while let Some(start) = left.pop_first() {
        groups += 1;
        let mut waiting = vec![start];
        while let Some((x, y)) = waiting.pop() {
            for next in [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)] {
                if left.remove(&next) {
                    waiting.push(next);
                }
            }
        }
    }
    groups
}

/// Whether the middle of a cell is in a ring.
fn is_in_ring(ring: &[Point], (x, y): (i64, i64)) -> bool {
    let ends = ring.iter().cycle().skip(1);
    let crossed = ring.iter().zip(ends).filter(|(from, to)| {
        // All edges are horizontal or vertical, so an edge that spans the latitude `y` lies at the longitude of `from`.
        let (low, high) = (from.lat_e7.min(to.lat_e7), from.lat_e7.max(to.lat_e7));
        i64::from(low) <= y && y < i64::from(high) && i64::from(from.lon_e7) > x
    });
    crossed.count() % 2 == 1
}

fn doubled_area(ring: &[Point]) -> i64 {
    let ends = ring.iter().cycle().skip(1);
    let products = ring.iter().zip(ends).map(|(a, b)| {
        i64::from(a.lon_e7) * i64::from(b.lat_e7) - i64::from(b.lon_e7) * i64::from(a.lat_e7)
    });
    products.sum()
}

#[test]
fn cells_in_a_square_become_the_polygons_of_connected_cells() {
    let mut random = Random(24);
    for round in 0..rounds(20_000) {
        let density = 1 + random.below(9);
        let mut cells = Cells::new();
        for x in 0..SIDE {
            for y in 0..SIDE {
                if random.below(10) < density {
                    cells.insert((x, y));
                }
            }
        }
        let ways = ways_around(&cells, &mut random);
        let assembly = assemble(&area_ways(&ways), OpenRings::Refuse);
        assert_eq!(assembly.is_valid(), !cells.is_empty(), "{round}");
        assert_eq!(
            assembly.polygons.len(),
            count_groups(&cells),
            "{round}: {cells:?}"
        );
        let mut area = 0;
        for polygon in &assembly.polygons {
            for (ring, is_hole) in std::iter::once((&polygon.outer, false))
                .chain(polygon.holes.iter().map(|hole| (hole, true)))
            {
                let distinct: BTreeSet<_> = ring.iter().collect();
                assert_eq!(distinct.len(), ring.len(), "{round}: {ring:?}");
                assert_eq!(doubled_area(ring) < 0, is_hole, "{round}: {ring:?}");
                area += doubled_area(ring);
            }
        }
        assert_eq!(area, 2 * cells.len() as i64, "{round}");
        for x in 0..SIDE {
            for y in 0..SIDE {
                let of = |polygon: &&AreaPolygon| {
                    let in_hole = polygon.holes.iter().any(|hole| is_in_ring(hole, (x, y)));
                    is_in_ring(&polygon.outer, (x, y)) && !in_hole
                };
                let count = assembly.polygons.iter().filter(of).count();
                assert_eq!(count == 1, cells.contains(&(x, y)), "{round}: {x} {y}");
                assert!(count < 2, "{round}: {x} {y}");
            }
        }
    }
}

/// A segment as two pairs of x and y, the smaller pair first.
type Line = [(i64, i64); 2];

/// Returns the segments that occur an odd number of times in ways.
fn lines_of(ways: &[(i64, Vec<AreaNode>)]) -> Vec<Line> {
    let mut lines = BTreeSet::new();
    for (_, nodes) in ways {
        for pair in nodes.windows(2) {
            let mut line = [pair[0], pair[1]]
                .map(|node| (i64::from(node.point.lon_e7), i64::from(node.point.lat_e7)));
            line.sort_unstable();
            if line[0] != line[1] && !lines.remove(&line) {
                lines.insert(line);
            }
        }
    }
    lines.into_iter().collect()
}

fn cross_product(a: (i64, i64), b: (i64, i64)) -> i64 {
    a.0 * b.1 - a.1 * b.0
}

fn difference(a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    (a.0 - b.0, a.1 - b.1)
}

/// Whether two segments have a point in common that is not an end of both.
fn is_crossed(a: &Line, b: &Line) -> bool {
    let (along, other) = (difference(a[1], a[0]), difference(b[1], b[0]));
    let between = difference(b[0], a[0]);
    let divisor = cross_product(along, other);
    if divisor == 0 {
        let on_one_line = cross_product(along, between) == 0;
        return on_one_line && a[0].max(b[0]) < a[1].min(b[1]);
    }
    // The lines through `a` and `b` meet where a[0] + along * t / divisor = b[0] + other * u / divisor.
    let sign = divisor.signum();
    let (t, u, end) = (
        cross_product(between, other) * sign,
        cross_product(between, along) * sign,
        divisor.abs(),
    );
    let is_end = |part: i64| part == 0 || part == end;
    (0..=end).contains(&t) && (0..=end).contains(&u) && !(is_end(t) && is_end(u))
}

/// Whether an odd number of lines lies below a point, which is given in thirds of a unit. The x of the point must
/// differ from the x of each end of a line.
fn is_inside(lines: &[Line], (x, y): (i64, i64)) -> bool {
    let below = lines.iter().filter(|[from, to]| {
        let [from, to] = [from, to].map(|end| (end.0 * 3, end.1 * 3));
        from.0 < x && x < to.0 && cross_product(difference(to, from), difference((x, y), from)) > 0
    });
    below.count() % 2 == 1
}

fn lines_of_ring(ring: &[Point]) -> Vec<Line> {
    let ends = ring.iter().cycle().skip(1);
    let line = |(from, to): (&Point, &Point)| {
        let mut line = [from, to].map(|point| (i64::from(point.lon_e7), i64::from(point.lat_e7)));
        line.sort_unstable();
        line
    };
    ring.iter().zip(ends).map(line).collect()
}

#[test]
fn random_ways_are_valid_if_no_segments_cross_or_have_open_ends() {
    let mut random = Random(7);
    let mut valid = 0;
    for round in 0..rounds(60_000) {
        let size = 3 + random.below(6) as i64;
        let mut ways = Vec::new();
        for id in 0..1 + random.below(4) as i64 {
            let mut at = || node_at(random.below(size), random.below(size));
            let first = at();
            let mut nodes = vec![first, at(), at()];
            if random.below(3) == 0 {
                nodes.push(node_at(random.below(size), random.below(size)));
            }
            if random.below(20) > 0 {
                nodes.push(first);
            }
            ways.push((id, nodes));
        }
        let lines = lines_of(&ways);
        let pairs = (0..lines.len()).flat_map(|index| (0..index).map(move |other| (index, other)));
        let crossed = pairs.clone().any(|(a, b)| is_crossed(&lines[a], &lines[b]));
        let ends: Vec<_> = lines.iter().flatten().collect();
        let is_odd = |end| ends.iter().filter(|other| **other == end).count() % 2 == 1;
        let open = ends.iter().any(|end| is_odd(*end));
        let assembly = assemble(&area_ways(&ways), OpenRings::Refuse);
        let expected = !crossed && !open && !lines.is_empty();
        assert_eq!(assembly.is_valid(), expected, "{round}: {ways:?}");
        if !expected {
            assert!(assembly.polygons.is_empty());
            continue;
        }
        valid += 1;
        let rings = assembly.polygons.iter().map(|polygon| {
            let holes = polygon.holes.iter().flat_map(|hole| lines_of_ring(hole));
            (lines_of_ring(&polygon.outer), holes.collect::<Vec<_>>())
        });
        let rings: Vec<_> = rings.collect();
        for x in 0..size * 3 {
            for y in 0..size * 3 {
                let point = (x, y);
                // Skips points on segments, because they are neither inside nor outside. Also skips points whose x is a
                // multiple of 3. A node may have the same x, and `is_inside` does not allow that.
                let is_on = |[from, to]: &Line| {
                    let [from, to] = [from, to].map(|end| (end.0 * 3, end.1 * 3));
                    cross_product(difference(to, from), difference(point, from)) == 0
                };
                if x % 3 == 0 || lines.iter().any(is_on) {
                    continue;
                }
                let of = rings
                    .iter()
                    .filter(|(outer, holes)| is_inside(outer, point) && !is_inside(holes, point));
                let expected = usize::from(is_inside(&lines, point));
                assert_eq!(of.count(), expected, "{round}: {point:?} {ways:?}");
            }
        }
    }
    assert!(valid > rounds(5_000), "{valid}");
}

#[test]
fn a_simple_ring_becomes_the_polygon_that_assemble_returns() {
    let mut random = Random(11);
    let (mut simple, mut polygon) = (0, AreaPolygon::default());
    for _ in 0..rounds(200_000) {
        let size = 2 + random.below(9) as i64;
        let mut corner = || {
            node_at(
                random.below(10) as i64 % size,
                random.below(10) as i64 % size,
            )
        };
        let mut nodes: Vec<AreaNode> = (0..2 + size as usize % 7).map(|_| corner()).collect();
        nodes.dedup();
        if nodes.len() > 1 && nodes.first() == nodes.last() {
            nodes.pop();
        }
        nodes.extend(nodes.first().copied());
        let points: Vec<Point> = nodes.iter().map(|node| node.point).collect();
        let assembly = assemble(&area_ways(&[(1, nodes)]), OpenRings::Refuse);
        if set_polygon_if_simple(&points, &mut polygon) {
            simple += 1;
            assert_eq!(assembly.polygons, [polygon.clone()], "{points:?}");
            assert_eq!(assembly.problems, []);
        } else if let [found] = assembly.polygons.as_slice() {
            let is_all = found.outer.len() + 1 == points.len() && found.holes.is_empty();
            assert!(!is_all || !assembly.problems.is_empty(), "{points:?}");
        }
    }
    assert!(simple > rounds(10_000), "{simple}");
}

/// Returns a closed way along the sides of a square. Its south-western and north-eastern corners are given.
fn square(id: i64, (west, south): (i64, i64), (east, north): (i64, i64)) -> (i64, Vec<AreaNode>) {
    let corners = [
        (west, south),
        (east, south),
        (east, north),
        (west, north),
        (west, south),
    ];
    (id, corners.map(|(x, y)| node_at(x, y)).to_vec())
}

#[test]
fn a_way_that_is_a_member_many_times_is_reported_once() {
    let ring = square(1, (0, 0), (2, 2));
    let ways = vec![ring; 5000];
    let assembly = assemble(&area_ways(&ways), OpenRings::Refuse);
    let kinds: Vec<ProblemKind> = assembly.problems.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [ProblemKind::DuplicateWay]);
    assert_eq!(assembly.polygons.len(), 1);
}

#[test]
fn problems_of_many_open_rings_are_limited_and_name_their_nodes() {
    let line = |at: i64| (at, vec![node_at(at * 2, 0), node_at(at * 2 + 1, 1)]);
    let ways: Vec<_> = (0..100_000).map(line).collect();
    let assembly = assemble(&area_ways(&ways), OpenRings::Refuse);
    assert!(assembly.polygons.is_empty());
    assert_eq!(assembly.problems.len(), 1000);
    for problem in &assembly.problems {
        assert_eq!(problem.kind, ProblemKind::OpenRing);
        let point = problem.point.unwrap();
        let node = node_at(point.lon_e7.into(), point.lat_e7.into());
        assert_eq!(problem.node, Some(node.id));
    }
}

#[test]
fn rings_in_one_range_of_longitudes_are_assembled_quickly() {
    // Squares, each of which begins further east than the one before, and lies north of it.
    const COUNT: i64 = 10_000;
    let stacked = |at: i64| square(at, (at, at * 4), (at + COUNT, at * 4 + 2));
    let ways: Vec<_> = (0..COUNT).map(stacked).collect();
    let assembly = assemble(&area_ways(&ways), OpenRings::Refuse);
    assert_eq!(assembly.problems, []);
    assert_eq!(assembly.polygons.len(), COUNT as usize);
    assert!(assembly.polygons.iter().all(|one| one.holes.is_empty()));
    // Nested squares: every second square is a hole in the square around it.
    let nested = |at: i64| square(at, (at, at), (4 * COUNT - at, 4 * COUNT - at));
    let ways: Vec<_> = (0..COUNT).map(nested).collect();
    let assembly = assemble(&area_ways(&ways), OpenRings::Refuse);
    assert_eq!(assembly.problems, []);
    assert_eq!(assembly.polygons.len(), COUNT as usize / 2);
    for (polygon, at) in assembly.polygons.iter().zip((0..).step_by(2)) {
        assert_eq!(polygon.outer[0].lon_e7, at);
        assert_eq!(polygon.holes.len(), 1);
        assert_eq!(polygon.holes[0][0].lon_e7, at + 1);
    }
}

#[test]
fn an_area_of_too_many_nodes_is_a_problem() {
    let half = vec![node_at(1, 1); MAX_NODES / 2 + 1];
    let ways = [(1, half.clone()), (2, half)];
    let assembly = assemble(&area_ways(&ways), OpenRings::Refuse);
    assert!(assembly.polygons.is_empty());
    let [problem] = assembly.problems.as_slice() else {
        panic!("{:?}", assembly.problems);
    };
    assert_eq!(problem.kind, ProblemKind::TooManyNodes);
    assert!(problem.to_string().contains("more than 3000000"));
}
