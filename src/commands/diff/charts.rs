//! The data of the charts that show the changes between two files.

use super::compare::DifferenceCounts;
use super::order;
use super::report::Report;
use super::side::{Side, have_same_tags};
use crate::commands::pages;
use crate::error::{FormatResult, Result};
use crate::file::BlobPass;
use crate::geometry::{CellCounts, Density};
use crate::osm::{Location, ObjectKind, TypeThenId, floor_e7, format_timestamp, id_rank};
use crate::pbf::{Block, Object, ObjectBody};
use crate::runtime::Context;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The maximum number of changed ways that are located by looking up a node. Further ways count in
/// [`Charts::ways_without_place`].
const MAX_PLACED_WAYS: usize = 4_000_000;
/// The maximum number of distinct keys, and of distinct users.
const MAX_NAMES: usize = 200_000;
/// The hours since 1970 in which new versions are counted. The range spans 230 years.
const HOURS: std::ops::Range<i64> = 0..230 * 366 * 24;
/// The maximum number of keys, and of users, on a page.
const LISTED: usize = 25;

/// The change of an object from the old to the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Created,
    Modified,
    Deleted,
}

/// The data of the charts of a comparison. Arrays of three numbers count created, modified and deleted objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Charts {
    /// The numbers of nodes and ways that changed, by grid cell. A way counts at the node in its middle.
    pub places: CellCounts,
    /// The numbers of changed ways without a known location. These ways have no nodes, their middle node is not in the
    /// file, or they exceed [`MAX_PLACED_WAYS`].
    pub ways_without_place: [u64; 3],
    /// The times up to which the old and the new file have all changes, according to their headers.
    pub dates: [Option<String>; 2],
    /// The bounding boxes of at most 2,000 blobs of the new file, as west, south, east and north in units of 1e-7
    /// degree.
    pub boxes: Vec<[i32; 4]>,
    /// The properties that differ between the versions of modified objects.
    pub edits: Edits,
    /// The times of the new versions.
    pub times: Times,
    /// The keys of the objects that changed.
    pub keys: Names,
    /// The users who made the new versions.
    pub users: Names,
}

/// The numbers of modified objects by the property that differs. An object may count several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(super) struct Edits {
    /// The number of nodes whose location changed.
    pub moved: u64,
    /// The number of objects whose tags changed.
    pub retagged: u64,
    /// The number of ways whose nodes changed.
    pub nodes_of_ways: u64,
    /// The number of relations whose members changed.
    pub members: u64,
    /// The number of ways whose stored locations count as different. By default, only the locations of nodes that
    /// neither file has are compared.
    pub relocated: u64,
    /// The number of objects that differ only in metadata.
    pub metadata_only: u64,
}

/// The new versions of created and modified objects by time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Times {
    /// The unit of time, which is `hour`, `day` or `month`.
    pub unit: &'static str,
    /// The first time, such as `2026-11`, `2026-11-24` or `2026-11-24T13`; `None` if no new version has a timestamp.
    pub first: Option<String>,
    /// The numbers of created and modified objects, for each time from the first to the last one.
    pub counts: Vec<[u64; 2]>,
}

/// The keys or the users with the most changed objects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(super) struct Names {
    /// The number of distinct names. Names beyond 200,000 are not counted.
    pub distinct: u64,
    /// The names with the most changed objects, in descending order. At most 25 are listed.
    pub top: Vec<NameCount>,
}

/// The numbers of changed objects with one key, or by one user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NameCount {
    /// The key, or the name of the user.
    pub key: String,
    /// The number of objects that changed.
    pub count: u64,
    /// The number of created objects.
    pub created: u64,
    /// The number of modified objects. For a key, counts only the objects in which the key was added or removed, or its
    /// value changed.
    pub modified: u64,
    /// The number of deleted objects.
    pub deleted: u64,
}

