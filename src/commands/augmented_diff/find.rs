//! Finds the objects that changes concern, and reads what their geometry needs.

use super::Base;
use super::geometry::{EncodedWays, MemberWays, NodeState, Nodes};
use super::history::{History, Status};
use super::kept::{KeptObjects, KeptRows};
use crate::engine::scan::Scan;
use crate::error::{Error, FormatError, Result};
use crate::formats::ChangeSet;
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, BlobFlags, Block, Element, Object, ObjectBody, WayNodes};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The objects that are written, and their geometry.
pub(super) struct Findings<'c> {
    pub history: History<'c>,
    /// The objects of the base with a change, the ways with a changed node, and the relations with a changed or reshaped
    /// member.
    pub kept: KeptObjects,
    pub reshaped: Reshaped,
    pub nodes: Nodes,
    pub member_ways: MemberWays,
    /// The maximum number of members of a relation whose members are read.
    max_members: u64,
    /// The first error of a thread that read from a temporary file.
    pub failed: Mutex<Option<Error>>,
}

/// The ways that get another shape without a change of their own, and the steps in which they do.
#[derive(Default)]
pub(super) struct Reshaped {
    ids: IdSet,
    /// Pairs of a way and a step, in order.
    steps: Vec<(i64, u32)>,
}

impl Reshaped {
    fn new(mut steps: Vec<(i64, u32)>) -> Self {
        steps.sort_unstable();
        steps.dedup();
        Self {
            ids: steps.iter().map(|(way, _)| *way).collect(),
            steps,
        }
    }

    /// Calls `take` with the steps in which a way gets another shape.
    pub(super) fn for_each_step(&self, way: i64, take: impl FnMut(u32)) {
        if self.ids.contains(way) {
            let start = self.steps.partition_point(|(id, _)| *id < way);
            let of_way = self.steps[start..].iter().take_while(|(id, _)| *id == way);
            of_way.map(|(_, step)| *step).for_each(take);
        }
    }
}

/// Ways of the base that changes concern.
#[derive(Default)]
struct FoundWays {
    status: Vec<(usize, Status)>,
    kept: KeptRows,
    /// Ways, and the steps in which they get another shape without a change of their own.
    reshaped: Vec<(i64, u32)>,
    /// The nodes of the ways.
    nodes: Vec<i64>,
    /// Ways that are members of relations.
    members: EncodedWays,
}

impl FoundWays {
    /// Adds a way of the base.
    fn add(&mut self, way: &Object<'_>, moves: &Moves<'_, '_>) {
        let ObjectBody::Way { refs, locations } = &way.body else {
            return;
        };
        let history = moves.history;
        let range = history.range(ObjectKind::Way, way.id);
        let status = range.map(|index| (index, history.status_in_base(index, &way.info)));
        let first = self.status.len();
        self.status.extend(status);
        let replaced = self.status[first..]
            .iter()
            .find(|(_, status)| *status == Status::Replaces);
        // The nodes of the way matter until a change replaces it.
        let end = replaced.map(|(index, _)| history.steps.of_change(*index));
        let mut is_concerned = end.is_some();
        for (at, id) in refs.iter().enumerate() {
            if history.changed(ObjectKind::Node).contains(*id) {
                is_concerned = true;
                let given = locations.get(at).copied().flatten();
                moves.for_each_move(*id, given, 0..end.unwrap_or(u32::MAX), |step| {
                    self.reshaped.push((way.id, step));
                });
            }
        }
        if is_concerned {
            self.nodes.extend_from_slice(refs);
        }
        // A way of which all changes are outdated is kept for the report.
        self.kept.push(way);
    }
}

/// The changed nodes, and their locations in the base.
struct Moves<'m, 'c> {
    history: &'m History<'c>,
    in_base: &'m FxHashMap<i64, NodeState>,
}

impl Moves<'_, '_> {
    /// Calls `take` with each of the given steps in which a node gets another location. `given` is its location in a
    /// way of the base.
    fn for_each_move(
        &self,
        node: i64,
        given: Option<Location>,
        steps: Range<u32>,
        mut take: impl FnMut(u32),
    ) {
        let in_base = || self.in_base.get(&node).and_then(|state| state.location);
        let mut location = given.or_else(in_base);
        self.history
            .for_each_step(ObjectKind::Node, node, |step, change| {
                let new = ChangeSet::location(change);
                if new != location && steps.contains(&step) {
                    take(step);
                }
                location = new;
            });
    }

