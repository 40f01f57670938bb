//! Augmented diffs as features and as tiles, compared with exports of both states.

use crate::common::augmented::actions_of;
use crate::common::oracle::real_file;
use crate::common::{is_long, run_ok};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
        &"route,waterway",
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

/// Returns the relations of a file, except areas, that have other relations of the file as members, except platforms,
/// stops and tributaries. The lines of their members are not part of augmented diffs.
fn relations_of_relations(file: &Path) -> BTreeSet<Key> {
    let output = run_ok(&[&"cat", &"-q", &"-t", &"relation", &"-f", &"opl", &file]);
    let text = String::from_utf8(output.stdout).unwrap();
    let id = |line: &str| line.split(' ').next().unwrap().to_owned();
    let all: BTreeSet<String> = text.lines().map(id).collect();
    let is_area = |line: &str| ["type=multipolygon", "type=boundary"].map(|tag| line.contains(tag));
    let lines = text.lines().filter(|line| is_area(line) == [false; 2]);
    let found = lines.filter(|line| {
        let members = line.rsplit(' ').next().unwrap().trim_start_matches('M');
        members.split(',').any(|member| {
            let (id, role) = member.split_once('@').unwrap_or((member, ""));
            let mut beside = ["platform", "stop", "tributary", "TMC:"].iter();
            all.contains(id) && !beside.any(|start| role.starts_with(start))
        })
    });
    found
        .map(|line| ("relation".to_owned(), id(line)[1..].parse().unwrap()))
        .collect()
}

/// Compares the rows of an augmented diff with the exports of the states before and after. Returns the number of
/// features that changed.
fn compare(old: &Path, changes: &Path, new: &Path) -> usize {
    let (mut before, mut after) = (features_of(old, false), features_of(new, false));
    let left_out = &relations_of_relations(old) | &relations_of_relations(new);
    before.retain(|key, _| !left_out.contains(key));
    after.retain(|key, _| !left_out.contains(key));
    let diff = run_ok(&[
        &"augmented-diff",
        &"-q",
        &"-f",
        &"geojsonseq",
        &old,
        &changes,
    ]);
    let mut rest = before.clone();
    for row in sequence(&String::from_utf8(diff.stdout).unwrap()) {
        let row = &row["properties"];
        let key = (
            row["type"].as_str().unwrap().to_owned(),
            row["id"].as_i64().unwrap(),
        );
        if left_out.contains(&key) {
            continue;
        }
        let (was, is) = (rest.remove(&key), after.remove(&key));
        if let Some((geometry, tags)) = was {
            if row["action"] == "modify" {
                assert_eq!(row["old_geometry"], geometry, "{row}");
            }
            assert_eq!(row["old_tags"], tags, "{row}");
        } else {
            assert_eq!(row["old_geometry"], Value::Null, "{row}");
        }
        if let Some((_, tags)) = is {
            assert_eq!(row["new_tags"], tags, "{row}");
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
    let [old, new] = ["andorra-b", "andorra-c"].map(|name| real_file(&format!("{name}.osm.pbf")));
    derive(&old, &new, &changes);
    assert!(compare(&old, &changes, &new) > 1000);
    run_ok(&[&"add-locations-to-ways", &"-n", &old, &"-o", &located]);
    assert!(compare(&located, &changes, &new) > 1000);
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
    let [old, new] = ["andorra-b", "andorra-c"].map(|name| real_file(&format!("{name}.osm.pbf")));
    derive(&old, &new, &changes);
    let diff = run_ok(&[&"augmented-diff", &"-q", &old, &changes]);
    let left_out = &relations_of_relations(&old) | &relations_of_relations(&new);
    let [before, after] = [&old, &new].map(|file| {
        let mut features = features_of(file, true);
        features.retain(|key, _| !left_out.contains(key));
        features
    });
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
    assert!(expected.len() > 1000);
    assert_eq!(text, wanted);
}
