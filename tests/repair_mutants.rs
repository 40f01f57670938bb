//! `repair` of mutated files, most of them with right checksums, and of files that are joined: `check --index --full`
//! finds nothing in the output, osmium reads it, and what `check` accepts is whole. `PBFHOGG_REPAIR_MUTANTS=5000` tries
//! so many mutants (`.ci/long mutants`); a sample is always tried.

use crate::common::answers::ask;
use crate::common::craft::{self, Message};
use crate::common::mutants::{mutant, real_seeds, small_seeds};
use crate::common::oracle::{osmium, real_file};
use crate::common::random::Random;
use crate::common::repaired::repair_to;
use crate::common::writers::{Shape, WRITERS};
use crate::common::{Arg, Kind, decode, in_turn, is_long, writers};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The report of `check --index --full`, and the exit status.
fn checked(path: &Path) -> (Value, i32) {
    let args: [Arg; 6] = [&"check", &"--index", &"--full", &"--json", &"-j1", &path];
    let answer = ask(&args);
    let report = serde_json::from_str(&answer.stdout).unwrap_or_default();
    (report, answer.status)
}

/// Whether a check found nothing that readers refuse. Locations in ways that are not those of the nodes are data.
fn is_valid(report: &Value) -> bool {
    let counts = ["out_of_order", "duplicates", "outside", "faults"].map(|name| &report[name]);
    let index = ["damaged", "differences"].map(|name| &report["index"][name]);
    let is_none = |count: &&Value| count.is_null() || **count == 0;
    report.is_object() && counts.iter().chain(&index).all(is_none)
}

/// Whether osmium reads a file. Builds without zstd cannot tell for blobs that a mutation has compressed with it.
fn is_read_by_osmium(path: &Path) -> bool {
    let mut command = Command::new("osmium");
    command.args(["cat", "-f", "opl", "-o", "-"]).arg(path);
    command.stdout(std::process::Stdio::null());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    output.status.success() || stderr.contains("zstd blobs not supported")
}

/// Repairs a file. Returns what is wrong with the result, or the exit status.
fn complaint(input: &Path, output: &Path, has_osmium: bool) -> Result<i32, String> {
    let _ = fs::remove_file(output);
    let args: [Arg; 6] = [&"repair", &"--json", &"-j1", &input, &"-o", &output];
    let repaired = ask(&args);
    let report: Value = serde_json::from_str(&repaired.stdout).unwrap_or_default();
    match repaired.status {
        0 | 1 if report.is_object() => {}
        2 if output.exists() => return Err("an output of a repair that failed".into()),
        2 => {}
        _ => return Err(format!("{repaired:?}")),
    }
    let (_, accepted) = checked(input);
    // A frame of an unknown type is skipped by readers, as the format demands. `repair` takes the objects in it.
    let is_misnamed = |mended: &Value| mended["cause"] == "the type of the blob is damaged";
    let mended = report["mended"].as_array();
    let is_whole = repaired.status == 0
        && report["was_sorted"] == true
        && report["lost"].as_array().is_some_and(Vec::is_empty);
    let has_misnamed = mended.is_some_and(|mended| mended.iter().any(is_misnamed));
    if accepted == 0 && !has_misnamed && !(is_whole && mended.is_some_and(Vec::is_empty)) {
        return Err(format!("check accepts it: {repaired:?}"));
    }
    if repaired.status == 2 {
        return Ok(2);
    }
    let (found, _) = checked(output);
    if !is_valid(&found) {
        return Err(format!("check of the output: {found}"));
    }
    if has_osmium && !is_read_by_osmium(output) {
        return Err("osmium does not read the output".into());
    }
    Ok(repaired.status)
}

