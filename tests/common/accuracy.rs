//! A plain, slow check of the addresses of a file: where to ask for an object, and why another object answers.

use super::geocode::{Bands, Degrees, RADIUS, Thing, along, distance, on_plane};
use pbfhogg::{Element, ElementReader, ObjectKind};
use std::collections::HashMap;
use std::path::Path;

/// The distance in metres from an address to the place that is asked for.
const BESIDE: f64 = 5.0;
/// The distance in metres within which the street of an address is looked for.
const STREET_REACH: f64 = 500.0;

/// A name without case, punctuation and white space.
pub fn plain(name: &str) -> String {
    let letters = name.chars().filter(|char| char.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Whether a thing has a name, in any language.
pub fn is_named(thing: &Thing, name: &str) -> bool {
    let mut names = thing.tags.iter().filter(|(key, _)| key.contains("name"));
    names.any(|(_, of)| plain(of) == plain(name))
}

/// A tag of a thing, unless it is blank.
pub fn text<'t>(thing: &'t Thing, key: &str) -> Option<&'t str> {
    thing
        .tag(key)
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// The point of the lines of a thing that is nearest to a place, and its distance in metres.
fn nearest_point(place: Degrees, thing: &Thing) -> (f64, Degrees) {
    let mut best = (f64::INFINITY, place);
    let mut offer = |[x, y]: [f64; 2], at: Degrees| {
        let distance = x.hypot(y);
        if distance < best.0 {
            best = (distance, at);
        }
    };
    for line in &thing.lines {
        for at in line {
            offer(on_plane(place, *at), *at);
        }
        for pair in line.windows(2) {
            let ends = [on_plane(place, pair[0]), on_plane(place, pair[1])];
            let part = along(ends[0], ends[1]);
            offer(between(ends, part), between([pair[0], pair[1]], part));
        }
    }
    best
}

/// The point at a part of the way from one point to another.
fn between([from, to]: [[f64; 2]; 2], part: f64) -> [f64; 2] {
    [0, 1].map(|at| from[at] + part * (to[at] - from[at]))
}

/// The shortest line from a thing to another, by the corners of both, and its length in metres.
fn shortest(thing: &Thing, other: &Thing) -> (f64, [Degrees; 2]) {
    let mut best = (f64::INFINITY, [[0.0; 2]; 2]);
    for corner in thing.lines.iter().flatten() {
        let (distance, point) = nearest_point(*corner, other);
        if distance < best.0 {
            best = (distance, [*corner, point]);
        }
    }
    for corner in other.lines.iter().flatten() {
        let (distance, point) = nearest_point(*corner, thing);
        if distance < best.0 {
            best = (distance, [point, *corner]);
        }
    }
    best
}

/// The line from a place in an area to the nearest point of a street, from where it leaves the area, and its length.
fn from_front(area: &Thing, street: &Thing) -> (f64, [Degrees; 2]) {
    let Some(start) = inside(area) else {
        return shortest(area, street);
    };
    let (length, end) = nearest_point(start, street);
    let [x, y] = on_plane(start, end);
    let mut front: f64 = 0.0;
    for pair in area.lines.iter().flat_map(|line| line.windows(2)) {
        let [[ax, ay], [bx, by]] = [on_plane(start, pair[0]), on_plane(start, pair[1])];
        let (dx, dy) = (bx - ax, by - ay);
        let cross = x * dy - y * dx;
        if cross != 0.0 {
            let along_line = (ax * dy - ay * dx) / cross;
            let along_edge = (ax * y - ay * x) / cross;
            if (0.0..=1.0).contains(&along_edge) && (0.0..=1.0).contains(&along_line) {
                front = front.max(along_line);
            }
        }
    }
    let exit = between([start, end], front);
    (length * (1.0 - front), [exit, end])
}

/// The place 5 m beside an address towards its street, or nearer if the street is; `None` if the street is not near.
pub fn beside(address: &Thing, streets: &Bands<'_>) -> Option<Degrees> {
    let name = text(address, "addr:street")?;
    let corner = address.lines[0][0];
    let near = streets.around(corner, STREET_REACH);
    let own = near.filter(|street| is_named(street, name));
    let lines = own.map(|street| {
        if address.is_area {
            from_front(address, street)
        } else {
            shortest(address, street)
        }
    });
    let (length, ends) = lines.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let part = if length > 0.0 {
        (BESIDE / length).min(1.0)
    } else {
        0.0
    };
    Some(rounded(between(ends, part)))
}

/// Degrees as an index has them.
pub fn rounded(place: Degrees) -> Degrees {
    place.map(|degrees| (degrees * 1e7).round() / 1e7)
}

/// A place in an area: the middle of the longest piece of a line across it at one of several latitudes.
pub fn inside(area: &Thing) -> Option<Degrees> {
    let [south, _, north, _] = area.edges;
    let mut best: Option<(f64, Degrees)> = None;
    for step in 1..8 {
        let lat = south + (north - south) * (f64::from(step) / 8.0 + 0.013);
        let mut crossings: Vec<f64> = Vec::new();
        for pair in area.lines.iter().flat_map(|line| line.windows(2)) {
            let [from, to] = [pair[0], pair[1]];
            if (from[0] > lat) != (to[0] > lat) {
                let part = (lat - from[0]) / (to[0] - from[0]);
                crossings.push(between([from, to], part)[1]);
            }
        }
        crossings.sort_by(f64::total_cmp);
        for pair in crossings.chunks_exact(2) {
            let width = pair[1] - pair[0];
            if best.is_none_or(|(other, _)| width > other) {
                best = Some((width, [lat, f64::midpoint(pair[0], pair[1])]));
            }
        }
    }
    let place = rounded(best?.1);
    (distance(place, area) == 0.0).then_some(place)
}

/// The place at half of the length of a line.
pub fn middle(line: &[Degrees]) -> Degrees {
    let length = |pair: &[Degrees]| {
        let [x, y] = on_plane(pair[0], pair[1]);
        x.hypot(y)
    };
    let half = line.windows(2).map(length).sum::<f64>() / 2.0;
    let mut before = 0.0;
    for pair in line.windows(2) {
        let of_pair = length(pair);
        if before + of_pair >= half && of_pair > 0.0 {
            return rounded(between([pair[0], pair[1]], (half - before) / of_pair));
        }
        before += of_pair;
    }
    line[0]
}

/// Whether a house is the same as another: its number, and its street if both have one.
pub fn is_same_house(one: &Thing, other: &Thing) -> bool {
    let streets = [one, other].map(|thing| text(thing, "addr:street"));
    let is_same_street = match streets {
        [Some(one), Some(other)] => plain(one) == plain(other),
        _ => true,
    };
    is_same_street && text(one, "addr:housenumber") == text(other, "addr:housenumber")
}

/// The layers of a file in which the reasons for an answer are looked for.
pub struct Layers<'t> {
    pub addresses: Bands<'t>,
    pub streets: Bands<'t>,
    pub buildings: Bands<'t>,
    /// The nodes with a house number.
    pub nodes: Bands<'t>,
    pub interpolations: Bands<'t>,
}

