//! `extract`, compared with osmium, and with a plain search by simple, slow code.
//!
//! For osmium, too, locations on the edges of a box are inside. In a polygon, osmium takes a location on a horizontal
//! edge with the polygon below it to be outside; therefore no polygon here has horizontal edges. Overlapping polygons
//! cancel each other out in osmium but not in pbfhogg; therefore no polygons here overlap.
//!
//! With `PBFHOGG_LONG=1` many more random worlds are tested, and every region is also extracted separately.

use crate::common::answers::{ask_osmium, history_of};
use crate::common::extracts::{
    OPTIONS, STRATEGIES, Strategy, WORLD_SIZE, expect_extract, extracted, osmiums_simple_ids,
    place_of, random_box, random_world,
};
use crate::common::oracle::{
    as_opl_shows, opl_file_objects, osmium, real_file, real_files, renumbered,
};
use crate::common::questions::{Inputs, assert_same_objects, file_in_blocks, parted};
use crate::common::random::Random;
use crate::common::regions::{Region, Spread, written};
use crate::common::{Arg, Object, decode, in_turn, is_long, run_ok};
use std::path::{Path, PathBuf};

/// Files from several sources.
const FILES: [&str; 5] = [
    "malta.osm.pbf",
    "liechtenstein-c.osm.pbf",
    "heidelberg.osm.pbf",
    "andorra-c.osm.pbf",
    "porto.osm.pbf",
];

/// The form in which a region is given.
#[derive(Debug, Clone, Copy)]
enum Form {
    Box,
    Poly,
    GeoJson,
}

/// A region, and the form in which it is given.
struct Case {
    name: String,
    region: Region,
    form: Form,
}

impl Case {
    fn new(name: &str, form: Form, region: Region) -> Case {
        let name = name.to_owned();
        Case { name, region, form }
    }

    fn file(&self, dir: &Path) -> PathBuf {
        match self.form {
            Form::Box => panic!("boxes need no file"),
            Form::Poly => self.region.poly_file(dir, &self.name),
            Form::GeoJson => self.region.geojson_file(dir, &self.name),
        }
    }

    /// The arguments that give the region.
    fn args(&self, dir: &Path) -> [String; 2] {
        match self.form {
            Form::Box => ["-b".to_owned(), self.region.bbox()],
            _ => ["-p".to_owned(), self.file(dir).display().to_string()],
        }
    }

    /// The entry for a configuration file in `dir`. If necessary, writes the region to a file beside it.
    fn entry(&self, dir: &Path, output: &str) -> String {
        let region = match self.form {
            Form::Box => format!("\"bbox\":[{}]", self.region.bbox()),
            _ => {
                let file = self.file(dir);
                let file = file.file_name().unwrap().to_str().unwrap();
                format!("\"multipolygon\":{{\"file_name\":\"{file}\"}}")
            }
        };
        format!("{{\"output\":\"{output}\",{region}}}")
    }
}

/// A box, a polygon file of a star with a hole and another star, a GeoJSON polygon with a hole, and a GeoJSON
/// multipolygon, all near the median location of the nodes.
fn cases_of(objects: &[Object]) -> Vec<Case> {
    let spread = Spread::of(objects.iter().filter_map(place_of));
    let star = |percents, scale| spread.star(percents, scale);
    let stars = vec![
        vec![star([50, 30, 70, 60], 95), star([50, 30, 70, 60], 30)],
        vec![star([30, 60, 50, 70], 95)],
    ];
    let hole = Region::of(&[star([40, 20, 60, 80], 100), star([40, 20, 60, 80], 25)]);
    let pieces = vec![
        vec![star([10, 45, 25, 55], 90)],
        vec![star([25, 55, 45, 75], 90), star([25, 55, 45, 75], 20)],
        vec![star([80, 80, 100, 100], 90)],
    ];
    vec![
        Case::new("box", Form::Box, spread.boxed([45, 40, 60, 60])),
        Case::new("stars", Form::Poly, Region { polygons: stars }),
        Case::new("hole", Form::GeoJson, hole),
        Case::new("pieces", Form::GeoJson, Region { polygons: pieces }),
    ]
}

/// Random boxes that have nodes on their edges.
fn boxes(seed: u64, count: usize) -> Vec<Case> {
    let mut random = Random(seed);
    let mut boxed = |number| {
        Case::new(
            &format!("{number}"),
            Form::Box,
            random_box(&mut random, WORLD_SIZE),
        )
    };
    (0..count).map(&mut boxed).collect()
}

fn config(cases: &[Case], suffix: &str, dir: &Path) -> PathBuf {
    let entry = |case: &Case| case.entry(dir, &format!("{}.{suffix}", case.name));
    let entries: Vec<String> = cases.iter().map(entry).collect();
    let text = format!("{{\"extracts\":[{}]}}", entries.join(",\n"));
    written(dir, &format!("{suffix}.json"), &text)
}

