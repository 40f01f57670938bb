//! Relations that name the same members again and again: work and memory are in proportion to the file, and not to the
//! number of times that a few bytes are repeated.

use crate::common::answers::{Answer, ask};
use crate::common::craft::{self, Message};
use crate::common::hostile;
use crate::common::{Arg, is_long};
use std::path::{Path, PathBuf};

/// The number of nodes of each way.
const NODES: i64 = 60;

/// The memory that a command may take, in bytes. A debug build takes some 40 MB for nothing.
const MOST_BYTES: u64 = 200_000_000;

/// Returns a block of nodes at the corners of a regular polygon.
fn nodes() -> Message {
    let at = |index: i64| {
        let angle = index as f64 / NODES as f64 * std::f64::consts::TAU;
        (
            (angle.cos() * 1e7) as i64 + 500_000_000,
            (angle.sin() * 1e7) as i64 + 80_000_000,
        )
    };
    let places: Vec<(i64, i64)> = (0..NODES).map(at).collect();
    let ids: Vec<i64> = (1..=NODES).collect();
    let lat: Vec<i64> = places.iter().map(|place| place.0).collect();
    let lon: Vec<i64> = places.iter().map(|place| place.1).collect();
    let dense = Message::new()
        .packed_deltas(1, &ids)
        .packed_deltas(8, &lat)
        .packed_deltas(9, &lon);
    Message::new().message(2, dense)
}

/// Returns a block with the closed way 1 around all nodes.
fn ways() -> Message {
    let refs: Vec<i64> = (1..=NODES).chain([1]).collect();
    let way = Message::new().varint(1, 1).packed_deltas(8, &refs);
    Message::new().message(3, way)
}

/// Returns a block of relations with the strings 1 and 2 as tag, each of which has the way 1 `count` times.
fn relations(number: u64, count: usize) -> Message {
    (1..=number).fold(Message::new(), |group, id| {
        let ids = [vec![2], vec![0; count - 1]].concat();
        let relation = Message::new()
            .varint(1, id)
            .bytes(2, &[1])
            .bytes(3, &[2])
            .bytes(8, &vec![0; count])
            .bytes(9, &ids)
            .bytes(10, &vec![1; count]);
        group.message(4, relation)
    })
}

/// Writes a file of relations of a type with `count` members each.
fn write(path: &Path, type_of: &str, number: u64, count: usize) {
    hostile::write(
        path,
        &["", "type", type_of],
        &[nodes(), ways(), relations(number, count)],
    );
    assert!(std::fs::metadata(path).unwrap().len() < 100_000);
}

/// Runs the program with one job. Returns its answer and its peak memory in bytes.
fn measured(args: &[Arg], stats: &Path) -> (Answer, u64) {
    let answer = ask(&[args, &[&"-j", &"1", &"--stats", &stats]].concat());
    let text = std::fs::read(stats).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&text).unwrap();
    (answer, report["peak_memory_bytes"].as_u64().unwrap())
}

/// The commands that look at the members of relations.
const COMMANDS: [&str; 12] = [
    "export -q -n -f geojsonseq {in} -o {out}.json",
    "export -q -n -f geojsonseq --line-relations route {in} -o {out}.json",
    "build-geocode-index -q {in} -o {out}",
    "augmented-diff -q {in} {day} -o {out}.adiff",
    "augmented-diff -q -f geojsonseq {in} {day} -o {out}.json",
    "augmented-diff -q -b 1,1,60,60 {in} {day} -o {out}.adiff",
    "extract -q --smart -b 0,0,80,80 {in} -o {out}.osm.pbf",
    "getid -q -r {in} r1 -o {out}.osm.pbf",
    "tags-filter -q {in} r/type -o {out}.osm.pbf",
    "check -q --full {in}",
    "inspect -q {in}",
    "diff -q {in} {in}",
];

#[test]
fn every_reader_of_relations_takes_bounded_memory_for_a_member_that_is_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let changes = "<osmChange version='0.6'><modify><node id='5' version='9' lat='50' lon='8'/></modify></osmChange>";
    std::fs::write(path("day.osc"), changes).unwrap();
    let count = if is_long() { 1_900_000 } else { 150_000 };
    // With the nodes of each member, 150,000 members alone take 144 MB, and 300 MB as text.
    for (number, type_of) in ["multipolygon", "route"].iter().enumerate() {
        let input = path(&format!("in-{type_of}.osm.pbf"));
        write(&input, type_of, 3, count);
        for (place, command) in COMMANDS.iter().enumerate() {
            let out = format!("out-{number}-{place}");
            let words: Vec<PathBuf> = command
                .split(' ')
                .map(|word| match word {
                    "{in}" => input.clone(),
                    "{day}" => path("day.osc"),
                    word if word.contains("{out}") => path(&word.replace("{out}", &out)),
                    word => PathBuf::from(word),
                })
                .collect();
            let args: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
            let (answer, peak) = measured(&args, &path("stats.json"));
            println!("{type_of} {command}: {} {peak}", answer.status);
            assert!(answer.status <= 1, "{command}: {}", answer.stderr);
            let most = if is_long() {
                2 * MOST_BYTES
            } else {
                MOST_BYTES
            };
            assert!(peak <= most, "{type_of} {command}: {peak}");
        }
    }
}

