//! Finds the objects that each of many regions keeps.

mod located;
mod outside;
mod relations;
mod ways;

use super::strategy::Strategy;
use crate::engine::filter::{BlobDecision, FilterItem};
use crate::engine::location_form::LocationForm;
use crate::engine::partial_blob_cache::PartialBlobCache;
use crate::engine::{GroupId, Selection};
use crate::error::{FormatResult, Result};
use crate::file::PlannedFile;
use crate::geometry::AreaIndex;
use crate::index::{EMPTY_SET, IdMap, IdSet, SetAlgebra, SetNumber, SetTable};
use crate::osm::ObjectKind;
use crate::pbf::{BlobEntry, BlobFlags, Block, EditScript, feature};
pub(super) use located::Sample;
pub(in crate::commands) use located::{RegionLookup, usable_location_form};
use outside::OutsideObjects;
pub(in crate::commands) use relations::{CompletedTypes, regions_with_percent};
use rustc_hash::FxHashMap;

/// Ids of objects, each with the set of regions that keep the object.
type IdsWithRegions = Vec<(i64, SetNumber)>;

/// For each object of a file, the set of regions that keep the object.
pub(super) struct RegionMembers<'a> {
    areas: &'a AreaIndex,
    /// The sets of regions that [`SetNumber`]s stand for.
    sets: SetTable,
    /// Whether the index proves that each object occurs only once in the file, and not in several versions.
    each_once: bool,
    /// The blobs whose bounding box may meet a region, by their offset in the file. The value lists the regions that
    /// contain the box as a whole. It is `None` if a region may contain only a part of the box.
    near: FxHashMap<u64, Option<Vec<u32>>>,
    /// The locations and boxes of kept objects outside of the regions; `None` unless the file has a spatial layout.
    outside: Option<OutsideObjects>,
    /// The location form of the file. If the file may lack nodes, a way also lies in a region if it stores a location
    /// in the region for a missing node.
    form: LocationForm,
    /// Whether the bounding box of a blob that was never scanned is assumed to cover all nodes of the blob. This is not
    /// assumed in history files, because deleted nodes lie in no box.
    boxes_cover_all_nodes: bool,
    /// Nodes in the regions; after `merge_added_ids`, all nodes that are kept. In a file of the form
    /// [`LocationForm::Mixed`], a node that is not in the file is included if a way stores a location in a region for
    /// it.
    nodes: IdMap,
    /// Nodes that a region keeps although they lie outside of it: nodes of kept ways, and members of completed
    /// relations.
    added_nodes: IdMap,
    /// Ways with a node in a region; after `merge_added_ids`, all ways that are kept. If a node is not in the file, the
    /// location that the way stores for it decides.
    ways: IdMap,
    /// Ways that regions keep only as members of completed relations.
    added_ways: IdMap,
    relations: IdMap,
    /// The relations that have no kept node or way, and are kept only as parents of other kept relations.
    parents: IdSet,
    /// The memory budget of the ids.
    room: MemoryBudget,
    /// The cache of the kept parts of blobs. As far as memory allows, parts are cached from the phase that finds them
    /// until they are written.
    held: PartialBlobCache,
}

/// The maximum memory of a selection, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The limit for the cache of partial blobs.
    pub held: u64,
    /// The limit for the ids of kept objects.
    pub ids: u64,
}

impl<'a> RegionMembers<'a> {
    /// Creates a selection without objects.
    fn new(areas: &'a AreaIndex, source: PlannedFile<'_>, limits: Limits) -> Self {
        let PlannedFile { file, plan, .. } = source;
        let is_spatial = file.has_spatial_layout();
        let each_once = is_spatial || plan.has_each_object_once();
        Self {
            areas,
            sets: SetTable::default(),
            each_once,
            near: FxHashMap::default(),
            outside: is_spatial.then(OutsideObjects::default),
            form: usable_location_form(file, plan),
            // The box of a blob does not cover deleted nodes. They are expected only in files that declare history.
            boxes_cover_all_nodes: !file.header.has(feature::HISTORY),
            nodes: IdMap::default(),
            added_nodes: IdMap::default(),
            ways: IdMap::default(),
            added_ways: IdMap::default(),
            relations: IdMap::default(),
            parents: IdSet::default(),
            room: MemoryBudget::new(limits.ids),
            // If one version of an object is kept, all its versions are kept. A phase finds only the versions that meet
            // its own condition, so a part that it caches might lack versions.
            held: PartialBlobCache::new(if each_once { limits.held } else { 0 }),
        }
    }

