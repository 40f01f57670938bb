//! `build-geocode-index` and `geocode`: answers compared with a plain search over all objects, and damaged indexes.

use crate::common::geocode::{Bands, Degrees, Thing, distance, interpolated, osmium_areas, things};
use crate::common::oracle::{osmium, real_file, real_files};
use crate::common::random::Random;
use crate::common::{is_long, run_ok, world};
use geo::Intersects;
use pbfhogg::geocode::{GeocodeIndex, QueryOptions};
use pbfhogg::{Location, ObjectKind};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The values of `highway` of streets.
const STREETS: &str = "motorway motorway_link trunk trunk_link primary primary_link secondary secondary_link tertiary \
                       tertiary_link unclassified residential living_street pedestrian service track footway path \
                       cycleway bridleway steps road busway";

pub fn built(input: &Path, directory: &Path) -> PathBuf {
    let index = directory.join("index");
    run_ok(&[
        &"build-geocode-index",
        &input,
        &"-O",
        &"--output-dir",
        &index,
    ]);
    index
}

fn degrees(place: Degrees) -> Location {
    Location::from_degrees(place[0], place[1]).unwrap()
}

/// The number of random places for each file.
fn places() -> usize {
    if is_long() { 100_000 } else { 200 }
}

/// The objects of a file that answers are made of.
struct Plain {
    /// How much distances may differ in metres, apart from the part that grows with them.
    tolerance: f64,
    things: Vec<Thing>,
    areas: Vec<Thing>,
    /// The house numbers of nodes.
    numbers: HashMap<i64, String>,
}

impl Plain {
    fn of(input: &Path) -> Self {
        Self::with_areas(input, osmium_areas(input), 2e-3)
    }

    fn with_areas(input: &Path, areas: Vec<Thing>, tolerance: f64) -> Self {
        let things = things(input);
        let numbers = things.iter().filter(|thing| thing.kind == ObjectKind::Node);
        let numbers = numbers.filter_map(|node| Some((node.id, node.tag("addr:housenumber")?)));
        Self {
            numbers: numbers
                .map(|(id, number)| (id, number.to_owned()))
                .collect(),
            tolerance,
            areas,
            things,
        }
    }

    /// A place that nobody knows, one near an object, or the corner of one.
    fn place(&self, random: &mut Random) -> Degrees {
        let thing = &self.things[random.below(self.things.len())];
        let line = &thing.lines[0];
        let corner = line[random.below(line.len())];
        let size = match random.below(10) {
            0 => 0.0,
            1 | 2 => 0.5,
            _ => 10f64.powf(-1.5 - random.fraction(5.0)),
        };
        let [lat, lon] = corner.map(|degrees| {
            let moved = degrees + random.fraction(2.0 * size) - size;
            (moved * 1e7).round() / 1e7
        });
        [
            lat.clamp(-90.0, 90.0),
            (lon + 540.0).rem_euclid(360.0) - 180.0,
        ]
        .map(|degrees| (degrees * 1e7).round() / 1e7)
    }
}

