//! A plain, slow reverse geocoder: it looks at every object.

use crate::common::run_ok;
use pbfhogg::{Element, ElementReader, Location, ObjectKind};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// The mean radius of the earth in metres.
pub const RADIUS: f64 = 6_371_008.8;

/// Degrees: latitude and longitude.
pub type Degrees = [f64; 2];

/// An object with a geometry.
#[derive(Debug, Clone)]
pub struct Thing {
    pub kind: ObjectKind,
    pub id: i64,
    pub lines: Vec<Vec<Degrees>>,
    /// Whether the lines are the rings of an area.
    pub is_area: bool,
    pub tags: HashMap<String, String>,
    /// The nodes of a way.
    pub nodes: Vec<i64>,
    /// The numbers of rings of the polygons of an area of osmium's.
    pub rings: Vec<usize>,
    /// South, west, north, east.
    pub edges: [f64; 4],
}

impl Thing {
    fn new(kind: ObjectKind, id: i64, lines: Vec<Vec<Degrees>>) -> Self {
        let corners = || lines.iter().flatten();
        let least = |at: usize| corners().map(|it| it[at]).fold(f64::INFINITY, f64::min);
        let most = |at: usize| corners().map(|it| it[at]).fold(f64::NEG_INFINITY, f64::max);
        Self {
            edges: [least(0), least(1), most(0), most(1)],
            kind,
            id,
            lines,
            is_area: false,
            tags: HashMap::new(),
            nodes: Vec::new(),
            rings: Vec::new(),
        }
    }

    /// The thing at other places.
    pub fn moved(self, map: impl Fn(f64, f64) -> (f64, f64)) -> Self {
        let place = |[lat, lon]: &Degrees| -> Degrees {
            let (lat, lon) = map(*lat, *lon);
            [lat, lon].map(|degrees| (degrees * 1e7).round() / 1e7)
        };
        let lines = self.lines.iter();
        let lines = lines.map(|line| line.iter().map(&place).collect());
        Self {
            is_area: self.is_area,
            tags: self.tags,
            nodes: self.nodes,
            rings: self.rings,
            ..Self::new(self.kind, self.id, lines.collect())
        }
    }

    pub fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).map(String::as_str)
    }

    /// Whether the thing may be within `metres` of a place.
    fn may_be_near(&self, place: Degrees, metres: f64) -> bool {
        let [south, west, north, east] = self.edges;
        let degree = RADIUS.to_radians();
        let is_polar = [south, north, place[0]].iter().any(|lat| lat.abs() > 80.0);
        if is_polar || east - west > 90.0 {
            return true;
        }
        let apart = |low: f64, high: f64, at: f64| (low - at).max(at - high).max(0.0);
        let turns = [place[1], place[1] - 360.0, place[1] + 360.0];
        let turns = turns.map(|lon| apart(west, east, lon));
        let narrowest = south.abs().max(north.abs()).max(place[0].abs());
        let across = turns.into_iter().fold(f64::INFINITY, f64::min);
        apart(south, north, place[0]) * degree <= metres * 1.01
            && across * degree * narrowest.to_radians().cos() <= metres * 1.01
    }
}

fn degrees_of(location: Location) -> Degrees {
    [location.lat_e7(), location.lon_e7()].map(|e7| f64::from(e7) / 1e7)
}

/// Tags without house numbers that say that there is none, and with a name for streets that have only other names.
fn as_meant(mut tags: HashMap<String, String>) -> HashMap<String, String> {
    let is_none = |number: &String| {
        let none = ["", "no", "none", "s/n", "s.n."];
        none.contains(&number.trim().to_lowercase().as_str())
    };
    if tags.get("addr:housenumber").is_some_and(is_none) {
        tags.remove("addr:housenumber");
    }
    let is_named = tags.get("name").is_some_and(|name| !name.trim().is_empty());
    if tags.contains_key("highway") && !is_named {
        let mut keys: Vec<&String> = tags.keys().collect();
        keys.sort();
        let is_language = |key: &str| {
            let language = key.strip_prefix("name:");
            language.is_some_and(|language| matches!(language.len(), 2 | 3))
        };
        let first = |is_wanted: &dyn Fn(&str) -> bool| {
            let key = keys.iter().find(|key| is_wanted(key))?;
            Some(tags[*key].clone())
        };
        let name = first(&|key| key == "official_name")
            .or_else(|| first(&|key| key == "loc_name"))
            .or_else(|| first(&|key| key == "alt_name"))
            .or_else(|| first(&|key| key == "int_name"))
            .or_else(|| first(&is_language));
        if let Some(name) = name {
            tags.insert("name".to_owned(), name);
        }
    }
    tags
}

