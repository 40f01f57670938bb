//! The objects whose membership in a region may change, and the objects that decide it.

use super::before::Before;
use super::regions::Regions;
use super::rows::{RelationRow, RelationRows};
use super::sorted_file::{NodeHolders, SortedFile};
use crate::error::Result;
use crate::index::{EMPTY_SET, IdMap, IdSet, IdSets, SetAlgebra, SetNumber};
use crate::osm::ObjectKind;
use crate::pbf::WayNodes;
use crate::runtime::Context;
use rustc_hash::FxHashMap;

/// The objects whose membership in a region may change.
///
/// A way is affected if it changed. It is also affected if one of its nodes entered a region, left a region, or may be
/// new. A relation is affected if it changed. It is also affected if one of its members entered a region, left a
/// region, or is a node that may be new. If a region keeps the parents of relations, the parents of an affected
/// relation are affected, too. If a region completes relations, the members of affected relations are affected, too.
#[derive(Default)]
pub(super) struct Affected {
    pub ways: IdSet,
    pub relations: IdSet,
    /// The affected ways that the planet has, with their nodes.
    pub way_rows: WayNodes,
    /// The ways that are not affected, but are members of the relations in `relation_rows`.
    pub member_ways: WayNodes,
    /// The affected relations of the planet, and some unaffected relations. An unaffected relation is included if a
    /// region may complete it, and if one of its members is an affected way or a node that may leave a region.
    pub relation_rows: RelationRows,
    /// The relations that changed, or that have a member that entered a region, left a region, or may be new.
    pub direct: IdSet,
    /// The nodes that changed ways had before the changes, each with another way that has the node. Ways that changed
    /// or have moved nodes are left out.
    pub holders: NodeHolders,
    /// The ways that entered a region or left it.
    pub crossing: IdSet,
    /// The unchanged ways with moved nodes. Each comes with the regions that contained a node of the way before the
    /// changes.
    pub unchanged_ways: Vec<(i64, SetNumber)>,
}

/// The input of a search for affected objects.
pub(super) struct AffectedSearch<'s> {
    pub planet: &'s SortedFile,
    pub regions: &'s Regions<'s>,
    pub changed: &'s IdSets,
    /// The nodes that lie in other regions than before, and the nodes that may be new.
    pub moved: &'s IdSet,
    pub before: &'s Before,
    pub ctx: &'s Context,
}

