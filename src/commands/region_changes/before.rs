//! The changed objects as the extracts have them. The extracts are of the state before the changes.

use super::regions::{Regions, add_regions};
use super::rows::RelationRows;
use super::sorted_file::SortedFile;
use crate::error::{FormatError, Result};
use crate::index::{EMPTY_SET, IdMap, IdSet, IdSets, SetAlgebra, SetNumber};
use crate::io::ScratchFile;
use crate::osm::{ObjectId, ObjectKind};
use crate::pbf::{BlobEntry, Block, WayNodes};
use crate::runtime::Context;
use std::path::Path;

/// The changed objects before the changes.
#[derive(Default)]
pub(super) struct Before {
    /// For each node, the regions that contained it.
    pub located: IdMap,
    /// The regions whose extracts have each object, in one map for each kind of object.
    pub kept: [IdMap; 3],
    /// The ways, each once.
    pub ways: WayNodes,
    /// The relations, each once. They matter only if a region completes relations.
    pub relations: RelationRows,
    /// The ids of the objects in `ways` and `relations`.
    known: IdSets,
}

/// The changed objects of a blob of an extract.
#[derive(Default)]
pub(super) struct ChangedInBlob {
    /// The nodes, each with the regions that contain its location.
    nodes: Vec<(i64, SetNumber)>,
    ways: WayNodes,
    relations: RelationRows,
}

impl Before {
    /// Adds the changed objects of the extract of region `region`. Returns their ids.
    pub(super) fn add(
        &mut self,
        region: u32,
        found: Vec<ChangedInBlob>,
        regions: &Regions<'_>,
    ) -> IdSets {
        let mut ids = IdSets::default();
        let own = regions.sets.of([region]);
        let mut algebra = SetAlgebra::new(&regions.sets);
        for found in found {
            ids.extend(found.ids());
            self.add_blob(found, own, &mut algebra);
        }
        ids
    }

    /// Adds the objects of a blob of an extract. `own` is the set that has only the region of the extract.
    fn add_blob(&mut self, found: ChangedInBlob, own: SetNumber, algebra: &mut SetAlgebra<'_>) {
        let [nodes, ways, relations] = &mut self.kept;
        for (id, located) in found.nodes {
            add_regions(nodes, id, own, algebra);
            add_regions(&mut self.located, id, located, algebra);
        }
        for (id, refs) in found.ways.iter() {
            add_regions(ways, id, own, algebra);
            if self.known.insert(ObjectKind::Way, id) {
                self.ways.push(id, refs);
            }
        }
        for (row, members) in found.relations.iter() {
            add_regions(relations, row.id, own, algebra);
            if self.known.insert(ObjectKind::Relation, row.id) {
                self.relations.push(row, members);
            }
        }
    }

    /// Returns the regions whose extract is not of the state before the changes. Such an extract lacks a node that lies
    /// in the region, although the extract of another region has the node.
    pub(super) fn contradicted_regions(&self, algebra: &mut SetAlgebra<'_>) -> SetNumber {
        let mut all = EMPTY_SET;
        self.located.for_each(|id, located| {
            let lacking = algebra.difference(located, self.regions_with(ObjectKind::Node, id));
            all = algebra.union(all, lacking);
        });
        all
    }

    /// Returns the moved nodes and the new nodes among the changed nodes `nodes`. A moved node is not in the same
    /// regions as before the changes. A new node exists after the changes, but no extract had it. `located` has the
    /// regions that contain each node after the changes. `present` has the nodes that exist after the changes.
    pub(super) fn moved_nodes(&self, nodes: &IdSet, located: &IdMap, present: &IdSet) -> IdSet {
        let is_moved = |id: &i64| self.located.get(*id) != located.get(*id);
        let is_new = |id: &i64| {
            present.contains(*id) && self.regions_with(ObjectKind::Node, *id) == EMPTY_SET
        };
        let nodes = nodes.ids();
        nodes.filter(|id| is_moved(id) || is_new(id)).collect()
    }

