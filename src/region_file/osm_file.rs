//! Reads a region from OSM data. The region consists of the areas of multipolygon and boundary relations, and of closed
//! ways.

use super::on_map::AROUND_POLE;
use super::osm_objects::{AreaRelation, OsmObjects, RegionWay, point_of};
use crate::area::{AreaNode, AreaWay, OpenRings, Role, assemble_with_antimeridian, is_around_pole};
use crate::error::{Error, Result};
use crate::formats::NO_ID;
use crate::geometry::{Antimeridian, Polygon, Ring, Shape, vertex_message};
use crate::io::Input;
use crate::osm::Location;
use rustc_hash::FxHashSet;

/// Reads the areas in an OSM file. Areas are the relations with `type=multipolygon` or `type=boundary`, and the closed
/// ways that are not members of any of these relations. Geometry, not roles, determines which rings are holes. An area
/// around a pole is an error if `antimeridian` is [`Antimeridian::Cut`].
///
/// If the file does not have a node of a way, the location that the way stores for the node is used. If the file does
/// not have a member way, the nodes that the relation lists for the way are used. Servers write such lists when
/// geometry is requested.
pub(super) fn read(input: &Input, antimeridian: Antimeridian) -> Result<Shape> {
    let objects = OsmObjects::read(input)?;
    shape_of(&objects, antimeridian).map_err(|cause| Error::file(input.path(), cause))
}

/// Returns the areas that objects describe, as [`read`] does.
pub(super) fn shape_of(objects: &OsmObjects, antimeridian: Antimeridian) -> Result<Shape, String> {
    let mut polygons = areas_of_relations(objects, antimeridian)?;
    polygons.extend(areas_of_closed_ways(objects, antimeridian)?);
    match (polygons.is_empty(), objects.relations.is_empty()) {
        (false, _) => Ok(Shape { polygons }),
        (true, true) => Err("holds no multipolygon, no boundary and no closed way".to_owned()),
        (true, false) => Err("holds no relation with member ways".to_owned()),
    }
}

/// Assembles the areas of all closed ways.
fn areas_of_closed_ways(
    objects: &OsmObjects,
    antimeridian: Antimeridian,
) -> Result<Vec<Polygon>, String> {
    let mut polygons = Vec::new();
    for &way in &objects.closed_ways {
        let name = format!("way {way}");
        let nodes = nodes(objects, way, &name)?;
        polygons.extend(assemble_polygons(&name, &[(way, nodes)], antimeridian)?);
    }
    Ok(polygons)
}

/// Assembles polygons from ways. `ways` has the id and the nodes of each way. The name of each ring begins with
/// `owner`.
fn assemble_polygons(
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
    if antimeridian == Antimeridian::Cut && is_around_pole(&ways) {
        return Err(format!("{owner}: {AROUND_POLE}"));
    }
    let assembly = assemble_with_antimeridian(&ways, antimeridian, OpenRings::Refuse);
    if let Some(problem) = assembly.problems.iter().find(|one| one.kind.is_error()) {
        let mut problem = *problem;
        problem.node = problem.node.filter(|node| *node != NO_ID);
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
        Ring::new(format!("{owner}, ring {count}"), points)
    };
    let polygons = assembly.polygons.into_iter().map(|polygon| Polygon {
        outer: ring(polygon.outer),
        holes: polygon.holes.into_iter().map(&mut ring).collect(),
    });
    Ok(polygons.collect())
}

