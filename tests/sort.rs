//! `sort`: input in any order, output in canonical order.

use crate::common;
use crate::common::craft::{self, Shape};
use crate::common::{
    Kind, Object, decode, in_turn, is_canonical, is_long, known, mixed_objects, node, run_ok, way,
};
use std::path::{Path, PathBuf};

fn write(dir: &Path, name: &str, blocks: &[Vec<u8>]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, craft::plain_file(blocks)).unwrap();
    path
}

fn block(objects: &[Object]) -> Vec<u8> {
    craft::block(objects, &Shape::USUAL)
}

/// The objects in the order in which `sort` must write them.
fn sorted(mut objects: Vec<Object>) -> Vec<Object> {
    objects.sort_by_key(|object| {
        (
            common::canonical_key(object.kind, object.id),
            object.version,
        )
    });
    objects
}

#[test]
fn every_awkward_block_comes_out_in_order_with_nothing_lost() {
    let dir = tempfile::tempdir().unwrap();
    for crafted in common::awkward::awkward_blocks() {
        let input = dir.path().join("in.osm.pbf");
        let output = dir.path().join("out.osm.pbf");
        std::fs::write(&input, crafted.file()).unwrap();
        run_ok(&[&"sort", &input, &"-O", &"-o", &output]);
        assert_eq!(
            decode::objects(&output),
            sorted(crafted.objects),
            "{}",
            crafted.name
        );
    }
}

#[test]
fn objects_shuffled_within_and_across_blobs_are_put_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut objects = known(mixed_objects());
    for id in 0..5000 {
        // 7919 is coprime to 5000: each id occurs once, far from its sorted position.
        let id = id * 7919 % 5000 + 100;
        objects.push(node(id, id, -id, &[("n", &id.to_string())]));
        objects.push(way(id, &[id, id + 1], &[("highway", "service")]));
    }
    let blocks: Vec<_> = objects.chunks(700).map(block).collect();
    let input = write(dir.path(), "in.osm.pbf", &blocks);
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"sort", &input, &"-o", &output]);
    assert_eq!(decode::objects(&output), sorted(objects));
}

#[test]
fn versions_of_one_object_stay_together_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let version =
        |id, version| common::with_metadata(node(id, id, version, &[]), version, 1000, 1, "u");
    let first = [version(1, 2), version(2, 1), version(3, 3)];
    let second = [version(1, 1), version(3, 1), version(3, 2)];
    let input = write(dir.path(), "in.osm.pbf", &[block(&first), block(&second)]);
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"sort", &input, &"-o", &output]);
    let found: Vec<_> = decode::objects(&output)
        .iter()
        .map(|object| (object.id, object.version.unwrap()))
        .collect();
    assert_eq!(found, [(1, 1), (1, 2), (2, 1), (3, 1), (3, 2), (3, 3)]);
}

#[test]
fn blobs_in_place_are_copied_and_only_overlapping_ones_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let run = |ids: std::ops::Range<i64>, step: usize| {
        block(
            &ids.step_by(step)
                .map(|id| node(id, 0, 0, &[]))
                .collect::<Vec<_>>(),
        )
    };
    let blocks = [
        run(1..100, 1),
        run(200..300, 2),
        run(201..300, 2),
        run(400..500, 1),
    ];
    let input = write(dir.path(), "in.osm.pbf", &blocks);
    let output = dir.path().join("out.osm.pbf");
    let summary = run_ok(&[&"sort", &input, &"--json", &"-o", &output]);
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).unwrap();
    assert_eq!(
        (&summary["blobs_copied"], &summary["blobs_merged"]),
        (&2.into(), &2.into())
    );
    assert!(is_canonical(&decode::objects(&output)));
}

#[test]
fn several_files_become_one_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let objects = known(mixed_objects());
    let (odd, even): (Vec<_>, Vec<_>) = objects
        .iter()
        .cloned()
        .partition(|object| object.id % 2 != 0);
    let inputs = [
        write(dir.path(), "odd.osm.pbf", &[block(&odd)]),
        write(dir.path(), "even.osm.pbf", &[block(&even)]),
    ];
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"sort", &inputs[0], &inputs[1], &"-o", &output]);
    assert_eq!(decode::objects(&output), sorted(objects));
}

#[test]
fn a_random_order_over_many_blobs_is_sorted_by_runs_with_the_same_result() {
    let dir = tempfile::tempdir().unwrap();
    // Long tags make the payloads large enough for many shards.
    let long = "x".repeat(4000);
    let count = if is_long() { 40_000 } else { 30_000 };
    let ids: Vec<i64> = (0..count).map(|index| index * 7919 % count + 1).collect();
    let blocks: Vec<_> = ids
        .chunks(4000)
        .map(|ids| {
            let text: Vec<String> = ids.iter().map(|id| format!("{id}{long}")).collect();
            let nodes = ids
                .iter()
                .zip(&text)
                .map(|(&id, text)| node(id, id, id, &[("t", text)]));
            block(&nodes.collect::<Vec<_>>())
        })
        .collect();
    let input = write(dir.path(), "in.osm.pbf", &blocks);
    let output = dir.path().join("out.osm.pbf");
    let stats = dir.path().join("stats.json");
    run_ok(&[
        &"sort", &input, &"-j", &"8", &"--stats", &stats, &"-o", &output,
    ]);
    let found: Vec<_> = decode::objects(&output)
        .iter()
        .map(|object| object.id)
        .collect();
    assert_eq!(found, (1..=count).collect::<Vec<_>>());
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
    let phases = stats["phases"].as_array().unwrap();
    assert!(
        phases.iter().any(|phase| phase["name"] == "sort runs"),
        "{phases:?}"
    );
}

