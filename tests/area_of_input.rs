//! Regions that are areas of the input itself, by id and by name.

use crate::common::answers::{ask, file_of};
use crate::common::oracle::real_file;
use crate::common::{Arg, Kind, Object, decode, is_long, node, relation, run_fail, run_ok, way};
use std::path::{Path, PathBuf};

/// Vaduz in the file of Liechtenstein, whose boundary is complete.
const VADUZ: &str = "r1155956";

/// The file of Liechtenstein; in short runs the part of it in a box around Vaduz.
fn vaduz_and_around(dir: &Path) -> PathBuf {
    let whole = real_file("liechtenstein-c.osm.pbf");
    if is_long() {
        return whole;
    }
    let part = dir.join("part.osm.pbf");
    run_ok(&[
        &"extract",
        &"-q",
        &"-b",
        &"9.49,47.08,9.62,47.2",
        &whole,
        &"-o",
        &part,
    ]);
    part
}

fn ids(path: &Path) -> Vec<(Kind, i64)> {
    let objects = decode::objects(path).into_iter();
    objects.map(|object| (object.kind, object.id)).collect()
}

#[test]
fn an_area_of_the_input_is_the_same_region_as_its_copy_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let input = vaduz_and_around(dir.path());
    let [boundary, expected, found, text] = [
        "boundary.osm.pbf",
        "expected.osm.pbf",
        "found.osm.pbf",
        "input.opl",
    ]
    .map(at);
    run_ok(&[&"getid", &"-q", &"-r", &input, &VADUZ, &"-o", &boundary]);
    run_ok(&[
        &"extract", &"-q", &"-p", &boundary, &input, &"-o", &expected,
    ]);
    let expected = ids(&expected);
    assert!(expected.len() > 1000);
    run_ok(&[&"cat", &"-q", &input, &"-o", &text]);
    let indexed = at("indexed.osm.pbf");
    run_ok(&[&"cat", &"-q", &input, &"-o", &indexed]);
    for (region, input) in [
        ([&"-p" as Arg, &VADUZ], &input),
        ([&"-p", &VADUZ], &indexed),
        ([&"-p", &VADUZ], &text),
        ([&"--area", &"Vaduz"], &text),
        ([&"--area", &"VADUZ"], &indexed),
    ] {
        let args: [Arg; 5] = [&"-q", &"-O", input, &"-o", &found];
        run_ok(&[&[&"extract" as Arg], &region[..], &args[..]].concat());
        assert!(ids(&found) == expected, "{}", input.display());
    }
    // Other commands take the same regions.
    let export = |region: &[Arg]| {
        let args: [Arg; 7] = [
            &"export",
            &"-q",
            &"-f",
            &"geojsonseq",
            &"-a",
            &"type,id",
            &input,
        ];
        ask(&[&args[..], region].concat()).lines()
    };
    let of_file = export(&[&"-p", &boundary]);
    assert!(of_file.len() > 100 && of_file == export(&[&"--area", &"Vaduz"]));
    assert!(export(&[&"--clip", &boundary]) == export(&[&"--clip", &VADUZ]));
    let config = at("config.json");
    let extracts = r#"{"extracts": [{"output": "one.osm.pbf", "relation": 1155956},
        {"output": "two.osm.pbf", "area": "Vaduz"}, {"output": "three.osm.pbf", "relation": "r1155956"}]}"#;
    std::fs::write(&config, extracts).unwrap();
    run_ok(&[
        &"extract",
        &"-q",
        &"-c",
        &config,
        &"-d",
        &dir.path(),
        &input,
    ]);
    for name in ["one.osm.pbf", "two.osm.pbf", "three.osm.pbf"] {
        assert!(ids(&at(name)) == expected, "{name}");
    }
}

