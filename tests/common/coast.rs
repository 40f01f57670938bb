//! Generated coasts, of which simple, slow code knows the land.

use super::random::Random;
use super::regions::{DEGREE, Place, degrees};
use std::path::{Path, PathBuf};

/// A world of islands, of lakes within islands, and of islands within lakes.
#[derive(Debug, Clone, Default)]
pub struct CoastWorld {
    /// The nodes, with their ids.
    pub nodes: Vec<(i64, Place)>,
    /// The ways: their ids and their nodes.
    pub ways: Vec<(i64, Vec<i64>)>,
    /// The rings with land on their left. They do not repeat their first place.
    pub rings: Vec<Vec<Place>>,
}

impl CoastWorld {
    /// Adds nodes. Returns their ids.
    pub fn add_nodes(&mut self, places: &[Place]) -> Vec<i64> {
        let first = self.nodes.len() as i64 + 1;
        let ids = first..first + places.len() as i64;
        self.nodes.extend(ids.clone().zip(places.iter().copied()));
        ids.collect()
    }

    /// Adds a way. Returns its id.
    pub fn add_way(&mut self, nodes: &[i64]) -> i64 {
        let id = self.ways.len() as i64 + 1;
        self.ways.push((id, nodes.to_vec()));
        id
    }

    /// Adds a ring with land on its left as one way. Returns the id of the way.
    pub fn add_ring(&mut self, places: &[Place]) -> i64 {
        self.rings.push(places.to_vec());
        let mut nodes = self.add_nodes(places);
        nodes.extend(nodes.first().copied());
        self.add_way(&nodes)
    }

    /// Adds a ring that is cut into several ways, which follow each other in no order.
    pub fn add_cut_ring(&mut self, places: &[Place], random: &mut Random) {
        self.rings.push(places.to_vec());
        let mut nodes = self.add_nodes(places);
        let turn = random.below(nodes.len());
        nodes.rotate_left(turn);
        nodes.extend(nodes.first().copied());
        let mut parts = Vec::new();
        while nodes.len() > 1 {
            let count = 1 + random.below(nodes.len() - 1);
            let rest = nodes.split_off(count);
            nodes.extend(rest.first().copied());
            parts.push(std::mem::replace(&mut nodes, rest));
        }
        while !parts.is_empty() {
            let part = parts.swap_remove(random.below(parts.len()));
            self.add_way(&part);
        }
    }

    /// A world of islands on a grid from (-`reach`, -`reach`) to (`reach`, `reach`) degrees, some with lakes, some of
    /// which have islands.
    pub fn generated(seed: u64, reach: i64, corners: usize) -> Self {
        let mut random = Random(seed);
        let mut world = Self::default();
        for lon in (-reach..reach).step_by(4) {
            for lat in (-reach..reach).step_by(4) {
                let centre = ((lon + 2) * 10_000_000, (lat + 2) * 10_000_000);
                for (level, radius) in [19_000_000, 9_000_000, 4_000_000].into_iter().enumerate() {
                    if random.below(5) == 0 {
                        break;
                    }
                    let mut ring = blob(centre, radius, corners, &mut random);
                    if level == 1 {
                        ring.reverse();
                    }
                    world.add_cut_ring(&ring, &mut random);
                }
            }
        }
        world
    }

    /// A generated world in which coastlines have problems: islands that are reversed, that touch at a node or along
    /// an edge, that have a gap of 110 metres or one of two degrees; Antarctica, and an island on both sides of
    /// the antimeridian.
    pub fn awkward(seed: u64) -> Self {
        let mut world = Self::generated(seed, 8, 9);
        let centre = |number: i64| ((35 * number - 140) * DEGREE, 40 * DEGREE);
        let island = |number: i64| square(centre(number), DEGREE);
        let beside = |number: i64, lon: i64, lat: i64, radius: i64| {
            let (centre_lon, centre_lat) = centre(number);
            square((centre_lon + lon, centre_lat + lat), radius)
        };
        let mut ring = island(0);
        ring.reverse();
        world.add_ring(&ring);
        let mut ring = island(1);
        ring.push((ring[0].0, ring[0].1 + 10_000));
        let nodes = world.add_nodes(&ring);
        world.add_way(&nodes);
        let nodes = world.add_nodes(&island(2));
        world.add_way(&nodes);
        world.add_ring(&island(3));
        world.add_ring(&beside(3, 2 * DEGREE, 2 * DEGREE, DEGREE));
        world.add_ring(&island(4));
        world.add_ring(&beside(4, 2 * DEGREE, 0, DEGREE));
        let at = |(lon, lat): (f64, f64)| ((lon * 1e7) as i64, (lat * 1e7) as i64);
        let south = [
            (180.0, -77.5),
            (100.0, -70.0),
            (0.0, -65.0),
            (-100.0, -70.0),
            (-180.0, -77.5),
        ];
        let nodes = world.add_nodes(&south.map(at));
        world.add_way(&nodes);
        for lon in [179.0, -180.0] {
            world.add_ring(
                &[
                    (lon, 60.0),
                    (lon + 1.0, 60.0),
                    (lon + 1.0, 61.0),
                    (lon, 61.0),
                ]
                .map(at),
            );
        }
        world
    }

