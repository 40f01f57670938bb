//! Routes that contain other routes, before and after the changes. Such a route gets the same line as in an export.

use super::history::History;
use crate::area::{NestedRelations, RouteMember};
use crate::commands::export::LINE_RELATIONS;
use crate::engine::geometry_pass::nested_members;
use crate::index::IdSet;
use crate::osm::ObjectKind;
use crate::pbf::{Object, ObjectBody};
use std::sync::Arc;

/// The relations of the base that are needed for the geometries of routes.
#[derive(Default)]
pub(super) struct NeededRoutes {
    /// The routes in which a changed relation or a relation with a changed member way is nested. Their lines may
    /// change.
    pub affected: IdSet,
    /// The relations that are nested in written routes.
    pub nested: IdSet,
}

/// The relations that are nested in written routes. Their members before and after all changes are known, but not the
/// members between two changes.
#[derive(Default)]
pub(super) struct Routes {
    affected: IdSet,
    old: Arc<NestedRelations>,
    new: Arc<NestedRelations>,
}

impl Routes {
    /// Collects nested relations. `affected` are the routes in which a changed route is nested. `needed` are the ids of
    /// the nested relations, and `in_base` has the members of the nested relations that are in the base. `history` must
    /// already know which changes of relations have an effect.
    pub(super) fn new(
        affected: IdSet,
        needed: &IdSet,
        in_base: Vec<(i64, Vec<RouteMember>)>,
        history: &History<'_>,
    ) -> Self {
        let (mut old, mut new) = (NestedRelations::default(), NestedRelations::default());
        for id in needed.ids() {
            old.add_missing_relation(id);
            new.add_missing_relation(id);
        }
        for (id, members) in in_base {
            new.add(id, members.clone());
            old.add(id, members);
        }
        for id in needed.ids() {
            match history.last_change(ObjectKind::Relation, id, u32::MAX) {
                Some(change) if change.is_deletion() => new.add_missing_relation(id),
                Some(change) => new.add(id, route_members(&history.changes.object(change))),
                None => {}
            }
        }
        Self {
            affected,
            old: Arc::new(old),
            new: Arc::new(new),
        }
    }

    /// Whether a changed route is nested in the route `id` of the base.
    pub(super) fn is_affected(&self, id: i64) -> bool {
        self.affected.contains(id)
    }

    /// Returns the nested relations at a moment.
    pub(super) const fn nested(&self, moment: u32) -> &Arc<NestedRelations> {
        if moment == 0 { &self.old } else { &self.new }
    }

    /// Returns the ids of the ways of a route and of the relations nested in it, at a moment. Returns an empty list for
    /// a route without member relations, and for an object that is not a route.
    pub(super) fn way_ids_at(&self, route: &Object<'_>, moment: u32) -> Vec<i64> {
        match &route.body {
            ObjectBody::Relation { members }
                if is_line_relation(route)
                    && members.iter().any(|one| one.kind == ObjectKind::Relation) =>
            {
                let nested = self.nested(moment);
                nested.ways_of(route.id, members.iter().copied()).ids
            }
            _ => Vec::new(),
        }
    }

    /// Returns the ids of the ways of all nested relations, before and after the changes.
    pub(super) fn way_ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.old.way_ids().chain(self.new.way_ids())
    }
}

/// Whether a relation has one of the types from which an export makes lines.
pub(super) fn is_line_relation(relation: &Object<'_>) -> bool {
    let type_of = relation.tags.iter().find(|(key, _)| *key == "type");
    type_of.is_some_and(|(_, value)| LINE_RELATIONS.contains(value))
}

/// Returns the members that a relation adds to the line of a route in which it is nested.
pub(super) fn route_members(relation: &Object<'_>) -> Vec<RouteMember> {
    match &relation.body {
        ObjectBody::Relation { members } => {
            nested_members(relation.tags.iter().copied(), members.iter().copied())
        }
        ObjectBody::Node { .. } | ObjectBody::Way { .. } => Vec::new(),
    }
}
