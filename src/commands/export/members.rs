//! The objects that are selected, and the member ways of areas.

use super::worker::{Shared, is_area};
use crate::engine::block_matcher::BlockMatcher;
use crate::engine::scan::Scan;
use crate::error::{FormatError, Result};
use crate::file::{BlobPlan, PbfFile};
use crate::index::{IdSet, RankSet};
use crate::osm::{ObjectFilter, ObjectKind};
use crate::pbf::{Block, Element};
use crate::runtime::Context;
use std::sync::Arc;

/// Reads the relations, and returns the ids of the member ways of those that become areas.
pub(super) fn wanted_ways(
    file: &PbfFile,
    plan: &BlobPlan,
    shared: &Shared,
    ctx: &Context,
) -> Result<Arc<RankSet>> {
    let mut wanted = IdSet::default();
    Scan::bare("members", file, plan, ctx).with_strings().run(
        |entry| entry.kinds.contains(ObjectKind::Relation),
        |_, block| {
            let mut ways = Vec::new();
            let mut selected = select(&shared.filter, block)?.into_iter().flatten();
            block.try_for_each(|element| {
                let is_selected = selected.next().unwrap_or(true);
                if let Element::Relation(relation) = element
                    && is_selected
                    && is_area(relation.tags())
                {
                    let members = relation.members();
                    let found = members.filter(|member| member.kind == ObjectKind::Way);
                    ways.extend(found.map(|member| member.id));
                }
                Ok(())
            })?;
            Ok(ways)
        },
        |ways| wanted.extend(ways),
    )?;
    Ok(Arc::new(RankSet::from(wanted)))
}

/// Whether each object of a block is selected, in file order; `None` if all objects are.
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
