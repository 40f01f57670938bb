//! `add-locations-to-ways`, compared with a simple implementation, and with osmium.

use crate::common;
use crate::common::answers::{ask, ask_osmium, file_in_shape, file_of, history_of, in_order};
use crate::common::craft::Shape;
use crate::common::extracts::random_world;
use crate::common::oracle::{assert_same_opl, opl, osmium, real_files};
use crate::common::{
    Arg, Kind, Object, decode, in_turn, is_long, node, relation, run_fail, run_ok, way,
};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The stored coordinates of an undefined location, in nanodegrees.
const NOWHERE: (i64, i64) = (i32::MAX as i64 * 100, i32::MAX as i64 * 100);

/// All types of index, with options.
const TYPES: &[&[&str]] = &[
    &["-i", "dense"],
    &["-i", "sparse"],
    &["-i", "external"],
    &["-i", "external", "--ranges", "2"],
    &["-i", "external", "--ranges", "50"],
    &[],
];

/// The objects with the locations of nodes in their ways.
pub fn located(objects: &[Object], keep_untagged: bool) -> Vec<Object> {
    let nodes = objects.iter().filter(|object| object.kind == Kind::Node);
    let places: HashMap<i64, (i64, i64)> = nodes
        .map(|node| {
            (
                node.id,
                (node.lat_nano / 100 * 100, node.lon_nano / 100 * 100),
            )
        })
        .collect();
    let members: HashSet<i64> = objects
        .iter()
        .flat_map(|object| &object.members)
        .filter(|(kind, ..)| *kind == Kind::Node)
        .map(|(_, id, _)| *id)
        .collect();
    let stays = |object: &&Object| {
        object.kind != Kind::Node
            || keep_untagged
            || !object.tags.is_empty()
            || members.contains(&object.id)
    };
    let with_places = |object: &Object| {
        let place = |id: &i64| places.get(id).copied().unwrap_or(NOWHERE);
        Object {
            locations: object.refs.iter().map(place).collect(),
            ..object.clone()
        }
    };
    objects.iter().filter(stays).map(with_places).collect()
}

/// The output of the command, which must be the same for all types of index.
fn outcome(input: &Path, args: &[&str]) -> Vec<Object> {
    let output = input.with_file_name("located.osm.pbf");
    let mut first: Option<Vec<u8>> = None;
    for (turn, index) in TYPES.iter().enumerate() {
        let jobs = ["1", "3"][turn % 2];
        let mut all: Vec<Arg> = vec![&"add-locations-to-ways", &"-O", &"-q", &"-j", &jobs, &input];
        all.extend(index.iter().chain(args).map(|arg| arg as Arg));
        all.extend([&"-o" as Arg, &output]);
        run_ok(&all);
        let bytes = std::fs::read(&output).unwrap();
        let is_same = first.as_ref().is_none_or(|first| *first == bytes);
        assert!(is_same, "{index:?} {args:?}: other bytes");
        first = Some(bytes);
    }
    let header = decode::header(&output);
    assert!(header.optional.contains(&"LocationsOnWays".to_owned()));
    let answer = ask(&[&"check", &"--ids", &"-q", &output]);
    assert!(answer.status < 2, "{answer:?}");
    decode::objects(&output)
}

fn assert_located(input: &Path, objects: &[Object], what: &str) {
    for (args, keep_untagged) in [(&[][..], false), (&["-n"], true)] {
        let (found, expected) = (outcome(input, args), located(objects, keep_untagged));
        assert_eq!(found.len(), expected.len(), "{what} {args:?}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{what} {args:?}");
        }
    }
}

/// A random world with extreme ids, in which every fourth node has a tag.
fn world(seed: u64) -> Vec<Object> {
    let mut objects = random_world(seed, 150, false);
    for object in &mut objects {
        if object.kind == Kind::Node && object.id % 4 == 0 {
            object.tags.push(("name".into(), object.id.to_string()));
        }
    }
    objects.extend([
        node(0, 1, -1, &[]),
        node(-1, -10, 10, &[("negative", "yes")]),
        node(-20, 900_000_000, -1_800_000_000, &[]),
        node(1 << 40, 0, 0, &[]),
        node(i64::MAX, 5, 6, &[]),
        way(-5, &[-1, -20, 0, 1 << 40, i64::MAX, i64::MIN, -1], &[]),
        way(1 << 41, &[], &[("nodes", "none")]),
        relation(-7, &[(Kind::Node, -20, "label")], &[]),
    ]);
    in_order(objects)
}

