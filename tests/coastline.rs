//! Coastlines: the land on the left of the ways of a file, and the problems of the ways.

use crate::common::coast::{CoastWorld, cross, doubled_area, square, winding};
use crate::common::random::Random;
use crate::common::regions::{DEGREE, Place};
use pbfhogg::Context;
use pbfhogg::unstable::area::AreaPolygon;
use pbfhogg::unstable::coast::{
    Coast, CoastOptions, CoastProblem, CoastProblemKind, ProblemPlace, RegionSource, Surface,
    read_coast,
};
use pbfhogg::unstable::geometry::parse_bbox;
use std::path::Path;

/// Reads the coast of a generated world.
pub fn coast_of(world: &CoastWorld, change: impl FnOnce(&mut CoastOptions)) -> Coast {
    let directory = tempfile::tempdir().unwrap();
    read(&world.write(directory.path(), "world.opl"), change)
}

pub fn read(path: &Path, change: impl FnOnce(&mut CoastOptions)) -> Coast {
    let mut options = CoastOptions::new(path);
    change(&mut options);
    let coast = read_coast(&options, &Context::new(2)).unwrap();
    assert_valid(&coast.land);
    coast
}

/// The rings of polygons, of each polygon the outer ring first.
pub fn rings_of(polygons: &[AreaPolygon]) -> Vec<Vec<Vec<Place>>> {
    let places = |ring: &Vec<pbfhogg::areas::Point>| -> Vec<Place> {
        let place = |point: &pbfhogg::areas::Point| (point.lon_e7.into(), point.lat_e7.into());
        ring.iter().map(place).collect()
    };
    let rings = |polygon: &AreaPolygon| {
        let rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
        rings.map(places).collect()
    };
    polygons.iter().map(rings).collect()
}

/// Twice the area of polygons.
pub fn area(polygons: &[AreaPolygon]) -> i128 {
    let rings = rings_of(polygons).into_iter().flatten();
    rings.map(|ring| doubled_area(&ring)).sum()
}

/// Whether polygons contain a place, which must not be on one of their rings.
pub fn has(polygons: &[AreaPolygon], place: Place) -> bool {
    let rings = rings_of(polygons).into_iter().flatten();
    rings.map(|ring| winding(&ring, place)).sum::<i64>() > 0
}

/// Checks all pairs of segments, and the directions of all rings.
pub fn assert_valid(polygons: &[AreaPolygon]) {
    let rings: Vec<_> = rings_of(polygons);
    for polygon in &rings {
        for (index, ring) in polygon.iter().enumerate() {
            let mut places = ring.clone();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), ring.len(), "a ring has a place twice");
            assert_eq!(
                doubled_area(ring) > 0,
                index == 0,
                "a ring turns the wrong way"
            );
        }
    }
    let segments: Vec<[Place; 2]> = rings
        .iter()
        .flatten()
        .flat_map(|ring| {
            let next = ring.iter().cycle().skip(1);
            ring.iter().zip(next).map(|(from, to)| [*from, *to])
        })
        .collect();
    if segments.len() > 4000 {
        return;
    }
    for (index, one) in segments.iter().enumerate() {
        let crossed = segments[index + 1..]
            .iter()
            .find(|other| cross(*one, **other));
        assert_eq!(crossed, None, "{one:?} crosses another segment");
    }
}

/// The number of problems of each kind.
fn kinds(coast: &Coast) -> Vec<(&'static str, usize)> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for problem in &coast.problems {
        match counts.last_mut() {
            Some((name, count)) if *name == problem.kind.name() => *count += 1,
            _ => counts.push((problem.kind.name(), 1)),
        }
    }
    counts
}

fn in_degrees(places: &[(f64, f64)]) -> Vec<Place> {
    let e7 = |value: f64| (value * DEGREE as f64).round() as i64;
    places
        .iter()
        .map(|(lon, lat)| (e7(*lon), e7(*lat)))
        .collect()
}

/// The area of a square of one degree, doubled.
const SQUARE: i128 = 2 * (DEGREE as i128) * (DEGREE as i128);

fn whole_world(options: &mut CoastOptions) {
    options.region = Some(parse_bbox("-180,-90,180,90").unwrap());
}

