//! Commands that combine located files: one node has one location in the output, and no known location is lost.

use crate::common::answers::ask;
use crate::common::{Arg, decode, run_ok};
use std::path::{Path, PathBuf};

/// Writes a located file without the nodes that only ways need. `header` has options for its header.
fn needed(dir: &Path, name: &str, text: &str, header: &[&str]) -> PathBuf {
    let source = dir.join(format!("{name}.opl"));
    std::fs::write(&source, text).unwrap();
    let path = dir.join(format!("{name}.osm.pbf"));
    let mut args: Vec<Arg> = vec![
        &"add-locations-to-ways",
        &"-q",
        &source,
        &"-O",
        &"-o",
        &path,
    ];
    for option in header {
        args.extend([&"--output-header" as Arg, option]);
    }
    run_ok(&args);
    path
}

/// The ways of the output of a command with two inputs, as OPL, and what it says.
fn ways(command: &str, inputs: [&Path; 2]) -> (Vec<String>, String) {
    let answer = ask(&[&command, &inputs[0], &inputs[1], &"-f", &"opl"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    let lines = answer.stdout.lines();
    let ways = lines.filter(|line| line.starts_with('w'));
    let short = ways.map(|line| {
        let id = line.split(' ').next().unwrap();
        format!("{id} {}", &line[line.rfind('N').unwrap()..])
    });
    (short.collect(), answer.stderr.clone())
}

/// The optional features of the output of a command with two inputs.
fn features(dir: &Path, command: &str, inputs: [&Path; 2]) -> Vec<String> {
    let path = dir.join("features.osm.pbf");
    run_ok(&[&command, &inputs[0], &inputs[1], &"-O", &"-o", &path]);
    let names = decode::header(&path).optional.into_iter();
    names
        .filter(|name| name.contains("Ways") || name.contains("Nodes"))
        .collect()
}

const OLD: &str = "osmosis_replication_timestamp=2024-01-01T00:00:00Z";
const NEW: &str = "osmosis_replication_timestamp=2024-02-01T00:00:00Z";

#[test]
fn the_newest_input_tells_the_location_of_a_node_that_no_input_has() {
    let dir = tempfile::tempdir().unwrap();
    let old = "n1 x1 y1\nn2 x2 y2\nn3 x3 y3\nw1 v1 Ta=b Nn1,n2\nw2 v1 Ta=b Nn2,n3\n";
    let new = "n2 x9 y9\nn3 x3 y3\nn4 x4 y4\nw2 v1 Ta=b Nn2,n3\nw3 v1 Ta=b Nn2,n4\n";
    let old = needed(dir.path(), "old", old, &[OLD]);
    let new = needed(dir.path(), "new", new, &[NEW]);
    for command in ["merge", "sort", "cat"] {
        for inputs in [[old.as_path(), &new], [&new, &old]] {
            let (mut found, said) = ways(command, inputs);
            found.sort();
            found.dedup();
            assert_eq!(
                found,
                [
                    "w1 Nn1x1y1,n2x9y9",
                    "w2 Nn2x9y9,n3x3y3",
                    "w3 Nn2x9y9,n4x4y4"
                ],
                "{command}"
            );
            assert!(
                said.contains("different locations for 1 node that no input has"),
                "{said}"
            );
        }
        assert_eq!(
            features(dir.path(), command, [&old, &new]),
            ["LocationsOnWays", "pbfhogg.NeededNodes"]
        );
    }
    let summary = ask(&[
        &"merge",
        &"--json",
        &old,
        &new,
        &"-O",
        &"-o",
        &dir.path().join("m.pbf"),
    ]);
    assert_eq!(summary.json()["contradicting_locations"], 1);
}

#[test]
fn without_times_of_inputs_the_newest_way_tells_the_location() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = [("old", 1, "x2 y2"), ("new", 2, "x9 y9")].map(|(name, month, place)| {
        let time = format!("v{month} t2024-0{month}-01T00:00:00Z");
        let text = format!("n1 v1 x1 y1\nn2 v1 {place}\nw{month} {time} Ta=b Nn1,n2\n");
        needed(dir.path(), name, &text, &[])
    });
    for inputs in [[old.as_path(), &new], [&new, &old]] {
        let (found, _) = ways("merge", inputs);
        assert_eq!(found, ["w1 Nn1x1y1,n2x9y9", "w2 Nn1x1y1,n2x9y9"]);
    }
}

#[test]
fn a_node_that_one_input_has_moves_the_ways_of_inputs_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let old = needed(
        dir.path(),
        "old",
        "n1 v1 x1 y1\nn2 v1 x2 y2\nw1 v1 Ta=b Nn1,n2\n",
        &[],
    );
    let new = needed(
        dir.path(),
        "new",
        "n2 v2 Tshop=yes x9 y9\nw2 v1 Ta=b Nn2,n2\n",
        &[],
    );
    for command in ["merge", "sort", "cat"] {
        for inputs in [[old.as_path(), &new], [&new, &old]] {
            let (mut found, said) = ways(command, inputs);
            found.sort();
            assert_eq!(
                found,
                ["w1 Nn1x1y1,n2x9y9", "w2 Nn2x9y9,n2x9y9"],
                "{command}"
            );
            assert_eq!(said, "");
        }
    }
}

#[test]
fn a_location_that_another_input_knows_fills_one_that_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let west = needed(dir.path(), "west", "n1 x1 y1\nw1 v1 Ta=b Nn1,n2\n", &[]);
    let east = needed(
        dir.path(),
        "east",
        "n2 x2 y2\nn3 x3 y3\nw2 v1 Ta=b Nn2,n3\n",
        &[],
    );
    for command in ["merge", "sort", "cat"] {
        let (found, said) = ways(command, [&west, &east]);
        assert_eq!(
            found,
            ["w1 Nn1x1y1,n2x2y2", "w2 Nn2x2y2,n3x3y3"],
            "{command}"
        );
        assert_eq!(said, "");
    }
}

#[test]
fn locations_of_absent_nodes_are_kept_beside_ways_without_locations() {
    let dir = tempfile::tempdir().unwrap();
    let located = needed(
        dir.path(),
        "located",
        "n1 x1 y1\nn2 x2 y2\nw1 v1 Ta=b Nn1,n2\n",
        &[],
    );
    let plain = dir.path().join("plain.opl");
    std::fs::write(&plain, "n3 x3 y3\nn4 x4 y4\nw2 v1 Ta=b Nn3,n4\n").unwrap();
    for command in ["merge", "sort", "cat"] {
        for inputs in [[located.as_path(), &plain], [&plain, &located]] {
            let (mut found, _) = ways(command, inputs);
            found.sort();
            assert_eq!(found, ["w1 Nn1x1y1,n2x2y2", "w2 Nn3,n4"], "{command}");
        }
    }
    // Blobs of their own show that not all ways have locations.
    assert!(features(dir.path(), "cat", [&located, &plain]).is_empty());
}
