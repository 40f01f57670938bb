//! `regions` that are brought forward by the changes of the planet: they are what `extract` gives, and only those are
//! followed whose extracts are known to be of the state before the changes.

use crate::common::extracts::place_of;
use crate::common::oracle::{osmosis, real_file};
use crate::common::random::Random;
use crate::common::regions::{DEGREE, Region};
use crate::common::served::{Route, Served, ServedRegion, report};
use crate::common::{Arg, Kind, Object, decode, is_long, run_ok, stderr};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The facts in the header of a file.
fn header(file: &Path) -> Vec<Value> {
    let facts = run_ok(&[&"inspect", &"--json", &file]);
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    let names = [
        "generator",
        "source",
        "header_bbox",
        "required_features",
        "optional_features",
        "replication_timestamp",
        "replication_sequence",
        "replication_url",
    ];
    names.map(|name| facts[name].clone()).to_vec()
}

/// The text of a change file. Where the runs of equal actions are divided depends on the blobs of the files.
fn text_of(served: &Served, name: &str, sequence: i64) -> Option<String> {
    let mut text = (sequence > 0).then(|| served.text_of_changes(name, sequence))?;
    for action in ["create", "modify", "delete"] {
        text = text.replace(&format!("  </{action}>\n  <{action}>\n"), "");
    }
    Some(text)
}

/// The regions that a run has brought forward by the changes of the planet, and the reasons for which it cut out
/// others.
fn ways_of(report: &Value) -> (usize, Vec<String>) {
    let regions = report["regions"].as_array().unwrap();
    let followed = regions.iter().filter(|region| region["followed"] == true);
    let reasons = regions
        .iter()
        .filter_map(|region| region["cut_out"].as_str());
    (followed.count(), reasons.map(str::to_owned).collect())
}

/// Expects that a region has the same files by another route as cut out of the planet.
fn expect_same(served: &mut Served, route: Route, number: usize, what: &str) {
    served.route = Route::CutOut;
    let region = &served.regions[number];
    let (cut, sequence) = (served.extract(&region.name), served.sequence(&region.name));
    let of_cut = text_of(served, &region.name, sequence);
    served.route = route;
    let region = &served.regions[number];
    let found = served.extract(&region.name);
    let what = format!("{what}, {}, {route:?}", region.name);
    assert!(decode::objects(&cut) == decode::objects(&found), "{what}");
    assert_eq!(header(&cut), header(&found), "{what}");
    assert_eq!(served.sequence(&region.name), sequence, "{what}");
    assert_eq!(of_cut, text_of(served, &region.name, sequence), "{what}");
}

/// Follows a world for some days by all routes. Returns the number of regions that were followed by changes, and of
/// those that were cut out although the changes were known.
fn follow(served: &mut Served, days: i64, checked: usize) -> (usize, usize) {
    let (mut followed, mut cut_out) = (0, 0);
    let url = ["--base-url", "https://example.org/r"];
    for day in 0..=days {
        served.route = Route::CutOut;
        served.run(&url);
        for route in [Route::Update, Route::Changes] {
            served.route = route;
            let report = served.run(&url);
            let (count, reasons) = ways_of(&report);
            (followed, cut_out) = (followed + count, cut_out + reasons.len());
            assert!(day > 0 || count + reasons.len() == 0, "{report}");
            if let Some(reason) = reasons.iter().find(|reason| !reason.contains("25 percent")) {
                panic!("{route:?}, day {day}: {reason}");
            }
            for number in (day as usize % checked..served.regions.len()).step_by(checked) {
                let what = format!("day {day}");
                expect_same(served, route, number, &what);
                let region = &served.regions[number];
                served.check(region, &served.extract(&region.name));
            }
        }
        if day < days {
            served.next_day();
        }
    }
    (followed, cut_out)
}

#[test]
fn regions_that_follow_changes_are_those_that_are_cut_out() {
    let (days, regions, checked) = if is_long() { (30, 40, 1) } else { (3, 24, 3) };
    let mut served = Served::new(41, 400, regions);
    served.changes_of_day = 25;
    let (followed, cut_out) = follow(&mut served, days, checked);
    assert!(followed > cut_out && cut_out > 0, "{followed} {cut_out}");
    if !is_long() {
        return;
    }
    for seed in 42..46 {
        let mut served = Served::new(seed, 140, 40);
        served.changes_of_day = 1 + seed as usize % 4 * 9;
        follow(&mut served, 30, 1);
    }
}

