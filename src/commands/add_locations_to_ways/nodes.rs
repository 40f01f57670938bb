//! Selects the nodes to keep.

use crate::engine::{Selected, Selection};
use crate::error::FormatResult;
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::Block;

/// Selects the objects of a block. If `members` is given, leaves out each node that has no tags and is not in
/// `members`. Calls `visit` with the id and the location of each node.
pub(super) fn select_except_unneeded_nodes(
    block: &Block<'_>,
    members: Option<&IdSet>,
    selection: &mut Selection,
    mut visit: impl FnMut(i64, Option<Location>),
) -> FormatResult<()> {
    selection.start_one_output();
    // A node outside of the world counts as a node without a location.
    let mut visit = |id, location: Option<Location>| {
        visit(id, location.filter(|location| location.is_on_earth()));
    };
    let stays = |id, has_tags| has_tags || members.is_none_or(|members| members.contains(id));
    if block
        .single_kind_and_count()
        .is_some_and(|(kind, _)| kind == ObjectKind::Node)
    {
        return block.for_each_node(|id, location, has_tags| {
            visit(id, location);
            selection.push(Selected::whole_if(stays(id, has_tags)));
        });
    }
    let mut nodes = Vec::new();
    block.for_each_node(|id, location, has_tags| {
        visit(id, location);
        nodes.push(stays(id, has_tags));
    })?;
    let mut next_node = 0;
    block.for_each_id(|kind, _| {
        let is_node = kind == ObjectKind::Node;
        selection.push(Selected::whole_if(!is_node || nodes[next_node]));
        next_node += usize::from(is_node);
    })
}
