//! Finds the objects that changes concern, and reads what their geometry needs.

use super::Base;
use super::blobs::{for_each_object, ids_of, may_have};
use super::geometry::{MemberWays, NodeState, Nodes};
use super::history::History;
use super::kept::{KeptObjects, KeptRows};
use super::relations::{ChangedMembers, find_relations};
use super::reshaped::Reshaped;
use super::ways::{EarlyMembers, Moves, find_ways, read_member_ways};
use crate::engine::scan::Scan;
use crate::error::{Error, Result};
use crate::index::IdSet;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobFlags, Object, ObjectBody, WayNodes, feature};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

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

impl<'c> Findings<'c> {
    /// Reads the base. The history must not know the state of the base yet.
    pub(super) fn of(
        base: &Base<'_>,
        history: History<'c>,
        max_members: Option<u64>,
    ) -> Result<Self> {
        let mut search = Search {
            base,
            history,
            kept: KeptObjects::new(base.scratch),
            nodes: IdSet::default(),
            ways: IdSet::default(),
            max_members: max_members.unwrap_or(u64::MAX),
        };
        let in_base = search.read_changed_nodes()?;
        let mut early = EarlyMembers::of(base, search.history.changes)?;
        let reshaped = search.read_ways(&in_base, &mut early)?;
        search.read_relations(&reshaped)?;
        search.add_members_of_changes();
        let member_ways = search.member_ways(early)?;
        let nodes = search.needed_nodes()?;
        search.kept.finish()?;
        Ok(Self {
            history: search.history,
            kept: search.kept,
            reshaped,
            nodes,
            member_ways,
            max_members: search.max_members,
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

/// The state of the search for concerned objects.
struct Search<'s, 'c> {
    base: &'s Base<'s>,
    history: History<'c>,
    kept: KeptObjects,
    /// The nodes whose state is needed.
    nodes: IdSet,
    /// The ways whose nodes are needed, because they are members of relations.
    ways: IdSet,
    /// The maximum number of members of a relation whose members are read.
    max_members: u64,
}

impl Search<'_, '_> {
    /// Reads the changed nodes of the base. Returns their states.
    fn read_changed_nodes(&mut self) -> Result<FxHashMap<i64, NodeState>> {
        let states = changed_nodes(self.base, &mut self.history, &mut self.kept)?;
        self.history.settle(ObjectKind::Node);
        Ok(states)
    }

    /// Reads all ways. Returns those that get another shape.
    fn read_ways(
        &mut self,
        in_base: &FxHashMap<i64, NodeState>,
        early: &mut EarlyMembers,
    ) -> Result<Reshaped> {
        let (mut status, mut reshaped) = (Vec::new(), Vec::new());
        let moves = Moves {
            history: &self.history,
            in_base,
        };
        find_ways(self.base, &moves, early, |found| {
            status.extend(found.status);
            reshaped.extend(found.reshaped);
            self.nodes.extend(found.nodes);
            self.kept.add(found.kept)
        })?;
        self.history.set_status(&status);
        self.history.settle(ObjectKind::Way);
        let moves = Moves {
            history: &self.history,
            in_base,
        };
        reshaped.extend(moves.of_changed_ways());
        Ok(Reshaped::new(reshaped))
    }

    /// Reads all relations.
    fn read_relations(&mut self, reshaped: &Reshaped) -> Result<()> {
        let mut status = Vec::new();
        let changed = ChangedMembers {
            history: &self.history,
            reshaped,
            max_members: self.max_members,
        };
        find_relations(self.base, &changed, |found| {
            status.extend(found.status);
            self.ways.extend(found.ways);
            self.nodes.extend(found.nodes);
            self.kept.add(found.kept)
        })?;
        self.history.set_status(&status);
        self.history.settle(ObjectKind::Relation);
        Ok(())
    }

    /// Adds the nodes and the member ways of the changes that have an effect.
    fn add_members_of_changes(&mut self) {
        let changes = self.history.changes;
        for (_, change) in self.history.effective(0..changes.changes().len()) {
            match changes.object(change).body {
                ObjectBody::Node { .. } => {}
                ObjectBody::Way { refs, .. } => self.nodes.extend(refs.iter().copied()),
                ObjectBody::Relation { members } if members.len() as u64 > self.max_members => {}
                ObjectBody::Relation { members } => {
                    let of = |kind| {
                        let of_kind = members.iter().filter(move |member| member.kind == kind);
                        of_kind.map(|member| member.id)
                    };
                    self.nodes.extend(of(ObjectKind::Node));
                    self.ways.extend(of(ObjectKind::Way));
                }
            }
        }
    }

    /// Returns the member ways. They are read unless all of them were kept before.
    fn member_ways(&mut self, early: EarlyMembers) -> Result<MemberWays> {
        let (base, wanted) = (self.base, &self.ways);
        let mut ways = MemberWays::new(base.max_memory, base.scratch);
        let mut add = |more| ways.add(more, wanted);
        match early.finish() {
            Some(kept) => kept.into_iter().try_for_each(add)?,
            None => read_member_ways(base, wanted, &mut add)?,
        }
        ways.for_each_unlocated(|node| {
            self.nodes.insert(node);
        })?;
        Ok(ways)
    }

    /// Reads the nodes whose state is needed.
    fn needed_nodes(&mut self) -> Result<Nodes> {
        let base = self.base;
        let mut nodes = Nodes::new(std::mem::take(&mut self.nodes));
        read_nodes(base, &mut nodes)?;
        let has_all_nodes = base.file.header.has(feature::ALL_NODES);
        if base.plan.any(BlobFlags::LOCATIONS) && !has_all_nodes {
            find_in_ways(base, &self.history, &mut nodes)?;
        }
        Ok(nodes)
    }
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
