//! Finds the ways that are affected by changes, and reads the ways that are members of relations.

use super::Base;
use super::geometry::{
    NeededNodes, NodeState, NodesOfWays, SelectedWays, StoredWays, base_location,
};
use super::history::{History, Status};
use super::kept::{KeptObjects, KeptRows};
use crate::engine::block_observer::CandidateRefs;
use crate::engine::payload_cache::PayloadCache;
use crate::error::{Error, FormatResult, Result};
use crate::formats::ChangeSet;
use crate::index::{IdSet, Remainders};
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, Block, Object, ObjectBody, WayNodes};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The ways of a blob of the base: those that are affected by changes, and those that are members of relations.
#[derive(Default)]
pub(super) struct FoundWays {
    status: Vec<(usize, Status)>,
    kept: KeptRows,
    /// Pairs of a way and a step in which the way gets another shape without a change of its own.
    reshaped: Vec<(i64, u32)>,
    /// The changed nodes that the base does not have as objects, with the locations that ways store for them.
    places: Vec<(i64, Location)>,
    nodes: NodesOfWays,
    /// Ways that are members of relations.
    members: StoredWays,
}

impl FoundWays {
    /// Creates an empty list of ways of a block.
    fn of(entry: &BlobEntry, block: &Block<'_>) -> Self {
        Self {
            members: StoredWays::of(entry, block),
            ..Self::default()
        }
    }

    /// Adds a way of the base that has a change or a changed node.
    fn add(&mut self, way: &Object<'_>, moves: &Moves<'_, '_>) {
        let ObjectBody::Way { refs, locations } = &way.body else {
            return;
        };
        let history = moves.history;
        let range = history.change_indices(ObjectKind::Way, way.id);
        let status = range.map(|index| (index, history.status_in_base(index, &way.info)));
        let first = self.status.len();
        self.status.extend(status);
        let replaced = self.status[first..]
            .iter()
            .find(|(_, status)| *status == Status::Replaces);
        // The nodes of the way matter until a change replaces the way.
        let end = replaced.map(|(index, _)| history.steps.step_of_change(*index));
        let mut is_concerned = end.is_some();
        for (at, id) in refs.iter().enumerate() {
            if history.changed_ids(ObjectKind::Node).contains(*id) {
                is_concerned = true;
                let given = locations.get(at).copied().flatten();
                let place = given.filter(|_| !moves.in_base.contains_key(id));
                self.places.extend(place.map(|place| (*id, place)));
                moves.for_each_move(*id, given, 0..end.unwrap_or(u32::MAX), |step| {
                    self.reshaped.push((way.id, step));
                });
            }
        }
        if is_concerned {
            for (at, id) in refs.iter().enumerate() {
                let is_stored = locations.get(at).is_some_and(Option::is_some);
                self.nodes.push(*id, is_stored && moves.takes_stored);
            }
        }
        // Keeps the way even if all its changes are outdated, because these changes are counted when objects are
        // written.
        self.kept.push(way);
    }

    /// Ends the list, so that it can be added to a tally.
    fn finish(mut self) -> Self {
        self.nodes.finish();
        self.members.shrink();
        self
    }
}

/// The changed nodes, and their locations in the base.
pub(super) struct Moves<'m, 'c> {
    pub history: &'m History<'c>,
    pub in_base: &'m FxHashMap<i64, NodeState>,
    /// Whether a location that a way of the base stores takes precedence over that of the node.
    pub takes_stored: bool,
}

impl Moves<'_, '_> {
    /// Calls `take` with each step of `steps` in which a node gets another location. `given` is the location that a way
    /// of the base stores for the node.
    fn for_each_move(
        &self,
        node: i64,
        given: Option<Location>,
        steps: Range<u32>,
        mut take: impl FnMut(u32),
    ) {
        let in_base = self.in_base.get(&node).and_then(|state| state.location);
        let mut location = base_location(self.takes_stored, in_base, given);
        self.history
            .for_each_step(ObjectKind::Node, node, |step, change| {
                let new = ChangeSet::location(change);
                if new != location && steps.contains(&step) {
                    take(step);
                }
                location = new;
            });
    }

