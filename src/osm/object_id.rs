use super::kind::ObjectKind;
use super::order::{TypeThenId, id_from_rank};
use std::fmt;

/// The kind and the id of an object, written `n17`, `w-4`, `r8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId {
    /// The kind.
    pub kind: ObjectKind,
    /// The id.
    pub id: i64,
}

impl ObjectId {
    /// Returns the id of the object with the given sort key.
    pub(crate) const fn from_sort_key((kind, rank): TypeThenId) -> Self {
        let id = id_from_rank(rank);
        Self { kind, id }
    }

    /// Parses an id such as `n17`, `w-4` or `r8`, also in the forms `way/17` and
    /// `https://www.openstreetmap.org/way/17`. In a web address, text after the id is ignored (`/history`, `?…`,
    /// `#map=…`). A number without a kind is the id of an object of the kind `default`. The error is a message that
    /// quotes `text`.
    pub fn parse(text: &str, default: ObjectKind) -> Result<Self, String> {
        let bad = || format!("'{text}' is not an id like n17, w-4 or r8");
        let is_address = is_address(text);
        let mut parts = path_parts(text);
        let kind = if is_address {
            parts.find_map(ObjectKind::from_word)
        } else {
            parts.next().and_then(ObjectKind::from_word)
        };
        let id = if let Some(kind) = kind {
            let id = parts.next().and_then(|digits| digits.parse().ok());
            let rest: Vec<&str> = parts.collect();
            id.filter(|_| is_address || is_history_path(&rest))
                .map(|id| Self { kind, id })
        } else {
            let kind = text.chars().next().and_then(ObjectKind::from_letter);
            let digits = kind.map_or(Some(text), |_| text.get(1..));
            let id = digits.and_then(|digits| digits.parse().ok());
            id.map(|id| Self {
                kind: kind.unwrap_or(default),
                id,
            })
        };
        id.ok_or_else(bad)
    }
}

/// Whether a text is the address of a web page.
fn is_address(text: &str) -> bool {
    let is_host = |host: &&str| text.starts_with(*host);
    text.contains("://")
        || ["www.", "openstreetmap.org/", "osm.org/"]
            .iter()
            .any(is_host)
}

/// Returns the parts of an address, or of a path such as `way/17/history`, without the query and the fragment.
fn path_parts(text: &str) -> impl Iterator<Item = &str> {
    let end = text.find(['#', '?']).unwrap_or(text.len());
    text[..end].split('/').filter(|part| !part.is_empty())
}

/// Whether `parts`, the parts of a path after an object's id, are empty or name the object's history or one of its
/// versions.
fn is_history_path(parts: &[&str]) -> bool {
    match parts {
        [] | ["history"] => true,
        ["history", version] => version.parse::<u32>().is_ok(),
        _ => false,
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.letter(), self.id)
    }
}

/// Parses the ids in texts that a user gives. Ids are separated by spaces, tabs, commas, semicolons, slashes, vertical
/// bars, or the ends of texts. [`ObjectId::parse`] parses each id. The name of a kind as a word of its own, as in `way
/// 17 18`, sets the kind of the numbers after it. Numbers before the first name have the kind `default`.
pub fn parse_object_ids<'t>(
    texts: impl IntoIterator<Item = &'t str>,
    default: ObjectKind,
) -> Result<Vec<ObjectId>, String> {
    let (mut ids, mut kind) = (Vec::new(), default);
    // The last name of a kind, if no id has followed it yet.
    let mut name = None;
    for text in texts {
        let words = text.split([' ', '\t', ',', ';', '|']);
        for word in words.filter(|word| !word.is_empty()) {
            if let Some(named) = ObjectKind::from_word(word) {
                (kind, name) = (named, Some(word));
                continue;
            }
            // A word is one id, or several with slashes between them.
            match ObjectId::parse(word, kind) {
                Ok(id) => ids.push(id),
                Err(error) if is_address(word) => return Err(error),
                Err(_) => {
                    for part in word.split('/').filter(|part| !part.is_empty()) {
                        ids.push(ObjectId::parse(part, kind)?);
                    }
                }
            }
            name = None;
        }
    }
    match name {
        Some(name) => Err(format!("'{name}' is not an id like n17, w-4 or r8")),
        None => Ok(ids),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ObjectKind::{Node, Relation, Way};

    #[test]
    fn lists_of_ids_with_and_without_letters_are_parsed() {
        let ids = parse_object_ids(["n17 w-4,r8|9;"], Way).unwrap();
        let named: Vec<String> = ids.iter().map(ObjectId::to_string).collect();
        assert_eq!(named, ["n17", "w-4", "r8", "w9"]);
        assert_eq!(
            ids.iter().map(|id| id.kind).collect::<Vec<_>>(),
            [Node, Way, Relation, Way]
        );
    }

    #[test]
    fn ids_that_fit_64_bits_are_parsed_and_other_texts_are_not() {
        for id in [i64::MIN, 0, i64::MAX] {
            assert_eq!(ObjectId::parse(&format!("r{id}"), Node).unwrap().id, id);
        }
        for text in ["", "n", "x1", "n1.5", "n9223372036854775808", "nn1", "ä1"] {
            assert!(ObjectId::parse(text, Node).is_err(), "{text}");
        }
    }

    #[test]
    fn ids_are_read_as_people_write_them() {
        for (texts, expected) in [
            (&["way/123"][..], "w123"),
            (&["way", "123"], "w123"),
            (&["way 1 2", "nodes", "3"], "w1 w2 n3"),
            (&["n1/w2/3"], "n1 w2 n3"),
            (&["relation/62422/history"], "r62422"),
            (&["node/1/history/2"], "n1"),
            (&["https://www.openstreetmap.org/way/123"], "w123"),
            (&["http://osm.org/relation/5/"], "r5"),
            (
                &["openstreetmap.org/node/7/history#map=18/47.1/9.5&layers=N"],
                "n7",
            ),
            (
                &["https://api.openstreetmap.org/api/0.6/way/9/full?x=y"],
                "w9",
            ),
            (&["https://www.openstreetmap.org/browse/node/4,w5"], "n4 w5"),
        ] {
            let ids = parse_object_ids(texts.iter().copied(), Node).unwrap();
            let named: Vec<String> = ids.iter().map(ObjectId::to_string).collect();
            assert_eq!(named.join(" "), expected, "{texts:?}");
        }
        for text in [
            "way",
            "way/",
            "way/x",
            "way/1/2",
            "https://www.openstreetmap.org/user/17",
            "https://www.openstreetmap.org/changeset/17",
        ] {
            assert!(parse_object_ids([text], Node).is_err(), "{text}");
        }
    }
}
