//! Commands that combine inputs: files in the wrong place or order, locations in ways, and the table of the reference.

use crate::combining_changes::{change, file, under_both_names};
use crate::common::answers::ask;
use crate::common::{Arg, in_turn, run_ok};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[test]
fn files_in_the_wrong_place_are_told_with_the_right_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = file(
        dir.path(),
        "data.osm",
        "<osm version='0.6'><node id='1' lat='1' lon='1'/></osm>",
    );
    let data = dir.path().join("data.osm.pbf");
    run_ok(&[&"cat", &text, &"-o", &data]);
    let day = change(dir.path(), "day", "modify", "version='2'");
    let shown = |path: &Path| path.display().to_string();
    for data in [&data, &text] {
        for answer in under_both_names(&[&"apply-changes", &day, data, &"-f", &"opl"]) {
            assert_ne!(answer.status, 0);
            let wanted = format!("apply-changes {} {} -o", shown(data), shown(&day));
            assert!(answer.stderr.contains(&wanted), "{}", answer.stderr);
        }
        for format in ["osc", "opl"] {
            let answer = ask(&[&"merge-changes", data, data, &"-f", &format]);
            let wanted = format!("pbfhogg merge {} {}", shown(data), shown(data));
            assert!(
                answer.status == 2 && answer.stderr.contains(&wanted),
                "{answer:?}"
            );
        }
        let answer = ask(&[&"apply-changes", data, data, &"-f", &"opl"]);
        assert!(answer.stderr.contains("not a change file"), "{answer:?}");
        for answer in under_both_names(&[&"derive-changes", data, &day, &"-f", &"osc"]) {
            let wanted = format!("apply-changes {} {} -o", shown(data), shown(&day));
            assert!(
                answer.status != 0 && answer.stderr.contains(&wanted),
                "{answer:?}"
            );
        }
    }
    let answer = ask(&[&"derive-changes", &day, &day, &"-f", &"osc"]);
    let wanted = format!("pbfhogg merge-changes {0} {0}", shown(&day));
    assert!(answer.stderr.contains(&wanted), "{answer:?}");
}

/// Data and a history, and their changes, each in several formats.
fn contents(dir: &Path) -> [Vec<PathBuf>; 3] {
    let data = "n1 v1 dV T x1 y1\nn2 v1 dV T x2 y1\nw1 v1 dV Thighway=a Nn1,n2\n";
    let history = "n1 v1 dV T x1 y1\nn2 v1 dV T x2 y1\nn2 v2 dD T x y\nn3 v1 dV T x2 y1\n";
    let changes = "<osmChange version='0.6'><modify><node id='1' version='2' lat='1' lon='3'/></modify>\
                   <delete><node id='3' version='2'/></delete></osmChange>";
    let texts = [
        ("d.opl", data, &["d.osm", "d.osm.pbf"][..]),
        ("h.osh.opl", history, &["h.osh.gz", "h.osh.pbf"][..]),
        (
            "c.osc",
            changes,
            &["c.osc.gz", "c.opl", "c.osc.pbf", "c.osm.pbf"][..],
        ),
    ];
    texts.map(|(name, text, others)| {
        let first = file(dir, name, text);
        let converted = others.iter().map(|other| {
            let path = dir.join(other);
            run_ok(&[&"cat", &"-q", &first, &"-o", &path]);
            path
        });
        [first.clone()].into_iter().chain(converted).collect()
    })
}

#[test]
fn data_and_changes_are_not_joined_and_the_error_names_apply_changes() {
    let dir = tempfile::tempdir().unwrap();
    let [data, history, changes] = contents(dir.path());
    let commands: [&[&str]; 6] = [
        &["cat"],
        &["cat", "--dedupe"],
        &["cat", "-t", "node"],
        &["sort"],
        &["merge"],
        &["add-locations-to-ways", "-n"],
    ];
    let run = |command: &[&str], inputs: [&PathBuf; 2]| {
        let words = command.iter().map(|word| word as Arg);
        let mut args: Vec<Arg> = words.collect();
        args.extend([inputs[0] as Arg, inputs[1], &"-f", &"opl"]);
        under_both_names(&args)
    };
    let pairs = data
        .iter()
        .flat_map(|data| changes.iter().map(move |changes| (data, changes)));
    for (turn, (data, changes)) in in_turn(1, 3, pairs).enumerate() {
        for command in in_turn(turn, 3, commands) {
            for inputs in [[data, changes], [changes, data]] {
                let [own, second] = run(command, inputs);
                assert_eq!(own.status, 2, "{command:?} {inputs:?}: {own:?}");
                assert_eq!(own.stdout, "", "{command:?} {inputs:?}");
                let named = format!("{}: this is a change file", changes.display());
                assert!(own.stderr.contains(&named), "{own:?}");
                assert!(own.stderr.contains("pbfhogg apply-changes"), "{own:?}");
                // osmium writes the objects of all its inputs.
                if matches!(command[0], "cat" | "sort" | "merge") && command.len() == 1 {
                    assert_eq!(second.status, 0, "{command:?} {inputs:?}: {second:?}");
                    assert!(second.stdout.contains("n3 v2 dD"), "{second:?}");
                }
            }
        }
    }
    // Versions of a history and changes are a history, and files of one content are joined.
    for inputs in [
        [&history[0], &changes[0]],
        [&history[2], &changes[3]],
        [&changes[1], &changes[4]],
        [&data[0], &data[2]],
        [&data[1], &history[1]],
    ] {
        for command in in_turn(0, 2, commands) {
            let [own, _] = run(command, inputs);
            if command[0] != "add-locations-to-ways" {
                assert_eq!(own.status, 0, "{command:?} {inputs:?}: {own:?}");
            }
        }
    }
}

