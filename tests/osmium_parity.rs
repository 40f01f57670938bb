//! Every command compared with osmium's counterpart, object by object, on all suitable real files and on a synthetic
//! file. A new command needs a row in `ROWS`. Intended differences are listed in `reference/osmium-parity.md` and
//! tested here.

use crate::common;
use crate::common::oracle::{
    assert_same_opl, opl, opl_without_locations, osmium, real_file, real_files,
};
use crate::common::{Object, decode, in_turn, is_long, run_ok};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command and osmium's counterpart. Each is a function of input, change file and output.
struct Row {
    name: &'static str,
    suits: fn(&[Object]) -> bool,
    ours: fn(&Path, &Path, &Path),
    osmium: fn(&Path, &Path, &Path),
}

const ROWS: &[Row] = &[
    Row {
        name: "cat",
        suits: |_| true,
        ours: |input, _, output| drop(run_ok(&[&"cat", &input, &"-o", &output])),
        osmium: |input, _, output| run_osmium(&["cat"], &[input], output),
    },
    Row {
        name: "cat -t way,relation",
        suits: |_| true,
        ours: |input, _, output| {
            drop(run_ok(&[
                &"cat",
                &"-t",
                &"way,relation",
                &input,
                &"-o",
                &output,
            ]))
        },
        osmium: |input, _, output| {
            run_osmium(&["cat", "-t", "way", "-t", "relation"], &[input], output)
        },
    },
    Row {
        name: "cat -c version,user,uid",
        suits: |_| true,
        ours: |input, _, output| {
            let fields = "version,user,uid";
            drop(run_ok(&[&"cat", &"-c", &fields, &input, &"-o", &output]))
        },
        osmium: |input, _, output| {
            let args = ["cat", "-c", "version", "-c", "user", "-c", "uid"];
            run_osmium(&args, &[input], output)
        },
    },
    Row {
        name: "cat of a file behind itself",
        suits: |_| true,
        ours: |input, _, output| drop(run_ok(&[&"cat", &input, &input, &"-o", &output])),
        osmium: |input, _, output| run_osmium(&["cat"], &[input, input], output),
    },
    Row {
        name: "sort",
        suits: |_| true,
        ours: |input, _, output| drop(run_ok(&[&"sort", &input, &"-o", &output])),
        osmium: |input, _, output| run_osmium(&["sort"], &[input], output),
    },
    Row {
        name: "sort of a file and itself",
        suits: |_| true,
        ours: |input, _, output| drop(run_ok(&[&"sort", &input, &input, &"-o", &output])),
        osmium: |input, _, output| run_osmium(&["sort"], &[input, input], output),
    },
    Row {
        name: "apply-changes",
        suits: is_current_and_sorted,
        ours: |input, changes, output| {
            drop(run_ok(&[
                &"apply-changes",
                &input,
                &changes,
                &"-o",
                &output,
            ]))
        },
        osmium: |input, changes, output| run_osmium(&["apply-changes"], &[input, changes], output),
    },
    Row {
        name: "renumber",
        suits: is_current_and_sorted,
        ours: |input, _, output| drop(run_ok(&[&"renumber", &input, &"-o", &output])),
        osmium: |input, _, output| run_osmium(&["renumber"], &[input], output),
    },
    Row {
        name: "renumber -s 7,-1,100000 -t node,way",
        suits: is_current_and_sorted,
        ours: |input, _, output| {
            let args = ["-s", "7,-1,100000", "-t", "node,way"];
            drop(run_ok(&[
                &"renumber",
                &args[0],
                &args[1],
                &args[2],
                &args[3],
                &input,
                &"-o",
                &output,
            ]))
        },
        osmium: |input, _, output| {
            let args = ["renumber", "-s", "7,-1,100000", "-t", "node", "-t", "way"];
            run_osmium(&args, &[input], output)
        },
    },
    Row {
        name: "time-filter",
        suits: common::is_canonical,
        ours: |input, _, output| {
            drop(run_ok(&[
                &"time-filter",
                &input,
                &"2018-06-01T00:00:00Z",
                &"-o",
                &output,
            ]))
        },
        osmium: |input, _, output| {
            // osmium expects the time after the file.
            let time = Path::new("2018-06-01T00:00:00Z");
            run_osmium(&["time-filter"], &[input, time], output)
        },
    },
    Row {
        name: "merge of a file and itself",
        suits: is_current_and_sorted,
        ours: |input, _, output| drop(run_ok(&[&"merge", &input, &input, &"-o", &output])),
        osmium: |input, _, output| run_osmium(&["merge"], &[input, input], output),
    },
    Row {
        name: "cat of OSM XML",
        suits: |_| true,
        ours: |input, _, output| {
            let text = output.with_extension("osm.gz");
            run_ok(&[&"cat", &"-q", &"-O", &input, &"-f", &"osm.gz", &"-o", &text]);
            drop(run_ok(&[&"cat", &text, &"-o", &output]))
        },
        osmium: |input, _, output| run_osmium(&["cat"], &[input], output),
    },
];

