//! Objects that occur twice in a file of current data: commands refuse them, or say how many there are.

use crate::common::answers::{Answer, ask, history_of};
use crate::common::craft::{self, Shape};
use crate::common::{Arg, Object, every, in_turn, node, run_ok, way};
use std::path::{Path, PathBuf};
use std::process::Command;

const FIRST: &str = "n1 v1 x1 y1\nn2 v1 x2 y1\nw1 v1 Thighway=path,name=A Nn1,n2\n";
const SECOND: &str = "n1 v1 x1 y1\nn2 v2 x2 y1.5\nw1 v1 Thighway=path,name=A Nn1,n2\n";

const CHANGES: &str = "<osmChange version=\"0.6\"><modify><node id=\"1\" version=\"3\" lat=\"1\" lon=\"1\" \
                       timestamp=\"2020-01-01T00:00:00Z\"/></modify></osmChange>";

/// Runs a command of words, in which IN is the input, and words that begin with OUT are names of files of `dir`.
fn run_words(words: &str, input: &Path, dir: &Path) -> Answer {
    let args = words.split(' ').map(|word| match word {
        "IN" => input.display().to_string(),
        word if word.starts_with("OUT") => dir.join(word).display().to_string(),
        word => word.to_owned(),
    });
    let args: Vec<String> = args.collect();
    let args: Vec<Arg> = args.iter().map(|arg| arg as Arg).collect();
    ask(&args)
}

fn has_output(dir: &Path) -> bool {
    let mut names = dir
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    names.any(|name| name.to_string_lossy().starts_with("OUT"))
}

/// Runs a command line of the table. The name of its output begins with OUT and `more`.
fn run_line(line: &str, more: &str, input: &Path, dir: &Path) -> Answer {
    let values: [(&str, &Path); 3] = [
        ("{in}", input),
        ("{day}", &dir.join("changes.osc")),
        ("{out}", &dir.join(format!("OUT{more}"))),
    ];
    let arguments = every::arguments(line, &values);
    let arguments: Vec<Arg> = arguments.iter().map(|word| word as Arg).collect();
    ask(&arguments)
}

/// Expects that a command line refuses a file with an object that occurs twice, and writes nothing.
fn assert_refused(line: &str, input: &Path, dir: &Path) {
    let answer = run_line(line, "", input, dir);
    let said = &answer.stderr;
    assert_eq!(answer.status, 2, "{line} {}: {said}", input.display());
    assert!(said.contains("occurs twice"), "{line}: {said}");
    assert!(said.contains("pbfhogg merge"), "{line}: {said}");
    assert_eq!(said.lines().count(), 1, "{line}: {said}");
    assert!(!has_output(dir), "{line} {}", input.display());
}

/// Two files one behind the other: with a table of contents and without an index, sorted with either, and sorted with
/// per-blob indexes.
fn forms(dir: &Path, second: &str) -> [PathBuf; 5] {
    let [a, b] = ["a.opl", "b.opl"].map(|name| dir.join(name));
    std::fs::write(&a, FIRST).unwrap();
    std::fs::write(&b, second).unwrap();
    std::fs::write(dir.join("changes.osc"), CHANGES).unwrap();
    let [joined, bare, sorted, sorted_bare, indexes] =
        ["joined", "bare", "sorted", "sorted-bare", "indexes"]
            .map(|name| dir.join(format!("{name}.osm.pbf")));
    run_ok(&[&"cat", &a, &b, &"-o", &joined]);
    run_ok(&[&"cat", &"--no-index", &joined, &"-o", &bare]);
    run_ok(&[&"sort", &joined, &"-o", &sorted]);
    run_ok(&[&"cat", &"--no-index", &sorted, &"-o", &sorted_bare]);
    run_ok(&[
        &"cat",
        &"--blob-index",
        &"--no-index",
        &sorted,
        &"-o",
        &indexes,
    ]);
    [joined, bare, sorted, sorted_bare, indexes]
}

#[test]
fn commands_that_need_each_object_once_refuse_other_versions_and_equal_copies() {
    let mut turn = 0;
    for second in [SECOND, FIRST] {
        let dir = tempfile::tempdir().unwrap();
        for input in forms(dir.path(), second) {
            for line in in_turn(turn, 4, every::lines(&["once"])) {
                assert_refused(line, &input, dir.path());
            }
            turn += 1;
        }
    }
}

