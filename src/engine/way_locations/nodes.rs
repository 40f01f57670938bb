//! Reads the ids and the locations of nodes.

use crate::engine::scan::Scan;
use crate::error::{FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlannedFile};
use crate::index::{IdSet, LocationStore, NodeBatch, Preparation, SharedIdSet};
use crate::osm::{ObjectKind, id_rank};
use crate::pbf::{BlobEntry, Block};
use crate::runtime::Context;
use std::ops::RangeInclusive;

/// Reads the ids of the nodes whose ranks (see [`id_rank`]) lie in `ranks`.
pub(super) fn read_node_ids(source: PlannedFile<'_>, ranks: &RangeInclusive<u64>) -> Result<IdSet> {
    let ids = SharedIdSet::default();
    source.scan("ids of nodes").run(
        |entry| may_have_nodes_in(entry, ranks),
        |_, block| {
            let mut found = Vec::new();
            block.for_each_id(|kind, id| {
                if kind == ObjectKind::Node && ranks.contains(&id_rank(id)) {
                    found.push(id);
                }
            })?;
            ids.add(&found.as_slice().into());
            Ok(())
        },
        |()| {},
    )?;
    Ok(ids.into_set(source.ctx.jobs))
}

/// Whether a blob may, according to its entry, contain nodes whose ranks lie in `ranks`.
fn may_have_nodes_in(entry: &BlobEntry, ranks: &RangeInclusive<u64>) -> bool {
    let only_nodes = entry.kinds.single() == Some(ObjectKind::Node);
    let (first, last) = (id_rank(entry.min_id), id_rank(entry.max_id));
    // If a blob has several kinds of objects, its id range says nothing about the ids of its nodes, so it may contain
    // any node.
    entry.kinds.contains(ObjectKind::Node)
        && (!only_nodes || first <= *ranks.end() && last >= *ranks.start())
}

/// Adds the locations of the nodes whose ranks lie in `ranks` to `store`. Then prepares the store for look-ups.
pub(super) fn read_locations(
    source: PlannedFile<'_>,
    ranks: &RangeInclusive<u64>,
    store: &mut LocationStore,
) -> Result<()> {
    let preparation = store.preparation();
    source.scan("nodes").run(
        |entry| may_have_nodes_in(entry, ranks),
        |_, block| located_nodes(block, &preparation, |id| ranks.contains(&id_rank(id))),
        |nodes| store.add(&nodes),
    )?;
    store.close();
    Ok(())
}

/// Adds the locations of all nodes in `blobs` to `store`.
pub(super) fn read_all_locations(
    file: &PbfFile,
    blobs: &[BlobEntry],
    store: &mut LocationStore,
    ctx: &Context,
) -> Result<()> {
    let plan = BlobPlan {
        entries: blobs.to_vec(),
    };
    let preparation = store.preparation();
    Scan::without_strings("nodes", file, &plan, ctx).run(
        |_| true,
        |_, block| located_nodes(block, &preparation, |_| true),
        |nodes| store.add(&nodes),
    )
}

/// Returns the wanted nodes of a block, prepared for the store.
fn located_nodes(
    block: &Block<'_>,
    preparation: &Preparation,
    is_wanted: impl Fn(i64) -> bool,
) -> FormatResult<NodeBatch> {
    let mut nodes = NodeBatch::default();
    block.for_each_location(|id, location| {
        if is_wanted(id) {
            nodes.push(id, location);
        }
    })?;
    preparation.prepare(&mut nodes);
    Ok(nodes)
}
