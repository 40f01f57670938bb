//! `inspect --locations`, `check` and `tags-filter`: they count values, and a reference is missing only if its place is
//! unknown.

use super::forms::{ANY, Container, Form, Input, inputs, stored};
use super::run_line;
use super::worlds::{World, worlds};
use crate::common::Kind;

/// Fails unless the numbers of `inspect --locations`, `check` and `tags-filter` are right.
pub fn holds(world: &World, inputs: &[Input]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plain.osm.pbf");
    let plain = Input::new(world, Form::Plain, Container::Bare, &path, None);
    let references = |input: &Input| {
        let line = "check --refs -r --json {in}";
        let answer = run_line(line, &[("{in}", &input.path)]);
        (answer.status, answer.json()["missing"].clone())
    };
    let output = dir.path().join("out.osm.pbf");
    let missing_of_kept = |input: &Input| {
        let line = "tags-filter --json -O {in} w/highway r/type=multipolygon -o {out}";
        let answer = run_line(line, &[("{in}", &input.path), ("{out}", &output)]);
        answer.json()["missing"].clone()
    };
    let expected = (references(&plain), missing_of_kept(&plain));
    for input in inputs {
        let line = "inspect --locations --json {in}";
        let counted = run_line(line, &[("{in}", &input.path)]).json()["way_locations"].clone();
        let ways = input.objects.iter().filter(|one| one.kind == Kind::Way);
        let refs: usize = ways.clone().map(|way| way.refs.len()).sum();
        let known: usize = ways.map(|way| stored(way).count()).sum();
        let name = input.name();
        assert_eq!(counted["refs"], refs, "{name}: {counted}");
        assert_eq!(counted["located_refs"], known, "{name}: {counted}");
        let found = (references(input), missing_of_kept(input));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn counts_are_those_of_values() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(28) {
        holds(&world, &inputs(&world, turn, &ANY, dir.path()));
    }
}
