//! `update`: after each run, a file is as before or has the data of one state, which its header says.

use crate::common::publisher::{DAYS, Publisher, update_from};
use crate::common::{Arg, pbfhogg, run_fail, run_fail_with, run_ok};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn a_file_gets_the_data_of_the_newest_state() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let (status, report) = publisher.update(&file, &["--check"]);
    assert_eq!((status, &report["is_current"]), (1, &Value::Bool(false)));
    assert_eq!(report["seconds_behind"], DAYS as i64 * 86_400);
    assert_eq!(publisher.day_of(&file), 0);

    publisher.publish(5);
    let (status, report) = publisher.update(&file, &[]);
    assert_eq!((status, &report["change_files"]), (0, &Value::from(5)));
    assert_eq!(publisher.day_of(&file), 5);

    // The header says where the rest comes from.
    publisher.publish(DAYS);
    run_ok(&[&"update", &"-q", &"--max-age", &"9999", &file]);
    assert_eq!(publisher.day_of(&file), DAYS);
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(publisher.update(&file, &[]).0, 0);
    let after = fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(before, after, "a file that is current is not written");
}

#[test]
fn a_run_ends_where_it_should() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    // Each run takes one change file at least.
    for day in 1..=3 {
        let (status, report) = publisher.update(&file, &["--max-diff-size", "1"]);
        assert_eq!((status, &report["is_current"]), (1, &Value::Bool(false)));
        assert_eq!(publisher.day_of(&file), day);
    }
    assert_eq!(publisher.update(&file, &["--end-sequence", "6"]).0, 0);
    assert_eq!(publisher.day_of(&file), 6);
    // A state is missing, although its change file is there.
    fs::remove_file(publisher.path("server/000/000/007.state.txt")).unwrap();
    assert_eq!(publisher.update(&file, &["--end-sequence", "7"]).0, 0);
    assert_eq!(publisher.day_of(&file), 7);
    assert_eq!(
        publisher
            .update(&file, &["--end-date", "2026-01-10T12:00:00Z"])
            .0,
        0
    );
    assert_eq!(publisher.day_of(&file), 9);
    // A change file is missing in the middle: those before it are applied.
    fs::remove_file(publisher.path("server/000/000/011.osc.gz")).unwrap();
    assert_eq!(publisher.update(&file, &[]).0, 1);
    assert_eq!(publisher.day_of(&file), 10);
    let server = publisher.server();
    let args: [Arg; 6] = [
        &"update",
        &"--max-age",
        &"9999",
        &"--server",
        &server,
        &file,
    ];
    let message = run_fail(&args);
    assert!(message.contains("no change file 11"), "{message}");
    assert_eq!(publisher.day_of(&file), 10);
}

#[test]
fn a_start_is_found_without_a_state_in_the_header() {
    let publisher = Publisher::new();
    let file = publisher.path("file.osm.pbf");
    // The time is known: the newest state that is not later.
    let time = "osmosis_replication_timestamp=2026-01-06T05:00:00Z";
    run_ok(&[
        &"cat",
        &"-q",
        &publisher.data(5),
        &"--output-header",
        &time,
        &"-o",
        &file,
    ]);
    let (_, report) = publisher.update(&file, &["--check"]);
    assert_eq!(report["before"]["sequence"], 5);
    // Nothing is known: the newest object says about when the data was published.
    let opl = publisher.path("file.opl");
    run_ok(&[&"cat", &"-q", &publisher.data(5), &"-o", &opl]);
    run_ok(&[&"cat", &"-q", &"-O", &opl, &"-o", &file]);
    assert_eq!(publisher.update(&file, &[]).0, 0);
    assert_eq!(publisher.day_of(&file), DAYS);
    // No metadata.
    run_ok(&[
        &"cat",
        &"-q",
        &"-O",
        &opl,
        &"-c",
        &"version,timestamp,changeset,uid,user",
        &"-o",
        &file,
    ]);
    let server = publisher.server();
    let message = run_fail(&[&"update", &"--server", &server, &file]);
    assert!(
        message.contains("neither the header nor the objects"),
        "{message}"
    );
}