    /// Returns the changed ways, each with the steps in which it gets another shape after its own change.
    fn of_changed_ways(&self) -> Vec<(i64, u32)> {
        let history = self.history;
        let mut reshaped = Vec::new();
        let ways = (ObjectKind::Way, 0)..=(ObjectKind::Way, u64::MAX);
        let ways = history.changes.range(*ways.start(), *ways.end());
        let mut versions = history.effective(ways).peekable();
        while let Some((step, way)) = versions.next() {
            let next = versions.peek().filter(|(_, next)| next.key == way.key);
            let steps = step + 1..next.map_or(u32::MAX, |(step, _)| *step);
            for node in history.changes.refs(way) {
                if history.changed(ObjectKind::Node).contains(*node) {
                    self.for_each_move(*node, None, steps.clone(), |step| {
                        reshaped.push((way.id, step));
                    });
                }
            }
        }
        reshaped
    }
}

/// Relations of the base that changes concern.
#[derive(Default)]
struct FoundRelations {
    status: Vec<(usize, Status)>,
    kept: KeptRows,
    ways: Vec<i64>,
    nodes: Vec<i64>,
}

impl<'c> Findings<'c> {
    /// Reads the base. The history must not know the state of the base yet.
    pub(super) fn of(
        base: &Base<'_>,
        mut history: History<'c>,
        max_members: Option<u64>,
    ) -> Result<Self> {
        let max_members = max_members.unwrap_or(u64::MAX);
        let mut kept = KeptObjects::new(base.scratch);
        let in_base = changed_nodes(base, &mut history, &mut kept)?;
        history.settle(ObjectKind::Node);
        let mut early = EarlyMembers::of(base, history.changes)?;
        let mut needed = IdSet::default();
        let (mut status, mut reshaped) = (Vec::new(), Vec::new());
        let moves = Moves {
            history: &history,
            in_base: &in_base,
        };
        find_ways(base, &moves, &mut early, |found| {
            status.extend(found.status);
            reshaped.extend(found.reshaped);
            needed.extend(found.nodes);
            kept.add(found.kept)
        })?;
        history.set_status(&status);
        history.settle(ObjectKind::Way);
        let moves = Moves {
            history: &history,
            in_base: &in_base,
        };
        reshaped.extend(moves.of_changed_ways());
        let reshaped = Reshaped::new(reshaped);
        let mut wanted = IdSet::default();
        status.clear();
        let changed = ChangedMembers {
            history: &history,
            reshaped: &reshaped,
            max_members,
        };
        find_relations(base, &changed, |found| {
            status.extend(found.status);
            wanted.extend(found.ways);
            needed.extend(found.nodes);
            kept.add(found.kept)
        })?;
        history.set_status(&status);
        history.settle(ObjectKind::Relation);
        add_members(&history, max_members, &mut needed, &mut wanted);
        kept.finish()?;
        let mut member_ways = MemberWays::new(base.max_memory, base.scratch);
        match early.finish() {
            Some(ways) => ways
                .into_iter()
                .try_for_each(|ways| member_ways.add(ways, &wanted))?,
            None => read_member_ways(base, &wanted, |ways| member_ways.add(ways, &wanted))?,
        }
        member_ways.for_each_unlocated(|node| {
            needed.insert(node);
        })?;
        let mut nodes = Nodes::new(needed);
        read_nodes(base, &mut nodes)?;
        if base.plan.any(BlobFlags::LOCATIONS) {
            find_in_ways(base, &history, &mut nodes)?;
        }
        Ok(Self {
            history,
            kept,
            reshaped,
            nodes,
            member_ways,
            max_members,
            failed: Mutex::default(),
        })
    }

    /// Whether the members of a relation were read. Always true for other objects.
    pub(super) fn has_members_of(&self, object: &Object<'_>) -> bool {
        match &object.body {
            ObjectBody::Relation { members } => members.len() as u64 <= self.max_members,
            ObjectBody::Node { .. } | ObjectBody::Way { .. } => true,
        }
    }
}

