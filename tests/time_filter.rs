//! `time-filter`, compared with a simple implementation, and with osmium.

use crate::common;
use crate::common::answers::{ask, ask_osmium, history_of, in_order};
use crate::common::extracts::random_world;
use crate::common::oracle::{osmium, real_file};
use crate::common::random::Random;
use crate::common::{
    Kind, Object, canonical_key, craft, decode, in_turn, is_long, node, pbfhogg, run_fail, run_ok,
    with_metadata,
};
use std::collections::HashMap;
use std::path::Path;

/// The versions that were current at a time, or in the interval between two times.
fn filtered(objects: &[Object], from: i64, until: Option<i64>) -> Vec<Object> {
    let time = |object: &Object| object.timestamp.unwrap_or(0);
    let mut found = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let next = objects.get(index + 1);
        let next = next.filter(|next| (next.kind, next.id) == (object.kind, object.id));
        let (start, end) = (time(object), next.map_or(i64::MAX, time));
        let is_wanted = match until {
            None => start <= from && end > from && object.visible,
            Some(until) => {
                start < until
                    && if start == end {
                        end >= from
                    } else {
                        end > from
                    }
            }
        };
        if is_wanted {
            found.push(object.clone());
        }
    }
    found
}

/// A time in the format of the command line.
fn written(seconds: i64) -> String {
    let day = seconds.div_euclid(86_400);
    assert!((0..20_000).contains(&day));
    // Howard Hinnant's civil_from_days.
    let z = day + 719_468;
    let era = z / 146_097;
    let doe = z - era * 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (d, m) = (
        doy - (153 * mp + 2) / 5 + 1,
        if mp < 10 { mp + 3 } else { mp - 9 },
    );
    let y = yoe + era * 400 + i64::from(m <= 2);
    let second = seconds.rem_euclid(86_400);
    let (h, min, s) = (second / 3600, second / 60 % 60, second % 60);
    format!("{y:04}-{m:02}-{d:02}T{h:02}:{min:02}:{s:02}Z")
}

fn run(input: &Path, from: i64, until: Option<i64>) -> Vec<Object> {
    let output = input.with_file_name("out.osm.pbf");
    let mut outputs = Vec::new();
    for jobs in ["1", "3"] {
        let mut command = pbfhogg();
        command
            .args(["time-filter", "-O", "-q", "-j", jobs])
            .arg(input)
            .arg(written(from));
        command.args(until.map(written)).arg("-o").arg(&output);
        let done = command.output().unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        outputs.push(std::fs::read(&output).unwrap());
    }
    assert!(
        outputs[0] == outputs[1],
        "bytes depend on the number of threads"
    );
    let header = decode::header(&output);
    let is_history = header.required.contains(&"HistoricalInformation".into());
    assert_eq!(is_history, until.is_some(), "{header:?}");
    decode::objects(&output)
}

/// Versions whose timestamps are sometimes equal, missing or out of order.
fn awkward_history(seed: u64) -> Vec<Object> {
    let mut random = Random(seed);
    let mut objects = random_world(seed, 120, true);
    for object in &mut objects {
        object.timestamp = match random.below(12) {
            0 => None,
            1 => Some(1_600_000_000),
            _ => Some(1_600_000_000 + object.version.unwrap_or(0) * 40 + random.below(80)),
        };
    }
    objects
}

const TIMES: [i64; 6] = [
    1_500_000_000,
    1_600_000_000,
    1_600_000_050,
    1_600_000_090,
    1_600_000_130,
    1_700_000_000,
];

/// Each time, and each interval between two of them.
fn questions() -> impl Iterator<Item = (i64, Option<i64>)> {
    TIMES.into_iter().flat_map(|from| {
        let later = TIMES.into_iter().filter(move |until| *until > from);
        let ends = std::iter::once(None).chain(later.map(Some));
        ends.map(move |until| (from, until))
    })
}

#[test]
fn versions_at_a_time_and_between_two_are_those_of_a_plain_search() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..4 {
        let objects = awkward_history(seed);
        // Small blobs, so that versions of an object are in two or three blobs.
        for size in [1, 2, 5, 1000] {
            let blobs: Vec<&[Object]> = objects.chunks(size).collect();
            let input = history_of(dir.path(), "in.osh.pbf", &blobs);
            let indexed = dir.path().join("indexed.osh.pbf");
            run_ok(&[&"cat", &"-O", &input, &"-o", &indexed]);
            let input = if size % 2 == 0 { &indexed } else { &input };
            // Each seed has a part of the times in short runs.
            for (from, until) in in_turn(seed as usize, 4, questions()) {
                assert!(
                    run(input, from, until) == filtered(&objects, from, until),
                    "{seed} {size} {from} {until:?}"
                );
            }
        }
    }
}

