//! Regions as OSM data: the areas of multipolygon and boundary relations, and of closed ways.

use super::osm_objects::{AreaRelation, OsmObjects};
use crate::error::{Error, Result};
use crate::geometry::assemble::WayNode;
use crate::geometry::{Polygon, Shape, assemble, at_vertex, nested, ring};
use rustc_hash::FxHashSet;
use std::path::Path;

/// Reads the areas of an OSM file: those of relations with `type=multipolygon` or `type=boundary`,
/// and of closed ways that are not members of such a relation. Geometry, not roles, determines
/// which rings are holes.
pub(super) fn read(path: &Path) -> Result<Shape> {
    let objects = OsmObjects::read(path)?;
    let polygons = areas(&objects).and_then(|mut polygons| {
        polygons.extend(closed_ways(&objects)?);
        match (polygons.is_empty(), objects.relations.is_empty()) {
            (false, _) => Ok(polygons),
            (true, true) => Err("holds no multipolygon, no boundary and no closed way".to_owned()),
            (true, false) => Err("holds no relation with member ways".to_owned()),
        }
    });
    let polygons = polygons.map_err(|cause| Error::file(path, cause))?;
    Ok(Shape { polygons })
}

fn closed_ways(objects: &OsmObjects) -> Result<Vec<Polygon>, String> {
    let mut polygons = Vec::new();
    for &way in &objects.closed_ways {
        let name = format!("way {way}");
        let corners = corners(objects, way, &name)?;
        let mut points: Vec<_> = corners.iter().map(|corner| corner.point).collect();
        points.pop();
        polygons.push(Polygon {
            outer: ring(name, points)?,
            holes: Vec::new(),
        });
    }
    Ok(polygons)
}

fn areas(objects: &OsmObjects) -> Result<Vec<Polygon>, String> {
    let mut polygons = Vec::new();
    let mut incomplete = Vec::new();
    let mut parts_of_complete: FxHashSet<i64> = FxHashSet::default();
    for relation in &objects.relations {
        match member_ways(objects, relation) {
            Ok(ways) if ways.is_empty() => {}
            Ok(ways) => {
                let rings = assemble::rings(&format!("relation {}", relation.id), &ways)?;
                polygons.extend(nested(rings).polygons);
                parts_of_complete.extend(&relation.relations);
            }
            Err(cause) => incomplete.push((relation.id, cause)),
        }
    }
    // A download of one boundary contains the relations of its subareas, but not their ways. The
    // subareas lie within the boundary, so the region is the same without them.
    let missed = incomplete
        .into_iter()
        .find(|(id, _)| !parts_of_complete.contains(id));
    match missed {
        Some((_, cause)) => Err(cause),
        None => Ok(polygons),
    }
}

/// The corners of each member way of a relation. Fails with the name of a way or node that is not
/// in the file, or of a way with fewer than two nodes.
fn member_ways(objects: &OsmObjects, relation: &AreaRelation) -> Result<Vec<Vec<WayNode>>, String> {
    let ways = relation.ways.iter();
    ways.map(|&way| {
        corners(
            objects,
            way,
            &format!("relation {}, way {way}", relation.id),
        )
    })
    .collect()
}

fn corners(objects: &OsmObjects, way: i64, name: &str) -> Result<Vec<WayNode>, String> {
    let nodes = objects.ways.get(&way);
    let nodes = nodes.ok_or_else(|| format!("{name}: the way is not in the file"))?;
    if nodes.len() < 2 {
        return Err(format!("{name}: the way has fewer than two nodes"));
    }
    let corners = (1..).zip(nodes).map(|(vertex, &id)| {
        let point = objects.nodes.get(&id).copied();
        let point = point
            .ok_or_else(|| at_vertex(name, vertex, format!("node {id} is not in the file")))?;
        Ok(WayNode { id, point })
    });
    corners.collect()
}

#[cfg(test)]
mod tests;
