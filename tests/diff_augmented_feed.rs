//! Augmented diffs as features and as tiles, compared with exports of both states.

use crate::common::augmented::actions_of;
use crate::common::oracle::andorra;
use crate::common::{is_long, run_ok};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The kind and the id of an object.
type Key = (String, i64);
/// The geometry and the tags of a feature.
type Feature = (Value, Value);

/// Returns the features of a GeoJSON text sequence.
fn sequence(text: &str) -> impl Iterator<Item = Value> {
    let lines = text.lines().map(|line| line.trim_start_matches('\u{1e}'));
    lines.map(|line| serde_json::from_str(line).unwrap())
}

/// Returns the features of a file, by object.
fn features_of(file: &Path, untagged: bool) -> BTreeMap<Key, Feature> {
    let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![
        &"export",
        &"-q",
        &"-f",
        &"geojsonseq",
        &"-a",
        &"type,id",
        &"--line-relations",
        &"route,waterway,superroute",
        &file,
    ];
    if untagged {
        args.push(&"-n");
    }
    let text = String::from_utf8(run_ok(&args).stdout).unwrap();
    let mut features = BTreeMap::new();
    for mut feature in sequence(&text) {
        let tags = feature["properties"].as_object_mut().unwrap();
        let kind = tags.remove("@type").unwrap().as_str().unwrap().to_owned();
        let id = tags.remove("@id").unwrap().as_i64().unwrap();
        let parts = (feature["geometry"].take(), feature["properties"].take());
        assert!(features.insert((kind, id), parts).is_none());
    }
    features
}

/// Compares the rows of an augmented diff with the exports of the states before and after. Returns the number of
/// features that changed.
fn compare(old: &Path, changes: &Path, new: &Path) -> usize {
    let (before, mut after) = (features_of(old, false), features_of(new, false));
    let diff = run_ok(&[
        &"augmented-diff",
        &"-q",
        &"-f",
        &"geojsonseq",
        &old,
        &changes,
    ]);
    let mut rest = before.clone();
    for feature in sequence(&String::from_utf8(diff.stdout).unwrap()) {
        let row = &feature["properties"];
        let key = (
            row["type"].as_str().unwrap().to_owned(),
            row["id"].as_i64().unwrap(),
        );
        let (was, is) = (rest.remove(&key), after.remove(&key));
        if let Some((geometry, tags)) = was {
            if row["action"] == "modify" {
                assert_eq!(row["old_geometry"], geometry, "{row}");
            }
            assert_eq!(row["old_tags"], tags, "{row}");
        } else {
            assert_eq!(row["old_geometry"], Value::Null, "{row}");
        }
        let is_deleted = row["action"] == "delete";
        if let Some((geometry, tags)) = is {
            assert!(!is_deleted && feature["geometry"] == geometry, "{feature}");
            assert_eq!(row["new_tags"], tags, "{row}");
        } else {
            assert!(is_deleted || feature["geometry"].is_null(), "{feature}");
        }
    }
    assert!(rest == after);
    before.len() - rest.len()
}

/// Writes a change file that leads from one real file to another one.
fn derive(old: &Path, new: &Path, changes: &Path) {
    run_ok(&[
        &"diff", &"-q", &"-O", &"-f", &"osc", &old, &new, &"-o", &changes,
    ]);
}

#[test]
fn a_table_of_features_is_kept_current() {
    let dir = tempfile::tempdir().unwrap();
    let [changes, located] = ["changes.osc", "located.osm.pbf"].map(|name| dir.path().join(name));
    let [old, new] = ["b", "c"].map(andorra);
    let least = if is_long() { 1000 } else { 300 };
    derive(&old, &new, &changes);
    assert!(compare(&old, &changes, &new) > least);
    run_ok(&[&"add-locations-to-ways", &"-n", &old, &"-o", &located]);
    assert!(compare(&located, &changes, &new) > least);
}

