//! `split`, and `cat --blobs`: parts of a file that are files.

use crate::common::oracle::{osmium, real_file, small_real_files};
use crate::common::{decode, in_turn, run_fail, run_ok, world};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Divides a file, and returns the paths of the parts and the summary.
fn split(input: &Path, root: &Path, options: &[&str]) -> (Vec<PathBuf>, Value) {
    let mut args: Vec<crate::common::Arg> = vec![&"split", &input, &"-O", &"--json", &"-o", &root];
    args.extend(options.iter().map(|option| option as crate::common::Arg));
    let summary: Value = serde_json::from_slice(&run_ok(&args).stdout).unwrap();
    let parts = summary["parts"].as_array().unwrap().iter();
    let paths: Vec<_> = parts
        .map(|part| root.join(part["name"].as_str().unwrap()))
        .collect();
    let mut found: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    assert_eq!(found, paths);
    (paths, summary)
}

#[test]
fn parts_are_the_whole_object_for_object() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("parts");
    let mut inputs = small_real_files();
    inputs.push(world(dir.path(), "100000"));
    for (turn, input) in inputs.iter().enumerate() {
        let all = decode::objects(input);
        let lists = [
            &["-n", "1"][..],
            &["-n", "3"],
            &["-n", "1000"],
            &["--size", "100k"],
            &["--size", "1"],
        ];
        for options in in_turn(turn, 5, lists) {
            let (parts, summary) = split(input, &root, options);
            let joined: Vec<_> = parts
                .iter()
                .flat_map(|part| decode::objects(part))
                .collect();
            assert!(joined == all, "{} {options:?}", input.display());
            assert_eq!(summary["objects"], all.len());
            let mut next = 1;
            for (part, path) in summary["parts"].as_array().unwrap().iter().zip(&parts) {
                assert_eq!(part["first_blob"], next);
                next += part["blobs"].as_u64().unwrap();
                assert_eq!(part["written"]["bytes"], path.metadata().unwrap().len());
                assert_eq!(part["written"]["indexed"], true);
                run_ok(&[&"check", &"--index", &path]);
                if osmium() {
                    let done = Command::new("osmium")
                        .args(["fileinfo", "-e"])
                        .arg(path)
                        .output()
                        .unwrap();
                    assert!(done.status.success(), "{}", path.display());
                }
            }
            assert_eq!(next - 1, decode::blocks(input).len() as u64);
        }
    }
}

#[test]
fn a_range_of_blobs_has_their_objects() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "300000");
    let output = dir.path().join("out.osm.pbf");
    let blocks: Vec<usize> = decode::blocks(&input)
        .into_iter()
        .map(|(_, count)| count)
        .collect();
    let (all, count) = (decode::objects(&input), blocks.len());
    assert!(count > 30);
    let before = |number: usize| blocks[..number].iter().sum::<usize>();
    for (range, from, to) in [("1", 0, 1), ("2-5", 1, 5), ("30-9999", 29, count)] {
        for options in [&[][..], &["-c", "user"]] {
            let mut args: Vec<crate::common::Arg> = vec![
                &"cat", &input, &"-q", &"-O", &"-o", &output, &"--blobs", &range,
            ];
            args.extend(options.iter().map(|option| option as crate::common::Arg));
            run_ok(&args);
            let found = decode::objects(&output);
            let expected = &all[before(from)..before(to)];
            assert_eq!(found.len(), expected.len(), "{range}");
            let ids = |list: &[crate::common::Object]| -> Vec<_> {
                list.iter().map(|one| (one.kind, one.id)).collect()
            };
            assert!(ids(&found) == ids(expected), "{range} {options:?}");
        }
    }
    for (range, cause) in [
        ("0-3", "counted from 1"),
        ("5-2", "counted from 1"),
        ("x", "counted from 1"),
    ] {
        assert!(run_fail(&[&"cat", &input, &"--blobs", &range, &"-o", &output]).contains(cause));
    }
    let error = run_fail(&[
        &"cat", &input, &input, &"--blobs", &"1", &"-O", &"-o", &output,
    ]);
    assert!(error.contains("not in several"), "{error}");
}

#[test]
fn a_directory_of_parts_is_replaced_and_other_files_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (input, root) = (real_file("monaco.osm.pbf"), dir.path().join("parts"));
    let (parts, _) = split(&input, &root, &["-n", "4"]);
    let error = run_fail(&[&"split", &input, &"-n", &"2", &"-o", &root]);
    assert!(error.contains("the directory is not empty"), "{error}");
    assert!(parts.iter().all(|part| part.exists()));
    let error = run_fail(&[
        &"split", &input, &"-n", &"2", &"-O", &"-f", &"opl", &"-o", &root,
    ]);
    assert!(error.contains("split writes PBF"), "{error}");
    let notes = root.join("notes.txt");
    fs::write(&notes, "mine").unwrap();
    let done = run_ok(&[&"split", &input, &"-n", &"2", &"-O", &"-o", &root]);
    let warning = String::from_utf8(done.stderr).unwrap();
    assert!(
        warning.contains("notes.txt was not written by pbfhogg"),
        "{warning}"
    );
    assert_eq!(fs::read(&notes).unwrap(), b"mine");
    assert_eq!(fs::read_dir(&root).unwrap().count(), 3);
    // A part that another program wrote is not replaced.
    fs::remove_file(&notes).unwrap();
    fs::copy(&input, root.join("part-0000.osm.pbf")).unwrap();
    let error = run_fail(&[&"split", &input, &"-n", &"2", &"-O", &"-o", &root]);
    assert!(
        error.contains("part-0000.osm.pbf") && error.contains("did not write"),
        "{error}"
    );
}

#[test]
fn parts_of_a_spatial_layout_are_regions() {
    let dir = tempfile::tempdir().unwrap();
    let spatial = dir.path().join("spatial.osm.pbf");
    let located = dir.path().join("located.osm.pbf");
    let input = real_file("malta.osm.pbf");
    run_ok(&[
        &"add-locations-to-ways",
        &"-q",
        &"-n",
        &input,
        &"-o",
        &located,
    ]);
    run_ok(&[
        &"repack",
        &"-q",
        &"--layout",
        &"hilbert",
        &"-n",
        &"1000",
        &located,
        &"-o",
        &spatial,
    ]);
    let (parts, _) = split(&spatial, &dir.path().join("parts"), &["-n", "6"]);
    let width = |path: &Path| {
        let objects = decode::objects(path).into_iter();
        let nodes = objects.filter(|one| one.kind == crate::common::Kind::Node);
        let lons: Vec<i64> = nodes.map(|node| node.lon_nano).collect();
        Some(lons.iter().max()? - lons.iter().min()?)
    };
    let widths: Vec<i64> = parts.iter().filter_map(|part| width(part)).collect();
    assert!(
        widths.len() > 1 && *widths.iter().min().unwrap() < width(&input).unwrap() / 2,
        "{widths:?}"
    );
}
