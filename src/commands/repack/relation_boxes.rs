//! Computes the boxes of relations from the boxes of their members.

use crate::error::Result;
use crate::file::PlannedFile;
use crate::index::{IdSet, RankSet};
use crate::osm::{Bbox, ObjectKind};
use rustc_hash::FxHashMap;

/// The boxes of the objects of one kind that are members of relations.
#[derive(Default)]
struct RelationMemberBoxes {
    ids: RankSet,
    /// The box of each object, indexed by the rank of its id; empty for objects without a location.
    boxes: Vec<Bbox>,
}

impl RelationMemberBoxes {
    fn of(ids: IdSet) -> Self {
        let boxes = vec![Bbox::EMPTY; ids.len() as usize];
        let ids = ids.into();
        Self { ids, boxes }
    }

    fn get(&self, id: i64) -> Bbox {
        let rank = self.ids.rank(id);
        rank.map_or(Bbox::EMPTY, |rank| self.boxes[rank as usize])
    }
}

/// The boxes of all members of relations.
pub(super) struct MemberBoxes {
    nodes: RelationMemberBoxes,
    ways: RelationMemberBoxes,
    /// The boxes of the relations that are members of relations or have relations as members.
    relations: FxHashMap<i64, Bbox>,
    /// The parents of each relation that is a member of relations.
    parents: FxHashMap<i64, Vec<i64>>,
}

impl MemberBoxes {
    /// Finds the members of all relations of a file. Their boxes are still empty.
    pub(super) fn find(source: PlannedFile<'_>) -> Result<Self> {
        let (mut nodes, mut ways) = (IdSet::default(), IdSet::default());
        let (mut relations, mut parents) = (FxHashMap::default(), FxHashMap::default());
        source.scan("read members").run(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |_, block| {
                let mut found = [Vec::new(), Vec::new()];
                let mut nested = Vec::new();
                block.for_each_member(|relation, kind, id| match kind {
                    ObjectKind::Node => found[0].push(id),
                    ObjectKind::Way => found[1].push(id),
                    ObjectKind::Relation => nested.push((relation, id)),
                })?;
                Ok((found, nested))
            },
            |([of_nodes, of_ways], nested)| {
                nodes.extend(of_nodes);
                ways.extend(of_ways);
                for (parent, child) in nested {
                    relations.insert(parent, Bbox::EMPTY);
                    relations.insert(child, Bbox::EMPTY);
                    let parents: &mut Vec<i64> = parents.entry(child).or_default();
                    parents.push(parent);
                }
            },
        )?;
        let (nodes, ways) = (
            RelationMemberBoxes::of(nodes),
            RelationMemberBoxes::of(ways),
        );
        Ok(Self {
            nodes,
            ways,
            relations,
            parents,
        })
    }

    /// Returns the ids of the nodes and ways that are members, and their boxes, indexed by the ranks of the ids. The
    /// caller sets the boxes.
    pub(super) fn node_and_way_boxes(&mut self) -> ([&RankSet; 2], [&mut [Bbox]; 2]) {
        let (nodes, ways) = (&mut self.nodes, &mut self.ways);
        ([&nodes.ids, &ways.ids], [&mut nodes.boxes, &mut ways.boxes])
    }

    /// Returns the box of a member; empty if the member has no location or is not in the file.
    pub(super) fn get(&self, kind: ObjectKind, id: i64) -> Bbox {
        match kind {
            ObjectKind::Node => self.nodes.get(id),
            ObjectKind::Way => self.ways.get(id),
            ObjectKind::Relation => self.relations.get(&id).map_or(Bbox::EMPTY, |bbox| *bbox),
        }
    }

    /// Returns the box of a nested relation, which is a member of a relation or has a relation as a member. The box
    /// includes the boxes of its member relations. Returns an empty box for other relations.
    pub(super) fn box_of_relation(&self, id: i64) -> Bbox {
        self.get(ObjectKind::Relation, id)
    }

    /// Computes the boxes of nested relations. The boxes of nodes and ways must have been set.
    pub(super) fn compute_relation_boxes(&mut self, source: PlannedFile<'_>) -> Result<()> {
        if self.relations.is_empty() {
            return Ok(());
        }
        let mut boxes: FxHashMap<i64, Bbox> = FxHashMap::default();
        source.scan("find nested relations").collect(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |block, found: &mut Vec<(i64, Bbox)>| {
                block.for_each_member(|relation, kind, id| {
                    if kind == ObjectKind::Relation || !self.relations.contains_key(&relation) {
                        return;
                    }
                    let bbox = self.get(kind, id);
                    match found.last_mut() {
                        Some((last, all)) if *last == relation => *all = all.union(&bbox),
                        _ => found.push((relation, bbox)),
                    }
                })
            },
            &mut boxes,
        )?;
        // The box of a relation is added to the boxes of its parents, and so on. Boxes only grow, so the loop ends even
        // if relations contain each other.
        let mut grown: Vec<i64> = boxes.keys().copied().collect();
        self.relations.extend(boxes);
        while let Some(child) = grown.pop() {
            let bbox = self.box_of_relation(child);
            for parent in self.parents.get(&child).into_iter().flatten() {
                let before = self.box_of_relation(*parent);
                let after = before.union(&bbox);
                if after != before {
                    self.relations.insert(*parent, after);
                    grown.push(*parent);
                }
            }
        }
        Ok(())
    }
}
