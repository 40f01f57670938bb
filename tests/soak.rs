//! Long series of daily updates: no data is lost, files stay valid and compact, and updates stay fast.
//!
//! With `PBFHOGG_LONG=1` a year of days passes instead of two months, the data set is twenty times as large, and the last
//! month may take no more than three times as long as the first.

use crate::common::answers::ask;
use crate::common::random::Random;
use crate::common::{Kind, Object, decode, is_long, node, run_ok, way};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of days in a month. The test compares the duration and the results of months.
const MONTH: usize = 30;

fn data_blobs(path: &Path) -> Vec<decode::Frame> {
    let frames = decode::frames(path);
    frames
        .into_iter()
        .filter(|frame| frame.blob_type == "OSMData")
        .collect()
}

/// The same objects in as few blobs as possible.
fn made_anew(path: &Path) -> PathBuf {
    let anew = path.with_extension("anew.pbf");
    run_ok(&[&"repack", &"-O", &"-n", &"8000", &path, &"-o", &anew]);
    anew
}

#[test]
fn months_of_days_lose_nothing_and_leave_a_healthy_file() {
    let last = if is_long() { 365 } else { 40 };
    let dir = tempfile::tempdir().unwrap();
    let elements = if is_long() { "300000" } else { "15000" };
    let [world, current, expected] =
        ["world.osm.pbf", "current.osm.pbf", "expected.osm.pbf"].map(|name| dir.path().join(name));
    let days = dir.path().join("days");
    let changes = last.to_string();
    run_ok(&[
        &"synth",
        &"--objects",
        &elements,
        &"--changes",
        &changes,
        &"--changes-dir",
        &days,
        &"-o",
        &world,
    ]);
    std::fs::rename(&world, &current).unwrap();
    let mut times = Vec::new();
    for day in 1..=last {
        let change = days.join(format!("{day:03}.osc.gz"));
        let start = Instant::now();
        run_ok(&[&"apply-changes", &"--in-place", &current, &change]);
        times.push(start.elapsed());
        if is_long() || day % 3 == 0 {
            let checked = ask(&[&"check", &"-r", &current]);
            assert_eq!(checked.status, 0, "day {day}: {checked:?}");
        }
        if day % MONTH != 0 && day != last {
            continue;
        }
        let checked = ask(&[&"check", &"--index", &current]);
        assert_eq!(checked.status, 0, "day {day}: {checked:?}");
        let day_name = day.to_string();
        run_ok(&[
            &"synth",
            &"-O",
            &"--objects",
            &elements,
            &"--day",
            &day_name,
            &"-o",
            &expected,
        ]);
        assert!(
            decode::objects(&current) == decode::objects(&expected),
            "day {day}"
        );
        let anew = made_anew(&current);
        let [blobs, fewest] = [&current, &anew].map(|path| data_blobs(path).len());
        assert!(
            blobs <= fewest * 3 / 2 + 3,
            "day {day}: {blobs} blobs for {fewest}"
        );
        let [bytes, least] = [&current, &anew].map(|path| std::fs::metadata(path).unwrap().len());
        assert!(
            bytes <= least * 11 / 10 + 20_000,
            "day {day}: {bytes} bytes for {least}"
        );
    }
    let sum = |times: &[Duration]| times.iter().sum::<Duration>();
    let [first, latest] = [&times[..MONTH], &times[last - MONTH..]].map(sum);
    println!("{MONTH} days took {first:?} at first, {latest:?} in the end");
    // Short runs stand beside other tests, which take their time from them.
    assert!(
        !is_long() || latest < first * 3,
        "{MONTH} days took {first:?} at first, {latest:?} in the end"
    );
    let mut names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "current.osm.anew.pbf",
            "current.osm.pbf",
            "days",
            "expected.osm.pbf"
        ]
    );
}

