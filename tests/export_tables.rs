//! Tables of features as one table: partitions, columns, themes, and what programs find when they open a directory by
//! its root.

use crate::common::oracle::{available, osmium, real_file};
use crate::common::{Arg, in_turn, is_long, run_fail, run_ok};
use crate::export::fixture;
use crate::geoparquet::{export, field, rows, text};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::printer::print_schema;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of a table, relative to its directory, in order.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut rest = vec![root.to_owned()];
    while let Some(directory) = rest.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                rest.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The schema of a file as text.
fn schema(path: &Path) -> String {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let mut text = Vec::new();
    print_schema(&mut text, reader.metadata().file_metadata().schema());
    String::from_utf8(text).unwrap()
}

/// The kind and the id of the object of a row.
fn object(row: &Row) -> (String, i64) {
    let Field::Long(id) = field(row, "osm_id") else {
        panic!("an id");
    };
    (text(field(row, "osm_type")), *id)
}

/// Opens a table by its root in other programs, and compares it with the summary of its export.
pub fn other_programs_agree(table: &Path, summary: &Value) {
    other_programs_agree_on(&[(table.to_owned(), summary.clone())]);
}

/// Does the same as [`other_programs_agree`] for several tables. The programs, which start slowly, start once.
fn other_programs_agree_on(tables: &[(PathBuf, Value)]) {
    let mut script =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/geoparquet"));
    for (number, (table, summary)) in tables.iter().enumerate() {
        let path = table.with_extension("summary.json");
        fs::write(&path, summary.to_string()).unwrap();
        script.args((number > 0).then_some("+"));
        script.args([table, &path]);
    }
    let done = script.output().unwrap();
    let has_readers = done.status.code() != Some(2);
    if available(
        has_readers,
        "the Parquet readers of Python cannot be installed",
    ) {
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{stderr}");
    }
}

#[test]
fn the_root_of_a_directory_is_one_table_to_other_programs() {
    let dir = tempfile::tempdir().unwrap();
    let keys = [
        [
            "geometry_type",
            "--with",
            "area,length,centroid,country,names",
        ],
        ["theme", "--with", "area,length"],
        ["quadkey:12", "--max-file-size", "100k"],
        ["geometry_type,h3:6", "--column", "name"],
    ];
    let raw = dir.path().join("raw");
    let summary = export(&real_file("monaco.osm.pbf"), &raw, &["--raw"]);
    let mut tables = vec![(raw, summary)];
    let inputs = [
        "monaco.osm.pbf",
        "helsinki.osm.pbf",
        "malta.osm.pbf",
        "porto.osm.pbf",
    ];
    let inputs = if is_long() { &inputs[..] } else { &inputs[..2] };
    for (turn, name) in inputs.iter().enumerate() {
        for options in in_turn(turn, inputs.len(), &keys) {
            let root = dir.path().join(format!("{}-{name}.parts", tables.len()));
            let options = ["--partition", options[0], options[1], options[2]];
            let summary = export(&real_file(name), &root, &options);
            assert!(files(&root).len() > 1, "{options:?}");
            tables.push((root, summary));
        }
    }
    other_programs_agree_on(&tables);
}

#[test]
fn columns_depend_on_the_options_alone() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let bare = at("bare.opl");
    fs::write(&bare, "n1 Tname=x x1 y2\n").unwrap();
    for options in [
        &[][..],
        &["--column", "name,highway", "--no-metadata"],
        // Names that other options would give to columns.
        &["--column", "country,user,theme", "--no-metadata"],
        &["--with", "area,length,centroid,country,names"],
        &["--theme", "roads"],
    ] {
        let [one, other] = [&bare, &real_file("monaco.osm.pbf")].map(|input| {
            let output = at("out.parquet");
            export(input, &output, options);
            schema(&output)
        });
        assert_eq!(one, other, "{options:?}");
    }
    // All files of a directory have the same columns, too.
    let root = at("themes");
    export(
        &real_file("monaco.osm.pbf"),
        &root,
        &["--partition", "theme,geometry_type"],
    );
    let schemas: BTreeSet<String> = files(&root).iter().map(|path| schema(path)).collect();
    assert_eq!(schemas.len(), 1);
}

