//! `export`: the order of areas under the second name, and relations of which a part is missing.

use crate::common::random::Random;
use crate::common::{Arg, oracle, run_ok};
use std::path::{Path, PathBuf};
use std::process::Command;

fn write(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("in.opl");
    std::fs::write(&path, text).unwrap();
    path
}

/// The ids of the features of a run.
fn features(args: &[Arg]) -> Vec<String> {
    let mut all: Vec<Arg> = args.to_vec();
    all.extend([&"-u" as Arg, &"type_id", &"-f", &"text"]);
    let text = String::from_utf8(run_ok(&all).stdout).unwrap();
    let ids = text.lines().filter_map(|line| line.split(' ').next());
    ids.map(str::to_owned).collect()
}

/// A square with corners `from` and `from + size`, as nodes with ids from `id` on and a closed way, which is its ring.
fn square(id: i64, from: i64, size: i64, tags: &str) -> (String, String) {
    let corners = [(0, 0), (size, 0), (size, size), (0, size)];
    let nodes = (id..)
        .zip(corners)
        .map(|(id, (x, y))| format!("n{id} v1 x0.{:03} y0.{:03}\n", from + x, from + y));
    let refs: Vec<String> = [0, 1, 2, 3, 0]
        .iter()
        .map(|at| format!("n{}", id + at))
        .collect();
    (
        nodes.collect(),
        format!("w{id} v1 {tags} N{}\n", refs.join(",")),
    )
}

#[test]
fn a_hole_whose_outer_ring_is_missing_is_no_area() {
    let directory = tempfile::tempdir().unwrap();
    let squares = [
        square(10, 100, 400, ""),
        square(20, 200, 200, ""),
        square(30, 250, 100, ""),
        square(40, 280, 20, ""),
        square(50, 600, 100, ""),
        square(60, 700, 50, ""),
    ];
    let nodes: String = squares.iter().map(|(nodes, _)| nodes.as_str()).collect();
    let ways: String = squares.iter().map(|(_, way)| way.as_str()).collect();
    // The members, and the rings that remain: corners of outer rings and of their holes.
    for (members, expected) in [
        // The outer ring is missing: its hole is no area, and what lies in the hole is one.
        ("w1@outer,w20@inner", &[][..]),
        ("w1@outer,w20@inner,w30@outer", &["0.25"]),
        ("w1@outer,w20@inner,w30@outer,w40@inner", &["0.25 -0.28"]),
        ("w1@outer,w20@inner,w40@inner", &[]),
        ("w1@outer,w20@inner,w50@inner", &[]),
        // Another outer ring is missing.
        ("w1@outer,w10@outer,w20@inner", &["0.1 -0.2"]),
        ("w1@outer,w10@outer,w20@inner,w50@inner", &["0.1 -0.2"]),
        // The ring around an island is missing, and so is the island: the hole in it is none.
        ("w1@outer,w10@outer,w20@inner,w40@inner", &["0.1 -0.2"]),
        // Holes that touch.
        ("w1@outer,w50@inner,w60@inner", &[]),
        // Without roles nobody can know.
        ("w1@,w20@", &["0.2"]),
        // Of the outer ring only a part is missing, or one of its nodes.
        ("w70@outer,w20@inner", &[]),
        ("w71@outer,w20@inner,w30@outer", &["0.25"]),
    ] {
        let parts = "w70 v1 Nn10,n11,n12\nw71 v1 Nn10,n11,n99,n13,n10\n";
        let relation = format!("r1 v1 Ttype=multipolygon,landuse=forest M{members},w2@outer\n");
        let input = write(directory.path(), &format!("{nodes}{ways}{parts}{relation}"));
        let text = run_ok(&[&"export", &input, &"--incomplete", &"keep", &"-f", &"text"]).stdout;
        let text = String::from_utf8(text).unwrap();
        let polygons = text
            .lines()
            .flat_map(|line| line.split(")),(("))
            .map(|polygon| {
                let rings = polygon.split("),(").map(|ring| {
                    let ring = ring.trim_start_matches(|char: char| !char.is_ascii_digit());
                    ring.split(' ').next().unwrap().to_owned()
                });
                rings.collect::<Vec<_>>().join(" -")
            });
        assert_eq!(polygons.collect::<Vec<_>>(), expected, "{members}");
        assert!(!text.contains("99"), "{text}");
    }
}

