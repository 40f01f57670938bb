//! `extract`: forms of regions, one or several regions, and errors for invalid regions.

use crate::common;
use crate::common::extracts::{WORLD_SIZE, config_of, extracted, place_of, random_world};
use crate::common::questions::{assert_same_objects, file_in_blocks};
use crate::common::random::Random;
use crate::common::regions::{Region, Ring, Spread, box_of_degrees, feature, written};
use crate::common::{Arg, Object, decode, in_turn, pbfhogg, run_fail, run_ok, world};
use crate::region_files::{cut, square_files};
use std::path::{Path, PathBuf};

/// The ring of a box.
pub fn ring(west: i64, south: i64, east: i64, north: i64) -> Ring {
    box_of_degrees(west, south, east, north)
        .polygons
        .remove(0)
        .remove(0)
}

/// A file and its objects.
pub fn small_file(dir: &Path) -> (PathBuf, Vec<Object>) {
    let objects = random_world(11, 140, false);
    (file_in_blocks(dir, &objects, 60), objects)
}

// Many regions.

/// Extracts boxes from a synthetic file in one run and in separate runs. The outputs must be the same.
fn compare_with_single_runs(count: usize, strategy: &[&str], more: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "12000");
    let spread = Spread::of(decode::objects(&input).iter().filter_map(place_of));
    let mut random = Random(count as u64);
    let mut percents = || {
        let (west, south) = (random.below(95) as usize, random.below(95) as usize);
        let (width, height) = (1 + random.below(40) as usize, 1 + random.below(40) as usize);
        [
            west,
            south,
            (west + width).min(100),
            (south + height).min(100),
        ]
    };
    let regions: Vec<Region> = (0..count).map(|_| spread.boxed(percents())).collect();
    let (config, outputs) = config_of(dir.path(), &regions, "osm.pbf");
    let mut args: Vec<Arg> = vec![&"extract", &input, &"-c", &config];
    args.extend(strategy.iter().chain(more).map(|arg| arg as Arg));
    run_ok(&args);
    let alone = dir.path().join("alone.osm.pbf");
    let mut sizes = Vec::new();
    // In short runs, at most 25 of the regions by themselves.
    for (region, among) in in_turn(0, count.div_ceil(25), regions.iter().zip(outputs)) {
        let bbox = region.bbox();
        let mut args: Vec<Arg> = vec![&"extract", &input, &"-b", &bbox, &"-O", &"-o", &alone];
        args.extend(strategy.iter().map(|arg| arg as Arg));
        run_ok(&args);
        let [alone, among] = [&alone, &among].map(|path| std::fs::read(path).unwrap());
        assert!(
            alone == among,
            "{bbox}: {} and {} bytes",
            alone.len(),
            among.len()
        );
        sizes.push(alone.len());
    }
    assert!(sizes.iter().max() > sizes.iter().min(), "{sizes:?}");
}

#[test]
fn two_hundred_boxes_in_one_go_give_the_files_that_each_gives_by_itself() {
    compare_with_single_runs(200, &[], &["-j", "2"]);
}

#[test]
fn many_boxes_give_the_same_files_with_every_strategy() {
    compare_with_single_runs(30, &["--smart", "-S", "types=any"], &["-j", "1"]);
    compare_with_single_runs(30, &["--simple"], &["-j", "4"]);
}

#[test]
fn regions_that_overlap_or_hold_nothing_stand_in_one_config() {
    let dir = tempfile::tempdir().unwrap();
    let (input, objects) = small_file(dir.path());
    let star = Region::star((60_000_001, 50_000_003), 80_000_000, 70_000_000);
    let regions = [
        box_of_degrees(0, 0, WORLD_SIZE, WORLD_SIZE),
        box_of_degrees(3, 3, 8, 8),
        box_of_degrees(40, 40, 50, 50),
        box_of_degrees(3, 3, 8, 8),
        Region::of(&[star.clone(), ring(5, 4, 7, 6)]),
        Region {
            polygons: vec![vec![star], vec![ring(0, 0, 2, 2)]],
        },
    ];
    let (config, outputs) = config_of(dir.path(), &regions, "osm.pbf");
    for strategy in common::extracts::STRATEGIES {
        let strategy_args = strategy.args();
        let mut args: Vec<Arg> = vec![&"extract", &input, &"-c", &config, &"-O"];
        args.extend(strategy_args.iter().map(|arg| arg as Arg));
        run_ok(&args);
        for (region, output) in regions.iter().zip(&outputs) {
            let expected = extracted(&objects, region, strategy);
            assert_same_objects(
                &decode::objects(output),
                &expected,
                &format!("{strategy:?}"),
            );
        }
    }
}

