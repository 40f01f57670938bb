//! Collects the ids of changed objects, and visits the nodes of a block that have given ids.

use crate::error::FormatResult;
use crate::formats::ChangeSet;
use crate::index::{IdSet, SortedIds};
use crate::osm::ObjectKind;
use crate::pbf::{Block, Object};

/// Returns the ids of the objects of a kind that have a change.
pub(super) fn ids_of_changed_objects(changes: &ChangeSet, kind: ObjectKind) -> IdSet {
    let of_kind = changes
        .changes()
        .iter()
        .filter(|change| change.kind() == kind);
    of_kind.map(|change| change.id()).collect()
}

/// Calls `visit` with the nodes of a block that have an id in `ids`.
pub(super) fn for_each_node(
    block: &Block<'_>,
    ids: &SortedIds,
    mut visit: impl FnMut(&Object<'_>),
) -> FormatResult<()> {
    let mut object = Object::default();
    block.for_each_selected_node(
        |nodes, selected| ids.for_each_present(nodes, |at| selected.push(at)),
        |node| {
            object.fill(node, block)?;
            visit(&object);
            Ok(())
        },
    )
}
