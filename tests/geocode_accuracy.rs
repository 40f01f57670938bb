//! `geocode`: how many addresses, streets and cities of the real files are answered as the data has them.
//!
//! `PBFHOGG_LONG=1 cargo test --test suite -- --nocapture geocode_accuracy` asks for all objects, and prints the figures
//! and what was not answered, by object and reason.

use crate::common::accuracy::{
    Labels, Layers, beside, city, degrees_of, inside, is_named, labels, middle, plain, rounded,
    text,
};
use crate::common::geocode::{Bands, Degrees, Thing, distance, osmium_areas, things};
use crate::common::is_long;
use crate::common::oracle::{osmium, real_files};
use crate::common::random::Random;
use crate::geocode::built;
use pbfhogg::geocode::{Answer, GeocodeIndex, QueryOptions};
use pbfhogg::{Location, ObjectKind};
use std::path::Path;

/// The number of objects of each sort that are asked for in each file.
fn most() -> usize {
    if is_long() { usize::MAX } else { 150 }
}

/// The number of places whose city is asked for in each file.
fn places() -> usize {
    if is_long() { 1000 } else { 60 }
}

/// The values of `highway` of streets.
const STREETS: &str = "motorway motorway_link trunk trunk_link primary primary_link secondary secondary_link tertiary \
                       tertiary_link unclassified residential living_street pedestrian service track footway path \
                       cycleway bridleway steps road busway";

/// The score of a sort of questions.
#[derive(Default)]
struct Score {
    asked: usize,
    right: usize,
    /// The objects that another answers for, since the place is nearer to it or in it.
    others: Vec<String>,
    /// The objects that a nearer street contradicts.
    contradicted: Vec<String>,
    /// The objects without a right answer and without a reason.
    wrong: Vec<String>,
}

impl Score {
    /// Counts an answer. `reason` says why another object may answer.
    fn count(&mut self, object: &str, is_right: bool, reason: impl FnOnce() -> Option<String>) {
        self.asked += 1;
        if is_right {
            self.right += 1;
            return;
        }
        match reason() {
            Some(reason) if reason.contains("the street") => {
                self.contradicted.push(format!("{object} {reason}"));
            }
            Some(reason) => self.others.push(format!("{object} {reason}")),
            None => self.wrong.push(object.to_owned()),
        }
    }

    /// The part of right answers among all, and among those for which no other object is nearer.
    fn percent(&self) -> [f64; 2] {
        let own = self.asked - self.others.len();
        [self.asked, own].map(|of| 100.0 * self.right as f64 / of.max(1) as f64)
    }

    fn print(&self, sort: &str) {
        let [of_all, of_own] = self.percent();
        println!(
            "  {sort}: {} of {} ({of_all:.2} %), {} nearer to others, without them {of_own:.2} %",
            self.right,
            self.asked,
            self.others.len(),
        );
        for line in self.others.iter().chain(&self.contradicted) {
            println!("    {line}");
        }
        for line in &self.wrong {
            println!("    {line}: WRONG");
        }
    }
}

/// A file, and its index.
struct Asked {
    index: GeocodeIndex,
    things: Vec<Thing>,
    areas: Vec<Thing>,
    labels: Labels,
}

impl Asked {
    fn of(input: &Path, directory: &Path) -> Self {
        let things = things(input);
        Self {
            index: GeocodeIndex::open(&built(input, directory)).unwrap(),
            areas: osmium_areas(input),
            labels: labels(input, &things),
            things,
        }
    }

    /// The nodes and ways, and the relations that are areas.
    fn all(&self) -> impl Iterator<Item = &Thing> + Clone {
        let is_relation = |area: &&Thing| area.kind == ObjectKind::Relation;
        self.things
            .iter()
            .chain(self.areas.iter().filter(is_relation))
    }

    fn answer(&self, [lat, lon]: Degrees) -> Answer<'_> {
        let place = Location::from_degrees(lat, lon).unwrap();
        let answer = self.index.reverse(place, &QueryOptions::default());
        answer.unwrap()
    }

    fn layers(&self) -> Layers<'_> {
        let has = |thing: &&Thing, key: &str| text(thing, key).is_some();
        let is_building = |thing: &&Thing| {
            thing.is_area && has(thing, "building") && !has(thing, "addr:housenumber")
        };
        Layers {
            addresses: Bands::of(self.all().filter(|thing| {
                ["addr:housenumber", "addr:housename"]
                    .iter()
                    .any(|key| has(thing, key))
            })),
            nodes: Bands::of(
                self.all().filter(|thing| {
                    thing.kind == ObjectKind::Node && has(thing, "addr:housenumber")
                }),
            ),
            streets: Bands::of(self.all().filter(is_street)),
            buildings: Bands::of(self.all().filter(is_building)),
            interpolations: Bands::of(self.all().filter(|thing| has(thing, "addr:interpolation"))),
        }
    }
}