// Forms.

/// Runs `extract -c` in `dir` with a configuration file of the given text, and more arguments after it.
fn run_config(dir: &Path, text: &str, more: &[&str]) -> std::process::Output {
    let config = written(dir, "config.json", text);
    let mut command = pbfhogg();
    command
        .current_dir(dir)
        .args(["extract", "in.osm.pbf", "-c"]);
    command.arg(config).args(more).output().unwrap()
}

#[test]
fn a_config_takes_regions_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let shapes = dir.path().join("shapes");
    std::fs::create_dir(&shapes).unwrap();
    let files = square_files(&shapes);
    std::fs::copy(shapes.join("square.poly"), shapes.join("unnamed")).unwrap();
    let (input, _) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let bytes = cut(&input, &[&"-b", &"2,2,6,6"], &output);
    let ring = "[[2,2],[6,2],[6,6],[2,6],[2,2]]";
    let mut regions = vec![
        "\"bbox\":[2,2,6,6]".to_owned(),
        "\"bbox\":[6.0,6.0,2.0,2.0],\"description\":\"swapped\"".to_owned(),
        "\"bbox\":{\"left\":2,\"right\":6,\"top\":6,\"bottom\":2},\"more\":[1]".to_owned(),
        format!("\"polygon\":[{ring}]"),
        format!("\"multipolygon\":[[{ring}]]"),
        "\"polygon\":{\"file_name\":\"shapes/unnamed\",\"file_type\":\"poly\"}".to_owned(),
        "\"multipolygon\":{\"file_name\":\"shapes/square.geojson\",\"file_type\":\"geojson\"}"
            .to_owned(),
    ];
    for (file, key) in files.iter().zip(["polygon", "multipolygon"].iter().cycle()) {
        let file = file.file_name().unwrap().to_str().unwrap();
        regions.push(format!("\"{key}\":{{\"file_name\":\"shapes/{file}\"}}"));
    }
    let absolute = files[0].display();
    regions.push(format!("\"polygon\":{{\"file_name\":\"{absolute}\"}}"));
    let entry = |(number, region): (usize, &String)| {
        format!("{{\"output\":\"{number}.osm.pbf\",{region}}}")
    };
    let entries: Vec<String> = regions.iter().enumerate().map(entry).collect();
    let text = format!("{{\"extracts\":[{}]}}", entries.join(",\n"));
    let run = run_config(dir.path(), &text, &[]);
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    for (number, region) in regions.iter().enumerate() {
        let found = std::fs::read(dir.path().join(format!("{number}.osm.pbf"))).unwrap();
        assert!(found == bytes, "{region}");
    }
}

#[test]
fn region_files_stand_beside_the_config_and_outputs_in_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["settings", "out", "else"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let settings = dir.path().join("settings");
    box_of_degrees(2, 2, 6, 6).poly_file(&settings, "square");
    small_file(dir.path());
    let region = "\"polygon\":{\"file_name\":\"square.poly\"}";
    let extract = format!("\"extracts\":[{{\"output\":\"a.osm.pbf\",{region}}}]");
    let within = format!("{{\"directory\":\"out\",{extract}}}");
    let config = written(&settings, "config.json", &within);
    let run = |more: &[&str]| {
        let mut command = pbfhogg();
        command.current_dir(dir.path());
        command
            .args(["extract", "in.osm.pbf", "-c"])
            .arg(&config)
            .args(more);
        command.output().unwrap().status.code()
    };
    assert_eq!(run(&[]), Some(0));
    assert!(dir.path().join("out/a.osm.pbf").exists());
    assert_eq!(run(&["-d", "else"]), Some(0));
    assert!(dir.path().join("else/a.osm.pbf").exists());
    assert_eq!(run(&["-d", "nowhere"]), Some(2));
    written(&settings, "config.json", &format!("{{{extract}}}"));
    assert_eq!(run(&[]), Some(0));
    assert!(dir.path().join("a.osm.pbf").exists());
}

// Errors.

