//! Objects that are valid and unusual, and objects that no command should pass on: changesets among objects, places
//! outside of the world, strings that are not UTF-8, features that the header declares in vain, ids beyond all others.

use crate::common::answers::{Answer, ask, ask_osmium, file_of};
use crate::common::craft::{self, Message};
use crate::common::oracle::osmium;
use crate::common::{Arg, node, relation, way, world};
use std::path::{Path, PathBuf};

/// Writes a text file.
pub fn text(dir: &Path, name: &str, content: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// Runs the program under its second name.
pub fn ask_second(args: &[Arg]) -> Answer {
    let mut all: Vec<Arg> = vec![&"osmium"];
    all.extend_from_slice(args);
    ask(&all)
}

const OUTSIDE: &str = "n1 v1 dV c0 t i0 u Ta=b x10 y91.5\nn2 v1 dV c0 t i0 u Ta=b x200 y10\n\
    n3 v1 dV c0 t i0 u Ta=b x1 y1\nn4 v1 dV c0 t i0 u T x2 y1\n\
    w1 v1 dV c0 t i0 u Thighway=x Nn1,n3,n4\nw2 v1 dV c0 t i0 u Thighway=x Nn3,n4\n";

#[test]
fn a_node_outside_of_the_world_is_kept_and_found_by_check() {
    let dir = tempfile::tempdir().unwrap();
    let opl = text(dir.path(), "o.opl", OUTSIDE);
    for name in ["o.osm", "o.osm.pbf"] {
        let path = dir.path().join(name);
        assert_eq!(ask(&[&"cat", &opl, &"-o", &path]).status, 0);
        assert_eq!(ask(&[&"cat", &path, &"-f", &"opl"]).stdout, OUTSIDE);
        for option in ["--ids", "--full"] {
            let found = ask(&[&"check", &"--json", &option, &path]).json();
            let wanted = if option == "--full" {
                2.into()
            } else {
                serde_json::Value::Null
            };
            assert_eq!(found["outside"], wanted);
        }
        let found = ask(&[&"check", &path]);
        assert_eq!(found.status, 1);
        for node in [
            "n1 in blob 1",
            "latitude 91.5, longitude 10",
            "n2 in blob 1",
            ": 2\n",
        ] {
            assert!(found.stdout.contains(node), "{}", found.stdout);
        }
        let listed = &ask(&[&"check", &"--json", &path]).json()["listed_outside"];
        let wanted = serde_json::json!({"id": 1, "blob": 1, "lat": 91.5, "lon": 10.0});
        assert_eq!(listed[0], wanted);
        let features = ask(&[&"export", &"-f", &"geojsonseq", &path]).stdout;
        assert_eq!(features.lines().count(), 2, "{features}");
        let bbox = ask(&[&"fileinfo", &"-e", &"-g", &"data.bbox", &path]);
        assert_eq!(bbox.stdout, "(1,1,2,1)\n");
        let located = ask(&[&"add-locations-to-ways", &"-n", &path, &"-f", &"opl"]);
        assert!(
            located.stdout.contains("Nn1xy,n3x1y1,n4x2y1"),
            "{}",
            located.stdout
        );
        assert!(located.stderr.contains("1 reference"), "{}", located.stderr);
    }
}

#[test]
fn a_node_outside_of_the_world_is_in_no_extract_although_its_blob_is() {
    let dir = tempfile::tempdir().unwrap();
    let text = text(
        dir.path(),
        "o.opl",
        "n1 v1 x1 y1\nn2 v1 x2 y2\nn3 v1 x2 y91\nn4 v1 x181 y2\nn5 v1\n",
    );
    let pbf = dir.path().join("o.osm.pbf");
    assert_eq!(ask(&[&"cat", &text, &"-o", &pbf]).status, 0);
    let data_box = ask(&[&"inspect", &"-g", &"data.bbox", &pbf]).stdout;
    assert_eq!(data_box, "(1,1,2,2)\n");
    for strategy in ["simple", "smart"] {
        let args: [Arg; 7] = [
            &"extract", &"-b", &"0,0,5,5", &"-s", &strategy, &"-f", &"opl",
        ];
        let mut args = args.to_vec();
        args.push(&pbf);
        let found = ask(&args).stdout;
        let ids: Vec<_> = found
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(ids, ["n1", "n2"], "{strategy}");
    }
}

#[test]
fn a_coordinate_that_32_bits_cannot_hold_is_an_error_and_so_is_garbage() {
    let dir = tempfile::tempdir().unwrap();
    for (value, cause) in [
        ("214.7483648", "beyond"),
        ("1e3", "beyond"),
        ("abc", "not a coordinate"),
    ] {
        let content =
            format!("<osm version=\"0.6\"><node id=\"1\" lat=\"{value}\" lon=\"1\"/></osm>");
        let path = text(dir.path(), "n.osm", &content);
        let found = ask(&[&"cat", &path, &"-f", &"opl"]);
        assert_eq!(found.status, 2);
        assert!(found.stderr.contains(cause), "{}", found.stderr);
    }
    let path = text(dir.path(), "n.opl", "n1 v1 x-214.7483648 y1\n");
    let found = ask(&[&"cat", &path, &"-f", &"opl"]).stdout;
    assert_eq!(found, "n1 v1 dV c0 t i0 u T x-214.7483648 y1\n");
}

#[test]
fn the_smallest_id_is_a_number_and_not_the_first_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let min = i64::MIN;
    for (ids, smallest, largest) in [
        (vec![-1, -2, -30, 5], -30, 5),
        (vec![0, -7], -7, 0),
        (vec![0, 4], 0, 4),
        (vec![-1, min, i64::MAX], min, i64::MAX),
    ] {
        let lines: String = ids.iter().map(|id| format!("n{id} v1 x1 y1\n")).collect();
        let opl = text(dir.path(), "n.opl", &lines);
        let pbf = dir.path().join("n.osm.pbf");
        assert_eq!(ask(&[&"cat", &"-O", &opl, &"-o", &pbf]).status, 0);
        for path in [&opl, &pbf] {
            let found = ask(&[&"inspect", &"--json", &"--id-ranges", &"--blocks", path]).json();
            for list in ["kinds", "id_ranges", "blob_list"] {
                assert_eq!(found[list][0]["min_id"], smallest, "{list}");
                assert_eq!(found[list][0]["max_id"], largest, "{list}");
            }
            let summary = ask(&[&"inspect", path]).stdout;
            assert!(
                summary.contains(&format!("{smallest} to {largest}\n")),
                "{summary}"
            );
            let get = ask(&[&"inspect", &"-g", &"data.minid.nodes", path]).stdout;
            assert_eq!(get, format!("{smallest}\n"));
        }
    }
}

