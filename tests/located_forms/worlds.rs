//! Small random worlds with awkward references, as the objects of a plain file.

use crate::common::answers::in_order;
use crate::common::random::Random;
use crate::common::{Kind, Object, Tags, is_long, node, relation, way, with_metadata};
use std::collections::{HashMap, HashSet};

/// Latitude and longitude in nanodegrees, as in the locations of a decoded way.
pub type Place = (i64, i64);

/// The place that files store for an unknown location.
pub const NOWHERE: Place = (i32::MAX as i64 * 100, i32::MAX as i64 * 100);

/// The units of 1e-7 degree in a degree.
const DEGREE: i64 = 10_000_000;

/// The latitudes and longitudes of towns in degrees: some are at a pole, or around the antimeridian.
const TOWNS: [(i64, i64); 6] = [
    (50, 10),
    (10, 180),
    (-33, -70),
    (90, 20),
    (-90, -120),
    (0, 0),
];

/// Ids of nodes that ways and relations refer to, and that no world has.
const ABSENT: [i64; 5] = [9001, 9002, -9003, 9_000_000_000_004, 1 << 61];

/// The objects of a plain file, in order.
#[derive(Debug, Clone)]
pub struct World {
    /// The objects. Ways have no locations.
    pub objects: Vec<Object>,
}

/// The worlds of a theme, each with its turn. Each theme has worlds of its own: a few in short runs; in long runs those
/// of all themes are two thousand.
pub fn worlds(theme: u64) -> impl Iterator<Item = (usize, World)> {
    let count = if is_long() { 72 } else { 4 };
    (0..count).map(move |turn| (turn, World::new(theme * 1000 + turn as u64)))
}

impl World {
    /// A random world of two towns.
    pub fn new(seed: u64) -> Self {
        let mut builder = Builder {
            random: Random(seed),
            objects: Vec::new(),
            serial: 0,
            town: (0, 0),
        };
        let first = builder.random.below(TOWNS.len());
        let step = 1 + builder.random.below(TOWNS.len() - 1);
        builder.build_town(TOWNS[first]);
        builder.build_town(TOWNS[(first + step) % TOWNS.len()]);
        Self {
            objects: in_order(builder.objects),
        }
    }

    /// The places of the nodes by id.
    pub fn places(&self) -> HashMap<i64, Place> {
        let nodes = self.of(Kind::Node);
        nodes
            .map(|node| (node.id, (node.lat_nano, node.lon_nano)))
            .collect()
    }

    /// The ids of the nodes that have tags or are members of relations.
    pub fn needed_nodes(&self) -> HashSet<i64> {
        let members = self.of(Kind::Relation).flat_map(|one| &one.members);
        let members = members.filter(|(kind, ..)| *kind == Kind::Node);
        let tagged = self.of(Kind::Node).filter(|node| !node.tags.is_empty());
        let tagged = tagged.map(|node| node.id);
        members.map(|(_, id, _)| *id).chain(tagged).collect()
    }

    /// The objects of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects
            .iter()
            .filter(move |object| object.kind == kind)
    }

    /// A random object of a kind for which a condition holds.
    pub fn any(
        &self,
        random: &mut Random,
        kind: Kind,
        is_wanted: impl Fn(&Object) -> bool,
    ) -> Option<Object> {
        let found: Vec<&Object> = self.of(kind).filter(|object| is_wanted(object)).collect();
        if found.is_empty() {
            return None;
        }
        Some(found[random.below(found.len())].clone())
    }
}

/// Adds the objects of a world.
struct Builder {
    random: Random,
    objects: Vec<Object>,
    /// The number of ids that were given.
    serial: i64,
    /// The centre of the current town in degrees.
    town: (i64, i64),
}

impl Builder {
    /// A new id: small, negative or large.
    fn new_id(&mut self) -> i64 {
        self.serial += 1;
        match self.serial % 13 {
            4 => -self.serial,
            7 => 14_000_000_000 + self.serial,
            11 => (1 << 40) + self.serial,
            _ => self.serial,
        }
    }

    /// Adds an object, in four of five cases with metadata. Returns its id.
    fn add(&mut self, object: Object) -> i64 {
        let id = object.id;
        let object = match self.random.below(5) {
            0 => object,
            turn => with_metadata(
                object,
                turn,
                1_600_000_000 + self.serial * 60,
                7 + turn,
                "mapper",
            ),
        };
        self.objects.push(object);
        id
    }

    /// Adds a node at a distance from the centre of the town in units of 1e-7 degree.
    fn add_node(&mut self, north: i64, east: i64, tags: Tags) -> i64 {
        let id = self.new_id();
        let lat = (self.town.0 * DEGREE + north).clamp(-90 * DEGREE, 90 * DEGREE);
        let lon = self.town.1 * DEGREE + east;
        let lon = if lon > 180 * DEGREE {
            lon - 360 * DEGREE
        } else {
            lon
        };
        self.add(node(id, lat, lon, tags))
    }

    fn add_way(&mut self, refs: &[i64], tags: Tags) -> i64 {
        let id = self.new_id();
        self.add(way(id, refs, tags))
    }

    fn add_relation(&mut self, members: &[(Kind, i64, &str)], tags: Tags) -> i64 {
        let id = self.new_id();
        self.add(relation(id, members, tags))
    }

    /// A distance from the centre of the town. Every fourth one is 0.
    fn distance(&mut self) -> i64 {
        match self.random.below(4) {
            0 => 0,
            _ => i64::from(self.random.between(-120_000, 120_000)),
        }
    }