#[test]
fn an_empty_table_has_its_columns() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("bare.opl");
    fs::write(&input, "n1 x1 y2\n").unwrap();
    let root = dir.path().join("parts");
    assert_eq!(
        export(&input, &root, &["--max-file-size", "1M"])["features"],
        0
    );
    let found = files(&root);
    assert_eq!(found, [root.join("part-0000.parquet")]);
    assert!(schema(&found[0]).contains("geometry"));
}

#[test]
fn files_have_at_most_the_size_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let input = real_file("malta.osm.pbf");
    let [whole, parts] = ["whole.parquet", "parts"].map(|name| dir.path().join(name));
    let summary = export(&input, &whole, &[]);
    assert_eq!(
        export(&input, &parts, &["--max-file-size", "1M"])["features"],
        summary["features"]
    );
    let found = files(&parts);
    assert!(found.len() > 3);
    let sizes = found.iter().map(|path| path.metadata().unwrap().len());
    // A file has at least one row group, which is as large as it is.
    assert!(sizes.max().unwrap() < 1_300_000);
    let of = |paths: &[PathBuf]| -> Vec<_> { paths.iter().flat_map(|path| rows(path)).collect() };
    let whole = of(std::slice::from_ref(&whole));
    assert!(of(&found) == whole, "the rows in the same order");
}

#[test]
fn mistakes_in_keys_and_themes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let input = fixture("export.opl");
    let root = dir.path().join("out");
    let file = dir.path().join("themes.toml");
    fs::write(&file, "[[theme]]\nname = \"a\"\nfilter = [\"w/\"]\n").unwrap();
    let file = file.to_str().unwrap();
    for (options, cause) in [
        (
            &["--partition", "tile"][..],
            "expected geometry_type, theme, quadkey:ZOOM",
        ),
        (&["--partition", "quadkey:0"], "a zoom level from 1 to 12"),
        (&["--partition", "h3:9"], "a resolution from 0 to 6"),
        (
            &["--partition", "h3:6,quadkey:12"],
            "more than two billion partitions",
        ),
        (
            &["--partition", "geometry,geometry_type"],
            "geometry_type is there twice",
        ),
        (
            &["--theme", "rivers"],
            "--theme rivers: expected roads, buildings",
        ),
        (&["--theme", file], "themes.toml: theme 'a'"),
        (
            &["--theme", "roads", "--column", "class"],
            "a column of that name already",
        ),
        (
            &["--with", "area", "--column", "area_m2", "-f", "parquet"],
            "a column of that name already",
        ),
        (
            &["--with", "volume"],
            "expected area, length, centroid, country, names",
        ),
        (
            &["--theme", "roads", "-f", "geojson"],
            "--theme is for GeoParquet",
        ),
    ] {
        let mut args: Vec<Arg> = vec![&"export", &input, &"-o", &root];
        args.extend(options.iter().map(|option| option as Arg));
        let error = run_fail(&args);
        assert!(error.contains(cause), "{options:?}: {error}");
        assert!(!root.exists());
    }
}