#[test]
fn equal_copies_in_a_text_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("twice.opl");
    std::fs::write(&input, [FIRST, FIRST].concat()).unwrap();
    std::fs::write(dir.path().join("changes.osc"), CHANGES).unwrap();
    for line in every::lines(&["once"]) {
        assert_refused(line, &input, dir.path());
    }
}

#[test]
fn commands_that_write_objects_as_they_are_say_how_many_occur_again() {
    let dir = tempfile::tempdir().unwrap();
    let [_, _, sorted, _, _] = forms(dir.path(), SECOND);
    for (words, said) in [
        ("getid IN n2 w1 -o OUT1.osm.pbf", "2 (the first is n2)"),
        ("getid -r IN w1 -o OUT2.osm.pbf", "3 (the first is n1)"),
        ("getparents IN n1 -o OUT3.osm.pbf", "1 (the first is w1)"),
        ("repack IN -o OUT4.osm.pbf", "3 (the first is n1)"),
        (
            "tags-edit --set a=b IN -o OUT12.osm.pbf",
            "3 (the first is n1)",
        ),
        ("sort IN -o OUT8.osm.pbf", "3 (the first is n1)"),
        ("sort IN -f opl -o OUT8.opl", "3 (the first is n1)"),
        ("cat IN -o OUT9.osm.pbf", "2 or more"),
        ("cat IN -f opl -o OUT9.opl", "2 or more"),
        ("removeid IN n9 -o OUT10.osm.pbf", "2 or more"),
        ("removeid IN n1 -o OUT11.osm.pbf", "2 or more (one is n2)"),
        ("split IN --parts 2 -o OUT5", "3 (the first is n1)"),
        ("time-filter IN 2020 -o OUT6.osm.pbf", "3 (the first is n1)"),
        ("export --raw IN -o OUT7", "3 (the first is n1)"),
        ("diff IN IN", "3 (the first is n1)"),
    ] {
        let answer = run_words(words, &sorted, dir.path());
        let expected = format!("objects that occur again: {said}");
        assert_eq!(answer.status, 0, "{words}: {}", answer.stderr);
        assert!(
            answer.stderr.contains(&expected),
            "{words}: {}",
            answer.stderr
        );
        assert!(answer.stderr.contains("pbfhogg merge"), "{words}");
    }
    let answer = run_words("tags-count IN", &sorted, dir.path());
    assert!(answer.stderr.contains("occur again"), "{}", answer.stderr);
}

#[test]
fn sort_and_cat_say_that_objects_of_several_files_occur_again() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, second) in [SECOND, FIRST].into_iter().enumerate() {
        let forms = forms(dir.path(), second);
        let [a, b] = ["a.opl", "b.opl"].map(|name| dir.path().join(name));
        let joined = ask(&[&"sort", &a, &b, &"-f", &"opl"]);
        assert_eq!((joined.status, joined.stdout.lines().count()), (0, 6));
        let expected = "objects that occur again: 3 (the first is n1)";
        assert!(joined.stderr.contains(expected), "{joined:?}");
        assert!(joined.stderr.contains("pbfhogg merge"), "{joined:?}");
        // All of these objects begin or end a blob, or are in blobs with equal hashes.
        let joined = ask(&[&"cat", &a, &b, &"-f", &"opl"]);
        assert!(
            joined.stderr.contains("again: 3 or more (one is n1)"),
            "{joined:?}"
        );
        for (number, form) in forms.iter().enumerate() {
            let sorted = ask(&[&"sort", form, &"-f", &"opl"]);
            assert!(sorted.stderr.contains(expected), "{form:?}: {sorted:?}");
            // Without an index, the entries for the table of contents are made of the decoded blobs.
            let out = dir.path().join(format!("again-{turn}-{number}.osm.pbf"));
            let copied = ask(&[&"cat", form, &"-o", &out]);
            assert!(copied.stderr.contains("again: "), "{form:?}: {copied:?}");
            std::fs::remove_file(form).unwrap();
        }
        // What each file has once is no matter of a warning, and neither are histories and changes.
        assert_eq!(ask(&[&"sort", &a, &"-f", &"opl"]).stderr, "");
        assert_eq!(ask(&[&"cat", &a, &"-f", &"opl"]).stderr, "");
    }
    let changes = dir.path().join("changes.osc");
    let history = dir.path().join("h.osh.opl");
    std::fs::write(&history, "n1 v1 dV x1 y1\nn1 v2 dV x1 y1\nn1 v2 dV x1 y1\n").unwrap();
    for command in ["sort", "cat"] {
        for input in [&changes, &history] {
            let joined = ask(&[&command, input, input, &"-f", &"opl"]);
            assert_eq!(
                (joined.status, joined.stderr.as_str()),
                (0, ""),
                "{joined:?}"
            );
        }
        let stated = ask(&[&command, &"-F", &"osh.opl", &history, &"-f", &"opl"]);
        assert_eq!(stated.stderr, "");
    }
    let merged = ask(&[&"merge-changes", &changes, &changes, &"-f", &"opl"]);
    assert_eq!(merged.stderr, "");
}

