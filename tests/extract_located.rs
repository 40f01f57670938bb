//! `extract` of files whose ways have locations: the same ways and relations as from the file with all nodes, whichever
//! nodes the file has.

use crate::add_locations_to_ways::located;
use crate::common::answers::in_order;
use crate::common::extracts::{
    SMART, STRATEGIES, Strategy, config_of, expect_extract, extracted_ids, random_world,
};
use crate::common::oracle::real_file;
use crate::common::questions::{Inputs, assert_same_objects, name_of};
use crate::common::regions::{Region, box_of_degrees, written};
use crate::common::{
    Arg, Kind, Object, craft, decode, in_turn, node, relation, run_ok, stderr, way,
};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const LOCATED: &str = "LocationsOnWays";

/// A file with the data of another one, whose ways have locations.
struct Form {
    name: &'static str,
    objects: Vec<Object>,
    /// The optional features that the header declares.
    features: &'static [&'static str],
}

impl Form {
    fn write(&self, dir: &Path) -> PathBuf {
        let blocks = self.objects.chunks(37);
        let blocks: Vec<Vec<u8>> = blocks
            .map(|objects| craft::block(objects, &craft::Shape::USUAL))
            .collect();
        let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], self.features);
        let path = dir.join(format!("{}.osm.pbf", self.name));
        std::fs::write(&path, craft::file(header, &blocks)).unwrap();
        path
    }

    /// The objects of the extract, according to a plain file with all nodes.
    fn extracted(&self, plain: &[Object], region: &Region, strategy: Strategy) -> Vec<Object> {
        let ids = extracted_ids(plain, region, strategy);
        let kept = self.objects.iter();
        let kept = kept.filter(|object| ids.contains(&name_of(object)));
        kept.cloned().collect()
    }
}

/// A random world in which every fourth node has a tag.
fn world(seed: u64) -> Vec<Object> {
    let mut objects = random_world(seed, 150, false);
    for object in &mut objects {
        if object.kind == Kind::Node && object.id % 4 == 0 {
            object.tags.push(("name".into(), object.id.to_string()));
        }
    }
    in_order(objects)
}

/// The nodes that `ways` refer to.
fn refs<'o>(ways: impl Iterator<Item = &'o Object>) -> HashSet<i64> {
    ways.flat_map(|way| way.refs.iter().copied()).collect()
}

/// The objects without those untagged nodes that `is_needed` does not accept.
fn without_nodes(objects: &[Object], is_needed: impl Fn(i64) -> bool) -> Vec<Object> {
    let stays = |object: &&Object| {
        object.kind != Kind::Node || !object.tags.is_empty() || is_needed(object.id)
    };
    objects.iter().filter(stays).cloned().collect()
}

fn forms(plain: &[Object]) -> Vec<Form> {
    let all = located(plain, true);
    let in_ways = refs(plain.iter());
    // As other programs write it: members of relations are left out like other nodes of ways.
    let least = without_nodes(&all, |id| !in_ways.contains(&id));
    // Every second way has no locations, but its nodes.
    let has_none = |object: &&Object| object.kind == Kind::Way && object.id % 2 == 0;
    let of_plain_ways = refs(plain.iter().filter(has_none));
    let mut half = without_nodes(&all, |id| {
        of_plain_ways.contains(&id) || !in_ways.contains(&id)
    });
    for object in &mut half {
        if has_none(&&*object) {
            object.locations.clear();
        }
    }
    let form = |name, objects, features| Form {
        name,
        objects,
        features,
    };
    vec![
        form("all", all, &[LOCATED, "pbfhogg.AllNodes"]),
        form(
            "needed",
            located(plain, false),
            &[LOCATED, "pbfhogg.NeededNodes"],
        ),
        form("undeclared", located(plain, false), &[]),
        form("least", least, &[LOCATED]),
        form("half", half, &[LOCATED]),
    ]
}

#[test]
fn each_form_gives_the_ways_and_relations_of_the_plain_file() {
    let region = box_of_degrees(2, 3, 7, 6);
    for (number, form) in forms(&world(11)).into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let plain = world(11);
        let inputs = Inputs::of(&form.write(dir.path()));
        let file = region.geojson_file(dir.path(), "region");
        let args = ["-p", file.to_str().unwrap()];
        for strategy in in_turn(number, 2, STRATEGIES) {
            let expected = form.extracted(&plain, &region, strategy);
            assert!(expected.iter().any(|object| object.kind == Kind::Way));
            expect_extract(&inputs, &args, strategy, &expected);
        }
        let others = [
            Strategy::NoRelations,
            Strategy::Smart(None, 0),
            Strategy::Smart(Some(&["none"]), 34),
        ];
        let other = others[number % others.len()];
        let expected = form.extracted(&plain, &region, other);
        expect_extract(&inputs, &args, other, &expected);
    }
}