#[test]
fn land_is_within_islands_and_without_lakes() {
    for seed in 0..4 {
        let world = CoastWorld::generated(seed, 8, 12);
        let coast = coast_of(&world, whole_world);
        let expected: i128 = world.rings.iter().map(|ring| doubled_area(ring)).sum();
        assert_eq!(area(&coast.land), expected);
        assert_eq!(coast.rings, world.rings.len() as u64);
        assert_eq!(coast.lines.len(), world.rings.len());
        let lakes = world
            .rings
            .iter()
            .filter(|ring| doubled_area(ring) < 0)
            .count();
        assert_eq!(kinds(&coast), [("questionable", lakes)]);
        let mut random = Random(seed);
        for _ in 0..500 {
            let mut at = || random.between(-80_000_000, 80_000_000).into();
            let place = (at(), at());
            assert_eq!(
                has(&coast.land, place),
                world.has_land_at(place),
                "{place:?}"
            );
        }
    }
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let path = CoastWorld::generated(9, 16, 30).write(directory.path(), "world.opl");
    let read = |jobs| read_coast(&CoastOptions::new(&path), &Context::new(jobs)).unwrap();
    assert_eq!(read(1), read(3));
}

#[test]
fn a_file_without_coastlines_has_no_land_and_the_region_of_its_nodes() {
    let mut world = CoastWorld::default();
    assert_eq!(coast_of(&world, |_| {}).source, RegionSource::World);
    world.add_nodes(&in_degrees(&[(1.0, 2.0), (3.0, 4.0)]));
    let coast = coast_of(&world, |_| {});
    assert!(coast.land.is_empty() && coast.lines.is_empty() && coast.problems.is_empty());
    assert_eq!(coast.source, RegionSource::Data);
    assert_eq!(area(&coast.region), 4 * SQUARE);
    assert_eq!(coast.inside, Some(Surface::Water));
    let coast = coast_of(&world, |options| options.inside = Some(Surface::Land));
    assert_eq!(area(&coast.land), area(&coast.region));
}

#[test]
fn roads_and_buildings_show_that_a_region_without_coast_is_land() {
    let directory = tempfile::tempdir().unwrap();
    for (tag, expected) in [
        ("highway=path", Surface::Land),
        ("route=ferry", Surface::Water),
    ] {
        let path = directory.path().join("world.opl");
        let objects = format!("n1 x1 y1\nn2 x2 y2\nw1 T{tag} Nn1,n2\n");
        std::fs::write(&path, objects).unwrap();
        let coast = read(&path, |_| {});
        assert_eq!(coast.inside, Some(expected), "{tag}");
        assert_eq!(!coast.land.is_empty(), expected == Surface::Land);
    }
}

#[test]
fn a_ring_in_the_water_that_goes_clockwise_is_turned_around() {
    let mut world = CoastWorld::default();
    let mut ring = square((0, 0), DEGREE);
    ring.reverse();
    let way = world.add_ring(&ring);
    let coast = coast_of(&world, whole_world);
    assert_eq!(area(&coast.land), 4 * SQUARE);
    let [problem] = coast.problems.as_slice() else {
        panic!("{:?}", coast.problems)
    };
    assert_eq!(
        (problem.kind, problem.ways.as_slice()),
        (CoastProblemKind::Direction, &[way][..])
    );
    assert!(matches!(&problem.place, ProblemPlace::Line(points) if points.len() == 5));
    assert_eq!(coast.is_turned, [true]);
}

#[test]
fn an_antarctica_that_goes_the_wrong_way_is_left_out() {
    let mut world = CoastWorld::default();
    let coastline = [
        (-180.0, -77.5),
        (-90.0, -70.0),
        (0.0, -65.0),
        (90.0, -70.0),
        (180.0, -77.5),
    ];
    let nodes = world.add_nodes(&in_degrees(&coastline));
    let way = world.add_way(&nodes);
    world.add_ring(&square((0, 0), DEGREE));
    let coast = coast_of(&world, whole_world);
    assert_eq!(area(&coast.land), 4 * SQUARE);
    assert_eq!(kinds(&coast), [("not_closed", 1)]);
    assert_eq!(coast.problems[0].ways, [way]);
}

