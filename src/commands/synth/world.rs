//! The world: the number of towns, their locations and id ranges, their mappers, and the days of changes.

use crate::commands::random::Random;
use crate::osm::ObjectKind;

/// The number of days on which objects change. No object changes on a later day.
pub(super) const DAYS: u32 = 400;

/// The time of the base, in seconds since 1970: 2026-01-01T00:00:00Z.
const BASE_TIME: i64 = 1_767_225_600;
const DAY_SECONDS: i64 = 86_400;

/// Returns the end of a day, in seconds since 1970; the time of the base for day 0.
pub(super) fn day_end(day: u32) -> i64 {
    BASE_TIME + i64::from(day) * DAY_SECONDS
}

/// The approximate number of objects in a town of full size.
const OBJECTS_PER_TOWN: u64 = 11_500;
/// The number of node ids that are reserved for each town in the base. For ways, an eighth of that number of ids is
/// reserved, and for relations a 64th.
const NODE_IDS_PER_TOWN: i64 = 1 << 17;
/// The number of node ids that are reserved for the nodes that one town creates on one day.
const NODE_IDS_PER_TOWN_AND_DAY: i64 = 1 << 13;

/// The change that happens to an object of the base during the days of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// The object never changes.
    Stays,
    /// The object gets a new version on the day with this number.
    Changes(u32),
    /// The object is deleted on the day with this number.
    Goes(u32),
    /// The object is a house and never changes, but another house is created in the same town on the day with this
    /// number.
    Neighbour(u32),
}

/// The parameters of a synthetic world.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) towns: u64,
    /// The number of city blocks along each side of a town, 1 to 12; fewer than 12 if the whole world is small.
    pub(super) size: u64,
}

impl World {
    pub(super) fn new(seed: u64, elements: u64) -> Self {
        // The number of objects in a town grows with the square of `size`, about 80 per city block.
        let size = (1..=12)
            .find(|size| size * size * 80 >= elements)
            .unwrap_or(12);
        Self {
            seed,
            towns: elements.div_ceil(OBJECTS_PER_TOWN).max(1),
            size,
        }
    }

    /// Returns the exclusive lower bound of the ids for objects of a kind in a town of the base.
    pub(super) const fn id_base(kind: ObjectKind, town: u64) -> i64 {
        id_count_of_kind(NODE_IDS_PER_TOWN, kind) * town as i64
    }

    /// Returns the exclusive lower bound of the ids for objects of a kind that a town creates on a day. These ids are
    /// above all ids of the base and of earlier days.
    pub(super) const fn created_id_base(&self, kind: ObjectKind, town: u64, day: u32) -> i64 {
        let base = Self::id_base(kind, self.towns);
        let before = (day as i64 - 1) * self.towns as i64 + town as i64;
        base + id_count_of_kind(NODE_IDS_PER_TOWN_AND_DAY, kind) * before
    }

    /// Returns the latitude and longitude of the south-western corner of a town, in 1e-7 degree. Fewer than 150 towns
    /// form a rough square; otherwise each row has 150 towns.
    pub(super) const fn corner_e7(&self, town: u64) -> (i32, i32) {
        let columns = match self.towns {
            0..150 => (self.towns * 2 / 3).isqrt() + 1,
            _ => 150,
        };
        let (row, column) = (town / columns, town % columns);
        // The latitudes repeat after 800 rows, so from town 120,000 on, towns lie on top of the first towns.
        (
            400_000_000 + (row % 800) as i32 * 350_000,
            -100_000_000 + column as i32 * 500_000,
        )
    }

    /// Returns the lifetime of the house with a given number in a town. The twelve houses of a group share the day of
    /// their changes, since mappers edit neighbouring houses together.
    pub(super) fn lifetime(&self, town: u64, number: u64) -> Lifetime {
        let mut group = Random::from_seed_parts(&[self.seed, 1, town, number / 12]);
        let day = 1 + group.draw_below(u64::from(DAYS)) as u32;
        match Random::from_seed_parts(&[self.seed, 2, town, number]).draw_below(20) {
            0..=4 => Lifetime::Changes(day),
            5 => Lifetime::Goes(day),
            6..=9 => Lifetime::Neighbour(day),
            _ => Lifetime::Stays,
        }
    }
}

const fn id_count_of_kind(nodes: i64, kind: ObjectKind) -> i64 {
    match kind {
        ObjectKind::Node => nodes,
        ObjectKind::Way => nodes / 8,
        ObjectKind::Relation => nodes / 64,
    }
}

/// A user who edits objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapper {
    pub(super) uid: i32,
    pub(super) name: String,
}

/// Draws one of 400 mappers; low numbers are more frequent than high ones.
pub(super) fn draw_mapper(random: &mut Random) -> Mapper {
    let number = random
        .draw_below(400)
        .min(random.draw_below(400))
        .min(random.draw_below(400));
    let mut named = Random::from_seed_parts(&[3, number]);
    let name = match number % 4 {
        0 => format!("{}_{number}", named.pick(&super::names::OWNERS)),
        1 => format!("mapper {number}"),
        2 => format!("{}{}", named.pick(&super::names::TOWN_FIRST), number),
        _ => format!("u{}", number * 7919),
    };
    Mapper {
        uid: 1000 + number as i32 * 37,
        name,
    }
}
