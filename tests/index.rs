//! The table of contents and the per-blob index: small headers, honest tables, stale ones found.

use crate::common;
use crate::common::craft::{self, Shape};
use crate::common::oracle::{assert_same_opl, opl, osmium, shared_data};
use crate::common::{Object, decode, node, run_fail, run_ok, way};
use std::path::{Path, PathBuf};

fn nodes(ids: std::ops::Range<i64>) -> Vec<Object> {
    ids.map(|id| node(id, id, -id, &[("k", "value")])).collect()
}

/// An indexed file of three blobs, uncompressed so that blobs of equal shape have equal length.
fn indexed(dir: &Path) -> PathBuf {
    let (plain, indexed) = (dir.join("plain.osm.pbf"), dir.join("indexed.osm.pbf"));
    let ways: Vec<_> = (1..50).map(|id| way(id, &[id, id + 1], &[])).collect();
    let payloads = [nodes(101..151), nodes(201..251), ways]
        .map(|objects| craft::block(&objects, &Shape::USUAL));
    let mut file = craft::plain_file(&[]);
    for payload in &payloads {
        file.extend(craft::frame("OSMData", &craft::raw_blob(payload)));
    }
    std::fs::write(&plain, file).unwrap();
    run_ok(&[&"cat", &plain, &"-o", &indexed]);
    indexed
}

fn json(output: &std::process::Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_output_has_a_table_and_plain_blob_headers() {
    let Some(input) = shared_data("malta.osm.pbf") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"cat", &input, &"-o", &output]);
    assert!(decode::header(&output).toc.is_some());
    let frames = decode::frames(&output);
    assert_eq!(
        frames[0].compression, "zlib",
        "some readers refuse a raw header"
    );
    assert!(
        frames
            .iter()
            .all(|frame| frame.header_len <= 20 && frame.indexdata.is_none())
    );
    run_ok(&[&"inspect", &"--indexed", &output]);
}

#[test]
fn an_unindexed_file_is_told_by_the_exit_status() {
    let Some(input) = shared_data("malta.osm.pbf") else {
        return;
    };
    let status = common::pbfhogg()
        .args(["inspect", "--indexed"])
        .arg(&input)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"cat", &"--no-index", &input, &"-o", &output]);
    assert!(decode::header(&output).toc.is_none());
}

#[test]
fn the_per_blob_index_says_what_is_in_each_blob() {
    let Some(input) = shared_data("malta.osm.pbf") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"cat", &"--blob-index", &input, &"-o", &output]);
    let frames = decode::frames(&output);
    for frame in &frames[1..] {
        assert!(frame.header_len < 32 * 1024);
        let objects = decode::block(&frame.payload);
        let Some(index) = &frame.indexdata else {
            assert!(
                objects.iter().any(|object| object.kind != objects[0].kind),
                "only mixed blobs have none"
            );
            continue;
        };
        assert_eq!(
            (index.len(), index[0], index[1]),
            (42, 2, objects[0].kind as u8)
        );
        let long = |at: usize| i64::from_le_bytes(index[at..at + 8].try_into().unwrap());
        let ids = || objects.iter().map(|object| object.id);
        assert_eq!(
            (long(2), long(10)),
            (ids().min().unwrap(), ids().max().unwrap())
        );
        assert_eq!(long(18), objects.len() as i64);
        if objects[0].kind == common::Kind::Node {
            let south = i32::from_le_bytes(index[26..30].try_into().unwrap());
            assert_eq!(
                Some(i64::from(south)),
                objects.iter().map(|node| node.lat_nano / 100).min()
            );
        }
    }
    if osmium() {
        assert_same_opl(&opl(&output), &opl(&input));
    }
}

