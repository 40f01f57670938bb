use super::*;
use crate::geometry::area_index::{AreaIndex, Locator};
use crate::osm::Bbox;

/// Returns the regions that the index finds for a point.
fn regions_at(index: &AreaIndex, locator: &mut Locator<'_>, p: Point) -> Vec<u32> {
    let mut partial = vec![77];
    let set = locator.at(p.lat_e7, p.lon_e7, &mut partial);
    let covering = &index.sets()[set as usize];
    assert!(partial.is_sorted() && covering.is_sorted());
    let mut regions = [partial.as_slice(), covering].concat();
    regions.sort_unstable();
    assert!(regions.windows(2).all(|pair| pair[0] < pair[1]));
    regions
}

fn assert_index_agrees(
    shapes: &[Shape],
    points: impl Iterator<Item = Point>,
    holds: fn(&Shape, Point) -> bool,
) {
    let index = AreaIndex::new(shapes);
    let mut locator = index.locator();
    for p in points {
        let expected = (0u32..).zip(shapes).filter(|(_, shape)| holds(shape, p));
        let expected: Vec<u32> = expected.map(|(region, _)| region).collect();
        assert_eq!(
            regions_at(&index, &mut locator, p),
            expected,
            "{p:?} of {shapes:?}"
        );
    }
}

/// Returns all points of a grid and of a margin of two units around it.
fn grid(limit: i32) -> impl Iterator<Item = Point> {
    (-2..limit + 2).flat_map(move |y| (-2..limit + 2).map(move |x| point((x, y))))
}

/// Returns the vertices of shapes and the middles of their edges, each with its eight neighbors; 200 random points; and
/// all pairs of the coordinates `i32::MIN`, 0 and `i32::MAX`.
fn points_near_edges(random: &mut Random, shapes: &[Shape]) -> Vec<Point> {
    let rings = shapes.iter().flat_map(Shape::rings);
    let mut points = Vec::new();
    for (a, b) in rings.flat_map(|(ring, _)| ring_edges(ring)) {
        let middle = |a: i32, b: i32| ((i64::from(a) + i64::from(b)) / 2) as i32;
        let middle = point((middle(a.lon_e7, b.lon_e7), middle(a.lat_e7, b.lat_e7)));
        for p in [a, middle] {
            points.extend((-1..=1).flat_map(|x| {
                (-1..=1).map(move |y| {
                    Point::new(p.lat_e7.saturating_add(y), p.lon_e7.saturating_add(x))
                })
            }));
        }
    }
    let anything = std::iter::repeat_with(|| {
        let x = random.between(-1_000_000_000, 1_000_000_000);
        let y = random.between(-1_000_000_000, 1_000_000_000);
        point((x.saturating_mul(2), y))
    });
    points.extend(anything.take(200));
    for x in [i32::MIN, 0, i32::MAX] {
        points.extend([i32::MIN, 0, i32::MAX].map(|y| point((x, y))));
    }
    points
}

#[test]
fn an_index_without_regions_contains_no_point() {
    assert_index_agrees(&[], grid(2), holds_by_even_odd);
    assert_index_agrees(
        &[Shape::default(), Shape::default()],
        grid(2),
        holds_by_even_odd,
    );
    assert_index_agrees(
        &[shape(vec![polygon(&[], &[])])],
        grid(2),
        holds_by_even_odd,
    );
    assert_eq!(AreaIndex::new(&[]).sets(), [Vec::<u32>::new()]);
}

#[test]
fn an_index_agrees_with_winding_numbers_for_any_scribble_on_a_small_grid() {
    let random = &mut Random(1);
    for round in 0..rounds(1500) {
        let scale = [1, 2, 3, 5][round % 4];
        let shapes: Vec<Shape> = (0..random.between(1, 4))
            .map(|_| scribble(random, 7, scale))
            .collect();
        assert_index_agrees(&shapes, grid(7 * scale), holds_by_winding);
    }
}

#[test]
fn an_index_agrees_with_the_even_odd_rule_for_valid_scribbles() {
    let random = &mut Random(2);
    let mut sound = Vec::new();
    while sound.len() < 300 {
        let candidate = scribble(random, 6, 2);
        if candidate.check().is_ok() {
            sound.push(candidate);
        }
    }
    for shapes in sound.chunks(3) {
        assert_index_agrees(shapes, grid(12), holds_by_even_odd);
    }
}

#[test]
fn an_index_is_exact_for_scribbles_over_all_the_world() {
    let random = &mut Random(3);
    for _ in 0..rounds(200) {
        let mut shapes: Vec<Shape> = (0..3).map(|_| scribble(random, 19, 100_000_000)).collect();
        for polygon in shapes.iter_mut().flat_map(|shape| &mut shape.polygons) {
            let holes = polygon.holes.iter_mut();
            for p in holes
                .chain([&mut polygon.outer])
                .flat_map(|ring| &mut ring.points)
            {
                p.lat_e7 -= 900_000_000;
                p.lon_e7 = (p.lon_e7 - 900_000_000) * 2;
                p.lat_e7 += random.between(-1, 1);
            }
        }
        let points = points_near_edges(random, &shapes);
        assert_index_agrees(&shapes, points.into_iter(), holds_by_winding);
    }
}

#[test]
fn an_index_is_exact_for_rings_with_extreme_coordinates() {
    let random = &mut Random(4);
    let ends = [i32::MIN, i32::MIN + 1, -1, 0, 1, i32::MAX - 1, i32::MAX];
    for _ in 0..100 {
        let corners: Vec<_> = (0..6)
            .map(|_| random_point(random, 7))
            .map(|(x, y)| (ends[x as usize], ends[y as usize]))
            .collect();
        let shapes = [shape(vec![polygon(&corners, &[])])];
        let points = points_near_edges(random, &shapes);
        assert_index_agrees(&shapes, points.into_iter(), holds_by_winding);
    }
}

