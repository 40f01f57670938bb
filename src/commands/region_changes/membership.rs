//! Decides which regions keep an object after the changes, and in which extracts the object may change.

use super::affected::Affected;
use super::before::Before;
use super::regions::{Regions, add_regions, intersection};
use super::rows::RelationRow;
use crate::commands::extract::regions_with_percent;
use crate::index::{EMPTY_SET, IdMap, IdSet, IdSets, SetAlgebra, SetNumber};
use crate::osm::ObjectKind;
use crate::pbf::WayNodes;
use rustc_hash::FxHashMap;

/// The regions that keep objects after the changes. Covers only the objects that may change in an extract.
pub(super) struct Membership<'a> {
    regions: &'a Regions<'a>,
    algebra: SetAlgebra<'a>,
    affected: &'a Affected,
    before: &'a Before,
    /// For each node, the regions that contain it.
    located: &'a IdMap,
    /// For each way, the regions that contain one of its nodes.
    ways_inside: IdMap,
    /// For each object, the regions that complete a relation with this object as a member.
    completed: [IdMap; 3],
    /// For each object, the regions that keep it after the changes.
    pub kept: [IdMap; 3],
    /// For each object, the regions whose extracts may change in this object.
    pub concerned: [IdMap; 3],
}

impl<'a> Membership<'a> {
    /// Finds, for each object that may change, the regions that keep it. Some nodes remain undecided: a region may keep
    /// them only because an unaffected way has them. [`undecided_nodes`](Self::undecided_nodes) returns these nodes.
    /// `located` has the regions that contain each node. It covers the changed nodes, and the nodes whose locations
    /// decide which regions keep other objects.
    pub(super) fn find(
        regions: &'a Regions<'a>,
        affected: &'a Affected,
        before: &'a Before,
        located: &'a IdMap,
        moved: &IdSet,
    ) -> Self {
        let mut found = Self {
            regions,
            algebra: SetAlgebra::new(&regions.sets),
            affected,
            before,
            located,
            ways_inside: IdMap::default(),
            completed: Default::default(),
            kept: Default::default(),
            concerned: Default::default(),
        };
        found.locate_ways(&affected.way_rows);
        found.locate_ways(&affected.member_ways);
        found.find_regions_of_relations();
        found.find_regions_of_ways();
        found.find_regions_of_nodes(moved);
        found
    }

    /// Finds, for each way, the regions that contain one of its nodes.
    fn locate_ways(&mut self, ways: &WayNodes) {
        let mut nodes = self.located.walk();
        for (id, refs) in ways.iter() {
            let sets = refs.iter().map(|id| nodes.get(*id));
            let set = sets.fold(EMPTY_SET, |all, set| self.algebra.union(all, set));
            add_regions(&mut self.ways_inside, id, set, &mut self.algebra);
        }
    }

    /// Returns the regions that contain a node, or a node of a way. The result is empty for a relation.
    fn regions_around(&self, kind: ObjectKind, id: i64) -> SetNumber {
        match kind {
            ObjectKind::Node => self.located.get(id),
            ObjectKind::Way => self.ways_inside.get(id),
            ObjectKind::Relation => EMPTY_SET,
        }
    }

    /// Finds the regions that keep the affected relations, and the regions that complete relations.
    fn find_regions_of_relations(&mut self) {
        let affected = self.affected;
        for (row, members) in affected.relation_rows.iter() {
            let mut direct = EMPTY_SET;
            for (kind, id) in members {
                direct = self.algebra.union(direct, self.regions_around(*kind, *id));
            }
            direct = intersection(&mut self.algebra, direct, self.regions.with_relations);
            if affected.relations.contains(row.id) {
                let relations = &mut self.kept[ObjectKind::Relation as usize];
                add_regions(relations, row.id, direct, &mut self.algebra);
            }
            let completed = self.regions_that_complete(row, members, direct);
            for (kind, id) in members {
                add_regions(
                    &mut self.completed[*kind as usize],
                    *id,
                    completed,
                    &mut self.algebra,
                );
            }
            if row.completion.is_possible() && affected.direct.contains(row.id) {
                self.mark_member_nodes(row.id, members, completed);
            }
        }
        for (row, members) in self.before.relations.iter() {
            self.mark_member_nodes(row.id, members, EMPTY_SET);
        }
        self.add_parents();
        for id in affected.relations.ids() {
            let before = self.before.regions_with(ObjectKind::Relation, id);
            let after = self.kept[ObjectKind::Relation as usize].get(id);
            let both = self.algebra.union(before, after);
            let relations = &mut self.concerned[ObjectKind::Relation as usize];
            add_regions(relations, id, both, &mut self.algebra);
        }
    }

