//! `export` to GeoParquet: the rules of the format, the values, the order, and what must not be left behind.

use crate::common::oracle::{available, osmium, real_file, real_files};
use crate::common::{Arg, in_turn, is_long, run_fail, run_ok, world};
use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::record::{Field, Row};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn open(path: &Path) -> SerializedFileReader<std::fs::File> {
    SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap()
}

/// Exports a file, and returns the summary.
pub fn export(input: &Path, output: &Path, options: &[&str]) -> Value {
    let mut args: Vec<Arg> = vec![&"export", &input, &"-O", &"-o", &output, &"--json"];
    args.extend(options.iter().map(|option| option as Arg));
    serde_json::from_slice(&run_ok(&args).stdout).unwrap()
}

/// The value of the key `geo` in the metadata of a file.
fn geo(reader: &SerializedFileReader<std::fs::File>) -> Value {
    let metadata = reader.metadata().file_metadata();
    let pairs = metadata.key_value_metadata().unwrap();
    let geo = pairs.iter().find(|pair| pair.key == "geo").unwrap();
    serde_json::from_str(geo.value.as_ref().unwrap()).unwrap()
}

pub fn rows(path: &Path) -> Vec<Row> {
    open(path)
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// The value of a column.
pub fn field<'r>(row: &'r Row, name: &str) -> &'r Field {
    let found = row.get_column_iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no column {name}")).1
}