/// The counts from which the charts are made. They cover one shard, or all shards so far.
#[derive(Debug, Default)]
pub(super) struct ChangeCharts {
    places: Density<3>,
    /// The middle node and the change of each changed way without locations. The first list is for ways of the new
    /// file, the second for deleted ways.
    nodes: [Vec<(i64, Change)>; 2],
    ways_without_place: [u64; 3],
    edits: Edits,
    /// The numbers of created and modified objects, by hours since 1970.
    hours: BTreeMap<i64, [u64; 2]>,
    keys: HashMap<String, [u64; 3]>,
    users: HashMap<String, [u64; 3]>,
}

impl DifferenceCounts for ChangeCharts {
    const IS_WANTED: bool = true;

    fn add(&mut self, report: Report, old: &Side<'_>, new: &Side<'_>, is_relocated: bool) {
        let change = match report {
            Report::Same => return,
            Report::Right => Change::Created,
            Report::Left => Change::Deleted,
            Report::Different if !new.object.info.visible => Change::Deleted,
            Report::Different => Change::Modified,
        };
        let shown = match change {
            Change::Deleted => old,
            Change::Created | Change::Modified => new,
        };
        self.add_place(change, shown);
        if change == Change::Modified {
            self.edits.add(old, new, is_relocated);
        }
        let info = &new.object.info;
        let hour = info.timestamp.map(|time| time.div_euclid(3600));
        if change != Change::Deleted
            && let Some(hour) = hour.filter(|hour| HOURS.contains(hour))
        {
            let hour = self.hours.entry(hour).or_default();
            hour[usize::from(change == Change::Modified)] += 1;
        }
        if report != Report::Left
            && let Some(user) = info.user
        {
            count_name(&mut self.users, user, change);
        }
        self.add_keys(change, &shown.object, &old.object);
    }

    fn merge(&mut self, other: Self) {
        self.places.merge(&other.places);
        for (all, more) in self.nodes.iter_mut().zip(other.nodes) {
            let room = MAX_PLACED_WAYS.saturating_sub(all.len());
            for (_, change) in more.iter().skip(room) {
                self.ways_without_place[*change as usize] += 1;
            }
            all.extend(more.into_iter().take(room));
        }
        pages::add_counts(&mut self.ways_without_place, &other.ways_without_place);
        self.edits.merge(other.edits);
        for (hour, counts) in other.hours {
            pages::add_counts(self.hours.entry(hour).or_default(), &counts);
        }
        for (names, more) in [(&mut self.keys, other.keys), (&mut self.users, other.users)] {
            for (name, counts) in more {
                if names.len() < MAX_NAMES || names.contains_key(&name) {
                    pages::add_counts(names.entry(name).or_default(), &counts);
                }
            }
        }
    }
}

impl ChangeCharts {
    fn add_place(&mut self, change: Change, side: &Side<'_>) {
        match &side.object.body {
            ObjectBody::Node { .. } => {
                if let Some((lat, lon)) = side.nano_location {
                    self.add_location(change, (floor_e7(lat), floor_e7(lon)));
                }
            }
            ObjectBody::Way { refs, locations } => {
                let middle = refs.len() / 2;
                let located = locations.get(middle).copied().flatten();
                let nodes = &mut self.nodes[usize::from(change == Change::Deleted)];
                match (located, refs.get(middle)) {
                    (Some(location), _) => self.add_location(change, lat_lon_e7(location)),
                    (None, Some(node)) if nodes.len() < MAX_PLACED_WAYS => {
                        nodes.push((*node, change));
                    }
                    _ => self.ways_without_place[change as usize] += 1,
                }
            }
            ObjectBody::Relation { .. } => {}
        }
    }

    /// Adds an object at a location in units of 1e-7 degree, if the location is valid.
    fn add_location(&mut self, change: Change, (lat, lon): (i64, i64)) {
        if lat.abs() <= 900_000_000 && lon.abs() <= 1_800_000_000 {
            self.places.add(lat, lon, change as usize);
        }
    }

    /// Counts the keys of a created or deleted object. For a modified object, counts only the keys that differ from
    /// `old`: they were added or removed, or have another value.
    fn add_keys(&mut self, change: Change, object: &Object<'_>, old: &Object<'_>) {
        let is_modified = change == Change::Modified;
        for (key, value) in object.tags.iter() {
            if !is_modified || !old.tags.contains(&(*key, *value)) {
                count_name(&mut self.keys, key, change);
            }
        }
        if is_modified {
            let is_gone = |key: &str| !object.tags.iter().any(|(other, _)| *other == key);
            for (key, _) in old.tags.iter().filter(|(key, _)| is_gone(key)) {
                count_name(&mut self.keys, key, change);
            }
        }
    }