    /// Returns the regions that complete a relation. `direct` has the regions that keep the relation because of its
    /// member nodes and member ways.
    fn regions_that_complete(
        &mut self,
        row: RelationRow,
        members: &[(ObjectKind, i64)],
        direct: SetNumber,
    ) -> SetNumber {
        if !row.completion.is_possible() || direct == EMPTY_SET {
            return EMPTY_SET;
        }
        let enough = |regions: SetNumber, percent: u32| {
            let mut counts = FxHashMap::<SetNumber, u64>::default();
            for (kind, id) in members {
                let inside = match kind {
                    ObjectKind::Node => self.located.get(*id),
                    ObjectKind::Way => self.ways_inside.get(*id),
                    ObjectKind::Relation => EMPTY_SET,
                };
                *counts.entry(inside).or_default() += 1;
            }
            regions_with_percent(&self.regions.sets, &counts, regions, percent)
        };
        let algebra = &mut self.algebra;
        (self.regions).regions_that_complete(row.completion, direct, algebra, enough)
    }

    /// Records in which regions the member nodes of a relation may change. These are the regions that completed the
    /// relation before the changes, and the regions `completed` that complete it after them.
    fn mark_member_nodes(&mut self, id: i64, members: &[(ObjectKind, i64)], completed: SetNumber) {
        let before = self.before.regions_with(ObjectKind::Relation, id);
        let completing = self.regions.completing_relations;
        let before = intersection(&mut self.algebra, before, completing);
        let both = self.algebra.union(before, completed);
        for (_, id) in members.iter().filter(|(kind, _)| *kind == ObjectKind::Node) {
            let nodes = &mut self.concerned[ObjectKind::Node as usize];
            add_regions(nodes, *id, both, &mut self.algebra);
        }
    }

    /// Adds the regions that keep a relation to the regions of its parents, until nothing changes. Only regions whose
    /// strategy keeps the parents of relations are added.
    fn add_parents(&mut self) {
        let mut parents = FxHashMap::<i64, Vec<i64>>::default();
        let mut open = IdSet::default();
        for (row, members) in self.affected.relation_rows.iter() {
            if !self.affected.relations.contains(row.id) {
                continue;
            }
            for (kind, child) in members {
                if *kind == ObjectKind::Relation {
                    parents.entry(*child).or_default().push(row.id);
                    open.insert(*child);
                }
            }
        }
        let mut open: Vec<i64> = open.ids().collect();
        let relations = &mut self.kept[ObjectKind::Relation as usize];
        while let Some(child) = open.pop() {
            let set = if self.affected.relations.contains(child) {
                relations.get(child)
            } else {
                self.before.regions_with(ObjectKind::Relation, child)
            };
            let set = intersection(&mut self.algebra, set, self.regions.with_parents);
            for parent in parents.get(&child).into_iter().flatten() {
                let before = relations.get(*parent);
                add_regions(relations, *parent, set, &mut self.algebra);
                if relations.get(*parent) != before {
                    open.push(*parent);
                }
            }
        }
    }

    /// Finds the regions that keep the affected ways, and those that keep the nodes of these ways.
    fn find_regions_of_ways(&mut self) {
        let (kind, affected) = (ObjectKind::Way as usize, self.affected);
        for (id, refs) in affected.way_rows.iter() {
            let (inside, completed) = (self.ways_inside.get(id), self.completed[kind].get(id));
            let kept = self.algebra.union(inside, completed);
            add_regions(&mut self.kept[kind], id, kept, &mut self.algebra);
            let before = self.before.regions_with(ObjectKind::Way, id);
            let both = self.algebra.union(before, kept);
            self.add_nodes(refs, both, kept);
        }
        for (id, refs) in self.before.ways.iter() {
            let before = self.before.regions_with(ObjectKind::Way, id);
            self.add_nodes(refs, before, EMPTY_SET);
        }
        for id in affected.ways.ids() {
            let before = self.before.regions_with(ObjectKind::Way, id);
            let both = self.algebra.union(before, self.kept[kind].get(id));
            add_regions(&mut self.concerned[kind], id, both, &mut self.algebra);
        }
    }