#[test]
fn sort_counts_objects_that_occur_again_in_copied_and_in_merged_blobs() {
    let dir = tempfile::tempdir().unwrap();
    let ids =
        |ids: &[i64]| -> Vec<Object> { ids.iter().map(|id| node(*id, *id, *id, &[])).collect() };
    for (blobs, count) in [
        (vec![ids(&[1, 2, 2, 3]), ids(&[4, 5])], 1),
        (vec![ids(&[1, 2, 3]), ids(&[3, 4])], 1),
        (vec![ids(&[4, 1, 4]), ids(&[2, 1, 3]), ids(&[9, 9, 9])], 4),
        (vec![ids(&[9, 9]), ids(&[1, 1])], 2),
        (vec![ids(&[4, 1]), ids(&[2, 3])], 0),
    ] {
        let slices: Vec<&[Object]> = blobs.iter().map(Vec::as_slice).collect();
        let input = crate::common::answers::file_of(dir.path(), "in.osm.pbf", &slices);
        for (format, target) in [("opl", "-"), ("pbf", "out.osm.pbf")] {
            let path = dir.path().join(target);
            let output: Arg = if target == "-" { &target } else { &path };
            let sorted = ask(&[&"sort", &"-O", &input, &"-f", &format, &"-o", output]);
            let expected = format!("again: {count} (");
            assert_eq!(sorted.status, 0, "{sorted:?}");
            assert_eq!(sorted.stderr.contains(&expected), count > 0, "{sorted:?}");
        }
    }
}

/// A file without an index whose header declares canonical order, with a blob for each list of objects.
fn declared_in_order(dir: &Path, blobs: &[Vec<Object>]) -> PathBuf {
    let blocks: Vec<_> = blobs
        .iter()
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &["Sort.Type_then_ID"]);
    let path = dir.join("in.osm.pbf");
    std::fs::write(&path, craft::file(header, &blocks)).unwrap();
    path
}

/// Many blobs of nodes and of ways. The object with index `again` of blob `blob` comes twice in a row.
fn blobs_with(blob: usize, again: usize) -> Vec<Vec<Object>> {
    let ids = |number: i64| number * 10 + 1..number * 10 + 11;
    let nodes = (0..40).map(|number| ids(number).map(|id| node(id, id, id, &[])).collect());
    let ways = (0..40).map(|number| {
        let way = |id| way(id, &[id, id % 300 + 1], &[("highway", "path")]);
        ids(number).map(way).collect()
    });
    let mut blobs: Vec<Vec<Object>> = nodes.chain(ways).collect();
    let object = blobs[blob][again].clone();
    blobs[blob].insert(again, object);
    blobs
}

#[test]
fn a_repetition_in_a_file_without_an_index_is_found_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, (blob, again)) in [(0, 0), (17, 4), (18, 9), (53, 0), (61, 3), (79, 9)]
        .into_iter()
        .enumerate()
    {
        let mut blobs = blobs_with(blob, again);
        let path = declared_in_order(dir.path(), &blobs);
        for line in in_turn(turn, 5, every::lines(&["once"])) {
            // -R does not write nodes without tags.
            if line.contains("{day}") || line.contains("-R") {
                continue;
            }
            assert_refused(line, &path, dir.path());
        }
        // The second of the two begins the next blob.
        if again == 9 && blob + 1 < blobs.len() {
            let last = blobs[blob].pop().unwrap();
            blobs[blob + 1].insert(0, last);
            let path = declared_in_order(dir.path(), &blobs);
            let lines = every::lines(&["once"]).into_iter();
            for line in lines.filter(|line| line.starts_with("export")) {
                assert_refused(line, &path, dir.path());
            }
        }
    }
}

