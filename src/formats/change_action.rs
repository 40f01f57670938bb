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
    /// Returns the kind of change that led to this version of an object: a deletion if the object is not visible, a
    /// creation for a visible version 1, and a modification otherwise.
    pub(crate) fn of(object: &Object<'_>) -> Self {
        Self::of_version(object.info.visible, object.info.version)
    }

    /// Returns the kind of change that led to a version of an object, as [`of`](Self::of) does.
    pub(super) const fn of_version(is_visible: bool, version: Option<u32>) -> Self {
        match (is_visible, version) {
            (false, _) => Self::Delete,
            (true, Some(1)) => Self::Create,
            (true, _) => Self::Modify,
        }
    }

    /// Returns the name, which is also the name of the OsmChange section for changes with this action.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Modify => "modify",
            Self::Delete => "delete",
        }
    }
}