impl Layers<'_> {
    /// A building around a place that has a numbered node, but no number.
    pub fn building_at(&self, place: Degrees) -> Option<&Thing> {
        let mut around = self.buildings.around(place, 0.1);
        around.find(|building| {
            let [south, west, north, east] = building.edges;
            let [x, y] = on_plane([south, west], [north, east]);
            let mut near = self.nodes.around(place, x.hypot(y));
            distance(place, building) == 0.0
                && near.any(|node| distance(node.lines[0][0], building) < 0.01)
        })
    }

    /// The reason why another address than `own` may answer at a place; `None` if `own` has to.
    pub fn other_at(&self, place: Degrees, own: &Thing) -> Option<String> {
        let name = |thing: &Thing| format!("{} {}", thing.kind.name(), thing.id);
        let own_distance = distance(place, own);
        let is_own = |other: &Thing| (other.kind, other.id) == (own.kind, own.id);
        for other in self.addresses.around(place, own_distance + 1.0) {
            let at = distance(place, other);
            if is_own(other) || at > own_distance + 1e-3 || is_same_house(own, other) {
                continue;
            }
            let sort = match (other.is_area, at == 0.0) {
                (true, true) => "is inside",
                _ if at > own_distance - 1e-3 => "has at the same distance",
                _ => "is nearer to",
            };
            return Some(format!("{sort} {}", name(other)));
        }
        // In an area with several numbered nodes, one of them answers beside it.
        for node in self.nodes.around(place, BESIDE) {
            let is_beside = own_distance == 0.0 && distance(place, node) <= BESIDE;
            if is_beside && !is_same_house(own, node) && distance(node.lines[0][0], own) < 0.01 {
                return Some(format!("is beside {} in it", name(node)));
            }
        }
        if let Some(building) = self.building_at(place) {
            return Some(format!("is inside the building {}", name(building)));
        }
        let street = text(own, "addr:street").unwrap_or_default();
        for other in self.streets.around(place, own_distance) {
            if distance(place, other) < own_distance && !is_named(other, street) {
                return Some(format!("is nearer to the street {}", name(other)));
            }
        }
        for other in self.interpolations.around(place, own_distance) {
            if distance(place, other) < own_distance {
                return Some(format!("is nearer to the interpolation {}", name(other)));
            }
        }
        None
    }
}

