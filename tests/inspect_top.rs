//! `inspect --top`, and the objects that `inspect -e` names: compared with a plain count.

use crate::common::answers::{ask, file_of, history_of, in_order};
use crate::common::objects::{Object, canonical_key, node, relation, way};
use crate::common::oracle::{real_file, small_real_files};
use crate::common::random::Random;
use crate::common::{Kind, decode, run_ok};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Way => "way",
        Kind::Relation => "relation",
    }
}

/// The largest objects by sizes that are given for each version of an object.
fn largest(sizes: impl Iterator<Item = (Kind, i64, usize)>, most: usize) -> Value {
    let mut by_object: BTreeMap<(Kind, i64), usize> = BTreeMap::new();
    for (kind, id, size) in sizes {
        let known = by_object.entry((kind, id)).or_default();
        *known = size.max(*known);
    }
    let mut all: Vec<_> = by_object
        .into_iter()
        .filter(|(_, size)| *size > 0)
        .collect();
    all.sort_by_key(|((kind, id), size)| (usize::MAX - size, canonical_key(*kind, *id)));
    let all = all.into_iter().take(most);
    let all =
        all.map(|((kind, id), count)| json!({"kind": kind_name(kind), "id": id, "count": count}));
    all.collect()
}

fn is_area(object: &Object) -> bool {
    let type_of = object.tags.iter().find(|(key, _)| key == "type");
    type_of.is_some_and(|(_, value)| value == "multipolygon" || value == "boundary")
}

/// The report of `inspect --top` that a plain count gives.
fn expected(objects: &[Object], most: usize) -> Value {
    let of_kind = |kind| objects.iter().filter(move |object| object.kind == kind);
    let mut nodes_of: BTreeMap<i64, usize> = BTreeMap::new();
    for object in of_kind(Kind::Way) {
        let known = nodes_of.entry(object.id).or_default();
        *known = object.refs.len().max(*known);
    }
    let area = |object: &Object| -> usize {
        let ways = object.members.iter().filter(|member| member.0 == Kind::Way);
        let ways: BTreeSet<i64> = ways.map(|member| member.1).collect();
        ways.iter().filter_map(|id| nodes_of.get(id)).sum()
    };
    let sized = |object: &Object, size| (object.kind, object.id, size);
    json!({
        "relations": largest(of_kind(Kind::Relation).map(|one| sized(one, one.members.len())), most),
        "ways": largest(of_kind(Kind::Way).map(|one| sized(one, one.refs.len())), most),
        "tag_sets": largest(objects.iter().map(|one| sized(one, one.tags.len())), most),
        "areas": largest(
            of_kind(Kind::Relation).filter(|one| is_area(one)).map(|one| sized(one, area(one))),
            most
        ),
    })
}

fn assert_plain_count(path: &Path, most: usize) {
    let found = ask(&[&"inspect", &"--json", &"--top", &most.to_string(), &path]).json();
    let wanted = expected(&decode::objects(path), most);
    assert_eq!(found["top"], wanted, "{most} {}", path.display());
}

/// The id of the first object of a kind with the most references.
fn first_largest(objects: &[Object], kind: Kind) -> Option<i64> {
    let size = |object: &Object| object.refs.len() + object.members.len();
    let of_kind = || objects.iter().filter(move |object| object.kind == kind);
    let most = of_kind().map(size).max().filter(|most| *most > 0)?;
    of_kind()
        .find(|object| size(object) == most)
        .map(|object| object.id)
}

fn assert_maxima(path: &Path) {
    let objects = decode::objects(path);
    let found = ask(&[&"inspect", &"-e", &"--json", &path]).json();
    for (kind, name) in [
        (Kind::Way, "most_refs_way"),
        (Kind::Relation, "most_members_relation"),
    ] {
        let wanted = json!(first_largest(&objects, kind));
        assert_eq!(found["extended"][name], wanted, "{name} {}", path.display());
    }
}

