//! Builds features from objects.

use super::Incomplete;
use super::cuts::CutGeometry;
use super::feature_buffer::FeatureBuffer;
use super::late_areas::Completion;
use super::line_relations::RelationLines;
use super::maker::Made;
use super::problem::{Problem, ProblemCause, Severity};
use super::selection::{is_closed_way, selects_relation};
use super::shared::Shared;
use super::tally::Tally;
use crate::area::{
    AreaNode, AreaPolygon, AreaWay, MemberWays, MissingMember, OpenRings, Role, WayStore, assemble,
    assemble_on_map, simple_polygon,
};
use crate::engine::block_matcher::selects;
use crate::engine::geometry_pass::{Visitor, is_area, on_earth};
use crate::error::{FormatError, Result};
use crate::formats::features::FeatureChunk;
use crate::formats::features::{Feature, Geometry, OwnedGeometry};
use crate::formats::row_limit::{MAX_ROW, feature_size};
use crate::geometry::{MapTurn, Point};
use crate::osm::{Location, ObjectId, ObjectKind, retain_unique};
use crate::pbf::{Block, Info, Relation, Way};
use std::sync::Arc;

/// The size in bytes at which a chunk of text ends.
const CHUNK: usize = 1 << 20;
/// The number of problems that are collected before they are sent.
const PROBLEMS: usize = 1 << 10;

/// The tags of an object.
type TagList<'a> = Vec<(&'a str, &'a str)>;

/// A result of a visitor.
pub(super) enum ExportPart {
    Features(FeatureChunk),
    /// A batch of a [`FeatureMaker`](super::FeatureMaker).
    Made(Made),
    Problems(Vec<Problem>),
    /// The numbers of features and problems of a blob.
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
    /// The numbers of features and problems of the current blob; `None` until it has a feature or a problem.
    tally: Option<Tally>,
    points: Vec<Point>,
    nodes: Vec<AreaNode>,
    polygon: AreaPolygon,
    /// An empty list whose memory is reused.
    tags: TagList<'static>,
    /// The number of tags of the current object that were left out, because an earlier tag has their key. 0 after the
    /// object has become a feature.
    repeated_keys: u64,
}

/// Empties a list, so that it can be used for tags with another lifetime.
fn recycled<'a>(mut tags: TagList<'_>) -> TagList<'a> {
    tags.clear();
    // `collect` reuses the memory of a vector if the new elements have the same size as the old ones.
    tags.into_iter().map(|_| ("", "")).collect()
}

impl Visitor for Builder {
    type Found = ExportPart;

    fn select(&self, block: &Block<'_>) -> Result<Option<Vec<bool>>, FormatError> {
        self.shared.visited(block)
    }

    fn node<'t>(
        &mut self,
        id: i64,
        info: Info<'_>,
        location: Option<Location>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Result<(), FormatError> {
        self.with_tags(tags, |builder, tags| {
            let kind = ObjectKind::Node;
            let object = (ObjectId { kind, id }, || false);
            let is_selected = builder.still_selects(object, &info, tags);
            if is_selected && builder.retain(tags) {
                builder.point(id, info, location, tags);
            }
        });
        Ok(())
    }

    fn way(&mut self, way: &Way<'_>, locations: &[Option<Location>]) -> Result<(), FormatError> {
        self.with_tags(way.tags(), |builder, tags| {
            let (kind, id) = (ObjectKind::Way, way.id());
            let object = (ObjectId { kind, id }, || is_closed_way(way));
            if builder.still_selects(object, &way.info(), tags) {
                builder.tagged_way(way, locations, tags);
            }
        });
        Ok(())
    }

