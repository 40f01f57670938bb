//! Builds the geometries of single objects.

use super::FeatureRules;
use super::cuts::Cuts;
use super::line_relations::RelationLines;
use crate::area::WayStore;
use crate::engine::geometry_pass::is_area;
use crate::engine::object_geometry::GeometryMaker;
use crate::formats::features::{Geometry, OwnedGeometry};
use crate::osm::{Location, retain_unique};
use crate::pbf::{Object, ObjectBody};

/// Builds the geometries of single objects in the same way as an export to a table with default options.
pub(crate) struct ObjectGeometries {
    rules: FeatureRules,
    cuts: Cuts,
    geometry: GeometryMaker,
}

impl ObjectGeometries {
    /// Creates a builder. With `keep_untagged`, objects without tags have geometries, too.
    pub(crate) fn new(keep_untagged: bool) -> Self {
        let rules = FeatureRules::default().with_line_relations();
        Self {
            cuts: Cuts::new(&rules),
            rules: rules.keep_untagged(keep_untagged),
            geometry: GeometryMaker::default(),
        }
    }

    /// Returns the geometry of an object; `None` if the object does not become a feature. `locations` has the location
    /// of each node of a way, and `ways` has the member ways of a relation and of the routes that are nested in it.
    pub(crate) fn geometry_of(
        &mut self,
        object: &Object<'_>,
        locations: &[Option<Location>],
        ways: &WayStore,
    ) -> Option<OwnedGeometry> {
        let mut tags: Vec<_> = object.tags.to_vec();
        retain_unique(&mut tags);
        let (rules, geometry, id) = (&self.rules, &mut self.geometry, object.id);
        match &object.body {
            ObjectBody::Node { location } => {
                let point = GeometryMaker::point(id, *location, &mut |_| {});
                let is_feature = rules.retain_written_tags(&mut tags);
                cut_geometry(&self.cuts, Geometry::Point(point.filter(|_| is_feature)?))
            }
            ObjectBody::Way { refs, .. } => {
                let (is_line, _) = rules.way_forms(&tags, locations);
                let is_feature = rules.retain_written_tags(&mut tags);
                let refs = refs.iter().copied();
                let line = geometry.line_of_way(id, refs.clone(), locations, &mut |_| {});
                let line = line.filter(|_| is_feature)?;
                // With the default rules, a way becomes a line or an area, and not both.
                if is_line {
                    return cut_geometry(&self.cuts, Geometry::LineString(line));
                }
                let polygons = geometry.polygons_of_line(id, refs, &mut |_| {});
                cut_geometry(&self.cuts, Geometry::MultiPolygon(&polygons))
            }
            ObjectBody::Relation { members } => {
                let (type_of, members) = (object.tags.iter().copied(), members.iter().copied());
                if rules.is_line_relation(type_of.clone()) {
                    let found = RelationLines::of(id, type_of, members, ways);
                    return cut_geometry(&self.cuts, Geometry::MultiLineString(&found.lines));
                }
                tags.retain(|(key, _)| *key != "type");
                if !is_area(type_of) || !rules.retain_written_tags(&mut tags) {
                    return None;
                }
                let polygons = geometry.polygons_of_relation(id, members, ways, &mut |_| {});
                cut_geometry(&self.cuts, Geometry::MultiPolygon(&polygons))
            }
        }
    }
}

/// Cuts a geometry. Returns `None` if nothing is left of it.
fn cut_geometry(cuts: &Cuts, geometry: Geometry<'_>) -> Option<OwnedGeometry> {
    let extent = geometry.extent()?;
    let cut = cuts.apply(&geometry, &extent);
    Some(cut.remainder_of(geometry)?.to_owned())
}
