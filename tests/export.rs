//! `export`: features as osmium writes them, problems with their places, and what must not be left behind.

use crate::common::craft::{Shape, block, file, header_payload, plain_file};
use crate::common::oracle::{osmium, real_file, real_files};
use crate::common::{Arg, Kind, in_turn, node, relation, run_fail, run_ok, way, world};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file in `tests/fixtures`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Standard output of a run of `export`, as lines.
fn exported(args: &[Arg]) -> Vec<String> {
    let mut all: Vec<Arg> = vec![&"export"];
    all.extend(args);
    lines(&run_ok(&all).stdout)
}

fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Standard error of a run of `export` to nowhere, as lines.
pub fn complaints(args: &[Arg]) -> Vec<String> {
    let mut all: Vec<Arg> = vec![&"export", &"-f", &"text", &"-o", &"/dev/null"];
    all.extend(args);
    lines(&run_ok(&all).stderr)
}

/// A configuration file.
pub fn config(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join(format!("{}.json", text.len()));
    std::fs::write(&path, text).unwrap();
    path
}

/// The rules of osmium: each closed way is a line and an area.
pub const BOTH: &str = r#"{"linear_tags": true, "area_tags": true}"#;

/// A configuration with all kinds of rules.
const CONFIG: &str = r#"{
    "attributes": {"type": "osm_type", "id": true, "user": false},
    "linear_tags": ["highway", "barrier", "natural=coastline"],
    "area_tags": ["building", "landuse", "leisure=*a*", "natural!=coastline", "k=closed*"],
    "exclude_tags": ["source*", "note", "addr:*=1,2"]
}"#;

/// A line of osmium, with the number of digits that a coordinate has: its JSON library writes about one in sixty numbers
/// with 17 digits, such as 7.4209117000000008, which is the same floating-point number as 7.4209117.
pub fn with_short_numbers(line: &str) -> String {
    let Some((head, properties)) = line.split_once("\"properties\"") else {
        return line.to_owned();
    };
    let is_digit = |char: char| char.is_ascii_digit() || char == '.' || char == '-';
    let mut out = String::new();
    let mut rest = head;
    while let Some(start) = rest.find(is_digit) {
        let (before, number) = rest.split_at(start);
        let end = number.find(|char| !is_digit(char)).unwrap_or(number.len());
        let (number, behind) = number.split_at(end);
        out.push_str(before);
        if number.len() > 15 {
            out.push_str(&format!(
                "{:?}",
                number.parse::<f64>().unwrap().mul_add(1e7, 0.0).round() / 1e7
            ))
        } else {
            out.push_str(number)
        }
        rest = behind;
    }
    format!("{out}{rest}\"properties\"{properties}")
}

/// Differences of the bytes for which `reference/osmium-parity.md` gives the reason.
fn as_pbfhogg_writes(line: &str, format: &str) -> String {
    match format {
        "geojson" | "geojsonseq" => with_short_numbers(line),
        // A table cannot hold the empty string as a time.
        "pg" => line.replace("\t\t{", "\t\\N\t{"),
        // There is no comma behind the nodes of a way.
        _ => match line.split_once("@way_nodes=") {
            Some((head, rest)) => {
                let end =
                    rest.find(|char: char| !char.is_ascii_digit() && char != '/' && char != '-');
                let (nodes, tags) = rest.split_at(end.unwrap_or(rest.len()));
                let comma = if tags.is_empty() { "" } else { "," };
                format!("{head}@way_nodes={nodes}{comma}{tags}")
            }
            None => line.to_owned(),
        },
    }
}

/// A closed list of points, with the least of them first.
fn from_least(points: &mut Vec<String>) {
    if points.len() > 3 && points.first() == points.last() {
        points.pop();
        let least = (0..points.len()).min_by_key(|at| &points[*at]);
        points.rotate_left(least.unwrap());
        points.push(points[0].clone());
    }
}

/// The first bytes of the geometry of an area, for PostgreSQL.
const EWKB_START: &str = "0106000020E6100000";