#[test]
fn a_member_way_that_is_repeated_counts_once_for_an_area() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let [once, often] = [1, 50_000].map(|count| {
        let (input, output) = (path("in.osm.pbf"), path("out.json"));
        write(&input, "multipolygon", 2, count);
        let args: [Arg; 9] = [
            &"export",
            &"-f",
            &"geojsonseq",
            &"-n",
            &"--json",
            &"-O",
            &input,
            &"-o",
            &output,
        ];
        let answer = ask(&args);
        assert_eq!(answer.status, 0, "{}", answer.stderr);
        (std::fs::read_to_string(&output).unwrap(), answer.json())
    });
    assert_eq!(once.0, often.0);
    assert_eq!(often.0.matches("MultiPolygon").count(), 2);
    assert_eq!(once.1["warnings"]["duplicate_way"], serde_json::Value::Null);
    assert_eq!(often.1["warnings"]["duplicate_way"], 2);
}

#[test]
fn a_route_of_too_many_nodes_is_left_out_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (input, output) = (path("in.osm.pbf"), path("out.json"));
    // 61 nodes 50,000 times are more than 3,000,000.
    write(&input, "route", 2, 50_000);
    let args: [Arg; 9] = [
        &"export",
        &"-f",
        &"geojsonseq",
        &"--line-relations",
        &"route",
        &"--json",
        &input,
        &"-o",
        &output,
    ];
    let answer = ask(&args);
    assert_eq!(answer.json()["errors"]["too_many_nodes"], 2, "{answer:?}");
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "");
}

#[test]
fn a_relation_of_too_many_nodes_has_no_geometry_in_an_augmented_diff() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (input, output) = (path("in.osm.pbf"), path("out.adiff"));
    let changes = "<osmChange version='0.6'><modify><node id='5' version='9' lat='50' lon='8'/></modify></osmChange>";
    std::fs::write(path("day.osc"), changes).unwrap();
    for (count, without, nodes) in [(3, 0, 61 * 3 * 2), (20_000, 1, 0)] {
        write(&input, "multipolygon", 1, count);
        let args: [Arg; 7] = [
            &"augmented-diff",
            &"--json",
            &"-O",
            &input,
            &path("day.osc"),
            &"-o",
            &output,
        ];
        let answer = ask(&args);
        assert_eq!(answer.json()["without_geometry"], without, "{answer:?}");
        let text = std::fs::read_to_string(&output).unwrap();
        let relation = &text[text.find("<relation").unwrap()..];
        assert_eq!(relation.matches("<member").count(), 2 * count);
        assert_eq!(relation.matches("<nd").count(), nodes);
    }
}

/// Writes a file of relations of a type that each name the way 2, which goes `rounds` times around the nodes, and of one
/// that names the way 1.
fn write_long_way(path: &Path, type_of: &str, number: u64, rounds: i64) {
    let refs: Vec<i64> = (0..rounds).flat_map(|_| 1..=NODES).chain([1]).collect();
    let long = Message::new().varint(1, 2).packed_deltas(8, &refs);
    let relation = |group: Message, (id, way): (u64, i64)| {
        let relation = Message::new()
            .varint(1, id)
            .bytes(2, &[1])
            .bytes(3, &[2])
            .bytes(8, &[0])
            .packed_deltas(9, &[way])
            .bytes(10, &[1]);
        group.message(4, relation)
    };
    let relations = (1..=number).map(|id| (id, 2)).chain([(number + 1, 1)]);
    let groups = [
        nodes(),
        ways().message(3, long),
        relations.fold(Message::new(), relation),
    ];
    hostile::write(path, &["", "type", type_of], &groups);
    assert!(std::fs::metadata(path).unwrap().len() < 200_000);
}

/// A change of the node 5 with a version, in the changeset 9.
fn day(path: &Path, version: u32, lat: u32) {
    let changes = format!(
        "<osmChange version='0.6'><modify><node id='5' version='{version}' changeset='9' lat='{lat}' lon='8' \
         timestamp='2026-01-01T00:00:{version:02}Z'/></modify></osmChange>"
    );
    std::fs::write(path, changes).unwrap();
}