#[test]
fn rings_that_cross_are_joined_and_their_crossings_reported() {
    let mut world = CoastWorld::default();
    world.add_ring(&square((0, 0), DEGREE));
    world.add_ring(&square((DEGREE, DEGREE), DEGREE));
    let coast = coast_of(&world, whole_world);
    assert_eq!(area(&coast.land), 7 * SQUARE);
    assert_eq!(coast.land.len(), 1);
    assert_eq!(kinds(&coast), [("intersection", 2)]);
    assert!(coast.problems.iter().all(|problem| problem.ways == [1, 2]));
}

#[test]
fn a_ring_that_crosses_itself_keeps_the_larger_part() {
    let mut world = CoastWorld::default();
    world.add_ring(&in_degrees(&[
        (0.0, 0.0),
        (2.0, 2.0),
        (2.0, 0.0),
        (0.0, 1.0),
    ]));
    let coast = coast_of(&world, whole_world);
    // The smaller part is counter-clockwise, and the larger one is turned around.
    assert!(has(&coast.land, (15_000_000, 10_000_000)));
    assert!(!has(&coast.land, (1_000_000, 5_000_000)));
}

#[test]
fn rings_that_touch_are_valid_polygons() {
    // Two islands at a node, an island with a lagoon at its shore, and lakes that enclose land.
    let mut world = CoastWorld::default();
    world.add_ring(&square((0, 0), DEGREE));
    world.add_ring(&square((2 * DEGREE, 2 * DEGREE), DEGREE));
    world.add_ring(&square((10 * DEGREE, 0), DEGREE));
    world.add_ring(&in_degrees(&[(9.0, -1.0), (9.5, 0.5), (9.5, -0.5)]));
    world.add_ring(&square((20 * DEGREE, 0), 4 * DEGREE));
    for centre in [(20, 1), (21, 0), (20, -1), (19, 0)] {
        let (lon, lat) = (centre.0 as f64, centre.1 as f64);
        let ring = [
            (lon, lat + 0.5),
            (lon + 0.5, lat),
            (lon, lat - 0.5),
            (lon - 0.5, lat),
        ];
        world.add_ring(&in_degrees(&ring));
    }
    let coast = coast_of(&world, whole_world);
    let expected: i128 = world.rings.iter().map(|ring| doubled_area(ring)).sum();
    assert_eq!(area(&coast.land), expected);
    assert_eq!(coast.land.len(), 4);
    for lon in [19, 20, 21] {
        let place = (lon * DEGREE, 1);
        assert_eq!(has(&coast.land, place), world.has_land_at(place), "{lon}");
    }
}

#[test]
fn lakes_in_a_ring_enclose_a_land_polygon_of_their_own() {
    let mut world = CoastWorld::default();
    world.add_ring(&square((0, 0), 4 * DEGREE));
    // Four squares that touch at their corners.
    for (lon, lat) in [(0, 1), (1, 0), (0, -1), (-1, 0)] {
        let mut lake = square((lon * DEGREE, lat * DEGREE), DEGREE / 2);
        lake.reverse();
        world.add_ring(&lake);
    }
    let coast = coast_of(&world, whole_world);
    let expected: i128 = world.rings.iter().map(|ring| doubled_area(ring)).sum();
    assert_eq!(area(&coast.land), expected);
    assert_eq!(coast.land.len(), 2, "{:?}", rings_of(&coast.land));
}

#[test]
fn several_ways_at_a_node_are_joined_so_that_rings_stay_simple() {
    // The second way of the first island begins where the second island has a node.
    let mut world = CoastWorld::default();
    let one = world.add_nodes(&square((0, 0), DEGREE));
    let other = world.add_nodes(&square((2 * DEGREE, 2 * DEGREE), DEGREE)[1..]);
    world.add_way(&[one[0], one[1], one[2]]);
    world.add_way(&[one[2], other[0], other[1], other[2], one[2]]);
    world.add_way(&[one[2], one[3], one[0]]);
    let coast = coast_of(&world, whole_world);
    assert_eq!(area(&coast.land), 8 * SQUARE);
    assert_eq!((coast.land.len(), coast.problems.len()), (2, 0));
}

