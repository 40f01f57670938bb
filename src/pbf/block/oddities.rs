//! Looks for objects that can be read, but that other programs refuse or misunderstand.

use super::dense::check_tags;
use super::messages::{NodeMessage, RelationMessage, WayRefs};
use super::parsed::{Block, BlockMessage};
use super::string_faults::is_inexpressible;
use crate::error::FormatError;
use crate::osm::ObjectKind;

/// Objects of a block that can be read, but that other programs refuse or misunderstand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Oddities {
    /// Whether a tag has no key.
    pub has_empty_keys: bool,
    /// The number of ways with fewer than two nodes.
    pub short_ways: u64,
    /// Whether a string has characters that XML 1.0 does not allow.
    pub has_inexpressible: bool,
    /// Whether a node is beyond the earth.
    pub has_outside: bool,
}

impl Block<'_> {
    /// Looks for objects that can be read, but that other programs refuse or misunderstand.
    pub(crate) fn oddities(&self) -> Result<Oddities, FormatError> {
        let mut found = Oddities {
            has_inexpressible: self.strings.iter().any(is_inexpressible),
            ..Oddities::default()
        };
        let empty: Vec<u32> = (0..)
            .zip(self.strings.iter())
            .filter(|(_, string)| string.is_empty())
            .map(|(index, _)| index)
            .collect();
        self.for_each_node_outside(|_, _, _| found.has_outside = true)?;
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            let keys = match message {
                BlockMessage::Dense(dense) => {
                    let mut is_empty = |key| found.has_empty_keys |= is_among(key, &empty);
                    check_tags(dense.keys_vals.values(), dense.len(), &mut is_empty)?;
                    continue;
                }
                BlockMessage::Single(ObjectKind::Node, bytes) => NodeMessage::parse(bytes)?.keys,
                BlockMessage::Single(ObjectKind::Way, bytes) => {
                    let way = WayRefs::parse(bytes)?;
                    found.short_ways += u64::from(way.refs.count() < 2);
                    way.keys
                }
                BlockMessage::Single(ObjectKind::Relation, bytes) => {
                    RelationMessage::parse(bytes)?.keys
                }
            };
            let mut keys = keys.values();
            while !keys.is_done() {
                found.has_empty_keys |= is_among(keys.read()?, &empty);
            }
        }
        Ok(found)
    }
}

/// Whether `string` is one of `ids`, which are ascending.
pub(in crate::pbf) fn is_among(string: u64, ids: &[u32]) -> bool {
    u32::try_from(string).is_ok_and(|string| ids.binary_search(&string).is_ok())
}