/// The maximum ratio of the nodes of all relations to the nodes of all ways. Relations share nodes: borders belong to
/// the areas on both sides, and to towns, counties, states and countries.
const MAX_SHARING: usize = 16;
/// The number of nodes that all relations together may have even if the ways have few nodes.
const MIN_NODES: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// Assembles the areas of all relations. Fails if the relations repeat ways too often.
fn areas_of_relations(
    objects: &OsmObjects,
    antimeridian: Antimeridian,
) -> Result<Vec<Polygon>, String> {
    let of_ways: usize = objects.ways.values().map(|way| way.refs.len()).sum();
    let listed: usize = objects.member_ways.values().map(Vec::len).sum();
    let max_nodes = MIN_NODES.max(MAX_SHARING * (of_ways + listed));
    let mut total = 0;
    let mut polygons = Vec::new();
    let mut incomplete = Vec::new();
    let mut parts_of_complete: FxHashSet<i64> = FxHashSet::default();
    for relation in &objects.relations {
        match member_ways(objects, relation) {
            Ok(ways) if ways.is_empty() => {}
            Ok(ways) => {
                let name = format!("relation {}", relation.id);
                total += ways.iter().map(|(_, nodes)| nodes.len()).sum::<usize>();
                if total > max_nodes {
                    return Err(format!(
                        "{name}: the relations have more than {max_nodes} nodes, because they repeat ways: leave those \
                         out that repeat the same areas"
                    ));
                }
                polygons.extend(assemble_polygons(&name, &ways, antimeridian)?);
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

/// Returns the id and the nodes of each member way of a relation. Fails if the nodes of a way are unknown, if a way has
/// fewer than two nodes, or if the location of a node is unknown. The error names the way or node.
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

/// Returns the nodes of a way. Uses the way in the file if its nodes and their locations are known. Otherwise uses the
/// nodes that a relation lists for the way.
fn nodes(objects: &OsmObjects, way: i64, name: &str) -> Result<Vec<AreaNode>, String> {
    let listed = objects.member_ways.get(&way);
    let listed = listed.map(|locations| nodes_from_locations(locations, name));
    match (objects.ways.get(&way), listed) {
        (Some(way), None) => nodes_of_way(objects, way, name),
        (Some(way), Some(listed)) => {
            nodes_of_way(objects, way, name).or_else(|cause| listed.map_err(|_| cause))
        }
        (None, Some(listed)) => listed,
        (None, None) => Err(format!("{name}: the way is not in the file")),
    }
}

/// Returns the nodes of a way that is in the file.
fn nodes_of_way(
    objects: &OsmObjects,
    way: &RegionWay,
    name: &str,
) -> Result<Vec<AreaNode>, String> {
    if way.refs.len() < 2 {
        return Err(too_few_nodes(name));
    }
    let stored = way.stored.iter().copied().chain(std::iter::repeat(None));
    let nodes = (1..).zip(&way.refs).zip(stored);
    let nodes = nodes.map(|((vertex, &id), stored)| {
        let point = match (objects.nodes.get(&id), stored) {
            (Some(Some(point)), _) => Ok(*point),
            (_, Some(location)) => point_of(location),
            (_, None) if id == NO_ID => Err(UNKNOWN_LOCATION.to_owned()),
            (Some(None), None) => Err(format!("node {id} has no location")),
            (None, None) => Err(format!("node {id} is not in the file")),
        };
        let point = point.map_err(|cause| vertex_message(name, vertex, cause))?;
        Ok(AreaNode { id, point })
    });
    nodes.collect()
}

/// Returns the nodes that a relation lists for a member way.
fn nodes_from_locations(
    locations: &[Option<Location>],
    name: &str,
) -> Result<Vec<AreaNode>, String> {
    if locations.len() < 2 {
        return Err(too_few_nodes(name));
    }
    let nodes = (1..).zip(locations).map(|(vertex, location)| {
        let known = location.ok_or_else(|| UNKNOWN_LOCATION.to_owned());
        let point = known.and_then(point_of);
        let point = point.map_err(|cause| vertex_message(name, vertex, cause))?;
        Ok(AreaNode { id: NO_ID, point })
    });
    nodes.collect()
}

/// The error for a node without an id whose location is unknown.
const UNKNOWN_LOCATION: &str = "the location is not in the file";

fn too_few_nodes(name: &str) -> String {
    format!("{name}: the way has fewer than two nodes")
}

#[cfg(test)]
mod tests;
