//! The content of a file decides what it is, for every command, by any name and on standard input. Change files are
//! read in every format that has them.

use crate::awkward_objects::ask_second;
use crate::common::answers::{Answer, ask};
use crate::common::oracle::{osmconvert, osmconvert_to, osmium, osmium_answer};
use crate::common::{Arg, every, in_turn, pbfhogg, run_fail, run_ok};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const DATA: &str = "n1 v1 dV c1 t2020-01-01T00:00:00Z i1 ua T x1 y1
n2 v1 dV c1 t2020-01-01T00:00:00Z i1 ua T x2 y1
n3 v1 dV c1 t2020-01-01T00:00:00Z i1 ua Ta=b x3 y1
n4 v1 dV c1 t2020-01-01T00:00:00Z i1 ua T x4 y1
w1 v1 dV c1 t2020-01-01T00:00:00Z i1 ua Thighway=a Nn1,n2
w2 v1 dV c1 t2020-01-01T00:00:00Z i1 ua Thighway=b Nn2,n4
r1 v1 dV c1 t2020-01-01T00:00:00Z i1 ua Ttype=route Mw1@
";

const HISTORY: &str = "n1 v1 dV c1 t2020-01-01T00:00:00Z i1 ua T x1 y1
n1 v2 dV c1 t2020-02-01T00:00:00Z i1 ua T x1.5 y1
n2 v1 dV c1 t2020-01-01T00:00:00Z i1 ua T x2 y1
n3 v1 dV c1 t2020-01-01T00:00:00Z i1 ua Ta=b x3 y1
n3 v2 dD c1 t2020-03-01T00:00:00Z i1 ua T x y
w1 v1 dV c1 t2020-01-01T00:00:00Z i1 ua Thighway=a Nn1,n2
w1 v2 dD c1 t2020-03-01T00:00:00Z i1 ua T N
";

/// Changes of [`DATA`] in canonical order. Deletions have no more than their version and time.
const CHANGES: &str = r#"<osmChange version="0.6">
<modify>
<node id="2" version="2" timestamp="2021-01-01T00:00:00Z" changeset="2" uid="2" user="b" lat="1" lon="2.5"/></modify>
<delete><node id="3" version="2" timestamp="2021-01-01T00:00:00Z"/></delete>
<create>
<node id="5" version="1" timestamp="2021-01-01T00:00:00Z" changeset="2" uid="2" user="b" lat="3" lon="4">
<tag k="shop" v="x"/></node></create>
<modify>
<way id="1" version="2" timestamp="2021-01-01T00:00:00Z" changeset="2" uid="2" user="b">
<nd ref="1"/><nd ref="2"/><nd ref="5"/><tag k="highway" v="c"/></way></modify>
<delete>
<way id="2" version="2" timestamp="2021-01-01T00:00:00Z"/>
<relation id="1" version="2" timestamp="2021-01-01T00:00:00Z"/></delete>
</osmChange>
"#;

fn put(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Converts a file with `cat`; the name determines the format.
fn converted(path: &Path, name: &str) -> PathBuf {
    let out = path.with_file_name(name);
    run_ok(&[&"cat", &"-q", &path, &"-o", &out]);
    out
}

/// The change file in each format: OsmChange, with gzip, OPL, and PBF.
fn change_files(dir: &Path) -> Vec<PathBuf> {
    let osc = put(dir, "c.osc", CHANGES);
    let names = ["c.osc.gz", "c.opl", "c.opl.bz2", "c.osc.pbf", "c.osm.pbf"];
    let others = names.map(|name| converted(&osc, name));
    [vec![osc.clone()], others.to_vec()].concat()
}

/// Runs a command line in which `{in}` is the input. With `stdin`, the input is given on standard input.
fn answer(line: &str, input: &Path, stdin: bool) -> (Option<i32>, String) {
    let mut command = pbfhogg();
    for word in line.split(' ') {
        match word {
            "{in}" if stdin => command.arg("-"),
            "{in}" => command.arg(input),
            word => command.arg(word),
        };
    }
    if stdin {
        command.stdin(File::open(input).unwrap());
    } else {
        command.stdin(Stdio::null());
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text)
}

#[test]
fn the_same_bytes_are_the_same_file_by_any_name_and_on_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let base = put(dir.path(), "base.opl", DATA);
    let history = put(dir.path(), "h.osh.opl", HISTORY);
    let osc = put(dir.path(), "c.osc", CHANGES);
    let inputs = [
        base.clone(),
        converted(&base, "d.osm"),
        converted(&base, "d.osm.pbf"),
        history.clone(),
        converted(&history, "h.osh.gz"),
        converted(&history, "h.osh.pbf"),
        osc.clone(),
        converted(&osc, "c.opl"),
        converted(&osc, "c.osc.pbf"),
    ];
    let lines = every::lines(&["content"]);
    let pairs = inputs
        .iter()
        .flat_map(|input| lines.iter().map(move |line| (input, *line)));
    for (input, line) in in_turn(3, 17, pairs) {
        let line = line.replace("{other}", &base.to_string_lossy());
        let expected = answer(&line, input, false);
        for name in ["x", "x.osm.pbf", "x.osc"] {
            let copy = dir.path().join(name);
            std::fs::copy(input, &copy).unwrap();
            let found = answer(&line, &copy, false);
            assert_eq!(found, expected, "{line}: {} as {name}", input.display());
        }
        let found = answer(&line, input, true);
        assert_eq!(found, expected, "{line}: {} as stdin", input.display());
    }
}

