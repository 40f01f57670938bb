//! Geometries of files of which only some ways have locations, or some locations: they are those of the file without
//! locations that has all nodes.

use crate::common::craft::{self, Shape};
use crate::common::{Arg, Kind, Object, Tags, in_turn, node, relation, run_fail, run_ok, way};
use crate::export::summary;
use pbfhogg::areas::{FeatureReader, Form, Geometry, IndexType};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The stored coordinates of an undefined location, in nanodegrees.
const NOWHERE: (i64, i64) = (i32::MAX as i64 * 100, i32::MAX as i64 * 100);

/// What a way stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// No locations.
    Nothing,
    /// All locations.
    Everything,
    /// Every second location. The others are undefined.
    Half,
}

/// Whether a file has the nodes without tags that only ways need, and whose locations the ways store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    All,
    Needed,
}

/// Nodes, paths, houses, an area of two ways without tags, and a route. No way stores locations.
pub fn plain_world() -> Vec<Object> {
    let place = |id: i64| match id {
        93..=96 => (
            [0, 0, 5000, 5000][id as usize - 93],
            [0, 5000, 5000, 0][id as usize - 93],
        ),
        _ => (id * 1000 + id % 7 * 100, id * id % 97 * 1000),
    };
    let mut objects: Vec<Object> = (1..=96)
        .map(|id| {
            let (lat, lon) = place(id);
            let tags: Tags = if id % 9 == 0 {
                &[("amenity", "bench")]
            } else {
                &[]
            };
            node(id, lat, lon, tags)
        })
        .collect();
    objects.extend((1..=30).map(|id| {
        let (a, b, c) = (3 * id, 3 * id + 1, 3 * id + 2);
        match id % 3 {
            0 => {
                let tags = [("building", "yes"), ("addr:housenumber", "7")];
                way(id, &[a, b, c, a], &tags)
            }
            _ => way(id, &[a, b, c], &[("highway", "residential"), ("name", "S")]),
        }
    }));
    objects.push(way(31, &[93, 94, 95], &[]));
    objects.push(way(32, &[95, 96, 93], &[]));
    let (outer, route) = (
        [(Kind::Way, 31, "outer"), (Kind::Way, 32, "outer")],
        [(Kind::Way, 1, ""), (Kind::Way, 2, "")],
    );
    let wood = [("type", "multipolygon"), ("natural", "wood")];
    objects.push(relation(1, &outer, &wood));
    objects.push(relation(
        2,
        &route,
        &[("type", "route"), ("route", "bus"), ("name", "R")],
    ));
    objects
}

/// The objects with the locations that `stored` gives to each way, by its id.
pub fn with_stored(
    objects: &[Object],
    stored: impl Fn(i64) -> Stored,
    nodes: Nodes,
) -> Vec<Object> {
    let of_kind = |kind| objects.iter().filter(move |object| object.kind == kind);
    let places: HashMap<i64, (i64, i64)> = of_kind(Kind::Node)
        .map(|node| (node.id, (node.lat_nano, node.lon_nano)))
        .collect();
    let members: HashSet<i64> = of_kind(Kind::Relation)
        .flat_map(|relation| &relation.members)
        .filter(|(kind, ..)| *kind == Kind::Node)
        .map(|(_, id, _)| *id)
        .collect();
    let located: Vec<Object> = objects
        .iter()
        .map(|object| {
            let place = |(at, id): (usize, &i64)| match stored(object.id) {
                Stored::Half if at % 2 == 1 => NOWHERE,
                _ => places.get(id).copied().unwrap_or(NOWHERE),
            };
            let has_any = object.kind == Kind::Way && stored(object.id) != Stored::Nothing;
            let refs = object.refs.iter().enumerate().filter(|_| has_any);
            Object {
                locations: refs.map(place).collect(),
                ..object.clone()
            }
        })
        .collect();
    let mut needed = HashSet::new();
    for way in located.iter().filter(|object| object.kind == Kind::Way) {
        let is_known = |at: usize| way.locations.get(at).is_some_and(|at| *at != NOWHERE);
        let refs = way.refs.iter().enumerate();
        needed.extend(refs.filter(|(at, _)| !is_known(*at)).map(|(_, id)| *id));
    }
    let stays = |object: &Object| {
        object.kind != Kind::Node
            || nodes == Nodes::All
            || !object.tags.is_empty()
            || needed.contains(&object.id)
            || members.contains(&object.id)
    };
    located.into_iter().filter(|object| stays(object)).collect()
}