#[test]
fn an_input_out_of_order_is_merged_with_a_notice_under_the_second_name() {
    let dir = tempfile::tempdir().unwrap();
    let other = file(dir.path(), "other.opl", "n3 v1 T x1 y1\n");
    let warning = "Warning: Multiple objects with same id in input file";
    for (name, text, notice) in [
        (
            "ids",
            "n2 v1 T x1 y1\nn1 v1 T x1 y1\n",
            "out of order (smaller ids must come first).",
        ),
        (
            "kinds",
            "w1 v1 T Nn1\nn1 v1 T x1 y1\n",
            "out of order (must be nodes, then ways, then relations).",
        ),
        (
            "old",
            "n1 v2 T x1 y1\nn1 v1 T x1 y1\n",
            "out of order (smaller version must come first).",
        ),
        (
            "same",
            "n1 v1 T x1 y1\nn1 v1 T x1 y1\n",
            "with same version.",
        ),
        ("versions", "n1 v1 T x1 y1\nn1 v2 T x1 y1\n", warning),
    ] {
        let input = file(dir.path(), &format!("{name}.opl"), text);
        let answer = ask(&[&"osmium", &"merge", &input, &other, &"-f", &"opl"]);
        assert_eq!(answer.status, 0, "{answer:?}");
        assert!(answer.stderr.contains(notice), "{answer:?}");
        assert!(
            answer.stderr.contains(&format!("'{}'", input.display())),
            "{answer:?}"
        );
        assert!(answer.stdout.contains("n3 v1"), "{answer:?}");
        let is_warning = notice == warning;
        assert_eq!(
            answer.stderr.lines().count(),
            1 + usize::from(is_warning),
            "{answer:?}"
        );
        if is_warning {
            let quiet = ask(&[&"osmium", &"merge", &"-H", &input, &other, &"-f", &"opl"]);
            assert_eq!(quiet.stderr, "");
        }
        assert_eq!(ask(&[&"merge", &input, &other, &"-f", &"opl"]).stderr, "");
    }
    let negative = file(
        dir.path(),
        "negative.opl",
        "n-1 v1 T x1 y1\nn-2 v1 T x1 y1\nn1 v1 T x1 y1\n",
    );
    let answer = ask(&[&"osmium", &"merge", &negative, &other, &"-f", &"opl"]);
    assert_eq!((answer.status, answer.stderr.as_str()), (0, ""));
}

/// Two states of a node, and a way to it and to another node that only the second file has.
fn located(dir: &Path) -> [PathBuf; 2] {
    let old = "n1 v1 T x1 y1\nw1 v1 Thighway=a Nn1,n2\n";
    let new = "n1 v2 T x7 y7\nn2 v1 T x2 y2\nw1 v1 Thighway=a Nn1,n2\n";
    [("old", old), ("new", new)].map(|(name, text)| {
        let text = file(dir, &format!("{name}.opl"), text);
        let path = dir.join(format!("{name}.osm.pbf"));
        run_ok(&[&"add-locations-to-ways", &"-n", &text, &"-o", &path]);
        path
    })
}

#[test]
fn ways_agree_with_the_nodes_of_the_output_in_any_order_of_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = located(dir.path());
    for inputs in [[&old, &new], [&new, &old]] {
        let [one, two] = inputs;
        let merged = ask(&[&"merge", one, two, &"-f", &"opl"]);
        assert!(merged.stdout.contains("Nn1x7y7,n2x2y2"), "{merged:?}");
        let path = dir.path().join("merged.osm.pbf");
        run_ok(&[&"merge", &"-O", one, two, &"-o", &path]);
        let header = crate::common::decode::header(&path);
        assert!(header.optional.iter().any(|name| name == "LocationsOnWays"));
        let second: [Arg; 7] = [
            &"osmium",
            &"merge",
            one,
            two,
            &"-H",
            &"-f",
            &"opl,locations_on_ways=true",
        ];
        assert!(ask(&second).stdout.contains("Nn1x7y7,n2x2y2"));
    }
}

