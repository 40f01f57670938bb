//! The views of `inspect` other than the default one, and `tags-count`: compared with osmium and with known numbers.

use crate::common;
use crate::common::answers::{ask, ask_osmium, file_in_shape, file_of, history_of};
use crate::common::craft::Shape;
use crate::common::oracle::{osmium, real_file, real_files};
use crate::common::{Kind, Object, decode, in_turn, node, relation, run_fail, way, with_metadata};
use serde_json::{Value, json};
use std::path::Path;

/// The JSON report of `inspect`.
fn report(args: &[&str], path: &Path) -> Value {
    let mut all: Vec<common::Arg> = vec![&"inspect", &"--json"];
    all.extend(args.iter().map(|arg| arg as common::Arg));
    all.push(&path);
    let found = ask(&all);
    assert_eq!(found.status, 0, "{}", found.stderr);
    found.json()
}

/// The output of `inspect --get`; `None` if the exit status is 1.
fn get(key: &str, path: &Path) -> Option<String> {
    let found = ask(&[&"inspect", &"--get", &key, &path]);
    assert!(found.status < 2, "{key}: {}", found.stderr);
    assert_eq!(found.status == 1, found.stdout.is_empty(), "{key}");
    (found.status == 0).then(|| found.stdout.trim_end().to_owned())
}

fn has_mixed_blobs(path: &Path) -> bool {
    let blobs = decode::blocks(path);
    blobs.iter().any(|(kinds, _)| kinds.len() > 1)
}

/// Compares the smallest and the largest id per kind with those in a report of osmium.
fn assert_ids_at_the_edges(path: &Path, data: &Value) {
    for kind in ["nodes", "ways", "relations"] {
        for edge in ["minid", "maxid"] {
            let has_some = data["count"][kind] != 0;
            let id = has_some.then(|| data[edge][kind].to_string());
            let key = format!("data.{edge}.{kind}");
            assert_eq!(get(&key, path), id, "{key} {}", path.display());
        }
    }
}

#[test]
fn ids_at_the_edges_of_files_with_mixed_blobs_are_those_of_osmium() {
    let path = real_file("helsinki.osm.pbf");
    assert!(has_mixed_blobs(&path));
    if osmium() {
        let theirs = ask_osmium(&[&"fileinfo", &"-e", &"-j", &"--no-progress", &path]);
        assert_ids_at_the_edges(&path, &theirs.json()["data"]);
    }
}

#[test]
fn values_are_those_of_osmium() {
    if !osmium() {
        return;
    }
    for (turn, path) in real_files().into_iter().enumerate() {
        let theirs = ask_osmium(&[&"fileinfo", &"-e", &"-j", &"--no-progress", &path]);
        if theirs.status != 0 {
            eprintln!("osmium cannot read {}", path.display());
            continue;
        }
        let theirs = theirs.json();
        let data = &theirs["data"];
        let yes = |value: &Value| {
            value
                .as_bool()
                .map(|yes| if yes { "yes" } else { "no" }.to_owned())
        };
        // In short runs, a third of the keys has its turn with each file.
        let mut expected: Vec<(String, Option<String>)> = Vec::new();
        let mut check = |key: &str, value| expected.push((key.to_owned(), value));
        check("file.size", Some(theirs["file"]["size"].to_string()));
        check("data.objects_ordered", yes(&data["objects_ordered"]));
        if data["objects_ordered"] == true {
            check("data.multiple_versions", yes(&data["multiple_versions"]));
        }
        for kind in ["nodes", "ways", "relations"] {
            check(
                &format!("data.count.{kind}"),
                Some(data["count"][kind].to_string()),
            );
        }
        if !has_mixed_blobs(&path) {
            assert_ids_at_the_edges(&path, data);
        }
        for which in ["all_objects", "some_objects"] {
            for name in ["version", "timestamp", "changeset", "uid", "user"] {
                let theirs = yes(&data["metadata"][which][name]);
                check(&format!("metadata.{which}.{name}"), theirs);
            }
        }
        let header = &theirs["header"];
        check(
            "header.with_history",
            Some(header["with_history"].to_string()),
        );
        for name in [
            "generator",
            "osmosis_replication_base_url",
            "osmosis_replication_sequence_number",
            "osmosis_replication_timestamp",
            "sorting",
        ] {
            let value = header["option"][name].as_str().map(str::to_owned);
            check(&format!("header.option.{name}"), value);
        }
        let times: Vec<i64> = decode::objects(&path)
            .iter()
            .filter_map(|object| object.timestamp)
            .collect();
        // osmium also takes objects without timestamp into account.
        if data["metadata"]["all_objects"]["timestamp"] == true {
            for edge in ["first", "last"] {
                let theirs = data["timestamp"][edge].as_str().map(str::to_owned);
                check(&format!("data.timestamp.{edge}"), theirs);
            }
        } else if times.is_empty() {
            check("data.timestamp.first", None);
            check("data.timestamp.last", None);
        }
        for (key, value) in in_turn(turn, 3, expected) {
            assert_eq!(get(&key, &path), value, "{key} {}", path.display());
        }
        let boxed = |value: &Value| -> Vec<f64> {
            value
                .as_array()
                .unwrap()
                .iter()
                .map(|value| value.as_f64().unwrap())
                .collect()
        };
        let numbers = |text: &str| -> Vec<f64> {
            let text = text.trim_matches(['(', ')']);
            text.split(',')
                .map(|number| number.parse().unwrap())
                .collect()
        };
        if !theirs["header"]["with_history"].as_bool().unwrap() {
            assert_eq!(
                numbers(&get("data.bbox", &path).unwrap()),
                boxed(&data["bbox"])
            );
        }
        if let Some(first) = header["boxes"].get(0) {
            let ours = numbers(&get("header.boxes", &path).unwrap());
            // The box is in nanodegrees: pbfhogg rounds it outwards, osmium truncates it.
            let differences = ours.iter().zip(boxed(first)).map(|(a, b)| (a - b).abs());
            assert!(differences.into_iter().all(|by| by < 1.5e-7), "{ours:?}");
        }
        let extended = &report(&["-e"], &path)["extended"];
        assert_eq!(extended["objects"]["nodes"], data["count"]["nodes"]);
        assert_eq!(extended["with_timestamp"], times.len());
    }
}

