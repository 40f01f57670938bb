//! `extract` of awkward files, compared with the results of simple, slow code.
//!
//! Every file is read as it is, with a table of contents, and with per-blob indexes, with one job and with four.

use crate::common;
use crate::common::answers::history_of;
use crate::common::craft::{self, Shape};
use crate::common::extracts::{
    OPTIONS, SMART, STRATEGIES, Strategy, WORLD_SIZE, expect_extract, expect_extracts, extracted,
    place_of, random_world,
};
use crate::common::oracle::{osmium, real_file};
use crate::common::questions::{
    Inputs, assert_as_osmium, awkward_file, file_in_blocks, file_of, file_of_payloads,
    tangled_relations, tangled_ways,
};
use crate::common::regions::{DEGREE, Region, Spread, box_of_degrees};
use crate::common::{Kind, Object, decode, in_turn, node, relation, run_ok, way};

/// A node at whole degrees.
fn at(id: i64, lon: i64, lat: i64) -> Object {
    node(id, lat * DEGREE, lon * DEGREE, &[])
}

fn all_strategies() -> Vec<Strategy> {
    STRATEGIES.into_iter().chain(OPTIONS).collect()
}

/// Extracts the box from 0,0 to 10,10 from objects in blocks of `size`, with all strategies.
fn expect_of_objects(objects: &[Object], size: usize) {
    let dir = tempfile::tempdir().unwrap();
    let inputs = Inputs::of(&file_in_blocks(dir.path(), objects, size));
    expect_extracts(
        &inputs,
        objects,
        &box_of_degrees(0, 0, 10, 10),
        &all_strategies(),
    );
}

// Orders and references.

#[test]
fn a_file_whose_header_lies_about_its_order_gives_all_that_belongs_to_a_region() {
    let input = real_file("baltimore.osm.pbf");
    let objects = decode::objects(&input);
    let spread = Spread::of(objects.iter().filter_map(place_of));
    let region = spread.boxed([40, 40, 60, 60]);
    expect_extracts(&Inputs::of(&input), &objects, &region, &STRATEGIES);
}

#[test]
fn objects_in_any_order_and_kinds_in_one_blob_give_all_that_belongs_to_a_region() {
    let dir = tempfile::tempdir().unwrap();
    let mut objects = random_world(7, 120, false);
    for step in 0..3 {
        match step {
            0 => objects.reverse(),
            1 => objects.rotate_left(77),
            _ => objects.sort_by_key(|object| (object.id * 7919 % 360, object.kind)),
        }
        let inputs = Inputs::of(&file_in_blocks(dir.path(), &objects, 37));
        let region = box_of_degrees(2, 3, 7, 6);
        let strategies: Vec<_> = in_turn(step, 2, all_strategies()).collect();
        expect_extracts(&inputs, &objects, &region, &strategies);
    }
}

#[test]
fn ids_below_zero_and_at_the_ends_of_their_range_are_ids_like_others() {
    let ids = [0, -1, i64::MIN + 1, i64::MIN, 1, 1 << 40, i64::MAX];
    let places = ids.iter().zip(1..);
    let nodes = places.map(|(id, turn)| at(*id, 5 + turn % 2 * 10, 5));
    let ways = ids.map(|id| way(id, &[!id, id], &[]));
    let members = |id: i64| {
        [
            (Kind::Way, id, ""),
            (Kind::Relation, !id, ""),
            (Kind::Node, 1, ""),
        ]
    };
    let relations = ids.map(|id| relation(id, &members(id)[..2], &[]));
    let complete = ids.map(|id| relation(id / 3, &members(id), &[("type", "multipolygon")]));
    let objects: Vec<Object> = nodes.chain(ways).chain(relations).collect();
    expect_of_objects(&objects, 5);
    let objects: Vec<Object> = objects.into_iter().chain(complete).collect();
    expect_of_objects(&objects, 9);
}

#[test]
fn a_reference_to_an_absent_object_is_no_error() {
    let members = [
        (Kind::Way, 1, "outer"),
        (Kind::Way, 99, "outer"),
        (Kind::Node, 99, ""),
        (Kind::Relation, 99, ""),
        (Kind::Way, 3, "inner"),
    ];
    expect_of_objects(
        &[
            at(1, 5, 5),
            at(2, 15, 5),
            at(3, 16, 5),
            way(1, &[98, 1, 99, 2], &[]),
            way(2, &[98, 99], &[]),
            way(3, &[98, 3], &[]),
            relation(1, &members, &[("type", "multipolygon")]),
            relation(2, &members[1..4], &[("type", "multipolygon")]),
        ],
        3,
    );
}

