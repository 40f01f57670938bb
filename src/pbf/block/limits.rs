//! The largest objects that are held in an expanded form.
//!
//! A block of 32 MiB has room for an object with 32 million nodes of a byte each, which take ten to a hundred times as
//! much where they have numbers, locations and strings. The API of OpenStreetMap allows 2,000 nodes.

use crate::error::FormatError;
use crate::osm::ObjectKind;
use crate::pbf::wire::count_varints;

/// The maximum number of nodes of a way, of members of a relation, and of tags of an object that is held in an expanded
/// form.
pub(crate) const MAX_PARTS: usize = 2_000_000;

/// Fails if the packed run `parts`, which belongs to an object, has more than [`MAX_PARTS`] parts, of `each` values.
#[inline]
pub(in crate::pbf) fn check_parts(
    parts: &[u8],
    each: usize,
    name: &str,
    kind: ObjectKind,
    id: i64,
) -> Result<(), FormatError> {
    // A value takes a byte or more.
    if parts.len() <= MAX_PARTS * each {
        Ok(())
    } else {
        check_many(count_varints(parts) / each, name, kind, id)
    }
}

#[cold]
fn check_many(count: usize, name: &str, kind: ObjectKind, id: i64) -> Result<(), FormatError> {
    if count <= MAX_PARTS {
        Ok(())
    } else {
        Err(FormatError::with(format!(
            "{kind} {id} has {count} {name}: more than 2,000,000 of an object are not held in memory; leave it out with \
         `pbfhogg removeid`"
        )))
    }
}
