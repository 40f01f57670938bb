//! The fields of JSON reports, which `reference/json.md` must name.

use crate::common::answers::ask;
use crate::common::{Arg, run_ok, world};
use serde_json::Value;

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
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/export.opl")
}

#[test]
fn reports_have_the_fields_that_the_reference_names() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("reference/json.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "30000");
    let [output, day] = ["out.osm.pbf", "001.osc.gz"].map(|name| dir.path().join(name));
    let written = |args: &[Arg]| {
        let tail: [Arg; 4] = [&"--json", &"-O", &"-o", &output];
        ask(&[args, &tail[..]].concat()).json()
    };
    let index = dir.path().join("index");
    let build: [Arg; 6] = [
        &"build-geocode-index",
        &input,
        &"--json",
        &"--output-dir",
        &index,
        &"--max-admin-vertices=3",
    ];
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
    let reports: [(&str, Value); 17] = [
        (
            "`repair`",
            written(&[&"repair", &damaged, &"--from", &input]),
        ),
        ("`build-geocode-index`", ask(&build).json()),
        ("A written file", written(&[&"cat", &input])),
        ("A written file", written(&[&"sort", &input])),
        ("A written file", written(&[&"repack", &input])),
        (
            "A written file",
            written(&[&"getid", &input, &"n1", &"n999999999"]),
        ),
        (
            "A written file",
            written(&[&"extract", &"-b", &"0,0,1,1", &input]),
        ),
        ("A written file", written(&[&"apply-changes", &input, &day])),
        (
            "A written file",
            written(&[&"tags-edit", &input, &"--drop", &"highway"]),
        ),
        (
            "A written file",
            ask(&[
                &"tags-edit",
                &day,
                &"--drop",
                &"highway",
                &"-f",
                &"osc",
                &"-o",
                &dir.path().join("out.osc"),
                &"--json",
            ])
            .json(),
        ),
        (
            "`export`",
            written(&[&"export", &"-f", &"text", &awkward()]),
        ),
        ("`inspect`", ask(&[&"inspect", &"--json", &input]).json()),
        ("`check`", ask(&[&"check", &"-r", &"--json", &input]).json()),
        ("`check`", areas),
        (
            "`inspect`",
            ask(&[&"inspect", &"-e", &"--top", &"1", &"--json", &input]).json(),
        ),
        ("`diff`", ask(&[&"diff", &"--json", &input, &input]).json()),
        (
            "`--stats`",
            ask(&[&"inspect", &"-q", &"--stats", &"-", &input]).json(),
        ),
    ];
    for (heading, report) in reports {
        let names = named(&page, heading);
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
