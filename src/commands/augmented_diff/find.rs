//! Finds the objects that changes concern, and reads the nodes and ways that the geometries of these objects need.

use super::Base;
use super::blobs::ids_of_changed_objects;
use super::geometry::{MemberWays, NeededNodes, NodeState, Nodes, SelectedWays, StoredWays};
use super::history::{History, Steps};
use super::kept::KeptObjects;
use super::nodes::ChangedNodes;
use super::relations::{ChangedMembers, find_relations};
use super::reshaped::Reshaped;
use super::route_graph::RouteGraph;
use super::routes::{NeededRoutes, Routes};
use super::ways::{
    EarlyMembers, MemberIds, Moves, WayFinder, WayTally, find_ways, read_member_ways,
};
use crate::engine::block_observer::{BlockObserver, CandidateRefs};
use crate::engine::payload_cache::PayloadCache;
use crate::engine::way_search::WaySearch;
use crate::error::{Advice, Error, FormatResult, Result};
use crate::formats::ChangeSet;
use crate::formats::row_limit::RowLimit;
use crate::index::{IdSet, SortedIds};
use crate::osm::{Location, ObjectKind};
use crate::pbf::{BlobEntry, Block, Object, ObjectBody};
use crate::runtime::{Pass, into_mutex_value, lock};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The maximum memory in bytes for a cache of the payloads of relation blobs, which are read more than once.
const RELATION_MEMORY: u64 = 96 << 20;

/// The objects that are written, and their geometry.
pub(super) struct Findings<'c> {
    pub history: History<'c>,
    /// The objects of the base that have a change, the ways with a changed node, and the relations with a changed or
    /// reshaped member.
    pub kept: KeptObjects,
    pub reshaped: Reshaped,
    pub nodes: Nodes,
    pub member_ways: MemberWays,
    /// The relations that are nested in written routes; empty if routes are not followed.
    pub routes: Routes,
    /// The members of a relation are read only if there are at most this many.
    max_members: u64,
    /// The maximum size of a row of a table.
    pub row_limit: RowLimit,
    /// The first error of a thread that read from a temporary file.
    pub failed: Mutex<Option<Error>>,
}

/// A relation is written with the geometry of its members only if these members have at most this many nodes together.
/// A member that occurs several times counts each time.
const MAX_MEMBER_NODES: usize = 1_000_000;

impl Findings<'_> {
    /// Returns whether a relation, in its state at `moment`, is written with the geometry of its members. The module
    /// `history` defines moments.
    pub(super) fn member_geometry(&self, object: &Object<'_>, moment: u32) -> MemberGeometry {
        let ObjectBody::Relation { members } = &object.body else {
            return MemberGeometry::Known;
        };
        if members.len() as u64 > self.max_members {
            return MemberGeometry::Unread;
        }
        let mut count = 0;
        for member in members {
            count += match member.kind {
                ObjectKind::Way => self.node_count(member.id, moment),
                ObjectKind::Node | ObjectKind::Relation => 1,
            };
            if count > MAX_MEMBER_NODES {
                return MemberGeometry::TooLarge;
            }
        }
        MemberGeometry::Known
    }

    /// Returns the number of nodes of a member way at `moment`.
    fn node_count(&self, way: i64, moment: u32) -> usize {
        match self.history.last_change(ObjectKind::Way, way, moment) {
            Some(change) => match self.history.changes.object(change).body {
                ObjectBody::Way { refs, .. } => refs.len(),
                ObjectBody::Node { .. } | ObjectBody::Relation { .. } => 0,
            },
            None => self.member_ways.node_count(way),
        }
    }
}

/// Whether the geometry of the members of an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberGeometry {
    /// The geometry is written, or the object is not a relation.
    Known,
    /// The relation has more members than the limit, so its members were not read.
    Unread,
    /// The members have more than [`MAX_MEMBER_NODES`] nodes.
    TooLarge,
}

/// The geometries that are needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct GeometryNeeds {
    /// The members of a relation are read only if there are at most this many.
    pub max_members: u64,
    /// Whether the lines of routes include the lines of nested routes. If so, the changes must be treated as one step.
    pub follows_routes: bool,
}

