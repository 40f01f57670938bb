//! Reads the relations that are members of superroutes.

use super::GeometryPass;
use crate::area::{MAX_DEPTH, NestedRelations, RouteMember};
use crate::engine::scan::Scan;
use crate::error::Result;
use crate::index::IdSet;
use crate::osm::ObjectKind;
use crate::pbf::{Element, Relation};
use std::collections::BTreeSet;

/// Whether a relation is a superroute. The line of a superroute consists of the lines of its member relations.
pub(crate) fn is_superroute(relation: &Relation<'_>) -> bool {
    let mut tags = relation.tags();
    tags.any(|(key, value)| key == "type" && value == "superroute")
}

impl GeometryPass<'_> {
    /// Reads the relations with the ids in `pending`, and the relations that are nested in them. Adds the ids of the
    /// member ways of all these relations to `wanted`. Each level of nesting needs a pass over the relations of the
    /// file.
    pub(super) fn nested(
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
            // Every relation counts as missing until it is found, so that a relation that is not in the file is not
            // looked for again.
            needed.iter().for_each(|id| nested.add_missing(*id));
            let scan = Scan::bare("superroutes", self.file, &self.plan, self.ctx).with_strings();
            scan.run(
                |entry| entry.kinds.contains(ObjectKind::Relation),
                |_, block| {
                    let mut found = Vec::new();
                    block.try_for_each(|element| {
                        if let Element::Relation(relation) = element
                            && needed.contains(&relation.id())
                        {
                            let members = RouteMember::of(relation.members());
                            found.push((relation.id(), members.collect::<Vec<_>>()));
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
                                RouteMember::Relation(id) if !nested.has(*id) => {
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
