//! Limits for the objects of a text, and for the lists of a change set.

use super::Draft;
use crate::osm::{ObjectKind, StringPool};
use crate::pbf::MAX_PARTS;

/// Fails if an object has more than [`MAX_PARTS`] tags, nodes or members. `lens` are the lengths of the lists of
/// strings of tags, of references and of locations.
pub(super) fn check_parts(draft: &Draft, lens: [usize; 3]) -> Result<(), String> {
    let [tags, refs, _] = lens;
    let of_refs = match draft.kind {
        ObjectKind::Node | ObjectKind::Way => "nodes",
        ObjectKind::Relation => "members",
    };
    let parts = [
        // A key and a value each.
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

/// Fails if a list, or the total text of the strings, is longer than 32 bits can address.
pub(super) fn check_lens(strings: &StringPool, lens: [usize; 3]) -> Result<(), String> {
    if strings.text_len() > u32::MAX as usize {
        return Err("more than 4 GB of distinct text".to_owned());
    }
    if lens.iter().all(|len| *len <= u32::MAX as usize) {
        Ok(())
    } else {
        Err("more tags, refs or members than 32 bits can count".to_owned())
    }
}
