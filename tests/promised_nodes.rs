//! A header that declares `pbfhogg.AllNodes` keeps its word: no way stores the location of a node that is not in the
//! file.

use crate::common::{Arg, Kind, decode, run_ok, small_world};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The stored coordinates of an undefined location, in nanodegrees.
const NOWHERE: (i64, i64) = (i32::MAX as i64 * 100, i32::MAX as i64 * 100);

fn promises(path: &Path) -> bool {
    let optional = decode::header(path).optional;
    optional.iter().any(|name| name == "pbfhogg.AllNodes")
}

/// Whether the file has each node of which a way stores the location.
fn has_all_nodes(path: &Path) -> bool {
    let objects = decode::objects(path);
    let nodes = objects.iter().filter(|one| one.kind == Kind::Node);
    let nodes: HashSet<i64> = nodes.map(|node| node.id).collect();
    objects.iter().all(|way| {
        let known = way.refs.iter().zip(&way.locations);
        let mut known = known.filter(|(_, location)| **location != NOWHERE);
        known.all(|(id, _)| nodes.contains(id))
    })
}

/// A file with all nodes, a way, and a node and a relation of the file.
fn located(dir: &Path) -> (PathBuf, [String; 3]) {
    let path = dir.join("in.osm.pbf");
    let world = small_world(dir);
    run_ok(&[&"add-locations-to-ways", &"-q", &"-n", &world, &"-o", &path]);
    let objects = decode::objects(&path);
    let first = |kind, letter: &str| {
        let mut found = objects.iter().filter(|one| one.kind == kind);
        format!(
            "{letter}{}",
            found.next().expect("an object of each kind").id
        )
    };
    let ids = [
        first(Kind::Way, "w"),
        first(Kind::Node, "n"),
        first(Kind::Relation, "r"),
    ];
    (path, ids)
}

#[test]
fn commands_that_may_drop_nodes_of_ways_take_the_promise_back() {
    let dir = tempfile::tempdir().unwrap();
    let (input, [way, node, relation]) = located(dir.path());
    let (way, node, relation) = (way.as_str(), node.as_str(), relation.as_str());
    let output = dir.path().join("out.osm.pbf");
    // Whether the output still promises all nodes.
    let commands: [(bool, &[&str]); 20] = [
        (true, &["cat"]),
        (true, &["cat", "--force", "-t", "node,way"]),
        (false, &["cat", "-t", "way"]),
        (false, &["cat", "-c", "version", "-t", "way,relation"]),
        (true, &["getid", way, relation, "-r"]),
        (false, &["getid", way]),
        (false, &["getid", node, "-r", "--add-parents"]),
        (true, &["removeid", way, relation]),
        (false, &["removeid", way, node]),
        (false, &["getparents", node]),
        (false, &["getparents", "-s", node]),
        (true, &["tags-filter", "w/highway"]),
        (false, &["tags-filter", "-R", "w/highway"]),
        (false, &["tags-filter", "-R", "-i", "w/highway"]),
        (true, &["tags-edit", "--drop", "highway"]),
        (true, &["tags-edit", "--drop", "highway", "--drop-untagged"]),
        (false, &["time-filter", "2015-01-01T00:00:00Z"]),
        (true, &["repack", "-n", "700"]),
        (true, &["renumber"]),
        (false, &["degrade", "--drop-ids", "100"]),
    ];
    for (stays, args) in commands {
        let mut all: Vec<Arg> = vec![&args[0], &"-q", &"-O", &input];
        all.extend(args[1..].iter().map(|arg| arg as Arg));
        all.extend([&"-o" as Arg, &output]);
        run_ok(&all);
        assert_eq!(promises(&output), stays, "{args:?}");
        assert!(!stays || has_all_nodes(&output), "{args:?}");
    }
}

#[test]
fn parts_of_a_file_do_not_promise_the_nodes_of_other_parts() {
    let dir = tempfile::tempdir().unwrap();
    let (input, _) = located(dir.path());
    let directory = dir.path().join("parts");
    run_ok(&[&"split", &"-q", &"--parts", &"2", &input, &"-o", &directory]);
    for entry in std::fs::read_dir(&directory).unwrap() {
        assert!(!promises(&entry.unwrap().path()));
    }
    // A single part is the whole file.
    let whole = dir.path().join("whole");
    run_ok(&[&"split", &"-q", &"--parts", &"1", &input, &"-o", &whole]);
    for entry in std::fs::read_dir(&whole).unwrap() {
        assert!(promises(&entry.unwrap().path()));
    }
}