/// Adds the nodes and the member ways of the changes that have an effect.
fn add_members(history: &History<'_>, max_members: u64, nodes: &mut IdSet, ways: &mut IdSet) {
    let changes = history.changes;
    for (_, change) in history.effective(0..changes.changes().len()) {
        match changes.object(change).body {
            ObjectBody::Node { .. } => {}
            ObjectBody::Way { refs, .. } => nodes.extend(refs.iter().copied()),
            ObjectBody::Relation { members } if members.len() as u64 > max_members => {}
            ObjectBody::Relation { members } => {
                for member in &members {
                    match member.kind {
                        ObjectKind::Node => drop(nodes.insert(member.id)),
                        ObjectKind::Way => drop(ways.insert(member.id)),
                        ObjectKind::Relation => {}
                    }
                }
            }
        }
    }
}

/// Whether a blob may have an object of the given kind with an id in `ids`.
fn may_have(entry: &BlobEntry, kind: ObjectKind, ids: &IdSet) -> bool {
    entry.kinds.contains(kind)
        && !ids.is_empty()
        && (entry.kinds.single().is_none() || ids.may_meet(entry.min_id, entry.max_id))
}

/// Returns the ids of the objects of a kind that have a change.
fn ids_of(changes: &ChangeSet, kind: ObjectKind) -> IdSet {
    let of_kind = changes
        .changes()
        .iter()
        .filter(|change| change.kind() == kind);
    of_kind.map(|change| change.id).collect()
}

/// Reads and keeps the changed nodes of the base. Returns their states, and sets the status of their changes.
fn changed_nodes(
    base: &Base<'_>,
    history: &mut History<'_>,
    kept: &mut KeptObjects,
) -> Result<FxHashMap<i64, NodeState>> {
    let ids = ids_of(history.changes, ObjectKind::Node);
    let (mut states, mut status) = (FxHashMap::default(), Vec::new());
    Scan::bare("changed nodes", base.file, base.plan, base.ctx)
        .with_strings()
        .try_run(
            |entry| may_have(entry, ObjectKind::Node, &ids),
            |_, block| {
                let (mut found, mut rows) = (Vec::new(), KeptRows::default());
                for_each_object(block, ObjectKind::Node, &ids, |node| {
                    if let ObjectBody::Node { location } = &node.body {
                        let version = node.info.version.unwrap_or(0);
                        let location = location.filter(|location| location.is_on_earth());
                        let range = history.range(ObjectKind::Node, node.id);
                        let of = |index| history.status_in_base(index, &node.info);
                        let status: Vec<_> = range.map(|index| (index, of(index))).collect();
                        found.push((node.id, NodeState { version, location }, status));
                        rows.push(node);
                    }
                })?;
                Ok((found, rows))
            },
            |(found, rows)| {
                for (id, state, more) in found {
                    status.extend(more);
                    states.insert(id, state);
                }
                kept.add(rows)
            },
        )?;
    history.set_status(&status);
    Ok(states)
}

