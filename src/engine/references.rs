//! Follows direct and indirect references from relations to their members and from ways to their nodes, or in reverse.

use super::distinct_list::DistinctList;
use super::id_search::IdSearch;
use super::scan::Scan;
use crate::error::{FormatResult, Result};
use crate::file::PlannedFile;
use crate::index::{IdBatch, IdSet, IdSets, SharedIdSet};
use crate::osm::{ObjectId, ObjectKind};
use crate::pbf::{BlobEntry, Block, BlockWalk};
use rustc_hash::FxHashMap;

/// Returns the objects that the objects of `wanted` refer to, directly or through other objects, as members of
/// relations and as nodes of ways. The result may include objects of `wanted`, and ids that are not in the file.
/// Relations may form cycles.
///
/// `nodes_of_wanted` are the nodes of the ways in `wanted`, if the caller knows them. If they are given, the references
/// of these ways are not decoded.
pub(crate) fn referenced_ids(
    source: PlannedFile<'_>,
    wanted: &IdSets,
    nodes_of_wanted: Option<IdSet>,
) -> Result<IdSets> {
    let mut found = IdSets::default();
    if !wanted.of(ObjectKind::Relation).is_empty() {
        follow_members(source, wanted, &mut found)?;
    }
    let have_nodes = nodes_of_wanted.is_some();
    let members = std::mem::take(found.of_mut(ObjectKind::Node));
    let of_ways = SharedIdSet::default();
    let (wanted_ways, more_ways) = (wanted.of(ObjectKind::Way), found.of(ObjectKind::Way));
    let is_looked_at = |way: i64| {
        if wanted_ways.contains(way) {
            !have_nodes
        } else {
            more_ways.contains(way)
        }
    };
    if !more_ways.is_empty() || (!have_nodes && !wanted_ways.is_empty()) {
        let is_met = |kind, first, last| {
            let meets = |ways: &IdSet| ways.may_meet(first, last);
            kind == ObjectKind::Way && (meets(more_ways) || (!have_nodes && meets(wanted_ways)))
        };
        let search = IdSearch::new(source.file, is_met, source.ctx)?;
        source.scan("find nodes of ways").run(
            |entry| search.may_have_wanted(entry),
            |_, block| nodes_of_ways(block, is_looked_at).map(|ids| of_ways.add(&ids)),
            |()| {},
        )?;
    }
    let mut nodes = of_ways.into_set(source.ctx.jobs);
    nodes.extend(members.ids());
    if let Some(more) = nodes_of_wanted {
        nodes.extend(more.ids());
    }
    *found.of_mut(ObjectKind::Node) = nodes;
    Ok(found)
}

/// Returns the ways and relations that refer to the objects of `wanted`, directly or through other objects. These are
/// the ways with a wanted node, the relations with a wanted member, the relations that have these ways or relations as
/// members, and so on.
pub(crate) fn referring_ids(source: PlannedFile<'_>, wanted: &IdSets) -> Result<IdSets> {
    let mut found = IdSets::default();
    let nodes = wanted.of(ObjectKind::Node);
    if !nodes.is_empty() {
        let scan = source.scan("find ways of nodes");
        let is_parent = |way: &BlockWalk<'_>| way.any_ref(|id| nodes.contains(id));
        collect_parents(scan, ObjectKind::Way, is_parent, &mut found)?;
    }
    loop {
        let before = found.len();
        let is_member = |kind, id| wanted.contains(kind, id) || found.contains(kind, id);
        let mut relations = Vec::new();
        let scan = source.scan("find relations");
        let is_parent = |relation: &BlockWalk<'_>| relation.any_member(is_member);
        collect_parents(scan, ObjectKind::Relation, is_parent, &mut relations)?;
        found.extend(relations);
        // The relations found in this round may be members of further relations, so the search ends only after a round
        // without new relations.
        if found.len() == before {
            return Ok(found);
        }
    }
}

