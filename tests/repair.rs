//! `repair`: every object of every undamaged blob is saved, and nothing else comes; damage of many kinds, with what the
//! report says about it.

use crate::common::answers::{Answer, ask};
use crate::common::craft::{self, Message};
use crate::common::decode;
use crate::common::oracle::{real_file, real_files};
use crate::common::random::Random;
use crate::common::{Arg, Object, is_canonical, is_long, run_ok};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A damaged file, and the bytes of the original that are damaged.
struct Damaged {
    bytes: Vec<u8>,
    damaged: Range<usize>,
    what: String,
}

/// Damages a file in one of seven ways.
fn damage(original: &[u8], random: &mut Random) -> Damaged {
    let mut bytes = original.to_vec();
    let at = random.below(bytes.len());
    let end = (at + 1 + random.below(3000)).min(bytes.len());
    let (damaged, what) = match random.below(7) {
        0 => {
            bytes[at] ^= 1 << random.below(8);
            (at..at + 1, "a flipped bit")
        }
        1 => {
            bytes.truncate(at);
            (at..original.len(), "cut")
        }
        2 => {
            let noise: Vec<u8> = (at..end).map(|_| random.bits(8) as u8).collect();
            bytes.splice(at..at, noise);
            // Between two frames, an insertion damages none.
            (at.saturating_sub(1)..at + 1, "insertion")
        }
        3 => {
            bytes.drain(at..end);
            (
                at.saturating_sub(1)..(end + 1).min(original.len()),
                "deletion",
            )
        }
        4 => {
            bytes[at..end].fill(0);
            (at..end, "zeros")
        }
        5 => {
            bytes.extend_from_slice(original);
            (0..0, "twice")
        }
        _ => {
            let other = random.below(bytes.len());
            let len = (end - at).min(bytes.len() - other);
            let (one, two) = (at..at + len, other..other + len);
            let part = original[two.clone()].to_vec();
            bytes[one.clone()].copy_from_slice(&part);
            (one, "overwritten by another part")
        }
    };
    Damaged {
        bytes,
        damaged,
        what: format!("{what} at {at}..{end}"),
    }
}

fn shown(objects: &[Object]) -> HashSet<String> {
    objects.iter().map(|object| format!("{object:?}")).collect()
}

/// Repairs a file, and returns the objects, the report and the exit status. The output must be valid.
fn repair(input: &Path, more: &[Arg]) -> (Vec<Object>, Value, i32) {
    let output = input.with_file_name("repaired.osm.pbf");
    let args: [Arg; 6] = [&"repair", &"--json", &"-O", &input, &"-o", &output];
    let answer = ask(&[&args, more].concat());
    assert!(answer.status < 2, "{answer:?}");
    let check = ask(&[&"check", &"--index", &"--full", &output]);
    assert_eq!(check.status, 0, "{check:?}");
    (decode::objects(&output), answer.json(), answer.status)
}

#[test]
fn objects_of_undamaged_blobs_are_saved_and_no_others_come() {
    let dir = tempfile::tempdir().unwrap();
    let rounds = if is_long() { 1000 } else { 6 };
    let mut random = Random(7);
    for input in real_files() {
        let name = input.file_name().unwrap().to_str().unwrap();
        let original = fs::read(&input).unwrap();
        let frames: Vec<(Range<usize>, Vec<Object>)> = decode::all_frames(&input)
            .into_iter()
            .filter(|frame| frame.blob_type == "OSMData")
            .map(|frame| {
                let start = frame.offset as usize;
                (
                    start..start + frame.frame_len,
                    decode::block(&frame.payload),
                )
            })
            .collect();
        let every: Vec<Object> = frames
            .iter()
            .flat_map(|(_, objects)| objects.clone())
            .collect();
        let every = shown(&every);
        let path = dir.path().join("damaged.osm.pbf");
        for _ in 0..rounds {
            let damaged = damage(&original, &mut random);
            fs::write(&path, &damaged.bytes).unwrap();
            let is_whole = |frame: &Range<usize>| {
                damaged.damaged.end <= frame.start || frame.end <= damaged.damaged.start
            };
            let whole: Vec<Object> = frames
                .iter()
                .filter(|(frame, _)| is_whole(frame))
                .flat_map(|(_, objects)| objects.clone())
                .collect();
            let what = format!("{name}: {}", damaged.what);
            if whole.is_empty() {
                // Nothing may be left.
                assert!(ask(&[&"repair", &"--dry-run", &path]).status <= 2, "{what}");
                continue;
            }
            let (found, report, status) = repair(&path, &[]);
            let found = shown(&found);
            // lz4 has no checksum: damage may turn an object into another version of one that is whole.
            let has_checksum = !name.contains("lz4");
            let missing: Vec<_> = shown(&whole).difference(&found).take(3).cloned().collect();
            if has_checksum {
                assert!(missing.is_empty(), "{what}: {missing:?}\n{report}");
                let new: Vec<_> = found.difference(&every).take(3).cloned().collect();
                assert!(new.is_empty(), "{what}: {new:?}\n{report}");
            }
            let lost = report["lost"].as_array().unwrap();
            assert_eq!(
                status == 0,
                lost.is_empty() && report["changes"]["unreadable"] == 0,
                "{what}: {report}"
            );
            assert!(
                status == 1 || found.len() == every.len() || !has_checksum,
                "{what}: {report}"
            );
            assert_eq!(report["written"]["objects"], found.len() as u64, "{what}");
        }
    }
}