/// Calls `visit` with the objects of a block that have the given kind and an id in `ids`.
pub(super) fn for_each_object(
    block: &Block<'_>,
    kind: ObjectKind,
    ids: &IdSet,
    mut visit: impl FnMut(&Object<'_>),
) -> std::result::Result<(), FormatError> {
    let (mut cursor, mut object) = (block.cursor(), Object::default());
    while let Some(element) = cursor.next()? {
        let id = crate::osm::id_from_rank(element.key.1);
        if element.key.0 == kind && ids.contains(id) {
            object.fill(&element, block)?;
            visit(&object);
        }
    }
    Ok(())
}

fn find_ways(
    base: &Base<'_>,
    moves: &Moves<'_, '_>,
    early: &mut EarlyMembers,
    mut take: impl FnMut(FoundWays) -> Result<()>,
) -> Result<()> {
    let changed_nodes = moves.history.changed(ObjectKind::Node);
    let changed_ways = ids_of(moves.history.changes, ObjectKind::Way);
    let EarlyMembers {
        wanted: members,
        is_full,
        batches,
        memory,
        limit,
    } = early;
    let is_wanted_member = |id: i64| members.contains(id) && !is_full.load(Ordering::Relaxed);
    Scan::bare("ways", base.file, base.plan, base.ctx)
        .with_strings()
        .try_run(
            |entry| {
                entry.kinds.contains(ObjectKind::Way)
                    && (!changed_nodes.is_empty()
                        || may_have(entry, ObjectKind::Way, &changed_ways)
                        || may_have(entry, ObjectKind::Way, members))
            },
            |_, block| {
                let nodes = WayNodes::of(block)?;
                let mut wanted = IdSet::default();
                changed_nodes.for_each_present(&nodes.refs, |at| {
                    wanted.insert(nodes.way_id_of(at));
                });
                let direct = nodes.ways.iter().map(|(id, _)| *id);
                wanted.extend(direct.filter(|id| changed_ways.contains(*id)));
                let mut found = FoundWays::default();
                if !wanted.is_empty() {
                    for_each_object(block, ObjectKind::Way, &wanted, |way| found.add(way, moves))?;
                }
                let ids = block.way_ids()?;
                block.for_each_way_location(
                    |way| is_wanted_member(ids[way]),
                    |way, refs, locations| {
                        let locations = locations.unwrap_or_default();
                        found.members.push(ids[way], refs, locations);
                    },
                )?;
                found.members.shrink();
                Ok(found)
            },
            |mut found| {
                let ways = std::mem::take(&mut found.members);
                *memory += ways.memory();
                batches.push(ways);
                if memory > limit {
                    is_full.store(true, Ordering::Relaxed);
                    batches.clear();
                }
                take(found)
            },
        )
}

/// The size in bytes of the ways that are kept for relations while it is not known yet which relations are written.
const MEMBER_MEMORY: usize = 128 << 20;
/// The size in bytes of the blobs of relations up to which their member ways may fit into [`MEMBER_MEMORY`].
const RELATION_BYTES: u64 = 64 << 20;

/// The ways that are members of any relation, which are kept while all ways are read, so that ways are not read again
/// once it is known which relations are written. In large files, there are too many of them.
struct EarlyMembers {
    wanted: IdSet,
    /// Whether there are too many ways.
    is_full: AtomicBool,
    batches: Vec<EncodedWays>,
    memory: usize,
    /// The maximum of `memory`.
    limit: usize,
}

impl EarlyMembers {
    /// Finds the ways that are members of relations of the base or of changed ones, unless there are too many of them.
    fn of(base: &Base<'_>, changes: &ChangeSet) -> Result<Self> {
        let relations = || {
            let entries = base.plan.entries.iter();
            entries.filter(|entry| entry.kinds.contains(ObjectKind::Relation))
        };
        let bytes: u64 = relations().map(|entry| u64::from(entry.frame_len)).sum();
        let mut early = Self {
            wanted: IdSet::default(),
            is_full: AtomicBool::new(bytes > RELATION_BYTES),
            batches: Vec::new(),
            memory: 0,
            limit: MEMBER_MEMORY.min(base.max_memory),
        };
        if bytes > RELATION_BYTES {
            return Ok(early);
        }
        Scan::bare("members", base.file, base.plan, base.ctx).run(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |_, block| {
                let mut ways = Vec::new();
                block.for_each_member(|_, kind, id| {
                    if kind == ObjectKind::Way {
                        ways.push(id);
                    }
                })?;
                Ok(ways)
            },
            |ways| early.wanted.extend(ways),
        )?;
        for (_, object) in changes.iter() {
            if let ObjectBody::Relation { members } = object.body {
                let ways = members
                    .iter()
                    .filter(|member| member.kind == ObjectKind::Way);
                early.wanted.extend(ways.map(|way| way.id));
            }
        }
        Ok(early)
    }

    /// Returns the ways; `None` if there were too many of them.
    fn finish(self) -> Option<Vec<EncodedWays>> {
        (!self.is_full.into_inner()).then_some(self.batches)
    }
}

/// What makes a relation concerned.
struct ChangedMembers<'m, 'c> {
    history: &'m History<'c>,
    reshaped: &'m Reshaped,
    /// The maximum number of members of a relation whose members are read.
    max_members: u64,
}

impl ChangedMembers<'_, '_> {
    /// Whether a member has changed, or is a way with another shape.
    fn has(&self, kind: ObjectKind, id: i64) -> bool {
        let has_changed = || self.history.changed(kind).contains(id);
        match kind {
            ObjectKind::Node => has_changed(),
            ObjectKind::Way => has_changed() || self.reshaped.ids.contains(id),
            ObjectKind::Relation => false,
        }
    }
}

fn find_relations(
    base: &Base<'_>,
    changed: &ChangedMembers<'_, '_>,
    take: impl FnMut(FoundRelations) -> Result<()>,
) -> Result<()> {
    let history = changed.history;
    Scan::bare("relations", base.file, base.plan, base.ctx)
        .with_strings()
        .try_run(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |_, block| {
                let (mut found, mut ids) = (FoundRelations::default(), IdSet::default());
                block.try_for_each(|element| {
                    let Element::Relation(relation) = element else {
                        return Ok(());
                    };
                    let info = relation.info();
                    let range = history.range(ObjectKind::Relation, relation.id());
                    let of = |index| history.status_in_base(index, &info);
                    let status = range.map(|index| (index, of(index)));
                    let first = found.status.len();
                    found.status.extend(status);
                    let mut own = found.status[first..].iter();
                    let is_concerned = own.any(|(_, status)| *status == Status::Replaces)
                        || relation
                            .members()
                            .any(|member| changed.has(member.kind, member.id));
                    if is_concerned || found.status.len() > first {
                        ids.insert(relation.id());
                    }
                    if is_concerned {
                        if relation.members().count() as u64 > changed.max_members {
                            return Ok(());
                        }
                        for member in relation.members() {
                            match member.kind {
                                ObjectKind::Node => found.nodes.push(member.id),
                                ObjectKind::Way => found.ways.push(member.id),
                                ObjectKind::Relation => {}
                            }
                        }
                    }
                    Ok(())
                })?;
                if !ids.is_empty() {
                    let mut keep = |relation: &Object<'_>| found.kept.push(relation);
                    for_each_object(block, ObjectKind::Relation, &ids, &mut keep)?;
                }
                Ok(found)
            },
            take,
        )
}

/// Reads the ways with ids in `wanted`.
fn read_member_ways(
    base: &Base<'_>,
    wanted: &IdSet,
    take: impl FnMut(EncodedWays) -> Result<()>,
) -> Result<()> {
    Scan::bare("member ways", base.file, base.plan, base.ctx).try_run(
        |entry| may_have(entry, ObjectKind::Way, wanted),
        |_, block| {
            let (ids, mut ways) = (block.way_ids()?, EncodedWays::default());
            block.for_each_way_location(
                |way| wanted.contains(ids[way]),
                |way, refs, locations| ways.push(ids[way], refs, locations.unwrap_or_default()),
            )?;
            ways.shrink();
            Ok(ways)
        },
        take,
    )
}

/// Reads the needed nodes of the base.
fn read_nodes(base: &Base<'_>, nodes: &mut Nodes) -> Result<()> {
    let needed = nodes.needed().clone();
    Scan::bare("nodes", base.file, base.plan, base.ctx).run(
        |entry| may_have(entry, ObjectKind::Node, &needed),
        |_, block| {
            let (mut found, mut walk) = (Vec::new(), block.walk());
            while let Some(kind) = walk.next()? {
                let id = walk.id()?;
                if kind == ObjectKind::Node && needed.contains(id) {
                    let version = walk.version_info()?.version_number();
                    found.push((id, version.unwrap_or(0), None));
                }
            }
            let mut at = 0;
            block.for_each_node(|id, location, _| {
                if needed.contains(id) {
                    let slot: &mut (i64, u32, Option<Location>) = &mut found[at];
                    slot.2 = location.filter(|location| location.is_on_earth());
                    at += 1;
                }
            })?;
            Ok(found)
        },
        |found| {
            for (id, version, location) in found {
                nodes.set(id, NodeState { version, location });
            }
        },
    )
}

/// Reads the locations of needed nodes that the base does not have from its ways.
fn find_in_ways(base: &Base<'_>, history: &History<'_>, nodes: &mut Nodes) -> Result<()> {
    let missing = nodes.missing(history);
    if missing.is_empty() {
        return Ok(());
    }
    Scan::bare("nodes in ways", base.file, base.plan, base.ctx).run(
        |entry| entry.kinds.contains(ObjectKind::Way),
        |_, block| {
            let refs = WayNodes::of(block)?;
            let mut ways = Vec::new();
            missing.for_each_present(&refs.refs, |at| ways.push(refs.way_index_of(at)));
            let mut found = Vec::new();
            if ways.is_empty() {
                return Ok(found);
            }
            let is_wanted = |way: usize| ways.binary_search(&way).is_ok();
            block.for_each_way_location(is_wanted, |_, refs, locations| {
                for (id, location) in refs.iter().zip(locations.into_iter().flatten()) {
                    if missing.contains(*id) && location.is_some() {
                        found.push((*id, *location));
                    }
                }
            })?;
            Ok(found)
        },
        |found| {
            for (id, location) in found {
                let version = 0;
                nodes.set(id, NodeState { version, location });
            }
        },
    )
}