/// A line with each ring begun at its least corner: `reference/osmium-parity.md` says when osmium begins elsewhere.
pub fn with_least_corners(line: &str, format: &str) -> String {
    let rings = |list: &str, separator: &str| {
        let mut points: Vec<String> = list.split(separator).map(str::to_owned).collect();
        from_least(&mut points);
        points.join(separator)
    };
    match format {
        "text" => {
            let end = line.rfind(')').unwrap_or(0);
            let parts = line[..end].split_inclusive(['(', ')']).map(|part| {
                let list = part.trim_end_matches(')');
                rings(list, ",") + &part[list.len()..]
            });
            parts.collect::<String>() + &line[end..]
        }
        "pg" => {
            const RING_HEADER: usize = 8;
            let start = line.find(EWKB_START).unwrap();
            let (before, line) = line.split_at(start);
            let end = line.find('\t').unwrap_or(line.len());
            let number = |at: usize| {
                let hex = u32::from_str_radix(&line[at..at + RING_HEADER], 16).unwrap();
                hex.swap_bytes() as usize
            };
            let (mut out, mut at) = (line[..26].to_owned(), 26);
            while at < end {
                let count = number(at + 18);
                out.push_str(&line[at..at + 26]);
                at += 26;
                for _ in 0..count {
                    let len = number(at);
                    out.push_str(&line[at..at + RING_HEADER]);
                    at += RING_HEADER;
                    let mut points: Vec<String> = (0..len)
                        .map(|point| line[at + 32 * point..at + 32 * (point + 1)].to_owned())
                        .collect();
                    from_least(&mut points);
                    out.push_str(&points.concat());
                    at += 32 * len;
                }
            }
            before.to_owned() + &out + &line[end..]
        }
        _ => {
            let parts: Vec<String> = line
                .split("]]")
                .map(|part| {
                    let start = part.rfind("[[").map_or(0, |at| at + 2);
                    part[..start].to_owned() + &rings(&part[start..], "],[")
                })
                .collect();
            parts.join("]]")
        }
    }
}

pub fn is_area(line: &str, format: &str) -> bool {
    match format {
        "text" => line.contains("MULTIPOLYGON("),
        "pg" => line.contains(EWKB_START),
        _ => line.contains("\"MultiPolygon\""),
    }
}

/// The lines of both lists that the other list does not have. Both lists are sorted.
fn differences(ours: &[String], theirs: &[String]) -> [Vec<String>; 2] {
    let without = |a: &[String], b: &[String]| {
        let a = a.iter().filter(|line| b.binary_search(line).is_err());
        a.cloned().collect()
    };
    [without(ours, theirs), without(theirs, ours)]
}

#[test]
fn features_have_the_bytes_that_osmium_writes() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (config, both) = (config(dir.path(), CONFIG), config(dir.path(), BOTH));
    let (config, both) = (config.to_str().unwrap(), both.to_str().unwrap());
    let all = "type,id,version,changeset,timestamp,uid,user";
    let option_lists: Vec<Vec<&str>> = vec![
        vec!["-c", both],
        vec!["-c", both, "-u", "type_id", "-a", all, "-n"],
        vec![
            "-c",
            both,
            "-a",
            "way_nodes,id",
            "--geometry-types=linestring,point",
        ],
        vec!["-c", config, "-u", "type_id"],
    ];
    let mut inputs: Vec<PathBuf> = real_files();
    inputs.retain(|path| !path.to_string_lossy().ends_with(".osh.pbf"));
    inputs.push(fixture("export.opl"));
    let sorted = dir.path().join("sorted.osm.pbf");
    for (turn, input) in inputs.into_iter().enumerate() {
        run_ok(&[&"sort", &"-O", &input, &"-o", &sorted]);
        // Formats and options do not depend on one another: short runs take few pairs.
        let [half, all] = if input.ends_with("export.opl") {
            [1, 1]
        } else {
            [4, option_lists.len()]
        };
        let formats = ["geojsonseq", "geojson", "text", "pg"];
        for (more, format) in in_turn(turn, half, formats.into_iter().enumerate()) {
            for options in in_turn(turn / 2 + more, all, &option_lists) {
                let name = format!("{} {format} {options:?}", input.display());
                let mut args: Vec<Arg> = vec![&sorted, &"-f", &format];
                args.extend(options.iter().map(|option| option as Arg));
                let mut ours = exported(&args);
                // Locations in ways are used only if the index is `none`.
                let index = if name.contains("loc_on_ways") {
                    "none"
                } else {
                    "flex_mem"
                };
                let done = Command::new("osmium")
                    .args(["export", "-i", index, "-f", format])
                    .args(options.iter())
                    .arg(&sorted)
                    .output()
                    .unwrap();
                assert!(done.status.success(), "{name}");
                let theirs = lines(&done.stdout);
                let mut theirs: Vec<String> = theirs
                    .iter()
                    .map(|line| as_pbfhogg_writes(line, format))
                    .collect();
                for list in [&mut ours, &mut theirs] {
                    // The comma is missing behind the last feature, which is another one.
                    list.iter_mut().for_each(|line| {
                        if format == "geojson" && line.ends_with('}') && !line.starts_with(']') {
                            line.push(',');
                        }
                    });
                    list.sort_unstable();
                }
                let mut different = differences(&ours, &theirs);
                assert!(different[0].len() <= ours.len() / 10_000, "{name}");
                for lines in &mut different {
                    for line in lines.iter_mut().filter(|line| is_area(line, format)) {
                        *line = with_least_corners(line, format);
                    }
                    lines.sort_unstable();
                }
                let [mine, other] = different;
                assert_eq!(mine, other, "{name}");
                assert_eq!(ours.len(), theirs.len(), "{name}");
            }
        }
    }
}