    /// Finds the objects that each region keeps, in one pass over the nodes, one over the ways, one over the relations,
    /// and a second pass over some of the ways. If ways have nodes that the file may lack, reads some of the nodes and
    /// of the ways once more. Returns `None` if the ids need more than `limits.ids` bytes. Calls `after_nodes` when the
    /// nodes are found, and fails if `after_nodes` fails.
    pub(super) fn find(
        areas: &'a AreaIndex,
        strategy: &Strategy,
        source: PlannedFile<'_>,
        limits: Limits,
        after_nodes: impl FnOnce() -> Result<()>,
    ) -> Result<Option<Self>> {
        let mut selection = Self::new(areas, source, limits);
        selection.find_nodes(!strategy.completes_ways(), source)?;
        after_nodes()?;
        if selection.room.is_exceeded {
            return Ok(None);
        }
        if selection.is_empty() && !selection.form.may_lack_nodes() {
            return Ok(Some(selection));
        }
        selection.find_ways(strategy.completes_ways(), source)?;
        if selection.room.is_exceeded {
            return Ok(None);
        }
        if selection.is_empty() {
            return Ok(Some(selection));
        }
        if strategy.keeps_relations() {
            selection.find_relations(strategy, source)?;
        }
        if strategy.completes_ways() {
            selection.complete_ways(source)?;
        }
        if let Some(outside) = &mut selection.outside {
            outside.sort();
        }
        selection.evict_incomplete();
        selection.merge_added_ids();
        if selection.bytes() > limits.ids {
            Ok(None)
        } else {
            Ok(Some(selection))
        }
    }

