//! `add-locations-to-ways` of files whose ways have locations: none that is known becomes unknown.

use crate::common::answers::ask;
use crate::common::{Arg, decode, run_fail, run_ok, small_world, stderr};
use std::path::{Path, PathBuf};

/// Ways that store another location than the node (n1), one that only the ways know (n2), and none (n3). n4 is in the
/// file, and way 2 does not store its location.
const MIXED: &str = "n1 v1 Ta=b x1 y1\nn4 v1 x4 y4\nn5 v1 x5 y5\n\
                     w1 v1 T Nn1x9y9,n2x2y2,n3xy\nw2 v1 T Nn4,n2,n3\nw3 v1 T Nn2x2y2,n5x5y5,n1xy\n\
                     r1 v1 T Mn5@\n";
/// The ways with all locations that are known. Way 2 does not store that of n2, which the file does not have.
const LOCATED: [&str; 3] = [
    "n1x1y1,n2x2y2,n3xy",
    "n4x4y4,n2xy,n3xy",
    "n2x2y2,n5x5y5,n1x1y1",
];

fn text(dir: &Path, name: &str, lines: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, lines).unwrap();
    path
}

/// Runs the command, and returns its summary and its warnings.
fn locate(args: &str, input: &Path, output: &Path) -> (serde_json::Value, String) {
    let mut all: Vec<&str> = vec!["add-locations-to-ways", "--json", "-O"];
    all.extend(args.split_whitespace());
    let mut all: Vec<Arg> = all.iter().map(|arg| arg as Arg).collect();
    all.extend([&input as Arg, &"-o", &output]);
    let run = run_ok(&all);
    (serde_json::from_slice(&run.stdout).unwrap(), stderr(&run))
}

/// The references of the ways of a file, as OPL.
fn references(path: &Path) -> Vec<String> {
    let lines = ask(&[&"cat", &"-q", &"-t", &"way", &path, &"-f", &"opl"]).lines();
    let refs = lines.iter().filter_map(|line| line.split(" N").nth(1));
    refs.map(str::to_owned).collect()
}

fn declares(path: &Path, feature: &str) -> bool {
    let optional = decode::header(path).optional;
    optional.iter().any(|name| name == feature)
}

#[test]
fn a_known_location_stays_and_the_node_in_the_file_counts_first() {
    let dir = tempfile::tempdir().unwrap();
    let input = text(dir.path(), "in.opl", MIXED);
    let [once, twice] = ["once.osm.pbf", "twice.osm.pbf"].map(|name| dir.path().join(name));
    for index in ["dense", "sparse", "external", "external --ranges 3"] {
        for n in ["", "-n"] {
            let args = format!("-i {index} {n}");
            let (summary, _) = locate(&args, &input, &once);
            assert_eq!(references(&once), LOCATED, "{args}");
            assert_eq!(summary["references"], 9, "{args}: {summary}");
            assert_eq!(summary["missing_references"], 3, "{args}: {summary}");
            assert_eq!(summary["missing_nodes"], 2, "{args}: {summary}");
            assert_eq!(summary["stored_references"], 2, "{args}: {summary}");
            let nodes = decode::objects(&once)
                .iter()
                .filter(|one| one.refs.is_empty())
                .count();
            // n4 has no tags and is no member. The relation counts, too.
            assert_eq!(nodes, if n.is_empty() { 3 } else { 4 }, "{args}");
            let (again, _) = locate(&args, &once, &twice);
            assert_eq!(references(&twice), LOCATED, "{args}");
            assert_eq!(again["missing_references"], 3, "{args}: {again}");
        }
    }
}

#[test]
fn an_extract_without_the_nodes_outside_is_located_again() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [all, cut, again] =
        ["all", "cut", "again"].map(|name| dir.path().join(format!("{name}.osm.pbf")));
    locate("-n", &world, &all);
    let line = [
        &"extract" as Arg,
        &"-q",
        &"-s",
        &"simple",
        &"-b",
        &"-10.0006,39.9994,-9.993,40.005",
        &all,
        &"-o",
        &cut,
    ];
    run_ok(&line);
    for args in ["-n", "", "-i external"] {
        locate(args, &cut, &again);
        assert!(!references(&cut).is_empty());
        assert_eq!(references(&again), references(&cut), "{args}");
    }
}

