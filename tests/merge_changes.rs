//! `merge-changes`, compared with osmium.

use crate::common;
use crate::common::answers::{ask, ask_osmium};
use crate::common::oracle::{osmium, real_file};
use crate::common::{decode, in_turn, is_long, run_fail, run_ok, world};
use std::path::{Path, PathBuf};

fn osc(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Creates change files of several days, the oldest first.
fn days(dir: &Path) -> Vec<PathBuf> {
    let days = dir.join("days");
    let world = dir.join("world.osm.pbf");
    run_ok(&[
        &"synth",
        &"--objects",
        &"60000",
        &"--changes",
        &"3",
        &"--changes-dir",
        &days,
        &"-o",
        &world,
    ]);
    (1..=3)
        .map(|day| days.join(format!("{day:03}.osc.gz")))
        .collect()
}

/// Merges change files with some options.
fn merge(options: &[&str], inputs: &[PathBuf], output: &Path) {
    let mut args: Vec<common::Arg> = vec![&"merge-changes", &"-O", &"-o", &output];
    args.extend(options.iter().map(|option| option as common::Arg));
    args.extend(inputs.iter().map(|input| input as common::Arg));
    run_ok(&args);
}

/// The changes of a file in OPL, as osmium reads them.
fn changes(path: &Path) -> Vec<String> {
    let answer = ask_osmium(&[&"cat", &"--no-progress", &"-f", &"opl", &path]);
    assert_eq!(answer.status, 0, "{answer:?}");
    answer.lines()
}

#[test]
fn the_changes_are_those_that_osmium_writes() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut inputs = days(dir.path());
    inputs.push(real_file("000466354.osc.gz"));
    let [ours, theirs] = ["ours.osc.gz", "theirs.osc.gz"].map(|name| dir.path().join(name));
    for simplify in [&[][..], &["-s"]] {
        let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"merge-changes", &"-O", &"-o", &ours];
        args.extend(
            simplify
                .iter()
                .map(|arg| arg as &dyn AsRef<std::ffi::OsStr>),
        );
        args.extend(
            inputs
                .iter()
                .map(|input| input as &dyn AsRef<std::ffi::OsStr>),
        );
        run_ok(&args);
        args[3] = &theirs;
        let answer = ask_osmium(&args);
        assert_eq!(answer.status, 0, "{answer:?}");
        let (mut found, mut expected) = (changes(&ours), changes(&theirs));
        if simplify.is_empty() {
            // osmium sorts the changes; pbfhogg keeps their order.
            found.sort();
            expected.sort();
        }
        assert!(found == expected && found.len() > 1000, "{simplify:?}");
    }
}

#[test]
fn changes_applied_together_give_what_they_give_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = days(dir.path());
    let world = dir.path().join("world.osm.pbf");
    let mut steps = world.clone();
    for (number, day) in inputs.iter().enumerate() {
        let next = dir.path().join(format!("{number}.osm.pbf"));
        run_ok(&[&"apply-changes", &steps, day, &"-o", &next]);
        steps = next;
    }
    for (turn, args) in [&["-s"][..], &[]].into_iter().enumerate() {
        for ending in in_turn(turn, 2, ["osc", "osc.gz", "osc.bz2", "osc.zst"]) {
            let merged = dir.path().join(format!("merged.{ending}"));
            merge(args, &inputs, &merged);
            let at_once = dir.path().join("at-once.osm.pbf");
            run_ok(&[&"apply-changes", &"-O", &world, &merged, &"-o", &at_once]);
            assert!(
                decode::objects(&at_once) == decode::objects(&steps),
                "{args:?} {ending}"
            );
            // The replication state is preserved.
            let headers = [&at_once, &steps].map(|path| decode::header(path));
            assert_eq!(headers[0].replication_sequence, Some(3));
            assert_eq!(
                headers[0].replication_sequence,
                headers[1].replication_sequence
            );
            assert_eq!(
                headers[0].replication_timestamp,
                headers[1].replication_timestamp
            );
        }
    }
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = days(dir.path());
    for args in [&["-s"][..], &[]] {
        let results = ["1", "3"].map(|jobs| {
            let output = dir.path().join("out.osc.gz");
            merge(&[args, &["-j", jobs]].concat(), &inputs, &output);
            std::fs::read(output).unwrap()
        });
        assert!(results[0] == results[1], "{args:?}");
    }
}

