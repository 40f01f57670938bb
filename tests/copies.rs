//! Blobs that are copied: they are checked, counted and recompressed only on demand.

use crate::common::answers::{ask, file_of};
use crate::common::decode::compressions;
use crate::common::{
    Arg, decode, node, run_fail, run_ok, small_world, stderr, with_metadata, world,
};

#[test]
fn versions_out_of_order_are_forgotten_with_the_versions() {
    let dir = tempfile::tempdir().unwrap();
    let [two, three] =
        [2, 3].map(|version| with_metadata(node(1, 0, version, &[]), version, 1, 1, "a"));
    let input = file_of(dir.path(), "in.osm.pbf", &[&[three, two]]);
    let [indexed, clean] = ["indexed.osm.pbf", "clean.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &input, &"-o", &indexed]);
    run_ok(&[&"cat", &"-c", &"version", &indexed, &"-o", &clean]);
    let inspected = ask(&[&"inspect", &clean]);
    assert!(
        inspected.stdout.contains("sorted by kind and id"),
        "{inspected:?}"
    );
}

#[test]
fn verify_finds_a_flipped_bit_in_what_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path(), "60000");
    let [indexed, output] = ["i.osm.pbf", "o.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &world, &"-o", &indexed]);
    let frames = decode::frames(&indexed);
    let frame = &frames[frames.len() / 2];
    let mut bytes = std::fs::read(&indexed).unwrap();
    bytes[frame.offset as usize + frame.frame_len / 2] ^= 8;
    std::fs::write(&indexed, bytes).unwrap();
    let day = dir.path().join("001.osc.gz");
    let place = format!("blob {} at byte {}", frames.len() / 2, frame.offset);
    let runs: [Vec<Arg>; 5] = [
        vec![&"cat", &indexed],
        vec![&"sort", &indexed],
        vec![&"merge", &indexed],
        vec![&"extract", &"-b", &"-180,-90,180,90", &indexed],
        vec![&"getid", &"--invert", &indexed, &"n999999999999"],
    ];
    for run in runs {
        let message = run_fail(&[run, vec![&"--verify", &"-o", &output]].concat());
        assert!(message.contains(&place), "{message}");
        assert!(!output.exists());
    }
    run_fail(&[
        &"apply-changes",
        &indexed,
        &day,
        &"--verify",
        &"-o",
        &output,
    ]);
    run_ok(&[&"cat", &indexed, &"-o", &output]);
    run_ok(&[&"cat", &"--verify", &world, &"-O", &"-o", &output]);
}

#[test]
fn the_compression_of_a_format_is_that_of_copied_blobs_too() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [text, output] = ["in.opl", "out.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &world, &"-o", &text]);
    for (options, name, is_copy) in [
        ("pbf_compression=zstd", "zstd", false),
        ("pbf_compression=lz4,add_metadata=false", "lz4", false),
        ("pbf_compression=none", "raw", false),
        ("pbf_compression_level=9", "zlib", false),
        ("pbf_compression=zlib", "zlib", true),
    ] {
        let format = format!("pbf,{options}");
        let args: [Arg; 7] = [&"cat", &"--json", &"-f", &format, &"-O", &"-o", &output];
        for input in [&world, &text] {
            let more: [Arg; 2] = [&"-v", input];
            let ran = run_ok(&[&args[..], &more].concat());
            assert!(!stderr(&ran).contains("keep the compression"));
            let found = compressions(&output);
            assert!(
                found.iter().all(|kind| *kind == name),
                "{options}: {found:?}"
            );
            run_ok(&[&"check", &output]);
        }
        let world_arg: [Arg; 1] = [&world];
        let ran = run_ok(&[&args[..], &world_arg].concat());
        let summary: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        let (copied, rewritten) = (&summary["blobs_copied"], &summary["blobs_rewritten"]);
        assert_eq!(copied == 0, !is_copy, "{summary}");
        // The last blob is always encoded anew, because it also has the table of contents.
        assert_eq!(rewritten == 1, is_copy, "{summary}");
        if !options.contains("metadata") {
            assert!(
                decode::objects(&output) == decode::objects(&world),
                "{options}"
            );
        }
    }
    // Outputs that share their encoders, and blobs that were cut.
    let regions = dir.path().join("regions.json");
    let boxes = r#"{"extracts": [{"output": "a.osm.pbf", "bbox": [-180, -90, 10, 90]},
        {"output": "b.osm.pbf", "bbox": [-180, -90, 180, 90]}]}"#;
    std::fs::write(&regions, boxes).unwrap();
    let format = "pbf,pbf_compression=zstd";
    run_ok(&[
        &"extract",
        &world,
        &"-c",
        &regions,
        &"-d",
        &dir.path(),
        &"-f",
        &format,
    ]);
    for name in ["a.osm.pbf", "b.osm.pbf"] {
        let found = compressions(&dir.path().join(name));
        assert!(
            found.iter().all(|kind| *kind == "zstd"),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn objects_that_nobody_counted_are_not_called_none() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [bare, output] = ["bare.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[&"cat", &"--no-index", &world, &"-o", &bare]);
    let found = ask(&[&"cat", &"--no-index", &bare, &"-o", &output, &"--json"]).json();
    assert!(found["written"]["objects"].is_null(), "{found}");
    let said = ask(&[&"cat", &"-v", &"--no-index", &bare, &"-O", &"-o", &output]).stderr;
    assert!(said.contains("objects not counted"), "{said}");
    let ran = run_ok(&[
        &"cat",
        &"--no-index",
        &"--verify",
        &bare,
        &"-O",
        &"-o",
        &output,
    ]);
    assert!(
        stderr(&ran).contains("have no content hash"),
        "{}",
        stderr(&ran)
    );
}