/// Writes a file that is in order and has the given optional features, with so many ways in a blob.
pub fn written(
    dir: &Path,
    name: &str,
    features: &[&str],
    objects: &[Object],
    ways_in_blob: usize,
) -> PathBuf {
    let mut optional = vec!["Sort.Type_then_ID"];
    optional.extend(features);
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &optional);
    let runs = objects.chunk_by(|one, next| one.kind == next.kind);
    let blobs: Vec<Vec<u8>> = runs
        .flat_map(|run| {
            let is_ways = run.first().is_some_and(|first| first.kind == Kind::Way);
            run.chunks(if is_ways { ways_in_blob } else { 40 })
        })
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    let path = dir.join(name);
    std::fs::write(&path, craft::file(header, &blobs)).unwrap();
    path
}

/// Standard output of `export`.
fn exported(input: &Path, more: &[&str]) -> String {
    let mut args: Vec<Arg> = vec![&"export", &"-f", &"geojsonseq", &"-u", &"type_id", &input];
    args.extend(more.iter().map(|option| option as Arg));
    String::from_utf8(run_ok(&args).stdout).unwrap()
}

/// A name, and what the way with an id stores.
pub type Mixture = (&'static str, fn(i64) -> Stored);

/// The ways of mixed files that store locations: those at the beginning, at the end, in turns, all but one, and all,
/// but with unknown values.
pub const MIXTURES: [Mixture; 6] = [
    ("first", |id| either(id <= 12)),
    ("last", |id| either(id > 12)),
    ("turns", |id| either(id % 2 == 0)),
    ("but-one", |id| either(id != 20)),
    ("values", |id| match id % 3 {
        0 => Stored::Half,
        _ => Stored::Everything,
    }),
    ("all-kinds", |id| match id % 3 {
        0 => Stored::Half,
        1 => Stored::Nothing,
        _ => Stored::Everything,
    }),
];

fn either(is_located: bool) -> Stored {
    if is_located {
        Stored::Everything
    } else {
        Stored::Nothing
    }
}

/// The features that a header may declare beside that of locations, whether or not they are true.
pub const PROMISES: [&[&str]; 3] = [
    &["LocationsOnWays"],
    &["LocationsOnWays", "pbfhogg.AllNodes"],
    &["LocationsOnWays", "pbfhogg.NeededNodes"],
];

/// A summary without the method and without sizes.
fn counts(input: &Path) -> Value {
    let mut found = summary(&[&input]);
    let fields = found.as_object_mut().unwrap();
    for name in ["index_type", "bytes"] {
        fields.remove(name);
    }
    found
}

#[test]
fn a_location_that_a_way_lacks_is_looked_up_whatever_the_header_declares() {
    let dir = tempfile::tempdir().unwrap();
    let world = plain_world();
    let plain = written(dir.path(), "plain.osm.pbf", &[], &world, 10);
    let expected = exported(&plain, &[]);
    assert_eq!(expected.lines().count(), 10 + 30 + 1);
    let mut turn = 0;
    for (name, stored) in MIXTURES {
        for nodes in [Nodes::All, Nodes::Needed] {
            let objects = with_stored(&world, stored, nodes);
            let features = PROMISES[turn % 3];
            let input = written(
                dir.path(),
                "in.osm.pbf",
                features,
                &objects,
                [3, 40][turn % 2],
            );
            let indexes = ["auto", "dense", "sparse", "external"];
            for index in in_turn(turn, 2, indexes) {
                let jobs = ["1", "3"][turn / 2 % 2];
                let found = exported(&input, &["-i", index, "-j", jobs]);
                assert!(found == expected, "{name} {nodes:?} {index}: {found}");
            }
            turn += 1;
        }
    }
}

#[test]
fn no_object_is_counted_twice_when_locations_are_looked_up_late() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = plain_world();
    // The last node of this path is in no form of the file.
    let at = world
        .iter()
        .position(|object| object.kind == Kind::Relation);
    world.insert(at.unwrap(), way(33, &[3, 500], &[("highway", "path")]));
    let plain = written(dir.path(), "plain.osm.pbf", &[], &world, 7);
    let expected = counts(&plain);
    assert_eq!(expected["errors"]["missing_node"], 1, "{expected}");
    for (number, (name, stored)) in MIXTURES.into_iter().enumerate() {
        let objects = with_stored(&world, stored, Nodes::All);
        let features = PROMISES[number % 3];
        let input = written(dir.path(), "in.osm.pbf", features, &objects, 4);
        assert_eq!(counts(&input), expected, "{name}");
    }
}