#[test]
fn sections_stay_what_they_were_and_details_of_deletions_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let one = osc(
        dir.path(),
        "1.osc",
        "<osmChange version='0.6' generator='x'><create><node id='1' version='7' lat='1' lon='2'/></create>\
        <delete><way id='2' version='3'><nd ref='1'/><tag k='a' v='b&#10;&amp;'/></way><node id='9'/></delete></osmChange>",
    );
    let two = osc(
        dir.path(),
        "2.osc",
        "<osmChange version='0.6'><modify><node id='1' version='6' lat='3' lon='4'/></modify></osmChange>",
    );
    let answer = ask(&[&"merge-changes", &one, &two, &"--generator", &"me"]);
    assert_eq!(
        answer.lines(),
        [
            "<?xml version='1.0' encoding='UTF-8'?>",
            "<osmChange version=\"0.6\" generator=\"me\">",
            "  <create>",
            "    <node id=\"1\" version=\"7\" lat=\"1\" lon=\"2\"/>",
            "  </create>",
            "  <delete>",
            "    <way id=\"2\" version=\"3\">",
            "      <nd ref=\"1\"/>",
            "      <tag k=\"a\" v=\"b&#xA;&amp;\"/>",
            "    </way>",
            "    <node id=\"9\"/>",
            "  </delete>",
            "  <modify>",
            "    <node id=\"1\" version=\"6\" lat=\"3\" lon=\"4\"/>",
            "  </modify>",
            "</osmChange>",
        ]
    );
    let answer = ask(&[&"merge-changes", &"-s", &two, &one]);
    // The higher version is kept, whichever file contains it; the output is in canonical order.
    let kept: Vec<String> = answer
        .lines()
        .into_iter()
        .filter(|line| line.contains(" id="))
        .collect();
    assert_eq!(kept.len(), 3);
    assert!(
        kept[0].contains("version=\"7\"")
            && kept[1].contains("id=\"9\"")
            && kept[2].contains("way")
    );
}

#[test]
fn broken_change_files_are_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let good = osc(
        dir.path(),
        "good.osc",
        "<osmChange version='0.6'><create><node id='1' lat='1' lon='1'/></create></osmChange>",
    );
    let output = dir.path().join("out.osc");
    for (text, cause) in [
        ("", "empty"),
        ("<osm version='0.6'/>", "this is data, not a change file"),
        (
            "<osmChange version='0.6'><create>",
            "the document ends before </osmChange>",
        ),
        (
            "<osmChange version='0.6'>\n<create><node id='x'/></create></osmChange>",
            "line 2, column",
        ),
    ] {
        let bad = osc(dir.path(), "bad.osc", text);
        for args in [&["-s"][..], &[]] {
            let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> =
                vec![&"merge-changes", &good, &bad, &"-o", &output];
            all.extend(args.iter().map(|arg| arg as &dyn AsRef<std::ffi::OsStr>));
            let message = run_fail(&all);
            assert!(
                message.contains("bad.osc") && message.contains(cause),
                "{message}"
            );
        }
    }
    let unknown = dir.path().join("out.nosuch");
    let message = run_fail(&[&"merge-changes", &good, &"-o", &unknown]);
    assert!(message.contains("does not show the format"), "{message}");
    assert!(run_fail(&[&"merge-changes", &good, &"-o", &good]).contains("--overwrite"));
    assert!(!output.exists());
}

#[test]
fn a_large_change_file_passes_through_in_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "200000");
    let empty = dir.path().join("empty.osm.pbf");
    run_ok(&[&"getid", &"--invert", &"-q", &input, &"n1", &"-o", &empty]);
    // All objects as changes: the difference from an empty file.
    let none = osc(dir.path(), "none.osm", "<osm version='0.6'/>");
    let large = dir.path().join("large.osc");
    let answer = ask(&[&"diff", &"--format", &"osc", &none, &input, &"-o", &large]);
    assert_eq!(answer.status, 0);
    let stats = dir.path().join("stats.json");
    let twice = dir.path().join("twice.osc.zst");
    let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![
        &"merge-changes",
        &"-j",
        &"2",
        &"--stats",
        &stats,
        &"-o",
        &twice,
    ];
    args.extend(std::iter::repeat_n(
        &large as &dyn AsRef<std::ffi::OsStr>,
        if is_long() { 6 } else { 2 },
    ));
    run_ok(&args);
    let stats: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
    let text = std::fs::metadata(&large).unwrap().len();
    let peak = stats["peak_memory_bytes"].as_u64().unwrap();
    assert!(
        text > 25_000_000 && peak < 60_000_000,
        "{text} bytes each, {peak} at most: {stats}"
    );
}