    /// Whether the regions contain no nodes and no ways. In this case, nothing is kept.
    pub(super) const fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.ways.is_empty()
    }

    /// Removes blobs from the cache if a later phase found that more of their objects may be kept.
    fn evict_incomplete(&mut self) {
        let (added_ways, parents) = (&self.added_ways, &self.parents);
        let outside = self.outside.as_ref();
        let has_member = |entry: &BlobEntry| outside.is_none_or(|all| all.may_have_member(entry));
        let is_complete = |entry: &BlobEntry| match entry.kinds.single() {
            Some(ObjectKind::Node) => true,
            Some(ObjectKind::Way) => {
                !added_ways.may_meet(entry.min_id, entry.max_id) || !has_member(entry)
            }
            Some(ObjectKind::Relation) => !parents.may_meet(entry.min_id, entry.max_id),
            None => false,
        };
        self.held.retain(is_complete);
    }

    /// Merges `added_nodes` into `nodes` and `added_ways` into `ways`, so that one lookup finds all regions that keep
    /// an object.
    fn merge_added_ids(&mut self) {
        let mut algebra = SetAlgebra::new(&self.sets);
        let (nodes, ways) = (&mut self.nodes, &mut self.ways);
        let more = |id, set| add_regions(nodes, id, set, &mut algebra);
        self.added_nodes.for_each(more);
        let more = |id, set| add_regions(ways, id, set, &mut algebra);
        self.added_ways.for_each(more);
        self.added_ways = IdMap::default();
    }

    /// Returns the memory of the ids, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let nodes = [&self.nodes, &self.added_nodes];
        let others = [&self.ways, &self.added_ways, &self.relations];
        let ids: u64 = nodes.into_iter().chain(others).map(IdMap::bytes).sum();
        ids + self.outside.as_ref().map_or(0, OutsideObjects::bytes)
    }

    /// Finds the nodes in the regions. If `hold` is set, caches the kept parts of blobs. `hold` must not be set if
    /// nodes are added later for ways and relations, because the cached parts would lack these nodes.
    fn find_nodes(&mut self, hold: bool, source: PlannedFile<'_>) -> Result<()> {
        let (mut nodes, mut room) = (IdMap::default(), self.room);
        let (mut algebra, mut not_in_boxes) = (SetAlgebra::new(&self.sets), Vec::new());
        let has_nodes = |entry: &BlobEntry| entry.kinds.contains(ObjectKind::Node);
        for entry in source.plan.entries.iter().filter(|entry| has_nodes(entry)) {
            let cover = self.areas.cover(&entry.bbox);
            let around = cover.touched.is_empty().then_some(cover.inside);
            if around.as_ref().is_none_or(|around| !around.is_empty()) {
                self.near.insert(entry.offset, around);
            }
        }
        source.scan("find nodes").run(
            |entry| {
                let may_be_near = entry.bbox.is_empty() || self.near.contains_key(&entry.offset);
                has_nodes(entry) && may_be_near
            },
            |entry, block| self.nodes_in_regions(hold, entry, block),
            |(found, not_in_box)| {
                not_in_boxes.extend(not_in_box);
                if room.may_add_ids([&nodes]) {
                    add_ids_with_regions(&mut nodes, &found, &mut algebra);
                }
            },
        )?;
        room.measure([&nodes]);
        let undecided = not_in_boxes.into_iter().map(|offset| (offset, None));
        self.near.extend(undecided);
        (self.nodes, self.room) = (nodes, room);
        Ok(())
    }

    /// Returns the regions that contain all nodes of a blob, according to its bounding box. The list is empty if no
    /// region contains any node of the blob. Returns `None` if the box does not decide this for all regions.
    fn regions_around(&self, entry: &BlobEntry) -> Option<&[u32]> {
        if !self.is_covered_by_box(entry) {
            return None;
        }
        match self.near.get(&entry.offset) {
            None => Some(&[]),
            Some(around) => around.as_deref(),
        }
    }

    /// Whether a blob contains only nodes, and its bounding box covers all of them.
    fn is_covered_by_box(&self, entry: &BlobEntry) -> bool {
        let has_box = entry.kinds.single() == Some(ObjectKind::Node) && !entry.bbox.is_empty();
        let may_be_nowhere = if entry.flags.has(BlobFlags::SCANNED) {
            entry.flags.has(BlobFlags::DELETED)
        } else {
            !self.boxes_cover_all_nodes
        };
        has_box && !may_be_nowhere
    }

    /// Finds the nodes of a block that lie in regions. Some nodes may have no valid location, although the entry of the
    /// blob suggests that the bounding box covers all nodes. In this case, also returns the offset of the blob. Fails
    /// if a node with a valid location lies outside of the box in the index.
    fn nodes_in_regions(
        &self,
        hold: bool,
        entry: &BlobEntry,
        block: &Block<'_>,
    ) -> FormatResult<(IdsWithRegions, Option<u64>)> {
        let is_whole = self.is_covered_by_box(entry) && block.has_all_nodes_in_box(entry)?;
        let mut found = Vec::new();
        let around = self.regions_around(entry);
        let not_in_box = (around.is_some() && !is_whole).then_some(entry.offset);
        if let Some(around) = around.filter(|_| is_whole) {
            let set = self.sets.of(around.iter().copied());
            block.for_each_id(|_, id| found.push((id, set)))?;
            return Ok((found, None));
        }
        let mut located = RegionLookup::new(self.areas, &self.sets);
        let mut kept = Vec::new();
        let mut index = 0u32;
        block.for_each_location(|id, location| {
            if let Some(location) = location {
                let set = located.regions_at(location);
                if set != EMPTY_SET {
                    found.push((id, set));
                    kept.push(index);
                }
            }
            index += 1;
        })?;
        if hold {
            self.held
                .add(entry, block, found.len(), || script_keeping(&kept, index))?;
        }
        Ok((found, not_in_box))
    }

    /// Decides which outputs get a copy of a blob, and whether its objects have to be visited for the other outputs.
    pub(super) fn decide(&self, entry: &BlobEntry) -> FilterItem {
        let has = |kind| entry.kinds.contains(kind);
        let outside = self.outside.as_ref();
        let added_nodes = has(ObjectKind::Node)
            && may_have_mapped_ids(entry, &self.added_nodes)
            && outside.is_none_or(|outside| outside.may_have_node(entry));
        if let Some(around) = self.regions_around(entry) {
            return FilterItem {
                entry: *entry,
                copied_to: around.to_vec(),
                is_visited: added_nodes,
                is_transformed: false,
            };
        }
        let is_near = self.may_touch_a_region(entry);
        let nodes = has(ObjectKind::Node)
            && may_have_mapped_ids(entry, &self.nodes)
            && (is_near || added_nodes);
        let ways = has(ObjectKind::Way)
            && may_have_mapped_ids(entry, &self.ways)
            && (is_near || self.may_have_member(entry));
        let relations =
            has(ObjectKind::Relation) && may_have_mapped_ids(entry, &self.relations) && is_near;
        let is_visited = nodes || ways || relations;
        let decision = BlobDecision::visit_if(is_visited);
        FilterItem::new(*entry, decision)
    }

    /// Assigns each object of a block to the group of those regions that keep the object.
    pub(super) fn select(&self, block: &Block<'_>, selection: &mut Selection) -> FormatResult<()> {
        let mut groups = Vec::<(SetNumber, GroupId)>::new();
        let mut last = None;
        let (mut nodes, mut ways) = (self.nodes.walk(), self.ways.walk());
        block.for_each_id(|kind, id| {
            let set = match kind {
                ObjectKind::Node => nodes.get(id),
                ObjectKind::Way => ways.get(id),
                ObjectKind::Relation => self.relations.get(id),
            };
            let group = match last {
                Some((last, group)) if last == set => group,
                _ => match groups.iter().find(|(known, _)| *known == set) {
                    Some((_, group)) => *group,
                    None => {
                        let group = selection.add_group(self.sets.members(set));
                        groups.push((set, group));
                        group
                    }
                },
            };
            last = Some((set, group));
            selection.push_in_group(group);
        })
    }

    /// Returns the cache of the kept parts of blobs.
    pub(super) const fn cache(&self) -> &PartialBlobCache {
        &self.held
    }
}

