//! The outputs of `coastline`: cells, projections, formats, and what is refused.

use crate::common::coast::{CoastWorld, square};
use crate::common::islands::{coast_file, coast_objects, island, islands};
use crate::common::kills::content;
use crate::common::oracle::{ogrinfo, python_with_readers, real_file};
use crate::common::regions::DEGREE;
use crate::common::shapefiles::{Shape, doubled_area, shapes};
use crate::common::{Arg, is_long, run_fail, run_ok, stderr};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The width of the overlap of cells in degrees.
const OVERLAP: f64 = 0.0001;

/// Runs `coastline`, and returns the summary. The region is the world unless an option gives another.
pub fn coastline(input: &Path, options: &[Arg]) -> Value {
    let mut args: Vec<Arg> = vec![&"coastline", &input, &"-q", &"--json"];
    args.extend(options);
    let is_given = |option: &Arg| ["-b", "-p"].iter().any(|name| option.as_ref() == *name);
    if !options.iter().any(is_given) {
        args.extend([&"-b" as Arg, &"-180,-90,180,90"]);
    }
    serde_json::from_slice(&run_ok(&args).stdout).unwrap()
}

/// Checks the directions of the rings of a polygon, and returns its area.
fn area(polygon: &Shape) -> f64 {
    let areas: Vec<f64> = polygon
        .parts
        .iter()
        .map(|ring| doubled_area(ring))
        .collect();
    assert_eq!(polygon.shape_type, 5);
    assert!(
        areas[0] < 0.0 && areas[1..].iter().all(|area| *area > 0.0),
        "{areas:?}"
    );
    for ring in &polygon.parts {
        assert_eq!(ring.first(), ring.last());
    }
    -areas.iter().sum::<f64>() / 2.0
}

/// The area of each cell.
fn areas(shapes: &[Shape]) -> BTreeMap<(i32, i32), f64> {
    let mut areas = BTreeMap::new();
    for shape in shapes {
        let [(x, column), (y, row)] = &shape.values[..] else {
            panic!("{:?}", shape.values);
        };
        assert_eq!((x.as_str(), y.as_str()), ("x", "y"));
        *areas
            .entry((column.parse().unwrap(), row.parse().unwrap()))
            .or_default() += area(shape);
    }
    areas
}

#[test]
fn land_and_water_are_the_cells_of_the_grid() {
    let dir = tempfile::tempdir().unwrap();
    let input = islands(dir.path());
    let (land, water) = (dir.path().join("land.shp"), dir.path().join("water.shp"));
    for degrees in [7.5, 20.0, 180.0] {
        let size = degrees.to_string();
        coastline(
            &input,
            &[
                &"-O", &"--split", &size, &"--land", &land, &"--water", &water,
            ],
        );
        let (land, water) = (areas(&shapes(&land)), areas(&shapes(&water)));
        let (columns, rows) = ((360.0 / degrees) as i32, (180.0 / degrees) as i32);
        for column in 0..columns {
            for row in 0..rows {
                let side = |number: i32, count: i32| {
                    let inner = i32::from(number > 0) + i32::from(number + 1 < count);
                    degrees + OVERLAP * f64::from(inner)
                };
                let cell = side(column, columns) * side(row, rows);
                let of =
                    |areas: &BTreeMap<_, f64>| areas.get(&(column, row)).copied().unwrap_or(0.0);
                let sum = of(&land) + of(&water);
                assert!(
                    (sum / cell - 1.0).abs() < 1e-9,
                    "{degrees} {column} {row}: {sum} {cell}"
                );
            }
        }
        assert!(land.len() > 3 || degrees > 90.0);
    }
}