#[test]
fn changes_of_adjacent_extracts_give_the_same_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let object = |attributes: &str| {
        format!("<node version='3' timestamp='2020-01-01T00:00:00Z' lat='1' lon='1' {attributes}/>")
    };
    let files = [
        format!(
            "<delete>{}</delete><create>{}</create>",
            object("id='1'"),
            object("id='2'")
        ),
        format!(
            "<create>{}</create><modify>{}</modify>",
            object("id='1'"),
            object("id='2'")
        ),
        format!(
            "<modify>{}</modify><delete>{}</delete>",
            object("id='1'"),
            object("id='3'")
        ),
    ];
    let files: Vec<PathBuf> = ["a.osc", "b.osc", "c.osc"]
        .iter()
        .zip(&files)
        .map(|(name, text)| {
            osc(
                dir.path(),
                name,
                &format!("<osmChange version='0.6'>{text}</osmChange>"),
            )
        })
        .collect();
    let told = |order: [usize; 3]| {
        let [one, two, three] = order.map(|index| &files[index]);
        let run = run_ok(&[&"merge-changes", &"-s", &"--of-extracts", one, two, three]);
        String::from_utf8(run.stdout).unwrap()
    };
    let first = told([0, 1, 2]);
    assert!(first.contains("<modify>") && first.matches("<node").count() == 3);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(told(order), first, "{order:?}");
    }
}

#[test]
fn a_format_of_data_is_refused_for_change_files_and_the_right_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = "<osmChange version='0.6'><delete><node id='1' version='2'/></delete></osmChange>";
    let changes = osc(dir.path(), "c.osc", text);
    let base = osc(dir.path(), "base.opl", "n1 v1 dV T x1 y1\n");
    for (format, right) in [
        ("osm", "osc"),
        ("osm.gz", "osc"),
        ("osm.xml", "osc"),
        ("osh", "osc"),
        ("osh.opl", "osc.opl"),
        ("osh.pbf", "osc.pbf"),
        ("o5m", "o5c"),
    ] {
        let commands: [(&str, &[common::Arg]); 2] = [
            (
                "-F",
                &[&"merge-changes", &"-F", &format, &changes, &"-f", &"osc"],
            ),
            (
                "--change-file-format",
                &[
                    &"apply-changes",
                    &"--change-file-format",
                    &format,
                    &base,
                    &changes,
                    &"-f",
                    &"opl",
                ],
            ),
        ];
        for (option, args) in commands {
            let refused = ask(args);
            assert_eq!(refused.status, 2, "{refused:?}");
            let named = format!("the files have changes: {option} {right}\n");
            assert!(refused.stderr.ends_with(&named), "{refused:?}");
        }
    }
    // These formats leave the content open.
    let as_opl = dir.path().join("c.opl");
    let as_pbf = dir.path().join("c.osm.pbf");
    for path in [&as_opl, &as_pbf] {
        run_ok(&[&"cat", &changes, &"-o", path]);
    }
    for (format, path) in [
        ("osc", &changes),
        ("osc.gz", &changes),
        ("xml", &changes),
        ("opl", &as_opl),
        ("osm.opl", &as_opl),
        ("osc.opl", &as_opl),
        ("pbf", &as_pbf),
        ("osm.pbf", &as_pbf),
        ("osc.pbf", &as_pbf),
    ] {
        let merged = ask(&[&"merge-changes", &"-F", &format, path, &"-f", &"opl"]);
        assert_eq!(merged.status, 0, "{format}: {merged:?}");
        assert!(
            merged.stdout.starts_with("n1 v2 dD"),
            "{format}: {merged:?}"
        );
    }
}

#[test]
fn all_names_of_xml_are_one_format_under_the_second_name() {
    let dir = tempfile::tempdir().unwrap();
    let changes =
        "<osmChange version='0.6'><delete><node id='1' version='2'/></delete></osmChange>";
    let data = "<osm version='0.6'><node id='1' version='2' lat='1' lon='1'/></osm>";
    for (text, object) in [(changes, "n1 v2 dD"), (data, "n1 v2 dV")] {
        let path = osc(dir.path(), "input", text);
        for format in ["osm", "osh", "osc", "xml", "osm.xml", "osc.xml"] {
            for command in ["cat", "merge-changes", "renumber"] {
                let args: [common::Arg; 6] = [&command, &"-F", &format, &path, &"-f", &"opl"];
                let second = ask(&[&[&"osmium" as common::Arg][..], &args].concat());
                assert_eq!(second.status, 0, "{command} {format}: {second:?}");
                assert!(
                    second.stdout.starts_with(object),
                    "{command} {format}: {second:?}"
                );
                if osmium() {
                    assert_eq!(
                        second.stdout,
                        ask_osmium(&args).stdout,
                        "{command} {format}"
                    );
                }
            }
        }
        let own = ask(&[&"cat", &"-F", &"xml", &path, &"-f", &"opl"]);
        assert!(own.stdout.starts_with(object), "{own:?}");
    }
}