/// The places that name the boundaries of a file: by the id of the relation, role, kind and name.
pub type Labels = HashMap<i64, Vec<(String, String, String)>>;

/// Reads the nodes that are labels and centres of boundaries.
pub fn labels(path: &Path, things: &[Thing]) -> Labels {
    let nodes = things.iter().filter(|thing| thing.kind == ObjectKind::Node);
    let places = nodes.filter_map(|node| Some((node.id, (node.tag("place")?, node.tag("name")?))));
    let places: HashMap<i64, (&str, &str)> = places.collect();
    let mut labels = Labels::new();
    ElementReader::from_path(path)
        .unwrap()
        .for_each(|element| {
            let Element::Relation(relation) = element else {
                return;
            };
            for member in relation.members() {
                if member.kind == ObjectKind::Node
                    && matches!(member.role, "label" | "admin_centre")
                    && let Some((kind, name)) = places.get(&member.id)
                {
                    let of = labels.entry(relation.id()).or_default();
                    let [role, kind, name] = [member.role, *kind, *name].map(str::to_owned);
                    of.push((role, kind, name));
                }
            }
        })
        .unwrap();
    labels
}

/// The levels of municipalities in the countries of the real files, from the table in the wiki of OpenStreetMap.
const LEVELS: [(&str, &[u8]); 5] = [
    ("ad", &[7]),
    ("de", &[8]),
    ("fi", &[8]),
    ("pt", &[7]),
    ("us", &[8, 7]),
];

/// A boundary around a place, and the settlement that it is said to be.
struct Boundary<'t> {
    area: &'t Thing,
    level: u8,
    own: bool,
    label: bool,
    centre: bool,
    is_part: bool,
}

/// The boundary whose name is the city of a place, by the rules of the reference. `around` are the boundaries that
/// contain the place.
pub fn city<'t>(around: &[&'t Thing], labels: &Labels) -> Option<&'t Thing> {
    let is_city = |kind: &str| matches!(kind, "city" | "town" | "village");
    let is_no_city = |kind: &str| !is_city(kind) && kind != "municipality" && kind != "hamlet";
    let level = |area: &Thing| area.tag("admin_level").and_then(|level| level.parse().ok());
    let mut boundaries: Vec<Boundary<'t>> = Vec::new();
    for area in around {
        let Some(level) = level(area).filter(|level| *level > 2) else {
            continue;
        };
        let name = area.tag("name").unwrap_or_default();
        let none = Vec::new();
        let of = labels
            .get(&area.id)
            .filter(|_| area.kind == ObjectKind::Relation);
        let named = |wanted: &str| {
            let mut of = of.unwrap_or(&none).iter();
            let found = of.find(|(role, _, of)| role == wanted && plain(of) == plain(name));
            found.map(|(_, kind, _)| kind.clone())
        };
        let place = area.tag("place");
        let tags = [place, area.tag("linked_place"), area.tag("border_type")];
        let label = named("label");
        boundaries.push(Boundary {
            area,
            level,
            own: tags
                .iter()
                .flatten()
                .any(|kind| kind.split(';').any(is_city)),
            is_part: tags[..2].iter().flatten().any(|kind| is_no_city(kind))
                || place.is_none() && label.as_deref().is_some_and(is_no_city),
            label: label.as_deref().is_some_and(is_city),
            centre: named("admin_centre").is_some_and(|kind| is_city(&kind)),
        });
    }
    boundaries.sort_by_key(|boundary| std::cmp::Reverse(boundary.level));
    let country = around
        .iter()
        .find(|area| level(area) == Some(2))
        .and_then(|area| area.tag("ISO3166-1").or(area.tag("ISO3166-1:alpha2")))
        .or_else(|| {
            let mut codes = around.iter().filter_map(|area| area.tag("ISO3166-2"));
            codes.next().map(|code| &code[..2])
        });
    let country = country.map(str::to_lowercase);
    let of_country = LEVELS
        .iter()
        .find(|(code, _)| Some(*code) == country.as_deref());
    let levels = of_country.map_or(&[8, 7][..], |(_, levels)| levels);
    let municipality = levels.iter().find_map(|level| {
        let mut at = boundaries.iter();
        at.find(|area| area.level == *level && !area.is_part)
    });
    let is_above =
        |area: &&Boundary<'_>| municipality.is_none_or(|within| area.level <= within.level);
    let by_label = municipality.is_none() || country.is_none();
    let found = boundaries
        .iter()
        .filter(is_above)
        .find(|area| area.own || by_label && area.label);
    let found = found.or(municipality);
    let found = found.or_else(|| boundaries.iter().find(|area| area.centre && !area.is_part));
    found.map(|boundary| boundary.area)
}

/// Degrees of latitude for metres.
pub fn degrees_of(metres: f64) -> f64 {
    metres / RADIUS.to_radians()
}