#[test]
fn gaps_are_closed_up_to_the_close_distance() {
    // 0.01 degrees are 1.1 km.
    for (gap, limit_m, is_closed) in [
        (0.001, 1000.0, true),
        (0.02, 1000.0, false),
        (0.02, 3000.0, true),
        (0.001, 0.0, false),
    ] {
        let mut world = CoastWorld::default();
        let mut places = square((0, 0), DEGREE);
        places.push((-DEGREE, -DEGREE + (gap * DEGREE as f64) as i64));
        let nodes = world.add_nodes(&places);
        let ways = [world.add_way(&nodes[..3]), world.add_way(&nodes[2..])];
        let coast = coast_of(&world, |options| {
            whole_world(options);
            options.close_distance_m = limit_m;
        });
        let expected = if is_closed {
            vec![("fixed_end_point", 2), ("added_line", 1)]
        } else {
            vec![("end_point", 2), ("not_closed", 1)]
        };
        assert_eq!(kinds(&coast), expected, "{gap} {limit_m}");
        assert_eq!(area(&coast.land), if is_closed { 4 * SQUARE } else { 0 });
        let [line] = coast.lines.as_slice() else {
            panic!("{:?}", coast.lines)
        };
        assert_eq!(line.ways, ways);
    }
}

#[test]
fn the_shortest_gaps_are_closed_first() {
    // The start of the second way is 330 metres from the end of the first, and 110 metres from that of the third.
    let mut world = CoastWorld::default();
    for line in [
        [(-5.0, 0.0), (0.0, 0.0)],
        [(0.003, 0.0), (5.0, 1.0)],
        [(5.0, -1.0), (0.004, 0.0)],
    ] {
        let nodes = world.add_nodes(&in_degrees(&line));
        world.add_way(&nodes);
    }
    let coast = coast_of(&world, whole_world);
    let is_added = |problem: &&CoastProblem| problem.kind == CoastProblemKind::AddedLine;
    let added: Vec<_> = coast.problems.iter().filter(is_added).collect();
    assert_eq!(added.len(), 1);
    assert_eq!(added[0].ways, [3, 2]);
}

#[test]
fn ways_that_contradict_each_other_are_named() {
    let mut world = CoastWorld::default();
    let nodes = world.add_nodes(&square((0, 0), DEGREE));
    world.add_way(&[nodes[0], nodes[1], nodes[2]]);
    world.add_way(&[nodes[0], nodes[3], nodes[2]]);
    let coast = coast_of(&world, whole_world);
    assert_eq!(
        kinds(&coast),
        [("end_point", 4), ("not_closed", 2), ("direction", 2)]
    );
    assert!(coast.land.is_empty());
}

#[test]
fn a_way_that_repeats_another_counts_once() {
    let mut world = CoastWorld::default();
    let nodes = world.add_nodes(&square((0, 0), DEGREE));
    world.add_way(&[nodes[0], nodes[1], nodes[2]]);
    world.add_way(&[nodes[2], nodes[3], nodes[0]]);
    world.add_way(&[nodes[0], nodes[1], nodes[2]]);
    let coast = coast_of(&world, whole_world);
    assert_eq!(area(&coast.land), 4 * SQUARE);
    assert_eq!(kinds(&coast), [("overlap", 1)]);
    assert_eq!(coast.problems[0].ways, [1, 3]);
}

