//! Changes and histories: what is compared, and what is kept of several changes of one object.

use crate::common::answers::{Answer, ask};
use crate::common::{Arg, in_turn, run_ok};
use std::path::{Path, PathBuf};

/// Writes a file of text.
pub(crate) fn file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Writes a change file with one change of node 1, with a tag that is the name of the file.
pub(crate) fn change(dir: &Path, name: &str, action: &str, attributes: &str) -> PathBuf {
    let text = format!(
        "<osmChange version='0.6'><{action}><node id='1' {attributes} lat='1' lon='1'>\
         <tag k='from' v='{name}'/></node></{action}></osmChange>"
    );
    file(dir, &format!("{name}.osc"), &text)
}

/// The answers under both names.
pub(crate) fn under_both_names(args: &[Arg]) -> [Answer; 2] {
    let second: Vec<Arg> = [&"osmium" as Arg].iter().chain(args).copied().collect();
    [ask(args), ask(&second)]
}

/// The objects in OPL that a command writes under each name.
pub(crate) fn objects_of(args: &[Arg]) -> [String; 2] {
    under_both_names(args).map(|answer| {
        assert_eq!(answer.status, 0, "{answer:?}");
        answer.stdout
    })
}

/// Three objects in OPL, with the given metadata of each.
fn objects(metadata: [&str; 3]) -> String {
    let [one, two, three] = metadata;
    format!("n1 {one}T x1 y1\nn2 {two}Ta=b x2 y1\nw1 {three}Th=x Nn1,n2\n")
}

#[test]
fn metadata_that_one_side_lacks_is_no_difference() {
    let dir = tempfile::tempdir().unwrap();
    let full = "v3 dV c7 t2015-01-01T01:00:00Z i1 utest ";
    let time = "t2015-01-01T01:00:00Z ";
    let sorts = [
        ("full", [full; 3]),
        ("versions", ["v3 "; 3]),
        ("both", ["v3 t2015-01-01T01:00:00Z "; 3]),
        ("times", [time; 3]),
        ("none", [""; 3]),
        ("mixed", ["v3 ", time, full]),
    ];
    let files =
        sorts.map(|(name, metadata)| file(dir.path(), &format!("{name}.opl"), &objects(metadata)));
    for (turn, old) in files.iter().enumerate() {
        for new in in_turn(turn, 2, &files) {
            for derived in under_both_names(&[&"derive-changes", old, new, &"-f", &"osc"]) {
                assert_eq!(derived.status, 0, "{derived:?}");
                assert!(
                    !derived.stdout.contains("<node"),
                    "{old:?} {new:?}: {derived:?}"
                );
                assert!(
                    !derived.stdout.contains("<way"),
                    "{old:?} {new:?}: {derived:?}"
                );
            }
            for options in [&[][..], &["--metadata"]] {
                let options = options.iter().map(|option| option as Arg);
                let args: Vec<Arg> = [&"diff" as Arg, old, new]
                    .into_iter()
                    .chain(options)
                    .collect();
                assert_eq!(ask(&args).status, 0, "{old:?} {new:?}");
            }
        }
    }
    let [full, versions, ..] = &files;
    assert_eq!(ask(&[&"osmium", &"diff", full, versions]).status, 0);
}

#[test]
fn the_version_decides_and_then_the_time() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str, metadata: &str| {
        file(dir.path(), &format!("{name}.opl"), &objects([metadata; 3]))
    };
    let old = at("old", "v3 t2015-01-01T01:00:00Z ");
    for (name, metadata) in [
        ("version", "v4 "),
        ("time", "v3 t2016-01-01T01:00:00Z "),
        ("both", "v4 t2015-01-01T01:00:00Z "),
    ] {
        let new = at(name, metadata);
        for derived in under_both_names(&[&"derive-changes", &old, &new, &"-f", &"osc"]) {
            assert_eq!(
                derived.stdout.matches("<node").count(),
                2,
                "{name}: {derived:?}"
            );
        }
        assert_eq!(
            ask(&[&"diff", &"--metadata", &old, &new]).status,
            1,
            "{name}"
        );
        assert_eq!(ask(&[&"diff", &old, &new]).status, 0, "{name}");
    }
}