#[test]
fn many_regions_in_one_run_or_in_several_are_those_of_the_plain_file() {
    let plain = world(12);
    let regions = [
        box_of_degrees(2, 3, 7, 6),
        box_of_degrees(5, 1, 9, 9),
        Region::of(&[Region::star(
            (60_000_000, 50_000_000),
            90_000_000,
            70_000_000,
        )]),
        box_of_degrees(100, 50, 101, 51),
    ];
    for form in forms(&plain) {
        let dir = tempfile::tempdir().unwrap();
        let input = form.write(dir.path());
        let (config, outputs) = config_of(dir.path(), &regions, "osm.pbf");
        for (strategy, at_once) in [(Strategy::CompleteWays, "9"), (SMART, "1")] {
            let args = strategy.args();
            let mut all: Vec<Arg> = vec![&"extract", &"-O", &"-q", &"-c", &config, &input];
            all.extend([&"--max-regions-per-pass" as Arg, &at_once]);
            all.extend(args.iter().map(|arg| arg as Arg));
            run_ok(&all);
            for (region, output) in regions.iter().zip(&outputs) {
                let expected = form.extracted(&plain, region, strategy);
                assert_same_objects(&decode::objects(output), &expected, form.name);
            }
        }
    }
}

#[test]
fn a_spatial_layout_of_each_form_gives_the_same() {
    let plain = world(13);
    let region = box_of_degrees(3, 2, 6, 7);
    for form in forms(&plain) {
        // Ways without any locations have no place in a spatial layout.
        if form.name == "half" {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let [input, spatial, output] = ["in", "spatial", "out"].map(|name| {
            let name = format!("{name}.osm.pbf");
            dir.path().join(name)
        });
        // The header has to declare the order and the locations.
        run_ok(&[&"sort", &"-q", &form.write(dir.path()), &"-o", &input]);
        let layout: [Arg; 5] = [
            &"repack",
            &"-q",
            &"--layout",
            &"hilbert",
            &"--objects-per-blob",
        ];
        run_ok(&[&layout[..], &[&"40", &input, &"-o", &spatial]].concat());
        for strategy in STRATEGIES {
            let args = strategy.args();
            let bbox = region.bbox();
            let mut all: Vec<Arg> = vec![&"extract", &"-O", &"-q", &"-b", &bbox, &spatial];
            all.extend(args.iter().map(|arg| arg as Arg));
            all.extend([&"-o" as Arg, &output]);
            run_ok(&all);
            let expected = form.extracted(&plain, &region, strategy);
            assert_same_objects(&in_order(decode::objects(&output)), &expected, form.name);
        }
    }
}

/// The kinds and ids of the objects in an extract of an OPL file.
fn ids_of(input: &Path, strategy: &str) -> String {
    let run = run_ok(&[
        &"extract",
        &"-b",
        &"0,0,10,10",
        &"-s",
        &strategy,
        &input,
        &"-f",
        &"opl",
    ]);
    let opl = String::from_utf8(run.stdout).unwrap();
    let ids = opl.lines().filter_map(|line| line.split(' ').next());
    ids.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_node_of_the_file_counts_before_the_location_in_a_way() {
    let dir = tempfile::tempdir().unwrap();
    let text = "n1 v1 x20 y20\nn2 v1 x1 y1\nn5 v1 x y\n\
        w1 v1 Nn1x1y1\nw2 v1 Nn2x20y20\nw3 v1 Nn3x1y1\nw4 v1 Nn3x30y30,n4x20y20\nw5 v1 Nn5x1y1\nw6 v1 Nn3\n\
        r1 v1 Mn3@\nr2 v1 Mn1@\n";
    let input = written(dir.path(), "in.opl", text);
    // The stored location of n1 is out of date, and n5 has no location of its own.
    assert_eq!(ids_of(&input, "simple"), "n2 w2 w3 w5 r1");
    assert_eq!(ids_of(&input, "complete_ways"), "n2 n5 w2 w3 w5 r1");
}

#[test]
fn a_way_lies_nowhere_if_no_location_of_its_nodes_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let text = "n1 v1 Ta=b x1 y1\nw1 v1 Nn8xy,n9x200y1\nw2 v1 Nn8xy,n9x1y1\nw3 v1\n";
    let input = written(dir.path(), "in.opl", text);
    assert_eq!(ids_of(&input, "complete_ways"), "n1 w2");
}

#[test]
fn a_file_without_any_node_has_ways_in_a_region() {
    let dir = tempfile::tempdir().unwrap();
    let text = "w1 v1 Nn1x1y1,n2x2y1\nw2 v1 Nn2x20y1\nr1 v1 Mw1@\nr2 v1 Mw2@\nr3 v1 Mr1@\n";
    let input = written(dir.path(), "in.opl", text);
    assert_eq!(ids_of(&input, "simple"), "w1 r1");
    assert_eq!(ids_of(&input, "complete_ways"), "w1 r1 r3");
    let far = run_ok(&[&"extract", &"-b", &"50,50,51,51", &input, &"-f", &"opl"]);
    assert!(far.stdout.is_empty());
    let said = stderr(&far);
    assert!(
        said.contains("lies in the region") && !said.contains("no nodes"),
        "{said}"
    );
}

#[test]
fn an_extract_by_simple_does_not_say_that_it_has_all_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let objects = [
        node(1, 10_000_000, 10_000_000, &[]),
        node(2, 10_000_000, 200_000_000, &[]),
        way(1, &[1, 2], &[]),
        relation(1, &[(Kind::Way, 1, "")], &[]),
    ];
    let form = Form {
        name: "all",
        objects: located(&objects, true),
        features: &[LOCATED, "pbfhogg.AllNodes"],
    };
    let input = form.write(dir.path());
    let output = dir.path().join("out.osm.pbf");
    for (strategy, has_all) in [("simple", false), ("complete_ways", true)] {
        run_ok(&[
            &"extract",
            &"-O",
            &"-b",
            &"0,0,10,10",
            &"-s",
            &strategy,
            &input,
            &"-o",
            &output,
        ]);
        let declared = decode::header(&output).optional;
        let declares = |name: &str| declared.iter().any(|feature| feature == name);
        assert!(declares(LOCATED), "{strategy}");
        assert_eq!(declares("pbfhogg.AllNodes"), has_all, "{strategy}");
        assert_eq!(decode::objects(&output).len(), if has_all { 4 } else { 3 });
    }
    // The other end of the way lies where the way says, since the node is no longer in the file.
    run_ok(&[
        &"extract",
        &"-O",
        &"-q",
        &"-b",
        &"0,0,10,10",
        &"-s",
        &"simple",
        &input,
        &"-o",
        &output,
    ]);
    let beyond = run_ok(&[&"extract", &"-b", &"19,0,21,2", &output, &"-f", &"opl"]);
    let beyond = String::from_utf8(beyond.stdout).unwrap();
    assert!(
        beyond.starts_with("n1 ") && beyond.contains("\nw1 "),
        "{beyond}"
    );
}