/// The objects that osmium extracts for each case.
fn osmiums(input: &Path, cases: &[Case], strategy: &[String], dir: &Path) -> Vec<Vec<Object>> {
    let history = strategy.iter().any(|arg| arg == "-H");
    let suffix = if history { "osh.opl" } else { "opl" };
    let config = config(cases, suffix, dir);
    let mut args: Vec<Arg> = vec![&"extract", &input, &"-c", &config, &"-d", &dir];
    args.extend([&"-O" as Arg, &"--no-progress"]);
    args.extend(strategy.iter().map(|arg| arg as Arg));
    let answer = ask_osmium(&args);
    assert_eq!(answer.status, 0, "{strategy:?}: {}", answer.stderr);
    let output = |case: &Case| opl_file_objects(&dir.join(format!("{}.{suffix}", case.name)));
    cases.iter().map(output).collect()
}

/// The files and the objects that pbfhogg extracts for each case, in one run.
fn ours(
    input: &Path,
    cases: &[Case],
    strategy: &[String],
    dir: &Path,
) -> Vec<(PathBuf, Vec<Object>)> {
    let config = config(cases, "osm.pbf", dir);
    let mut args: Vec<Arg> = vec![&"extract", &input, &"-c", &config, &"-d", &dir, &"-O"];
    args.extend(strategy.iter().map(|arg| arg as Arg));
    run_ok(&args);
    let output = |case: &Case| {
        let path = dir.join(format!("{}.osm.pbf", case.name));
        let objects = decode::objects(&path);
        (path, objects)
    };
    cases.iter().map(output).collect()
}

/// Checks that a region extracted separately gives the same file as in a run with others.
fn assert_same_alone(input: &Path, case: &Case, strategy: &[String], among: &Path, dir: &Path) {
    let alone = dir.join("alone.osm.pbf");
    let region = case.args(dir);
    let mut args: Vec<Arg> = vec![&"extract", &input, &"-O", &"-o", &alone];
    args.extend(region.iter().chain(strategy).map(|arg| arg as Arg));
    run_ok(&args);
    let same = std::fs::read(&alone).unwrap() == std::fs::read(among).unwrap();
    assert!(same, "{} {} {strategy:?}", input.display(), case.name);
}

fn shown(objects: &[Object]) -> Vec<Object> {
    objects.iter().map(as_opl_shows).collect()
}

/// Compares with osmium's extract. With `simple`, osmium may omit objects by its own rule.
fn assert_osmiums(
    found: &[Object],
    theirs: &[Object],
    (objects, case, strategy): (&[Object], &Case, Strategy),
) {
    let found = shown(found);
    if strategy == Strategy::Simple && found != theirs {
        let seen = osmiums_simple_ids(objects, &case.region);
        let (found, _) = parted(&found, &seen);
        return assert_same_objects(&found, theirs, &format!("{}, simple", case.name));
    }
    let what = format!("{}, {strategy:?}", case.name);
    assert_same_objects(&found, theirs, &what);
}

// The plain search.

fn compare_plain_search(input: &Path, cases: &[Case], strategies: &[Strategy], more: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let objects = decode::objects(input);
    for &strategy in strategies {
        let mut args = strategy.args();
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        let theirs = osmiums(input, cases, &args, dir.path());
        for (case, theirs) in cases.iter().zip(&theirs) {
            let found = extracted(&objects, &case.region, strategy);
            assert_osmiums(&found, theirs, (&objects, case, strategy));
        }
    }
}

#[test]
fn the_plain_search_gives_what_osmium_gives_on_real_files() {
    let dir = tempfile::tempdir().unwrap();
    let names = if is_long() { &FILES[..] } else { &FILES[4..] };
    for input in names.iter().filter_map(|name| renumbered(name, dir.path())) {
        let cases = cases_of(&decode::objects(&input));
        compare_plain_search(&input, &cases, &STRATEGIES, &[]);
    }
}

#[test]
fn the_plain_search_gives_what_osmium_gives_with_options() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["helsinki.osm.pbf", "monaco.osm.pbf"];
    let names = if is_long() { &names[..] } else { &names[1..] };
    for input in names.iter().filter_map(|name| renumbered(name, dir.path())) {
        let cases = cases_of(&decode::objects(&input));
        let options: Vec<Strategy> = in_turn(1, 2, OPTIONS).collect();
        compare_plain_search(&input, &cases, &options, &[]);
    }
}

#[test]
fn the_plain_search_gives_what_osmium_gives_on_made_up_worlds() {
    let dir = tempfile::tempdir().unwrap();
    let seeds = if is_long() { 60 } else { 2 };
    for seed in (0..seeds).filter(|_| osmium()) {
        let input = file_in_blocks(dir.path(), &random_world(seed, 150, false), 100);
        let all = STRATEGIES.into_iter().chain(OPTIONS);
        let strategies: Vec<Strategy> = in_turn(seed as usize, 2, all).collect();
        let cases = boxes(seed, if is_long() { 10 } else { 6 });
        compare_plain_search(&input, &cases, &strategies, &[]);
    }
}