/// Applies changes to features, as the rows of an augmented diff say.
#[test]
fn days_of_a_world_keep_its_features_current() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let [base, next] = ["base.osm.pbf", "next.osm.pbf"].map(path);
    let days = if is_long() { 30 } else { 3 };
    run_ok(&[
        &"synth",
        &"-q",
        &"--objects",
        &"20000",
        &"--changes",
        &days.to_string(),
        &"--changes-dir",
        &dir.path(),
        &"-o",
        &base,
    ]);
    let mut changed = 0;
    for day in 1..=days {
        let changes = path(&format!("{day:03}.osc.gz"));
        run_ok(&[
            &"apply-changes",
            &"-q",
            &"-O",
            &base,
            &changes,
            &"-o",
            &next,
        ]);
        changed += compare(&base, &changes, &next);
        std::fs::rename(&next, &base).unwrap();
    }
    assert!(changed > 0);
}

/// Routes that contain other routes.
const ROUTES: &str = "n1 v1 x1 y0\nn2 v1 x2 y0\nn3 v1 x3 y0\n\
    w1 v1 Thighway=path Nn1,n2\nw2 v1 Thighway=path Nn2,n3\n\
    r1 v1 Ttype=route,route=hiking Mw1@\nr2 v1 Ttype=route,route=hiking Mw2@\n\
    r3 v1 Ttype=route,route=hiking,name=E1 Mr1@,r2@\n\
    r4 v1 Ttype=superroute,route=hiking,name=E2 Mr1@,r2@\n\
    r5 v1 Ttype=superroute Mr6@,r4@\nr6 v1 Ttype=superroute Mr5@,w2@\n\
    r7 v1 Ttype=route Mr2@,w1@\nr8 v1 Ttype=route Mr1@platform,w2@\n\
    r9 v1 Ttype=network Mr1@\nr10 v1 Ttype=route Mr9@,r99@\nr11 v1 Ttype=site Mr1@\n\
    r12 v1 Ttype=route Mr11@,w2@\n";

/// Writes [`ROUTES`] and a change of them.
fn changed_routes(directory: &Path, change: &str) -> [PathBuf; 2] {
    let [base, changes] = ["base.opl", "changes.osc"].map(|name| directory.join(name));
    std::fs::write(&base, ROUTES).unwrap();
    let text = format!("<osmChange version='0.6'>{change}</osmChange>");
    std::fs::write(&changes, text).unwrap();
    [base, changes]
}

/// Returns a relation of OSM XML with the given members and tags.
fn relation(id: i64, members: &[(&str, i64)], tags: &[(&str, &str)]) -> String {
    let members = members
        .iter()
        .map(|(kind, member)| format!("<member type='{kind}' ref='{member}' role=''/>"));
    let tags = tags
        .iter()
        .map(|(key, value)| format!("<tag k='{key}' v='{value}'/>"));
    let content: String = members.chain(tags).collect();
    format!("<relation id='{id}' version='2'>{content}</relation>")
}

/// The change that moves the first node of [`ROUTES`].
const MOVE: &str = "<modify><node id='1' version='2' lat='1' lon='1'/></modify>";

