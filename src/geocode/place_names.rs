//! Comparing the names of cities and boundaries.
//!
//! An object can have several names: the value of `name`, names in particular languages, and alternative names. One
//! name may have several spellings: "Biel/Bienne" and "Bruxelles - Brussel" are two spellings each, and `alt_name` may
//! be a list.

use super::folding::fold_name;
use crate::osm::is_language_tag;

/// The keys of names, besides the `name:*` keys of languages.
const NAMES: [&[u8]; 6] = [
    b"name",
    b"alt_name",
    b"official_name",
    b"short_name",
    b"int_name",
    b"loc_name",
];

/// Whether the value of a tag with this key is a name of the object. Keys such as `name:prefix` and `name:etymology`
/// have other values.
pub(super) fn is_name(key: &[u8]) -> bool {
    NAMES.contains(&key) || key.strip_prefix(b"name:").is_some_and(is_language_tag)
}

/// Returns a name, and its parts if it is a list or consists of names in several languages.
fn name_and_parts(name: &str) -> impl Iterator<Item = &str> {
    let parts = name.split([';', '/']);
    let parts = parts.flat_map(|part| part.split(" - "));
    let parts = parts.flat_map(|part| part.split(" – ")).map(str::trim);
    let parts = parts.filter(move |part| part.len() < name.trim().len());
    std::iter::once(name).chain(parts)
}

/// Returns the normal forms of a name and of its parts. Spellings of the same name share a normal form.
pub(super) fn normal_forms(name: &str) -> impl Iterator<Item = String> {
    name_and_parts(name)
        .map(fold_name)
        .filter(|name| !name.is_empty())
}

/// The first letter or digit of a name. The first letters of two spellings of a name may differ in a diacritic, but
/// never in their script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Initial {
    Ascii(char),
    /// A Latin letter that is not in ASCII.
    Latin,
    Other,
}

impl Initial {
    fn of(name: &str) -> Self {
        let first = name.chars().find(|char| char.is_alphanumeric());
        match first.and_then(|first| first.to_lowercase().next()) {
            Some(first) if first.is_ascii() => Self::Ascii(first),
            Some(..'\u{370}' | '\u{1e00}'..'\u{1f00}') => Self::Latin,
            _ => Self::Other,
        }
    }

    /// Whether names with these initials can be spellings of the same name.
    fn may_match(self, other: Self) -> bool {
        match (self, other) {
            (Self::Ascii(one), Self::Ascii(other)) => one == other,
            (Self::Other, Self::Other) => true,
            (Self::Other, _) | (_, Self::Other) => false,
            (Self::Latin, _) | (_, Self::Latin) => true,
        }
    }
}

/// The names of a place, for comparisons with the names of other objects.
#[derive(Debug, Default)]
pub(super) struct PlaceNames {
    /// The initial and the normal form of each spelling, in order.
    spellings: Vec<(Initial, String)>,
}

impl PlaceNames {
    pub(super) fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let names = names.into_iter().flat_map(name_and_parts);
        let forms = names.map(|name| (Initial::of(name), fold_name(name)));
        let mut spellings: Vec<(Initial, String)> =
            forms.filter(|(_, name)| !name.is_empty()).collect();
        spellings.sort_unstable();
        spellings.dedup();
        Self { spellings }
    }

    /// Collects the names in the tags of an object.
    pub(super) fn of_tags(tags: &[(&str, &str)]) -> Self {
        Self::of(names_in(tags))
    }

    /// Whether a name, or a part of it, is a spelling of one of the place's names.
    pub(super) fn has(&self, name: &str) -> bool {
        name_and_parts(name).any(|spelling| {
            let initial = Initial::of(spelling);
            // Most names differ in their first letters. Comparing the initials first is faster than folding every name.
            let mut similar = self
                .spellings
                .iter()
                .filter(|(own, _)| own.may_match(initial))
                .peekable();
            similar.peek().is_some() && {
                let wanted = fold_name(spelling);
                similar.any(|(_, own)| *own == wanted)
            }
        })
    }

    /// Whether any of `names`, or a part of one of them, is a spelling of one of the place's names.
    pub(super) fn has_any<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        names.into_iter().any(|name| self.has(name))
    }
}

/// Returns the names in the tags of an object.
pub(super) fn names_in<'t>(tags: &'t [(&str, &'t str)]) -> impl Iterator<Item = &'t str> {
    let names = tags.iter().filter(|(key, _)| is_name(key.as_bytes()));
    names.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_if_any_of_its_parts_matches() {
        for (one, other) in [
            ("Bruxelles - Brussel", "Brussel"),
            ("Bruxelles – Brussel", "BRUXELLES"),
            ("Biel/Bienne", "Bienne"),
            ("Košice", "Kosice"),
            ("Ośno; Drossen", "drossen"),
            ("Saint-Denis", "St. Denis"),
            ("Åbo", "Abo"),
            ("Москва", "МОСКВА"),
        ] {
            assert!(PlaceNames::of([one]).has(other), "{one}, {other}");
            assert!(PlaceNames::of([other]).has(one), "{one}, {other}");
        }
        for (one, other) in [
            ("Vitoria-Gasteiz", "Vitoria"),
            ("Kosice", "Kosice I"),
            ("Berlin", "Bernau bei Berlin"),
            ("Minsk", "Минск"),
            ("?", "!"),
            ("", ""),
        ] {
            assert!(!PlaceNames::of([one]).has(other), "{one}, {other}");
        }
    }

    #[test]
    fn keys_tell_which_tags_are_names() {
        for key in [
            "name",
            "name:de",
            "name:sr-Latn",
            "name:zh_pinyin",
            "short_name",
        ] {
            assert!(is_name(key.as_bytes()), "{key}");
        }
        for key in [
            "name:prefix",
            "name:etymology:wikidata",
            "name:en:pronunciation",
            "name:de-a b",
            "name:de-",
            "name:de-pronunciation",
            "name:EN",
            "name:",
            "place",
        ] {
            assert!(!is_name(key.as_bytes()), "{key}");
        }
    }
}
