//! Coasts of files of every form, and of hostile files.

use crate::coastline::{area, coast_of, read};
use crate::common::coast::{CoastWorld, doubled_area, square};
use crate::common::random::Random;
use crate::common::regions::{DEGREE, Place};
use crate::common::{is_long, run_ok};
use pbfhogg::Context;
use pbfhogg::unstable::coast::{CoastOptions, CoastProblemKind, read_coast};
use pbfhogg::unstable::geometry::parse_bbox;

fn whole_world(options: &mut CoastOptions) {
    options.region = Some(parse_bbox("-180,-90,180,90").unwrap());
}

#[test]
fn the_coast_is_the_same_in_files_of_all_forms() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let world = CoastWorld::generated(7, 8, 12);
    let sorted = world.write(directory.path(), "sorted.opl");
    let expected = read(&sorted, |_| {});
    // Ways before their nodes.
    let text = std::fs::read_to_string(&sorted).unwrap();
    let (nodes, ways): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('n'));
    let unsorted: Vec<&str> = ways.into_iter().chain(nodes.into_iter().rev()).collect();
    std::fs::write(at("unsorted.opl"), unsorted.join("\n") + "\n").unwrap();
    run_ok(&[&"cat", &sorted, &"-o", &at("plain.osm.pbf")]);
    // Ways with locations, without nodes.
    run_ok(&[
        &"add-locations-to-ways",
        &sorted,
        &"-o",
        &at("located.osm.pbf"),
    ]);
    for name in ["unsorted.opl", "plain.osm.pbf", "located.osm.pbf"] {
        let coast = read(&at(name), |options| {
            options.region = Some(parse_bbox("-8,-8,8,8").unwrap());
        });
        assert_eq!(coast.land, expected.land, "{name}");
        assert_eq!(coast.problems, expected.problems, "{name}");
        assert_eq!(coast.lines.len(), expected.lines.len(), "{name}");
    }
}

#[test]
fn a_history_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.osh.opl");
    std::fs::write(
        &path,
        "n1 v1 dV x1 y1\nn1 v2 dV x2 y1\nw1 v1 dV Tnatural=coastline Nn1\n",
    )
    .unwrap();
    let history = directory.path().join("history.osh.pbf");
    run_ok(&[&"cat", &path, &"-o", &history]);
    let error = read_coast(&CoastOptions::new(&history), &Context::default());
    assert!(error.is_err());
}

#[test]
fn rings_that_cross_everywhere_are_left_out() {
    let mut random = Random(1);
    let mut world = CoastWorld::default();
    let count = if is_long() { 20_000 } else { 1500 };
    let mut at = |reach: i64| random.below(reach) - reach / 2;
    let places: Vec<Place> = (0..count)
        .map(|_| (at(2_000_000_000), at(1_600_000_000)))
        .collect();
    let mut nodes = world.add_nodes(&places);
    nodes.extend(nodes.first().copied());
    world.add_way(&nodes);
    let island = square((0, 85 * DEGREE), DEGREE);
    world.add_ring(&island);
    let coast = coast_of(&world, whole_world);
    let invalid = coast
        .problems
        .iter()
        .filter(|one| one.kind == CoastProblemKind::Invalid);
    assert!(invalid.count() > 0 || !coast.land.is_empty());
}

#[test]
fn rings_within_rings_are_land_and_water_in_turn() {
    let mut world = CoastWorld::default();
    let count = if is_long() { 20_000 } else { 300 };
    for number in 0..count {
        let mut ring = square((0, 0), 2000 * (count - number));
        if number % 2 == 1 {
            ring.reverse();
        }
        world.add_ring(&ring);
    }
    let coast = coast_of(&world, whole_world);
    let expected: i128 = world.rings.iter().map(|ring| doubled_area(ring)).sum();
    assert_eq!(area(&coast.land), expected);
}

#[test]
fn many_rings_in_a_row_and_many_at_a_node_are_all_found() {
    let mut world = CoastWorld::default();
    let count = if is_long() { 200_000 } else { 3000 };
    for number in 0..count {
        let west = -1_700_000_000 + number * 3_400_000_000 / count;
        world.add_ring(&[(west, 0), (west + 5000, 0), (west, 3)]);
    }
    // Petals around a node.
    let node = world.add_nodes(&[(0, 40 * DEGREE)])[0];
    let petals = 300;
    for number in 0..petals {
        let at = |step: i64| {
            let angle = std::f64::consts::TAU * (3 * number + step) as f64 / (3 * petals) as f64;
            let (sin, cos) = angle.sin_cos();
            ((cos * 1e7) as i64, 40 * DEGREE + (sin * 1e7) as i64)
        };
        let places = [at(0), at(1)];
        let nodes = world.add_nodes(&places);
        world.add_way(&[node, nodes[0], nodes[1], node]);
        world
            .rings
            .push(vec![(0, 40 * DEGREE), places[0], places[1]]);
    }
    let coast = coast_of(&world, whole_world);
    assert_eq!(coast.land.len() as i64, count + petals);
    let expected: i128 = world.rings.iter().map(|ring| doubled_area(ring)).sum();
    assert_eq!(area(&coast.land), expected);
}

#[test]
fn many_ends_at_one_place_are_joined_in_a_short_time() {
    let mut random = Random(2);
    let mut world = CoastWorld::default();
    for _ in 0..if is_long() { 100_000 } else { 800 } {
        let mut at = || i64::from(random.between(-20_000, 20_000));
        let places = [(at(), at()), (at(), at())];
        let nodes = world.add_nodes(&places);
        world.add_way(&nodes);
    }
    coast_of(&world, whole_world);
}
