//! Finds the relations that changes concern.

use super::Base;
use super::blobs::for_each_object;
use super::history::{History, Status};
use super::kept::KeptRows;
use super::reshaped::Reshaped;
use crate::engine::scan::Scan;
use crate::error::Result;
use crate::index::IdSet;
use crate::osm::ObjectKind;
use crate::pbf::{Element, Object};

/// Relations of a blob of the base that changes concern.
#[derive(Default)]
pub(super) struct FoundRelations {
    /// The status of changes of relations, by the indices of the changes.
    pub status: Vec<(usize, Status)>,
    pub kept: KeptRows,
    /// The ids of the ways that are members of the relations.
    pub ways: Vec<i64>,
    /// The ids of the nodes that are members of the relations.
    pub nodes: Vec<i64>,
}

/// The changed members by which changes concern a relation.
pub(super) struct ChangedMembers<'m, 'c> {
    pub history: &'m History<'c>,
    pub reshaped: &'m Reshaped,
    /// The maximum number of members of a relation whose members are read.
    pub max_members: u64,
}

impl ChangedMembers<'_, '_> {
    /// Whether a member has changed, or is a way with another shape.
    fn has(&self, kind: ObjectKind, id: i64) -> bool {
        let has_changed = || self.history.changed(kind).contains(id);
        match kind {
            ObjectKind::Node => has_changed(),
            ObjectKind::Way => has_changed() || self.reshaped.has(id),
            ObjectKind::Relation => false,
        }
    }
}

/// Reads all relations of the base. Calls `take` with those of each blob that changes concern.
pub(super) fn find_relations(
    base: &Base<'_>,
    changed: &ChangedMembers<'_, '_>,
    take: impl FnMut(FoundRelations) -> Result<()>,
) -> Result<()> {
    let history = changed.history;
    Scan::bare("relations", base.file, base.plan, base.ctx)
        .with_strings()
        .try_run(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |_, block| {
                let (mut found, mut ids) = (FoundRelations::default(), IdSet::default());
                block.try_for_each(|element| {
                    let Element::Relation(relation) = element else {
                        return Ok(());
                    };
                    let info = relation.info();
                    let range = history.range(ObjectKind::Relation, relation.id());
                    let of = |index| history.status_in_base(index, &info);
                    let status = range.map(|index| (index, of(index)));
                    let first = found.status.len();
                    found.status.extend(status);
                    let mut own = found.status[first..].iter();
                    let is_concerned = own.any(|(_, status)| *status == Status::Replaces)
                        || relation
                            .members()
                            .any(|member| changed.has(member.kind, member.id));
                    if is_concerned || found.status.len() > first {
                        ids.insert(relation.id());
                    }
                    if is_concerned {
                        if relation.members().count() as u64 > changed.max_members {
                            return Ok(());
                        }
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
                if !ids.is_empty() {
                    let mut keep = |relation: &Object<'_>| found.kept.push(relation);
                    for_each_object(block, ObjectKind::Relation, &ids, &mut keep)?;
                }
                Ok(found)
            },
            take,
        )
}