#[test]
fn themes_have_the_objects_that_osmium_filters() {
    if !osmium() {
        return;
    }
    let printed = run_ok(&[&"export", &"--print-themes"]).stdout;
    let themes: toml::Table = String::from_utf8(printed).unwrap().parse().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let names = [
        "monaco.osm.pbf",
        "porto.osm.pbf",
        "helsinki.osm.pbf",
        "malta.osm.pbf",
    ];
    for name in names.iter().take(if is_long() { 4 } else { 2 }) {
        let input = at("sorted.osm.pbf");
        run_ok(&[&"sort", &real_file(name), &"-q", &"-O", &"-o", &input]);
        let plain = at("plain.parquet");
        export(&input, &plain, &[]);
        let all: Vec<((String, i64), u8)> = rows(&plain)
            .iter()
            .map(|row| {
                (
                    object(row),
                    crate::geoparquet::bytes(field(row, "geometry"))[1],
                )
            })
            .collect();
        let root = at("themes");
        let summary = export(&input, &root, &["--partition", "theme"]);
        for theme in themes["theme"].as_array().unwrap() {
            let title = theme["name"].as_str().unwrap();
            let strings = |list: &toml::Value| -> Vec<String> {
                let list = list.as_array().unwrap().iter();
                list.map(|one| one.as_str().unwrap().to_owned()).collect()
            };
            let filtered = at("filtered.opl");
            let done = Command::new("osmium")
                .args(["tags-filter", "-R", "-O", "-o"])
                .args([&filtered, &input])
                .args(strings(&theme["filter"]))
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
            let matched: BTreeSet<(String, i64)> = fs::read_to_string(&filtered)
                .unwrap()
                .lines()
                .map(|line| {
                    let kind = match line.as_bytes()[0] {
                        b'n' => "node",
                        b'w' => "way",
                        _ => "relation",
                    };
                    let id = line[1..].split(' ').next().unwrap().parse().unwrap();
                    (kind.to_owned(), id)
                })
                .collect();
            let types = theme.get("geometry").map(strings);
            let is_type = |kind: u8| {
                let name =
                    ["", "point", "linestring", "", "", "linestring", "polygon"][kind as usize];
                types
                    .as_ref()
                    .is_none_or(|types| types.iter().any(|one| one == name))
            };
            let mut expected: Vec<(String, i64)> = all
                .iter()
                .filter(|(object, kind)| is_type(*kind) && matched.contains(object))
                .map(|(object, _)| object.clone())
                .collect();
            let part = root.join(format!("theme={title}"));
            let found = if part.exists() {
                files(&part)
            } else {
                Vec::new()
            };
            let mut found: Vec<_> = found
                .iter()
                .flat_map(|path| rows(path))
                .map(|row| object(&row))
                .collect();
            expected.sort();
            found.sort();
            assert_eq!(found.len(), expected.len(), "{name} {title}");
            assert!(found == expected, "{name} {title}");
            assert_eq!(summary["themes"][title], found.len());
        }
    }
}

/// The value of a column that may be null.
fn optional<'r>(row: &'r Row, name: &str) -> Option<&'r Field> {
    match field(row, name) {
        Field::Null => None,
        value => Some(value),
    }
}

