//! Builds features from objects.

use super::feature_writer::{ExportPart, FeatureWriter};
use super::line_relations::RelationLines;
use super::output::FeatureOutput;
use super::selection::{is_closed_way, selects_relation};
use super::shared::Shared;
use crate::area::WayStore;
use crate::engine::block_matcher::selects;
use crate::engine::geometry_pass::{Visitor, is_area};
use crate::engine::geometry_problem::{Problem, ProblemCause};
use crate::engine::object_geometry::GeometryMaker;
use crate::error::{FormatResult, Result};
use crate::formats::features::{Feature, Geometry};
use crate::osm::{Location, ObjectId, ObjectKind, retain_unique};
use crate::pbf::{Block, Info, Relation, Way};

/// The tags of an object.
type TagList<'a> = Vec<(&'a str, &'a str)>;

/// Builds features from objects.
pub(super) struct FeatureBuilder<'s, O> {
    shared: &'s Shared<'s>,
    geometry: GeometryMaker,
    writer: FeatureWriter<'s, O>,
    /// An empty list whose memory is reused.
    tags: TagList<'static>,
}

/// Empties a list, so that it can be used for tags with another lifetime.
fn recycle_tag_list<'a>(mut tags: TagList<'_>) -> TagList<'a> {
    tags.clear();
    // `collect` reuses the memory of a vector if the new elements have the same size as the old ones.
    tags.into_iter().map(|_| ("", "")).collect()
}

impl<O: FeatureOutput> Visitor for FeatureBuilder<'_, O> {
    type Found = ExportPart<O::Part>;

    fn select(&self, block: &Block<'_>) -> FormatResult<Option<Vec<bool>>> {
        self.shared.select_visited(block)
    }

    fn visit_node<'t>(
        &mut self,
        id: i64,
        info: Info<'_>,
        location: Option<Location>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> FormatResult<()> {
        self.with_tags(tags, |builder, tags| {
            let kind = ObjectKind::Node;
            let object = (ObjectId { kind, id }, || false);
            let is_selected = builder.still_selects(object, &info, tags);
            if is_selected && builder.shared.rules.retain_written_tags(tags) {
                builder.put_point(id, info, location, tags);
            }
        });
        Ok(())
    }

    fn visit_way(&mut self, way: &Way<'_>, locations: &[Option<Location>]) -> FormatResult<()> {
        self.with_tags(way.tags(), |builder, tags| {
            let (kind, id) = (ObjectKind::Way, way.id());
            let object = (ObjectId { kind, id }, || is_closed_way(way));
            if builder.still_selects(object, &way.info(), tags) {
                builder.put_way(way, locations, tags);
            }
        });
        Ok(())
    }

    fn visit_relation(&mut self, relation: &Relation<'_>, ways: &WayStore) -> FormatResult<()> {
        let shared = self.shared;
        if let Some(collector) = shared.needs.relations {
            collector.add(relation, ways);
        }
        let rules = shared.rules;
        let keeps_all = rules.keeps_repeated_keys;
        if !shared.relations || !selects_relation(&shared.filter, relation, keeps_all) {
            return Ok(());
        }
        if rules.is_line_relation(relation.tags()) {
            self.with_tags(relation.tags(), |builder, tags| {
                if rules.retain_written_tags(tags) {
                    builder.put_relation_lines(relation, ways, tags);
                }
            });
        }
        if !(rules.geometry_types.areas && is_area(relation.tags())) {
            return Ok(());
        }
        let tags = relation.tags().filter(|(key, _)| *key != "type");
        self.with_tags(tags, |builder, tags| {
            if rules.retain_written_tags(tags) {
                builder.put_relation_area(relation, ways, tags);
            }
        });
        Ok(())
    }

    fn take_result(&mut self, is_end: bool) -> FormatResult<Option<Self::Found>> {
        self.writer.take(is_end)
    }

    fn check_flushed(&mut self) -> Result<()> {
        self.writer.output.check()
    }

    fn flush(&mut self) {
        self.writer.output.flush();
    }
}

impl<'s, O: FeatureOutput> FeatureBuilder<'s, O> {
    pub(super) fn new(shared: &'s Shared<'s>, output: O) -> Self {
        let rules = shared.rules;
        Self {
            shared,
            geometry: GeometryMaker::new(rules.antimeridian, rules.incomplete),
            writer: FeatureWriter::new(shared, output),
            tags: Vec::new(),
        }
    }

