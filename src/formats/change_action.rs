//! The kinds of changes.

use crate::pbf::Object;

/// The kind of a change to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeAction {
    /// The object is new.
    Create,
    /// The object has a new version.
    Modify,
    /// The object is deleted.
    Delete,
}

impl ChangeAction {
    /// The action that leads to an object: the deletion of an object that is not visible, the creation of a first
    /// version, or else a modification.
    pub(crate) fn of(object: &Object<'_>) -> Self {
        match (object.info.visible, object.info.version) {
            (false, _) => Self::Delete,
            (true, Some(1)) => Self::Create,
            (true, _) => Self::Modify,
        }
    }

    /// The name of the section of an OsmChange document that has such changes.
    pub(super) const fn section_name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Modify => "modify",
            Self::Delete => "delete",
        }
    }
}
