//! Finds the boundaries that contain a city and have its name.
//!
//! The level of a boundary does not always show that the boundary is a municipality. Examples are a city state, a city
//! that is also a county, and a city that is divided into districts. Such a boundary is recognized by the place node of
//! the city. If several boundaries around a city have its name, only the one with the highest level counts. For
//! example, the boundary of a capital counts, but not a province with the same name around it. A boundary that contains
//! another city or town does not count, either.

use super::item::{RowItem, tag};
use super::layout::{Layer, layer_of};
use super::place_names::{names_in, normal_forms};
use super::row_parts::for_each_part;
use crate::error::{FormatError, FormatResult, Result};
use crate::geometry::{Edge, Enclosure, Extent, Point};
use crate::index::{SharedRows, SortedRows};
use crate::osm::ObjectKind;
use crate::runtime::Context;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::cmp::Reverse;
use std::fmt::Write;
use std::hash::BuildHasher;

/// The values of `place` of the nodes whose names are compared with the names of boundaries.
const CITIES: [&str; 2] = ["city", "town"];
/// The levels of boundaries that can be a city or a part of one.
const LEVELS: std::ops::RangeInclusive<u8> = 3..=11;
/// The smallest level that municipalities have in any country.
const MUNICIPALITIES: u8 = 5;

/// The place node of a city or town.
struct City {
    point: Point,
    id: i64,
    kind: &'static str,
    /// The hashes of the names, in ascending order.
    names: Vec<u64>,
}

/// A boundary that contains a city and has its name.
struct Namesake {
    /// The index of the city.
    city: usize,
    level: u8,
    boundary: (ObjectKind, i64),
    /// Whether the boundary contains no city or town with another name.
    is_alone: bool,
}

/// The boundaries that contain a city and have its name, with their values of [`NAMESAKE`](super::item::NAMESAKE).
#[derive(Debug, Default)]
pub(super) struct Namesakes {
    values: FxHashMap<(ObjectKind, i64), String>,
}