#[test]
fn a_complete_relation_of_inner_members_alone_is_as_before() {
    let directory = tempfile::tempdir().unwrap();
    let (nodes, way) = square(10, 100, 400, "");
    let relation = "r1 v1 Ttype=multipolygon,landuse=forest Mw10@inner\n";
    let input = write(directory.path(), &format!("{nodes}{way}{relation}"));
    let keep: &[Arg] = &[&"export", &input, &"--incomplete", &"keep"];
    assert_eq!(features(keep), ["a3"]);
}

/// Ways that are lines and areas, and relations whose members come in another order than their ids.
fn many_areas() -> String {
    let mut random = Random(7);
    let (mut nodes, mut ways, mut rings) = (String::new(), String::new(), Vec::new());
    let mut way = 0;
    for ring in 0..40u64 {
        let (x, y) = (ring % 7, ring / 7);
        for (corner, (dx, dy)) in [(0, 0), (6, 0), (6, 6), (0, 6)].into_iter().enumerate() {
            let id = ring * 4 + corner as u64 + 1;
            let tag = if random.below(3) == 0 {
                "Tamenity=bench"
            } else {
                ""
            };
            nodes += &format!("n{id} v1 {tag} x{x}.{dx} y{y}.{dy}\n");
        }
        let node = |corner: u64| format!("n{}", ring * 4 + corner % 4 + 1);
        let line = |corners: std::ops::RangeInclusive<u64>| {
            corners.map(node).collect::<Vec<_>>().join(",")
        };
        let mut put = |nodes: String, tags: &str| {
            way += 1;
            ways += &format!("w{way} v1 T{tags} N{nodes}\n");
            way
        };
        let whole = ["landuse=forest", "building=yes", "highway=path", "area=yes"];
        rings.push(match random.below(2) {
            0 => vec![put(line(0..=4), whole[random.below(4)])],
            _ => vec![put(line(0..=2), "barrier=wall"), put(line(2..=4), "x=y")],
        });
    }
    let mut relations = String::new();
    for id in 1..=60 {
        let mut members: Vec<String> = (0..random.below(3)).map(|_| "n1@x".to_owned()).collect();
        let mut ring = rings[random.below(40)].clone();
        if random.below(2) == 0 {
            ring.reverse();
        }
        members.extend(ring.iter().map(|way| format!("w{way}@outer")));
        let members = members.join(",");
        relations += &format!("r{id} v1 Ttype=multipolygon,number={id} M{members}\n");
    }
    nodes + &ways + &relations
}

#[test]
fn areas_come_after_lines_as_their_last_way_does_under_the_second_name() {
    let directory = tempfile::tempdir().unwrap();
    let input = write(
        directory.path(),
        "n1 v1 Ta=1 x0 y0\nn2 v1 x1 y0\nn3 v1 x1 y1\nn4 v1 Ta=1 x0 y1\n\
         w1 v1 Tlanduse=forest Nn1,n2,n3,n4,n1\nw2 v1 Tx=y Nn1,n2,n3\nw3 v1 Tx=y Nn3,n4,n1\n\
         w4 v1 Tlanduse=grass Nn1,n2,n3,n1\n\
         r1 v1 Ttype=multipolygon,natural=water Mw2@outer,w3@outer\n\
         r2 v1 Ttype=multipolygon,natural=wood Mw3@outer,w2@outer\n\
         r3 v1 Ttype=multipolygon,natural=wood Mw1@outer\n",
    );
    assert_eq!(
        features(&[&"osmium", &"export", &input]),
        "n1 n4 w1 w2 w3 w4 a7 a2 a5 a3 a8"
            .split(' ')
            .collect::<Vec<_>>()
    );
    assert_eq!(
        features(&[&"export", &input]),
        "n1 n4 a2 w2 w3 a8 a3 a5 a7".split(' ').collect::<Vec<_>>()
    );
}

