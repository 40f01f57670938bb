//! `build-geocode-index`: the same bytes however it was made, damage to it, and its replacement.

use crate::common::oracle::real_file;
use crate::common::{Arg, run_fail, run_ok};
use crate::geocode::built;
use pbfhogg::Location;
use pbfhogg::geocode::{GeocodeIndex, QueryOptions};
use std::path::Path;

#[test]
fn an_index_has_the_same_bytes_however_it_was_made() {
    let input = real_file("porto.osm.pbf");
    let directory = tempfile::tempdir().unwrap();
    let index = directory.path().join("index");
    let located = directory.path().join("located.osm.pbf");
    run_ok(&[&"add-locations-to-ways", &input, &"-o", &located]);
    let bytes = |input: &Path, more: &[Arg]| {
        let build: [Arg; 5] = [
            &"build-geocode-index",
            &input,
            &"-O",
            &"--output-dir",
            &index,
        ];
        run_ok(&[&build, more].concat());
        let mut files = std::fs::read_dir(&index)
            .unwrap()
            .map(|file| file.unwrap().path());
        let file = files.find(|path| path.extension() == Some("bin".as_ref()));
        std::fs::read(file.unwrap()).unwrap()
    };
    let expected = bytes(&input, &[]);
    let choices: [&[Arg]; 5] = [
        &[&"-j", &"1"],
        &[&"-j", &"7"],
        &[&"-i", &"external"],
        &[&"-i", &"dense"],
        &[&"--max-memory", &"96M"],
    ];
    for choice in choices {
        assert!(bytes(&input, choice) == expected);
    }
    assert!(bytes(&located, &[]) == expected);
}

#[test]
fn a_damaged_index_is_refused_or_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let input = real_file("porto.osm.pbf");
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
    let input = real_file("porto.osm.pbf");
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
