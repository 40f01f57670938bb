//! Finds the objects in a region: nodes in it, ways with a node in it, and relations with such a node or way as a
//! member.

use crate::engine::location_form::LocationForm;
use crate::error::{FormatResult, Result};
use crate::file::PlannedFile;
use crate::geometry::{AreaIndex, LocationTest, Shape};
use crate::index::{IdBatch, IdSet, IdSets, SharedIdSet};
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, Block};

/// Returns the objects of a file that are in a region. If the file may lack nodes of its ways, a way with a stored
/// location in the region is also in the region.
pub(super) fn objects(source: PlannedFile<'_>, shape: &Shape) -> Result<IdSets> {
    let index = AreaIndex::new(std::slice::from_ref(shape));
    let mut inside = IdSets::default();
    let nodes = SharedIdSet::default();
    let may_have_nodes = |entry: &BlobEntry| {
        let may_meet = entry.bbox.is_empty() || index.meets(&entry.bbox);
        entry.kinds.contains(ObjectKind::Node) && may_meet
    };
    source.scan("find nodes").run(
        may_have_nodes,
        |_, block| {
            let (mut test, mut found) = (LocationTest::new(&index), Vec::new());
            block.for_each_location(|id, location| {
                if location.is_some_and(|location| test.has(location)) {
                    found.push(id);
                }
            })?;
            nodes.add(&IdBatch::from(found.as_slice()));
            Ok(())
        },
        |()| (),
    )?;
    *inside.of_mut(ObjectKind::Node) = nodes.into_set(source.ctx.jobs);
    let stored = LocationForm::of(source.file, source.plan)
        .may_lack_nodes()
        .then_some(&index);
    for kind in [ObjectKind::Way, ObjectKind::Relation] {
        let (name, mut found) = match kind {
            ObjectKind::Relation => ("find relations", IdSet::default()),
            ObjectKind::Way | ObjectKind::Node => ("find ways", IdSet::default()),
        };
        source.scan(name).run(
            |entry| entry.kinds.contains(kind),
            |_, block| match kind {
                ObjectKind::Relation => relations_inside(block, &inside),
                ObjectKind::Way | ObjectKind::Node => {
                    ways_inside(block, inside.of(ObjectKind::Node), stored)
                }
            },
            |ids| found.add(&IdBatch::from(ids.as_slice())),
        )?;
        *inside.of_mut(kind) = found;
    }
    Ok(inside)
}

/// Returns the ways of a block with a node in `nodes`, or with a stored location in the region of `stored`.
fn ways_inside(
    block: &Block<'_>,
    nodes: &IdSet,
    stored: Option<&AreaIndex>,
) -> FormatResult<Vec<i64>> {
    let mut located = Vec::new();
    if let Some(index) = stored {
        let mut test = LocationTest::new(index);
        block.for_each_wanted_way(
            |_| true,
            |_, _, locations| {
                let mut locations = locations.unwrap_or_default().iter().flatten().copied();
                located.push(locations.any(|at: Location| at.is_on_earth() && test.has(at)));
            },
        )?;
    }
    let (mut objects, mut index, mut found) = (block.walk(), 0, Vec::new());
    while let Some(kind) = objects.next()? {
        if kind == ObjectKind::Way {
            let is_located = located.get(index) == Some(&true);
            if is_located || objects.any_ref(|id| nodes.contains(id))? {
                found.push(objects.id()?);
            }
            index += 1;
        }
    }
    Ok(found)
}

/// Returns the relations of a block with a node or a way of `inside` as a member.
fn relations_inside(block: &Block<'_>, inside: &IdSets) -> FormatResult<Vec<i64>> {
    block.check_relation_sizes()?;
    let (mut objects, mut found) = (block.walk(), Vec::new());
    while let Some(kind) = objects.next()? {
        let is_member = |kind, id| kind != ObjectKind::Relation && inside.contains(kind, id);
        if kind == ObjectKind::Relation && objects.any_member(is_member)? {
            found.push(objects.id()?);
        }
    }
    Ok(found)
}
