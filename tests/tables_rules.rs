//! Rules of tables of features and of feeds: closed ways, tags with a key that comes twice, columns of themes, routes of
//! routes, and the tag `type` of areas.

use crate::common::answers::ask;
use crate::common::oracle::osmium;
use crate::common::{pbfhogg, run_ok};
use crate::geoparquet::{export, field, rows, text};
use parquet::record::{Field, Row};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a file in OPL.
fn input(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("in.opl");
    std::fs::write(&path, text).unwrap();
    path
}

/// The ids of the features of an export, such as `w1` for the line of way 1 and `a2` for its area.
fn feature_ids(program: &mut Command, file: &Path, options: &[&str]) -> Vec<String> {
    program.args(["export", "-f", "text", "-u", "type_id"]);
    let ran = program.arg(file).args(options).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let text = String::from_utf8(ran.stdout).unwrap();
    let ids = text.lines().filter_map(|line| line.split(' ').next());
    ids.map(str::to_owned).collect()
}

const SQUARE: &str = "n1 v1 x8 y49\nn2 v1 x8.001 y49\nn3 v1 x8.001 y49.001\nn4 v1 x8 y49.001\n";

#[test]
fn closed_barriers_and_tracks_are_lines_unless_they_have_area_yes() {
    let lines = "barrier=wall barrier=fence barrier=hedge barrier=ditch barrier=city_wall barrier=retaining_wall \
        barrier=spikes barrier=guard_rail barrier=kerb golf=cartpath golf=path golf=hole leisure=track leisure=slipway \
        natural=cliff natural=ridge natural=arete natural=tree_row natural=coastline natural=valley natural=earth_bank \
        man_made=embankment man_made=dyke man_made=pipeline man_made=cutline power=line power=minor_line \
        railway=rail railway=tram waterway=river waterway=stream waterway=ditch waterway=drain waterway=canal \
        aeroway=taxiway aeroway=runway highway=raceway highway=pedestrian highway=track attraction=roller_coaster \
        historic=citywalls historic=citywalls,barrier=city_wall barrier=wall,ruins=yes military=trench indoor=wall";
    let areas = "natural=wood natural=water natural=scree leisure=pitch leisure=park golf=green golf=bunker \
        man_made=pier man_made=bridge man_made=breakwater aeroway=apron aeroway=helipad power=substation \
        waterway=riverbank waterway=dam historic=castle historic=ruins military=barracks indoor=room ruins=church \
        amenity=school,barrier=fence landuse=meadow,barrier=wall building=yes,historic=citywalls highway=rest_area \
        railway=platform place=island boundary=protected_area,barrier=hedge tourism=zoo,barrier=fence";
    let mut text = SQUARE.to_owned();
    let mut expected = Vec::new();
    for (id, tags) in (1..).zip(lines.split_whitespace().chain(areas.split_whitespace())) {
        let is_line = id <= lines.split_whitespace().count();
        for (id, extra, is_line) in [
            (3 * id, "", is_line),
            (3 * id + 1, ",area=yes", false),
            (3 * id + 2, ",area=no", true),
        ] {
            text += &format!("w{id} v1 Nn1,n2,n3,n4,n1 T{tags}{extra}\n");
            expected.push(if is_line {
                format!("w{id} {tags}")
            } else {
                format!("a{} {tags}", 2 * id)
            });
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let file = input(dir.path(), &text);
    let found = feature_ids(&mut pbfhogg(), &file, &[]);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(
            Some(found.as_str()),
            expected.split(' ').next(),
            "{expected}"
        );
    }
    // A printed configuration has the same rules.
    let config = dir.path().join("config.json");
    std::fs::write(&config, run_ok(&[&"export", &"-C"]).stdout).unwrap();
    let options = ["-c", config.to_str().unwrap()];
    assert_eq!(feature_ids(&mut pbfhogg(), &file, &options), found);
    // Under the second name, tags other than `area` decide nothing, as in osmium.
    let second = feature_ids(pbfhogg().arg("osmium"), &file, &[]);
    assert_eq!(second.len(), found.len() * 4 / 3);
    if osmium() {
        let mut theirs = feature_ids(&mut Command::new("osmium"), &file, &[]);
        let mut second = second;
        second.sort();
        theirs.sort();
        assert_eq!(second, theirs);
    }
}

/// Exports a file as GeoJSON, and returns the number of lines and points of each feature by its id.
fn lines_by_id(file: &Path, types: &str) -> BTreeMap<String, Vec<usize>> {
    let output = run_ok(&[
        &"export",
        &"-q",
        &"-f",
        &"geojsonl",
        &"-u",
        &"type_id",
        &"-t",
        &"relation",
        &"--line-relations",
        &types,
        &file,
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    let features = text.lines().map(|line| {
        let feature: Value = serde_json::from_str(line).unwrap();
        let lines = feature["geometry"]["coordinates"]
            .as_array()
            .unwrap()
            .iter();
        let counts = lines.map(|line| line.as_array().unwrap().len());
        (feature["id"].as_str().unwrap().to_owned(), counts.collect())
    });
    features.collect()
}

#[test]
fn a_route_of_routes_has_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(
        dir.path(),
        "n1 x1 y0\nn2 x2 y0\nn3 x3 y0\nn4 x4 y0\nn5 x4 y1\n\
         w1 Nn1,n2\nw2 Nn2,n3\nw3 Nn3,n4\nw4 Nn3,n4,n5,n3\n\
         r1 Ttype=route Mw1@\nr2 Ttype=route Mw2@\n\
         r3 Ttype=route Mr1@,r2@\n\
         r4 Ttype=superroute Mr1@,r2@\n\
         r5 Ttype=route Mr3@main,w3@,r5@,r6@\n\
         r6 Ttype=route Mr5@,w4@\n\
         r7 Ttype=route Mw1@,r8@,r9@platform,r10@\n\
         r8 Ttype=multipolygon,landuse=forest Mw4@outer\n\
         r9 Ttype=route Mw3@\n\
         r10 Ttype=public_transport Mw3@\n\
         r11 Ttype=waterway Mw1@main_stream,r12@tributary,r13@\n\
         r12 Ttype=waterway Mw3@\nr13 Ttype=waterway Mw2@\n\
         r14 Ttype=network Mr1@\n",
    );
    let found = lines_by_id(&file, "route,superroute,waterway");
    let expected = [
        ("r1", &[2][..]),
        ("r2", &[2]),
        ("r3", &[3]),
        ("r4", &[3]),
        // The ways of relation 6, which contains relation 5, come last.
        ("r5", &[4, 4]),
        ("r6", &[4, 4]),
        ("r7", &[2]),
        ("r9", &[2]),
        ("r11", &[3]),
        ("r12", &[2]),
        ("r13", &[2]),
    ];
    for (id, points) in expected {
        assert_eq!(found.get(id).map(Vec::as_slice), Some(points), "{id}");
    }
    // The area, and nothing else.
    assert_eq!(found.len(), expected.len() + 1, "{found:?}");
    // Without superroutes in the list, routes still have the lines of their members.
    assert_eq!(lines_by_id(&file, "route")["r3"], [3]);
    let table = dir.path().join("out.parquet");
    let summary = export(&file, &table, &["-t", "relation"]);
    assert_eq!(
        (&summary["lines"], &summary["incomplete"]),
        (&11.into(), &0.into())
    );
}

#[test]
fn a_route_whose_member_route_is_missing_is_incomplete() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(
        dir.path(),
        "n1 x1 y0\nn2 x2 y0\nw1 Nn1,n2\nr1 Ttype=route Mw1@,r9@\nr2 Ttype=route Mw1@,r9@stop\n",
    );
    let table = dir.path().join("out.parquet");
    let summary = export(&file, &table, &[]);
    assert_eq!(
        (&summary["lines"], &summary["incomplete"]),
        (&2.into(), &1.into())
    );
}

/// The rows of a table by the kind and the id of their objects, such as `n1`.
fn rows_by_id(path: &Path) -> BTreeMap<String, Row> {
    let named = rows(path).into_iter().map(|row| {
        let kind = text(field(&row, "osm_type"));
        let id = field(&row, "osm_id").to_string();
        (format!("{}{id}", &kind[..1]), row)
    });
    named.collect()
}

/// A text column of a row; `None` if it is null.
fn column(row: &Row, name: &str) -> Option<String> {
    match field(row, name) {
        Field::Null => None,
        value => Some(text(value)),
    }
}

/// Exports the themes of a file, and returns the category and the class of each feature of a theme.
fn classes(file: &Path, theme: &str) -> BTreeMap<String, (Option<String>, Option<String>)> {
    let table = file.with_extension("parquet");
    export(file, &table, &["--theme", theme]);
    let rows = rows_by_id(&table).into_iter();
    rows.map(|(id, row)| (id, (column(&row, "category"), column(&row, "class"))))
        .collect()
}

#[test]
fn the_category_of_a_feature_comes_from_a_tag_that_the_theme_selects() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(
        dir.path(),
        "n1 x8 y49 Tamenity=shelter,public_transport=platform,name=Stop\n\
         n2 x8.001 y49 Tamenity=bench,tourism=artwork,name=Art\n\
         n3 x8 y49 Thighway=crossing,railway=no,public_transport=stop_position\n\
         n4 x8 y49 Tamenity=cafe,tourism=hotel\n\
         n5 x8.001 y49.001\n\
         w1 Thighway=footway,public_transport=platform Nn1,n2\n\
         w2 Tnatural=water,water=lake,waterway=no Nn1,n2,n5,n1\n\
         w3 Tlanduse=no,natural=wood Nn1,n2,n5,n1\n\
         w4 Tlanduse=basin,natural=scrub Nn1,n2,n5,n1\n",
    );
    let pair = |category: &str, class: &str| (Some(category.to_owned()), Some(class.to_owned()));
    let transit = classes(&file, "transit");
    assert_eq!(transit["n1"], pair("public_transport", "platform"));
    assert_eq!(transit["n3"], pair("public_transport", "stop_position"));
    assert_eq!(transit["w1"], pair("public_transport", "platform"));
    let pois = classes(&file, "pois");
    assert_eq!(pois["n1"], pair("amenity", "shelter"));
    assert_eq!(pois["n2"], pair("tourism", "artwork"));
    assert_eq!(pois["n4"], pair("amenity", "cafe"));
    let water = classes(&file, "water");
    assert_eq!(water["w2"], pair("natural", "lake"));
    assert_eq!(water["w4"], pair("landuse", "basin"));
    let landuse = classes(&file, "landuse");
    assert_eq!(landuse["w3"], pair("natural", "wood"));
    assert_eq!(landuse["w4"], pair("natural", "scrub"));
}