    /// Returns pairs of a changed way and a step in which the way gets another shape after its own change.
    pub(super) fn reshaping_steps_of_ways(&self) -> Vec<(i64, u32)> {
        let history = self.history;
        let mut reshaped = Vec::new();
        let ways = (ObjectKind::Way, 0)..=(ObjectKind::Way, u64::MAX);
        let ways = history.changes.range(*ways.start(), *ways.end());
        let mut versions = history.effective_changes(ways).peekable();
        while let Some((step, way)) = versions.next() {
            let next = versions.peek().filter(|(_, next)| next.key == way.key);
            let steps = step + 1..next.map_or(u32::MAX, |(step, _)| *step);
            for node in history.changes.refs(way) {
                if history.changed_ids(ObjectKind::Node).contains(*node) {
                    self.for_each_move(*node, None, steps.clone(), |step| {
                        reshaped.push((way.id(), step));
                    });
                }
            }
        }
        reshaped
    }
}

/// The search for wanted ways: those that are affected by changes, and those that are members of relations.
pub(super) struct WayFinder<'f, 'c> {
    pub moves: Moves<'f, 'c>,
    /// The ways with a change.
    pub changed: &'f IdSet,
    pub members: &'f MemberIds,
}

impl WayFinder<'_, '_> {
    /// Whether a blob may have wanted ways.
    fn may_have_wanted_ways(&self, entry: &BlobEntry) -> bool {
        let changed_nodes = self.moves.history.changed_ids(ObjectKind::Node);
        entry.kinds.contains(ObjectKind::Way)
            && (!changed_nodes.is_empty() || self.changed.may_meet_blob(entry, ObjectKind::Way))
    }

    /// Returns the wanted ways of a block.
    pub(super) fn find_in_block(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
    ) -> FormatResult<FoundWays> {
        let mut found = FoundWays::of(entry, block);
        let changed_nodes = self.moves.history.changed_ids(ObjectKind::Node);
        block.visit_in_parts(|part| {
            let (nodes, mut candidates) = (WayNodes::from_block(part)?, Vec::new());
            changed_nodes.append_present(&nodes.refs, &mut candidates);
            let refs = CandidateRefs {
                nodes: &nodes,
                candidates: &candidates,
            };
            self.find_in_part(entry, part, refs, &mut found)
        })?;
        Ok(found.finish())
    }

    /// Does the same as [`find_in_block`](Self::find_in_block), but with the references of the ways, which the caller
    /// knows.
    pub(super) fn find_by_refs(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        refs: CandidateRefs<'_>,
    ) -> FormatResult<FoundWays> {
        let mut found = FoundWays::of(entry, block);
        self.find_in_part(entry, block, refs, &mut found)?;
        Ok(found.finish())
    }

    /// Adds the wanted ways of a part of a block. The references are those of the ways of the part.
    fn find_in_part(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        CandidateRefs { nodes, candidates }: CandidateRefs<'_>,
        found: &mut FoundWays,
    ) -> FormatResult<()> {
        let changed_nodes = self.moves.history.changed_ids(ObjectKind::Node);
        let ids: Vec<i64> = nodes.ways.iter().map(|(id, _)| *id).collect();
        // For each way, whether changes affect the way, and whether the way is kept for relations.
        let mut wanted = vec![(false, false); ids.len()];
        for at in candidates {
            if changed_nodes.contains(nodes.refs[*at]) {
                wanted[nodes.way_index_of(*at)].0 = true;
            }
        }
        if self.changed.may_meet_blob(entry, ObjectKind::Way) {
            let changed = self.changed;
            changed.for_each_present(&ids, |way| wanted[way].0 = true);
        }
        if let Some(members) = self.members.kept_ways() {
            for (id, wanted) in ids.iter().zip(&mut wanted) {
                wanted.1 = members.may_have(*id);
            }
        }
        let mut object = Object::default();
        block.for_each_stored_way(|index, way| {
            let (is_concerned, is_member) = wanted[index];
            if is_concerned {
                object.fill(&way.element()?, block)?;
                found.add(&object, &self.moves);
            }
            if is_member {
                found.members.push(ids[index], way)?;
            }
            Ok(())
        })
    }
}

