//! Finds the relations that regions keep, and the members that regions add to complete these relations.

use super::{IdsWithRegions, RegionMembers, add_ids_with_regions, add_regions, script_keeping};
use crate::commands::extract::strategy::{RelationTypes, Strategy};
use crate::engine::distinct_list::DistinctList;
use crate::error::{FormatResult, Result};
use crate::file::PlannedFile;
use crate::index::{EMPTY_SET, IdMap, IdSet, SetAlgebra, SetNumber, SetTable};
use crate::osm::{Bbox, ObjectExpression, ObjectKind};
use crate::pbf::{BlobEntry, Block, BlockWalk, TagIds};
use rustc_hash::FxHashMap;

impl RegionMembers<'_> {
    /// Finds the relations with a kept member, their parents, and the members that completed relations add, as
    /// `strategy` requires.
    pub(super) fn find_relations(
        &mut self,
        strategy: &Strategy,
        source: PlannedFile<'_>,
    ) -> Result<()> {
        let mut relations = IdMap::default();
        let mut algebra = SetAlgebra::new(&self.sets);
        let (mut direct, mut parents) = (Vec::new(), FxHashMap::<i64, Vec<i64>>::default());
        let (mut added_ways, mut added_nodes) = (DistinctList::default(), DistinctList::default());
        let mut completed_in = Vec::new();
        let mut scan = source.scan("find relations");
        if matches!(strategy, Strategy::Smart { .. }) {
            scan = scan.with_strings();
        }
        scan.run(
            |entry| entry.kinds.contains(ObjectKind::Relation) && self.may_touch_a_region(entry),
            |entry, block| self.find_kept_relations(entry, block, strategy),
            |found: KeptRelations| {
                add_ids_with_regions(&mut relations, &found.direct, &mut algebra);
                direct.extend(found.direct);
                for (parent, child) in found.nested.finish() {
                    parents.entry(child).or_default().push(parent);
                }
                added_ways.extend(found.ways.finish());
                added_nodes.extend(found.nodes.finish());
                completed_in.extend(found.completed_in);
            },
        )?;
        if let Some(outside) = &mut self.outside {
            let add = |bbox| outside.add_relation(bbox);
            completed_in.iter().for_each(add);
        }
        let mut further = IdSet::default();
        // A parent gets the regions of its children and passes them on to its own parents. The set of regions of a
        // relation only grows, so the loop ends even if relations form a cycle.
        while let Some((child, _)) = direct.pop() {
            let set = relations.get(child);
            for &parent in parents.get(&child).into_iter().flatten() {
                let before = relations.get(parent);
                let after = algebra.union(before, set);
                if after != before {
                    if before == EMPTY_SET {
                        further.insert(parent);
                    }
                    relations.add(parent, after, |_, after| after);
                    direct.push((parent, after));
                }
            }
        }
        (self.relations, self.parents) = (relations, further);
        for (id, set) in added_nodes.finish() {
            let missing = algebra.difference(set, self.nodes.get(id));
            add_regions(&mut self.added_nodes, id, missing, &mut algebra);
        }
        for (id, set) in added_ways.finish() {
            let missing = algebra.difference(set, self.ways.get(id));
            add_regions(&mut self.added_ways, id, missing, &mut algebra);
        }
        Ok(())
    }

    /// Finds the relations of a block that have a kept member, the references to nested relations, and the members of
    /// completed relations.
    fn find_kept_relations(
        &self,
        entry: &BlobEntry,
        block: &Block<'_>,
        strategy: &Strategy,
    ) -> FormatResult<KeptRelations> {
        let mut found = KeptRelations::default();
        let mut algebra = SetAlgebra::new(&self.sets);
        let types = CompletedTypes::new(strategy, block);
        let (mut kept, mut index) = (Vec::new(), 0u32);
        let mut object = block.walk();
        while let Some(kind) = object.next()? {
            index += 1;
            if kind != ObjectKind::Relation {
                continue;
            }
            let (id, mut direct) = (object.id()?, EMPTY_SET);
            object.any_member(|kind, member| {
                match kind {
                    ObjectKind::Relation if *strategy != Strategy::Simple => {
                        found.nested.push((id, member));
                    }
                    _ => direct = algebra.union(direct, self.regions_of_member(kind, member)),
                }
                false
            })?;
            if direct == EMPTY_SET {
                continue;
            }
            let tag_ids = object.tags()?;
            found.direct.push((id, direct));
            kept.push(index - 1);
            let completed = match strategy {
                Strategy::Smart { tags, .. } if !types.matches_any_of(tags, tag_ids)? => EMPTY_SET,
                Strategy::Smart { min_percent, .. } => {
                    if types.has_completed_type(tag_ids)? {
                        direct
                    } else {
                        self.regions_that_keep_enough(&object, direct, *min_percent)?
                    }
                }
                Strategy::Simple | Strategy::CompleteWays { .. } => EMPTY_SET,
            };
            if completed != EMPTY_SET {
                found.completed_in = Some(entry.bbox);
                object.any_member(|kind, member| {
                    match kind {
                        ObjectKind::Node => found.nodes.push((member, completed)),
                        ObjectKind::Way => found.ways.push((member, completed)),
                        ObjectKind::Relation => {}
                    }
                    false
                })?;
            }
        }
        self.held
            .add(entry, block, kept.len(), || script_keeping(&kept, index))?;
        Ok(found)
    }

    /// Returns the set of regions that contain a node or, for a way, at least one node of the way. The set is empty for
    /// a relation.
    fn regions_of_member(&self, kind: ObjectKind, id: i64) -> SetNumber {
        match kind {
            ObjectKind::Node => self.nodes.get(id),
            ObjectKind::Way => self.ways.get(id),
            ObjectKind::Relation => EMPTY_SET,
        }
    }

    /// Returns the regions in `direct` that keep at least `min_percent` percent of the members of a relation. The
    /// regions that keep a member are those that [`regions_of_member`](RegionMembers::regions_of_member) returns for
    /// it. Returns the empty set if `min_percent` is `None`.
    fn regions_that_keep_enough(
        &self,
        relation: &BlockWalk<'_>,
        direct: SetNumber,
        min_percent: Option<u32>,
    ) -> FormatResult<SetNumber> {
        let Some(min_percent) = min_percent else {
            return Ok(EMPTY_SET);
        };
        let mut counts: FxHashMap<SetNumber, u64> = FxHashMap::default();
        relation.any_member(|kind, id| {
            *counts.entry(self.regions_of_member(kind, id)).or_default() += 1;
            false
        })?;
        Ok(regions_with_percent(
            &self.sets,
            &counts,
            direct,
            min_percent,
        ))
    }
}