#[test]
fn features_of_small_files_come_in_the_order_of_osmium() {
    if !oracle::osmium() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let input = write(directory.path(), &many_areas());
    for options in [
        &["-f", "text", "-u", "type_id"][..],
        &["-f", "geojson", "-u", "counter"],
        &["-f", "geojsonseq", "-u", "counter", "-n"],
        &["-f", "geojsonseq", "-x", "print_record_separator=false"],
        &["-f", "pg", "-u", "counter"],
        &["-f", "geojson", "--geometry-types=polygon", "-u", "counter"],
        &["-f", "geojson", "--geometry-types=point,linestring"],
        &["-f", "text", "-a", "type,id,version"],
    ] {
        let theirs = Command::new("osmium")
            .arg("export")
            .arg(&input)
            .args(options)
            .output();
        let mut args: Vec<Arg> = vec![&"osmium", &"export", &input];
        args.extend(options.iter().map(|option| option as Arg));
        for jobs in ["1", "4"] {
            let mut args = args.clone();
            args.extend([&"-j" as Arg, &jobs]);
            let ours = String::from_utf8(run_ok(&args).stdout).unwrap();
            let theirs = String::from_utf8(theirs.as_ref().unwrap().stdout.clone()).unwrap();
            assert!(theirs.lines().count() > 20, "{options:?}");
            let mut pairs = ours.lines().zip(theirs.lines());
            assert_eq!(
                pairs.find(|(ours, theirs)| ours != theirs),
                None,
                "{options:?}"
            );
            assert_eq!(ours, theirs, "{options:?}");
        }
    }
}

#[test]
fn lines_of_relations_have_no_ids_of_nodes_and_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let text = "n1 v1 x1 y1\nn2 v1 x2 y1\nn3 v1 x2 y2\nw1 v1 Thighway=path Nn1,n2\n\
                w2 v1 Thighway=path Nn2,n3\nr1 v1 Ttype=route,route=bus Mw1@,w2@\n\
                r2 v1 Ttype=route,route=foot Mw2@\n";
    let input = write(dir.path(), text);
    for (format, of_way, of_relation) in [
        (
            "geojsonseq",
            "\"@way_nodes\":[1,2],\"h",
            "\"@way_nodes\":null,\"type\"",
        ),
        ("text", " @way_nodes=1/2,h", " @way_nodes=,type="),
        ("pg", "\t{1,2}\t", "\t\\N\t"),
    ] {
        let args: [Arg; 8] = [
            &"export",
            &input,
            &"-f",
            &format,
            &"-a",
            &"way_nodes",
            &"--line-relations",
            &"route",
        ];
        let text = String::from_utf8(run_ok(&args).stdout).unwrap();
        assert_eq!(text.matches(of_way).count(), 1, "{text}");
        assert_eq!(text.matches(of_relation).count(), 2, "{text}");
    }
}

#[test]
fn a_warning_says_that_areas_have_no_ids_of_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let text = "n1 v1 x1 y1\nn2 v1 x2 y1\nn3 v1 x2 y2\nw1 v1 Tbuilding=yes Nn1,n2,n3,n1\n\
                w2 v1 Thighway=path Nn1,n2\n";
    let input = write(dir.path(), text);
    for (more, is_said) in [
        (&[][..], true),
        (&["--geometry-types", "linestring"], false),
    ] {
        let mut args: Vec<Arg> = vec![&"export", &input, &"-f", &"geojsonseq", &"-a", &"way_nodes"];
        args.extend(more.iter().map(|word| word as Arg));
        let ran = run_ok(&args);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let lines = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(lines.contains("\"@way_nodes\":[1,2]"), "{lines}");
        assert_eq!(said.contains("1 area without way_nodes"), is_said, "{said}");
    }
}
