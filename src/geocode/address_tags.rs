//! The tags of addresses.

use super::folding::is_same_name;
use super::item::text_tag;
use super::leaf::LeafItem;
use crate::error::FormatError;

/// The keys of house numbers. Countries with two numbers per house use the second and the third key.
pub(super) const NUMBERS: [&str; 3] = [
    "addr:housenumber",
    "addr:conscriptionnumber",
    "addr:streetnumber",
];
/// The keys of the tags that replace a house number.
const NAMES: [&str; 2] = ["addr:housename", "addr:block_number"];

/// Returns the house number in the tags of an address.
pub(super) fn house_number(tags: &[(&str, &str)]) -> Option<String> {
    let [number, conscription, street] = NUMBERS.map(|key| text_tag(tags, key));
    let in_parts = || match (conscription, street) {
        (Some(conscription), Some(street)) => Some(format!("{conscription}/{street}")),
        (one, other) => one.or(other).map(str::to_owned),
    };
    number.map(str::to_owned).or_else(in_parts)
}

/// Whether tags have an address, which means a house number or a tag that replaces a house number.
pub(super) fn is_address(tags: &[(&str, &str)]) -> bool {
    let mut keys = NUMBERS.iter().chain(&NAMES);
    keys.any(|key| text_tag(tags, key).is_some())
}

/// Whether an item has, for one of the keys, a tag whose value is not blank.
pub(super) fn has_text(item: &LeafItem<'_>, keys: &[&str]) -> Result<bool, FormatError> {
    for key in keys {
        if item.tag(key)?.is_some_and(|value| !value.trim().is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the tags of an item have an address, as defined by [`is_address`].
pub(super) fn item_is_address(item: &LeafItem<'_>) -> Result<bool, FormatError> {
    Ok(has_text(item, &NUMBERS)? || has_text(item, &NAMES)?)
}

/// Whether two addresses have the same house number and, if both have a street, the same street.
pub(super) fn is_same_address(one: &[(&str, &str)], other: &[(&str, &str)]) -> bool {
    let [one_street, other_street] = [one, other].map(|tags| text_tag(tags, "addr:street"));
    let is_same = one_street
        .zip(other_street)
        .is_none_or(|(one, other)| is_same_name(one, other));
    is_same && house_number(one) == house_number(other)
}