#[test]
fn routes_of_routes_are_kept_current() {
    let (way, part, of_type) = ("way", "relation", |value| ("type", value));
    let renamed = [of_type("route"), ("name", "E1a")];
    let modified = |object: String| format!("<modify>{object}</modify>");
    let changes = [
        MOVE.to_owned(),
        modified(relation(3, &[(part, 1), (part, 2)], &renamed)),
        modified(relation(
            4,
            &[(part, 2), (part, 7)],
            &[of_type("superroute")],
        )),
        // The parts get another way, another type, and other parts.
        modified(relation(1, &[(way, 2), (way, 1)], &[of_type("route")])),
        modified(relation(2, &[(way, 2)], &[of_type("restriction")])),
        modified(relation(11, &[(part, 1)], &[of_type("collection")])),
        modified(relation(9, &[(part, 2)], &[of_type("network")])),
        modified(relation(1, &[(part, 3), (way, 1)], &[of_type("route")])),
        format!(
            "<create>{}</create>",
            relation(99, &[(part, 4)], &[of_type("route")])
        ),
        "<delete><relation id='2' version='2'/></delete>".to_owned(),
        "<delete><relation id='4' version='2'/></delete>".to_owned(),
        modified("<way id='1' version='2'><nd ref='3'/><nd ref='1'/></way>".to_owned()),
        "<delete><way id='2' version='2'/></delete>".to_owned(),
        format!("{MOVE}<delete><relation id='1' version='2'/></delete>"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new.osm.pbf");
    for change in changes {
        let [base, changes] = changed_routes(dir.path(), &change);
        run_ok(&[&"apply-changes", &"-q", &"-O", &base, &changes, &"-o", &new]);
        assert!(compare(&base, &changes, &new) > 0, "{change}");
    }
}

#[test]
fn a_route_has_an_action_if_a_route_in_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let [base, changes] = changed_routes(dir.path(), MOVE);
    let relations = |options: &[&str]| -> Vec<i64> {
        let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![
            &"augmented-diff",
            &"-q",
            &"-f",
            &"geojsonseq",
            &base,
            &changes,
        ];
        args.extend(
            options
                .iter()
                .map(|option| option as &dyn AsRef<std::ffi::OsStr>),
        );
        let rows = String::from_utf8(run_ok(&args).stdout).unwrap();
        let rows = sequence(&rows).filter(|row| row["properties"]["type"] == "relation");
        rows.map(|row| row["properties"]["id"].as_i64().unwrap())
            .collect()
    };
    // A network is no feature. Platforms are not part of a route, nor are sites.
    let expected = [1, 3, 4, 5, 6, 7, 10];
    assert_eq!(relations(&[]), expected);
    assert_eq!(relations(&["-b", "0.5,-0.5,1.5,0.5"]), expected);
    assert!(relations(&["--direct-only"]).is_empty());
}

#[test]
fn routes_in_routes_are_followed_for_features_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let [base, changes] = changed_routes(dir.path(), MOVE);
    let [xml, both, tiles, new] = ["x.adiff", "y.adiff", "tiles.txt", "new.osm.pbf"].map(path);
    run_ok(&[&"augmented-diff", &"-q", &base, &changes, &"-o", &xml]);
    run_ok(&[
        &"apply-changes",
        &"-q",
        &base,
        &changes,
        &"-o",
        &new,
        &"--augmented-diff",
        &both,
        &"--expire-tiles",
        &"8",
        &"--expire-output",
        &tiles,
    ]);
    let [xml, both] = [&xml, &both].map(|file| actions_of(&std::fs::read_to_string(file).unwrap()));
    assert!(xml.len() > 3 && xml == both, "{both:?}");
    assert!(!xml.iter().any(|action| action.contains("relation id=4 ")));
    // A route that gets a name shows it along the routes in it.
    let members = [("relation", 1), ("relation", 2)];
    let tags = [("type", "superroute"), ("name", "E2a")];
    let change = format!("<modify>{}</modify>", relation(4, &members, &tags));
    let [base, changes] = changed_routes(dir.path(), &change);
    let output = run_ok(&[
        &"augmented-diff",
        &"-q",
        &"--expire-tiles",
        &"8",
        &base,
        &changes,
    ]);
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "8/128/128\n8/129/128\n8/130/128\n"
    );
}

/// Returns the place of a point on a map that is `tiles` tiles wide.
fn project(point: &Value, tiles: f64) -> [f64; 2] {
    let [lon, lat] = [0, 1].map(|axis| point[axis].as_f64().unwrap());
    let y = (1.0 - lat.to_radians().tan().asinh() / std::f64::consts::PI) / 2.0;
    [(lon + 180.0) / 360.0 * tiles, y * tiles]
}

/// Whether a segment touches a square with sides of 1.
fn touches([from, to]: [[f64; 2]; 2], corner: [f64; 2]) -> bool {
    let (mut low, mut high) = (0.0f64, 1.0f64);
    for axis in 0..2 {
        let (at, delta) = (from[axis] - corner[axis], to[axis] - from[axis]);
        if delta == 0.0 {
            if !(0.0..1.0).contains(&at) {
                return false;
            }
            continue;
        }
        let (one, other) = (-at / delta, (1.0 - at) / delta);
        low = low.max(one.min(other));
        high = high.min(one.max(other));
    }
    low <= high
}