/// The nodes with tags, and the ways, of a file with their locations. Ways of which a node is missing are left out.
pub fn things(path: &Path) -> Vec<Thing> {
    let mut locations: HashMap<i64, Degrees> = HashMap::new();
    let mut things = Vec::new();
    let tags_of = |element: &Element<'_>| -> HashMap<String, String> {
        let tags = element.tags();
        let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
        as_meant(tags.collect())
    };
    ElementReader::from_path(path)
        .unwrap()
        .for_each(|element| match &element {
            Element::Node(node) => {
                let Some(location) = node.location() else {
                    return;
                };
                let degrees = degrees_of(location);
                locations.insert(node.id(), degrees);
                let tags = tags_of(&element);
                if !tags.is_empty() {
                    let lines = vec![vec![degrees]];
                    let node = Thing::new(ObjectKind::Node, node.id(), lines);
                    things.push(Thing { tags, ..node });
                }
            }
            Element::Way(way) => {
                let nodes: Vec<i64> = way.refs().collect();
                let line = nodes.iter().map(|node| locations.get(node).copied());
                let line: Option<Vec<Degrees>> = line.collect();
                if let Some(line) = line.filter(|line| line.len() > 1) {
                    let is_area = line.len() > 3 && line.first() == line.last();
                    let way = Thing::new(ObjectKind::Way, way.id(), vec![line]);
                    things.push(Thing {
                        is_area,
                        nodes,
                        tags: tags_of(&element),
                        ..way
                    });
                }
            }
            Element::Relation(_) => {}
        })
        .unwrap();
    things
}

/// The areas of a file as osmium makes them: of relations and of closed ways.
pub fn osmium_areas(path: &Path) -> Vec<Thing> {
    // osmium wants order.
    let sorted = tempfile::Builder::new()
        .suffix(".osm.pbf")
        .tempfile()
        .unwrap();
    run_ok(&[&"sort", &path, &"-O", &"-o", &sorted.path()]);
    let output = Command::new("osmium")
        .args([
            "export",
            "-f",
            "geojsonseq",
            "-x",
            "print_record_separator=false",
        ])
        .args(["--geometry-types=polygon", "--add-unique-id=type_id"])
        .arg(sorted.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", path.display());
    let text = String::from_utf8(output.stdout).unwrap();
    let features = text.lines().filter(|line| !line.is_empty());
    features.map(area_of).collect()
}

fn area_of(line: &str) -> Thing {
    let feature: Value = serde_json::from_str(line).unwrap();
    let id = feature["id"].as_str().unwrap().strip_prefix('a').unwrap();
    let id: i64 = id.parse().unwrap();
    let kind = match id % 2 {
        0 => ObjectKind::Way,
        _ => ObjectKind::Relation,
    };
    let polygons: Vec<Vec<Vec<[f64; 2]>>> =
        serde_json::from_value(feature["geometry"]["coordinates"].clone()).unwrap();
    let counts = polygons.iter().map(Vec::len).collect();
    let rings = polygons.into_iter().flatten();
    let lines = rings.map(|ring| ring.into_iter().map(|[lon, lat]| [lat, lon]).collect());
    let tags = feature["properties"].as_object().unwrap();
    let tags = tags.iter();
    let tags = tags.map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()));
    Thing {
        is_area: true,
        rings: counts,
        tags: as_meant(tags.collect()),
        ..Thing::new(kind, id / 2, lines.collect())
    }
}

/// Things by bands of latitude, which they may reach into.
#[derive(Default)]
pub struct Bands<'t>(HashMap<i32, Vec<&'t Thing>>);

/// The height of a band in degrees.
const BAND: f64 = 0.01;

impl<'t> Bands<'t> {
    pub fn of(things: impl IntoIterator<Item = &'t Thing>) -> Self {
        let mut bands = Self::default();
        for thing in things {
            let [south, _, north, _] = thing.edges;
            for band in (south / BAND).floor() as i32..=(north / BAND).floor() as i32 {
                bands.0.entry(band).or_default().push(thing);
            }
        }
        bands
    }

    /// The things in the bands within a distance in metres. One in several bands may come more than once.
    pub fn around(&self, place: Degrees, metres: f64) -> impl Iterator<Item = &'t Thing> {
        let [low, high] = [-1.01, 1.01].map(|part| {
            let degrees = place[0] + part * metres / RADIUS.to_radians();
            (degrees / BAND).floor() as i32
        });
        let bands = (low..=high).filter_map(|band| self.0.get(&band));
        let things = bands.flatten().copied();
        things.filter(move |thing| thing.may_be_near(place, metres))
    }

    /// The nearest thing within a distance in metres, and its distance.
    pub fn nearest(&self, place: Degrees, metres: f64) -> Option<(f64, &'t Thing)> {
        let mut best = None;
        let mut limit = metres;
        for thing in self.around(place, metres) {
            if thing.may_be_near(place, limit) {
                let distance = distance(place, thing);
                if distance < limit || best.is_none() && distance <= limit {
                    limit = distance;
                    best = Some((distance, thing));
                }
            }
        }
        best
    }
}