#[test]
fn osmium_finds_the_same() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for seed in 10..13 {
        let objects = awkward_history(seed);
        let blobs: Vec<&[Object]> = objects.chunks(7).collect();
        let input = history_of(dir.path(), "in.osh.pbf", &blobs);
        let output = dir.path().join("osmium.osh.pbf");
        for from in in_turn(seed as usize, 2, TIMES) {
            for until in [None, Some(from + 45)] {
                let (from_text, until_text) = (written(from), until.map(written));
                let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> =
                    vec![&"time-filter", &"--no-progress", &"-O", &input, &from_text];
                args.extend(
                    until_text
                        .iter()
                        .map(|text| text as &dyn AsRef<std::ffi::OsStr>),
                );
                args.extend([&"-o" as &dyn AsRef<std::ffi::OsStr>, &output]);
                let answer = ask_osmium(&args);
                assert_eq!(answer.status, 0, "{answer:?}");
                let ids = |objects: &[Object]| -> Vec<_> {
                    objects
                        .iter()
                        .map(|object| (object.kind, object.id, object.version, object.visible))
                        .collect()
                };
                let ours = run(&input, from, until);
                assert!(
                    ids(&ours) == ids(&decode::objects(&output)),
                    "{seed} {from} {until:?}"
                );
            }
        }
    }
}

/// A history of the states on three days, including deletions. Each new version is dated just before its day: the
/// timestamps in the files are not always between the days, since an extract also changes with its surroundings.
fn history_of_days(days: &[Vec<Object>], times: &[i64]) -> Vec<Object> {
    let mut history: Vec<Object> = Vec::new();
    let mut last: HashMap<(Kind, i64), Object> = HashMap::new();
    for (day, time) in days.iter().zip(times) {
        let mut now: HashMap<(Kind, i64), Object> = HashMap::new();
        for object in day {
            let key = (object.kind, object.id);
            let same = last.get(&key).filter(|before| {
                before.version == object.version
                    && before.visible
                    && before.tags == object.tags
                    && before.refs == object.refs
                    && before.members == object.members
            });
            let version = match same {
                Some(before) => before.clone(),
                None => {
                    let object = Object {
                        timestamp: Some(time - 1),
                        ..object.clone()
                    };
                    history.push(object.clone());
                    object
                }
            };
            now.insert(key, version);
        }
        for (key, before) in &last {
            if !now.contains_key(key) {
                let gone = Object::new(key.0, key.1);
                let version = before.version.unwrap_or(0) + 1;
                history.push(Object {
                    visible: false,
                    ..with_metadata(gone, version, time - 1, 1, "a")
                });
            }
        }
        last = now;
    }
    history.sort_by_key(|object| (canonical_key(object.kind, object.id), object.timestamp));
    history
}

#[test]
fn a_history_of_three_days_gives_each_day_back() {
    let names = [
        "andorra-a.osm.pbf",
        "andorra-b.osm.pbf",
        "andorra-c.osm.pbf",
    ]
    .map(real_file);
    let dir = tempfile::tempdir().unwrap();
    let days: Vec<Vec<Object>> = names
        .iter()
        .map(|path| {
            let mut objects = decode::objects(path);
            // Short runs have a third of the objects.
            objects.retain(|object| is_long() || object.id % 3 == 0);
            in_order(objects)
        })
        .collect();
    let times = [1_600_000_000, 1_610_000_000, 1_620_000_000];
    let history = history_of_days(&days, &times);
    assert!(history.iter().filter(|object| !object.visible).count() > 100);
    let shape = craft::Shape {
        history: true,
        ..craft::Shape::USUAL
    };
    let blobs: Vec<Vec<u8>> = history
        .chunks(8000)
        .map(|some| craft::block(some, &shape))
        .collect();
    let required = ["OsmSchema-V0.6", "DenseNodes", "HistoricalInformation"];
    let header = craft::header_payload(&required, &["Sort.Type_then_ID"]);
    let input = dir.path().join("andorra.osh.pbf");
    std::fs::write(&input, craft::file(header, &blobs)).unwrap();
    // Timestamps are not compared, since those of the history are made up.
    let content = |object: &Object| Object {
        timestamp: None,
        ..object.clone()
    };
    for (day, time) in days.iter().zip(times) {
        let found = run(&input, time, None);
        assert_eq!(found.len(), day.len());
        let differs = found
            .iter()
            .zip(day)
            .find(|(found, object)| content(found) != content(object));
        assert!(differs.is_none(), "{differs:?}");
    }
}

