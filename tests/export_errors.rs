//! `export`: errors of one line, and what a run that fails leaves.

use crate::common::answers::file_of;
use crate::common::oracle::real_file;
use crate::common::{Arg, run_fail, run_ok, world};
use crate::export::{BOTH, complaints, config, fixture, summary};
use serde_json::json;
use std::path::Path;
use std::process::Command;

#[test]
fn a_bad_configuration_is_one_line_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.geojson");
    for (text, cause) in [
        ("", "EOF while parsing"),
        ("[]", "a configuration is a JSON object"),
        (r#"{"attributes": 5}"#, "\"attributes\" is not an object"),
        (
            r#"{"format_options": []}"#,
            "\"format_options\" is not an object",
        ),
        (
            r#"{"area_tags": 5}"#,
            "\"area_tags\" is not true, false, null or an array",
        ),
        (
            r#"{"linear_tags": ["a", 5]}"#,
            "\"linear_tags\": 5 is not a string",
        ),
        (
            r#"{"linear_tags": ["=a"]}"#,
            "\"linear_tags\": '=a' is not an expression",
        ),
        (r#"{"exclude_tags": 5}"#, "\"exclude_tags\" is not an array"),
        (
            r#"{"exclude_tags": ["a"], "include_tags": ["b"]}"#,
            "only one of \"include_tags\" and \"exclude_tags\"",
        ),
    ] {
        let config = config(dir.path(), text);
        let error = run_fail(&[
            &"export",
            &fixture("export.opl"),
            &"-c",
            &config,
            &"-o",
            &output,
        ]);
        assert!(
            error.contains(cause) && error.lines().count() == 1,
            "{text}: {error}"
        );
        assert!(error.contains(&config.display().to_string()), "{error}");
        std::fs::remove_file(config).unwrap();
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_and_a_history_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "200000");
    let output = dir.path().join("out.geojson");
    let count = || std::fs::read_dir(dir.path()).unwrap().count();
    let before = count();
    // A limit on the file size simulates a full disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f 200; exec {} export {} -o {}",
        env!("CARGO_BIN_EXE_pbfhogg"),
        input.display(),
        output.display()
    );
    let done = Command::new("bash").args(["-c", &script]).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(
        error.contains("cannot write") && error.lines().count() == 1,
        "{error}"
    );
    assert_eq!(count(), before);
    let history = real_file("deleted_nodes.osh.pbf");
    let error = run_fail(&[&"export", &history, &"-o", &output]);
    assert!(
        error.contains("history") && error.lines().count() == 1,
        "{error}"
    );
    assert_eq!(count(), before);
}

#[test]
fn every_problem_names_the_object_and_the_place() {
    let input = fixture("export.opl");
    assert_eq!(
        complaints(&[&input, &"-e"]),
        [
            "node 6: it has no location on the earth",
            "way 20: it has no nodes",
            "way 21: it has only one node",
            "way 23: all its nodes have the same location",
            "way 31: its node 99 is not in the file, or has no location",
            "way 32: its node 6 is not in the file, or has no location",
            "way 38: all its nodes have the same location",
            "relation 3: a ring does not close: way 22 ends at node 7, and no other way goes on",
            "relation 3: a ring does not close: way 22 ends at node 8, and no other way goes on",
            "relation 4: incomplete: its member way 999 is not in the file",
            "relation 5: it has no member ways",
            "relation 8: incomplete: node 99 of its member way 31 is not in the file, or has no location",
            "relation 10: it has no member ways",
            "relation 11: way 39 crosses itself at 1.05,1.05",
            "relation 13: its segments enclose no area",
        ]
    );
    let dir = tempfile::tempdir().unwrap();
    let both = config(dir.path(), BOTH);
    let mut warnings = complaints(&[&input, &"--show-warnings", &"-c", &both]);
    let left_out = warnings.pop().unwrap();
    assert!(
        left_out
            .contains("left out: 2 relations of which a part is not in the file, and objects with")
            && left_out.contains("no ways 2")
            && left_out.ends_with("-e lists them"),
        "{left_out}"
    );
    assert_eq!(
        warnings,
        [
            "way 33: it goes over a segment at node 7 twice",
            "relation 9: way 30 has the wrong role: see node 7",
            "relation 12: way 30 is a member several times",
            "relation 13: ways 30 and 25 share a segment at node 7",
            "relation 13: ways 30 and 25 share a segment at node 7",
            "relation 13: ways 30 and 25 share a segment at node 8",
        ]
    );
    let error = run_fail(&[&"export", &input, &"-E", &"-f", &"text"]);
    assert!(
        error.contains("node 6: it has no location on the earth"),
        "{error}"
    );
    let summary = summary(&[&input]);
    assert_eq!(
        summary["errors"],
        json!({"crossing": 1, "missing_node": 2, "no_area": 1, "no_location": 1, "no_ways": 2,
            "one_location": 2, "open_ring": 2, "too_few_nodes": 2})
    );
    assert_eq!(summary["incomplete"], 2);
}

/// The warnings of an export to a file.
fn warnings(options: &[&str], input: &Path, dir: &Path) -> Vec<String> {
    let output = dir.join("out.txt");
    let mut args: Vec<Arg> = vec![&"export", &"-O", &"-o", &output, &input];
    args.extend(options.iter().map(|option| option as Arg));
    let said = String::from_utf8(run_ok(&args).stderr).unwrap();
    said.lines().map(str::to_owned).collect()
}

#[test]
fn an_output_without_features_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    let place = "n1 v1 Tname=a x10 y50\nn2 v1 T x11 y51\n";
    for (text, options, reason) in [
        (place, &["-b", "1,2,3,4"][..], "the data lies in"),
        (place, &["-b", "49,9,52,12"], "look swapped"),
        (place, &["--filter", "shop"], "matches the filter"),
        (place, &["--type", "way"], "-n makes features"),
        (place, &["-n", "--type", "way"], "geometries asked for"),
    ] {
        std::fs::write(&input, text).unwrap();
        let said = warnings(options, &input, dir.path());
        let is_said = matches!(&said[..], [one] if one.contains(reason));
        assert!(is_said, "{options:?}: {said:?}");
    }
    std::fs::write(&input, place).unwrap();
    assert_eq!(warnings(&[], &input, dir.path()), [""; 0]);
    let empty = file_of(dir.path(), "empty.osm.pbf", &[]);
    let said = warnings(&[], &empty, dir.path());
    assert!(
        matches!(&said[..], [one] if one.contains("it has no objects")),
        "{said:?}"
    );
}

#[test]
fn scripts_are_told_what_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let input = fixture("export.opl");
    let said = warnings(&[], &input, dir.path());
    assert!(
        matches!(&said[..], [one] if one.contains("warning: left out: ")),
        "{said:?}"
    );
    // The list says it, and so does a report in JSON that shares standard error.
    let listed = warnings(&["-e"], &input, dir.path());
    assert!(
        listed.iter().all(|line| !line.contains("left out: ")),
        "{listed:?}"
    );
    let streamed = run_ok(&[&"export", &input, &"-f", &"text", &"--json"]).stderr;
    assert!(serde_json::from_slice::<serde_json::Value>(&streamed).is_ok());
    let second = run_ok(&[&"osmium", &"export", &input, &"-f", &"text"]).stderr;
    assert_eq!(String::from_utf8_lossy(&second), "");
}