#[test]
fn the_largest_objects_are_those_of_a_plain_count() {
    let dir = tempfile::tempdir().unwrap();
    let indexed = dir.path().join("indexed.osm.pbf");
    for path in small_real_files() {
        assert_plain_count(&path, 7);
        assert_maxima(&path);
        run_ok(&[&"cat", &"-O", &path, &"-o", &indexed]);
        assert_plain_count(&indexed, 7);
        assert_maxima(&indexed);
    }
    // Blobs of several kinds.
    assert_maxima(&real_file("helsinki.osm.pbf"));
}

/// Objects of small sizes, of which many are equal, with several versions if `has_versions` is set.
fn objects(random: &mut Random, has_versions: bool) -> Vec<Object> {
    const TAGS: [(&str, &str); 3] = [("type", "multipolygon"), ("a", "1"), ("b", "2")];
    let mut objects = Vec::new();
    for id in 1..=30 {
        let versions = if has_versions {
            1 + random.below(3) as i64
        } else {
            1
        };
        for version in 1..=versions {
            let refs: Vec<i64> = (0..random.below(6) as i64).collect();
            let members: Vec<_> = (0..random.below(6))
                .map(|_| (Kind::Way, 1 + random.below(40) as i64, "outer"))
                .collect();
            let [of_node, of_way, of_relation] = [(); 3].map(|()| &TAGS[..random.below(4)]);
            for object in [
                node(id, 1, 1, of_node),
                way(id, &refs, of_way),
                relation(id, &members, of_relation),
            ] {
                objects.push(Object {
                    version: Some(version),
                    ..object
                });
            }
        }
    }
    in_order(objects)
}

#[test]
fn an_object_of_a_history_counts_once_with_its_largest_version() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(5);
    for _ in 0..10 {
        for has_versions in [false, true] {
            let all = objects(&mut random, has_versions);
            let blobs: Vec<&[Object]> = all.chunks(37).collect();
            let path = if has_versions {
                history_of(dir.path(), "in.osh.pbf", &blobs)
            } else {
                file_of(dir.path(), "in.osm.pbf", &blobs)
            };
            for most in [1, 3, 1000] {
                assert_plain_count(&path, most);
            }
            assert_maxima(&path);
        }
    }
}

#[test]
fn a_file_without_objects_has_no_largest_ones() {
    let dir = tempfile::tempdir().unwrap();
    let empty = file_of(dir.path(), "empty.osm.pbf", &[]);
    assert_plain_count(&empty, 3);
    assert_maxima(&empty);
    let said = ask(&[&"inspect", &"--top", &"3", &empty]).stdout;
    assert_eq!(said.matches("\n  none").count(), 4, "{said}");
    assert_eq!(ask(&[&"inspect", &"--top", &"0", &empty]).status, 2);
}

#[test]
fn the_text_names_the_largest_objects() {
    let dir = tempfile::tempdir().unwrap();
    let objects = [
        way(7, &[1, 2, 3], &[]),
        relation(
            5,
            &[(Kind::Way, 7, "outer")],
            &[("type", "boundary"), ("a", "b")],
        ),
    ];
    let path = file_of(dir.path(), "in.osm.pbf", &[&objects]);
    let said = ask(&[&"inspect", &"-e", &"--top", &"1", &path]).stdout;
    for part in [
        "(at most 3 a way: w7)",
        "(at most 1 a relation: r5)",
        "Largest areas",
        "3 nodes of their ways",
        "2 tags",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let id = ask(&[&"inspect", &"--get", &"extended.most_refs_way", &path]).stdout;
    assert_eq!(id, "7\n");
}

#[test]
fn objects_of_change_files_are_counted_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.osc");
    let way = "<way id='5' version='2'><nd ref='1'/><nd ref='2'/></way>";
    let deleted = "<way id='6' version='3'/>";
    let changes = format!(
        "<osmChange version='0.6'><modify>{way}</modify><delete>{deleted}</delete></osmChange>"
    );
    std::fs::write(&path, changes).unwrap();
    let found = ask(&[&"inspect", &"--json", &"--top", &"3", &path]).json();
    let largest = json!([{"kind": "way", "id": 5, "count": 2}]);
    assert_eq!(found["top"]["ways"], largest);
    assert_eq!(found["top"]["relations"], json!([]));
}