#[test]
fn tags_filter_keeps_the_deletions_of_a_change_file_in_any_format_and_by_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let line = "tags-filter {in} w/highway -f osc";
    let changes = change_files(dir.path());
    let expected = answer(line, &changes[0], false);
    let deletions = expected.1.split("<delete>").skip(1);
    let deletions: Vec<&str> = deletions
        .filter_map(|rest| rest.split("</delete>").next())
        .collect();
    for object in ["<node id=\"3\"", "<way id=\"2\"", "<relation id=\"1\""] {
        let is_kept = deletions.iter().any(|part| part.contains(object));
        assert!(is_kept, "{}", expected.1);
    }
    for input in &changes {
        for name in ["x", "x.xml", "x.osm.pbf", "x.txt"] {
            let copy = dir.path().join(name);
            std::fs::copy(input, &copy).unwrap();
            let found = answer(line, &copy, false);
            assert_eq!(found, expected, "{} as {name}", input.display());
        }
        assert_eq!(answer(line, input, true), expected, "{}", input.display());
    }
    for (format, input) in [("osc", 0), ("osc.gz", 1), ("opl", 2), ("osc.pbf", 4)] {
        let line = format!("tags-filter -F {format} {{in}} w/highway -f osc");
        assert_eq!(answer(&line, &changes[input], true), expected, "{format}");
    }
}

#[test]
fn a_name_tells_changes_from_a_history_where_both_have_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    // Changes of two days, one after the other: what the first created, the second deleted.
    let changes = "n1 v1 dV t2020-01-01T00:00:00Z x1 y1 Tamenity=pub\n\
                   n1 v2 dD t2020-01-02T00:00:00Z\n\
                   n5 v3 dV t2020-01-01T00:00:00Z x1 y1 Tamenity=pub\n";
    let changes = put(dir.path(), "c.osc.opl", changes);
    // A history of one year: the versions before it are not in it.
    let history =
        "n1 v2 dD t2015-01-01T00:00:00Z\nn2 v3 dV t2015-01-01T00:00:00Z x1 y1 Tamenity=pub\n";
    let history = put(dir.path(), "h.osh.opl", history);
    for (changes, history) in [
        (changes.clone(), history.clone()),
        (
            converted(&changes, "c.osc.pbf"),
            converted(&history, "h.osh.pbf"),
        ),
    ] {
        let (status, text) = answer("tags-filter -R {in} n/amenity -f osc", &changes, false);
        assert_eq!(status, Some(0));
        assert!(text.contains("<delete>"), "{text}");
        let (status, text) = answer("tags-filter -R {in} n/amenity -f osh.opl", &history, false);
        assert_eq!(status, Some(0));
        assert!(
            text.starts_with("n2 v3 ") && text.lines().count() == 1,
            "{text}"
        );
    }
}

