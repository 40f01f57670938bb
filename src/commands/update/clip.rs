//! Cuts changes to a region before they are applied. Without a cut, an extract would grow by objects outside of its
//! region.
//!
//! All objects of the file stay in the file, and their changes are applied. Of the other objects in the changes, the
//! strategy of the extract selects those that are kept: nodes in the region; ways with a node in the region; and
//! relations with a member that the file has or gets. The strategies that complete ways also keep the changed nodes of
//! all ways of the file. The strategy `smart` also keeps the changed members of completed relations. In a file whose
//! ways have locations, the changed nodes of its ways are always kept, because the ways get their locations from these
//! nodes. An update does not know which objects earlier updates cut away, so an object that it adds to the file can
//! lack nodes or members.

mod base_facts;
mod completion;
mod region;

use crate::commands::apply_changes::ChangeFilter;
use crate::commands::extract::Strategy;
use crate::error::{Advice, Error, Result};
use crate::file::PlannedFile;
use crate::formats::{Change, ChangeSet};
use crate::geometry::{LocationTest, Shape};
use crate::index::{IdSet, IdSets};
use crate::osm::{Location, ObjectId, ObjectKind};
use crate::runtime::Context;
use base_facts::{BaseFacts, BaseLookup};
use completion::CompletionRule;
use region::ClipRegion;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::path::Path;

/// The effect of cutting changes to a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Clipped {
    /// The number of created or modified objects that are left out. The file does not have these objects, and they lie
    /// outside of the region.
    pub cut_away: u64,
    /// The number of references of changed ways to nodes that neither the file nor the changes have. In a file whose
    /// ways have locations, only references to nodes without a known location count. With [`Strategy::Simple`], no
    /// references count.
    pub missing_references: u64,
    /// The number of ways that came into the file without all their nodes. References count under the same conditions
    /// as in `missing_references`.
    pub incomplete_ways: u64,
    /// The number of relations that came into the file without all their members.
    pub incomplete_relations: u64,
}

/// The filter that cuts changes to a region.
pub(super) struct RegionCut<'a> {
    strategy: &'a Strategy,
    region: ClipRegion,
    /// The facts about the base; `None` before the first call of [`filter`](ChangeFilter::filter).
    facts: Option<BaseFacts>,
    clipped: Clipped,
}

impl<'a> RegionCut<'a> {
    pub(super) fn new(shape: &Shape, strategy: &'a Strategy) -> Self {
        Self {
            strategy,
            region: ClipRegion::new(shape),
            facts: None,
            clipped: Clipped::default(),
        }
    }

    /// Adds the number of objects that were cut away to the statistics, and warns of references to missing nodes.
    /// `path` is the updated file.
    pub(super) fn finish(self, path: &Path, ctx: &Context) -> Clipped {
        let Clipped {
            cut_away,
            missing_references,
            incomplete_ways,
            incomplete_relations,
        } = self.clipped;
        ctx.stats.objects_cut_away.add(cut_away);
        // In a file whose ways have locations, applying the changes already warns of these references.
        let is_located = self.facts.is_some_and(|facts| facts.is_located);
        let missing_references = if is_located { 0 } else { missing_references };
        if missing_references + incomplete_ways > 0 {
            ctx.warn_with_advice(
                format!(
                    "{}: references of changed ways to nodes that the file does not have: {missing_references}; nodes \
                     outside of the region are cut away unless a way refers to them in the same run; entered without all \
                     their nodes or members: {incomplete_ways} ways, {incomplete_relations} relations",
                    path.display()
                ),
                Advice::FollowRegions,
            );
        }
        self.clipped
    }
}

impl ChangeFilter for RegionCut<'_> {
    /// Fails if no object of the base lies in the region. Such a region must be wrong, and the cut would lose wanted
    /// changes.
    fn filter(&mut self, base: PlannedFile<'_>, changes: &mut ChangeSet) -> Result<()> {
        let facts = match self.facts.take() {
            Some(facts) => facts,
            None => {
                let lookup = BaseLookup {
                    source: base,
                    changes,
                    strategy: self.strategy,
                    region: &self.region,
                };
                if !lookup.is_anything_inside()? {
                    let cause = "no node lies in the region: nothing is written";
                    return Err(Error::file(base.file.input.path(), cause));
                }
                lookup.run()?
            }
        };
        let kept = KeptChanges::find(changes, &facts, self.strategy, &self.region);
        self.clipped.cut_away += cut_changes(changes, &facts, &kept, self.strategy);
        let missing = MissingParts::count(changes, &facts);
        if self.strategy.completes_ways() {
            self.clipped.missing_references = missing.references;
            self.clipped.incomplete_ways = missing.ways;
        }
        self.clipped.incomplete_relations = missing.relations;
        self.facts = Some(facts);
        Ok(())
    }

    fn widens_box(&self, location: Location) -> bool {
        self.region.location_test().has(location)
    }
}

