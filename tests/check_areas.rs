//! `check --areas` and `check --doubled`: what they find, and the file that shows where it is.

use crate::common::answers::{Answer, ask, file_of, history_of, in_order};
use crate::common::objects::{Object, node, relation, way};
use crate::common::oracle::{all_real_files, small_real_files};
use crate::common::random::Random;
use crate::common::{Arg, Kind, is_long, run_fail, run_ok};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A fixture of `export`, with objects that have each problem.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/export.opl")
}

/// The report of a check, and its exit status.
fn check(options: &[&str], input: &Path) -> (i32, Value) {
    let mut args: Vec<Arg> = vec![&"check", &"--json", &"--max-errors", &"0", &input];
    args.extend(options.iter().map(|option| option as Arg));
    let answer = ask(&args);
    (answer.status, answer.json())
}

/// The lines of a list of problems, as `export` prints them.
fn listed(found: &Value) -> Vec<String> {
    let list = found["listed"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    list.map(|one| {
        format!(
            "{} {}: {}",
            word(&one["kind"]),
            one["id"],
            word(&one["what"])
        )
    })
    .collect()
}

/// Asserts that `check --areas` finds what an export of areas finds, and nothing else.
fn assert_same_as_export(input: &Path, dir: &Path) {
    let output = dir.join("out.txt");
    let export: [Arg; 7] = [
        &"export",
        &"-O",
        &"-o",
        &output,
        &"--geometry-types",
        &"polygon",
        &input,
    ];
    let said = ask(&[&export[..], &[&"-e", &"--show-warnings"]].concat()).stderr;
    let is_problem = |line: &&str| !line.starts_with("pbfhogg: ");
    let expected: Vec<&str> = said.lines().filter(is_problem).collect();
    let (status, found) = check(&["--areas"], input);
    let found = &found["areas"];
    assert_eq!(listed(found), expected, "{}", input.display());
    let report = run_ok(&[&export[..], &[&"--json"]].concat()).stdout;
    let summary: Value = serde_json::from_slice(&report).unwrap();
    for field in ["areas", "errors", "incomplete", "warnings"] {
        assert_eq!(found[field], summary[field], "{field} {}", input.display());
    }
    let is_broken = found["errors"]
        .as_object()
        .is_some_and(|errors| !errors.is_empty());
    assert_eq!(status, i32::from(is_broken), "{}", input.display());
}

#[test]
fn check_finds_the_broken_areas_that_export_finds() {
    let dir = tempfile::tempdir().unwrap();
    let located = dir.path().join("located.osm.pbf");
    let mut files = vec![fixture()];
    let is_current = |path: &PathBuf| !path.to_string_lossy().contains(".osh.");
    let real = if is_long() {
        all_real_files()
    } else {
        small_real_files()
    };
    files.extend(real.into_iter().filter(is_current));
    for (turn, file) in files.iter().enumerate() {
        assert_same_as_export(file, dir.path());
        if is_long() || turn < 2 {
            let add: [Arg; 5] = [&"add-locations-to-ways", &"-O", &file, &"-o", &located];
            run_ok(&[&add[..], &[&"--ignore-missing-nodes"]].concat());
            assert_same_as_export(&located, dir.path());
        }
    }
}

/// The features of a file of problems.
fn features(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["features"].as_array().unwrap().clone()
}

#[test]
fn the_output_shows_each_problem_at_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("errors.geojson");
    let (input, path) = (fixture(), output.to_str().unwrap());
    let (status, found) = check(&["--areas", "-o", path], &input);
    assert_eq!(status, 1);
    let features = features(&output);
    let found = &found["areas"];
    let is_placed = |one: &&Value| one["severity"] != "incomplete" && !one["lat"].is_null();
    let listed = found["listed"].as_array().unwrap().iter();
    let expected: Vec<Value> = listed
        .clone()
        .filter(is_placed)
        .map(|one| {
            json!([
                one["kind"],
                one["id"],
                one["what"],
                one["problem"],
                [one["lon"], one["lat"]]
            ])
        })
        .collect();
    let points = features
        .iter()
        .filter(|one| one["geometry"]["type"] == "Point");
    let points: Vec<Value> = points
        .map(|one| {
            let of = &one["properties"];
            let place = &one["geometry"]["coordinates"];
            json!([
                of["@type"],
                of["@id"],
                of["description"],
                of["problem"],
                place
            ])
        })
        .collect();
    assert_eq!(points, expected);
    let unplaced = listed.filter(|one| one["severity"] != "incomplete" && one["lat"].is_null());
    assert_eq!(found["unplaced"], unplaced.count());
    // Way 39 crosses itself in the middle of two diagonals.
    let crossing = features.iter().find(|one| {
        one["properties"]["problem"] == "crossing" && one["geometry"]["type"] != "Point"
    });
    let geometry = &crossing.unwrap()["geometry"];
    let diagonals = [[[1.0, 1.0], [1.1, 1.1]], [[1.0, 1.1], [1.1, 1.0]]];
    assert_eq!(geometry["type"], "MultiLineString");
    assert_eq!(geometry["coordinates"], json!(diagonals));
    let repeated = features.iter().find(|one| {
        one["properties"]["problem"] == "duplicate_segment" && one["geometry"]["type"] != "Point"
    });
    assert_eq!(repeated.unwrap()["geometry"]["type"], "LineString");
}