#[test]
fn a_watch_goes_on_until_it_is_ended() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    publisher.publish(2);
    let mut watch = update_from(&publisher.server(), &file);
    let watch = watch.args(["--watch", "1"]).stdout(Stdio::piped());
    let mut child = watch.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for day in [2, 5, DAYS] {
        publisher.publish(day);
        // One line an update. Nothing is said of a round that finds nothing new.
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains(&format!("(sequence {day})")), "{line}");
        assert_eq!(publisher.day_of(&file), day);
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(lines.count(), 0);
    // What cannot work at all ends it at once.
    let mut wrong = update_from(&publisher.path("nowhere").display().to_string(), &file);
    assert_eq!(
        wrong.args(["--watch", "1"]).output().unwrap().status.code(),
        Some(2)
    );
}

#[test]
fn a_watch_ends_where_it_should() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    for (end, day) in [
        (["--end-sequence", "2"], 2),
        (["--end-sequence", "2"], 2),
        (["--end-date", "2026-01-10T12:00:00Z"], 9),
        (["--end-date", "2025-12-01T12:00:00Z"], 9),
    ] {
        let mut watch = update_from(&publisher.server(), &file);
        // The end is reached in the first round, and the pause is longer than a test may last.
        let watch = watch.args(["--watch", "100000"]).args(end);
        assert!(watch.status().unwrap().success(), "{end:?}");
        assert_eq!(publisher.day_of(&file), day, "{end:?}");
    }
    // The end is reached when the server has it.
    publisher.publish(10);
    let mut watch = update_from(&publisher.server(), &file);
    let watch = watch.args(["--watch", "1", "--end-sequence", "11"]);
    let mut child = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    assert!(line.contains("(sequence 10)"), "{line}");
    publisher.publish(DAYS);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(publisher.day_of(&file), 11);
}

#[test]
fn history_files_are_refused() {
    let publisher = Publisher::new();
    let file = publisher.path("history.osm.pbf");
    let opl = publisher.path("history.opl");
    fs::write(
        &opl,
        "n1 v1 dV t2025-12-01T00:00:00Z x1 y1\nn1 v2 dD t2025-12-02T00:00:00Z\n",
    )
    .unwrap();
    run_ok(&[&"cat", &"-q", &opl, &"-o", &file]);
    let server = publisher.server();
    let message = run_fail(&[&"update", &"--server", &server, &file]);
    assert!(message.contains("history file"), "{message}");
}

#[test]
fn changes_can_be_written_instead() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let changes = publisher.path("changes.osc.gz");
    let changes = changes.to_str().unwrap();
    assert_eq!(
        publisher.update(&file, &["--diffs-only", "-o", changes]).0,
        0
    );
    assert_eq!(publisher.day_of(&file), 0);
    let applied = publisher.path("applied.osm.pbf");
    run_ok(&[&"apply-changes", &"-q", &file, &changes, &"-o", &applied]);
    assert_eq!(publisher.day_of(&applied), DAYS);
}

#[test]
fn a_file_that_is_being_updated_is_left_alone() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let locked = fs::File::open(&file).unwrap();
    locked.lock().unwrap();
    let server = publisher.server();
    let args: [Arg; 6] = [
        &"update",
        &"--max-age",
        &"9999",
        &"--server",
        &server,
        &file,
    ];
    let message = run_fail_with(4, &args);
    assert!(
        message.contains("another run is replacing this file"),
        "{message}"
    );
    drop(locked);
    run_ok(&args);
    assert_eq!(publisher.day_of(&file), DAYS);
}

#[test]
fn old_data_and_unknown_servers_are_refused() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let message = run_fail(&[&"update", &file]);
    assert!(message.contains("--server"), "{message}");
    let server = publisher.server();
    let message = run_fail(&[&"update", &"--max-age", &"1", &"--server", &server, &file]);
    assert!(message.contains("--max-age"), "{message}");
    let message = run_fail(&[&"update", &"--server", &publisher.path("nowhere"), &file]);
    assert!(
        message.contains("not the URL of a replication server"),
        "{message}"
    );
    assert_eq!(publisher.day_of(&file), 0);
}

