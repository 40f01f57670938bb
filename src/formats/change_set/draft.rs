//! A change that a parser is reading, and its addition to a change set.

use super::limits::check_lens_fit_u32;
use super::{Change, ChangeSet, Span};
use crate::formats::change_action::ChangeAction;
use crate::osm::{Location, ObjectKind, id_rank};
use crate::pbf::MAX_PARTS;

/// A change that a parser is reading. Its tags, refs, locations and roles are the last entries in the lists of the
/// [`ChangeSet`].
#[derive(Debug, Clone, Copy)]
pub(in crate::formats) struct Draft {
    pub kind: ObjectKind,
    pub id: i64,
    pub action: ChangeAction,
    pub version: Option<u32>,
    pub timestamp: Option<i64>,
    pub changeset: Option<i64>,
    pub uid: Option<i32>,
    pub user: u32,
    pub location: Option<Location>,
    pub tags_start: usize,
    pub refs_start: usize,
    pub locations_start: usize,
    pub roles_start: usize,
    /// Whether the object is left out of the set, because the user of an editor deleted it.
    pub is_left_out: bool,
}

impl Draft {
    /// Returns a draft without content. The tags, refs, locations and roles that are appended to the lists of `set`
    /// after this call belong to the draft.
    pub(in crate::formats) fn new(
        set: &mut ChangeSet,
        kind: ObjectKind,
        action: ChangeAction,
    ) -> Self {
        Self {
            kind,
            id: 0,
            action,
            version: None,
            timestamp: None,
            changeset: None,
            uid: None,
            user: set.strings.add(""),
            location: None,
            tags_start: set.tags.len(),
            refs_start: set.refs.len(),
            locations_start: set.locations.len(),
            roles_start: set.roles.len(),
            is_left_out: false,
        }
    }
}

impl ChangeSet {
    /// Appends the change in a draft. If the draft [is left out](Draft::is_left_out), only counts it and removes its
    /// list entries. Fails if the object has more than 2,000,000 tags, nodes or members. Also fails if a list, or the
    /// text of all strings, becomes too long for 32-bit indices.
    pub(in crate::formats) fn append_draft(&mut self, draft: &Draft) -> Result<(), String> {
        if draft.is_left_out {
            self.tags.truncate(draft.tags_start);
            self.refs.truncate(draft.refs_start);
            self.locations.truncate(draft.locations_start);
            self.roles.truncate(draft.roles_start);
            self.deleted_in_editor += 1;
            return Ok(());
        }
        let lens = [self.tags.len(), self.refs.len(), self.locations.len()];
        check_parts(draft, lens)?;
        check_lens_fit_u32(&self.strings, lens)?;
        let span = |start: usize, end: usize| Span {
            start: start as u32,
            end: end as u32,
        };
        let details = if draft.kind == ObjectKind::Relation {
            // Each reference needs an entry in `roles`. A missing entry becomes a node without a role.
            let members = self.refs.len() - draft.refs_start;
            let roles = draft.roles_start + members;
            self.roles.resize(roles, (ObjectKind::Node, 0));
            span(draft.roles_start, roles)
        } else {
            self.roles.truncate(draft.roles_start);
            span(draft.locations_start, self.locations.len())
        };
        let change = Change {
            key: (draft.kind, id_rank(draft.id)),
            action: draft.action,
            version: draft.version,
            timestamp: draft.timestamp,
            file: 0,
            changeset: draft.changeset,
            uid: draft.uid,
            user: draft.user,
            location: draft.location,
            tags: span(draft.tags_start, self.tags.len()),
            refs: span(draft.refs_start, self.refs.len()),
            details,
        };
        self.is_history |= self
            .changes
            .last()
            .is_some_and(|last| change.is_other_version_of(last));
        self.changes.push(change);
        Ok(())
    }
}

/// Fails if an object has more than [`MAX_PARTS`] tags, nodes or members. `lens` has the lengths of three lists: the
/// strings of tags, the references, and the locations.
fn check_parts(draft: &Draft, lens: [usize; 3]) -> Result<(), String> {
    let [tags, refs, _] = lens;
    let of_refs = match draft.kind {
        ObjectKind::Node | ObjectKind::Way => "nodes",
        ObjectKind::Relation => "members",
    };
    let parts = [
        // Each tag is two entries, a key and a value.
        ((tags - draft.tags_start) / 2, "tags"),
        (refs - draft.refs_start, of_refs),
    ];
    match parts.iter().find(|(count, _)| *count > MAX_PARTS) {
        Some((count, name)) => Err(format!(
            "{} {} has {count} {name}: at most 2,000,000 of an object are read",
            draft.kind, draft.id
        )),
        None => Ok(()),
    }
}
