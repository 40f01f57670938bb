//! `update` and pyosmium's `pyosmium-up-to-date` make the same of a file, and end with the same exit status.

use crate::common::oracle::{available, runs};
use crate::common::publisher::update_from;
use crate::common::random::Random;
use crate::common::web::{Decide, Request, Trouble, Web};
use crate::common::year::{DAY, DAYS, HOUR, MINUTE, Year, newest_before, time_of, time_text};
use crate::common::{is_long, run_ok};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// pyosmium's program. The first run installs it.
fn peer() -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/pyosmium-up-to-date"))
}

fn has_peer() -> bool {
    available(
        runs(peer().arg("--version")),
        "pyosmium-up-to-date cannot be installed",
    )
}

fn serve(year: &Arc<Year>, decide: Decide) -> Web {
    let files = year.clone();
    Web::new(Arc::new(move |path| files.file(path)), decide)
}

/// Updates copies of a file by both programs, from one server. Each limit has our name and the other's. Returns the exit
/// status and the sequence number, which must be the same, as must the objects.
fn both(year: &Year, file: &Path, url: &str, limits: &[(&str, &str, &str)]) -> (i32, Option<i64>) {
    let [ours, theirs] = ["ours.osm.pbf", "theirs.osm.pbf"].map(|name| year.path(name));
    fs::copy(file, &ours).unwrap();
    fs::copy(file, &theirs).unwrap();
    let mut update = update_from(url, &ours);
    let mut peer = peer();
    peer.args(["--force-update-of-old-planet", "--server", url]);
    for (our_name, their_name, value) in limits {
        update.args([our_name, value]);
        peer.args([their_name, value]);
    }
    let output = update.output().unwrap();
    let expected = peer.arg(&theirs).output().unwrap();
    let shown = format!("{limits:?}: {output:?} {expected:?}");
    let [status, expected] = [&output, &expected].map(|output| output.status.code().unwrap());
    // Errors are 2 and more.
    assert_eq!(status, expected.min(2), "{shown}");
    run_ok(&[&"diff", &"-q", &ours, &theirs]);
    let facts = [&ours, &theirs].map(|file| {
        let facts = run_ok(&[&"inspect", &"--json", file]);
        serde_json::from_slice::<Value>(&facts.stdout).unwrap()
    });
    let [ours, theirs] = [0, 1].map(|file| &facts[file]["replication_sequence"]);
    assert_eq!(ours, theirs, "{shown}");
    // The other program does not look for a time where the last state is missing.
    let [ours, theirs] = [0, 1].map(|file| &facts[file]["replication_timestamp"]);
    assert!(
        ours == theirs || theirs.is_null(),
        "{ours} {theirs}: {shown}"
    );
    let urls = facts.each_ref().map(|facts| {
        facts["replication_url"]
            .as_str()
            .map(|url| url.trim_end_matches('/'))
    });
    assert_eq!(urls[0], urls[1]);
    (status, facts[0]["replication_sequence"].as_i64())
}

#[test]
fn some_starts_end_with_the_same_data() {
    if !has_peer() {
        return;
    }
    let year = Arc::new(Year::new(20_000));
    let web = serve(&year, Box::new(|_| None));
    let mut random = Random(20);
    for start in 0..if is_long() { 20 } else { 6 } {
        let (name, step) = [("day", DAY), ("hour", HOUR), ("minute", MINUTE)][start % 3];
        let url = format!("{}/{name}", web.url());
        let time = random.below((DAYS - 30) * DAY);
        let first = newest_before(time, step);
        let header = [
            format!(
                "osmosis_replication_timestamp={}",
                time_text(time_of(first, step))
            ),
            format!("osmosis_replication_base_url={url}"),
            format!("osmosis_replication_sequence_number={first}"),
        ];
        let file = year.path("file.osm.pbf");
        // Some headers have no more than the time.
        let known = if random.below(3) == 0 { 1 } else { 3 };
        year.write(time_of(first, step), &header[..known], &file);
        // From nothing new to 24 steps.
        year.publish(time + random.below(25 * step));
        let end = (first + 1 + random.below(20))
            .min(year.newest(step))
            .to_string();
        let date = time_text(time + random.below(20 * step));
        let limits = match random.below(3) {
            0 => vec![("--end-sequence", "--end-id", end.as_str())],
            1 => vec![("--end-date", "--end-date", date.as_str())],
            _ => vec![],
        };
        let (status, last) = both(&year, &file, &url, &limits);
        println!("{name} {first}: status {status}, {last:?}");
    }
}

#[test]
fn the_exit_status_is_the_same() {
    if !has_peer() {
        return;
    }
    let year = Arc::new(Year::new(20_000));
    year.publish(9 * DAY);
    let file = year.path("file.osm.pbf");
    // The change file with this name is missing.
    let missing = Arc::new(Mutex::new(""));
    let name = missing.clone();
    let decide = move |request: &Request| {
        let is_missing = request
            .path
            .ends_with(&format!("/{}", name.lock().unwrap()));
        is_missing.then(|| Trouble::Status(404, String::new()))
    };
    let web = serve(&year, Box::new(decide));
    let url = format!("{}/day", web.url());
    let fields = |sequence: i64| {
        [
            format!("osmosis_replication_base_url={url}"),
            format!("osmosis_replication_sequence_number={sequence}"),
            format!(
                "osmosis_replication_timestamp={}",
                time_text(sequence * DAY)
            ),
        ]
    };
    year.write(2 * DAY, &fields(2), &file);
    let with_missing = |name| {
        *missing.lock().unwrap() = name;
        both(&year, &file, &url, &[])
    };
    assert_eq!(with_missing("none"), (0, Some(9)));
    assert_eq!(
        with_missing("006.osc.gz"),
        (1, Some(5)),
        "changes before it are applied"
    );
    assert_eq!(
        with_missing("005.state.txt"),
        (0, Some(9)),
        "a state in the middle"
    );
    assert_eq!(
        with_missing("003.osc.gz"),
        (2, Some(2)),
        "nothing can be applied"
    );
    assert_eq!(with_missing("state.txt"), (2, Some(2)));
    let end = [("--end-sequence", "--end-id", "6")];
    *missing.lock().unwrap() = "006.state.txt";
    assert_eq!(both(&year, &file, &url, &end).0, 0);
    year.write(9 * DAY, &fields(9), &file);
    assert_eq!(with_missing("none"), (0, Some(9)), "nothing is new");
}
