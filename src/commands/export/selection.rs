//! Selects objects by the filter of an export.

use crate::engine::block_matcher::selects;
use crate::engine::geometry_pass::is_area;
use crate::osm::{ObjectFilter, ObjectId, ObjectKind, UniqueTags};
#[cfg(feature = "parquet")]
use crate::pbf::Element;
use crate::pbf::{Relation, Way};

/// Whether the filter may select objects of a kind.
pub(super) fn may_select(filter: &ObjectFilter, kind: ObjectKind) -> bool {
    filter.expressions().is_empty() || filter.kinds().contains(kind)
}

/// Whether the filter treats a way as an area: a closed way with four refs or more.
pub(super) fn is_closed_way(way: &Way<'_>) -> bool {
    way.ref_count() >= 4 && way.is_closed()
}

/// Whether the filter selects a relation. Unless `keeps_repeated_keys` is set, a tag does not count if an earlier tag
/// has the same key.
pub(super) fn selects_relation(
    filter: &ObjectFilter,
    relation: &Relation<'_>,
    keeps_repeated_keys: bool,
) -> bool {
    if filter.expressions().is_empty() {
        return true;
    }
    let (kind, id) = (ObjectKind::Relation, relation.id());
    let object = (ObjectId { kind, id }, is_area(relation.tags()));
    if keeps_repeated_keys {
        return selects(filter, object, &relation.info(), relation.tags());
    }
    let tags: Vec<_> = UniqueTags::new(relation.tags()).collect();
    selects(filter, object, &relation.info(), tags.iter().copied())
}

/// Whether the filter still selects an object if only the first tag with each key counts. The caller must have checked
/// that the filter selects the object by all of its tags.
#[cfg(feature = "parquet")]
pub(super) fn selects_by_unique_tags(filter: &ObjectFilter, element: &Element<'_>) -> bool {
    if filter.expressions().is_empty() {
        return true;
    }
    let mut unique = UniqueTags::new(element.tags());
    let tags: Vec<_> = unique.by_ref().collect();
    if unique.repeated() == 0 {
        return true;
    }
    let is_area = match element {
        Element::Node(_) => false,
        Element::Way(way) => is_closed_way(way),
        Element::Relation(relation) => is_area(relation.tags()),
    };
    let (kind, id) = (element.kind(), element.id());
    let object = (ObjectId { kind, id }, is_area);
    selects(filter, object, &element.info(), tags.iter().copied())
}
