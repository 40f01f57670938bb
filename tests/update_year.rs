//! `update` of files from a server of a year of changes in three steps: whatever happens, a file has the data of a state.

use crate::common::kills::names;
use crate::common::publisher::update_from;
use crate::common::random::Random;
use crate::common::web::{Decide, Trouble, Web};
use crate::common::year::{DAY, DAYS, HOUR, MINUTE, Year, newest_before, time_of, time_text};
use crate::common::{Kind, Object, decode, is_long, run_ok};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

/// A random trouble; none for most numbers of a `count`.
fn random_trouble(random: &mut Random, count: i64) -> Option<Trouble> {
    let len = random.below(1000) as usize;
    Some(match random.below(count) {
        0 => Trouble::Status(500, String::new()),
        1 => Trouble::Status(404, String::new()),
        2 => Trouble::Status(403, String::new()),
        3 => Trouble::Status(429, "Retry-After: 0\r\n".into()),
        4 => Trouble::Cut(len),
        5 => Trouble::Short(len),
        6 => Trouble::Close,
        7 => Trouble::Whole,
        8 => Trouble::Instead(b"<html>".to_vec()),
        9 => Trouble::Instead(vec![0x1f, 0x8b, 8, 0]),
        10 => Trouble::Stall(len, Duration::from_millis(30)),
        _ => return None,
    })
}

fn serve(year: &Arc<Year>, decide: Decide) -> Web {
    let files = year.clone();
    Web::new(Arc::new(move |path| files.file(path)), decide)
}

/// The fields of a header that stand for a minute.
fn header(server: &Web, minute: i64) -> Vec<String> {
    vec![
        format!("osmosis_replication_base_url={}/minute", server.url()),
        format!("osmosis_replication_sequence_number={minute}"),
        format!(
            "osmosis_replication_timestamp={}",
            time_text(time_of(minute, MINUTE))
        ),
    ]
}

/// The minute that the header of a file says, with a time that is not later. A new file may have only the time.
fn minute_of(file: &Path, new: i64) -> i64 {
    let facts = run_ok(&[&"inspect", &"--json", &file]);
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    let minute = facts["replication_sequence"].as_i64().unwrap_or(new);
    // Where the state of the last minute could not be had, the time is that of one before it.
    let latest = time_text(time_of(minute, MINUTE));
    assert!(facts["replication_timestamp"].as_str().unwrap() <= latest.as_str());
    minute
}

/// Runs an update that gets from day to minute, or from minute to minute.
fn update(web: &Web, file: &Path, steps: &[&str]) -> Command {
    let url = |step: &str| format!("{}/{step}", web.url());
    let mut update = update_from(&url(steps[0]), file);
    for step in &steps[1..] {
        update.args(["--server", &url(step)]);
    }
    update
}

const STEPS: [&str; 3] = ["day", "hour", "minute"];

/// Whether a file has the data of an hour or a day that ends after the minute of its header. Its last changes are then
/// those of that hour or day. Where the state of this step could not be had, the header says the last minute before the
/// end of the nearest step before it, at most four steps earlier.
fn has_data_of_later_step(year: &Year, file: &Path, minute: i64) -> bool {
    let time = time_of(minute, MINUTE);
    let ends = [HOUR, DAY].into_iter().flat_map(|step| {
        let nearest = (time + 2 * MINUTE - 1) / step;
        let count = if nearest * step < time { 0 } else { 5 };
        let ends = nearest..nearest + count;
        ends.map(move |end| end * step)
    });
    ends.into_iter().any(|end| year.is_data_of(file, end))
}