    fn relation(&mut self, relation: &Relation<'_>, ways: &WayStore) -> Result<(), FormatError> {
        #[cfg(feature = "parquet")]
        if let Some(boundaries) = &self.shared.boundaries {
            boundaries.add(relation, ways, &mut self.nodes);
        }
        let shared = self.shared.clone();
        let keeps_all = shared.keeps_repeated_keys;
        if !shared.relations || !selects_relation(&shared.filter, relation, keeps_all) {
            return Ok(());
        }
        if shared.is_line_relation(relation) {
            self.with_tags(relation.tags(), |builder, tags| {
                if builder.retain(tags) {
                    builder.relation_line(relation, ways, tags);
                }
            });
        }
        if !(shared.types.areas && is_area(relation.tags())) {
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
        self.features.pass_on_many();
        if (is_end || self.features.len() >= CHUNK)
            && let Some(chunk) = self.features.take()?
        {
            return Ok(Some(ExportPart::Features(chunk)));
        }
        if let Some(made) = self.features.take_made(is_end) {
            return Ok(Some(ExportPart::Made(made)));
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
            repeated_keys: 0,
        }
    }

    /// Removes and returns the geometries of the kept features.
    pub(super) fn take_kept(&mut self) -> Vec<OwnedGeometry> {
        self.features.take_kept()
    }

    /// Counts a problem, and keeps it if problems are reported. `near` is the location of a node of the object.
    fn problem(&mut self, kind: ObjectKind, id: i64, cause: ProblemCause, near: Option<Point>) {
        let point = match cause {
            ProblemCause::Area(problem) => problem.point.or(near),
            _ => near,
        };
        let problem = Problem {
            kind,
            id,
            cause,
            point,
        };
        let tally = self.tally.get_or_insert_default();
        if cause == ProblemCause::TooLarge {
            tally.oversized.add(kind, id);
        }
        match problem.severity() {
            Severity::Error => *tally.errors.entry(problem.name()).or_default() += 1,
            Severity::Warning => *tally.warnings.entry(problem.name()).or_default() += 1,
            Severity::Incomplete => {}
        }
        if self.shared.reports {
            self.problems.push(problem);
        }
    }

    /// Cuts the geometry of a feature, and adds the feature. Adds nothing if nothing is left of it, or if it does not
    /// meet the region. `completion` is given for areas only.
    fn put(&mut self, feature: &Feature<'_>, completion: Option<Completion>) {
        let Some(whole) = feature.geometry.extent() else {
            return;
        };
        let cut = self.shared.cuts.apply(&feature.geometry, &whole);
        let Some(geometry) = cut.of(feature.geometry) else {
            if matches!(cut, CutGeometry::Empty) {
                let near = feature.geometry.first_point();
                self.problem(feature.kind, feature.id, ProblemCause::OneLocation, near);
            }
            return;
        };
        let feature = Feature {
            geometry,
            ..*feature
        };
        if self.shared.form.is_limited() && feature_size(&feature) > MAX_ROW {
            let near = feature.geometry.first_point();
            return self.problem(feature.kind, feature.id, ProblemCause::TooLarge, near);
        }
        let extent = if matches!(cut, CutGeometry::Whole) {
            whole
        } else {
            feature.geometry.extent().unwrap_or(whole)
        };
        let themes = self.features.put(&feature, &extent, completion);
        let repeated_keys = std::mem::take(&mut self.repeated_keys);
        let tally = self.tally.get_or_insert_default();
        tally.add(&feature.geometry, extent, themes);
        if themes != 0 {
            tally.repeated_keys += repeated_keys;
        }
    }

    /// Collects the tags in a list, removes those whose key an earlier tag has, and calls `make` with the list.
    fn with_tags<'t>(
        &mut self,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
        make: impl FnOnce(&mut Self, &mut TagList<'t>),
    ) {
        let mut list = recycled(std::mem::take(&mut self.tags));
        list.extend(tags);
        self.repeated_keys = if self.shared.keeps_repeated_keys {
            0
        } else {
            retain_unique(&mut list)
        };
        make(self, &mut list);
        self.tags = recycled(list);
    }

    /// Whether the filter selects the current object by the tags that are left. The filter has selected the object by
    /// all of its tags. `is_area` tells whether the object is an area.
    fn still_selects(
        &self,
        (object, is_area): (ObjectId, impl FnOnce() -> bool),
        info: &Info<'_>,
        tags: &TagList<'_>,
    ) -> bool {
        let filter = &self.shared.filter;
        self.repeated_keys == 0 || selects(filter, (object, is_area()), info, tags.iter().copied())
    }

    /// Removes the tags that are not written. Returns whether the object becomes a feature. It becomes a feature if the
    /// rules leave a tag, or if features without tags are written, too.
    fn retain(&self, tags: &mut TagList<'_>) -> bool {
        self.shared.rules.retain(tags);
        let is_feature = self.shared.keep_untagged || !tags.is_empty();
        if let Some(keys) = &self.shared.tag_keys {
            tags.retain(|(key, _)| keys.iter().any(|wanted| wanted == key));
        }
        is_feature
    }

    /// Adds the feature of a node.
    fn point(&mut self, id: i64, info: Info<'_>, location: Option<Location>, tags: &TagList<'_>) {
        let Some(point) = location.and_then(on_earth) else {
            return self.problem(ObjectKind::Node, id, ProblemCause::NoLocation, None);
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

    /// Adds the features of a way: a line, an area, or both.
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
            let near = self.points.last().copied();
            return self.problem(ObjectKind::Way, way.id(), cause, near);
        }
        if is_line {
            self.line(way, tags);
        }
        if is_area {
            self.closed_way(way, tags);
        }
    }

    /// Sets `points` to the locations of a way, without consecutive duplicates. If there are duplicates, also sets
    /// `nodes` to all nodes of the way. Fails if a node has no location, or if fewer than two points are left.
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
        let next = self.points.iter().skip(1);
        if self.points.iter().zip(next).any(|(one, next)| one == next) {
            self.set_nodes(way);
            self.points.dedup();
        }
        match (locations.len(), self.points.len()) {
            (count @ (0 | 1), _) => Err(ProblemCause::TooFewNodes(count)),
            (_, 0 | 1) => Err(ProblemCause::OneLocation),
            _ => Ok(()),
        }
    }