#[test]
fn columns_of_own_themes_skip_tags_that_the_filter_does_not_match() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(
        dir.path(),
        "n1 x1 y1 Tamenity=cafe,shop=no,operator=A\nn2 x1 y1\nn3 x2 y2\nn4 x2 y1\n\
         w1 Tamenity=cafe,shop=bakery,brand=B Nn2,n3\n\
         w2 Tshop=bakery,organic=no,amenity=parking Nn2,n3,n4,n2\n\
         w3 Tshop=bakery,organic=yes,amenity=parking Nn2,n3,n4,n2\n",
    );
    let themes = dir.path().join("own.toml");
    std::fs::write(
        &themes,
        "[[theme]]\nname = \"food\"\n\
         filter = [\"n/amenity=cafe\", \"w/shop=bakery&organic=yes\", \"a/shop\", \"w/brand\"]\n\
         columns = [\n\
           { name = \"category\", keys = [\"amenity\", \"shop\"], type = \"key\" },\n\
           { name = \"class\", keys = [\"amenity\", \"shop\", \"organic\"] },\n\
           { name = \"owner\", keys = [\"operator\", \"brand\"] },\n\
           { name = \"amenity\" },\n\
         ]\n",
    )
    .unwrap();
    let found = classes(&file, themes.to_str().unwrap());
    let pair = |category: &str, class: &str| (Some(category.to_owned()), Some(class.to_owned()));
    assert_eq!(found["n1"], pair("amenity", "cafe"));
    // The way is selected by its brand alone: cafes are nodes, and bakeries are areas or organic.
    assert_eq!(found["w1"], (None, None));
    assert_eq!(found["w2"], pair("shop", "bakery"));
    assert_eq!(found["w3"], pair("shop", "bakery"));
    let rows = rows_by_id(&file.with_extension("parquet"));
    assert_eq!(column(&rows["n1"], "owner").as_deref(), Some("A"));
    assert_eq!(column(&rows["w1"], "owner").as_deref(), Some("B"));
    // A column of one key has its tag in any case.
    assert_eq!(column(&rows["w2"], "amenity").as_deref(), Some("parking"));
}