    /// Adds the four corners of a square. `north` and `east` are those of one corner.
    fn add_corners(&mut self, north: i64, east: i64, size: i64) -> [i64; 4] {
        let ends = [(0, 0), (0, size), (size, size), (size, 0)];
        ends.map(|(up, right)| self.add_node(north + up, east + right, &[]))
    }

    fn build_town(&mut self, centre: (i64, i64)) {
        self.town = centre;
        let boundary = self.build_boundary();
        let house = self.build_house();
        let (used, unused) = self.build_nodes();
        let mut ways = self.build_streets(&used);
        ways.push(house);
        self.build_relations(&[used, unused].concat(), &ways, boundary);
    }

    /// Adds a boundary of two ways without nodes that have tags. Returns the id of the relation.
    fn build_boundary(&mut self) -> i64 {
        let [a, b, c, d] = self.add_corners(-150_000, -150_000, 300_000);
        let one = self.add_way(&[a, b, c], &[]);
        let two = self.add_way(&[c, d, a], &[("boundary", "administrative")]);
        let name = format!("Town {a}");
        let label = self.add_node(10, 10, &[("place", "village"), ("name", name.as_str())]);
        let members = [
            (Kind::Way, one, "outer"),
            (Kind::Way, two, "outer"),
            (Kind::Node, label, "label"),
        ];
        let tags = [
            ("type", "boundary"),
            ("boundary", "administrative"),
            ("admin_level", "8"),
            ("name", name.as_str()),
        ];
        self.add_relation(&members, &tags)
    }

    /// Adds a house, and a lake with an island. Returns the way of the house.
    fn build_house(&mut self) -> i64 {
        let (north, east) = (self.distance(), self.distance());
        let [a, b, c, d] = self.add_corners(north, east, 2_000);
        let number = self.serial.to_string();
        let tags = [
            ("building", "yes"),
            ("addr:housenumber", number.as_str()),
            ("addr:street", "Main Street"),
        ];
        let house = self.add_way(&[a, b, c, d, a], &tags);
        let [e, f, g, h] = self.add_corners(north + 5_000, east, 4_000);
        let outer = self.add_way(&[e, f, g, h, e], &[]);
        let [i, j, k, l] = self.add_corners(north + 6_000, east + 1_000, 2_000);
        let inner = self.add_way(&[i, j, k, l, i], &[("natural", "island")]);
        let members = [(Kind::Way, outer, "outer"), (Kind::Way, inner, "inner")];
        let tags = [("type", "multipolygon"), ("natural", "water")];
        self.add_relation(&members, &tags);
        house
    }

    /// Adds nodes. Returns the ids of those that ways may have, and of those that are in no way.
    fn build_nodes(&mut self) -> (Vec<i64>, Vec<i64>) {
        let (mut used, mut unused) = (Vec::new(), Vec::new());
        for number in 0..9 {
            let tags: Tags = match self.random.below(6) {
                0 => &[("amenity", "pub"), ("name", "Pub")],
                1 => &[("addr:housenumber", "7"), ("addr:street", "Main Street")],
                _ => &[],
            };
            let (north, east) = (self.distance(), self.distance());
            let id = self.add_node(north, east, tags);
            if number % 4 == 3 {
                unused.push(id);
            } else {
                used.push(id);
            }
        }
        (used, unused)
    }

    /// Adds ways that share nodes: with absent and repeated nodes, with one node or none, closed and open.
    fn build_streets(&mut self, nodes: &[i64]) -> Vec<i64> {
        let mut ways = Vec::new();
        for _ in 0..7 {
            let count = self.random.below(6_usize);
            let mut refs = Vec::new();
            for _ in 0..count {
                refs.push(nodes[self.random.below(nodes.len())]);
            }
            match self.random.below(6) {
                0 => refs.extend(refs.first().copied()),
                1 => refs.push(ABSENT[self.random.below(ABSENT.len())]),
                2 => refs.extend(refs.last().copied()),
                3 => refs.insert(0, ABSENT[self.random.below(ABSENT.len())]),
                _ => {}
            }
            let tags: Tags = match self.random.below(4) {
                0 => &[],
                1 => &[("highway", "path")],
                2 => &[("highway", "residential"), ("name", "Main Street")],
                _ => &[("highway", "residential"), ("name", "Side Street")],
            };
            ways.push(self.add_way(&refs, tags));
        }
        ways
    }

    /// Adds relations with random members, some of which are absent.
    fn build_relations(&mut self, nodes: &[i64], ways: &[i64], boundary: i64) {
        let mut relations = vec![boundary, 77_000];
        for _ in 0..4 {
            let mut members = Vec::new();
            for _ in 0..self.random.below(5) {
                members.push(match self.random.below(6) {
                    0 => (Kind::Node, nodes[self.random.below(nodes.len())], "stop"),
                    1 => (Kind::Node, ABSENT[self.random.below(ABSENT.len())], ""),
                    2 => (
                        Kind::Relation,
                        relations[self.random.below(relations.len())],
                        "",
                    ),
                    3 => (Kind::Way, 88_000, "outer"),
                    _ => (Kind::Way, ways[self.random.below(ways.len())], "outer"),
                });
            }
            let tags: Tags = match self.random.below(3) {
                0 => &[("type", "route"), ("route", "bus"), ("ref", "1")],
                1 => &[("type", "multipolygon"), ("landuse", "forest")],
                _ => &[],
            };
            relations.push(self.add_relation(&members, tags));
        }
    }
}