/// The search for objects that changes concern. The changed nodes have been read, but not yet all ways.
pub(super) struct Search<'s, 'c> {
    base: Base<'s>,
    history: History<'c>,
    /// The states of the changed nodes in the base.
    in_base: FxHashMap<i64, NodeState>,
    /// The ways with a change.
    changed_ways: IdSet,
    member_ids: MemberIds,
    /// The payloads of the relation blobs that were read to find `member_ids`.
    relations: PayloadCache,
    ways: Mutex<WayTally>,
    geometry: GeometryNeeds,
    scratch: PathBuf,
}

impl<'s, 'c> Search<'s, 'c> {
    /// Begins a search. Reads those changed nodes of the base that `nodes` has not seen yet. Finds the member ways of
    /// relations with [`EarlyMembers::of`]. Temporary files will be in the directory `scratch`.
    pub(super) fn begin(
        base: Base<'s>,
        (changes, steps): (&'c ChangeSet, Steps),
        nodes: ChangedNodes,
        geometry: GeometryNeeds,
        scratch: &Path,
    ) -> Result<Self> {
        let mut history = History::new(changes, steps, base.replaces, base.may_lack_nodes());
        let nodes = nodes.finish(&base, changes)?;
        history.set_status(&nodes.status);
        history.decide_effects(ObjectKind::Node);
        let relations = relation_cache(&base);
        let early = EarlyMembers::of(&base, &history, &relations)?;
        let tally = WayTally::new(&base, nodes.kept, early.kept);
        Ok(Self {
            base,
            in_base: nodes.states,
            changed_ways: ids_of_changed_objects(history.changes, ObjectKind::Way),
            history,
            member_ids: early.ids,
            relations,
            ways: Mutex::new(tally),
            geometry,
            scratch: scratch.to_owned(),
        })
    }

    fn finder(&self) -> WayFinder<'_, 'c> {
        WayFinder {
            moves: Moves {
                history: &self.history,
                in_base: &self.in_base,
                takes_stored: self.base.uses_stored_locations(),
            },
            changed: &self.changed_ways,
            members: &self.member_ids,
        }
    }

    /// Reads the remaining ways, the relations, and the nodes and member ways that geometries need.
    pub(super) fn finish(self) -> Result<Findings<'c>> {
        find_ways(&self.base, &self.finder(), &mut lock(&self.ways))?;
        let ways = into_mutex_value(self.ways);
        let mut history = self.history;
        history.set_status(&ways.status);
        history.decide_effects(ObjectKind::Way);
        let mut in_base = self.in_base;
        for (id, place) in &ways.places {
            let location = Some(*place);
            let version = 0;
            in_base
                .entry(*id)
                .or_insert(NodeState { version, location });
        }
        let moves = Moves {
            history: &history,
            in_base: &in_base,
            takes_stored: self.base.uses_stored_locations(),
        };
        let mut reshaped = ways.reshaped;
        reshaped.extend(moves.reshaping_steps_of_ways());
        let reshaped = Reshaped::new(reshaped);
        let mut needs = Needs {
            base: &self.base,
            history,
            kept: ways.kept,
            nodes: ways.nodes,
            places: ways.places,
            ways: IdSet::default(),
            geometry: self.geometry,
            scratch: &self.scratch,
        };
        needs.kept.set_in_order(true);
        let routes = needs.read_relations(&self.relations, &reshaped)?;
        needs.add_members_of_changes();
        let member_ways = needs.collect_member_ways(ways.members.finish(&self.member_ids))?;
        let nodes = needs.read_needed_nodes()?;
        needs.kept.finish()?;
        Ok(Findings {
            history: needs.history,
            kept: needs.kept,
            reshaped,
            nodes,
            member_ways,
            routes,
            max_members: needs.geometry.max_members,
            row_limit: RowLimit::of(Some(self.base.max_memory as u64)),
            failed: Mutex::default(),
        })
    }
}

