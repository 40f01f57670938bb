//! Builds features from objects.

use super::feature_buffer::{FeatureBuffer, FeatureForm};
use super::late_areas::Completion;
use super::problem::{Problem, ProblemCause, Severity};
use super::selection::select;
use super::{FeatureRules, GeometryTypes, Incomplete, Options, Summary};
use crate::area::{
    AreaNode, AreaPolygon, AreaWay, MemberWays, MissingMember, OpenRings, Role, WayStore, assemble,
    simple_polygon,
};
use crate::engine::geometry_pass::{Visitor, is_area, on_earth};
use crate::error::{FormatError, Result};
use crate::formats::features::FeatureChunk;
use crate::formats::features::{Feature, Geometry};
use crate::geometry::{Extent, Point, doubled_area};
use crate::osm::ObjectFilter;
use crate::osm::{DECIMICRO_PER_DEGREE, Location, ObjectKind};
use crate::pbf::{Block, Info, Relation, Way};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The size in bytes at which a chunk of text ends.
const CHUNK: usize = 1 << 20;
/// The number of problems that are collected before they are sent.
const PROBLEMS: usize = 1 << 10;

/// The tags of an object.
type TagList<'a> = Vec<(&'a str, &'a str)>;

/// Counts of the features and problems of a blob.
#[derive(Debug, Default)]
pub(super) struct Tally {
    points: u64,
    lines: u64,
    areas: u64,
    /// The box around all features.
    extent: Option<Extent>,
    /// Twice the area of all polygons, in square units of 1e-7 degree.
    doubled_area: i128,
    errors: BTreeMap<&'static str, u64>,
    incomplete: u64,
    warnings: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add_points(&mut self, points: &[Point]) {
        if let Some(extent) = Extent::of(points) {
            self.add_extent(extent);
        }
    }

    fn add_extent(&mut self, extent: Extent) {
        self.extent = Some(self.extent.map_or(extent, |all| all.and(&extent)));
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

    /// Adds the counts to the totals of all blobs.
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
        if let Some(extent) = self.extent {
            all.geometry.add_extent(extent);
        }
    }
}

/// The counts of all blobs.
#[derive(Debug, Default)]
pub(super) struct Totals {
    summary: Summary,
    /// The box and the area of all features.
    geometry: Tally,
}

impl Totals {
    /// Returns the summary of a run.
    pub(super) fn into_summary(self) -> Summary {
        const ONE: f64 = DECIMICRO_PER_DEGREE as f64;
        let degrees = |value_e7: i32| f64::from(value_e7) / ONE;
        let extent = self.geometry.extent;
        Summary {
            bbox: extent.map(|Extent { low, high }| {
                [low.lon_e7, low.lat_e7, high.lon_e7, high.lat_e7].map(degrees)
            }),
            square_degrees: self.geometry.doubled_area as f64 / 2.0 / ONE / ONE,
            ..self.summary
        }
    }
}

/// The options that visitors need.
pub(super) struct Shared {
    form: FeatureForm,
    rules: FeatureRules,
    types: GeometryTypes,
    keep_untagged: bool,
    filter: ObjectFilter,
    incomplete: Incomplete,
    /// Whether problems are reported one by one.
    reports: bool,
}

impl Shared {
    pub(super) fn new(
        options: &Options,
        form: FeatureForm,
        filter: ObjectFilter,
        reports: bool,
    ) -> Self {
        Self {
            form,
            rules: options.rules.clone(),
            types: options.geometry_types,
            keep_untagged: options.keep_untagged,
            filter,
            incomplete: options.incomplete,
            reports,
        }
    }
}

/// A part of the results of a thread.
pub(super) enum ExportPart {
    Features(FeatureChunk),
    Problems(Vec<Problem>),
    /// The counts of a blob.
    Tally(Tally),
}

/// The object from which an area is built.
#[derive(Clone, Copy)]
struct AreaObject<'a> {
    kind: ObjectKind,
    id: i64,
    info: Info<'a>,
    completion: Completion,
}

/// Builds features from objects.
pub(super) struct Builder {
    shared: Arc<Shared>,
    features: FeatureBuffer,
    problems: Vec<Problem>,
    /// The counts of the current blob; `None` until it has a feature or a problem.
    tally: Option<Tally>,
    points: Vec<Point>,
    nodes: Vec<AreaNode>,
    polygon: AreaPolygon,
    /// An empty list whose memory is reused.
    tags: TagList<'static>,
}

/// Empties a list, so that it can be used for tags with another lifetime.
fn recycled<'a>(mut tags: TagList<'_>) -> TagList<'a> {
    tags.clear();
    // `collect` reuses the memory of a vector whose elements have the same size.
    tags.into_iter().map(|_| ("", "")).collect()
}