#[test]
fn remains_of_deletions_are_joined_and_stay_what_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let [plain, current] = ["plain.osm.pbf", "current.osm.pbf"].map(|name| dir.path().join(name));
    let mut random = Random(7);
    let name = |random: &mut Random| format!("name {}", random.below(5000));
    let mut objects: BTreeMap<(Kind, i64), Object> = BTreeMap::new();
    for id in 1..=6000 {
        let tags = [("name", name(&mut random))];
        let tags = tags.each_ref().map(|(key, value)| (*key, value.as_str()));
        objects.insert((Kind::Node, id), node(id, id, -id, &tags));
    }
    for id in 1..=3000 {
        let tags = [("ref", name(&mut random))];
        let tags = tags.each_ref().map(|(key, value)| (*key, value.as_str()));
        objects.insert((Kind::Way, id), way(id, &[id, id + 1], &tags));
    }
    let all: Vec<Object> = objects.values().cloned().collect();
    std::fs::write(
        &plain,
        crate::common::craft::plain_file(&[crate::common::craft::block(
            &all,
            &crate::common::craft::Shape::USUAL,
        )]),
    )
    .unwrap();
    run_ok(&[&"repack", &"-n", &"300", &plain, &"-o", &current]);
    assert_eq!(data_blobs(&current).len(), 30);
    for day in 0..60 {
        let mut text = String::from("<osmChange version='0.6'>");
        for (kind, id) in objects.keys().copied().collect::<Vec<_>>() {
            if random.below(20) == 0 {
                let word = ["node", "way"][kind as usize];
                text += &format!("<delete><{word} id='{id}' version='99'/></delete>");
                objects.remove(&(kind, id));
            }
        }
        for _ in 0..5 {
            let id = 10_000 + random.below(1000);
            text += &format!(
                "<create><node id='{id}' version='{}' lat='0' lon='0'/></create>",
                day + 1
            );
            let made = Object {
                version: Some(day + 1),
                ..node(id, 0, 0, &[])
            };
            objects.insert((Kind::Node, id), made);
        }
        let change = dir.path().join("day.osc");
        std::fs::write(&change, text + "</osmChange>").unwrap();
        let before = data_blobs(&current).len();
        run_ok(&[&"apply-changes", &"--in-place", &current, &change]);
        let expected: Vec<Object> = objects.values().cloned().collect();
        assert!(decode::objects(&current) == expected, "day {day}");
        assert!(data_blobs(&current).len() <= before + 1, "day {day}");
        let checked = ask(&[&"check", &"--index", &current]);
        assert_eq!(checked.status, 0, "day {day}: {checked:?}");
    }
    // About a twentieth of the 9,000 objects is left, and there are some new ones.
    let blobs = data_blobs(&current).len();
    assert!(blobs <= 8, "{blobs} blobs for {} objects", objects.len());
}

#[test]
fn a_blob_that_outgrows_its_size_becomes_blobs_of_equal_size() {
    let dir = tempfile::tempdir().unwrap();
    let [plain, grown] = ["plain.osm.pbf", "grown.osm.pbf"].map(|name| dir.path().join(name));
    let nodes =
        |ids: &mut dyn Iterator<Item = i64>| ids.map(|id| node(id, 0, 0, &[])).collect::<Vec<_>>();
    let all = nodes(&mut (1..8000).map(|id| id * 3));
    let block = crate::common::craft::block(&all, &crate::common::craft::Shape::USUAL);
    std::fs::write(&plain, crate::common::craft::plain_file(&[block])).unwrap();
    let mut text = String::from("<osmChange version='0.6'><create>");
    for id in 1..8010 {
        text += &format!("<node id='{}' version='1' lat='0' lon='0'/>", id * 3 - 1);
    }
    let change = dir.path().join("day.osc");
    std::fs::write(&change, text + "</create></osmChange>").unwrap();
    run_ok(&[&"apply-changes", &plain, &change, &"-o", &grown]);
    let blobs = data_blobs(&grown);
    let mut counts: Vec<usize> = blobs
        .iter()
        .map(|blob| decode::block(&blob.payload).len())
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 7999 + 8009);
    // The last object has a blob of its own, for the table of contents.
    assert_eq!(counts.pop(), Some(1));
    assert!(
        counts.iter().all(|count| (5000..=8000).contains(count)),
        "{counts:?}"
    );
}
