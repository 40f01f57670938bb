//! The fields of JSON reports, which `reference/json.md` must name. The lines of `tests/commands.txt` with `json` are run.

use crate::common::answers::ask;
use crate::common::{Arg, every, run_ok, world};
use serde_json::Value;
use std::path::Path;

/// The words in backquotes in a section of the page.
fn named(page: &str, heading: &str) -> Vec<String> {
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading}"));
    let words = section.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

/// Collects the names of all fields of a report, including nested ones.
fn fields(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                names.push(name.clone());
                fields(value, names);
            }
        }
        Value::Array(list) => list.iter().take(1).for_each(|value| fields(value, names)),
        _ => {}
    }
}

/// A file with errors, incomplete relations, and mistakes that have no effect.
fn awkward() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/export.opl")
}

#[test]
fn reports_have_the_fields_that_the_reference_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("reference/json.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "30000");
    let day = dir.path().join("001.osc.gz");
    let index = dir.path().join("index");
    let build: [Arg; 6] = [
        &"build-geocode-index",
        &input,
        &"--json",
        &"--output-dir",
        &index,
        &"--max-admin-vertices=3",
    ];
    let out = dir.path().join("out");
    let values: [(&str, &Path); 3] = [("{in}", &input), ("{day}", &day), ("{out}", &out)];
    let of_line = |line: &str| {
        let arguments = every::arguments(line, &values);
        let mut arguments: Vec<Arg> = arguments.iter().map(|word| word as Arg).collect();
        arguments.push(&"--json");
        if line.contains("{out}") {
            arguments.push(&"-O");
        }
        ask(&arguments).json()
    };
    let written = dir.path().join("written.osm.pbf");
    let damaged = dir.path().join("damaged.osm.pbf");
    let mut bytes = std::fs::read(&input).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let mut areas = ask(&[&"check", &"--areas", &"--doubled", &"--json", &awkward()]).json();
    // The kinds of problems are those of `export`.
    for field in ["errors", "warnings"] {
        areas["areas"][field].take();
    }
    let table = every::table().into_iter();
    let lines = table.filter(|line| line.is_run() && line.has(&["json"]));
    let mut reports: Vec<(String, Value)> = lines
        .map(|line| {
            let own = format!("`{}`", line.command);
            let has_own = page.contains(&format!("\n## {own}\n"));
            let heading = if has_own {
                own
            } else {
                "A written file".to_owned()
            };
            (heading, of_line(line.text))
        })
        .collect();
    assert!(reports.len() > 10);
    let features = dir.path().join("features.txt");
    let special: [(&str, &[Arg]); 4] = [
        (
            "`repair`",
            &[
                &"repair", &damaged, &"--from", &input, &"--json", &"-o", &written,
            ],
        ),
        ("`build-geocode-index`", &build),
        (
            "`export`",
            &[&"export", &awkward(), &"--json", &"-o", &features],
        ),
        ("`--stats`", &[&"inspect", &"-q", &"--stats", &"-", &input]),
    ];
    let special = special.map(|(heading, arguments)| (heading.to_owned(), ask(arguments).json()));
    reports.extend(special);
    reports.push(("`check`".to_owned(), areas));
    for (heading, report) in reports {
        let names = named(&page, &heading);
        let mut found = Vec::new();
        fields(&report, &mut found);
        for field in found {
            let is_named = names.contains(&field);
            assert!(is_named, "{heading}: {field} is not named: {report}");
        }
    }
}

#[test]
fn boxes_positions_and_missing_ids_have_the_shapes_of_the_reference() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "3000");
    let report = ask(&[&"inspect", &"--nodes", &"--json", &input]).json();
    for bbox in [&report["data_bbox"], &report["node_statistics"]["bbox"]] {
        let edges: Vec<f64> = bbox
            .as_array()
            .unwrap()
            .iter()
            .map(|edge| edge.as_f64().unwrap())
            .collect();
        assert!(
            edges.len() == 4 && edges[0] < edges[2] && edges[1] < edges[3],
            "{bbox}"
        );
    }
    let center = &report["node_statistics"]["center"];
    assert!(center["lat"].is_f64() && center["lon"].is_f64(), "{center}");
    let id = report["kinds"][0]["min_id"].as_i64().unwrap();
    let shown = ask(&[&"show", &"--json", &input, &format!("n{id}")]).json();
    assert!(shown["objects"][0]["location"]["lat"].is_f64(), "{shown}");
    let output = dir.path().join("out.osm.pbf");
    let missing = ask(&[
        &"getid",
        &"--json",
        &input,
        &"w999999999",
        &"n999999999",
        &"-o",
        &output,
    ])
    .json();
    assert_eq!(
        missing["missing"],
        serde_json::json!(["n999999999", "w999999999"])
    );
    assert_eq!(missing["missing_count"], 2);
    run_ok(&[&"inspect", &"-q", &"--stats", &"-", &input]);
    // Also of a command whose answer is no report.
    let stats = dir.path().join("stats.json");
    let count: [Arg; 4] = [&"inspect", &"--get", &"data.count.nodes", &input];
    let shown: [Arg; 3] = [&"show", &input, &"n1"];
    for answer in [&count[..], &shown[..]] {
        ask(&[answer, &[&"--stats", &stats]].concat());
        std::fs::remove_file(&stats).unwrap();
    }
}
