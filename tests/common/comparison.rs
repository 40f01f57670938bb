//! The differences between two lists of objects, computed by simple, slow code.

use super::answers::{ask, file_of, name_of};
use super::{Kind, Object, canonical_key, node, relation, way, with_metadata};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// Whether two versions of an object count as the same.
pub type Sameness<'a> = &'a dyn Fn(&Object, &Object) -> bool;

/// The tags, sorted by key and value.
pub fn sorted_tags(object: &Object) -> Vec<(String, String)> {
    let mut tags = object.tags.clone();
    tags.sort();
    tags
}

/// Whether two objects have the same location, visibility, tags (in any order), refs and members.
pub fn same_content(old: &Object, new: &Object) -> bool {
    let place = |object: &Object| (object.lat_nano, object.lon_nano, object.visible);
    place(old) == place(new)
        && sorted_tags(old) == sorted_tags(new)
        && old.refs == new.refs
        && old.members == new.members
}

/// Whether two objects have the same content and metadata.
pub fn same_in_all(old: &Object, new: &Object) -> bool {
    let info = |object: &Object| (object.version, object.timestamp, object.changeset);
    same_content(old, new) && info(old) == info(new) && (old.uid, &old.user) == (new.uid, &new.user)
}

/// The lines that `diff` must print.
pub fn expected(old: &[Object], new: &[Object], same: Sameness) -> Vec<String> {
    let mut pairs: BTreeMap<_, [Option<&Object>; 2]> = BTreeMap::new();
    for (side, objects) in [old, new].into_iter().enumerate() {
        for object in objects {
            let pair = pairs.entry(canonical_key(object.kind, object.id));
            let place = &mut pair.or_default()[side];
            assert!(place.replace(object).is_none(), "{object:?} comes twice");
        }
    }
    let version = |object: &Object| object.version.unwrap_or(0);
    let line = |pair: &[Option<&Object>; 2]| match *pair {
        [Some(old), Some(new)] => {
            let sign = if same(old, new) { ' ' } else { '*' };
            let line = format!("{sign}{} v{}", name_of(old), version(old));
            if version(old) == version(new) {
                line
            } else {
                format!("{line} v{}", version(new))
            }
        }
        [Some(old), None] => format!("-{} v{}", name_of(old), version(old)),
        [None, Some(new)] => format!("+{} v{}", name_of(new), version(new)),
        [None, None] => unreachable!(),
    };
    pairs.values().map(line).collect()
}

/// The lines, without those of objects that are the same.
pub fn without_common(lines: &[String]) -> Vec<String> {
    let differs = |line: &&String| !line.starts_with(' ');
    lines.iter().filter(differs).cloned().collect()
}

/// Converts the line of a changed object, `*n1 v1 v2`, to the lines of osmium: `-n1 v1` and `+n1 v2`, the lower version
/// first.
pub fn as_osmium_shows(line: &str) -> Vec<String> {
    let words: Vec<&str> = line[1..].split(' ').collect();
    let [id, old, new] = words[..] else {
        return vec![line.to_owned()];
    };
    let number = |version: &str| version[1..].parse::<u64>().unwrap();
    let mut lines = vec![
        (number(old), format!("-{id} {old}")),
        (number(new), format!("+{id} {new}")),
    ];
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The names of objects that differ only in the order of their tags.
pub fn reordered(old: &[Object], new: &[Object]) -> HashSet<String> {
    let key = |object: &Object| (object.kind, object.id);
    let old: BTreeMap<_, _> = old.iter().map(|object| (key(object), object)).collect();
    let is_reordered = |new: &&Object| {
        let old = old.get(&key(new));
        old.is_some_and(|old| same_in_all(old, new) && old.tags != new.tags)
    };
    new.iter().filter(is_reordered).map(name_of).collect()
}

/// The exit status of `diff` for the given lines.
pub fn status_of(lines: &[String]) -> i32 {
    i32::from(lines.iter().any(|line| !line.starts_with(' ')))
}

/// Runs `diff` with and without metadata, and with and without common objects, and compares lines and exit status.
pub fn assert_diff(old: &Path, new: &Path, [old_objects, new_objects]: [&[Object]; 2], what: &str) {
    for (args, same) in [
        (
            &[&"-v" as super::Arg, &"--metadata"][1..],
            &same_in_all as Sameness,
        ),
        (&[], &same_content),
    ] {
        let lines = expected(old_objects, new_objects, same);
        let args = [&[&"diff" as super::Arg, &old, &new], args].concat();
        let found = ask(&[&args[..], &[&"--all"]].concat());
        assert_eq!(found.status, status_of(&lines), "{what}: {}", found.stderr);
        assert_eq!(found.lines(), lines, "{what}");
        for args in [args.clone(), [&args[..], &[&"-c"]].concat()] {
            let found = ask(&args);
            assert_eq!(found.status, status_of(&lines), "{what}: {}", found.stderr);
            assert_eq!(found.lines(), without_common(&lines), "{what}");
        }
    }
}

/// The object with a version, and metadata derived from that version.
pub fn versioned(object: Object, version: i64) -> Object {
    with_metadata(object, version, 1_600_000_000 + version, 7, "mapper")
}

/// Two lists of objects with unchanged, changed, added and removed ones.
pub fn small() -> [Vec<Object>; 2] {
    let outer = [(Kind::Way, 1, "outer"), (Kind::Node, 2, "")];
    let inner = [(Kind::Way, 1, "inner"), (Kind::Node, 2, "")];
    let old = vec![
        versioned(node(1, 10, 10, &[("a", "b")]), 1),
        versioned(node(2, 20, 20, &[]), 1),
        versioned(node(3, 30, 30, &[("gone", "yes")]), 4),
        versioned(node(5, 50, 50, &[]), 1),
        versioned(way(1, &[1, 2, 3, 5], &[("x", "1"), ("y", "2")]), 1),
        versioned(way(2, &[1, 2, 3, 5], &[("x", "1"), ("y", "2")]), 1),
        versioned(relation(1, &outer, &[("type", "multipolygon")]), 1),
        versioned(relation(2, &outer, &[]), 2),
    ];
    let new = vec![
        versioned(node(1, 10, 10, &[("a", "b")]), 1),
        versioned(node(2, 20, 21, &[]), 2),
        versioned(node(4, 40, 40, &[]), 1),
        versioned(node(5, 50, 50, &[]), 2),
        versioned(way(1, &[1, 2, 4, 5], &[("x", "1"), ("y", "3\n")]), 2),
        versioned(way(2, &[1, 2, 3, 5], &[("y", "2"), ("x", "1")]), 1),
        versioned(relation(1, &inner, &[("type", "multipolygon")]), 2),
    ];
    [old, new]
}

/// Files of the objects of [`small`], with a blob per kind.
pub fn small_files(dir: &Path) -> [PathBuf; 2] {
    let [old, new] = small();
    [
        file_of(dir, "old.osm.pbf", &[&old[..4], &old[4..6], &old[6..]]),
        file_of(dir, "new.osm.pbf", &[&new[..4], &new[4..6], &new[6..]]),
    ]
}