#[test]
fn locations_that_only_some_ways_have_are_removed_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let [old, _] = located(dir.path());
    let plain = dir.path().join("new.opl");
    let nodes = file(dir.path(), "nodes.opl", "n2 v1 T x2 y2\n");
    for inputs in [[&old, &plain], [&plain, &old]] {
        let [one, two] = inputs;
        let merged = ask(&[&"merge", one, two, &"-f", &"opl"]);
        assert!(merged.stdout.contains("Nn1,n2\n"), "{merged:?}");
        assert!(merged.stderr.contains("new.opl have none"), "{merged:?}");
    }
    // An input without ways does not matter.
    let merged = ask(&[&"merge", &nodes, &old, &"-f", &"opl"]);
    assert!(merged.stdout.contains("Nn1x1y1,n2x2y2\n"), "{merged:?}");
    assert_eq!(merged.stderr, "");
}

#[test]
fn a_base_without_locations_gets_them_under_the_second_name() {
    let dir = tempfile::tempdir().unwrap();
    for metadata in ["v1 ", "v1 t2024-01-01T00:00:00Z "] {
        let text = format!("n1 {metadata}T x1 y1\nn2 {metadata}T x2 y2\nw1 {metadata}T Nn1,n2\n");
        let base = file(dir.path(), "base.opl", &text);
        let day = change(dir.path(), "day", "modify", "version='2'");
        let args: [Arg; 6] = [
            &"apply-changes",
            &"--locations-on-ways",
            &base,
            &day,
            &"-f",
            &"opl",
        ];
        let [own, second] = under_both_names(&args);
        assert!(own.stderr.contains("add-locations-to-ways"), "{own:?}");
        assert_eq!(second.status, 0, "{second:?}");
        assert!(second.stdout.contains("Nn1x1y1,n2x2y2"), "{second:?}");
    }
}

/// The rows of the table in the reference, by their first cell.
fn rows() -> BTreeMap<String, Vec<String>> {
    let document = include_str!("../reference/cli.md");
    let start = document.find("## Commands that combine inputs").unwrap();
    let lines = document[start..]
        .lines()
        .skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|line| {
        let mut cells = line
            .trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().to_owned());
        (cells.next().unwrap(), cells.collect())
    })
    .collect()
}

#[test]
fn every_row_of_the_table_of_combining_commands_holds() {
    let dir = tempfile::tempdir().unwrap();
    let one = file(
        dir.path(),
        "one.opl",
        "n1 v2 t2024-05-05T00:00:00Z Tfrom=one x1 y1\n",
    );
    let two = file(dir.path(), "two.opl", "n1 v2 Tfrom=two x2 y2\n");
    let [first, second] =
        ["first", "second"].map(|name| change(dir.path(), name, "modify", "version='2'"));
    let [old, new] = located(dir.path());
    let run = |args: &[Arg]| ask(args).stdout;
    let both = "n1 v2 dV c0 t2024-05-05T00:00:00Z i0 u Tfrom=one x1 y1\nn1 v2 dV c0 t i0 u Tfrom=two x2 y2\n";
    let mut rows = rows();
    let mut row = |name: &str| {
        let cells = rows.remove(name);
        assert_eq!(cells.map(|cells| cells.len()), Some(3), "{name}");
    };
    for command in ["cat", "sort"] {
        row(&format!("`{command}`"));
        assert_eq!(run(&[&command, &one, &two, &"-f", &"opl"]), both);
        let ways = run(&[&command, &old, &new, &"-f", &"opl"]);
        assert!(
            ways.contains("Nn1x1y1,n2xy\n") && ways.contains("Nn1x7y7,n2x2y2\n"),
            "{ways}"
        );
    }
    row("`merge`");
    let merged = run(&[&"merge", &one, &two, &"-f", &"opl"]);
    assert!(merged.contains("from=one") && !merged.contains("from=two"));
    assert!(run(&[&"merge", &old, &new, &"-f", &"opl"]).contains("Nn1x7y7,n2x2y2\n"));
    row("`merge-changes`");
    let all = run(&[&"merge-changes", &first, &second, &"-f", &"osc"]);
    assert!(
        all.find("first") < all.find("second") && all.contains("first"),
        "{all}"
    );
    row("`merge-changes -s`");
    let last = run(&[&"merge-changes", &"-s", &first, &second, &"-f", &"osc"]);
    assert!(!last.contains("first") && last.contains("second"), "{last}");
    row("`apply-changes`");
    let applied = run(&[&"apply-changes", &one, &first, &second, &"-f", &"opl"]);
    assert!(
        applied.contains("from=second") && applied.lines().count() == 1,
        "{applied}"
    );
    let plain = run(&[&"apply-changes", &new, &first, &"-f", &"opl"]);
    assert!(plain.contains("Nn1,n2\n"), "{plain}");
    row("`apply-changes -H`");
    let history = run(&[&"apply-changes", &"-H", &one, &first, &"-f", &"opl"]);
    assert!(
        history.contains("from=one") && history.lines().count() == 1,
        "{history}"
    );
    row("`diff`, `derive-changes`");
    let moved = ask(&[&"diff", &"-c", &"-t", &"way", &old, &new]);
    assert_eq!((moved.status, moved.stdout.as_str()), (0, ""));
    let derived = run(&[&"derive-changes", &"-t", &"way", &old, &new]);
    assert!(!derived.contains("<way"), "{derived}");
    assert!(rows.is_empty(), "rows that are not tested: {rows:?}");
}
