//! Objects across the antimeridian are judged as they are on the map: cut at 180 degrees.

use crate::common::{Arg, run_fail, run_ok};
use crate::export::{complaints, summary};
use crate::geoparquet::{export, field, rows};
use parquet::record::Field;
use pbfhogg::areas::{FeatureReader, Form, Geometry};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Lines and areas from 169 degrees east to 169 degrees west.
const WORLD: &str = "\
n1 v1 x169 y65\nn2 v1 x-169 y65\nn3 v1 x-169 y66\nn4 v1 x169 y66\n\
w1 v1 Nn1,n2 Troute=ferry\n\
w2 v1 Nn1,n2,n3,n4,n1 Tlanduse=forest\n\
w3 v1 Nn1,n2\nw4 v1 Nn2,n3,n4,n1\n\
r1 v1 Ttype=multipolygon,natural=water Mw3@outer,w4@outer\n\
r2 v1 Ttype=route,route=ferry Mw1@\n";

/// A country from 179 degrees east to 179 degrees west, and a street in it.
const FIJI: &str = "\
n1 v1 x179 y-17\nn2 v1 x-179 y-17\nn3 v1 x-179 y-16\nn4 v1 x179 y-16\n\
n5 v1 x179.5 y-16.5\nn6 v1 x179.501 y-16.5\n\
w1 v1 Nn1,n2,n3,n4,n1\n\
w2 v1 Nn5,n6 Thighway=residential,name=Road\n\
r1 v1 Ttype=boundary,boundary=administrative,admin_level=2,name=Fiji,ISO3166-1=FJ Mw1@outer\n";