/// Finds ways in blobs that another command has decoded.
impl BlockObserver for Search<'_, '_> {
    fn observe(
        &self,
        _: &ChangeSet,
        entry: &BlobEntry,
        block: &Block<'_>,
        refs: Option<CandidateRefs<'_>>,
    ) -> FormatResult<()> {
        if !block.has(ObjectKind::Way) {
            return Ok(());
        }
        let finder = self.finder();
        let found = match refs {
            Some(refs) => finder.find_by_refs(entry, block, refs)?,
            None => finder.find_in_block(entry, block)?,
        };
        lock(&self.ways).add_or_keep_error(entry, found, &self.member_ids);
        Ok(())
    }
}

/// The search for relations, and for the nodes and ways that the geometries of the found objects need.
struct Needs<'s, 'c> {
    base: &'s Base<'s>,
    history: History<'c>,
    kept: KeptObjects,
    nodes: NeededNodes,
    /// The locations of changed nodes that the base has only in ways, not as objects.
    places: FxHashMap<i64, Location>,
    /// The needed ways, which are members of relations. Their nodes are needed, too.
    ways: IdSet,
    geometry: GeometryNeeds,
    /// The directory for temporary files.
    scratch: &'s Path,
}

impl Needs<'_, '_> {
    /// Reads all relations. Blobs that are not in the cache `read` are read from the base. Returns the relations that
    /// are nested in routes.
    fn read_relations(&mut self, read: &PayloadCache, reshaped: &Reshaped) -> Result<Routes> {
        let (mut status, mut nested) = (Vec::new(), Vec::new());
        let changed = ChangedMembers::new(&self.history, reshaped, self.geometry.max_members);
        let again = relation_cache(self.base);
        let graph = if self.geometry.follows_routes {
            Some(RouteGraph::of(self.base, (read, &again), &changed)?)
        } else {
            None
        };
        let (read, needed) = match &graph {
            Some(graph) => (&again, graph.needed_routes(&changed.relations)),
            None => (read, NeededRoutes::default()),
        };
        find_relations(self.base, read, &changed, &needed, |found| {
            status.extend(found.status);
            nested.extend(found.nested);
            self.ways.extend(found.ways.finish());
            let nodes = found.nodes.finish();
            self.nodes.add_unlocated(nodes.iter().copied());
            self.kept.add(found.kept)
        })?;
        self.history.set_status(&status);
        self.history.decide_effects(ObjectKind::Relation);
        let Some(graph) = graph else {
            return Ok(Routes::default());
        };
        let affected = graph.affected_relations(self.history.changed_ids(ObjectKind::Relation));
        let routes = Routes::new(affected, &needed.nested, nested, &self.history);
        self.ways.extend(routes.way_ids());
        Ok(routes)
    }

    /// Marks the nodes and the member ways of effective changes as needed.
    fn add_members_of_changes(&mut self) {
        let (changes, max_members) = (self.history.changes, self.geometry.max_members);
        for (_, change) in self.history.effective_changes(0..changes.changes().len()) {
            match changes.object(change).body {
                ObjectBody::Node { .. } => {}
                ObjectBody::Way { refs, .. } => self.nodes.add_unlocated(refs.iter().copied()),
                ObjectBody::Relation { members } if members.len() as u64 > max_members => {}
                ObjectBody::Relation { members } => {
                    let of = |kind| {
                        let of_kind = members.iter().filter(move |member| member.kind == kind);
                        of_kind.map(|member| member.id)
                    };
                    self.nodes.add_unlocated(of(ObjectKind::Node));
                    self.ways.extend(of(ObjectKind::Way));
                }
            }
        }
    }

    /// Returns the member ways. Selects them from `kept`, or reads them from the base if `kept` is `None`.
    fn collect_member_ways(&mut self, kept: Option<Vec<StoredWays>>) -> Result<MemberWays> {
        let (base, wanted) = (self.base, &self.ways);
        let mut ways = MemberWays::new(base.max_memory, self.scratch);
        let add = |selected: SelectedWays| {
            self.nodes.add_unlocated_batch(&selected.unlocated);
            ways.add(selected)
        };
        match kept {
            Some(kept) => {
                let (input, takes_stored) = (&base.source.file.input, base.uses_stored_locations());
                let select =
                    |(): &mut (), kept: StoredWays| kept.select(input, wanted, takes_stored);
                Pass::new("member ways", base.source.ctx).run(kept, || (), select, add)?;
            }
            None => read_member_ways(base, wanted, add)?,
        }
        Ok(ways)
    }