impl AffectedSearch<'_> {
    /// Finds the affected ways. Reads all ways of the planet if a node moved. Also reads all ways if a changed way had
    /// nodes that a region may have kept because of the way.
    pub(super) fn find_ways(&self) -> Result<Affected> {
        let mut holders = NodeHolders::default();
        let had: IdSet = match self.regions.completing {
            EMPTY_SET => IdSet::default(),
            _ => self.before.ways.refs.iter().copied().collect(),
        };
        let changed_ways = self.changed.of(ObjectKind::Way);
        let ids = (changed_ways, self.moved);
        let shared = (&had, &mut holders);
        let way_rows = self.planet.read_ways("find ways", ids, shared, self.ctx)?;
        let mut ways = changed_ways.clone();
        ways.extend(way_rows.ways.iter().map(|(id, _)| *id));
        Ok(Affected {
            ways,
            way_rows,
            holders,
            ..Affected::default()
        })
    }

    /// Finds the affected ways that entered a region or left it. `located` has the regions that contain the nodes of
    /// these ways after the changes.
    pub(super) fn find_crossing_ways(&self, affected: &mut Affected, located: &IdMap) {
        let mut algebra = SetAlgebra::new(&self.regions.sets);
        let (changed_nodes, changed_ways) = (
            self.changed.of(ObjectKind::Node),
            self.changed.of(ObjectKind::Way),
        );
        let before_at = |node: i64| {
            let is_changed = changed_nodes.contains(node);
            let before = is_changed.then_some(&self.before.located);
            before.unwrap_or(located).get(node)
        };
        let mut union = |refs: &[i64], at: &dyn Fn(i64) -> SetNumber| {
            let sets = refs.iter().map(|node| at(*node));
            sets.fold(EMPTY_SET, |all, set| algebra.union(all, set))
        };
        let mut had: FxHashMap<i64, SetNumber> = FxHashMap::default();
        for (id, refs) in self.before.ways.iter() {
            had.insert(id, union(refs, &before_at));
        }
        for (id, refs) in affected.way_rows.iter() {
            let before = if changed_ways.contains(id) {
                had.remove(&id).unwrap_or(EMPTY_SET)
            } else {
                let before = union(refs, &before_at);
                affected.unchanged_ways.push((id, before));
                before
            };
            if before != union(refs, &|node| located.get(node)) {
                affected.crossing.insert(id);
            }
        }
        // The ways that remain in `had` are not in the planet.
        let left = had.iter().filter(|(_, before)| **before != EMPTY_SET);
        affected.crossing.extend(left.map(|(id, _)| *id));
    }

    /// Finds the affected relations. Reads all relations of the planet.
    pub(super) fn find_relations(&self, affected: &mut Affected) -> Result<()> {
        let changed = self.changed.of(ObjectKind::Relation);
        let is_affected = |&(kind, id): &(ObjectKind, i64)| match kind {
            ObjectKind::Node => self.moved.contains(id),
            ObjectKind::Way => affected.crossing.contains(id),
            ObjectKind::Relation => false,
        };
        let is_direct = |row: RelationRow, members: &[(ObjectKind, i64)]| {
            changed.contains(row.id) || members.iter().any(is_affected)
        };
        let (mut rows, nested) = self.read_relations("find relations", None, is_direct)?;
        let mut direct = changed.clone();
        direct.extend(rows.iter().map(|(row, _)| row.id));
        let mut relations = direct.clone();
        add_parents(&mut relations, nested);
        let nodes = self.add_completed_members(&rows, affected)?;
        rows.append(&self.deciding_relations(&direct, &relations, &affected.ways, &nodes)?);
        affected.member_ways = self.member_ways(&rows, &affected.ways)?;
        affected.relation_rows = rows;
        (affected.relations, affected.direct) = (relations, direct);
        Ok(())
    }

    /// Returns relations of the planet, as [`SortedFile::read_relations`] does.
    fn read_relations(
        &self,
        name: &'static str,
        ids: Option<&IdSet>,
        is_wanted: impl Fn(RelationRow, &[(ObjectKind, i64)]) -> bool + Sync,
    ) -> Result<(RelationRows, Vec<(i64, i64)>)> {
        let (planet, regions) = (self.planet, self.regions);
        planet.read_relations(name, ids, regions, is_wanted, self.ctx)
    }

    /// Adds member ways of affected relations to `affected`. A region may complete these relations, or may have
    /// completed them before the changes. Returns the nodes that may leave a region. A completed relation may still
    /// keep such a node in the region. If no region completes relations, adds no ways and returns no nodes.
    fn add_completed_members(&self, rows: &RelationRows, affected: &mut Affected) -> Result<IdSet> {
        let mut nodes = IdSet::default();
        if !self.regions.completes_relations() {
            return Ok(nodes);
        }
        let mut more = IdSet::default();
        let completed = rows.iter().filter(|(row, _)| row.completion.is_possible());
        for (_, members) in completed.chain(self.before.relations.iter()) {
            for &(kind, id) in members {
                match kind {
                    ObjectKind::Node => _ = nodes.insert(id),
                    ObjectKind::Way if !affected.ways.contains(id) => _ = more.insert(id),
                    ObjectKind::Way | ObjectKind::Relation => {}
                }
            }
        }
        if !more.is_empty() {
            let name = "find members of relations";
            let found = self.planet.ways_by_id(name, &more, self.ctx)?;
            affected.way_rows.append(&found);
            affected.ways.extend(more.ids());
        }
        let of_ways = affected.way_rows.refs.iter().chain(&self.before.ways.refs);
        nodes.extend(of_ways.copied());
        nodes.extend(self.moved.ids());
        Ok(nodes)
    }

    /// Returns the relations outside `direct` that either are in `relations`, or may be completed and have a member in
    /// `ways` or `nodes`.
    fn deciding_relations(
        &self,
        direct: &IdSet,
        relations: &IdSet,
        ways: &IdSet,
        nodes: &IdSet,
    ) -> Result<RelationRows> {
        let ids = (!self.regions.completes_relations()).then_some(relations);
        if ids.is_some() && relations.len() == direct.len() {
            return Ok(RelationRows::default());
        }
        let keeps = |&(kind, id): &(ObjectKind, i64)| match kind {
            ObjectKind::Node => nodes.contains(id),
            ObjectKind::Way => ways.contains(id),
            ObjectKind::Relation => false,
        };
        let (rows, _) = self.read_relations("find further relations", ids, |row, members| {
            let may_keep = || row.completion.is_possible() && members.iter().any(keeps);
            !direct.contains(row.id) && (relations.contains(row.id) || may_keep())
        })?;
        Ok(rows)
    }

    /// Returns the ways that are members of the relations in `rows`, but are not in `known`.
    fn member_ways(&self, rows: &RelationRows, known: &IdSet) -> Result<WayNodes> {
        let members = rows.iter().flat_map(|(_, members)| members);
        let ways = members.filter(|(kind, id)| *kind == ObjectKind::Way && !known.contains(*id));
        let ways: IdSet = ways.map(|(_, id)| *id).collect();
        if ways.is_empty() {
            return Ok(WayNodes::default());
        }
        (self.planet).ways_by_id("find ways of relations", &ways, self.ctx)
    }
}

