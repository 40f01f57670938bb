//! Makes features of objects.

use super::feature_buffer::FeatureBuffer;
use super::problem::{Problem, ProblemCause, Severity};
use super::worker::{Found, Shared};
use super::{Incomplete, Summary};
use crate::area::{
    AreaNode, AreaPolygon, AreaWay, OpenRings, Role, StoredWay, WayBatch, WayStore, assemble,
    simple_polygon,
};
use crate::error::FormatError;
use crate::formats::features::{Feature, Geometry};
use crate::geometry::{Point, doubled_area};
use crate::osm::{DECIMICRO_PER_DEGREE, Location, ObjectKind};
use crate::pbf::{Info, Relation, Way};
use crate::runtime::ChunkSender;
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of bytes of text after which a chunk ends.
const CHUNK: usize = 1 << 20;
/// The number of problems after which they are sent.
const PROBLEMS: usize = 1 << 10;

/// The tags of an object.
type TagList<'a> = Vec<(&'a str, &'a str)>;

/// Counts of the features and problems of a blob.
#[derive(Debug, Default)]
pub(super) struct Tally {
    points: u64,
    lines: u64,
    areas: u64,
    /// The smallest and the largest coordinates; `None` without features.
    corners: Option<(Point, Point)>,
    /// Twice the area of all polygons, in square units of 1e-7 degree.
    doubled_area: i128,
    errors: BTreeMap<&'static str, u64>,
    incomplete: u64,
    warnings: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add_points(&mut self, points: &[Point]) {
        let Some(first) = points.first() else {
            return;
        };
        let (mut low, mut high) = self.corners.unwrap_or((*first, *first));
        for point in points {
            low.lat_e7 = low.lat_e7.min(point.lat_e7);
            low.lon_e7 = low.lon_e7.min(point.lon_e7);
            high.lat_e7 = high.lat_e7.max(point.lat_e7);
            high.lon_e7 = high.lon_e7.max(point.lon_e7);
        }
        self.corners = Some((low, high));
    }

    fn add_geometry(&mut self, geometry: &Geometry<'_>) {
        match geometry {
            Geometry::Point(point) => {
                self.points += 1;
                self.add_points(&[*point]);
            }
            Geometry::LineString(points) => {
                self.lines += 1;
                self.add_points(points);
            }
            Geometry::MultiPolygon(polygons) => {
                self.areas += 1;
                for polygon in *polygons {
                    self.add_points(&polygon.outer);
                    let rings = polygon.holes.iter().chain([&polygon.outer]);
                    self.doubled_area += rings.map(|ring| doubled_area(ring)).sum::<i128>();
                }
            }
        }
    }

    /// Adds the counts to those of other blobs.
    pub(super) fn add_to(&self, all: &mut Totals) {
        let summary = &mut all.summary;
        summary.points += self.points;
        summary.lines += self.lines;
        summary.areas += self.areas;
        summary.features += self.points + self.lines + self.areas;
        summary.incomplete += self.incomplete;
        for (counts, more) in [
            (&mut summary.errors, &self.errors),
            (&mut summary.warnings, &self.warnings),
        ] {
            for (name, count) in more {
                *counts.entry(*name).or_default() += count;
            }
        }
        all.geometry.doubled_area += self.doubled_area;
        if let Some((low, high)) = self.corners {
            all.geometry.add_points(&[low, high]);
        }
    }
}

/// The counts of all blobs.
#[derive(Debug, Default)]
pub(super) struct Totals {
    summary: Summary,
    /// Corners and area of all features.
    geometry: Tally,
}

impl Totals {
    /// The summary of a run.
    pub(super) fn into_summary(self) -> Summary {
        const ONE: f64 = DECIMICRO_PER_DEGREE as f64;
        let degrees = |value_e7: i32| f64::from(value_e7) / ONE;
        let corners = self.geometry.corners;
        Summary {
            bbox: corners
                .map(|(low, high)| [low.lon_e7, low.lat_e7, high.lon_e7, high.lat_e7].map(degrees)),
            square_degrees: self.geometry.doubled_area as f64 / 2.0 / ONE / ONE,
            ..self.summary
        }
    }
}