#[test]
fn ways_that_were_taken_out_of_a_file_with_all_nodes_lie_where_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let objects = [
        node(1, 10_000_000, 10_000_000, &[]),
        node(2, 10_000_000, 200_000_000, &[]),
        way(1, &[1], &[]),
        way(2, &[2], &[]),
    ];
    let form = Form {
        name: "all",
        objects: located(&objects, true),
        features: &[LOCATED, "pbfhogg.AllNodes"],
    };
    let ways = dir.path().join("ways.osm.pbf");
    let input = form.write(dir.path());
    run_ok(&[&"cat", &"-q", &"-t", &"way", &input, &"-o", &ways]);
    assert_eq!(ids_of(&ways, "simple"), "w1");
}

#[test]
fn a_real_file_gives_the_same_ways_located_and_plain() {
    let dir = tempfile::tempdir().unwrap();
    let plain = real_file("monaco.osm.pbf");
    let [file, output] = ["located.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"add-locations-to-ways", &"-q", &plain, &"-o", &file]);
    let mut found = Vec::new();
    for input in [&plain, &file] {
        let bbox = "7.41,43.72,7.43,43.74";
        run_ok(&[
            &"extract", &"-O", &"-q", &"-b", &bbox, input, &"-o", &output,
        ]);
        let mut objects = decode::objects(&output);
        objects.retain(|object| object.kind != Kind::Node);
        let locations = objects
            .iter()
            .map(|object| object.locations.len())
            .sum::<usize>();
        objects
            .iter_mut()
            .for_each(|object| object.locations.clear());
        found.push((objects, locations));
    }
    let [(of_plain, none), (of_located, locations)] = found.try_into().unwrap();
    assert_same_objects(&of_located, &of_plain, "monaco");
    assert!(none == 0 && locations > 1000);
}