#[test]
fn undamaged_files_keep_their_objects() {
    let dir = tempfile::tempdir().unwrap();
    for input in real_files() {
        let copy = dir.path().join("copy.osm.pbf");
        fs::copy(&input, &copy).unwrap();
        let (found, report, status) = repair(&copy, &[]);
        let expected = decode::objects(&input);
        assert_eq!(status, 0, "{report}");
        assert!(shown(&found) == shown(&expected), "{}", input.display());
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&input).unwrap());
        assert_eq!(
            report["whole_blobs"],
            decode::frames(&input).len() as u64 - 1
        );
        assert!(report["lost"].as_array().unwrap().is_empty());
    }
}

/// A copy of a real file with a table of contents, one of whose blobs is damaged. Returns the ids of the blob.
fn with_lost_blob(dir: &Path) -> (PathBuf, Vec<Object>) {
    let path = dir.join("damaged.osm.pbf");
    run_ok(&[
        &"repack",
        &"-n",
        &"1000",
        &real_file("helsinki.osm.pbf"),
        &"-O",
        &"-o",
        &path,
    ]);
    let frames = decode::frames(&path);
    let lost = &frames[frames.len() / 3];
    let mut bytes = fs::read(&path).unwrap();
    bytes[lost.offset as usize + lost.frame_len / 2] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    (path, decode::block(&lost.payload))
}

#[test]
fn a_table_of_contents_tells_what_a_lost_blob_had() {
    let dir = tempfile::tempdir().unwrap();
    let (path, objects) = with_lost_blob(dir.path());
    let (found, report, status) = repair(&path, &[]);
    assert_eq!(status, 1);
    let [loss] = report["lost"].as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    assert_eq!(loss["objects"], objects.len() as u64);
    let (first, last) = (objects[0].id, objects[objects.len() - 1].id);
    let ids = &loss["ids"][0];
    assert_eq!((&ids["first"], &ids["last"]), (&first.into(), &last.into()));
    assert_eq!(
        (&ids["kind"], &ids["is_exact"]),
        (&"node".into(), &true.into())
    );
    let every = decode::objects(&real_file("helsinki.osm.pbf"));
    assert_eq!(found.len() + objects.len(), every.len());
    let text = ask(&[&"repair", &"--dry-run", &path]).stdout;
    let expected = format!("1,000 objects: nodes {first} to {last}");
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn another_file_fills_exactly_what_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let helsinki = real_file("helsinki.osm.pbf");
    let (path, objects) = with_lost_blob(dir.path());
    let (found, report, status) = repair(&path, &[&"--from", &helsinki]);
    assert_eq!(
        (status, &report["from"]["objects"]),
        (1, &(objects.len() as u64).into())
    );
    assert!(shown(&found) == shown(&decode::objects(&helsinki)));
    assert!(is_canonical(&found));
    // Without an index, the ids between the neighbours are taken.
    let mut bytes = fs::read(&helsinki).unwrap();
    let lost = &decode::frames(&helsinki)[1];
    bytes[lost.offset as usize + lost.frame_len / 2] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    let (found, report, _) = repair(&path, &[&"--from", &helsinki]);
    assert!(
        shown(&found) == shown(&decode::objects(&helsinki)),
        "{report}"
    );
}

