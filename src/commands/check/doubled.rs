//! Finds nodes and ways that are in the file twice under different ids, and keys that an object has twice.

use super::areas::degrees;
use super::problem_file::ProblemWriter;
use crate::area::WayStore;
use crate::engine::geometry_pass::{
    GeometryPass, LocationsInWays, Visitor, Visits, point_on_earth,
};
use crate::engine::way_locations::{IndexType, LocateOptions};
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::file::PbfFile;
use crate::geometry::Point;
use crate::index::{KeyBits, RowBatch, RowLimits, RowSorter};
use crate::osm::{Location, ObjectKind, id_from_rank, id_rank};
use crate::pbf::{Block, Info, Relation, Way};
use crate::runtime::Context;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use twox_hash::XxHash3_64;

/// The memory limits for sorting objects by the hashes of their contents.
const LIMITS: RowLimits = RowLimits::new(32 << 20, 48 << 20);
/// The sort keys are hashes of 63 bits. The sorter counts the keys by their 16 highest bits.
const KEY: KeyBits = KeyBits::new(47, 63);
/// The number of bytes of rows that are read at a time.
const READ_MEMORY: usize = 24 << 20;
/// The number of findings that a worker collects before it sends them.
const FINDINGS: usize = 1 << 10;

/// The result of a search for doubled objects and keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DoubledCheck {
    /// The number of nodes that have the location and the tags of another node. Of such equal nodes, the one with the
    /// lowest id does not count.
    pub nodes: u64,
    /// The number of ways that have the tags and, in either direction, the line of another way. Of such equal ways, the
    /// one with the lowest id does not count.
    pub ways: u64,
    /// The number of keys that occur more than once in an object, summed over all objects.
    pub keys: u64,
    /// The first findings by kind and id: at most [`Options::max_listed`](super::Options::max_listed) doubled objects,
    /// then at most as many repeated keys.
    pub listed: Vec<DoubledObject>,
}

impl DoubledCheck {
    /// Returns the number of findings.
    pub fn total(&self) -> u64 {
        self.nodes + self.ways + self.keys
    }
}

/// A node or way that is the same as another one, or an object that has a key twice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DoubledObject {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The id of the object with the same kind, location and tags; `None` if the finding is a repeated key.
    pub same_as: Option<i64>,
    /// The key that the object has more than once; `None` if the finding is a doubled object.
    pub key: Option<String>,
    /// The latitude in degrees of the node, or of the first node of the way; `None` if it is not known.
    pub lat: Option<f64>,
    /// The longitude in degrees.
    pub lon: Option<f64>,
    #[serde(skip)]
    point: Option<Point>,
}

impl DoubledObject {
    fn new(kind: ObjectKind, id: i64, point: Option<Point>) -> Self {
        Self {
            kind,
            id,
            same_as: None,
            key: None,
            lat: point.map(|point| degrees(point.lat_e7)),
            lon: point.map(|point| degrees(point.lon_e7)),
            point,
        }
    }

    /// Writes the finding, if it has a location.
    fn write(&self, writer: &mut ProblemWriter) -> Result<()> {
        let Some(point) = self.point else {
            return Ok(());
        };
        let (problem, name, value) = match (&self.key, self.same_as) {
            (Some(key), _) => ("doubled_key", "key", key.clone()),
            (None, Some(id)) => (DOUBLED[self.kind as usize], "same_as", id.to_string()),
            (None, None) => return Ok(()),
        };
        let properties = [("problem", problem), (name, &value)];
        writer.put((self.kind, self.id), &properties, point, &[])
    }
}

/// The names of the problems in the file of problems, indexed by the kind of the doubled object.
const DOUBLED: [&str; 3] = ["doubled_node", "doubled_way", "doubled_relation"];

/// Searches a file for doubled objects and keys. Lists at most `max_listed` objects and as many keys. Writes all
/// findings with a location to `file_of_problems`.
pub(super) fn check(
    file: &PbfFile,
    max_listed: usize,
    mut file_of_problems: Option<&mut ProblemWriter>,
    ctx: &Context,
) -> Result<DoubledCheck> {
    let directory = std::env::temp_dir();
    let sorter = RowSorter::new(LIMITS, KEY, &directory, ctx);
    let visits = Visits {
        untagged_nodes: true,
        ..Visits::TAGGED
    };
    let locate = LocateOptions::new(IndexType::Auto, directory.clone(), None);
    let mut all = Findings::new(max_listed);
    let mut take = |found: DoubledObject| {
        if let Some(writer) = &mut file_of_problems {
            found.write(writer)?;
        }
        all.add(found);
        Ok::<(), Error>(())
    };
    let pass = GeometryPass::open(file, visits, LocationsInWays::AsDeclared, locate, ctx)?;
    pass.run(
        select_no_areas,
        || DoubledVisitor::new(&sorter),
        |found| found.into_iter().try_for_each(&mut take),
    )?;
    find_equal_objects(&sorter, &mut take, ctx)?;
    Ok(all.finish())
}

