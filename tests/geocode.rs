//! `build-geocode-index` and `geocode`: answers compared with a plain search over all objects, and damaged indexes.

use crate::common::geocode::{Thing, distance, things};
use crate::common::oracle::{real_files, shared_data};
use crate::common::{Arg, is_long, run_fail, run_ok};
use pbfhogg::geocode::{GeocodeIndex, QueryOptions};
use pbfhogg::{Location, ObjectKind};
use std::path::{Path, PathBuf};

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, below: f64) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64 * below
    }
}

fn built(input: &Path, directory: &Path) -> PathBuf {
    let index = directory.join("index");
    run_ok(&[
        &"build-geocode-index",
        &input,
        &"-O",
        &"--output-dir",
        &index,
    ]);
    index
}

/// The nearest of some things within a kilometre.
fn nearest<'t>(place: [f64; 2], things: &[&'t Thing]) -> Option<(f64, &'t Thing)> {
    let near = |thing: &&&Thing| {
        let [lat, lon] = thing.line[0];
        // Nothing on the earth is longer than a degree in these files.
        (lat - place[0]).abs() < 1.0 && (lon - place[1]).abs() < 2.0
    };
    things
        .iter()
        .filter(near)
        .map(|thing| (distance(place, thing), *thing))
        .filter(|(distance, _)| *distance <= 1000.0)
        .min_by(|a, b| a.0.total_cmp(&b.0))
}

#[test]
fn the_nearest_objects_are_those_of_a_plain_search() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    for input in real_files() {
        let name = input.display().to_string();
        if name.ends_with(".osh.pbf") || name.contains("loc_on_ways") {
            continue;
        }
        let index = GeocodeIndex::open(&built(&input, directory.path())).unwrap();
        let all = things(&input);
        let with = |keys: &[&str]| -> Vec<&Thing> {
            let has = |thing: &&Thing| keys.iter().all(|key| thing.tags.contains_key(*key));
            all.iter().filter(has).collect()
        };
        let addresses = with(&["addr:housenumber"]);
        let mut streets = with(&["highway", "name"]);
        streets.retain(|thing| thing.kind == ObjectKind::Way);
        let streets: Vec<Thing> = streets
            .iter()
            .map(|thing| Thing {
                is_area: false,
                ..(*thing).clone()
            })
            .collect();
        let streets: Vec<&Thing> = streets.iter().collect();
        let points = if is_long() { 3000 } else { 300 };
        for _ in 0..points {
            let around = &all[random.below(all.len() as f64) as usize].line[0];
            let size = 10f64.powf(-1.0 - random.below(5.0));
            let place = around.map(|degrees| {
                let moved = degrees + random.below(2.0 * size) - size;
                (moved * 1e7).round() / 1e7
            });
            let location = Location::from_degrees(place[0], place[1]).unwrap();
            let answer = index.reverse(location, &QueryOptions::default()).unwrap();
            let is_close = |a: f64, b: f64| (a - b).abs() < 1e-3 + a * 1e-5;
            let expected = nearest(place, &addresses).map(|(distance, _)| distance);
            match (&answer.nearest.address, expected) {
                // Relations are not among the things.
                (Some(found), expected) if found.object.kind == ObjectKind::Relation => {
                    assert!(
                        expected.is_none_or(|expected| found.object.distance_m <= expected + 0.001)
                    );
                }
                (Some(found), Some(expected)) => {
                    assert!(
                        is_close(found.object.distance_m, expected),
                        "{name} {place:?} {answer:?} {expected}"
                    );
                }
                (found, expected) => assert!(
                    found.is_none() && expected.is_none(),
                    "{name} {place:?} {found:?} {expected:?}"
                ),
            }
            let expected = nearest(place, &streets).map(|(distance, _)| distance);
            match (&answer.nearest.street, expected) {
                (Some(found), Some(expected)) => {
                    assert!(
                        is_close(found.object.distance_m, expected),
                        "{name} {place:?} {found:?} {expected}"
                    );
                }
                (found, expected) => assert!(
                    found.is_none() && expected.is_none(),
                    "{name} {place:?} {found:?} {expected:?}"
                ),
            }
        }
    }
}

#[test]
fn a_damaged_index_is_refused_or_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let Some(input) = shared_data("porto.osm.pbf") else {
        return;
    };
    let index = built(&input, directory.path());
    let place = Location::from_degrees(41.1496, -8.6109).unwrap();
    let answer = |index: &Path| -> pbfhogg::Result<String> {
        let index = GeocodeIndex::open(index)?;
        Ok(index.reverse(place, &QueryOptions::default())?.label)
    };
    let good = answer(&index).unwrap();
    assert!(good.contains("Porto"), "{good}");
    for file in std::fs::read_dir(&index).unwrap() {
        let file = file.unwrap().path();
        let bytes = std::fs::read(&file).unwrap();
        let step = (bytes.len() / 300).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            std::fs::write(&file, &damaged).unwrap();
            let is_manifest = file.ends_with("manifest.json");
            assert!(
                answer(&index).map_or(true, |found| found == good || is_manifest),
                "{at}"
            );
            std::fs::write(&file, &bytes[..at]).unwrap();
            // The manifest ends with a line feed that it does not need.
            let is_whole = is_manifest && at + 1 == bytes.len();
            assert!(answer(&index).is_err() || is_whole, "{at}");
        }
        std::fs::write(&file, &bytes).unwrap();
    }
    assert_eq!(answer(&index).unwrap(), good);
}

#[test]
fn an_index_is_replaced_only_if_the_user_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let Some(input) = shared_data("porto.osm.pbf") else {
        return;
    };
    let index = built(&input, directory.path());
    let build: [Arg; 4] = [&"build-geocode-index", &input, &"--output-dir", &index];
    let error = run_fail(&build);
    assert!(error.contains("--overwrite"), "{error}");
    let open = GeocodeIndex::open(&index).unwrap();
    built(&input, directory.path());
    // The old index goes on.
    let place = Location::from_degrees(41.1496, -8.6109).unwrap();
    let old = open.reverse(place, &QueryOptions::default()).unwrap();
    let new = GeocodeIndex::open(&index).unwrap();
    assert_eq!(old, new.reverse(place, &QueryOptions::default()).unwrap());
    assert_eq!(std::fs::read_dir(&index).unwrap().count(), 2);
    let nowhere = directory.path().join("nowhere");
    run_fail(&[
        &"build-geocode-index",
        &nowhere,
        &"--output-dir",
        &directory.path().join("new"),
    ]);
    assert!(!directory.path().join("new").exists());
    let found = run_ok(&[&"geocode", &index, &"41.1496", &"-8.6109"]).stdout;
    assert_eq!(String::from_utf8(found).unwrap().trim_end(), old.label);
}
