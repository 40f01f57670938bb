//! `merge`: each object occurs once, in its highest version.

use crate::common;
use crate::common::answers::{file_of, history_of, in_order};
use crate::common::oracle::{andorra, assert_same_opl, opl, osmium, real_file, real_files};
use crate::common::{
    Kind, Object, canonical_key, decode, is_canonical, is_long, known, mixed_objects, node,
    relation, run_ok, way, with_metadata,
};
use std::path::{Path, PathBuf};
use std::process::Command;

fn versioned(object: Object, version: i64) -> Object {
    with_metadata(object, version, 1_600_000_000 + version, 7, "mapper")
}

fn merged(dir: &Path, inputs: &[&Path]) -> Vec<Object> {
    let output = dir.join("merged.osm.pbf");
    let mut args: Vec<common::Arg> = vec![&"merge"];
    args.extend(inputs.iter().map(|input| input as common::Arg));
    args.extend([&"-O" as common::Arg, &"-o", &output]);
    run_ok(&args);
    let objects = decode::objects(&output);
    assert!(is_canonical(&objects));
    objects
}

#[test]
fn each_object_comes_once_in_its_highest_version() {
    let dir = tempfile::tempdir().unwrap();
    // Each of three files has all objects. An object has another version, from 1 to 3, in each file.
    let list = |file: i64| -> Vec<Object> {
        let version = |id: i64| 1 + (id + file) % 3;
        let objects = (1..2000).flat_map(|id| {
            let tag = version(id).to_string();
            let tags = [("version", tag.as_str())];
            let mut objects = vec![node(id, id, version(id), &tags)];
            if id % 7 == 0 {
                objects.push(way(id, &[id, version(id)], &tags));
                objects.push(relation(id, &[(Kind::Way, id, &tag)], &tags));
            }
            objects
                .into_iter()
                .map(move |object| versioned(object, version(id)))
                .collect::<Vec<_>>()
        });
        in_order(objects.collect())
    };
    let lists = [list(0), list(1), list(2)];
    let mut highest: Vec<Object> = lists.concat();
    highest.retain(|object| object.version == Some(3));
    let highest = in_order(highest);
    let paths: Vec<PathBuf> = [(500, "a"), (333, "b"), (4000, "c")]
        .iter()
        .zip(&lists)
        .map(|(&(size, name), list)| {
            let blobs: Vec<&[Object]> = list.chunks(size).collect();
            file_of(dir.path(), name, &blobs)
        })
        .collect();
    let [a, b, c] = [&*paths[0], &*paths[1], &*paths[2]];
    for inputs in [[a, b, c], [c, b, a], [b, a, c]] {
        assert!(merged(dir.path(), &inputs) == highest, "{inputs:?}");
    }
}

#[test]
fn equal_versions_and_whole_files_come_once() {
    let dir = tempfile::tempdir().unwrap();
    let objects = in_order(known(mixed_objects()));
    let whole = file_of(dir.path(), "whole", &[&objects]);
    let blobs: Vec<&[Object]> = objects.chunks(4).collect();
    let pieces = file_of(dir.path(), "pieces", &blobs);
    let part = file_of(dir.path(), "part", &[&objects[3..9]]);
    let empty = file_of(dir.path(), "empty", &[]);
    for inputs in [
        &[&*whole, &whole][..],
        &[&whole, &pieces, &whole],
        &[&part, &whole],
        &[&whole, &part, &empty],
        &[&whole],
    ] {
        assert_eq!(merged(dir.path(), inputs), objects, "{inputs:?}");
    }
    assert_eq!(merged(dir.path(), &[&empty, &empty]), []);
}

#[test]
fn an_object_twice_in_one_file_comes_once() {
    let dir = tempfile::tempdir().unwrap();
    let objects = in_order(known(mixed_objects()));
    let twice = in_order([&objects[..], &objects[..]].concat());
    let input = file_of(dir.path(), "twice", &[&twice]);
    assert_eq!(merged(dir.path(), &[&input]), objects);
    let (nodes, others) = twice.split_at(20);
    let inputs = [("nodes", nodes), ("others", others)]
        .map(|(name, objects)| file_of(dir.path(), name, &[objects]));
    assert_eq!(merged(dir.path(), &[&inputs[0], &inputs[1]]), objects);
}