/// A block with a node and a relation. The node has a tag with key 1 and the given value, and user 4; a member of the
/// relation has role 3.
fn block_with(strings: &[&[u8]], value: u64) -> Vec<u8> {
    let mut table = Message::new();
    for string in strings {
        table = table.bytes(1, string);
    }
    let info = || Message::new().varint(1, 1).varint(5, 4);
    let object = |number: u32, message: Message| Message::new().message(number, message);
    let node = Message::new()
        .sint(1, 1)
        .packed_uint(2, &[1])
        .packed_uint(3, &[value])
        .message(4, info())
        .sint(8, 10_000_000)
        .sint(9, 10_000_000);
    let relation = Message::new()
        .varint(1, 3)
        .packed_uint(8, &[3])
        .packed_deltas(9, &[1])
        .packed_uint(10, &[0]);
    Message::new()
        .message(1, table)
        .message(2, object(1, node))
        .message(2, object(4, relation))
        .to_bytes()
}

#[test]
fn a_string_that_is_not_utf8_is_named_with_its_object_and_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let good: [&[u8]; 5] = [b"", b"key", b"value", b"role", b"user"];
    let bad = b"caf\xe9";
    for (index, place) in [
        (1, "n1 in blob 1: the key of a tag is not UTF-8: caf\\xe9"),
        (
            2,
            "n1 in blob 1: the value of the tag \"key\" is not UTF-8: caf\\xe9",
        ),
        (
            3,
            "r3 in blob 1: the role of member n1 is not UTF-8: caf\\xe9",
        ),
        (
            4,
            "n1 in blob 1: the name of the user is not UTF-8: caf\\xe9",
        ),
        (
            5,
            "blob 1: string 5, which no object uses, is not UTF-8: caf\\xe9",
        ),
    ] {
        let mut strings = [&good[..], &[b"unused"]].concat();
        strings[index] = bad;
        let path = dir.path().join("s.osm.pbf");
        std::fs::write(&path, craft::plain_file(&[block_with(&strings, 2)])).unwrap();
        let found = ask(&[&"check", &"--full", &path]);
        assert_eq!(found.status, 1);
        assert!(found.stdout.contains(place), "{}", found.stdout);
        let json = ask(&[&"check", &"--full", &"--json", &path]).json();
        assert_eq!(json["faults"], 1);
        for command in ["cat", "renumber", "add-locations-to-ways", "sort"] {
            let refused = ask(&[&command, &path, &"-f", &"opl"]);
            assert_eq!(refused.status, 2, "{command}");
            let is_clear = refused.stderr.contains("s.osm.pbf: blob 1 at byte")
                && refused.stderr.contains("caf\\xe9")
                && refused.stderr.trim_end().lines().count() == 1;
            assert!(is_clear, "{command}: {}", refused.stderr);
        }
    }
    let path = dir.path().join("c.osm.pbf");
    let strings: [&[u8]; 5] = [b"", b"key", b"a\x01b", b"role", b"user"];
    std::fs::write(&path, craft::plain_file(&[block_with(&strings, 2)])).unwrap();
    let found = ask(&[&"check", &"--full", &path]);
    // No OSM XML file can have such a string, although every command reads the block.
    assert_eq!(found.status, 1, "{}", found.stdout);
    assert!(
        found
            .stdout
            .contains("\"key\" has characters that XML does not know: a\\u{1}b"),
        "{}",
        found.stdout
    );
    assert_eq!(ask(&[&"cat", &path, &"-f", &"opl"]).status, 0);
}

