//! `update --exec`, `--expire-tiles` and `--augmented-diff` for a whole run: what follows an update sees each one, in
//! order, whatever ends a run.

use crate::common::kills::{end_after, killed_at, kills, moment, names, time_of};
use crate::common::publisher::{DAYS, update_from};
use crate::common::town::{NOTE, Town};
use crate::common::{Arg, run_fail, run_ok, stderr};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn one_augmented_diff_and_one_list_of_tiles_are_those_of_the_whole_run() {
    let town = Town::new();
    let options = [
        "-q",
        "--augmented-diff",
        "run.adiff",
        "--expire-tiles",
        "8-14",
        "--expire-output",
        "tiles.txt",
    ];
    // Each run replaces the outputs of the one before.
    for (published, days) in [(1, 1..=1), (DAYS, 2..=DAYS)] {
        town.publisher.publish(published);
        assert_eq!(town.update(&options).0, 0);
        assert_eq!(town.day(), published);
        let read = |name: &str| fs::read(town.path(name)).unwrap();
        assert!(
            read("run.adiff") == town.plain(days.clone(), &[]),
            "{days:?}"
        );
        let tiles = town.plain(days.clone(), &["--expire-tiles", "8-14"]);
        assert!(!tiles.is_empty() && read("tiles.txt") == tiles, "{days:?}");
    }
    // A run that changes nothing leaves them.
    let before = fs::read(town.path("run.adiff")).unwrap();
    assert_eq!(town.update(&options).0, 0);
    assert!(fs::read(town.path("run.adiff")).unwrap() == before);
    // A file with locations in its ways, and a file for each change file beside the tiles.
    let located = town.path("located.osm.pbf");
    let args: [Arg; 6] = [
        &"add-locations-to-ways",
        &"-q",
        &"-n",
        &town.publisher.data(0),
        &"-o",
        &located,
    ];
    run_ok(&args);
    let mut update = update_from(&town.publisher.server(), &located);
    update
        .current_dir(&town.directory)
        .args(["--augmented-diff", "each"]);
    update.args(["--expire-tiles", "8-14", "--expire-output", "all.txt"]);
    assert!(update.output().unwrap().status.success());
    assert_eq!(names(&town.path("each")).len(), DAYS);
    let tiles = town.plain(1..=DAYS, &["--expire-tiles", "8-14"]);
    assert!(fs::read(town.path("all.txt")).unwrap() == tiles);
}

