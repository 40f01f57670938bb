//! Limits for the objects that are decoded to lists in memory.
//!
//! A block of 32 MiB can contain a way with 32 million nodes, each encoded in one byte. Decoded to numbers, locations
//! and strings, these nodes take ten to a hundred times as much memory as the block. The API of OpenStreetMap allows
//! 2,000 nodes per way.

use crate::error::{Advice, FormatError, FormatResult};
use crate::osm::ObjectKind;
use crate::pbf::wire::count_varints;

/// The maximum number of nodes of a way, members of a relation, or tags of an object, if the object is decoded to lists
/// in memory.
pub(crate) const MAX_PARTS: usize = 2_000_000;

/// Fails if the packed run `parts` of an object has more than [`MAX_PARTS`] parts. `each` is the number of values per
/// part. It is 2 for tags whose keys and values alternate in one run, and otherwise 1.
#[inline]
pub(in crate::pbf) fn check_parts(
    parts: &[u8],
    each: usize,
    name: &str,
    kind: ObjectKind,
    id: i64,
) -> FormatResult<()> {
    // A value has at least one byte, so a run of at most this many bytes cannot have too many values. Its values need
    // not be counted.
    if parts.len() <= MAX_PARTS * each {
        Ok(())
    } else {
        check_part_count(count_varints(parts) / each, name, kind, id)
    }
}

#[cold]
fn check_part_count(count: usize, name: &str, kind: ObjectKind, id: i64) -> FormatResult<()> {
    if count <= MAX_PARTS {
        Ok(())
    } else {
        let cause = format!(
            "{kind} {id} has {count} {name}: more than 2,000,000 of an object are not held in memory"
        );
        Err(FormatError::with(cause).advise(Advice::LeaveObjectOut))
    }
}