#[test]
fn an_index_without_a_string_is_found_by_the_full_check() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.osm.pbf");
    let strings: [&[u8]; 5] = [b"", b"key", b"value", b"role", b"user"];
    std::fs::write(&path, craft::plain_file(&[block_with(&strings, 9)])).unwrap();
    assert_eq!(ask(&[&"cat", &path, &"-f", &"opl"]).status, 2);
    // Without an index, the blob is decoded before anything is checked.
    let found = ask(&[&"check", &"--full", &path]);
    assert_eq!(found.status, 2);
    let names_the_blob = found.stderr.contains("s.osm.pbf: blob 1 at byte");
    assert!(names_the_blob, "{}", found.stderr);
}

/// Writes a file with the objects and the declared features.
fn declaring(dir: &Path, optional: &[&str], objects: &[crate::common::Object]) -> PathBuf {
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], optional);
    let block = craft::block(objects, &craft::Shape::USUAL);
    let path = dir.join("f.osm.pbf");
    std::fs::write(&path, craft::file(header, &[block])).unwrap();
    path
}

#[test]
fn check_reports_an_unused_required_feature() {
    let dir = tempfile::tempdir().unwrap();
    let ways = [way(1, &[1, 2], &[]), way(2, &[2, 1], &[])];
    let path = declaring(dir.path(), &["LocationsOnWays"], &ways);
    for option in ["--full", "--index"] {
        let found = ask(&[&"check", &option, &path]);
        assert_eq!(found.status, 1);
        assert!(
            found.stdout.contains("declares LocationsOnWays"),
            "{}",
            found.stdout
        );
    }
    let path = declaring(dir.path(), &[], &ways);
    assert_eq!(ask(&[&"check", &"--full", &path]).status, 0);
    let swapped = [node(2, 1, 1, &[]), node(1, 1, 1, &[])];
    let path = declaring(dir.path(), &["Sort.Type_then_ID"], &swapped);
    let found = ask(&[&"check", &"--full", &path]);
    assert_eq!(found.status, 1);
    assert!(
        found.stdout.contains("declares Sort.Type_then_ID"),
        "{}",
        found.stdout
    );
    let objects = [node(1, 1, 1, &[]), relation(1, &[], &[])];
    let path = file_of(dir.path(), "plain.osm.pbf", &[&objects]);
    assert_eq!(ask(&[&"check", &"--full", &path]).status, 0);
}

