//! `export -f csv`: rows that have the values of GeoJSON and of GeoParquet, in a form that other programs read.

use crate::common::oracle::{available, real_file};
use crate::common::{Arg, run_fail, run_ok};
use crate::export::fixture;
use crate::geoparquet::{field, rows, text};
use parquet::record::Field;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Reads a table by the rules of RFC 4180, one character after the other.
fn records(table: &str) -> Vec<Vec<String>> {
    let (mut all, mut record, mut value) = (Vec::new(), Vec::new(), String::new());
    let (mut is_quoted, mut chars) = (false, table.chars().peekable());
    while let Some(char) = chars.next() {
        match char {
            '"' if is_quoted && chars.peek() == Some(&'"') => value.extend(chars.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut value)),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut value));
                all.push(std::mem::take(&mut record));
            }
            char => value.push(char),
        }
    }
    assert!(!is_quoted && value.is_empty() && record.is_empty());
    all
}

/// A row by the names of its columns.
pub type NamedRow = BTreeMap<String, String>;

/// Returns the rows of a table by the names of their columns.
pub fn named(table: &str) -> Vec<NamedRow> {
    let mut records = records(table).into_iter();
    let names = records.next().unwrap();
    let rows = records.map(|record| {
        assert_eq!(record.len(), names.len());
        names.iter().cloned().zip(record).collect()
    });
    rows.collect()
}

/// Standard output of `export` with some options.
fn export(input: &Path, options: &[&str]) -> String {
    let mut args: Vec<Arg> = vec![&"export", &"-q", &input];
    args.extend(options.iter().map(|option| option as Arg));
    String::from_utf8(run_ok(&args).stdout).unwrap()
}

/// All points of a GeoJSON geometry, in their order.
fn points(coordinates: &Value, found: &mut Vec<(f64, f64)>) {
    let list = coordinates.as_array().unwrap();
    match list.as_slice() {
        [Value::Number(lon), Value::Number(lat)] => {
            found.push((lon.as_f64().unwrap(), lat.as_f64().unwrap()));
        }
        parts => parts.iter().for_each(|part| points(part, found)),
    }
}

/// Asserts that a place is on a GeoJSON geometry: at the point, on an edge of the line, or inside the box of the area.
pub fn assert_on_geometry(place: (f64, f64), geometry: &Value) {
    let mut all = Vec::new();
    points(&geometry["coordinates"], &mut all);
    let kind = geometry["type"].as_str().unwrap();
    // A unit of the coordinates, to which places are rounded.
    let near = 1e-7;
    let is_on = match kind {
        "Point" => (place.0 - all[0].0).hypot(place.1 - all[0].1) < 1e-9,
        "LineString" => all.windows(2).any(|edge| {
            let ((x, y), (to_x, to_y)) = (edge[0], edge[1]);
            let (across, along) = (to_x - x, to_y - y);
            let part = ((place.0 - x) * across + (place.1 - y) * along)
                / (across * across + along * along);
            let part = part.clamp(0.0, 1.0);
            (x + part * across - place.0).hypot(y + part * along - place.1) < near
        }),
        _ => {
            let lons = all.iter().map(|point| point.0);
            let lats = all.iter().map(|point| point.1);
            let holds = |of: f64, (low, high): (f64, f64)| low - 1e-9 <= of && of <= high + 1e-9;
            let range = |values: &mut dyn Iterator<Item = f64>| {
                values.fold((f64::MAX, f64::MIN), |(low, high), value| {
                    (low.min(value), high.max(value))
                })
            };
            holds(place.0, range(&mut lons.into_iter()))
                && holds(place.1, range(&mut lats.into_iter()))
        }
    };
    assert!(is_on, "{place:?} {geometry}");
}

/// The fields of a row that GeoJSON has as well, as its properties.
fn properties(row: &NamedRow) -> Map<String, Value> {
    let mut properties: Map<String, Value> = serde_json::from_str(&row["tags"]).unwrap();
    for (name, value) in row {
        let number = || json!(value.parse::<i64>().unwrap_or(0));
        let value = match name.as_str() {
            "@type" | "@user" => json!(value),
            "@id" | "@version" | "@changeset" | "@uid" => number(),
            _ => continue,
        };
        properties.insert(name.clone(), value);
    }
    properties
}

