//! `export`: lines of relations, the antimeridian, regions that select or cut, and selections as of version 0.5.

use crate::common::lines::{lines_of, with_nested_members};
use crate::common::oracle::{real_file, small_real_files};
use crate::common::{Kind, decode, is_long, run_ok};
use crate::export::fixture;
use crate::geoparquet::export;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The features of an export as GeoJSON.
fn features(input: &Path, options: &[&str]) -> Vec<Value> {
    let mut args: Vec<crate::common::Arg> =
        vec![&"export", &input, &"-f", &"geojsonseq", &"-u", &"type_id"];
    args.extend([&"-x" as crate::common::Arg, &"print_record_separator=false"]);
    args.extend(options.iter().map(|option| option as crate::common::Arg));
    let text = String::from_utf8(run_ok(&args).stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The coordinates of a feature by its id.
fn by_id(features: Vec<Value>) -> BTreeMap<String, Value> {
    let pairs = features.into_iter().map(|mut feature| {
        let id = feature["id"].as_str().unwrap().to_owned();
        (id, feature["geometry"].take())
    });
    pairs.collect()
}

/// All points of a geometry.
fn points(coordinates: &Value) -> Vec<[f64; 2]> {
    let list = coordinates.as_array().unwrap();
    match list.first() {
        Some(Value::Number(_)) => vec![[list[0].as_f64().unwrap(), list[1].as_f64().unwrap()]],
        _ => list.iter().flat_map(points).collect(),
    }
}

#[test]
fn routes_are_the_lines_of_a_plain_merge() {
    for input in small_real_files() {
        if input.to_string_lossy().ends_with(".osh.pbf") {
            continue;
        }
        let objects = decode::objects(&input);
        let nodes: HashMap<i64, (i64, i64)> = objects
            .iter()
            .filter(|object| object.kind == Kind::Node)
            .map(|node| (node.id, (node.lon_nano, node.lat_nano)))
            .collect();
        let ways = objects.iter().filter(|object| object.kind == Kind::Way);
        let ways: HashMap<i64, Vec<_>> = ways
            .map(|way| {
                (
                    way.id,
                    way.refs.iter().map(|id| nodes.get(id).copied()).collect(),
                )
            })
            .collect();
        let relations: HashMap<i64, _> = objects
            .iter()
            .filter(|object| object.kind == Kind::Relation)
            .map(|relation| (relation.id, relation))
            .collect();
        let mut expected = BTreeMap::new();
        for relation in objects
            .iter()
            .filter(|object| object.kind == Kind::Relation)
        {
            let is_line = |(key, value): &(String, String)| {
                key == "type" && matches!(value.as_str(), "route" | "waterway")
            };
            let lines = lines_of(&with_nested_members(relation, &relations, &[]), &ways);
            if relation.tags.iter().any(is_line) && !lines.is_empty() {
                let degrees = |place: &(i64, i64)| [place.0 as f64 / 1e9, place.1 as f64 / 1e9];
                let lines: Vec<Vec<[f64; 2]>> = lines
                    .iter()
                    .map(|line| line.iter().map(degrees).collect())
                    .collect();
                expected.insert(format!("r{}", relation.id), serde_json::json!(lines));
            }
        }
        let options = [
            "--line-relations",
            "route,waterway",
            "--type",
            "relation",
            "--geometry-types",
            "linestring",
        ];
        let found = by_id(features(&input, &options));
        assert!(found.keys().eq(expected.keys()), "{}", input.display());
        for (id, geometry) in &found {
            assert_eq!(geometry["type"], "MultiLineString");
            let (found, expected) = (points(&geometry["coordinates"]), points(&expected[id]));
            assert_eq!(found.len(), expected.len(), "{} {id}", input.display());
            for (one, other) in found.iter().zip(&expected) {
                assert!(
                    (one[0] - other[0]).abs() < 2e-7 && (one[1] - other[1]).abs() < 2e-7,
                    "{id}"
                );
            }
        }
        println!("{}: {} routes", input.display(), found.len());
    }
}

#[test]
fn restrictions_are_lines_only_if_they_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    fs::write(
        &input,
        "n1 x0 y0\nn2 x1 y0\nn3 x1 y1\nw1 Nn1,n2\nw2 Nn2,n3\n\
         r1 Ttype=route,route=bus Mw1@,w2@,n3@stop,w9@\n\
         r2 Ttype=restriction,restriction=no_u_turn Mw1@from,w2@to\n",
    )
    .unwrap();
    let ids = |options: &[&str]| -> Vec<String> {
        by_id(features(&input, options)).into_keys().collect()
    };
    assert!(ids(&[]).is_empty());
    assert_eq!(ids(&["--line-relations", "route"]), ["r1"]);
    assert_eq!(ids(&["--line-relations", "restriction,site"]), ["r2"]);
    // A superroute has the ways of its member relations, which may be superroutes, too, and may contain each other.
    let nested = dir.path().join("nested.opl");
    fs::write(
        &nested,
        "n1 x0 y0\nn2 x1 y0\nn3 x1 y1\nw1 Nn1,n2\nw2 Nn2,n3\n\
         r1 Ttype=route Mw1@\nr2 Ttype=route Mw2@,n3@stop\n\
         r3 Ttype=superroute,network=x Mr1@,r4@,r9@\nr4 Ttype=superroute,network=x Mr2@,r3@\n",
    )
    .unwrap();
    let found = by_id(features(&nested, &["--line-relations", "superroute"]));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["r3", "r4"]);
    let coordinates = serde_json::json!([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]]);
    assert_eq!(found["r3"]["coordinates"], coordinates);
    let table = dir.path().join("out.parquet");
    // A member relation that is not in the file is missing. One that is nested in itself is not.
    let summary = export(&nested, &table, &["--line-relations", "superroute"]);
    assert_eq!(summary["incomplete"], 2);
    let whole = fs::read_to_string(&nested).unwrap().replace(",r9@", "");
    fs::write(&nested, whole).unwrap();
    let summary = export(&nested, &table, &["--line-relations", "superroute"]);
    assert_eq!(
        (&summary["lines"], &summary["incomplete"]),
        (&2.into(), &0.into())
    );
    let summary = export(&input, &table, &[]);
    assert_eq!(
        (&summary["lines"], &summary["incomplete"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        export(&input, &table, &["--line-relations", "none"])["features"],
        0
    );
}

/// Ways and a relation across the antimeridian, on both sides of it, and along it.
const ACROSS: &str = "\
n1 x179 y-17\nn2 x-179 y-16\nn3 x-178 y-16\n\
n11 x179.5 y-10\nn12 x-179.5 y-10\nn13 x-179.5 y-9\nn14 x179.5 y-9\n\
n21 x178 y-20\nn22 x-178 y-20\nn23 x-178 y-24\nn24 x178 y-24\n\
n31 x179 y-21\nn32 x-179 y-21\nn33 x-179 y-23\nn34 x179 y-23\n\
n41 x170 y0\nn42 x180 y0\nn43 x180 y5\nn44 x170 y5\n\
n51 x-180 y-70\nn52 x-60 y-75\nn53 x60 y-75\nn54 x180 y-70\n\
w1 Thighway=track Nn1,n2,n3\n\
w2 Tbuilding=yes Nn11,n12,n13,n14,n11\n\
w3 Nn21,n22,n23,n24,n21\nw4 Nn31,n32,n33,n34,n31\n\
w5 Tlanduse=forest Nn41,n42,n43,n44,n41\n\
w6 Tbarrier=fence Nn51,n52,n53,n54\n\
r1 Ttype=multipolygon,natural=water Mw3@outer,w4@inner\n\
r2 Ttype=route,route=ferry Mw1@\n";

#[test]
fn lines_and_areas_are_cut_at_the_antimeridian() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("across.opl");
    fs::write(&input, ACROSS).unwrap();
    let options = ["--line-relations", "route"];
    for (id, geometry) in by_id(features(&input, &options)) {
        let parts = geometry["coordinates"].as_array().unwrap();
        let expected = match id.as_str() {
            "w1" | "r2" => ("MultiLineString", 2),
            "a4" | "a3" => ("MultiPolygon", 2),
            "a10" => ("MultiPolygon", 1),
            "w6" => ("LineString", 4),
            _ => panic!("{id}"),
        };
        assert_eq!(
            (geometry["type"].as_str().unwrap(), parts.len()),
            expected,
            "{id}"
        );
        if geometry["type"] != "LineString" {
            for part in parts {
                let lons = points(part).into_iter().map(|[lon, _]| lon);
                let (low, high) = lons.fold((f64::MAX, f64::MIN), |(low, high), lon| {
                    (low.min(lon), high.max(lon))
                });
                assert!(high - low <= 180.0, "{id}: {part}");
            }
        }
    }
    let keep = by_id(features(&input, &["--antimeridian", "keep"]));
    assert_eq!(keep["w1"]["type"], "LineString");
    let table = dir.path().join("across.parquet");
    let options = [
        "--filter",
        "w/highway,building,landuse",
        "--filter",
        "r/natural,route",
    ];
    let summary = export(&input, &table, &options);
    crate::export_tables::other_programs_agree(&table, &summary);
}