#[test]
fn a_file_with_only_per_blob_indexes_is_planned_without_being_decoded() {
    let Some(input) = shared_data("heidelberg.osm.pbf") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let [indexed, changes, output, stats] =
        ["i.osm.pbf", "a.osc", "o.osm.pbf", "s.json"].map(|name| dir.path().join(name));
    run_ok(&[
        &"cat",
        &"--blob-index",
        &"--no-index",
        &input,
        &"-o",
        &indexed,
    ]);
    let report = json(&run_ok(&[
        &"inspect", &"--json", &indexed, &"--stats", &stats,
    ]));
    let stats_of = |path: &Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    assert_eq!(
        (&report["index"], &stats_of(&stats)["blobs_decoded"]),
        (&"per-blob indexes".into(), &0.into())
    );
    std::fs::write(
        &changes,
        "<osmChange><create><node id='1' lat='1' lon='1'/></create></osmChange>",
    )
    .unwrap();
    run_ok(&[
        &"apply-changes",
        &indexed,
        &changes,
        &"-o",
        &output,
        &"--stats",
        &stats,
    ]);
    assert!(stats_of(&stats)["blobs_decoded"].as_u64().unwrap() <= 1);
    assert_eq!(
        decode::objects(&output).len(),
        decode::objects(&input).len() + 1
    );
}

#[test]
fn a_truncated_indexed_file_is_an_error_in_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let path = indexed(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let frames = decode::frames(&path);
    let output = dir.path().join("out.osm.pbf");
    // In the middle of a blob, and between two blobs, where nothing else would tell.
    for cut in [bytes.len() - 1, frames[3].offset as usize] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        for command in ["cat", "sort"] {
            let message = run_fail(&[&command, &path, &"-o", &output]);
            assert!(
                message.contains("truncated") && message.contains("indexed.osm.pbf"),
                "{message}"
            );
        }
        run_fail(&[&"inspect", &path]);
        assert!(!output.exists());
    }
}

#[test]
fn a_table_of_a_file_that_grew_is_ignored_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = indexed(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(craft::frame(
        "OSMData",
        &craft::zlib_blob(&craft::block(&[way(60, &[1], &[])], &Shape::USUAL)),
    ));
    std::fs::write(&path, bytes).unwrap();
    let output = run_ok(&[&"inspect", &"--json", &path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("stale"));
    assert_eq!(json(&output)["objects"], 150);
}

#[test]
fn a_blob_that_was_replaced_in_place_is_found_out_when_it_is_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let path = indexed(dir.path());
    let frames = decode::frames(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let other = craft::frame(
        "OSMData",
        &craft::raw_blob(&craft::block(&nodes(102..152), &Shape::USUAL)),
    );
    let start = frames[1].offset as usize;
    assert_eq!(other.len(), frames[1].frame_len);
    bytes[start..start + other.len()].copy_from_slice(&other);
    std::fs::write(&path, bytes).unwrap();
    let changes = dir.path().join("a.osc");
    std::fs::write(
        &changes,
        "<osmChange><delete><node id='120'/></delete></osmChange>",
    )
    .unwrap();
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[&"apply-changes", &path, &changes, &"-o", &output]);
    assert!(
        message.contains("blob 1 at byte") && message.contains("cat --force"),
        "{message}"
    );
    assert!(!output.exists());
    // The advice helps.
    let rebuilt = dir.path().join("rebuilt.osm.pbf");
    run_ok(&[&"cat", &"--force", &path, &"-o", &rebuilt]);
    run_ok(&[&"apply-changes", &rebuilt, &changes, &"-o", &output]);
    assert_eq!(decode::objects(&output).len(), 148);
}

#[test]
fn a_per_blob_index_that_lies_is_found_out_before_a_change_is_misplaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lying.osm.pbf");
    let mut index = vec![2u8, 0];
    [101i64, 120, 50]
        .iter()
        .for_each(|value| index.extend(value.to_le_bytes()));
    index.extend([0; 16]);
    let payload = craft::block(&nodes(101..151), &Shape::USUAL);
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &["Sort.Type_then_ID"]);
    let mut file = craft::file(header, &[]);
    file.extend(craft::frame_with_index(
        "OSMData",
        &index,
        &craft::zlib_blob(&payload),
    ));
    std::fs::write(&path, file).unwrap();
    let changes = dir.path().join("a.osc");
    std::fs::write(
        &changes,
        "<osmChange><delete><node id='110'/></delete></osmChange>",
    )
    .unwrap();
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[&"apply-changes", &path, &changes, &"-o", &output]);
    assert!(message.contains("the range of ids differs"), "{message}");
}