fn file(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The features of an export with routes, by type and id.
fn features(input: &Path, options: &[&str]) -> Vec<(String, Value)> {
    let mut args: Vec<Arg> = vec![&"export", &input, &"-f", &"geojsonseq", &"-a", &"type,id"];
    args.extend([
        &"-x" as Arg,
        &"print_record_separator=false",
        &"--line-relations",
        &"route",
    ]);
    args.extend(options.iter().map(|option| option as Arg));
    let text = String::from_utf8(run_ok(&args).stdout).unwrap();
    let features = text.lines().map(|line| {
        let mut feature: Value = serde_json::from_str(line).unwrap();
        let of = |key: &str| feature["properties"][key].to_string();
        let name = of("@type").trim_matches('"').chars().next().unwrap();
        (format!("{name}{}", of("@id")), feature["geometry"].take())
    });
    features.collect()
}

fn names(input: &Path, options: &[&str]) -> Vec<String> {
    features(input, options)
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

/// The objects that an augmented diff has in a region.
fn actions(input: &Path, changes: &Path, region: [&str; 2]) -> Vec<String> {
    let [option, region] = region;
    let args: [Arg; 8] = [
        &"augmented-diff",
        &input,
        &changes,
        &option,
        &region,
        &"-f",
        &"geojsonseq",
        &"-q",
    ];
    let text = String::from_utf8(run_ok(&args).stdout).unwrap();
    let actions = text.lines().map(|line| {
        let line = line.trim_start_matches('\u{1e}');
        let action: Value = serde_json::from_str(line).unwrap();
        let properties = &action["properties"];
        let kind = properties["type"].as_str().unwrap();
        format!("{}{}", &kind[..1], properties["id"])
    });
    actions.collect()
}

/// A change that moves a node of all ways by 1e-7 degree.
const MOVE: &str = r#"<osmChange version="0.6"><modify>
<node id="1" version="2" lat="65.0000001" lon="169"/></modify></osmChange>"#;

#[test]
fn features_are_selected_after_they_were_cut() {
    let dir = tempfile::tempdir().unwrap();
    let input = file(dir.path(), "in.opl", WORLD);
    let all: &[&str] = &["w1", "w2", "r1", "r2"];
    for (bbox, expected) in [
        ("175,60,-175,70", all),
        ("175,60,180,70", all),
        ("180,60,-175,70", all),
        ("-180,60,-175,70", all),
        ("-1,60,1,70", &[]),
        ("-160,60,160,70", &[]),
        // Inside of the areas, and apart from the lines.
        ("179,65.2,-179,65.8", &["w2", "r1"]),
        ("-1,65.2,1,65.8", &[]),
    ] {
        assert_eq!(names(&input, &["-b", bbox]), expected, "{bbox}");
        let keep = ["-b", bbox, "--antimeridian", "keep"];
        assert_eq!(names(&input, &keep), expected, "{bbox}");
        assert_eq!(names(&input, &["--clip", bbox]), expected, "{bbox}");
        let clip = ["--clip", bbox, "--antimeridian", "keep"];
        assert_eq!(names(&input, &clip), expected, "{bbox}");
    }
}

#[test]
fn what_is_kept_is_written_whole_unless_it_is_cut_at_a_region() {
    let dir = tempfile::tempdir().unwrap();
    let input = file(dir.path(), "in.opl", WORLD);
    let line = |options: &[&str]| features(&input, options)[0].1["coordinates"].clone();
    let keep = ["--antimeridian", "keep", "-b", "175,60,-175,70"];
    assert_eq!(line(&keep), json!([[169.0, 65.0], [-169.0, 65.0]]));
    let parts = json!([
        [[175.0, 65.0], [180.0, 65.0]],
        [[-180.0, 65.0], [-175.0, 65.0]]
    ]);
    for how in ["keep", "cut"] {
        let options = ["--antimeridian", how, "--clip", "175,60,-175,70"];
        assert_eq!(line(&options), parts, "{how}");
    }
}

#[test]
fn a_place_on_the_antimeridian_is_on_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let places = "n1 v1 x180 y65 Tplace=village\nn2 v1 x-180 y65 Tplace=village\n\
                  n3 v1 x180 y75 Tplace=village\nn4 v1 x170 y65\nw1 v1 Nn4,n1 Thighway=path\n";
    let input = file(dir.path(), "in.opl", places);
    for bbox in [
        "175,60,180,70",
        "-180,60,-175,70",
        "180,60,-175,70",
        "175,60,-175,70",
    ] {
        assert_eq!(names(&input, &["-b", bbox]), ["n1", "n2", "w1"], "{bbox}");
    }
    assert_eq!(names(&input, &["-b", "-179.9,60,179.9,70"]), ["w1"]);
}

#[test]
fn a_region_that_ends_at_the_antimeridian_has_the_nodes_of_both_longitudes() {
    let dir = tempfile::tempdir().unwrap();
    let text = "n1 v1 x179.5 y0\nn2 v1 x180 y0\nn3 v1 x-180 y0\nn4 v1 x-179.5 y0\nn5 v1 x180 y9\n\
                n6 v1 x-180 y9\nw1 v1 Nn2,n1\nw2 v1 Nn3,n4\n";
    let input = file(dir.path(), "in.opl", text);
    let pbf = dir.path().join("in.osm.pbf");
    run_ok(&[&"cat", &input, &"-o", &pbf]);
    let polygon = |name: &str, ring: &str| {
        let text = format!(
            r#"{{"type":"Feature","geometry":{{"type":"Polygon","coordinates":[{ring}]}}}}"#
        );
        file(dir.path(), name, &text).to_str().unwrap().to_owned()
    };
    let [east, west, tip] = [
        polygon("e.geojson", "[[170,-5],[180,-5],[180,5],[170,5],[170,-5]]"),
        polygon(
            "w.geojson",
            "[[-170,-5],[-170,5],[-180,5],[-180,-5],[-170,-5]]",
        ),
        polygon("t.geojson", "[[170,-5],[180,0],[170,5],[170,-5]]"),
    ];
    let own = [
        ["n1", "n2", "n3", "w1", "w2"],
        ["n2", "n3", "n4", "w1", "w2"],
    ];
    let second = [["n1", "n2", "w1"], ["n3", "n4", "w2"]];
    let ids = |args: &[Arg]| -> Vec<String> {
        let text = String::from_utf8(run_ok(args).stdout).unwrap();
        let names = text.lines().filter_map(|line| line.split(' ').next());
        names.map(str::to_owned).collect()
    };
    for (side, option, region) in [
        (0, "-b", "170,-5,180,5"),
        (1, "-b", "-180,-5,-170,5"),
        (0, "-p", east.as_str()),
        (1, "-p", west.as_str()),
        (0, "-p", tip.as_str()),
    ] {
        for input in [&input, &pbf] {
            let mut own_args: Vec<Arg> = vec![&"extract", &"-s", &"simple", &option, &region];
            own_args.extend([input as Arg, &"-f", &"opl", &"-o", &"-"]);
            assert_eq!(ids(&own_args), own[side], "{region}");
            let mut args: Vec<Arg> = vec![&"osmium"];
            args.extend(own_args);
            assert_eq!(ids(&args), second[side], "{region}");
        }
    }
    // A box around the world has every node, also where both edges are the antimeridian.
    for region in ["-180,-90,180,90", "-180,-5,180,5"] {
        let args: [Arg; 8] = [&"extract", &"-b", &region, &pbf, &"-f", &"opl", &"-o", &"-"];
        let count = if region.contains("90") { 8 } else { 6 };
        assert_eq!(ids(&args).len(), count, "{region}");
    }
}

#[test]
fn augmented_diffs_judge_objects_on_the_map() {
    let dir = tempfile::tempdir().unwrap();
    let input = file(dir.path(), "in.opl", WORLD);
    let changes = file(dir.path(), "c.osc", MOVE);
    let all: &[&str] = &["w1", "w2", "w3", "w4", "r1", "r2"];
    for (bbox, expected) in [
        ("175,60,-175,70", all),
        ("180,60,-175,70", all),
        ("-1,60,1,70", &[]),
        ("179,65.2,-179,65.8", &["w2", "r1"]),
        ("179,65.2,180,65.8", &["w2", "r1"]),
        ("-180,65.2,-179,65.8", &["w2", "r1"]),
        ("-1,65.2,1,65.8", &[]),
    ] {
        assert_eq!(actions(&input, &changes, ["-b", bbox]), expected, "{bbox}");
    }
    // A region from OSM data is the small side as well.
    let region = WORLD.replace("169", "175");
    let region = file(dir.path(), "region.opl", &region);
    let region = region.to_str().unwrap();
    assert_eq!(actions(&input, &changes, ["-p", region]), all);
    assert_eq!(names(&input, &["-p", region]), ["w1", "w2", "r1", "r2"]);
}

#[test]
fn an_area_with_parts_at_both_meridians_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = "n7 v1 x-1 y51\nn8 v1 x1 y51\nn9 v1 x1 y52\nn10 v1 x-1 y52\n";
    let world = WORLD.replace("w1 v1 ", &format!("{nodes}w1 v1 "));
    let world = world.replace("r1 v1 ", "w5 v1 Nn7,n8,n9,n10,n7\nr1 v1 ");
    let world = world.replace("w4@outer", "w4@outer,w5@outer");
    let input = file(dir.path(), "in.opl", &world);
    let found = features(
        &input,
        &["--type", "relation", "--geometry-types", "polygon"],
    );
    let [(name, geometry)] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(name, "r1");
    let polygons = geometry["coordinates"].as_array().unwrap();
    let mut spans: Vec<(i64, i64)> = polygons
        .iter()
        .map(|rings| {
            let points = rings[0].as_array().unwrap().iter();
            let lons: Vec<i64> = points
                .map(|point| point[0].as_f64().unwrap() as i64)
                .collect();
            (*lons.iter().min().unwrap(), *lons.iter().max().unwrap())
        })
        .collect();
    spans.sort_unstable();
    assert_eq!(spans, [(-180, -169), (-1, 1), (169, 180)]);
    let expected: &[&str] = &["w2", "r1"];
    assert_eq!(names(&input, &["-b", "179,65.2,-179,65.8"]), expected);
    assert_eq!(names(&input, &["-b", "-0.5,51.5,0.5,51.6"]), ["r1"]);
    assert!(names(&input, &["-b", "90,65.2,91,65.8"]).is_empty());
}