#[test]
fn a_change_file_is_called_by_its_name_where_data_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    for changes in change_files(dir.path()) {
        for line in [
            "export {in} -f geojsonseq",
            "add-locations-to-ways {in} -f opl",
        ] {
            let line = line.replace("{in}", &changes.to_string_lossy());
            let words: Vec<&str> = line.split(' ').collect();
            let words: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
            let message = run_fail(&words);
            assert!(
                message.contains("this is a change file"),
                "{line}: {message}"
            );
            assert!(message.contains("apply-changes"), "{line}: {message}");
        }
    }
}

#[test]
fn changes_are_neither_renumbered_nor_cut_by_time_under_our_own_name() {
    let dir = tempfile::tempdir().unwrap();
    let base = put(dir.path(), "base.opl", DATA);
    let history = put(dir.path(), "h.osh.opl", HISTORY);
    let neutral = dir.path().join("h.osm.pbf");
    std::fs::copy(converted(&history, "h.osh.pbf"), &neutral).unwrap();
    let commands: [&[Arg]; 4] = [
        &[&"renumber"],
        &[&"renumber", &"-t", &"way"],
        &[&"time-filter", &"--locations-on-ways"],
        &[&"time-filter"],
    ];
    let all = change_files(dir.path());
    for command in commands {
        let run = |input: &PathBuf, options: &[Arg]| {
            let args = [command, options, &[input as Arg, &"-f", &"opl"][..]].concat();
            (ask(&args), ask_second(&args))
        };
        for changes in &all {
            let (own, second) = run(changes, &[]);
            assert_eq!(own.status, 2, "{own:?}");
            assert_eq!(own.stdout, "");
            for part in ["this is a change file", "pbfhogg apply-changes"] {
                assert!(own.stderr.contains(part), "{own:?}");
            }
            if command[0].as_ref() == "time-filter" && command.len() == 1 {
                assert_eq!(second.status, 0, "{second:?}");
            }
        }
        for input in [&base, &history, &neutral] {
            assert_eq!(run(input, &[]).0.status, 0, "{input:?}");
        }
    }
    // Deletions without an earlier version are those of changes, unless the user says that the file is a history.
    let partial = put(dir.path(), "p.opl", "n3 v2 dD t2020-01-01T00:00:00Z\n");
    let args: [Arg; 5] = [&"time-filter", &partial, &"2021", &"-f", &"opl"];
    let refused = ask(&args);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("-F osh.opl"), "{refused:?}");
    let stated = [&args[..], &[&"-F" as Arg, &"osh.opl"][..]].concat();
    assert_eq!(ask(&stated).status, 0);
}

#[test]
fn a_deletion_at_the_beginning_of_a_blob_has_its_versions_in_the_blob_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut text: String = (1..=8000)
        .map(|id| format!("n{id} v1 dV t2015-01-01T00:00:00Z x1 y1\n"))
        .collect();
    text += "n8000 v2 dD t2016-01-01T00:00:00Z\n";
    let history = put(dir.path(), "h.osh.opl", &text);
    let unnamed = dir.path().join("h.osm.pbf");
    std::fs::copy(converted(&history, "h.osh.pbf"), &unnamed).unwrap();
    let (status, text) = answer("tags-filter -R {in} n/amenity -f osh.opl", &unnamed, false);
    assert_eq!((status, text.as_str()), (Some(0), ""));
}

#[test]
fn a_format_on_the_command_line_states_changes_where_the_content_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let only = put(
        dir.path(),
        "c.opl",
        "n1 v2 dV t2020-01-01T00:00:00Z Ta=b x1 y1\n",
    );
    let named = dir.path().join("c.osc.opl");
    std::fs::copy(&only, &named).unwrap();
    // Changes are filtered into a change file, and not into OPL.
    let line = "tags-filter {in} n/a -f opl";
    assert_eq!(answer(line, &only, false).0, Some(0));
    assert_eq!(answer(line, &named, false).0, Some(2));
    let line = "tags-filter -F osc.opl {in} n/a -f opl";
    assert_eq!(answer(line, &only, true).0, Some(2));
    // A PBF file without deletions does not show that it has changes either.
    let pbf = converted(&only, "c.osm.pbf");
    let line = "merge-changes {in} -f osc";
    assert_eq!(answer(line, &pbf, false).0, Some(2));
    let line = "merge-changes -F osc.pbf {in} -f osc";
    assert_eq!(
        answer(line, &pbf, true),
        answer("merge-changes {in}", &only, false)
    );
}

