//! The values that all visitors of an export share.

use super::FeatureRules;
use super::cuts::Cuts;
use super::output::FeatureNeeds;
use crate::engine::block_matcher::selection_flags;
use crate::engine::geometry_pass::is_area;
use crate::error::{FormatError, FormatResult};
use crate::formats::row_limit::RowLimit;
use crate::osm::ObjectFilter;
use crate::pbf::{Block, Element};

/// The rules and the state that all visitors of a run share.
pub(super) struct Shared<'s> {
    pub rules: &'s FeatureRules,
    pub filter: ObjectFilter,
    pub cuts: Cuts,
    pub needs: FeatureNeeds<'s>,
    pub row_limit: RowLimit,
    /// Whether relations become features.
    pub relations: bool,
    /// Whether problems are reported one by one.
    pub reports: bool,
}

impl Shared<'_> {
    /// Returns, for each object of a block in file order, whether the object is visited; `None` if all objects are
    /// visited.
    pub(super) fn select_visited(&self, block: &Block<'_>) -> FormatResult<Option<Vec<bool>>> {
        let mut selected = selection_flags(&self.filter, block)?;
        if let (Some(selected), Some(collector)) = (&mut selected, self.needs.relations) {
            collector.select(block, selected)?;
        }
        Ok(selected)
    }

    /// Returns a flag for each object of a block, in file order. The flag is set for visited relations that have an
    /// area or become lines. The member ways of these relations are needed.
    pub(super) fn select_relations(&self, block: &Block<'_>) -> FormatResult<Vec<bool>> {
        let visited = self.select_visited(block)?;
        let mut areas = Vec::new();
        block.try_for_each(|element| {
            let is_visited = visited.as_ref().is_none_or(|visited| visited[areas.len()]);
            areas.push(match element {
                Element::Relation(relation) => {
                    let tags = relation.tags();
                    is_visited && (is_area(relation.tags()) || self.rules.is_line_relation(tags))
                }
                _ => false,
            });
            Ok::<(), FormatError>(())
        })?;
        Ok(areas)
    }
}