#[test]
fn a_feature_without_a_length_is_an_error_that_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    let places = "n1 v1 x180 y0\nn2 v1 x-180 y0\nn3 v1 x179 y0\nn4 v1 x-180 y1\nn5 v1 x180 y1\n\
                  w1 v1 Nn1,n2 Thighway=path\nw2 v1 Nn3,n1,n2 Thighway=path\n\
                  w3 v1 Nn1,n2,n4,n5,n1 Tlanduse=forest\n\
                  r1 v1 Ttype=route,route=ferry Mw1@\n\
                  r2 v1 Ttype=multipolygon,natural=water Mw3@outer\n";
    let input = file(dir.path(), "in.opl", places);
    let args: [Arg; 3] = [&input, &"--line-relations", &"route"];
    let listed = complaints(&[args[0], args[1], args[2], &"-e"]);
    assert_eq!(
        listed,
        [
            "way 1: all its nodes have the same location",
            "way 3: its segments enclose no area",
            "relation 1: all its nodes have the same location",
            "relation 2: its segments enclose no area",
        ]
    );
    let counted = summary(&args);
    assert_eq!(counted["errors"], json!({"no_area": 2, "one_location": 2}));
    assert_eq!(counted["features"], 1);
    let [start, option, types] = args;
    let kept = summary(&[start, option, types, &"--antimeridian", &"keep"]);
    assert_eq!(
        (&kept["features"], &kept["errors"]),
        (&json!(5), &json!({}))
    );
}