impl Visitor for Builder {
    type Found = ExportPart;

    fn select(&self, block: &Block<'_>) -> Result<Option<Vec<bool>>, FormatError> {
        select(&self.shared.filter, block)
    }

    fn node<'t>(
        &mut self,
        id: i64,
        info: Info<'_>,
        location: Option<Location>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Result<(), FormatError> {
        self.with_tags(tags, |builder, tags| {
            if builder.retain(tags) {
                builder.point(id, info, location, tags);
            }
        });
        Ok(())
    }

    fn way(&mut self, way: &Way<'_>, locations: &[Option<Location>]) -> Result<(), FormatError> {
        self.with_tags(way.tags(), |builder, tags| {
            builder.tagged_way(way, locations, tags);
        });
        Ok(())
    }

    fn relation(&mut self, relation: &Relation<'_>, ways: &WayStore) -> Result<(), FormatError> {
        if !is_area(relation.tags()) {
            return Ok(());
        }
        let tags = relation.tags().filter(|(key, _)| *key != "type");
        self.with_tags(tags, |builder, tags| {
            if builder.retain(tags) {
                builder.assembled(relation, ways, tags);
            }
        });
        Ok(())
    }

    fn take(&mut self, is_end: bool) -> Result<Option<ExportPart>, FormatError> {
        #[cfg(feature = "parquet")]
        self.features.pass_on_many();
        if (is_end || self.features.len() >= CHUNK)
            && let Some(chunk) = self.features.take()?
        {
            return Ok(Some(ExportPart::Features(chunk)));
        }
        if !self.problems.is_empty() && (is_end || self.problems.len() >= PROBLEMS) {
            return Ok(Some(ExportPart::Problems(std::mem::take(
                &mut self.problems,
            ))));
        }
        if is_end {
            Ok(self.tally.take().map(ExportPart::Tally))
        } else {
            Ok(None)
        }
    }

    fn check(&mut self) -> Result<()> {
        self.features.check()
    }

    fn flush(&mut self) {
        self.features.pass_on();
    }
}