#[test]
fn change_files_of_every_format_have_the_same_effect() {
    let dir = tempfile::tempdir().unwrap();
    let base = put(dir.path(), "base.opl", DATA);
    let history = put(dir.path(), "h.osh.opl", HISTORY);
    let changes = change_files(dir.path());
    let lines = [
        format!("apply-changes {} {{in}} -f opl", base.display()),
        format!("apply-changes -H {} {{in}} -f opl", history.display()),
        format!("augmented-diff {} {{in}} -o -", base.display()),
        "merge-changes {in} -f osc".to_owned(),
        "merge-changes -s {in} -f osc".to_owned(),
        "merge-changes -s {in} -f opl".to_owned(),
        "getid {in} n3 n5 w1 -f opl".to_owned(),
    ];
    // A PBF file has a block for each kind of objects, and a section ends with its block.
    let joined = |mut text: String| {
        for action in ["create", "modify", "delete"] {
            text = text.replace(&format!("  </{action}>\n  <{action}>\n"), "");
        }
        text
    };
    let in_sections = |line: &str, input: &PathBuf, is_stream| {
        let (status, text) = answer(line, input, is_stream);
        (status, joined(text))
    };
    for line in &lines {
        let expected = in_sections(line, &changes[0], false);
        assert_eq!(expected.0, Some(0), "{line}");
        for input in &changes {
            assert_eq!(
                in_sections(line, input, false),
                expected,
                "{line} {input:?}"
            );
        }
        for input in [&changes[2], &changes[4]] {
            assert_eq!(
                in_sections(line, input, true),
                expected,
                "{line} < {input:?}"
            );
        }
    }
    // Several formats in one run.
    let merged = |second: &PathBuf| {
        let ran = run_ok(&[&"merge-changes", &changes[0], second, &"-f", &"osc"]);
        joined(String::from_utf8(ran.stdout).unwrap())
    };
    for second in &changes {
        assert_eq!(merged(second), merged(&changes[0]), "{second:?}");
    }
}

#[test]
fn o5c_has_the_same_effect_as_osmchange() {
    if !osmconvert() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let base = put(dir.path(), "base.opl", DATA);
    let osc = put(dir.path(), "c.osc", CHANGES);
    let o5c = dir.path().join("c.o5c");
    assert!(osmconvert_to(&[&osc, &"--out-o5c"], &o5c));
    let copy = dir.path().join("c");
    std::fs::copy(&o5c, &copy).unwrap();
    for line in [
        format!("apply-changes {} {{in}} -f opl", base.display()),
        "tags-filter {in} w/highway -f osc".to_owned(),
        "merge-changes -s {in} -f opl".to_owned(),
    ] {
        let expected = answer(&line, &osc, false);
        assert_eq!(answer(&line, &o5c, false), expected, "{line}");
        assert_eq!(answer(&line, &copy, false), expected, "{line}");
        assert_eq!(answer(&line, &o5c, true), expected, "{line}");
    }
}

#[test]
fn an_error_in_an_opl_change_file_names_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let base = put(dir.path(), "base.opl", DATA);
    let bad = put(dir.path(), "bad.opl", "n1 v2 dD\nn2 v2 dX\n");
    let lines: [&[Arg]; 3] = [
        &[&"apply-changes", &base, &bad, &"-f", &"opl"],
        &[&"merge-changes", &bad, &"-f", &"osc"],
        &[&"augmented-diff", &base, &bad, &"-o", &"-"],
    ];
    for args in lines {
        let message = run_fail(args);
        assert!(message.contains("bad.opl: line 2"), "{message}");
    }
}

#[test]
fn data_is_no_change_file_in_any_format_and_on_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let base = put(dir.path(), "base.opl", DATA);
    for name in ["d.osm", "d.osm.gz", "d.osm.pbf"] {
        let data = converted(&base, name);
        for line in [
            format!("apply-changes {} {{in}} -f opl", base.display()),
            format!("augmented-diff {} {{in}} -o -", base.display()),
            "merge-changes {in} -f osc".to_owned(),
            "merge-changes -s {in} -f osc".to_owned(),
            "merge-changes {in} -f opl".to_owned(),
        ] {
            for stdin in [false, true] {
                assert_eq!(answer(&line, &data, stdin).0, Some(2), "{line} {name}");
            }
        }
    }
}

