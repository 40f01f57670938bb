//! Counts tags for expressions that join several tags or exclude tags. These expressions have to be matched against all
//! tags of an object together.

use super::table::CountTable;
use crate::error::FormatResult;
use crate::osm::{KindSet, ObjectExpression, TagPattern};
use crate::pbf::Block;
use rustc_hash::FxHashMap;

/// Whether an expression joins several tags or excludes a tag.
pub(super) fn joins_or_excludes_tags(expressions: &[ObjectExpression]) -> bool {
    let is_joined =
        |one: &ObjectExpression| !(one.more_tags.is_empty() && one.excluded_tags.is_empty());
    expressions.iter().any(is_joined)
}

/// Counts the tags of the objects in a block that expressions select. For example, `highway & name & !ref` selects the
/// objects that have the tags `highway` and `name`, but no tag `ref`. The tags `highway` and `name` of these objects
/// are counted.
pub(super) fn count(
    expressions: &[ObjectExpression],
    kinds: KindSet,
    block: &Block<'_>,
    table: &CountTable,
) -> FormatResult<()> {
    let strings = &block.strings;
    let mut counts: FxHashMap<(&str, Option<&str>), u64> = FxHashMap::default();
    let mut tags = Vec::new();
    let mut objects = block.walk();
    while let Some(kind) = objects.next()? {
        if !kinds.contains(kind) {
            continue;
        }
        tags.clear();
        objects
            .tags()?
            .for_each(|key, value| tags.push((key, value)))?;
        let named = tags
            .iter()
            .map(|(key, value)| Ok((strings.get(*key)?, strings.get(*value)?)))
            .collect::<FormatResult<Vec<_>>>()?;
        let has =
            |pattern: &TagPattern| named.iter().any(|(key, value)| pattern.matches(key, value));
        let holding: Vec<&ObjectExpression> = expressions
            .iter()
            .filter(|one| {
                one.kinds.contains(kind)
                    && patterns(one).all(has)
                    && !one.excluded_tags.iter().any(has)
            })
            .collect();
        for (key, value) in named.iter().copied() {
            let wanted = |has_value: bool| {
                let mut patterns = holding.iter().flat_map(|one| patterns(one));
                patterns.any(|one| one.has_value == has_value && one.matches(key, value))
            };
            if wanted(true) {
                *counts.entry((key, Some(value))).or_default() += 1;
            }
            if wanted(false) {
                *counts.entry((key, None)).or_default() += 1;
            }
        }
    }
    for ((key, value), count) in counts {
        table.add(key, value, count);
    }
    Ok(())
}

/// Returns all tags that an expression joins.
fn patterns(expression: &ObjectExpression) -> impl Iterator<Item = &TagPattern> {
    expression.tag.iter().chain(&expression.more_tags)
}