#[test]
fn an_output_needs_a_search_and_a_name_that_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("errors.geojson");
    let said = run_fail(&[&"check", &fixture(), &"-o", &output]);
    assert!(said.contains("--areas"), "{said}");
    std::fs::write(&output, "mine").unwrap();
    let said = ask(&[&"check", &"--areas", &fixture(), &"-o", &output]);
    assert_eq!(said.status, 2, "{}", said.stderr);
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "mine");
    let said = ask(&[&"check", &"--areas", &fixture(), &"-O", &"-o", &output]);
    assert_eq!(said.status, 1, "{}", said.stderr);
    assert!(
        said.stdout
            .contains("relation 11: way 39 crosses itself at 1.05,1.05")
    );
    let streamed = ask(&[&"check", &"--areas", &fixture(), &"-o", &"-"]);
    assert_eq!(streamed.stdout, std::fs::read_to_string(&output).unwrap());
}

#[test]
fn lists_are_limited_and_counts_are_not() {
    let said = ask(&[&"check", &"--areas", &"--max-errors", &"1", &fixture()]).stdout;
    let lines = said
        .lines()
        .filter(|line| line.starts_with("  relation") || line.starts_with("  way"));
    assert_eq!(lines.count(), 3, "{said}");
    assert!(said.contains("more: --max-errors 0 lists all"), "{said}");
    let limited = ask(&[
        &"check",
        &"--areas",
        &"--max-errors",
        &"1",
        &"--json",
        &fixture(),
    ]);
    let (_, all) = check(&["--areas"], &fixture());
    assert_eq!(limited.json()["areas"]["errors"], all["areas"]["errors"]);
}

#[test]
fn incomplete_relations_and_mistakes_are_no_reason_for_status_1() {
    let dir = tempfile::tempdir().unwrap();
    let corners = [(1, 0, 0), (2, 0, 10), (3, 10, 10)];
    let nodes: Vec<Object> = corners
        .map(|(id, lat, lon)| node(id, lat, lon, &[]))
        .to_vec();
    let ring = [way(1, &[1, 2, 3, 1], &[])];
    let area = &[("type", "multipolygon"), ("natural", "water")];
    let relations = [
        relation(1, &[(Kind::Way, 1, "inner")], area),
        relation(2, &[(Kind::Way, 1, "outer"), (Kind::Way, 9, "outer")], area),
    ];
    let input = file_of(dir.path(), "in.osm.pbf", &[&nodes, &ring, &relations]);
    let (status, found) = check(&["--areas", "--doubled"], &input);
    assert_eq!(status, 0, "{found}");
    assert_eq!(found["areas"]["incomplete"], 1);
    assert_eq!(found["areas"]["warnings"], json!({"wrong_role": 1}));
    let text = ask(&[&"check", &"--areas", &input]).stdout;
    assert!(text.contains("broken areas: none"), "{text}");
}

/// Asserts that a check of areas and doubled objects refuses an input, and names the reason.
fn assert_refused(input: &Path, reason: &str) {
    for option in ["--areas", "--doubled"] {
        let Answer { status, stderr, .. } = ask(&[&"check", &option, &input]);
        assert!(status == 2 && stderr.contains(reason), "{option}: {stderr}");
    }
}

#[test]
fn histories_and_repeated_objects_are_refused_and_empty_files_are_sound() {
    let dir = tempfile::tempdir().unwrap();
    let version = |version: i64| Object {
        version: Some(version),
        ..node(1, 5, 5, &[])
    };
    let history = history_of(dir.path(), "in.osh.pbf", &[&[version(1), version(2)]]);
    assert_refused(&history, "history");
    let twice = [node(1, 5, 5, &[]), node(1, 6, 6, &[])];
    let twice = file_of(dir.path(), "twice.osm.pbf", &[&twice]);
    for option in ["--areas", "--doubled"] {
        assert_eq!(ask(&[&"check", &option, &twice]).status, 2);
    }
    let empty = file_of(dir.path(), "empty.osm.pbf", &[]);
    let (status, found) = check(&["--areas", "--doubled"], &empty);
    assert_eq!(status, 0, "{found}");
    assert_eq!(found["areas"]["areas"], 0);
    assert!(found["nodes"].is_null(), "{found}");
}

