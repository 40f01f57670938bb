//! `regions`: extracts that follow the planet from day to day, and change files that lead from each to the next.

use crate::common::decode;
use crate::common::extracts::place_of;
use crate::common::is_long;
use crate::common::oracle::osmium;
use crate::common::served::{Served, report, run_with_status};
use crate::common::{Arg, Object, run_ok, stderr};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn days() -> i64 {
    if is_long() { 30 } else { 4 }
}

/// Copies the extracts of some regions. Returns the copies with the indices of the regions.
fn copies(served: &Served, name: &str, step: usize) -> Vec<(usize, PathBuf)> {
    let chosen = served.regions.iter().enumerate().step_by(step);
    let copied = chosen.map(|(number, region)| {
        let copy = served.path(&format!("{name}{number}.osm.pbf"));
        fs::copy(served.extract(&region.name), &copy).unwrap();
        (number, copy)
    });
    copied.collect()
}

#[test]
fn each_extract_has_the_objects_of_the_plain_search_on_each_day() {
    let mut served = Served::new(1, 140, 40);
    for day in 0..days() {
        let report = served.run(&[]);
        let wanted = if day == 0 { "created" } else { "updated" };
        for (number, region) in served.regions.iter().enumerate() {
            served.check(region, &served.extract(&region.name));
            let found = &report["regions"][number];
            assert_eq!(found["outcome"], wanted, "{found}");
            assert_eq!(found["sequence"], day, "{found}");
            assert_eq!(served.sequence(&region.name), day);
            if day > 0 {
                let changes = ["created", "modified", "deleted"]
                    .map(|action| found["changes"][action].as_u64().unwrap());
                assert_eq!(changes, served.actions(&region.name, day), "{found}");
            }
        }
        served.next_day();
    }
}

#[test]
fn an_extract_is_the_file_that_extract_makes_with_its_header() {
    let mut served = Served::new(2, 140, 14);
    let url = "https://example.org/regions/";
    served.run(&["--base-url", url]);
    served.next_day();
    served.run(&["--base-url", url]);
    let alone = served.path("alone.osm.pbf");
    for region in &served.regions {
        let file = region.region.geojson_file(&served.path(""), "region");
        let header = [
            format!("osmosis_replication_timestamp={}", served.time()),
            "osmosis_replication_sequence_number=1".to_owned(),
            format!("osmosis_replication_base_url={url}{}-updates", region.name),
        ];
        let strategy = region.strategy.args();
        let planet = served.planet();
        let mut args: Vec<Arg> = vec![
            &"extract", &"-q", &planet, &"-p", &file, &"-O", &"-o", &alone,
        ];
        for option in &header {
            args.extend([&"--output-header" as Arg, option]);
        }
        args.extend(strategy.iter().map(|arg| arg as Arg));
        run_ok(&args);
        let [alone, among] =
            [&alone, &served.extract(&region.name)].map(|path| fs::read(path).unwrap());
        assert!(
            alone == among,
            "{}: {} and {} bytes",
            region.name,
            alone.len(),
            among.len()
        );
    }
}

#[test]
fn change_files_lead_from_each_extract_to_the_next() {
    let mut served = Served::new(3, 140, 40);
    served.run(&[]);
    let daily = copies(&served, "daily", if is_long() { 1 } else { 7 });
    let late = copies(&served, "late", if is_long() { 1 } else { 5 });
    let of_osmium = copies(&served, "osmium", if is_long() { 1 } else { 6 });
    for _ in 0..days() {
        served.next_day();
        served.run(&[]);
        for (number, copy) in &daily {
            let region = &served.regions[*number];
            served.catch_up(&region.name, copy, false);
            served.check(region, copy);
        }
    }
    for (number, copy) in &late {
        // All change files in one step, as a client that missed some days applies them.
        let region = &served.regions[*number];
        let changes: Vec<PathBuf> = (1..=days())
            .map(|day| served.changes(&region.name, day))
            .collect();
        let mut args: Vec<Arg> = vec![&"apply-changes", &"-q", &"--in-place", copy];
        args.extend(changes.iter().map(|path| path as Arg));
        run_ok(&args);
        served.check(region, copy);
    }
    if osmium() {
        for (number, copy) in &of_osmium {
            let region = &served.regions[*number];
            served.catch_up(&region.name, copy, true);
            served.check(region, copy);
        }
    }
}