pub fn text(field: &Field) -> String {
    match field {
        Field::Str(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

pub fn bytes(field: &Field) -> &[u8] {
    match field {
        Field::Bytes(bytes) => bytes.data(),
        other => panic!("{other:?}"),
    }
}

/// The box of a row: xmin, ymin, xmax, ymax.
fn bbox(row: &Row) -> [f32; 4] {
    let Field::Group(edges) = field(row, "bbox") else {
        panic!("bbox is no struct");
    };
    ["xmin", "ymin", "xmax", "ymax"].map(|name| match field(edges, name) {
        Field::Float(edge) => *edge,
        other => panic!("{other:?}"),
    })
}

/// A line or a ring.
type Line = Vec<(f64, f64)>;

/// The type and the rings or lines of a geometry in WKB, and the bytes behind it.
fn geometry(wkb: &[u8]) -> (u32, Vec<Line>, &[u8]) {
    fn number(rest: &mut &[u8]) -> u32 {
        let (bytes, behind) = rest.split_first_chunk().unwrap();
        *rest = behind;
        u32::from_le_bytes(*bytes)
    }
    fn point(rest: &mut &[u8]) -> (f64, f64) {
        let mut coordinate = || {
            let (bytes, behind) = rest.split_first_chunk().unwrap();
            *rest = behind;
            f64::from_le_bytes(*bytes)
        };
        (coordinate(), coordinate())
    }
    fn points(rest: &mut &[u8]) -> Line {
        (0..number(rest)).map(|_| point(rest)).collect()
    }
    assert_eq!(wkb[0], 1, "little-endian");
    let mut rest = &wkb[1..];
    let kind = number(&mut rest);
    let mut lines = Vec::new();
    match kind {
        1 => lines.push(vec![point(&mut rest)]),
        2 => lines.push(points(&mut rest)),
        3 => lines.extend((0..number(&mut rest)).map(|_| points(&mut rest))),
        5 | 6 => {
            for _ in 0..number(&mut rest) {
                let (part, rings, behind) = geometry(rest);
                assert_eq!(part, kind - 3);
                lines.extend(rings);
                rest = behind;
            }
        }
        _ => panic!("geometry type {kind}"),
    }
    (kind, lines, rest)
}

fn doubled_area(ring: &[(f64, f64)]) -> f64 {
    let pairs = ring.windows(2);
    pairs
        .map(|pair| pair[0].0 * pair[1].1 - pair[1].0 * pair[0].1)
        .sum()
}

/// What the validators of GeoParquet 1.1 check, of the metadata and of each row.
fn check_rules(path: &Path, summary: &Value) {
    let reader = open(path);
    let geo = geo(&reader);
    assert_eq!(geo["version"], "1.1.0");
    assert_eq!(geo["primary_column"], "geometry");
    let column = &geo["columns"]["geometry"];
    assert_eq!(column["encoding"], "WKB");
    assert_eq!(column["orientation"], "counterclockwise");
    assert_eq!(column["edges"], "planar");
    assert!(
        column.get("crs").is_none(),
        "no reference system means OGC:CRS84"
    );
    assert_eq!(column["bbox"], summary["bbox"]);
    let covering = &column["covering"]["bbox"];
    for edge in ["xmin", "ymin", "xmax", "ymax"] {
        assert_eq!(covering[edge], serde_json::json!(["bbox", edge]));
    }
    // Geometry is a column of the root, of bytes, neither repeated nor in a group.
    let schema = reader.metadata().file_metadata().schema_descr();
    let geometry_column = schema
        .columns()
        .iter()
        .find(|column| column.name() == "geometry");
    let geometry_column = geometry_column.unwrap();
    assert_eq!(geometry_column.path().parts().len(), 1);
    assert_eq!(geometry_column.max_rep_level(), 0);
    assert_eq!(
        geometry_column.physical_type(),
        parquet::basic::Type::BYTE_ARRAY
    );
    let (mut types, mut area, mut counts) = (BTreeSet::new(), 0.0, BTreeMap::new());
    let mut edges = [f64::MAX, f64::MAX, f64::MIN, f64::MIN];
    for row in rows(path) {
        let (kind, lines, rest) = geometry(bytes(field(&row, "geometry")));
        assert!(rest.is_empty());
        let (name, counted) = match kind {
            1 => ("Point", "points"),
            2 => ("LineString", "lines"),
            5 => ("MultiLineString", "lines"),
            _ => ("MultiPolygon", "areas"),
        };
        types.insert(name);
        *counts.entry(counted).or_insert(0u64) += 1;
        if kind == 6 {
            for ring in &lines {
                assert!(ring.len() >= 4 && ring.first() == ring.last());
                area += doubled_area(ring) / 2.0;
            }
            assert!(doubled_area(&lines[0]) > 0.0, "counter-clockwise");
        }
        let box_of_row = bbox(&row).map(f64::from);
        let all = || lines.iter().flatten();
        let exact = [
            all().map(|point| point.0).fold(f64::MAX, f64::min),
            all().map(|point| point.1).fold(f64::MAX, f64::min),
            all().map(|point| point.0).fold(f64::MIN, f64::max),
            all().map(|point| point.1).fold(f64::MIN, f64::max),
        ];
        for at in 0..4 {
            let outwards = if at < 2 {
                exact[at] - box_of_row[at]
            } else {
                box_of_row[at] - exact[at]
            };
            assert!((0.0..3e-5).contains(&outwards), "{exact:?} {box_of_row:?}");
            edges[at] = if at < 2 {
                edges[at].min(exact[at])
            } else {
                edges[at].max(exact[at])
            };
        }
    }
    let declared: BTreeSet<String> =
        serde_json::from_value(column["geometry_types"].clone()).unwrap();
    assert!(declared.iter().eq(types.iter()), "{declared:?} {types:?}");
    for key in ["points", "lines", "areas"] {
        assert_eq!(
            counts.get(key).copied().unwrap_or(0),
            summary[key].as_u64().unwrap(),
            "{key}"
        );
    }
    if summary["features"] != 0 {
        assert_eq!(serde_json::json!(edges), summary["bbox"]);
    }
    let square_degrees = summary["square_degrees"].as_f64().unwrap();
    assert!(
        (area - square_degrees).abs() < 1e-9,
        "{area} {square_degrees}"
    );
}

#[test]
fn files_follow_the_rules_of_the_format() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.parquet");
    for input in real_files() {
        if input.to_string_lossy().ends_with(".osh.pbf") {
            continue;
        }
        let summary = export(&input, &output, &[]);
        check_rules(&output, &summary);
        println!("{}: {} features", input.display(), summary["features"]);
    }
}

#[test]
fn rows_are_the_features_of_the_text() {
    let input = real_file("monaco.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.parquet");
    export(&input, &output, &["--column", "highway,name", "-n"]);
    let number = |field: &Field| match field {
        Field::Int(value) => i64::from(*value),
        Field::Long(value) | Field::TimestampMillis(value) => *value,
        other => panic!("{other:?}"),
    };
    let mut found: Vec<String> = rows(&output)
        .iter()
        .map(|row| {
            let (kind, ..) = geometry(bytes(field(row, "geometry")));
            let wkb = bytes(field(row, "geometry"));
            let hex: String = wkb.iter().map(|byte| format!("{byte:02X}")).collect();
            let tags = match field(row, "tags") {
                Field::MapInternal(map) => map.entries().to_vec(),
                other => panic!("{other:?}"),
            };
            let tags: Vec<(String, String)> = tags
                .iter()
                .map(|(key, value)| (text(key), text(value)))
                .collect();
            for promoted in ["highway", "name"] {
                let tag = tags.iter().find(|(key, _)| key == promoted);
                match field(row, promoted) {
                    Field::Null => assert_eq!(tag, None),
                    value => assert_eq!(tag.map(|(_, value)| value), Some(&text(value))),
                }
            }
            let tags: serde_json::Map<String, Value> = tags
                .into_iter()
                .map(|(key, value)| (key, value.into()))
                .collect();
            format!(
                "{kind} {} {} {} {} {hex} {}",
                text(field(row, "osm_type")),
                number(field(row, "osm_id")),
                number(field(row, "version")),
                number(field(row, "timestamp")) / 1000,
                Value::Object(tags)
            )
        })
        .collect();
    // The same features, as rows for PostgreSQL.
    let done = run_ok(&[
        &"export",
        &input,
        &"-n",
        &"-f",
        &"pg",
        &"-a",
        &"type,id,version,timestamp",
        &"--line-relations",
        &"route,waterway,superroute",
    ]);
    let pg = String::from_utf8(done.stdout).unwrap();
    let mut expected: Vec<String> = pg
        .lines()
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let [wkb, kind, id, version, time, tags] = columns[..] else {
                panic!("{line}");
            };
            // The reference system, which only PostGIS knows, is left out.
            let plain = wkb.replace("20E6100000", "00");
            let tags = tags.replace("\\\\", "\\");
            let tags: Value = serde_json::from_str(&tags).unwrap();
            let seconds = pbfhogg::unstable::osm::parse_timestamp(time).unwrap();
            let geometry_type = plain[2..4].parse::<u32>().unwrap();
            format!("{geometry_type} {kind} {id} {version} {seconds} {plain} {tags}")
        })
        .collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

#[test]
fn the_bytes_do_not_depend_on_threads() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "300000");
    let [one, other] = ["one.parquet", "other.parquet"].map(|name| dir.path().join(name));
    export(&input, &one, &["-j", "1"]);
    for jobs in in_turn(1, 2, ["2", "5"]) {
        export(&input, &other, &["-j", jobs]);
        assert!(
            std::fs::read(&one).unwrap() == std::fs::read(&other).unwrap(),
            "{jobs}"
        );
    }
}

