//! Finds the routes that are affected by changes of other routes.

use super::Base;
use super::relations::ChangedMembers;
use super::routes::{NeededRoutes, is_line_relation, route_members};
use crate::area::RouteMember;
use crate::engine::payload_cache::PayloadCache;
use crate::error::Result;
use crate::index::IdSet;
use crate::osm::ObjectKind;
use crate::pbf::{Object, ObjectBody};

/// The routes that contain other relations.
#[derive(Default)]
pub(super) struct RouteGraph {
    /// Sorted pairs of the ids of a relation and of a member relation. The relation is in the base or in a change, and
    /// its line includes the line of the member relation.
    members: Vec<(i64, i64)>,
    /// The pairs of `members` that are in the base, with the member relation first. Sorted.
    parents: Vec<(i64, i64)>,
    /// The relations of the base that become lines and contain other relations.
    lines: IdSet,
    /// The relations of `lines` that have too many members to be read.
    large: IdSet,
    /// The relations that become lines, contain other relations, and have a change or a changed member.
    concerned: IdSet,
    /// The relations of the base with a member way that has a change, or that gets another shape.
    touched: IdSet,
}

/// The entries of a [`RouteGraph`] for some of the relations.
#[derive(Default)]
struct FoundRoutes {
    members: Vec<(i64, i64)>,
    lines: Vec<i64>,
    large: Vec<i64>,
    concerned: Vec<i64>,
    touched: Vec<i64>,
}

impl FoundRoutes {
    /// Adds a relation. `is_concerned` is whether it has a change or a changed member.
    fn add(&mut self, relation: &Object<'_>, is_concerned: bool, changed: &ChangedMembers<'_, '_>) {
        let ObjectBody::Relation { members } = &relation.body else {
            return;
        };
        let (id, before) = (relation.id, self.members.len());
        let mut is_touched = false;
        for member in route_members(relation) {
            match member {
                RouteMember::Way(way) => is_touched |= changed.has(ObjectKind::Way, way),
                RouteMember::Relation(member) => self.members.push((id, member)),
            }
        }
        if is_touched {
            self.touched.push(id);
        }
        if self.members.len() == before || !is_line_relation(relation) {
            return;
        }
        self.lines.push(id);
        if members.len() as u64 > changed.max_members {
            self.large.push(id);
        } else if is_concerned {
            self.concerned.push(id);
        }
    }
}

impl RouteGraph {
    /// Reads all relations of the base. Blobs that are not in the cache `read` are read from the file. Adds the
    /// payloads of the blobs with relations to the cache `kept`, as long as it has room.
    pub(super) fn of(
        base: &Base<'_>,
        (read, kept): (&PayloadCache, &PayloadCache),
        changed: &ChangedMembers<'_, '_>,
    ) -> Result<Self> {
        let mut graph = Self::default();
        let scan = base.source.scan("routes").with_strings();
        scan.with_cache_to_drain(read)
            .with_cache_to_fill(kept)
            .run(
                |entry| entry.kinds.contains(ObjectKind::Relation),
                |_, block| {
                    let (mut found, mut object) = (FoundRoutes::default(), Object::default());
                    let mut cursor = block.cursor();
                    while let Some(element) = cursor.next()? {
                        if element.key.0 != ObjectKind::Relation {
                            continue;
                        }
                        let (mut has_relations, mut has_changed) = (false, false);
                        element.for_each_member(|kind, id| {
                            has_relations |= kind == ObjectKind::Relation;
                            has_changed |= changed.has(kind, id);
                        })?;
                        if has_relations || has_changed {
                            object.fill(element, block)?;
                            let is_concerned = has_changed || changed.relations.contains(object.id);
                            found.add(&object, is_concerned, changed);
                        }
                    }
                    Ok(found)
                },
                |found| graph.add(found),
            )?;
        let pairs = graph.members.iter();
        graph.parents = pairs
            .map(|(relation, member)| (*member, *relation))
            .collect();
        graph.parents.sort_unstable();
        graph.add_changes(changed);
        Ok(graph)
    }

    /// Adds relations of the base.
    fn add(&mut self, found: FoundRoutes) {
        self.members.extend(found.members);
        self.lines.extend(found.lines);
        self.large.extend(found.large);
        self.concerned.extend(found.concerned);
        self.touched.extend(found.touched);
    }

    /// Adds the new states of relations.
    fn add_changes(&mut self, changed: &ChangedMembers<'_, '_>) {
        let mut found = FoundRoutes::default();
        for (change, object) in changed.history.changes.iter() {
            if !change.is_deletion() {
                found.add(&object, true, changed);
            }
        }
        self.members.extend(found.members);
        self.members.sort_unstable();
        self.concerned.extend(found.concerned);
    }

    /// Returns the relations of the base that are needed if the relations of `changed` may have changed.
    pub(super) fn needed_routes(&self, changed: &IdSet) -> NeededRoutes {
        let affected = self.affected_relations(changed);
        let read = affected.ids().filter(|id| !self.large.contains(*id));
        NeededRoutes {
            nested: reachable_ids(&self.members, self.concerned.ids().chain(read)),
            affected,
        }
    }

    /// Returns the relations of the base that become lines, and in which one of the following is nested: a relation of
    /// `changed`, or a relation with a changed member way.
    pub(super) fn affected_relations(&self, changed: &IdSet) -> IdSet {
        let found = reachable_ids(&self.parents, changed.ids().chain(self.touched.ids()));
        found.ids().filter(|id| self.lines.contains(*id)).collect()
    }
}

/// Returns the ids that are reachable from the ids of `start` by one or more pairs. A pair leads from its first to its
/// second id. The pairs must be sorted.
fn reachable_ids(pairs: &[(i64, i64)], start: impl Iterator<Item = i64>) -> IdSet {
    let (mut found, mut left) = (IdSet::default(), start.collect::<Vec<_>>());
    while let Some(id) = left.pop() {
        let first = pairs.partition_point(|(from, _)| *from < id);
        let of_id = pairs[first..].iter().take_while(|(from, _)| *from == id);
        for (_, to) in of_id {
            if found.insert(*to) {
                left.push(*to);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_followed_also_in_circles() {
        let pairs = [(-1, 4), (1, 2), (2, 3), (3, 1), (3, 5), (7, 8)];
        let found = |start: &[i64]| {
            let found = reachable_ids(&pairs, start.iter().copied());
            let mut found: Vec<i64> = found.ids().collect();
            found.sort_unstable();
            found
        };
        assert_eq!(found(&[1]), [1, 2, 3, 5]);
        assert_eq!(found(&[-1, 7, 9]), [4, 8]);
        assert!(found(&[5]).is_empty());
    }
}
