use super::kind::ObjectKind;
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
    /// Parses an id such as `n17`, `w-4` or `r8`. A number without a letter is the id of an object of the kind
    /// `default`. The error is a message that quotes `text`.
    pub fn parse(text: &str, default: ObjectKind) -> Result<Self, String> {
        let kind = text.chars().next().and_then(ObjectKind::from_letter);
        let digits = if kind.is_some() {
            text.get(1..)
        } else {
            Some(text)
        };
        let id = digits.and_then(|digits| digits.parse().ok());
        id.map(|id| Self {
            kind: kind.unwrap_or(default),
            id,
        })
        .ok_or_else(|| format!("'{text}' is not an id like n17, w-4 or r8"))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.letter(), self.id)
    }
}

/// Parses the ids in a command-line argument. They are separated by spaces, tabs, commas, semicolons, slashes or
/// vertical bars. Each id is parsed as by [`ObjectId::parse`].
pub fn parse_object_ids(text: &str, default: ObjectKind) -> Result<Vec<ObjectId>, String> {
    text.split([' ', '\t', ',', ';', '/', '|'])
        .filter(|id| !id.is_empty())
        .map(|id| ObjectId::parse(id, default))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ObjectKind::{Node, Relation, Way};

    #[test]
    fn ids_are_read_with_and_without_letter_and_several_at_a_time() {
        let ids = parse_object_ids("n17 w-4,r8|9;", Way).unwrap();
        let named: Vec<String> = ids.iter().map(ObjectId::to_string).collect();
        assert_eq!(named, ["n17", "w-4", "r8", "w9"]);
        assert_eq!(
            ids.iter().map(|id| id.kind).collect::<Vec<_>>(),
            [Node, Way, Relation, Way]
        );
    }

    #[test]
    fn the_ends_of_the_range_are_ids_and_what_lies_beyond_is_not() {
        for id in [i64::MIN, 0, i64::MAX] {
            assert_eq!(ObjectId::parse(&format!("r{id}"), Node).unwrap().id, id);
        }
        for text in ["", "n", "x1", "n1.5", "n9223372036854775808", "nn1", "ä1"] {
            assert!(ObjectId::parse(text, Node).is_err(), "{text}");
        }
    }
}
