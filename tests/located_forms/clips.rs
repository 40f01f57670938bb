//! `update --clip`: what a file has stays, and of what the changes bring, the same is kept in each form.

use super::changes::update;
use super::days::{Change, Days, write_server};
use super::forms::{Container, Form, Input, LOCATED, ORDERED, assert_right, bare, inputs};
use super::regions::random_region;
use super::run_line;
use super::worlds::{World, worlds};
use crate::common::extracts::{STRATEGIES, Strategy};
use crate::common::questions::assert_same_objects;
use crate::common::regions::DEGREE;
use crate::common::{Kind, Object, decode, in_turn, node, relation, way};
use std::path::Path;

/// Cuts a region out of a file. The header of the output gets the state before the first day.
fn cut(input: &Path, strategy: Strategy, region: &str, output: &Path) {
    let state = "--output-header osmosis_replication_sequence_number=0 \
                 --output-header osmosis_replication_timestamp=2024-01-01T00:00:00Z";
    let strategy = strategy.args().join(" ");
    let line = format!("extract -q -O {strategy} {region} {state} {{in}} -o {{out}}");
    run_line(&line, &[("{in}", input), ("{out}", output)]);
}

/// The option `--clip` for the region of `-b` or `-p`.
fn clip(region: &str) -> String {
    let region = region.trim_start_matches(['-', 'b', 'p']).trim_start();
    format!("--clip={region}")
}

/// Changes that bring objects to a place where no town is.
fn changes_elsewhere() -> Vec<Change> {
    let (lat, lon) = (-40 * DEGREE, -100 * DEGREE);
    let tags = [("name", "elsewhere")];
    let objects = [
        node(800_001, lat, lon, &[]),
        node(800_002, lat + 5, lon + 5, &tags),
        way(800_001, &[800_001, 800_002], &tags),
        relation(800_001, &[(Kind::Way, 800_001, "")], &tags),
    ];
    objects.map(Change::created).to_vec()
}

#[test]
fn changes_elsewhere_take_nothing_away() {
    let dir = tempfile::tempdir().unwrap();
    let server = dir.path().join("server");
    write_server(&server, &[changes_elsewhere(), Vec::new()]);
    let base = dir.path().join("base.osm.pbf");
    for (turn, world) in worlds(26) {
        let (_, region) = random_region(&world, turn as u64, dir.path());
        let plain = dir.path().join("plain.osm.pbf");
        let plain = Input::new(&world, Form::Plain, Container::Bare, &plain, None);
        let mut all = inputs(&world, turn, &ORDERED, dir.path());
        all.push(plain);
        for (number, input) in all.iter().enumerate() {
            for strategy in in_turn(turn + number, 3, STRATEGIES) {
                cut(&input.path, strategy, &region, &base);
                let before = decode::objects(&base);
                if before.is_empty() {
                    continue;
                }
                update(&base, &server, &clip(&region));
                let what = format!("{strategy:?} {region} {}", input.name());
                assert_same_objects(&decode::objects(&base), &before, &what);
                let header = decode::header(&base);
                assert_eq!(header.replication_sequence, Some(2), "{what}");
            }
        }
    }
}

#[test]
fn what_changes_bring_is_cut_alike_in_each_form() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(27) {
        let mut days = Days::of(&world, 30 + turn as u64);
        let changes = [days.next_day(), days.next_day(), days.next_day()];
        let server = dir.path().join(format!("server{turn}"));
        write_server(&server, &changes);
        let (_, region) = random_region(&world, 60 + turn as u64, dir.path());
        let updated = |form: Form| {
            let [whole, base] =
                ["whole", "base"].map(|name| dir.path().join(format!("{name}.osm.pbf")));
            Input::new(&world, form, Container::Bare, &whole, None);
            cut(&whole, Strategy::CompleteWays, &region, &base);
            if decode::objects(&base).is_empty() {
                return None;
            }
            update(&base, &server, &clip(&region));
            Some(decode::objects(&base))
        };
        let Some(expected) = updated(Form::Plain) else {
            continue;
        };
        let expected = without_nodes(&expected);
        for form in in_turn(turn, 3, LOCATED) {
            let Some(found) = updated(form) else {
                continue;
            };
            let what = format!("{form:?} {region}");
            assert_same_objects(&without_nodes(&found), &expected, &what);
            expect_right(&found, &days.world, &what);
        }
    }
}

/// The ways and relations, without locations.
fn without_nodes(objects: &[Object]) -> Vec<Object> {
    let others = objects.iter().filter(|object| object.kind != Kind::Node);
    others.map(bare).collect()
}

/// Fails unless each known location in a way is that of the node.
fn expect_right(found: &[Object], world: &World, what: &str) {
    let places = world.places();
    for way in found.iter().filter(|object| object.kind == Kind::Way) {
        assert_right(way, &places, what);
    }
}
