//! `extract`: its reports, its output files, and the options that do not define regions.

use crate::common::answers::ask;
use crate::common::extracts::{
    SMART, STRATEGIES, Strategy, expect_extract, extracted, random_world,
};
use crate::common::oracle::real_file;
use crate::common::questions::{Inputs, assert_same_objects, file_in_blocks, pipe};
use crate::common::regions::{Region, box_of_degrees};
use crate::common::{Arg, Object, decode, known, pbfhogg, run_fail, run_ok};
use std::path::{Path, PathBuf};

/// A file with metadata, partly in the box from 0,0 to 6,6, and its objects.
fn small_file(dir: &Path) -> (PathBuf, Vec<Object>) {
    let objects = known(random_world(5, 60, false));
    (file_in_blocks(dir, &objects, 25), objects)
}

#[test]
fn strategies_go_by_several_names() {
    let dir = tempfile::tempdir().unwrap();
    let (path, objects) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let names: [(Strategy, &[&[&str]]); 4] = [
        (
            Strategy::Simple,
            &[&["-s", "simple"], &["--simple"], &["--strategy=simple"]],
        ),
        (
            Strategy::CompleteWays,
            &[&[], &["-s", "complete-ways"], &["-s", "complete_ways"]],
        ),
        (
            SMART,
            &[
                &["-s", "smart"],
                &["--smart"],
                &["--smart", "-S", "types=multipolygon"],
            ],
        ),
        (Strategy::NoRelations, &[&["-S", "relations=false"]]),
    ];
    for (strategy, names) in names {
        let expected = extracted(&objects, &box_of_degrees(0, 0, 6, 6), strategy);
        for name in names {
            let mut args: Vec<Arg> =
                vec![&"extract", &path, &"-b", &"0,0,6,6", &"-O", &"-o", &output];
            args.extend(name.iter().map(|arg| arg as Arg));
            run_ok(&args);
            assert_same_objects(&decode::objects(&output), &expected, &format!("{name:?}"));
        }
    }
}

#[test]
fn options_that_are_not_understood_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let wrong: [&[&str]; 12] = [
        &[],
        &["-b", "0,0,6"],
        &["-b", "0,0,6,6,6"],
        &["-b", "0,0,x,6"],
        &["-b", "0,nan,6,6"],
        &["-b", "0,0,181,6"],
        &["-b", "0,0,6,91"],
        &["-b", "0,0,6,6", "-s", "clever"],
        &["-b", "0,0,6,6", "-p", "region.poly"],
        &["-b", "0,0,6,6", "--clean", "names"],
        &[
            "-b",
            "0,0,6,6",
            "--smart",
            "-S",
            "complete-partial-relations=some",
        ],
        &["-p", "/nowhere/region.poly"],
    ];
    for wrong in wrong {
        let mut args: Vec<Arg> = vec![&"extract", &path, &"-o", &output];
        args.extend(wrong.iter().map(|arg| arg as Arg));
        assert_eq!(ask(&args).status, 2, "{wrong:?}");
        assert!(!output.exists(), "{wrong:?}");
    }
}

#[test]
fn the_header_has_the_bounds_of_the_region_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let star = Region::of(&[Region::star(
        (50_000_000, 60_000_000),
        40_000_000,
        70_000_000,
    )]);
    let file = star.poly_file(dir.path(), "star");
    let [west, south, east, north] = star.envelope().map(|edge| edge * 100);
    let of_box = [-1_500_000_000, 6_000_000_000, 6_000_000_000, 0];
    let cases: [([Arg; 2], _); 3] = [
        ([&"-b", &"-1.5,0,6,6"], of_box),
        ([&"-b", &"6,6,-1.5,0"], of_box),
        ([&"-p", &file], [west, east, north, south]),
    ];
    for ([option, region], bounds) in cases {
        for (more, bounds) in [(&[&"--set-bounds" as Arg][..], Some(bounds)), (&[], None)] {
            let args = [
                &[
                    &"extract" as Arg,
                    &path,
                    option,
                    region,
                    &"-O",
                    &"-o",
                    &output,
                ],
                more,
            ];
            run_ok(&args.concat());
            assert_eq!(decode::header(&output).bbox, bounds);
        }
    }
}