/// Compares answers about random places with a plain search: address, street, interpolation.
fn compare_with_plain_search(name: &str, plain: &Plain, index: &GeocodeIndex, random: &mut Random) {
    let relations = plain
        .areas
        .iter()
        .filter(|area| area.kind == ObjectKind::Relation);
    let all = plain.things.iter().chain(relations);
    let with = |key: &'static str| {
        let has = move |thing: &&Thing| thing.tags.contains_key(key);
        all.clone().filter(has)
    };
    let addresses = Bands::of(with("addr:housenumber"));
    let line = |thing: &Thing| Thing {
        is_area: false,
        ..thing.clone()
    };
    let ways = |key| with(key).filter(|thing| thing.kind == ObjectKind::Way);
    let is_street = |thing: &&Thing| {
        let is_kind = |highway: &str| STREETS.split(' ').any(|kind| kind == highway);
        let is_square = thing.tag("place") == Some("square");
        thing
            .tag("name")
            .is_some_and(|name| !name.trim().is_empty())
            && (thing.tag("highway").is_some_and(is_kind) || is_square)
    };
    let of_kind = |thing: &Thing| {
        let is_square = thing.tag("place") == Some("square") && thing.tag("highway").is_none();
        let is_area =
            thing.kind == ObjectKind::Relation || thing.tag("area") == Some("yes") || is_square;
        Thing {
            is_area: thing.is_area && is_area,
            ..thing.clone()
        }
    };
    let not_nodes = all.clone().filter(|thing| thing.kind != ObjectKind::Node);
    let streets: Vec<Thing> = not_nodes.filter(is_street).map(of_kind).collect();
    let streets = Bands::of(&streets);
    let interpolations = ways("addr:interpolation");
    let is_one = |thing: &&Thing| !thing.tags.contains_key("addr:housenumber");
    let interpolations: Vec<Thing> = interpolations.filter(is_one).map(line).collect();
    let bands = Bands::of(&interpolations);
    for _ in 0..places() {
        let place = plain.place(random);
        let answer = index.reverse(degrees(place), &QueryOptions::default());
        let answer = answer.unwrap();
        let found = &answer.nearest;
        let is_close = |a: f64, b: f64| (a - b).abs() < plain.tolerance + a * 1e-5;
        let objects = [
            (
                "address",
                found.address.as_ref().map(|near| near.object),
                &addresses,
            ),
            (
                "street",
                found.street.as_ref().map(|near| near.object),
                &streets,
            ),
            (
                "interpolation",
                found.interpolation.as_ref().map(|near| near.object),
                &bands,
            ),
        ];
        for (sort, found, things) in objects {
            // Something at a kilometre may count or not.
            let expected = things.nearest(place, 1000.5);
            match (found, expected) {
                (Some(found), Some((distance, _))) => assert!(
                    is_close(found.distance_m, distance),
                    "{name} {place:?} {sort}: {found:?}, {expected:?}"
                ),
                (None, Some((distance, _))) => {
                    assert!(distance > 999.5, "{name} {place:?} {sort}: {expected:?}")
                }
                (found, None) => assert!(found.is_none(), "{name} {place:?} {sort}: {found:?}"),
            }
        }
        if let Some(near) = &found.interpolation {
            let way = interpolations.iter().find(|way| way.id == near.object.id);
            let rule = way.unwrap().tag("addr:interpolation");
            let expected = interpolated(place, way.unwrap(), &plain.numbers);
            match &near.house_number {
                Some(number) if matches!(rule, Some("even" | "odd" | "all")) => {
                    // Those of the ends may have letters.
                    let number = number.trim_end_matches(|char: char| char.is_ascii_lowercase());
                    assert!(
                        expected.iter().any(|expected| expected == number),
                        "{name} {place:?}: {near:?}, {expected:?}"
                    );
                }
                // Numbers that do not fit the rule of the way give none.
                _ => {}
            }
        }
    }
}

#[test]
fn the_nearest_objects_are_those_of_a_plain_search() {
    if !osmium() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    for input in real_files() {
        let name = input.display().to_string();
        if name.ends_with(".osh.pbf") || name.contains("loc_on_ways") {
            continue;
        }
        let index = GeocodeIndex::open(&built(&input, directory.path())).unwrap();
        compare_with_plain_search(&name, &Plain::of(&input), &index, &mut random);
    }
}