/// Returns the regions in `direct` that keep at least `min_percent` percent of the members of a relation. `counts` has
/// the number of members that each set of regions keeps; the empty set stands for members that no region keeps.
pub(in crate::commands) fn regions_with_percent(
    sets: &SetTable,
    counts: &FxHashMap<SetNumber, u64>,
    direct: SetNumber,
    min_percent: u32,
) -> SetNumber {
    let members: u64 = counts.values().sum();
    let kept_in = |region: u32| {
        let counts = counts.iter();
        let holding = counts.filter(|(set, _)| sets.contains(**set, region));
        holding.map(|(_, count)| count).sum::<u64>()
    };
    let is_enough = |region: &u32| kept_in(*region) * 100 >= members * u64::from(min_percent);
    sets.of(sets.members(direct).into_iter().filter(is_enough))
}

/// The relations of a block that are kept, and the references that later steps need.
#[derive(Default)]
struct KeptRelations {
    /// Relations with a member that is a node in a region or a way with a node in a region, each with the set of these
    /// regions.
    direct: IdsWithRegions,
    /// Pairs of a relation and one of its member relations.
    nested: DistinctList<(i64, i64)>,
    /// The ways that are members of completed relations, each with the set of regions that complete the relation.
    ways: DistinctList<(i64, SetNumber)>,
    /// The nodes that are members of completed relations, each with the set of regions that complete the relation.
    nodes: DistinctList<(i64, SetNumber)>,
    /// The bounding box of the blob; `None` if the blob has no completed relations.
    completed_in: Option<Bbox>,
}

/// Recognizes the relations of a block that are completed because of their tags.
pub(in crate::commands) struct CompletedTypes<'b> {
    types: Option<&'b RelationTypes>,
    block: &'b Block<'b>,
}

impl<'b> CompletedTypes<'b> {
    pub(in crate::commands) fn new(strategy: &'b Strategy, block: &'b Block<'b>) -> Self {
        let types = match strategy {
            Strategy::Smart { types, .. } => Some(types),
            Strategy::Simple | Strategy::CompleteWays { .. } => None,
        };
        Self { types, block }
    }

    /// Whether one of the expressions matches a tag of a relation, or there are no expressions.
    pub(in crate::commands) fn matches_any_of(
        &self,
        expressions: &[ObjectExpression],
        tags: TagIds<'_>,
    ) -> FormatResult<bool> {
        if expressions.is_empty() {
            return Ok(true);
        }
        let matches = |expression: &ObjectExpression, key: &str, value: &str| {
            let tag = expression.tag.as_ref();
            expression.applies_to(ObjectKind::Relation)
                && tag.is_some_and(|tag| tag.key.matches(key) && tag.matches_value(value))
        };
        let strings = &self.block.strings;
        tags.any(|key, value| {
            let (key, value) = (strings.get(key)?, strings.get(value)?);
            Ok(expressions.iter().any(|one| matches(one, key, value)))
        })
    }

    /// Whether a relation with these tags is completed because of its tag `type`.
    pub(in crate::commands) fn has_completed_type(&self, tags: TagIds<'_>) -> FormatResult<bool> {
        let wanted = match self.types {
            None => return Ok(false),
            Some(RelationTypes::Any) => return Ok(true),
            Some(RelationTypes::Of(wanted)) => wanted,
        };
        let strings = &self.block.strings;
        tags.any(|key, value| {
            let value = strings.get(value)?;
            Ok(strings.get(key)? == "type" && wanted.iter().any(|wanted| wanted == value))
        })
    }
}