#[test]
fn boxes_are_written_as_osmium_writes_them() {
    let path = real_file("monaco.osm.pbf");
    if osmium() {
        let args: [common::Arg; 5] = [&"fileinfo", &"-e", &"-g", &"data.bbox", &path];
        let theirs = ask_osmium(&args).stdout;
        assert_eq!(get("data.bbox", &path).as_deref(), Some(theirs.trim_end()));
    }
}

/// Two blobs of nodes, one of ways, one of relations, for which all reported numbers are known.
fn crafted() -> [Vec<Object>; 4] {
    let at = |id, lat, lon| with_metadata(node(id, lat, lon, &[]), 1, 1_000_000_000 + id, 1, "a");
    let mut fine = at(12, 0, 10);
    fine.lat_nano = 50;
    let members = [(Kind::Relation, 2, "self"), (Kind::Way, 1, "")];
    [
        vec![
            with_metadata(
                node(1, 100_000_000, 200_000_000, &[("a", "b"), ("c", "d")]),
                2,
                999,
                1,
                "a",
            ),
            at(2, 0, 0),
            at(7, -300_000_000, 400_000_000),
        ],
        vec![at(11, 910_000_000, 0), fine],
        vec![
            way(1, &[1, 2, 7], &[("highway", "path")]),
            way(2, &[], &[]),
            way(3, &[7], &[]),
        ],
        vec![
            relation(1, &[], &[]),
            relation(2, &members, &[("type", "x")]),
        ],
    ]
}