#[test]
fn a_file_has_the_data_of_a_state_whatever_happens() {
    let year = Arc::new(Year::new(20_000));
    let mut random = Random(26);
    let mut troubles = Random(62);
    // One of so many requests has trouble, times eleven.
    let rarity = Arc::new(AtomicI64::new(30));
    let count = rarity.clone();
    let decide = move |_: &_| random_trouble(&mut troubles, count.load(Ordering::Relaxed));
    let web = serve(&year, Box::new(decide));
    let place = year.path("place");
    fs::create_dir(&place).unwrap();
    let (file, cache) = (place.join("file.osm.pbf"), year.path("cache"));
    let (mut ends, mut kills, mut between) = ([0; 3], 0, 0);
    let mut before = None;
    for run in 0..if is_long() { 500 } else { 25 } {
        // A new file from time to time, and at the end of the year.
        let start = before.filter(|minute| *minute < DAYS * DAY / MINUTE && random.below(12) > 0);
        let start = start.unwrap_or_else(|| {
            let minute = newest_before(random.below(DAYS * DAY), MINUTE);
            let header = header(&web, minute);
            // Some headers have nothing but the time.
            let known = if random.below(3) == 0 {
                &header[2..]
            } else {
                &header
            };
            let _ = fs::remove_file(&file);
            year.write(time_of(minute, MINUTE), known, &file);
            minute
        });
        // The server goes on for some minutes or some weeks.
        let span = [2 * HOUR, DAY, 3 * DAY, 40 * DAY][random.below(4) as usize];
        year.publish(time_of(start, MINUTE) + random.below(span));
        let has_steps = span > 3 * HOUR || random.below(2) == 0;
        rarity.store(
            [30, 200, 2000, 6000][random.below(4) as usize],
            Ordering::Relaxed,
        );
        let steps = if has_steps { &STEPS[..] } else { &STEPS[2..] };
        let mut update = update(&web, &file, steps);
        update.arg("--quiet");
        match random.below(4) {
            0 => update.args(["--max-diff-size", &random.below(30_000).to_string()]),
            1 => update.args([
                "--end-date",
                &time_text(time_of(start, MINUTE) + random.below(span)),
            ]),
            2 => update.arg("--cache").arg(&cache),
            _ => &mut update,
        };
        let mut child = update.stderr(Stdio::null()).spawn().unwrap();
        if random.below(3) == 0 {
            thread::sleep(Duration::from_millis(
                random.below(if has_steps { 150 } else { 20 }) as u64,
            ));
            let _ = child.kill();
        }
        let status = child.wait().unwrap();
        let run = format!(
            "run {run} from minute {start} to {}: {status}",
            year.newest(MINUTE)
        );
        match (status.code(), status.signal()) {
            (Some(code @ 0..=2), _) => ends[code as usize] += 1,
            (None, Some(_)) => kills += 1,
            _ => panic!("{run}"),
        }
        let after = minute_of(&file, start);
        assert!(after >= start, "{run}");
        assert!(status.code() != Some(2) || after == start, "{run}");
        if status.code().is_some() && after > start {
            // Just before it replaces the file, a killed process leaves a second name, which the next update removes.
            assert_eq!(names(&place), ["file.osm.pbf"], "{run}");
        }
        if !year.is_data_of(&file, time_of(after, MINUTE)) {
            assert!(
                has_data_of_later_step(&year, &file, after),
                "{run}: minute {after}"
            );
            between += 1;
        }
        before = Some(after);
    }
    println!("{ends:?} by exit status, {kills} killed, {between} between two minutes");
    assert!(
        ends.iter().all(|count| *count > 0) && kills > 0,
        "{ends:?} {kills}"
    );
}

/// The kinds, ids and versions of the objects of a file.
fn versions(file: &Path) -> BTreeSet<(Kind, i64, i64)> {
    let objects = decode::objects(file);
    let version = |object: Object| (object.kind, object.id, object.version.unwrap_or(0));
    objects.into_iter().map(version).collect()
}

#[test]
fn an_extract_with_clip_is_that_of_the_whole() {
    let year = Arc::new(Year::new(60_000));
    let web = serve(&year, Box::new(|_| None));
    let [whole, file, expected] =
        ["whole.osm.pbf", "file.osm.pbf", "extract.osm.pbf"].map(|name| year.path(name));
    let region = "-10.1,39.9,-9.95,40.2";
    let extract = |day: i64, output: &Path| {
        year.write(day * DAY, &header(&web, day * DAY / MINUTE), &whole);
        run_ok(&[
            &"extract", &"-q", &"-O", &"-b", &region, &whole, &"-o", &output,
        ]);
    };
    extract(0, &file);
    let mut missing = BTreeSet::new();
    let last = if is_long() { 60 } else { 8 };
    for day in 1..=last {
        year.publish(day * DAY);
        let before: BTreeSet<_> = versions(&file)
            .into_iter()
            .map(|(kind, id, _)| (kind, id))
            .collect();
        let mut update = update(&web, &file, &["day"]);
        let output = update.args(["--clip", region]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        extract(day, &expected);
        let (ours, whole) = (versions(&file), versions(&expected));
        // What the file had stays, and the nodes of its ways come with them. A new relation has a member in the file,
        // which need not lie in the region.
        let refs: BTreeSet<i64> = decode::objects(&file)
            .into_iter()
            .flat_map(|object| object.refs)
            .collect();
        let may_come = |(kind, id, _): &&(Kind, i64, i64)| match kind {
            Kind::Node => refs.contains(id),
            Kind::Way => false,
            Kind::Relation => true,
        };
        let more: Vec<_> = ours
            .difference(&whole)
            .filter(|one| !before.contains(&(one.0, one.1)) && !may_come(one))
            .collect();
        assert_eq!(more, [] as [&(Kind, i64, i64); 0], "day {day}");
        // Changes have no object that comes into the region because a node or a member does, and is not changed itself.
        for (kind, id, version) in whole.difference(&ours) {
            let is_new = missing.insert((*kind, *id, *version));
            assert!(
                !is_new || !year.changes((*kind, *id), (day - 1) * DAY..day * DAY),
                "day {day}: {kind:?} {id}"
            );
        }
        let [len, of_whole] = [&file, &expected].map(|file| fs::metadata(file).unwrap().len());
        assert!(
            len < of_whole + of_whole / 50,
            "day {day}: {len} bytes rather than {of_whole}"
        );
        if day == last {
            println!(
                "{} objects, {} missing, {len} bytes rather than {of_whole}",
                whole.len(),
                missing.len()
            );
            assert!(missing.len() * 1000 < whole.len());
        }
    }
}
