//! `repack` and `degrade`: the same objects in other blobs, and deliberately awkward files.

use crate::common;
use crate::common::answers::{ask, file_of, in_order};
use crate::common::decode::compressions;
use crate::common::extracts::random_world;
use crate::common::oracle::real_files;
use crate::common::questions::awkward_file;
use crate::common::{
    Kind, Object, canonical_key, decode, in_turn, is_canonical, mixed_objects, node, run_fail,
    run_ok, small_world, stderr, way, world,
};
use std::path::Path;

fn repacked(input: &Path, elements: usize) -> (Vec<Object>, Vec<(Vec<Kind>, usize)>) {
    let output = input.with_file_name("repacked.osm.pbf");
    let mut outputs = Vec::new();
    for jobs in ["1", "3"] {
        let elements = elements.to_string();
        run_ok(&[
            &"repack", &"-O", &"-j", &jobs, &"-n", &elements, &input, &"-o", &output,
        ]);
        outputs.push(std::fs::read(&output).unwrap());
    }
    assert!(
        outputs[0] == outputs[1],
        "{elements}: bytes depend on the number of threads"
    );
    (decode::objects(&output), decode::blocks(&output))
}

/// The number of objects per block, if each block has as many as it may have.
fn full(objects: &[Object], elements: usize) -> Vec<usize> {
    let runs = objects.chunk_by(|one, two| one.kind == two.kind);
    runs.flat_map(|run| run.chunks(elements).map(<[Object]>::len))
        .collect()
}

#[test]
fn blocks_are_full_and_objects_stay_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..3 {
        let objects = random_world(seed, 150, seed == 1);
        for size in in_turn(seed as usize, 2, [1, 7, 64, 1000]) {
            let blobs: Vec<&[Object]> = objects.chunks(size).collect();
            let input = common::answers::history_of(dir.path(), "in.osm.pbf", &blobs);
            for elements in [1, 3, 7, 50, 100_000] {
                let (found, blocks) = repacked(&input, elements);
                assert!(found == objects, "{seed} {size} {elements}");
                let sizes: Vec<usize> = blocks.iter().map(|block| block.1).collect();
                let expected = full(&objects, elements);
                // The last objects have blobs of their own, for the table of contents.
                let before = sizes.len().saturating_sub(3);
                assert_eq!(
                    sizes[..before],
                    expected[..before],
                    "{seed} {size} {elements}"
                );
                assert!(sizes[before..].iter().all(|size| *size <= elements));
                assert_eq!(sizes.iter().sum::<usize>(), expected.iter().sum::<usize>());
            }
        }
    }
}

#[test]
fn awkward_blocks_are_repacked_object_by_object() {
    let dir = tempfile::tempdir().unwrap();
    let (input, objects) = awkward_file(dir.path());
    for elements in [2, 8000] {
        assert!(repacked(&input, elements).0 == objects, "{elements}");
    }
}

#[test]
fn real_files_survive_and_what_is_full_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    for input in real_files() {
        let copy = dir.path().join("in.osm.pbf");
        std::fs::copy(&input, &copy).unwrap();
        assert!(
            repacked(&copy, 1000).0 == decode::objects(&input),
            "{}",
            input.display()
        );
    }
    let input = world(dir.path(), "60000");
    let (once, twice) = (
        dir.path().join("once.osm.pbf"),
        dir.path().join("twice.osm.pbf"),
    );
    let stats = dir.path().join("stats.json");
    run_ok(&[&"repack", &input, &"-n", &"500", &"-o", &once]);
    run_ok(&[
        &"repack", &once, &"-n", &"500", &"-o", &twice, &"--stats", &stats,
    ]);
    let stats: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
    // The last blobs are not full, because their objects have the table of contents.
    assert!(stats["blobs_decoded"].as_u64().unwrap() <= 3, "{stats}");
    assert!(decode::objects(&twice) == decode::objects(&input));
    for elements in ["0", "-1", "x", "1000001"] {
        let answer = ask(&[
            &"repack",
            &input,
            &format!("--objects-per-blob={elements}"),
            &"-o",
            &twice,
        ]);
        assert_eq!(answer.status, 2, "{elements}");
    }
}

fn degraded(input: &Path, args: &[&str]) -> std::path::PathBuf {
    let output = input.with_file_name("degraded.osm.pbf");
    let mut outputs = Vec::new();
    for jobs in ["1", "3"] {
        let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"degrade", &"-O", &"-j", &jobs, &input];
        all.extend(args.iter().map(|arg| arg as &dyn AsRef<std::ffi::OsStr>));
        all.extend([&"-o" as &dyn AsRef<std::ffi::OsStr>, &output]);
        run_ok(&all);
        outputs.push(std::fs::read(&output).unwrap());
    }
    assert!(
        outputs[0] == outputs[1],
        "{args:?}: bytes depend on the number of threads"
    );
    output
}

fn sorted(objects: &[Object]) -> Vec<Object> {
    let mut objects = objects.to_vec();
    objects.sort_by_key(|object| (canonical_key(object.kind, object.id), object.version));
    objects
}