    /// Appends the nodes of a way to `nodes`. `points` must still have a point for each node.
    fn set_nodes(&mut self, way: &Way<'_>) {
        let nodes = way.refs().zip(&self.points);
        let nodes = nodes.map(|(id, point)| AreaNode { id, point: *point });
        self.nodes.extend(nodes);
    }

    /// Adds the line of a way. `points` must have the locations of the way.
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

    /// Adds the area of a closed way. `points` must have the locations of the way.
    fn closed_way(&mut self, way: &Way<'_>, tags: &TagList<'_>) {
        let (kind, id) = (ObjectKind::Way, way.id());
        let object = AreaObject {
            kind,
            id,
            info: way.info(),
            completion: Completion::of_way(id),
        };
        let is_cut = self.shared.cuts.cuts_at_antimeridian();
        let is_across =
            is_cut && MapTurn::of(std::iter::once(self.points.iter().copied())).is_some();
        // `locate` leaves `nodes` empty unless consecutive nodes have the same location.
        if self.nodes.is_empty() {
            let mut polygon = std::mem::take(&mut self.polygon);
            let is_simple = !is_across && simple_polygon(&self.points, &mut polygon);
            if is_simple {
                self.area(object, tags, std::slice::from_ref(&polygon));
            }
            self.polygon = polygon;
            if is_simple {
                return;
            }
            self.set_nodes(way);
        }
        let ways = [AreaWay {
            id,
            role: Role::Other,
            nodes: &self.nodes,
        }];
        let assembly = if is_cut {
            assemble_on_map(&ways, OpenRings::Refuse)
        } else {
            assemble(&ways, OpenRings::Refuse)
        };
        let near = self.nodes.first().map(|node| node.point);
        for problem in assembly.problems {
            self.problem(kind, id, ProblemCause::Area(problem), near);
        }
        self.area(object, tags, &assembly.polygons);
    }

    /// Adds an area.
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

    /// Adds a feature with the lines of a relation.
    fn relation_line(&mut self, relation: &Relation<'_>, ways: &WayStore, tags: &TagList<'_>) {
        let found = RelationLines::of(relation, ways, &mut self.nodes);
        if found.is_incomplete {
            self.tally.get_or_insert_default().incomplete += 1;
        }
        if found.is_too_large {
            let cause = ProblemCause::TooManyNodes;
            return self.problem(ObjectKind::Relation, relation.id(), cause, None);
        }
        if found.lines.is_empty() {
            return;
        }
        let feature = Feature {
            kind: ObjectKind::Relation,
            id: relation.id(),
            info: relation.info(),
            tags,
            way_nodes: None,
            geometry: Geometry::MultiLineString(&found.lines),
        };
        self.put(&feature, None);
    }

    /// Assembles and adds the area of a relation.
    fn assembled(&mut self, relation: &Relation<'_>, ways: &WayStore, tags: &TagList<'_>) {
        let (kind, id) = (ObjectKind::Relation, relation.id());
        let members = MemberWays::read(relation.members(), ways, &mut self.nodes);
        if members.is_empty() && members.missing.is_none() {
            return self.problem(kind, id, ProblemCause::NoWays, None);
        }
        let near = self.nodes.first().map(|node| node.point);
        let mut open_rings = OpenRings::Refuse;
        if let Some(missing) = members.missing {
            self.tally.get_or_insert_default().incomplete += 1;
            let cause = match missing {
                MissingMember::Way(way) => ProblemCause::MissingWay(way),
                MissingMember::NodeOf(way, node) => ProblemCause::MissingNodeOf(way, node),
            };
            self.problem(kind, id, cause, near);
            match self.shared.incomplete {
                Incomplete::LeaveOut => return,
                Incomplete::Keep => open_rings = OpenRings::LeaveOut,
            }
        }
        let assembly = if self.shared.cuts.cuts_at_antimeridian() {
            members.assemble_on_map(&self.nodes, open_rings)
        } else {
            members.assemble(&self.nodes, open_rings)
        };
        let is_incomplete = members.missing.is_some();
        for problem in assembly.problems {
            // An error in a relation with missing members may be due to these members, so it is not reported.
            if !(is_incomplete && problem.kind.is_error()) {
                self.problem(kind, id, ProblemCause::Area(problem), near);
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
