//! Augmented diffs of bases with and without locations in ways, and with and without the nodes that only ways need:
//! ways and relations have the same geometries before and after the changes.

use crate::common::augmented::actions_of;
use crate::common::{Arg, Object, in_turn, run_ok};
use crate::partly_located::{
    MIXTURES, Nodes, PROMISES, Stored, contents, plain_world, with_stored, written,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Moves nodes of a path and of an area, changes a way so that it has a node of another way and a new node, and deletes
/// a node that a way still has.
const CHANGES: &str = r#"<osmChange version="0.6">
<modify>
<node id="5" version="2" lat="0.00051" lon="0.5"/>
<node id="14" version="2" lat="0.0022" lon="0.0003"/>
<node id="94" version="2" lat="0" lon="0.0007"/>
<way id="2" version="2"><nd ref="6"/><nd ref="7"/><nd ref="20"/><nd ref="200"/><tag k="highway" v="path"/></way>
</modify>
<create><node id="200" version="1" lat="0.1" lon="0.1"/></create>
<delete><node id="30" version="2"/></delete>
</osmChange>"#;

/// Gives a way a node of another way. Then the node moves, and a node that a way still has is deleted.
const UPLOADS: &str = r#"<osmChange version="0.6">
<modify>
<way id="1" version="2" changeset="7" timestamp="2024-01-01T00:00:00Z">
<nd ref="3"/><nd ref="40"/><nd ref="5"/><tag k="highway" v="path"/></way>
<node id="40" version="2" changeset="8" timestamp="2024-01-02T00:00:00Z" lat="0.5" lon="0.5"/>
</modify>
<delete><node id="30" version="2" changeset="9" timestamp="2024-01-03T00:00:00Z"/></delete>
</osmChange>"#;

/// Calls `take` with the file of each form, and with its name. The first one is plain.
fn for_each_form(dir: &Path, mut take: impl FnMut(&str, &Path)) {
    let world = plain_world();
    let mut file = |name: &str, features: &[&str], objects: &[Object]| {
        let path = written(dir, "base.osm.pbf", features, objects, 7);
        take(name, &path);
    };
    file("plain", &[], &world);
    let all = with_stored(&world, |_| Stored::Everything, Nodes::All);
    file("all nodes", PROMISES[1], &all);
    let needed = with_stored(&world, |_| Stored::Everything, Nodes::Needed);
    file("needed nodes", PROMISES[2], &needed);
    file("needed nodes, of another program", PROMISES[0], &needed);
    file("needed nodes, undeclared", &[], &needed);
    for (turn, (name, stored)) in MIXTURES.into_iter().enumerate() {
        for nodes in in_turn(turn, 2, [Nodes::All, Nodes::Needed]) {
            let objects = with_stored(&world, stored, nodes);
            file(&format!("{name} {nodes:?}"), PROMISES[0], &objects);
        }
    }
}

/// Writes an augmented diff, or a directory with some.
fn diff(base: &Path, changes: &Path, output: &Path, more: &[&str]) {
    let mut args: Vec<Arg> = vec![&"augmented-diff", &"-q", &base, &changes];
    args.extend(more.iter().map(|option| option as Arg));
    args.extend([&"-o" as Arg, &output]);
    run_ok(&args);
}

/// The actions of ways and relations in the files of `output`, by name. Files without such actions are left out.
fn actions(output: &Path) -> BTreeMap<PathBuf, Vec<String>> {
    let is_wanted = |action: &String| {
        let mut lines = action.lines();
        lines.any(|line| line.starts_with("way ") || line.starts_with("relation "))
    };
    let files = contents(output).into_iter().map(|(name, bytes)| {
        let mut actions = actions_of(std::str::from_utf8(&bytes).unwrap());
        actions.retain(is_wanted);
        (name, actions)
    });
    files.filter(|(_, actions)| !actions.is_empty()).collect()
}

#[test]
fn the_form_of_the_base_changes_no_geometry() {
    let dir = tempfile::tempdir().unwrap();
    let [changes, xml, features] =
        ["changes.osc", "a.adiff", "a.geojsonseq"].map(|name| dir.path().join(name));
    std::fs::write(&changes, CHANGES).unwrap();
    let mut expected = None;
    for_each_form(dir.path(), |name, base| {
        diff(base, &changes, &xml, &["-O"]);
        diff(base, &changes, &features, &["-O"]);
        let text = std::fs::read_to_string(&features).unwrap();
        let lines = text
            .lines()
            .filter(|line| !line.contains(r#""type":"node""#));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        let found = (actions(&xml), lines);
        let expected = expected.get_or_insert_with(|| found.clone());
        assert_eq!(expected.1.len(), 7);
        assert_eq!(&found, expected, "{name}");
    });
}

#[test]
fn the_form_of_the_base_changes_no_geometry_between_uploads() {
    let dir = tempfile::tempdir().unwrap();
    let [changes, split] = ["changes.osc", "split"].map(|name| dir.path().join(name));
    std::fs::write(&changes, UPLOADS).unwrap();
    let mut expected = None;
    for_each_form(dir.path(), |name, base| {
        diff(base, &changes, &split, &["--split"]);
        let found = actions(&split);
        std::fs::remove_dir_all(&split).unwrap();
        let expected = expected.get_or_insert_with(|| found.clone());
        assert_eq!(expected.len(), 3);
        assert_eq!(&found, expected, "{name}");
    });
}

#[test]
fn a_location_in_a_changed_way_counts_for_the_relation_of_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let [changes, output] = ["changes.osc", "a.adiff"].map(|name| dir.path().join(name));
    let text = r#"<osmChange version="0.6"><modify><way id="32" version="2">
<nd ref="95"/><nd ref="960" lat="0.0006" lon="0.0001"/><nd ref="93"/></way></modify></osmChange>"#;
    std::fs::write(&changes, text).unwrap();
    let mut seen = 0;
    for_each_form(dir.path(), |name, base| {
        diff(base, &changes, &output, &["-O"]);
        let found = actions(&output).into_values().flatten();
        let texts: Vec<String> = found.collect();
        assert_eq!(texts.len(), 2, "{name}");
        for text in &texts {
            assert!(
                text.contains("nd ref=960 lat=0.0006 lon=0.0001"),
                "{name}: {text}"
            );
        }
        seen += 1;
    });
    assert!(seen > 10, "{seen}");
}