#[test]
fn nodes_are_looked_up_only_if_a_way_that_is_needed_lacks_a_location() {
    let dir = tempfile::tempdir().unwrap();
    let world = plain_world();
    let located = with_stored(&world, |_| Stored::Everything, Nodes::Needed);
    let of = |objects: &[Object], more: &[&str]| {
        let input = written(dir.path(), "in.osm.pbf", PROMISES[0], objects, 10);
        let mut args: Vec<Arg> = vec![&input];
        args.extend(more.iter().map(|option| option as Arg));
        summary(&args)
    };
    let found = of(&located, &["-i", "sparse"]);
    assert_eq!(
        (&found["index_type"], &found["features"]),
        (&Value::Null, &41.into())
    );
    // Way 3 is a building.
    let but_one = |id| either(id != 3);
    let mixed = with_stored(&world, but_one, Nodes::All);
    let found = of(&mixed, &["--filter", "w/highway"]);
    assert_eq!(
        (&found["index_type"], &found["features"]),
        (&Value::Null, &20.into())
    );
    let found = of(&mixed, &["-i", "sparse", "--filter", "w/building"]);
    assert_eq!(
        (&found["index_type"], &found["features"]),
        (&"sparse".into(), &10.into())
    );
}

#[test]
fn a_stored_location_counts_for_a_node_that_is_not_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let world = plain_world();
    let plain = written(dir.path(), "plain.osm.pbf", &[], &world, 10);
    let expected = exported(&plain, &[]);
    for (turn, (name, stored)) in MIXTURES.into_iter().enumerate() {
        let objects = with_stored(&world, stored, Nodes::Needed);
        // The header does not declare that ways store locations.
        let input = written(dir.path(), "in.osm.pbf", &[], &objects, 7);
        for index in in_turn(turn, 2, ["auto", "external"]) {
            let found = exported(&input, &["-i", index]);
            assert!(found == expected, "{name} {index}: {found}");
        }
    }
    // A node of the file counts more than the location that a way stores.
    let mut moved = with_stored(&world, |_| Stored::Everything, Nodes::All);
    for way in moved.iter_mut().filter(|object| object.kind == Kind::Way) {
        way.locations
            .iter_mut()
            .for_each(|(lat, _)| *lat += 1_000_000);
    }
    let input = written(dir.path(), "in.osm.pbf", &[], &moved, 7);
    assert!(exported(&input, &[]) == expected);
    assert!(exported(&input, &["-i", "none"]) != expected);
}

#[test]
fn unknown_locations_in_a_spatial_layout_are_looked_up() {
    let dir = tempfile::tempdir().unwrap();
    let world = plain_world();
    let plain = written(dir.path(), "plain.osm.pbf", &[], &world, 10);
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let expected = sorted(exported(&plain, &[]));
    let objects = with_stored(&world, |_| Stored::Half, Nodes::All);
    let located = written(dir.path(), "in.osm.pbf", PROMISES[1], &objects, 10);
    let spatial = dir.path().join("spatial.osm.pbf");
    run_ok(&[
        &"repack",
        &"-q",
        &"--layout",
        &"hilbert",
        &located,
        &"-o",
        &spatial,
    ]);
    for index in ["auto", "external"] {
        assert_eq!(sorted(exported(&spatial, &["-i", index])), expected);
    }
}

