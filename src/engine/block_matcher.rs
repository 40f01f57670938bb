//! Matches expressions against the objects of a block. Each string of the block is compared with the keys of the
//! expressions once, not once per object.

use crate::error::FormatResult;
use crate::osm::{
    MetadataCondition, MetadataNumber, ObjectExpression, ObjectFilter, ObjectId, ObjectKind,
    TagPattern,
};
use crate::pbf::{
    BlobEntry, Block, BlockUnits, BlockWalk, Info, Object, ObjectBody, StringTable, TagIds,
};

/// An [`ObjectFilter`], prepared for the strings of one block.
pub(crate) struct BlockMatcher<'b> {
    filter: &'b ObjectFilter,
    strings: &'b StringTable<'b>,
    /// For each string, 0 if no expression accepts it as a key; otherwise the index of its list in `expressions`, plus
    /// one.
    by_key: Vec<u32>,
    /// For each string that at least one expression accepts as a key, the list of the expressions that accept it.
    expressions: Vec<Vec<&'b ObjectExpression>>,
}

/// Returns, for each object of a block in file order, whether a filter selects it. Returns `None` if the filter has no
/// expressions and thus selects all objects.
pub(crate) fn selection_flags(
    filter: &ObjectFilter,
    block: &Block<'_>,
) -> FormatResult<Option<Vec<bool>>> {
    if filter.expressions().is_empty() {
        return Ok(None);
    }
    let mut selected = Vec::new();
    BlockMatcher::new(filter, &block.strings).for_each(block, |matches, _| {
        selected.push(matches);
        Ok(())
    })?;
    Ok(Some(selected))
}