/// Adds the relations that have one of `relations` as a member, directly or through other relations. `nested` has the
/// pairs of a relation and one of its member relations.
fn add_parents(relations: &mut IdSet, nested: Vec<(i64, i64)>) {
    let mut parents = FxHashMap::<i64, Vec<i64>>::default();
    for (parent, child) in nested {
        parents.entry(child).or_default().push(parent);
    }
    let mut open: Vec<i64> = parents.keys().copied().collect();
    open.retain(|child| relations.contains(*child));
    while let Some(child) = open.pop() {
        for parent in parents.get(&child).into_iter().flatten() {
            if relations.insert(*parent) {
                open.push(*parent);
            }
        }
    }
}

impl Affected {
    /// Returns the ids of the unchanged objects whose presence in the extracts decides about other objects: affected
    /// relations, member relations of the relations in `relation_rows`, and, if `has_ways` is set, affected ways.
    pub(super) fn unchanged_deciding_ids(&self, changed: &IdSets, has_ways: bool) -> IdSets {
        let mut ids = IdSets::default();
        let mut add = |kind, id| {
            if !changed.contains(kind, id) {
                ids.insert(kind, id);
            }
        };
        let ways = self.ways.ids().filter(|_| has_ways);
        ways.for_each(|id| add(ObjectKind::Way, id));
        self.relations
            .ids()
            .for_each(|id| add(ObjectKind::Relation, id));
        for (_, members) in self.relation_rows.iter() {
            let nested = members
                .iter()
                .filter(|(kind, _)| *kind == ObjectKind::Relation);
            nested.for_each(|(kind, id)| add(*kind, *id));
        }
        ids
    }

    /// Returns the nodes whose locations decide which regions keep the affected ways, relations and nodes.
    pub(super) fn deciding_nodes(&self, before: &Before) -> IdSet {
        let ways = [&self.way_rows, &self.member_ways, &before.ways].into_iter();
        let mut nodes: IdSet = ways.flat_map(|ways| &ways.refs).copied().collect();
        for rows in [&self.relation_rows, &before.relations] {
            let members = rows.iter().flat_map(|(_, members)| members);
            let of_nodes = members.filter(|(kind, _)| *kind == ObjectKind::Node);
            nodes.extend(of_nodes.map(|(_, id)| *id));
        }
        nodes
    }
}
