//! Looks for objects of which several tags have the same key.

use super::dense::{DenseNodes, next_tag_run, skip_untagged};
use super::element::Tags;
use super::messages::{NodeMessage, RelationMessage, WayMessage};
use super::outline::StringTable;
use super::parsed::{Block, BlockMessage};
use crate::error::FormatError;
use crate::osm::{ObjectKind, UniqueTags};

/// Returns the number of tags of an object whose key an earlier tag has.
pub(super) fn repeated_keys(tags: Tags<'_>) -> u64 {
    let mut unique = UniqueTags::new(tags);
    unique.by_ref().for_each(drop);
    unique.repeated()
}

impl DenseNodes<'_> {
    /// Returns the number of tags whose key an earlier tag of the same node has.
    pub(super) fn repeated_keys(&self, strings: &StringTable<'_>) -> Result<u64, FormatError> {
        let (mut keys_vals, mut repeated) = (self.keys_vals.values(), 0);
        while !keys_vals.is_done() {
            skip_untagged(&mut keys_vals, usize::MAX)?;
            let run = next_tag_run(&mut keys_vals)?;
            repeated += repeated_keys(Tags::alternating(strings, run));
        }
        Ok(repeated)
    }
}

impl Block<'_> {
    /// Returns the number of tags whose key an earlier tag of the same object has.
    pub(crate) fn repeated_keys(&self) -> Result<u64, FormatError> {
        let (strings, mut repeated) = (&self.strings, 0);
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            let (keys, values) = match message {
                BlockMessage::Dense(dense) => {
                    repeated += dense.repeated_keys(strings)?;
                    continue;
                }
                BlockMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    (node.keys, node.values)
                }
                BlockMessage::Single(ObjectKind::Way, bytes) => {
                    let way = WayMessage::parse(bytes)?;
                    (way.keys, way.values)
                }
                BlockMessage::Single(ObjectKind::Relation, bytes) => {
                    let relation = RelationMessage::parse(bytes)?;
                    (relation.keys, relation.values)
                }
            };
            repeated += repeated_keys(Tags::beside(strings, &keys, &values)?);
        }
        Ok(repeated)
    }
}