fn is_current_and_sorted(objects: &[Object]) -> bool {
    common::is_canonical(objects) && objects.iter().all(|object| object.visible)
}

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

/// A change file that modifies and deletes some of `objects` and creates others.
fn changes_for(objects: &[Object], directory: &Path) -> PathBuf {
    let mut text = String::from("<osmChange version=\"0.6\"><modify>");
    let version = |object: &Object| object.version.unwrap_or(0) + 1;
    for object in objects.iter().filter(|object| object.id > 0).step_by(97) {
        let (id, version) = (object.id, version(object));
        let tags = "<tag k='name' v='changed &amp; moved'/><tag k='n&#10;l' v=''/>";
        text += &match object.kind {
            common::Kind::Node => format!(
                "<node id='{id}' version='{version}' timestamp='2030-01-01T00:00:00Z' lat='1.5' lon='-2.25'>{tags}</node>"
            ),
            common::Kind::Way => format!(
                "<way id='{id}' version='{version}' timestamp='2030-01-01T00:00:00Z' changeset='9' uid='8' user='ü'><nd ref='{id}'/>{tags}</way>"
            ),
            common::Kind::Relation => format!(
                "<relation id='{id}' version='{version}'><member type='way' ref='{id}' role='r'/></relation>"
            ),
        };
    }
    text += "</modify><delete>";
    for object in objects
        .iter()
        .filter(|object| object.id > 0)
        .skip(11)
        .step_by(101)
    {
        let kind = ["node", "way", "relation"][object.kind as usize];
        text += &format!(
            "<{kind} id='{}' version='{}'/>",
            object.id,
            version(object) + 1
        );
    }
    text += "</delete><create>";
    for id in (1..200).map(|id| id * 1_000_003) {
        text += &format!("<node id='{id}' version='1' lat='0' lon='0'/>");
    }
    text += "<way id='99999999999' version='1'><nd ref='1'/></way><relation id='99999999999' version='1'/></create></osmChange>";
    let path = directory.join("changes.osc");
    std::fs::write(&path, text).unwrap();
    path
}

fn compare<'a>(input: &Path, rows: impl IntoIterator<Item = &'a Row>) {
    let dir = tempfile::tempdir().unwrap();
    let objects = decode::objects(input);
    let changes = changes_for(&objects, dir.path());
    // osmium writes deleted versions only to files with this extension.
    let suffix = if input.to_string_lossy().ends_with(".osh.pbf") {
        "osh"
    } else {
        "osm"
    };
    let [ours, theirs] =
        ["ours", "theirs"].map(|name| dir.path().join(format!("{name}.{suffix}.pbf")));
    for row in rows.into_iter().filter(|row| (row.suits)(&objects)) {
        println!("{}: {}", row.name, input.display());
        let _ = std::fs::remove_file(&ours);
        (row.ours)(input, &changes, &ours);
        (row.osmium)(input, &changes, &theirs);
        assert_same_opl(
            &opl_without_locations(&ours),
            &opl_without_locations(&theirs),
        );
    }
}

#[test]
fn commands_give_what_osmium_gives_on_every_real_file() {
    if osmium() {
        let (large, small): (Vec<_>, Vec<_>) = (real_files().into_iter())
            .partition(|input| std::fs::metadata(input).unwrap().len() > 1_000_000);
        // In short runs, each file is tested with a part of the rows, in turn.
        for (turn, input) in small.iter().enumerate() {
            compare(input, in_turn(turn, 2, ROWS));
        }
        for (turn, input) in large.iter().enumerate() {
            compare(input, in_turn(turn, large.len().max(3), ROWS));
        }
    }
}

#[test]
fn commands_give_what_osmium_gives_on_a_generated_world() {
    if osmium() {
        let dir = tempfile::tempdir().unwrap();
        let world = dir.path().join("world.osm.pbf");
        let elements = if is_long() { "150000" } else { "25000" };
        run_ok(&[&"synth", &"--objects", &elements, &"-o", &world]);
        compare(&world, ROWS);
    }
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
