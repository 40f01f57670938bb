//! `regions` as a server: clients that follow over HTTP, poll while it publishes, or come back after some days.

use crate::common::oracle::{available, runs};
use crate::common::publisher::update_from;
use crate::common::served::{Route, Served};
use crate::common::web::{Web, directory};
use crate::common::{is_long, run_ok, stderr};
use pbfhogg::unstable::replication::State;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

fn days() -> i64 {
    if is_long() { 30 } else { 3 }
}

/// A program of pyosmium; `None` if it cannot be installed.
fn peer(name: &str) -> Option<Command> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/readers")
        .join(name);
    let command = || Command::new(&path);
    let is_there = runs(command().arg("--version"));
    available(is_there, "pyosmium cannot be installed").then(command)
}

fn replication(file: &Path) -> (i64, String, String) {
    let facts = run_ok(&[&"inspect", &"--json", &file]);
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    let text = |key: &str| facts[key].as_str().unwrap().to_owned();
    let sequence = facts["replication_sequence"].as_i64().unwrap();
    (
        sequence,
        text("replication_timestamp"),
        text("replication_url"),
    )
}

/// The extracts of the first day, copied for a client, and the regions some days later.
fn followed(seed: u64, route: Route, clients: &[&str]) -> (Served, Web, Vec<Vec<PathBuf>>) {
    let mut served = Served::new(seed, 140, if is_long() { 40 } else { 6 });
    if route != Route::CutOut {
        served.changes_of_day = 10;
    }
    served.route = route;
    fs::create_dir(served.server()).unwrap();
    let web = Web::new(directory(served.server()), Box::new(|_| None));
    let url = web.url();
    served.run(&["--base-url", &url]);
    let copy = |client: &&str| {
        let regions = served.regions.iter().enumerate();
        let copied = regions.map(|(number, region)| {
            let copy = served.path(&format!("{client}{number}.osm.pbf"));
            fs::copy(served.extract(&region.name), &copy).unwrap();
            copy
        });
        copied.collect::<Vec<PathBuf>>()
    };
    let copies = clients.iter().map(copy).collect();
    for _ in 0..days() {
        served.next_day();
        served.run(&["--base-url", &url]);
    }
    (served, web, copies)
}

#[test]
fn update_follows_the_server_that_the_header_names() {
    for route in [Route::CutOut, Route::Update] {
        let (served, web, copies) = followed(21, route, &["copy"]);
        for (region, copy) in served.regions.iter().zip(&copies[0]) {
            let url = format!("{}/{}-updates", web.url(), region.name);
            assert_eq!(replication(copy).2, url);
            let mut update = update_from(&url, copy);
            let output = update.output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            served.check(region, copy);
            assert_eq!(replication(copy), (days(), served.time(), url));
        }
    }
}

#[test]
fn pyosmium_follows_the_server_each_day() {
    let Some(program) = peer("pyosmium-up-to-date") else {
        return;
    };
    let (served, _web, copies) = followed(22, Route::Update, &["copy"]);
    for (region, copy) in served.regions.iter().zip(&copies[0]).take(4) {
        for day in 1..=days() {
            let output = Command::new(program.get_program())
                .args(["--force-update-of-old-planet", "--end-id", &day.to_string()])
                .arg(copy)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
        }
        served.check(region, copy);
        assert_eq!(replication(copy).0, days());
    }
}

#[test]
fn pyosmium_fetches_the_changes_of_some_days() {
    let Some(program) = peer("pyosmium-get-changes") else {
        return;
    };
    let (served, web, copies) = followed(23, Route::Changes, &["copy"]);
    let changes = served.path("changes.osc.gz");
    for (region, copy) in served.regions.iter().zip(&copies[0]).take(3) {
        let url = format!("{}/{}-updates", web.url(), region.name);
        for day in 0..days() {
            let _ = fs::remove_file(&changes);
            let mut program = Command::new(program.get_program());
            program.args(["--server", &url, "-I", &day.to_string(), "--end-id"]);
            program.arg((day + 1).to_string()).arg("-o").arg(&changes);
            let output = program.output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            run_ok(&[&"apply-changes", &"-q", &"--in-place", copy, &changes]);
        }
        served.check(region, copy);
    }
}

#[test]
fn a_client_that_polls_while_regions_are_published_finds_all_that_a_state_names() {
    for route in [Route::CutOut, Route::Update] {
        poll(route);
    }
}

fn poll(route: Route) {
    let mut served = Served::new(24, 140, 8);
    if route != Route::CutOut {
        served.changes_of_day = 10;
    }
    served.route = route;
    served.run(&[]);
    let (is_done, rounds) = (AtomicBool::new(false), std::sync::atomic::AtomicU64::new(0));
    let server = served.server();
    let names: Vec<String> = served
        .regions
        .iter()
        .map(|region| region.name.clone())
        .collect();
    let poll = || {
        while !is_done.load(Ordering::Relaxed) {
            for name in &names {
                let updates = server.join(format!("{name}-updates"));
                let read = |path: PathBuf| fs::read_to_string(path).unwrap();
                let state = State::parse(&read(updates.join("state.txt"))).unwrap();
                let of =
                    |suffix: &str| updates.join(format!("000/000/{:03}.{suffix}", state.sequence));
                assert_eq!(State::parse(&read(of("state.txt"))), Some(state));
                if state.sequence > 0 {
                    run_ok(&[
                        &"cat",
                        &"-q",
                        &of("osc.gz"),
                        &"-f",
                        &"opl",
                        &"-o",
                        &"/dev/null",
                    ]);
                }
                let (sequence, ..) = extract_state(&server.join(format!("{name}.osm.pbf")));
                assert!(sequence >= state.sequence, "{name}: {sequence} {state:?}");
            }
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let poller = scope.spawn(poll);
        for _ in 0..days() {
            served.next_day();
            served.run(&[]);
        }
        is_done.store(true, Ordering::Relaxed);
        poller.join().unwrap();
    });
    assert!(rounds.into_inner() > 0);
}

fn extract_state(file: &Path) -> (i64, String) {
    let facts = run_ok(&[&"inspect", &"--json", &file]);
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    let time = facts["replication_timestamp"].as_str().unwrap().to_owned();
    (facts["replication_sequence"].as_i64().unwrap(), time)
}

#[test]
fn one_command_updates_the_planet_and_its_regions() {
    let publisher = crate::common::publisher::Publisher::new();
    let planet = publisher.copy("planet.osm.pbf");
    let config = publisher.path("regions.json");
    fs::write(
        &config,
        r#"{"extracts":[{"output":"all.osm.pbf","bbox":[-180,-90,180,90]}]}"#,
    )
    .unwrap();
    let regions = publisher.path("regions");
    for day in [4, 7] {
        publisher.publish(day);
        run_ok(&[
            &"regions",
            &"-q",
            &"--update",
            &planet,
            &"--server",
            &publisher.server(),
            &"--max-age",
            &"9999",
            &"--first-pause",
            &"1",
            &"-c",
            &config,
            &"-d",
            &regions,
        ]);
        assert_eq!(publisher.day_of(&planet), day);
        run_ok(&[&"diff", &"-q", &planet, &regions.join("all.osm.pbf")]);
    }
    assert!(regions.join("all-updates/000/000/001.osc.gz").exists());
}
