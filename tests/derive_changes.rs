//! `derive-changes`: change files that turn one file into another, with all properties of objects.

use crate::common;
use crate::common::answers::{ask, file_of, in_order, name_of};
use crate::common::comparison::{small, small_files, versioned};
use crate::common::oracle::{andorra, assert_same_opl, opl, opl_objects, osmium, real_file};
use crate::common::{
    Kind, Object, decode, is_long, known, mixed_objects, node, relation, run_ok, small_world, way,
};
use std::path::{Path, PathBuf};

/// Derives changes into a file and applies them; returns the change file.
fn round_trip(old: &Path, new: &Path, dir: &Path, name: &str) -> PathBuf {
    let (changes, applied) = (dir.join(name), dir.join("applied.osm.pbf"));
    let found = ask(&[&"derive-changes", &old, &new, &"-O", &"-o", &changes]);
    assert!(found.status < 2, "{}", found.stderr);
    assert_eq!(found.stderr, "");
    run_ok(&[&"apply-changes", &old, &changes, &"-O", &"-o", &applied]);
    assert!(decode::objects(&applied) == decode::objects(new), "{name}");
    if osmium() {
        assert_same_opl(&opl(&applied), &opl(new));
    }
    changes
}

#[test]
fn changes_of_real_files_make_the_new_file_of_the_old_one() {
    let [a, b, c] = ["a", "b", "c"].map(andorra);
    let l = real_file("liechtenstein-c.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let plain = round_trip(&a, &b, dir.path(), "ab.osc");
    let text = std::fs::read(&plain).unwrap();
    let endings = ["zst", "gz", "bz2"];
    for &ending in &endings[..if is_long() { 3 } else { 1 }] {
        // The file name determines the compression; the contents are the same.
        let path = dir.path().join(format!("ab.osc.{ending}"));
        let found = ask(&[&"diff", &"--format", &"osc", &a, &b, &"-o", &path]);
        assert_eq!((found.status, &*found.stderr), (0, ""));
        let applied = dir.path().join(format!("{ending}.osm.pbf"));
        run_ok(&[&"apply-changes", &a, &path, &"-o", &applied]);
        if osmium() {
            assert_same_opl(&opl(&applied), &opl(&b));
            if ending != "zst" {
                assert_same_opl(&opl(&path), &opl(&plain));
            }
        }
        let compressed = std::fs::read(&path).unwrap();
        let unpacked = match ending {
            "zst" => zstd::decode_all(&compressed[..]).unwrap(),
            "gz" => read_all(flate2::read::MultiGzDecoder::new(&compressed[..])),
            _ => read_all(bzip2::read::MultiBzDecoder::new(&compressed[..])),
        };
        assert!(unpacked == text, "{ending}");
    }
    round_trip(&b, &c, dir.path(), "bc.osc.gz");
    if is_long() {
        round_trip(&a, &c, dir.path(), "ac.osc.bz2");
    }
    let same = if is_long() { &l } else { &a };
    let none = round_trip(same, same, dir.path(), "none.osc");
    if osmium() {
        assert_eq!(opl(&none), [""; 0]);
    }
}

fn read_all(mut from: impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn users_and_changesets_come_through() {
    let name = if is_long() {
        "malta.osm.pbf"
    } else {
        "monaco.osm.pbf"
    };
    let [base, changes] = [name, "000466354.osc.gz"].map(real_file);
    let dir = tempfile::tempdir().unwrap();
    let changed = dir.path().join("changed.osm.pbf");
    run_ok(&[&"apply-changes", &base, &changes, &"-o", &changed]);
    round_trip(&base, &changed, dir.path(), "changes.osc.gz");
}

#[test]
fn awkward_objects_come_through() {
    let dir = tempfile::tempdir().unwrap();
    let strings = [("<&>\"'", "]]>\u{1f427}"), ("white", " a\tb\nc\rd ")];
    let mut all = in_order(known(mixed_objects()));
    for object in &mut all {
        // Change files have no coordinates in ways.
        object.locations.clear();
    }
    let more = [
        versioned(node(1 << 40, -900_000_000, 1_800_000_000, &strings), 1),
        versioned(node(i64::MAX, 1, -1, &[]), 1),
        versioned(node(-100, 1, -1, &strings), 1),
        versioned(way(i64::MAX, &[1 << 61, -100, 0], &strings), 7),
        versioned(
            relation(77, &[(Kind::Way, i64::MAX, "<\"&'>")], &strings),
            7,
        ),
    ];
    let more = in_order([&all[..], &more[..]].concat());
    let newer = |object: &Object| {
        let version = object.version.map(|version| version + 1);
        let timestamp = object.timestamp.map(|time| time + 60);
        let mut tags = object.tags.clone();
        tags.reverse();
        tags.push(("new".into(), name_of(object)));
        Object {
            version,
            timestamp,
            tags,
            ..object.clone()
        }
    };
    let newer: Vec<Object> = more.iter().map(newer).collect();
    let files = [
        ("all", &all),
        ("more", &more),
        ("newer", &newer),
        ("none", &Vec::new()),
    ]
    .map(|(name, objects)| file_of(dir.path(), &format!("{name}.osm.pbf"), &[objects]));
    let [all, more, newer, none] = files;
    for (old, new) in [
        (&all, &more),
        (&more, &newer),
        (&all, &newer),
        (&newer, &none),
        (&none, &newer),
    ] {
        round_trip(old, new, dir.path(), "changes.osc");
    }
}

#[test]
fn deletions_say_what_was_asked_for() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = small_files(dir.path());
    let [objects, _] = small();
    let deleted = |args: &[&str]| -> Vec<Object> {
        let path = dir.path().join("changes.osc");
        let mut all: Vec<common::Arg> = vec![&"derive-changes", &old, &new, &"-O", &"-o", &path];
        all.extend(args.iter().map(|arg| arg as common::Arg));
        assert_eq!(ask(&all).status, 0);
        let objects = opl_objects(&path);
        objects
            .into_iter()
            .filter(|object| !object.visible)
            .collect()
    };
    // The deleted objects are n3 and r2.
    let gone = [&objects[2], &objects[7]];
    let found = deleted(&[]);
    assert_eq!(found.iter().map(name_of).collect::<Vec<_>>(), ["n3", "r2"]);
    for (found, gone) in found.iter().zip(gone) {
        assert_eq!(
            (found.version, found.timestamp),
            (gone.version, gone.timestamp)
        );
        assert!(
            found.tags.is_empty() && found.members.is_empty(),
            "{found:?}"
        );
    }
    let found = deleted(&["--increment-version"]);
    assert_eq!([found[0].version, found[1].version], [Some(5), Some(3)]);
    let found = deleted(&["--update-timestamp"]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap().as_secs() as i64;
    assert!(
        found
            .iter()
            .all(|object| (now - object.timestamp.unwrap()).abs() < 60)
    );
    let found = deleted(&["--keep-details"]);
    for (found, gone) in found.iter().zip(gone) {
        assert_eq!((&found.tags, &found.members), (&gone.tags, &gone.members));
        assert_eq!((found.uid, &found.user), (gone.uid, &gone.user));
        assert_eq!(found.changeset, gone.changeset);
    }
}

#[test]
fn going_back_to_an_older_version_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = small_files(dir.path());
    let found = ask(&[
        &"derive-changes",
        &new,
        &old,
        &"-o",
        &dir.path().join("back.osc"),
    ]);
    assert_eq!(found.status, 0);
    assert!(found.stderr.contains("4 objects"), "{}", found.stderr);
}

#[test]
fn a_derived_change_file_is_a_success_and_carries_the_state_of_the_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [new, changes, output] =
        ["new.osm.pbf", "c.osc.gz", "out.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[
        &"removeid",
        &world,
        &"n1",
        &"w1",
        &"-q",
        &"--output-header",
        &"osmosis_replication_sequence_number=4711",
        &"--output-header",
        &"osmosis_replication_timestamp=2026-01-02T03:04:05Z",
        &"--output-header",
        &"osmosis_replication_base_url=https://example.org/day",
        &"-o",
        &new,
    ]);
    assert_eq!(
        ask(&[&"derive-changes", &world, &new, &"-o", &changes]).status,
        0
    );
    assert_eq!(ask(&[&"diff", &"-f", &"osc", &world, &new]).status, 0);
    assert_eq!(
        ask(&[&"diff", &"-f", &"osc", &"--exit-code", &world, &new]).status,
        1
    );
    assert_eq!(ask(&[&"diff", &"-q", &world, &new]).status, 1);
    run_ok(&[&"apply-changes", &world, &changes, &"-o", &output]);
    let header = decode::header(&output);
    assert_eq!(header.replication_sequence, Some(4711));
    assert_eq!(header.replication_timestamp, Some(1_767_323_045));
    assert_eq!(
        header.replication_url.as_deref(),
        Some("https://example.org/day")
    );
}