#[test]
fn every_index_type_gives_the_same_and_what_is_right() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..4 {
        let objects = world(seed);
        for size in in_turn(seed as usize, 3, [7, 60, 10_000]) {
            let blobs: Vec<&[Object]> = objects
                .chunk_by(|one, next| one.kind == next.kind)
                .flat_map(|kind| kind.chunks(size))
                .collect();
            let input = file_of(dir.path(), "in.osm.pbf", &blobs);
            let indexed = dir.path().join("indexed.osm.pbf");
            run_ok(&[&"cat", &"-O", &input, &"-o", &indexed]);
            for (file, what) in in_turn(
                seed as usize,
                2,
                [(&input, "in order"), (&indexed, "indexed")],
            ) {
                assert_located(file, &objects, what);
            }
        }
    }
}

#[test]
fn blobs_of_several_kinds_and_nodes_behind_their_ways_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..if is_long() { 3 } else { 1 } {
        let mut objects = world(seed);
        let blobs: Vec<&[Object]> = objects.chunks(41).collect();
        let input = file_of(dir.path(), "mixed.osm.pbf", &blobs);
        assert_located(&input, &objects, "mixed blobs");
        objects.reverse();
        let blobs: Vec<&[Object]> = objects.chunks(23).collect();
        let input = file_of(dir.path(), "backwards.osm.pbf", &blobs);
        assert_located(&input, &objects, "backwards");
        // Blobs of one kind, none of them in canonical order. All nodes first, but not in order: their blobs overlap.
        let (mut first, ways): (Vec<Object>, Vec<Object>) = objects
            .iter()
            .cloned()
            .partition(|object| object.kind == Kind::Node);
        first.extend(ways);
        let blobs: Vec<&[Object]> = first
            .chunk_by(|one, next| one.kind == next.kind)
            .flat_map(|kind| kind.chunks(3))
            .collect();
        let input = file_of(dir.path(), "nodes.osm.pbf", &blobs);
        assert_located(&input, &first, "nodes first, not in order");
        let blobs: Vec<&[Object]> = objects
            .chunk_by(|one, next| one.kind == next.kind)
            .flat_map(|kind| kind.chunks(19))
            .collect();
        let input = file_of(dir.path(), "kinds.osm.pbf", &blobs);
        assert_located(&input, &objects, "blobs of one kind");
    }
}

#[test]
fn places_are_the_same_in_whatever_units_a_block_measures() {
    let dir = tempfile::tempdir().unwrap();
    let objects = [
        node(1, 10, 20, &[]),
        node(2, -30, 70, &[("a", "b")]),
        node(3, 0, 0, &[]),
        way(1, &[1, 2, 3, 4], &[]),
        way(2, &[3, 3], &[("c", "d")]),
    ];
    for (granularity, offset) in [(100, 0), (1000, 0), (10, 70), (1, 1), (1000, 5_000)] {
        let shape = Shape {
            granularity,
            lat_offset: offset,
            lon_offset: -offset,
            ..Shape::USUAL
        };
        let moved: Vec<Object> = objects
            .iter()
            .cloned()
            .map(|mut object| {
                if object.kind == Kind::Node {
                    object.lat_nano += offset;
                    object.lon_nano -= offset;
                }
                object
            })
            .collect();
        let blobs = [&moved[..3], &moved[3..]];
        let input = file_in_shape(dir.path(), "units.osm.pbf", &blobs, &shape);
        assert_located(&input, &moved, "units");
    }
    // The unit of a block is too coarse for the location, and cannot change, since the block also has nodes.
    let shape = Shape {
        granularity: 1000,
        ..Shape::USUAL
    };
    let fine = file_of(dir.path(), "fine.osm.pbf", &[&[node(1, 11, 13, &[])]]);
    let mixed = [node(2, 10, 20, &[]), way(1, &[1, 2], &[])];
    let coarse = file_in_shape(dir.path(), "coarse.osm.pbf", &[&mixed], &shape);
    let both = dir.path().join("both.osm.pbf");
    let behind = file_of(dir.path(), "behind.osm.pbf", &[&[way(2, &[1], &[])]]);
    run_ok(&[&"cat", &fine, &coarse, &behind, &"-o", &both]);
    let out = dir.path().join("out.osm.pbf");
    let message = run_fail(&[&"add-locations-to-ways", &"-q", &both, &"-o", &out]);
    assert!(message.contains("units of 1000"), "{message}");
    assert!(!out.exists());
}