#[test]
fn whole_polygons_have_the_area_of_the_islands() {
    let dir = tempfile::tempdir().unwrap();
    let input = islands(dir.path());
    let (land, water) = (dir.path().join("land.shp"), dir.path().join("water.shp"));
    coastline(&input, &[&"--land", &land, &"--water", &water]);
    let (land, water) = (shapes(&land), shapes(&water));
    let numbers: Vec<&str> = land
        .iter()
        .map(|shape| shape.values[0].1.as_str())
        .collect();
    assert_eq!(
        (land[0].values[0].0.as_str(), numbers),
        ("FID", vec!["0", "1", "2", "3"])
    );
    let lake = 3.25 * 5.25;
    let first = land
        .iter()
        .map(area)
        .find(|area| (area - (17.375 * 16.25 - lake)).abs() < 1e-9);
    assert!(first.is_some());
    let sum: f64 = land.iter().chain(&water).map(area).sum();
    assert!((sum / (360.0 * 180.0) - 1.0).abs() < 1e-12);
    assert!(
        water.len() > 8,
        "the sea in cells of 90 degrees, and the lake"
    );
}

#[test]
fn a_region_that_is_no_box_is_land_and_water() {
    let dir = tempfile::tempdir().unwrap();
    let objects = coast_objects(&[
        island([-5.0, -5.0, 5.0, 5.0]),
        island([20.0, 1.0, 22.0, 2.0]),
    ]);
    let input = coast_file(dir.path(), "islands.osm.pbf", &objects);
    let region = dir.path().join("region.geojson");
    let ring = "[[-10,0],[10,0],[30,20],[0,10],[-10,0]]";
    fs::write(
        &region,
        format!("{{\"type\":\"Polygon\",\"coordinates\":[{ring}]}}"),
    )
    .unwrap();
    let (land, water) = (dir.path().join("land.shp"), dir.path().join("water.shp"));
    for split in ["0", "2.5"] {
        let files: [Arg; 9] = [
            &"-p", &region, &"-O", &"--split", &split, &"--land", &land, &"--water", &water,
        ];
        coastline(&input, &files);
        let (land, water) = (shapes(&land), shapes(&water));
        let sum: f64 = land.iter().chain(&water).map(area).sum();
        // Cells of 2.5 degrees overlap by about a ten-thousandth of their area. Cuts of the border are rounded.
        let slack = if split == "0" { 1e-8 } else { 3e-4 };
        assert!((sum / 300.0 - 1.0).abs() < slack, "{split}: {sum}");
        assert!(!land.is_empty() && !water.is_empty());
    }
}

#[test]
fn web_mercator_has_the_points_of_the_formula() {
    let dir = tempfile::tempdir().unwrap();
    let input = islands(dir.path());
    let at = |name: &str| dir.path().join(name);
    coastline(
        &input,
        &[&"--land", &at("4326.shp"), &"--water", &at("sea-4326.shp")],
    );
    let more: [Arg; 6] = [
        &"--epsg",
        &"3857",
        &"--land",
        &at("3857.shp"),
        &"--water",
        &at("sea-3857.shp"),
    ];
    coastline(&input, &more);
    let radius = 6_378_137.0;
    let edge = 20_037_508.342_789_244;
    let (degrees, metres) = (shapes(&at("4326.shp")), shapes(&at("3857.shp")));
    assert_eq!(degrees.len(), metres.len());
    for (degrees, metres) in degrees.iter().zip(&metres) {
        for (ring, projected) in degrees.parts.iter().zip(&metres.parts) {
            let mut found = projected.iter();
            for [lon, lat] in ring {
                let x = lon.to_radians() * radius;
                let y = (lat.to_radians().tan() + 1.0 / lat.to_radians().cos()).ln() * radius;
                // Long segments have more points.
                let is_found =
                    found.any(|point| (point[0] - x).abs() < 1e-5 && (point[1] - y).abs() < 1e-5);
                assert!(is_found, "{lon} {lat}");
            }
        }
    }
    let sea = shapes(&at("sea-3857.shp"));
    let values = || {
        sea.iter()
            .flat_map(|shape| shape.parts.iter().flatten().flatten())
    };
    assert!(values().all(|value| value.abs() <= edge));
    assert!(values().any(|value| *value == edge) && values().any(|value| *value == -edge));
    let sum: f64 = sea.iter().chain(&metres).map(area).sum();
    assert!((sum / (4.0 * edge * edge) - 1.0).abs() < 1e-9);
    let projection = fs::read_to_string(at("3857.prj")).unwrap();
    assert!(projection.starts_with("PROJCS[") && projection.contains("Mercator_Auxiliary_Sphere"));
}

