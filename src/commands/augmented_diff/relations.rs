//! Finds the relations that changes concern.

use super::Base;
use super::blobs::ids_of_changed_objects;
use super::history::{History, Status};
use super::kept::KeptRows;
use super::reshaped::Reshaped;
use super::routes::{NeededRoutes, route_members};
use crate::area::RouteMember;
use crate::engine::distinct_list::DistinctList;
use crate::engine::payload_cache::PayloadCache;
use crate::error::Result;
use crate::index::{IdSet, SparseIds};
use crate::osm::{ObjectKind, id_from_rank};
use crate::pbf::{Object, ObjectBody};
use std::borrow::Cow;

/// The findings in one blob of the base: relations that changes concern, and nested relations that geometries need.
#[derive(Default)]
pub(super) struct FoundRelations {
    /// The indices of the changes of relations, each with the status of the change.
    pub status: Vec<(usize, Status)>,
    pub kept: KeptRows,
    /// The ids of the ways that are members of the relations that changes concern.
    pub ways: DistinctList<i64>,
    /// The ids of the nodes that are members of the relations that changes concern.
    pub nodes: DistinctList<i64>,
    /// The needed relations that are nested in routes. Each has the members that it adds to the lines of these routes.
    pub nested: Vec<(i64, Vec<RouteMember>)>,
}

/// The changes and the changed members that decide whether changes concern a relation.
pub(super) struct ChangedMembers<'m, 'c> {
    pub history: &'m History<'c>,
    nodes: SparseIds<'m>,
    /// The ways with a change of their own, and the ways whose shape has changed because their nodes moved.
    ways: SparseIds<'m>,
    /// The relations with a change.
    pub relations: IdSet,
    /// If a relation has more members than this, its members are not read.
    pub max_members: u64,
}

impl<'m, 'c> ChangedMembers<'m, 'c> {
    pub(super) fn new(history: &'m History<'c>, reshaped: &Reshaped, max_members: u64) -> Self {
        let mut ways = history.changed_ids(ObjectKind::Way).clone();
        ways.extend(reshaped.ids());
        Self {
            history,
            nodes: SparseIds::new(Cow::Borrowed(history.changed_ids(ObjectKind::Node))),
            ways: SparseIds::new(Cow::Owned(ways)),
            relations: ids_of_changed_objects(history.changes, ObjectKind::Relation),
            max_members,
        }
    }

    /// Whether a member node or member way has changed. A way also counts as changed if its shape has changed because
    /// its nodes moved. Returns `false` for relations.
    pub(super) fn has(&self, kind: ObjectKind, id: i64) -> bool {
        match kind {
            ObjectKind::Node => self.nodes.contains(id),
            ObjectKind::Way => self.ways.contains(id),
            ObjectKind::Relation => false,
        }
    }
}

impl FoundRelations {
    /// Adds a relation of the base that has a change or a changed member. A changed route that is nested in the
    /// relation counts as a changed member.
    fn add(
        &mut self,
        relation: &Object<'_>,
        has_changed_member: bool,
        changed: &ChangedMembers<'_, '_>,
    ) {
        let ObjectBody::Relation { members } = &relation.body else {
            return;
        };
        self.kept.push(relation);
        let mut is_concerned = has_changed_member;
        for index in changed
            .history
            .change_indices(ObjectKind::Relation, relation.id)
        {
            let status = changed.history.status_in_base(index, &relation.info);
            is_concerned |= status == Status::Replaces;
            self.status.push((index, status));
        }
        if !is_concerned || members.len() as u64 > changed.max_members {
            return;
        }
        for member in members.iter() {
            match member.kind {
                ObjectKind::Node => self.nodes.push(member.id),
                ObjectKind::Way => self.ways.push(member.id),
                ObjectKind::Relation => {}
            }
        }
    }
}

/// Reads all relations of the base. Blobs that are not in the cache `read` are read from the file. Calls `take` for
/// each blob, with the relations that changes concern and the nested relations that `routes` names.
pub(super) fn find_relations(
    base: &Base<'_>,
    read: &PayloadCache,
    changed: &ChangedMembers<'_, '_>,
    routes: &NeededRoutes,
    take: impl FnMut(FoundRelations) -> Result<()>,
) -> Result<()> {
    base.source
        .scan("relations")
        .with_strings()
        .with_cache_to_drain(read)
        .try_run(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |_, block| {
                let (mut found, mut object) = (FoundRelations::default(), Object::default());
                let mut cursor = block.cursor();
                while let Some(element) = cursor.next()? {
                    if element.key.0 != ObjectKind::Relation {
                        continue;
                    }
                    let has_changed_member =
                        element.any_member(|kind, id| changed.has(kind, id))?;
                    let id = id_from_rank(element.key.1);
                    let has_changed_member = has_changed_member || routes.affected.contains(id);
                    let is_kept = has_changed_member || changed.relations.contains(id);
                    let is_nested = routes.nested.contains(id);
                    if is_kept || is_nested {
                        object.fill(element, block)?;
                    }
                    if is_kept {
                        found.add(&object, has_changed_member, changed);
                    }
                    if is_nested {
                        found.nested.push((id, route_members(&object)));
                    }
                }
                Ok(found)
            },
            take,
        )
}
