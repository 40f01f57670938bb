//! The rules that select objects by the nodes in a region.

use crate::osm::ObjectExpression;

/// The rule that selects objects by the nodes in a region. Every strategy keeps these nodes, the ways with at least one
/// of these nodes, and, unless excluded, the relations with one of these nodes or ways as a member.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Strategy {
    /// Keeps no further objects: ways and relations may refer to objects that the output lacks.
    Simple,
    /// Also keeps all nodes of these ways, and the direct and indirect parents of these relations.
    CompleteWays {
        /// Whether relations are kept at all.
        relations: bool,
    },
    /// Keeps the objects of [`CompleteWays`](Self::CompleteWays), and completes some of these relations: keeps all
    /// their members that are nodes or ways, with all nodes of these ways.
    Smart {
        /// The types of relations that are completed.
        types: RelationTypes,
        /// Relations of other types are completed, too, if at least this percentage of their members, 1 to 100, are
        /// nodes in the region or ways with such a node.
        min_percent: Option<u32>,
        /// A further condition for relations that are completed: at least one of these expressions must match a tag. If
        /// the list is empty, there is no such condition.
        tags: Vec<ObjectExpression>,
    },
}

impl Default for Strategy {
    fn default() -> Self {
        Self::CompleteWays { relations: true }
    }
}

impl Strategy {
    /// The `smart` strategy with its default types: it completes multipolygons.
    pub fn smart() -> Self {
        Self::Smart {
            types: RelationTypes::Of(vec!["multipolygon".into()]),
            min_percent: None,
            tags: Vec::new(),
        }
    }

    /// Whether all nodes of kept ways are kept.
    pub(super) const fn completes_ways(&self) -> bool {
        !matches!(self, Self::Simple)
    }

    /// Whether relations are kept.
    pub(super) const fn keeps_relations(&self) -> bool {
        !matches!(self, Self::CompleteWays { relations: false })
    }
}

/// A condition on the tag `type` of relations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelationTypes {
    /// All relations, with or without the tag.
    Any,
    /// Relations whose tag has one of these values.
    Of(Vec<String>),
}

impl RelationTypes {
    /// Parses `any` or the empty text as [`Any`](Self::Any), other text as a comma-separated list of values.
    pub fn parse(text: &str) -> Self {
        match text {
            "any" | "" => Self::Any,
            list => Self::Of(list.split(',').map(str::to_owned).collect()),
        }
    }
}