/// Whether a change is applied. `kept` has the objects that the changes add to the file.
fn is_kept(change: &Change, facts: &BaseFacts, kept: &IdSets) -> bool {
    let (kind, id) = (change.kind(), change.id());
    let is_referred = kind == ObjectKind::Node && facts.referred.contains(id);
    facts.present.contains(kind, id) || kept.contains(kind, id) || is_referred
}

/// Removes the changes that are not kept. Returns the number of objects that the removed changes create or modify.
fn cut_changes(
    changes: &mut ChangeSet,
    facts: &BaseFacts,
    kept: &IdSets,
    strategy: &Strategy,
) -> u64 {
    let all = changes.changes();
    let is_newest = |at: usize, change: &Change| {
        let next = all.get(at + 1);
        next.is_none_or(|next| next.key != change.key)
    };
    let mut count = 0;
    for (at, change) in all.iter().enumerate() {
        let is_object = is_newest(at, change) && !change.is_deletion();
        count += u64::from(is_object && !is_kept(change, facts, kept));
    }
    if facts.is_located && !strategy.completes_ways() {
        store_cut_locations(changes, facts, kept);
    }
    changes.retain(|change| is_kept(change, facts, kept));
    count
}

/// If nodes of a kept way are cut away, stores their locations in the way.
fn store_cut_locations(changes: &mut ChangeSet, facts: &BaseFacts, kept: &IdSets) {
    let all = changes.changes().iter();
    let ways = all.clone().filter(|change| is_kept(change, facts, kept));
    let refs = ways.flat_map(|way| changes.refs(way));
    let refs: IdSet = refs.copied().collect();
    let nodes = all.filter(|change| {
        let is_node = change.kind() == ObjectKind::Node;
        is_node && refs.contains(change.id()) && !is_kept(change, facts, kept)
    });
    let locations = nodes.filter_map(|node| Some((node.id(), node.location()?)));
    let locations: FxHashMap<i64, Location> = locations.collect();
    changes.set_way_locations(|id, given| locations.get(&id).copied().or(given));
}

/// Counts of missing nodes and members. Changed objects refer to them, but neither the base nor the changes have them.
#[derive(Debug, Default)]
struct MissingParts {
    /// The number of references of changed ways to missing nodes.
    references: u64,
    /// The number of ways that lack a node and are not in the base.
    ways: u64,
    /// The number of relations that lack a member and are not in the base.
    relations: u64,
}

impl MissingParts {
    /// Counts the missing parts of the objects that the changes create or modify. Outdated changes are left out.
    fn count(changes: &ChangeSet, facts: &BaseFacts) -> Self {
        let all = changes.changes();
        let changed: IdSets = all.iter().map(Change::object_id).collect();
        let is_there = |kind, id| changed.contains(kind, id) || facts.present.contains(kind, id);
        let mut missing = Self::default();
        for change in all {
            let (kind, id) = (change.kind(), change.id());
            if change.is_deletion() || facts.outdated.contains(kind, id) {
                continue;
            }
            let is_new = !facts.present.contains(kind, id);
            match kind {
                ObjectKind::Node => {}
                ObjectKind::Way => {
                    let given = changes.given_locations(change);
                    let refs = changes.refs(change).iter().enumerate();
                    let lacking = refs.filter(|&(at, &id)| {
                        let is_given = given.get(at).is_some_and(Option::is_some);
                        let is_located =
                            facts.is_located && (is_given || facts.stored.contains(id));
                        !is_there(ObjectKind::Node, id) && !is_located
                    });
                    let lacking = lacking.count() as u64;
                    missing.references += lacking;
                    missing.ways += u64::from(is_new && lacking > 0);
                }
                ObjectKind::Relation => {
                    let mut members = changes.member_ids(change);
                    let is_incomplete =
                        is_new && members.any(|member| !is_there(member.kind, member.id));
                    missing.relations += u64::from(is_incomplete);
                }
            }
        }
        missing
    }
}