#[test]
fn the_towns_of_andorra_follow_its_changes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let extracts = ["simple", "complete-ways", "smart", "smart"]
        .into_iter()
        .zip([
            "1.50,42.50,1.54,42.52",
            "1.57,42.53,1.60,42.56",
            "1.46,42.45,1.53,42.52",
            "1.4,42.4,1.8,42.7",
        ])
        .enumerate()
        .map(|(number, (strategy, edges))| {
            format!(r#"{{"output":"{number}.osm.pbf","bbox":[{edges}],"strategy":"{strategy}"}}"#)
        });
    let extracts: Vec<String> = extracts.collect();
    let config = at("c.json");
    fs::write(
        &config,
        format!(r#"{{"extracts":[{}]}}"#, extracts.join(",")),
    )
    .unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|letter| real_file(&format!("andorra-{letter}.osm.pbf")));
    let own = at("own.osm.pbf");
    fs::copy(&a, &own).unwrap();
    let run = |planet: &Path, server: &str, changes: Option<&PathBuf>| {
        let server = at(server);
        let mut args: Vec<Arg> = vec![&"regions", &"--json", &planet, &"-c", &config];
        args.extend([&"-d" as Arg, &server, &"--max-shrink", &"100"]);
        args.extend(changes.iter().flat_map(|path| [&"--changes" as Arg, *path]));
        report(&run_ok(&args))
    };
    run(&a, "cut", None);
    run(&own, "followed", None);
    let steps = [[&a, &b], [&b, &c]];
    let steps = if is_long() { &steps[..] } else { &steps[..1] };
    for (day, &[old, new]) in steps.iter().enumerate() {
        let changes = at(&format!("{day}.osc.gz"));
        run_ok(&[&"derive-changes", &"-q", old, new, &"-o", &changes]);
        let times = header(new);
        let time = times[5].as_str().unwrap().replace(':', "\\:");
        let sequence = header(&own)[6].as_i64().unwrap() + 1;
        let state = format!("sequenceNumber={sequence}\ntimestamp={time}\n");
        fs::write(at(&format!("{day}.state.txt")), state).unwrap();
        run(new, "cut", None);
        let report = run(&own, "followed", Some(&changes));
        let (followed, reasons) = ways_of(&report);
        assert!(followed > 0, "{reasons:?}");
        for number in 0..4 {
            let [cut, followed] =
                ["cut", "followed"].map(|server| at(&format!("{server}/{number}.osm.pbf")));
            assert!(
                decode::objects(&cut) == decode::objects(&followed),
                "{number}"
            );
            assert_eq!(header(&cut), header(&followed));
        }
    }
}

#[test]
fn osmosis_applies_the_changes_of_a_region() {
    if !osmosis() {
        return;
    }
    let mut served = Served::new(47, 300, 4);
    served.changes_of_day = 12;
    served.route = Route::Update;
    served.run(&[]);
    let region = &served.regions[0].name.clone();
    let copy = served.path("copy.osm.pbf");
    fs::copy(served.extract(region), &copy).unwrap();
    served.next_day();
    assert!(ways_of(&served.run(&[])).0 > 0);
    let new = served.path("new.osm.pbf");
    let output = Command::new("osmosis")
        .args(["-q", "--read-xml-change", "compressionMethod=gzip"])
        .arg(format!("file={}", served.changes(region, 1).display()))
        .arg("--read-pbf")
        .arg(&copy)
        .args(["--apply-change", "--write-pbf"])
        .arg(&new)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    run_ok(&[&"diff", &"-q", &new, &served.extract(region)]);
}

/// A server of six regions after its first day, and of a second one by a route.
fn two_days(seed: u64, route: Route) -> Served {
    let mut served = Served::new(seed, 400, 6);
    served.changes_of_day = 12;
    served.route = route;
    served.run(&[]);
    served.next_day();
    assert!(ways_of(&served.run(&[])).0 > 2);
    served.next_day();
    served
}

/// Runs the command and expects that the regions are right, and that those in `cut_out` were cut out for a reason.
fn expect_reason(served: &Served, cut_out: &[usize], reason: &str) {
    let report = served.run(&[]);
    for (number, region) in served.regions.iter().enumerate() {
        served.check(region, &served.extract(&region.name));
        let found = report["regions"][number]["cut_out"].as_str();
        let has_reason = found.is_some_and(|found| found.contains(reason));
        assert_eq!(has_reason, cut_out.contains(&number), "{number}: {found:?}");
    }
}

const ALL: [usize; 6] = [0, 1, 2, 3, 4, 5];
const OTHER_STATE: &str = "not of the state of the planet before the changes";

#[test]
fn a_planet_that_changed_otherwise_has_its_regions_cut_out() {
    for (seed, route) in [(51, Route::Update), (52, Route::Changes)] {
        let mut served = two_days(seed, route);
        // The planet of the day, which another program made.
        fs::copy(served.planet(), served.own_planet()).unwrap();
        served.next_day();
        expect_reason(&served, &ALL, OTHER_STATE);
        served.next_day();
        assert!(ways_of(&served.run(&[])).0 > 2);
    }
}

#[test]
fn a_planet_that_was_edited_without_a_trace_in_its_header_has_its_regions_cut_out() {
    let mut served = two_days(53, Route::Changes);
    let (own, edited) = (served.own_planet(), served.path("edited.osm.pbf"));
    let tag = "edited=yes";
    run_ok(&[&"tags-edit", &"-q", &own, &"--set", &tag, &"-o", &edited]);
    fs::rename(&edited, &own).unwrap();
    served.next_day();
    let report = served.run(&[]);
    let (followed, reasons) = ways_of(&report);
    assert_eq!(followed, 0, "{report}");
    assert!(
        reasons.iter().all(|reason| reason.contains(OTHER_STATE)),
        "{reasons:?}"
    );
}