#[test]
fn what_is_repaired_passes_the_check_and_what_passes_is_whole() {
    let asked = std::env::var("PBFHOGG_REPAIR_MUTANTS").ok();
    let asked = asked.and_then(|count| count.parse::<usize>().ok());
    let has_osmium = osmium();
    let real = if asked.is_some() {
        real_seeds()
    } else {
        Vec::new()
    };
    let (seeds, next) = ([small_seeds(), real].concat(), AtomicUsize::new(0));
    let (wrong, ends) = (Mutex::new(Vec::new()), Mutex::new([0; 3]));
    let worker = || {
        let dir = tempfile::tempdir().unwrap();
        let [input, output] = ["in.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= asked.unwrap_or(8) {
                return;
            }
            fs::write(&input, mutant(&seeds, &mut Random(number as u64))).unwrap();
            match complaint(&input, &output, has_osmium) {
                Ok(status) => ends.lock().unwrap()[status as usize] += 1,
                Err(fault) => {
                    let fault = format!("mutant {number}: {fault}");
                    wrong.lock().unwrap().push(fault);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
        for _ in 0..threads {
            scope.spawn(worker);
        }
    });
    println!(
        "ended with status 0, 1, 2: {:?}",
        ends.into_inner().unwrap()
    );
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A part of a real file as each writer of `chosen` writes it.
fn written(dir: &Path, chosen: impl Iterator<Item = writers::Writer>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for writer in chosen {
        let path = dir.join(writer.name).with_extension("osm.pbf");
        let shape = Shape {
            extract: real_file("monaco.osm.pbf"),
            part: writers::Part::Middle,
            writer: Some(writer),
        };
        if shape.write(dir, &path) {
            paths.push(path);
        }
    }
    paths
}

#[test]
fn files_of_two_writers_behind_each_other_become_one_that_passes_the_check() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let joined = dir.path().join("joined.osm.pbf");
    let short = ["osmium-located", "osmium-plain"];
    let is_chosen = |writer: &writers::Writer| is_long() || short.contains(&writer.name);
    let files = written(dir.path(), WRITERS.into_iter().filter(is_chosen));
    let pairs = files
        .iter()
        .flat_map(|one| files.iter().map(move |two| (one, two)));
    let pairs = pairs.filter(|(one, two)| one != two);
    for (turn, (one, two)) in pairs.enumerate() {
        let parts = [one, two].map(|path| fs::read(path).unwrap());
        fs::write(&joined, parts.concat()).unwrap();
        let output = dir.path().join("out.osm.pbf");
        let what = format!("{} {}", one.display(), two.display());
        assert_eq!(complaint(&joined, &output, true), Ok(0), "{what}");
        let ids = |path: &Path| -> Vec<(Kind, i64)> {
            let objects = decode::objects(path).into_iter();
            objects.map(|object| (object.kind, object.id)).collect()
        };
        // Both files have the same objects.
        for part in in_turn(turn, 4, [one, two]) {
            assert!(ids(&output) == ids(part), "{what}");
        }
    }
}

/// A file with two nodes and a way, whose ids begin at `first`. The way has the locations of its nodes if the file
/// declares features.
fn part(first: i64, features: &[&str]) -> Vec<u8> {
    let nodes = Message::new()
        .packed_deltas(1, &[first, first + 1])
        .packed_deltas(8, &[10, 20])
        .packed_deltas(9, &[10, 20]);
    let way = Message::new()
        .varint(1, first as u64)
        .packed_deltas(8, &[first, first + 1]);
    let way = match features {
        [] => way,
        _ => way.packed_deltas(9, &[10, 20]).packed_deltas(10, &[10, 20]),
    };
    let blocks = [(2, nodes), (3, way)].map(|(number, message)| {
        let block = Message::new().message(1, Message::new().bytes(1, b""));
        let group = Message::new().message(number, message);
        block.message(2, group).to_bytes()
    });
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], features);
    craft::file(header, &blocks)
}

#[test]
fn the_header_declares_locations_only_if_all_ways_have_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("joined.osm.pbf");
    const LOCATED: &str = "LocationsOnWays";
    let forms: [&[&str]; 4] = [
        &[],
        &[LOCATED],
        &[LOCATED, "pbfhogg.AllNodes"],
        &[LOCATED, "pbfhogg.NeededNodes"],
    ];
    for (one, two) in (0..4).flat_map(|one| (0..4).map(move |two| (one, two))) {
        let (first, second) = (forms[one], forms[two]);
        let what = format!("{first:?} {second:?}");
        fs::write(&path, [part(1, first), part(11, second)].concat()).unwrap();
        let (output, report, status) = repair_to(&path, &[]);
        assert_eq!(
            (status, &report["headers"]),
            (0, &2.into()),
            "{what}: {report}"
        );
        let objects = decode::objects(&output);
        assert_eq!(objects.len(), 6, "{what}");
        let mut declared = decode::header(&output).optional;
        declared.retain(|name| name == LOCATED || name.starts_with("pbfhogg."));
        let expected: &[&str] = match (first, second) {
            ([], _) | (_, []) => &[],
            (first, second) if first == second => first,
            _ => &[LOCATED],
        };
        assert_eq!(declared, expected, "{what}");
        let ways = objects.iter().filter(|object| object.kind == Kind::Way);
        let kept = ways.filter(|way| !way.locations.is_empty()).count();
        let had = [first, second]
            .iter()
            .filter(|form| !form.is_empty())
            .count();
        assert_eq!(kept, had, "{what}");
    }
}

#[test]
fn the_strings_of_a_table_that_no_header_announces_are_no_table() {
    let dir = tempfile::tempdir().unwrap();
    let [indexed, path] = ["indexed.osm.pbf", "in.osm.pbf"].map(|name| dir.path().join(name));
    let plain = part(1, &[]);
    fs::write(&path, &plain).unwrap();
    let args: [Arg; 6] = [&"repack", &"-n1", &"-O", &path, &"-o", &indexed];
    assert_eq!(ask(&args).status, 0);
    // Another program copies all blobs but one, and writes a header of its own.
    let copied = decode::all_frames(&indexed)[2].offset as usize;
    let bytes = fs::read(&indexed).unwrap();
    let header_end = decode::all_frames(&path)[1].offset as usize;
    fs::write(&path, [&plain[..header_end], &bytes[copied..]].concat()).unwrap();
    let (_, accepted) = checked(&path);
    let (output, report, status) = repair_to(&path, &[]);
    assert_eq!((accepted, status), (0, 0), "{report}");
    assert!(report["lost"].as_array().unwrap().is_empty(), "{report}");
    assert_eq!(decode::objects(&output).len(), 2);
}

