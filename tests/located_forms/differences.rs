//! `diff` and `derive-changes`: the place that a way stores is content if no file has the node.

use super::combining::pairs;
use super::days::Days;
use super::forms::{Form, Input, ORDERED, assert_right, bare, stored, ways};
use super::run_line;
use super::worlds::{World, worlds};
use crate::common::answers::in_order;
use crate::common::questions::{assert_same_objects, name_of, written};
use crate::common::{Kind, Object, decode, in_turn};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

/// The differences between two files.
#[derive(Debug, Default)]
struct Differences {
    /// A mark and a name for each object that differs: `*w7`, `-n3`, `+r1`.
    marks: BTreeSet<String>,
    /// The ways that may be equal or different: one file knows a place that the other one does not know.
    open: BTreeSet<String>,
}

impl Differences {
    fn of(old: &Input, new: &Input) -> Self {
        let by_name = |objects: &[Object]| -> BTreeMap<(Kind, i64), Object> {
            let entries = objects.iter().map(|one| (name_of(one), one.clone()));
            entries.collect()
        };
        let (olds, news) = (by_name(&old.objects), by_name(&new.objects));
        let mut nodes = old.nodes();
        nodes.extend(new.nodes());
        let mut found = Self::default();
        for (name, object) in &olds {
            let written = written(*name);
            let Some(other) = news.get(name) else {
                found.marks.insert(format!("-{written}"));
                continue;
            };
            if content(object) != content(other) {
                found.marks.insert(format!("*{written}"));
                continue;
            }
            match places_differ(object, other, &nodes) {
                Some(true) => {
                    found.marks.insert(format!("*{written}"));
                }
                None => {
                    found.open.insert(format!("*{written}"));
                }
                Some(false) => {}
            }
        }
        let added = news.keys().filter(|name| !olds.contains_key(*name));
        let added = added.map(|name| format!("+{}", written(*name)));
        found.marks.extend(added);
        found
    }
}

/// The object without metadata and locations in ways.
fn content(object: &Object) -> Object {
    Object {
        version: None,
        timestamp: None,
        changeset: None,
        uid: None,
        user: None,
        ..bare(object)
    }
}

/// Whether two ways with the same references store different places for a node that is not in `nodes`. `None` if one of
/// them has a place where the other one has none, and no other place differs.
fn places_differ(one: &Object, other: &Object, nodes: &HashSet<i64>) -> Option<bool> {
    let places = |way: &Object| -> HashMap<i64, (i64, i64)> {
        stored(way).filter(|(id, _)| !nodes.contains(id)).collect()
    };
    let (one, other) = (places(one), places(other));
    let mut both = one
        .iter()
        .filter_map(|(id, place)| Some((place, other.get(id)?)));
    if both.any(|(place, other)| place != other) {
        return Some(true);
    }
    (one == other).then_some(false)
}

/// Fails unless `diff` finds the differences between two files.
fn expect_differences(old: &Input, new: &Input) {
    let line = "diff -c {old} {new}";
    let answer = run_line(line, &[("{old}", &old.path), ("{new}", &new.path)]);
    let expected = Differences::of(old, new);
    let marks = answer.stdout.lines();
    let marks = marks.filter_map(|line| line.split(' ').next().map(str::to_owned));
    let marks: BTreeSet<String> = marks.collect();
    let what = format!("{} and {}", old.name(), new.name());
    let missed: Vec<&String> = expected.marks.difference(&marks).collect();
    assert!(missed.is_empty(), "{what}: {missed:?} are not found");
    let wrong = marks.difference(&expected.marks);
    let wrong: Vec<&String> = wrong
        .filter(|mark| !expected.open.contains(*mark))
        .collect();
    assert!(wrong.is_empty(), "{what}: {wrong:?} are equal");
    assert_eq!(answer.status, i32::from(!marks.is_empty()), "{what}");
    let quiet = run_line(
        "diff -q {old} {new}",
        &[("{old}", &old.path), ("{new}", &new.path)],
    );
    assert_eq!(quiet.status, answer.status, "{what}");
}