/// A file with all of its nodes moved.
fn moved(input: &Path, output: &Path, map: impl Fn(f64, f64) -> (f64, f64)) {
    let text = String::from_utf8(run_ok(&[&"cat", &input, &"-f", &"opl"]).stdout).unwrap();
    let lines = text.lines().map(|line| {
        let Some((rest, y)) = line.rsplit_once(" y").filter(|_| line.starts_with('n')) else {
            return line.to_owned();
        };
        let (rest, x) = rest.rsplit_once(" x").unwrap();
        let (lat, lon) = map(y.parse().unwrap(), x.parse().unwrap());
        format!("{rest} x{lon:.7} y{lat:.7}")
    });
    let opl = output.with_extension("opl");
    std::fs::write(&opl, lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    run_ok(&[&"cat", &opl, &"-O", &"-o", &output]);
}

#[test]
fn the_nearest_objects_are_found_at_the_antimeridian_and_at_the_poles() {
    if !osmium() {
        return;
    }
    let input = real_file("monaco.osm.pbf");
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("moved.osm.pbf");
    let mut random = Random(2);
    let around = |lon: f64| (lon + 540.0).rem_euclid(360.0) - 180.0;
    for world in 0..4 {
        let map = |lat: f64, lon: f64| {
            // Monaco is from 7.41 to 7.44 degrees east, and from 43.72 to 43.75 degrees north.
            let (north, east) = (lat - 43.735, lon - 7.425);
            match world {
                0 => (lat, around(180.0 + east)),
                1 => (lat - 43.735, around(180.0 + east)),
                // All around a pole.
                2 => (90.0 - (north + 0.03).abs() * 0.5, around(east * 10_000.0)),
                _ => (-90.0 + (north + 0.03).abs() * 2.0, around(east * 8_000.0)),
            }
        };
        moved(&input, &output, map);
        let index = GeocodeIndex::open(&built(&output, directory.path())).unwrap();
        // osmium drops or turns inside out the areas across the antimeridian, so it makes them before they are moved.
        let plain = match world {
            0 | 1 => {
                let areas = osmium_areas(&input).into_iter();
                // The index has their parts. A corner at the cut is rounded to 1e-7 degree, which is 11 mm.
                Plain::with_areas(&output, areas.map(|area| area.moved(map)).collect(), 7e-3)
            }
            _ => Plain::of(&output),
        };
        compare_with_plain_search(&format!("world {world}"), &plain, &index, &mut random);
    }
}

#[test]
fn areas_are_the_polygons_of_osmium_that_hold_a_place() {
    if !osmium() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (mut random, mut held) = (Random(3), 0);
    for input in real_files() {
        let name = input.display().to_string();
        if name.ends_with(".osh.pbf") || name.contains("loc_on_ways") {
            continue;
        }
        let index = GeocodeIndex::open(&built(&input, directory.path())).unwrap();
        let plain = Plain::of(&input);
        let is_wanted = |area: &&Thing| {
            area.tag("boundary") == Some("administrative") && area.tag("name").is_some()
        };
        let areas = plain.areas.iter().filter(is_wanted);
        let areas: Vec<(&Thing, geo::MultiPolygon)> =
            areas.map(|area| (area, polygons(area))).collect();
        for _ in 0..places() / 10 {
            let place = plain.place(&mut random);
            let answer = index.reverse(degrees(place), &QueryOptions::default());
            let answer = answer.unwrap();
            let mut found: Vec<_> = answer
                .areas
                .iter()
                .map(|area| (area.object_kind, area.id))
                .collect();
            let point = geo::Point::new(place[1], place[0]);
            let holding = areas
                .iter()
                .filter(|(_, polygons)| polygons.intersects(&point));
            let mut expected: Vec<_> = holding.map(|(area, _)| (area.kind, area.id)).collect();
            let is_in_order = answer
                .areas
                .is_sorted_by_key(|area| area.admin_level.unwrap_or(u8::MAX));
            assert!(is_in_order, "{:?}", answer.areas);
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{name} {place:?}");
            held += found.len();
        }
    }
    assert!(held > places() / 20, "{held}");
}

/// The polygons of an area.
fn polygons(area: &Thing) -> geo::MultiPolygon {
    let ring = |line: &Vec<Degrees>| {
        geo::LineString::from_iter(line.iter().map(|[lat, lon]| (*lon, *lat)))
    };
    let mut lines = area.lines.iter().map(ring);
    let polygons = area.rings.iter().map(|count| {
        let outer = lines.next().unwrap();
        geo::Polygon::new(outer, lines.by_ref().take(count - 1).collect())
    });
    polygons.collect()
}

#[test]
fn each_house_of_a_synthetic_world_is_found_from_its_own_location() {
    let directory = tempfile::tempdir().unwrap();
    let input = world(
        directory.path(),
        if is_long() { "1000000" } else { "30000" },
    );
    let index = GeocodeIndex::open(&built(&input, directory.path())).unwrap();
    let all = things(&input);
    let numbered = |thing: &&Thing| thing.tags.contains_key("addr:housenumber");
    let addresses: Vec<&Thing> = all.iter().filter(numbered).collect();
    let bands = Bands::of(addresses.iter().copied());
    let mut houses = 0;
    for house in addresses.iter().filter(|thing| thing.is_area) {
        let outline = &house.lines[0];
        // The first corner is the south-western one, and the one before the last is north of it.
        let (south, west) = (outline[0][0], outline[0][1]);
        let (north, east) = (outline[outline.len() - 2][0], outline[1][1]);
        let place = [south + (north - south) / 4.0, west + (east - west) / 4.0];
        let place = place.map(|degrees| (degrees * 1e7).round() / 1e7);
        let answer = index
            .reverse(degrees(place), &QueryOptions::default())
            .unwrap();
        let near = answer.nearest.address.as_ref().unwrap();
        assert_eq!(near.object.distance_m, 0.0, "{house:?}");
        // Houses may overlap, and a node in a house may have its address.
        let around: Vec<&Thing> = bands.around(place, 100.0).collect();
        let holding = around.iter().copied();
        let holding = holding.filter(|other| other.is_area && distance(place, other) == 0.0);
        let holding: Vec<&Thing> = holding.collect();
        assert!(
            holding.iter().any(|other| other.id == house.id),
            "{house:?}"
        );
        let inside = around.iter().copied().filter(|node| {
            let at = node.lines[0][0];
            // A node on an edge of a house is in it; its distance is as exact as floating point numbers are.
            let holds = |house: &&Thing| distance(at, house) < 1e-6;
            node.kind == ObjectKind::Node && holding.iter().any(holds)
        });
        let mut possible: Vec<&Thing> = inside.collect();
        possible.extend(&holding);
        let has = |thing: &&Thing| {
            thing.tag("addr:housenumber") == answer.address.house_number.as_deref()
                && thing.tag("addr:street") == answer.address.street
                && thing
                    .tag("addr:postcode")
                    .is_none_or(|code| answer.address.postcode == Some(code))
        };
        assert!(possible.iter().any(has), "{house:?} {answer:?}");
        if let Some(city) = house.tag("addr:city") {
            assert_eq!(
                answer
                    .areas
                    .iter()
                    .map(|area| area.name)
                    .collect::<Vec<_>>(),
                [city]
            );
        }
        assert!(answer.address.city.is_some(), "{house:?}");
        houses += 1;
    }
    assert!(houses > 100, "{houses}");
}

/// Objects around locations, as OPL.
#[derive(Default)]
struct Sketch {
    nodes: Vec<String>,
    ways: Vec<String>,
}

impl Sketch {
    /// Adds a node some metres to the north and to the east of a location. Returns its id.
    fn node(&mut self, [lat, lon]: Degrees, [north, east]: [f64; 2], tags: &str) -> usize {
        let id = self.nodes.len() + 1;
        let (lat, lon) = (
            lat + north / 111_195.0,
            lon + east / 111_195.0 / lat.to_radians().cos(),
        );
        self.nodes
            .push(format!("n{id} v1 T{tags} x{lon:.7} y{lat:.7}"));
        id
    }

    fn way(&mut self, at: Degrees, corners: &[[f64; 2]], tags: &str) {
        let mut nodes: Vec<usize> = Vec::new();
        for (number, corner) in corners.iter().enumerate() {
            let same = corners
                .iter()
                .take(number)
                .position(|other| other == corner);
            let known = same.map(|same| nodes[same]);
            nodes.push(known.unwrap_or_else(|| self.node(at, *corner, "")));
        }
        self.way_of(&nodes, tags);
    }

    fn way_of(&mut self, nodes: &[usize], tags: &str) {
        let id = self.ways.len() + 1;
        let nodes: Vec<String> = nodes.iter().map(|node| format!("n{node}")).collect();
        self.ways
            .push(format!("w{id} v1 T{tags} N{}", nodes.join(",")));
    }
}

#[test]
fn an_address_is_composed_by_the_rules() {
    let mut sketch = Sketch::default();
    let square = |size: f64| {
        [
            [-size, -size],
            [-size, size],
            [size, size],
            [size, -size],
            [-size, -size],
        ]
    };
    let house =
        |street: &str, number: u32| format!("addr:street={street},addr:housenumber={number}");
    let street = |name: &str| format!("highway=residential,name={name}");
    let at = |number: u32| [50.0 + f64::from(number) / 10.0, 8.0];
    let mut cases: Vec<(u32, &str)> = Vec::new();
    let mut case = |label| {
        let number = cases.len() as u32;
        cases.push((number, label));
        at(number)
    };
    // A building is better than a node in it with another number.
    let place = case("A 1");
    sketch.way(place, &square(20.0), &house("A", 1));
    sketch.node(place, [15.0, 15.0], &house("A", 2));
    // Another building is nearer than a node.
    let place = case("A 1");
    sketch.way(place, &square(10.0), &house("A", 1));
    sketch.node(place, [15.0, 15.0], &house("A", 2));
    // A number belongs to its street: a nearer street has numbers of its own, or none.
    let place = case("Side 9");
    sketch.way(place, &[[5.0, -50.0], [5.0, 50.0]], &street("Side"));
    sketch.node(place, [-30.0, 0.0], &house("Main", 7));
    sketch.node(place, [0.0, 60.0], &house("Side", 9));
    let place = case("Side");
    sketch.way(place, &[[5.0, -50.0], [5.0, 50.0]], &street("Side"));
    sketch.node(place, [-30.0, 0.0], &house("Main", 7));
    sketch.node(place, [0.0, 90.0], &house("Side", 9));
    // A name in another language is no other street.
    let place = case("Rue 7");
    sketch.way(
        place,
        &[[5.0, -50.0], [5.0, 50.0]],
        &(street("Straat") + ",name:fr=Rue"),
    );
    sketch.node(place, [-30.0, 0.0], &house("Rue", 7));
    // A place stands for a street.
    let place = case("Hof 3");
    sketch.way(place, &[[5.0, -50.0], [5.0, 50.0]], &street("Side"));
    sketch.node(place, [-30.0, 0.0], "addr:place=Hof,addr:housenumber=3");
    // Numbers between numbers, by length: the way has nodes at 0, 60 and 80 metres, and the place is beside 40.
    let place = case("Long 6");
    let first = sketch.node(place, [5.0, -40.0], &house("Long", 2));
    let bend = sketch.node(place, [5.0, 20.0], "");
    let last = sketch.node(place, [5.0, 40.0], &house("Long", 10));
    sketch.way_of(&[first, bend, last], "addr:interpolation=even");
    // Too far from a house, near enough to a street.
    let place = case("Far, 12345");
    sketch.way(place, &[[500.0, -50.0], [500.0, 50.0]], &street("Far"));
    sketch.node(place, [100.0, 0.0], &house("Far", 1));
    sketch.way(
        place,
        &square(3000.0),
        "boundary=postal_code,postal_code=12345",
    );
    // A road without a name counts if nothing else does, and a place node where no boundary is.
    let place = case("L 7, Town");
    sketch.way(
        place,
        &[[9.0, -50.0], [9.0, 50.0]],
        "highway=secondary,ref=L%20%7",
    );
    sketch.node(place, [2000.0, 0.0], "place=hamlet,name=Hamlet");
    sketch.node(place, [3000.0, 0.0], "place=town,name=Town");
    // Boundaries of the levels, and the postcode of the address.
    let place = case("Home 5, Part, 999 Town, State, Land");
    sketch.node(
        place,
        [3.0, 0.0],
        &(house("Home", 5) + ",addr:postcode=999"),
    );
    for (level, name) in [
        (2, "Land"),
        (4, "State"),
        (6, "County"),
        (8, "Town"),
        (10, "Part"),
    ] {
        let tags = format!("boundary=administrative,admin_level={level},name={name}");
        sketch.way(place, &square(4000.0 - f64::from(level) * 100.0), &tags);
    }
    let place = case("nothing is known here");
    sketch.node(place, [2000.0, 0.0], &house("Home", 5));
    let directory = tempfile::tempdir().unwrap();
    let opl = directory.path().join("sketch.opl");
    std::fs::write(&opl, [sketch.nodes, sketch.ways].concat().join("\n") + "\n").unwrap();
    let index = built(&opl, directory.path());
    for (number, expected) in cases {
        let [lat, lon] = at(number).map(|degrees| degrees.to_string());
        let found = run_ok(&[&"geocode", &index, &lat, &lon]).stdout;
        let found = String::from_utf8(found).unwrap();
        let found = found.trim_end();
        assert_eq!(found, expected, "case {number}");
    }
}