#[test]
fn places_that_ways_had_before_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let located_way = Object {
        locations: vec![(100, 200), (300, 400)],
        ..way(1, &[1, 2], &[("a", "b")])
    };
    let objects = vec![node(1, 5, 6, &[]), node(2, 7, 8, &[]), located_way];
    let input = file_of(dir.path(), "in.osm.pbf", &[&objects[..2], &objects[2..]]);
    assert_located(&input, &objects, "located before");
}

#[test]
fn every_real_file_becomes_what_osmium_makes_of_it() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // In short runs, every second one.
    for (turn, file) in in_turn(0, 2, real_files()).enumerate() {
        // osmium replaces the stored locations of absent nodes by unknown ones.
        let loses_locations = file.ends_with("loc_on_ways.osm.pbf");
        if file.to_string_lossy().ends_with(".osh.pbf") || loses_locations {
            continue;
        }
        // osmium requires sorted nodes.
        let sorted = dir.path().join("sorted.osm.pbf");
        run_ok(&[&"sort", &"-O", &file, &"-o", &sorted]);
        for n in in_turn(turn, 2, ["--keep-member-nodes", "-n"]) {
            let theirs = dir.path().join("theirs.osm.pbf");
            let args: [Arg; 7] = [
                &"add-locations-to-ways",
                &"--ignore-missing-nodes",
                &n,
                &sorted,
                &"-O",
                &"-o",
                &theirs,
            ];
            assert_eq!(ask_osmium(&args).status, 0, "{}", file.display());
            let mut all = Vec::new();
            for index in ["sparse", "dense", "external"] {
                let ours = dir.path().join("ours.osm.pbf");
                // pbfhogg accepts the flags of osmium.
                run_ok(&[
                    &"add-locations-to-ways",
                    &"--ignore-missing-nodes",
                    &n,
                    &"-q",
                    &"-O",
                    &"-i",
                    &index,
                    &"--ranges",
                    &"3",
                    &sorted,
                    &"-o",
                    &ours,
                ]);
                if all.is_empty() {
                    assert_same_opl(&opl(&ours), &opl(&theirs));
                }
                all.push(std::fs::read(&ours).unwrap());
            }
            assert!(
                all.iter().all(|bytes| *bytes == all[0]),
                "{}",
                file.display()
            );
        }
    }
}

#[test]
fn missing_nodes_are_counted_and_with_strict_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let objects = [
        node(1, 0, 0, &[]),
        way(7, &[1, 1], &[]),
        way(8, &[1, 9, 10, 9], &[]),
    ];
    let input = file_of(dir.path(), "in.osm.pbf", &[&objects[..1], &objects[1..]]);
    let out = dir.path().join("out.osm.pbf");
    let run = run_ok(&[&"add-locations-to-ways", &"--json", &input, &"-o", &out]);
    let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(summary["ways"], 2);
    assert_eq!(summary["references"], 6);
    assert_eq!(summary["missing_references"], 3);
    assert_eq!(summary["missing_nodes"], 2);
    let warning = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(warning.contains("3 references to 2 nodes"), "{warning}");
    let strict = dir.path().join("strict.osm.pbf");
    for index in ["dense", "sparse", "external"] {
        let message = run_fail(&[
            &"add-locations-to-ways",
            &"--strict",
            &"-q",
            &"-i",
            &index,
            &input,
            &"-o",
            &strict,
        ]);
        assert!(message.contains("way 8 refers to node 9"), "{message}");
        assert!(message.contains("without --strict"), "{message}");
        assert!(!message.contains("repair"), "{message}");
        assert!(!strict.exists());
    }
    // Under the second name, missing nodes are an error unless another option accepts them.
    let run = |more: &[&str]| {
        let mut command = common::pbfhogg();
        command.args(["osmium", "add-locations-to-ways", "-O", "-o"]);
        command
            .arg(&strict)
            .arg(&input)
            .args(more)
            .output()
            .unwrap()
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("--ignore-missing-nodes"), "{message}");
    assert!(!message.contains("--strict"), "{message}");
    assert!(run(&["--ignore-missing-nodes"]).status.success());
    let ways: Vec<Object> = decode::objects(&out);
    assert_eq!(ways[1].locations, [(0, 0), NOWHERE, NOWHERE, NOWHERE]);
}