#[test]
fn an_index_is_exact_for_stars_with_holes() {
    let random = &mut Random(5);
    for round in 0..rounds(60) {
        let shapes: Vec<Shape> = (0..1 + round % 5)
            .map(|_| {
                let center = (random.below(100_000), random.below(100_000));
                let corners = random.between(3, 300);
                let outer = star(random, center, (40_000, 90_000), corners);
                let hole = star(random, center, (1_000, 19_000), 20);
                shape(vec![polygon(&outer, &[&hole])])
            })
            .collect();
        let mut points = points_near_edges(random, &shapes);
        points.extend((0..2000).map(|_| {
            let (x, y) = random_point(random, 300_000);
            point((x - 100_000, y - 100_000))
        }));
        assert_index_agrees(&shapes, points.into_iter(), holds_by_even_odd);
    }
}

#[test]
fn points_on_a_shared_edge_are_in_both_rectangles() {
    let shapes: Vec<Shape> = (0..36)
        .map(|number| {
            let (x, y) = (number % 6 * 4, number / 6 * 4);
            shape(vec![polygon(&rectangle(x, y, x + 4, y + 4), &[])])
        })
        .collect();
    assert_index_agrees(&shapes, grid(26), holds_by_even_odd);
}

#[test]
fn overlapping_and_nested_polygons_are_a_union() {
    let hole: &[(i32, i32)] = &rectangle(4, 4, 16, 16);
    let cut = polygon(&rectangle(0, 0, 20, 20), &[hole]);
    let nested = polygon(&rectangle(6, 6, 12, 12), &[&rectangle(8, 8, 10, 10)]);
    let over = polygon(&rectangle(9, 2, 11, 30), &[]);
    let shapes = [
        shape(vec![cut.clone(), nested.clone()]),
        shape(vec![over.clone(), cut.clone(), nested]),
        shape(vec![cut.clone(), cut, over]),
    ];
    assert_index_agrees(&shapes, grid(32), holds_by_even_odd);
}

#[test]
fn an_index_is_exact_for_combs_though_its_tree_stays_small() {
    let teeth = 3000;
    let mut corners = vec![(teeth * 2, -1), (0, -1)];
    for tooth in 0..teeth {
        corners.extend([(tooth * 2, 0), (tooth * 2 + 1, 40_000_000)]);
    }
    let shapes = [shape(vec![polygon(&corners, &[])])];
    assert_eq!(shapes[0].check(), Ok(()));
    let index = AreaIndex::new(&shapes);
    let edges = corners.len() as u64;
    assert!(
        index.bytes() < edges * 16 * 40 + 1_000_000,
        "{}",
        index.bytes()
    );
    let random = &mut Random(6);
    let points = (0..300).map(|_| point((random.below(teeth * 2), random.below(40_000_001))));
    let points: Vec<Point> = points.collect();
    assert_index_agrees(&shapes, points.into_iter(), holds_by_even_odd);
}

#[test]
fn hundreds_of_regions_are_told_apart() {
    let random = &mut Random(7);
    let shapes: Vec<Shape> = (0..400)
        .map(|_| {
            let corners = random.between(3, 30);
            let center = random_point(random, 1_000_000);
            shape(vec![polygon(
                &star(random, center, (1_000, 90_000), corners),
                &[],
            )])
        })
        .collect();
    let points: Vec<Point> = (0..2000)
        .map(|_| point(random_point(random, 1_000_000)))
        .collect();
    assert_index_agrees(&shapes, points.into_iter(), holds_by_even_odd);
}

#[test]
fn boxes_hold_their_borders_and_may_cross_the_antimeridian() {
    let bbox = |min_lon_e7, min_lat_e7, max_lon_e7, max_lat_e7| Bbox {
        min_lat_e7,
        max_lat_e7,
        min_lon_e7,
        max_lon_e7,
    };
    let boxes = [
        bbox(0, 0, 10_000_000, 10_000_000),
        bbox(1_790_000_000, -900_000_000, -1_790_000_000, 900_000_000),
        bbox(-1_800_000_000, -900_000_000, 1_800_000_000, 900_000_000),
        bbox(5, 5, 5, 9),
        bbox(7, 7, 7, 7),
    ];
    let shapes = boxes.map(|bbox| Shape::of_bbox(&bbox));
    let random = &mut Random(8);
    let points = points_near_edges(random, &shapes);
    assert_index_agrees(&shapes[..3], points.iter().copied(), holds_by_even_odd);
    let is_in = |bbox: &Bbox, p: Point| {
        let lon = p.lon_e7;
        let is_east = lon >= bbox.min_lon_e7;
        let is_west = lon <= bbox.max_lon_e7;
        let is_between = if bbox.min_lon_e7 > bbox.max_lon_e7 {
            (is_east && lon <= 1_800_000_000) || (is_west && lon >= -1_800_000_000)
        } else {
            is_east && is_west
        };
        is_between && (bbox.min_lat_e7..=bbox.max_lat_e7).contains(&p.lat_e7)
    };
    let index = AreaIndex::new(&shapes);
    let mut locator = index.locator();
    for p in points {
        let expected = (0u32..).zip(&boxes).filter(|(_, bbox)| is_in(bbox, p));
        let expected: Vec<u32> = expected.map(|(region, _)| region).collect();
        assert_eq!(regions_at(&index, &mut locator, p), expected, "{p:?}");
    }
}
