//! `export` and the geocoder: the same features and the same answers from each form.

use super::forms::{ANY, Container, Form, Input, inputs};
use super::regions::random_region;
use super::worlds::{World, worlds};
use super::{run_line, run_line_on};
use crate::common::extracts::place_of;
use crate::common::regions::degrees;
use crate::common::{Kind, in_turn};
use std::path::Path;

/// The options of `export` that are tried. Those with a region get it instead of `{region}`.
const OPTIONS: [&str; 6] = [
    "",
    "{region}",
    "-i dense",
    "-i external -u type_id",
    "--line-relations route --incomplete keep",
    "-a type,id,version,timestamp,way_nodes",
];

/// Fails unless `export` gives the same features of files of a world as of the plain one.
pub fn holds(world: &World, turn: usize, inputs: &[Input]) {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain.osm.pbf");
    let plain = Input::new(world, Form::Plain, Container::Bare, &plain, None);
    for options in in_turn(turn, 3, OPTIONS) {
        let (_, region) = random_region(world, turn as u64, dir.path());
        let options = options.replace("{region}", &region);
        let line = format!("export -q -O -f geojsonseq {options} {{in}} -o {{out}}");
        let expected = features(&line, &plain.path, dir.path());
        for input in inputs {
            let found = features(&line, &input.path, dir.path());
            let first = (0..found.1.len().max(expected.1.len()))
                .map(|index| (found.1.get(index), expected.1.get(index)))
                .find(|(found, expected)| found != expected);
            assert_eq!(first, None, "{line}, {}", input.name());
            assert_eq!(found.0, expected.0, "{line}, {}: status", input.name());
        }
    }
}

/// The exit status of `export`, and the features in the order of their texts.
fn features(line: &str, input: &Path, dir: &Path) -> (i32, Vec<String>) {
    let output = dir.join("out.geojsonseq");
    let answer = run_line(line, &[("{in}", input), ("{out}", &output)]);
    let text = std::fs::read_to_string(&output).expect("the features can be read");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    (answer.status, lines)
}

#[test]
fn an_export_has_the_features_of_the_plain_file() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, world) in worlds(10) {
        holds(&world, turn, &inputs(&world, turn, &ANY, dir.path()));
    }
}

#[test]
fn a_table_of_features_has_the_rows_of_the_plain_file() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.parquet");
    for (turn, world) in worlds(11) {
        let path = dir.path().join("plain.osm.pbf");
        let plain = Input::new(&world, Form::Plain, Container::Bare, &path, None);
        let options = ["", "--with area,length,centroid", "--theme roads,buildings"];
        let options = options[turn % options.len()];
        let line = format!("export -O --json {options} {{in}} -o {{out}}");
        let counts = |path: &Path| {
            // Themes become partitions of a directory.
            let output = if options.contains("theme") {
                output.with_extension("")
            } else {
                output.clone()
            };
            let answer = run_line(&line, &[("{in}", path), ("{out}", &output)]);
            let summary = answer.json();
            ["features", "points", "lines", "areas", "themes", "bbox"]
                .map(|name| summary[name].clone())
        };
        let expected = counts(&plain.path);
        for input in inputs(&world, turn, &ANY, dir.path()) {
            assert_eq!(counts(&input.path), expected, "{line}, {}", input.name());
        }
    }
}

/// The places around the nodes of a world, one in a line.
fn places(world: &World) -> String {
    let places = world.of(Kind::Node).filter_map(place_of).step_by(3);
    let lines = places.map(|(lon, lat)| format!("{} {}\n", degrees(lat), degrees(lon)));
    lines.collect()
}

#[test]
fn a_geocoder_answers_as_that_of_the_plain_file() {
    let dir = tempfile::tempdir().unwrap();
    let questions = dir.path().join("questions.txt");
    for (turn, world) in worlds(12) {
        std::fs::write(&questions, places(&world)).unwrap();
        let path = dir.path().join("plain.osm.pbf");
        let plain = Input::new(&world, Form::Plain, Container::Bare, &path, None);
        let expected = answers(&plain, &questions, dir.path());
        for input in inputs(&world, turn, &ANY, dir.path()) {
            let found = answers(&input, &questions, dir.path());
            assert_eq!(found, expected, "{}", input.name());
        }
    }
}

/// The answers of a geocoder of a file.
fn answers(input: &Input, questions: &Path, dir: &Path) -> Vec<String> {
    let index = dir.join("index");
    let paths: [(&str, &Path); 2] = [("{in}", &input.path), ("{index}", &index)];
    run_line("build-geocode-index -q -O {in} -o {index}", &paths);
    run_line_on("geocode {index}", &paths[1..], questions).lines()
}