#[test]
fn a_run_replaces_the_outputs_of_earlier_runs_and_no_other_files() {
    let town = Town::new();
    town.publisher.publish(DAYS);
    for (name, text) in [
        (
            "notes.adiff",
            "<osm version='0.6' generator='Overpass API 0.7.62'/>",
        ),
        (
            "notes.geojson",
            "{\"type\":\"FeatureCollection\",\"features\":[]}",
        ),
        ("notes.parquet", "PAR1 of another program PAR1"),
    ] {
        fs::write(town.path(name), text).unwrap();
        let (status, output) = town.update(&["-q", "--augmented-diff", name]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(status, 2, "{said}");
        assert!(said.contains(name) && said.contains("-O"), "{said}");
        assert_eq!(fs::read_to_string(town.path(name)).unwrap(), text);
        assert_eq!(town.day(), 0);
    }
    // With -O, the other file is replaced; then each run replaces the output of the one before.
    for (day, option) in [(1, "-O"), (2, "--quiet"), (3, "--quiet")] {
        let end = day.to_string();
        let options = [
            "--augmented-diff",
            "notes.parquet",
            "--end-sequence",
            end.as_str(),
            option,
        ];
        assert!(matches!(town.update(&options).0, 0 | 1));
        assert_eq!(town.day(), day);
        let after = fs::read(town.path("notes.parquet")).unwrap();
        assert!(after.starts_with(b"PAR1") && !after.starts_with(b"PAR1 of another"));
    }
    fs::write(town.path("tiles.txt"), "a list of other things\n").unwrap();
    let tiles = ["-q", "--expire-tiles", "8", "--expire-output", "tiles.txt"];
    assert_eq!(town.update(&tiles).0, 2);
}

#[test]
fn changes_that_are_applied_give_tiles_and_changesets_on_the_way() {
    let town = Town::new();
    let changes = town.changes(1..=5);
    let mut args: Vec<Arg> = vec![&"apply-changes", &"-q"];
    let [base, output] = [town.publisher.data(0), town.path("after.osm.pbf")];
    let [split, tiles] = ["split", "tiles.txt"].map(|name| town.path(name));
    args.push(&base);
    args.extend(changes.iter().map(|path| path as Arg));
    let more: [Arg; 9] = [
        &"-o",
        &output,
        &"--augmented-diff",
        &split,
        &"--split",
        &"--expire-tiles",
        &"12",
        &"--expire-output",
        &tiles,
    ];
    run_ok(&[&args[..], &more[..]].concat());
    assert_eq!(town.publisher.day_of(&output), 5);
    assert!(fs::read(&tiles).unwrap() == town.plain(1..=5, &["--expire-tiles", "12"]));
    let expected = town.path("expected");
    town.plain(1..=5, &["--split", "-o", expected.to_str().unwrap()]);
    let of = |directory: &Path| {
        let files = names(directory).into_iter();
        files
            .map(|name| (fs::read(directory.join(&name)).unwrap(), name))
            .collect::<Vec<_>>()
    };
    assert!(of(&split) == of(&expected) && !of(&split).is_empty());
    // No file is the output of two things.
    let both = town.path("both.adiff");
    let wrong: [Arg; 9] = [
        &"-O",
        &"-o",
        &output,
        &"--augmented-diff",
        &both,
        &"--expire-tiles",
        &"12",
        &"--expire-output",
        &both,
    ];
    let message = run_fail(&[&args[..], &wrong[..]].concat());
    assert!(
        message.contains("two outputs") || message.contains("of their own"),
        "{message}"
    );
}

#[test]
fn a_command_runs_after_each_update_and_only_then() {
    let town = Town::new();
    let exec = format!(
        "{NOTE}; test -s \"$PBFHOGG_FILE\" && test -s \"$PBFHOGG_EXPIRED_TILES\" && \
         test -z \"$PBFHOGG_AUGMENTED_DIFF\" && cd / && test -s \"$PBFHOGG_FILE\" && echo to stdout && read line; \
         test \"$PBFHOGG_TIMESTAMP_BEFORE\" != \"$PBFHOGG_TIMESTAMP\""
    );
    let options = [
        "--expire-tiles",
        "8",
        "--expire-output",
        "tiles.txt",
        "--exec",
        &exec,
    ];
    town.publisher.publish(1);
    let (status, output) = town.update(&options);
    assert_eq!(status, 0, "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("to stdout\n"));
    // More changes than one run takes: the command has followed, and the exit status says that there are more.
    town.publisher.publish(DAYS);
    let more = [&options[..], &["--max-diff-size", "1"]].concat();
    assert_eq!(town.update(&more).0, 1);
    // A report in JSON stays alone on standard output.
    let json = [&options[..], &["--json"]].concat();
    for is_new in [true, false] {
        let (status, output) = town.update(&json);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((status, report["exec"].is_null()), (0, !is_new), "{report}");
        if is_new {
            assert_eq!(report["exec"]["status"], 0);
            assert!(stderr(&output).contains("to stdout"));
        }
    }
    assert_eq!(town.noted(), [(0, 1), (1, 2), (2, DAYS)]);
    // Neither a server that is gone nor one that is behind the file starts it.
    let mut gone = update_from("file:///not/there", &town.path("town.osm.pbf"));
    gone.current_dir(&town.directory).args(options);
    assert_eq!(gone.output().unwrap().status.code(), Some(2));
    town.publisher.publish(3);
    assert_eq!(town.update(&options).0, 1);
    assert_eq!(town.noted().len(), 3);
    assert_eq!(
        names(&town.directory),
        ["noted", "tiles.txt", "town.osm.pbf"]
    );
    for other in [&["--check"][..], &["--diffs-only", "-o", "x.osc"][..]] {
        assert_eq!(town.update(&[other, &["--exec", "true"]].concat()).0, 2);
    }
}

#[test]
fn a_command_that_failed_is_made_up_for() {
    let town = Town::new();
    let exec = format!("test -e ready || exit 7; {NOTE}");
    let options = ["--augmented-diff", "run.adiff", "--exec", &exec];
    town.publisher.publish(1);
    let json = [&options[..], &["--json"]].concat();
    let (status, output) = town.update(&json);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((status, town.day()), (3, 1));
    assert_eq!(
        report["exec"],
        serde_json::json!({"status": 7, "is_pending": true})
    );
    let said = stderr(&output);
    assert!(
        said.contains("exit status 7") && said.lines().count() == 1,
        "{said}"
    );
    // Until the command has succeeded, what it reads stays.
    let before = fs::read(town.path("run.adiff")).unwrap();
    town.publisher.publish(DAYS);
    assert_eq!(town.update(&options).0, 3);
    assert_eq!(town.day(), 1);
    assert!(fs::read(town.path("run.adiff")).unwrap() == before);
    // Then both updates are followed, in order. The server need not be there for the first.
    fs::write(town.path("ready"), "").unwrap();
    let mut gone = update_from("file:///not/there", &town.path("town.osm.pbf"));
    gone.current_dir(&town.directory).args(options);
    assert_eq!(gone.output().unwrap().status.code(), Some(2));
    assert_eq!(town.noted(), [(0, 1)]);
    assert_eq!((town.update(&options).0, town.day()), (0, DAYS));
    assert_eq!(town.noted(), [(0, 1), (1, DAYS)]);
    assert_eq!(
        names(&town.directory),
        ["noted", "ready", "run.adiff", "town.osm.pbf"]
    );
}

#[test]
fn a_command_without_a_record_follows_another_output_each_time() {
    // Another output than the file is made anew by each run, and so is what follows it.
    let town = Town::new();
    for status in [3, 0] {
        let exec = format!("{NOTE}; exit {status}");
        let update = ["-O", "-o", "copy.osm.pbf", "--exec", &exec];
        assert_eq!(town.update(&update).0, status);
        assert_eq!(town.publisher.day_of(&town.path("copy.osm.pbf")), DAYS);
    }
    assert_eq!(town.noted(), [(0, DAYS), (0, DAYS)]);
    assert_eq!(town.day(), 0);
}

#[test]
fn no_other_run_updates_a_file_while_the_command_runs() {
    let town = Town::new();
    town.publisher.publish(1);
    let exec = "touch started; while ! test -e go; do sleep 0.02; done";
    let mut child = town.command(&["-q", "--exec", exec]).spawn().unwrap();
    let start = Instant::now();
    while !town.path("started").exists() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    town.publisher.publish(DAYS);
    let (status, output) = town.update(&[]);
    let said = stderr(&output);
    fs::write(town.path("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!((status, town.day()), (4, 1), "{said}");
    assert!(
        said.contains("another run is replacing this file"),
        "{said}"
    );
}

/// Whether updates follow each other from the first day. An update may be noted again right after itself.
fn is_complete(noted: &[(usize, usize)]) -> bool {
    let mut last = (0, 0);
    noted.iter().all(|step| {
        let before = std::mem::replace(&mut last, *step);
        step.0 == before.1 || *step == before
    })
}

#[test]
fn commands_follow_each_update_in_order_when_runs_are_killed() {
    let options = [
        "-q",
        "--expire-tiles",
        "8",
        "--expire-output",
        "tiles.txt",
        "--exec",
        NOTE,
    ];
    // While the command runs: the process that has started it is killed.
    let town = Town::new();
    town.publisher.publish(1);
    let mut killed = town.command(&["-q", "--exec", "kill -9 $PPID"]);
    assert_eq!(killed.status().unwrap().code(), None);
    assert_eq!(town.day(), 1);
    assert_eq!(town.update(&options).0, 0);
    assert_eq!(town.noted(), [(0, 1)]);
    // At any time.
    let takes = time_of(&mut Town::new().command(&options));
    for number in 0..kills() {
        let town = Town::new();
        town.publisher.publish(5);
        end_after(
            &mut town.command(&options),
            moment(number, takes),
            Signal::KILL,
        );
        let day = town.day();
        assert!(day == 0 || day == 5, "{number}: {day}");
        town.publisher.publish(DAYS);
        assert_eq!(town.update(&options).0, 0, "{number}");
        let noted = town.noted();
        assert!(is_complete(&noted), "{number}: {noted:?}");
        assert_eq!(noted.last().map(|step| step.1), Some(DAYS), "{number}");
        let first = noted.iter().rev().find(|step| step.1 == DAYS).unwrap().0 + 1;
        let tiles = town.plain(first..=DAYS, &["--expire-tiles", "8"]);
        assert!(
            fs::read(town.path("tiles.txt")).unwrap() == tiles,
            "{number}"
        );
        assert_eq!(
            names(&town.directory),
            ["noted", "tiles.txt", "town.osm.pbf"]
        );
    }
}

#[test]
fn a_run_that_is_killed_before_the_file_is_replaced_is_made_again() {
    // A file without a name gets one, and then takes the place of the other: the record, the tiles, the data.
    for nth in 1..=4 {
        let town = Town::new();
        town.publisher.publish(5);
        let options = ["-q", "--expire-tiles", "8", "--expire-output", "tiles.txt"];
        let with_exec = [&options[..], &["--exec", NOTE]].concat();
        fs::write(town.path("tiles.txt"), "").unwrap();
        match killed_at("rename", nth, &town.command(&with_exec)) {
            None => return,
            Some(_) => {
                let day = town.day();
                assert!(day == 0 || day == 5, "{nth}: {day}");
            }
        }
        assert_eq!(town.update(&with_exec).0, 0, "{nth}");
        assert_eq!(town.day(), 5, "{nth}");
        assert!(
            is_complete(&town.noted()) && !town.noted().is_empty(),
            "{nth}"
        );
        let tiles = town.plain(1..=5, &["--expire-tiles", "8"]);
        assert!(fs::read(town.path("tiles.txt")).unwrap() == tiles, "{nth}");
    }
}

#[test]
fn an_update_whose_outputs_cannot_be_written_changes_nothing() {
    let town = Town::new();
    fs::write(town.path("kept.txt"), "mine").unwrap();
    let tiles = ["--expire-tiles", "8", "--expire-output"];
    for (more, cause) in [
        (&["town.osm.pbf"][..], "input"),
        (&["-"][..], "standard output"),
        (&["kept.txt", "-o", "new.osm.pbf"][..], "--overwrite"),
        (&["no/such/tiles.txt"][..], "no/such"),
    ] {
        let (status, output) = town.update(&[&tiles[..], more, &["--exec", NOTE]].concat());
        let said = stderr(&output);
        assert_eq!((status, town.day()), (2, 0), "{said}");
        assert!(said.contains(cause) && said.lines().count() == 1, "{said}");
    }
    assert_eq!(names(&town.directory), ["kept.txt", "town.osm.pbf"]);
    assert_eq!(fs::read(town.path("kept.txt")).unwrap(), b"mine");
}

/// The words in backquotes in the sections of the page about augmented diffs, updates, and files that are written.
fn named() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference/json.md");
    let page = fs::read_to_string(path).unwrap();
    let headings = ["A written file", "`augmented-diff`", "`update`"];
    let sections = page.split("\n## ");
    let sections = sections.filter(|text| headings.iter().any(|one| text.starts_with(one)));
    let words = sections.flat_map(|text| text.split('`').skip(1).step_by(2));
    words.map(str::to_owned).collect()
}

#[test]
fn the_report_of_an_update_has_the_fields_that_the_reference_names() {
    fn check(value: &Value, named: &[String]) {
        let Value::Object(fields) = value else {
            return;
        };
        for (name, value) in fields {
            assert!(named.contains(name), "{name}");
            check(value, named);
        }
    }
    let town = Town::new();
    let (_, output) = town.update(&[
        "--json",
        "--augmented-diff",
        "run.parquet",
        "--expire-tiles",
        "8",
        "--expire-output",
        "tiles.txt",
        "--exec",
        "true",
    ]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for field in [
        "augmented_diff",
        "expired_tiles",
        "exec",
        "applied",
        "written",
    ] {
        assert!(report[field].is_object(), "{field}: {report}");
    }
    check(&report, &named());
}