#[test]
fn an_older_file_and_the_changes_since_give_the_data_of_today() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let [base, today, damaged, fixed, updated] =
        ["base", "today", "damaged", "fixed", "updated"].map(|name| at(&format!("{name}.osm.pbf")));
    run_ok(&[
        &"synth",
        &"--objects",
        &"60000",
        &"--changes",
        &"3",
        &"--changes-dir",
        &dir.path(),
        &"-o",
        &base,
    ]);
    let days = ["001.osc.gz", "002.osc.gz", "003.osc.gz"].map(at);
    run_ok(&[&"apply-changes", &base, &days[0], &days[1], &"-o", &damaged]);
    run_ok(&[
        &"apply-changes",
        &base,
        &days[0],
        &days[1],
        &days[2],
        &"-o",
        &today,
    ]);
    let frames = decode::frames(&damaged);
    let mut bytes = fs::read(&damaged).unwrap();
    for frame in [&frames[1], &frames[frames.len() - 3]] {
        bytes[frame.offset as usize + frame.frame_len / 2] ^= 1;
    }
    fs::write(&damaged, bytes).unwrap();
    let answer = ask(&[&"repair", &damaged, &"--from", &base, &"-o", &fixed]);
    assert!(
        answer
            .stdout
            .contains("`pbfhogg update` brings it up to date"),
        "{answer:?}"
    );
    let sequence = decode::header(&base).replication_sequence;
    assert!(sequence.is_some());
    assert_eq!(decode::header(&fixed).replication_sequence, sequence);
    run_ok(&[
        &"apply-changes",
        &fixed,
        &days[0],
        &days[1],
        &days[2],
        &"-o",
        &updated,
    ]);
    assert!(shown(&decode::objects(&updated)) == shown(&decode::objects(&today)));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn files_in_files_are_unpacked_and_joined() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.osm.pbf");
    let [helsinki, monaco] = ["helsinki.osm.pbf", "monaco.osm.pbf"].map(real_file);
    let bytes = fs::read(&helsinki).unwrap();
    let expected = shown(&decode::objects(&helsinki));
    fs::write(&path, gzip(&bytes)).unwrap();
    let (found, report, status) = repair(&path, &[]);
    assert_eq!((status, &report["unpacked"]), (0, &"gzip".into()));
    assert!(shown(&found) == expected);

    let packed = gzip(&bytes);
    fs::write(&path, &packed[..packed.len() * 2 / 3]).unwrap();
    let (found, report, status) = repair(&path, &[]);
    assert_eq!((status, &report["unpacked"]), (1, &"gzip".into()));
    assert_eq!(report["unpacked_in_part"], true);
    assert!(!found.is_empty() && shown(&found).is_subset(&expected));

    let both = [bytes, fs::read(&monaco).unwrap()].concat();
    fs::write(&path, both).unwrap();
    let (found, report, status) = repair(&path, &[]);
    assert_eq!(
        (status, &report["headers"], &report["was_sorted"]),
        (0, &2.into(), &false.into())
    );
    // Both have some relations, of which the newest version is kept.
    let mut newest: HashMap<_, Object> = HashMap::new();
    for object in [&helsinki, &monaco]
        .into_iter()
        .flat_map(|path| decode::objects(path))
    {
        let key = (object.kind, object.id);
        if newest
            .get(&key)
            .is_none_or(|other| other.version < object.version)
        {
            newest.insert(key, object);
        }
    }
    let newest: Vec<Object> = newest.into_values().collect();
    assert!(shown(&found) == shown(&newest) && is_canonical(&found));
}

#[test]
fn a_header_that_is_lost_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.osm.pbf");
    let helsinki = real_file("helsinki.osm.pbf");
    let bytes = fs::read(&helsinki).unwrap();
    let start = decode::frames(&helsinki)[1].offset as usize;
    for damaged in [
        bytes[start..].to_vec(),
        [&vec![0; start][..], &bytes[start..]].concat(),
    ] {
        fs::write(&path, damaged).unwrap();
        let (found, report, _) = repair(&path, &[]);
        assert_eq!(report["headers"], 0);
        assert!(
            shown(&found) == shown(&decode::objects(&helsinki)),
            "{report}"
        );
        let answer = ask(&[&"repair", &"--dry-run", &path]);
        assert!(
            answer.stdout.contains("no header can be read"),
            "{answer:?}"
        );
    }
}

/// A block with some strings, of messages of its group.
fn block(strings: &[&[u8]], messages: &[(u32, Message)]) -> Vec<u8> {
    let table = strings
        .iter()
        .fold(Message::new(), |table, string| table.bytes(1, string));
    let group = messages
        .iter()
        .fold(Message::new(), |group, (number, message)| {
            group.message(*number, message.clone())
        });
    Message::new()
        .message(1, table)
        .message(2, group)
        .to_bytes()
}

/// A way with one tag and two nodes.
fn way(id: u64, key: u64, value: u64) -> (u32, Message) {
    let way = Message::new().varint(1, id);
    let way = way.packed_uint(2, &[key]).packed_uint(3, &[value]);
    (3, way.packed_deltas(8, &[1, 2]))
}

fn node(id: i64, lat: i64) -> (u32, Message) {
    (
        1,
        Message::new().sint(1, id).sint(8, lat).sint(9, 130_000_000),
    )
}

/// Repairs a file of one block. Returns the objects, the changes of the report, and the exit status.
fn repair_block(payload: Vec<u8>, more: &[Arg]) -> (Vec<Object>, Value, i32) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("block.osm.pbf");
    fs::write(&path, craft::plain_file(&[payload])).unwrap();
    let (objects, report, status) = repair(&path, more);
    (objects, report["changes"].clone(), status)
}