#[test]
fn regions_that_have_the_data_of_the_planet_are_left_alone() {
    let mut served = Served::new(4, 60, 6);
    served.run(&[]);
    let modified = |path: &Path| path.metadata().unwrap().modified().unwrap();
    let before = modified(&served.extract("r0"));
    let again = served.run(&[]);
    assert_eq!(again["regions"][0]["outcome"], "unchanged");
    assert_eq!(again["passes"], 0);
    // Without the index, the regions are cut out and compared, and stay.
    fs::remove_file(served.server().join("index.json")).unwrap();
    let compared = served.run(&[]);
    assert_eq!(compared["regions"][0]["outcome"], "unchanged");
    assert_ne!(compared["passes"], 0);
    assert_eq!(modified(&served.extract("r0")), before);
    // Another strategy gives other objects at the same time.
    served.regions[0].strategy = crate::common::extracts::Strategy::NoRelations;
    served.regions[0].region = served.regions[1].region.clone();
    served.write();
    let changed = served.run(&[]);
    assert_eq!(changed["regions"][0]["outcome"], "updated", "{changed}");
    assert_eq!(changed["regions"][1]["outcome"], "unchanged");
    let region = &served.regions[0];
    served.check(region, &served.extract(&region.name));
}

#[test]
fn a_planet_that_is_older_than_a_region_changes_nothing() {
    let mut served = Served::new(5, 60, 3);
    let older = served.path("older.osm.pbf");
    fs::copy(served.planet(), &older).unwrap();
    served.next_day();
    served.run(&[]);
    fs::copy(&older, served.planet()).unwrap();
    let output = served.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report = report(&output);
    assert_eq!(report["regions"][0]["outcome"], "failed");
    let cause = report["regions"][0]["cause"].as_str().unwrap();
    assert!(cause.contains("the planet is older"), "{cause}");
    served.check(&served.regions[0], &served.extract("r0"));
}

#[test]
fn a_planet_without_a_time_is_an_error() {
    let served = Served::new(6, 60, 2);
    let planet = served.planet();
    run_ok(&[
        &"cat",
        &"-q",
        &planet,
        &"-O",
        &"-o",
        &planet,
        &"--output-header",
        &"osmosis_replication_timestamp=",
    ]);
    let output = served.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("does not say up to which time"),
        "{}",
        stderr(&output)
    );
    assert!(!served.server().exists());
}

/// Removes half of the nodes of the planet. Returns all objects.
fn halve(served: &mut Served) -> Vec<Object> {
    let all = served.objects.clone();
    // The nodes in the east of the antimeridian are gone.
    let stays = |object: &Object| place_of(object).is_none_or(|(lon, _)| lon > 0);
    served.objects.retain(stays);
    served.end_day();
    all
}

#[test]
fn an_extract_that_shrinks_is_withheld_and_the_others_are_published() {
    let mut served = Served::new(7, 300, 5);
    served.run(&[]);
    let all = halve(&mut served);
    let shrink = |served: &Served, percent: &str| {
        let mut command = served.command(&["--max-shrink", percent]);
        command.output().unwrap()
    };
    let output = shrink(&served, "60");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = report(&output);
    let outcomes = |found: &Value| {
        let regions = found["regions"].as_array().unwrap().iter();
        let outcomes = regions.map(|region| region["outcome"].as_str().unwrap().to_owned());
        outcomes.collect::<Vec<_>>()
    };
    let found = outcomes(&found);
    assert!(found.contains(&"withheld".to_owned()), "{found:?}");
    assert!(found.contains(&"updated".to_owned()), "{found:?}");
    for (region, outcome) in served.regions.iter().zip(&found) {
        let sequence = served.sequence(&region.name);
        assert_eq!(sequence, i64::from(outcome == "updated"), "{}", region.name);
        if outcome == "withheld" {
            let message = stderr(&output);
            assert!(
                message.contains(&format!("{}: not published", region.name)),
                "{message}"
            );
        }
    }
    // A planet that is whole again goes on where each region stands.
    served.objects = all;
    served.end_day();
    let output = shrink(&served, "60");
    assert!(output.status.success(), "{}", stderr(&output));
    for region in &served.regions {
        served.check(region, &served.extract(&region.name));
    }
}

#[test]
fn a_region_whose_extract_is_gone_fails_and_the_others_go_on() {
    let mut served = Served::new(8, 60, 4);
    served.run(&[]);
    fs::remove_file(served.extract("r1")).unwrap();
    served.next_day();
    let output = served.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = report(&output);
    assert_eq!(found["regions"][1]["outcome"], "failed", "{found}");
    assert_eq!(found["regions"][0]["outcome"], "updated", "{found}");
    // As the message says.
    fs::remove_dir_all(served.server().join("r1-updates")).unwrap();
    let found = served.run(&[]);
    assert_eq!(found["regions"][1]["outcome"], "created", "{found}");
    // A file of somebody else is not replaced.
    fs::remove_dir_all(served.server().join("r1-updates")).unwrap();
    fs::copy(served.planet(), served.extract("r1")).unwrap();
    let output = served.command(&[]).output().unwrap();
    assert_eq!(report(&output)["regions"][1]["outcome"], "failed");
    assert_eq!(
        fs::read(served.planet()).unwrap(),
        fs::read(served.extract("r1")).unwrap()
    );
}