/// A file with a spatial layout.
fn spatial(dir: &Path) -> PathBuf {
    let (located, path) = (dir.join("located.osm.pbf"), dir.join("spatial.osm.pbf"));
    let from = world(dir, "20000");
    let keep = "--keep-untagged-nodes";
    assert_eq!(
        ask(&[&"add-locations-to-ways", &keep, &from, &"-o", &located]).status,
        0
    );
    assert_eq!(
        ask(&[&"repack", &"--layout", &"hilbert", &located, &"-o", &path]).status,
        0
    );
    path
}

#[test]
fn a_spatial_layout_is_not_out_of_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = spatial(dir.path());
    for options in [
        ["--ids"].as_slice(),
        &["--full"],
        &["--refs", "--index", "--ids"],
    ] {
        let mut args: Vec<Arg> = vec![&"check"];
        args.extend(options.iter().map(|option| option as Arg));
        args.push(&path);
        let found = ask(&args);
        assert_eq!(found.status, 0, "{}", found.stdout);
        assert!(found.stdout.contains("spatial layout"), "{}", found.stdout);
    }
    let json = ask(&[&"check", &"--json", &path]).json();
    assert_eq!(json["spatial_layout"], true);
    assert!(json["out_of_order"].is_null() && json["duplicates"].is_null());
}

/// Takes the declaration of locations out of the header of a file, whose length does not change. The header is a stored
/// block of deflate.
fn undeclare_locations(bytes: &mut [u8]) {
    let is_start = |at: &usize| match bytes[*at..*at + 7] {
        [0x78, _, 1, low, high, not_low, not_high] => low == !not_low && high == !not_high,
        _ => false,
    };
    let start = (0..4096).find(is_start).expect("a stored block") + 7;
    let len = usize::from(u16::from_le_bytes([bytes[start - 4], bytes[start - 3]]));
    let (header, rest) = bytes[start..].split_at_mut(len);
    let name = b"LocationsOnWays";
    let at = header.windows(name.len()).position(|part| part == name);
    let at = at.expect("a declaration");
    header[at..at + name.len()].copy_from_slice(b"SomeOtherThings");
    let (mut low, mut high) = (1u32, 0u32);
    for byte in header.iter() {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    rest[..4].copy_from_slice(&(high << 16 | low).to_be_bytes());
}

#[test]
fn a_false_flag_of_a_spatial_layout_is_a_finding_and_a_warning_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = spatial(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    undeclare_locations(&mut bytes);
    let false_flag = dir.path().join("false.osm.pbf");
    std::fs::write(&false_flag, bytes).unwrap();
    let found = ask(&[&"check", &"--index", &false_flag]);
    assert_eq!(found.status, 1);
    assert!(
        found.stdout.contains("declares a spatial layout"),
        "{}",
        found.stdout
    );
    let extract = |path: &PathBuf| {
        ask(&[
            &"extract",
            &"-b",
            &"-180,-90,180,90",
            &"-f",
            &"opl,locations_on_ways=false",
            path,
        ])
    };
    let (right, wrong) = (extract(&path), extract(&false_flag));
    assert_eq!(wrong.status, 0, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("spatial layout"), "{}", wrong.stderr);
    assert_eq!(wrong.sorted_lines(), right.sorted_lines());
}

const CHANGES: &str = "<osmChange version=\"0.6\"><create>\
    <node id=\"1\" version=\"1\" timestamp=\"2020-01-01T00:00:00Z\" lat=\"1\" lon=\"1\"><tag k=\"a\" v=\"b\"/></node>\
    <node id=\"2\" version=\"1\" timestamp=\"2020-01-01T00:00:00Z\" lat=\"1\" lon=\"2\"/></create><modify>\
    <way id=\"3\" version=\"2\" timestamp=\"2020-01-01T00:00:00Z\"><nd ref=\"1\"/><nd ref=\"2\"/>\
    <tag k=\"highway\" v=\"x\"/></way></modify></osmChange>";

#[test]
fn a_change_file_with_each_object_once_is_taken_where_osmium_takes_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = text(dir.path(), "c.osc", CHANGES);
    let pbf = dir.path().join("c.osh.pbf");
    assert_eq!(ask(&[&"cat", &path, &"-o", &pbf]).status, 0);
    let commands: [&[Arg]; 7] = [
        &[&"check-refs", &"-r", &"-i"],
        &[&"renumber", &"-f", &"opl"],
        &[&"export", &"-f", &"geojsonseq"],
        &[&"tags-count"],
        &[&"add-locations-to-ways", &"-f", &"opl"],
        &[&"extract", &"-b", &"0,0,5,5", &"-f", &"opl"],
        &[
            &"extract",
            &"-b",
            &"0,0,1.5,5",
            &"-s",
            &"complete_ways",
            &"-f",
            &"opl",
        ],
    ];
    for command in commands {
        for path in [&path, &pbf] {
            let mut args = command.to_vec();
            args.push(path);
            // New ids make no sense in changes. The name of the second file says that it is a history.
            let is_refused = command[0].as_ref() == "renumber" && path.ends_with("c.osc");
            let own = ask(&args);
            assert_eq!(own.status, if is_refused { 2 } else { 0 }, "{}", own.stderr);
            let ours = ask_second(&args);
            assert_eq!(ours.status, 0, "{}", ours.stderr);
            if osmium() {
                assert_eq!(ours.stdout, ask_osmium(&args).stdout);
            }
        }
    }
    let twice = CHANGES.replace("id=\"2\"", "id=\"1\"");
    let twice = text(dir.path(), "t.osc", &twice);
    for command in commands.iter().filter(|command| command.len() != 1) {
        let mut args = command.to_vec();
        args.push(&twice);
        assert_eq!(ask_second(&args).status, 1);
    }
}