#[test]
fn an_extract_is_cut_back_to_its_region() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let facts = run_ok(&[&"inspect", &"--json", &file]);
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    let [west, south, east, north] =
        [0, 1, 2, 3].map(|edge| facts["data_bbox"][edge].as_f64().unwrap());
    let region = format!("{west},{south},{},{north}", f64::midpoint(west, east));
    let cut = |day: usize| {
        let path = publisher.path(&format!("cut{day}.osm.pbf"));
        run_ok(&[
            &"extract",
            &"-q",
            &"-b",
            &region,
            &publisher.data(day),
            &"-o",
            &path,
        ]);
        path
    };
    let file = cut(0);
    assert_eq!(publisher.update(&file, &["--clip", &region]).0, 0);
    run_ok(&[&"diff", &"-q", &file, &cut(DAYS)]);
    // A region without data costs nobody the file.
    let before = fs::read(publisher.data(0)).unwrap();
    let other = publisher.copy("other.osm.pbf");
    let server = publisher.server();
    let message = run_fail(&[
        &"update",
        &"--max-age",
        &"9999",
        &"--server",
        &server,
        &other,
        &"--clip",
        &"100,1,101,2",
    ]);
    assert!(
        message.contains("other.osm.pbf: no node lies in the region"),
        "{message}"
    );
    assert_eq!(fs::read(&other).unwrap(), before);
}

#[test]
fn a_server_behind_the_file_is_said() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    assert_eq!(publisher.update(&file, &["--end-sequence", "9"]).0, 0);
    let before = fs::read(&file).unwrap();
    publisher.publish(7);
    for more in [&["--check"][..], &[]] {
        let (status, report) = publisher.update(&file, more);
        assert_eq!((status, &report["is_current"]), (1, &Value::Bool(false)));
        assert_eq!(report["is_server_behind"], true);
        assert_eq!(report["newest"]["sequence"], 7);
        let output = update_from(&publisher.server(), &file)
            .args(more)
            .output()
            .unwrap();
        let said =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("as the server"), "{said}");
        if more == ["--check"] {
            assert!(
                said.contains(
                    "the server is behind it: its newest state is 2026-01-08T00:00:00Z (sequence 7)"
                ),
                "{said}"
            );
        }
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    // By time, without a number of this server.
    let timed = publisher.path("timed.osm.pbf");
    let time = "osmosis_replication_timestamp=2026-01-20T00:00:00Z";
    run_ok(&[
        &"cat",
        &"-q",
        &publisher.data(5),
        &"--output-header",
        &time,
        &"-o",
        &timed,
    ]);
    let (status, report) = publisher.update(&timed, &["--check"]);
    assert_eq!(
        (status, &report["is_server_behind"]),
        (1, &Value::Bool(true))
    );
    publisher.publish(DAYS);
    assert_eq!(
        publisher.update(&file, &["--check"]).1["is_server_behind"],
        false
    );
}

#[test]
fn numbers_that_began_anew_are_found_by_time() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    assert_eq!(publisher.update(&file, &["--end-sequence", "5"]).0, 0);
    let renumbered = publisher.path("renumbered.osm.pbf");
    let number = "osmosis_replication_sequence_number=4711";
    run_ok(&[
        &"cat",
        &"-q",
        &file,
        &"--output-header",
        &number,
        &"-o",
        &renumbered,
    ]);
    let (status, report) = publisher.update(&renumbered, &["--check"]);
    assert_eq!(
        (status, &report["before"]["sequence"]),
        (1, &Value::from(5))
    );
    let output = update_from(&publisher.server(), &renumbered)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("began anew"), "{said}");
    assert_eq!(publisher.day_of(&renumbered), DAYS);
    // Without a time, nothing can be found.
    let untimed = publisher.path("untimed.osm.pbf");
    let opl = publisher.path("untimed.opl");
    run_ok(&[&"cat", &"-q", &publisher.data(5), &"-o", &opl]);
    let url = format!("osmosis_replication_base_url={}", publisher.server());
    run_ok(&[
        &"cat",
        &"-q",
        &opl,
        &"--output-header",
        &number,
        &"--output-header",
        &url,
        &"-o",
        &untimed,
    ]);
    let message = run_fail(&[&"update", &untimed]);
    assert!(
        message.contains("4711") && message.contains("began anew"),
        "{message}"
    );
}