#[test]
fn a_join_says_what_it_takes_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let input = common::world(dir.path(), "60000");
    let out = dir.path().join("out.osm.pbf");
    let run = run_ok(&[
        &"add-locations-to-ways",
        &"-i",
        &"external",
        &"--ranges",
        &"5",
        &"--temp-dir",
        &scratch,
        &"--json",
        &"-v",
        &input,
        &"-o",
        &out,
    ]);
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        told.contains("7 ranges of ids: temporary files of about"),
        "{told}"
    );
    let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(summary["index_type"], "external");
    assert_eq!(summary["scratch"]["partitions"], 7);
    let share = summary["scratch"]["bytes_per_reference"].as_f64().unwrap();
    assert!(share > 0.5 && share < 12.0, "{share}");
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
}

#[test]
fn too_little_memory_and_no_place_for_temporary_files_are_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let input = common::world(dir.path(), "60000");
    let out = dir.path().join("out.osm.pbf");
    let fail = |args: &[&str]| {
        let mut all: Vec<Arg> = vec![&"add-locations-to-ways", &"-q", &input, &"-o", &out];
        all.extend(args.iter().map(|arg| arg as Arg));
        let message = run_fail(&all);
        assert!(!out.exists());
        message
    };
    let message = fail(&["-i", "sparse", "--max-memory", "1M"]);
    assert!(message.contains("--index-type external"), "{message}");
    let message = fail(&["-i", "external", "--max-memory", "1M"]);
    assert!(message.contains("at least"), "{message}");
    let message = fail(&["-i", "external", "--temp-dir", "/nowhere"]);
    assert!(message.contains("/nowhere"), "{message}");
    // Ids so far apart that an array indexed by id would be nearly empty.
    let far = [
        node(1, 1, 1, &[]),
        node(1 << 50, 2, 2, &[]),
        way(1, &[1, 1 << 50], &[]),
    ];
    let far_file = file_of(dir.path(), "far.osm.pbf", &[&far[..2], &far[2..]]);
    assert_eq!(outcome_of(&far_file, "sparse"), located(&far, false));
    assert_eq!(outcome_of(&far_file, "auto"), located(&far, false));
    let answer = ask(&[
        &"add-locations-to-ways",
        &input,
        &"-i",
        &"flux",
        &"-o",
        &out,
    ]);
    let is_clear = answer.stderr.contains("auto, dense, sparse or external");
    assert!(answer.status == 2 && is_clear, "{answer:?}");
}

fn outcome_of(input: &Path, index: &str) -> Vec<Object> {
    let output = input.with_file_name("one.osm.pbf");
    run_ok(&[
        &"add-locations-to-ways",
        &"-O",
        &"-q",
        &"-i",
        &index,
        &input,
        &"-o",
        &output,
    ]);
    decode::objects(&output)
}

#[test]
fn a_history_is_refused_and_text_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.osm.pbf");
    let history = history_of(
        dir.path(),
        "in.osh.pbf",
        &[&[node(1, 1, 1, &[]), node(1, 2, 2, &[])]],
    );
    let message = run_fail(&[&"add-locations-to-ways", &history, &"-o", &out]);
    assert!(
        message.contains("history") && message.contains("time-filter"),
        "{message}"
    );
    let text = dir.path().join("in.opl");
    std::fs::write(&text, "n1 x1.5 y2.5\nn2 Ta=b x0 y0\nw1 Nn1,n2,n3\n").unwrap();
    run_ok(&[&"add-locations-to-ways", &"-q", &text, &"-o", &out]);
    let found = decode::objects(&out);
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[1].locations,
        [(2_500_000_000, 1_500_000_000), (0, 0), NOWHERE]
    );
}

