//! Selects objects by the filter of an export.

use crate::engine::block_matcher::{BlockMatcher, selects};
use crate::error::FormatError;
use crate::osm::{ObjectFilter, ObjectKind};
use crate::pbf::{Block, Relation};

/// Whether the filter may select objects of a kind.
pub(super) fn may_select(filter: &ObjectFilter, kind: ObjectKind) -> bool {
    filter.expressions().is_empty() || filter.kinds().contains(kind)
}

/// Returns whether each object of a block is selected, in file order; `None` if all objects are selected.
pub(super) fn select(
    filter: &ObjectFilter,
    block: &Block<'_>,
) -> Result<Option<Vec<bool>>, FormatError> {
    if filter.expressions().is_empty() {
        return Ok(None);
    }
    let mut selected = Vec::new();
    BlockMatcher::new(filter, block.strings()).for_each(block, |matches, _| {
        selected.push(matches);
        Ok(())
    })?;
    Ok(Some(selected))
}

/// Whether the filter selects a relation that is an area.
pub(super) fn selects_relation(filter: &ObjectFilter, relation: &Relation<'_>) -> bool {
    let kind = (ObjectKind::Relation, true);
    selects(filter, kind, &relation.info(), relation.tags())
}