#[test]
fn a_look_up_that_fails_ends_the_threads_that_wait_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = with_stored(&plain_world(), MIXTURES[2].1, Nodes::All);
    let input = written(dir.path(), "in.osm.pbf", PROMISES[0], &mixed, 1);
    let message = run_fail(&[
        &"export",
        &"-f",
        &"text",
        &"-j",
        &"3",
        &"-i",
        &"sparse",
        &"--max-memory",
        &"1k",
        &input,
    ]);
    assert!(message.contains("memory"), "{message}");
}

/// The files below a directory, or a file itself, with their contents.
pub fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    if path.is_file() {
        return BTreeMap::from([(PathBuf::new(), std::fs::read(path).unwrap())]);
    }
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let inner = contents(&entry.path()).into_iter();
        let name = PathBuf::from(entry.file_name());
        all.extend(inner.map(|(below, bytes)| (name.join(below), bytes)));
    }
    all
}

#[test]
fn tables_and_selections_of_a_mixed_file_have_the_bytes_of_those_of_the_plain_file() {
    let dir = tempfile::tempdir().unwrap();
    let world = plain_world();
    let plain = written(dir.path(), "plain.osm.pbf", &[], &world, 10);
    let mixed = with_stored(&world, MIXTURES[5].1, Nodes::Needed);
    let mixed = written(dir.path(), "mixed.osm.pbf", PROMISES[2], &mixed, 10);
    let region = dir.path().join("region.poly");
    let ring = "r\n1\n0 0\n0 0.005\n0.006 0.005\n0.006 0\nEND\nEND\n";
    std::fs::write(&region, ring).unwrap();
    let region = region.to_str().unwrap();
    let cases: [(&str, &[&str]); 7] = [
        ("out.parquet", &["--with", "centroid,length,names"]),
        ("out", &["--partition", "geometry_type"]),
        ("out", &["--theme", "roads,buildings,transit"]),
        ("out.parquet", &["-b", "0,0,0.005,0.006"]),
        ("out.geojson", &["-p", region, "--clip", region]),
        ("out.geojsonseq", &["-a", "type,id,way_nodes"]),
        ("out.pg", &["-e", "--show-warnings"]),
    ];
    for (name, options) in cases {
        let of = |input: &Path| {
            let output = dir.path().join(name);
            let mut args: Vec<Arg> = vec![&"export", &"-q", &input, &"-O", &"-o", &output];
            args.extend(options.iter().map(|option| option as Arg));
            let messages = run_ok(&args).stderr;
            let files = contents(&output);
            if output.is_dir() {
                std::fs::remove_dir_all(&output).unwrap();
            } else {
                std::fs::remove_file(&output).unwrap();
            }
            (files, messages)
        };
        let (found, expected) = (of(&mixed), of(&plain));
        assert!(found == expected && !found.0.is_empty(), "{options:?}");
    }
}

#[test]
fn an_index_for_geocoding_has_the_streets_and_houses_without_locations() {
    let dir = tempfile::tempdir().unwrap();
    let world = plain_world();
    let build = |input: &Path, more: &[&str]| {
        let index = dir.path().join("index");
        let mut args: Vec<Arg> = vec![&"build-geocode-index", &"-q", &input, &"-O", &"-o", &index];
        args.extend(more.iter().map(|option| option as Arg));
        run_ok(&args);
        let files = contents(&index).into_iter();
        files
            .filter(|(name, _)| name.extension() == Some("bin".as_ref()))
            .map(|(_, bytes)| bytes)
            .collect::<Vec<_>>()
    };
    let plain = written(dir.path(), "plain.osm.pbf", &[], &world, 10);
    let expected = build(&plain, &[]);
    for (turn, (name, stored)) in MIXTURES.into_iter().enumerate() {
        let objects = with_stored(&world, stored, Nodes::Needed);
        let input = written(dir.path(), "in.osm.pbf", PROMISES[turn % 3], &objects, 10);
        let index = ["auto", "external"][turn % 2];
        assert!(build(&input, &["-i", index]) == expected, "{name}");
    }
}

