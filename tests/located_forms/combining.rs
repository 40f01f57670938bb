//! `merge`, `sort` and `cat` of files in different forms: one place for each node, and no known location is lost.

use super::days::{Days, START};
use super::forms::{
    Container, Form, Input, LOCATED, ORDERED, assert_right, bare, read_honest, stored, write,
};
use super::run_line;
use super::worlds::{Place, World, worlds};
use crate::common::answers::in_order;
use crate::common::questions::{assert_same_objects, name_of};
use crate::common::{Kind, Object, canonical_key, decode, in_turn};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// All pairs of forms.
pub fn pairs() -> Vec<[Form; 2]> {
    let forms = || std::iter::once(Form::Plain).chain(LOCATED);
    forms()
        .flat_map(|one| forms().map(move |other| [one, other]))
        .collect()
}

#[test]
fn merged_files_have_one_place_for_each_node() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    for (turn, world) in worlds(16) {
        let mut days = Days::of(&world, turn as u64);
        days.next_day();
        days.next_day();
        for (number, forms) in in_turn(turn * 5, 12, pairs()).enumerate() {
            let container = ORDERED[(turn + number) % 2];
            let file = |world: &World, number: usize, time: i64| {
                let path = dir.path().join(format!("{number}.osm.pbf"));
                let state = Some((number as u64, time));
                Input::new(world, forms[number], container, &path, state)
            };
            let old = file(&world, 0, START);
            let new = file(&days.world, 1, START + 2 * 86_400);
            for [first, second] in [[&old, &new], [&new, &old]] {
                let line = "merge -q -O {first} {second} -o {out}";
                let paths: [(&str, &Path); 3] = [
                    ("{first}", &first.path),
                    ("{second}", &second.path),
                    ("{out}", &output),
                ];
                run_line(line, &paths);
                let what = format!("{} and {}", first.name(), second.name());
                let found = decode::objects(&output);
                if old.is_honest() && new.is_honest() {
                    read_honest(&output, &what);
                }
                expect_merged(&found, &old, &new, &what);
            }
        }
    }
}

/// Fails unless `found` is right: the highest version of each object, with one place for each node. No place is lost
/// unless a node in the output has it.
fn expect_merged(found: &[Object], old: &Input, new: &Input, what: &str) {
    let mut expected = BTreeMap::new();
    for object in old.objects.iter().chain(&new.objects) {
        let key = canonical_key(object.kind, object.id);
        let entry = expected.entry(key).or_insert_with(|| bare(object));
        if object.version > entry.version {
            *entry = bare(object);
        }
    }
    let expected: Vec<Object> = expected.into_values().collect();
    let found_bare: Vec<Object> = found.iter().map(bare).collect();
    assert_same_objects(&found_bare, &expected, what);

    // The place of a node that is there; else the newest one that ways store.
    let known =
        |objects: &[Object]| -> HashMap<i64, Place> { objects.iter().flat_map(stored).collect() };
    let mut places = known(&old.objects);
    places.extend(known(&new.objects));
    let nodes = found.iter().filter(|object| object.kind == Kind::Node);
    let nodes: HashMap<i64, Place> = nodes
        .map(|node| (node.id, (node.lat_nano, node.lon_nano)))
        .collect();
    places.extend(nodes.iter().map(|(id, place)| (*id, *place)));
    let mut had: HashMap<(Kind, i64, Option<i64>), Vec<i64>> = HashMap::new();
    for way in old.objects.iter().chain(&new.objects) {
        let key = (way.kind, way.id, way.version);
        had.entry(key)
            .or_default()
            .extend(stored(way).map(|(id, _)| id));
    }
    for way in found.iter().filter(|object| object.kind == Kind::Way) {
        assert_right(way, &places, what);
        let has: HashMap<i64, Place> = stored(way).collect();
        let had = &had[&(way.kind, way.id, way.version)];
        let lost = had
            .iter()
            .find(|&id| !has.contains_key(id) && !nodes.contains_key(id));
        assert!(lost.is_none(), "{what}: {lost:?} is lost in {way:?}");
    }
}

/// Pairs of forms. The nodes and half of the ways are in the first form, and the other objects in the second one. All
/// locations can be found.
const PARTS: [[Form; 2]; 8] = [
    [Form::AllNodes, Form::Plain],
    [Form::NeededNodes, Form::Foreign],
    [Form::Plain, Form::NeededNodes],
    [Form::NeededNodes, Form::NeededNodes],
    [Form::HalfDeclared, Form::Plain],
    [Form::UnknownValues, Form::NeededNodes],
    [Form::Plain, Form::AllNodes],
    [Form::AllNodes, Form::HalfDeclared],
];