#[test]
fn of_ways_in_opposite_directions_the_one_stays_that_fits_its_neighbours() {
    // The wrong way is the first, the last, or there are three; or the ring is one way.
    for (order, doubled) in [
        (&[true, false][..], 1),
        (&[false, true], 1),
        (&[true, false, true], 2),
        (&[false, true, false], 2),
    ] {
        let mut world = CoastWorld::default();
        let nodes = world.add_nodes(&square((0, 0), DEGREE));
        world.add_way(&[nodes[2], nodes[3], nodes[0]]);
        for is_right in order {
            let mut way = nodes[..3].to_vec();
            if !is_right {
                way.reverse();
            }
            world.add_way(&way);
        }
        let coast = coast_of(&world, whole_world);
        assert_eq!(area(&coast.land), 4 * SQUARE, "{order:?}");
        let contradicting = order.iter().filter(|is_right| *is_right != &order[0]);
        let expected = [("direction", contradicting.count()), ("overlap", doubled)];
        assert_eq!(kinds(&coast), expected, "{order:?}");
        assert!(coast.problems.iter().all(|problem| problem.ways[0] == 2));
        assert_eq!(coast.is_turned, [false]);
    }
    let mut world = CoastWorld::default();
    let mut ring = world.add_nodes(&square((0, 0), DEGREE));
    ring.extend(ring.first().copied());
    world.add_way(&ring);
    ring.reverse();
    world.add_way(&ring);
    let coast = coast_of(&world, whole_world);
    assert_eq!(area(&coast.land), 4 * SQUARE);
    assert_eq!(kinds(&coast), [("direction", 1), ("overlap", 1)]);
}

#[test]
fn coastlines_that_are_boundaries_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = CoastWorld::default();
    for number in 0..2 {
        world.add_ring(&square((3 * number * DEGREE, 0), DEGREE));
    }
    let tags = "w2 v1 Tnatural=coastline,boundary=administrative ";
    let text = world.opl().replace("w2 v1 Tnatural=coastline ", tags);
    let path = directory.path().join("world.opl");
    std::fs::write(&path, text).unwrap();
    let coast = read(&path, whole_world);
    assert_eq!(area(&coast.land), 8 * SQUARE);
    let [problem] = coast.problems.as_slice() else {
        panic!("{:?}", coast.problems)
    };
    assert_eq!(
        (problem.kind, problem.ways.as_slice()),
        (CoastProblemKind::Boundary, &[2][..])
    );
    assert!(matches!(&problem.place, ProblemPlace::Line(points) if points.len() == 5));
}

#[test]
fn antarctica_is_closed_at_the_pole() {
    for lat in [-78.0, -80.0] {
        let coastline = [
            (180.0, lat),
            (100.0, -70.0),
            (0.0, -65.0),
            (-100.0, -70.0),
            (-180.0, lat),
        ];
        let mut world = CoastWorld::default();
        let nodes = world.add_nodes(&in_degrees(&coastline));
        world.add_way(&nodes);
        let coast = coast_of(&world, |_| {});
        assert_eq!(coast.source, RegionSource::World);
        assert!(coast.problems.is_empty(), "{:?}", coast.problems);
        let mut ring = in_degrees(&coastline);
        ring.extend(in_degrees(&[(-180.0, -90.0), (180.0, -90.0)]));
        assert_eq!(area(&coast.land), doubled_area(&ring));
        // The other hemisphere: land around the north pole.
        let mut world = CoastWorld::default();
        let north: Vec<(f64, f64)> = coastline.iter().map(|(lon, lat)| (-lon, -lat)).collect();
        let nodes = world.add_nodes(&in_degrees(&north));
        world.add_way(&nodes);
        assert_eq!(area(&coast_of(&world, |_| {}).land), doubled_area(&ring));
        // A single closed way around the pole, whose last segment crosses the antimeridian.
        let mut world = CoastWorld::default();
        let mut nodes = world.add_nodes(&in_degrees(&coastline[1..4]));
        nodes.extend(nodes.first().copied());
        world.add_way(&nodes);
        let coast = coast_of(&world, whole_world);
        assert_eq!(coast.land.len(), 1);
        assert!(has(&coast.land, (1, -89 * DEGREE)) && !has(&coast.land, (1, -60 * DEGREE)));
    }
}