/// The summary of an export to nowhere.
pub fn summary(args: &[Arg]) -> Value {
    let mut all: Vec<Arg> = vec![&"export", &"-f", &"text", &"-o", &"/dev/null", &"--json"];
    all.extend(args);
    serde_json::from_slice(&run_ok(&all).stderr).unwrap()
}

#[test]
fn a_closed_way_is_a_line_or_an_area_by_its_tags() {
    let corners = [(1, 0, 0), (2, 0, 10), (3, 10, 10)];
    let mut objects: Vec<_> = corners.map(|(id, lat, lon)| node(id, lat, lon, &[])).into();
    let cases = [
        ("building", "yes", 'a'),
        ("building", "no", 'w'),
        ("highway", "residential", 'w'),
        ("highway", "services", 'a'),
        ("natural", "water", 'a'),
        ("natural", "coastline", 'w'),
        ("natural", "tree_row", 'w'),
        ("barrier", "hedge", 'w'),
        ("barrier", "fence", 'w'),
        ("waterway", "river", 'w'),
        ("waterway", "dock", 'a'),
        ("man_made", "pipeline", 'w'),
        ("man_made", "bridge", 'a'),
        ("aeroway", "taxiway", 'w'),
        ("aeroway", "apron", 'a'),
        ("power", "line", 'w'),
        ("power", "plant", 'a'),
        ("railway", "rail", 'w'),
        ("railway", "station", 'a'),
        ("indoor", "room", 'a'),
        ("area", "yes", 'a'),
        ("area", "no", 'w'),
        ("name", "x", 'w'),
    ];
    for (id, (key, value, _)) in (1..).zip(cases) {
        objects.push(way(id, &[1, 2, 3, 1], &[(key, value)]));
    }
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.osm.pbf");
    std::fs::write(&input, plain_file(&[block(&objects, &Shape::USUAL)])).unwrap();
    let found = exported(&[&input, &"-f", &"text", &"-u", &"type_id"]);
    let expected = (1..).zip(cases).map(|(id, (_, _, letter))| match letter {
        'a' => format!("a{}", 2 * id),
        _ => format!("w{id}"),
    });
    let found: Vec<_> = found
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
    // The printed configuration says the same.
    let printed = String::from_utf8(run_ok(&[&"export", &"-C"]).stdout).unwrap();
    let printed = config(dir.path(), &printed);
    assert_eq!(
        exported(&[&input, &"-f", &"text", &"-c", &printed]),
        exported(&[&input, &"-f", &"text"])
    );
}