fn name(thing: &Thing) -> String {
    format!("{} {}", thing.kind.name(), thing.id)
}

fn is_street(thing: &&Thing) -> bool {
    let highway = thing.tag("highway");
    let is_kind = highway.is_some_and(|kind| STREETS.split(' ').any(|street| street == kind));
    let is_square = thing.tag("place") == Some("square");
    thing.kind != ObjectKind::Node && text(thing, "name").is_some() && (is_kind || is_square)
}

/// Some of many things, evenly.
fn some(things: Vec<&Thing>) -> impl Iterator<Item = &Thing> {
    let step = things
        .len()
        .div_ceil(most().min(things.len()).max(1))
        .max(1);
    things.into_iter().step_by(step)
}

/// Whether an answer has the number and the street of an address.
fn has_address(answer: &Answer<'_>, address: &Thing, layers: &Layers<'_>) -> bool {
    let street = text(address, "addr:street");
    let found = answer.address.street.unwrap_or_default();
    let is_spelling = |street: &str| {
        let near = layers.streets.around(address.lines[0][0], 1000.0);
        let mut near = near.filter(|near| is_named(near, found));
        plain(found) == plain(street)
            || near.any(|near| is_named(near, street))
            || is_abbreviated(found, street)
    };
    answer.address.house_number.as_deref().map(str::trim) == text(address, "addr:housenumber")
        && street.is_none_or(is_spelling)
}

/// Whether names differ by abbreviations of words: Street and St, Boulevard and Blvd.
fn is_abbreviated(one: &str, other: &str) -> bool {
    let words = |name: &str| -> Vec<String> {
        let words = name.split(|char: char| !char.is_alphanumeric());
        words.map(plain).filter(|word| !word.is_empty()).collect()
    };
    let (one, other) = (words(one), words(other));
    let is_short = |long: &str, short: &str| {
        long.starts_with(short) || short.len() <= 4 && long.chars().next() == short.chars().next()
    };
    one.len() == other.len()
        && one
            .iter()
            .zip(&other)
            .all(|(one, other)| one == other || is_short(one, other) || is_short(other, one))
}

/// Addresses, asked for 5 m beside each towards its street.
fn addresses_beside(asked: &Asked, layers: &Layers<'_>) -> Score {
    let mut score = Score::default();
    let has = |thing: &&Thing| {
        text(thing, "addr:housenumber").is_some() && text(thing, "addr:street").is_some()
    };
    for address in some(asked.all().filter(has).collect()) {
        let Some(place) = beside(address, &layers.streets) else {
            continue;
        };
        let answer = asked.answer(place);
        let is_right = has_address(&answer, address, layers);
        let object = format!("{} at {} {}", name(address), place[0], place[1]);
        score.count(&object, is_right, || layers.other_at(place, address));
    }
    score
}

/// Areas with an address, asked for a place in them.
fn areas_from_within(asked: &Asked, layers: &Layers<'_>) -> Score {
    let mut score = Score::default();
    let has = |thing: &&Thing| thing.is_area && text(thing, "addr:housenumber").is_some();
    for area in some(asked.all().filter(has).collect()) {
        let Some(place) = inside(area) else {
            continue;
        };
        let answer = asked.answer(place);
        // A smaller area in this one, or a node in any of them, may have the number.
        let around: Vec<&Thing> = layers.addresses.around(place, 0.1).collect();
        let holding = around
            .iter()
            .filter(|of| of.is_area && distance(place, of) == 0.0);
        let holding: Vec<&Thing> = holding.copied().collect();
        let [south, west, north, east] = area.edges;
        let size = degrees_of(1.0).max(north - south).max(east - west);
        let near = layers.addresses.around(place, size / degrees_of(1.0) * 1.5);
        let mut nodes = near.filter(|node| {
            node.kind == ObjectKind::Node
                && holding
                    .iter()
                    .any(|of| distance(node.lines[0][0], of) < 0.01)
        });
        let is_number = |thing: &Thing| {
            text(thing, "addr:housenumber") == answer.address.house_number.as_deref().map(str::trim)
        };
        let is_right = holding.iter().any(|of| is_number(of)) || nodes.any(is_number);
        let object = format!("{} at {} {}", name(area), place[0], place[1]);
        score.count(&object, is_right, || None);
    }
    score
}