#[test]
fn parts_in_different_forms_are_put_together_without_losses() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second, output] =
        ["first.osm.pbf", "second.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    for (turn, world) in worlds(17) {
        for forms in in_turn(turn, 4, PARTS) {
            let parts = parts_of(&world, forms);
            write(&first, &parts[0], forms[0].features(), None);
            write(&second, &parts[1], forms[1].features(), None);
            let all = in_order(parts.concat());
            let is_honest = forms.iter().all(|form| form.is_honest());
            for command in ["sort", "merge", "cat"] {
                for [one, other] in [[&first, &second], [&second, &first]] {
                    let line = format!("{command} -q -O {{one}} {{other}} -o {{out}}");
                    let paths: [(&str, &Path); 3] =
                        [("{one}", one), ("{other}", other), ("{out}", &output)];
                    run_line(&line, &paths);
                    let what = format!("{command} {forms:?}");
                    let found = in_order(decode::objects(&output));
                    if is_honest {
                        read_honest(&output, &what);
                    }
                    expect_kept(&found, &all, &world, &what);
                }
            }
        }
    }
}

/// The nodes and every second way in one form; the other ways and the relations in another one.
fn parts_of(world: &World, forms: [Form; 2]) -> [Vec<Object>; 2] {
    let in_first = |object: &Object| match object.kind {
        Kind::Node => true,
        Kind::Way => object.id % 2 == 0,
        Kind::Relation => false,
    };
    let [mut first, mut second] = forms.map(|form| form.objects(world));
    first.retain(in_first);
    second.retain(|object| !in_first(object));
    [first, second]
}

/// Fails unless the objects are the same, and all known locations are still known and right. Where the node is there,
/// its ways need not store its location.
fn expect_kept(found: &[Object], expected: &[Object], world: &World, what: &str) {
    let bare_objects = |objects: &[Object]| objects.iter().map(bare).collect::<Vec<_>>();
    assert_same_objects(&bare_objects(found), &bare_objects(expected), what);
    let places = world.places();
    let nodes = found.iter().filter(|object| object.kind == Kind::Node);
    let nodes: HashSet<i64> = nodes.map(|node| node.id).collect();
    for (found, expected) in found.iter().zip(expected) {
        assert_right(found, &places, what);
        let has: HashMap<i64, Place> = stored(found).collect();
        let is_lost = |(id, _): &(i64, Place)| !has.contains_key(id) && !nodes.contains(id);
        let lost = stored(expected).find(is_lost);
        let name = name_of(found);
        assert!(lost.is_none(), "{what}: {lost:?} is lost in {name:?}");
    }
}

#[test]
fn features_of_joined_parts_are_those_of_the_plain_file() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second, joined, plain] = ["first", "second", "joined", "plain"]
        .map(|name| dir.path().join(format!("{name}.osm.pbf")));
    for (turn, world) in worlds(18) {
        write(&plain, &world.objects, Form::Plain.features(), None);
        for forms in in_turn(turn, 4, PARTS) {
            let parts = parts_of(&world, forms);
            write(&first, &parts[0], forms[0].features(), None);
            write(&second, &parts[1], forms[1].features(), None);
            for command in in_turn(turn, 2, ["sort", "merge"]) {
                let line = format!("{command} -q -O {{one}} {{other}} -o {{out}}");
                let paths: [(&str, &Path); 3] =
                    [("{one}", &first), ("{other}", &second), ("{out}", &joined)];
                run_line(&line, &paths);
                let lines = |path: &Path| {
                    let line = "export -q -f geojsonseq -a type,id {in}";
                    run_line(line, &[("{in}", path)]).sorted_lines()
                };
                assert_eq!(lines(&joined), lines(&plain), "{command} {forms:?}");
            }
        }
    }
}

#[test]
fn a_file_merged_with_a_copy_in_another_form_keeps_all_locations() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    for (turn, world) in worlds(19) {
        for forms in in_turn(turn * 5, 12, pairs()) {
            let [one, other] = [0, 1].map(|number| {
                let path = dir.path().join(format!("{number}.osm.pbf"));
                Input::new(&world, forms[number], Container::Bare, &path, None)
            });
            let line = "merge -q -O {one} {other} -o {out}";
            let paths: [(&str, &Path); 3] = [
                ("{one}", &one.path),
                ("{other}", &other.path),
                ("{out}", &output),
            ];
            run_line(line, &paths);
            let found = decode::objects(&output);
            let what = format!("{forms:?}");
            expect_merged(&found, &one, &other, &what);
        }
    }
}
