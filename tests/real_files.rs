//! `cat` and `inspect` of all real files.

use crate::common;
use crate::common::oracle::{assert_same_opl, opl, osmium, real_files};
use crate::common::{decode, is_canonical, run_ok};
use std::path::Path;

#[test]
fn cat_keeps_every_object_of_every_real_file() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for input in real_files() {
        let output = dir.path().join(input.file_name().unwrap());
        run_ok(&[&"cat", &input, &"-o", &output]);
        assert_same_opl(&opl(&output), &opl(&input));
    }
}

#[test]
fn an_indexed_file_passes_through_cat_again_without_being_decoded() {
    let dir = tempfile::tempdir().unwrap();
    for input in real_files() {
        let (first, second) = (
            dir.path().join("first.osm.pbf"),
            dir.path().join("second.osm.pbf"),
        );
        let stats = dir.path().join("stats.json");
        run_ok(&[&"cat", &input, &"-O", &"-o", &first]);
        run_ok(&[&"cat", &first, &"-O", &"-o", &second, &"--stats", &stats]);
        let stats: serde_json::Value = read_json(&stats);
        // The last blob, whose strings are those of a table of contents, too.
        assert_eq!(stats["blobs_decoded"], 1, "{}", input.display());
        assert!(decode::objects(&first) == decode::objects(&second));
    }
}

#[test]
fn inspect_counts_what_is_in_every_real_file_with_and_without_index() {
    let dir = tempfile::tempdir().unwrap();
    for input in real_files() {
        let indexed = dir.path().join("indexed.osm.pbf");
        run_ok(&[&"cat", &input, &"-O", &"-o", &indexed]);
        let objects = decode::objects(&input);
        for path in [&input, &indexed] {
            let report = inspect(path);
            assert_eq!(report["objects"], objects.len(), "{}", input.display());
            assert_eq!(
                report["sorted"],
                is_canonical(&objects),
                "{}",
                input.display()
            );
            assert_eq!(report["indexed"], path == &indexed);
        }
    }
}

#[test]
fn a_header_that_lies_about_order_is_found_out() {
    let input = common::oracle::real_file("baltimore.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    let report = inspect(&input);
    assert_eq!(
        (&report["declared_sorted"], &report["sorted"]),
        (&true.into(), &false.into())
    );
    run_ok(&[&"cat", &input, &"-o", &output]);
    let declared = decode::header(&output).optional;
    assert!(
        !declared.contains(&"Sort.Type_then_ID".to_owned()),
        "cat must not repeat the lie"
    );
}

#[test]
fn the_output_requires_what_the_data_needs_and_dense_nodes_which_readers_expect() {
    let dir = tempfile::tempdir().unwrap();
    for input in real_files() {
        let output = dir.path().join("out.osm.pbf");
        run_ok(&[&"sort", &input, &"-O", &"-o", &output]);
        let objects = decode::objects(&input);
        let required = decode::header(&output).required;
        let has = |name: &str| required.iter().any(|found| found == name);
        assert_eq!(
            has("HistoricalInformation"),
            objects.iter().any(|object| !object.visible)
        );
        assert!(has("OsmSchema-V0.6") && has("DenseNodes"));
    }
}

fn inspect(path: &Path) -> serde_json::Value {
    let output = run_ok(&[&"inspect", &"--json", &path]);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn read_json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