/// The ways that were found in all blobs so far, and the nodes that they need.
pub(super) struct WayTally {
    pub status: Vec<(usize, Status)>,
    pub reshaped: Vec<(i64, u32)>,
    /// The changed nodes that the base does not have as objects, with the locations that ways store for them.
    pub places: FxHashMap<i64, Location>,
    /// The nodes of the ways.
    pub nodes: NeededNodes,
    pub kept: KeptObjects,
    pub members: KeptMembers,
    /// The numbers of the blobs that were searched.
    seen: FxHashSet<u64>,
    /// The first error that [`add_or_keep_error`](Self::add_or_keep_error) could not return.
    failed: Option<Error>,
}

impl WayTally {
    /// Creates a tally that adds ways of `base` to `kept`.
    pub(super) fn new(base: &Base<'_>, kept: KeptObjects, members: KeptMembers) -> Self {
        Self {
            status: Vec::new(),
            reshaped: Vec::new(),
            places: FxHashMap::default(),
            nodes: NeededNodes::new(base.uses_stored_locations()),
            kept,
            members,
            seen: FxHashSet::default(),
            failed: None,
        }
    }

    /// Adds the ways of a blob that another command has decoded.
    pub(super) fn add_or_keep_error(
        &mut self,
        entry: &BlobEntry,
        found: FoundWays,
        ids: &MemberIds,
    ) {
        self.kept.set_in_order(false);
        if let Err(error) = self.add(entry, found, ids) {
            self.failed.get_or_insert(error);
        }
    }

    /// Adds the ways of a blob. Blobs may come in any order.
    fn add(&mut self, entry: &BlobEntry, found: FoundWays, ids: &MemberIds) -> Result<()> {
        self.seen.insert(entry.number.into());
        self.status.extend(found.status);
        self.reshaped.extend(found.reshaped);
        for (id, place) in found.places {
            // If ways store different locations for a node, the choice does not depend on the order of blobs.
            let key = |place: &Location| (place.lat_e7(), place.lon_e7());
            let known = self.places.entry(id).or_insert(place);
            *known = std::cmp::min_by_key(*known, place, key);
        }
        self.nodes.add_way_nodes(&found.nodes);
        self.members.add(found.members, ids);
        self.kept.add(found.kept)
    }
}

/// Adds the wanted ways of the base to `tally`. Skips blobs that were already searched.
pub(super) fn find_ways(
    base: &Base<'_>,
    finder: &WayFinder<'_, '_>,
    tally: &mut WayTally,
) -> Result<()> {
    tally.failed.take().map_or(Ok(()), Err)?;
    let seen = tally.seen.clone();
    base.source.scan("ways").with_strings().try_run(
        |entry| finder.may_have_wanted_ways(entry) && !seen.contains(&entry.number.into()),
        |entry, block| Ok((*entry, finder.find_in_block(entry, block)?)),
        |(entry, found)| tally.add(&entry, found, finder.members),
    )
}

/// The maximum size in bytes of the ways in [`KeptMembers`].
const MEMBER_MEMORY: usize = 128 << 20;
/// The maximum total size in bytes of the blobs with relations. If they are larger, no member ways are kept, because
/// these ways are assumed not to fit into [`MEMBER_MEMORY`].
const RELATION_BYTES: u64 = 64 << 20;

/// The ways that are members of any relation. They are collected while all ways are read. At that time, it is not known
/// yet which relations are written. Keeping the ways avoids reading ways again. Large files have too many of these
/// ways, so none are kept.
pub(super) struct EarlyMembers {
    pub ids: MemberIds,
    pub kept: KeptMembers,
}