    /// Collects the tags in a list, and calls `make` with the list. Unless the rules keep repeated keys, only the first
    /// tag with each key is in the list.
    fn with_tags<'t>(
        &mut self,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
        make: impl FnOnce(&mut Self, &mut TagList<'t>),
    ) {
        let mut list = recycle_tag_list(std::mem::take(&mut self.tags));
        list.extend(tags);
        self.writer.repeated_keys = if self.shared.rules.keeps_repeated_keys {
            0
        } else {
            retain_unique(&mut list)
        };
        make(self, &mut list);
        self.tags = recycle_tag_list(list);
    }

    /// Whether the filter still selects the current object if only the first tag with each key counts. The filter has
    /// already selected the object by all of its tags. `is_area` tells whether the object is an area.
    fn still_selects(
        &self,
        (object, is_area): (ObjectId, impl FnOnce() -> bool),
        info: &Info<'_>,
        tags: &TagList<'_>,
    ) -> bool {
        let filter = &self.shared.filter;
        self.writer.repeated_keys == 0
            || selects(filter, (object, is_area()), info, tags.iter().copied())
    }

    /// Adds the feature of a node.
    fn put_point(
        &mut self,
        id: i64,
        info: Info<'_>,
        location: Option<Location>,
        tags: &TagList<'_>,
    ) {
        let report = &mut |problem| self.writer.add_problem(problem);
        if let Some(point) = GeometryMaker::point(id, location, report) {
            let geometry = Geometry::Point(point);
            let feature = Feature::new((ObjectKind::Node, id), info, tags, geometry);
            self.writer.put(&feature, None);
        }
    }

    /// Adds the features of a way: a line, an area, or both.
    fn put_way(&mut self, way: &Way<'_>, locations: &[Option<Location>], tags: &mut TagList<'_>) {
        let Self {
            shared,
            geometry,
            writer,
            ..
        } = self;
        let (is_line, is_area) = shared.rules.way_forms(tags, locations);
        if !(is_line || is_area) || !shared.rules.retain_written_tags(tags) {
            return;
        }
        let (object, id, info) = ((ObjectKind::Way, way.id()), way.id(), way.info());
        let report = &mut |problem| writer.add_problem(problem);
        let Some(points) = geometry.line_of_way(id, way.refs(), locations, report) else {
            return;
        };
        if is_line {
            let has_nodes = shared.needs.way_nodes;
            let nodes: Option<Vec<i64>> = has_nodes.then(|| way.refs().collect());
            let mut line = Feature::new(object, info, tags, Geometry::LineString(points));
            line.way_nodes = nodes.as_deref();
            writer.put(&line, None);
        }
        if is_area {
            let report = &mut |problem| writer.add_problem(problem);
            let polygons = geometry.polygons_of_line(id, way.refs(), report);
            let area = Feature::new(object, info, tags, Geometry::MultiPolygon(&polygons));
            writer.put(&area, None);
        }
    }

    /// Adds a feature with the lines of a relation.
    fn put_relation_lines(&mut self, relation: &Relation<'_>, ways: &WayStore, tags: &TagList<'_>) {
        let (kind, id) = (ObjectKind::Relation, relation.id());
        let found = RelationLines::of(id, relation.tags(), relation.members(), ways);
        if found.is_incomplete {
            self.writer.count_incomplete_line();
        }
        if found.is_too_large {
            return self.writer.add_problem(Problem {
                kind,
                id,
                cause: ProblemCause::TooManyNodes,
                point: None,
            });
        }
        let lines = Geometry::MultiLineString(&found.lines);
        let feature = Feature::new((kind, id), relation.info(), tags, lines);
        self.writer.put(&feature, None);
    }

    /// Adds the area of a relation.
    fn put_relation_area(&mut self, relation: &Relation<'_>, ways: &WayStore, tags: &TagList<'_>) {
        let Self {
            geometry, writer, ..
        } = self;
        let (id, members) = (relation.id(), relation.members());
        let report = &mut |problem| writer.add_problem(problem);
        let polygons = geometry.polygons_of_relation(id, members, ways, report);
        let (object, area) = (
            (ObjectKind::Relation, id),
            Geometry::MultiPolygon(&polygons),
        );
        let feature = Feature::new(object, relation.info(), tags, area);
        self.writer.put(&feature, Some(relation));
    }
}