#[test]
fn islands_on_the_antimeridian_are_cut_there_however_they_are_drawn() {
    let half = |lons: [f64; 2]| {
        [
            (lons[0], 0.0),
            (lons[1], 0.0),
            (lons[1], 1.0),
            (lons[0], 1.0),
        ]
    };
    let mut worlds = Vec::new();
    // One ring across, two rings with a common border, and two open lines.
    let mut across = CoastWorld::default();
    across.add_ring(&in_degrees(&half([179.0, -179.0])));
    worlds.push(across);
    let mut rings = CoastWorld::default();
    rings.add_ring(&in_degrees(&half([179.0, 180.0])));
    rings.add_ring(&in_degrees(&half([-180.0, -179.0])));
    worlds.push(rings);
    let mut lines = CoastWorld::default();
    let east = in_degrees(&[(180.0, 1.0), (179.0, 1.0), (179.0, 0.0), (180.0, 0.0)]);
    let west = in_degrees(&[(-180.0, 0.0), (-179.0, 0.0), (-179.0, 1.0), (-180.0, 1.0)]);
    for places in [east, west] {
        let nodes = lines.add_nodes(&places);
        lines.add_way(&nodes);
    }
    worlds.push(lines);
    for world in worlds {
        let coast = coast_of(&world, whole_world);
        assert_eq!(area(&coast.land), 2 * SQUARE, "{world:?}");
        assert_eq!(coast.land.len(), 2);
        assert!(coast.problems.is_empty(), "{:?}", coast.problems);
    }
}

#[test]
fn awkward_ways_are_problems_and_no_land() {
    let mut world = CoastWorld::default();
    let nodes = world.add_nodes(&square((0, 0), DEGREE));
    world.add_way(&[]);
    world.add_way(&[nodes[0]]);
    world.add_way(&[nodes[0], nodes[0]]);
    world.add_way(&[nodes[0], nodes[1], nodes[0]]);
    world.add_way(&[nodes[1], nodes[2], 1 << 60, nodes[3]]);
    world.add_way(&[i64::MIN, i64::MAX]);
    let coast = coast_of(&world, whole_world);
    let expected = [
        ("end_point", 2),
        ("not_closed", 1),
        ("not_a_ring", 2),
        ("single_point_in_ring", 1),
        ("missing_node", 2),
    ];
    assert_eq!(kinds(&coast), expected);
    assert!(coast.land.is_empty());
    // Nodes at one place, and a spike.
    let mut world = CoastWorld::default();
    world.add_ring(&in_degrees(&[
        (0.0, 0.0),
        (0.0, 0.0),
        (1.0, 0.0),
        (2.0, 0.0),
        (1.0, 0.0),
        (1.0, 1.0),
        (0.0, 1.0),
    ]));
    let coast = coast_of(&world, whole_world);
    assert_eq!(area(&coast.land), SQUARE);
    assert_eq!(kinds(&coast), [("overlap", 1)]);
}

#[test]
fn random_ways_give_valid_land_whatever_they_are() {
    for seed in 0..if crate::common::is_long() { 3000 } else { 60 } {
        let mut random = Random(seed);
        let mut world = CoastWorld::default();
        let size = 3 + random.below(30);
        let count = 3 + random.below(20usize);
        let places: Vec<Place> = (0..count)
            .map(|_| (random.below(size) * 1_000_003, random.below(size) * 999_983))
            .collect();
        let nodes = world.add_nodes(&places);
        for _ in 0..1 + random.below(6) {
            let mut way: Vec<i64> = (0..2 + random.below(6usize))
                .map(|_| nodes[random.below(count)])
                .collect();
            if random.below(2) == 0 {
                way.extend(way.first().copied());
            }
            world.add_way(&way);
        }
        let region = random.below(3);
        coast_of(&world, |options| match region {
            0 => whole_world(options),
            1 => options.region = Some(parse_bbox("0.1,0.2,1.5,1.1").unwrap()),
            _ => {}
        });
    }
}

#[test]
fn a_ring_of_many_nodes_is_read_quickly() {
    let count = if crate::common::is_long() {
        1_000_000
    } else {
        20_000
    };
    let corner = |number: usize| {
        let angle = number as f64 / count as f64 * std::f64::consts::TAU;
        let distance = (50.0 + (37.0 * angle).sin()) * DEGREE as f64;
        let (sin, cos) = angle.sin_cos();
        ((cos * distance) as i64, (sin * distance) as i64)
    };
    let places: Vec<Place> = (0..count).map(corner).collect();
    let mut world = CoastWorld::default();
    world.add_ring(&places);
    let coast = coast_of(&world, whole_world);
    assert_eq!(area(&coast.land), doubled_area(&places));
}