#[test]
fn csv_has_the_values_of_geojson() {
    for input in [real_file("monaco.osm.pbf"), fixture("export.opl")] {
        let options = ["-a", "type,id,version,changeset,uid,user"];
        let features = export(&input, &[&options[..], &["-f", "geojsonseq"]].concat());
        let table = named(&export(&input, &[&options[..], &["-f", "csv"]].concat()));
        assert_eq!(features.lines().count(), table.len());
        let mut kinds = BTreeMap::new();
        for (line, row) in features.lines().zip(&table) {
            let feature: Value = serde_json::from_str(line.trim_start_matches('\u{1e}')).unwrap();
            assert_eq!(feature["properties"], Value::from(properties(row)));
            let name = feature["properties"]["name"].as_str();
            assert_eq!(row["name"], name.unwrap_or_default());
            let degrees = |name: &str| row[name].parse::<f64>().unwrap();
            let geometry = &feature["geometry"];
            assert_on_geometry((degrees("@lon"), degrees("@lat")), geometry);
            *kinds.entry(geometry["type"].to_string()).or_insert(0) += 1;
        }
        assert!(kinds.len() >= 3, "{kinds:?}");
    }
}

#[test]
fn csv_has_the_values_of_geoparquet() {
    let dir = tempfile::tempdir().unwrap();
    let (input, tables) = (real_file("monaco.osm.pbf"), dir.path().join("out.parquet"));
    let columns = ["--column", "name,highway", "--line-relations", "none"];
    let mut args: Vec<Arg> = vec![&"export", &"-q", &input, &"-o", &tables];
    args.extend(columns.iter().map(|option| option as Arg));
    run_ok(&args);
    let value = |field: &Field| match field {
        Field::Null => String::new(),
        field => text(field),
    };
    let mut expected: Vec<[String; 4]> = rows(&tables)
        .iter()
        .map(|row| {
            let Field::Long(id) = field(row, "osm_id") else {
                panic!("an id");
            };
            [
                value(field(row, "osm_type")),
                id.to_string(),
                value(field(row, "name")),
                value(field(row, "highway")),
            ]
        })
        .collect();
    let table = named(&export(&input, &[&columns[..], &["-f", "csv"]].concat()));
    let names = ["@type", "@id", "name", "highway"];
    let mut found: Vec<[String; 4]> = table
        .iter()
        .map(|row| names.map(|name| row[name].clone()))
        .collect();
    expected.sort();
    found.sort();
    assert!(found == expected);
}

#[test]
fn csv_keeps_any_text_in_its_field() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    std::fs::write(
        &input,
        "n1 v2 dV c3 t2020-01-02T03:04:05Z i4 ua%2c%%22%b Tname=a%2c%b,note=x%0a%y%0d%%0a% x1 y2\n\
         n2 Tname=%22%%22%,k=%3d%1+1 x-0.0000001 y0\n\
         n3 Tk=%20%ä%20% x180 y-90\n",
    )
    .unwrap();
    let table = export(
        &input,
        &["-f", "csv", "--metadata", "--column", "name,note,k"],
    );
    let header = "@type,@id,@version,@changeset,@uid,@user,@timestamp,@lon,@lat,name,note,k";
    let expected = [
        header.split(',').collect::<Vec<_>>(),
        vec![
            "node",
            "1",
            "2",
            "3",
            "4",
            "a,\"b",
            "2020-01-02T03:04:05Z",
            "1",
            "2",
            "a,b",
            "x\ny\r\n",
            "",
        ],
        vec![
            "node",
            "2",
            "",
            "",
            "",
            "",
            "",
            "-0.0000001",
            "0",
            "\"\"",
            "",
            "=1+1",
        ],
        vec!["node", "3", "", "", "", "", "", "180", "-90", "", "", " ä "],
    ];
    assert_eq!(records(&table), expected);
    let script = "import csv, io, json, sys\n\
                  text = sys.stdin.buffer.read().decode()\n\
                  print(json.dumps(list(csv.reader(io.StringIO(text, newline='')))))";
    let mut python = Command::new("python3");
    python.args(["-c", script]);
    let python = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    if !available(python.is_ok(), "there is no python3") {
        return;
    }
    let mut python = python.unwrap();
    let mut stdin = python.stdin.take().unwrap();
    stdin.write_all(table.as_bytes()).unwrap();
    drop(stdin);
    let read = python.wait_with_output().unwrap().stdout;
    let read: Vec<Vec<String>> = serde_json::from_slice(&read).unwrap();
    assert_eq!(read, expected);
}