#[test]
fn damage_within_a_blob_costs_what_it_hits() {
    let names: [&[u8]; 5] = [b"", b"name", b"caf\xe9", b"x", b""];
    let ids = |objects: &[Object]| objects.iter().map(|object| object.id).collect::<Vec<_>>();
    let tags = |object: &Object| object.tags.clone();
    // Text that is not UTF-8.
    let ways = [way(1, 1, 2), way(2, 1, 3)];
    let (found, changes, status) = repair_block(block(&names[..4], &ways), &[]);
    assert_eq!((ids(&found), status), (vec![1, 2], 1));
    assert_eq!(
        tags(&found[0]),
        [("name".to_owned(), "caf\u{fffd}".to_owned())]
    );
    assert_eq!(changes["texts_replaced"], 1);
    let (found, changes, _) = repair_block(block(&names[..4], &ways), &[&"--utf8", &"drop"]);
    assert!(tags(&found[0]).is_empty() && tags(&found[1]).len() == 1);
    assert_eq!(
        (&changes["texts_replaced"], &changes["parts_dropped"]),
        (&0.into(), &1.into())
    );
    // Strings that are not there, and tags without a key.
    for wrong in [way(1, 1, 9), way(1, 9, 3), way(1, 4, 3), way(1, 0, 3)] {
        let (found, changes, _) = repair_block(block(&names, &[wrong, way(2, 1, 3)]), &[]);
        assert_eq!((ids(&found), tags(&found[0]).len()), (vec![1, 2], 0));
        assert_eq!(changes["parts_dropped"], 1);
    }
    // An object that cannot be read, between others that can.
    let broken = (3, Message::new().bytes(1, b"no id"));
    let (found, changes, _) =
        repair_block(block(&names, &[way(1, 1, 3), broken, way(3, 1, 3)]), &[]);
    assert_eq!(
        (ids(&found), &changes["unreadable"]),
        (vec![1, 3], &1.into())
    );
    // Nodes beyond the earth.
    let nodes = [
        node(1, 480_000_000),
        node(2, 910_000_000),
        node(3, 490_000_000),
    ];
    let (found, changes, _) = repair_block(block(&names, &nodes), &[]);
    assert_eq!((ids(&found), &changes["outside"]), (vec![1, 3], &1.into()));
}

#[test]
fn ways_without_nodes_are_kept_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("block.osm.pbf");
    let ways = [(3, Message::new().varint(1, 1)), way(2, 0, 0)];
    let short = (3, Message::new().varint(1, 3).packed_deltas(8, &[1]));
    let blocks = block(&[b""], &[ways[0].clone(), short]);
    fs::write(&path, craft::plain_file(&[blocks])).unwrap();
    let (found, report, status) = repair(&path, &[]);
    assert_eq!(
        (found.len(), status, &report["short_ways"]),
        (2, 0, &2.into())
    );
}

#[test]
fn what_cannot_be_saved_is_an_error_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let [path, output] = ["damaged.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    for bytes in [
        vec![0; 5000],
        b"no data at all".to_vec(),
        craft::plain_file(&[]),
    ] {
        fs::write(&path, bytes).unwrap();
        let answer: Answer = ask(&[&"repair", &path, &"-o", &output]);
        assert_eq!((answer.status, output.exists()), (2, false), "{answer:?}");
        assert!(
            answer.stderr.contains("no object in it that can be saved"),
            "{answer:?}"
        );
    }
    let (path, _) = with_lost_blob(dir.path());
    let report = dir.path().join("report.json");
    let answer = ask(&[&"repair", &"--dry-run", &"--report", &report, &path]);
    assert_eq!((answer.status, output.exists()), (1, false));
    let saved: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    assert_eq!(
        (saved["lost"].as_array().unwrap().len(), &saved["written"]),
        (1, &Value::Null)
    );
    // The report replaces nothing unasked, and never the file.
    let before = fs::read(&path).unwrap();
    for other in [&report, &path] {
        let args: [Arg; 5] = [&"repair", &"--dry-run", &"--report", other, &path];
        assert_eq!(ask(&args).status, 2);
    }
    let args: [Arg; 6] = [&"repair", &"--dry-run", &"-O", &"--report", &path, &path];
    assert_eq!(ask(&args).status, 2);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(ask(&[&"repair", &path]).status, 2);
    assert_eq!(ask(&[&"repair", &path, &"-o", &path, &"-O"]).status, 2);
    let other = real_file("helsinki.osm.pbf");
    let args: [Arg; 7] = [&"repair", &path, &"--from", &other, &"-o", &other, &"-O"];
    assert_eq!(ask(&args).status, 2);
}