#[test]
fn a_name_that_several_boundaries_have_is_refused_with_their_ids_and_levels() {
    let input = real_file("malta.osm.pbf");
    let message = run_fail(&[&"extract", &"--area", &"Malta", &input, &"-o", &"x.osm.pbf"]);
    for part in ["r365307", "r1711219", "admin_level 2", "admin_level 4"] {
        assert!(message.contains(part), "{message}");
    }
    let message = run_fail(&[
        &"extract",
        &"--area",
        &"Atlantis",
        &input,
        &"-o",
        &"x.osm.pbf",
    ]);
    assert!(
        message.contains("no boundary of the file has the name 'Atlantis'"),
        "{message}"
    );
    // Names that contain the wanted one are listed.
    let message = run_fail(&[&"extract", &"--area", &"Sliem", &input, &"-o", &"x.osm.pbf"]);
    assert!(message.contains("Tas-Sliema"), "{message}");
}

/// A file with a square boundary, an incomplete one, and a closed way.
fn small(dir: &Path) -> PathBuf {
    let corners = [(1, 1), (1, 5), (5, 5), (5, 1)];
    let nodes = (1..).zip(corners);
    let mut nodes: Vec<Object> = nodes
        .map(|(id, (lat, lon))| node(id, lat * 10_000_000, lon * 10_000_000, &[]))
        .collect();
    nodes.push(node(5, 20_000_000, 20_000_000, &[("place", "town")]));
    nodes.push(node(6, 60_000_000, 20_000_000, &[("place", "town")]));
    let ways = [
        way(1, &[1, 2, 3], &[]),
        way(2, &[3, 4, 1], &[]),
        way(3, &[1, 2, 3, 4, 1], &[("landuse", "forest")]),
    ];
    let outer = |id: i64| (Kind::Way, id, "outer");
    let boundary = [
        ("type", "boundary"),
        ("boundary", "administrative"),
        ("name", "Square"),
    ];
    let relations = [
        relation(1, &[outer(1), outer(2)], &boundary),
        relation(
            2,
            &[outer(1), outer(9)],
            &[("type", "boundary"), ("name", "Part")],
        ),
        relation(3, &[outer(1)], &[("type", "route")]),
    ];
    file_of(dir, "small.osm.pbf", &[&nodes, &ways, &relations])
}

#[test]
fn an_area_that_the_input_does_not_have_as_a_whole_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = small(dir.path());
    let output = dir.path().join("out.osm.pbf");
    for (region, cause) in [
        ("r2", "way 9: the way is not in the file"),
        (
            "r3",
            "r3: there is no multipolygon or boundary with this id",
        ),
        ("r99", "r99: there is no multipolygon or boundary"),
        ("w1", "w1: there is no closed way"),
    ] {
        let message = run_fail(&[&"extract", &"-p", &region, &input, &"-o", &output]);
        assert!(message.contains(cause), "{message}");
        assert!(!output.exists());
    }
    for region in ["r1", "w3"] {
        run_ok(&[
            &"extract", &"-q", &"-O", &"-p", &region, &input, &"-o", &output,
        ]);
        let nodes = ids(&output);
        assert!(nodes.contains(&(Kind::Node, 5)) && !nodes.contains(&(Kind::Node, 6)));
    }
    let message = run_fail(&[&"extract", &"-p", &"r1", &"-", &"-o", &output]);
    assert!(message.contains("standard input"), "{message}");
}

#[test]
fn a_file_comes_before_the_area_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let input = small(dir.path());
    std::fs::write(
        dir.path().join("r1"),
        "a\n1\n 5 5.5\n 5 6.5\n 1 6.5\n 1 5.5\nEND\nEND\n",
    )
    .unwrap();
    let mut command = crate::common::pbfhogg();
    let args = [
        "extract",
        "-q",
        "-p",
        "r1",
        "-s",
        "simple",
        "-o",
        "out.osm.pbf",
    ];
    let status = command
        .current_dir(dir.path())
        .args(args)
        .arg(&input)
        .status();
    assert!(status.unwrap().success());
    assert_eq!(ids(&dir.path().join("out.osm.pbf")), [(Kind::Node, 6)]);
}
