//! The changes that turn one file into another, as text or in memory.

use super::{Deletions, Format};
use crate::error::FormatResult;
use crate::formats::{ChangeAction, ChangeSet, OscText};
use crate::osm::ObjectId;
use crate::pbf::Object;

/// The changes that turn the old file into the new one.
pub(super) enum ChangeOutput {
    /// The text of a change file.
    Text(OscText),
    /// Changes in memory.
    Collected(Box<ChangeSet>),
}

impl ChangeOutput {
    /// Creates an empty output of a comparison. If `are_collected` is set, changes are kept in memory and not written
    /// as text.
    pub(super) fn new(are_collected: bool, format: Option<&Format>) -> Self {
        match format {
            _ if are_collected => Self::Collected(Box::default()),
            Some(Format::Osc(deletions)) => Self::Text(OscText::new(&deletions.text)),
            _ => Self::Text(OscText::default()),
        }
    }

    /// Appends a change with its object.
    pub(super) fn put(&mut self, action: ChangeAction, object: &Object<'_>) -> FormatResult<()> {
        match self {
            Self::Text(text) => {
                text.put(action, object);
                Ok(())
            }
            Self::Collected(changes) => changes.push(action, object),
        }
    }

    /// Appends a deletion that gives only the id, the version and the time of the deleted object.
    pub(super) fn put_deletion(&mut self, object: &Object<'_>) -> FormatResult<()> {
        let (kind, id, info) = (object.kind(), object.id, &object.info);
        let id = ObjectId { kind, id };
        match self {
            Self::Text(text) => {
                text.put_deletion(id, info.version, info.timestamp);
                Ok(())
            }
            Self::Collected(changes) => changes.push_deletion(id, info.version, info.timestamp),
        }
    }
}

impl Deletions {
    /// Returns the action of a change. `found` is the action according to the two files: a creation if only the new
    /// file has the object, and otherwise a modification.
    pub(super) fn action_of(&self, object: &Object<'_>, found: ChangeAction) -> ChangeAction {
        if self.creates_version_1 {
            ChangeAction::of(object)
        } else {
            found
        }
    }
}