/// Makes features of the objects of a blob, and sends them.
pub(super) struct Builder<'a> {
    pub shared: &'a Shared,
    features: &'a mut FeatureBuffer,
    chunks: &'a ChunkSender<Found>,
    problems: Vec<Problem>,
    tally: Tally,
    points: Vec<Point>,
    nodes: Vec<AreaNode>,
    polygon: AreaPolygon,
    /// An empty list whose memory is used again.
    tags: TagList<'static>,
}

/// Empties a list, so that it can be used for tags with another lifetime.
fn recycled<'a>(mut tags: TagList<'_>) -> TagList<'a> {
    tags.clear();
    // The memory of a vector is used again for one of elements of the same size.
    tags.into_iter().map(|_| ("", "")).collect()
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        features: &'a mut FeatureBuffer,
        chunks: &'a ChunkSender<Found>,
    ) -> Self {
        Self {
            shared,
            features,
            chunks,
            problems: Vec::new(),
            tally: Tally::default(),
            points: Vec::new(),
            nodes: Vec::new(),
            polygon: AreaPolygon::default(),
            tags: Vec::new(),
        }
    }

    /// Whether features are written with metadata.
    pub(super) fn needs_info(&self) -> bool {
        self.features.needs_info()
    }

    /// Sends what is not sent yet, and returns the counts.
    pub(super) fn finish(mut self) -> Result<Tally, FormatError> {
        self.send_features()?;
        self.send_problems()?;
        Ok(self.tally)
    }

    pub(super) fn send(&self, found: Found) -> Result<(), FormatError> {
        let sent = self.chunks.send(found);
        sent.map_err(|error| FormatError::with(error.to_string()))
    }

    fn send_features(&mut self) -> Result<(), FormatError> {
        match self.features.take()? {
            Some(found) => self.send(found),
            None => Ok(()),
        }
    }

    fn send_problems(&mut self) -> Result<(), FormatError> {
        match std::mem::take(&mut self.problems) {
            problems if problems.is_empty() => Ok(()),
            problems => self.send(Found::Problems(problems)),
        }
    }

    /// Notes a problem.
    fn problem(
        &mut self,
        kind: ObjectKind,
        id: i64,
        cause: ProblemCause,
    ) -> Result<(), FormatError> {
        let problem = Problem { kind, id, cause };
        match problem.severity() {
            Severity::Error => *self.tally.errors.entry(problem.name()).or_default() += 1,
            Severity::Warning => *self.tally.warnings.entry(problem.name()).or_default() += 1,
            Severity::Incomplete => {}
        }
        if self.shared.reports {
            self.problems.push(problem);
        }
        match self.problems.len() >= PROBLEMS {
            true => self.send_problems(),
            false => Ok(()),
        }
    }

    fn put(&mut self, feature: &Feature<'_>) -> Result<(), FormatError> {
        self.tally.add_geometry(&feature.geometry);
        self.features.put(feature);
        match self.features.len() >= CHUNK {
            true => self.send_features(),
            false => Ok(()),
        }
    }

    /// Calls `make` with the tags in a list.
    fn with_tags<'t>(
        &mut self,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
        make: impl FnOnce(&mut Self, &mut TagList<'t>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut list = recycled(std::mem::take(&mut self.tags));
        list.extend(tags);
        let made = make(self, &mut list);
        self.tags = recycled(list);
        made
    }

    /// Removes the tags that are not written. Returns whether there is a feature: its tags are not empty, or features
    /// without tags are written, too.
    fn retain(&self, tags: &mut TagList<'_>) -> bool {
        self.shared.rules.retain(tags);
        self.shared.keep_untagged || !tags.is_empty()
    }

    /// Makes a point of a node.
    pub(super) fn node<'t>(
        &mut self,
        id: i64,
        info: Info<'_>,
        location: Option<Location>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Result<(), FormatError> {
        self.with_tags(tags, |builder, tags| match builder.retain(tags) {
            true => builder.point(id, info, location, tags),
            false => Ok(()),
        })
    }

    fn point(
        &mut self,
        id: i64,
        info: Info<'_>,
        location: Option<Location>,
        tags: &TagList<'_>,
    ) -> Result<(), FormatError> {
        let Some(point) = location.and_then(on_earth) else {
            return self.problem(ObjectKind::Node, id, ProblemCause::NoLocation);
        };
        self.put(&Feature {
            kind: ObjectKind::Node,
            id,
            info,
            tags,
            way_nodes: None,
            geometry: Geometry::Point(point),
        })
    }

    /// Adds the nodes of a way to a batch.
    pub(super) fn collect(
        &self,
        batch: &mut WayBatch,
        rank: u64,
        refs: &[i64],
        locations: &[Option<Location>],
    ) -> Result<(), FormatError> {
        let points = locations.iter().map(|location| location.and_then(on_earth));
        batch.push(rank, refs.iter().copied().zip(points));
        match batch.len() >= CHUNK {
            true => {
                let next = WayBatch::new(self.shared.reports);
                self.send(Found::Ways(std::mem::replace(batch, next)))
            }
            false => Ok(()),
        }
    }

    /// Makes a line or an area or both of a way. `locations` has the location of each node.
    pub(super) fn way(
        &mut self,
        way: &Way<'_>,
        locations: &[Option<Location>],
    ) -> Result<(), FormatError> {
        self.with_tags(way.tags(), |builder, tags| {
            let is_closed = locations.len() > 1 && locations.first() == locations.last();
            let (is_line, is_area) = match is_closed {
                true => builder.shared.rules.of_closed_way(tags),
                false => (true, false),
            };
            let types = builder.shared.types;
            let (is_line, is_area) = (is_line && types.lines, is_area && types.areas);
            if !(is_line || is_area) || !builder.retain(tags) {
                return Ok(());
            }
            if let Err(cause) = builder.locate(way, locations) {
                return builder.problem(ObjectKind::Way, way.id(), cause);
            }
            if is_line {
                builder.line(way, tags)?;
            }
            match is_area {
                true => builder.closed_way(way, tags),
                false => Ok(()),
            }
        })
    }

    /// Sets the points of a way, without those that equal the one before, and its nodes if there are such points. Fails
    /// if a node has no location, or if there are fewer than two points.
    fn locate(
        &mut self,
        way: &Way<'_>,
        locations: &[Option<Location>],
    ) -> Result<(), ProblemCause> {
        self.points.clear();
        self.nodes.clear();
        for (index, location) in locations.iter().enumerate() {
            let Some(point) = location.and_then(on_earth) else {
                let id = way.refs().nth(index);
                return Err(ProblemCause::MissingNode(id.unwrap_or_default()));
            };
            self.points.push(point);
        }
        let mut pairs = self.points.windows(2);
        if pairs.any(|pair| pair.first() == pair.last()) {
            self.set_nodes(way);
            self.points.dedup();
        }
        match (locations.len(), self.points.len()) {
            (count @ (0 | 1), _) => Err(ProblemCause::TooFewNodes(count)),
            (_, 0 | 1) => Err(ProblemCause::OneLocation),
            _ => Ok(()),
        }
    }

    /// Sets the nodes of a way by its points, of which none is left out.
    fn set_nodes(&mut self, way: &Way<'_>) {
        let nodes = way.refs().zip(&self.points);
        let nodes = nodes.map(|(id, point)| AreaNode { id, point: *point });
        self.nodes.extend(nodes);
    }

    /// Makes a line of a way, whose points are set.
    fn line(&mut self, way: &Way<'_>, tags: &TagList<'_>) -> Result<(), FormatError> {
        let has_refs = self.features.needs_way_nodes();
        let refs: Option<Vec<i64>> = has_refs.then(|| way.refs().collect());
        let points = std::mem::take(&mut self.points);
        self.put(&Feature {
            kind: ObjectKind::Way,
            id: way.id(),
            info: way.info(),
            tags,
            way_nodes: refs.as_deref(),
            geometry: Geometry::LineString(&points),
        })?;
        self.points = points;
        Ok(())
    }

    /// Makes an area of a closed way, whose points are set.
    fn closed_way(&mut self, way: &Way<'_>, tags: &TagList<'_>) -> Result<(), FormatError> {
        let (kind, id, info) = (ObjectKind::Way, way.id(), way.info());
        // Nodes are set if some have the location of the one before.
        if self.nodes.is_empty() {
            let mut polygon = std::mem::take(&mut self.polygon);
            let is_simple = simple_polygon(&self.points, &mut polygon);
            let polygons = std::slice::from_ref(&polygon);
            let made = match is_simple {
                true => self.area(kind, id, info, tags, polygons),
                false => Ok(()),
            };
            self.polygon = polygon;
            if is_simple {
                return made;
            }
            self.set_nodes(way);
        }
        let area_way = AreaWay {
            id,
            role: Role::Other,
            nodes: &self.nodes,
        };
        let assembly = assemble(&[area_way], OpenRings::Refuse);
        for problem in assembly.problems {
            self.problem(kind, id, ProblemCause::Area(problem))?;
        }
        self.area(kind, id, info, tags, &assembly.polygons)
    }

    fn area(
        &mut self,
        kind: ObjectKind,
        id: i64,
        info: Info<'_>,
        tags: &TagList<'_>,
        polygons: &[AreaPolygon],
    ) -> Result<(), FormatError> {
        match polygons.is_empty() {
            true => Ok(()),
            false => self.put(&Feature {
                kind,
                id,
                info,
                tags,
                way_nodes: None,
                geometry: Geometry::MultiPolygon(polygons),
            }),
        }
    }

    /// Makes an area of a relation.
    pub(super) fn relation(
        &mut self,
        relation: &Relation<'_>,
        ways: &WayStore,
    ) -> Result<(), FormatError> {
        let tags = relation.tags().filter(|(key, _)| *key != "type");
        self.with_tags(tags, |builder, tags| match builder.retain(tags) {
            true => builder.assembled(relation, ways, tags),
            false => Ok(()),
        })
    }

    /// Assembles the area of a relation.
    fn assembled(
        &mut self,
        relation: &Relation<'_>,
        ways: &WayStore,
        tags: &TagList<'_>,
    ) -> Result<(), FormatError> {
        let (kind, id) = (ObjectKind::Relation, relation.id());
        let Members {
            ways: members,
            missing,
        } = self.members(relation, ways);
        if members.is_empty() && missing.is_none() {
            return self.problem(kind, id, ProblemCause::NoWays);
        }
        let mut open_rings = OpenRings::Refuse;
        if let Some(cause) = missing {
            self.tally.incomplete += 1;
            self.problem(kind, id, cause)?;
            match self.shared.incomplete {
                Incomplete::LeaveOut => return Ok(()),
                Incomplete::Keep => open_rings = OpenRings::LeaveOut,
            }
        }
        let ways = members.iter().map(|(id, role, nodes)| AreaWay {
            id: *id,
            role: *role,
            nodes: self.nodes.get(nodes.clone()).unwrap_or_default(),
        });
        let assembly = assemble(&ways.collect::<Vec<_>>(), open_rings);
        let is_incomplete = missing.is_some();
        for problem in assembly.problems {
            // A part of a relation that encloses nothing is no mistake.
            if !(is_incomplete && problem.kind.is_error()) {
                self.problem(kind, id, ProblemCause::Area(problem))?;
            }
        }
        self.area(kind, id, relation.info(), tags, &assembly.polygons)
    }

    /// The member ways of a relation, whose nodes are appended to `nodes`.
    fn members(&mut self, relation: &Relation<'_>, ways: &WayStore) -> Members {
        self.nodes.clear();
        let mut members = Members {
            ways: Vec::new(),
            missing: None,
        };
        for member in relation.members() {
            if member.kind != ObjectKind::Way {
                continue;
            }
            let start = self.nodes.len();
            let missing = match ways.read(member.id, &mut self.nodes) {
                StoredWay::Located => {
                    let role = Role::of(member.role);
                    members
                        .ways
                        .push((member.id, role, start..self.nodes.len()));
                    continue;
                }
                StoredWay::Missing => ProblemCause::MissingWay(member.id),
                StoredWay::Unlocated(node) => ProblemCause::MissingNodeOf(member.id, node),
            };
            members.missing.get_or_insert(missing);
        }
        members
    }
}

/// The member ways of a relation.
struct Members {
    /// The id and the role of each way, and the range of its nodes.
    ways: Vec<(i64, Role, Range<usize>)>,
    /// The first way that is not in the file, or has a node that is not.
    missing: Option<ProblemCause>,
}

/// A location as a point; `None` if it is not on the earth.
fn on_earth(location: Location) -> Option<Point> {
    const MAX_LON: u32 = 180 * DECIMICRO_PER_DEGREE as u32;
    let (lat_e7, lon_e7) = (location.lat_e7(), location.lon_e7());
    let is_on_earth = lat_e7.unsigned_abs() <= MAX_LON / 2 && lon_e7.unsigned_abs() <= MAX_LON;
    is_on_earth.then_some(Point { lat_e7, lon_e7 })
}
