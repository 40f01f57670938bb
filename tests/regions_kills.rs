//! `regions`: a kill at any moment leaves each region as before or after the run, and the next run goes on.

use crate::common::kills::{end_after, killed_at, kills, moment, time_of};
use crate::common::served::{Route, Served};
use crate::common::{decode, is_long, run_ok};
use pbfhogg::unstable::replication::State;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A server of a few regions on two days, and the files of both days.
struct TwoDays {
    served: Served,
    /// The directory on the first day.
    before: PathBuf,
    /// The planet on the first day.
    planet_before: PathBuf,
}

fn copy_tree(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

impl TwoDays {
    fn new(seed: u64, route: Route) -> Self {
        let mut served = Served::new(seed, 140, 6);
        if route != Route::CutOut {
            served.changes_of_day = 10;
        }
        served.route = route;
        served.run(&[]);
        served.next_day();
        served.run(&[]);
        let before = served.path("before");
        copy_tree(&served.server(), &before);
        let planet_before = served.path("planet-before.osm.pbf");
        fs::copy(served.own_planet(), &planet_before).unwrap();
        served.next_day();
        Self {
            served,
            before,
            planet_before,
        }
    }

    /// Makes the directory that of the first day again, but for files that others have created.
    fn reset(&self) {
        copy_tree(&self.before, &self.served.server());
        if self.served.route != Route::CutOut {
            fs::copy(&self.planet_before, self.served.own_planet()).unwrap();
        }
    }

    /// Checks that a server is one that clients can use, and that the next run makes it right.
    fn check(&self, what: &str) {
        let served = &self.served;
        let mut copies = BTreeMap::new();
        for region in &served.regions {
            let name = &region.name;
            let sequence = served.sequence(name);
            assert!((1..=2).contains(&sequence), "{what}: {name} has {sequence}");
            let updates = served.server().join(format!("{name}-updates"));
            let state = updates.join(format!("000/000/{sequence:03}.state.txt"));
            let state = fs::read_to_string(state).unwrap();
            assert_eq!(State::parse(&state).unwrap().sequence, sequence, "{what}");
            run_ok(&[
                &"cat",
                &"-q",
                &served.changes(name, sequence),
                &"-f",
                &"opl",
                &"-o",
                &"/dev/null",
            ]);
            // The extract is whole, and it is at most one step ahead of the state.
            let extract = served.extract(name);
            let facts = run_ok(&[&"inspect", &"--json", &extract]);
            let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
            let of_extract = facts["replication_sequence"].as_i64().unwrap();
            assert!(
                of_extract == sequence || of_extract == sequence + 1,
                "{what}: {name}"
            );
            if of_extract == 2 {
                served.check(region, &extract);
            } else {
                let old = self.before.join(format!("{name}.osm.pbf"));
                assert!(
                    decode::objects(&old) == decode::objects(&extract),
                    "{what}: {name}"
                );
            }
            let copy = served.path(&format!("copy-{}.osm.pbf", name.replace('/', "-")));
            fs::copy(&extract, &copy).unwrap();
            copies.insert(name, copy);
        }
        served.run(&[]);
        for region in &served.regions {
            assert_eq!(served.sequence(&region.name), 2, "{what}");
            served.check(region, &served.extract(&region.name));
            let copy = &copies[&region.name];
            served.catch_up(&region.name, copy, false);
            served.check(region, copy);
        }
        // Nothing that a killed run has begun stays.
        assert!(!served.server().join(".pbfhogg-regions").exists(), "{what}");
    }
}

#[test]
fn a_kill_at_any_time_leaves_each_region_as_before_or_after() {
    for (seed, route) in [(31, Route::CutOut), (34, Route::Update)] {
        kill_at_any_time(&TwoDays::new(seed, route));
    }
}

fn kill_at_any_time(days: &TwoDays) {
    let takes = time_of(&mut days.served.command(&[]));
    for number in 0..if is_long() { 100 } else { kills() / 2 } {
        days.reset();
        let signal = if number % 3 == 2 {
            Signal::TERM
        } else {
            Signal::KILL
        };
        let mut command = days.served.command(&[]);
        end_after(&mut command, moment(number, takes), signal);
        days.check(&format!("kill {number}"));
    }
}

#[test]
fn a_kill_at_each_call_that_gives_a_name_leaves_each_region_as_before_or_after() {
    for (seed, route) in [(32, Route::CutOut), (35, Route::Update)] {
        kill_at_each_name(&TwoDays::new(seed, route));
    }
}

fn kill_at_each_name(days: &TwoDays) {
    for call in ["rename", "linkat"] {
        let mut nth = 1;
        loop {
            days.reset();
            match killed_at(call, nth, &days.served.command(&[])) {
                None => return,
                Some(false) => break,
                Some(true) => days.check(&format!("{call} {nth}")),
            }
            nth += if is_long() { 1 } else { 29 };
        }
        assert!(nth > 1, "{call} is never called");
    }
}

#[test]
fn a_kill_in_the_first_run_is_made_good_by_the_next() {
    let served = Served::new(33, 140, 4);
    let takes = time_of(&mut served.command(&[]));
    for number in 0..kills() {
        fs::remove_dir_all(served.server()).unwrap();
        let mut command = served.command(&[]);
        end_after(&mut command, moment(number, takes), Signal::KILL);
        served.run(&[]);
        for region in &served.regions {
            assert_eq!(served.sequence(&region.name), 0);
            served.check(region, &served.extract(&region.name));
        }
    }
}
