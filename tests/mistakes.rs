//! Mistakes of users: one line that says what to do.

use crate::common::answers::ask;
use crate::common::{Arg, run_fail, run_ok, small_world};

#[test]
fn files_that_are_not_osm_are_called_by_their_name() {
    let dir = tempfile::tempdir().unwrap();
    for (start, name) in [
        (&b"PK\x03\x04 and so on"[..], "a zip archive"),
        (b"\x89PNG\r\n\x1a\n and so on", "a PNG picture"),
        (b"\xff\xe0\x04o6m3 and so on", "an o5m file"),
        (b"just some words\n", "text"),
        (b"{\"type\": \"Feature\"}", "JSON"),
        (b"\x7fELF and so on", "a program"),
    ] {
        let path = dir.path().join("file.osm.pbf");
        std::fs::write(&path, start).unwrap();
        for command in [&["inspect"][..], &["check"], &["sort", "-o", "/dev/null"]] {
            let args: Vec<Arg> = command.iter().map(|arg| arg as _).collect();
            let message = run_fail(&[args, vec![&path]].concat());
            assert!(
                message.contains("not an OSM file") && message.contains(name),
                "{message}"
            );
        }
    }
}

#[test]
fn mistakes_on_the_command_line_are_one_line_that_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let cases: [(&[Arg], &str); 7] = [
        (&[&"inspect", &world, &world], "inspect takes one file"),
        (
            &[&"inspect", &"--get", &"data.count.node", &world],
            "did you mean data.count.nodes",
        ),
        (
            &[&"inspect", &"--get", &"typo", &world],
            "'typo' is not a key of --get",
        ),
        (&[&"cat", &"--josn", &world], "did you mean --json?"),
        (
            &[&"cat", &"--unrelated", &world],
            "has no option --unrelated; see `pbfhogg cat --help`",
        ),
        (&[&"ct"], "did you mean cat?"),
        (&[&"--unknown"], "see `pbfhogg --help`"),
    ];
    for (args, expected) in cases {
        let message = run_fail(args);
        assert!(message.contains(expected), "{message}");
    }
    let found = ask(&[
        &"getid",
        &world,
        &"n999999999",
        &"-f",
        &"pbf",
        &"-o",
        &"/dev/null",
    ]);
    assert_eq!(found.status, 1);
    assert!(
        found.stderr.contains("1 not found: n999999999"),
        "{found:?}"
    );
}

#[test]
fn counting_tags_of_areas_is_an_error_and_not_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.osm.pbf");
    run_ok(&[&"synth", &"-q", &"--objects", &"2000", &"-o", &path]);
    let output = run_fail(&[&"inspect", &"tags", &path, &"a/building"]);
    assert!(output.contains("use wr/ instead of a/"), "{output}");
}
