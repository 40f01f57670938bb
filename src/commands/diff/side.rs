//! The two sides of a comparison.

use crate::error::FormatError;
use crate::pbf::{Block, Object, RawElement};

/// An object that is compared, with its location as the file stores it.
#[derive(Default)]
pub(super) struct Side<'a> {
    pub object: Object<'a>,
    /// Latitude and longitude of a node in nanodegrees, which may be finer than the location in `object`.
    pub nano_location: Option<(i64, i64)>,
    /// Whether the location in `object` is exactly the location in the file, without rounding.
    pub is_exact: bool,
}

impl<'a> Side<'a> {
    /// Replaces the object with another object, which is in `block`.
    pub(super) fn fill(
        &mut self,
        object: &RawElement<'a>,
        block: &'a Block<'a>,
    ) -> Result<(), FormatError> {
        self.nano_location = object.nano_location(&block.units)?;
        self.is_exact = object.has_exact_location(&block.units)?;
        self.object.fill(object, block)
    }
}

/// Whether two lists have the same tags, in any order.
pub(super) fn same_tags(old: &[(&str, &str)], new: &[(&str, &str)]) -> bool {
    let sorted = |tags: &[_]| {
        let mut tags = tags.to_vec();
        tags.sort_unstable();
        tags
    };
    old.len() == new.len() && sorted(old) == sorted(new)
}