/// The rings of polygons in units of 1e-7 degree, each from its smallest point on, in one direction.
fn rings(polygons: impl IntoIterator<Item = Vec<Vec<[f64; 2]>>>) -> Vec<Vec<[i64; 2]>> {
    let ring = |mut points: Vec<[f64; 2]>| {
        if doubled_area(&points) < 0.0 {
            points.reverse();
        }
        points.pop();
        let mut points: Vec<[i64; 2]> = points
            .iter()
            .map(|point| point.map(|value| (value * 1e7).round() as i64))
            .collect();
        let least = points
            .iter()
            .enumerate()
            .min_by_key(|(_, point)| **point)
            .unwrap()
            .0;
        points.rotate_left(least);
        points
    };
    let mut rings: Vec<_> = polygons.into_iter().flatten().map(ring).collect();
    rings.sort();
    rings
}

fn polygons_of_geojson(path: &Path) -> Vec<Vec<Vec<[f64; 2]>>> {
    let json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let features = json["features"].as_array().unwrap().iter();
    let polygons =
        features.flat_map(|feature| feature["geometry"]["coordinates"].as_array().unwrap());
    polygons
        .map(|polygon| serde_json::from_value(polygon.clone()).unwrap())
        .collect()
}

/// The polygons of multipolygons in the column `geometry`.
fn polygons_of_parquet(path: &Path) -> Vec<Vec<Vec<[f64; 2]>>> {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let metadata = reader
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .unwrap();
    let geo: Value = serde_json::from_str(metadata[0].value.as_ref().unwrap()).unwrap();
    assert_eq!(geo["columns"]["geometry"]["encoding"], "WKB");
    let mut polygons = Vec::new();
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let geometry = row
            .get_column_iter()
            .find(|(name, _)| *name == "geometry")
            .unwrap()
            .1;
        let Field::Bytes(wkb) = geometry else {
            panic!("{geometry:?}")
        };
        let mut rest = wkb.data();
        let mut take = |len: usize| {
            let (head, tail) = rest.split_at(len);
            rest = tail;
            head.to_vec()
        };
        let mut number =
            |skipped: usize| u32::from_le_bytes(take(skipped + 4)[skipped..].try_into().unwrap());
        let count = (number(5), 0).0;
        for _ in 0..count {
            let ring_count = number(5);
            let mut rings = Vec::new();
            for _ in 0..ring_count {
                let points = number(0);
                let mut ring = Vec::new();
                for _ in 0..points {
                    let mut value = || {
                        let low = u64::from(number(0));
                        f64::from_bits(u64::from(number(0)) << 32 | low)
                    };
                    ring.push([value(), value()]);
                }
                rings.push(ring);
            }
            polygons.push(rings);
        }
    }
    polygons
}

#[test]
fn all_formats_have_the_same_polygons() {
    let dir = tempfile::tempdir().unwrap();
    let input = islands(dir.path());
    let at = |name: &str| dir.path().join(name);
    for split in ["0", "30"] {
        for name in ["land.shp", "land.geojson", "land.parquet"] {
            coastline(&input, &[&"-O", &"--split", &split, &"--land", &at(name)]);
        }
        let expected = rings(shapes(&at("land.shp")).into_iter().map(|shape| shape.parts));
        assert!(expected.len() >= 5);
        assert_eq!(rings(polygons_of_geojson(&at("land.geojson"))), expected);
        assert_eq!(rings(polygons_of_parquet(&at("land.parquet"))), expected);
    }
}