/// Whether a blob may contain an object whose id is in a map, according to the id range of the blob.
fn may_have_mapped_ids(entry: &BlobEntry, map: &IdMap) -> bool {
    match entry.kinds.single() {
        Some(_) => map.may_meet(entry.min_id, entry.max_id),
        None => !map.is_empty(),
    }
}

/// Creates a script that keeps only some objects of a block. `kept` has the indices of these objects in ascending
/// order, and `count` is the number of all objects of the block.
fn script_keeping(kept: &[u32], count: u32) -> EditScript {
    let mut kept = kept.iter().peekable();
    EditScript::from_kept_flags((0..count).map(|index| kept.next_if_eq(&&index).is_some()))
}

/// Adds the regions of `set` to the regions that keep an object.
fn add_regions(map: &mut IdMap, id: i64, set: SetNumber, algebra: &mut SetAlgebra<'_>) {
    if set != EMPTY_SET {
        map.add(id, set, |one, two| algebra.union(one, two));
    }
}

/// The limit for the memory of the ids while they are collected.
#[derive(Debug, Clone, Copy)]
struct MemoryBudget {
    /// The maximum memory in bytes.
    most: u64,
    /// The number of collected ids at which the memory of the ids is measured next.
    next_check: u64,
    is_exceeded: bool,
}

impl MemoryBudget {
    /// The number of ids at which their memory is measured first.
    const FIRST_CHECK: u64 = 1 << 14;

    const fn new(most: u64) -> Self {
        Self {
            most,
            next_check: Self::FIRST_CHECK,
            is_exceeded: false,
        }
    }

    /// Returns the budget that remains if ids in other maps use `bytes` bytes.
    const fn reduced_by(self, bytes: u64) -> Self {
        Self::new(self.most.saturating_sub(bytes))
    }

    /// Whether more ids may be added to the maps. Measuring their memory is slow, so it is repeated only after the
    /// number of ids has grown by a quarter.
    fn may_add_ids<const N: usize>(&mut self, maps: [&IdMap; N]) -> bool {
        let ids: u64 = maps.iter().map(|map| map.len()).sum();
        if ids >= self.next_check {
            self.next_check = ids + ids / 4;
            self.measure(maps);
        }
        !self.is_exceeded
    }

    /// Measures the memory of the maps, and records whether it exceeds the budget.
    fn measure<const N: usize>(&mut self, maps: [&IdMap; N]) {
        let bytes: u64 = maps.iter().map(|map| map.bytes()).sum();
        self.is_exceeded |= bytes > self.most;
    }
}

fn add_ids_with_regions(map: &mut IdMap, found: &[(i64, SetNumber)], algebra: &mut SetAlgebra<'_>) {
    for (id, set) in found {
        add_regions(map, *id, *set, algebra);
    }
}