#[test]
fn missing_relations_are_listed_in_the_order_of_osmium() {
    let dir = tempfile::tempdir().unwrap();
    let content = "n1 v1 x1 y1\nw1 v1 Nn1,n8,n7\nw2 v1 Nn8,n6\nr1 v1 Mr9@,w9@,n7@,n1@,r-2@\n\
        r2 v1 Mn5@,n7@,w3@,w9@,r1@,r8@\nr3 v1 Mr9@,n4@,n5@,w2@,r9@\n";
    let path = text(dir.path(), "r.opl", content);
    let args: [Arg; 4] = [&"check-refs", &"-r", &"-i", &path];
    let ours = ask_second(&args);
    let tail = "r-2 in r1\nr8 in r2\nr9 in r1\nr9 in r3\nr9 in r3\n";
    assert!(ours.stdout.ends_with(tail), "{}", ours.stdout);
    if osmium() {
        assert_eq!(ours.stdout, ask_osmium(&args).stdout);
    }
}

#[test]
fn an_index_of_locations_beyond_the_free_space_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for id in [
        "10400012005579",
        "3731887267871421138",
        "9223372036854775807",
    ] {
        let path = text(
            dir.path(),
            "l.opl",
            &format!("n1 v1 x1 y1\nn{id} v1 x1 y1\n"),
        );
        let index = dir.path().join("l.idx");
        let found = ask(&[&"create-locations-index", &"-i", &index, &path]);
        assert_eq!(found.status, 2);
        let is_clear = found.stderr.contains(id) && found.stderr.contains("add-locations-to-ways");
        assert!(is_clear, "{}", found.stderr);
        assert!(!index.exists());
    }
    let path = text(dir.path(), "s.opl", "n1 v1 x1 y1\n");
    let index = dir.path().join("s.idx");
    assert_eq!(
        ask(&[&"create-locations-index", &"-i", &index, &path]).status,
        0
    );
    let big = text(dir.path(), "b.opl", "n9223372036854775807 v1 x1 y1\n");
    let before = std::fs::metadata(&index).unwrap().len();
    assert_eq!(
        ask(&[&"create-locations-index", &"-u", &"-i", &index, &big]).status,
        2
    );
    assert_eq!(std::fs::metadata(&index).unwrap().len(), before);
}
