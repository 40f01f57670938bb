//! `apply-changes --locations-on-ways` and `update`: the result does not depend on the number of steps, and has the
//! locations that each form can know.

use super::days::{Change, Days, START, osc, write_server};
use super::forms::{Form, Input, LOCATED, ORDERED, assert_right, bare, inputs, stored};
use super::run_line;
use super::worlds::{World, worlds};
use crate::common::questions::assert_same_objects;
use crate::common::{Kind, Object, decode, in_turn};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The number of days.
const DAYS: usize = 4;

/// The changes of some days, and the state after them.
fn days_of(world: &World, seed: u64) -> (Vec<Vec<Change>>, Days) {
    let mut days = Days::of(world, seed);
    let changes = (0..DAYS).map(|_| days.next_day()).collect();
    (changes, days)
}

#[test]
fn days_give_the_same_one_by_one_and_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    for (turn, world) in worlds(23) {
        let (changes, days) = days_of(&world, turn as u64);
        let texts: Vec<PathBuf> = (0..DAYS).map(|day| file(&format!("{day}.osc"))).collect();
        for (changes, text) in changes.iter().zip(&texts) {
            std::fs::write(text, osc(changes)).unwrap();
        }
        for input in inputs(&world, turn, &ORDERED, dir.path()) {
            let once = file("once.osm.pbf");
            apply(&input.path, &texts, &once);
            let halves = [file("half.osm.pbf"), file("halves.osm.pbf")];
            apply(&input.path, &texts[..2], &halves[0]);
            apply(&halves[0], &texts[2..], &halves[1]);
            let mut last = input.path.clone();
            for (day, text) in texts.iter().enumerate() {
                let next = file(&format!("day{day}.osm.pbf"));
                apply(&last, std::slice::from_ref(text), &next);
                last = next;
            }
            let expected = decode::objects(&once);
            let name = input.name();
            for path in [&halves[1], &last] {
                assert_same_objects(&decode::objects(path), &expected, &name);
            }
            expect_current(&expected, &input, &days, &name);
        }
    }
}

/// Applies change files to a file.
fn apply(base: &Path, changes: &[PathBuf], output: &Path) {
    let names: Vec<String> = (0..changes.len())
        .map(|number| format!("{{{number}}}"))
        .collect();
    let line = format!(
        "apply-changes -q -O --locations-on-ways {{base}} {} -o {{out}}",
        names.join(" ")
    );
    let mut paths: Vec<(&str, &Path)> = vec![("{base}", base), ("{out}", output)];
    let changes = changes.iter().map(PathBuf::as_path);
    paths.extend(names.iter().map(String::as_str).zip(changes));
    run_line(&line, &paths);
}

/// Fails unless objects are those of the world after the days, except nodes that the form leaves out; and each location
/// that is known is right; and all are known that the form can know.
fn expect_current(found: &[Object], input: &Input, days: &Days, what: &str) {
    let is_node = |object: &&Object| object.kind == Kind::Node;
    let nodes: HashSet<i64> = found.iter().filter(is_node).map(|node| node.id).collect();
    let expected = days.world.objects.iter();
    let expected = expected.filter(|object| !is_node(object) || nodes.contains(&object.id));
    let expected: Vec<Object> = expected.cloned().collect();
    let found_bare: Vec<Object> = found.iter().map(bare).collect();
    assert_same_objects(&found_bare, &expected, what);
    // Of the nodes that the base has, or that came with changes, those stay that the form keeps.
    let (before, needed) = (input.nodes(), days.world.needed_nodes());
    let leaves_out = matches!(input.form, Form::NeededNodes | Form::Foreign);
    let stays = |node: &&Object| {
        let is_there = before.contains(&node.id) || days.touched.contains(&node.id);
        is_there && (!leaves_out || needed.contains(&node.id))
    };
    let mut kept = days.world.of(Kind::Node).filter(stays);
    let lost = kept.find(|node| !nodes.contains(&node.id));
    assert_eq!(lost, None, "{what}: a node is lost");
    let places = days.world.places();
    for way in found.iter().filter(|object| object.kind == Kind::Way) {
        assert_right(way, &places, what);
        if input.form.is_located() {
            let has: HashSet<i64> = stored(way).map(|(id, _)| id).collect();
            let is_unknown = |id: &&i64| places.contains_key(*id) && !has.contains(*id);
            let unknown = way.refs.iter().find(is_unknown);
            assert_eq!(unknown, None, "{what}: {way:?}");
        }
    }
}

#[test]
fn updates_give_the_same_day_by_day_and_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(24) {
        let (changes, days) = days_of(&world, 50 + turn as u64);
        let server = dir.path().join(format!("server{turn}"));
        write_server(&server, &changes);
        for form in in_turn(turn, 3, LOCATED) {
            let container = ORDERED[turn % 2];
            let file = |name: &str| {
                let path = dir.path().join(format!("{name}-{form:?}.osm.pbf"));
                Input::new(&world, form, container, &path, Some((0, START)))
            };
            let (once, steps) = (file("once"), file("steps"));
            update(&once.path, &server, "");
            for day in 1..=DAYS {
                update(&steps.path, &server, &format!("--end-sequence {day}"));
            }
            let [found, expected] = [&steps, &once].map(|file| decode::objects(&file.path));
            assert_same_objects(&found, &expected, &once.name());
            expect_current(&found, &once, &days, &once.name());
            let sequences = [&steps, &once].map(|file| {
                let header = decode::header(&file.path);
                header.replication_sequence
            });
            assert_eq!(sequences, [Some(DAYS as i64); 2], "{}", once.name());
        }
    }
}

/// Brings a file up to date with the changes of a server.
pub fn update(file: &Path, server: &Path, options: &str) {
    let line = format!("update -q --max-age 100000 --server {{server}} {options} {{file}}");
    run_line(&line, &[("{server}", server), ("{file}", file)]);
}

#[test]
fn an_old_day_again_moves_no_way_back() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second, now, again] =
        ["1.osc", "2.osc", "now.osm.pbf", "again.osm.pbf"].map(|name| dir.path().join(name));
    for (turn, world) in worlds(25) {
        let mut days = Days::of(&world, 70 + turn as u64);
        std::fs::write(&first, osc(&days.next_day())).unwrap();
        std::fs::write(&second, osc(&days.next_day())).unwrap();
        for form in [Form::AllNodes, Form::NeededNodes, Form::Foreign] {
            let path = dir.path().join(format!("{form:?}.osm.pbf"));
            let input = Input::new(&world, form, ORDERED[turn % 2], &path, None);
            apply(&input.path, &[first.clone(), second.clone()], &now);
            apply(&now, std::slice::from_ref(&first), &again);
            let expected = decode::objects(&now);
            let found = decode::objects(&again);
            let brought_back = |objects: &[Object]| -> Vec<Object> {
                let ways = objects.iter().filter(|one| one.kind == Kind::Way);
                ways.filter(|way| {
                    expected
                        .iter()
                        .any(|one| one.id == way.id && one.kind == way.kind)
                })
                .cloned()
                .collect()
            };
            assert_same_objects(
                &brought_back(&found),
                &brought_back(&expected),
                &input.name(),
            );
        }
    }
}
