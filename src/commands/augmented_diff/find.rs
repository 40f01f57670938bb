//! Finds the objects that changes concern, and reads what their geometry needs.

use super::Base;
use super::geometry::{MemberWays, NodeState, Nodes, encode_way, index_of};
use crate::engine::scan::Scan;
use crate::error::{FormatError, Result};
use crate::formats::{Change, ChangeSet};
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, Block, Element, Info, Object, ObjectBody, WayNodes};
use rustc_hash::FxHashMap;

/// The state of the base for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// The base does not have the object.
    Absent,
    /// The base has a newer version of the object.
    Outdated,
    /// The change replaces the object of the base.
    Replaces,
}

impl Status {
    /// Whether a change with this status has an effect.
    pub(super) fn has_effect(self, change: &Change) -> bool {
        match self {
            Self::Absent => !change.is_deletion(),
            Self::Outdated => false,
            Self::Replaces => true,
        }
    }

    fn of(change: &Change, info: &Info<'_>) -> Self {
        if change.replaces(info.version, info.timestamp) {
            Self::Replaces
        } else {
            Self::Outdated
        }
    }
}

/// The objects that are written, and their geometry.
pub(super) struct Findings<'c> {
    /// For each change, the state of the base.
    pub status: Vec<Status>,
    /// The ways and relations of the base that are written.
    pub ways: IdSet,
    pub relations: IdSet,
    pub nodes: Nodes<'c>,
    pub member_ways: MemberWays,
}

/// Ways of the base that changes concern.
#[derive(Default)]
struct FoundWays {
    status: Vec<(usize, Status)>,
    ids: Vec<i64>,
    /// Ways without a change of their own that get another shape.
    reshaped: Vec<i64>,
    /// The nodes of the ways.
    nodes: Vec<i64>,
}

impl FoundWays {
    /// Adds a way of the base. `is_moved` returns whether a node gets another location than the one in the way.
    fn add(
        &mut self,
        way: &Object<'_>,
        changes: &ChangeSet,
        changed_nodes: &IdSet,
        is_moved: impl Fn(i64, Option<Location>) -> bool,
    ) {
        let ObjectBody::Way { refs, locations } = &way.body else {
            return;
        };
        let index = index_of(changes, ObjectKind::Way, way.id);
        let status = index.map(|index| Status::of(&changes.changes()[index], &way.info));
        self.status.extend(index.zip(status));
        let is_direct = status == Some(Status::Replaces);
        let (mut is_concerned, mut is_reshaped) = (is_direct, false);
        for (at, id) in refs.iter().enumerate() {
            if changed_nodes.contains(*id) {
                is_concerned = true;
                is_reshaped |= is_moved(*id, locations.get(at).copied().flatten());
            }
        }
        if is_concerned {
            self.ids.push(way.id);
            self.nodes.extend_from_slice(refs);
        }
        if is_reshaped && !is_direct {
            self.reshaped.push(way.id);
        }
    }
}

/// Relations of the base that changes concern.
#[derive(Default)]
struct FoundRelations {
    status: Vec<(usize, Status)>,
    ids: Vec<i64>,
    ways: Vec<i64>,
    nodes: Vec<i64>,
}

impl<'c> Findings<'c> {
    pub(super) fn of(base: &Base<'c>) -> Result<Self> {
        let changes = base.changes;
        let mut status = vec![Status::Absent; changes.changes().len()];
        let old_nodes = changed_nodes(base, &mut status)?;
        let changed = effective(changes, &status, ObjectKind::Node);
        let (mut needed, mut ways, mut reshaped) =
            (IdSet::default(), IdSet::default(), IdSet::default());
        find_ways(base, &changed, &old_nodes, |found| {
            found
                .status
                .into_iter()
                .for_each(|(index, one)| status[index] = one);
            ways.extend(found.ids);
            reshaped.extend(found.reshaped);
            needed.extend(found.nodes);
        })?;
        let changed_ways = effective(changes, &status, ObjectKind::Way);
        let (mut relations, mut wanted) = (IdSet::default(), IdSet::default());
        let members = ChangedMembers {
            nodes: &changed,
            ways: &changed_ways,
            reshaped: &reshaped,
        };
        find_relations(base, &members, |found| {
            found
                .status
                .into_iter()
                .for_each(|(index, one)| status[index] = one);
            relations.extend(found.ids);
            wanted.extend(found.ways);
            needed.extend(found.nodes);
        })?;
        add_members(changes, &status, &mut needed, &mut wanted);
        let mut member_ways = MemberWays::default();
        read_member_ways(base, &wanted, |ways, nodes| {
            member_ways.extend(ways);
            needed.extend(nodes);
        })?;
        let mut nodes = Nodes::new(changes, changed, needed);
        read_nodes(base, &mut nodes)?;
        Ok(Self {
            status,
            ways,
            relations,
            nodes,
            member_ways,
        })
    }
}