#[test]
fn a_polygon_that_makes_no_sense_is_refused_with_its_ring_and_vertex() {
    let dir = tempfile::tempdir().unwrap();
    let (input, _) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let square = "[[0,0],[10,0],[10,10],[0,10],[0,0]]";
    let cases: [(&str, &[&str]); 15] = [
        // A ring that crosses itself; a ring that runs around twice.
        (
            "[[[0,0],[10,10],[10,0],[0,10],[0,0]]]",
            &["ring 1", "vertex"],
        ),
        ("[[[0,0],[9,0],[9,9],[0,0],[9,0],[9,9],[0,0]]]", &["ring 1"]),
        // Rings that are not closed, too short, flat, or empty.
        ("[[[0,0],[10,0],[10,10],[0,10]]]", &["ring 1", "vertex 4"]),
        ("[[[0,0],[10,0],[0,0]]]", &["ring 1"]),
        ("[[[0,0],[10,0],[5,0],[0,0]]]", &["ring 1"]),
        ("[[[0,0],[0,0],[0,0],[0,0]]]", &["ring 1"]),
        ("[[]]", &["ring 1"]),
        // Coordinates that are not numbers, out of range, or missing.
        ("[[[0,0],[NaN,0],[10,10],[0,0]]]", &["ring 1", "vertex 2"]),
        ("[[[0,0],[10,0],[10,\"x\"],[0,0]]]", &["ring 1", "vertex 3"]),
        (
            "[[[0,0],[180.1,0],[10,10],[0,0]]]",
            &["ring 1", "vertex 2", "180.1"],
        ),
        (
            "[[[0,0],[10,0],[10,-90.5],[0,0]]]",
            &["ring 1", "vertex 3", "-90.5"],
        ),
        ("[[[0,0],[10,0],[10],[0,0]]]", &["ring 1", "vertex 3"]),
        // Holes that leave their ring, are beside it, or cross each other.
        (
            "[SQUARE,[[5,5],[15,5],[15,6],[5,6],[5,5]]]",
            &["ring", "vertex"],
        ),
        (
            "[SQUARE,[[20,5],[25,5],[25,6],[20,5]]]",
            &["ring 2", "vertex"],
        ),
        (
            "[SQUARE,[[1,1],[5,1],[5,5],[1,1]],[[4,1],[8,1],[4,5],[4,1]]]",
            &["ring", "vertex"],
        ),
    ];
    for (coordinates, parts) in cases {
        let coordinates = coordinates.replace("SQUARE", square);
        let geometry = format!("{{\"type\":\"Polygon\",\"coordinates\":{coordinates}}}");
        let file = written(dir.path(), "region.geojson", &feature(&geometry));
        let message = run_fail(&[&"extract", &input, &"-p", &file, &"-o", &output]);
        for part in [&["region.geojson"], parts].concat() {
            assert!(message.contains(part), "{coordinates}: {part}: {message}");
        }
        let second = format!("[[[[20,20],[30,20],[30,30],[20,20]]],{coordinates}]");
        let second = second.replace(",]", "]");
        let geometry = format!("{{\"type\":\"MultiPolygon\",\"coordinates\":{second}}}");
        let file = written(dir.path(), "region.geojson", &feature(&geometry));
        let message = run_fail(&[&"extract", &input, &"-p", &file, &"-o", &output]);
        assert!(message.contains("polygon 2"), "{coordinates}: {message}");
        assert!(!output.exists());
    }
}

#[test]
fn a_file_that_holds_no_polygon_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (input, _) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let line = feature("{\"type\":\"LineString\",\"coordinates\":[[0,0],[1,1]]}");
    let none = "{\"type\":\"FeatureCollection\",\"features\":[]}";
    let cases: [(&str, &str); 13] = [
        ("a.geojson", ""),
        ("a.geojson", "nonsense"),
        ("a.geojson", "[]"),
        ("a.geojson", "{}"),
        ("a.geojson", "{\"type\":\"Polygon\",\"coordinates\":[]}"),
        ("a.geojson", none),
        ("a.geojson", &line),
        ("a.poly", ""),
        ("a.poly", "name\nEND\n"),
        ("a.poly", "name\n1\n0 0\n1 0\nEND\nEND\n"),
        ("a.osm", "<osm version=\"0.6\"></osm>"),
        ("a.osm", "<osm"),
        ("a.osm.pbf", "nonsense"),
    ];
    for (name, text) in cases {
        let file = written(dir.path(), name, text);
        let message = run_fail(&[&"extract", &input, &"-p", &file, &"-o", &output]);
        assert!(message.contains(name), "{text}: {message}");
        assert!(!output.exists());
    }
}