#[test]
fn a_history_file_alone_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let at = |id: i64, version: i64| versioned(node(id, id, version, &[]), version);
    let versions = [at(1, 1), at(1, 2), at(2, 1), at(2, 3)];
    let input = history_of(dir.path(), "a", &[&versions]);
    assert_eq!(merged(dir.path(), &[&input]), versions);
    let other = history_of(dir.path(), "b", &[&[at(7, 1), at(7, 2)]]);
    let all = [&versions[..], &[at(7, 1), at(7, 2)]].concat();
    assert_eq!(merged(dir.path(), &[&input, &other]), all);
}

#[test]
fn history_files_keep_each_version_once() {
    let dir = tempfile::tempdir().unwrap();
    let at = |id: i64, version: i64| versioned(node(id, id, version, &[]), version);
    let gone = Object {
        visible: false,
        ..at(1, 3)
    };
    let first = [at(1, 1), at(1, 2), gone.clone(), at(2, 1)];
    let second = [at(1, 2), gone.clone(), at(1, 4), at(2, 1), at(3, 1)];
    let inputs = [
        history_of(dir.path(), "a", &[&first[..2], &first[2..]]),
        history_of(dir.path(), "b", &[&second]),
    ];
    let found = merged(dir.path(), &[&inputs[0], &inputs[1]]);
    let wanted = [at(1, 1), at(1, 2), gone, at(1, 4), at(2, 1), at(3, 1)];
    assert_eq!(found, wanted);
}

#[test]
fn files_with_nothing_in_common_are_merged_as_osmium_merges_them() {
    if !osmium() {
        return;
    }
    let two = if is_long() {
        real_file("malta.osm.pbf")
    } else {
        andorra("a")
    };
    let mut real = real_files().into_iter();
    let three = real.find(|path| path.ends_with("heidelberg.osm.pbf"));
    let (one, three) = (real_file("monaco.osm.pbf"), three.unwrap());
    let dir = tempfile::tempdir().unwrap();
    let theirs = dir.path().join("theirs.osm.pbf");
    let status = Command::new("osmium")
        .args(["merge", "--no-progress", "-o"])
        .args([&theirs, &one, &two, &three])
        .status();
    assert!(status.unwrap().success());
    let ours = dir.path().join("ours.osm.pbf");
    run_ok(&[&"merge", &one, &two, &three, &"-o", &ours]);
    let keys = |path: &Path| -> std::collections::HashSet<_> {
        let key = |object: &Object| canonical_key(object.kind, object.id);
        decode::objects(path).iter().map(key).collect()
    };
    for (a, b) in [(&one, &two), (&two, &three), (&one, &three)] {
        assert!(
            keys(a).is_disjoint(&keys(b)),
            "{a:?} and {b:?} have objects in common"
        );
    }
    assert_same_opl(&opl(&ours), &opl(&theirs));
}

#[test]
fn three_days_of_andorra_give_the_latest_version_of_everything_that_was_ever_there() {
    let inputs = ["a", "b", "c"].map(andorra);
    let dir = tempfile::tempdir().unwrap();
    let mut latest: std::collections::HashMap<(Kind, i64), Object> = Default::default();
    for object in inputs.iter().flat_map(|path| decode::objects(path)) {
        let key = (object.kind, object.id);
        // Of equal versions the first one read is kept.
        if latest
            .get(&key)
            .is_none_or(|before| before.version < object.version)
        {
            latest.insert(key, object);
        }
    }
    let expected = in_order(latest.into_values().collect());
    let paths: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    assert!(merged(dir.path(), &paths) == expected);
    let mut indexed = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let path = dir.path().join(format!("{number}.osm.pbf"));
        run_ok(&[&"cat", input, &"-o", &path]);
        indexed.push(path);
    }
    let paths: Vec<&Path> = indexed.iter().map(PathBuf::as_path).collect();
    assert!(merged(dir.path(), &paths) == expected);
}
