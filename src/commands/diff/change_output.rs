//! The changes that turn one file into another, as text or in memory.

use super::{Deletions, Extra, Format};
use crate::error::FormatError;
use crate::formats::{ChangeAction, ChangeSet, OscText};
use crate::osm::ObjectId;
use crate::pbf::Object;

/// The changes that turn the old file into the new one.
pub(super) enum ChangeOutput {
    /// The text of a change file.
    Text(OscText),
    /// Changes in memory, with the maximum of their memory in bytes.
    Collected(Box<ChangeSet>, usize),
}

impl ChangeOutput {
    /// Creates an empty output of a comparison.
    pub(super) fn new(extra: Extra, format: Option<&Format>) -> Self {
        match (extra.max_changes, format) {
            (Some(max), _) => Self::Collected(Box::default(), max),
            (None, Some(Format::Osc(deletions))) => Self::Text(OscText::new(&deletions.text)),
            (None, _) => Self::Text(OscText::default()),
        }
    }

    /// Appends a change with its object.
    pub(super) fn put(
        &mut self,
        action: ChangeAction,
        object: &Object<'_>,
    ) -> Result<(), FormatError> {
        match self {
            Self::Text(text) => {
                text.put(action, object);
                Ok(())
            }
            Self::Collected(changes, max) => {
                changes.push(action, object)?;
                changes.check_memory(*max).map_err(FormatError::with)
            }
        }
    }

    /// Appends a deletion that gives only the id, the version and the time of the deleted object.
    pub(super) fn put_deletion(&mut self, object: &Object<'_>) -> Result<(), FormatError> {
        let (kind, id, info) = (object.kind(), object.id, &object.info);
        let id = ObjectId { kind, id };
        match self {
            Self::Text(text) => {
                text.put_deletion(id, info.version, info.timestamp);
                Ok(())
            }
            Self::Collected(changes, _) => changes.push_deletion(id, info.version, info.timestamp),
        }
    }
}

impl Deletions {
    /// Returns the action of a change. `found` is the action that follows from the files.
    pub(super) fn action_of(&self, object: &Object<'_>, found: ChangeAction) -> ChangeAction {
        if self.creates_version_1 {
            ChangeAction::of(object)
        } else {
            found
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_collected_changes_is_limited() {
        let mut changes = ChangeOutput::Collected(Box::default(), 100_000);
        let mut put = |id| changes.put(ChangeAction::Modify, &Object::node(id, None, Vec::new()));
        let count = (0..).take_while(|id| put(*id).is_ok()).count();
        assert!((500..2000).contains(&count), "{count}");
    }
}