/// The point of the unit sphere at a location.
fn on_sphere([lat, lon]: Degrees) -> [f64; 3] {
    let (lat, lon) = (lat.to_radians(), lon.to_radians());
    [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
}

/// The metres to the east and to the north of a place: by the formula of the middle latitude, and near the poles on the
/// plane that touches the earth there.
pub fn on_plane(place: Degrees, other: Degrees) -> [f64; 2] {
    if place[0].abs() < 85.0 {
        let middle = f64::midpoint(place[0], other[0]).to_radians();
        let around = (other[1] - place[1] + 540.0).rem_euclid(360.0) - 180.0;
        let [north, east] = [other[0] - place[0], around].map(f64::to_radians);
        return [RADIUS * east * middle.cos(), RADIUS * north];
    }
    let [p, q] = [on_sphere(place), on_sphere(other)];
    let (lat, lon) = (place[0].to_radians(), place[1].to_radians());
    let east = [-lon.sin(), lon.cos(), 0.0];
    let north = [-lat.sin() * lon.cos(), -lat.sin() * lon.sin(), lat.cos()];
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let (x, y) = (dot(q, east), dot(q, north));
    let across = x.hypot(y);
    let angle = across.atan2(dot(p, q));
    let scale = if across > 0.0 { angle / across } else { 0.0 };
    [x * scale * RADIUS, y * scale * RADIUS]
}

/// The distance in metres between a place and a thing; 0 inside of an area.
pub fn distance(place: Degrees, thing: &Thing) -> f64 {
    let (mut nearest, mut crossings) = (f64::INFINITY, 0);
    for line in &thing.lines {
        let corners: Vec<[f64; 2]> = line.iter().map(|at| on_plane(place, *at)).collect();
        if let Some([x, y]) = corners.first() {
            nearest = nearest.min(x.hypot(*y));
        }
        for pair in corners.windows(2) {
            let ([ax, ay], [bx, by]) = (pair[0], pair[1]);
            let (dx, dy) = (bx - ax, by - ay);
            let along = along(pair[0], pair[1]);
            nearest = nearest.min((ax + along * dx).hypot(ay + along * dy));
            if (ay > 0.0) != (by > 0.0) && ax - ay * dx / dy > 0.0 {
                crossings += 1;
            }
        }
    }
    if thing.is_area && crossings % 2 == 1 {
        return 0.0;
    }
    nearest
}

/// The part of a segment before the point of it that is nearest to the origin.
pub fn along([ax, ay]: [f64; 2], [bx, by]: [f64; 2]) -> f64 {
    let (dx, dy) = (bx - ax, by - ay);
    let length = dx * dx + dy * dy;
    if length > 0.0 {
        (-(ax * dx + ay * dy) / length).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// The house numbers that an interpolation way may have beside a place: two if the place is between two numbers.
pub fn interpolated(place: Degrees, way: &Thing, numbers: &HashMap<i64, String>) -> Vec<String> {
    let corners: Vec<[f64; 2]> = way.lines[0].iter().map(|at| on_plane(place, *at)).collect();
    let mut lengths = vec![0.0];
    let mut best = (f64::INFINITY, 0.0);
    for pair in corners.windows(2) {
        let ([ax, ay], [bx, by]) = (pair[0], pair[1]);
        let length = (bx - ax).hypot(by - ay);
        let part = along(pair[0], pair[1]);
        let distance = (ax + part * (bx - ax)).hypot(ay + part * (by - ay));
        let last = lengths[lengths.len() - 1];
        if distance < best.0 {
            best = (distance, last + part * length);
        }
        lengths.push(last + length);
    }
    let anchors = way.nodes.iter().zip(&lengths).filter_map(|(node, at)| {
        // A letter behind the number does not count.
        let number = numbers.get(node)?;
        let digits = number.strip_suffix(|char: char| char.is_ascii_alphabetic());
        let number: i64 = digits.unwrap_or(number).trim().parse().ok()?;
        Some((*at, number))
    });
    let anchors: Vec<(f64, i64)> = anchors.collect();
    let between = anchors
        .windows(2)
        .find(|pair| pair[0].0 <= best.1 && best.1 <= pair[1].0);
    let step = if way.tag("addr:interpolation") == Some("all") {
        1
    } else {
        2
    };
    let Some([(from, first), (to, last)]) = between else {
        return Vec::new();
    };
    let steps = (last - first) / step;
    let at = steps as f64 * (best.1 - from) / (to - from).max(1e-12);
    let number = |steps: f64| (first + steps as i64 * step).to_string();
    vec![number((at - 1e-6).round()), number((at + 1e-6).round())]
}
