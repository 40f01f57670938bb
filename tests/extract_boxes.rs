//! `extract`: corners of boxes in any order, polygon files that were put together, and regions, relations and
//! configurations as newer versions of osmium take them.

use crate::common::answers::{ask, file_of};
use crate::common::{Arg, node, run, run_fail, run_ok, stderr};
use std::path::{Path, PathBuf};

/// Nodes in Iran, in the Pacific and in Siberia.
const NODES: &str = "n2 v1 x56 y37\nn3 v1 x-120 y37\nn4 v1 x100 y37\n";

fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The objects that a run writes to standard output, as kind and id, and standard error.
fn found(args: &[Arg]) -> (String, String) {
    let output = run_ok(args);
    (
        ids(&String::from_utf8(output.stdout).unwrap()),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn ids(opl: &str) -> String {
    let objects = opl.lines().filter_map(|line| line.split(' ').next());
    objects.collect::<Vec<_>>().join(" ")
}

#[test]
fn any_two_opposite_corners_make_a_box_under_the_second_name() {
    let directory = tempfile::tempdir().unwrap();
    let input = write(directory.path(), "in.opl", NODES);
    for corners in [
        [54.3, 35.9, 57.2, 39.7],
        [57.2, 39.7, 54.3, 35.9],
        [54.3, 39.7, 57.2, 35.9],
        [57.2, 35.9, 54.3, 39.7],
    ] {
        let text = corners.map(|corner| corner.to_string()).join(",");
        let args: &[Arg] = &[&"osmium", &"extract", &"-b", &text, &input, &"-f", &"opl"];
        assert_eq!(found(args), ("n2".into(), String::new()), "{text}");
        let [left, bottom, right, top] = corners;
        let object = format!(r#"{{"left":{left},"bottom":{bottom},"right":{right},"top":{top}}}"#);
        for region in [format!("[{text}]"), object] {
            let text = format!(r#"{{"extracts":[{{"output":"out.opl","bbox":{region}}}]}}"#);
            let config = write(directory.path(), "config.json", &text);
            let args: &[Arg] = &[
                &"osmium",
                &"extract",
                &"-O",
                &"-d",
                &directory.path(),
                &"-c",
                &config,
                &input,
            ];
            assert_eq!(run_ok(args).stderr, b"");
            let kept = std::fs::read_to_string(directory.path().join("out.opl"));
            assert_eq!(ids(&kept.unwrap()), "n2", "{text}");
        }
    }
}

#[test]
fn a_box_that_goes_around_the_earth_by_mistake_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let input = write(directory.path(), "in.opl", NODES);
    let extracted = |corners: &str| found(&[&"extract", &"-b", &corners, &input, &"-f", &"opl"]);
    let (kept, said) = extracted("57.2,35.9,54.3,39.7");
    assert_eq!(kept, "n3 n4");
    assert!(
        said.contains("crosses the antimeridian and is 357.1 degrees wide"),
        "{said}"
    );
    assert!(
        said.contains("the box between both is 54.3,35.9,57.2,39.7"),
        "{said}"
    );
    let text = r#"{"extracts":[{"output":"out.opl","bbox":[57.2,35.9,54.3,39.7]}]}"#;
    let config = write(directory.path(), "config.json", text);
    let output = run_ok(&[&"extract", &"-d", &directory.path(), &"-c", &config, &input]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("config.json: extract out.opl: the box 57.2,35.9"),
        "{said}"
    );
    // Boxes that are meant are silent: a box of the Pacific, and corners in another order.
    for corners in [
        "90,-60,-90,60",
        "57.2,39.7,54.3,35.9",
        "54.3,35.9,57.2,39.7",
    ] {
        let (_, said) = extracted(corners);
        assert_eq!(said, "", "{corners}");
    }
}

#[test]
fn concatenated_polygon_files_are_one_region() {
    let directory = tempfile::tempdir().unwrap();
    let nodes = "n1 v1 x3 y3\nn2 v1 x8 y8\nn3 v1 x25 y8\nn4 v1 x15 y5\nn5 v1 x45 y5\n";
    let input = write(directory.path(), "in.opl", nodes);
    let square = |name: &str, west: i32, hole: &str| {
        let east = west + 10;
        format!("{name}\n1\n {west} 0\n {east} 0\n {east} 10\n {west} 10\nEND\n{hole}END\n")
    };
    let hole = "!2\n 7 7\n 9 7\n 9 9\n 7 9\nEND\n";
    let text = square("a", 0, hole) + "\n" + &square("b", 20, "") + &square("c", 40, "");
    let region = write(directory.path(), "three.poly", &text);
    for name in [&[][..], &["osmium"]] {
        let mut args: Vec<Arg> = name.iter().map(|name| name as Arg).collect();
        args.extend([&"extract" as Arg, &"-p", &region, &input, &"-f", &"opl"]);
        assert_eq!(found(&args).0, "n1 n3 n5");
    }
    let broken = write(directory.path(), "broken.poly", &(text + "d\n1\n 1 1\n"));
    let error = run_fail(&[&"extract", &"-p", &broken, &input, &"-f", &"opl"]);
    assert!(error.contains("section 5 '1': END is missing"), "{error}");
}

/// Relations with a member outside of the box 0,0,2,2.
const RELATIONS: &str = "n1 v1 x1 y1\n\
    n5000000001 v1 x1.2 y1.2\n\
    n6000000001 v1 x6 y6\n\
    n6000000002 v1 x6 y6\n\
    n6000000003 v1 x6 y6\n\
    n6000000004 v1 x6 y6\n\
    r5000000001 v1 Ttype=multipolygon,natural=water Mn1@,n6000000001@\n\
    r5000000002 v1 Ttype=route,natural=wood Mn1@,n6000000002@\n\
    r5000000003 v1 Ttype=multipolygon,landuse=forest Mn5000000001@,n6000000003@\n\
    r5000000004 v1 Ttype=site Mr5000000003@,n6000000004@\n";

#[test]
fn smart_extracts_complete_the_relations_with_certain_tags() {
    let directory = tempfile::tempdir().unwrap();
    let input = write(directory.path(), "in.opl", RELATIONS);
    let all = "r5000000001 r5000000002 r5000000003 r5000000004";
    // The last digits of the nodes outside.
    for (options, outside) in [
        (&[][..], &[1, 3][..]),
        (&["types=any"], &[1, 2, 3]),
        (&["types=route"], &[2]),
        (&["tags=natural"], &[1]),
        (&["tags=natural=water"], &[1]),
        (&["tags=natural=water,landuse"], &[1, 3]),
        (&["tags=natural=water", "tags=landuse=forest"], &[1, 3]),
        (&["tags=natural=wood"], &[]),
        (&["tags=natural=wood", "types=any"], &[2]),
        (&["types=any", "tags=natural=w*"], &[1, 2]),
        (
            &["tags=natural=wood", "complete-partial-relations=50"],
            &[2],
        ),
        (&["tags=natural=wood", "complete-partial-relations=51"], &[]),
        (&["tags=amenity", "types=any"], &[]),
    ] {
        let mut args: Vec<Arg> = vec![&"osmium", &"extract", &"-b", &"0,0,2,2", &"-s", &"smart"];
        for option in options {
            args.extend([&"-S" as Arg, option]);
        }
        args.extend([&input as Arg, &"-f", &"opl"]);
        let outside = outside.iter().map(|digit| format!("n600000000{digit} "));
        let expected = format!("n1 n5000000001 {}{all}", outside.collect::<String>());
        assert_eq!(found(&args).0, expected, "{options:?}");
    }
    let error = run(&[
        &"extract", &"-b", &"0,0,2,2", &"-S", &"tags=x", &input, &"-f", &"opl",
    ]);
    let error = String::from_utf8(error.stderr).unwrap();
    assert!(
        error.contains("-S tags=x: this is an option of the strategy smart"),
        "{error}"
    );
}

#[test]
fn regions_are_bare_geometries_and_relations_with_large_ids() {
    let directory = tempfile::tempdir().unwrap();
    let input = write(directory.path(), "in.opl", NODES);
    let ring = "[[[50,30],[60,30],[60,40],[50,40],[50,30]]]";
    let bare = format!(r#"{{"type":"Polygon","coordinates":{ring}}}"#);
    let multi = format!(r#"{{"type":"MultiPolygon","coordinates":[{ring}]}}"#);
    let relation = "n1 v1 x50 y30\nn2 v1 x60 y30\nn3 v1 x60 y40\nn4 v1 x50 y40\n\
        w9000000001 v1 Nn1,n2,n3,n4,n1\nr9000000002 v1 Ttype=boundary Mw9000000001@outer\n";
    for (name, text) in [
        ("a.geojson", &*bare),
        ("b.json", &multi),
        ("c.osm.opl", relation),
    ] {
        let region = write(directory.path(), name, text);
        let args: &[Arg] = &[&"osmium", &"extract", &"-p", &region, &input, &"-f", &"opl"];
        assert_eq!(found(args).0, "n2", "{name}");
        let config = format!(
            r#"{{"extracts":[{{"output":"out.opl","polygon":{{"file_name":"{name}"}}}}]}}"#
        );
        let config = write(directory.path(), "config.json", &config);
        run_ok(&[
            &"osmium",
            &"extract",
            &"-O",
            &"-d",
            &directory.path(),
            &"-c",
            &config,
            &input,
        ]);
        let kept = std::fs::read_to_string(directory.path().join("out.opl"));
        assert_eq!(ids(&kept.unwrap()), "n2", "{name}");
    }
}

#[test]
fn a_configuration_has_more_than_five_hundred_extracts() {
    let directory = tempfile::tempdir().unwrap();
    let input = write(directory.path(), "in.opl", NODES);
    let extract = |number: u32| format!(r#"{{"output":"{number}.opl","bbox":[50,30,60,40]}}"#);
    let extracts: Vec<String> = (0..600).map(extract).collect();
    let config = format!(r#"{{"extracts":[{}]}}"#, extracts.join(","));
    let config = write(directory.path(), "config.json", &config);
    let at = directory.path();
    run_ok(&[&"osmium", &"extract", &"-d", &at, &"-c", &config, &input]);
    for number in [0, 299, 599] {
        let kept = std::fs::read_to_string(at.join(format!("{number}.opl")));
        assert_eq!(ids(&kept.unwrap()), "n2");
    }
}

#[test]
fn a_region_that_meets_nothing_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [node(1, 500_000_000, 50_000_000, &[])];
    let input = file_of(dir.path(), "in.osm.pbf", &[&nodes]);
    let output = dir.path().join("out.osm.pbf");
    let inspected = ask(&[&"inspect", &"--json", &input]).json();
    let [lon, lat] = [0, 1].map(|at| inspected["data_bbox"][at].as_f64().unwrap());
    let far = run_ok(&[
        &"extract",
        &"-b",
        &"-10,-10,-9,-9",
        &input,
        &"-O",
        &"-o",
        &output,
    ]);
    assert!(
        stderr(&far).contains("lies in the region"),
        "{}",
        stderr(&far)
    );
    assert!(!stderr(&far).contains("swapped"), "{}", stderr(&far));
    let swapped = format!("{},{},{},{}", lat - 1.0, lon - 1.0, lat + 1.0, lon + 1.0);
    let swapped = run_ok(&[&"extract", &"-b", &swapped, &input, &"-O", &"-o", &output]);
    assert!(
        stderr(&swapped).contains("latitude and longitude look swapped"),
        "{}",
        stderr(&swapped)
    );
    let met = format!("{},{},{},{}", lon - 1.0, lat - 1.0, lon + 1.0, lat + 1.0);
    let met = run_ok(&[&"extract", &"-b", &met, &input, &"-O", &"-o", &output]);
    assert_eq!(stderr(&met), "");
    let message = run_fail(&[&"extract", &"-b", &"5,5,5,5", &input, &"-O", &"-o", &output]);
    assert!(message.contains("the box is empty"), "{message}");
}
