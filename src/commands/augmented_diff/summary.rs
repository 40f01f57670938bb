//! The result of `augmented-diff`.

use super::action::Action;
use crate::formats::ChangeAction;
use serde::Serialize;

/// The result of `augmented-diff`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The number of created objects.
    pub created: u64,
    /// The number of objects with a new version.
    pub modified: u64,
    /// The number of deleted objects.
    pub deleted: u64,
    /// The number of ways and relations without a change of their own and with a changed node or member.
    pub indirect: u64,
    /// The number of changes that were left out because the base has a newer version.
    pub outdated: u64,
    /// The number of deletions of objects that the base does not have. They are left out.
    pub absent: u64,
    /// The number of modifications of objects that the base does not have. They are written as creations.
    pub missing: u64,
    /// The number of references to nodes whose location is not known, in old and new states of ways.
    pub missing_references: u64,
    /// The number of relations that are written without the geometry of their members. Such a relation has more members
    /// than the limit, or its members have more than 1,000,000 nodes.
    pub without_geometry: u64,
    /// The number of objects that have another version in the new file, but the same content. They are actions only if
    /// metadata is compared. 0 unless two files are compared.
    pub new_version_only: u64,
    /// The number of tags that were left out of features and rows. A tag is left out if an earlier tag of the object
    /// has the same key. Counts the tags of old and new states.
    pub repeated_keys: u64,
    /// The number of files; `None` unless the actions are divided by changesets or change files.
    pub files: Option<u64>,
    /// The number of tiles; `None` unless tiles are written.
    pub tiles: Option<u64>,
    /// The number of lines and polygons that are too large. A polygon with more than 65,536 tiles in its bounding box
    /// is written without the tiles inside of it. A line that touches more than 4,194,304 tiles is left out, and so is
    /// a polygon whose outline does.
    pub unfilled: u64,
}

impl Summary {
    /// Returns the number of actions.
    pub const fn actions(&self) -> u64 {
        self.created + self.modified + self.deleted + self.indirect
    }

    /// Counts an action.
    pub(super) fn count(&mut self, action: &Action<'_>, has_geometry: bool) {
        let count = match action.kind {
            _ if action.is_indirect => &mut self.indirect,
            ChangeAction::Create => &mut self.created,
            ChangeAction::Modify => &mut self.modified,
            ChangeAction::Delete => &mut self.deleted,
        };
        *count += 1;
        self.without_geometry += u64::from(!has_geometry);
        let states = action.old.iter().chain([&action.new]);
        let missing = states.map(super::states::State::missing_references);
        self.missing_references += missing.sum::<u64>();
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.modified += other.modified;
        self.deleted += other.deleted;
        self.indirect += other.indirect;
        self.outdated += other.outdated;
        self.absent += other.absent;
        self.missing += other.missing;
        self.missing_references += other.missing_references;
        self.without_geometry += other.without_geometry;
        self.repeated_keys += other.repeated_keys;
    }
}
