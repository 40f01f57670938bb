//! Reads a region from OSM data. The region consists of the areas of multipolygon and boundary relations, and of closed
//! ways.

use super::on_map::AROUND_POLE;
use super::osm_objects::{AreaRelation, OsmObjects};
use crate::area::{AreaNode, AreaWay, OpenRings, Role, assemble, assemble_on_map, is_around_pole};
use crate::error::{Error, Result};
use crate::geometry::{Antimeridian, Polygon, Ring, Shape, at_vertex};
use rustc_hash::FxHashSet;
use std::path::Path;

/// Reads the areas in an OSM file. Areas are the relations with `type=multipolygon` or `type=boundary`, and the closed
/// ways that are not members of one of these relations. Geometry, not roles, determines which rings are holes. An area
/// around a pole is an error if areas are cut at the antimeridian.
pub(super) fn read(path: &Path, antimeridian: Antimeridian) -> Result<Shape> {
    let objects = OsmObjects::read(path)?;
    let polygons = areas(&objects, antimeridian).and_then(|mut polygons| {
        polygons.extend(closed_ways(&objects, antimeridian)?);
        match (polygons.is_empty(), objects.relations.is_empty()) {
            (false, _) => Ok(polygons),
            (true, true) => Err("holds no multipolygon, no boundary and no closed way".to_owned()),
            (true, false) => Err("holds no relation with member ways".to_owned()),
        }
    });
    let polygons = polygons.map_err(|cause| Error::file(path, cause))?;
    Ok(Shape { polygons })
}

fn closed_ways(objects: &OsmObjects, antimeridian: Antimeridian) -> Result<Vec<Polygon>, String> {
    let mut polygons = Vec::new();
    for &way in &objects.closed_ways {
        let name = format!("way {way}");
        let nodes = nodes(objects, way, &name)?;
        polygons.extend(assembled(&name, &[(way, nodes)], antimeridian)?);
    }
    Ok(polygons)
}

/// Assembles polygons from ways. `ways` has the id and the nodes of each way. The name of each ring begins with
/// `owner`.
fn assembled(
    owner: &str,
    ways: &[(i64, Vec<AreaNode>)],
    antimeridian: Antimeridian,
) -> Result<Vec<Polygon>, String> {
    let ways: Vec<AreaWay<'_>> = ways
        .iter()
        .map(|(id, nodes)| AreaWay {
            id: *id,
            role: Role::Other,
            nodes,
        })
        .collect();
    let assembly = match antimeridian {
        Antimeridian::Keep => assemble(&ways, OpenRings::Refuse),
        Antimeridian::Cut if is_around_pole(&ways) => {
            return Err(format!("{owner}: {AROUND_POLE}"));
        }
        Antimeridian::Cut => assemble_on_map(&ways, OpenRings::Refuse),
    };
    if let Some(problem) = assembly.problems.iter().find(|one| one.kind.is_error()) {
        let text = problem.to_string();
        return Err(if text.starts_with(owner) {
            text
        } else {
            format!("{owner}: {text}")
        });
    }
    let mut count = 0;
    let mut ring = |points| {
        count += 1;
        Ring {
            name: format!("{owner}, ring {count}"),
            points,
        }
    };
    let polygons = assembly.polygons.into_iter().map(|polygon| Polygon {
        outer: ring(polygon.outer),
        holes: polygon.holes.into_iter().map(&mut ring).collect(),
    });
    Ok(polygons.collect())
}

fn areas(objects: &OsmObjects, antimeridian: Antimeridian) -> Result<Vec<Polygon>, String> {
    let mut polygons = Vec::new();
    let mut incomplete = Vec::new();
    let mut parts_of_complete: FxHashSet<i64> = FxHashSet::default();
    for relation in &objects.relations {
        match member_ways(objects, relation) {
            Ok(ways) if ways.is_empty() => {}
            Ok(ways) => {
                let name = format!("relation {}", relation.id);
                polygons.extend(assembled(&name, &ways, antimeridian)?);
                parts_of_complete.extend(&relation.relations);
            }
            Err(cause) => incomplete.push((relation.id, cause)),
        }
    }
    // A file with a single downloaded boundary has the relations of the subareas, but not the ways of these relations.
    // The subareas lie within the boundary, so the region is the same without them.
    let missed = incomplete
        .into_iter()
        .find(|(id, _)| !parts_of_complete.contains(id));
    match missed {
        Some((_, cause)) => Err(cause),
        None => Ok(polygons),
    }
}

/// Returns the id and the nodes of each member way of a relation. Fails if a way or node is not in the file, or if a
/// way has fewer than two nodes. The error names the way or node.
fn member_ways(
    objects: &OsmObjects,
    relation: &AreaRelation,
) -> Result<Vec<(i64, Vec<AreaNode>)>, String> {
    let ways = relation.ways.iter();
    ways.map(|&way| {
        let name = format!("relation {}, way {way}", relation.id);
        Ok((way, nodes(objects, way, &name)?))
    })
    .collect()
}

fn nodes(objects: &OsmObjects, way: i64, name: &str) -> Result<Vec<AreaNode>, String> {
    let refs = objects.ways.get(&way);
    let refs = refs.ok_or_else(|| format!("{name}: the way is not in the file"))?;
    if refs.len() < 2 {
        return Err(format!("{name}: the way has fewer than two nodes"));
    }
    let nodes = (1..).zip(refs).map(|(vertex, &id)| {
        let point = objects.nodes.get(&id).copied();
        let point = point
            .ok_or_else(|| at_vertex(name, vertex, format!("node {id} is not in the file")))?;
        Ok(AreaNode { id, point })
    });
    nodes.collect()
}

#[cfg(test)]
mod tests;