    /// Records that nodes may change in the regions of `concerned`, and that the regions of `kept` keep the nodes.
    /// Ignores regions that do not keep all nodes of their ways.
    fn add_nodes(&mut self, nodes: &[i64], concerned: SetNumber, kept: SetNumber) {
        let kind = ObjectKind::Node as usize;
        let completing = self.regions.completing;
        let concerned = intersection(&mut self.algebra, concerned, completing);
        let kept = intersection(&mut self.algebra, kept, completing);
        for id in nodes {
            add_regions(&mut self.concerned[kind], *id, concerned, &mut self.algebra);
            add_regions(&mut self.kept[kind], *id, kept, &mut self.algebra);
        }
    }

    /// Finds the regions that keep the changed and concerned nodes.
    fn find_regions_of_nodes(&mut self, moved: &IdSet) {
        let kind = ObjectKind::Node as usize;
        for id in moved.ids() {
            for set in [self.before.located.get(id), self.located.get(id)] {
                add_regions(&mut self.concerned[kind], id, set, &mut self.algebra);
            }
        }
        let (kept, algebra) = (&mut self.kept[kind], &mut self.algebra);
        let concerned = &mut self.concerned[kind];
        concerned.for_each(|id, _| {
            let inside = algebra.union(self.located.get(id), self.completed[kind].get(id));
            add_regions(kept, id, inside, algebra);
        });
        // A region may be missing in `concerned` for a changed node. If the extract of this region had the node, the
        // region keeps it.
        let mut stays = Vec::new();
        self.before.kept[kind].for_each(|id, set| {
            let unconcerned = algebra.difference(set, concerned.get(id));
            if unconcerned != EMPTY_SET {
                stays.push((id, unconcerned));
            }
        });
        for (id, set) in stays {
            add_regions(kept, id, set, algebra);
            add_regions(concerned, id, set, algebra);
        }
    }

    /// Returns, for each region, the nodes that it keeps only if an unaffected way of its extract has them. `present`
    /// has the nodes that the planet has.
    pub(super) fn undecided_nodes(&mut self, present: &IdSet) -> FxHashMap<u32, IdSet> {
        let kind = ObjectKind::Node as usize;
        let (kept, algebra) = (&self.kept[kind], &mut self.algebra);
        let mut sets = FxHashMap::<SetNumber, IdSet>::default();
        self.concerned[kind].for_each(|id, set| {
            let lost = algebra.difference(set, kept.get(id));
            let lost = intersection(algebra, lost, self.regions.completing);
            if lost != EMPTY_SET && present.contains(id) {
                sets.entry(lost).or_default().insert(id);
            }
        });
        distribute_to_regions(&sets, self.regions, |all: &mut IdSet, ids| {
            all.extend(ids.ids());
        })
    }

    /// Removes regions from `concerned` in which an object certainly stays the same. The objects in `changed` keep all
    /// their regions. For other nodes, removes the regions that contain the node. For other ways and relations, removes
    /// the regions that keep the object both before and after the changes.
    pub(super) fn remove_unaffected_regions(&mut self, changed: &IdSets) {
        let algebra = &mut self.algebra;
        for kind in ObjectKind::ALL {
            let (kept, mut rest) = (&self.kept[kind as usize], IdMap::default());
            let concerned = &mut self.concerned[kind as usize];
            concerned.for_each(|id, set| {
                let certain = match kind {
                    _ if changed.contains(kind, id) => EMPTY_SET,
                    ObjectKind::Node => self.located.get(id),
                    _ => intersection(algebra, self.before.regions_with(kind, id), kept.get(id)),
                };
                let set = algebra.difference(set, certain);
                add_regions(&mut rest, id, set, algebra);
            });
            *concerned = rest;
        }
    }

    /// Records that a region keeps nodes.
    pub(super) fn keep_nodes(&mut self, region: u32, nodes: &IdSet) {
        let own = self.regions.sets.of([region]);
        let kept = &mut self.kept[ObjectKind::Node as usize];
        nodes
            .ids()
            .for_each(|id| add_regions(kept, id, own, &mut self.algebra));
    }
}

/// Distributes items to regions. `sets` has an item for each set of regions, and `put` adds the item to each region of
/// the set.
pub(super) fn distribute_to_regions<T, R: Default>(
    sets: &FxHashMap<SetNumber, T>,
    regions: &Regions<'_>,
    mut put: impl FnMut(&mut R, &T),
) -> FxHashMap<u32, R> {
    let mut all = FxHashMap::<u32, R>::default();
    for (set, item) in sets {
        for region in regions.sets.members(*set) {
            put(all.entry(region).or_default(), item);
        }
    }
    all
}