#[test]
fn metadata_is_left_out_and_nobody_is_named_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, objects) = small_file(dir.path());
    let inputs = Inputs::of(&path);
    let cleaned = |names: &str, object: &Object| {
        let mut object = object.clone();
        for name in names.split(',') {
            match name {
                "version" => object.version = None,
                "timestamp" => object.timestamp = None,
                "changeset" => object.changeset = None,
                "uid" => object.uid = Some(0),
                "user" => object.user = None,
                _ => panic!("{name}"),
            }
        }
        // A missing uid is stored as 0: it is read as 0 beside a user name, and as absent without one.
        let has_name = object.user.is_some();
        object.uid = object.uid.filter(|&uid| uid != 0 || has_name);
        object
    };
    for names in [
        "version",
        "timestamp",
        "changeset",
        "uid",
        "user",
        "uid,user",
        "changeset,version",
        "version,timestamp,changeset,uid,user",
    ] {
        for region in [box_of_degrees(0, 0, 6, 6), box_of_degrees(-1, -1, 20, 20)] {
            let expected = extracted(&objects, &region, Strategy::CompleteWays);
            let expected: Vec<Object> = expected.iter().map(|o| cleaned(names, o)).collect();
            let bbox = region.bbox();
            let args = ["-b", &bbox, "--clean", names];
            expect_extract(&inputs, &args, Strategy::CompleteWays, &expected);
        }
    }
    let output = dir.path().join("out.osm.pbf");
    let everything = [
        &"extract" as Arg,
        &path,
        &"-b",
        &"-1,-1,20,20",
        &"-O",
        &"-o",
        &output,
    ];
    let names_someone = |more: &[Arg]| {
        run_ok(&[&everything, more].concat());
        let payloads = decode::frames(&output)
            .into_iter()
            .map(|frame| frame.payload);
        let bytes: Vec<u8> = payloads.flatten().collect();
        ["zwölf", "a b", "large"].map(|name| {
            let name = name.as_bytes();
            bytes.windows(name.len()).any(|found| found == name)
        })
    };
    assert_eq!(names_someone(&[]), [true; 3]);
    assert_eq!(names_someone(&[&"--clean", &"version"]), [true; 3]);
    assert_eq!(names_someone(&[&"--clean", &"user"]), [false; 3]);
    assert_eq!(
        names_someone(&[&"--clean=uid", &"--clean=user"]),
        [false; 3]
    );
}

#[test]
fn input_comes_from_standard_input_and_objects_go_to_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    let (path, objects) = small_file(dir.path());
    for strategy in STRATEGIES {
        let expected = extracted(&objects, &box_of_degrees(0, 0, 6, 6), strategy);
        let strategy = strategy.args();
        let strategy: Vec<&str> = strategy.iter().map(String::as_str).collect();
        for input in ["-", path.to_str().unwrap()] {
            let args = [&["extract", input, "-b", "0,0,6,6"], &strategy[..]].concat();
            let found = pipe(&args, &path);
            assert_same_objects(&found, &expected, &format!("{args:?}"));
        }
    }
}

#[test]
fn an_output_that_exists_is_left_alone_unless_it_may_be_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let (path, objects) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    std::fs::write(&output, "kept").unwrap();
    let message = run_fail(&[&"extract", &path, &"-b", &"0,0,6,6", &"-o", &output]);
    assert!(message.contains("out.osm.pbf"), "{message}");
    assert_eq!(std::fs::read(&output).unwrap(), b"kept");
    run_ok(&[&"extract", &path, &"-b", &"0,0,6,6", &"-o", &output, &"-O"]);
    let expected = extracted(
        &objects,
        &box_of_degrees(0, 0, 6, 6),
        Strategy::CompleteWays,
    );
    assert_same_objects(&decode::objects(&output), &expected, "overwritten");
}

#[test]
fn a_broken_input_leaves_no_output() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = small_file(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let output = dir.path().join("out.osm.pbf");
    for strategy in ["simple", "complete-ways", "smart"] {
        let message = run_fail(&[
            &"extract", &path, &"-b", &"0,0,6,6", &"-s", &strategy, &"-o", &output,
        ]);
        assert!(message.contains("in.osm.pbf"), "{message}");
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
    let status = pbfhogg().arg("extract").output().unwrap().status;
    assert_eq!(status.code(), Some(2));
}

#[test]
fn more_regions_than_open_files_are_cut_in_any_format() {
    let input = real_file("monaco.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let regions = dir.path().join("regions.json");
    let bbox = |index: u32| {
        let (column, row) = (f64::from(index % 20), f64::from(index / 20));
        let (west, south) = (7.40 + column * 0.003, 43.72 + row * 0.003);
        [west, south, west + 0.004, south + 0.004]
    };
    let name = |index: u32| match index % 3 {
        0 => format!("{index}.opl"),
        1 => format!("{index}.osm.gz"),
        _ => format!("{index}.osm.pbf"),
    };
    let extracts: Vec<_> = (0..200)
        .map(|index| serde_json::json!({"output": name(index), "bbox": bbox(index)}))
        .collect();
    let config = serde_json::json!({"extracts": extracts, "directory": dir.path()});
    std::fs::write(&regions, config.to_string()).unwrap();
    let script = format!(
        "ulimit -n 64; exec {} extract -q -c {} {}",
        env!("CARGO_BIN_EXE_pbfhogg"),
        regions.display(),
        input.display()
    );
    let status = std::process::Command::new("bash")
        .args(["-c", &script])
        .status()
        .unwrap();
    assert!(status.success());
    for index in [0, 1, 2, 66, 100, 199] {
        let alone = dir.path().join(format!("alone-{}", name(index)));
        let region = bbox(index).map(|edge| edge.to_string()).join(",");
        run_ok(&[&"extract", &"-q", &"-b", &region, &input, &"-o", &alone]);
        let together = std::fs::read(dir.path().join(name(index))).unwrap();
        assert!(together == std::fs::read(alone).unwrap(), "{}", name(index));
    }
}
