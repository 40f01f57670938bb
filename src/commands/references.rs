//! What objects refer to, and what that refers to in turn: relations, ways, nodes.

use super::keep::{Fate, Glance};
use crate::Context;
use crate::error::Result;
use crate::index::{IdSet, IdSets};
use crate::osm::ObjectKind;
use crate::pbf::{BlobEntry, FormatError, ParsedBlock, StringTable};
use crate::read::{BlobPlan, BlobReader, Glanced, PbfFile, parallel_classify_phase};
use rustc_hash::FxHashMap;

/// The objects that those of `wanted` refer to, directly or through others: members of relations, nodes
/// of ways. Relations may form cycles. What is in `wanted` itself may be among them.
///
/// The nodes of the wanted ways are not looked for where `nodes_of_wanted` has them already.
pub(super) fn referenced(
    file: &PbfFile,
    plan: &mut BlobPlan,
    wanted: &IdSets,
    nodes_of_wanted: Option<IdSet>,
    ctx: &Context,
) -> Result<IdSets> {
    let mut found = IdSets::default();
    if !wanted.of(ObjectKind::Relation).is_empty() {
        relations(file, plan, wanted, &mut found, ctx)?;
    }
    let have_nodes = nodes_of_wanted.is_some();
    let mut nodes = std::mem::take(found.of_mut(ObjectKind::Node));
    let (wanted_ways, more_ways) = (wanted.of(ObjectKind::Way), found.of(ObjectKind::Way));
    let is_looked_at = |way: i64| match wanted_ways.contains(way) {
        true => !have_nodes,
        false => more_ways.contains(way),
    };
    let meets = |ways: &IdSet, entry: &BlobEntry| match entry.kinds.single() {
        Some(_) => ways.may_meet(entry.min_id, entry.max_id),
        None => !ways.is_empty(),
    };
    let is_met = |entry: &BlobEntry| {
        entry.kinds.contains(ObjectKind::Way)
            && (meets(more_ways, entry) || (!have_nodes && meets(wanted_ways, entry)))
    };
    if !more_ways.is_empty() || (!have_nodes && !wanted_ways.is_empty()) {
        scan_blobs(
            ("find nodes of ways", file, plan, ctx),
            is_met,
            None,
            |block| nodes_of_ways(block, is_looked_at),
            |ids| nodes.extend(ids),
        )?;
    }
    if let Some(more) = nodes_of_wanted {
        nodes.extend(more.ids());
    }
    *found.of_mut(ObjectKind::Node) = nodes;
    Ok(found)
}

/// The nodes of some ways, ascending, each once: they go into a set in that order most quickly.
fn nodes_of_ways(
    block: &ParsedBlock<'_>,
    is_wanted: impl Fn(i64) -> bool,
) -> Result<Vec<i64>, FormatError> {
    let (mut refs, mut ways) = (Vec::new(), Vec::new());
    block.collect_refs_of(is_wanted, &mut refs, &mut ways)?;
    Ok(each_once(refs))
}

/// Ids in ascending order, each once.
pub(super) fn each_once(mut ids: Vec<i64>) -> Vec<i64> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Members of relations: all that relations refer to relations, so that it can be followed whatever the
/// order in the file, and nodes and ways of those that are wanted.
#[derive(Default)]
struct Members {
    nested: Vec<(i64, i64)>,
    others: Vec<(ObjectKind, i64)>,
}

fn members(
    block: &ParsedBlock<'_>,
    is_wanted: impl Fn(i64) -> bool,
) -> Result<Members, FormatError> {
    let mut members = Members::default();
    block.for_each_member(|relation, kind, id| {
        if kind == ObjectKind::Relation {
            members.nested.push((relation, id));
        } else if is_wanted(relation) {
            members.others.push((kind, id));
        }
    })?;
    Ok(members)
}

fn relations(
    file: &PbfFile,
    plan: &mut BlobPlan,
    wanted: &IdSets,
    found: &mut IdSets,
    ctx: &Context,
) -> Result<()> {
    let wanted = wanted.of(ObjectKind::Relation);
    let mut nested: FxHashMap<i64, Vec<i64>> = FxHashMap::default();
    let take_others = |found: &mut IdSets, others: Vec<(ObjectKind, i64)>| {
        for (kind, id) in others {
            found.insert(kind, id);
        }
    };
    scan_blobs(
        ("find members", file, plan, ctx),
        |entry| entry.kinds.contains(ObjectKind::Relation),
        None,
        |block| members(block, |relation| wanted.contains(relation)),
        |members| {
            for (parent, child) in members.nested {
                nested.entry(parent).or_default().push(child);
            }
            take_others(found, members.others);
        },
    )?;
    let more = follow(wanted, &nested, found.of_mut(ObjectKind::Relation));
    if more.is_empty() {
        return Ok(());
    }
    scan_blobs(
        ("find members", file, plan, ctx),
        |entry| {
            let ids = (entry.min_id, entry.max_id);
            let alone = entry.kinds.single().is_some();
            entry.kinds.contains(ObjectKind::Relation) && (!alone || more.may_meet(ids.0, ids.1))
        },
        None,
        |block| members(block, |relation| more.contains(relation)),
        |members| take_others(found, members.others),
    )
}

/// Follows relations to relations. All that is met goes into `found`; what is not wanted anyway is
/// returned.
fn follow(wanted: &IdSet, nested: &FxHashMap<i64, Vec<i64>>, found: &mut IdSet) -> IdSet {
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

/// Reads the blobs that `selected` picks, but for those that `glance` drops by their strings, and hands what `look` makes of each to `take`, in file order.
pub(super) fn scan_blobs<T: Send>(
    (name, file, plan, ctx): (&'static str, &PbfFile, &mut BlobPlan, &Context),
    selected: impl Fn(&BlobEntry) -> bool,
    glance: Option<Glance<'_>>,
    look: impl Fn(&ParsedBlock<'_>) -> Result<T, FormatError> + Sync,
    mut take: impl FnMut(T),
) -> Result<()> {
    plan.resolve_shared(file, ctx, &selected)?;
    let blobs: Vec<&BlobEntry> = plan
        .entries
        .iter()
        .filter(|entry| selected(entry))
        .collect();
    let bytes = |entry: &BlobEntry| u64::from(entry.frame_len);
    let phase = ctx.phase(name, blobs.iter().map(|entry| bytes(entry)).sum());
    parallel_classify_phase(
        ctx.jobs,
        ctx.byte_budget(),
        blobs.into_iter().map(Ok),
        |entry| bytes(entry) * 2,
        || BlobReader::new(&file.input, ctx),
        |reader, entry| {
            let is_dropped =
                |strings: &StringTable<'_>| (glance?(strings) == Fate::Drop).then_some(());
            let payload = match reader.payload_unless(entry, is_dropped)? {
                Glanced::Answered(()) => return Ok((bytes(entry), None)),
                Glanced::Payload(payload) => payload,
            };
            let looked = ParsedBlock::parse(payload).and_then(|block| look(&block));
            let looked = looked.map_err(|error| reader.error(entry, error))?;
            Ok((bytes(entry), Some(looked)))
        },
        |(bytes, looked)| {
            phase.advance(bytes);
            looked.into_iter().for_each(&mut take);
            Ok(())
        },
    )
}
