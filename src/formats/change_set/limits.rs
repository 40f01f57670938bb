//! The limits of the lists of a change set.

use crate::osm::StringPool;

/// Fails if a list, or the total text of the strings, is longer than 32 bits can address.
pub(super) fn check_lens_fit_u32(strings: &StringPool, lens: [usize; 3]) -> Result<(), String> {
    if strings.text_len() > u32::MAX as usize {
        return Err("more than 4 GB of distinct text".to_owned());
    }
    if lens.iter().all(|len| *len <= u32::MAX as usize) {
        Ok(())
    } else {
        Err("more tags, refs or members than 32 bits can count".to_owned())
    }
}
