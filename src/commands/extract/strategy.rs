//! The rules that select objects by the nodes in a region.

use crate::osm::ObjectExpression;

/// The rule that selects objects by the nodes in a region. Every strategy keeps the nodes in the region, the ways with
/// at least one of these nodes, and, unless excluded, the relations with one of these nodes or ways as a member.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Strategy {
    /// Keeps the nodes in the region, the ways with at least one of these nodes, and the relations with one of these
    /// nodes or ways as a member. Ways and relations may refer to objects that the output lacks.
    Simple,
    /// Keeps the objects of [`Simple`](Self::Simple), all nodes of the kept ways, and the direct and indirect parents
    /// of the kept relations.
    CompleteWays {
        /// Whether relations are kept at all.
        relations: bool,
    },
    /// Keeps the objects of [`CompleteWays`](Self::CompleteWays), and completes some of the kept relations. Of a
    /// completed relation, keeps all members that are nodes or ways, with all nodes of these ways.
    Smart {
        /// The types of relations that are completed.
        types: RelationTypes,
        /// The minimum percentage of members, from 1 to 100, that are nodes in the region or ways with a node in the
        /// region. Relations of other types that reach this percentage are completed, too. `None` completes no other
        /// types.
        min_percent: Option<u32>,
        /// A further condition for completing a relation. At least one of these expressions must match a tag of the
        /// relation. If the list is empty, there is no further condition.
        tags: Vec<ObjectExpression>,
    },
}

impl Default for Strategy {
    fn default() -> Self {
        Self::CompleteWays { relations: true }
    }
}

impl Strategy {
    /// Returns the `smart` strategy with its default types, which completes multipolygons.
    pub fn smart() -> Self {
        Self::Smart {
            types: RelationTypes::Of(vec!["multipolygon".into()]),
            min_percent: None,
            tags: Vec::new(),
        }
    }

    /// Whether all nodes of kept ways are kept.
    pub(crate) const fn completes_ways(&self) -> bool {
        !matches!(self, Self::Simple)
    }

    /// Whether relations are kept.
    pub(crate) const fn keeps_relations(&self) -> bool {
        !matches!(self, Self::CompleteWays { relations: false })
    }
}

/// A condition on the tag `type` of relations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelationTypes {
    /// All relations, with or without the tag `type`.
    Any,
    /// Relations with one of these values of the tag `type`.
    Of(Vec<String>),
}

impl RelationTypes {
    /// Parses `any` or the empty string as [`Any`](Self::Any), and other strings as a comma-separated list of values.
    pub fn parse(text: &str) -> Self {
        match text {
            "any" | "" => Self::Any,
            list => Self::Of(list.split(',').map(str::to_owned).collect()),
        }
    }
}