#[test]
fn the_bytes_do_not_depend_on_threads_index_and_locations_in_ways() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "60000");
    let mut inputs = vec![input.clone()];
    for (name, options) in [("located", vec!["-n"]), ("needed", vec![])] {
        let located = dir.path().join(format!("{name}.osm.pbf"));
        let mut args: Vec<Arg> = vec![&"add-locations-to-ways", &input, &"-o", &located];
        args.extend(options.iter().map(|option| option as Arg));
        run_ok(&args);
        inputs.push(located);
    }
    let small = dir.path().join("small.osm.pbf");
    run_ok(&[
        &"repack",
        &inputs[1],
        &"--objects-per-blob",
        &"200",
        &"--no-index",
        &"-o",
        &small,
    ]);
    inputs.push(small.clone());
    let unsorted = dir.path().join("unsorted.osm.pbf");
    run_ok(&[&"degrade", &"--unsort", &input, &"-o", &unsorted]);
    let plain = exported(&[&input, &"-f", &"geojsonseq", &"-u", &"counter"]);
    assert!(plain.len() > 1000, "{}", plain.len());
    for input in &inputs {
        for jobs in ["1", "3"] {
            for index in ["dense", "sparse", "external"] {
                let args: [Arg; 9] = [
                    input,
                    &"-f",
                    &"geojsonseq",
                    &"-u",
                    &"counter",
                    &"-j",
                    &jobs,
                    &"-i",
                    &index,
                ];
                assert!(
                    exported(&args) == plain,
                    "{} {jobs} {index}",
                    input.display()
                );
            }
        }
    }
    let sorted = |mut lines: Vec<String>| {
        lines.sort_unstable();
        lines
    };
    let form: [Arg; 4] = [&"-f", &"text", &"-u", &"type_id"];
    let of = |input: &PathBuf| {
        let mut args: Vec<Arg> = vec![input];
        args.extend(form);
        sorted(exported(&args))
    };
    assert!(of(&unsorted) == of(&input));
    let summary = summary(&[&inputs[1]]);
    assert_eq!(summary["index_type"], Value::Null);
    assert_eq!(summary["features"], plain.len());
    // Without an index, the places where kinds change are looked for: few blobs are decoded for that.
    let stats = dir.path().join("stats.json");
    run_ok(&[
        &"export",
        &small,
        &"-f",
        &"text",
        &"-o",
        &"/dev/null",
        &"--stats",
        &stats,
    ]);
    let stats: Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
    let decoded = stats["blobs_decoded"].as_u64().unwrap();
    assert!((300..400).contains(&decoded), "{stats}");
}

#[test]
fn a_blob_that_is_not_where_the_header_says_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lies.osm.pbf");
    let mut blocks: Vec<Vec<u8>> = (1..8)
        .map(|id| block(&[node(id, 10, 10, &[])], &Shape::USUAL))
        .collect();
    blocks.insert(2, block(&[way(1, &[1, 2], &[])], &Shape::USUAL));
    blocks.push(block(&[way(2, &[1, 2], &[])], &Shape::USUAL));
    let header = header_payload(
        &["OsmSchema-V0.6", "DenseNodes"],
        &["LocationsOnWays", "Sort.Type_then_ID"],
    );
    std::fs::write(&path, file(header, &blocks)).unwrap();
    let output = dir.path().join("out.geojson");
    let error = run_fail(&[&"export", &path, &"-o", &output]);
    assert!(
        error.contains("blob 3") && error.contains("out of order"),
        "{error}"
    );
    assert!(!output.exists());
}

#[test]
fn a_filter_selects_before_features_are_made() {
    let input = real_file("monaco.osm.pbf");
    let all = exported(&[&input, &"-f", &"text"]);
    for (filters, has) in [
        (vec!["w/highway"], "LINESTRING"),
        (vec!["n/amenity=bar,cafe", "n/shop"], "POINT"),
        (vec!["a/building"], "MULTIPOLYGON"),
        (vec!["r/boundary=administrative"], "MULTIPOLYGON"),
    ] {
        let mut args: Vec<Arg> = vec![&input, &"-f", &"text"];
        for filter in &filters {
            args.extend([&"--filter" as Arg, filter]);
        }
        let found = exported(&args);
        let mut keys = filters.iter().map(|filter| {
            let (_, expression) = filter.split_once('/').unwrap();
            expression.split('=').next().unwrap()
        });
        assert!(!found.is_empty() && found.len() < all.len(), "{filters:?}");
        let mut expected = all.iter().filter(|line| {
            let (geometry, tags) = line.split_once(") ").unwrap();
            geometry.starts_with(has)
                && keys.clone().any(|key| {
                    tags.split(',')
                        .any(|tag| tag.split('=').next() == Some(key))
                })
        });
        assert!(found.iter().all(|line| all.contains(line)), "{filters:?}");
        assert!(
            found.iter().any(|line| line.starts_with(has)),
            "{filters:?}"
        );
        assert!(expected.next().is_some(), "{filters:?} {:?}", keys.next());
    }
}