#[test]
fn a_relative_directory_becomes_absolute_in_the_header() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    for server in ["server", "./server/", "file://server"] {
        fs::copy(publisher.data(0), &file).unwrap();
        let mut update = update_from(server, &file);
        update
            .current_dir(publisher.path("."))
            .args(["--end-sequence", "3"]);
        assert!(update.status().unwrap().success());
        // From any other directory.
        run_ok(&[&"update", &"-q", &"--max-age", &"9999", &file]);
        assert_eq!(publisher.day_of(&file), DAYS, "{server}");
        let url = run_ok(&[&"inspect", &"--get", &"osmosis_replication_base_url", &file]);
        let url = String::from_utf8(url.stdout).unwrap();
        assert!(url.trim_start_matches("file://").starts_with('/'), "{url}");
    }
}

#[test]
fn a_current_file_may_be_old_and_a_check_says_how_old() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let server = publisher.server();
    let checked = |expected: i32| {
        let mut check = pbfhogg();
        check
            .args(["update", "--check", "--server", &server])
            .arg(&file);
        let output = check.args(["--max-age", "1"]).output().unwrap();
        assert_eq!(output.status.code(), Some(expected));
        String::from_utf8(output.stdout).unwrap()
    };
    let said = checked(1);
    assert!(
        said.contains("behind the server; the data is ") && said.contains(" old"),
        "{said}"
    );
    assert_eq!(publisher.update(&file, &[]).0, 0);
    let said = checked(0);
    assert!(
        said.contains("as the server; the data is ") && said.contains(" old"),
        "{said}"
    );
    run_ok(&[&"update", &"--max-age", &"1", &"--server", &server, &file]);
    let (_, report) = publisher.update(&file, &["--check"]);
    assert!(report["seconds_old"].as_i64().unwrap() > 0);
}

#[test]
fn an_impossible_state_is_one_error_at_once() {
    let publisher = Publisher::new();
    let opl = publisher.path("file.opl");
    let stateless = publisher.path("stateless.osm.pbf");
    run_ok(&[&"cat", &"-q", &publisher.data(0), &"-o", &opl]);
    run_ok(&[&"cat", &"-q", &opl, &"-o", &stateless]);
    let file = publisher.copy("file.osm.pbf");
    let server = publisher.server();
    let state = |number: &str, time: &str| {
        let text = format!("sequenceNumber={number}\ntimestamp={time}\n");
        fs::write(publisher.path("server/state.txt"), text).unwrap();
    };
    for number in ["9223372036854775807", "9223372036854775806", "1000000000"] {
        state(number, "2026-01-09T00\\:00\\:00Z");
        for file in [&file, &stateless] {
            let message = run_fail(&[&"update", &"--server", &server, file]);
            assert!(message.contains("nine digits"), "{message}");
        }
    }
    // Numbers and times that are no state at all.
    for (number, time) in [
        ("-1", "2026-01-09T00\\:00\\:00Z"),
        ("9", "-1"),
        ("99999999999999999999", "2026-01-09T00\\:00\\:00Z"),
    ] {
        state(number, time);
        let mut update = update_from(&server, &file);
        let output = update.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("no state file"), "{said}");
    }
    // The largest number, of a time in the far past or future: the files that are there are applied.
    for time in ["1971-01-01T00\\:00\\:00Z", "9999-12-30T00\\:00\\:00Z"] {
        for (file, status) in [(&file, [1, 2]), (&stateless, [1, 2])] {
            state("999999999", time);
            let output = update_from(&server, file).output().unwrap();
            assert!(
                status.contains(&output.status.code().unwrap()),
                "{time}: {output:?}"
            );
        }
    }
    // A header with a number and a time beyond all others.
    publisher.publish(DAYS);
    let header = |number: &str| {
        let numbered = publisher.path("numbered.osm.pbf");
        let field = format!("osmosis_replication_sequence_number={number}");
        let url = format!("osmosis_replication_base_url={server}");
        run_ok(&[
            &"cat",
            &"-q",
            &"-O",
            &publisher.data(3),
            &"--output-header",
            &field,
            &"--output-header",
            &url,
            &"-o",
            &numbered,
        ]);
        publisher.update(&numbered, &["--check"])
    };
    assert_eq!(header("9223372036854775807").1["before"]["sequence"], 3);
}