/// A world in which few places, ways and tags occur often.
fn crowded(random: &mut Random) -> Vec<Object> {
    let tags: [&[(&str, &str)]; 5] = [
        &[],
        &[],
        &[("a", "1")],
        &[("a", "1"), ("b", "2")],
        &[("b", "2"), ("a", "1")],
    ];
    let mut objects = Vec::new();
    for id in 1..=40 {
        let (lat, lon) = (random.below(5) as i64, random.below(5) as i64);
        objects.push(node(id, lat, lon, tags[random.below(5)]));
    }
    for id in 1..=40 {
        let mut refs: Vec<i64> = (0..2 + random.below(3))
            .map(|_| 1 + random.below(8) as i64)
            .collect();
        if random.below(2) == 0 {
            refs.push(refs[0]);
        }
        objects.push(way(id, &refs, tags[random.below(5)]));
    }
    let repeated = &[("a", "1"), ("b", "2"), ("a", "3"), ("a", "1")];
    objects.push(relation(1, &[(Kind::Way, 1, "")], repeated));
    in_order(objects)
}

/// All forms of a line that are the same to `--doubled`: in both directions and, if it is closed, from any of its
/// points.
fn forms_of(line: &[(i64, i64)]) -> BTreeSet<Vec<(i64, i64)>> {
    let mut forms = BTreeSet::new();
    let is_closed = line.len() > 2 && line.first() == line.last();
    let turns = if is_closed { line.len() - 1 } else { 1 };
    for turn in 0..turns {
        let mut form = line.to_vec();
        if is_closed {
            form.pop();
            form.rotate_left(turn);
            form.push(form[0]);
        }
        forms.insert(form.clone());
        form.reverse();
        forms.insert(form);
    }
    forms
}

/// The content of a node or way that makes it the same as another: its first form, and its tags in order.
type Content = (Kind, Vec<(i64, i64)>, Vec<(String, String)>);

#[test]
fn doubled_objects_are_those_that_a_plain_comparison_finds() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    let rounds = if is_long() { 500 } else { 15 };
    for _ in 0..rounds {
        let objects = crowded(&mut random);
        let place = |object: &Object| (object.lat_nano, object.lon_nano);
        let nodes: BTreeMap<i64, (i64, i64)> = objects
            .iter()
            .filter(|object| object.kind == Kind::Node)
            .map(|object| (object.id, place(object)))
            .collect();
        let line = |object: &Object| -> Vec<(i64, i64)> {
            object.refs.iter().map(|id| nodes[id]).collect()
        };
        let mut first: BTreeMap<Content, i64> = BTreeMap::new();
        let mut expected: Vec<Value> = Vec::new();
        for object in &objects {
            let form = match object.kind {
                Kind::Node => vec![place(object)],
                Kind::Way => forms_of(&line(object)).pop_first().unwrap(),
                Kind::Relation => continue,
            };
            let mut tags = object.tags.clone();
            tags.sort();
            let same = *first.entry((object.kind, form, tags)).or_insert(object.id);
            if same != object.id {
                let kind = if object.kind == Kind::Node {
                    "node"
                } else {
                    "way"
                };
                expected.push(json!([kind, object.id, same, null]));
            }
        }
        let count = |kind: &str| expected.iter().filter(|one| one[0] == kind).count();
        let counts = [count("node"), count("way")];
        expected.push(json!(["relation", 1, null, "a"]));
        let input = file_of(dir.path(), "in.osm.pbf", &[&objects]);
        let (status, found) = check(&["--doubled"], &input);
        let found = &found["doubled"];
        let listed = found["listed"].as_array().unwrap().iter();
        let listed = listed.map(|one| json!([one["kind"], one["id"], one["same_as"], one["key"]]));
        assert_eq!(listed.collect::<Vec<_>>(), expected);
        assert_eq!([&found["nodes"], &found["ways"]], counts);
        assert_eq!((status, &found["keys"]), (1, &json!(1)));
    }
}

#[test]
fn doubled_objects_are_shown_at_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let name = &[("name", "here")];
    let nodes = [
        node(1, 10_000_000, 20_000_000, name),
        node(2, 10_000_000, 20_000_000, name),
        node(3, 10_000_000, 20_000_000, &[]),
    ];
    let input = file_of(dir.path(), "in.osm.pbf", &[&nodes]);
    let output = dir.path().join("doubled.geojson");
    let path = output.to_str().unwrap();
    assert_eq!(check(&["--doubled", "-o", path], &input).0, 1);
    let features = features(&output);
    assert_eq!(features.len(), 1);
    assert_eq!(
        features[0]["geometry"],
        json!({"type": "Point", "coordinates": [2.0, 1.0]})
    );
    let properties = json!({"@type": "node", "@id": 2, "problem": "doubled_node", "same_as": "1"});
    assert_eq!(features[0]["properties"], properties);
    let text = ask(&[&"check", &"--doubled", &input]).stdout;
    assert!(
        text.contains("n2: at the place of n1, with the same tags"),
        "{text}"
    );
}
