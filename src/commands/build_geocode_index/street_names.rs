//! The names of streets. A street may have its name under another key than `name`.

use crate::geocode::{entries, nonblank_tag};
use crate::osm::is_language_tag;

/// The keys of names besides `name`, in the order in which they are tried if `name` is missing.
const OTHER_NAMES: [&str; 11] = [
    "name:left",
    "name:right",
    "name:forward",
    "name:backward",
    "official_name",
    "loc_name",
    "alt_name",
    "short_name",
    "nat_name",
    "reg_name",
    "int_name",
];
/// The rank of a name in a language, such as `name:de`. It follows the ranks of [`OTHER_NAMES`].
const IN_LANGUAGE: usize = OTHER_NAMES.len();
/// The rank of variants of `name` and of [`OTHER_NAMES`], such as `alt_name:de` and `name_1`.
const FURTHER: usize = IN_LANGUAGE + 1;

/// Returns the rank of a key among the keys of names besides `name`; `None` for `name` and for keys of other tags.
fn rank_of_name_key(key: &str) -> Option<usize> {
    if let Some(rank) = OTHER_NAMES.iter().position(|name| *name == key) {
        return Some(rank);
    }
    if let Some(language) = key.strip_prefix("name:")
        && is_language_tag(language)
    {
        return Some(IN_LANGUAGE);
    }
    let is_further = |name: &str| {
        key.strip_prefix(name).is_some_and(|rest| {
            let number = rest.strip_prefix('_').unwrap_or_default();
            rest.strip_prefix(':').is_some_and(is_language_tag) || number.parse::<u8>().is_ok()
        })
    };
    let mut names = std::iter::once("name").chain(OTHER_NAMES);
    names.any(is_further).then_some(FURTHER)
}

/// Whether a tag with this key is a name of a street.
pub(super) fn is_street_name_key(key: &str) -> bool {
    key == "name" || rank_of_name_key(key).is_some()
}

/// Returns the `name` in the tags of a street. If there is none, returns the other name whose key has the lowest rank.
pub(super) fn street_name<'a>(tags: &[(&'a str, &'a str)]) -> Option<&'a str> {
    let other = || {
        let names = tags.iter().filter_map(|&(key, list)| {
            let name = entries(list).next()?;
            Some((rank_of_name_key(key)?, key, name))
        });
        names.min().map(|(_, _, name)| name)
    };
    nonblank_tag(tags, "name").or_else(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_street_without_a_name_has_its_best_other_name() {
        for (tags, name) in [
            (&[("name", "A"), ("name:left", "B")][..], Some("A")),
            (&[("name", " "), ("name:right", "B")], Some("B")),
            (&[("name:fr", "F"), ("name:ar", "R")], Some("R")),
            (&[("name:sr-Latn", "L")], Some("L")),
            (&[("name_1", "B"), ("alt_name", ";C; D")], Some("C")),
            (
                &[("name:etymology:wikidata", "Q1"), ("old_name", "O")],
                None,
            ),
            (&[("tiger:name_base", "B"), ("noname", "yes")], None),
            (&[("name:pronunciation", "B"), ("name:fr", "")], None),
            // `de-` and `sr:Latn` are not valid language tags.
            (&[("name:de-", "B"), ("name:sr:Latn", "C")], None),
        ] {
            assert_eq!(street_name(tags), name, "{tags:?}");
        }
    }
}
