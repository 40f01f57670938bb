//! `update` as a monitor and a log read it: checks of several files, events as lines, and runs that are busy.

use crate::common::publisher::{DAYS, Publisher, update_from};
use crate::common::run_fail;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a command. Returns the exit status, the lines on standard output, and standard error.
fn ran(command: &mut Command) -> (i32, Vec<String>, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let lines = text(output.stdout).lines().map(str::to_owned).collect();
    (output.status.code().unwrap(), lines, text(output.stderr))
}

fn event(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn several_files_are_checked_with_one_exit_status() {
    let publisher = Publisher::new();
    let old = publisher.copy("old.osm.pbf");
    let new = publisher.copy("new.osm.pbf");
    assert_eq!(publisher.update(&new, &[]).0, 0);
    publisher.publish(DAYS);
    let check = |files: &[&std::path::PathBuf], options: &[&str]| {
        let mut command = update_from(&publisher.server(), files[0]);
        ran(command.args(&files[1..]).arg("--check").args(options))
    };
    let (status, lines, said) = check(&[&new, &old], &[]);
    assert_eq!((status, lines.len(), said.as_str()), (1, 2, ""));
    assert!(lines[0].contains("new.osm.pbf") && lines[1].contains("old.osm.pbf"));
    // The oldest file has no change of twelve days.
    for (most, expected) in [
        ("13d", 0),
        ("12d", 0),
        ("287h", 1),
        ("90s", 1),
        ("2000000", 0),
    ] {
        let options = ["--max-behind", most, "--json=lines"];
        let (status, lines, _) = check(&[&new, &old], &options);
        assert_eq!((status, lines.len()), (expected, 2), "{most}");
        let events: Vec<Value> = lines.iter().map(|line| event(line)).collect();
        assert!(events.iter().all(|event| event["kind"] == "check"));
        assert_eq!(events[0]["seconds_behind"], 0);
        assert!(events[1]["file"].as_str().unwrap().ends_with("old.osm.pbf"));
    }
    let (status, lines, _) = check(&[&new, &old], &["--json"]);
    let list = event(&lines.concat());
    assert_eq!((status, list.as_array().unwrap().len()), (1, 2));
    let (status, lines, _) = check(&[&new], &["--json"]);
    assert_eq!(
        (status, &event(&lines.concat())["is_current"]),
        (0, &true.into())
    );
    // A file that cannot be checked does not hide the others.
    let missing = publisher.path("missing.osm.pbf");
    let (status, lines, said) = check(&[&missing, &new], &["--json=lines"]);
    assert_eq!(
        (status, lines.len(), said.lines().count()),
        (2, 2, 1),
        "{said}"
    );
    let error = event(&lines[0]);
    assert_eq!(
        (&error["kind"], &error["status"]),
        (&"error".into(), &2.into())
    );
    assert!(error["error"].as_str().unwrap().contains("missing.osm.pbf"));
    // Only checks take several files, and only checks have a limit.
    let message = run_fail(&[&"update", &new, &old]);
    assert!(message.contains("one file"), "{message}");
    let message = run_fail(&[&"update", &new, &"--max-behind", &"2h"]);
    assert!(message.contains("--check"), "{message}");
    let message = run_fail(&[&"update", &"--check", &new, &"--max-behind", &"soon"]);
    assert!(message.contains("time span like 90s"), "{message}");
}

#[test]
fn each_round_of_a_watch_is_a_line() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    publisher.publish(2);
    let mut watch = update_from(&publisher.server(), &file);
    let watch = watch.args(["--watch", "1", "--json=lines"]);
    let watch = watch.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = watch.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut events = lines.map(|line| event(&line.unwrap()));
    let first = events.next().unwrap();
    assert_eq!(
        (&first["kind"], &first["after"]["sequence"]),
        (&"update".into(), &2.into())
    );
    assert!(first["file"].is_string() && first["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!(events.next().unwrap()["kind"], "idle");
    let mut await_kind = |kind: &str| {
        let found = events.find(|event| event["kind"] == kind).unwrap();
        assert!(found["error"].is_string(), "{found}");
        found["status"].clone()
    };
    let locked = fs::File::open(&file).unwrap();
    locked.lock().unwrap();
    assert_eq!(await_kind("locked"), 4);
    drop(locked);
    let server = publisher.path("server/state.txt");
    let state = fs::read(&server).unwrap();
    fs::remove_file(&server).unwrap();
    assert_eq!(await_kind("error"), 2);
    fs::write(&server, state).unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_run_waits_for_another_one_as_long_as_it_is_told() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let locked = fs::File::open(&file).unwrap();
    locked.lock().unwrap();
    let mut update = update_from(&publisher.server(), &file);
    let (status, lines, said) = ran(update.arg("--json=lines"));
    assert_eq!((status, lines.len()), (4, 1), "{said}");
    assert_eq!(event(&lines[0])["kind"], "locked");
    let start = Instant::now();
    let mut update = update_from(&publisher.server(), &file);
    assert_eq!(ran(update.args(["--wait", "1"])).0, 4);
    assert!(start.elapsed() >= Duration::from_secs(1));
    let mut update = update_from(&publisher.server(), &file);
    let mut waiting = update.args(["-q", "--wait", "60"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(waiting.try_wait().unwrap().is_none());
    drop(locked);
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    assert_eq!(publisher.day_of(&file), DAYS);
}

#[test]
fn the_changes_since_a_state_are_written_as_pbf() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let [xml, pbf] = ["since.osc", "since.osc.pbf"].map(|name| publisher.path(name));
    let applied = [&xml, &pbf].map(|changes| {
        let mut update = update_from(&publisher.server(), &file);
        let (status, _, said) = ran(update.arg("--diffs-only").arg("-o").arg(changes));
        assert_eq!(status, 0, "{said}");
        let output = changes.with_extension("applied.opl");
        let mut apply = crate::common::pbfhogg();
        apply.args(["apply-changes", "-q"]).args([&file, changes]);
        assert!(apply.arg("-o").arg(&output).status().unwrap().success());
        fs::read(output).unwrap()
    });
    assert!(applied[0] == applied[1]);
    assert!(fs::metadata(&pbf).unwrap().len() > 0);
}

#[test]
fn every_command_prints_its_summary_on_one_line() {
    let publisher = Publisher::new();
    let file = publisher.copy("file.osm.pbf");
    let output = file.with_file_name("output.osm.pbf");
    for args in [
        &["inspect"][..],
        &["fileinfo"],
        &["check"],
        &["cat", "-o", output.to_str().unwrap()],
    ] {
        let mut command = crate::common::pbfhogg();
        let (status, lines, said) = ran(command.args(args).arg("--json=lines").arg(&file));
        assert_eq!((status, lines.len()), (0, 1), "{args:?}: {said}");
        assert!(event(&lines[0]).is_object());
    }
}
