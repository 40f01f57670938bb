//! Merges the objects of a block with changes.

use crate::error::{Advice, FormatError, FormatResult};
use crate::formats::Change;
use crate::osm::{ObjectId, TypeThenId, id_from_rank};
use crate::pbf::Block;

/// An object of a block with its change, if it has one, or a change without an object.
pub(super) enum MergedObject<'c> {
    /// An object that no change replaces. If there is a change, it is older than the object.
    Kept(TypeThenId, Option<&'c Change>),
    /// A change that replaces or deletes an object.
    Replaced(&'c Change),
    /// A change of an object that the block does not have.
    Absent(&'c Change),
}

/// Merges the objects of a block with changes. Calls `visit` in canonical order with each object, and with each change
/// that has no object in the block. Unless `visits_rest` is set, the objects after the last change are not visited.
/// Fails if the objects are out of order or an object occurs twice.
#[inline]
pub(super) fn merge_changes<'c>(
    block: &Block<'_>,
    mut changes: &'c [Change],
    visits_rest: bool,
    mut visit: impl FnMut(MergedObject<'c>),
) -> FormatResult<()> {
    let (mut objects, mut last) = (block.walk(), None);
    while (visits_rest || !changes.is_empty())
        && let Some(key) = objects.next_sort_key()?
    {
        check_order(last, key)?;
        last = Some(key);
        while let Some((change, rest)) = changes.split_first()
            && change.key < key
        {
            visit(MergedObject::Absent(change));
            changes = rest;
        }
        match changes.split_first() {
            Some((change, rest)) if change.key == key => {
                changes = rest;
                let age = objects.version_info()?;
                let timestamp = (age.timestamp != 0).then(|| block.units.seconds(age.timestamp));
                let is_newer = change.replaces(age.version_number(), timestamp);
                visit(if is_newer {
                    MergedObject::Replaced(change)
                } else {
                    MergedObject::Kept(key, Some(change))
                });
            }
            _ => visit(MergedObject::Kept(key, None)),
        }
    }
    changes
        .iter()
        .for_each(|change| visit(MergedObject::Absent(change)));
    Ok(())
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
