//! One town: a grid of streets with houses, points of interest, a park, a boundary and bus lines.

use super::names;
use super::world::{Lifetime, Mapper, World, day_end, draw_mapper};
use crate::commands::random::Random;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{Info, List, Member, Object, ObjectBody};
use std::borrow::Cow;

type Text = Cow<'static, str>;

/// A generated object, which owns its tags, refs and members. An [`Object`] borrows them.
#[derive(Debug, Clone)]
pub(super) struct SyntheticObject {
    pub(super) id: i64,
    pub(super) lifetime: Lifetime,
    version: u32,
    timestamp: i64,
    mapper: Mapper,
    tags: Vec<(&'static str, Text)>,
    body: SyntheticBody,
}

#[derive(Debug, Clone)]
enum SyntheticBody {
    /// The latitude and the longitude of a node, in 1e-7 degree.
    Node(i32, i32),
    /// The ids of the nodes of a way.
    Way(Vec<i64>),
    /// The kind, the id and the role of each member of a relation.
    Relation(Vec<(ObjectKind, i64, &'static str)>),
}

impl SyntheticObject {
    pub(super) const fn kind(&self) -> ObjectKind {
        match self.body {
            SyntheticBody::Node(..) => ObjectKind::Node,
            SyntheticBody::Way(_) => ObjectKind::Way,
            SyntheticBody::Relation(_) => ObjectKind::Relation,
        }
    }

    /// Calls `use_it` with the object as an [`Object`], which encoders accept.
    pub(super) fn with_object<T>(&self, use_it: impl FnOnce(&Object<'_>) -> T) -> T {
        let tags: Vec<(&str, &str)> = self
            .tags
            .iter()
            .map(|(key, value)| (*key, value.as_ref()))
            .collect();
        let members: Vec<Member<'_>> = match &self.body {
            SyntheticBody::Relation(members) => members
                .iter()
                .map(|&(kind, id, role)| Member { kind, id, role })
                .collect(),
            _ => Vec::new(),
        };
        use_it(&Object {
            id: self.id,
            info: Info {
                version: Some(self.version),
                timestamp: Some(self.timestamp),
                changeset: Some(self.changeset()),
                uid: Some(self.mapper.uid),
                user: Some(&self.mapper.name),
                visible: true,
            },
            tags: tags.into(),
            body: match &self.body {
                SyntheticBody::Node(lat_e7, lon_e7) => ObjectBody::Node {
                    location: Location::new(*lat_e7, *lon_e7),
                },
                SyntheticBody::Way(refs) => ObjectBody::Way {
                    refs: refs.into(),
                    locations: List::EMPTY,
                },
                SyntheticBody::Relation(_) => ObjectBody::Relation {
                    members: members.into(),
                },
            },
        })
    }

    /// Returns the id of the changeset, which grows with the timestamp.
    const fn changeset(&self) -> i64 {
        (self.timestamp - 1_200_000_000) / 5
    }

    /// Returns the object in its state at the end of a day; `None` if the object is deleted by then.
    fn into_end_of_day_state(mut self, day: u32) -> Option<Self> {
        match self.lifetime {
            Lifetime::Changes(changes) if changes <= day => {
                self.edit_on_day(changes);
                Some(self)
            }
            Lifetime::Goes(goes) if goes <= day => None,
            _ => Some(self),
        }
    }

    /// Turns the object into its next version, edited on `day`. Nodes are moved, ways and relations get a tag.
    pub(super) fn edit_on_day(&mut self, day: u32) {
        let mut random = Random::from_seed_parts(&[6, self.id as u64, u64::from(day)]);
        self.version += 1;
        self.timestamp = draw_time_on(day, &mut random);
        self.mapper = draw_mapper(&mut random);
        match &mut self.body {
            SyntheticBody::Node(lat_e7, lon_e7) => {
                *lat_e7 += random.draw_around_zero(40);
                *lon_e7 += random.draw_around_zero(40);
            }
            SyntheticBody::Way(_) | SyntheticBody::Relation(_) => {
                self.tags
                    .push(("check_date", format!("2026-day-{day}").into()));
            }
        }
    }

    /// Returns the deleted object for the change file of `day`, with the next version number and without tags.
    pub(super) fn into_deleted(mut self, day: u32) -> Self {
        let mut random = Random::from_seed_parts(&[7, self.id as u64, u64::from(day)]);
        self.version += 1;
        self.timestamp = draw_time_on(day, &mut random);
        self.mapper = draw_mapper(&mut random);
        self.tags.clear();
        self
    }
}

/// Draws a time on a day, in seconds since 1970.
fn draw_time_on(day: u32, random: &mut Random) -> i64 {
    day_end(day) - 1 - random.draw_below(86_000) as i64
}

/// The objects of a town in the base, each with the change that happens to it.
#[derive(Debug)]
pub(super) struct Town {
    number: u64,
    world: World,
    random: Random,
    name: String,
    /// The objects that were added so far, indexed by kind, in the order of their ids.
    made: [Vec<SyntheticObject>; 3],
    /// The last id that was assigned to an object, indexed by kind. Before the first object, it is [`World::id_base`].
    next_id: [i64; 3],
    /// The latitude and longitude of the south-western corner, in 1e-7 degree.
    corner_e7: (i32, i32),
    /// The height and the width of a city block, in 1e-7 degree.
    block_e7: (i32, i32),
}

/// The number of houses per city block.
const HOUSES: u64 = 11;

impl Town {
    pub(super) fn new(world: &World, number: u64) -> Self {
        let mut random = Random::from_seed_parts(&[world.seed, 4, number]);
        let first = random.pick(&names::TOWN_FIRST);
        let name = format!("{first}{}", random.pick(&names::TOWN_LAST));
        let mut town = Self {
            number,
            world: world.clone(),
            random,
            name,
            made: Default::default(),
            next_id: ObjectKind::ALL.map(|kind| World::id_base(kind, number)),
            corner_e7: world.corner_e7(number),
            block_e7: (14_000, 20_000),
        };
        town.build();
        town
    }

    /// Returns the objects of a kind that the town has in the base, in their state at the end of a day. Objects that
    /// the town creates later than the base are not included.
    pub(super) fn objects_at_end_of_day(
        mut self,
        kind: ObjectKind,
        day: u32,
    ) -> Vec<SyntheticObject> {
        let made = std::mem::take(&mut self.made[kind as usize]);
        made.into_iter()
            .filter_map(|object| object.into_end_of_day_state(day))
            .collect()
    }

    /// Returns all objects of the town in the base, in canonical order.
    pub(super) fn into_objects(self) -> impl Iterator<Item = SyntheticObject> {
        self.made.into_iter().flatten()
    }

    /// Returns the objects of a kind that the town creates on a day, in the order of their ids.
    pub(super) fn objects_created_on(&self, kind: ObjectKind, day: u32) -> Vec<SyntheticObject> {
        let houses = self.made[ObjectKind::Way as usize]
            .iter()
            .filter(|way| way.lifetime == Lifetime::Neighbour(day));
        let mut created = Vec::new();
        let mut node = self
            .world
            .created_id_base(ObjectKind::Node, self.number, day);
        let way = self
            .world
            .created_id_base(ObjectKind::Way, self.number, day);
        for (house, way) in houses.zip(way + 1..) {
            let mut random = Random::from_seed_parts(&[8, house.id as u64, u64::from(day)]);
            let (timestamp, mapper) = (draw_time_on(day, &mut random), draw_mapper(&mut random));
            let (lat, lon) =
                self.location(random.draw_below(100) as i32, random.draw_below(100) as i32);
            let mut corners = Vec::new();
            let make = |id, tags, body| {
                let mapper = mapper.clone();
                SyntheticObject {
                    id,
                    lifetime: Lifetime::Stays,
                    version: 1,
                    timestamp,
                    mapper,
                    tags,
                    body,
                }
            };
            for (north, east) in [(0, 0), (0, 900), (600, 900), (600, 0)] {
                node += 1;
                corners.push(node);
                let body = SyntheticBody::Node(lat + north, lon + east);
                created.extend((kind == ObjectKind::Node).then(|| make(node, Vec::new(), body)));
            }
            corners.push(corners[0]);
            let tags = vec![
                ("building", Text::Borrowed("yes")),
                ("source", "survey".into()),
            ];
            let body = SyntheticBody::Way(corners);
            created.extend((kind == ObjectKind::Way).then(|| make(way, tags, body)));
        }
        created
    }

    /// Returns the latitude and longitude, in 1e-7 degree, of a point on a grid that begins at the south-western
    /// corner.
    fn location(&self, north: i32, east: i32) -> (i32, i32) {
        (
            self.corner_e7.0 + north * 1000,
            self.corner_e7.1 + east * 1400,
        )
    }

    /// Adds an object with random metadata. Its id is larger than the last id of its kind. Returns the id.
    fn add(
        &mut self,
        lifetime: Lifetime,
        tags: Vec<(&'static str, Text)>,
        body: SyntheticBody,
    ) -> i64 {
        let kind = match body {
            SyntheticBody::Node(..) => ObjectKind::Node,
            SyntheticBody::Way(_) => ObjectKind::Way,
            SyntheticBody::Relation(_) => ObjectKind::Relation,
        };
        // Most ids are consecutive. Gaps imitate objects that were deleted long ago.
        let gap = if self.random.draw_bool(70) {
            1
        } else {
            1 + self.random.draw_below(12) as i64
        };
        let id = self.next_id[kind as usize] + gap;
        self.next_id[kind as usize] = id;
        let age = self.random.draw_below(500_000_000) as i64;
        let version = 1 + self
            .random
            .draw_below(12)
            .min(self.random.draw_below(12))
            .min(self.random.draw_below(12));
        let mapper = draw_mapper(&mut self.random);
        let timestamp = day_end(0) - 1 - age;
        let made = SyntheticObject {
            id,
            lifetime,
            version: version as u32,
            timestamp,
            mapper,
            tags,
            body,
        };
        self.made[kind as usize].push(made);
        id
    }

    fn add_node(
        &mut self,
        lifetime: Lifetime,
        lat: i32,
        lon: i32,
        tags: Vec<(&'static str, Text)>,
    ) -> i64 {
        self.add(lifetime, tags, SyntheticBody::Node(lat, lon))
    }

    /// Adds all objects of the town.
    fn build(&mut self) {
        let size = self.world.size.clamp(1, 12) as i32;
        let streets = self.add_streets(size);
        let mut houses = Vec::new();
        for row in 0..size {
            for column in 0..size {
                for house in 0..HOUSES {
                    let number = (row * size + column) as u64 * HOUSES + house;
                    houses.push(self.add_house(number, row, column, house as i32));
                    if self.random.draw_bool(60) {
                        self.add_point(row, column);
                    }
                }
            }
        }
        self.add_park(size);
        self.add_relations(size, &streets, &houses);
    }

    /// Adds the grid of streets. Returns the ids of their ways.
    fn add_streets(&mut self, size: i32) -> Vec<i64> {
        let (height, width) = self.block_e7;
        let mut crossings = Vec::new();
        for row in 0..=size {
            for column in 0..=size {
                let lat = self.corner_e7.0 + row * height + self.random.draw_around_zero(300);
                let lon = self.corner_e7.1 + column * width + self.random.draw_around_zero(300);
                let tags = match self.random.draw_below(12) {
                    0 => vec![("highway", "traffic_signals".into())],
                    1 => vec![("highway", "crossing".into()), ("crossing", "zebra".into())],
                    _ => Vec::new(),
                };
                crossings.push((self.add_node(Lifetime::Stays, lat, lon, tags), lat, lon));
            }
        }
        let at = |row: i32, column: i32| (row * (size + 1) + column) as usize;
        let mut ways = Vec::new();
        for line in 0..=size {
            let east: Vec<_> = (0..=size).map(|step| at(line, step)).collect();
            let north: Vec<_> = (0..=size).map(|step| at(step, line)).collect();
            for path in [east, north] {
                let stops: Vec<_> = path.iter().map(|&at| crossings[at]).collect();
                ways.push(self.add_street(&stops));
            }
        }
        ways
    }

    /// Adds a street through crossings, with four bends between neighbouring crossings. Returns the id of its way.
    fn add_street(&mut self, crossings: &[(i64, i32, i32)]) -> i64 {
        let mut refs = Vec::new();
        for pair in crossings.windows(2) {
            if let &[(from, lat, lon), (_, to_lat, to_lon)] = pair {
                refs.push(from);
                for bend in 1..5 {
                    let lat = lat + (to_lat - lat) / 5 * bend + self.random.draw_around_zero(150);
                    let lon = lon + (to_lon - lon) / 5 * bend + self.random.draw_around_zero(150);
                    refs.push(self.add_node(Lifetime::Stays, lat, lon, Vec::new()));
                }
            }
        }
        refs.push(crossings[crossings.len() - 1].0);
        let highway = self.random.pick(&names::HIGHWAYS);
        let mut tags = vec![
            ("highway", Text::Borrowed(highway)),
            ("name", self.street_name()),
        ];
        if self.random.draw_bool(50) {
            tags.push(("surface", self.random.pick(&names::SURFACES).into()));
        }
        if self.random.draw_bool(40) {
            tags.push((
                "maxspeed",
                if highway == "primary" { "50" } else { "30" }.into(),
            ));
        }
        if self.random.draw_bool(10) {
            tags.push(("oneway", "yes".into()));
        }
        self.add(Lifetime::Stays, tags, SyntheticBody::Way(refs))
    }

    fn street_name(&mut self) -> Text {
        let first = self.random.pick(&names::STREET_FIRST);
        format!("{first}{}", self.random.pick(&names::STREET_LAST)).into()
    }

    /// Adds a house and its corners, which change or are deleted on the same day as the house. Returns the id of its
    /// way.
    fn add_house(&mut self, number: u64, row: i32, column: i32, house: i32) -> i64 {
        // Every sixteenth house may become a member of a relation, so it must not be deleted.
        let lifetime = if number.is_multiple_of(16) {
            Lifetime::Stays
        } else {
            self.world.lifetime(self.number, number)
        };
        let corner_lifetime = match lifetime {
            Lifetime::Neighbour(_) => Lifetime::Stays,
            other => other,
        };
        let (height, width) = self.block_e7;
        let lat = self.corner_e7.0 + row * height + 1500 + (house / 4) * 4000;
        let lon = self.corner_e7.1 + column * width + 1500 + (house % 4) * 4500;
        let (lat, lon) = (
            lat + self.random.draw_around_zero(300),
            lon + self.random.draw_around_zero(300),
        );
        let (depth, length) = (
            800 + self.random.draw_around_zero(300),
            1500 + self.random.draw_around_zero(600),
        );
        let outline = if self.random.draw_bool(45) {
            vec![
                (0, 0),
                (0, length),
                (depth / 2, length),
                (depth / 2, length / 2),
                (depth, length / 2),
                (depth, 0),
            ]
        } else {
            vec![(0, 0), (0, length), (depth, length), (depth, 0)]
        };
        let mut refs: Vec<i64> = outline
            .into_iter()
            .map(|(north, east)| {
                self.add_node(corner_lifetime, lat + north, lon + east, Vec::new())
            })
            .collect();
        refs.push(refs[0]);
        let tags = self.house_tags(number);
        self.add(lifetime, tags, SyntheticBody::Way(refs))
    }

    fn house_tags(&mut self, number: u64) -> Vec<(&'static str, Text)> {
        let mut tags = vec![(
            "building",
            Text::Borrowed(self.random.pick(&names::BUILDINGS)),
        )];
        if self.random.draw_bool(55) {
            tags.push(("addr:street", self.street_name()));
            tags.push(("addr:housenumber", (1 + number % 140).to_string().into()));
            if self.random.draw_bool(70) {
                tags.push(("addr:city", self.name.clone().into()));
                tags.push((
                    "addr:postcode",
                    format!("{:05}", 10_000 + self.number % 89_999).into(),
                ));
            }
        }
        if self.random.draw_bool(20) {
            tags.push((
                "building:levels",
                (1 + self.random.draw_below(6)).to_string().into(),
            ));
        }
        tags
    }

    /// Adds a tagged node: a tree, a shop, an amenity or an address.
    fn add_point(&mut self, row: i32, column: i32) {
        let (height, width) = self.block_e7;
        let lat = self.corner_e7.0 + row * height + self.random.draw_below(height as u64) as i32;
        let lon = self.corner_e7.1 + column * width + self.random.draw_below(width as u64) as i32;
        let tags = match self.random.draw_below(10) {
            0..=3 => vec![("natural", "tree".into())],
            4 | 5 => {
                let shop = self.random.pick(&names::SHOPS);
                let owner = self.random.pick(&names::OWNERS);
                vec![
                    ("shop", shop.into()),
                    ("name", format!("{owner} & Söhne \"{shop}\"").into()),
                    ("opening_hours", "Mo-Fr 08:00-18:00; Sa 09:00-13:00".into()),
                ]
            }
            6..=8 => vec![("amenity", self.random.pick(&names::AMENITIES).into())],
            _ => vec![
                (
                    "addr:housenumber",
                    (1 + self.random.draw_below(140)).to_string().into(),
                ),
                ("addr:street", self.street_name()),
            ],
        };
        self.add_node(Lifetime::Stays, lat, lon, tags);
    }

    fn add_park(&mut self, size: i32) {
        let (height, width) = self.block_e7;
        let (lat, lon) = (self.corner_e7.0 - 4000, self.corner_e7.1 - 4000);
        let mut refs = Vec::new();
        for (north, east) in [(0, 0), (0, size * width), (2000, size * width), (2000, 0)] {
            refs.push(self.add_node(
                Lifetime::Stays,
                lat + north,
                lon + east + height / 8,
                Vec::new(),
            ));
        }
        refs.push(refs[0]);
        let tags = vec![("landuse", Text::Borrowed(self.random.pick(&names::LANDUSE)))];
        self.add(Lifetime::Stays, tags, SyntheticBody::Way(refs));
    }

    fn add_relations(&mut self, size: i32, streets: &[i64], houses: &[i64]) {
        let boundary = self.add_boundary(size);
        let mut tags = vec![
            ("type", Text::Borrowed("boundary")),
            ("boundary", "administrative".into()),
        ];
        tags.extend([
            ("admin_level", "8".into()),
            ("name", self.name.clone().into()),
        ]);
        let members = boundary
            .into_iter()
            .map(|way| (ObjectKind::Way, way, "outer"))
            .collect();
        self.add(Lifetime::Stays, tags, SyntheticBody::Relation(members));
        for line in 1..=4u64 {
            let mut members = Vec::new();
            for step in 0..3 {
                let at = (line as usize * 5 + step * 3) % streets.len();
                members.push((ObjectKind::Way, streets[at], ""));
                let (lat, lon) = self.location((at * 7 % 100) as i32, (line * 13 % 100) as i32);
                let stop = vec![("highway", "bus_stop".into()), ("name", self.street_name())];
                members.push((
                    ObjectKind::Node,
                    self.add_node(Lifetime::Stays, lat, lon, stop),
                    "stop",
                ));
            }
            let name = format!("Bus {line}: {}", self.name);
            let tags = vec![
                ("type", Text::Borrowed("route")),
                ("route", "bus".into()),
                ("ref", line.to_string().into()),
                ("name", name.into()),
            ];
            self.add(Lifetime::Stays, tags, SyntheticBody::Relation(members));
        }
        for house in houses.iter().step_by(16).copied().collect::<Vec<_>>() {
            if self.random.draw_bool(30) {
                let tags = vec![
                    ("type", Text::Borrowed("multipolygon")),
                    ("building", "yes".into()),
                ];
                let body = SyntheticBody::Relation(vec![(ObjectKind::Way, house, "outer")]);
                self.add(Lifetime::Stays, tags, body);
            }
        }
    }

    /// Adds the town's boundary as four ways, and returns their ids.
    fn add_boundary(&mut self, size: i32) -> Vec<i64> {
        let (height, width) = self.block_e7;
        let (south, west) = (self.corner_e7.0 - 6000, self.corner_e7.1 - 6000);
        let (north, east) = (south + size * height + 12_000, west + size * width + 12_000);
        let corners: Vec<i64> = [(south, west), (south, east), (north, east), (north, west)]
            .into_iter()
            .map(|(lat, lon)| self.add_node(Lifetime::Stays, lat, lon, Vec::new()))
            .collect();
        let next = corners.iter().cycle().skip(1);
        let sides: Vec<Vec<i64>> = corners
            .iter()
            .zip(next)
            .map(|(&a, &b)| vec![a, b])
            .collect();
        let tags = || {
            vec![
                ("boundary", "administrative".into()),
                ("admin_level", "8".into()),
            ]
        };
        sides
            .into_iter()
            .map(|refs| self.add(Lifetime::Stays, tags(), SyntheticBody::Way(refs)))
            .collect()
    }
}
