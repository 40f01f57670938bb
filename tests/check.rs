//! `check` of awkward files. `second_name/commands.txt` has it on real files.

use crate::common;
use crate::common::answers::{ask, file_of};
use crate::common::craft::{self, Shape};
use crate::common::{Arg, Kind, Object, node, pbfhogg, relation, way, with_metadata};
use std::path::{Path, PathBuf};

/// Runs `check` and returns its exit status and its JSON report.
fn check(args: &[&str], input: &Path) -> (i32, serde_json::Value) {
    let output = pbfhogg()
        .arg("check")
        .args(args)
        .arg("--json")
        .arg(input)
        .output()
        .unwrap();
    let json = serde_json::from_slice(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    (
        output.status.code().unwrap(),
        json.unwrap_or_else(|error| panic!("{error}: {stderr}")),
    )
}

fn file(dir: &Path, blocks: &[&[Object]]) -> PathBuf {
    let path = dir.join("crafted.osm.pbf");
    let blocks: Vec<Vec<u8>> = blocks
        .iter()
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    std::fs::write(&path, craft::plain_file(&blocks)).unwrap();
    path
}

#[test]
fn ids_at_the_ends_of_their_range_are_ids_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let ids = [0, -1, i64::MIN + 1, i64::MIN, 1, 1 << 40, i64::MAX];
    let nodes: Vec<Object> = ids.iter().map(|&id| node(id, 1, 2, &[])).collect();
    let ways = [way(i64::MIN, &ids, &[]), way(i64::MAX, &[2, -2], &[])];
    let path = file(dir.path(), &[&nodes, &ways]);
    let (status, found) = check(&["--ids", "--full", "--refs"], &path);
    assert_eq!(status, 1);
    assert_eq!(found["nodes"], ids.len());
    assert_eq!(found["out_of_order"], 0);
    assert_eq!(found["duplicates"], 0);
    assert_eq!(found["missing"]["nodes_in_ways"], 2);
    assert_eq!(found["listed_refs"][1]["id"], -2);
}