#[test]
fn the_same_bytes_come_out_whatever_the_number_of_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let blocks: Vec<_> = known(mixed_objects()).chunks(5).rev().map(block).collect();
    let input = write(dir.path(), "in.osm.pbf", &blocks);
    let outputs = ["1", "2", "8"].map(|jobs| {
        let output = dir.path().join(format!("{jobs}.osm.pbf"));
        run_ok(&[&"sort", &input, &"-j", &jobs, &"-o", &output]);
        std::fs::read(output).unwrap()
    });
    assert!(outputs[0] == outputs[1] && outputs[1] == outputs[2]);
}

#[test]
fn large_clusters_and_runs_give_the_same_bytes_on_any_number_of_cores() {
    let dir = tempfile::tempdir().unwrap();
    let long = "y".repeat(9000);
    // First chains of overlapping blobs, then blobs that each span the whole range of ids.
    let blob = |ids: &mut dyn Iterator<Item = i64>, seed: i64| {
        let nodes: Vec<_> = ids
            .map(|id| {
                node(
                    id,
                    id,
                    seed,
                    &[("t", &long), ("n", &format!("{id}-{seed}"))],
                )
            })
            .collect();
        // Each node has a distinct string, so that strings are not shared and the payload is as long as intended.
        let text: Vec<String> = nodes
            .iter()
            .map(|node| format!("{long}{}-{seed}", node.id))
            .collect();
        let nodes = nodes
            .iter()
            .zip(&text)
            .map(|(object, text)| node(object.id, object.id, seed, &[("t", text)]));
        block(&nodes.collect::<Vec<_>>())
    };
    let mut blocks: Vec<_> = (0..60)
        .map(|index| blob(&mut (index * 100..index * 100 + 150).step_by(2), index))
        .collect();
    blocks.extend(
        (0..180).map(|index| blob(&mut (0..70).map(|step| 100_000 + step * 500 + index), index)),
    );
    let input = write(dir.path(), "in.osm.pbf", &blocks);
    let outputs = in_turn(0, 2, ["1", "2", "8"]).map(|jobs| {
        let output = dir.path().join(format!("{jobs}.osm.pbf"));
        run_ok(&[&"sort", &input, &"-j", &jobs, &"-o", &output]);
        std::fs::read(output).unwrap()
    });
    let outputs: Vec<Vec<u8>> = outputs.collect();
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
    let frames = decode::frames(&dir.path().join("8.osm.pbf"));
    assert!(
        frames.iter().all(|frame| frame.compression == "zlib"),
        "temporary blobs must not pass through"
    );
    let objects: Vec<_> = blocks
        .iter()
        .flat_map(|payload| decode::block(payload))
        .collect();
    assert!(decode::objects(&dir.path().join("8.osm.pbf")) == sorted(objects));
}

#[test]
fn versions_that_descend_over_two_groups_are_found_out() {
    let dir = tempfile::tempdir().unwrap();
    let version =
        |id, version| common::with_metadata(node(id, id, version, &[]), version, 1000, 1, "u");
    let first = craft::block(&[version(4, 1), version(5, 3)], &Shape::USUAL);
    let second = craft::block(&[version(5, 2), version(6, 1)], &Shape::USUAL);
    // Joins the groups of both blocks after the string table of the first, since the tables are equal.
    assert_eq!(second[0], 0x0a);
    let behind_table = &second[2 + usize::from(second[1])..];
    let both = [&first, behind_table].concat();
    let input = write(dir.path(), "in.osm.pbf", &[both]);
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"sort", &input, &"-o", &output]);
    let found: Vec<_> = decode::objects(&output)
        .iter()
        .map(|object| (object.id, object.version.unwrap()))
        .collect();
    assert_eq!(found, [(4, 1), (5, 2), (5, 3), (6, 1)]);
}

#[test]
fn blocks_of_another_granularity_do_not_break_the_output_into_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = |start: i64| {
        (start..6000)
            .step_by(2)
            .map(|id| node(id, id * 10, -id * 10, &[]))
            .collect::<Vec<_>>()
    };
    let coarse = Shape {
        granularity: 1000,
        ..Shape::USUAL
    };
    let blocks = [
        craft::block(&nodes(1), &Shape::USUAL),
        craft::block(&nodes(2), &coarse),
    ];
    let input = write(dir.path(), "in.osm.pbf", &blocks);
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"sort", &input, &"-o", &output]);
    // The last object has a blob of its own, for the table of contents.
    let blocks = decode::blocks(&output);
    assert!(blocks.len() == 2 && blocks[1].1 == 1);
    assert!(decode::objects(&output) == sorted([nodes(1), nodes(2)].concat()));
}

#[test]
fn an_object_whose_versions_span_two_blobs_is_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let version = |version| common::with_metadata(node(7, 1, 1, &[]), version, 1000, 1, "u");
    let input = write(
        dir.path(),
        "in.osm.pbf",
        &[block(&[version(1), version(2)]), block(&[version(3)])],
    );
    let report = run_ok(&[&"inspect", &input]);
    assert!(!String::from_utf8_lossy(&report.stdout).contains("not sorted"));
}

#[test]
fn nodes_come_before_ways_before_relations() {
    let dir = tempfile::tempdir().unwrap();
    let mut objects = known(mixed_objects());
    objects.reverse();
    let input = write(dir.path(), "in.osm.pbf", &[block(&objects)]);
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"sort", &input, &"-o", &output]);
    let kinds: Vec<Kind> = decode::objects(&output)
        .iter()
        .map(|object| object.kind)
        .collect();
    assert!(kinds.is_sorted());
}