#[test]
fn an_incomplete_relation_keeps_the_rings_that_close() {
    let corners = [
        (1, 0, 0),
        (2, 0, 90),
        (3, 90, 90),
        (4, 10, 10),
        (5, 10, 20),
        (6, 20, 20),
    ];
    let mut objects: Vec<_> = corners.map(|(id, lat, lon)| node(id, lat, lon, &[])).into();
    objects.push(way(1, &[1, 2, 3, 1], &[]));
    objects.push(way(2, &[4, 5], &[]));
    let members = [
        (Kind::Way, 1, "outer"),
        (Kind::Way, 2, "inner"),
        (Kind::Way, 3, "inner"),
    ];
    objects.push(relation(
        7,
        &members,
        &[("type", "boundary"), ("name", "x")],
    ));
    objects.push(relation(
        8,
        &members[1..],
        &[("type", "boundary"), ("name", "x")],
    ));
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.osm.pbf");
    std::fs::write(&input, plain_file(&[block(&objects, &Shape::USUAL)])).unwrap();
    assert_eq!(exported(&[&input, &"-f", &"text"]), [""; 0]);
    assert_eq!(
        exported(&[&input, &"-f", &"text", &"--incomplete", &"keep"]),
        ["MULTIPOLYGON(((0 0,0.000009 0,0.000009 0.000009,0 0))) name=x"]
    );
    let summary = summary(&[&input, &"--incomplete", &"keep"]);
    assert_eq!(
        (&summary["areas"], &summary["incomplete"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(summary["errors"], json!({}));
    assert_eq!(summary["bbox"], json!([0.0, 0.0, 0.000009, 0.000009]));
    assert_eq!(summary["square_degrees"], json!(0.000009 * 0.000009 / 2.0));
}

#[test]
fn formats_are_told_by_the_name_of_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let input = fixture("export.opl");
    let write = |name: &str| {
        let path = dir.path().join(name);
        run_ok(&[&"export", &input, &"-o", &path]);
        std::fs::read(&path).unwrap()
    };
    let collection: Value = serde_json::from_slice(&write("a.geojson")).unwrap();
    let features = collection["features"].as_array().unwrap();
    assert_eq!(collection["type"], "FeatureCollection");
    assert_eq!(features.len(), 25);
    assert!(write("a.json") == write("b.geojson"));
    let sequence = write("a.geojsonseq");
    assert!(sequence.starts_with(b"\x1e{") && sequence.ends_with(b"}\n"));
    let without: Vec<u8> = sequence
        .iter()
        .copied()
        .filter(|byte| *byte != 0x1e)
        .collect();
    assert!(write("a.geojsonl") == without);
    for (line, feature) in lines(&without).iter().zip(features) {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap(), *feature);
    }
    for (name, program) in [
        ("a.pg.gz", "gzip"),
        ("a.pg.bz2", "bzip2"),
        ("a.pg.zst", "zstd"),
    ] {
        write(name);
        let unpacked = Command::new(program)
            .arg("-dc")
            .arg(dir.path().join(name))
            .output()
            .unwrap();
        assert!(unpacked.stdout == write(&format!("{name}.pg")), "{name}");
    }
    for (bad, cause) in [
        (vec!["-o", "x.shp"], "does not show the format"),
        (vec!["-f", "shp"], "expected geojson"),
        (
            vec!["-f", "geojson", "-x", "colour=red"],
            "is not an option of a format",
        ),
        (
            vec!["-f", "pg", "-x", "tags_type=xml"],
            "expected jsonb or hstore",
        ),
        (vec!["-a", "colour"], "expected type, id"),
        (vec!["-u", "name"], "expected counter or type_id"),
        (
            vec!["--geometry-types", "point,dot"],
            "expected point, linestring or polygon",
        ),
        (vec!["--filter", "="], "is not an expression"),
        (vec!["-i", "file"], "or none"),
    ] {
        let mut args: Vec<Arg> = vec![&"export", &input];
        args.extend(bad.iter().map(|word| word as Arg));
        let error = run_fail(&args);
        assert!(
            error.contains(cause) && error.lines().count() == 1,
            "{bad:?}: {error}"
        );
    }
}
