//! Lines of relations, merged plainly.

use super::{Kind, Object};
use std::collections::HashMap;

/// A place: longitude and latitude in nanodegrees.
pub type Place = (i64, i64);

/// Returns a relation whose member relations are replaced by their own members, unless they are areas, lie beside the
/// line, or are in `above`, the ids of the relations that contain this one.
pub fn with_nested_members(
    relation: &Object,
    relations: &HashMap<i64, &Object>,
    above: &[i64],
) -> Object {
    const PARTS: [&str; 6] = [
        "route",
        "superroute",
        "route_master",
        "network",
        "waterway",
        "collection",
    ];
    let above = [above, &[relation.id]].concat();
    let mut all = relation.clone();
    all.members.clear();
    for member in &relation.members {
        let (kind, id, role) = member;
        let is_beside = ["platform", "stop", "tributary", "TMC:"]
            .iter()
            .any(|start| role.starts_with(start));
        if *kind != Kind::Relation {
            all.members.push(member.clone());
        } else if !is_beside
            && !above.contains(id)
            && let Some(part) = relations.get(id)
        {
            let type_of = part.tags.iter().find(|(key, _)| key == "type");
            if type_of.is_none_or(|(_, value)| PARTS.contains(&value.as_str())) {
                let part = with_nested_members(part, relations, &above);
                all.members.extend(part.members);
            }
        }
    }
    all
}

/// Returns the lines of a relation: its member ways in order, each joined to the line before it where their ends meet.
/// Platforms and stops are left out, and so are ways that are not in the file.
pub fn lines_of(relation: &Object, ways: &HashMap<i64, Vec<Option<Place>>>) -> Vec<Vec<Place>> {
    let mut lines: Vec<(Vec<Place>, bool)> = Vec::new();
    for (kind, id, role) in &relation.members {
        if *kind != Kind::Way || role.starts_with("platform") || role.starts_with("stop") {
            continue;
        }
        let Some(places) = ways.get(id) else { continue };
        let Some(mut way) = places.iter().copied().collect::<Option<Vec<Place>>>() else {
            continue;
        };
        way.dedup();
        if way.len() < 2 {
            continue;
        }
        let ends = [way[0], way[way.len() - 1]];
        let mut is_joined = false;
        if let Some((line, is_single)) = lines.last_mut() {
            if *is_single && !ends.contains(&line[line.len() - 1]) && ends.contains(&line[0]) {
                line.reverse();
            }
            let end = line[line.len() - 1];
            if ends.contains(&end) {
                if ends[0] != end {
                    way.reverse();
                }
                line.extend(&way[1..]);
                *is_single = false;
                is_joined = true;
            }
        }
        if !is_joined {
            lines.push((way, true));
        }
    }
    lines.into_iter().map(|(line, _)| line).collect()
}