#[test]
fn two_runs_exclude_each_other() {
    let served = Served::new(9, 60, 2);
    served.run(&[]);
    let directory = fs::File::open(served.server()).unwrap();
    directory.try_lock().unwrap();
    let output = served.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

#[test]
fn old_change_files_are_removed_and_the_others_still_lead_on() {
    let mut served = Served::new(10, 60, 3);
    served.run(&[]);
    let mut copy = Vec::new();
    for day in 1..=6 {
        served.next_day();
        let found = served.run(&["--keep", "2"]);
        // Day 0, and from then on one a day, for each region.
        assert_eq!(found["removed"], if day < 3 { 0 } else { 3 }, "{found}");
        if day == 4 {
            copy = copies(&served, "kept", 1);
        }
    }
    for sequence in 1..=6 {
        assert_eq!(
            served.changes("r0", sequence).exists(),
            sequence >= 4,
            "{sequence}"
        );
    }
    for (number, copy) in copy {
        let region = &served.regions[number];
        served.catch_up(&region.name, &copy, false);
        served.check(region, &copy);
    }
}

#[test]
fn with_diffs_only_the_extracts_are_hidden() {
    let mut served = Served::new(11, 60, 3);
    served.run(&[]);
    let copy = copies(&served, "copy", 1);
    fs::create_dir_all(served.server().join(".extracts/deep")).unwrap();
    for region in &served.regions {
        let hidden = served
            .server()
            .join(format!(".extracts/{}.osm.pbf", region.name));
        fs::rename(served.extract(&region.name), hidden).unwrap();
    }
    served.next_day();
    served.run(&["--diffs-only"]);
    for (number, copy) in copy {
        let region = &served.regions[number];
        assert!(!served.extract(&region.name).exists());
        served.catch_up(&region.name, &copy, false);
        served.check(region, &copy);
    }
}

#[test]
fn the_index_lists_what_is_there() {
    let mut served = Served::new(12, 60, 4);
    served.run(&[]);
    served.next_day();
    served.run(&[]);
    let text = fs::read_to_string(served.server().join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(index["timestamp"], served.time());
    for (number, region) in served.regions.iter().enumerate() {
        let listed = &index["regions"][number];
        let file = served.extract(&region.name);
        assert_eq!(listed["bytes"], file.metadata().unwrap().len());
        assert_eq!(listed["sequence"], 1);
        assert_eq!(listed["timestamp"], served.time());
        assert_eq!(listed["file"], format!("{}.osm.pbf", region.name));
        for name in ["poly", "updates"] {
            let path = served.server().join(listed[name].as_str().unwrap());
            assert!(path.exists(), "{}", path.display());
        }
        let sum = std::process::Command::new("sha256sum").arg(&file).output();
        if let Ok(sum) = sum {
            let sum = String::from_utf8(sum.stdout).unwrap();
            assert!(sum.starts_with(listed["sha256"].as_str().unwrap()), "{sum}");
        }
    }
    let page = fs::read_to_string(served.server().join("index.html")).unwrap();
    assert!(page.contains(&served.regions[2].name));
}

#[test]
fn the_polygon_of_a_region_is_the_region() {
    let served = Served::new(13, 140, 12);
    served.run(&[]);
    let again = served.path("again.osm.pbf");
    for region in &served.regions {
        let poly = served.server().join(format!("{}.poly", region.name));
        let strategy = region.strategy.args();
        let planet = served.planet();
        let mut args: Vec<Arg> = vec![
            &"extract", &"-q", &planet, &"-p", &poly, &"-O", &"-o", &again,
        ];
        args.extend(strategy.iter().map(|arg| arg as Arg));
        run_ok(&args);
        let found = decode::objects(&again);
        assert!(
            found == decode::objects(&served.extract(&region.name)),
            "{}",
            region.name
        );
    }
}

#[test]
fn names_that_would_mix_files_are_refused() {
    let served = Served::new(14, 20, 1);
    let planet = served.planet();
    for name in ["../a", "/a", ".a", "a/.b", "a-updates/b", "", "a/"] {
        let text =
            format!("{{\"extracts\":[{{\"output\":\"{name}.osm.pbf\",\"bbox\":[1,1,2,2]}}]}}");
        fs::write(served.path("bad.json"), text).unwrap();
        let (config, server) = (served.path("bad.json"), served.server());
        let message = run_with_status(2, &[&"regions", &planet, &"-c", &config, &"-d", &server]);
        assert!(message.contains("name"), "{name}: {message}");
        assert!(!served.server().exists());
    }
}