#[test]
fn columns_of_themes_have_their_types() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    fs::write(
        &input,
        "n1 x0 y0\nn2 x0.01 y0\nn3 x0.01 y0.01\n\
         w1 Thighway=primary,lanes=2,maxspeed=30%20%mph,bridge=viaduct,name=A Nn1,n2\n\
         w2 Thighway=service,lanes=1;2,maxspeed=walk,bridge=no Nn2,n3\n\
         w3 Tbuilding=yes,height=40%20%ft,amenity=school Nn1,n2,n3,n1\n",
    )
    .unwrap();
    let root = dir.path().join("out");
    let summary = export(&input, &root, &["--theme", "roads,buildings,pois"]);
    assert_eq!(
        summary["themes"],
        serde_json::json!({"roads": 2, "buildings": 1, "pois": 1})
    );
    let roads = rows(&root.join("theme=roads/part-0000.parquet"));
    let found: Vec<_> = roads
        .iter()
        .map(|row| {
            let speed = optional(row, "maxspeed_kmh").map(ToString::to_string);
            let lanes = optional(row, "lanes").map(ToString::to_string);
            (
                text(field(row, "class")),
                lanes,
                speed,
                optional(row, "bridge").map(ToString::to_string),
            )
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert!(
        found.contains(&("primary".into(), some("2"), some("48.28032"), some("true"))),
        "{found:?}"
    );
    assert!(
        found.contains(&("service".into(), None, None, some("false"))),
        "{found:?}"
    );
    let buildings = rows(&root.join("theme=buildings/part-0000.parquet"));
    assert_eq!(
        optional(&buildings[0], "height_m").unwrap().to_string(),
        "12.192"
    );
    assert_eq!(optional(&buildings[0], "lanes"), None);
    let pois = rows(&root.join("theme=pois/part-0000.parquet"));
    assert_eq!(text(field(&pois[0], "category")), "amenity");
    assert_eq!(text(field(&pois[0], "class")), "school");
    // A file of one's own, with a single theme, is a file.
    let file = dir.path().join("own.toml");
    fs::write(
        &file,
        "[[theme]]\nname = \"schools\"\nfilter = [\"wr/amenity=school\"]\ncolumns = [{ name = \"height\", type = \"length\" }]\n",
    )
    .unwrap();
    let output = dir.path().join("schools.parquet");
    export(&input, &output, &["--theme", file.to_str().unwrap()]);
    assert_eq!(
        optional(&rows(&output)[0], "height").unwrap().to_string(),
        "12.192"
    );
}

/// Squares of boundaries within each other, and features in them: a country, a region, a town, and a park.
const BOUNDARIES: &str = "\
n1 x0 y0\nn2 x8 y0\nn3 x8 y8\nn4 x0 y8\n\
n11 x1 y1\nn12 x5 y1\nn13 x5 y5\nn14 x1 y5\n\
n21 x2 y2\nn22 x3 y2\nn23 x3 y3\nn24 x2 y3\n\
n31 Tname=in,name:de=drin,name:left=no x2.5 y2.5\nn32 Tname=out x9 y9\n\
w1 Nn1,n2,n3,n4,n1\nw2 Nn11,n12,n13,n14,n11\nw3 Nn21,n22,n23,n24,n21\n\
w4 Thighway=track Nn31,n13,n32\n\
r1 Ttype=boundary,boundary=administrative,admin_level=2,ISO3166-1=xy Mw1@outer\n\
r2 Ttype=boundary,boundary=administrative,admin_level=4 Mw2@outer\n\
r3 Ttype=boundary,boundary=administrative,admin_level=8 Mw3@outer\n\
r4 Ttype=boundary,boundary=national_park Mw3@outer\n\
r5 Ttype=boundary,boundary=administrative,admin_level=2,ISO3166-1=zz Mw1@outer,w99@outer\n";

#[test]
fn countries_and_parents_come_from_the_boundaries_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    fs::write(&input, BOUNDARIES).unwrap();
    let output = dir.path().join("out.parquet");
    // The selection leaves the boundaries out, and they are found nevertheless.
    for options in [
        &["--with", "country,names"][..],
        &[
            "--with",
            "country,names",
            "--filter",
            "nw/name",
            "--filter",
            "w/highway",
        ],
        &["--with", "country,names", "--type", "node,way"],
    ] {
        export(&input, &output, options);
        let found: BTreeMap<_, _> = rows(&output)
            .iter()
            .map(|row| (object(row), optional(row, "country").map(text)))
            .collect();
        let of = |kind: &str, id: i64| found[&(kind.to_owned(), id)].clone();
        assert_eq!(of("node", 31).as_deref(), Some("XY"), "{options:?}");
        assert_eq!(of("node", 32), None);
        assert_eq!(of("way", 4).as_deref(), Some("XY"));
        assert_eq!(
            found.contains_key(&("relation".into(), 1)),
            options.len() == 2
        );
    }
    let names = rows(&output);
    let node = names.iter().find(|row| object(row).1 == 31).unwrap();
    assert_eq!(field(node, "names").to_string(), r#"{"de" -> "drin"}"#);
    export(&input, &output, &["--theme", "boundaries"]);
    let parents: BTreeMap<i64, String> = rows(&output)
        .iter()
        .map(|row| (object(row).1, field(row, "parents").to_string()))
        .collect();
    assert_eq!(parents[&1], "[]");
    assert_eq!(parents[&2], "[1]");
    assert_eq!(parents[&3], "[1, 2]");
    assert_eq!(parents[&4], "[1, 2, 3]");
}