/// Objects of which several tags have the same key.
const REPEATED: &str = "\
n1 v1 x10 y50 Tamenity=bar,name=first,name=second,name:de=a,name:de=b\n\
n2 v1 x11 y50 Tamenity=bar,name=ok\n\
w1 v1 Nn1,n2 Thighway=path,highway=track\n\
r1 v1 Ttype=route,route=hiking,route=foot Mw1@\n";

#[test]
fn a_key_occurs_once_in_the_maps_of_tables() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(dir.path(), REPEATED);
    let table = dir.path().join("out.parquet");
    let summary = export(&file, &table, &["--with", "names", "--column", "name"]);
    assert_eq!(summary["repeated_keys"], 4);
    let found = rows_by_id(&table);
    let map = |row: &Row, name: &str| field(row, name).to_string();
    assert_eq!(map(&found["n1"], "names"), r#"{"de" -> "a"}"#);
    assert_eq!(column(&found["n1"], "name").as_deref(), Some("first"));
    let tags = map(&found["n1"], "tags");
    assert_eq!(tags.matches(" -> ").count(), 3, "{tags}");
    assert!(tags.contains(r#""name" -> "first""#), "{tags}");
    assert_eq!(map(&found["w1"], "tags"), r#"{"highway" -> "path"}"#);
    let summary = export(&file, &table, &["--theme", "pois"]);
    assert_eq!(summary["repeated_keys"], 2);
    assert_eq!(map(&rows_by_id(&table)["n1"], "tags"), tags);
    // Tables of objects.
    let root = dir.path().join("raw");
    assert_eq!(export(&file, &root, &["--raw"])["repeated_keys"], 4);
    let raw = rows(&root.join("type=node/part-0000.parquet"));
    assert_eq!(map(&raw[0], "tags"), tags);
    let raw = rows(&root.join("type=relation/part-0000.parquet"));
    assert_eq!(map(&raw[0], "tags").matches(" -> ").count(), 2);
    // A warning says how many tags were left out.
    let output = run_ok(&[&"export", &file, &"-O", &"-o", &table]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("4 tags were left out"), "{stderr}");
    let output = run_ok(&[
        &"export",
        &file,
        &"--filter",
        &"n/name=ok",
        &"-O",
        &"-o",
        &table,
    ]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("left out"), "{stderr}");
}

#[test]
fn a_key_occurs_once_in_features_of_text_but_not_under_the_second_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(dir.path(), REPEATED);
    for options in [
        &["-f", "geojson"][..],
        &["-f", "geojsonseq"],
        &["-f", "text"],
        &["-f", "pg"],
        &["-f", "pg", "-x", "tags_type=hstore"],
    ] {
        let of = |program: &mut Command| {
            let ran = program.arg("export").arg(&file).args(options).output();
            let ran = ran.unwrap();
            assert!(ran.status.success(), "{ran:?}");
            (ran.stdout, String::from_utf8(ran.stderr).unwrap())
        };
        let (own, warning) = of(&mut pbfhogg());
        let own = String::from_utf8(own).unwrap();
        assert!(own.contains("first") && !own.contains("second"), "{own}");
        assert!(own.contains("path") && !own.contains("track"), "{own}");
        assert!(warning.contains("3 tags were left out"), "{warning}");
        let (second, warning) = of(pbfhogg().arg("osmium"));
        assert!(!warning.contains("left out"), "{warning}");
        let text = String::from_utf8_lossy(&second);
        assert!(text.contains("first") && text.contains("second"), "{text}");
        if osmium() {
            assert_eq!(of(&mut Command::new("osmium")).0, second, "{options:?}");
        }
    }
}

/// Objects of which a tag that is left out would decide otherwise.
const DECIDED_TWICE: &str = "\
n1 v1 x8 y49 Tamenity=bar,amenity=cafe\n\
n2 v1 x8.001 y49\nn3 v1 x8.001 y49.001\nn4 v1 x8 y49.001\n\
w1 v1 Nn1,n2,n3,n4,n1 Tbuilding=no,building=yes\n\
w2 v1 Nn1,n2,n3,n4,n1 Tbuilding=yes,building=no\n\
w3 v1 Nn1,n2 Thighway=path,highway=track\n\
w4 v1 Nn1,n2,n3,n4,n1 Tnote=x,area=no,building=yes,area=yes\n\
r1 v1 Ttype=route,route=hiking,type=multipolygon Mw1@outer\n\
r2 v1 Ttype=multipolygon,landuse=forest,type=route Mw1@outer\n";

#[test]
fn a_tag_that_is_left_out_decides_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(dir.path(), DECIDED_TWICE);
    let ids = |options: &[&str]| {
        let options = [&["--line-relations", "route"][..], options].concat();
        feature_ids(&mut pbfhogg(), &file, &options)
    };
    assert_eq!(ids(&[]), ["n1", "w1", "a4", "w3", "w4", "r1", "a5"]);
    for (filter, expected) in [
        ("n/amenity=bar", &["n1"][..]),
        ("n/amenity=cafe", &[]),
        ("n/amenity!=bar", &[]),
        ("w/highway=track", &[]),
        ("w/highway=track @version<9", &[]),
        ("w/highway=path @version<9", &["w3"]),
        ("w/highway=path & highway=track", &[]),
        ("a/building=yes", &["a4", "w4"]),
        ("w/building=no", &["w1"]),
        ("a/area", &["w4"]),
        ("r/type=route", &["r1"]),
        ("r/type=multipolygon", &["a5"]),
        ("a/type", &["a5"]),
    ] {
        assert_eq!(ids(&["--filter", filter]), expected, "{filter}");
    }
    let table = dir.path().join("out.parquet");
    for (theme, expected) in [("buildings", "w2"), ("roads", "w3"), ("pois", "n1")] {
        export(&file, &table, &["--theme", theme]);
        let found: Vec<String> = rows_by_id(&table).into_keys().collect();
        assert_eq!(found, [expected], "{theme}");
    }
    let raw = dir.path().join("raw");
    let options = ["--raw", "--filter", "w/highway=track"];
    assert_eq!(export(&file, &raw, &options)["features"], 0);
    let options = ["--raw", "--filter", "w/highway=path"];
    assert_eq!(export(&file, &raw, &options)["features"], 1);
}

#[test]
fn check_names_keys_that_occur_again_and_repair_leaves_them_out() {
    let dir = tempfile::tempdir().unwrap();
    let (file, pbf) = (input(dir.path(), REPEATED), dir.path().join("in.osm.pbf"));
    run_ok(&[&"cat", &file, &"-o", &pbf]);
    for file in [&file, &pbf] {
        let found = ask(&[&"check", &"--full", &"--json", file]);
        assert_eq!(found.status, 1);
        let json = found.json();
        assert_eq!(
            (&json["repeated_keys"], &json["faults"]),
            (&4.into(), &4.into())
        );
        let found = ask(&[&"check", &"--full", file]).stdout;
        for line in [
            "n1 in blob 1: the key \"name\" occurs again",
            "n1 in blob 1: the key \"name:de\" occurs again",
            "the key \"highway\" occurs again",
            "the key \"route\" occurs again",
            "tags with a key that the object has already: 4",
        ] {
            assert!(found.contains(line), "{line}: {found}");
        }
        let nodes = ask(&[&"check", &"--full", &"-t", &"node", &"--json", file]).json();
        assert_eq!(nodes["repeated_keys"], 2);
        // Other checks do not look at tags.
        assert_eq!(ask(&[&"check", file]).status, 0);
    }
    let mended = dir.path().join("mended.osm.pbf");
    let answer = ask(&[&"repair", &pbf, &"-o", &mended]);
    assert_eq!(answer.status, 1, "{answer:?}");
    assert_eq!(ask(&[&"check", &"--full", &"--index", &mended]).status, 0);
    let text = String::from_utf8(run_ok(&[&"cat", &"-f", &"opl", &mended]).stdout).unwrap();
    assert!(
        text.contains("Tamenity=bar,name=first,name:de=a "),
        "{text}"
    );
    assert!(text.contains("Ttype=route,route=hiking "), "{text}");
}

/// The rows of an augmented diff as the properties of their features.
fn feed(base: &Path, change: &str) -> Vec<Value> {
    let path = base.with_file_name("change.osc");
    std::fs::write(
        &path,
        format!("<osmChange version='0.6'>{change}</osmChange>"),
    )
    .unwrap();
    let output = run_ok(&[&"augmented-diff", &"-q", &"-f", &"geojsonseq", &base, &path]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| line.trim_start_matches('\u{1e}'));
    let rows = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|mut row| row["properties"].take()).collect()
}

