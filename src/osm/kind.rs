use serde::Serialize;
use std::fmt;

/// The three kinds of OpenStreetMap objects, in canonical order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// A point with a coordinate.
    Node,
    /// An ordered list of node references.
    Way,
    /// An ordered list of members with roles.
    Relation,
}

impl ObjectKind {
    /// All kinds, in canonical order.
    pub const ALL: [Self; 3] = [Self::Node, Self::Way, Self::Relation];

    /// Returns the number of the kind in `Relation.MemberType` of osmformat.proto and in per-blob indexes: 0 for
    /// nodes, 1 for ways, 2 for relations.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the kind with the given [`number`](Self::number); `None` if there is none.
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Node),
            1 => Some(Self::Way),
            2 => Some(Self::Relation),
            _ => None,
        }
    }

    /// Returns the name of the kind in OSM XML: "node", "way" or "relation".
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Way => "way",
            Self::Relation => "relation",
        }
    }

    /// Returns the letter before the ids of objects of this kind: n, w or r.
    pub const fn letter(self) -> char {
        match self {
            Self::Node => 'n',
            Self::Way => 'w',
            Self::Relation => 'r',
        }
    }

    /// Returns the kind with the given [`letter`](Self::letter); `None` if there is none.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.letter() == letter)
    }

    /// Returns the kind with the given name, plural or letter, in upper or lower case; `None` if there is none.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| {
            let letter = kind.letter().to_string();
            let names = [kind.name(), kind.plural(), letter.as_str()];
            names.iter().any(|name| word.eq_ignore_ascii_case(name))
        })
    }

    /// Returns the plural of the name: "nodes", "ways" or "relations".
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::Way => "ways",
            Self::Relation => "relations",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of kinds, such as those found in one blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct KindSet(u8);

impl KindSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
    /// Nodes, ways and relations.
    pub const ALL: Self = Self(7);

    /// Returns the set that contains one kind.
    pub const fn of(kind: ObjectKind) -> Self {
        Self(1 << kind.number())
    }

    /// Returns the set with the given bits (1 nodes, 2 ways, 4 relations); `None` if other bits are set.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits <= 7 { Some(Self(bits)) } else { None }
    }

    /// Returns the bits: 1 nodes, 2 ways, 4 relations.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Adds a kind.
    pub fn insert(&mut self, kind: ObjectKind) {
        self.0 |= 1 << kind.number();
    }

    /// Returns the kinds that are in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the kinds that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the kind is in the set.
    pub const fn contains(self, kind: ObjectKind) -> bool {
        self.0 & (1 << kind.number()) != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the only kind of the set; `None` if the set is empty or has several kinds.
    pub fn single(self) -> Option<ObjectKind> {
        ObjectKind::ALL
            .into_iter()
            .find(|&kind| Self::of(kind) == self)
    }

    /// Returns the first kind of the set in canonical order; `None` if the set is empty.
    pub fn first(self) -> Option<ObjectKind> {
        ObjectKind::ALL
            .into_iter()
            .find(|&kind| self.contains(kind))
    }

    /// Returns the last kind of the set in canonical order; `None` if the set is empty.
    pub fn last(self) -> Option<ObjectKind> {
        ObjectKind::ALL
            .into_iter()
            .rev()
            .find(|&kind| self.contains(kind))
    }
}

impl FromIterator<ObjectKind> for KindSet {
    fn from_iter<T: IntoIterator<Item = ObjectKind>>(kinds: T) -> Self {
        kinds
            .into_iter()
            .fold(Self::EMPTY, |set, kind| set.union(Self::of(kind)))
    }
}

impl fmt::Display for KindSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for kind in ObjectKind::ALL
            .into_iter()
            .filter(|&kind| self.contains(kind))
        {
            write!(f, "{separator}{}", kind.plural())?;
            separator = "+";
        }
        if self.is_empty() {
            f.write_str("nothing")
        } else {
            Ok(())
        }
    }
}