#[test]
fn the_views_give_known_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let lists = crafted();
    let blobs = lists.each_ref().map(|list| list.as_slice());
    let fine = Shape {
        granularity: 1,
        ..Shape::USUAL
    };
    let path = file_in_shape(dir.path(), "in.osm.pbf", &blobs, &fine);
    let all = [
        "-e",
        "--nodes",
        "--locations",
        "--anomalies",
        "--id-ranges",
        "--blocks",
    ];
    let found = report(&all, &path);
    let nodes = &found["node_statistics"];
    for (name, value) in [
        ("nodes", json!(5)),
        ("tagged", json!(1)),
        ("outside", json!(1)),
        ("at_zero", json!(1)),
        ("finer_than_e7", json!(1)),
        ("westernmost", json!(2)),
        ("southernmost", json!(7)),
        ("easternmost", json!(7)),
        ("northernmost", json!(1)),
        ("bbox", json!([0.0, -30.0, 40.0, 10.0])),
    ] {
        assert_eq!(nodes[name], value, "{name}: {nodes}");
    }
    let mean = &nodes["center"];
    let degrees = |value: &Value| (value.as_f64().unwrap() * 1e6).round() / 1e6;
    assert_eq!([degrees(&mean["lat"]), degrees(&mean["lon"])], [-5.0, 15.0]);
    let ways = json!({"form": "plain", "ways": 3, "located_ways": 0, "partly_located_ways": 0,
        "bare_ways": 2, "refs": 4, "located_refs": 0, "bare_refs": 4});
    assert_eq!(found["way_locations"], ways);
    let anomalies = found["anomalies"].as_object().unwrap();
    let anomalies: Vec<String> = anomalies
        .iter()
        .map(|(what, found)| {
            format!(
                "{what}: {} {} {}",
                found["count"], found["object"], found["blob"]
            )
        })
        .collect();
    let wanted = [
        "nodes at 0,0: 1 \"n2\" 1",
        "nodes outside of the world: 1 \"n11\" 2",
        "relations that are members of themselves: 1 \"r2\" 4",
        "relations without members: 1 \"r1\" 4",
        "ways with one node: 1 \"w3\" 3",
        "ways without nodes: 1 \"w2\" 3",
    ];
    assert_eq!(anomalies, wanted);
    let extended = &found["extended"];
    for (name, value) in [
        ("first_timestamp", json!("1970-01-01T00:16:39Z")),
        ("last_timestamp", json!("2001-09-09T01:46:52Z")),
        ("with_version", json!(5)),
        ("with_user", json!(5)),
        ("deleted", json!(0)),
        ("further_versions", json!(0)),
        ("tagged", json!({"nodes": 1, "ways": 1, "relations": 1})),
        ("tags", json!({"nodes": 2, "ways": 1, "relations": 1})),
        ("refs", json!(4)),
        ("most_refs", json!(3)),
        ("members", json!(2)),
        ("most_members", json!(2)),
    ] {
        assert_eq!(extended[name], value, "{name}");
    }
    let range = json!({"kind": "node", "min_id": 1, "max_id": 12, "objects": 5, "span": 12,
        "blobs": 2, "overlapping_blobs": 0, "widest_blob": 7});
    assert_eq!(found["id_ranges"][0], range);
    let blobs = found["blob_list"].as_array().unwrap();
    let counts: Vec<_> = blobs
        .iter()
        .map(|blob| blob["objects"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [3, 2, 3, 2]);
    let frames = decode::frames(&path);
    for (blob, frame) in blobs.iter().zip(&frames[1..]) {
        assert_eq!(blob["offset"], frame.offset);
        assert_eq!(blob["bytes"], frame.frame_len);
        assert_eq!(blob["payload_bytes"], frame.payload.len());
        let bbox = blob["bbox"].as_array();
        assert_eq!(bbox.is_some(), blob["kinds"] == "nodes");
        assert!(bbox.is_none_or(|edges| edges[0].as_f64() <= edges[2].as_f64()));
        assert!(blob["flags"].is_array());
    }
    assert_eq!(
        report(&["--blocks=3"], &path)["blob_list"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    // With an index the numbers are the same, and the text report contains each view.
    let indexed = dir.path().join("indexed.osm.pbf");
    common::run_ok(&[&"cat", &path, &"-o", &indexed]);
    let again = report(&all, &indexed);
    for view in [
        "node_statistics",
        "way_locations",
        "anomalies",
        "extended",
        "id_ranges",
    ] {
        assert_eq!(again[view], found[view], "{view}");
    }
    let mut args: Vec<common::Arg> = vec![&"inspect", &path];
    args.extend(all.iter().map(|arg| arg as common::Arg));
    let text = ask(&args).stdout;
    for part in [
        "ways with one node (first w3 in blob 3)",
        "southernmost",
        "Locations in ways",
        "widest blob",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn locations_in_ways_are_counted_by_their_values() {
    let dir = tempfile::tempdir().unwrap();
    let located = Object {
        locations: vec![(100, 200), (300, 400)],
        ..way(1, &[1, 2], &[])
    };
    // Undefined, beyond the earth, and known.
    let undefined = i64::from(i32::MAX) * 100;
    let partly = Object {
        locations: vec![(undefined, undefined), (95_000_000_000, 0), (500, 600)],
        ..way(4, &[1, 2, 3], &[])
    };
    let unknown = Object {
        locations: vec![(undefined, undefined)],
        ..way(5, &[1], &[])
    };
    let ways = [
        located,
        way(2, &[3], &[]),
        way(3, &[], &[]),
        partly,
        unknown,
    ];
    let path = file_of(dir.path(), "in.osm.pbf", &[&ways[..]]);
    let ways = json!({"form": "mixed", "ways": 5, "located_ways": 1, "partly_located_ways": 1,
        "bare_ways": 2, "refs": 7, "located_refs": 3, "bare_refs": 4});
    assert_eq!(report(&["--locations"], &path)["way_locations"], ways);
    let text = ask(&[&"inspect", &"--locations", &path]).stdout;
    for part in [
        "  form                    mixed",
        "  location known          3 (42.9 %)",
        "  location unknown        4 (57.1 %)",
        "not checked",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn objects_are_shown_as_they_stand_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let lists = crafted();
    let blobs = lists.each_ref().map(|list| list.as_slice());
    let fine = Shape {
        granularity: 1,
        ..Shape::USUAL
    };
    let path = file_in_shape(dir.path(), "in.osm.pbf", &blobs, &fine);
    let found = ask(&[&"show", &"--json", &path, &"n1", &"w1", &"r2", &"w99"]);
    assert_eq!((found.status, &*found.stderr), (1, "not found: w99\n"));
    let json = found.json();
    let objects = &json["objects"];
    assert_eq!(json["missing"], json!(["w99"]));
    assert_eq!(objects[0]["tags"], json!([["a", "b"], ["c", "d"]]));
    assert_eq!(objects[0]["location"], json!({"lat": 10.0, "lon": 20.0}));
    assert_eq!(
        (&objects[0]["version"], &objects[0]["changeset"]),
        (&json!(2), &json!(2001))
    );
    assert_eq!(objects[0]["timestamp"], "1970-01-01T00:16:39Z");
    assert_eq!(objects[1]["refs"], json!([1, 2, 7]));
    assert_eq!(
        objects[2]["members"][0],
        json!({"kind": "relation", "id": 2, "role": "self"})
    );
    let text = ask(&[&"inspect", &"--show", &"w3,n12", &path]);
    assert_eq!(text.status, 0);
    assert!(
        text.stdout.contains("0.00000005 0.000001 (latitude"),
        "{}",
        text.stdout
    );
    assert!(
        text.stdout.contains("way 3\n  nodes (1)\n    n7\n"),
        "{}",
        text.stdout
    );
    run_fail(&[&"show", &path, &"x7"]);
}

#[test]
fn versions_are_counted_within_blobs_and_from_one_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let at = |id: i64, version: i64| with_metadata(node(id, 1, 1, &[]), version, 1000, 1, "a");
    let gone = Object {
        visible: false,
        ..at(2, 3)
    };
    let list = [at(1, 1), at(1, 2), at(2, 1), at(2, 2), gone, at(3, 1)];
    let path = history_of(
        dir.path(),
        "in.osh.pbf",
        &[&list[..3], &list[3..4], &list[4..]],
    );
    let extended = &report(&["-e"], &path)["extended"];
    assert_eq!(
        (&extended["further_versions"], &extended["deleted"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(get("data.multiple_versions", &path).as_deref(), Some("yes"));
    // Statistics of coordinates count objects.
    assert_eq!(report(&["--nodes"], &path)["node_statistics"]["nodes"], 3);
    let shown = ask(&[&"show", &"--json", &path, &"n2"]).json();
    let shown: Vec<_> = shown["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| object["visible"].clone())
        .collect();
    assert_eq!(shown, [true, true, false]);
}

#[test]
fn an_object_with_several_versions_counts_once_in_statistics_of_nodes_and_anomalies() {
    let dir = tempfile::tempdir().unwrap();
    let outside = |id: i64, version: i64, lon_e7: i64| {
        let tags: &[(&str, &str)] = if version == 2 { &[("a", "b")] } else { &[] };
        with_metadata(node(id, 1, lon_e7, tags), version, 1000, 1, "a")
    };
    let gone = Object {
        visible: false,
        ..outside(3, 2, 2_000_000_000)
    };
    // Node 1 moves into the world with its third version, in the next blob.
    let list = [
        outside(1, 1, 1_900_000_000),
        outside(1, 2, 2_000_000_000),
        outside(1, 3, 10),
        outside(2, 1, 2_000_000_000),
        outside(2, 2, 2_100_000_000),
        outside(3, 1, 20),
        gone,
    ];
    let path = history_of(
        dir.path(),
        "in.osh.pbf",
        &[&list[..1], &list[1..4], &list[4..]],
    );
    let found = report(&["--nodes", "--anomalies"], &path);
    let nodes = &found["node_statistics"];
    for (name, count) in [("nodes", 3), ("tagged", 1), ("outside", 1)] {
        assert_eq!(nodes[name], count, "{name}: {nodes}");
    }
    assert_eq!(nodes["easternmost"], 3);
    let anomaly = &found["anomalies"]["nodes outside of the world"];
    assert_eq!(
        (&anomaly["count"], &anomaly["object"]),
        (&json!(2), &json!("n1"))
    );
    // In a history, ids occur again as a matter of course.
    assert_eq!(found["anomalies"].as_object().unwrap().len(), 1, "{found}");
}

#[test]
fn empty_and_extreme_files_have_every_view() {
    let dir = tempfile::tempdir().unwrap();
    let all = [
        "-e",
        "--nodes",
        "--locations",
        "--anomalies",
        "--id-ranges",
        "--blocks",
    ];
    let empty = file_of(dir.path(), "empty.osm.pbf", &[]);
    let found = report(&all, &empty);
    assert_eq!(
        (&found["objects"], &found["anomalies"]),
        (&json!(0), &json!({}))
    );
    assert_eq!(
        (&found["id_ranges"], &found["blob_list"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(get("data.bbox", &empty), None);
    assert_eq!(get("data.minid.nodes", &empty), None);
    assert_eq!(ask(&[&"tags-count", &empty]).stdout, "");
    assert_eq!(ask(&[&"show", &empty, &"n1"]).status, 1);
    run_fail(&[&"inspect", &"--get", &"no.such.key", &empty]);
    let relations = [relation(5, &[(Kind::Node, 1, "")], &[("a", "b")])];
    let relations = file_of(dir.path(), "relations.osm.pbf", &[&relations]);
    let found = report(&all, &relations);
    assert_eq!(found["node_statistics"]["bbox"], Value::Null);
    assert_eq!(found["extended"]["members"], 1);
    assert_eq!(
        get("data.maxid.relations", &relations).as_deref(),
        Some("5")
    );
    let ids = [0, -1, i64::MIN + 1, i64::MIN, 1, 1 << 40, i64::MAX];
    let nodes = ids.map(|id| node(id, 1, 2, &[]));
    let path = file_of(dir.path(), "extreme.osm.pbf", &[&nodes]);
    let found = report(&all, &path);
    assert_eq!(found["anomalies"]["ids that are not positive"]["count"], 4);
    assert_eq!(found["id_ranges"][0]["max_id"], i64::MAX);
    assert_eq!(found["sorted"], true);
    for id in ids {
        let name = format!("n{id}");
        let shown = ask(&[&"show", &"--json", &path, &name]);
        assert_eq!(
            (shown.status, &shown.json()["objects"][0]["id"]),
            (0, &json!(id))
        );
    }
}

#[test]
fn the_ids_in_mixed_blobs_count_too() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = [node(1, 10, 10, &[]), way(3, &[1], &[])];
    let path = file_of(dir.path(), "in.osm.pbf", &[&mixed, &[way(7, &[1], &[])]]);
    assert_eq!(get("data.count.ways", &path).as_deref(), Some("2"));
    assert_eq!(get("data.maxid.ways", &path).as_deref(), Some("7"));
    assert_eq!(get("data.minid.ways", &path).as_deref(), Some("3"));
    assert_eq!(get("data.maxid.nodes", &path).as_deref(), Some("1"));
}

#[test]
fn the_compression_of_blobs_is_found_and_its_level_guessed() {
    let dir = tempfile::tempdir().unwrap();
    let input = real_file("monaco.osm.pbf");
    let output = dir.path().join("out.osm.pbf");
    for (compression, kind, levels) in [
        ("none", "none", None),
        ("lz4", "lz4", None),
        ("zlib:1", "zlib", Some((1, 2))),
        ("zlib:6", "zlib", Some((6, 6))),
        ("zlib:9", "zlib", Some((9, 9))),
        ("zlib:12", "zlib", Some((12, 12))),
        ("zstd:1", "zstd", Some((1, 1))),
        ("zstd:9", "zstd", Some((9, 9))),
        ("zstd:19", "zstd", Some((12, 22))),
    ] {
        let args: [common::Arg; 4] = [&"repack", &"--overwrite", &"--compression", &compression];
        common::run_ok(&[&args[..], &[&"-o", &output, &input]].concat());
        let found = &report(&[], &output)["compression"];
        let expected = levels.map(|(min, max)| json!({"min": min, "max": max}));
        let mut blobs = 0;
        // Copied blobs, and the blob that has lost its last object, may have other flags.
        for found in found["kinds"].as_array().unwrap() {
            assert_eq!(found["kind"], kind, "{compression}");
            assert_eq!(found["level"], json!(expected), "{compression}");
            blobs += found["blobs"].as_u64().unwrap();
        }
        assert_eq!(found["sampled_blobs"], blobs, "{compression}");
    }
    // By a program that does not compress with libdeflate.
    let found = &report(&[], &input)["compression"]["kinds"][0];
    assert_eq!(found["level"], json!({"min": 6, "max": 6}));
}
