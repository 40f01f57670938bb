//! Selects objects by the filter of an export.

use crate::engine::block_matcher::BlockMatcher;
use crate::engine::geometry_pass::is_area;
use crate::error::FormatError;
use crate::osm::{ObjectFilter, ObjectKind};
use crate::pbf::{Block, Element};

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

/// Returns, for each object of a block in file order, whether it is a selected relation that becomes an area.
pub(super) fn selected_areas(
    filter: &ObjectFilter,
    block: &Block<'_>,
) -> Result<Vec<bool>, FormatError> {
    let selected = select(filter, block)?;
    let mut areas = Vec::new();
    block.try_for_each(|element| {
        let is_selected = selected
            .as_ref()
            .is_none_or(|selected| selected[areas.len()]);
        areas.push(match element {
            Element::Relation(relation) => is_selected && is_area(relation.tags()),
            _ => false,
        });
        Ok::<(), FormatError>(())
    })?;
    Ok(areas)
}
