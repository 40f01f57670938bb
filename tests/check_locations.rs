//! `check` of files whose ways store locations.

use crate::common::answers::{Answer, ask};
use crate::common::{Arg, run_ok};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Way 1 refers to nodes 1 and 2 in the file and to node 9, which is not. Way 2 also refers to node 9.
const PLAIN: &str = "n1 v1 x1 y1\nn2 v1 Ta=b x2 y2\nn3 v1 x3 y3\n\
                     w1 v1 T Nn1,n2,n9\nw2 v1 T Nn2,n9\nr1 v1 T Mn3@,n8@\n";

fn text(dir: &Path, name: &str, lines: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, lines).unwrap();
    path
}

/// The file with locations in its ways.
fn located(dir: &Path, lines: &str, option: &str) -> PathBuf {
    let (input, output) = (text(dir, "in.opl", lines), dir.join("located.osm.pbf"));
    let mut args: Vec<Arg> = vec![
        &"add-locations-to-ways",
        &"-q",
        &"-O",
        &input,
        &"-o",
        &output,
    ];
    if !option.is_empty() {
        args.push(&option);
    }
    run_ok(&args);
    output
}

/// The answer and the JSON report of `check` with further arguments.
fn check(args: &[&str], path: &Path) -> (Answer, Value) {
    let mut all: Vec<Arg> = vec![&"check"];
    all.extend(args.iter().map(|arg| arg as Arg));
    all.push(&path);
    let text = ask(&all);
    all.push(&"--json");
    (text, ask(&all).json())
}

#[test]
fn a_node_is_missing_only_if_its_location_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let (_, plain) = check(&["-r"], &text(dir.path(), "plain.opl", PLAIN));
    assert_eq!(plain["form"], "plain");
    for (option, form, stored) in [
        ("-n", "located, with all nodes", 0),
        ("", "located, needed nodes only", 1),
    ] {
        let path = located(dir.path(), PLAIN, option);
        let (said, found) = check(&["-r"], &path);
        assert_eq!(found["missing"], plain["missing"], "{form}");
        assert_eq!(found["listed_refs"], plain["listed_refs"], "{form}");
        assert_eq!(found["form"], form);
        let counts =
            json!({"references": 5, "stored": stored, "unknown": 2, "contradicting": null});
        assert_eq!(found["locations"], counts);
        assert!(said.stdout.contains(&format!("form: {form}\n")), "{said:?}");
        assert!(
            said.stdout.contains("not checked: --full compares them"),
            "{said:?}"
        );
        assert_eq!(said.status, 1);
        let (said, _) = check(&["--refs", "-i"], &path);
        assert!(said.stdout.starts_with("n9 in w1\nn9 in w2\n"), "{said:?}");
        assert!(
            said.stdout.contains("nodes in ways missing: 2\n"),
            "{said:?}"
        );
    }
    // osmium misses every node that is not in the file.
    let path = located(dir.path(), PLAIN, "");
    let osmium = ask(&[&"osmium", &"check-refs", &"-i", &path]);
    assert_eq!(osmium.status, 1);
    assert!(osmium.stderr.contains("missing: 3"), "{osmium:?}");
    assert_eq!(osmium.lines().len(), 3, "{osmium:?}");
}

#[test]
fn a_file_all_of_whose_locations_are_known_is_sound() {
    let dir = tempfile::tempdir().unwrap();
    let lines = "n1 v1 x1 y1\nn2 v1 Ta=b x2 y2\nw1 v1 T Nn1,n2\n";
    for option in ["-n", ""] {
        let path = located(dir.path(), lines, option);
        for args in [&["--refs"][..], &["--full", "--refs", "-r"]] {
            let (said, found) = check(args, &path);
            assert_eq!(said.status, 0, "{said:?}");
            assert_eq!(found["locations"]["unknown"], 0);
        }
    }
    // The same of a file whose header does not say which nodes it has.
    let path = text(
        dir.path(),
        "mixed.opl",
        "n2 v1 Ta=b x2 y2\nw1 v1 T Nn1x1y1,n2xy\n",
    );
    let (said, found) = check(&["--refs"], &path);
    assert_eq!((said.status, &found["form"]), (0, &json!("mixed")));
}