#[test]
fn a_key_occurs_once_in_feeds() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(dir.path(), REPEATED);
    let change = "<modify><node id='1' version='2' lat='50' lon='10.5'><tag k='name' v='third'/>\
                  <tag k='name' v='fourth'/></node></modify>";
    let rows = feed(&file, change);
    assert_eq!(rows[0]["new_tags"], serde_json::json!({"name": "third"}));
    assert_eq!(rows[0]["old_tags"]["name"], "first");
    let table = dir.path().join("feed.parquet");
    let changes = dir.path().join("change.osc");
    let output = run_ok(&[&"augmented-diff", &"--json", &file, &changes, &"-o", &table]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["repeated_keys"].as_u64() >= Some(3), "{summary}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("tags were left out"), "{stderr}");
    let found = crate::geoparquet::rows(&table);
    assert_eq!(
        field(&found[0], "new_tags").to_string(),
        r#"{"name" -> "third"}"#
    );
    let old = field(&found[0], "old_tags").to_string();
    assert_eq!(old.matches(" -> ").count(), 3, "{old}");
}

#[test]
fn a_state_that_does_not_exist_has_no_tags_in_a_feed_and_one_without_tags_has_none_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(
        dir.path(),
        "n1 v1 x1 y1 Ta=b\nn2 v1 x2 y1\nn3 v1 x3 y1 Ta=b\nw1 v1 Nn1,n2 Thighway=path\n",
    );
    let change = "<create><node id='4' version='1' lat='1' lon='4'/>\
                  <node id='5' version='1' lat='1' lon='5'><tag k='c' v='d'/></node></create>\
                  <modify><node id='1' version='2' lat='1' lon='1.5'/></modify>\
                  <delete><node id='3' version='2'/></delete>";
    let expected = [
        ("node", 1, Some(r#"{"a":"b"}"#), Some("{}")),
        ("node", 3, Some(r#"{"a":"b"}"#), None),
        ("node", 4, None, Some("{}")),
        ("node", 5, None, Some(r#"{"c":"d"}"#)),
        (
            "way",
            1,
            Some(r#"{"highway":"path"}"#),
            Some(r#"{"highway":"path"}"#),
        ),
    ];
    let features = feed(&file, change);
    let table = dir.path().join("feed.parquet");
    let changes = dir.path().join("change.osc");
    run_ok(&[&"augmented-diff", &"-q", &file, &changes, &"-o", &table]);
    let table = rows(&table);
    for (kind, id, old, new) in expected {
        let is_meant = |feature: &&Value| feature["type"] == kind && feature["id"] == id;
        let feature = features.iter().find(is_meant).unwrap();
        let row = table.iter().find(|row| {
            text(field(row, "type")) == kind
                && matches!(field(row, "id"), Field::Long(known) if *known == id)
        });
        for (name, tags) in [("old_tags", old), ("new_tags", new)] {
            let found = feature.get(name).map(Value::to_string);
            assert_eq!(found.as_deref(), tags, "{name}: {feature}");
            let in_table = match field(row.unwrap(), name) {
                Field::Null => None,
                map => Some(map.to_string().replace(" -> ", ":")),
            };
            assert_eq!(in_table.as_deref(), tags, "{name}: {kind} {id}");
        }
    }
}

const AREAS: &str = "\
n1 v1 x1 y1\nn2 v1 x2 y1\nn3 v1 x2 y2\nn4 v1 x1 y2\n\
w1 v1 Nn1,n2,n3,n4\nw2 v1 Nn1,n2,n3,n4,n1\n\
r1 v1 Ttype=multipolygon,landuse=forest Mw2@outer\n\
r2 v1 Ttype=route,route=hiking Mw2@\n\
r3 v1 Ttype=boundary,name=X Mw2@outer,w9@outer\n\
r4 v1 Ttype=multipolygon,natural=water Mw1@outer\n\
r5 v1 Ttype=site,name=Y Mw2@\n";

#[test]
fn the_tag_type_of_an_area_is_in_neither_state_of_a_feed() {
    let dir = tempfile::tempdir().unwrap();
    let file = input(dir.path(), AREAS);
    let way = |id: i64, nodes: &[i64]| {
        let nodes = nodes.iter().map(|id| format!("<nd ref='{id}'/>"));
        let nodes: String = nodes.collect();
        format!("<modify><way id='{id}' version='2'>{nodes}</way></modify>")
    };
    let relation = |id: i64, kind: &str| {
        format!(
            "<modify><relation id='{id}' version='2'><member type='way' ref='2' role='outer'/>\
             <tag k='type' v='{kind}'/><tag k='name' v='Z'/></relation></modify>"
        )
    };
    for (change, without, with) in [
        // The ring opens: the areas are lost, but their tags are not changed.
        (way(2, &[1, 2, 3, 4]), &[1, 3][..], &[2, 5][..]),
        (
            "<delete><way id='2' version='2'/></delete>".into(),
            &[1, 3],
            &[2, 5],
        ),
        // The ring closes.
        (way(1, &[1, 2, 3, 4, 1]), &[4], &[]),
        (
            "<modify><node id='2' version='2' lat='1' lon='2.5'/></modify>".into(),
            &[1, 3, 4],
            &[2, 5],
        ),
        (relation(1, "boundary"), &[1], &[]),
        // The type of the relation after the change decides.
        (relation(1, "site"), &[], &[1]),
        (relation(5, "multipolygon"), &[5], &[]),
        (
            "<delete><relation id='4' version='2'/><relation id='5' version='2'/></delete>".into(),
            &[4],
            &[5],
        ),
    ] {
        let rows = feed(&file, &change);
        let relations = rows.iter().filter(|row| row["type"] == "relation");
        let (mut found_without, mut found_with) = (Vec::new(), Vec::new());
        for row in relations {
            let has_type: Vec<bool> = ["old_tags", "new_tags"]
                .iter()
                .filter_map(|name| Some(row.get(name)?.get("type").is_some()))
                .collect();
            assert!(!has_type.contains(&!has_type[0]), "{row}");
            let id = row["id"].as_i64().unwrap();
            if has_type[0] {
                found_with.push(id);
            } else {
                found_without.push(id);
            }
        }
        assert_eq!(
            (&found_without[..], &found_with[..]),
            (without, with),
            "{change}"
        );
    }
}