/// Returns `false` for each object of a block, because the member ways of relations are not needed.
fn select_no_areas(block: &Block<'_>) -> FormatResult<Vec<bool>> {
    let mut areas = Vec::new();
    block.try_for_each(|_| {
        areas.push(false);
        Ok::<(), FormatError>(())
    })?;
    Ok(areas)
}

/// Calls `take` with each object whose content equals that of an object with a lower id.
fn find_equal_objects(
    sorter: &RowSorter,
    mut take: impl FnMut(DoubledObject) -> Result<()>,
    ctx: &Context,
) -> Result<()> {
    let sorted = sorter.finish()?;
    let mut first: Option<(u64, ContentRow)> = None;
    for rows in sorted.all_portions(u64::MAX, READ_MEMORY) {
        ctx.cancellation.check()?;
        for (key, row) in rows?.keys_and_rows() {
            let row = ContentRow::read(row)?;
            match &first {
                Some((same, one)) if *same == key && one.hash == row.hash => {
                    take(DoubledObject {
                        same_as: Some(one.id),
                        ..DoubledObject::new(row.kind, row.id, Some(row.point))
                    })?;
                }
                _ => first = Some((key, row)),
            }
        }
    }
    Ok(())
}

/// The findings so far.
#[derive(Default)]
struct Findings {
    max_listed: usize,
    result: DoubledCheck,
    /// The first doubled objects, by kind and rank of the id.
    objects: BTreeMap<(ObjectKind, u64), DoubledObject>,
    /// The first repeated keys, by the kind of the object, the rank of its id, and the key.
    keys: BTreeMap<(ObjectKind, u64, String), DoubledObject>,
}

impl Findings {
    fn new(max_listed: usize) -> Self {
        Self {
            max_listed,
            ..Self::default()
        }
    }

    /// Counts a finding, and lists it if it is among the first.
    fn add(&mut self, found: DoubledObject) {
        let (kind, rank) = (found.kind, id_rank(found.id));
        if let Some(key) = found.key.clone() {
            self.result.keys += 1;
            self.keys.insert((kind, rank, key), found);
            if self.keys.len() > self.max_listed {
                self.keys.pop_last();
            }
            return;
        }
        *match kind {
            ObjectKind::Node => &mut self.result.nodes,
            ObjectKind::Way | ObjectKind::Relation => &mut self.result.ways,
        } += 1;
        self.objects.insert((kind, rank), found);
        if self.objects.len() > self.max_listed {
            self.objects.pop_last();
        }
    }

    fn finish(mut self) -> DoubledCheck {
        let found = self.objects.into_values().chain(self.keys.into_values());
        self.result.listed = found.collect();
        self.result
    }
}

/// A row for the sorter. Rows for objects with the same content have the same sort key and hash, and are ordered by id.
struct ContentRow {
    /// A second hash. Together with the sort key, 127 bits of hashes are compared.
    hash: u64,
    kind: ObjectKind,
    id: i64,
    point: Point,
}

impl ContentRow {
    /// Appends the row in the form that [`read`](Self::read) parses.
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.hash.to_be_bytes());
        out.push(self.kind as u8);
        out.extend_from_slice(&id_rank(self.id).to_be_bytes());
        out.extend_from_slice(&self.point.lat_e7.to_be_bytes());
        out.extend_from_slice(&self.point.lon_e7.to_be_bytes());
    }

    fn read(row: &[u8]) -> Result<Self> {
        let read = || {
            let (hash, row) = row.split_first_chunk()?;
            let (kind, row) = row.split_first()?;
            let (rank, row) = row.split_first_chunk()?;
            let (lat, row) = row.split_first_chunk()?;
            let (lon, _) = row.split_first_chunk()?;
            Some(Self {
                hash: u64::from_be_bytes(*hash),
                kind: *ObjectKind::ALL.get(usize::from(*kind))?,
                id: id_from_rank(u64::from_be_bytes(*rank)),
                point: Point::new(i32::from_be_bytes(*lat), i32::from_be_bytes(*lon)),
            })
        };
        read().ok_or_else(|| Error::internal("a row of doubled objects is broken"))
    }
}

/// A visitor that hashes the contents of nodes and ways, and finds repeated keys.
struct DoubledVisitor<'s> {
    sorter: &'s RowSorter,
    rows: RowBatch,
    found: Vec<DoubledObject>,
    points: Vec<Point>,
    content: Vec<u8>,
}

impl<'s> DoubledVisitor<'s> {
    fn new(sorter: &'s RowSorter) -> Self {
        Self {
            sorter,
            rows: RowBatch::default(),
            found: Vec::new(),
            points: Vec::new(),
            content: Vec::new(),
        }
    }