impl<'b> BlockMatcher<'b> {
    pub(crate) fn new(filter: &'b ObjectFilter, strings: &'b StringTable<'b>) -> Self {
        let mut matcher = Self {
            filter,
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

    /// Whether the block has a string that some expression accepts as a key.
    pub(crate) fn has_keys(&self) -> bool {
        !self.expressions.is_empty()
    }

    /// Whether the strings of the block rule out that any object matches. An expression can match only if the block has
    /// a string for its key, its value, each of its further tags, and its user name.
    pub(crate) fn cannot_match(&self) -> bool {
        let has = |accepts: &dyn Fn(&str) -> bool| self.strings.iter().any(accepts);
        let has_user = |condition: &MetadataCondition| match condition {
            MetadataCondition::Number { .. } => true,
            MetadataCondition::User { name, is_negated } => {
                has(&|user| name.matches(user) != *is_negated)
            }
        };
        let has_users = |one: &ObjectExpression| one.metadata.iter().all(has_user);
        let has_value = |one: &ObjectExpression| {
            has(&|value| one.matches_value(value))
                && one.more_tags.iter().all(|tag| {
                    has(&|key| tag.key.matches(key)) && has(&|value| tag.matches_value(value))
                })
        };
        let mut with_key = self.expressions.iter().flatten();
        let can_match = with_key.any(|one| has_value(one) && has_users(one))
            || self.filter.without_tag().any(has_users);
        !can_match
    }

    /// Calls `take` with each object of `block`, in file order. The first argument of `take` tells whether at least one
    /// expression matches the object. Fails if a tag refers to a string that the block does not have.
    pub(crate) fn for_each(
        &self,
        block: &Block<'_>,
        mut take: impl FnMut(bool, &BlockWalk<'_>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let mut objects = block.walk();
        while objects.next()?.is_some() {
            let matches = self.matches(&mut objects, &block.units)?;
            take(matches, &objects)?;
        }
        Ok(())
    }

    /// Whether at least one expression matches the current object of the walk `object`.
    fn matches(&self, object: &mut BlockWalk<'_>, units: &BlockUnits) -> FormatResult<bool> {
        let tags = object.tags()?;
        for expression in self.filter.without_tag() {
            if self.applies_to(expression, object, tags)?
                && !self.has_any(&expression.excluded_tags, tags)?
                && self.meets_all_conditions(expression, object, units)?
            {
                return Ok(true);
            }
        }
        if self.expressions.is_empty() {
            return Ok(false);
        }
        tags.any(|key, value| self.tag_matches(object, tags, key, value, units))
    }

    /// Whether the id and the metadata of the current object meet the conditions of `expression`.
    fn meets_all_conditions(
        &self,
        expression: &ObjectExpression,
        object: &mut BlockWalk<'_>,
        units: &BlockUnits,
    ) -> FormatResult<bool> {
        if expression.metadata.is_empty() {
            return Ok(true);
        }
        let id = object.id()?;
        let mut on_id = expression
            .metadata
            .iter()
            .filter(|one| !one.is_on_metadata());
        if !on_id.all(|condition| meets(condition, id, &Info::EMPTY)) {
            return Ok(false);
        }
        if !expression
            .metadata
            .iter()
            .any(MetadataCondition::is_on_metadata)
        {
            return Ok(true);
        }
        let info = Info::resolve(&object.info()?, units, self.strings)?;
        Ok(meets_all_conditions(expression, id, &info))
    }

    /// Whether an expression that accepts the given tag matches the current object. `tags` are all tags of the object.
    #[inline]
    fn tag_matches(
        &self,
        object: &mut BlockWalk<'_>,
        tags: TagIds<'_>,
        key: u64,
        value: u64,
        units: &BlockUnits,
    ) -> FormatResult<bool> {
        let number = match self.by_key.get(key as usize) {
            Some(0) => return Ok(false),
            Some(number) => *number as usize,
            None => return self.strings.check(key).map(|()| false),
        };
        let value = self.strings.get(value)?;
        for expression in &self.expressions[number - 1] {
            if expression.matches_value(value)
                && self.applies_to(expression, object, tags)?
                && (expression.more_tags.is_empty() || self.has_all(&expression.more_tags, tags)?)
                && !self.has_any(&expression.excluded_tags, tags)?
                && self.meets_all_conditions(expression, object, units)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether each of `patterns` matches at least one of `tags`.
    fn has_all(&self, patterns: &[TagPattern], tags: TagIds<'_>) -> FormatResult<bool> {
        for pattern in patterns {
            let matches =
                |key, value| Ok(pattern.matches(self.strings.get(key)?, self.strings.get(value)?));
            if !tags.any(matches)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether one of `patterns` matches one of `tags`.
    fn has_any(&self, patterns: &[TagPattern], tags: TagIds<'_>) -> FormatResult<bool> {
        if patterns.is_empty() {
            return Ok(false);
        }
        tags.any(|key, value| {
            let (key, value) = (self.strings.get(key)?, self.strings.get(value)?);
            Ok(patterns.iter().any(|pattern| pattern.matches(key, value)))
        })
    }

    /// Whether `expression` applies to the current object: to its kind or, if the object is an area, to areas.
    fn applies_to(
        &self,
        expression: &ObjectExpression,
        object: &BlockWalk<'_>,
        tags: TagIds<'_>,
    ) -> FormatResult<bool> {
        if expression.kinds.contains(object.kind()) {
            return Ok(true);
        }
        match object.kind() {
            _ if !expression.areas => Ok(false),
            ObjectKind::Node => Ok(false),
            ObjectKind::Way => object.is_closed(4),
            ObjectKind::Relation => {
                tags.any(|key, value| {
                    let value = self.strings.get(value)?;
                    Ok(self.strings.get(key)? == "type"
                        && matches!(value, "multipolygon" | "boundary"))
                })
            }
        }
    }
}

/// Whether a filter may select an object of a blob, according to the kinds and ids in its entry.
pub(crate) fn may_select_in_blob(filter: &ObjectFilter, entry: &BlobEntry) -> bool {
    let known = (entry.first_sort_key(), entry.last_sort_key());
    let (true, (Some(first), Some(last))) = (entry.is_indexed(), known) else {
        return true;
    };
    filter.expressions().is_empty() || filter.may_match_between(first, last)
}

/// Whether a filter selects an object.
pub(crate) fn selects_object(filter: &ObjectFilter, object: &Object<'_>) -> bool {
    let tags = object.tags.iter().copied();
    selects(
        filter,
        (object.object_id(), is_area(object)),
        &object.info,
        tags,
    )
}

/// Whether an object is a closed way with at least four nodes, or a relation of the type `multipolygon` or `boundary`.
pub(crate) fn is_area(object: &Object<'_>) -> bool {
    match &object.body {
        ObjectBody::Node { .. } => false,
        ObjectBody::Way { refs, .. } => refs.len() >= 4 && refs.first() == refs.last(),
        ObjectBody::Relation { .. } => object
            .tags
            .iter()
            .any(|(key, value)| *key == "type" && matches!(*value, "multipolygon" | "boundary")),
    }
}

/// Whether a filter selects an object with the given id, tags and metadata. `is_area` is whether the object is a closed
/// way, or a relation that is an area.
pub(crate) fn selects<'t>(
    filter: &ObjectFilter,
    (object, is_area): (ObjectId, bool),
    info: &Info<'_>,
    tags: impl Iterator<Item = (&'t str, &'t str)> + Clone,
) -> bool {
    let accepts = |one: &ObjectExpression| {
        let has = |tag: &TagPattern| tags.clone().any(|(key, value)| tag.matches(key, value));
        (one.kinds.contains(object.kind) || one.areas && is_area)
            && one.more_tags.iter().all(has)
            && !one.excluded_tags.iter().any(has)
            && meets_all_conditions(one, object.id, info)
    };
    filter.expressions().is_empty()
        || filter.without_tag().any(accepts)
        || tags.clone().any(|(key, value)| {
            let mut expressions = filter.with_key(key);
            expressions.any(|one| one.matches_value(value) && accepts(one))
        })
}

/// Whether an object with the given id and metadata meets all conditions of an expression.
fn meets_all_conditions(expression: &ObjectExpression, id: i64, info: &Info<'_>) -> bool {
    let mut conditions = expression.metadata.iter();
    conditions.all(|condition| meets(condition, id, info))
}

/// Whether an object with the given id and metadata meets a condition.
fn meets(condition: &MetadataCondition, id: i64, info: &Info<'_>) -> bool {
    match condition {
        MetadataCondition::Number {
            attribute,
            ranges,
            is_negated,
        } => {
            let number = match attribute {
                MetadataNumber::Id => Some(id),
                MetadataNumber::Version => info.version.map(i64::from),
                MetadataNumber::Timestamp => info.timestamp,
                MetadataNumber::Changeset => info.changeset,
                MetadataNumber::Uid => info.uid.map(i64::from),
            };
            let is_in = |number| ranges.iter().any(|range| range.contains(&number));
            number.is_some_and(|number| is_in(number) != *is_negated)
        }
        MetadataCondition::User { name, is_negated } => info
            .user
            .is_some_and(|user| name.matches(user) != *is_negated),
    }
}