#[test]
fn gdal_reads_the_shapefiles_of_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (input, coast) = (islands(dir.path()), dir.path().join("coast"));
    let summary = coastline(&input, &[&"-o", &coast, &"--split", &"30"]);
    assert_eq!(summary["is_written"], true);
    assert!(summary["features"].as_u64().unwrap() > 100);
    if !ogrinfo() {
        return;
    }
    for (name, count, projection) in [
        ("land-polygons-complete-4326/land_polygons", "4", "WGS 84"),
        ("land-polygons-complete-3857/land_polygons", "4", "Mercator"),
        ("coastlines-4326/lines", "5", "WGS 84"),
    ] {
        let path = coast.join(format!("{name}.shp"));
        let output = Command::new("ogrinfo")
            .args(["-al", "-so"])
            .arg(&path)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains(&format!("Feature Count: {count}")),
            "{name}: {text}"
        );
        assert!(
            text.contains(projection) && output.status.success(),
            "{name}: {text}"
        );
    }
}

#[test]
fn any_number_of_jobs_gives_the_same_directory() {
    let dir = tempfile::tempdir().unwrap();
    let input = islands(dir.path());
    let contents = ["1", "2", "5"].map(|jobs| {
        let coast = dir.path().join(jobs);
        coastline(&input, &[&"-j", &jobs, &"-o", &coast, &"--split", &"15"]);
        let files = content(&coast).unwrap().into_iter();
        files
            .map(|(path, bytes)| (path.strip_prefix(&coast).unwrap().to_owned(), bytes))
            .collect::<Vec<_>>()
    });
    assert_eq!(contents[0].len(), 8 * 5 + 3);
    assert!(contents[0] == contents[1] && contents[0] == contents[2]);
}

#[test]
fn outputs_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = islands(dir.path());
    let at = |name: &str| dir.path().join(name);
    let refused = |options: &[Arg]| {
        let mut args: Vec<Arg> = vec![&"coastline", &input];
        args.extend(options);
        run_fail(&args)
    };
    assert!(refused(&[]).contains("--water"));
    assert!(refused(&[&"--errors", &at("errors.shp")]).contains("points and lines"));
    assert!(
        refused(&[&"--epsg", &"3857", &"--land", &at("a.geojson")]).contains("needs a Shapefile")
    );
    assert!(refused(&[&"--land", &at("a.gpkg")]).contains("gpkg"));
    assert!(refused(&[&"-o", &at("coast.shp")]).contains("directory"));
    assert!(refused(&[&"--split", &"0.001", &"--land", &at("a.shp")]).contains("0.01"));
    assert!(refused(&[&"--land", &at("a.shp"), &"--water", &at("a.shp")]).contains("two outputs"));
    fs::write(at("b.dbf"), "mine").unwrap();
    assert!(refused(&[&"--land", &at("b.shp")]).contains("b.dbf"));
    assert_eq!(fs::read(at("b.dbf")).unwrap(), b"mine");
    assert!(!at("b.shp").exists());
}

#[test]
fn errors_are_points_and_lines_with_a_description() {
    let dir = tempfile::tempdir().unwrap();
    let mut objects = coast_objects(&[island([0.0, 0.0, 2.0, 2.0]), island([5.0, 0.0, 7.0, 2.0])]);
    // The second way of the second island ends before its last node.
    objects.last_mut().unwrap().refs.pop();
    let input = coast_file(dir.path(), "open.osm.pbf", &objects);
    let errors = dir.path().join("errors.geojson");
    let output = run_ok(&[
        &"coastline",
        &input,
        &"-b",
        &"-10,-10,20,20",
        &"--errors",
        &errors,
    ]);
    let json: Value = serde_json::from_slice(&fs::read(&errors).unwrap()).unwrap();
    let features = json["features"].as_array().unwrap();
    let ends: Vec<&Value> = features
        .iter()
        .filter(|feature| feature["properties"]["kind"] == "end_point")
        .collect();
    assert_eq!(ends.len(), 2, "{json}");
    for end in ends {
        assert_eq!(end["geometry"]["type"], "Point");
        assert!(
            end["properties"]["description"].as_str().unwrap().len() > 10,
            "{end}"
        );
    }
    let text = stderr(&output);
    let of_ends = text.lines().filter(|line| line.starts_with("end_point: "));
    assert_eq!(of_ends.count(), 2, "{text}");
}

