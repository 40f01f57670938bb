//! Relations with their members, which decide in which regions the relations are.

use super::regions::{CompletionRules, Regions};
use crate::error::FormatError;
use crate::osm::ObjectKind;
use crate::pbf::{Block, BlockWalk};

/// Relations with their members.
#[derive(Debug, Default)]
pub(super) struct RelationRows {
    members: Vec<(ObjectKind, i64)>,
    /// Each relation, with the end of its members in `members` (exclusive).
    relations: Vec<(RelationRow, usize)>,
}

/// A relation without its members.
#[derive(Debug, Clone, Copy)]
pub(super) struct RelationRow {
    pub id: i64,
    pub completion: CompletionRules,
}

impl RelationRows {
    pub(super) fn iter(&self) -> impl Iterator<Item = (RelationRow, &[(ObjectKind, i64)])> {
        let mut start = 0;
        self.relations.iter().map(move |(row, end)| {
            let members = &self.members[start..*end];
            start = *end;
            (*row, members)
        })
    }

    pub(super) fn push(&mut self, row: RelationRow, members: &[(ObjectKind, i64)]) {
        self.members.extend(members);
        self.relations.push((row, self.members.len()));
    }

    pub(super) fn append(&mut self, more: &Self) {
        more.iter()
            .for_each(|(row, members)| self.push(row, members));
    }

    /// Returns the relations of a block that `is_wanted` selects. Adds to `nested` each pair of a relation of the block
    /// and one of its member relations. The block must have been parsed with its strings if a region completes
    /// relations.
    pub(super) fn of_block(
        block: &Block<'_>,
        regions: &Regions<'_>,
        mut nested: Option<&mut Vec<(i64, i64)>>,
        is_wanted: impl Fn(RelationRow, &[(ObjectKind, i64)]) -> bool,
    ) -> Result<Self, FormatError> {
        let tests = regions.completion_tests(block);
        let (mut rows, mut members) = (Self::default(), Vec::new());
        let mut object = block.walk();
        while let Some(kind) = object.next()? {
            if kind != ObjectKind::Relation {
                continue;
            }
            read_members(&object, &mut members)?;
            let row = RelationRow {
                id: object.id()?,
                completion: tests.completion_of(&mut object)?,
            };
            if let Some(nested) = &mut nested {
                let relations = members.iter();
                let relations = relations.filter(|(kind, _)| *kind == ObjectKind::Relation);
                nested.extend(relations.map(|(_, member)| (row.id, *member)));
            }
            if is_wanted(row, &members) {
                rows.push(row, &members);
            }
        }
        Ok(rows)
    }
}

fn read_members(
    relation: &BlockWalk<'_>,
    members: &mut Vec<(ObjectKind, i64)>,
) -> Result<(), FormatError> {
    members.clear();
    relation.any_member(|kind, id| {
        members.push((kind, id));
        false
    })?;
    Ok(())
}