    /// Finds the repeated keys of an object, and returns its tags in a fixed order.
    fn check_keys_and_sort_tags<'t>(
        &mut self,
        (kind, id): (ObjectKind, i64),
        point: Option<Point>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Vec<(&'t str, &'t str)> {
        let mut tags: Vec<_> = tags.collect();
        tags.sort_unstable();
        for same in tags.chunk_by(|(one, _), (next, _)| one == next) {
            if let [(key, _), _, ..] = same {
                self.found.push(DoubledObject {
                    key: Some((*key).to_owned()),
                    ..DoubledObject::new(kind, id, point)
                });
            }
        }
        tags
    }

    /// Adds a row for an object with the locations in `points`. `first` is the location at which the object begins.
    fn add(&mut self, (kind, id): (ObjectKind, i64), first: Point, tags: &[(&str, &str)]) {
        let content = &mut self.content;
        content.clear();
        content.push(kind as u8);
        content.extend_from_slice(&(tags.len() as u64).to_le_bytes());
        for text in tags.iter().flat_map(|(key, value)| [key, value]) {
            content.extend_from_slice(&(text.len() as u64).to_le_bytes());
            content.extend_from_slice(text.as_bytes());
        }
        for point in &self.points {
            content.extend_from_slice(&point.lat_e7.to_le_bytes());
            content.extend_from_slice(&point.lon_e7.to_le_bytes());
        }
        let row = ContentRow {
            hash: XxHash3_64::oneshot_with_seed(1, content),
            kind,
            id,
            point: first,
        };
        let key = XxHash3_64::oneshot(content) >> 1;
        self.rows.push(key, |out| row.put(out));
        self.sorter.add_if_full(&mut self.rows);
    }
}

impl Visitor for DoubledVisitor<'_> {
    type Found = Vec<DoubledObject>;

    fn visit_node<'t>(
        &mut self,
        id: i64,
        _: Info<'_>,
        location: Option<Location>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> FormatResult<()> {
        let (object, point) = ((ObjectKind::Node, id), location.and_then(point_on_earth));
        let tags = self.check_keys_and_sort_tags(object, point, tags);
        if let Some(point) = point {
            self.points.clear();
            self.points.push(point);
            self.add(object, point, &tags);
        }
        Ok(())
    }

    fn visit_way(&mut self, way: &Way<'_>, locations: &[Option<Location>]) -> FormatResult<()> {
        let object = (ObjectKind::Way, way.id());
        let points = locations
            .iter()
            .map(|location| location.and_then(point_on_earth));
        let first = points.clone().flatten().next();
        let tags = self.check_keys_and_sort_tags(object, first, way.tags());
        self.points.clear();
        self.points.extend(points.flatten());
        if let Some(first) = first
            && self.points.len() == locations.len()
            && locations.len() > 1
        {
            canonicalize_point_order(&mut self.points);
            self.add(object, first, &tags);
        }
        Ok(())
    }

    fn visit_relation(&mut self, relation: &Relation<'_>, _: &WayStore) -> FormatResult<()> {
        let object = (ObjectKind::Relation, relation.id());
        self.check_keys_and_sort_tags(object, None, relation.tags());
        Ok(())
    }

    fn take_result(&mut self, is_end: bool) -> FormatResult<Option<Self::Found>> {
        let is_ready = !self.found.is_empty() && (is_end || self.found.len() >= FINDINGS);
        Ok(is_ready.then(|| std::mem::take(&mut self.found)))
    }

    fn check_flushed(&mut self) -> Result<()> {
        self.sorter.check_for_error()
    }

    fn flush(&mut self) {
        self.sorter.add_and_clear(&mut self.rows);
    }
}

/// Puts the points of a line into a canonical order. The order is the same for both directions of the line. For a
/// closed line, it is also the same for all points at which the line can begin.
fn canonicalize_point_order(points: &mut Vec<Point>) {
    let is_closed = points.len() > 2 && points.first() == points.last();
    if is_closed {
        points.pop();
    }
    let mut reversed: Vec<Point> = points.iter().rev().copied().collect();
    if is_closed {
        for ring in [&mut *points, &mut reversed] {
            let first = least_rotation_start(ring);
            ring.rotate_left(first);
        }
    }
    if reversed < *points {
        *points = reversed;
    }
    if is_closed {
        points.extend(points.first().copied());
    }
}

/// Returns the index of the point with which the ring must begin to be lexicographically smallest. The ring does not
/// repeat its first point at the end. Each comparison rules out a start index, or extends the common prefix of the
/// rings that begin at two start indices.
fn least_rotation_start(ring: &[Point]) -> usize {
    let len = ring.len();
    let (mut one, mut other, mut same) = (0, 1, 0);
    while one < len && other < len && same < len {
        match ring[(one + same) % len].cmp(&ring[(other + same) % len]) {
            Ordering::Equal => {
                same += 1;
                continue;
            }
            Ordering::Greater => one += same + 1,
            Ordering::Less => other += same + 1,
        }
        if one == other {
            other += 1;
        }
        same = 0;
    }
    one.min(other)
}