#[test]
fn a_box_reads_a_fraction_of_the_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), if is_long() { "3000000" } else { "400000" });
    let output = dir.path().join("out.parquet");
    export(
        &input,
        &output,
        &["-n", "--geometry-types", "point", "--no-metadata"],
    );
    let reader = open(&output);
    let metadata = reader.metadata();
    let whole = metadata.row_groups().iter();
    let edges = |group: &parquet::file::metadata::RowGroupMetaData, name: &str| {
        let columns = group.columns().iter();
        let column = columns
            .clone()
            .find(|column| column.column_path().string() == format!("bbox.{name}"));
        match column.unwrap().statistics().unwrap() {
            Statistics::Float(edges) => (*edges.min_opt().unwrap(), *edges.max_opt().unwrap()),
            other => panic!("{other:?}"),
        }
    };
    let groups: Vec<[f32; 4]> = whole
        .map(|group| {
            [
                edges(group, "xmin").0,
                edges(group, "ymin").0,
                edges(group, "xmax").1,
                edges(group, "ymax").1,
            ]
        })
        .collect();
    assert!(groups.len() >= 8, "{}", groups.len());
    assert!(
        metadata
            .row_groups()
            .iter()
            .all(|group| (1_000..200_000).contains(&group.num_rows()))
    );
    // A town in the middle of the data.
    let low = |at: usize| {
        groups
            .iter()
            .map(|group| group[at])
            .fold(f32::MAX, f32::min)
    };
    let high = |at: usize| {
        groups
            .iter()
            .map(|group| group[at])
            .fold(f32::MIN, f32::max)
    };
    let (width, height) = (high(2) - low(0), high(3) - low(1));
    let (x, y) = (low(0) + width * 0.3, low(1) + height * 0.3);
    let town = [x, y, x + width / 20.0, y + height / 20.0];
    let meets = |group: &&[f32; 4]| {
        group[0] <= town[2] && group[2] >= town[0] && group[1] <= town[3] && group[3] >= town[1]
    };
    let read = groups.iter().filter(meets).count();
    println!("{read} of {} row groups", groups.len());
    assert!(
        (1..=groups.len() / 4).contains(&read),
        "{read} of {}",
        groups.len()
    );
}

