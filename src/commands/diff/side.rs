//! The two sides of a comparison, and the rules by which they count as equal.

use super::Equality;
use crate::error::FormatResult;
use crate::pbf::{Block, Object, ObjectBody, RawElement};

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
    ) -> FormatResult<()> {
        self.nano_location = object.nano_location(&block.units)?;
        self.is_exact = object.has_exact_location(&block.units)?;
        self.object.fill(object, block)
    }
}

/// Whether two lists have the same tags, in any order.
pub(super) fn have_same_tags(old: &[(&str, &str)], new: &[(&str, &str)]) -> bool {
    let sorted = |tags: &[_]| {
        let mut tags = tags.to_vec();
        tags.sort_unstable();
        tags
    };
    old.len() == new.len() && sorted(old) == sorted(new)
}

impl Equality {
    /// Whether two objects are equal according to this set of rules, apart from locations that ways store. The order of
    /// tags matters only if `exact` is set.
    pub(super) fn holds_between(self, old: &Side<'_>, new: &Side<'_>, exact: bool) -> bool {
        let has_equal_location = old.nano_location == new.nano_location;
        let (old, new) = (&old.object, &new.object);
        let (one, two) = (&old.info, &new.info);
        let metadata = !self.metadata
            || (are_equal_if_known(one.version, two.version)
                && are_equal_if_known(one.timestamp, two.timestamp)
                && (self.ignore_changeset || are_equal_if_known(one.changeset, two.changeset))
                && (self.ignore_uid || are_equal_if_known(one.uid, two.uid))
                && (self.ignore_user || are_equal_if_known(one.user, two.user)));
        metadata
            && one.visible == two.visible
            && has_equal_location
            && match (&old.body, &new.body) {
                (ObjectBody::Way { refs: one, .. }, ObjectBody::Way { refs: two, .. }) => {
                    one == two
                }
                (ObjectBody::Relation { members: one }, ObjectBody::Relation { members: two }) => {
                    one == two
                }
                _ => true,
            }
            && (old.tags == new.tags || (!exact && have_same_tags(&old.tags, &new.tags)))
    }
}

/// Whether two values are equal. Returns `true` if either value is missing.
fn are_equal_if_known<T: PartialEq>(old: Option<T>, new: Option<T>) -> bool {
    old.zip(new).is_none_or(|(old, new)| old == new)
}
