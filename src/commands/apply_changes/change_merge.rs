//! Merges the objects of a block with changes.

use crate::error::{Advice, FormatError, FormatResult};
use crate::formats::Change;
use crate::osm::{ObjectId, TypeThenId, id_from_rank};
use crate::pbf::{Block, BlockUnits, BlockWalk};

/// An object of a block with its change, an object without a change, or a change without an object.
pub(super) enum MergedObject<'c> {
    /// A change of an object that the block does not have.
    Absent(&'c Change),
    /// An object without a change.
    Unchanged(TypeThenId),
    /// An object with a change. The change is `Outdated` if it is older than the object.
    Outdated(&'c Change),
    /// An object that a change replaces or deletes.
    Replaced(&'c Change),
}

/// A walk over the objects of a block and over changes, side by side. Objects and changes have to be in canonical
/// order.
pub(super) struct ChangeMerge<'b, 'c> {
    objects: BlockWalk<'b>,
    units: &'b BlockUnits,
    changes: &'c [Change],
    /// The last object that was read.
    last: Option<TypeThenId>,
    /// Whether `last` comes after the change that was returned last, and has to be returned yet.
    is_pending: bool,
}

impl<'b, 'c> ChangeMerge<'b, 'c> {
    pub(super) fn new(block: &'b Block<'_>, changes: &'c [Change]) -> Self {
        Self {
            objects: block.walk(),
            units: &block.units,
            changes,
            last: None,
            is_pending: false,
        }
    }

    /// Whether changes are left.
    pub(super) const fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Returns the next object or change; `None` at the end of the objects and of the changes. Fails if the objects are
    /// out of order or an object occurs twice.
    #[inline]
    pub(super) fn next(&mut self) -> FormatResult<Option<MergedObject<'c>>> {
        let key = match self.last {
            Some(key) if self.is_pending => Some(key),
            last => {
                let key = self.objects.next_key()?;
                if let Some(key) = key {
                    check_order(last, key)?;
                    self.last = Some(key);
                }
                key
            }
        };
        self.is_pending = false;
        let (change, Some(key)) = (self.changes.first(), key) else {
            return Ok(self.next_change().map(MergedObject::Absent));
        };
        match change {
            Some(change) if change.key < key => {
                self.is_pending = true;
                Ok(self.next_change().map(MergedObject::Absent))
            }
            Some(change) if change.key == key => {
                self.next_change();
                let age = self.objects.version_info()?;
                let timestamp = (age.timestamp != 0).then(|| self.units.seconds(age.timestamp));
                Ok(Some(if change.replaces(age.version_number(), timestamp) {
                    MergedObject::Replaced(change)
                } else {
                    MergedObject::Outdated(change)
                }))
            }
            _ => Ok(Some(MergedObject::Unchanged(key))),
        }
    }

    fn next_change(&mut self) -> Option<&'c Change> {
        let (change, rest) = self.changes.split_first()?;
        self.changes = rest;
        Some(change)
    }
}

fn check_order(last: Option<TypeThenId>, key: TypeThenId) -> FormatResult<()> {
    match last {
        Some(last) if last >= key => {
            let (kind, id) = (key.0, id_from_rank(key.1));
            if last == key {
                let need = "changes can be applied to current data only";
                return Err(FormatError::repetition(ObjectId { kind, id }, need));
            }
            let cause =
                format!("{kind} {id} is out of order although the file declares canonical order");
            Err(FormatError::with(cause).advise(Advice::Sort))
        }
        _ => Ok(()),
    }
}
