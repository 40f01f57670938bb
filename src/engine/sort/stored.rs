//! Compares the locations that the ways of several inputs store for nodes that the inputs may lack.

use crate::engine::scan::Scan;
use crate::engine::stored_locations::for_each_stored_location;
use crate::error::{FormatResult, Result};
use crate::file::{BlobPlan, PbfFile};
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{Block, WayNodes};
use crate::runtime::Context;
use rustc_hash::FxHashMap;

/// The maximum number of nodes whose locations are compared in one pass over the ways. A node takes about 80 bytes.
const NODES_PER_PASS: usize = 4 << 20;

/// An input whose ways may store locations of nodes that it does not have.
pub(super) struct LackingInput<'a> {
    pub file: &'a PbfFile,
    pub plan: &'a BlobPlan,
    /// The ids of the nodes of its ways.
    pub refs: IdSet,
}

/// The newest location that ways store for a node. Exists only if the ways disagree about the location of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewestLocation {
    pub location: Location,
    /// Whether two ways store different locations. Otherwise some ways store the location, and others none.
    pub contradicts: bool,
}

/// The age of a location that a way stores. Ages are compared field by field, in this order, and the greater age is
/// newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct StoredAge {
    /// The replication timestamp of the input, if all inputs have one.
    replication: i64,
    /// The timestamp of the way.
    timestamp: i64,
    /// The version of the way.
    version: i64,
    /// The index of the input.
    input: usize,
}

/// The locations that were found for a node so far.
struct Observed {
    newest: Option<Location>,
    age: StoredAge,
    differs: bool,
    contradicts: bool,
}

impl Observed {
    fn of(location: Option<Location>, age: StoredAge) -> Self {
        Self {
            newest: location,
            age,
            differs: false,
            contradicts: false,
        }
    }

    /// Adds a location that a way stores for the node. `age` is the age of the location.
    fn add(&mut self, location: Option<Location>, age: StoredAge) {
        self.differs |= location != self.newest;
        self.contradicts |=
            self.newest.is_some() && location.is_some_and(|_| location != self.newest);
        let is_newer = self.newest.is_none() || age > self.age;
        if location.is_some() && is_newer {
            (self.newest, self.age) = (location, age);
        }
    }
}

/// Returns the nodes to which ways of more than one input refer, and for which ways store different locations. Each
/// node has the newest of its locations.
pub(super) fn newest_locations(
    inputs: &[LackingInput<'_>],
    ctx: &Context,
) -> Result<FxHashMap<i64, NewestLocation>> {
    let mut found = FxHashMap::default();
    let shared = shared_ids(inputs);
    let mut ids = shared.ids().peekable();
    while ids.peek().is_some() {
        let wanted: IdSet = ids.by_ref().take(NODES_PER_PASS).collect();
        compare_stored_locations(inputs, &wanted, &mut found, ctx)?;
    }
    Ok(found)
}

/// Returns the ids that more than one input has.
fn shared_ids(inputs: &[LackingInput<'_>]) -> IdSet {
    let (mut all, mut shared) = (IdSet::default(), IdSet::default());
    for input in inputs {
        for id in input.refs.ids() {
            if !all.insert(id) {
                shared.insert(id);
            }
        }
    }
    shared
}

/// Reads the ways of all inputs. Adds to `found` those nodes of `wanted` for which ways store different locations.
fn compare_stored_locations(
    inputs: &[LackingInput<'_>],
    wanted: &IdSet,
    found: &mut FxHashMap<i64, NewestLocation>,
    ctx: &Context,
) -> Result<()> {
    let timestamps = inputs.iter();
    let timestamps = timestamps.map(|input| input.file.header.replication_timestamp);
    let timestamps: Option<Vec<i64>> = timestamps.collect();
    let mut observed: FxHashMap<i64, Observed> = FxHashMap::default();
    for (number, input) in inputs.iter().enumerate() {
        let age_of_input = StoredAge {
            replication: timestamps.as_ref().map_or(0, |all| all[number]),
            input: number,
            ..StoredAge::default()
        };
        Scan::without_strings("compare ways", input.file, input.plan, ctx).run(
            |entry| entry.kinds.contains(ObjectKind::Way),
            |_, block| stored_locations_in(block, wanted, age_of_input),
            |stored| {
                for (id, location, age) in stored {
                    let seen = observed.entry(id);
                    seen.and_modify(|seen| seen.add(location, age))
                        .or_insert_with(|| Observed::of(location, age));
                }
            },
        )?;
    }
    let differing = observed.into_iter().filter(|(_, seen)| seen.differs);
    found.extend(differing.filter_map(|(id, seen)| {
        let newest = NewestLocation {
            location: seen.newest?,
            contradicts: seen.contradicts,
        };
        Some((id, newest))
    }));
    Ok(())
}

/// Returns the locations that the ways of a block store for `wanted` nodes, with their ages. Ways that store no
/// location at all are left out.
fn stored_locations_in(
    block: &Block<'_>,
    wanted: &IdSet,
    age_of_input: StoredAge,
) -> FormatResult<Vec<(i64, Option<Location>, StoredAge)>> {
    let (nodes, mut stored) = (WayNodes::from_block(block)?, Vec::new());
    for_each_stored_location(block, &nodes, wanted, |way, id, location| {
        stored.push((way, id, location));
    })?;
    if stored.is_empty() {
        return Ok(Vec::new());
    }
    let ages = ages_of_ways(block, age_of_input)?;
    let age_of = |way: usize| ages.get(way).copied().unwrap_or(age_of_input);
    let stored = stored.into_iter();
    Ok(stored
        .map(|(way, id, location)| (id, location, age_of(way)))
        .collect())
}

/// Returns the ages of all ways of a block, in the order of the ways.
fn ages_of_ways(block: &Block<'_>, age_of_input: StoredAge) -> FormatResult<Vec<StoredAge>> {
    let (mut ages, mut objects) = (Vec::new(), block.walk());
    while let Some(key) = objects.next_sort_key()? {
        if key.0 == ObjectKind::Way {
            let info = objects.version_info()?;
            ages.push(StoredAge {
                timestamp: block.units.seconds(info.timestamp),
                version: info.version,
                ..age_of_input
            });
        }
    }
    Ok(ages)
}
