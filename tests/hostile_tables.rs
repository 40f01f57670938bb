//! Small files whose features and rows would be large: tables, feeds and text leave out what no reader could hold, and
//! write everything else in bounded memory.

use crate::common::answers::{Answer, ask};
use crate::common::craft::Message;
use crate::common::{Arg, hostile, is_long};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The number of nodes of way 1.
const NODES: usize = 2000;
/// How often the route names way 1. Its lines would have 4.4 million points, which are 70 MB.
const TIMES: usize = 2200;

/// Nodes, way 1 of these nodes, and a route that names the way again and again.
fn route() -> String {
    let mut text = String::new();
    for id in 1..=NODES {
        writeln!(text, "n{id} x{}.{:03} y50", id / 1000, id % 1000).unwrap();
    }
    let refs: Vec<String> = (1..=NODES).map(|id| format!("n{id}")).collect();
    writeln!(text, "w1 Thighway=path N{}", refs.join(",")).unwrap();
    let members = ["w1@"; TIMES].join(",");
    writeln!(text, "r1 Ttype=route,route=hiking M{members}").unwrap();
    text
}

/// The number of tags of an object with too long tags. They share a value of a megabyte.
const TAGS: u8 = 70;

/// The strings of a block: the keys 1 to [`TAGS`], the value after them, and a tag of other objects.
fn strings() -> Vec<String> {
    let keys = (0..=TAGS).map(|key| format!("k{key}"));
    let value = "x".repeat(1_000_000);
    keys.chain([value, "amenity".into(), "bench".into()])
        .collect()
}

fn write_blocks(path: &Path, groups: &[Message]) {
    let strings = strings();
    let strings: Vec<&str> = strings.iter().map(String::as_str).collect();
    hostile::write(path, &strings, groups);
}

/// The nodes from 1 on, with the given tags, as runs of dense nodes.
fn nodes(tags: &[Vec<u8>]) -> Message {
    let steps = vec![2; tags.len()];
    let dense = Message::new()
        .bytes(1, &steps)
        .bytes(8, &steps)
        .bytes(9, &steps)
        .bytes(10, &tags.concat());
    Message::new().message(2, dense)
}

/// The tags of an object with too long tags, as a run of dense nodes.
fn long_tags() -> Vec<u8> {
    let tags = (1..=TAGS).flat_map(|key| [key, TAGS + 1]);
    tags.chain([0]).collect()
}

/// Writes a file in PBF.
fn write(dir: &Path, text: &str) -> PathBuf {
    let [opl, pbf] = ["in.opl", "in.osm.pbf"].map(|name| dir.join(name));
    std::fs::write(&opl, text).unwrap();
    let answer = ask(&[&"cat", &opl, &"-O", &"-o", &pbf]);
    assert_eq!(answer.status, 0, "{answer:?}");
    pbf
}

/// Runs a command with `--stats`. Also returns the peak of its memory in bytes.
fn measured(dir: &Path, args: &[Arg]) -> (Answer, u64) {
    let stats = dir.join("stats.json");
    let answer = ask(&[args, &[&"-j", &"2", &"--stats", &stats]].concat());
    assert_eq!(answer.status, 0, "{answer:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    (answer, report["peak_memory_bytes"].as_u64().unwrap())
}

/// The arguments of `export` for all forms of features.
const FORMS: [&str; 4] = [
    "-o out.parquet",
    "-o out.d --partition geometry_type --with country,centroid",
    "-o out.geojsonseq --line-relations route",
    "-o out.wkt -f text --line-relations route",
];

fn export(dir: &Path, input: &Path, form: &str) -> (Answer, u64) {
    let words: Vec<String> = form
        .split(' ')
        .map(|word| word.replace("out.", &dir.join("out.").to_string_lossy()))
        .collect();
    let mut args: Vec<Arg> = vec![&"export", &"--json", &"-O", &input];
    args.extend(words.iter().map(|word| word as Arg));
    measured(dir, &args)
}

#[test]
fn export_leaves_out_a_route_that_names_a_way_thousands_of_times() {
    let dir = tempfile::tempdir().unwrap();
    let input = write(dir.path(), &route());
    for form in FORMS {
        let (answer, peak) = export(dir.path(), &input, form);
        let summary = answer.json();
        assert_eq!(summary["errors"]["too_many_nodes"], 1, "{form}: {summary}");
        assert_eq!(summary["lines"], 1, "{form}: {summary}");
        assert!(peak < 250_000_000, "{form}: {peak}");
    }
}

#[test]
fn features_and_rows_leave_out_an_object_with_too_long_tags() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.osm.pbf");
    let bench = vec![TAGS + 2, TAGS + 3, 0];
    write_blocks(&input, &[nodes(&[long_tags(), bench, long_tags()])]);
    let warning = "node 1 and another object are left out";
    for form in FORMS.iter().chain(&["-o out.raw --raw"]) {
        let (answer, peak) = export(dir.path(), &input, form);
        let summary = answer.json();
        assert_eq!(summary["features"], 1, "{form}: {summary}");
        assert!(answer.stderr.contains(warning), "{form}: {answer:?}");
        assert!(peak < 250_000_000, "{form}: {peak}");
    }
}

#[test]
fn actions_leave_out_an_object_with_too_long_tags() {
    let dir = tempfile::tempdir().unwrap();
    let [input, changes] = ["in.osm.pbf", "c.opl"].map(|name| dir.path().join(name));
    let keys: Vec<u8> = (1..=TAGS).collect();
    let way = Message::new()
        .varint(1, 7)
        .bytes(2, &keys)
        .bytes(3, &[TAGS + 1; TAGS as usize])
        .bytes(8, &[2, 2]);
    let bench = vec![TAGS + 2, TAGS + 3, 0];
    let ways = Message::new().message(3, way);
    write_blocks(&input, &[nodes(&[bench, vec![0]]), ways]);
    std::fs::write(&changes, "n1 v2 x8.1 y50 Tamenity=bench\n").unwrap();
    for name in ["a.parquet", "a.geojson"] {
        let output = dir.path().join(name);
        let args: [Arg; 5] = [&"augmented-diff", &input, &changes, &"-o", &output];
        let (answer, peak) = measured(dir.path(), &args);
        let is_warned = answer.stderr.contains("way 7 is left out");
        assert!(is_warned, "{name}: {answer:?}");
        assert!(output.metadata().unwrap().len() < 100_000, "{name}");
        assert!(peak < 350_000_000, "{name}: {peak}");
    }
}

/// All rows have the same place in the order of a table.
#[test]
fn long_rows_at_one_place_take_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.osm.pbf");
    let count = if is_long() { 2000 } else { 200 };
    let value = "x".repeat(1_000_000);
    hostile::write(
        &input,
        &["", "k", &value],
        &[hostile::tagged_nodes(count, 1)],
    );
    for form in [
        "-o out.parquet",
        "-o out.parquet --compression none --column k",
        "-o out.raw --raw",
        "-o out.geojsonseq",
    ] {
        let (answer, peak) = export(dir.path(), &input, form);
        assert_eq!(answer.json()["features"], count, "{form}");
        assert!(peak < 400_000_000, "{form}: {peak}");
    }
}