#[test]
fn partitions_are_directories_by_the_type_of_the_geometry() {
    let input = real_file("monaco.osm.pbf");
    let dir = tempfile::tempdir().unwrap();
    let (whole, parts) = (dir.path().join("whole.parquet"), dir.path().join("parts"));
    let summary = export(&input, &whole, &[]);
    assert_eq!(
        export(&input, &parts, &["--partition", "geometry"])["features"],
        summary["features"]
    );
    let mut all = 0;
    for (name, kinds) in [
        ("point", &["Point"][..]),
        ("linestring", &["LineString", "MultiLineString"]),
        ("polygon", &["MultiPolygon"]),
    ] {
        let part = parts.join(format!("geometry_type={name}/part-0000.parquet"));
        let reader = open(&part);
        assert_eq!(
            geo(&reader)["columns"]["geometry"]["geometry_types"],
            serde_json::json!(kinds)
        );
        all += reader.metadata().file_metadata().num_rows();
    }
    assert_eq!(all as u64, summary["features"].as_u64().unwrap());
    // A directory with files is not touched, and an error leaves none.
    let error = run_fail(&[
        &"export",
        &input,
        &"--partition",
        &"geometry",
        &"-o",
        &parts,
    ]);
    assert!(error.contains("the directory is not empty"), "{error}");
    let broken = dir.path().join("broken.osm.pbf");
    let mut bytes = std::fs::read(&input).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 0xff;
    std::fs::write(&broken, bytes).unwrap();
    let none = dir.path().join("none");
    run_fail(&[
        &"export",
        &broken,
        &"--partition",
        &"geometry",
        &"-o",
        &none,
    ]);
    assert!(!none.exists());
}