#[test]
fn the_geometry_of_a_member_of_many_relations_is_written_piece_by_piece() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let input = path("in.osm.pbf");
    day(&path("day.osc"), 9, 50);
    // The text has 46 MB for 300 relations, and 1.5 GB for 10,000.
    let number = if is_long() { 10_000 } else { 300 };
    write_long_way(&input, "route", number, 30);
    for (name, more) in [
        ("out.adiff", &[][..]),
        ("out.json", &[&"-f" as Arg, &"geojsonseq"]),
        ("out", &[&"--split" as Arg]),
    ] {
        let (base, changes, output) = (&input, &path("day.osc"), &path(name));
        let args: [Arg; 5] = [&"augmented-diff", base, changes, &"-o", output];
        let (answer, peak) = measured(&[&args[..], more].concat(), &path("stats.json"));
        assert_eq!(answer.status, 0, "{}", answer.stderr);
        // Actions by changeset are sorted.
        let is_sorted = is_long() || name == "out";
        let most = if is_sorted { MOST_BYTES } else { 90_000_000 };
        assert!(peak <= most, "{name}: {peak}");
    }
    // The directory has the same actions.
    let text = std::fs::read(path("out.adiff")).unwrap();
    assert!(text == std::fs::read(path("out/9.adiff")).unwrap());
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.matches("<action").count() as u64, number + 4);
}

#[test]
fn a_long_action_of_a_changeset_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (input, moved) = (path("in.osm.pbf"), path("moved.osm.pbf"));
    let [first, second] = [(9, 50), (10, 51)].map(|(version, lat)| {
        let changes = path(&format!("{version}.osc"));
        day(&changes, version, lat);
        changes
    });
    // The relation has a text of 5 MB.
    write(&input, "route", 1, 1000);
    let diff = |base: &Path, changes: &[&Path], output: &Path| {
        let mut args: Vec<Arg> = vec![&"augmented-diff", &"--split", &base];
        args.extend(changes.iter().map(|path| path as Arg));
        args.extend([&"-o" as Arg, &output]);
        let answer = ask(&args);
        assert_eq!(answer.status, 0, "{}", answer.stderr);
    };
    diff(&input, &[&first], &path("apart"));
    let applied: [Arg; 5] = [&"apply-changes", &input, &first, &"-o", &moved];
    assert_eq!(ask(&applied).status, 0);
    diff(&moved, &[&second], &path("apart"));
    diff(&input, &[&first, &second], &path("at-once"));
    let [apart, at_once] = ["apart", "at-once"].map(|name| {
        let text = std::fs::read_to_string(path(name).join("9.adiff")).unwrap();
        assert!(text.len() > 4 << 20);
        text
    });
    assert!(apart == at_once);
}

#[test]
fn areas_beyond_the_limit_of_a_small_file_are_left_out_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in.osm.pbf"), dir.path().join("out.json"));
    // The relations have 21 million nodes, of which 17 million are assembled in a file of this size.
    for (number, left_out) in [(100, None), (10_000, Some(10_000))] {
        write_long_way(&input, "multipolygon", number, 35);
        let args: [Arg; 9] = [
            &"export",
            &"-f",
            &"geojsonseq",
            &"-n",
            &"--json",
            &"-O",
            &input,
            &"-o",
            &output,
        ];
        let answer = ask(&args);
        let errors = &answer.json()["errors"];
        assert_eq!(errors["too_many_nodes"].as_u64(), left_out, "{answer:?}");
        let text = std::fs::read_to_string(&output).unwrap();
        let areas = text.matches("MultiPolygon").count() as u64;
        assert_eq!(areas, number + 1 - left_out.unwrap_or(0));
    }
}

#[test]
fn a_file_of_relations_without_members_in_the_file_stays_readable() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in.osm.pbf"), dir.path().join("out.json"));
    let blocks = [relations(2, 100_000)].map(|group| {
        let table = ["", "type", "multipolygon"]
            .iter()
            .fold(Message::new(), |table, text| {
                table.bytes(1, text.as_bytes())
            });
        Message::new()
            .message(1, table)
            .message(2, group)
            .to_bytes()
    });
    std::fs::write(&input, craft::plain_file(&blocks)).unwrap();
    let args: [Arg; 8] = [
        &"export",
        &"-n",
        &"-f",
        &"geojsonseq",
        &"--json",
        &input,
        &"-o",
        &output,
    ];
    let answer = ask(&args);
    assert_eq!(answer.json()["incomplete"], 2, "{answer:?}");
}