/// An approximate set of the ids of ways that are members of relations. With seven million members, a look-up wrongly
/// finds one in ten of the ways that are not members.
type WayIds = Remainders<{ 1 << 20 }>;

/// The ids of the ways that are kept.
#[derive(Default)]
pub(super) struct MemberIds {
    /// `None` if no ways are kept.
    wanted: Option<WayIds>,
    /// Whether the ways are too many to be kept.
    is_full: AtomicBool,
}

/// Ways that may be needed as members of relations. They are kept until it is known which relations are written.
pub(super) struct KeptMembers {
    batches: Vec<StoredWays>,
    /// The size in memory in bytes, and its maximum.
    memory: usize,
    limit: usize,
}

impl MemberIds {
    /// Returns the ids of the ways that are kept; `None` if no ways are kept, or too many were found.
    fn kept_ways(&self) -> Option<&WayIds> {
        let is_full = self.is_full.load(Ordering::Relaxed);
        self.wanted.as_ref().filter(|_| !is_full)
    }
}

impl KeptMembers {
    /// Adds ways of a blob. Drops all ways if they take too much memory.
    fn add(&mut self, ways: StoredWays, ids: &MemberIds) {
        self.memory += ways.memory();
        self.batches.push(ways);
        if self.memory > self.limit {
            ids.is_full.store(true, Ordering::Relaxed);
            self.batches.clear();
        }
    }
}

impl EarlyMembers {
    /// Collects the ids of the ways that are members of relations, in the base and in the changes. Collects none if the
    /// blobs with relations are larger than [`RELATION_BYTES`]. Also collects none if no node has changed, because then
    /// only few ways are read. Adds the relations that were read to `relations_read`.
    pub(super) fn of(
        base: &Base<'_>,
        history: &History<'_>,
        relations_read: &PayloadCache,
    ) -> Result<Self> {
        let relations = || {
            let entries = base.source.plan.entries.iter();
            entries.filter(|entry| entry.kinds.contains(ObjectKind::Relation))
        };
        let bytes: u64 = relations().map(|entry| u64::from(entry.frame_len)).sum();
        let mut early = Self {
            ids: MemberIds::default(),
            kept: KeptMembers {
                batches: Vec::new(),
                memory: 0,
                limit: MEMBER_MEMORY.min(base.max_memory),
            },
        };
        if bytes > RELATION_BYTES || history.changed_ids(ObjectKind::Node).is_empty() {
            return Ok(early);
        }
        let mut wanted = WayIds::default();
        let scan = base.source.scan("members");
        scan.with_cache_to_fill(relations_read)
            .collect_member_ids(ObjectKind::Way, &mut wanted)?;
        for (_, object) in history.changes.iter() {
            if let ObjectBody::Relation { members } = object.body {
                let ways = members
                    .iter()
                    .filter(|member| member.kind == ObjectKind::Way);
                wanted.extend(ways.map(|way| way.id));
            }
        }
        early.ids.wanted = Some(wanted);
        Ok(early)
    }
}

impl KeptMembers {
    /// Returns the ways; `None` if none were kept or there were too many of them.
    pub(super) fn finish(self, ids: &MemberIds) -> Option<Vec<StoredWays>> {
        ids.kept_ways().map(|_| self.batches)
    }
}

/// Reads the ways with ids in `wanted`.
pub(super) fn read_member_ways(
    base: &Base<'_>,
    wanted: &IdSet,
    take: impl FnMut(SelectedWays) -> Result<()>,
) -> Result<()> {
    base.source.scan("member ways").try_run(
        |entry| wanted.may_meet_blob(entry, ObjectKind::Way),
        |entry, block| {
            let mut ways = StoredWays::of(entry, block);
            block.for_each_stored_way(|_, way| {
                let id = way.id()?;
                if wanted.contains(id) {
                    ways.push(id, way)?;
                }
                Ok(())
            })?;
            ways.select_in_blob(wanted, base.uses_stored_locations())
        },
        take,
    )
}
