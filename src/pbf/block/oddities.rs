//! Looks for objects that can be read, but that other programs refuse or misunderstand.

use super::dense::DenseNodes;
use super::messages::{NodeMessage, RelationMessage, WayRefs};
use super::parsed::{Block, BlockMessage};
use crate::error::FormatError;
use crate::osm::ObjectKind;

/// Objects of a block that can be read, but that other programs refuse or misunderstand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Oddities {
    /// Whether a tag has no key.
    pub has_empty_keys: bool,
    /// The number of ways with fewer than two nodes.
    pub short_ways: u64,
    /// Whether a node is beyond the earth.
    pub has_outside: bool,
}

impl Block<'_> {
    /// Looks for objects that can be read, but that other programs refuse or misunderstand.
    pub(crate) fn oddities(&self) -> Result<Oddities, FormatError> {
        let mut found = Oddities::default();
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
                    found.has_empty_keys |= has_dense_key(dense, &empty)?;
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

/// Whether the key of a tag of dense nodes is among `ids`, which are string ids.
pub(in crate::pbf) fn has_dense_key(
    dense: &DenseNodes<'_>,
    ids: &[u32],
) -> Result<bool, FormatError> {
    // The string 0 ends the tags of a node, and is the key of no tag.
    if ids.iter().all(|id| *id == 0) {
        return Ok(false);
    }
    let mut keys_vals = dense.keys_vals.values();
    while !keys_vals.is_done() {
        let key = keys_vals.read()?;
        if key > 0 {
            if is_among(key, ids) {
                return Ok(true);
            }
            keys_vals.read()?;
        }
    }
    Ok(false)
}

fn is_among(string: u64, ids: &[u32]) -> bool {
    u32::try_from(string).is_ok_and(|string| ids.contains(&string))
}