    /// Returns the regions whose extracts have an object.
    pub(super) fn regions_with(&self, kind: ObjectKind, id: i64) -> SetNumber {
        self.kept[kind as usize].get(id)
    }

    /// Records which extracts have the unchanged ways in `ways`. `ways` has each way with the regions of these
    /// extracts.
    pub(super) fn add_unchanged_ways(&mut self, ways: &[(i64, SetNumber)], regions: &Regions<'_>) {
        let mut algebra = SetAlgebra::new(&regions.sets);
        let kept = &mut self.kept[ObjectKind::Way as usize];
        for (id, set) in ways {
            add_regions(kept, *id, *set, &mut algebra);
        }
    }

    /// Records that the extract of a region has the objects in `found`. These objects have no changes.
    pub(super) fn add_unchanged_objects(
        &mut self,
        region: u32,
        found: &[ObjectId],
        regions: &Regions<'_>,
    ) {
        let own = regions.sets.of([region]);
        let mut algebra = SetAlgebra::new(&regions.sets);
        for object in found {
            add_regions(
                &mut self.kept[object.kind as usize],
                object.id,
                own,
                &mut algebra,
            );
        }
    }
}

/// Writes the objects of an extract that are in `changed` to a temporary file in `directory`. Returns these objects,
/// grouped by blob, and the file.
pub(super) fn copy_changed(
    extract: &SortedFile,
    (changed, directory): (&IdSets, &Path),
    regions: &Regions<'_>,
    ctx: &Context,
) -> Result<(Vec<ChangedInBlob>, ScratchFile)> {
    let mut all = Vec::new();
    let (file, _) = extract.copy(
        "find old versions",
        changed,
        directory,
        |entry, block| changed_objects_of_block(entry, block, changed, regions),
        |found| all.push(found),
        ctx,
    )?;
    Ok((all, file))
}

impl ChangedInBlob {
    fn ids(&self) -> impl Iterator<Item = ObjectId> {
        let nodes = self.nodes.iter().map(|(id, _)| (ObjectKind::Node, *id));
        let ways = self.ways.ways.iter().map(|(id, _)| (ObjectKind::Way, *id));
        let relations = self.relations.iter();
        let relations = relations.map(|(row, _)| (ObjectKind::Relation, row.id));
        let all = nodes.chain(ways).chain(relations);
        all.map(|(kind, id)| ObjectId { kind, id })
    }
}

/// Returns the objects of a block that are in `changed`.
fn changed_objects_of_block(
    entry: &BlobEntry,
    block: &Block<'_>,
    changed: &IdSets,
    regions: &Regions<'_>,
) -> Result<ChangedInBlob, FormatError> {
    let mut found = ChangedInBlob::default();
    let of = |kind| -> &IdSet { changed.of(kind) };
    if of(ObjectKind::Node).may_meet_blob(entry, ObjectKind::Node) {
        let (nodes, mut lookup) = (of(ObjectKind::Node), regions.new_lookup());
        block.for_each_selected_location(
            |block_ids, selected| nodes.append_present(block_ids, selected),
            |id, location| (found.nodes).push((id, Regions::at(&mut lookup, location))),
        )?;
    }
    if of(ObjectKind::Way).may_meet_blob(entry, ObjectKind::Way) {
        let is_changed = |id| of(ObjectKind::Way).contains(id);
        let (refs, ways) = (&mut found.ways.refs, &mut found.ways.ways);
        block.collect_refs(|| true, |way| is_changed(way.id), refs, ways)?;
    }
    if of(ObjectKind::Relation).may_meet_blob(entry, ObjectKind::Relation) {
        let relations = of(ObjectKind::Relation);
        found.relations =
            RelationRows::of_block(block, regions, None, |row, _| relations.contains(row.id))?;
    }
    Ok(found)
}