#[test]
fn forms_of_the_same_data_differ_only_in_nodes_that_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(20) {
        for (number, forms) in in_turn(turn * 5, 12, pairs()).enumerate() {
            let [one, other] = files(&[&world, &world], forms, turn + number, dir.path());
            expect_differences(&one, &other);
            let marks = Differences::of(&one, &other);
            assert!(marks.open.is_empty(), "{marks:?}");
            let is_node = |mark: &String| mark.contains('n');
            assert!(marks.marks.iter().all(is_node), "{marks:?}");
        }
    }
}

#[test]
fn ways_whose_absent_nodes_have_moved_are_found() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(21) {
        let mut days = Days::of(&world, 77 + turn as u64);
        days.next_day();
        days.next_day();
        for (number, forms) in in_turn(turn * 5, 12, pairs()).enumerate() {
            let worlds = [&world, &days.world];
            let [old, new] = files(&worlds, forms, turn + number, dir.path());
            expect_differences(&old, &new);
        }
    }
}

/// Writes two worlds, each in a form.
fn files(worlds: &[&World; 2], forms: [Form; 2], turn: usize, dir: &Path) -> [Input; 2] {
    [0, 1].map(|number| {
        let path = dir.join(format!("{number}.osm.pbf"));
        let container = ORDERED[(turn + number) % 2];
        Input::new(worlds[number], forms[number], container, &path, None)
    })
}

#[test]
fn a_derived_change_file_turns_one_file_into_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let [changes, output] = ["changes.osc", "out.osm.pbf"].map(|name| dir.path().join(name));
    for (turn, world) in worlds(22) {
        let mut days = Days::of(&world, 99 + turn as u64);
        days.next_day();
        days.next_day();
        for form in in_turn(turn, 2, [Form::AllNodes, Form::NeededNodes]) {
            let worlds = [&world, &days.world];
            let [old, new] = files(&worlds, [form, form], turn, dir.path());
            let line = "derive-changes -q -O {old} {new} -o {out}";
            let paths: [(&str, &Path); 3] = [
                ("{old}", &old.path),
                ("{new}", &new.path),
                ("{out}", &changes),
            ];
            run_line(line, &paths);
            let line = "apply-changes -q -O --locations-on-ways {old} {changes} -o {out}";
            let paths: [(&str, &Path); 3] = [
                ("{old}", &old.path),
                ("{changes}", &changes),
                ("{out}", &output),
            ];
            run_line(line, &paths);
            let found = decode::objects(&output);
            expect_objects(&found, &new, &old, &format!("{form:?}"));
        }
    }
}

/// Fails unless `found` has the objects of a file, with the same known locations. A location that the older file does
/// not know may be unknown.
fn expect_objects(found: &[Object], new: &Input, old: &Input, what: &str) {
    // A version does not replace an object without one.
    let is_unversioned = |object: &&Object| object.version.is_none();
    let unversioned: HashSet<(Kind, i64)> = old
        .objects
        .iter()
        .filter(is_unversioned)
        .map(|object| (object.kind, object.id))
        .collect();
    let is_compared = |object: &&Object| !unversioned.contains(&(object.kind, object.id));
    let compared = |objects: &[Object]| -> Vec<Object> {
        let objects = objects.iter().filter(is_compared);
        objects.map(bare).collect()
    };
    assert_same_objects(&in_order(compared(found)), &compared(&new.objects), what);
    let olds = ways(&old.objects);
    for (way, expected) in found.iter().zip(&new.objects) {
        assert_right(way, &new.places, what);
        let has: HashMap<i64, (i64, i64)> = stored(way).collect();
        let lost = stored(expected).find(|(id, _)| {
            let was_unknown = olds.get(&way.id).is_some_and(|old| {
                old.refs.contains(id) && !stored(old).any(|(known, _)| known == *id)
            });
            !has.contains_key(id) && !was_unknown
        });
        assert!(lost.is_none(), "{what}: {lost:?} is lost in {way:?}");
    }
}
