//! Reads the relations that are members of routes.

use super::{GeometryPass, is_area};
use crate::area::{MAX_DEPTH, MAX_KEPT, NestedRelations, RouteMember};
use crate::engine::scan::Scan;
use crate::error::Result;
use crate::index::IdSet;
use crate::osm::ObjectKind;
use crate::pbf::{Element, Member};
use std::collections::BTreeSet;

/// Whether the line of a relation with these tags includes the lines of its member relations. This holds for all
/// relations that are not areas.
pub(crate) fn has_member_lines<'t>(tags: impl Iterator<Item = (&'t str, &'t str)>) -> bool {
    !is_area(tags)
}

/// Whether the line of a route includes the line of a member relation with these tags. The lines of areas, stop areas,
/// traffic messages and the like are not included.
fn is_part_of_route<'t>(mut tags: impl Iterator<Item = (&'t str, &'t str)>) -> bool {
    const TYPES: [&str; 6] = [
        "route",
        "superroute",
        "route_master",
        "network",
        "waterway",
        "collection",
    ];
    let type_of = tags.find(|(key, _)| *key == "type");
    type_of.is_none_or(|(_, value)| TYPES.contains(&value))
}

/// Returns the members that a member relation of a route adds to the line of the route. Returns no members if the line
/// of the relation is not part of the line of the route. `tags` and `members` are those of the member relation.
pub(crate) fn nested_members<'t, 'm>(
    tags: impl Iterator<Item = (&'t str, &'t str)>,
    members: impl Iterator<Item = Member<'m>>,
) -> Vec<RouteMember> {
    if is_part_of_route(tags) {
        RouteMember::line_members(members).take(MAX_KEPT).collect()
    } else {
        Vec::new()
    }
}

impl GeometryPass<'_> {
    /// Reads the relations with the ids in `pending`, and the relations that are nested in them. Adds the ids of the
    /// member ways of all these relations to `wanted`. Each level of nesting needs a pass over the relations of the
    /// file.
    pub(super) fn read_nested_relations(
        &self,
        mut pending: BTreeSet<i64>,
        wanted: &mut IdSet,
    ) -> Result<NestedRelations> {
        let mut nested = NestedRelations::default();
        for _ in 0..MAX_DEPTH {
            if pending.is_empty() {
                break;
            }
            let needed = std::mem::take(&mut pending);
            // Every relation counts as missing until it is found. A relation that is not in the file is therefore
            // looked for only once.
            needed
                .iter()
                .for_each(|id| nested.add_missing_relation(*id));
            let scan = Scan::without_strings("member routes", self.file, &self.plan, &self.ctx)
                .with_strings();
            scan.run(
                |entry| entry.kinds.contains(ObjectKind::Relation),
                |_, block| {
                    let mut found = Vec::new();
                    block.try_for_each(|element| {
                        if let Element::Relation(relation) = element
                            && needed.contains(&relation.id())
                        {
                            let members = nested_members(relation.tags(), relation.members());
                            found.push((relation.id(), members));
                        }
                        Ok(())
                    })?;
                    Ok(found)
                },
                |found| {
                    for (id, members) in found {
                        for member in &members {
                            match member {
                                RouteMember::Way(way) => wanted.extend([*way]),
                                RouteMember::Relation(id) if !nested.contains_relation(*id) => {
                                    pending.insert(*id);
                                }
                                RouteMember::Relation(_) => {}
                            }
                        }
                        nested.add(id, members);
                    }
                },
            )?;
        }
        Ok(nested)
    }
}
