//! The rules that select objects by the nodes in a region.

use crate::geometry::shorten_for_message;
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
    /// Keeps the objects of [`CompleteWays`](Self::CompleteWays), and completes some of the kept relations. Keeps all
    /// nodes and ways that are members of a completed relation, and all nodes of these ways.
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

    /// Parses the name of a strategy: `simple`, `complete-ways` (or `complete_ways`) or `smart`.
    ///
    /// # Errors
    ///
    /// The name is unknown. The error is a message for the user.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "simple" => Ok(Self::Simple),
            "complete-ways" | "complete_ways" => Ok(Self::default()),
            "smart" => Ok(Self::smart()),
            _ => Err(format!(
                "'{}' is no strategy: expected simple, complete-ways or smart",
                shorten_for_message(name)
            )),
        }
    }

    /// Returns the name of the strategy, without its options.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::CompleteWays { .. } => "complete-ways",
            Self::Smart { .. } => "smart",
        }
    }

    /// Sets an option of the strategy, such as `types` of `smart`.
    ///
    /// # Errors
    ///
    /// The strategy has no such option, or the value is invalid. The error is a message for the user.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match (name, self) {
            ("types", Self::Smart { types, .. }) => *types = RelationTypes::parse(value),
            ("complete-partial-relations", Self::Smart { min_percent, .. }) => {
                match value.parse() {
                    Ok(percent @ 1..=100) => *min_percent = Some(percent),
                    _ => return Err("expected a whole number from 1 to 100".to_owned()),
                }
            }
            ("tags", Self::Smart { tags, .. }) => {
                for text in value.split(',') {
                    let tag = ObjectExpression::parse_tag(text);
                    tags.push(tag.map_err(|error| error.to_string())?);
                }
            }
            ("relations", Self::CompleteWays { relations }) => match value {
                "false" | "no" => *relations = false,
                "true" | "yes" => *relations = true,
                _ => return Err("expected true or false".to_owned()),
            },
            ("types" | "complete-partial-relations" | "tags", _) => {
                return Err("this is an option of the strategy smart".to_owned());
            }
            ("relations", _) => {
                return Err("this is an option of the strategy complete-ways".to_owned());
            }
            _ => {
                return Err(
                    "expected types=…, tags=…, complete-partial-relations=PERCENT or relations=false"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    /// Whether all nodes of kept ways are kept.
    pub(crate) const fn completes_ways(&self) -> bool {
        !matches!(self, Self::Simple)
    }

    /// Whether this strategy keeps all objects of a region that the strategy `other` keeps.
    pub(crate) fn keeps_superset_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Smart { .. }, Self::Smart { .. }) => self == other,
            (Self::Smart { .. } | Self::CompleteWays { relations: true }, _) => {
                !matches!(other, Self::Smart { .. }) || self == other
            }
            _ => self == other,
        }
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