/// Adds the tiles that a geometry touches, by looking at each tile in its box.
fn add_tiles(tiles: &mut BTreeSet<[i64; 2]>, geometry: &Value, zoom: u32) {
    let width = f64::from(1u32 << zoom);
    let coordinates = &geometry["coordinates"];
    let line = |points: &Value| -> Vec<[f64; 2]> {
        let points = points.as_array().unwrap();
        points.iter().map(|point| project(point, width)).collect()
    };
    let list = |value: &Value| value.as_array().unwrap().clone();
    let (lines, is_area): (Vec<Vec<[f64; 2]>>, bool) = match geometry["type"].as_str().unwrap() {
        "Point" => (vec![vec![project(coordinates, width); 2]], false),
        "LineString" => (vec![line(coordinates)], false),
        "MultiLineString" => (list(coordinates).iter().map(line).collect(), false),
        _ => (
            list(coordinates)
                .iter()
                .flat_map(list)
                .map(|ring| line(&ring))
                .collect(),
            true,
        ),
    };
    let edge = |axis: usize, pick: fn(f64, f64) -> f64| {
        let all = lines.iter().flatten().map(|point| point[axis]);
        all.reduce(pick).unwrap().floor() as i64
    };
    for column in edge(0, f64::min)..=edge(0, f64::max) {
        for row in edge(1, f64::min)..=edge(1, f64::max) {
            let corner = [column as f64, row as f64];
            let centre = [corner[0] + 0.5, corner[1] + 0.5];
            let mut segments = lines.iter().flat_map(|line| line.windows(2));
            let is_touched = segments
                .clone()
                .any(|pair| touches([pair[0], pair[1]], corner));
            let crosses = |pair: &&[[f64; 2]]| {
                let [[ax, ay], [bx, by]] = [pair[0], pair[1]];
                (ay <= centre[1]) != (by <= centre[1])
                    && ax + (centre[1] - ay) / (by - ay) * (bx - ax) > centre[0]
            };
            let is_inside = is_area && segments.by_ref().filter(crosses).count() % 2 == 1;
            if is_touched || is_inside {
                tiles.insert([column, row]);
            }
        }
    }
}

#[test]
fn tiles_are_those_that_old_and_new_geometries_touch() {
    let dir = tempfile::tempdir().unwrap();
    let changes = dir.path().join("changes.osc");
    let [old, new] = ["b", "c"].map(andorra);
    derive(&old, &new, &changes);
    let diff = run_ok(&[&"augmented-diff", &"-q", &old, &changes]);
    let [before, after] = [&old, &new].map(|file| features_of(file, true));
    let mut expected = BTreeSet::new();
    for action in actions_of(&String::from_utf8(diff.stdout).unwrap()) {
        let heads = action.lines().filter(|line| {
            ["node id", "way id", "relation id"]
                .iter()
                .any(|start| line.starts_with(start))
        });
        let heads: Vec<&str> = heads.collect();
        let word = |at: usize| heads[0].split(' ').nth(at).unwrap();
        let key = (word(0).to_owned(), word(1)[3..].parse().unwrap());
        let geometries = [before.get(&key), after.get(&key)];
        let geometries = geometries.map(|feature| feature.map(|(geometry, _)| geometry.clone()));
        let version = |head: &str| head.split(' ').nth(2).unwrap().to_owned();
        let is_indirect = heads.len() == 2 && version(heads[0]) == version(heads[1]);
        let is_line = |geometry: &Option<Value>| {
            geometry
                .as_ref()
                .is_none_or(|geometry| geometry["type"] != "MultiPolygon")
        };
        let is_route = key.0 == "relation" && geometries.iter().all(is_line);
        if is_indirect && (geometries[0] == geometries[1] || is_route) {
            continue;
        }
        for geometry in geometries.into_iter().flatten() {
            add_tiles(&mut expected, &geometry, 15);
        }
    }
    let output = run_ok(&[
        &"augmented-diff",
        &"-q",
        &"--expire-tiles",
        &"14-15",
        &old,
        &changes,
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |zoom: u32, [column, row]: [i64; 2]| format!("{zoom}/{column}/{row}\n");
    let above: BTreeSet<_> = expected.iter().map(|tile| tile.map(|at| at / 2)).collect();
    let above = above.into_iter().map(|tile| line(14, tile));
    let wanted: String = above
        .chain(expected.iter().map(|tile| line(15, *tile)))
        .collect();
    let least = if is_long() { 1000 } else { 50 };
    assert!(expected.len() > least, "{}", expected.len());
    assert_eq!(text, wanted);
}
