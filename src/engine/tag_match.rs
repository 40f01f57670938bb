//! Matches tag expressions against the objects of a block. Each string of the block is compared with the keys of the
//! expressions once, not once per object.

use crate::error::FormatError;
use crate::osm::{ObjectKind, TagExpression, TagFilter};
use crate::pbf::{ElementView, StringTable};

/// A [`TagFilter`], prepared for the strings of one block.
pub(crate) struct BlockMatcher<'b> {
    strings: &'b StringTable<'b>,
    /// For each string the index in `expressions`, plus one, of the list of expressions that accept the string as key;
    /// 0 if no expression does.
    by_key: Vec<u32>,
    /// For each string that an expression accepts as key, the list of these expressions.
    expressions: Vec<Vec<&'b TagExpression>>,
}

impl<'b> BlockMatcher<'b> {
    pub(crate) fn new(filter: &'b TagFilter, strings: &'b StringTable<'b>) -> Self {
        let mut matcher = Self {
            strings,
            by_key: vec![0; strings.len()],
            expressions: Vec::new(),
        };
        for (key, slot) in strings.iter().zip(&mut matcher.by_key) {
            let expressions: Vec<_> = filter.with_key(key).collect();
            if !expressions.is_empty() {
                matcher.expressions.push(expressions);
                *slot = matcher.expressions.len() as u32;
            }
        }
        matcher
    }

    /// Whether no object of the block can match: for each expression, the block has no string that matches the key, or
    /// none that matches the value.
    pub(crate) fn cannot_match(&self) -> bool {
        let has_value = |expression: &TagExpression| {
            let mut strings = self.strings.iter();
            strings.any(|value| expression.matches_value(value))
        };
        !self.expressions.iter().flatten().copied().any(has_value)
    }

    /// Whether at least one expression matches the object. Fails if a tag refers to a string that the block does not
    /// have.
    pub(crate) fn matches(&self, object: &ElementView<'_>) -> Result<bool, FormatError> {
        if self.expressions.is_empty() {
            return Ok(false);
        }
        let mut broken = None;
        let found = object.any_tag(|key, value| {
            let found = self.tag_matches(object, key, value);
            found.unwrap_or_else(|error| {
                broken = Some(error);
                true
            })
        })?;
        broken.map_or(Ok(found), Err)
    }

    #[inline]
    fn tag_matches(
        &self,
        object: &ElementView<'_>,
        key: u64,
        value: u64,
    ) -> Result<bool, FormatError> {
        let number = match self.by_key.get(key as usize) {
            Some(0) => return Ok(false),
            Some(number) => *number as usize,
            None => return self.strings.check(key).map(|()| false),
        };
        let value = self.strings.get(value)?;
        for expression in self.expressions.get(number - 1).into_iter().flatten() {
            if expression.matches_value(value) && self.applies_to(expression, object)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn applies_to(
        &self,
        expression: &TagExpression,
        object: &ElementView<'_>,
    ) -> Result<bool, FormatError> {
        if expression.kinds.contains(object.kind) {
            return Ok(true);
        }
        match object.kind {
            _ if !expression.areas => Ok(false),
            ObjectKind::Node => Ok(false),
            ObjectKind::Way => object.is_closed(4),
            ObjectKind::Relation => object.any_tag(|key, value| {
                let text = |index| self.strings.get(index).unwrap_or_default();
                text(key) == "type" && matches!(text(value), "multipolygon" | "boundary")
            }),
        }
    }
}
