//! Intended differences from osmium under the first name, which `reference/osmium-parity.md` lists. `surface.rs` and
//! `second_name.rs` compare every command under the second name.

use crate::common::oracle::{opl, osmium, real_file};
use crate::common::{decode, is_long, run_ok};
use std::path::Path;
use std::process::Command;

fn run_osmium(arguments: &[&str], inputs: &[&Path], output: &Path) {
    let (command, rest) = arguments.split_first().unwrap();
    let mut osmium = Command::new("osmium");
    osmium
        .arg(command)
        .args(["--no-progress", "-O"])
        .args(rest)
        .args(inputs)
        .arg("-o")
        .arg(output);
    let result = osmium.output().unwrap();
    assert!(
        result.status.success(),
        "{osmium:?}: {}",
        String::from_utf8_lossy(&result.stderr)
    );
}

/// Applies a change to a real file with both programs. Returns its first node as OPL from our output and from osmium's.
fn both_on_a_file(change: &str) -> Option<(String, String)> {
    if !osmium() {
        return None;
    }
    let name = if is_long() {
        "malta.osm.pbf"
    } else {
        "monaco.osm.pbf"
    };
    let input = real_file(name);
    let dir = tempfile::tempdir().unwrap();
    let id = decode::objects(&input)[0].id;
    let changes = dir.path().join("a.osc");
    std::fs::write(&changes, change.replace("ID", &id.to_string())).unwrap();
    let shown = |name: &str| {
        let lines = opl(&dir.path().join(name));
        lines
            .into_iter()
            .find(|line| line.starts_with(&format!("n{id} ")))
            .unwrap_or_default()
    };
    run_ok(&[
        &"apply-changes",
        &input,
        &changes,
        &"-o",
        &dir.path().join("ours.osm.pbf"),
    ]);
    run_osmium(
        &["apply-changes"],
        &[&input, &changes],
        &dir.path().join("theirs.osm.pbf"),
    );
    Some((shown("ours.osm.pbf"), shown("theirs.osm.pbf")))
}

#[test]
fn difference_a_change_without_version_wins_here_and_loses_in_osmium() {
    let change =
        "<osmChange version='0.6'><modify><node id='ID' lat='5' lon='5'/></modify></osmChange>";
    let Some((ours, theirs)) = both_on_a_file(change) else {
        return;
    };
    assert!(
        ours.contains("x5 y5") && !theirs.contains("x5 y5"),
        "{ours}\n{theirs}"
    );
}

#[test]
fn difference_coordinates_in_ways_are_dropped_here_with_a_warning() {
    let input = real_file("loc_on_ways.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let (changes, output) = (dir.path().join("a.osc"), dir.path().join("out.osm.pbf"));
    std::fs::write(&changes, "<osmChange version='0.6'/>").unwrap();
    let run = run_ok(&[&"apply-changes", &input, &changes, &"-o", &output]);
    let warning = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(warning.contains("lost their locations"), "{warning}");
    assert!(
        decode::objects(&output)
            .iter()
            .all(|object| object.locations.is_empty())
    );
    assert!(
        !decode::header(&output)
            .optional
            .contains(&"LocationsOnWays".to_owned())
    );
}