#[test]
fn parents_are_found_in_circles_and_before_their_children() {
    let mut objects = [tangled_relations(), tangled_ways()].concat();
    for turn in 0..2 {
        objects.reverse();
        expect_of_objects(&objects, 4);
        let region = box_of_degrees(2, 2, 3, 3);
        let nodes: Vec<Object> = (1..=6).map(|id| at(id, id, id)).collect();
        objects.retain(|object| object.kind != Kind::Node);
        objects.extend(nodes);
        let dir = tempfile::tempdir().unwrap();
        let inputs = Inputs::of(&file_in_blocks(dir.path(), &objects, 4));
        let strategies: Vec<_> = in_turn(turn, 2, all_strategies()).collect();
        expect_extracts(&inputs, &objects, &region, &strategies);
    }
}

#[test]
fn a_long_chain_of_parents_is_followed_in_either_direction() {
    let dir = tempfile::tempdir().unwrap();
    let link = |id: i64| relation(id, &[(Kind::Relation, id + 1, "")], &[]);
    let mut chain: Vec<Object> = (1..2000).map(link).collect();
    chain.push(relation(2000, &[(Kind::Node, 1, "")], &[]));
    chain.push(at(1, 5, 5));
    let bbox = box_of_degrees(0, 0, 10, 10).bbox();
    for _ in 0..2 {
        let inputs = Inputs::of(&file_in_blocks(dir.path(), &chain, 100));
        expect_extract(&inputs, &["-b", &bbox], Strategy::CompleteWays, &chain);
        chain.reverse();
    }
}

#[test]
fn a_relation_is_completed_only_for_a_member_in_the_region() {
    let area = [("type", "multipolygon")];
    expect_of_objects(
        &[
            at(1, 5, 5),
            at(2, 15, 5),
            at(3, 16, 5),
            at(4, 17, 5),
            way(1, &[1, 2], &[]),
            way(2, &[2, 3], &[]),
            way(3, &[4], &[]),
            // Not selected: its member is outside the region, though a way that crosses the edge adds it.
            relation(1, &[(Kind::Node, 2, "")], &area),
            // Selected as a parent only, and therefore not completed.
            relation(2, &[(Kind::Relation, 3, ""), (Kind::Way, 2, "")], &area),
            relation(3, &[(Kind::Way, 1, "")], &[]),
            // Not selected: its member is added only by the completion of another relation.
            relation(4, &[(Kind::Way, 3, "")], &area),
            relation(5, &[(Kind::Node, 1, ""), (Kind::Way, 3, "")], &area),
            // Selected; its member relation is not added.
            relation(6, &[(Kind::Node, 1, ""), (Kind::Relation, 4, "")], &area),
        ],
        4,
    );
}

// Histories.

#[test]
fn an_object_with_a_version_in_the_region_comes_in_every_version() {
    let dir = tempfile::tempdir().unwrap();
    let version = |object: Object, version, visible| Object {
        visible,
        ..common::with_metadata(object, version, 1_600_000_000, 7, "mapper")
    };
    let member = |kind, id| relation(1, &[(kind, id, "")], &[]);
    let parent = |id, child| relation(id, &[(Kind::Relation, child, "")], &[]);
    let objects = [
        // Nodes that leave the region, that enter it, that are deleted in it, or that are outside it until deleted.
        version(at(1, 5, 5), 1, true),
        version(at(1, 15, 5), 2, true),
        version(at(2, 15, 5), 1, true),
        version(at(2, 5, 5), 2, true),
        version(at(3, 5, 5), 1, true),
        version(at(3, 0, 0), 2, false),
        version(at(4, 15, 5), 1, true),
        version(at(4, 0, 0), 2, false),
        version(at(5, 15, 5), 1, true),
        version(at(5, 5, 5), 2, false),
        version(at(6, 15, 5), 1, true),
        version(at(7, 15, 5), 1, true),
        // Only its second version refers to a node in the region. The nodes of all versions are added.
        version(way(1, &[6], &[]), 1, true),
        version(way(1, &[4, 1], &[]), 2, true),
        version(way(1, &[7], &[]), 3, true),
        version(way(1, &[], &[]), 4, false),
        version(way(2, &[5, 6], &[]), 1, true),
        // Parents of earlier versions.
        version(parent(9, 8), 1, true),
        version(parent(9, 77), 2, true),
        version(parent(8, 1), 1, true),
        version(parent(8, 1), 2, false),
        version(member(Kind::Way, 2), 1, true),
        version(member(Kind::Way, 1), 2, true),
        version(member(Kind::Way, 2), 3, true),
    ];
    let blocks: Vec<&[Object]> = objects.chunks(5).collect();
    let path = history_of(dir.path(), "in.osh.pbf", &blocks);
    let bbox = box_of_degrees(0, 0, 10, 10).bbox();
    let expected = extracted(
        &objects,
        &box_of_degrees(0, 0, 10, 10),
        Strategy::CompleteWays,
    );
    let args = ["-H", "-b", &bbox];
    expect_extract(&Inputs::of(&path), &args, Strategy::CompleteWays, &expected);
    if osmium() {
        assert_as_osmium(&[&"extract", &path, &"-H", &"-b", &bbox], dir.path());
    }
}