#[test]
fn a_table_too_large_for_its_room_is_degraded_and_the_file_stays_correct() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, output, again) = (
        dir.path().join("p.osm.pbf"),
        dir.path().join("o.osm.pbf"),
        dir.path().join("a.osm.pbf"),
    );
    // The room is guessed from the first blobs: large ones here, thousands of tiny ones behind.
    let large: Vec<_> = (0..70)
        .map(|blob| craft::block(&nodes(blob * 3000 + 1..blob * 3000 + 2900), &Shape::USUAL))
        .collect();
    let tiny = (0..9000).map(|id| {
        craft::block(
            &nodes(300_000 + id * 3..300_000 + id * 3 + 1),
            &Shape::USUAL,
        )
    });
    let blocks: Vec<_> = large.into_iter().chain(tiny).collect();
    std::fs::write(&plain, craft::plain_file(&blocks)).unwrap();
    run_ok(&[&"cat", &plain, &"-o", &output]);
    let report = json(&run_ok(&[&"inspect", &"--json", &output]));
    assert_eq!(
        (&report["blobs"], &report["sorted"]),
        (&9070.into(), &true.into())
    );
    let objects = decode::objects(&plain);
    assert_eq!(report["objects"], objects.len());
    assert!(decode::objects(&output) == objects);
    // A degraded table still serves: sort copies, and changes find their blobs.
    run_ok(&[&"sort", &output, &"-o", &again]);
    assert!(decode::objects(&again) == objects);
    let changes = dir.path().join("a.osc");
    std::fs::write(
        &changes,
        "<osmChange><delete><node id='300003'/><node id='7'/></delete></osmChange>",
    )
    .unwrap();
    run_ok(&[&"apply-changes", &output, &changes, &"-O", &"-o", &again]);
    let expected: Vec<_> = objects
        .into_iter()
        .filter(|object| object.id != 300_003 && object.id != 7)
        .collect();
    assert!(decode::objects(&again) == expected);
}

#[test]
fn a_stream_has_no_table_and_is_complete() {
    let Some(input) = shared_data("monaco.osm.pbf") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let output = run_ok(&[&"sort", &input, &"-o", &"-"]);
    let path = dir.path().join("stream.osm.pbf");
    std::fs::write(&path, output.stdout).unwrap();
    assert!(decode::header(&path).toc.is_none());
    assert!(decode::objects(&path) == decode::objects(&input));
}

#[test]
fn a_stream_declares_what_it_may_hold_and_no_order_that_was_not_verified() {
    let dir = tempfile::tempdir().unwrap();
    let plain = Shape {
        dense: false,
        ..Shape::USUAL
    };
    let blocks = [
        craft::block(&nodes(200..250), &plain),
        craft::block(&nodes(100..150), &plain),
    ];
    let header = craft::header_payload(&["OsmSchema-V0.6"], &["Sort.Type_then_ID"]);
    let (input, stream) = (
        dir.path().join("in.osm.pbf"),
        dir.path().join("stream.osm.pbf"),
    );
    std::fs::write(&input, craft::file(header, &blocks)).unwrap();
    std::fs::write(&stream, run_ok(&[&"cat", &input, &"-o", &"-"]).stdout).unwrap();
    assert!(
        !decode::header(&stream)
            .optional
            .contains(&"Sort.Type_then_ID".to_owned())
    );
    std::fs::write(&stream, run_ok(&[&"sort", &input, &"-o", &"-"]).stdout).unwrap();
    let header = decode::header(&stream);
    assert!(header.required.contains(&"DenseNodes".to_owned()));
    assert!(header.optional.contains(&"Sort.Type_then_ID".to_owned()));
}

#[test]
fn inspect_counts_kinds_in_blobs_of_several_kinds() {
    let Some(input) = shared_data("malta.osm.pbf") else {
        return;
    };
    for (key, count) in [
        ("data.count.nodes", "252937"),
        ("data.count.ways", "40028"),
        ("data.count.relations", "527"),
    ] {
        assert_eq!(
            String::from_utf8(run_ok(&[&"inspect", &"-g", &key, &input]).stdout)
                .unwrap()
                .trim(),
            count
        );
    }
}