#[test]
fn a_file_without_history_is_cut_by_the_times_of_its_objects() {
    let dir = tempfile::tempdir().unwrap();
    let objects: Vec<Object> = (1..20_000)
        .map(|id| {
            with_metadata(
                node(id, id, id, &[]),
                1,
                1_600_000_000 + id / 9000 * 100,
                1,
                "a",
            )
        })
        .collect();
    let blobs: Vec<&[Object]> = objects.chunks(8000).collect();
    let plain = common::answers::file_of(dir.path(), "in.osm.pbf", &blobs);
    let output = dir.path().join("out.osm.pbf");
    let stats = dir.path().join("stats.json");
    run_ok(&[
        &"time-filter",
        &plain,
        &"2020-09-13T12:26:40Z",
        &"-o",
        &output,
        &"--stats",
        &stats,
    ]);
    assert!(decode::objects(&output) == objects[..8999]);
    // The first blob is copied.
    let stats: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
    assert_eq!(stats["blobs_copied"], 1, "{stats}");
    // With a table of contents, blobs that are wholly older are copied without decoding them, and those that are wholly
    // newer are passed over.
    let (indexed, stats) = (
        dir.path().join("indexed.osm.pbf"),
        dir.path().join("stats.json"),
    );
    run_ok(&[&"cat", &plain, &"-o", &indexed]);
    for (time, blobs_decoded, count) in [
        ("2020-09-13T12:26:39Z", 0, 0),
        ("2020-09-13T12:26:40Z", 1, 8999),
        ("2020-09-13T12:28:20Z", 1, 17_999),
        // The last object gets the table of contents.
        ("2020-09-13T12:30:00Z", 1, objects.len()),
    ] {
        run_ok(&[
            &"time-filter",
            &"-O",
            &indexed,
            &time,
            &"-o",
            &output,
            &"--stats",
            &stats,
        ]);
        assert!(decode::objects(&output) == objects[..count], "{time}");
        let text = std::fs::read_to_string(&stats).unwrap();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["blobs_decoded"], blobs_decoded, "{time}: {found}");
    }
    // The default time is now, which is later than all timestamps.
    run_ok(&[&"time-filter", &"-O", &plain, &"-o", &output]);
    assert!(decode::objects(&output) == objects);
}

#[test]
fn wrong_times_are_refused_and_files_that_are_not_in_order_are_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = [2, 1].map(|id| node(id, 0, 0, &[]));
    let unsorted = common::answers::file_of(dir.path(), "in.osm.pbf", &[&[one, two]]);
    let output = dir.path().join("out.osm.pbf");
    let ran = run_ok(&[
        &"time-filter",
        &"-v",
        &unsorted,
        &"2020-01-01",
        &"-o",
        &output,
    ]);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        said.contains("sorting them into a temporary file"),
        "{said}"
    );
    let ids: Vec<i64> = decode::objects(&output)
        .iter()
        .map(|object| object.id)
        .collect();
    assert_eq!(ids, [1, 2]);
    std::fs::remove_file(&output).unwrap();
    let message = run_fail(&[&"time-filter", &unsorted, &"yesterday", &"-o", &output]);
    assert!(message.contains("'yesterday' is not a time"), "{message}");
    let message = run_fail(&[
        &"time-filter",
        &unsorted,
        &"2020-01-02",
        &"2020-01-01",
        &"-o",
        &output,
    ]);
    assert!(
        message.contains("the second time lies before the first"),
        "{message}"
    );
    let answer = ask(&[
        &"time-filter",
        &unsorted,
        &"2020-01-01",
        &"2021-01-01",
        &"2022-01-01",
        &"-o",
        &output,
    ]);
    assert_eq!(answer.status, 2);
}

#[test]
fn ways_of_a_snapshot_get_the_places_of_their_time() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("in.osh.opl");
    let text = "n1 v1 dV t2010-01-01T00:00:00Z x1 y1\nn1 v2 dV t2012-01-01T00:00:00Z x5 y5\n\
        n2 v1 dV t2010-01-01T00:00:00Z x2 y2\nn2 v2 dD t2014-01-01T00:00:00Z\n\
        w1 v1 dV t2010-01-01T00:00:00Z Nn1,n2\n";
    std::fs::write(&history, text).unwrap();
    let ways = |time: &str| {
        let args: [common::Arg; 6] = [
            &"time-filter",
            &"--locations-on-ways",
            &history,
            &time,
            &"-f",
            &"opl",
        ];
        let told = common::answers::ask(&args).stdout;
        let way = told.lines().find(|line| line.starts_with('w')).unwrap();
        way.rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(ways("2011"), "Nn1x1y1,n2x2y2");
    assert_eq!(ways("2013"), "Nn1x5y5,n2x2y2");
    assert_eq!(ways("2015"), "Nn1x5y5,n2xy");
    let args: [common::Arg; 7] = [
        &"time-filter",
        &"--locations-on-ways",
        &history,
        &"2011",
        &"2012",
        &"-f",
        &"opl",
    ];
    common::run_fail(&args);
}