#[test]
fn regions_that_are_new_or_changed_are_cut_out() {
    let mut served = two_days(54, Route::Update);
    let [west, south, east, north] = [175, 1, 178, 7].map(|degrees| degrees * DEGREE);
    served.regions[1].region = Region::boxed(west, south, east, north);
    let first = &served.regions[0];
    let new = ServedRegion {
        name: "new".to_owned(),
        region: first.region.clone(),
        strategy: first.strategy,
    };
    served.regions.push(new);
    served.write();
    expect_reason(&served, &[1], "of another area or strategy");
}

#[test]
fn without_an_index_the_regions_are_cut_out() {
    let served = two_days(55, Route::Update);
    fs::remove_file(served.server().join("index.json")).unwrap();
    expect_reason(&served, &ALL, "the index does not have the state");
}

#[test]
fn change_files_that_do_not_concern_the_planet_do_no_harm() {
    let mut served = two_days(56, Route::Changes);
    // The changes of the day before once more, and those of this day.
    let before = served.path("changes/000/000/001.osc.gz");
    let report = served.run(&["--changes", before.to_str().unwrap()]);
    assert!(ways_of(&report).0 > 2, "{report}");
    for region in &served.regions {
        served.check(region, &served.extract(&region.name));
    }
    // The same once more: nothing changes, also if there is no newer change.
    let report = served.run(&["--changes", before.to_str().unwrap()]);
    for region in report["regions"].as_array().unwrap() {
        assert_ne!(region["outcome"], "failed", "{report}");
    }
    served.next_day();
    served.run(&[]);
    for region in &served.regions {
        served.check(region, &served.extract(&region.name));
    }
}

#[test]
fn an_extract_that_was_replaced_is_cut_out() {
    let served = two_days(57, Route::Update);
    let (file, longer) = (served.extract("r1"), served.path("longer.osm.pbf"));
    let format = "pbf,pbf_compression=none";
    run_ok(&[&"cat", &"-q", &file, &"-o", &longer, &"-f", &format]);
    fs::rename(&longer, &file).unwrap();
    expect_reason(&served, &[1], "the extract was replaced");
}

#[test]
fn a_damaged_extract_does_not_stop_the_other_regions() {
    let served = two_days(58, Route::Update);
    let file = served.extract("r1");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40].fill(0xff);
    fs::write(&file, bytes).unwrap();
    let output = served.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report = report(&output);
    for (number, region) in served.regions.iter().enumerate() {
        let outcome = &report["regions"][number]["outcome"];
        if number == 1 {
            assert_eq!(outcome, "failed", "{report}");
        } else {
            assert_eq!(outcome, "updated", "{report}");
            served.check(region, &served.extract(&region.name));
        }
    }
}

/// Gives many tags to some of the nodes in a region, and to up to ten times as many that are not in its extract.
/// Returns the ids of those in the region.
fn fill(served: &mut Served, region: usize) -> Vec<i64> {
    let mut random = Random(61);
    let ServedRegion { name, region, .. } = &served.regions[region];
    let extracted = decode::objects(&served.extract(name));
    let is_extracted = |id| {
        extracted
            .iter()
            .any(|object| object.kind == Kind::Node && object.id == id)
    };
    let (mut inside, mut outside) = (Vec::new(), 0);
    for object in &mut served.objects {
        let Some(place) = place_of(object) else {
            continue;
        };
        let is_inside = region.holds(place);
        if is_inside && inside.len() == 5 || !is_inside && outside == 50 {
            continue;
        }
        if !is_inside && is_extracted(object.id) {
            continue;
        }
        let value = |_| format!("{:016x}", random.bits(60));
        object.tags = (0..400)
            .map(value)
            .map(|value| (value.clone(), value))
            .collect();
        object.version = object.version.map(|version| version + 1);
        if is_inside {
            inside.push(object.id);
        } else {
            outside += 1;
        }
    }
    assert!(inside.len() == 5 && outside >= 30, "{outside}");
    inside
}

// The region is cut out of the planet: blocks that are edited keep unused strings, so that a region that follows can
// stay as large.
#[test]
fn a_region_that_shrinks_is_withheld_and_goes_on_later() {
    let mut served = Served::new(59, 400, 4);
    served.run(&[]);
    let filled = fill(&mut served, 1);
    served.end_day();
    served.run(&[]);
    let is_filled = |object: &Object| object.kind == Kind::Node && filled.contains(&object.id);
    served.objects.retain(|object| !is_filled(object));
    served.end_day();
    let output = served.command(&["--max-shrink", "20"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = report(&output);
    assert_eq!(found["regions"][0]["outcome"], "updated", "{found}");
    assert_eq!(found["regions"][1]["outcome"], "withheld", "{found}");
    assert_eq!(served.sequence("r1"), 1);
    served.changes_of_day = 5;
    served.next_day();
    served.run(&[]);
    for region in &served.regions {
        served.check(region, &served.extract(&region.name));
    }
}