    /// Reads the nodes whose state is needed.
    fn read_needed_nodes(&mut self) -> Result<Nodes> {
        let base = self.base;
        let needed = std::mem::take(&mut self.nodes);
        let all = needed.all().clone();
        check_node_count(base, self.history.changes, all.len())?;
        let mut nodes = Nodes::new(needed);
        read_nodes(base, &all, &mut nodes)?;
        for (id, place) in &self.places {
            nodes.set_location_in_ways(*id, *place);
        }
        if base.may_lack_nodes() {
            find_locations_in_ways(base, &self.history, &mut nodes)?;
        }
        Ok(nodes)
    }
}

/// The states of nodes are in proportion to the size of the files if they take at most `NODE_MEMORY_PER_BYTE` bytes for
/// each byte of the base, and `NODE_MEMORY_OF_CHANGES` bytes for each byte of the changes in memory. Real files need at
/// most an eighth of this maximum.
const NODE_MEMORY_PER_BYTE: u64 = 64;
const NODE_MEMORY_OF_CHANGES: u64 = 4;

/// Fails if the states of `count` nodes take more than a quarter of the allowed memory, and are also out of proportion
/// to the size of the files. A few bytes of a file can refer to a million nodes that the file does not have.
fn check_node_count(base: &Base<'_>, changes: &ChangeSet, count: u64) -> Result<()> {
    let of_base = NODE_MEMORY_PER_BYTE.saturating_mul(base.source.file.input.user_file_len());
    let in_proportion = of_base + NODE_MEMORY_OF_CHANGES * changes.memory() as u64;
    let allowed = base.max_memory as u64;
    if Nodes::memory_of(count) <= in_proportion.max(allowed / 4) {
        return Ok(());
    }
    let cause = format!(
        "what the changes concern has {count} nodes, which take more memory than is allowed"
    );
    Err(Error::file(base.source.file.input.path(), cause).advise(Advice::AllowMemory(allowed)))
}

/// Creates a cache for the blobs of relations, which are needed more than once.
fn relation_cache(base: &Base<'_>) -> PayloadCache {
    PayloadCache::new(RELATION_MEMORY.min(base.max_memory as u64 / 4))
}

/// Reads the needed nodes of the base.
fn read_nodes(base: &Base<'_>, needed: &IdSet, nodes: &mut Nodes) -> Result<()> {
    let unlocated = nodes.unlocated().clone();
    let sorted: SortedIds = needed.ids().collect();
    base.source.scan("nodes").run_on_node_versions(
        |entry| needed.may_meet_blob(entry, ObjectKind::Node),
        |entry| unlocated.may_meet_blob(entry, ObjectKind::Node),
        |nodes| {
            let mut found = Vec::new();
            nodes.for_each_selected_version(
                |ids, selected| sorted.for_each_present(ids, |at| selected.push(at)),
                |id| unlocated.contains(id),
                |id, location, version| {
                    let location = location.filter(|location| location.is_on_earth());
                    found.push((id, version.unwrap_or(0), location));
                },
            )?;
            Ok(found)
        },
        |found| {
            for (id, version, location) in found {
                nodes.set(id, NodeState { version, location });
            }
        },
    )
}

/// Finds the locations of needed nodes that the base has only in ways, not as objects.
fn find_locations_in_ways(base: &Base<'_>, history: &History<'_>, nodes: &mut Nodes) -> Result<()> {
    let missing = nodes.missing_nodes(history);
    if missing.is_empty() {
        return Ok(());
    }
    let search = WaySearch {
        wanted: &missing,
        moved: &FxHashMap::default(),
        leaving: &IdSet::default(),
        changes: history.changes,
        finds_released: false,
    };
    let stored = search.run(base.source)?.stored;
    for (id, location) in stored.iter() {
        let (version, location) = (0, Some(location));
        nodes.set(id, NodeState { version, location });
    }
    Ok(())
}