#[test]
fn an_object_that_a_file_has_twice_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let one = file(dir.path(), "one.opl", "n1 v1 T x1 y1\nn2 v1 Ta=b x1 y1\n");
    for (name, text) in [
        (
            "twice",
            "n1 v1 T x1 y1\nn2 v1 Ta=b x1 y1\nn2 v1 Ta=b x1 y1\n",
        ),
        (
            "versions",
            "n1 v1 T x1 y1\nn2 v1 T x1 y1\nn2 v2 Ta=b x1 y1\n",
        ),
        (
            "unsorted",
            "n2 v1 Ta=b x1 y1\nn1 v1 T x1 y1\nn2 v1 Ta=b x1 y1\n",
        ),
    ] {
        let two = file(dir.path(), &format!("{name}.opl"), text);
        // The repetition lies between two blobs.
        let halves = dir.path().join(format!("{name}.osm.pbf"));
        run_ok(&[&"repack", &"--objects-per-blob", &"2", &two, &"-o", &halves]);
        for two in [&two, &halves] {
            for (old, new) in [(two, &one), (&one, two), (two, two)] {
                for answer in under_both_names(&[&"derive-changes", old, new, &"-f", &"osc"]) {
                    assert_ne!(answer.status, 0, "{old:?} {new:?}");
                    let message = &answer.stderr;
                    // A text with two versions of an object is a history.
                    let is_history = name == "versions" && message.contains("history file");
                    assert!(
                        message.contains("n2 occurs twice") || is_history,
                        "{message}"
                    );
                    assert!(message.contains(name), "{message}");
                    assert!(!answer.stdout.contains("delete"), "{answer:?}");
                }
            }
        }
    }
}

#[test]
fn metadata_is_compared_on_demand_in_every_format_of_diff() {
    let dir = tempfile::tempdir().unwrap();
    let old = file(
        dir.path(),
        "old.opl",
        "n1 v1 c1 t2015-01-01T01:00:00Z i1 utest T x1 y1\n",
    );
    let new = file(
        dir.path(),
        "new.opl",
        "n1 v2 c2 t2016-01-01T01:00:00Z i2 uzzz T x1 y1\n",
    );
    for format in ["text", "compact", "opl", "debug"] {
        let args: [Arg; 6] = [&"diff", &"-c", &"-f", &format, &old, &new];
        let equal = ask(&args);
        assert_eq!((equal.status, equal.stdout.as_str()), (0, ""), "{format}");
        let different = ask(&[&args[..], &[&"--metadata" as Arg]].concat());
        assert_eq!(different.status, 1, "{format}");
        assert_ne!(different.stdout, "", "{format}");
    }
    let changed = ask(&[&"diff", &"-f", &"osc", &old, &new]);
    assert!(changed.stdout.contains("<modify>"), "{changed:?}");
    let new = file(
        dir.path(),
        "other.opl",
        "n1 v1 c2 t2015-01-01T01:00:00Z i2 uzzz T x1 y1\n",
    );
    for names in [
        ["--ignore-changeset", "--ignore-uid", "--ignore-user"],
        [
            "--ignore-attrs-changeset",
            "--ignore-attrs-uid",
            "--ignore-attrs-user",
        ],
    ] {
        let args: [Arg; 6] = [&"osmium", &"diff", &"-f", &"opl", &old, &new];
        let [changeset, uid, user] = names.each_ref().map(|name| name as Arg);
        assert_eq!(ask(&[&args[..], &[changeset, uid]].concat()).status, 1);
        let equal = ask(&[&args[..], &[changeset, uid, user]].concat());
        assert_eq!(equal.status, 0);
        assert!(equal.stdout.starts_with(" n1 "), "{equal:?}");
    }
}

#[test]
fn the_counts_of_a_diff_come_in_one_line_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let old = file(
        dir.path(),
        "old.opl",
        "n1 v1 T x1 y1\nn2 v1 T x1 y1\nn3 v1 T x1 y1\n",
    );
    let new = file(
        dir.path(),
        "new.opl",
        "n1 v1 T x1 y1\nn2 v2 T x2 y1\nn4 v1 T x1 y1\n",
    );
    let answer = ask(&[&"diff", &"--osmium-summary", &old, &new]);
    assert_eq!(
        answer.stderr,
        "Summary: left=1 right=1 same=1 different=1\n"
    );
}

