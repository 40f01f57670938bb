//! Commands that select or copy objects: what they take from a way, they take with its locations.

use super::forms::{ANY, Container, Form, Input, bare, inputs, stored};
use super::worlds::{World, worlds};
use super::{run_line, run_line_on};
use crate::common::answers::in_order;
use crate::common::questions::{assert_same_objects, pipe, written};
use crate::common::random::Random;
use crate::common::{Kind, Object, decode, every, in_turn};
use std::collections::HashMap;

/// Fails unless commands give the same of files of a world as of the plain one, and all that the ways know.
pub fn holds(world: &World, turn: usize, inputs: &[Input]) {
    let dir = tempfile::tempdir().unwrap();
    let [plain, output] = ["plain.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    let plain = Input::new(world, Form::Plain, Container::Bare, &plain, None);
    let mut random = Random(turn as u64);
    for command in in_turn(turn, 6, every::lines(&["selects"])) {
        let mut line = format!("{command} -q -O").replace("{out}.osm.pbf", "{out}");
        let kinds = [Kind::Node, Kind::Way, Kind::Relation];
        for (word, kind) in ["{n}", "{w}", "{r}"].into_iter().zip(kinds) {
            let object = world.any(&mut random, kind, |_| true);
            let object = object.expect("worlds have objects of all kinds");
            line = line.replace(word, &written((kind, object.id)));
        }
        run_line(&line, &[("{in}", &plain.path), ("{out}", &output)]);
        let expected = decode::objects(&output);
        for input in inputs {
            run_line(&line, &[("{in}", &input.path), ("{out}", &output)]);
            let found = input.read(&output, &line);
            input.expect(&found, &expected, &line);
            input.expect_copies(&found, &line);
        }
    }
}

#[test]
fn commands_that_select_take_ways_with_their_locations() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(13) {
        holds(&world, turn, &inputs(&world, turn, &ANY, dir.path()));
    }
}

#[test]
fn other_formats_and_streams_keep_what_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let back = dir.path().join("back.osm.pbf");
    for (turn, world) in worlds(14) {
        for input in inputs(&world, turn, &ANY, dir.path()) {
            for format in ["opl", "osm", "osm.gz"] {
                let text = dir.path().join(format!("text.{format}"));
                run_line(
                    "cat -q -O {in} -o {out}",
                    &[("{in}", &input.path), ("{out}", &text)],
                );
                run_line(
                    "cat -q -O {in} -o {out}",
                    &[("{in}", &text), ("{out}", &back)],
                );
                let found = decode::objects(&back);
                input.expect(&found, &world.objects, format);
                assert_same_objects(
                    &known_only(&found),
                    &known_only(&input.objects),
                    &input.name(),
                );
            }
            let piped = in_order(pipe(&["cat", "-q", "-"], &input.path));
            assert_same_objects(&piped, &input.objects, &input.name());
            // Standard input is read once.
            let line = "tags-filter -q -O -R - w/highway -o {out}";
            run_line_on(line, &[("{out}", &back)], &input.path);
            input.expect_copies(&decode::objects(&back), line);
        }
    }
}

/// The objects in order, with an empty column of locations where all are unknown.
fn known_only(objects: &[Object]) -> Vec<Object> {
    let known = |object: &Object| {
        if stored(object).next().is_some() {
            object.clone()
        } else {
            bare(object)
        }
    };
    in_order(objects.iter().map(known).collect())
}

#[test]
fn renumbered_ways_have_the_same_locations_and_references() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    let line = "renumber -q -O {in} -o {out}";
    for (turn, world) in worlds(15) {
        for input in inputs(&world, turn, &ANY, dir.path()) {
            let before = decode::objects(&input.path);
            run_line(line, &[("{in}", &input.path), ("{out}", &output)]);
            let after = input.read(&output, line);
            assert_renumbered(&before, &after, &input.name());
        }
    }
}

/// Fails unless objects are the same except for their ids, and each old id has one new id of its own.
fn assert_renumbered(before: &[Object], after: &[Object], what: &str) {
    assert_eq!(before.len(), after.len(), "{what}");
    let mut ids: HashMap<(Kind, i64), i64> = HashMap::new();
    let mut olds: HashMap<(Kind, i64), i64> = HashMap::new();
    let mut pair = |kind: Kind, old: i64, new: i64| {
        let is_same = *ids.entry((kind, old)).or_insert(new) == new
            && *olds.entry((kind, new)).or_insert(old) == old;
        assert!(is_same, "{what}: {kind:?} {old} is {new}");
    };
    for (old, new) in before.iter().zip(after) {
        let mut expected = old.clone();
        expected.id = new.id;
        expected.refs.clone_from(&new.refs);
        expected.members.clone_from(&new.members);
        assert_eq!(*new, expected, "{what}");
        assert_eq!(new.refs.len(), old.refs.len(), "{what}");
        assert_eq!(new.members.len(), old.members.len(), "{what}");
        pair(old.kind, old.id, new.id);
        for (old, new) in old.refs.iter().zip(&new.refs) {
            pair(Kind::Node, *old, *new);
        }
        for (old, new) in old.members.iter().zip(&new.members) {
            assert_eq!((old.0, &old.2), (new.0, &new.2), "{what}");
            pair(old.0, old.1, new.1);
        }
    }
}