/// Adds the nodes and the member ways of the changes that have an effect.
fn add_members(changes: &ChangeSet, status: &[Status], nodes: &mut IdSet, ways: &mut IdSet) {
    let all = changes.changes().iter().zip(status);
    for (change, _) in all.filter(|(change, status)| status.has_effect(change)) {
        match changes.object(change).body {
            ObjectBody::Node { .. } => {}
            ObjectBody::Way { refs, .. } => nodes.extend(refs.iter().copied()),
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

/// Returns the objects of a kind with a change that has an effect.
fn effective(changes: &ChangeSet, status: &[Status], kind: ObjectKind) -> IdSet {
    let all = changes.changes().iter().zip(status);
    all.filter(|(change, status)| change.kind() == kind && status.has_effect(change))
        .map(|(change, _)| change.id)
        .collect()
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

/// Reads the changed nodes of the base. Returns their states, and sets the status of their changes.
fn changed_nodes(base: &Base<'_>, status: &mut [Status]) -> Result<FxHashMap<i64, NodeState>> {
    let ids = ids_of(base.changes, ObjectKind::Node);
    let mut states = FxHashMap::default();
    Scan::bare("changed nodes", base.file, base.plan, base.ctx)
        .with_strings()
        .run(
            |entry| may_have(entry, ObjectKind::Node, &ids),
            |_, block| {
                let mut found = Vec::new();
                for_each_object(block, ObjectKind::Node, &ids, |node| {
                    if let (ObjectBody::Node { location }, Some(index)) = (
                        &node.body,
                        index_of(base.changes, ObjectKind::Node, node.id),
                    ) {
                        let status = Status::of(&base.changes.changes()[index], &node.info);
                        let version = node.info.version.unwrap_or(0);
                        let location = location.filter(|location| location.is_on_earth());
                        found.push((node.id, index, status, NodeState { version, location }));
                    }
                })?;
                Ok(found)
            },
            |found| {
                for (id, index, one, state) in found {
                    status[index] = one;
                    states.insert(id, state);
                }
            },
        )?;
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
    changed_nodes: &IdSet,
    old_nodes: &FxHashMap<i64, NodeState>,
    take: impl FnMut(FoundWays),
) -> Result<()> {
    let changes = base.changes;
    let changed_ways = ids_of(changes, ObjectKind::Way);
    let is_moved = |id: i64, given: Option<Location>| {
        let old = given.or_else(|| old_nodes.get(&id).and_then(|state| state.location));
        let change = super::geometry::change_of(changes, ObjectKind::Node, id);
        change.is_some_and(|change| ChangeSet::location(change) != old)
    };
    Scan::bare("ways", base.file, base.plan, base.ctx)
        .with_strings()
        .run(
            |entry| {
                entry.kinds.contains(ObjectKind::Way)
                    && (!changed_nodes.is_empty()
                        || may_have(entry, ObjectKind::Way, &changed_ways))
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
                if wanted.is_empty() {
                    return Ok(found);
                }
                for_each_object(block, ObjectKind::Way, &wanted, |way| {
                    found.add(way, changes, changed_nodes, is_moved);
                })?;
                Ok(found)
            },
            take,
        )
}

/// The members that make a relation concerned.
struct ChangedMembers<'m> {
    nodes: &'m IdSet,
    ways: &'m IdSet,
    reshaped: &'m IdSet,
}

fn find_relations(
    base: &Base<'_>,
    changed: &ChangedMembers<'_>,
    take: impl FnMut(FoundRelations),
) -> Result<()> {
    let changes = base.changes;
    Scan::bare("relations", base.file, base.plan, base.ctx)
        .with_strings()
        .run(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |_, block| {
                let mut found = FoundRelations::default();
                block.try_for_each(|element| {
                    let Element::Relation(relation) = element else {
                        return Ok(());
                    };
                    let index = index_of(changes, ObjectKind::Relation, relation.id());
                    let info = relation.info();
                    let status = index.map(|index| Status::of(&changes.changes()[index], &info));
                    found.status.extend(index.zip(status));
                    let is_concerned = status == Some(Status::Replaces)
                        || relation.members().any(|member| match member.kind {
                            ObjectKind::Node => changed.nodes.contains(member.id),
                            ObjectKind::Way => {
                                changed.ways.contains(member.id)
                                    || changed.reshaped.contains(member.id)
                            }
                            ObjectKind::Relation => false,
                        });
                    if is_concerned {
                        found.ids.push(relation.id());
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
                Ok(found)
            },
            take,
        )
}

/// Reads the ways with ids in `wanted`. Calls `take` with encoded ways, and with the ids of their nodes that have no
/// location in the way.
fn read_member_ways(
    base: &Base<'_>,
    wanted: &IdSet,
    mut take: impl FnMut(Vec<(i64, Box<[u8]>)>, Vec<i64>),
) -> Result<()> {
    Scan::bare("member ways", base.file, base.plan, base.ctx).run(
        |entry| may_have(entry, ObjectKind::Way, wanted),
        |_, block| {
            let ids = block.way_ids()?;
            let is_wanted = |way: usize| wanted.contains(ids[way]);
            let (mut ways, mut unknown) = (Vec::new(), Vec::new());
            block.for_each_way_location(is_wanted, |way, refs, locations| {
                let locations = locations.unwrap_or_default();
                ways.push((ids[way], encode_way(refs, locations)));
                let is_unknown = |at: &usize| locations.get(*at).copied().flatten().is_none();
                unknown.extend((0..refs.len()).filter(is_unknown).map(|at| refs[at]));
            })?;
            Ok((ways, unknown))
        },
        |(ways, unknown)| take(ways, unknown),
    )
}

/// Reads the needed nodes of the base.
fn read_nodes(base: &Base<'_>, nodes: &mut Nodes<'_>) -> Result<()> {
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
