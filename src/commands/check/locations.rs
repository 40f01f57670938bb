//! Checks the locations that ways store for their nodes.

use super::blob_check::{location_at, way_ids};
use super::{Dangling, ReferenceLocations};
use crate::engine::way_locations::{
    BlobLocations, IndexType, LocateOptions, NodeParts, WayLocator,
};
use crate::error::{Error, FormatResult, Result};
use crate::file::PlannedFile;
use crate::index::IdSet;
use crate::osm::ObjectKind;
use crate::pbf::Block;

/// The number of references that are looked up at a time.
const REFS_AT_A_TIME: usize = 1 << 16;

/// The result of [`compare_locations_with_nodes`].
#[derive(Default)]
pub(super) struct ComparedLocations {
    pub counts: ReferenceLocations,
    /// The first references whose location in the way differs from that of the node.
    pub listed: Vec<Dangling>,
    /// The number of all references whose location in the way differs from that of the node.
    contradicting: u64,
}

/// Compares the locations that ways store with those of the nodes in the file. Lists at most `max_listed` differences.
/// Warns and returns `None` if the locations of the nodes fit neither into memory nor on the disk. Also returns `None`
/// if locations in ways are malformed, because the check of the contents reports this.
pub(super) fn compare_locations_with_nodes(
    source: PlannedFile<'_>,
    max_listed: usize,
) -> Result<Option<ComparedLocations>> {
    source.ctx.expect_phases(2);
    let parts = NodeParts::of(&source.plan.entries);
    let options = LocateOptions::new(IndexType::Auto, std::env::temp_dir(), None);
    let locator = match WayLocator::new(source, &parts, &options) {
        Ok(locator) => locator,
        Err(error) => {
            source.ctx.warn(format!(
                "the locations in ways are not compared with the nodes: {error}"
            ));
            return Ok(None);
        }
    };
    let locations = locator.locate_without_reader()?;
    let mut all = ComparedLocations::default();
    let compared = source.scan("compare locations").run(
        |entry| entry.kinds.contains(ObjectKind::Way),
        |entry, block| compare_block(block, locations.locations_of_blob(entry)?, max_listed),
        |found| all.add(found, max_listed),
    );
    match compared {
        Err(Error::Blob { .. }) => return Ok(None),
        compared => compared?,
    }
    all.counts.contradicting = Some(all.contradicting);
    Ok(Some(all))
}

impl ComparedLocations {
    fn add(&mut self, more: Self, max_listed: usize) {
        self.counts.references += more.counts.references;
        self.counts.stored += more.counts.stored;
        self.counts.unknown += more.counts.unknown;
        self.contradicting += more.contradicting;
        let room = max_listed.saturating_sub(self.listed.len());
        self.listed.extend(more.listed.into_iter().take(room));
    }
}

/// Compares the locations that the ways of a block store with those of the nodes.
fn compare_block(
    block: &Block<'_>,
    mut of_nodes: BlobLocations<'_>,
    max_listed: usize,
) -> FormatResult<ComparedLocations> {
    let mut found = ComparedLocations::default();
    let (mut ways, mut nodes) = (way_ids(block)?.into_iter(), Vec::new());
    let mut failed = Ok(());
    block.for_each_wanted_way(
        |_| true,
        |_, refs, stored| {
            let Some(in_id) = ways.next().filter(|_| failed.is_ok()) else {
                return;
            };
            nodes.clear();
            failed = of_nodes.append_locations(refs, &mut nodes);
            found.counts.references += refs.len() as u64;
            for (index, (id, node)) in refs.iter().zip(&nodes).enumerate() {
                match (node, location_at(stored, index)) {
                    (None, None) => found.counts.unknown += 1,
                    (None, Some(_)) => found.counts.stored += 1,
                    (Some(node), Some(stored)) if *node != stored => {
                        found.contradicting += 1;
                        if found.listed.len() < max_listed {
                            found.listed.push(Dangling::missing_node(in_id, *id));
                        }
                    }
                    (Some(_), _) => {}
                }
            }
        },
    )?;
    failed?;
    of_nodes.end()?;
    Ok(found)
}

/// Counts the nodes that have no tags and to which no way or relation refers.
pub(super) fn count_unused_nodes(source: PlannedFile<'_>) -> Result<u64> {
    source.ctx.expect_phases(2);
    let (mut untagged, mut used) = (IdSet::default(), IdSet::default());
    source.scan("untagged nodes").collect(
        |entry| entry.kinds.contains(ObjectKind::Node),
        |block, ids| {
            block.for_each_node(|id, _, has_tags| {
                if !has_tags {
                    ids.push(id);
                }
            })
        },
        &mut untagged,
    )?;
    let untagged = untagged;
    source.scan("members").collect(
        |entry| entry.kinds.contains(ObjectKind::Relation),
        |block, ids| {
            block.for_each_member(|_, kind, id| {
                if kind == ObjectKind::Node && untagged.contains(id) {
                    ids.push(id);
                }
            })
        },
        &mut used,
    )?;
    // In a file without the nodes that only ways need, usually all untagged nodes are members of relations. The ways
    // then need not be read.
    if used.len() < untagged.len() {
        source.ctx.expect_phases(1);
        source.scan("nodes of ways").collect(
            |entry| entry.kinds.contains(ObjectKind::Way),
            |block, ids| {
                block.for_each_ref_batch(REFS_AT_A_TIME, |refs, _| {
                    untagged.for_each_present(refs, |index| ids.push(refs[index]));
                })
            },
            &mut used,
        )?;
    }
    Ok(untagged.len() - used.len())
}