#[test]
fn options_choose_the_columns_of_csv() {
    let input = fixture("export.opl");
    let header = |options: &[&str]| {
        let table = export(&input, &[&["-f", "csv"], options].concat());
        table.lines().next().unwrap().to_owned()
    };
    for (options, expected) in [
        (&[][..], "@type,@id,@lon,@lat,name,tags"),
        (
            &["--properties", "highway,ref"],
            "@type,@id,@lon,@lat,highway,ref",
        ),
        (
            &["--properties", "highway,ref", "--column", "ref"],
            "@type,@id,@lon,@lat,ref",
        ),
        (
            &[
                "-u",
                "counter",
                "-a",
                "version,way_nodes",
                "--column",
                "a,b",
            ],
            "id,@type,@id,@version,@way_nodes,@lon,@lat,a,b",
        ),
        (
            &["-x", "geometry=wkt", "-n"],
            "@type,@id,@lon,@lat,@geometry,name,tags",
        ),
        (
            &["--with", "h3:7,centroid,length,names,area,h3:2"],
            "@type,@id,@lon,@lat,names,area_m2,length_m,centroid_lon,centroid_lat,h3_2,h3_7,name,tags",
        ),
    ] {
        assert_eq!(header(options), expected);
    }
    // A file without features still has the names of its columns.
    assert_eq!(
        export(&input, &["-f", "csv", "--filter", "no=such"]),
        "@type,@id,@lon,@lat,name,tags\n"
    );
    for (options, cause) in [
        (
            &["--column", "ref,@id"][..],
            "@id: two columns would have this name",
        ),
        (
            &["--column", "ref,ref"],
            "ref: two columns would have this name",
        ),
        (&["-x", "geometry=wkb"], "expected point or wkt"),
        (
            &["--with", "area,country"],
            "--with country is for GeoParquet",
        ),
    ] {
        let mut args: Vec<Arg> = vec![&"export", &"-f", &"csv", &input];
        args.extend(options.iter().map(|option| option as Arg));
        let error = run_fail(&args);
        assert!(error.contains(cause), "{options:?}: {error}");
    }
}

#[test]
fn csv_has_ids_and_geometries_of_the_other_texts() {
    let input = real_file("monaco.osm.pbf");
    let wkt = export(&input, &["-f", "text", "-u", "type_id"]);
    let options = ["-f", "csv", "-x", "geometry=wkt", "-u"];
    let table = named(&export(&input, &[&options[..], &["type_id"]].concat()));
    assert_eq!(wkt.lines().count(), table.len());
    for (line, row) in wkt.lines().zip(&table) {
        let start = format!("{} {} ", row["id"], row["@geometry"]);
        assert!(line.starts_with(&start), "{row:?}");
    }
    let numbered = named(&export(&input, &[&options[..], &["counter"]].concat()));
    assert_eq!(numbered.len(), table.len());
    for (number, row) in (1..).zip(&numbered) {
        assert_eq!(row["id"], number.to_string());
    }
}

#[test]
fn the_name_of_the_output_makes_it_csv() {
    let dir = tempfile::tempdir().unwrap();
    let input = fixture("export.opl");
    let expected = export(&input, &["-f", "csv"]);
    let plain = dir.path().join("out.csv");
    run_ok(&[&"export", &input, &"-o", &plain]);
    assert_eq!(std::fs::read_to_string(&plain).unwrap(), expected);
    let zstd = dir.path().join("out.csv.zst");
    run_ok(&[&"export", &input, &"-o", &zstd]);
    let bytes = zstd::decode_all(std::fs::File::open(&zstd).unwrap()).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

#[test]
fn problems_of_areas_are_a_table_with_a_row_for_each() {
    let dir = tempfile::tempdir().unwrap();
    let input = fixture("export.opl");
    let files = ["out.csv", "out.geojsonseq"].map(|name| dir.path().join(name));
    for file in &files {
        let status = crate::common::run(&[&"check", &"--areas", &"-o", file, &input]);
        assert_eq!(status.status.code(), Some(1));
    }
    let [table, features] = files.map(|file| std::fs::read_to_string(file).unwrap());
    let table = named(&table);
    let features = features
        .lines()
        .map(|line| serde_json::from_str::<Value>(line.trim_start_matches('\u{1e}')).unwrap());
    let points: Vec<Value> = features
        .filter(|feature| feature["geometry"]["type"] == "Point")
        .collect();
    assert!(!table.is_empty());
    assert_eq!(table.len(), points.len());
    for (row, point) in table.iter().zip(&points) {
        let properties = &point["properties"];
        assert_eq!(row["@type"], properties["@type"].as_str().unwrap());
        assert_eq!(row["@id"], properties["@id"].to_string());
        for name in ["problem", "severity", "description", "node", "ways"] {
            assert_eq!(row[name], properties[name].as_str().unwrap_or_default());
        }
    }
}

#[test]
fn formats_of_gdal_are_refused_with_the_line_that_makes_them() {
    let input = fixture("export.opl");
    for (name, format) in [("out.gpkg", "GeoPackage"), ("out.fgb", "FlatGeobuf")] {
        let error = run_fail(&[&"export", &input, &"-o", &name]);
        let line = format!("-o out.geojsonseq && ogr2ogr {name} out.geojsonseq");
        assert!(error.contains(format) && error.contains(&line), "{error}");
        let ending = name.trim_start_matches("out.");
        let error = run_fail(&[&"export", &input, &"-f", &ending]);
        assert!(
            error.contains("-o OUT.geojsonseq && ogr2ogr OUT."),
            "{error}"
        );
    }
}