#[test]
fn the_header_promises_all_nodes_only_if_no_way_stores_the_place_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    let (all, needed) = ("pbfhogg.AllNodes", "pbfhogg.NeededNodes");
    let half = "n1 v1 x1 y1\nn2 v1 x2 y2\nw1 v1 T Nn1x1y1\nw2 v1 T Nn1,n2,n7\n";
    let plain = "n1 v1 x1 y1\nw1 v1 T Nn1,n7\n";
    for (input, args, feature) in [
        (plain, "-n", Some(all)),
        (plain, "", Some(needed)),
        (half, "-n", Some(all)),
        (half, "", Some(needed)),
        (MIXED, "-n", None),
        (MIXED, "", Some(needed)),
    ] {
        let input = text(dir.path(), "in.opl", input);
        locate(args, &input, &output);
        for name in [all, needed] {
            assert_eq!(
                declares(&output, name),
                feature == Some(name),
                "{args} {name}"
            );
        }
        assert!(declares(&output, "LocationsOnWays"));
    }
    // The header of a stream is written before the ways are read.
    for (input, is_declared) in [(plain, true), (half, false)] {
        let input = text(dir.path(), "in.opl", input);
        let run = run_ok(&[&"add-locations-to-ways", &"-q", &"-n", &input, &"-o", &"-"]);
        std::fs::write(&output, &run.stdout).unwrap();
        assert_eq!(declares(&output, all), is_declared);
    }
    // A promise that does not hold is not passed on.
    let lying = dir.path().join("lying.osm.pbf");
    let input = text(dir.path(), "in.opl", MIXED);
    let promise = format!("{all}=true");
    run_ok(&[
        &"cat",
        &"-q",
        &input,
        &"--output-header",
        &promise,
        &"-o",
        &lying,
    ]);
    assert!(declares(&lying, all));
    locate("-n", &lying, &output);
    assert!(!declares(&output, all));
}

#[test]
fn nodes_that_were_left_out_cannot_be_brought_back() {
    let dir = tempfile::tempdir().unwrap();
    let input = text(
        dir.path(),
        "in.opl",
        "n1 v1 x1 y1\nn2 v1 Ta=b x2 y2\nw1 v1 T Nn1,n2\n",
    );
    let [once, twice] = ["once.osm.pbf", "twice.osm.pbf"].map(|name| dir.path().join(name));
    locate("", &input, &once);
    for (args, warns) in [("", false), ("-n", true)] {
        let (_, warning) = locate(args, &once, &twice);
        assert_eq!(
            warning.contains("cannot bring these nodes back"),
            warns,
            "{warning}"
        );
        assert_eq!(decode::objects(&twice), decode::objects(&once));
        assert!(declares(&twice, "pbfhogg.NeededNodes"));
        assert!(!declares(&twice, "pbfhogg.AllNodes"));
    }
}

#[test]
fn strict_demands_locations_and_the_second_name_demands_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let stored = text(
        dir.path(),
        "stored.opl",
        "n1 v1 x1 y1\nw1 v1 T Nn1,n2\nw2 v1 T Nn1x1y1,n2x2y2\n",
    );
    let known = text(
        dir.path(),
        "known.opl",
        "n1 v1 x1 y1\nw2 v1 T Nn1x1y1,n2x2y2\n",
    );
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[
        &"add-locations-to-ways",
        &"-q",
        &"--strict",
        &stored,
        &"-o",
        &output,
    ]);
    assert!(message.contains("way 1 refers to node 2"), "{message}");
    locate("--strict", &known, &output);
    let second = |more: &str| {
        let known = known.to_str().unwrap();
        let output = output.to_str().unwrap();
        let line = format!("osmium add-locations-to-ways {more} {known} -O -o {output}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let words: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
        ask(&words)
    };
    let refused = second("");
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("way 2 refers to node 2"),
        "{refused:?}"
    );
    assert_eq!(second("--ignore-missing-nodes").status, 0);
    assert_eq!(references(&output), ["n1x1y1,n2x2y2"]);
}

#[test]
fn getid_misses_only_nodes_whose_places_are_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let lines = "n1 v1 Ta=b x1 y1\nw1 v1 T Nn1xy,n2x2y2\nw2 v1 T Nn1x1y1,n3xy\nr1 v1 T Mw1@\n";
    let input = text(dir.path(), "in.opl", lines);
    let output = dir.path().join("out.osm.pbf");
    for (id, missing) in [("w2", "n3"), ("w1", "n2"), ("r1", "n2"), ("n2", "n2")] {
        let found = ask(&[&"getid", &"-r", &"-O", &input, &id, &"-o", &output]);
        assert_eq!(
            found.status,
            i32::from(id != "w1" && id != "r1"),
            "{id}: {found:?}"
        );
        let is_said = found.stderr.contains(missing);
        assert_eq!(is_said, found.status == 1, "{id}: {found:?}");
        // osmium wants the nodes.
        let osmium = ask(&[
            &"osmium", &"getid", &"-r", &"-O", &input, &id, &"-o", &output,
        ]);
        assert_eq!(osmium.status, 1, "{id}: {osmium:?}");
    }
}

#[test]
fn an_index_of_locations_says_that_it_lacks_nodes() {
    let dir = tempfile::tempdir().unwrap();
    for (lines, is_said) in [
        ("n1 v1 x1 y1\nw1 v1 T Nn1x1y1,n2x2y2\n", true),
        ("n1 v1 x1 y1\nw1 v1 T Nn1,n2\n", false),
    ] {
        let (input, index) = (text(dir.path(), "in.opl", lines), dir.path().join("index"));
        let run = run_ok(&[&"create-locations-index", &"-i", &index, &input]);
        assert_eq!(stderr(&run).contains("does not have these nodes"), is_said);
        std::fs::remove_file(&index).unwrap();
    }
}
