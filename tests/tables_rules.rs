//! Rules of tables of features and of feeds: closed ways, tags with a key that comes twice, columns of themes, routes of
//! routes, and the tag `type` of areas.

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