/// The search for the objects that the changes add to the file.
struct KeptChanges<'k> {
    changes: &'k ChangeSet,
    facts: &'k BaseFacts,
    strategy: &'k Strategy,
    /// The objects that the changes create or modify, without those that have a newer version in the base.
    brought: IdSets,
    /// The objects that are kept. Objects that the base has can be among them.
    kept: IdSets,
}

impl<'k> KeptChanges<'k> {
    /// Returns the objects that are kept.
    fn find(
        changes: &'k ChangeSet,
        facts: &'k BaseFacts,
        strategy: &'k Strategy,
        region: &ClipRegion,
    ) -> IdSets {
        let all = changes.changes().iter();
        let is_brought = |change: &&Change| {
            let is_outdated = facts.outdated.contains(change.kind(), change.id());
            !change.is_deletion() && !is_outdated
        };
        let mut search = Self {
            changes,
            facts,
            strategy,
            brought: all.filter(is_brought).map(Change::object_id).collect(),
            kept: IdSets::default(),
        };
        search.keep_nodes_and_ways(region);
        search.keep_members();
        if strategy.keeps_relations() {
            search.keep_relations();
        }
        search.kept
    }

    /// Returns the changes that create or modify objects of a kind, each with its index.
    fn changes_of(&self, kind: ObjectKind) -> impl Iterator<Item = (usize, &'k Change)> + use<'k> {
        let (changes, outdated) = (self.changes.changes().iter(), &self.facts.outdated);
        let is_effective = move |(_, change): &(usize, &Change)| {
            change.kind() == kind && !change.is_deletion() && !outdated.contains(kind, change.id())
        };
        changes.enumerate().filter(is_effective)
    }

    /// Keeps the nodes in the region, and the ways that are in the base or have a node in the region.
    fn keep_nodes_and_ways(&mut self, region: &ClipRegion) {
        let inside = region.changed_nodes_inside(self.changes);
        let nodes = self.changes.changes().iter();
        let nodes = nodes.filter(|change| change.kind() == ObjectKind::Node);
        let changed: IdSet = nodes.map(|change| change.id()).collect();
        self.kept.of_mut(ObjectKind::Node).extend(inside.ids());
        let mut test = region.location_test();
        for (_, way) in self.changes_of(ObjectKind::Way) {
            if self.is_in_base(way.object_id())
                || self.is_way_inside(way, &changed, &inside, &mut test)
            {
                self.keep_way(way);
            }
        }
    }

    /// Whether a changed way has a node in the region. The location of a node comes from the change of the node, from
    /// the node in the base, from a way of the base, or from the change of the way, in this order. `changed` are the
    /// changed nodes, and `inside` the changed nodes in the region.
    fn is_way_inside(
        &self,
        way: &Change,
        changed: &IdSet,
        inside: &IdSet,
        test: &mut LocationTest<'_>,
    ) -> bool {
        let (facts, given) = (self.facts, self.changes.given_locations(way));
        let mut refs = self.changes.refs(way).iter().enumerate();
        refs.any(|(at, &id)| {
            if changed.contains(id) && !facts.outdated.contains(ObjectKind::Node, id) {
                inside.contains(id)
            } else if facts.present.contains(ObjectKind::Node, id) {
                facts.inside.contains(id)
            } else if facts.stored.contains(id) {
                facts.stored_inside.contains(id)
            } else {
                let given = given.get(at).copied().flatten();
                given.is_some_and(|location| test.has(location))
            }
        })
    }

    /// Keeps a way and, unless the strategy is simple, its nodes. Returns the objects that were not kept before.
    fn keep_way(&mut self, way: &Change) -> Vec<ObjectId> {
        let mut added = Vec::new();
        self.keep(way.object_id(), &mut added);
        if self.strategy.completes_ways() {
            let changes = self.changes;
            for &id in changes.refs(way) {
                let kind = ObjectKind::Node;
                self.keep(ObjectId { kind, id }, &mut added);
            }
        }
        added
    }

    /// Keeps an object if it is in `brought`. Appends it to `added` if it was not kept before.
    fn keep(&mut self, object: ObjectId, added: &mut Vec<ObjectId>) {
        let ObjectId { kind, id } = object;
        if self.brought.contains(kind, id) && self.kept.insert(kind, id) {
            added.push(object);
        }
    }

    /// Keeps the changed nodes of unchanged ways, and the changed members of unchanged relations that are completed.
    fn keep_members(&mut self) {
        let (facts, kind) = (self.facts, ObjectKind::Node);
        let nodes = facts.of_completed.of(kind).ids();
        let mut added = Vec::new();
        for id in facts.referred.ids().chain(nodes) {
            self.keep(ObjectId { kind, id }, &mut added);
        }
        for (_, way) in self.changes_of(ObjectKind::Way) {
            if facts.of_completed.contains(ObjectKind::Way, way.id()) {
                self.keep_way(way);
            }
        }
    }

    /// Whether the base has an object.
    fn is_in_base(&self, object: ObjectId) -> bool {
        self.facts.present.contains(object.kind, object.id)
    }

    /// Whether the file has an object, or gets it from the changes.
    fn is_in_result(&self, object: ObjectId) -> bool {
        self.is_in_base(object) || self.kept.contains(object.kind, object.id)
    }

    /// Returns the members of a changed relation that decide whether the relation is kept. With the strategy `simple`,
    /// these are only nodes and ways.
    fn deciding_members(&self, relation: &'k Change) -> impl Iterator<Item = ObjectId> + use<'k> {
        let has_parents = self.strategy.completes_ways();
        let members = self.changes.member_ids(relation);
        members.filter(move |member| has_parents || member.kind != ObjectKind::Relation)
    }

    /// Keeps the relations with a member that the file has or gets, and the members of completed relations. When an
    /// object is kept, further relations may have to be kept, because the object is one of their members.
    fn keep_relations(&mut self) {
        let changes = self.changes;
        let completed = self.completed_relations();
        // For each object, the indices of the relations that are kept if the object is kept.
        let mut waiting: FxHashMap<ObjectId, Vec<usize>> = FxHashMap::default();
        let mut open = Vec::new();
        for (index, relation) in self.changes_of(ObjectKind::Relation) {
            let is_there = |member| self.is_in_result(member);
            if self.is_in_base(relation.object_id())
                || self.deciding_members(relation).any(is_there)
            {
                open.push(index);
                continue;
            }
            let members = self.deciding_members(relation);
            for member in members.filter(|member| self.brought.contains(member.kind, member.id)) {
                waiting.entry(member).or_default().push(index);
            }
        }
        let ways: FxHashMap<i64, &Change> = if completed.is_empty() {
            FxHashMap::default()
        } else {
            let ways = self.changes_of(ObjectKind::Way);
            ways.map(|(_, way)| (way.id(), way)).collect()
        };
        let mut done = FxHashSet::default();
        while let Some(index) = open.pop() {
            let Some(relation) = changes.changes().get(index) else {
                continue;
            };
            if !done.insert(index) {
                continue;
            }
            let mut added = Vec::new();
            self.keep(relation.object_id(), &mut added);
            if completed.contains(&index) {
                for member in changes.member_ids(relation) {
                    match (member.kind, ways.get(&member.id)) {
                        (ObjectKind::Way, Some(way)) => added.extend(self.keep_way(way)),
                        (ObjectKind::Node, _) => self.keep(member, &mut added),
                        _ => {}
                    }
                }
            }
            for object in added {
                open.extend(waiting.remove(&object).into_iter().flatten());
            }
        }
    }

    /// Returns the indices of the changed relations that are completed if they are kept.
    fn completed_relations(&self) -> FxHashSet<usize> {
        let Some(completion) = CompletionRule::of(self.strategy) else {
            return FxHashSet::default();
        };
        let is_completed = |relation: &Change| {
            let object = self.changes.object(relation);
            let (mut kept, mut all) = (0, 0);
            for member in self.changes.member_ids(relation) {
                let is_kept = member.kind != ObjectKind::Relation && self.is_in_result(member);
                kept += u64::from(is_kept);
                all += 1;
            }
            completion.applies(&object.tags, kept, all)
        };
        let relations = self.changes_of(ObjectKind::Relation);
        let completed = relations.filter(|(_, relation)| is_completed(relation));
        completed.map(|(index, _)| index).collect()
    }
}
