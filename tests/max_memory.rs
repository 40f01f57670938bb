//! `--max-memory`: the peak memory of every command with this option stays below the limit, on sorted, shuffled and
//! hostile input.

use crate::common::craft::{self, Shape};
use crate::common::{Arg, Kind, Object, node, relation, run_fail, run_ok, way, world};
use std::path::{Path, PathBuf};

/// Objects with scattered ids, at most one in each range of 65,536 ids, in no order and with distinct tags.
fn hostile(dir: &Path) -> PathBuf {
    let scattered = |at: i64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 20;
    let tag = |at: i64| (format!("key {at}"), format!("{at} {}", "value ".repeat(8)));
    let nodes: Vec<Object> = (1..120_000)
        .map(|at| {
            let (key, value) = tag(at);
            node(
                scattered(at),
                at % 900_000_000,
                at % 800_000_000,
                &[(&key, &value)],
            )
        })
        .collect();
    let ways: Vec<Object> = (1..6000)
        .map(|at| {
            let refs: Vec<i64> = (0..40).map(|step| scattered(at * 17 + step * 29)).collect();
            way(scattered(at), &refs, &[])
        })
        .collect();
    let relations: Vec<Object> = (1..3000)
        .map(|at| {
            let members = [
                (Kind::Way, scattered(at), ""),
                (Kind::Relation, scattered(at + 1), ""),
            ];
            relation(scattered(at), &members, &[("type", "multipolygon")])
        })
        .collect();
    // Blobs of several kinds precede the blobs of one kind, and are between them.
    let mut mixed: Vec<Object> = Vec::new();
    mixed.extend_from_slice(&ways[..100]);
    mixed.extend_from_slice(&nodes[..100]);
    let mut blocks = vec![craft::block(&mixed, &Shape::USUAL)];
    for objects in [&relations, &ways, &nodes] {
        blocks.extend(
            objects
                .chunks(3000)
                .map(|part| craft::block(part, &Shape::USUAL)),
        );
    }
    let path = dir.join("hostile.osm.pbf");
    std::fs::write(&path, craft::plain_file(&blocks)).unwrap();
    path
}

fn regions(dir: &Path) -> PathBuf {
    let path = dir.join("regions.json");
    let region = |at: i32| {
        let (west, south) = (at * 17 % 340 - 170, at * 7 % 150 - 75);
        let (east, north) = (west + 8, south + 8);
        format!("{{\"output\":\"{at}.osm.pbf\",\"bbox\":[{west},{south},{east},{north}]}}")
    };
    let regions: Vec<String> = (0..40).map(region).collect();
    let config = format!("{{\"extracts\":[{}]}}", regions.join(","));
    std::fs::write(&path, config).unwrap();
    path
}

#[test]
fn the_peak_stays_below_the_limit_on_sorted_shuffled_and_hostile_input() {
    let dir = tempfile::tempdir().unwrap();
    let sorted = world(dir.path(), "400000");
    let [shuffled, bare, output, stats, out] = [
        "u.osm.pbf",
        "bare.osm.pbf",
        "out.osm.pbf",
        "stats.json",
        "extracts",
    ]
    .map(|name| dir.path().join(name));
    run_ok(&[
        &"degrade",
        &"--unsort",
        &"--unsort-intra",
        &sorted,
        &"-o",
        &shuffled,
    ]);
    run_ok(&[&"cat", &"--no-index", &shuffled, &"-o", &bare]);
    std::fs::create_dir(&out).unwrap();
    let (hostile, regions) = (hostile(dir.path()), regions(dir.path()));
    let add = |kind: &'static str| -> Vec<&'static str> {
        vec!["add-locations-to-ways", "-O", "--index-type", kind]
    };
    let commands: [(Vec<&str>, u64); 6] = [
        (add("auto"), 130),
        (add("sparse"), 130),
        (add("external"), 130),
        (vec!["extract", "-O", "-s", "smart"], 130),
        (vec!["inspect", "tags"], 110),
        (vec!["inspect", "tags", "-t", "node"], 110),
    ];
    for input in [&sorted, &shuffled, &bare, &hostile] {
        for (words, megabytes) in &commands {
            let limit = format!("{megabytes}M");
            let mut args: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
            args.extend([
                &"-q" as Arg,
                &"-j",
                &"2",
                &"--max-memory",
                &limit,
                &"--stats",
                &stats,
                input,
            ]);
            match words[0] {
                "extract" => args.extend([&"-c" as Arg, &regions, &"-d", &out]),
                "inspect" => {}
                _ => args.extend([&"-o" as Arg, &output]),
            }
            run_ok(&args);
            let report: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
            let peak = report["peak_memory_bytes"].as_u64().unwrap();
            println!(
                "{} {words:?}: {:.1} of {megabytes} MB",
                input.display(),
                peak as f64 / 1e6
            );
            assert!(
                peak <= megabytes * 1_000_000,
                "{} {words:?}: {peak}",
                input.display()
            );
        }
    }
}

#[test]
fn a_region_that_needs_more_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = hostile(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[
        &"extract",
        &"-b",
        &"-1,-1,1,1",
        &"-j",
        &"2",
        &"--max-memory",
        &"72M",
        &input,
        &"-o",
        &output,
    ]);
    assert!(message.contains("--max-memory 72.0 MB leaves"), "{message}");
    assert!(!output.exists());
}
