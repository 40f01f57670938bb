//! Areas of real files, compared with those that osmium exports.

use crate::common::oracle::{osmium, real_files};
use crate::common::{Kind, Object, decode, run_ok};
use pbfhogg::area::{AreaNode, AreaWay, OpenRings, Role, assemble};
use pbfhogg::geometry::Point;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

/// A ring as pairs of longitude and latitude in 1e-7 degree, with the first again at the end.
type Ring = Vec<(i64, i64)>;

/// Polygons by the name of an area, such as w17 or r4.
type Areas = BTreeMap<String, Vec<Vec<Ring>>>;

/// The areas that osmium exports.
fn exported(path: &Path) -> Areas {
    let done = Command::new("osmium")
        .args(["export", "-u", "type_id", "--geometry-types=polygon"])
        .args(["-f", "geojsonseq", "-x", "print_record_separator=false"])
        .arg(path)
        .output()
        .unwrap();
    let mut areas = Areas::new();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {stderr}", path.display());
    let text = String::from_utf8(done.stdout).unwrap();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let feature: serde_json::Value = serde_json::from_str(line).unwrap();
        let id: i64 = feature["id"].as_str().unwrap()[1..].parse().unwrap();
        let coordinates = &feature["geometry"]["coordinates"];
        let polygons: Vec<Vec<Vec<[f64; 2]>>> =
            serde_json::from_value(coordinates.clone()).unwrap();
        let e7 = |degrees: f64| (degrees * 1e7).round() as i64;
        let ring =
            |ring: &Vec<[f64; 2]>| ring.iter().map(|[lon, lat]| (e7(*lon), e7(*lat))).collect();
        let polygon = |rings: &Vec<Vec<[f64; 2]>>| rings.iter().map(ring).collect();
        let name = format!("{}{}", if id % 2 == 0 { 'w' } else { 'r' }, id / 2);
        areas.insert(name, polygons.iter().map(polygon).collect());
    }
    areas
}

fn tag<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    let mut tags = object.tags.iter();
    tags.find(|(found, _)| found == key)
        .map(|(_, value)| value.as_str())
}

/// The ways that bound an object that osmium makes an area of: those of a multipolygon or boundary relation, or a
/// closed way. `None` for any other object, and if a way is not in the file.
fn boundary<'a>(
    object: &'a Object,
    ways: &HashMap<i64, &'a Object>,
) -> Option<Vec<(&'a Object, Role)>> {
    match object.kind {
        Kind::Node => None,
        Kind::Way => {
            let is_closed = object.refs.len() > 3 && object.refs.first() == object.refs.last();
            let is_area = is_closed && !object.tags.is_empty() && tag(object, "area") != Some("no");
            is_area.then(|| vec![(object, Role::Other)])
        }
        Kind::Relation => {
            let is_area = matches!(tag(object, "type"), Some("multipolygon" | "boundary"));
            let members = object
                .members
                .iter()
                .filter(|(kind, ..)| *kind == Kind::Way);
            let of = |(_, id, role): &(Kind, i64, String)| Some((*ways.get(id)?, Role::of(role)));
            let members: Option<Vec<_>> = members.map(of).collect();
            members.filter(|_| is_area && object.tags.len() > 1)
        }
    }
}

/// The areas of a file.
fn assembled(path: &Path) -> Areas {
    let objects = decode::objects(path);
    let of_kind = |kind| objects.iter().filter(move |object| object.kind == kind);
    let points: HashMap<i64, Point> = of_kind(Kind::Node)
        .map(|node| {
            let [lat_e7, lon_e7] = [node.lat_nano, node.lon_nano].map(|nano| (nano / 100) as i32);
            (node.id, Point { lat_e7, lon_e7 })
        })
        .collect();
    let ways: HashMap<i64, &Object> = of_kind(Kind::Way).map(|way| (way.id, way)).collect();
    let mut areas = Areas::new();
    for object in &objects {
        let Some(boundary) = boundary(object, &ways) else {
            continue;
        };
        let nodes = boundary.iter().map(|(way, _)| {
            let node = |id: &i64| {
                Some(AreaNode {
                    id: *id,
                    point: *points.get(id)?,
                })
            };
            way.refs.iter().map(node).collect()
        });
        let Some(nodes) = nodes.collect::<Option<Vec<Vec<AreaNode>>>>() else {
            continue;
        };
        let ways = boundary
            .iter()
            .zip(&nodes)
            .map(|((way, role), nodes)| AreaWay {
                id: way.id,
                role: *role,
                nodes,
            });
        let assembly = assemble(&ways.collect::<Vec<_>>(), OpenRings::Refuse);
        let ring = |ring: &Vec<Point>| -> Ring {
            let points = ring.iter().chain(ring.first());
            points
                .map(|point| (point.lon_e7.into(), point.lat_e7.into()))
                .collect()
        };
        let polygons = assembly.polygons.iter().map(|polygon| {
            let rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
            rings.map(ring).collect()
        });
        let polygons: Vec<Vec<Ring>> = polygons.collect();
        if !polygons.is_empty() {
            let letter = if object.kind == Kind::Way { 'w' } else { 'r' };
            areas.insert(format!("{letter}{}", object.id), polygons);
        }
    }
    areas
}

#[test]
fn areas_of_real_files_are_those_of_osmium_ring_by_ring() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sorted.osm.pbf");
    for input in real_files() {
        // osmium exports sorted files, and no histories.
        if input.to_string_lossy().ends_with(".osh.pbf") {
            continue;
        }
        run_ok(&[&"sort", &"-O", &input, &"-o", &path]);
        let (ours, theirs) = (assembled(&path), exported(&path));
        let name = input.display();
        for (area, polygons) in &theirs {
            let found = ours.get(area);
            assert!(found.is_some(), "{name}: {area} is missing");
            assert_eq!(found, Some(polygons), "{name}: {area}");
        }
        let more: Vec<_> = ours
            .keys()
            .filter(|area| !theirs.contains_key(*area))
            .collect();
        assert!(more.is_empty(), "{name}: {more:?} are no areas for osmium");
        println!("{name}: {} areas", ours.len());
    }
}