/// A real file, moved so that the antimeridian runs through it, as OPL.
fn moved(input: &Path, output: &Path) {
    let opl = run_ok(&[&"cat", &input, &"-f", &"opl"]).stdout;
    let opl = String::from_utf8(opl).unwrap();
    let lons = opl
        .lines()
        .filter_map(|line| line.rsplit_once(" x")?.1.split(' ').next()?.parse().ok());
    let mut lons: Vec<f64> = lons.collect();
    lons.sort_by(f64::total_cmp);
    let by = 180.0 - lons[lons.len() / 2];
    let text: String = opl
        .lines()
        .map(|line| match line.rsplit_once(" x") {
            Some((before, place)) if line.starts_with('n') && place.contains(" y") => {
                let (lon, lat) = place.split_once(' ').unwrap();
                let lon = lon.parse::<f64>().unwrap() + by;
                let lon = if lon > 180.0 { lon - 360.0 } else { lon };
                format!("{before} x{lon:.7} {lat}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    fs::write(output, text).unwrap();
}

#[test]
fn a_country_across_the_antimeridian_has_valid_geometries_of_the_same_area() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["monaco.osm.pbf", "porto.osm.pbf", "malta.osm.pbf"]
        .iter()
        .take(if is_long() { 3 } else { 1 })
    {
        let sorted = dir.path().join("sorted.osm.pbf");
        run_ok(&[&"sort", &real_file(name), &"-q", &"-O", &"-o", &sorted]);
        let input = dir.path().join("moved.opl");
        moved(&sorted, &input);
        let table = dir.path().join(format!("{name}.parquet"));
        let plain = export(&sorted, &table, &[]);
        let summary = export(&input, &table, &["--with", "area"]);
        assert_eq!(summary["features"], plain["features"]);
        let [found, expected] =
            [&summary, &plain].map(|one| one["square_degrees"].as_f64().unwrap());
        assert!(
            (found - expected).abs() < expected * 1e-4,
            "{found} {expected}"
        );
        crate::export_tables::other_programs_agree(&table, &summary);
    }
}

/// Whether a segment shares a point with a box, by cutting off what is outside of each edge.
fn meets(from: [f64; 2], to: [f64; 2], bbox: [f64; 4]) -> bool {
    let (mut low, mut high) = (0.0f64, 1.0f64);
    for axis in 0..2 {
        let by = to[axis] - from[axis];
        let (least, most) = (bbox[axis] - from[axis], bbox[axis + 2] - from[axis]);
        if by == 0.0 {
            if least > 0.0 || most < 0.0 {
                return false;
            }
        } else {
            let (near, far) = if by > 0.0 {
                (least / by, most / by)
            } else {
                (most / by, least / by)
            };
            (low, high) = (low.max(near), high.min(far));
        }
    }
    low <= high
}

/// Whether a geometry shares a point with a box.
fn geometry_meets(geometry: &Value, bbox: [f64; 4]) -> bool {
    let along = |line: &Value| {
        let points = points(line);
        points.windows(2).any(|pair| meets(pair[0], pair[1], bbox))
    };
    let coordinates = &geometry["coordinates"];
    let list = || coordinates.as_array().unwrap().iter();
    match geometry["type"].as_str().unwrap() {
        "Point" => meets(points(coordinates)[0], points(coordinates)[0], bbox),
        "LineString" => along(coordinates),
        "MultiLineString" => list().any(along),
        _ => {
            let rings = || list().flat_map(|polygon| polygon.as_array().unwrap());
            let crossings = rings().flat_map(|ring| {
                let points = points(ring);
                let pairs: Vec<_> = points.windows(2).map(|pair| (pair[0], pair[1])).collect();
                pairs
            });
            let is_left = |(from, to): &([f64; 2], [f64; 2])| {
                (from[1] > bbox[1]) != (to[1] > bbox[1])
                    && bbox[0]
                        < from[0] + (bbox[1] - from[1]) / (to[1] - from[1]) * (to[0] - from[0])
            };
            rings().any(along) || crossings.filter(is_left).count() % 2 == 1
        }
    }
}

#[test]
fn a_box_selects_the_geometries_that_share_a_point_with_it() {
    let input = real_file("monaco.osm.pbf");
    let all = features(&input, &["--line-relations", "route"]);
    for bbox in [
        [7.42, 43.73, 7.425, 43.735],
        [7.4, 43.7, 7.5, 43.8],
        [7.4170001, 43.7310001, 7.4170002, 43.7310002],
    ] {
        let text = bbox.map(|edge| edge.to_string()).join(",");
        let found = by_id(features(
            &input,
            &["--line-relations", "route", "-b", &text],
        ));
        let expected: BTreeMap<_, _> = all
            .iter()
            .filter(|feature| geometry_meets(&feature["geometry"], bbox))
            .map(|feature| {
                (
                    feature["id"].as_str().unwrap().to_owned(),
                    feature["geometry"].clone(),
                )
            })
            .collect();
        assert!(!expected.is_empty());
        assert!(
            found.keys().eq(expected.keys()),
            "{text}: {} {}",
            found.len(),
            expected.len()
        );
    }
}

/// The area of polygons and the length of lines, in degrees.
fn measures(features: &[Value]) -> (f64, f64) {
    let (mut area, mut length) = (0.0, 0.0);
    for feature in features {
        let geometry = &feature["geometry"];
        let list = |value: &Value| value.as_array().unwrap().clone();
        match geometry["type"].as_str().unwrap() {
            "MultiPolygon" => {
                for ring in list(&geometry["coordinates"]).iter().flat_map(list) {
                    let pairs = points(&ring);
                    let cross = pairs
                        .windows(2)
                        .map(|pair| pair[0][0] * pair[1][1] - pair[1][0] * pair[0][1]);
                    area += cross.sum::<f64>() / 2.0;
                }
            }
            "Point" => {}
            kind => {
                let lines = if kind == "LineString" {
                    vec![geometry["coordinates"].clone()]
                } else {
                    list(&geometry["coordinates"])
                };
                for line in lines {
                    let points = points(&line);
                    length += points
                        .windows(2)
                        .map(|pair| (pair[1][0] - pair[0][0]).hypot(pair[1][1] - pair[0][1]))
                        .sum::<f64>();
                }
            }
        }
    }
    (area, length)
}

#[test]
fn geometries_are_cut_at_the_edges_of_a_region() {
    let dir = tempfile::tempdir().unwrap();
    let input = real_file("monaco.osm.pbf");
    let (west, south, east, north) = (7.415, 43.728, 7.428, 43.741);
    let inner = format!("{west},{south},{east},{north}");
    let around = dir.path().join("around.geojson");
    let (hole, world) = (
        format!(
            "[{west},{south}],[{west},{north}],[{east},{north}],[{east},{south}],[{west},{south}]"
        ),
        "[7,43],[8,43],[8,44],[7,44],[7,43]",
    );
    fs::write(
        &around,
        format!(r#"{{"type":"Polygon","coordinates":[[{world}],[{hole}]]}}"#),
    )
    .unwrap();
    let all = measures(&features(&input, &[]));
    let within = features(&input, &["--clip", &inner]);
    for feature in &within {
        for [lon, lat] in points(&feature["geometry"]["coordinates"]) {
            assert!(
                (west..=east).contains(&lon) && (south..=north).contains(&lat),
                "{feature}"
            );
        }
    }
    let [within, beyond] = [
        within,
        features(&input, &["--clip", around.to_str().unwrap()]),
    ]
    .map(|one| measures(&one));
    assert!(within.0 > all.0 / 20.0 && beyond.0 > all.0 / 20.0);
    let is_near = |sum: f64, whole: f64| (sum - whole).abs() < whole * 1e-5;
    assert!(
        is_near(within.0 + beyond.0, all.0),
        "{within:?} {beyond:?} {all:?}"
    );
    assert!(
        is_near(within.1 + beyond.1, all.1),
        "{within:?} {beyond:?} {all:?}"
    );
    let table = dir.path().join("clipped.parquet");
    let summary = export(&input, &table, &["--clip", &inner]);
    crate::export_tables::other_programs_agree(&table, &summary);
}

#[test]
fn selections_of_version_0_5_work() {
    let dir = tempfile::tempdir().unwrap();
    let input = fixture("export.opl");
    let all = by_id(features(&input, &[]));
    for (kinds, letters) in [
        ("node", "n"),
        ("way", "wa"),
        ("node,relation", "na"),
        ("relation", "a"),
    ] {
        let found = by_id(features(&input, &["--type", kinds]));
        let is_relation =
            |id: &str| id.starts_with('a') && id[1..].parse::<i64>().unwrap() % 2 != 0;
        let expected = all.keys().filter(|id| {
            if id.starts_with('a') {
                kinds.contains(if is_relation(id) { "relation" } else { "way" })
            } else {
                letters.contains(&id[..1])
            }
        });
        assert!(found.keys().eq(expected), "{kinds}");
    }
    let monaco = real_file("monaco.osm.pbf");
    let properties = features(&monaco, &["--properties", "name,highway"]);
    assert_eq!(properties.len(), features(&monaco, &[]).len());
    let keys: std::collections::BTreeSet<String> = properties
        .iter()
        .flat_map(|feature| feature["properties"].as_object().unwrap().keys().cloned())
        .collect();
    assert!(keys.iter().eq(["highway", "name"]), "{keys:?}");
    let metadata = features(&monaco, &["--metadata"]);
    for name in [
        "@type",
        "@id",
        "@version",
        "@changeset",
        "@uid",
        "@user",
        "@timestamp",
    ] {
        assert!(metadata[0]["properties"].get(name).is_some(), "{name}");
    }
    let file = dir.path().join("expressions.txt");
    fs::write(&file, "# roads\nw/highway=primary\nn/amenity=restaurant\n").unwrap();
    let by_file = features(&monaco, &["--expressions", file.to_str().unwrap()]);
    let by_words = features(
        &monaco,
        &[
            "--filter",
            "w/highway=primary",
            "--filter",
            "n/amenity=restaurant",
        ],
    );
    assert!(!by_file.is_empty() && by_file == by_words);
    let refused = Command::new(env!("CARGO_BIN_EXE_pbfhogg"))
        .args(["export", "--raw", "-b", "1,2,3,4", "-o", "out"])
        .arg(&monaco)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