#[test]
fn ids_out_of_order_and_twice_are_found_within_and_between_blobs() {
    let dir = tempfile::tempdir().unwrap();
    let at = |id: i64| node(id, 1, 1, &[]);
    let path = file(
        dir.path(),
        &[
            &[at(1), at(3), at(3), at(2)],
            &[at(2), at(9)],
            &[at(4)],
            &[way(1, &[], &[])],
            &[at(1)],
        ],
    );
    let (status, found) = check(&["--ids"], &path);
    assert_eq!(status, 1);
    // Out of order: 2 after 3, 4 after 9, the node after the way. Duplicates in a row: 3 and 2.
    assert_eq!(found["out_of_order"], 3, "{found}");
    assert_eq!(
        (&found["duplicates"], &found["duplicates_in_a_row"]),
        (&serde_json::Value::Null, &2.into()),
        "others are not looked for: {found}"
    );
    let (_, full) = check(&["--full"], &path);
    assert_eq!(full["out_of_order"], 3);
    assert_eq!(full["duplicates"], 3, "1 comes again far behind: {full}");
    let (_, few) = check(&["--full", "--max-errors", "2"], &path);
    assert_eq!(few["duplicates"], 3);
    assert_eq!(few["listed_ids"].as_array().unwrap().len(), 2);
    assert_eq!(few["listed_ids"][0]["id"], 3);
    let (_, ways) = check(&["--ids", "-t", "way"], &path);
    assert_eq!(
        (&ways["out_of_order"], &ways["duplicates"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn versions_of_one_object_follow_each_other_in_a_history_file() {
    let dir = tempfile::tempdir().unwrap();
    let version = |id: i64, version: i64| {
        with_metadata(node(id, 1, 1, &[]), version, 1_600_000_000, 7, "mapper")
    };
    let path = dir.path().join("history.osh.pbf");
    let write = |blocks: &[Vec<Object>]| {
        let blocks: Vec<Vec<u8>> = blocks
            .iter()
            .map(|objects| craft::block(objects, &Shape::USUAL))
            .collect();
        let header = craft::header_payload(
            &["OsmSchema-V0.6", "DenseNodes", "HistoricalInformation"],
            &[],
        );
        std::fs::write(&path, craft::file(header, &blocks)).unwrap();
    };
    write(&[
        vec![version(1, 1), version(1, 2), version(2, 1)],
        vec![version(2, 2), version(3, 5)],
    ]);
    for args in [["--ids", "-q"], ["--full", "-q"]] {
        assert_eq!(check(&args, &path).0, 0, "{args:?}");
    }
    write(&[vec![version(1, 2), version(1, 2)], vec![version(1, 1)]]);
    let (status, found) = check(&["--ids"], &path);
    assert_eq!((status, &found["duplicates"]), (1, &2.into()), "{found}");
}

#[test]
fn files_without_objects_or_with_relations_alone_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let empty = file(dir.path(), &[]);
    assert_eq!(check(&["-r", "--ids"], &empty).0, 0);
    let members = [
        (Kind::Relation, 1, ""),
        (Kind::Relation, 2, ""),
        (Kind::Relation, 3, ""),
        (Kind::Way, 8, ""),
        (Kind::Way, 8, "again"),
        (Kind::Node, -1, ""),
    ];
    let relations = [relation(1, &members, &[]), relation(2, &members, &[])];
    let path = file(dir.path(), &[&relations]);
    let (status, found) = check(&["-r"], &path);
    assert_eq!(status, 1);
    let missing = &found["missing"];
    assert_eq!(missing["relations_in_relations"], 2, "{found}");
    assert_eq!(missing["ways_in_relations"], 1);
    assert_eq!(missing["nodes_in_relations"], 1);
    // Without -r, members are not checked.
    assert_eq!(check(&["--refs"], &path).0, 0);
}

#[test]
fn mixed_blobs_are_checked_kind_by_kind() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = common::mixed_objects();
    let path = file(dir.path(), &[&mixed]);
    let (status, found) = check(&["--full", "-r"], &path);
    assert_eq!(status, 1);
    let count = |kind: Kind| mixed.iter().filter(|object| object.kind == kind).count();
    assert_eq!(found["nodes"], count(Kind::Node));
    assert_eq!(found["ways"], count(Kind::Way));
    assert_eq!(found["relations"], count(Kind::Relation));
    assert_eq!(found["out_of_order"], 1, "nodes behind relations: {found}");
}

#[test]
fn an_unchecked_property_is_not_called_none() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [
        node(1, 0, 0, &[]),
        node(3, 0, 0, &[]),
        node(2, 0, 0, &[]),
        node(3, 0, 0, &[]),
    ];
    let refs = [way(1, &[9], &[]), relation(1, &[(Kind::Way, 5, "")], &[])];
    let path = file_of(dir.path(), "u.osm.pbf", &[&nodes, &refs[..1], &refs[1..]]);
    let text = ask(&[&"check", &path]).stdout;
    let hint = "ids that occur again: not checked: the file is not sorted; --full checks it";
    assert!(text.contains(hint), "{text}");
    let json = ask(&[&"check", &"--json", &path]).json();
    assert!(json["duplicates"].is_null());
    assert_eq!(json["missing"]["nodes_in_ways"], 1);
    for kind in ["nodes", "ways", "relations"] {
        assert!(
            json["missing"][format!("{kind}_in_relations")].is_null(),
            "{json}"
        );
    }
    assert!(ask(&[&"check", &"--index", &"--json", &path]).json()["nodes"].is_null());
    // -r adds to the checks that are made without it.
    let json = ask(&[&"check", &"-r", &"--json", &path]).json();
    assert_eq!(
        (&json["out_of_order"], &json["missing"]["ways_in_relations"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        ask(&[&"check", &"--full", &"--json", &path]).json()["duplicates"],
        1
    );
    let extended = ask(&[&"inspect", &"-e", &path]).stdout;
    assert!(
        extended.contains("not checked: the file is not sorted"),
        "{extended}"
    );
    let extended = ask(&[&"inspect", &"-e", &"--json", &path]).json();
    assert!(extended["extended"]["further_versions"].is_null());
    let versions = ask(&[&"inspect", &"--get", &"data.multiple_versions", &path]);
    assert_eq!(versions.stdout, "unknown\n");
}

#[test]
fn check_refs_lists_all_and_check_says_what_it_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let refs: Vec<i64> = (1..300).collect();
    let path = file_of(dir.path(), "in.osm.pbf", &[&[way(1, &refs, &[])]]);
    let listed = |args: &[Arg]| {
        let said = ask(args).stdout;
        (
            said.matches(" in w1").count(),
            said.contains("… and 199 more: --max-errors 0 lists all"),
        )
    };
    assert_eq!(listed(&[&"check-refs", &"-i", &path]), (299, false));
    assert_eq!(listed(&[&"check", &"--refs", &"-i", &path]), (100, true));
}
