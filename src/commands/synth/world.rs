//! The world: how many towns there are, where they lie, who maps them, and what happens when.

use crate::commands::random::Random;
use crate::osm::ObjectKind;

/// Days after which the calendar of changes is through.
pub(super) const DAYS: u32 = 400;

/// 2026-01-01T00:00:00Z: the base is the world as of then.
const BASE_TIME: i64 = 1_767_225_600;
const DAY_SECONDS: i64 = 86_400;

/// When a day's changes are complete.
pub(super) fn day_ends(day: u32) -> i64 {
    BASE_TIME + i64::from(day) * DAY_SECONDS
}

/// Objects in a town of ordinary size, about.
const OBJECTS_PER_TOWN: u64 = 11_500;
/// Node ids set aside for each town; way and relation ids are an eighth and a 64th of it.
const NODE_IDS_PER_TOWN: i64 = 1 << 17;
/// Node ids set aside for what is created in one town on one day.
const NODE_IDS_PER_TOWN_AND_DAY: i64 = 1 << 13;

/// What happens to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    Stays,
    /// Gets a new version on that day.
    Changes(u32),
    /// Goes on that day.
    Goes(u32),
    /// Gets a neighbour on that day.
    Neighbour(u32),
}

/// A world without end, of which a number of towns is made.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) seed: u64,
    towns: u64,
    /// Streets in each direction of a town: smaller where the whole world is.
    pub(super) size: u64,
}

impl World {
    pub(super) fn new(seed: u64, elements: u64) -> Self {
        // A town of fewer objects has fewer streets: objects grow with their square.
        let size = (1..=12)
            .find(|size| size * size * 80 >= elements)
            .unwrap_or(12);
        Self {
            seed,
            towns: elements.div_ceil(OBJECTS_PER_TOWN).max(1),
            size,
        }
    }

    pub(super) const fn towns(&self) -> u64 {
        self.towns
    }

    /// The id before the first one of a town's objects.
    pub(super) const fn id_base(kind: ObjectKind, town: u64) -> i64 {
        per_kind(NODE_IDS_PER_TOWN, kind) * town as i64
    }

    /// The id before the first one of what is created in a town on a day: behind all of the base,
    /// and behind everything of the days before.
    pub(super) const fn created_id_base(&self, kind: ObjectKind, town: u64, day: u32) -> i64 {
        let base = Self::id_base(kind, self.towns);
        let before = (day as i64 - 1) * self.towns as i64 + town as i64;
        base + per_kind(NODE_IDS_PER_TOWN_AND_DAY, kind) * before
    }

    /// The south-western corner of a town, in 1e-7 degree: towns lie side by side, 150 in a row.
    pub(super) const fn corner_e7(town: u64) -> (i32, i32) {
        let (row, column) = (town / 150, town % 150);
        // Beyond some thousand rows the world begins again on top of itself.
        (
            400_000_000 + (row % 800) as i32 * 350_000,
            -100_000_000 + column as i32 * 500_000,
        )
    }

    /// What happens to the building or place with that number. Edits come in groups: whoever maps
    /// one house maps its neighbours on the same day.
    pub(super) fn fate(&self, town: u64, number: u64) -> Lifetime {
        let mut group = Random::of(&[self.seed, 1, town, number / 12]);
        let day = 1 + group.below(u64::from(DAYS)) as u32;
        match Random::of(&[self.seed, 2, town, number]).below(20) {
            0..=4 => Lifetime::Changes(day),
            5 => Lifetime::Goes(day),
            6..=9 => Lifetime::Neighbour(day),
            _ => Lifetime::Stays,
        }
    }
}

const fn per_kind(nodes: i64, kind: ObjectKind) -> i64 {
    match kind {
        ObjectKind::Node => nodes,
        ObjectKind::Way => nodes / 8,
        ObjectKind::Relation => nodes / 64,
    }
}

/// A mapper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapper {
    pub(super) uid: i32,
    pub(super) name: String,
}

/// One of some hundred mappers, the first ones more often than the last.
pub(super) fn mapper(random: &mut Random) -> Mapper {
    let number = random
        .below(400)
        .min(random.below(400))
        .min(random.below(400));
    let mut named = Random::of(&[3, number]);
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