#[test]
fn a_deleted_node_is_nowhere() {
    let path = real_file("deleted_nodes.osh.pbf");
    let objects = decode::objects(&path);
    let region = box_of_degrees(-1, -1, 2, 2);
    let expected = extracted(&objects, &region, Strategy::CompleteWays);
    assert_eq!(expected.len(), 1);
    let bbox = region.bbox();
    let (inputs, args) = (Inputs::of(&path), ["-H", "-b", &bbox]);
    expect_extract(&inputs, &args, Strategy::CompleteWays, &expected);
}

// Blocks.

#[test]
fn every_awkward_block_gives_what_belongs_to_a_region() {
    let dir = tempfile::tempdir().unwrap();
    let (path, objects) = awkward_file(dir.path());
    let inputs = Inputs::of(&path);
    let around_zero = Region::boxed(-5, -12, 21, 20);
    let regions = [
        around_zero,
        box_of_degrees(-180, -90, 180, 90),
        box_of_degrees(10, 40, 20, 60),
    ];
    for region in &regions {
        let bbox = region.bbox();
        for strategy in STRATEGIES {
            let expected = extracted(&objects, region, strategy);
            expect_extract(&inputs, &["-b", &bbox], strategy, &expected);
        }
    }
}

#[test]
fn coordinates_between_two_units_are_read_as_osmium_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let ends = [
        9_999_999_900,
        9_999_999_949,
        9_999_999_951,
        10_000_000_049,
        10_000_000_051,
    ];
    let ends = ends.into_iter().chain([-49, -51, -100, 0, 49]);
    let place = |(lon_nano, id): (i64, i64)| Object {
        lon_nano,
        lat_nano: 5_000_000_001,
        ..Object::new(Kind::Node, id)
    };
    let objects: Vec<Object> = ends.zip(1..).map(place).collect();
    let shape = Shape {
        granularity: 1,
        ..Shape::USUAL
    };
    let path = file_of_payloads(dir.path(), &[craft::block(&objects, &shape)]);
    let region = box_of_degrees(0, 0, 10, 10);
    if osmium() {
        assert_as_osmium(&[&"extract", &path, &"-b", &region.bbox()], dir.path());
    }
}

#[test]
fn coordinates_in_ways_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [at(1, 5, 5), at(2, 15, 5)];
    let located = |id: i64, refs: &[usize]| Object {
        locations: refs
            .iter()
            .map(|&index| (nodes[index].lat_nano, nodes[index].lon_nano))
            .collect(),
        ..way(
            id,
            &refs
                .iter()
                .map(|&index| nodes[index].id)
                .collect::<Vec<_>>(),
            &[],
        )
    };
    let ways = [located(1, &[0, 1]), located(2, &[1, 1])];
    let path = file_of(dir.path(), &[&nodes[..], &ways[..]]);
    let expected = [nodes[0].clone(), nodes[1].clone(), ways[0].clone()];
    let bbox = box_of_degrees(0, 0, 10, 10).bbox();
    let (inputs, strategy) = (Inputs::of(&path), Strategy::CompleteWays);
    expect_extract(&inputs, &["-b", &bbox], strategy, &expected);
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"extract", &path, &"-b", &bbox, &"-o", &output]);
    let located = String::from("LocationsOnWays");
    assert!(decode::header(&output).optional.contains(&located));
}

#[test]
fn files_without_objects_and_regions_without_nodes_give_a_file_without_objects() {
    let dir = tempfile::tempdir().unwrap();
    let region = box_of_degrees(0, 0, 10, 10);
    for payloads in [&[][..], &[craft::empty_block(), craft::empty_block()]] {
        let inputs = Inputs::of(&file_of_payloads(dir.path(), payloads));
        expect_extracts(&inputs, &[], &region, &all_strategies());
    }
    let objects = random_world(3, 100, false);
    let inputs = Inputs::of(&file_in_blocks(dir.path(), &objects, 50));
    let elsewhere = box_of_degrees(50, 50, 60, 60);
    assert_eq!(extracted(&objects, &elsewhere, SMART), []);
    expect_extracts(&inputs, &objects, &elsewhere, &all_strategies());
}