impl Builder {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            features: FeatureBuffer::new(&shared.form),
            shared: shared.clone(),
            problems: Vec::new(),
            tally: None,
            points: Vec::new(),
            nodes: Vec::new(),
            polygon: AreaPolygon::default(),
            tags: Vec::new(),
        }
    }

    /// Counts a problem, and keeps it if problems are reported.
    fn problem(&mut self, kind: ObjectKind, id: i64, cause: ProblemCause) {
        let problem = Problem { kind, id, cause };
        let tally = self.tally.get_or_insert_default();
        match problem.severity() {
            Severity::Error => *tally.errors.entry(problem.name()).or_default() += 1,
            Severity::Warning => *tally.warnings.entry(problem.name()).or_default() += 1,
            Severity::Incomplete => {}
        }
        if self.shared.reports {
            self.problems.push(problem);
        }
    }

    /// Adds a feature. An area has a `completion`.
    fn put(&mut self, feature: &Feature<'_>, completion: Option<Completion>) {
        self.tally
            .get_or_insert_default()
            .add_geometry(&feature.geometry);
        self.features.put(feature, completion);
    }

    /// Collects the tags in a list, and calls `make` with the list.
    fn with_tags<'t>(
        &mut self,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
        make: impl FnOnce(&mut Self, &mut TagList<'t>),
    ) {
        let mut list = recycled(std::mem::take(&mut self.tags));
        list.extend(tags);
        make(self, &mut list);
        self.tags = recycled(list);
    }

    /// Removes the tags that are not written. Returns whether the object becomes a feature, because it has tags left or
    /// features without tags are written, too.
    fn retain(&self, tags: &mut TagList<'_>) -> bool {
        self.shared.rules.retain(tags);
        self.shared.keep_untagged || !tags.is_empty()
    }

    /// Adds the point of a node.
    fn point(&mut self, id: i64, info: Info<'_>, location: Option<Location>, tags: &TagList<'_>) {
        let Some(point) = location.and_then(on_earth) else {
            return self.problem(ObjectKind::Node, id, ProblemCause::NoLocation);
        };
        let feature = Feature {
            kind: ObjectKind::Node,
            id,
            info,
            tags,
            way_nodes: None,
            geometry: Geometry::Point(point),
        };
        self.put(&feature, None);
    }

    /// Adds the line, the area or both of a way.
    fn tagged_way(
        &mut self,
        way: &Way<'_>,
        locations: &[Option<Location>],
        tags: &mut TagList<'_>,
    ) {
        let is_closed = locations.len() > 1 && locations.first() == locations.last();
        let (is_line, is_area) = if is_closed {
            self.shared.rules.of_closed_way(tags)
        } else {
            (true, false)
        };
        let types = self.shared.types;
        let (is_line, is_area) = (is_line && types.lines, is_area && types.areas);
        if !(is_line || is_area) || !self.retain(tags) {
            return;
        }
        if let Err(cause) = self.locate(way, locations) {
            return self.problem(ObjectKind::Way, way.id(), cause);
        }
        if is_line {
            self.line(way, tags);
        }
        if is_area {
            self.closed_way(way, tags);
        }
    }

    /// Sets `points` to the locations of a way, without consecutive duplicates. If there are duplicates, also sets
    /// `nodes`. Fails if a node has no location, or if fewer than two points are left.
    fn locate(
        &mut self,
        way: &Way<'_>,
        locations: &[Option<Location>],
    ) -> Result<(), ProblemCause> {
        self.points.clear();
        self.nodes.clear();
        for (index, location) in locations.iter().enumerate() {
            let Some(point) = location.and_then(on_earth) else {
                let refs: Vec<i64> = way.refs().collect();
                return Err(ProblemCause::MissingNode(refs[index]));
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

    /// Sets `nodes` to the nodes of a way. `points` must still have a point for each node.
    fn set_nodes(&mut self, way: &Way<'_>) {
        let nodes = way.refs().zip(&self.points);
        let nodes = nodes.map(|(id, point)| AreaNode { id, point: *point });
        self.nodes.extend(nodes);
    }

    /// Adds the line of a way. `points` must be set.
    fn line(&mut self, way: &Way<'_>, tags: &TagList<'_>) {
        let has_refs = self.features.needs_way_nodes();
        let refs: Option<Vec<i64>> = has_refs.then(|| way.refs().collect());
        let points = std::mem::take(&mut self.points);
        let feature = Feature {
            kind: ObjectKind::Way,
            id: way.id(),
            info: way.info(),
            tags,
            way_nodes: refs.as_deref(),
            geometry: Geometry::LineString(&points),
        };
        self.put(&feature, None);
        self.points = points;
    }

    /// Adds the area of a closed way. `points` must be set.
    fn closed_way(&mut self, way: &Way<'_>, tags: &TagList<'_>) {
        let (kind, id) = (ObjectKind::Way, way.id());
        let object = AreaObject {
            kind,
            id,
            info: way.info(),
            completion: Completion::of_way(id),
        };
        // `locate` has set `nodes` only if consecutive nodes have the same location.
        if self.nodes.is_empty() {
            let mut polygon = std::mem::take(&mut self.polygon);
            let is_simple = simple_polygon(&self.points, &mut polygon);
            if is_simple {
                self.area(object, tags, std::slice::from_ref(&polygon));
            }
            self.polygon = polygon;
            if is_simple {
                return;
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
            self.problem(kind, id, ProblemCause::Area(problem));
        }
        self.area(object, tags, &assembly.polygons);
    }

    fn area(&mut self, object: AreaObject<'_>, tags: &TagList<'_>, polygons: &[AreaPolygon]) {
        if !polygons.is_empty() {
            let feature = Feature {
                kind: object.kind,
                id: object.id,
                info: object.info,
                tags,
                way_nodes: None,
                geometry: Geometry::MultiPolygon(polygons),
            };
            self.put(&feature, Some(object.completion));
        }
    }

    /// Assembles the area of a relation.
    fn assembled(&mut self, relation: &Relation<'_>, ways: &WayStore, tags: &TagList<'_>) {
        let (kind, id) = (ObjectKind::Relation, relation.id());
        let members = MemberWays::read(relation.members(), ways, &mut self.nodes);
        if members.is_empty() && members.missing.is_none() {
            return self.problem(kind, id, ProblemCause::NoWays);
        }
        let mut open_rings = OpenRings::Refuse;
        if let Some(missing) = members.missing {
            self.tally.get_or_insert_default().incomplete += 1;
            let cause = match missing {
                MissingMember::Way(way) => ProblemCause::MissingWay(way),
                MissingMember::NodeOf(way, node) => ProblemCause::MissingNodeOf(way, node),
            };
            self.problem(kind, id, cause);
            match self.shared.incomplete {
                Incomplete::LeaveOut => return,
                Incomplete::Keep => open_rings = OpenRings::LeaveOut,
            }
        }
        let assembly = members.assemble(&self.nodes, open_rings);
        let is_incomplete = members.missing.is_some();
        for problem in assembly.problems {
            // Errors in an incomplete relation may come from its missing parts.
            if !(is_incomplete && problem.kind.is_error()) {
                self.problem(kind, id, ProblemCause::Area(problem));
            }
        }
        let object = AreaObject {
            kind,
            id,
            info: relation.info(),
            completion: Completion::of_relation(relation.members()),
        };
        self.area(object, tags, &assembly.polygons);
    }
}
