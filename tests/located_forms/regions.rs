//! `extract`: a way lies in a region if one of its references does, whether or not the file has the node.

use super::forms::{ANY, Container, Form, Input, ORDERED, bare, inputs, write};
use super::run_line;
use super::worlds::{NOWHERE, World, worlds};
use crate::common::answers::in_order;
use crate::common::extracts::{
    STRATEGIES, Strategy, config_of, extracted, extracted_ids, place_of,
};
use crate::common::questions::{assert_same_objects, name_of, parted};
use crate::common::random::Random;
use crate::common::regions::{DEGREE, Place, Region, degrees};
use crate::common::{Kind, Object, decode, node, relation, way};
use std::collections::HashSet;
use std::path::Path;

/// A region around a random node, and the options of `extract` that select it. Files get into the directory `dir`.
pub fn random_region(world: &World, seed: u64, dir: &Path) -> (Region, String) {
    let mut random = Random(seed);
    let centre = random_place(world, &mut random, 181);
    let (width, height) = (random_size(&mut random), random_size(&mut random));
    let is_ordinary = centre.0.abs() < 170 * DEGREE && centre.1.abs() < 80 * DEGREE;
    if is_ordinary && random.below(3) == 0 {
        let region = Region::of(&[Region::star(centre, width, height)]);
        let path = region.geojson_file(dir, &format!("star{seed}"));
        return (region, format!("-p {}", path.display()));
    }
    let edges = edges_around(centre, width, height);
    let [west, south, east, north] = edges;
    let region = Region::boxed(west, south, east, north);
    if random.below(3) == 0 {
        let path = region.geojson_file(dir, &format!("box{seed}"));
        return (region, format!("-p {}", path.display()));
    }
    (region, format!("-b {}", edges.map(degrees).join(",")))
}

/// The longitude and latitude of a random node between some degrees of longitude.
fn random_place(world: &World, random: &mut Random, degrees: i64) -> Place {
    let places = world.of(Kind::Node).filter_map(place_of);
    let places: Vec<Place> = places
        .filter(|(lon, _)| lon.abs() < degrees * DEGREE)
        .collect();
    places[random.below(places.len())]
}

/// A length between some metres and twice the size of a town, in units of 1e-7 degree.
fn random_size(random: &mut Random) -> i64 {
    let largest = [600, 8_000, 90_000, 400_000][random.below(4_usize)];
    i64::from(random.between(300, largest))
}

/// The western, southern, eastern and northern edge of a box. It crosses the antimeridian if it reaches it.
fn edges_around((lon, lat): Place, width: i64, height: i64) -> [i64; 4] {
    let wrapped = |lon: i64| match lon {
        lon if lon > 180 * DEGREE => lon - 360 * DEGREE,
        lon if lon < -180 * DEGREE => lon + 360 * DEGREE,
        lon => lon,
    };
    let [south, north] =
        [lat - height, lat + height].map(|lat| lat.clamp(-90 * DEGREE, 90 * DEGREE));
    [wrapped(lon - width), south, wrapped(lon + width), north]
}

/// Fails unless `extract` selects the same from files of a world as from the plain one.
pub fn holds(world: &World, turn: usize, inputs: &[Input]) {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    for (number, strategy) in (0..).zip(STRATEGIES) {
        let seed = turn as u64 * 10 + number;
        let (region, argument) = random_region(world, seed, dir.path());
        let expected = extracted(&world.objects, &region, strategy);
        let strategy = strategy.args().join(" ");
        let line = format!("extract -q -O {strategy} {argument} {{in}} -o {{out}}");
        for input in inputs {
            run_line(&line, &[("{in}", &input.path), ("{out}", &output)]);
            let found = input.read(&output, &line);
            input.expect(&found, &expected, &line);
            input.expect_copies(&found, &line);
        }
    }
}

#[test]
fn an_extract_has_the_ways_whose_references_lie_in_the_region() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(5) {
        holds(&world, turn, &inputs(&world, turn, &ANY, dir.path()));
    }
}

#[test]
fn several_regions_in_one_run_get_what_each_gets_alone() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(6) {
        let seeds = (0..4).map(|number| 1000 + turn as u64 * 4 + number);
        let regions: Vec<Region> = seeds
            .map(|seed| random_region(&world, seed, dir.path()).0)
            .collect();
        let strategy = STRATEGIES[turn % STRATEGIES.len()];
        let (config, outputs) = config_of(dir.path(), &regions, "osm.pbf");
        let line = format!(
            "extract -q -O {} -c {{config}} {{in}}",
            strategy.args().join(" ")
        );
        for input in inputs(&world, turn, &ANY, dir.path()) {
            run_line(&line, &[("{in}", &input.path), ("{config}", &config)]);
            for (region, output) in regions.iter().zip(&outputs) {
                let found = input.read(output, &line);
                input.expect(&found, &extracted(&world.objects, region, strategy), &line);
            }
        }
    }
}

