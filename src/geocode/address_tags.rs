//! The tags of addresses.

use super::folding::is_same_name;
use super::item::nonblank_tag;
use super::leaf::LeafItem;
use crate::error::FormatResult;

/// The keys of house numbers. Countries with two numbers per house use the second and the third key.
pub(super) const NUMBERS: [&str; 3] = [
    "addr:housenumber",
    "addr:conscriptionnumber",
    "addr:streetnumber",
];
/// The keys of the tags that replace a house number.
const NAMES: [&str; 2] = ["addr:housename", "addr:block_number"];

/// The keys of the tags that an address inherits from its area or its interpolation way, in addition to the street.
pub(super) const SHARED: [&str; 10] = [
    "addr:postcode",
    "addr:city",
    "addr:suburb",
    "addr:neighbourhood",
    "addr:quarter",
    "addr:hamlet",
    "addr:country",
    "addr:state",
    "addr:province",
    "addr:county",
];

/// Values, in lower case, that say that there is no house number. The OSM wiki page "Key:nohousenumber" lists the usual
/// values of several countries.
const NO_NUMBERS: [&str; 24] = [
    "no",
    "none",
    "null",
    "nil",
    "yes",
    "unknown",
    "fixme",
    "n/a",
    "no number",
    "unnumbered",
    "ohne",
    "s/n",
    "s.n.",
    "s.n",
    "s/n.",
    "sn",
    "snc",
    "s.n.c.",
    "sin número",
    "sem número",
    "senza numero",
    "б/н",
    "без номера",
    "нет",
];

/// Whether a value can be a house number, a house name or a block number: it has a letter or a digit, and is not a word
/// for a missing number.
pub(crate) fn may_be_house_number(value: &str) -> bool {
    let value = value.trim();
    value.bytes().any(|byte| byte.is_ascii_digit())
        || value.contains(char::is_alphanumeric)
            && !NO_NUMBERS.contains(&value.to_lowercase().as_str())
}

/// Returns the house number in the tags of an address.
pub(super) fn house_number(tags: &[(&str, &str)]) -> Option<String> {
    let [number, conscription, street] = NUMBERS.map(|key| nonblank_tag(tags, key));
    let in_parts = || match (conscription, street) {
        (Some(conscription), Some(street)) => Some(format!("{conscription}/{street}")),
        (one, other) => one.or(other).map(str::to_owned),
    };
    number.map(str::to_owned).or_else(in_parts)
}

/// Whether tags have an address, which means a house number or a tag that replaces a house number.
pub(super) fn is_address(tags: &[(&str, &str)]) -> bool {
    let mut keys = NUMBERS.iter().chain(&NAMES);
    keys.any(|key| nonblank_tag(tags, key).is_some())
}

/// Whether an item has, for one of the keys, a tag whose value is not blank.
pub(super) fn has_nonblank_value(item: &LeafItem<'_>, keys: &[&str]) -> FormatResult<bool> {
    for key in keys {
        if item.tag(key)?.is_some_and(|value| !value.trim().is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the tags of an item have an address, as defined by [`is_address`].
pub(super) fn is_address_item(item: &LeafItem<'_>) -> FormatResult<bool> {
    Ok(has_nonblank_value(item, &NUMBERS)? || has_nonblank_value(item, &NAMES)?)
}

/// Whether two addresses have the same street, or one of them has none.
pub(super) fn is_same_street(one: &[(&str, &str)], other: &[(&str, &str)]) -> bool {
    let [one, other] = [one, other].map(|tags| nonblank_tag(tags, "addr:street"));
    one.zip(other)
        .is_none_or(|(one, other)| is_same_name(one, other))
}

/// Whether two addresses have the same house number and, if both have a street, the same street.
pub(super) fn is_same_address(one: &[(&str, &str)], other: &[(&str, &str)]) -> bool {
    is_same_street(one, other) && house_number(one) == house_number(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_missing_number_are_not_house_numbers() {
        for value in [
            "",
            " ",
            "\t",
            "no",
            "No ",
            "NONE",
            "-",
            "?",
            "S/N",
            "б/н",
            "Без номера",
        ] {
            assert!(!may_be_house_number(value), "{value}");
        }
        for value in ["1", "12b", "A", "0", "no 5", "½", "Nova", "七", "s/n 3"] {
            assert!(may_be_house_number(value), "{value}");
        }
    }
}