#[test]
fn a_feature_reader_looks_up_what_ways_lack() {
    let dir = tempfile::tempdir().unwrap();
    let world = plain_world();
    let features = |input: &Path| {
        let reader = FeatureReader::from_path(input).unwrap();
        let reader = reader.index_type(IndexType::External);
        let reader = reader.select(|_, tags| {
            let is_area = |(key, _): &(&str, &str)| ["building", "natural"].contains(key);
            if tags.iter().any(is_area) {
                Form::Area
            } else {
                Form::Line
            }
        });
        let mut found: Vec<(String, Geometry)> = Vec::new();
        let visited = reader.for_each(|feature| {
            found.push((feature.id.to_string(), feature.geometry));
            Ok(())
        });
        visited.unwrap();
        found
    };
    let plain = written(dir.path(), "plain.osm.pbf", &[], &world, 10);
    let expected = features(&plain);
    for (turn, (name, stored)) in MIXTURES.into_iter().enumerate() {
        let objects = with_stored(&world, stored, Nodes::Needed);
        let input = written(dir.path(), "in.osm.pbf", PROMISES[turn % 3], &objects, 10);
        assert!(features(&input) == expected, "{name}");
    }
}

/// The number of lines that a command exports.
fn lines(input: &Path, command: &[&str]) -> usize {
    let mut args: Vec<Arg> = command.iter().map(|word| word as Arg).collect();
    args.extend([&"-f" as Arg, &"text", &input]);
    let text = String::from_utf8(run_ok(&args).stdout).unwrap();
    text.matches("LINESTRING").count()
}

#[test]
fn under_the_second_name_the_index_none_looks_up_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let world = plain_world();
    let mixed = with_stored(&world, |id| either(id == 1), Nodes::All);
    let input = written(dir.path(), "in.osm.pbf", PROMISES[0], &mixed, 10);
    assert_eq!(lines(&input, &["export", "-i", "none"]), 20);
    assert_eq!(lines(&input, &["osmium", "export", "-i", "none"]), 1);
    // Closed ways are lines and areas.
    let found = lines(&input, &["osmium", "export", "-i", "sparse_mem_array"]);
    assert_eq!(found, 30);
}

#[test]
fn locations_that_are_joined_on_disk_are_found_in_every_part_of_a_large_blob() {
    let dir = tempfile::tempdir().unwrap();
    // Each of these ways has more than 2 MB, and parts of a blob have about 4 MB.
    let (mut objects, count) = (Vec::new(), 250_000);
    for (id, lat, lon) in [
        (1, 0, 0),
        (2, 900_000_000, 1_700_000_000),
        (3, 10, 20),
        (4, 30, 40),
    ] {
        objects.push(node(id, lat, lon, &[]));
    }
    let long: Vec<i64> = (0..count).map(|at| 1 + at % 2).collect();
    let places = [(0, 0), (90_000_000_000, 170_000_000_000)];
    for id in 1..=6 {
        objects.push(match id {
            3 | 6 => way(id, &[3, 4], &[("highway", "path")]),
            _ => Object {
                locations: (0..count as usize).map(|at| places[at % 2]).collect(),
                ..way(id, &long, &[("highway", "track")])
            },
        });
    }
    let input = written(dir.path(), "in.osm.pbf", PROMISES[0], &objects, 100);
    let more = ["--filter", "w/highway=path", "-i", "external"];
    let mut args: Vec<Arg> = vec![&"export", &"-f", &"text", &input];
    args.extend(more.iter().map(|option| option as Arg));
    let found = String::from_utf8(run_ok(&args).stdout).unwrap();
    let line = "LINESTRING(0.000002 0.000001,0.000004 0.000003)";
    let starts = found.lines().map(|found| found.starts_with(line));
    assert_eq!(starts.collect::<Vec<_>>(), [true, true], "{found}");
}
