//! `repair`: damage of many kinds, and what the report says about it.

use crate::common::answers::{Answer, ask};
use crate::common::craft::{self, Message};
use crate::common::decode;
use crate::common::oracle::{real_file, real_files};
use crate::common::repaired::{repair, repair_to, shown, with_lost_blob};
use crate::common::{Arg, Object, is_canonical, run_ok};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

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
        let (found, report, status) = repair(&path, &[]);
        assert_eq!(
            (status, &report["headers"], &report["header_fault"]),
            (1, &0.into(), &Value::Null)
        );
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
    // Characters that XML does not know.
    let names_too: [&[u8]; 4] = [b"", b"name", b"a\x07b", "\u{ffff}".as_bytes()];
    let (found, changes, status) = repair_block(block(&names_too, &ways), &[]);
    let values: Vec<&str> = found.iter().map(|way| way.tags[0].1.as_str()).collect();
    assert_eq!((values, status), (vec!["a\u{fffd}b", "\u{fffd}"], 1));
    assert_eq!(changes["texts_replaced"], 2);
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
    // Nodes beyond the earth, and metadata that cannot be assigned to dense nodes.
    let nodes = [
        node(1, 480_000_000),
        node(2, 910_000_000),
        node(3, 490_000_000),
    ];
    let (found, changes, _) = repair_block(block(&names, &nodes), &[]);
    assert_eq!((ids(&found), &changes["outside"]), (vec![1, 3], &1.into()));
    let dense = |versions: &[u64], lats: &[i64]| {
        let info = Message::new().packed_uint(1, versions);
        let dense = Message::new().packed_deltas(1, &[5, 6]).message(5, info);
        let dense = dense.packed_deltas(8, lats).packed_deltas(9, &[10, 10]);
        block(&[b""], &[(2, dense), way(9, 0, 0)])
    };
    let (found, changes, _) = repair_block(dense(&[1, 1, 1], &[10, 10]), &[]);
    assert_eq!(
        (ids(&found), &changes["parts_dropped"]),
        (vec![5, 6, 9], &3.into())
    );
    let (found, changes, _) = repair_block(dense(&[1, 1], &[10, 10, 10]), &[]);
    assert_eq!((ids(&found), &changes["unreadable"]), (vec![9], &2.into()));
}

#[test]
fn files_of_five_writers_and_under_wrong_names_are_repaired() {
    let dir = tempfile::tempdir().unwrap();
    // osmium, osmosis, osmconvert and osmx wrote these; pbfhogg writes the last one.
    let names = ["monaco", "helsinki", "baltimore", "porto"];
    let mut files: Vec<PathBuf> = names
        .map(|name| real_file(&format!("{name}.osm.pbf")))
        .into();
    files.push(dir.path().join("own.osm.pbf"));
    run_ok(&[&"cat", &"-q", &files[0], &"-o", &files[4]]);
    for (number, file) in files.iter().enumerate() {
        let frames = decode::frames(file);
        let lost = &frames[frames.len() / 2];
        let mut bytes = fs::read(file).unwrap();
        bytes[lost.offset as usize + lost.frame_len / 2] ^= 1;
        // The content counts, and not the name.
        let path = dir
            .path()
            .join(["x.osm", "x.osm.bz2", "x.osc.gz", "x.txt", "x"][number]);
        fs::write(&path, bytes).unwrap();
        let (found, report, status) = repair(&path, &[]);
        let gone = shown(&decode::block(&lost.payload));
        let expected: Vec<Object> = decode::objects(file).into_iter().collect();
        let expected = shown(&expected).difference(&gone).cloned().collect();
        assert_eq!((status, report["lost"].as_array().unwrap().len()), (1, 1));
        assert!(shown(&found) == expected, "{}", file.display());
    }
}

#[test]
fn a_file_of_another_format_is_called_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let [path, output] = ["file.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    let page = "<!DOCTYPE html><html><body>Not found</body></html>";
    let empty = "<?xml version=\"1.0\"?><osm version=\"0.6\"></osm>";
    for (text, name) in [(page, "expected <osm>, not <html>"), (empty, "no object")] {
        fs::write(&path, text).unwrap();
        let answer = ask(&[&"repair", &path, &"-o", &output]);
        assert_eq!((answer.status, output.exists()), (2, false), "{answer:?}");
        assert!(answer.stderr.contains(name), "{answer:?}");
    }
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
    fs::write(&path, vec![0; 5000]).unwrap();
    let answer: Answer = ask(&[&"repair", &path, &"-o", &output]);
    assert_eq!((answer.status, output.exists()), (2, false), "{answer:?}");
    assert!(
        answer.stderr.contains("no object in it that can be saved"),
        "{answer:?}"
    );
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

#[test]
fn what_only_the_last_blob_tells_is_in_the_header_and_the_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.osm.pbf");
    let nodes = |id| block(&[b""], &[node(id, 1)]);
    let refs = Message::new().varint(1, 9).packed_deltas(8, &[1, 2]);
    let located = refs
        .packed_deltas(9, &[1, 1])
        .packed_deltas(10, &[130_000_000, 130_000_000]);
    let way = block(&[b""], &[(3, located)]);
    for (last, count, has_locations) in [(way, 4, true), (nodes(2), 3, false)] {
        let blocks = [nodes(1), nodes(2), nodes(3), last];
        fs::write(&path, craft::plain_file(&blocks)).unwrap();
        let (output, report, status) = repair_to(&path, &[]);
        assert_eq!((status, &report["was_sorted"]), (0, &has_locations.into()));
        let found = decode::objects(&output);
        assert!(found.len() == count && is_canonical(&found), "{found:?}");
        let header = decode::header(&output);
        let declares = header.optional.contains(&"LocationsOnWays".to_owned());
        assert_eq!(declares, has_locations);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