    /// Locates ways by looking up their middle nodes in both files, and makes the charts.
    pub(super) fn finish(mut self, sides: &[order::Side; 2], ctx: &Context) -> Result<Charts> {
        let [of_new, of_old] = std::mem::take(&mut self.nodes);
        let [old, new] = sides;
        for (nodes, side) in [(of_new, new), (of_old, old)] {
            self.locate_ways(nodes, side, ctx)?;
        }
        Ok(Charts {
            places: self.places.counts(),
            ways_without_place: self.ways_without_place,
            dates: [old, new].map(|side| {
                let time = side.file.header.replication_timestamp;
                time.map(format_timestamp)
            }),
            boxes: pages::sample_blob_boxes(&new.plan).0,
            edits: self.edits,
            times: Times::from_hourly_counts(&self.hours),
            keys: Names::of(self.keys),
            users: Names::of(self.users),
        })
    }

    /// Adds ways at the locations of their middle nodes, which are in `nodes`. Reads the blobs that may contain a node
    /// of `nodes`.
    fn locate_ways(
        &mut self,
        mut nodes: Vec<(i64, Change)>,
        side: &order::Side,
        ctx: &Context,
    ) -> Result<()> {
        nodes.sort_unstable_by_key(|(id, _)| id_rank(*id));
        let key = |(id, _): &(i64, Change)| (ObjectKind::Node, id_rank(*id));
        let within = |first: TypeThenId, last: TypeThenId| {
            let start = nodes.partition_point(|node| key(node) < first);
            let end = nodes.partition_point(|node| key(node) <= last);
            // A wrong index may give a blob a last id before its first id, and `end` is then less than `start`.
            &nodes[start..end.max(start)]
        };
        let wanted = side.plan.entries.iter().filter_map(|entry| {
            let holds_nodes = entry.kinds.contains(ObjectKind::Node);
            let (first, last) = entry.first_sort_key().zip(entry.last_sort_key())?;
            let has_wanted = holds_nodes && !within(first, last).is_empty();
            has_wanted.then_some(*entry)
        });
        let blobs: Vec<_> = wanted.collect();
        let mut placed = [0; 3];
        BlobPass::new("find places", &side.file.input, ctx)
            .with_memory_factor(2)
            .run(
                blobs,
                || (),
                |reader, (), entry| {
                    let ends = entry.first_sort_key().zip(entry.last_sort_key());
                    let nodes = ends.map_or(&[][..], |(first, last)| within(first, last));
                    let mut found = Vec::new();
                    reader.decode(&entry, |payload| {
                        find_node_locations(nodes, &Block::parse(payload)?, &mut found)
                    })?;
                    Ok(found)
                },
                |found| {
                    for (change, place) in found {
                        self.add_location(change, place);
                        placed[change as usize] += 1;
                    }
                    Ok(())
                },
            )?;
        let mut ways = [0u64; 3];
        nodes
            .iter()
            .for_each(|(_, change)| ways[*change as usize] += 1);
        for (without, (ways, placed)) in self
            .ways_without_place
            .iter_mut()
            .zip(ways.into_iter().zip(placed))
        {
            *without += ways.saturating_sub(placed);
        }
        Ok(())
    }
}

/// Appends to `found` the locations of those nodes of a block that are in `nodes`. `nodes` are in canonical order.
fn find_node_locations(
    nodes: &[(i64, Change)],
    block: &Block<'_>,
    found: &mut Vec<(Change, (i64, i64))>,
) -> FormatResult<()> {
    let units = block.units;
    block.for_each_stored_location(|id, (lat, lon), _| {
        let rank = id_rank(id);
        let start = nodes.partition_point(|(other, _)| id_rank(*other) < rank);
        let of_node = nodes.iter().skip(start);
        for (_, change) in of_node.take_while(|(other, _)| *other == id) {
            let place = (units.nano_lat(lat), units.nano_lon(lon));
            found.push((*change, (floor_e7(place.0), floor_e7(place.1))));
        }
    })
}