#[test]
fn an_index_that_lies_about_nodes_is_found_out() {
    let dir = tempfile::tempdir().unwrap();
    let file = lying_index(dir.path());
    let out = dir.path().join("out.osm.pbf");
    for index in TYPES {
        let mut args: Vec<Arg> = vec![&"add-locations-to-ways", &"-q", &file, &"-o", &out];
        args.extend(index.iter().map(|arg| arg as Arg));
        let message = run_fail(&args);
        assert!(message.contains("index"), "{message}");
    }
}

/// Writes a file with a per-blob index that claims other node ids.
fn lying_index(dir: &Path) -> PathBuf {
    use crate::common::craft::{block, frame, frame_with_index, header_payload, raw_blob};
    let nodes = block(&[node(1, 1, 1, &[]), node(900, 2, 2, &[])], &Shape::USUAL);
    let ways = block(&[way(1, &[1, 900], &[])], &Shape::USUAL);
    let mut claim = vec![2u8, 0];
    claim.extend(1i64.to_le_bytes());
    claim.extend(2i64.to_le_bytes());
    claim.extend(2u64.to_le_bytes());
    claim.extend([0; 16]);
    let header = header_payload(&["OsmSchema-V0.6", "DenseNodes"], &[]);
    let mut bytes = frame("OSMHeader", &raw_blob(&header));
    bytes.extend(frame_with_index("OSMData", &claim, &raw_blob(&nodes)));
    bytes.extend(frame("OSMData", &raw_blob(&ways)));
    let path = dir.join("lying.osm.pbf");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_large_blob_of_ways_is_not_overtaken_by_many_small_ones() {
    let dir = tempfile::tempdir().unwrap();
    let nodes: Vec<Object> = (1..=30_000)
        .map(|id| {
            node(
                id,
                id * 7919 % 900_000_000,
                id * 104_729 % 1_800_000_000,
                &[],
            )
        })
        .collect();
    let spread = |way: i64| (0..2000).map(move |at| 1 + (way * 7 + at * 12_347) % 30_000);
    let large: Vec<Object> = (1..=700)
        .map(|id| way(id, &spread(id).collect::<Vec<_>>(), &[]))
        .collect();
    let small: Vec<Object> = (701..=2700).map(|id| way(id, &[id], &[])).collect();
    let mut blobs: Vec<&[Object]> = nodes.chunks(8000).collect();
    blobs.push(&large);
    blobs.extend(small.chunks(1));
    let input = file_of(dir.path(), "in.osm.pbf", &blobs);
    let outputs = ["sparse", "external"].map(|index| {
        let output = dir.path().join(format!("{index}.osm.pbf"));
        run_ok(&[
            &"add-locations-to-ways",
            &"-q",
            &"-j",
            &"3",
            &"-i",
            &index,
            &input,
            &"-o",
            &output,
        ]);
        std::fs::read(output).unwrap()
    });
    assert!(outputs[0] == outputs[1]);
}

#[test]
fn nodes_in_any_order_give_their_locations_under_both_names() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("in.opl");
    // Editors write new objects, which have negative ids, behind the others.
    for order in [
        ["3", "7", "-1", "-2"],
        ["-2", "7", "-1", "3"],
        ["7", "3", "-2", "-1"],
    ] {
        let nodes = order.map(|id| format!("n{id} v1 x{} y1\n", id.trim_start_matches('-')));
        std::fs::write(
            &input,
            nodes.concat() + "w5 v1 Nn3,n-1,n-2,n7\nw-4 v1 Nn-1,n3\n",
        )
        .unwrap();
        for name in [&[][..], &["osmium"]] {
            let mut args: Vec<Arg> = name.iter().map(|name| name as Arg).collect();
            args.extend([&"add-locations-to-ways" as Arg, &"-f", &"opl", &input]);
            let text = String::from_utf8(run_ok(&args).stdout).unwrap();
            let mut ways = text.lines().filter(|line| line.starts_with('w'));
            assert!(
                ways.any(|way| way.ends_with("Nn3x3y1,n-1x1y1,n-2x2y1,n7x7y1")),
                "{text}"
            );
            let mut ways = text.lines().filter(|line| line.starts_with('w'));
            assert!(ways.any(|way| way.ends_with("Nn-1x1y1,n3x3y1")), "{text}");
        }
    }
}