#[test]
fn the_state_in_the_header_is_not_later_than_the_time() {
    let dir = tempfile::tempdir().unwrap();
    let text = "n1 v1 dV t2010-01-01T00:00:00Z x1 y1\nn1 v2 dV t2012-01-01T00:00:00Z x5 y5\n";
    let (opl, history) = (dir.path().join("in.osh.opl"), dir.path().join("in.osh.pbf"));
    std::fs::write(&opl, text).unwrap();
    let headers = [
        "osmosis_replication_timestamp=2015-01-01T00:00:00Z",
        "osmosis_replication_sequence_number=17",
        "osmosis_replication_base_url=https://example.com/",
    ]
    .map(|header| format!("--output-header={header}"));
    let [time, sequence, url] = &headers;
    run_ok(&[&"cat", &opl, time, sequence, url, &"-o", &history]);
    run_ok(&[&"cat", &opl, &"-o", &dir.path().join("bare.osh.pbf")]);
    let state = |name: &[&str], input: &Path, times: &[&str]| {
        let output = dir.path().join("out.osh.pbf");
        let mut args: Vec<common::Arg> = name.iter().map(|name| name as common::Arg).collect();
        args.extend([&"time-filter" as common::Arg, &"-O", &input, &"-o", &output]);
        args.extend(times.iter().map(|time| time as common::Arg));
        run_ok(&args);
        let facts = run_ok(&[&"inspect", &"--json", &output]).stdout;
        let facts: serde_json::Value = serde_json::from_slice(&facts).unwrap();
        let number = facts["replication_sequence"].as_i64();
        let time = facts["replication_timestamp"].as_str().map(str::to_owned);
        (time, number, facts["replication_url"].is_string())
    };
    let until = |time: &str, number| (Some(time.to_owned()), number, true);
    let second = ["osmium"];
    for name in [&[][..], &second] {
        let (early, late) = ("2011-01-01T00:00:00Z", "2014-01-01T00:00:00Z");
        let (last, after) = ("2015-01-01T00:00:00Z", "2016-01-01T00:00:00Z");
        assert_eq!(state(name, &history, &[early]), until(early, None));
        // The end of a period is not in it.
        let before = "2013-12-31T23:59:59Z";
        assert_eq!(state(name, &history, &[early, late]), until(before, None));
        // The state of the file is the latest that is known.
        for times in [&[last][..], &[after], &[early, after], &[]] {
            assert_eq!(
                state(name, &history, times),
                until(last, Some(17)),
                "{times:?}"
            );
        }
        let bare = dir.path().join("bare.osh.pbf");
        assert_eq!(state(name, &bare, &[early]), (None, None, false));
    }
}

#[test]
fn versions_that_go_on_in_the_next_group_of_a_blob_are_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let version = |id: i64, version: i64| {
        with_metadata(
            node(id, id, version, &[]),
            version,
            1_600_000_000 + version,
            1,
            "a",
        )
    };
    let objects: Vec<Object> = [
        version(1, 1),
        version(5, 1),
        version(5, 2),
        version(5, 3),
        version(9, 1),
    ]
    .into();
    let shape = craft::Shape {
        history: true,
        ..craft::Shape::USUAL
    };
    let groups: Vec<&[Object]> = vec![&objects[..2], &objects[2..3], &objects[3..]];
    let required = ["OsmSchema-V0.6", "DenseNodes", "HistoricalInformation"];
    let header = craft::header_payload(&required, &["Sort.Type_then_ID"]);
    let input = dir.path().join("in.osh.pbf");
    let file = craft::file(header, &[craft::block_of_runs(&groups, &shape)]);
    std::fs::write(&input, file).unwrap();
    let inspected = ask(&[&"inspect", &input]);
    assert!(
        inspected.stdout.contains("sorted by kind and id"),
        "{inspected:?}"
    );
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"time-filter", &input, &"2030-01-01", &"-o", &output]);
    let expected = [&objects[0], &objects[3], &objects[4]];
    assert!(decode::objects(&output).iter().eq(expected));
}
