//! A header that declares `pbfhogg.AllNodes` keeps its word: no way stores the location of a node that is not in the
//! file.

use crate::common::{Arg, Kind, decode, every, run_ok, small_world};
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
    let (out, output) = (dir.path().join("out"), dir.path().join("out.osm.pbf"));
    let values: [(&str, &Path); 5] = [
        ("{in}", &input),
        ("{n}", Path::new(&node)),
        ("{w}", Path::new(&way)),
        ("{r}", Path::new(&relation)),
        ("{out}", &out),
    ];
    for line in every::lines(&["keeps-nodes", "drops-nodes"]) {
        let stays = every::has(line, &["keeps-nodes"]);
        let arguments = every::arguments(line, &values);
        let mut arguments: Vec<Arg> = arguments.iter().map(|word| word as Arg).collect();
        arguments.extend([&"-q" as Arg, &"-O"]);
        run_ok(&arguments);
        assert_eq!(promises(&output), stays, "{line}");
        assert!(!stays || has_all_nodes(&output), "{line}");
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