#[test]
fn the_centroid_of_what_was_cut_lies_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let objects = FIJI.replace("name=Road", "name=Road\nw3 v1 Nn1,n2 Thighway=path");
    let input = file(dir.path(), "in.opl", &objects);
    let table = dir.path().join("out.parquet");
    export(&input, &table, &["--with", "centroid"]);
    for row in rows(&table) {
        let of = |name: &str| match field(&row, name) {
            Field::Double(value) => *value,
            other => panic!("{name}: {other:?}"),
        };
        let (lon, lat) = (of("centroid_lon"), of("centroid_lat"));
        assert!((179.0..=180.0).contains(&lon.abs()), "{lon} {lat}");
        assert!((-17.0..=-16.0).contains(&lat), "{lon} {lat}");
    }
    assert_eq!(rows(&table).len(), 3);
}

#[test]
fn the_areas_of_a_geocoder_are_the_small_side() {
    let dir = tempfile::tempdir().unwrap();
    // The same country as a relation, and as a closed way.
    let way = FIJI.replace(
        "w1 v1 ",
        "w1 v1 Tboundary=administrative,admin_level=2,name=Fiji,ISO3166-1=FJ ",
    );
    let way = way.split("r1 v1 ").next().unwrap();
    for (number, objects) in [FIJI, way].into_iter().enumerate() {
        let input = file(dir.path(), "in.opl", objects);
        let index = dir.path().join(format!("index-{number}"));
        run_ok(&[&"build-geocode-index", &input, &"-o", &index]);
        for (lat, lon, is_inside) in [
            ("-16.5", "28", false),
            ("-16.5", "178.9", false),
            ("-16.5", "-178.9", false),
            ("-16.2", "179.1", true),
            ("-16.2", "-179.1", true),
            ("-16.2", "180", true),
            ("-16.2", "-180", true),
            ("-16.2", "0", false),
        ] {
            let args: [Arg; 6] = [&"geocode", &index, &"--json", &"--", &lat, &lon];
            let found: Value = serde_json::from_slice(&run_ok(&args).stdout).unwrap();
            let areas = found["areas"].as_array().unwrap();
            assert_eq!(areas.len(), usize::from(is_inside), "{number}: {found}");
        }
    }
}

#[test]
fn an_area_of_osm_data_is_the_small_side_as_a_region() {
    let dir = tempfile::tempdir().unwrap();
    let places = [179.5, -179.5, 28.0, 180.0, -180.0, 178.5];
    let nodes: String = (1..)
        .zip(places)
        .map(|(id, lon)| format!("n{id} v1 x{lon} y-16.5\n"))
        .collect();
    let input = file(dir.path(), "in.opl", &nodes);
    let region = file(dir.path(), "fiji.opl", FIJI);
    let config = file(
        dir.path(),
        "config.json",
        r#"{"extracts": [{"output": "out.opl", "polygon": {"file_name": "fiji.opl"}}]}"#,
    );
    let ids = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let names = text.lines().filter_map(|line| line.split(' ').next());
        names.map(str::to_owned).collect()
    };
    let extract: [Arg; 8] = [
        &"extract", &"-p", &region, &input, &"-f", &"opl", &"-o", &"-",
    ];
    assert_eq!(ids(&run_ok(&extract).stdout), ["n1", "n2", "n4", "n5"]);
    run_ok(&[&"extract", &"-c", &config, &"-d", &dir.path(), &input]);
    let written = std::fs::read(dir.path().join("out.opl")).unwrap();
    assert_eq!(ids(&written), ["n1", "n2", "n4", "n5"]);
    // The second name takes coordinates as they are, as osmium does.
    let [command, option, region, input, ..] = extract;
    let osmium: [Arg; 9] = [
        &"osmium", command, option, region, input, &"-f", &"opl", &"-o", &"-",
    ];
    assert_eq!(ids(&run_ok(&osmium).stdout), ["n3", "n6"]);
}