/// Returns the latitude and the longitude of a location in units of 1e-7 degree.
fn lat_lon_e7(location: Location) -> (i64, i64) {
    (location.lat_e7().into(), location.lon_e7().into())
}

/// Counts an object under a name, unless the name is new and there are already [`MAX_NAMES`] names.
fn count_name(names: &mut HashMap<String, [u64; 3]>, name: &str, change: Change) {
    if let Some(counts) = names.get_mut(name) {
        counts[change as usize] += 1;
    } else if names.len() < MAX_NAMES {
        let mut counts = [0; 3];
        counts[change as usize] = 1;
        names.insert(name.to_owned(), counts);
    }
}

impl Edits {
    fn add(&mut self, old: &Side<'_>, new: &Side<'_>, is_relocated: bool) {
        let is_moved = old.nano_location != new.nano_location;
        let (old, new) = (&old.object, &new.object);
        let is_retagged = !have_same_tags(&old.tags, &new.tags);
        let (other_nodes, other_members) = match (&old.body, &new.body) {
            (ObjectBody::Way { refs: one, .. }, ObjectBody::Way { refs: two, .. }) => {
                (one != two, false)
            }
            (ObjectBody::Relation { members: one }, ObjectBody::Relation { members: two }) => {
                (false, one != two)
            }
            _ => (false, false),
        };
        let only_metadata =
            !(is_moved || is_retagged || other_nodes || other_members || is_relocated);
        for (count, is_so) in [
            (&mut self.moved, is_moved),
            (&mut self.retagged, is_retagged),
            (&mut self.nodes_of_ways, other_nodes),
            (&mut self.members, other_members),
            (&mut self.relocated, is_relocated),
            (&mut self.metadata_only, only_metadata),
        ] {
            *count += u64::from(is_so);
        }
    }

    const fn merge(&mut self, other: Self) {
        self.moved += other.moved;
        self.retagged += other.retagged;
        self.nodes_of_ways += other.nodes_of_ways;
        self.members += other.members;
        self.relocated += other.relocated;
        self.metadata_only += other.metadata_only;
    }
}

impl Times {
    /// Groups the counts by time. The unit is the hour for a span of at most 96 hours, the day for at most 400 days,
    /// and the month otherwise.
    fn from_hourly_counts(hours: &BTreeMap<i64, [u64; 2]>) -> Self {
        let span = match (hours.keys().next(), hours.keys().next_back()) {
            (Some(first), Some(last)) => last - first,
            _ => 0,
        };
        let (unit, len) = match span {
            ..=96 => ("hour", "2026-11-24T13".len()),
            97..=9600 => ("day", "2026-11-24".len()),
            _ => ("month", "2026-11".len()),
        };
        let name = |hour: i64| {
            let mut text = format_timestamp(hour * 3600);
            text.truncate(len);
            text
        };
        let mut times = Self {
            unit,
            first: None,
            counts: Vec::new(),
        };
        let (mut last, mut next) = (None, None);
        for (hour, counts) in hours {
            // The chart also has columns for times without objects. So the loop visits every hour since the last hour
            // with objects.
            for between in next.unwrap_or(*hour)..=*hour {
                let time = name(between);
                if last.as_ref() != Some(&time) {
                    times.counts.push([0; 2]);
                    times.first.get_or_insert_with(|| time.clone());
                    last = Some(time);
                }
            }
            let column = times.counts.len() - 1;
            pages::add_counts(&mut times.counts[column], counts);
            next = Some(hour + 1);
        }
        times
    }
}

impl Names {
    /// Returns the names with the most changed objects.
    fn of(names: HashMap<String, [u64; 3]>) -> Self {
        let distinct = names.len() as u64;
        let counts = names
            .into_iter()
            .map(|(key, [created, modified, deleted])| NameCount {
                key,
                count: created + modified + deleted,
                created,
                modified,
                deleted,
            });
        let mut top: Vec<_> = counts.collect();
        top.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        top.truncate(LISTED);
        Self { distinct, top }
    }
}