#[test]
fn the_plain_search_gives_what_osmium_gives_on_made_up_histories() {
    let dir = tempfile::tempdir().unwrap();
    let seeds = if is_long() { 60 } else { 2 };
    for seed in (0..seeds).filter(|_| osmium()) {
        let objects = random_world(seed, 150, true);
        let blocks: Vec<&[Object]> = objects.chunks(90).collect();
        let input = history_of(dir.path(), "in.osh.pbf", &blocks);
        let complete = [Strategy::CompleteWays];
        compare_plain_search(&input, &boxes(seed, 20), &complete, &["-H"]);
    }
}

// The command.

fn compare_with_osmium(input: &Path, cases: &[Case], strategies: &[Strategy], each: bool) {
    let dir = tempfile::tempdir().unwrap();
    let objects = decode::objects(input);
    for &strategy in strategies {
        let args = strategy.args();
        let theirs = osmiums(input, cases, &args, dir.path());
        let found = ours(input, cases, &args, dir.path());
        for ((case, theirs), (path, found)) in cases.iter().zip(&theirs).zip(&found) {
            assert_osmiums(found, theirs, (&objects, case, strategy));
            if each {
                assert_same_alone(input, case, &args, path, dir.path());
            }
        }
    }
}

fn compare_file_with_osmium(name: &str, strategies: &[Strategy], each: bool) {
    let dir = tempfile::tempdir().unwrap();
    if let Some(input) = renumbered(name, dir.path()) {
        let cases = cases_of(&decode::objects(&input));
        compare_with_osmium(&input, &cases, strategies, each || is_long());
    }
}

#[test]
fn boxes_and_polygons_give_what_osmium_gives_with_every_strategy() {
    let names = if is_long() { &FILES[..4] } else { &FILES[4..] };
    for name in names {
        compare_file_with_osmium(name, &STRATEGIES, false);
    }
}

#[test]
fn a_region_by_itself_gives_what_it_gives_among_others() {
    let name = if is_long() {
        FILES[4]
    } else {
        "monaco.osm.pbf"
    };
    compare_file_with_osmium(name, &STRATEGIES, true);
}

#[test]
fn options_of_strategies_give_what_osmium_gives() {
    for (turn, name) in ["monaco.lz4.osm.pbf", "helsinki.osm.pbf"]
        .iter()
        .enumerate()
    {
        let options: Vec<Strategy> = in_turn(turn, 2, OPTIONS).collect();
        compare_file_with_osmium(name, &options, false);
    }
}

#[test]
fn large_ids_give_what_osmium_gives() {
    if !osmium() {
        return;
    }
    let input = real_file("monaco.osm.pbf");
    let cases = cases_of(&decode::objects(&input));
    compare_with_osmium(&input, &cases[2..3], &STRATEGIES[1..2], true);
}

#[test]
fn every_real_file_gives_what_the_plain_search_gives() {
    for (turn, input) in real_files().into_iter().enumerate() {
        let objects = decode::objects(&input);
        // A single location has no bounding box.
        let mut places: Vec<_> = objects.iter().filter_map(place_of).collect();
        places.dedup();
        if places.len() < 2 {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let cases = cases_of(&objects);
        for strategy in in_turn(turn, STRATEGIES.len(), STRATEGIES) {
            let found = ours(&input, &cases, &strategy.args(), dir.path());
            for (case, (_, found)) in cases.iter().zip(found) {
                let expected = extracted(&objects, &case.region, strategy);
                let what = format!("{} {} {strategy:?}", input.display(), case.name);
                assert_same_objects(&found, &expected, &what);
            }
        }
    }
}

#[test]
fn made_up_worlds_give_what_the_plain_search_gives() {
    let dir = tempfile::tempdir().unwrap();
    let seeds = if is_long() { 100 } else { 4 };
    for seed in 100..100 + seeds {
        let objects = random_world(seed, 120 + 40 * seed as i64 % 300, false);
        let input = file_in_blocks(dir.path(), &objects, 40 + seed as usize % 50);
        let cases = boxes(seed, 20);
        for strategy in in_turn(seed as usize, 2, STRATEGIES.into_iter().chain(OPTIONS)) {
            let found = ours(&input, &cases, &strategy.args(), dir.path());
            for (case, (_, found)) in cases.iter().zip(found) {
                let expected = extracted(&objects, &case.region, strategy);
                let what = format!("seed {seed}, box {}, {strategy:?}", case.name);
                assert_same_objects(&found, &expected, &what);
            }
        }
    }
}

#[test]
fn made_up_histories_give_what_the_plain_search_gives() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..3 {
        let objects = random_world(seed, 150, true);
        let blocks: Vec<&[Object]> = objects.chunks(90).collect();
        let inputs = Inputs::of(&history_of(dir.path(), "in.osh.pbf", &blocks));
        for case in boxes(seed, 4) {
            let expected = extracted(&objects, &case.region, Strategy::CompleteWays);
            let bbox = case.region.bbox();
            let args = ["-H", "-b", &bbox];
            expect_extract(&inputs, &args, Strategy::CompleteWays, &expected);
        }
    }
}
