//! Reads areas from the answer of an Overpass server in JSON (see the OSM wiki page "Overpass API/Overpass QL", `out`).

use super::osm_objects::{OsmObjects, RegionWay, area_relation, point_of};
use crate::engine::geometry_pass::is_area;
use crate::formats::NO_ID;
use crate::osm::{Location, ObjectKind};
use crate::pbf::Member;
use serde_json::Value;

/// Whether a JSON document is the answer of an Overpass server, which has `elements` and, unlike GeoJSON, no `type`.
pub(super) fn is_overpass_response(document: &Value) -> bool {
    document.get("elements").is_some_and(Value::is_array) && document.get("type").is_none()
}

/// Returns the objects in an answer that make up areas. Errors name the object.
pub(super) fn objects_of(answer: &Value) -> Result<OsmObjects, String> {
    let mut objects = OsmObjects::default();
    for (id, relation) in elements(answer, ObjectKind::Relation)? {
        let mut members = Vec::new();
        for member in array_field(relation, "members") {
            let named = kind_of(member).zip(member.get("ref").and_then(Value::as_i64));
            let (kind, id) =
                named.ok_or_else(|| format!("relation {id}: a member has no type or no ref"))?;
            if kind == ObjectKind::Way && member.get("geometry").is_some() {
                objects.add_member_way(id, || locations(member));
            }
            let role = "";
            members.push(Member { kind, id, role });
        }
        if is_area(tags(relation)) {
            objects
                .relations
                .push(area_relation(id, members.into_iter()));
        }
    }
    let members = objects.member_ids();
    for (id, way) in elements(answer, ObjectKind::Way)? {
        let stored = locations(way);
        let refs: Option<Vec<i64>> = array_field(way, "nodes")
            .iter()
            .map(Value::as_i64)
            .collect();
        let mut refs = refs.ok_or_else(|| format!("way {id}: a node is not an id"))?;
        // An answer without the bodies of objects gives the locations of a way, but no ids of nodes.
        if refs.is_empty() {
            refs.resize(stored.len(), NO_ID);
        }
        objects.add_way(&members, id, RegionWay { refs, stored });
    }
    let wanted = objects.node_ids();
    for (id, node) in elements(answer, ObjectKind::Node)? {
        if wanted.contains(&id) {
            let point = location(node).map(point_of).transpose();
            let point = point.map_err(|cause| format!("node {id}: {cause}"))?;
            objects.nodes.insert(id, point);
        }
    }
    Ok(objects)
}

/// Returns the objects of a kind, with their ids, in the order of the answer.
fn elements(answer: &Value, kind: ObjectKind) -> Result<Vec<(i64, &Value)>, String> {
    let mut found = Vec::new();
    for element in array_field(answer, "elements") {
        if kind_of(element) == Some(kind) {
            let id = element.get("id").and_then(Value::as_i64);
            found.push((id.ok_or_else(|| format!("a {kind} has no id"))?, element));
        }
    }
    Ok(found)
}

/// Returns the kind of an object or a member; `None` if its type is not that of an object.
fn kind_of(object: &Value) -> Option<ObjectKind> {
    let name = object.get("type")?.as_str()?;
    let mut kinds = ObjectKind::ALL.into_iter();
    kinds.find(|kind| kind.name() == name)
}

/// Returns the array in a field, or an empty array if the field is missing or has another type.
fn array_field<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    let list = object.get(field).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn tags(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let tags = object.get("tags").and_then(Value::as_object);
    let tags = tags.into_iter().flatten();
    tags.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// Returns the locations in the geometry of a way or of a member way. Nodes outside of the requested bounding box are
/// null.
fn locations(way: &Value) -> Vec<Option<Location>> {
    array_field(way, "geometry").iter().map(location).collect()
}

/// Returns the location in the fields `lat` and `lon`; `None` if a field is missing, or if the location is not on
/// earth.
fn location(object: &Value) -> Option<Location> {
    let degrees = |field: &str| object.get(field).and_then(Value::as_f64);
    Location::from_degrees(degrees("lat")?, degrees("lon")?)
}
