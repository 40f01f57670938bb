//! Relations that are members of superroutes, with their own members.

use crate::osm::ObjectKind;
use crate::pbf::Member;
use rustc_hash::FxHashMap;

/// The maximum number of levels of nested relations, including the superroute itself. Deeper relations are ignored.
pub(crate) const MAX_DEPTH: usize = 16;

/// The direct and indirect member relations of superroutes. Maps the id of each member relation to its own members, or
/// to `None` if the relation is not in the file.
#[derive(Debug, Default)]
pub(crate) struct NestedRelations(FxHashMap<i64, Option<Vec<RouteMember>>>);

/// The ways of a route.
#[derive(Debug, Default)]
pub(crate) struct RouteWays {
    /// The ids of the ways, in order. A way may occur several times.
    pub ids: Vec<i64>,
    /// Whether ways may be missing because a member relation is not in the file.
    pub lack_relations: bool,
}

/// A member way or member relation that is part of the line of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteMember {
    Way(i64),
    Relation(i64),
}

impl RouteMember {
    /// Returns the members that are part of the line of a route. Leaves out platforms and stops, because they lie
    /// beside the line.
    pub(crate) fn of<'m>(members: impl Iterator<Item = Member<'m>>) -> impl Iterator<Item = Self> {
        let is_beside = |role: &str| {
            ["platform", "stop"]
                .iter()
                .any(|start| role.starts_with(start))
        };
        members
            .filter(move |member| !is_beside(member.role))
            .filter_map(|member| match member.kind {
                ObjectKind::Node => None,
                ObjectKind::Way => Some(Self::Way(member.id)),
                ObjectKind::Relation => Some(Self::Relation(member.id)),
            })
    }
}

impl NestedRelations {
    /// Adds a relation.
    pub(crate) fn add(&mut self, id: i64, members: Vec<RouteMember>) {
        self.0.insert(id, Some(members));
    }

    /// Records that a relation is not in the file. A later call of [`add`](Self::add) with the same id replaces this
    /// record.
    pub(crate) fn add_missing(&mut self, id: i64) {
        self.0.insert(id, None);
    }

    /// Whether [`add`](Self::add) or [`add_missing`](Self::add_missing) was called for a relation.
    pub(crate) fn has(&self, id: i64) -> bool {
        self.0.contains_key(&id)
    }

    /// Returns the ways of the route `id`, in the order of `members`. A member relation is replaced by its own ways, if
    /// the relation is in the file. A relation that is nested in itself is not followed a second time.
    pub(crate) fn ways_of<'m>(
        &self,
        id: i64,
        members: impl Iterator<Item = Member<'m>>,
    ) -> RouteWays {
        let (mut ways, mut above) = (RouteWays::default(), vec![id]);
        self.add_ways(RouteMember::of(members), &mut above, &mut ways);
        ways
    }

    fn add_ways(
        &self,
        members: impl Iterator<Item = RouteMember>,
        above: &mut Vec<i64>,
        ways: &mut RouteWays,
    ) {
        for member in members {
            match member {
                RouteMember::Way(id) => ways.ids.push(id),
                RouteMember::Relation(id) if above.len() < MAX_DEPTH && !above.contains(&id) => {
                    match self.0.get(&id) {
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