#[test]
fn columns_follow_the_options() {
    let dir = tempfile::tempdir().unwrap();
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/export.opl");
    let output = dir.path().join("out.parquet");
    let columns = |options: &[&str]| -> Vec<String> {
        export(&input, &output, options);
        let reader = open(&output);
        let schema = reader.metadata().file_metadata().schema().clone();
        schema
            .get_fields()
            .iter()
            .map(|field| field.name().to_owned())
            .collect()
    };
    let plain = ["osm_type", "osm_id", "tags", "bbox", "geometry"];
    assert_eq!(columns(&["--no-metadata"]), plain);
    let all = columns(&["--column", "k,addr:city"]);
    let metadata = ["version", "timestamp", "changeset", "uid", "user"];
    let expected = [
        &plain[..2],
        &metadata,
        &["tags", "k", "addr:city"],
        &plain[3..],
    ]
    .concat();
    assert_eq!(all, expected);
    export(
        &input,
        &output,
        &["--geoparquet-version", "2.0", "--compression", "none"],
    );
    let reader = open(&output);
    assert_eq!(geo(&reader)["version"], "2.0.0");
    let schema = reader.metadata().file_metadata().schema_descr().clone();
    let geometry = schema
        .columns()
        .iter()
        .find(|column| column.name() == "geometry")
        .unwrap();
    assert!(matches!(
        geometry.logical_type_ref(),
        Some(LogicalType::Geometry(_))
    ));
    for (bad, cause) in [
        (vec!["-a", "id"], "--attributes is for text"),
        (vec!["-u", "counter"], "--add-unique-id is for text"),
        (
            vec!["--column", "tags"],
            "has a column of that name already",
        ),
        (vec!["--compression", "gzip"], "expected none, zstd"),
        (vec!["--geoparquet-version", "3"], "expected 1.1 or 2.0"),
        (
            vec!["-f", "text", "--column", "k"],
            "--column is for GeoParquet",
        ),
    ] {
        let mut args: Vec<Arg> = vec![&"export", &input, &"-O", &"-o", &output];
        args.extend(bad.iter().map(|word| word as Arg));
        let error = run_fail(&args);
        assert!(error.contains(cause), "{bad:?}: {error}");
    }
    let stream = run_ok(&[&"export", &input, &"-f", &"geoparquet"]).stdout;
    export(&input, &output, &[]);
    assert!(stream == std::fs::read(&output).unwrap());
}

#[test]
fn other_programs_read_the_features_that_osmium_exports() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/geoparquet");
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // As osmium: each closed way is a line and an area.
    std::fs::write(
        at("both.json"),
        r#"{"linear_tags": true, "area_tags": true}"#,
    )
    .unwrap();
    let config = at("both.json");
    for name in [
        "monaco.osm.pbf",
        "helsinki.osm.pbf",
        "malta.osm.pbf",
        "porto.osm.pbf",
    ] {
        if !is_long() && name != "monaco.osm.pbf" {
            continue;
        }
        let input = real_file(name);
        run_ok(&[&"sort", &input, &"-O", &"-o", &at("in.osm.pbf")]);
        let options = ["-c", config.to_str().unwrap(), "--line-relations", "none"];
        let summary = export(&at("in.osm.pbf"), &at("out.parquet"), &options);
        std::fs::write(at("summary.json"), summary.to_string()).unwrap();
        let mut args = vec![at("out.parquet"), at("summary.json")];
        if osmium() {
            let theirs = at("theirs.geojsonl");
            let done = Command::new("osmium")
                .args([
                    "export",
                    "-O",
                    "-f",
                    "geojsonseq",
                    "-x",
                    "print_record_separator=false",
                ])
                .args([&at("in.osm.pbf"), Path::new("-o"), &theirs])
                .status();
            assert!(done.unwrap().success());
            args.push(theirs);
        }
        // The same table as a directory of partitions, which programs open by its root.
        let partition = [
            "-c",
            config.to_str().unwrap(),
            "--line-relations",
            "none",
            "--partition",
            "geometry_type",
        ];
        let root = at(&format!("{name}.parts"));
        let parts = export(&at("in.osm.pbf"), &root, &partition);
        assert_eq!(parts["features"], summary["features"]);
        let of_root = [&[PathBuf::from("+"), root], &args[1..]].concat();
        args.extend(of_root);
        let done = Command::new(&script).args(&args).output().unwrap();
        let has_readers = done.status.code() != Some(2);
        if !available(
            has_readers,
            "the Parquet readers of Python cannot be installed",
        ) {
            return;
        }
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{name}: {stderr}");
        println!("{name}:\n{}", String::from_utf8_lossy(&done.stdout));
    }
}
