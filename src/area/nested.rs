//! The relations that are nested in routes, with their members.

use crate::osm::ObjectKind;
use crate::pbf::Member;
use rustc_hash::FxHashMap;

/// The maximum number of levels of nested relations, including the route itself. A route with deeper relations is
/// incomplete.
pub(crate) const MAX_DEPTH: usize = 16;

/// The maximum number of members that all nested relations of a route may have together. A route whose nested relations
/// have more members is incomplete. The longest routes of the world have less than a tenth of this number. Without the
/// limit, a few relations that each list another one many times could have billions of members.
const MAX_NESTED: usize = 1 << 20;

/// The maximum number of members that are kept for a nested relation. This number of members exceeds [`MAX_NESTED`] in
/// any route, so further members make no difference.
pub(crate) const MAX_KEPT: usize = MAX_NESTED + 1;

/// The direct and indirect member relations of routes. Maps the id of each member relation to its own members, or to
/// `None` if the relation is not in the file.
#[derive(Debug, Default)]
pub(crate) struct NestedRelations(FxHashMap<i64, Option<Vec<RouteMember>>>);

/// The ways of a route.
#[derive(Debug, Default)]
pub(crate) struct RouteWays {
    /// The ids of the ways, in order. A way may occur several times.
    pub ids: Vec<i64>,
    /// Whether ways may be missing. They may be missing if a member relation is not in the file, or if the nested
    /// relations have too many levels or too many members.
    pub lack_relations: bool,
    /// The number of visited members of nested relations.
    nested: usize,
}

/// A member way or member relation that is part of the line of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteMember {
    Way(i64),
    Relation(i64),
}

impl RouteMember {
    /// Returns the member ways and relations that are part of the line of a route. Leaves out platforms and stops,
    /// because they lie beside the line. Also leaves out relations with a role for tributaries or for traffic messages
    /// (`TMC:`).
    pub(crate) fn line_members<'m>(
        members: impl Iterator<Item = Member<'m>>,
    ) -> impl Iterator<Item = Self> {
        let begins_with =
            |role: &str, starts: &[&str]| starts.iter().any(|start| role.starts_with(start));
        members
            .filter(move |member| !begins_with(member.role, &["platform", "stop"]))
            .filter_map(move |member| match member.kind {
                ObjectKind::Node => None,
                ObjectKind::Relation if begins_with(member.role, &["tributary", "TMC:"]) => None,
                ObjectKind::Way => Some(Self::Way(member.id)),
                ObjectKind::Relation => Some(Self::Relation(member.id)),
            })
    }

    /// Returns the id of a member relation; `None` for a way.
    pub(crate) const fn relation(self) -> Option<i64> {
        match self {
            Self::Way(_) => None,
            Self::Relation(id) => Some(id),
        }
    }
}

impl NestedRelations {
    /// Adds a relation.
    pub(crate) fn add(&mut self, id: i64, members: Vec<RouteMember>) {
        self.0.insert(id, Some(members));
    }

    /// Records that a relation is not in the file. A later call of [`add`](Self::add) with the same id replaces this
    /// record.
    pub(crate) fn add_missing_relation(&mut self, id: i64) {
        self.0.insert(id, None);
    }

    /// Whether [`add`](Self::add) or [`add_missing_relation`](Self::add_missing_relation) was called for a relation.
    pub(crate) fn contains_relation(&self, id: i64) -> bool {
        self.0.contains_key(&id)
    }

    /// Returns the ids of the member ways of all relations. An id may occur several times.
    pub(crate) fn way_ids(&self) -> impl Iterator<Item = i64> + '_ {
        let members = self.0.values().flatten().flatten();
        members.filter_map(|member| match member {
            RouteMember::Way(id) => Some(*id),
            RouteMember::Relation(_) => None,
        })
    }

    /// Returns the ways of the route `id`, in the order of `members`. A member relation is replaced by its own ways, if
    /// the relation is in the file. A relation that is nested in itself is not followed a second time.
    pub(crate) fn ways_of<'m>(
        &self,
        id: i64,
        members: impl Iterator<Item = Member<'m>>,
    ) -> RouteWays {
        let (mut ways, mut above) = (RouteWays::default(), vec![id]);
        self.add_ways(RouteMember::line_members(members), &mut above, &mut ways);
        ways
    }

    /// Adds the ways of members. `above` has the ids of the relations that contain the members.
    fn add_ways(
        &self,
        members: impl Iterator<Item = RouteMember>,
        above: &mut Vec<i64>,
        ways: &mut RouteWays,
    ) {
        for member in members {
            ways.nested += usize::from(above.len() > 1);
            if ways.nested > MAX_NESTED {
                ways.lack_relations = true;
                return;
            }
            match member {
                RouteMember::Way(id) => ways.ids.push(id),
                RouteMember::Relation(id) if !above.contains(&id) => {
                    match self.0.get(&id).filter(|_| above.len() < MAX_DEPTH) {
                        None | Some(None) => ways.lack_relations = true,
                        Some(Some(members)) => {
                            above.push(id);
                            self.add_ways(members.iter().copied(), above, ways);
                            above.pop();
                        }
                    }
                }
                RouteMember::Relation(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ways of a route whose only member is the relation `id`.
    fn ways_of_route_with(nested: &NestedRelations, id: i64) -> RouteWays {
        let member = Member {
            kind: ObjectKind::Relation,
            id,
            role: "",
        };
        nested.ways_of(0, [member].into_iter())
    }

    #[test]
    fn a_route_that_is_nested_too_deeply_is_incomplete() {
        let mut nested = NestedRelations::default();
        for id in 1..20 {
            nested.add(
                id,
                vec![RouteMember::Way(id), RouteMember::Relation(id + 1)],
            );
        }
        let found = ways_of_route_with(&nested, 1);
        assert_eq!(found.ids, (1..16).collect::<Vec<_>>());
        assert!(found.lack_relations);
        nested.add(15, vec![RouteMember::Way(15)]);
        let found = ways_of_route_with(&nested, 1);
        assert_eq!(found.ids, (1..16).collect::<Vec<_>>());
        assert!(!found.lack_relations);
    }

    #[test]
    fn relations_nested_many_times_are_followed_up_to_a_limit() {
        let mut nested = NestedRelations::default();
        for id in 1..16 {
            nested.add(id, vec![RouteMember::Relation(id + 1); 20]);
        }
        nested.add(15, vec![RouteMember::Way(1); 20]);
        let found = ways_of_route_with(&nested, 1);
        assert!(found.ids.len() < MAX_NESTED && found.lack_relations);
        // Relations that contain each other are followed only once.
        nested.add(1, vec![RouteMember::Relation(2), RouteMember::Way(1)]);
        nested.add(2, vec![RouteMember::Relation(1), RouteMember::Way(2)]);
        let found = ways_of_route_with(&nested, 1);
        assert_eq!(found.ids, [2, 1]);
        assert!(!found.lack_relations);
    }
}