/// Streets, asked for their middles.
fn streets_at_their_middle(asked: &Asked, layers: &Layers<'_>) -> Score {
    let mut score = Score::default();
    for street in some(asked.all().filter(is_street).collect()) {
        let is_area = street.is_area && street.tag("area") == Some("yes");
        let within = Some(street).filter(|_| is_area).and_then(inside);
        let place = within.unwrap_or_else(|| middle(&street.lines[0]));
        let answer = asked.answer(place);
        let found = answer.address.street.unwrap_or_default();
        let own = text(street, "name").unwrap_or_default();
        let is_right = is_named(street, found) || is_abbreviated(found, own);
        let object = format!("{} at {} {}", name(street), place[0], place[1]);
        score.count(&object, is_right, || {
            let mut others = layers.streets.around(place, 0.1);
            let other =
                others.find(|other| distance(place, other) < 0.02 && is_named(other, found));
            if let Some(other) = other {
                return Some(format!("is on {}", name(other)));
            }
            let mut areas = layers.addresses.around(place, 0.1);
            let area = areas.find(|area| distance(place, area) == 0.0);
            let area = area.or_else(|| layers.building_at(place));
            area.map(|area| format!("is in {}", name(area)))
        });
    }
    score
}

/// Cities, asked for at random places, where boundaries or the address say which it is.
fn cities(asked: &Asked, random: &mut Random) -> Score {
    let mut score = Score::default();
    let is_boundary = |area: &&Thing| {
        area.tag("boundary") == Some("administrative") && area.tag("name").is_some()
    };
    let boundaries: Vec<&Thing> = asked.areas.iter().filter(is_boundary).collect();
    let boundaries = Bands::of(boundaries);
    for _ in 0..places() {
        let thing = &asked.things[random.below(asked.things.len())];
        let line = &thing.lines[0];
        let corner = line[random.below(line.len())];
        let place = rounded(corner.map(|at| at + random.fraction(0.004) - 0.002));
        let answer = asked.answer(place);
        let around = boundaries.around(place, 0.1);
        let around: Vec<&Thing> = around.filter(|area| distance(place, area) == 0.0).collect();
        let of_address = answer.object.and_then(|object| {
            let mut all = asked.all();
            let object = object.object;
            let own = all.find(|it| (it.kind, it.id) == (object.kind, object.id))?;
            text(own, "addr:city")
        });
        let by_boundary = city(&around, &asked.labels);
        let expected = of_address.or_else(|| by_boundary.and_then(|area| area.tag("name")));
        let Some(expected) = expected else {
            continue;
        };
        let is_right = answer.address.city == Some(expected);
        let object = format!(
            "{} {}: {:?} is not {expected}",
            place[0], place[1], answer.address.city
        );
        score.count(&object, is_right, || None);
    }
    score
}

#[test]
fn addresses_streets_and_cities_are_answered_as_the_data_has_them() {
    if !osmium() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(9);
    for input in real_files() {
        let file = input.file_name().unwrap().to_str().unwrap().to_owned();
        if file.ends_with(".osh.pbf") || file.contains("loc_on_ways") {
            continue;
        }
        let asked = Asked::of(&input, directory.path());
        let layers = asked.layers();
        let scores = [
            ("beside", addresses_beside(&asked, &layers)),
            ("within", areas_from_within(&asked, &layers)),
            ("streets", streets_at_their_middle(&asked, &layers)),
            ("cities", cities(&asked, &mut random)),
        ];
        println!("{file}");
        for (sort, score) in &scores {
            score.print(sort);
            assert!(score.wrong.is_empty(), "{file} {sort}: {:?}", score.wrong);
            assert!(score.asked > 5, "{file} {sort}: {}", score.asked);
            let [of_all, of_own] = score.percent();
            assert!(of_all > 75.0 && of_own > 98.5, "{file} {sort}");
        }
    }
}