/// Writes the layers of a file, and checks all polygons with GEOS. Returns what was counted; `None` if that is not there.
fn checked_by_geos(input: &Path, cell: &str, region: [&str; 4]) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let (coast, bbox) = (dir.path().join("coast"), region.join(","));
    coastline(input, &[&"-o", &coast, &"--split", &cell, &"-b", &bbox]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/coast.py");
    let mut args: Vec<Arg> = vec![&script, &coast, &cell];
    args.extend(region.iter().map(|edge| edge as Arg));
    let output = python_with_readers(&args, dir.path())?;
    assert!(output.status.success(), "{}", stderr(&output));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn geos_finds_all_polygons_valid_and_land_and_water_exactly_the_cells() {
    let whole = ["-180", "-90", "180", "90"];
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..if is_long() { 20 } else { 1 } {
        let mut world = CoastWorld::awkward(seed);
        // Two islands that cross, and one with a doubled way.
        world.add_ring(&square((100 * DEGREE, 40 * DEGREE), DEGREE));
        world.add_ring(&square((101 * DEGREE, 40 * DEGREE + 7), DEGREE / 3));
        let nodes = world.add_nodes(&square((110 * DEGREE, 40 * DEGREE), DEGREE));
        world.add_way(&nodes[..3]);
        world.add_way(&[nodes[2], nodes[3], nodes[0]]);
        world.add_way(&nodes[..3]);
        let input = world.write(dir.path(), "world.opl");
        let Some(found) = checked_by_geos(&input, "30", whole) else {
            return;
        };
        assert!(found.ends_with("cells 72 72\n"), "{found}");
    }
    let (malta, cell) = (
        real_file("malta.osm.pbf"),
        if is_long() { "0.01" } else { "0.1" },
    );
    checked_by_geos(&malta, cell, ["14.1", "35.75", "14.65", "36.15"]);
}

#[test]
fn a_full_disk_leaves_the_coast_that_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (islands(dir.path()), dir.path().join("out"));
    fs::create_dir(&out).unwrap();
    let (coast, land) = (out.join("coast"), out.join("land.shp"));
    let one = coast_file(
        dir.path(),
        "one.osm.pbf",
        &coast_objects(&[island([0.0, 0.0, 2.0, 2.0])]),
    );
    coastline(&one, &[&"-o", &coast, &"--land", &land]);
    let before = content(&out);
    for options in [
        format!("-o {}", coast.display()),
        format!("--land {}", land.display()),
    ] {
        // A limit on the file size in kB simulates a full disk: the first file cannot be written, or a later one.
        for limit in [0, 1, 4, 16, 64] {
            let script = format!(
                "trap '' XFSZ; ulimit -f {limit}; exec {} coastline -q -O --split 5 -b -60,-60,180,80 {} {options}",
                env!("CARGO_BIN_EXE_pbfhogg"),
                input.display(),
            );
            let done = Command::new("bash").args(["-c", &script]).output().unwrap();
            if !done.status.success() {
                let error = stderr(&done);
                assert!(
                    done.status.code() == Some(2) && error.contains("cannot write"),
                    "{options} {limit}: {error}"
                );
                assert!(content(&out) == before, "{options} {limit}");
            } else {
                assert!(limit >= 16, "{options} {limit}");
                break;
            }
        }
    }
}