#[test]
fn a_polygon_that_jumps_is_the_small_side_in_every_kind_of_region_file() {
    let dir = tempfile::tempdir().unwrap();
    let places = [179.5, -179.5, 28.0, 180.0, -180.0, 177.5];
    let nodes: String = (1..)
        .zip(places)
        .map(|(id, lon)| format!("n{id} v1 Ta=b x{lon} y-16.5\n"))
        .collect();
    let input = file(dir.path(), "in.opl", &nodes);
    let ring = "[[178,-18],[-178,-18],[-178,-15],[178,-15],[178,-18]]";
    let geojson = format!(r#"{{"type":"Polygon","coordinates":[{ring}]}}"#);
    let poly = "fiji\n1\n 178 -18\n -178 -18\n -178 -15\n 178 -15\nEND\nEND\n";
    let regions = [
        file(dir.path(), "fiji.geojson", &geojson),
        file(dir.path(), "fiji.poly", poly),
    ];
    let text = format!(
        r#"{{"extracts": [{{"output": "1.opl", "polygon": [{ring}]}},
            {{"output": "2.opl", "multipolygon": [[{ring}]]}},
            {{"output": "3.opl", "polygon": {{"file_name": "fiji.poly"}}}}]}}"#
    );
    let config = file(dir.path(), "config.json", &text);
    let ids = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let names = text.lines().filter_map(|line| line.split(' ').next());
        names.map(str::to_owned).collect()
    };
    let inside = ["n1", "n2", "n4", "n5"];
    for region in &regions {
        let extract: [Arg; 8] = [
            &"extract", &"-p", region, &input, &"-f", &"opl", &"-o", &"-",
        ];
        assert_eq!(ids(&run_ok(&extract).stdout), inside);
        let second = [&[&"osmium" as Arg][..], &extract[..]].concat();
        assert_eq!(ids(&run_ok(&second).stdout), ["n3", "n6"]);
        let option = region.to_str().unwrap();
        assert_eq!(names(&input, &["-p", option]), inside);
    }
    run_ok(&[&"extract", &"-c", &config, &"-d", &dir.path(), &input]);
    for name in ["1.opl", "2.opl", "3.opl"] {
        let written = std::fs::read(dir.path().join(name)).unwrap();
        assert_eq!(ids(&written), inside, "{name}");
    }
    // A ring around the world is as wide as it says, and one that is nearly as wide is no strip.
    for (edge, is_region) in [("180", true), ("179.9", false)] {
        let text = format!("w\n1\n -{edge} -90\n {edge} -90\n {edge} 90\n -{edge} 90\nEND\nEND\n");
        let region = file(dir.path(), "world.poly", &text);
        let extract: [Arg; 8] = [
            &"extract", &"-p", &region, &input, &"-f", &"opl", &"-o", &"-",
        ];
        if is_region {
            assert_eq!(ids(&run_ok(&extract).stdout).len(), places.len());
        } else {
            let error = run_fail(&extract);
            assert!(
                error.contains("world.poly") && error.contains("pole to pole"),
                "{error}"
            );
        }
    }
}

#[test]
fn an_area_around_a_pole_is_no_region() {
    let dir = tempfile::tempdir().unwrap();
    let polar = "n1 v1 x-120 y-70\nn2 v1 x0 y-75\nn3 v1 x120 y-70\nw1 v1 Nn1,n2,n3,n1\n";
    let region = file(dir.path(), "polar.opl", polar);
    let input = file(dir.path(), "in.opl", FIJI);
    let error = run_fail(&[&"export", &input, &"-p", &region, &"-f", &"geojson"]);
    assert!(
        error.contains("way 1: it crosses the antimeridian and has a point at every longitude"),
        "{error}"
    );
}

#[test]
fn the_areas_of_a_feature_reader_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let input = file(dir.path(), "in.opl", WORLD);
    let reader = FeatureReader::from_path(&input).unwrap();
    let areas = reader.select(|_, tags| {
        if tags.is_empty() {
            Form::Skip
        } else {
            Form::Area
        }
    });
    let mut counts = Vec::new();
    areas
        .for_each(|feature| {
            if let Geometry::Area(polygons) = feature.geometry {
                counts.push((feature.id.to_string(), polygons.len()));
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(counts, [("w2".to_owned(), 2), ("r1".to_owned(), 2)]);
}