/// Returns the hashes of the normal forms of an object's names, in ascending order.
fn name_hashes(row: &RowItem<'_>) -> Vec<u64> {
    let names = names_in(&row.tags).flat_map(normal_forms);
    let mut hashes: Vec<u64> = names.map(|name| FxBuildHasher.hash_one(name)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Whether an area with the given rings contains a point. Points on an edge belong to the area.
fn holds(rings: &[Vec<Point>], place: Point) -> bool {
    let mut around = Enclosure::of(place);
    for ring in rings {
        for (from, to) in ring.iter().zip(ring.iter().skip(1)) {
            around.add(&Edge::new(*from, *to));
        }
    }
    around.holds()
}

/// Returns the city or town of a row of the layer of places.
fn city_of(row: &RowItem<'_>) -> Option<City> {
    let kind = tag(&row.tags, "place")?;
    let kind = CITIES.into_iter().find(|known| *known == kind)?;
    let point = *row.lines.as_slice().first()?.first()?;
    Some(City {
        point,
        id: row.id,
        kind,
        names: name_hashes(row),
    })
}

/// The boundaries around cities, divided into those with the name of the city and those with other names.
#[derive(Default)]
struct BoundaryFindings {
    namesakes: Vec<Namesake>,
    /// Each entry is the index of a city, and the level of a boundary that contains the city but has another name.
    others: Vec<(usize, u8)>,
}

impl BoundaryFindings {
    /// Adds a row of the layer of areas. `cities` must be in the order of their latitudes.
    fn add(&mut self, row: &RowItem<'_>, cities: &[City]) {
        let level = tag(&row.tags, "admin_level").and_then(|level| level.parse::<u8>().ok());
        let level = level.filter(|level| LEVELS.contains(level));
        let is_administrative = tag(&row.tags, "boundary") == Some("administrative");
        let rings = row.lines.as_slice();
        let extent = Extent::of(rings.iter().flatten());
        let (Some(level), Some(extent), true) = (level, extent, is_administrative) else {
            return;
        };
        let start = cities.partition_point(|city| city.point.lat_e7 < extent.low.lat_e7);
        let near = (start..).zip(&cities[start..]);
        let near = near.take_while(|(_, city)| city.point.lat_e7 <= extent.high.lat_e7);
        let near: Vec<(usize, &City)> = near.filter(|(_, city)| extent.holds(city.point)).collect();
        if near.is_empty() {
            return;
        }
        let names = name_hashes(row);
        let is_named = |city: &City| {
            city.names
                .iter()
                .any(|name| names.binary_search(name).is_ok())
        };
        let (mut named, others): (Vec<_>, Vec<_>) =
            near.into_iter().partition(|(_, city)| is_named(city));
        named.retain(|(_, city)| holds(rings, city.point));
        let mut others = others
            .into_iter()
            .filter(|(_, city)| holds(rings, city.point));
        let is_alone = if level >= MUNICIPALITIES {
            let before = self.others.len();
            self.others.extend(others.map(|(city, _)| (city, level)));
            self.others.len() == before
        } else {
            !named.is_empty() && others.next().is_none()
        };
        self.namesakes
            .extend(named.into_iter().map(|(city, _)| Namesake {
                city,
                level,
                boundary: (row.kind, row.id),
                is_alone,
            }));
    }
}

/// Returns the cities and towns in the rows of an index, in the order of their latitudes.
fn cities(sorted: &SortedRows, rows: u64, ctx: &Context) -> Result<Vec<City>> {
    let mut cities: Vec<City> = Vec::new();
    let read = |rows: &[u8]| RowItem::parse(rows).map(|row| city_of(&row));
    for_each_row(sorted, Layer::Places, rows, ctx, read, |city| {
        cities.extend(city);
    })?;
    cities.sort_unstable_by_key(|city| (city.point.lat_e7, city.point.lon_e7, city.id));
    Ok(cities)
}

/// Calls `read` with each row of a layer, on all threads. Calls `take` with the results, in the order of the rows.
/// `rows` is the approximate number of rows that are read together.
fn for_each_row<T: Send>(
    sorted: &SortedRows,
    layer: Layer,
    rows: u64,
    ctx: &Context,
    read: impl Fn(&[u8]) -> FormatResult<T> + Sync,
    mut take: impl FnMut(T),
) -> Result<()> {
    let mut ranges = sorted.ranges(rows);
    ranges.retain(|range| layer_of(range.keys.start) == Some(layer));
    let read = |_, rows: &SharedRows| rows.iter().map(&read).collect::<FormatResult<Vec<T>>>();
    let take = |found: Vec<T>| {
        found.into_iter().for_each(&mut take);
        Ok(())
    };
    for_each_part(layer.name(), sorted, ranges, read, take, ctx)
}

impl Namesakes {
    /// Searches the rows of an index for boundaries that contain a city and have its name. `rows` is the approximate
    /// number of rows that are read together.
    pub(super) fn find(sorted: &SortedRows, rows: u64, ctx: &Context) -> Result<Self> {
        let cities = cities(sorted, rows, ctx)?;
        let (mut namesakes, mut levels) = (Vec::new(), vec![0u16; cities.len()]);
        let read = |row: &[u8]| {
            let mut found = BoundaryFindings::default();
            found.add(&RowItem::parse(row)?, &cities);
            Ok::<_, FormatError>(found)
        };
        for_each_row(sorted, Layer::Areas, rows, ctx, read, |found| {
            namesakes.extend(found.namesakes);
            for (city, level) in found.others {
                levels[city] |= 1u16 << level;
            }
        })?;
        Ok(Self::of(namesakes, &cities, &levels))
    }

    /// Collects the values of the boundaries that are cities. `levels` has a set for each city: the levels of the
    /// boundaries that contain the city but have other names, one bit for each level.
    fn of(mut namesakes: Vec<Namesake>, cities: &[City], levels: &[u16]) -> Self {
        let mut found = Self::default();
        namesakes.sort_unstable_by_key(|namesake| {
            (namesake.city, Reverse(namesake.level), namesake.boundary)
        });
        for of_city in namesakes.chunk_by(|one, other| one.city == other.city) {
            let highest = of_city.first().map(|namesake| namesake.level);
            let own = of_city
                .iter()
                .filter(|namesake| Some(namesake.level) == highest && namesake.is_alone);
            for namesake in own {
                let mut value = cities[namesake.city].kind.to_owned();
                for level in LEVELS.filter(|level| levels[namesake.city] & 1u16 << *level != 0) {
                    let _ = write!(value, ";{level}");
                }
                found.values.entry(namesake.boundary).or_insert(value);
            }
        }
        found
    }

    /// Returns the value of [`NAMESAKE`](super::item::NAMESAKE) for an area.
    pub(super) fn namesake_value(&self, row: &RowItem<'_>) -> Option<&str> {
        self.values.get(&(row.kind, row.id)).map(String::as_str)
    }
}
