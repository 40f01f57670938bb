//! The relations that the strategy `smart` completes.

use crate::commands::extract::{RelationTypes, Strategy};
use crate::error::FormatResult;
use crate::osm::{ObjectExpression, ObjectKind};
use crate::pbf::{Block, BlockWalk};

/// The conditions under which a kept relation is completed. All member nodes and member ways of a completed relation
/// are kept.
#[derive(Clone, Copy)]
pub(super) struct CompletionRule<'s> {
    types: &'s RelationTypes,
    /// The minimum percentage of kept members for completing relations of other types; `None` to complete none of them.
    min_percent: Option<u32>,
    tags: &'s [ObjectExpression],
}

impl<'s> CompletionRule<'s> {
    /// Returns the conditions of a strategy; `None` if it completes no relations.
    pub(super) fn of(strategy: &'s Strategy) -> Option<Self> {
        match strategy {
            Strategy::Simple | Strategy::CompleteWays { .. } => None,
            Strategy::Smart {
                types,
                min_percent,
                tags,
            } => Some(Self {
                types,
                min_percent: *min_percent,
                tags,
            }),
        }
    }

    /// Whether a relation with the given tags is completed. `kept` and `members` are the numbers of its kept members
    /// and of all members.
    pub(super) fn applies(&self, tags: &[(&str, &str)], kept: u64, members: u64) -> bool {
        let is_enough = |percent: u32| kept * 100 >= members * u64::from(percent);
        self.has_tags(tags) && (self.has_type(tags) || self.min_percent.is_some_and(is_enough))
    }

    /// Whether the current object of a walk over `block` is completed because of its tags alone. The object must be a
    /// relation.
    pub(super) fn applies_by_tags(
        &self,
        block: &Block<'_>,
        object: &mut BlockWalk<'_>,
    ) -> FormatResult<bool> {
        let (mut tags, strings) = (Vec::new(), &block.strings);
        object.tags()?.any(|key, value| {
            tags.push((strings.get(key)?, strings.get(value)?));
            Ok(false)
        })?;
        Ok(self.has_tags(&tags) && self.has_type(&tags))
    }

    /// Whether one of the expressions matches a tag, or there are no expressions.
    fn has_tags(&self, tags: &[(&str, &str)]) -> bool {
        let matches = |expression: &ObjectExpression| {
            let tag = expression.tag.as_ref();
            let is_match =
                |(key, value): &(&str, &str)| tag.is_some_and(|tag| tag.matches(key, value));
            expression.applies_to(ObjectKind::Relation) && tags.iter().any(is_match)
        };
        self.tags.is_empty() || self.tags.iter().any(matches)
    }

    /// Whether the value of the tag `type` is one of `self.types`.
    fn has_type(&self, tags: &[(&str, &str)]) -> bool {
        match self.types {
            RelationTypes::Any => true,
            RelationTypes::Of(types) => tags
                .iter()
                .any(|(key, value)| *key == "type" && types.iter().any(|one| one == value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_or_a_percentage_completes_relations_with_a_wanted_tag() {
        let smart = Strategy::smart();
        let completion = CompletionRule::of(&smart).unwrap();
        assert!(completion.applies(&[("type", "multipolygon")], 0, 9));
        assert!(!completion.applies(&[("type", "route")], 9, 9));
        let smart = Strategy::Smart {
            types: RelationTypes::parse("boundary"),
            min_percent: Some(50),
            tags: vec![ObjectExpression::parse("r/name").unwrap()],
        };
        let completion = CompletionRule::of(&smart).unwrap();
        assert!(completion.applies(&[("type", "boundary"), ("name", "a")], 0, 9));
        assert!(completion.applies(&[("name", "a")], 5, 10));
        assert!(!completion.applies(&[("name", "a")], 4, 10));
        assert!(!completion.applies(&[("type", "boundary")], 10, 10));
        assert!(CompletionRule::of(&Strategy::Simple).is_none());
        assert!(CompletionRule::of(&Strategy::default()).is_none());
    }
}