#[test]
fn a_file_without_objects_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.osm.pbf");
    fs::write(&path, craft::plain_file(&[])).unwrap();
    let (output, report, status) = repair_to(&path, &[]);
    assert_eq!((status, &report["whole_blobs"]), (0, &0.into()));
    assert!(decode::objects(&output).is_empty());
}

#[test]
fn tags_without_a_key_are_named_by_check_and_left_out_by_repair() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.osm.pbf");
    let strings = [&b""[..], b"v", b""].into_iter();
    let strings = strings.fold(Message::new(), |table, text| table.bytes(1, text));
    for key in [0, 2] {
        let relation = Message::new()
            .varint(1, 7)
            .packed_uint(2, &[key])
            .packed_uint(3, &[1]);
        let block = Message::new()
            .message(1, strings.clone())
            .message(2, Message::new().message(4, relation));
        fs::write(&path, craft::plain_file(&[block.to_bytes()])).unwrap();
        let (found, status) = checked(&path);
        assert_eq!((status, &found["faults"]), (1, &1.into()), "{found}");
        let what = &found["listed_faults"][0]["what"];
        assert_eq!(what, "the value \"v\" has no key");
        let (_, report, status) = repair_to(&path, &[]);
        assert_eq!(
            (status, &report["changes"]["parts_dropped"]),
            (1, &1.into())
        );
    }
}

/// A block with one object that has the given version and changeset. `message` is the number of its message in the
/// group: 1 for a node, 2 for dense nodes, 3 for a way, 4 for a relation.
fn block_with_info(message: u32, version: i64, changeset: i64) -> Vec<u8> {
    let object = if message == 2 {
        let info = Message::new()
            .packed_uint(1, &[1, version as u64])
            .packed_deltas(2, &[1000, 1000])
            .packed_deltas(3, &[7, changeset])
            .packed_deltas(4, &[9, 9])
            .packed_deltas(5, &[1, 1]);
        Message::new()
            .packed_deltas(1, &[6, 7])
            .message(5, info)
            .packed_deltas(8, &[10, 10])
            .packed_deltas(9, &[10, 10])
    } else {
        let info = Message::new()
            .varint(1, version as u64)
            .varint(2, 1000)
            .varint(3, changeset as u64)
            .varint(4, 9)
            .varint(5, 1);
        let object = match message {
            1 => Message::new().sint(1, 7).sint(8, 10).sint(9, 10),
            _ => Message::new().varint(1, 7),
        };
        let object = object.message(4, info);
        if message == 3 {
            object.packed_deltas(8, &[1, 2])
        } else {
            object
        }
    };
    let strings = Message::new().bytes(1, b"").bytes(1, b"name");
    let group = Message::new().message(message, object);
    let block = Message::new().message(1, strings).message(2, group);
    block.to_bytes()
}

#[test]
fn metadata_that_osmium_refuses_is_named_by_check_and_left_out_by_repair() {
    let has_osmium = osmium();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.osm.pbf");
    let (small, large) = (i64::from(i32::MIN), i64::from(u32::MAX));
    for message in 1..=4 {
        for (version, changeset, refused) in [
            (2, 7, None),
            (-1, -1, None),
            (0, large - 1, None),
            (i32::MAX.into(), 0, None),
            (-2, 7, Some("the version -2 is out of range")),
            (small, 7, Some("the version -2147483648 is out of range")),
            (2, large, Some("the changeset 4294967295 is out of range")),
            (
                2,
                i64::MAX / 4,
                Some("the changeset 2305843009213693951 is out of range"),
            ),
            (2, -2, Some("the changeset -2 is out of range")),
        ] {
            let block = block_with_info(message, version, changeset);
            fs::write(&path, craft::plain_file(&[block])).unwrap();
            assert!(!has_osmium || is_read_by_osmium(&path) == refused.is_none());
            let (found, status) = checked(&path);
            let what = found["listed_faults"][0]["what"].as_str();
            assert_eq!(
                (what, status),
                (refused, i32::from(refused.is_some())),
                "{found}"
            );
            let (output, report, status) = repair_to(&path, &[]);
            assert_eq!(status, i32::from(refused.is_some()), "{report}");
            assert_eq!(
                report["changes"]["parts_dropped"],
                i32::from(refused.is_some())
            );
            assert!(is_valid(&checked(&output).0));
            assert!(!has_osmium || is_read_by_osmium(&output));
            let objects = decode::objects(&output);
            let object = objects.last().unwrap();
            // The rest of the metadata stays.
            assert_eq!((object.id, object.uid), (7, Some(9)));
        }
    }
}