#[test]
fn an_error_in_a_polygon_file_has_its_line_and_vertex() {
    let dir = tempfile::tempdir().unwrap();
    let (input, _) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let cases: [(&str, &[&str]); 6] = [
        ("x\n1\n0 0\n5 a\n5 5\nEND\nEND\n", &["line 4", "vertex 2"]),
        ("x\n1\n0 0\n5 0\n5 NaN\nEND\nEND\n", &["line 5", "vertex 3"]),
        (
            "x\n1\n0 0\n5 0\n5 91\nEND\nEND\n",
            &["line 5", "vertex 3", "91"],
        ),
        ("x\n1\n0 0\n5 0\n5\nEND\nEND\n", &["line 5", "vertex 3"]),
        ("x\n1\n0 0\n5 0\n5 5\n", &["line 5", "END"]),
        (
            "x\nwest\n0 0\n5 5\n5 0\n0 5\nEND\nEND\n",
            &["west", "vertex"],
        ),
    ];
    for (text, parts) in cases {
        let file = written(dir.path(), "region.poly", text);
        let message = run_fail(&[&"extract", &input, &"-p", &file, &"-o", &output]);
        for part in [&["region.poly"], parts].concat() {
            assert!(message.contains(part), "{text}: {part}: {message}");
        }
        assert!(!output.exists());
    }
}

#[test]
fn an_error_in_a_config_has_its_extract_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    small_file(dir.path());
    written(
        dir.path(),
        "bad.poly",
        "x\n1\n0 0\n5 5\n5 0\n0 5\nEND\nEND\n",
    );
    let good = "{\"output\":\"good.osm.pbf\",\"bbox\":[0,0,5,5]}";
    let cases: [(&str, &[&str]); 15] = [
        ("7", &["extract 2"]),
        ("{\"output\":\"b.osm.pbf\"}", &["extract 2", "bbox"]),
        ("{\"bbox\":[0,0,5,5]}", &["extract 2", "output"]),
        (
            "{\"output\":\"\",\"bbox\":[0,0,5,5]}",
            &["extract 2", "output"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"bbox\":[0,0,5]}",
            &["extract 2", "bbox"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"bbox\":[0,0,5,95]}",
            &["extract 2", "95"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"bbox\":\"0,0,5,5\"}",
            &["extract 2", "bbox"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"bbox\":{\"left\":0}}",
            &["extract 2", "bbox"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"polygon\":[]}",
            &["extract 2", "polygon"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"polygon\":[[[0,0],[5,5],[5,0],[0,5],[0,0]]]}",
            &["b.osm.pbf", "ring 1", "vertex"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"multipolygon\":[[[[0,0],[5,5],[5,0]]]]}",
            &["extract 2", "polygon 1", "ring 1", "vertex 3"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"polygon\":{\"file_name\":\"none.poly\"}}",
            &["extract 2", "none.poly"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"polygon\":{\"file_name\":\"bad.poly\"}}",
            &["bad.poly", "vertex"],
        ),
        (
            "{\"output\":\"b.osm.pbf\",\"polygon\":{\"file_name\":\"bad.poly\",\"file_type\":\"shape\"}}",
            &["extract 2", "shape"],
        ),
        (
            "{\"output\":\"good.osm.pbf\",\"bbox\":[0,0,5,5]}",
            &["good.osm.pbf"],
        ),
    ];
    let refuse = |text: &str, parts: &[&str]| {
        let run = run_config(dir.path(), text, &[]);
        let message = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(2), "{text}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        for part in [&["config.json"], parts].concat() {
            assert!(message.contains(part), "{text}: {part}: {message}");
        }
        assert!(!dir.path().join("good.osm.pbf").exists(), "{text}");
    };
    for (extract, parts) in cases {
        refuse(&format!("{{\"extracts\":[{good},{extract}]}}"), parts);
    }
    for text in [
        "",
        "{",
        "[]",
        "{}",
        "{\"extracts\":[]}",
        "{\"extracts\":{}}",
    ] {
        refuse(text, &[]);
    }
}

#[test]
fn one_output_that_exists_keeps_all_from_being_written() {
    let dir = tempfile::tempdir().unwrap();
    small_file(dir.path());
    written(dir.path(), "b.osm.pbf", "kept");
    let entry = |name: &str| format!("{{\"output\":\"{name}.osm.pbf\",\"bbox\":[0,0,5,5]}}");
    let text = format!(
        "{{\"extracts\":[{},{},{}]}}",
        entry("a"),
        entry("b"),
        entry("c")
    );
    let run = run_config(dir.path(), &text, &[]);
    let message = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(2), "{message}");
    assert!(message.contains("b.osm.pbf"), "{message}");
    assert_eq!(
        std::fs::read(dir.path().join("b.osm.pbf")).unwrap(),
        b"kept"
    );
    for name in ["a.osm.pbf", "c.osm.pbf"] {
        assert!(!dir.path().join(name).exists(), "{name}");
    }
    let run = run_config(dir.path(), &text, &["-O"]);
    assert_eq!(run.status.code(), Some(0));
    let [a, b] =
        ["a.osm.pbf", "b.osm.pbf"].map(|name| std::fs::read(dir.path().join(name)).unwrap());
    assert!(a == b);
}
