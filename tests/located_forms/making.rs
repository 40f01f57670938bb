//! `add-locations-to-ways`: it makes the forms that these tests write, and loses nothing in a second run.

use super::forms::{ANY, Container, Form, Input, bare, inputs, stored};
use super::worlds::{NOWHERE, World, worlds};
use super::{features, regions, run_line};
use crate::common::answers::in_order;
use crate::common::oracle::osmium;
use crate::common::questions::assert_same_objects;
use crate::common::writers::succeed;
use crate::common::{Kind, Object, decode, in_turn};
use std::process::Command;

#[test]
fn the_program_makes_the_forms_that_these_tests_write() {
    let dir = tempfile::tempdir().unwrap();
    for (_, world) in worlds(1) {
        let path = dir.path().join("plain.osm.pbf");
        let plain = Input::new(&world, Form::Plain, Container::Bare, &path, None);
        for (option, form) in [("-n", Form::AllNodes), ("", Form::NeededNodes)] {
            let output = dir.path().join("out.osm.pbf");
            let line = format!("add-locations-to-ways -q -O {option} {{in}} -o {{out}}");
            run_line(&line, &[("{in}", &plain.path), ("{out}", &output)]);
            let expected = form.objects(&world);
            assert_same_objects(&decode::objects(&output), &expected, &line);
            assert_eq!(decode::header(&output).optional, form.features());
        }
    }
}

/// Fails unless `add-locations-to-ways` gives each way of a file all locations that are known, also in a second run.
pub fn holds(world: &World, turn: usize, inputs: &[Input]) {
    let dir = tempfile::tempdir().unwrap();
    let [once, twice] = ["once.osm.pbf", "twice.osm.pbf"].map(|name| dir.path().join(name));
    let needed = world.needed_nodes();
    for input in inputs {
        for option in in_turn(
            turn,
            2,
            ["-n", "-i sparse", "-i external", "-n -i external"],
        ) {
            let line = format!("add-locations-to-ways -q -O {option} {{in}} -o {{out}}");
            let what = format!("{line}, {}", input.name());
            run_line(&line, &[("{in}", &input.path), ("{out}", &once)]);
            let stays = |object: &&Object| {
                object.kind != Kind::Node || option.contains("-n") || needed.contains(&object.id)
            };
            let expected: Vec<Object> = input.objects.iter().filter(stays).cloned().collect();
            let expected: Vec<Object> = expected.iter().map(|one| located(one, input)).collect();
            let found = in_order(decode::objects(&once));
            assert_same_objects(&found, &expected, &what);
            let features = decode::header(&once).optional;
            let declares = |name: &str| features.iter().any(|feature| feature == name);
            assert!(declares("LocationsOnWays"), "{what}: {features:?}");
            assert!(
                input.form != Form::NeededNodes || declares("pbfhogg.NeededNodes"),
                "{what}: {features:?}"
            );
            run_line(&line, &[("{in}", &once), ("{out}", &twice)]);
            assert_same_objects(&in_order(decode::objects(&twice)), &expected, &what);
            assert_eq!(decode::header(&twice).optional, features, "{what}");
        }
    }
}

/// The object with the location of each reference whose node the world has.
fn located(object: &Object, input: &Input) -> Object {
    let place = |id: &i64| input.places.get(id).copied().unwrap_or(NOWHERE);
    Object {
        locations: object.refs.iter().map(place).collect(),
        ..object.clone()
    }
}

#[test]
fn locations_are_added_again_and_none_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(2) {
        holds(&world, turn, &inputs(&world, turn, &ANY, dir.path()));
    }
}

#[test]
fn an_extract_without_the_nodes_outside_keeps_their_locations() {
    let dir = tempfile::tempdir().unwrap();
    let [cut, again] = ["cut.osm.pbf", "again.osm.pbf"].map(|name| dir.path().join(name));
    for (turn, world) in worlds(3) {
        for input in inputs(&world, turn, &ANY, dir.path()) {
            let (_, argument) = regions::random_region(&world, turn as u64, dir.path());
            let line = format!("extract -q -O -s simple {argument} {{in}} -o {{out}}");
            run_line(&line, &[("{in}", &input.path), ("{out}", &cut)]);
            let line = "add-locations-to-ways -q -O -n {in} -o {out}";
            run_line(line, &[("{in}", &cut), ("{out}", &again)]);
            let [before, after] = [&cut, &again].map(|path| in_order(decode::objects(path)));
            let [bare_before, bare_after] =
                [&before, &after].map(|objects| objects.iter().map(bare).collect::<Vec<_>>());
            assert_same_objects(&bare_after, &bare_before, &input.name());
            input.expect_locations(&after, line);
            let known = |objects: &[Object]| objects.iter().flat_map(stored).count();
            assert!(known(&after) >= known(&before), "{}", input.name());
        }
    }
}

#[test]
fn files_that_osmium_located_are_read_like_our_own() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(4) {
        let path = dir.path().join("plain.osm.pbf");
        let plain = Input::new(&world, Form::Plain, Container::Bare, &path, None);
        let options = [
            ("-n", Form::AllNodes),
            ("--keep-member-nodes", Form::Foreign),
        ];
        for (option, form) in in_turn(turn, 2, options) {
            let path = dir.path().join(format!("osmium{option}.osm.pbf"));
            let mut command = Command::new("osmium");
            command.args(["add-locations-to-ways", "-O", "--ignore-missing-nodes"]);
            succeed(command.arg(option).arg(&plain.path).arg("-o").arg(&path));
            let input = Input {
                form,
                container: Container::Bare,
                objects: decode::objects(&path),
                places: world.places(),
                path,
            };
            assert_same_objects(&input.objects, &form.objects(&world), option);
            let inputs = [input];
            regions::holds(&world, turn, &inputs);
            features::holds(&world, turn, &inputs);
            holds(&world, turn, &inputs);
        }
    }
}
