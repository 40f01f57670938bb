//! The members of relations that are members of superroutes.

use crate::osm::ObjectKind;
use crate::pbf::Member;
use rustc_hash::FxHashMap;

/// The maximum number of levels of relations.
pub(crate) const MAX_DEPTH: usize = 16;

/// The relations that are members of superroutes, directly or through others, with their own members.
#[derive(Debug, Default)]
pub(crate) struct NestedRelations(FxHashMap<i64, Vec<RouteMember>>);

/// A member of a route that belongs to its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteMember {
    Way(i64),
    Relation(i64),
}

impl RouteMember {
    /// Returns the members that belong to the line of a route. Platforms and stops lie beside it.
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
        self.0.insert(id, members);
    }

    /// Whether a relation was added.
    pub(crate) fn has(&self, id: i64) -> bool {
        self.0.contains_key(&id)
    }

    /// Returns the ids of the ways of the route `id`, in the order of its members. The ways of a member relation take its
    /// place, if it was added. A relation that contains itself is not followed again.
    pub(crate) fn ways_of<'m>(
        &self,
        id: i64,
        members: impl Iterator<Item = Member<'m>>,
    ) -> Vec<i64> {
        let (mut ways, mut above) = (Vec::new(), vec![id]);
        self.add_ways(RouteMember::of(members), &mut above, &mut ways);
        ways
    }

    fn add_ways(
        &self,
        members: impl Iterator<Item = RouteMember>,
        above: &mut Vec<i64>,
        ways: &mut Vec<i64>,
    ) {
        for member in members {
            match member {
                RouteMember::Way(id) => ways.push(id),
                RouteMember::Relation(id) if above.len() < MAX_DEPTH && !above.contains(&id) => {
                    if let Some(members) = self.0.get(&id) {
                        above.push(id);
                        self.add_ways(members.iter().copied(), above, ways);
                        above.pop();
                    }
                }
                RouteMember::Relation(_) => {}
            }
        }
    }
}