/// Adds to `all` the ids of the objects of `kind` that `is_parent` selects.
fn collect_parents(
    scan: Scan<'_>,
    kind: ObjectKind,
    is_parent: impl Fn(&BlockWalk<'_>) -> FormatResult<bool> + Sync,
    all: &mut impl Extend<ObjectId>,
) -> Result<()> {
    scan.collect(
        |entry| entry.kinds.contains(kind),
        |block, found| {
            let mut objects = block.walk();
            while let Some(next) = objects.next()? {
                if next == kind && is_parent(&objects)? {
                    let id = objects.id()?;
                    found.push(ObjectId { kind, id });
                }
            }
            Ok(())
        },
        all,
    )
}

/// Returns the nodes of the wanted ways of a block, without duplicates and in ascending order. In this order, ids are
/// added to a set fastest.
fn nodes_of_ways(block: &Block<'_>, is_wanted: impl Fn(i64) -> bool) -> FormatResult<IdBatch> {
    let (mut refs, mut ways) = (Vec::new(), Vec::new());
    let mut limit = MANY;
    block.visit_in_parts(|part| {
        part.collect_refs(|| true, |way| is_wanted(way.id), &mut refs, &mut ways)?;
        ways.clear();
        if refs.len() > limit {
            refs = sort_and_dedup(std::mem::take(&mut refs));
            limit = MANY.max(2 * refs.len());
        }
        Ok(())
    })?;
    Ok(sort_and_dedup(refs).as_slice().into())
}

/// The number of ids above which duplicates are removed before all ids are collected.
const MANY: usize = 1 << 20;

/// Sorts ids in ascending order and removes duplicates.
pub(crate) fn sort_and_dedup(mut ids: Vec<i64>) -> Vec<i64> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The members of relations in a block.
#[derive(Default)]
struct BlockMembers {
    /// Pairs of a parent relation and a member relation.
    nested: DistinctList<(i64, i64)>,
    others: DistinctList<(ObjectKind, i64)>,
}

/// Returns the ids of members.
fn member_ids(members: DistinctList<(ObjectKind, i64)>) -> impl Iterator<Item = ObjectId> {
    let members = members.finish().into_iter();
    members.map(|(kind, id)| ObjectId { kind, id })
}

/// Returns members of the relations in a block: the nodes and ways of the relations that `is_wanted` selects, and the
/// member relations of the relations that `is_followed` selects.
fn members_in(
    block: &Block<'_>,
    is_wanted: impl Fn(i64) -> bool,
    is_followed: impl Fn(i64) -> bool,
) -> FormatResult<BlockMembers> {
    let mut members = BlockMembers::default();
    block.for_each_member(|relation, kind, id| match kind {
        ObjectKind::Relation if is_followed(relation) => members.nested.push((relation, id)),
        ObjectKind::Node | ObjectKind::Way if is_wanted(relation) => {
            members.others.push((kind, id));
        }
        _ => {}
    })?;
    Ok(members)
}

/// The number of levels of nested relations that are followed one by one. Relations are hardly ever nested more deeply.
const LEVELS: usize = 4;
/// A divisor: a level is followed on its own if at most `n / PART_OF_BLOBS` blobs may contain its relations. `n` is the
/// number of all blobs with relations.
const PART_OF_BLOBS: usize = 8;

/// Adds the members of the wanted relations, directly or through other relations, to `found`.
///
/// The first level consists of the wanted relations. Each further level consists of the relations that are members of
/// relations of the previous level. If few blobs may contain relations of a level, only these blobs are read. At the
/// first level whose relations may be in many blobs, or after [`LEVELS`] levels, all blobs with relations are read.
fn follow_members(source: PlannedFile<'_>, wanted: &IdSets, found: &mut IdSets) -> Result<()> {
    let mut level = wanted.of(ObjectKind::Relation).clone();
    let mut seen = level.clone();
    let has_relations = |entry: &&BlobEntry| entry.kinds.contains(ObjectKind::Relation);
    let blobs = source.plan.entries.iter().filter(has_relations).count();
    for _ in 0..LEVELS {
        let is_met =
            |kind, first, last| kind == ObjectKind::Relation && level.may_meet(first, last);
        let search = IdSearch::new(source.file, is_met, source.ctx)?;
        let of_level = |entry: &&BlobEntry| search.may_have_wanted(entry);
        if source.plan.entries.iter().filter(of_level).count() > blobs / PART_OF_BLOBS {
            break;
        }
        let mut next = IdSet::default();
        let is_of_level = |relation| level.contains(relation);
        source.scan("find members").run(
            |entry| search.may_have_wanted(entry),
            |_, block| members_in(block, is_of_level, is_of_level),
            |members| {
                found.extend(member_ids(members.others));
                for (_, child) in members.nested.finish() {
                    found.insert(ObjectKind::Relation, child);
                    if seen.insert(child) {
                        next.insert(child);
                    }
                }
            },
        )?;
        if next.is_empty() {
            return Ok(());
        }
        drop(search);
        level = next;
    }
    follow_members_in_all_blobs(source, &level, found)
}

/// Adds the members of the wanted relations, directly or through other relations, to `found`. Reads all blobs with
/// relations. The first pass finds the relations that are reached only through other relations; the blobs with these
/// relations are read a second time.
fn follow_members_in_all_blobs(
    source: PlannedFile<'_>,
    wanted: &IdSet,
    found: &mut IdSets,
) -> Result<()> {
    let mut nested: FxHashMap<i64, Vec<i64>> = FxHashMap::default();
    source.scan("find members").run(
        |entry| entry.kinds.contains(ObjectKind::Relation),
        |_, block| members_in(block, |relation| wanted.contains(relation), |_| true),
        |members| {
            for (parent, child) in members.nested.finish() {
                nested.entry(parent).or_default().push(child);
            }
            found.extend(member_ids(members.others));
        },
    )?;
    let more = follow_nested(wanted, &nested, found.of_mut(ObjectKind::Relation));
    if more.is_empty() {
        return Ok(());
    }
    let is_met = |kind, first, last| kind == ObjectKind::Relation && more.may_meet(first, last);
    let search = IdSearch::new(source.file, is_met, source.ctx)?;
    source.scan("find members").run(
        |entry| search.may_have_wanted(entry),
        |_, block| members_in(block, |relation| more.contains(relation), |_| false),
        |members| found.extend(member_ids(members.others)),
    )
}

/// Follows references between relations, starting at the wanted relations. `nested` maps a relation to its member
/// relations. Adds every member relation that is reached to `found`. Returns the reached relations that are not in
/// `wanted`.
fn follow_nested(wanted: &IdSet, nested: &FxHashMap<i64, Vec<i64>>, found: &mut IdSet) -> IdSet {
    let mut more = IdSet::default();
    let is_wanted = |parent: &&i64| wanted.contains(**parent);
    let mut left: Vec<i64> = nested.keys().filter(is_wanted).copied().collect();
    while let Some(parent) = left.pop() {
        for &child in nested.get(&parent).into_iter().flatten() {
            found.insert(child);
            if !wanted.contains(child) && more.insert(child) {
                left.push(child);
            }
        }
    }
    more
}