#[test]
fn a_file_with_each_object_once_is_read_in_whatever_order_it_is() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("changes.osc"), CHANGES).unwrap();
    let mut blobs = blobs_with(5, 5);
    blobs[5].remove(5);
    blobs.swap(3, 7);
    let first = blobs[11].remove(2);
    blobs[20].push(first);
    let blocks: Vec<_> = blobs
        .iter()
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    let input = dir.path().join("in.osm.pbf");
    std::fs::write(&input, craft::plain_file(&blocks)).unwrap();
    for line in every::lines(&["once"]) {
        let answer = run_line(line, "-", &input, dir.path());
        assert_eq!(answer.status, 0, "{line}: {}", answer.stderr);
        assert!(!answer.stderr.contains("occur"), "{line}");
        assert!(every::remove_outputs(&dir.path().join("OUT-")), "{line}");
    }
}

#[test]
fn histories_keep_all_versions() {
    let dir = tempfile::tempdir().unwrap();
    let version = |number| Object {
        version: Some(number),
        ..node(1, 10_000_000, 10_000_000, &[])
    };
    let deleted = Object {
        visible: false,
        ..Object::new(crate::common::Kind::Node, 1)
    };
    let deleted = Object {
        version: Some(3),
        ..deleted
    };
    let declared = history_of(dir.path(), "h.osm.pbf", &[&[version(1), version(2)]]);
    // Deleted versions make a history file, too, even if the header does not say so.
    let shape = Shape {
        history: true,
        ..Shape::USUAL
    };
    let undeclared = dir.path().join("u.osm.pbf");
    let block = craft::block(&[version(1), version(2), deleted], &shape);
    std::fs::write(&undeclared, craft::plain_file(&[block])).unwrap();
    let named = dir.path().join("n.osh.pbf");
    let block = craft::block(&[version(1), version(2)], &Shape::USUAL);
    std::fs::write(&named, craft::plain_file(&[block])).unwrap();
    for (number, input) in [declared, undeclared, named].iter().enumerate() {
        for words in [
            "extract -b 0,0,9,9 IN -o OUT.osm.pbf",
            "getid IN n1 -o OUT.osm.pbf",
        ] {
            let words = words.replace("OUT", &format!("OUT{number}{}", &words[..2]));
            let answer = run_words(&words, input, dir.path());
            assert_eq!(answer.status, 0, "{words}: {}", answer.stderr);
            assert!(
                !answer.stderr.contains("occur"),
                "{words}: {}",
                answer.stderr
            );
        }
    }
}

#[test]
fn check_finds_repetitions_whatever_it_checks() {
    let dir = tempfile::tempdir().unwrap();
    let [_, _, sorted, _, _] = forms(dir.path(), SECOND);
    let answer = ask(&[&"check", &sorted]);
    assert_eq!(answer.status, 1);
    assert!(answer.stdout.contains("3 that occur again"), "{answer:?}");
    // A check of references alone says nothing about ids.
    let answer = ask(&[&"check", &"--refs", &sorted]);
    assert_eq!(answer.status, 0);
    assert!(!answer.stdout.contains("twice"), "{answer:?}");
    assert!(ask(&[&"check", &"--refs", &"--json", &sorted]).json()["duplicates"].is_null());
}

#[test]
fn the_second_name_refuses_what_osmium_refuses_and_takes_what_it_takes() {
    let dir = tempfile::tempdir().unwrap();
    let [_, _, sorted, sorted_bare, _] = forms(dir.path(), SECOND);
    let osmium = dir.path().join("osmium");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pbfhogg"), &osmium).unwrap();
    for input in [&sorted, &sorted_bare] {
        for (words, status) in [
            ("export -f geojsonseq", 1),
            ("renumber -f opl", 1),
            ("extract -b 0,0,9,9 -f opl", 1),
            ("check-refs", 1),
            ("add-locations-to-ways -f opl", 0),
            ("tags-filter -f opl", 0),
            ("getid -f opl", 0),
            ("tags-count", 0),
            ("time-filter -f opl", 0),
        ] {
            let mut command = Command::new(&osmium);
            command.args(words.split(' ')).arg(input);
            match words.split(' ').next() {
                Some("tags-filter") => command.arg("highway"),
                Some("getid") => command.arg("n2"),
                _ => &mut command,
            };
            let run = command.output().unwrap();
            let said = String::from_utf8_lossy(&run.stderr);
            assert_eq!(run.status.code(), Some(status), "{words}: {said}");
            assert_eq!(
                said.contains("occurs twice"),
                status == 1,
                "{words}: {said}"
            );
            assert!(!said.contains("occur again"), "{words}: {said}");
        }
    }
}