#[test]
fn a_region_of_everything_gives_all_but_what_is_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let mut objects = random_world(4, 100, false);
    objects.retain(|object| object.kind != Kind::Way || !object.refs.is_empty());
    let size = box_of_degrees(0, 0, WORLD_SIZE, WORLD_SIZE);
    for region in [size, box_of_degrees(-180, -90, 180, 90)] {
        let inputs = Inputs::of(&file_in_blocks(dir.path(), &objects, 50));
        let kept = extracted(&objects, &region, Strategy::Simple);
        let nodes = kept.iter().filter(|object| object.kind == Kind::Node);
        assert_eq!(nodes.count(), 100);
        expect_extracts(&inputs, &objects, &region, &all_strategies());
    }
    // Coordinates beyond the poles and the antimeridian are in no region.
    let beyond = [
        node(1, 900_000_001, 0, &[]),
        node(2, 0, -1_800_000_001, &[]),
    ];
    let edges = [
        node(3, 900_000_000, 0, &[]),
        node(4, 0, -1_800_000_000, &[]),
    ];
    let objects = [&beyond[..], &edges[..]].concat();
    let inputs = Inputs::of(&file_in_blocks(dir.path(), &objects, 4));
    let everything = ["-b", "-180,-90,180,90"];
    expect_extract(&inputs, &everything, Strategy::CompleteWays, &edges);
}

// Locations.

#[test]
fn edges_and_corners_belong_to_a_region_and_those_of_its_holes_too() {
    let dir = tempfile::tempdir().unwrap();
    let steps = || (0..=24).map(|step| step * DEGREE / 2);
    let places = steps().flat_map(|lon| steps().map(move |lat| (lon, lat)));
    let around = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)];
    let places = places.flat_map(|(lon, lat)| around.map(|(x, y)| (lon + x, lat + y)));
    let nodes: Vec<Object> = (1..)
        .zip(places)
        .map(|(id, (lon, lat))| node(id, lat, lon, &[]))
        .collect();
    let inputs = Inputs::of(&file_in_blocks(dir.path(), &nodes, 500));
    let ring = |corners: &[(i64, i64)]| -> Vec<_> {
        let corner = |&(lon, lat): &(i64, i64)| (lon * DEGREE, lat * DEGREE);
        corners.iter().map(corner).collect()
    };
    let square = ring(&[(0, 0), (12, 0), (12, 12), (0, 12)]);
    let mut turned = square.clone();
    turned.reverse();
    let diamond = ring(&[(6, 1), (11, 6), (6, 11), (1, 6)]);
    let hole = ring(&[(4, 4), (8, 4), (8, 8), (4, 8)]);
    // A triangle with slopes 1/3 and 3.
    let triangle = ring(&[(1, 1), (10, 4), (4, 10)]);
    let regions = [
        Region::of(&[square, hole.clone()]),
        Region::of(&[turned, diamond.clone()]),
        Region::of(&[diamond.clone(), hole.clone()]),
        Region::of(std::slice::from_ref(&triangle)),
        Region {
            polygons: vec![vec![triangle], vec![diamond], vec![hole]],
        },
        Region::of(&[Region::star(
            (60_000_001, 60_000_007),
            90_000_003,
            110_000_009,
        )]),
    ];
    for region in regions {
        expect_extracts(&inputs, &nodes, &region, &[Strategy::CompleteWays]);
        let poly = region.poly_file(dir.path(), "region");
        let args = ["-p", poly.to_str().unwrap()];
        let expected = extracted(&nodes, &region, Strategy::CompleteWays);
        expect_extract(&inputs, &args, Strategy::CompleteWays, &expected);
    }
}

#[test]
fn a_box_may_cross_the_antimeridian() {
    let dir = tempfile::tempdir().unwrap();
    let lons = [-180, -179, -171, -170, -169, 0, 169, 170, 171, 179, 180];
    let mut objects: Vec<Object> = (1..).zip(lons).map(|(id, lon)| at(id, lon, 5)).collect();
    objects.push(at(50, 175, 11));
    objects.push(way(1, &[2, 6], &[]));
    objects.push(way(2, &[6, 7], &[]));
    objects.push(relation(1, &[(Kind::Way, 1, "")], &[]));
    let inputs = Inputs::of(&file_in_blocks(dir.path(), &objects, 4));
    let region = box_of_degrees(170, 0, -170, 10);
    for strategy in all_strategies() {
        let expected = extracted(&objects, &region, strategy);
        expect_extract(&inputs, &["-b", "170,0,-170,10"], strategy, &expected);
    }
}