#[test]
fn the_second_name_applies_what_osmium_applies() {
    let dir = tempfile::tempdir().unwrap();
    let base = converted(&put(dir.path(), "base.opl", DATA), "base.osm.pbf");
    let newer = DATA.replace(" v1 ", " v2 ").replace("x2 y1", "x7 y1");
    let newer = put(dir.path(), "newer.opl", newer);
    let mut changes = change_files(dir.path());
    changes.extend([
        converted(&newer, "newer.osm.pbf"),
        converted(&newer, "newer.osm"),
        newer,
    ]);
    for change in &changes {
        let args: [Arg; 5] = [&"apply-changes", &base, change, &"-f", &"opl"];
        let Answer { status, stdout, .. } = ask_second(&args);
        assert_eq!(status, 0, "{change:?}");
        assert!(
            stdout.contains("x2.5 y1") || stdout.contains("x7 y1"),
            "{stdout}"
        );
        // osmium needs an ending that it knows for PBF with deletions.
        if osmium() && !change.ends_with("c.osm.pbf") {
            let (status, lines) = osmium_answer(&[&"apply-changes", &base, change]);
            assert_eq!(status, 0, "{change:?}");
            let found: Vec<&str> = stdout.lines().collect();
            assert_eq!(found, lines, "{change:?}");
        }
    }
}

#[test]
fn a_history_is_one_by_its_content_where_changes_are_added() {
    let dir = tempfile::tempdir().unwrap();
    let history = put(dir.path(), "h.osh.opl", HISTORY);
    let pbf = converted(&history, "h.osh.pbf");
    let neutral = dir.path().join("h");
    std::fs::copy(&pbf, &neutral).unwrap();
    let changes = put(dir.path(), "c.osc", CHANGES);
    let line = format!("apply-changes {{in}} {} -f osh.opl", changes.display());
    let expected = answer(&line, &pbf, false);
    assert_eq!(expected.0, Some(0));
    assert!(expected.1.contains("n1 v1") && expected.1.contains("n1 v2"));
    for (input, stdin) in [(&neutral, false), (&neutral, true), (&history, true)] {
        assert_eq!(answer(&line, input, stdin), expected, "{input:?} {stdin}");
    }
    // Without such an output, the versions are not written.
    let line = format!("apply-changes {{in}} {} -f opl", changes.display());
    assert_eq!(answer(&line, &neutral, false).0, Some(2));
}

#[test]
fn no_region_is_cut_out_of_a_change_file_that_does_not_place_its_objects() {
    let dir = tempfile::tempdir().unwrap();
    for input in change_files(dir.path()) {
        let args: [Arg; 6] = [&"extract", &"-b", &"-180,-90,180,90", &input, &"-f", &"opl"];
        let message = run_fail(&args);
        for part in [
            "this is a change file",
            "deletions: 3;",
            "1 of 1",
            "update --clip",
        ] {
            assert!(message.contains(part), "{message}");
        }
        // The user can ask for what is placed, and osmium cuts it.
        let forced = ask(&[&args[..], &[&"-H" as Arg][..]].concat());
        assert_eq!(forced.status, 0, "{forced:?}");
        assert!(forced.stdout.contains("n5 v1"), "{forced:?}");
        let second = ask_second(&args);
        assert_eq!(second.status, 0, "{second:?}");
    }
    let osc = dir.path().join("c.osc");
    let args: [Arg; 7] = [&"extract", &"-H", &"-b", &"0,0,9,9", &osc, &"-f", &"opl"];
    let forced = ask(&args);
    assert!(forced.stderr.contains("deletions: 3;"), "{forced:?}");
    // A change file that places everything is cut.
    let whole = CHANGES.replace("<nd ref=\"1\"/>", "");
    let (start, rest) = whole.split_once("<delete>").unwrap();
    let (_, rest) = rest.split_once("</delete>").unwrap();
    let (middle, _) = rest.split_once("<delete>").unwrap();
    let whole = put(
        dir.path(),
        "whole.osc",
        format!("{start}{middle}</osmChange>"),
    );
    let args: [Arg; 6] = [&"extract", &"-b", &"0,0,9,9", &whole, &"-f", &"opl"];
    assert_eq!(ask(&args).stdout.lines().count(), 3);
}