#[test]
fn locations_that_contradict_the_nodes_are_counted_and_listed() {
    let dir = tempfile::tempdir().unwrap();
    let lines = "n1 v1 x1 y1\nn2 v1 x2 y2\nn3 v1 x3 y3\n\
                 w1 v1 T Nn1x1y1,n2x2y2.0000001,n1x0y0\nw2 v1 T Nn3,n9x9y9,n8xy\n";
    let path = text(dir.path(), "in.opl", lines);
    let (said, found) = check(&["--full"], &path);
    assert_eq!(said.status, 1);
    let counts = json!({"references": 6, "stored": 1, "unknown": 1, "contradicting": 2});
    assert_eq!(found["locations"], counts);
    assert_eq!(found["faults"], 0, "{found}");
    for line in [
        "  w1 stores another location of n2 than the node has\n",
        "locations in ways other than those of the nodes: 2\n",
    ] {
        assert!(said.stdout.contains(line), "{line}: {said:?}");
    }
    let (_, few) = check(&["--full", "--max-errors", "1"], &path);
    assert_eq!(few["listed_contradictions"].as_array().unwrap().len(), 1);
    assert_eq!(few["locations"]["contradicting"], 2);
    // Without --full the nodes' locations are not read.
    let (_, refs) = check(&["--refs"], &path);
    assert_eq!(refs["locations"]["contradicting"], Value::Null);
    assert_eq!(
        check(&["--full"], &text(dir.path(), "plain.opl", PLAIN)).1["locations"],
        Value::Null
    );
}

#[test]
fn a_promise_of_all_nodes_that_does_not_hold_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let input = text(
        dir.path(),
        "in.opl",
        "n1 v1 x1 y1\nw1 v1 T Nn1x1y1,n2x2y2\n",
    );
    let path = dir.path().join("lying.osm.pbf");
    run_ok(&[
        &"cat",
        &"-q",
        &input,
        &"--output-header",
        &"pbfhogg.AllNodes=true",
        &"-o",
        &path,
    ]);
    let (said, found) = check(&["--full"], &path);
    assert_eq!((said.status, &found["faults"]), (1, &json!(1)), "{said:?}");
    assert!(
        said.stdout.contains("the header declares pbfhogg.AllNodes"),
        "{said:?}"
    );
    // The location counts all the same.
    assert_eq!(check(&["--refs"], &path).1["missing"]["nodes_in_ways"], 0);
}

#[test]
fn nodes_that_no_way_has_yet_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = located(dir.path(), "n2 v1 Ta=b x2 y2\nw1 v1 T Nn2\n", "");
    let changes = text(
        dir.path(),
        "c.opl",
        "n2 v1 Ta=b x2 y2\nn3 v1 x3 y3\nn4 v1 x4 y4\nn5 v1 x5 y5\nw1 v1 T Nn2x2y2,n5x5y5\nr1 v1 T Mn4@\n",
    );
    let young = dir.path().join("young.osm.pbf");
    let features = ["LocationsOnWays=true", "pbfhogg.NeededNodes=true"];
    run_ok(&[
        &"cat",
        &"-q",
        &changes,
        &"--output-header",
        &features[0],
        &"--output-header",
        &features[1],
        &"-o",
        &young,
    ]);
    assert_eq!(check(&["--refs"], &path).1["unused_nodes"], 0);
    let (said, found) = check(&["--refs"], &young);
    assert_eq!(found["unused_nodes"], 1, "{found}");
    assert!(
        said.stdout.contains("no way and no relation has yet: 1\n"),
        "{said:?}"
    );
    let plain = text(dir.path(), "plain.opl", PLAIN);
    assert_eq!(check(&["--refs"], &plain).1["unused_nodes"], Value::Null);
}