    /// Whether the rings wind around a place, which must not be on one of them.
    pub fn has_land_at(&self, place: Place) -> bool {
        self.rings
            .iter()
            .map(|ring| winding(ring, place))
            .sum::<i64>()
            > 0
    }

    /// The objects as OPL.
    pub fn opl(&self) -> String {
        let mut text = String::new();
        for (id, (lon, lat)) in &self.nodes {
            text += &format!("n{id} v1 x{} y{}\n", degrees(*lon), degrees(*lat));
        }
        for (id, nodes) in &self.ways {
            let nodes: Vec<String> = nodes.iter().map(|node| format!("n{node}")).collect();
            text += &format!("w{id} v1 Tnatural=coastline N{}\n", nodes.join(","));
        }
        text
    }

    /// Writes the objects as OPL.
    pub fn write(&self, directory: &Path, name: &str) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, self.opl()).unwrap();
        path
    }
}

/// A counter-clockwise ring whose corners are at changing distances from its centre: between half the radius and the
/// whole.
pub fn blob((lon, lat): Place, radius: i64, corners: usize, random: &mut Random) -> Vec<Place> {
    let corner = |index: usize| {
        let angle = index as f64 / corners as f64 * std::f64::consts::TAU;
        let distance = radius as f64 * (0.55 + random.fraction(0.45));
        let (sin, cos) = angle.sin_cos();
        (lon + (cos * distance) as i64, lat + (sin * distance) as i64)
    };
    (0..corners).map(corner).collect()
}

/// A counter-clockwise square.
pub fn square((lon, lat): Place, radius: i64) -> Vec<Place> {
    let (west, east, south, north) = (lon - radius, lon + radius, lat - radius, lat + radius);
    vec![(west, south), (east, south), (east, north), (west, north)]
}

/// How often a ring winds around a place, by a ray to the east.
pub fn winding(ring: &[Place], (lon, lat): Place) -> i64 {
    let next = ring.iter().cycle().skip(1);
    let pairs = ring.iter().zip(next);
    let crossed = pairs.filter_map(|(from, to)| {
        let is_up = from.1 <= lat && to.1 > lat;
        let is_down = from.1 > lat && to.1 <= lat;
        let side = i128::from(to.0 - from.0) * i128::from(lat - from.1)
            - i128::from(to.1 - from.1) * i128::from(lon - from.0);
        match (is_up, is_down) {
            (true, _) if side > 0 => Some(1),
            (_, true) if side < 0 => Some(-1),
            _ => None,
        }
    });
    crossed.sum()
}

/// Twice the signed area of a ring.
pub fn doubled_area(ring: &[Place]) -> i128 {
    let next = ring.iter().cycle().skip(1);
    let wide = |place: &Place| (i128::from(place.0), i128::from(place.1));
    let products = ring.iter().zip(next).map(|(from, to)| {
        let (from, to) = (wide(from), wide(to));
        from.0 * to.1 - to.0 * from.1
    });
    products.sum()
}

/// How segments of two rings, or of one, may meet: only at corners that both have.
pub fn cross(one: [Place; 2], other: [Place; 2]) -> bool {
    let side = |[a, b]: [Place; 2], p: Place| {
        let left = i128::from(b.0 - a.0) * i128::from(p.1 - a.1);
        (left - i128::from(b.1 - a.1) * i128::from(p.0 - a.0)).signum()
    };
    let is_on = |segment: [Place; 2], p: Place| {
        let within = |a: i64, b: i64, v: i64| a.min(b) <= v && v <= a.max(b);
        side(segment, p) == 0
            && within(segment[0].0, segment[1].0, p.0)
            && within(segment[0].1, segment[1].1, p.1)
            && !segment.contains(&p)
    };
    let proper = side(one, other[0]) * side(one, other[1]) < 0
        && side(other, one[0]) * side(other, one[1]) < 0;
    let is_same = one == other || (one[0] == other[1] && one[1] == other[0]);
    proper
        || is_same
        || other.iter().any(|place| is_on(one, *place))
        || one.iter().any(|place| is_on(other, *place))
}