#[test]
fn an_extract_of_an_extract_knows_the_nodes_that_the_first_one_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let [cut, again] = ["cut.osm.pbf", "again.osm.pbf"].map(|name| dir.path().join(name));
    for (turn, world) in worlds(7) {
        let (first, argument) = random_region(&world, turn as u64, dir.path());
        let first_line = format!("extract -q -O -s simple {argument} {{in}} -o {{out}}");
        let (second, argument) = random_region(&world, 500 + turn as u64, dir.path());
        let strategy = STRATEGIES[turn % STRATEGIES.len()];
        let expected = extracted_twice(&world, [&first, &second], strategy);
        let strategy = strategy.args().join(" ");
        let line = format!("extract -q -O {strategy} {argument} {{in}} -o {{out}}");
        for input in inputs(&world, turn, &ANY, dir.path()) {
            if input.form.is_located() {
                run_line(&first_line, &[("{in}", &input.path), ("{out}", &cut)]);
                run_line(&line, &[("{in}", &cut), ("{out}", &again)]);
                let found = input.read(&again, &line);
                input.expect(&found, &expected, &format!("{first_line}; {line}"));
            }
        }
    }
}

/// The objects that are left of those in the first region, by `simple`, after the second extract. Ways know the places
/// of all nodes of the world. Relations know only the nodes that the first extract has.
fn extracted_twice(
    world: &World,
    [first, second]: [&Region; 2],
    strategy: Strategy,
) -> Vec<Object> {
    let ids = extracted_ids(&world.objects, first, Strategy::Simple);
    let (kept, _) = parted(&world.objects, &ids);
    let in_ways: HashSet<i64> = kept.iter().flat_map(|way| &way.refs).copied().collect();
    let is_known = |object: &&Object| {
        let is_in_way = object.kind == Kind::Node && in_ways.contains(&object.id);
        is_in_way || ids.contains(&name_of(object))
    };
    let mut known: Vec<Object> = world.objects.iter().filter(is_known).cloned().collect();
    for object in &mut known {
        let members = &mut object.members;
        members.retain(|(kind, id, _)| *kind != Kind::Node || ids.contains(&(*kind, *id)));
    }
    parted(&kept, &extracted_ids(&known, second, strategy)).0
}

#[test]
fn a_stored_place_does_not_count_where_the_file_has_the_node() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    for (turn, world) in worlds(8) {
        let (region, argument) = random_region(&world, turn as u64, dir.path());
        let is_inside = |node: &&Object| place_of(node).is_some_and(|place| region.holds(place));
        let inside = world.of(Kind::Node).find(is_inside);
        let inside = inside.expect("the region is around a node");
        let mut objects = Form::AllNodes.objects(&world);
        for place in objects.iter_mut().flat_map(|way| &mut way.locations) {
            if *place != NOWHERE {
                *place = (inside.lat_nano, inside.lon_nano);
            }
        }
        write(&input, &objects, Form::Foreign.features(), None);
        for strategy in STRATEGIES {
            let expected = extracted(&world.objects, &region, strategy);
            let strategy = strategy.args().join(" ");
            let line = format!("extract -q -O {strategy} {argument} {{in}} -o {{out}}");
            run_line(&line, &[("{in}", &input), ("{out}", &output)]);
            let found: Vec<Object> = decode::objects(&output).iter().map(bare).collect();
            assert_same_objects(&in_order(found), &expected, &line);
        }
    }
}

#[test]
fn a_region_is_the_same_from_a_file_in_each_form() {
    let dir = tempfile::tempdir().unwrap();
    let [data, output] = ["data.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    for (turn, world) in worlds(9) {
        let plain = Input::new(&world, Form::Plain, Container::Bare, &data, None);
        let (region, areas) = region_of_ways(&world, turn as u64);
        let strategy = STRATEGIES[turn % STRATEGIES.len()];
        let expected = extracted(&world.objects, &region, strategy);
        let strategy = strategy.args().join(" ");
        let line = format!("extract -q -O {strategy} -p {{region}} {{in}} -o {{out}}");
        for file in inputs(&areas, turn, &ORDERED, dir.path()) {
            let paths: [(&str, &Path); 3] = [
                ("{region}", &file.path),
                ("{in}", &plain.path),
                ("{out}", &output),
            ];
            run_line(&line, &paths);
            let what = format!("{line}, {}", file.name());
            assert_same_objects(&decode::objects(&output), &expected, &what);
        }
    }
}

/// A box around a random node, and the objects that describe it: a multipolygon of two ways, or a closed way.
fn region_of_ways(world: &World, seed: u64) -> (Region, World) {
    let mut random = Random(seed);
    let centre = random_place(world, &mut random, 170);
    let (width, height) = (random_size(&mut random), random_size(&mut random));
    let [west, south, east, north] = edges_around(centre, width, height);
    let corners = [(south, west), (south, east), (north, east), (north, west)];
    let mut objects: Vec<Object> = (1..)
        .zip(corners)
        .map(|(id, (lat, lon))| node(id, lat, lon, &[]))
        .collect();
    if random.below(2) == 0 {
        objects.push(way(1, &[1, 2, 3, 4, 1], &[("area", "yes")]));
    } else {
        objects.push(way(1, &[1, 2, 3], &[]));
        objects.push(way(2, &[3, 4, 1], &[]));
        let members = [(Kind::Way, 1, "outer"), (Kind::Way, 2, "outer")];
        objects.push(relation(
            1,
            &members,
            &[("type", "multipolygon"), ("landuse", "forest")],
        ));
    }
    (Region::boxed(west, south, east, north), World { objects })
}