#[test]
fn of_equal_changes_the_last_stays_in_every_format_and_under_both_names() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name, action, attributes| change(dir.path(), name, action, attributes);
    let time = "version='3' timestamp='2024-05-05T00:00:00Z'";
    let (bare, bare_gone) = (at("a", "modify", ""), at("b", "delete", ""));
    let (timed, timed_gone) = (at("c", "modify", time), at("d", "delete", time));
    let (timeless, older) = (
        at("e", "modify", "version='3'"),
        at(
            "f",
            "modify",
            "version='3' timestamp='2024-04-04T00:00:00Z'",
        ),
    );
    let text = "<osmChange version='0.6'><modify><node id='1' version='3' lat='1' lon='1'/></modify>\
        <delete><node id='1' version='3' lat='1' lon='1'><tag k='from' v='g'/></node></delete></osmChange>";
    let within = file(dir.path(), "g.osc", text);
    let base = file(
        dir.path(),
        "base.opl",
        "n1 v2 t2024-01-01T00:00:00Z T x1 y1\n",
    );
    for (inputs, last) in [
        (vec![&bare, &bare_gone], "b"),
        (vec![&bare_gone, &bare], "a"),
        (vec![&timed, &timed_gone], "d"),
        (vec![&timed_gone, &timed], "c"),
        (vec![&timed, &older], "c"),
        (vec![&older, &timed_gone], "d"),
        (vec![&timed, &timeless], "e"),
        (vec![&timeless, &timed_gone], "d"),
        (vec![&within], "g"),
    ] {
        let inputs: Vec<Arg> = inputs.into_iter().map(|input| input as Arg).collect();
        for format in ["osc", "opl"] {
            let args: Vec<Arg> = [&"merge-changes" as Arg, &"-s", &"-f", &format]
                .iter()
                .chain(&inputs)
                .copied()
                .collect();
            for found in objects_of(&args) {
                let tag = match format {
                    "osc" => format!("k=\"from\" v=\"{last}\""),
                    _ => format!("Tfrom={last} "),
                };
                assert_eq!(found.matches("from").count(), 1, "{found}");
                assert!(found.contains(&tag), "{format}: {found}");
            }
        }
        // Changes give the same one after the other, at once, and simplified before.
        let applied = |base: &Path, changes: &[Arg]| {
            let mut args: Vec<Arg> = vec![&"apply-changes", &"-f", &"opl", &base];
            args.extend(changes);
            ask(&args).stdout
        };
        let mut step = base.clone();
        for (number, input) in inputs.iter().enumerate() {
            let text = applied(&step, &[*input]);
            step = file(dir.path(), &format!("step{number}.opl"), &text);
        }
        let at_once = applied(&base, &inputs);
        assert_eq!(at_once, std::fs::read_to_string(&step).unwrap(), "{last}");
    }
}

#[test]
fn changes_of_extracts_have_no_order_in_any_format() {
    let dir = tempfile::tempdir().unwrap();
    let time = "version='3' timestamp='2024-05-05T00:00:00Z'";
    let there = change(dir.path(), "there", "modify", time);
    let gone = change(dir.path(), "gone", "delete", time);
    for inputs in [[&there, &gone], [&gone, &there]] {
        for format in ["osc", "opl"] {
            let [one, two] = inputs;
            let args: [Arg; 7] = [
                &"merge-changes",
                &"-s",
                &"--of-extracts",
                &"-f",
                &format,
                one,
                two,
            ];
            for found in objects_of(&args) {
                assert!(
                    found.contains("there") && !found.contains("gone"),
                    "{found}"
                );
            }
        }
    }
}

#[test]
fn a_deletion_with_the_version_of_the_object_is_in_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let base = "n1 v1 dV t2024-01-01T00:00:00Z T x1 y1\nn1 v2 dV t2024-01-02T00:00:00Z T x2 y2\n";
    let base = file(dir.path(), "base.osh.opl", base);
    let time = "version='2' timestamp='2024-01-02T00:00:00Z'";
    let gone = change(dir.path(), "gone", "delete", time);
    for found in objects_of(&[&"apply-changes", &"-H", &base, &gone, &"-f", &"opl"]) {
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines.len(), 2, "{found}");
        assert!(
            lines[0].starts_with("n1 v1 dV") && lines[1].starts_with("n1 v2 dD"),
            "{found}"
        );
    }
    // A version that is not deleted stays as it is in the base.
    let other = change(dir.path(), "other", "modify", time);
    let kept = ask(&[&"apply-changes", &"-H", &base, &other, &"-f", &"opl"]);
    assert!(!kept.stdout.contains("other"), "{kept:?}");
    // The last of several changes of a version that the base does not have.
    let text = "<osmChange version='0.6'><modify><node id='1' version='3' lat='1' lon='1'/></modify>\
        <delete><node id='1' version='3' lat='1' lon='1'/></delete></osmChange>";
    let within = file(dir.path(), "within.osc", text);
    for found in objects_of(&[&"apply-changes", &"-H", &base, &within, &"-f", &"opl"]) {
        assert!(
            found.contains("n1 v3 dD") && !found.contains("n1 v3 dV"),
            "{found}"
        );
    }
}

#[test]
fn a_plain_base_becomes_a_history_that_says_what_is_visible() {
    let dir = tempfile::tempdir().unwrap();
    let base = "<osm version='0.6'><node id='1' version='1' lat='1' lon='1'/></osm>";
    let base = file(dir.path(), "base.osm", base);
    let text = "<osmChange version='0.6'><delete><node id='1' version='2'/></delete>\
        <modify><node id='1' version='3' lat='2' lon='2'/></modify></osmChange>";
    let changes = file(dir.path(), "changes.osc", text);
    for found in objects_of(&[&"apply-changes", &"-H", &base, &changes, &"-f", &"osm"]) {
        assert_eq!(found.matches("visible=\"true\"").count(), 2, "{found}");
        assert_eq!(found.matches("visible=\"false\"").count(), 1, "{found}");
    }
}
