//! Areas of real files, compared with those that osmium exports; and of random relations, with those of a plain
//! assembler.

use crate::common::areas::{
    Polygons, Refusal, Spot, assemble_slowly, doubled_area, even_odd_area, segments_of,
};
use crate::common::oracle::{osmium, real_files};
use crate::common::random::Random;
use crate::common::{Kind, Object, decode, in_turn, is_long, run_ok};
use pbfhogg::unstable::area::{AreaNode, AreaWay, OpenRings, ProblemKind, Role, assemble};
use pbfhogg::unstable::geometry::Point;
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    // In short runs, every second one.
    for input in in_turn(0, 2, real_files()) {
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

fn random_spot(random: &mut Random, size: i64) -> Spot {
    (random.below(size), random.below(size))
}

/// The side of the square that random relations lie in.
const SIDE: i64 = 12;

/// A closed ring of a random shape: a box, a triangle, a diamond, or any polygon. It may lie inside the box `around`, or
/// begin at one of the points `known`.
fn random_ring(random: &mut Random, around: Option<[Spot; 2]>, known: &[Spot]) -> Vec<Spot> {
    let (mut a, mut b) = (random_spot(random, SIDE), random_spot(random, SIDE));
    if let Some([low, high]) = around
        && random.below(2) == 0
    {
        let mut within = |low: i64, high: i64| low + 1 + random.below((high - low - 1).max(1));
        (a.0, b.0) = (within(low.0, high.0), within(low.0, high.0));
        (a.1, b.1) = (within(low.1, high.1), within(low.1, high.1));
    }
    if !known.is_empty() && random.below(3) == 0 {
        a = known[random.below(known.len())];
    }
    if known.is_empty() && random.below(2) == 0 {
        // A large box, in which others have room.
        let far = SIDE - 1;
        return vec![(0, 0), (far, 0), (far, far), (0, far), (0, 0)];
    }
    let mut ring = match random.below(5) {
        0 | 1 => vec![a, (b.0, a.1), b, (a.0, b.1)],
        2 => vec![a, b, random_spot(random, SIDE)],
        3 => {
            let reach = 1 + random.below(3) as i64;
            vec![
                a,
                (a.0 + reach, a.1 - reach),
                (a.0 + 2 * reach, a.1),
                (a.0 + reach, a.1 + reach),
            ]
        }
        _ => (0..3 + random.below(4))
            .map(|_| random_spot(random, SIDE))
            .collect(),
    };
    ring.push(ring[0]);
    ring
}

/// The ways of a random relation: rings that are apart, nested, touch, cross, or share segments, cut into ways, some of
/// which are turned around, left out, or come twice.
fn random_relation(random: &mut Random) -> Vec<Vec<Spot>> {
    let (mut ways, mut known, mut around) = (Vec::new(), Vec::new(), None);
    for _ in 0..1 + random.below(4) {
        let ring = random_ring(random, around, &known);
        known.extend(&ring);
        let xs = ring.iter().map(|spot| spot.0);
        let ys = ring.iter().map(|spot| spot.1);
        let low = (xs.clone().min().unwrap(), ys.clone().min().unwrap());
        around = Some([low, (xs.max().unwrap(), ys.max().unwrap())]);
        let mut start = 0;
        while start + 1 < ring.len() {
            let end = (start + 1 + random.below(ring.len())).min(ring.len() - 1);
            ways.push(ring[start..=end].to_vec());
            start = end;
        }
    }
    for _ in 0..ways.len() {
        let at = random.below(ways.len());
        match random.below(30) {
            0 => {
                ways.remove(at);
                if ways.is_empty() {
                    return ways;
                }
            }
            1 => ways.push(ways[at].clone()),
            2..16 => ways[at].reverse(),
            _ => {}
        }
    }
    ways
}

/// The area of ways, in the form of the plain assembler.
fn assembled_ways(ways: &[Vec<Spot>]) -> Result<Polygons, Vec<ProblemKind>> {
    let nodes: Vec<Vec<AreaNode>> = ways
        .iter()
        .map(|way| {
            let node = |&(x, y): &Spot| AreaNode {
                id: 100 * x + y,
                point: Point {
                    lon_e7: x as i32,
                    lat_e7: y as i32,
                },
            };
            way.iter().map(node).collect()
        })
        .collect();
    let ways = (1..).zip(&nodes).map(|(id, nodes)| AreaWay {
        id,
        role: Role::Other,
        nodes,
    });
    let assembly = assemble(&ways.collect::<Vec<_>>(), OpenRings::Refuse);
    if !assembly.is_valid() {
        let kinds = assembly.problems.iter().map(|problem| problem.kind);
        return Err(kinds.filter(|kind| kind.is_error()).collect());
    }
    let ring = |ring: &Vec<Point>| -> Vec<Spot> {
        let points = ring.iter();
        points
            .map(|point| (point.lon_e7.into(), point.lat_e7.into()))
            .collect()
    };
    let polygons = assembly.polygons.iter().map(|polygon| {
        let mut rings: Vec<_> = [&polygon.outer]
            .into_iter()
            .chain(&polygon.holes)
            .map(ring)
            .collect();
        rings[1..].sort_unstable();
        rings
    });
    let mut polygons: Polygons = polygons.collect();
    polygons.sort_unstable();
    Ok(polygons)
}

#[test]
fn random_relations_are_what_a_plain_assembler_makes_of_them() {
    let mut random = Random(5);
    let (mut valid, mut with_holes, mut touching) = (0, 0, 0);
    let rounds = if is_long() { 100_000 } else { 40_000 };
    for round in 0..rounds {
        let ways = random_relation(&mut random);
        let (found, expected) = (assembled_ways(&ways), assemble_slowly(&ways));
        match (&found, &expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found, expected, "{round}: {ways:?}");
                let segments = segments_of(&ways);
                let area: i64 = found.iter().flatten().map(|ring| doubled_area(ring)).sum();
                let even_odd = even_odd_area(&segments);
                assert!((area as f64 - even_odd).abs() < 1e-6, "{round}: {ways:?}");
                valid += 1;
                with_holes += usize::from(found.iter().any(|polygon| polygon.len() > 1));
                let ends = found.iter().flatten().flatten().count();
                let distinct: BTreeSet<_> = found.iter().flatten().flatten().collect();
                touching += usize::from(distinct.len() < ends);
            }
            (Err(kinds), Err(refusal)) => {
                let expected: &[ProblemKind] = match refusal {
                    Refusal::Crossing => &[ProblemKind::Crossing, ProblemKind::Overlap],
                    Refusal::Open => &[ProblemKind::OpenRing],
                    Refusal::Empty => &[ProblemKind::NoArea],
                };
                let has = kinds.iter().any(|kind| expected.contains(kind));
                assert!(has, "{round}: {kinds:?} {refusal:?} {ways:?}");
            }
            _ => panic!("{round}: {found:?} {expected:?} {ways:?}"),
        }
    }
    println!("{valid} valid, {with_holes} with holes, {touching} with rings that touch");
    assert!(valid > rounds / 5 && with_holes > rounds / 100 && touching > rounds / 100);
}