#[test]
fn unsorted_files_hold_the_same_objects_and_can_be_sorted_again() {
    let dir = tempfile::tempdir().unwrap();
    let many = world(dir.path(), "60000");
    let single = file_of(dir.path(), "single.osm.pbf", &[&in_order(mixed_objects())]);
    for input in [&many, &single] {
        let objects = decode::objects(input);
        for args in [
            &["--unsort"][..],
            &["--unsort-intra"],
            &["--unsort", "--unsort-intra", "--strip-index"],
        ] {
            let output = degraded(input, args);
            let found = decode::objects(&output);
            assert!(!is_canonical(&found), "{args:?}");
            assert!(sorted(&found) == sorted(&objects), "{args:?}");
            assert!(
                !decode::header(&output)
                    .optional
                    .contains(&"Sort.Type_then_ID".into())
            );
            assert_eq!(
                ask(&[&"check", &"--ids", &"-q", &output]).status,
                1,
                "{args:?}"
            );
            let back = dir.path().join("back.osm.pbf");
            run_ok(&[&"sort", &"-O", &output, &"-o", &back]);
            assert!(decode::objects(&back) == sorted(&objects), "{args:?}");
        }
    }
}

#[test]
fn a_stripped_property_is_gone_and_the_rest_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut located = way(5, &[1, 2], &[("a", "b")]);
    located.locations = vec![(0, 0), (100, 200)];
    let plain = file_of(
        dir.path(),
        "plain.osm.pbf",
        &[&[node(1, 1, 1, &[])], &[located, way(6, &[1], &[])]],
    );
    let input = dir.path().join("in.osm.pbf");
    run_ok(&[&"cat", &"--blob-index", &plain, &"-o", &input]);
    let objects = decode::objects(&input);
    let output = degraded(&input, &["--strip-locations"]);
    let bare: Vec<Object> = objects
        .iter()
        .cloned()
        .map(|object| Object {
            locations: Vec::new(),
            ..object
        })
        .collect();
    assert!(decode::objects(&output) == bare);
    assert!(
        !decode::header(&output)
            .optional
            .contains(&"LocationsOnWays".into())
    );
    let output = degraded(&input, &["--strip-index"]);
    assert!(decode::objects(&output) == objects);
    assert!(decode::header(&output).toc.is_none() && !decode::has_table(&output));
    assert!(
        decode::frames(&output)
            .iter()
            .all(|frame| frame.indexdata.is_none())
    );
    assert_eq!(ask(&[&"inspect", &"--indexed", &output]).status, 1);
    let text = dir.path().join("hand.osm");
    std::fs::write(&text, "<osm version='0.6'><bounds minlat='1' minlon='1' maxlat='2' maxlon='2'/><node id='1' lat='1' lon='1'/></osm>").unwrap();
    assert!(
        decode::header(&degraded(&text, &["--strip-index"]))
            .bbox
            .is_some()
    );
    assert!(
        decode::header(&degraded(&text, &["--strip-bbox"]))
            .bbox
            .is_none()
    );
    let message = ask(&[&"degrade", &input, &"-o", &output]);
    assert_eq!(message.status, 2);
    assert!(message.stderr.contains("--unsort"), "{message:?}");
}

#[test]
fn objects_are_dropped_by_number_and_seed() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "60000");
    let objects = decode::objects(&input);
    let dropped = |args: &str| -> Vec<Object> {
        let output = degraded(&input, &["--drop-ids", args]);
        let found = decode::objects(&output);
        let mut found = found.into_iter().peekable();
        let gone = objects
            .iter()
            .filter(|object| found.next_if_eq(object).is_none());
        let gone = gone.cloned().collect();
        assert!(
            found.next().is_none(),
            "objects are new, or in another order"
        );
        gone
    };
    let one = dropped("100:1");
    assert_eq!(one.len(), 100);
    assert!(one != dropped("100:2") && one == dropped("100:1"));
    assert_eq!(dropped("100").len(), 100);
    assert!(one.iter().any(|object| object.kind == Kind::Way));
    assert_eq!(dropped("1000000").len(), objects.len());
    assert!(run_fail_usage(&input, "x:1") && run_fail_usage(&input, "-1"));
    let missing = dir.path().join("missing.osm.pbf");
    assert!(
        run_fail(&[
            &"degrade",
            &"--unsort",
            &missing,
            &"-o",
            &dir.path().join("o.osm.pbf")
        ])
        .contains("missing")
    );
}

fn run_fail_usage(input: &Path, drop: &str) -> bool {
    let output = input.with_file_name("never.osm.pbf");
    ask(&[
        &"degrade",
        &format!("--drop-ids={drop}"),
        &input,
        &"-o",
        &output,
    ])
    .status
        == 2
}

#[test]
fn repack_compresses_what_is_compressed_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let kinds = compressions;
    for (compression, name) in [
        ("zstd", "zstd"),
        ("lz4", "lz4"),
        ("none", "raw"),
        ("zlib:9", "zlib"),
    ] {
        let ran = run_ok(&[
            &"repack",
            &"-v",
            &"--compression",
            &compression,
            &world,
            &"-O",
            &"-o",
            &output,
        ]);
        assert!(
            kinds(&output).iter().all(|kind| *kind == name),
            "{compression}"
        );
        assert!(decode::objects(&output) == decode::objects(&world));
        assert!(stderr(&ran).contains("recompressed"));
    }
    let ran = run_ok(&[
        &"repack",
        &"-v",
        &"--compression",
        &"zlib",
        &world,
        &"-O",
        &"-o",
        &output,
    ]);
    assert!(!stderr(&ran).contains("recompressed"));
    let ran = run_ok(&[
        &"cat",
        &"--compression",
        &"zstd",
        &world,
        &"-O",
        &"-o",
        &output,
    ]);
    assert!(
        stderr(&ran).contains("keep the compression that they had"),
        "{}",
        stderr(&ran)
    );
}
