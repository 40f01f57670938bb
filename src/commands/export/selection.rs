//! Selects objects by the filter of an export.

use crate::engine::block_matcher::selects;
use crate::osm::{ObjectFilter, ObjectKind};
use crate::pbf::Relation;

/// Whether the filter may select objects of a kind.
pub(super) fn may_select(filter: &ObjectFilter, kind: ObjectKind) -> bool {
    filter.expressions().is_empty() || filter.kinds().contains(kind)
}

/// Whether the filter selects a relation that is an area.
pub(super) fn selects_relation(filter: &ObjectFilter, relation: &Relation<'_>) -> bool {
    let kind = (ObjectKind::Relation, true);
    selects(filter, kind, &relation.info(), relation.tags())
}
