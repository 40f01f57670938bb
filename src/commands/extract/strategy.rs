//! What comes along with the nodes in a region.

/// What comes along with the nodes in a region. All of them keep the ways that have a node in the region,
/// and the relations that have such a node or such a way as a member.
#[derive(Debug, Clone, PartialEq)]
pub enum Strategy {
    /// Nothing more: ways and relations refer to what is not there.
    Simple,
    /// All nodes of these ways, and the parents of these relations.
    CompleteWays {
        /// Whether relations are kept at all.
        relations: bool,
    },
    /// As complete ways; and of some of these relations all members that are nodes or ways, with their
    /// nodes.
    Smart {
        /// The relations that are completed by what they are.
        types: RelationTypes,
        /// Relations of which so many percent of the members are kept anyway are completed, too: from 1 to
        /// 100.
        least_percent: Option<u32>,
    },
}

impl Default for Strategy {
    fn default() -> Self {
        Self::CompleteWays { relations: true }
    }
}

impl Strategy {
    /// `smart` as it is unless more is said: multipolygons are completed.
    pub fn smart() -> Self {
        Self::Smart {
            types: RelationTypes::Of(vec!["multipolygon".into()]),
            least_percent: None,
        }
    }

    /// Whether the nodes of ways come along.
    pub(super) const fn completes_ways(&self) -> bool {
        !matches!(self, Self::Simple)
    }

    /// Whether relations are kept.
    pub(super) const fn keeps_relations(&self) -> bool {
        !matches!(self, Self::CompleteWays { relations: false })
    }
}

/// Relations by their tag `type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelationTypes {
    /// All, those without the tag, too.
    Any,
    /// Those with one of some values.
    Of(Vec<String>),
}

impl RelationTypes {
    /// Reads `any`, or values with commas between them.
    pub fn parse(text: &str) -> Self {
        match text {
            "any" | "" => Self::Any,
            list => Self::Of(list.split(',').map(str::to_owned).collect()),
        }
    }
}
