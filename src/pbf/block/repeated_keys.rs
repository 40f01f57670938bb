//! Looks for tags that readers misunderstand: several tags of an object with the same key, and tags without a key.

use super::dense::{DenseNodes, next_tag_run, skip_untagged};
use super::element::Tags;
use super::messages::{NodeMessage, RelationMessage, WayMessage};
use super::outline::StringTable;
use super::parsed::{Block, BlockMessage};
use crate::error::{FormatError, FormatResult};
use crate::osm::{ObjectKind, UniqueTags};

/// The numbers of tags that readers misunderstand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FaultyTags {
    /// The number of tags whose key an earlier tag of the same object has.
    pub repeated: u64,
    /// The number of objects that have tags without a key.
    pub without_key: u64,
}

impl FaultyTags {
    /// Counts the tags of an object.
    pub(super) fn of(tags: Tags<'_>) -> Self {
        let (mut unique, mut without_key) = (UniqueTags::new(tags), 0);
        for (key, _) in unique.by_ref() {
            without_key += u64::from(key.is_empty());
        }
        Self {
            repeated: unique.repeated(),
            without_key,
        }
    }

    /// Whether there are such tags.
    pub(super) const fn any(self) -> bool {
        self.repeated > 0 || self.without_key > 0
    }

    /// Adds the numbers of other objects.
    pub(super) const fn add(&mut self, other: Self) {
        self.repeated += other.repeated;
        self.without_key += other.without_key;
    }
}

impl DenseNodes<'_> {
    /// Counts the tags that readers misunderstand.
    pub(super) fn faulty_tags(&self, strings: &StringTable<'_>) -> FormatResult<FaultyTags> {
        let (mut keys_vals, mut found) = (self.keys_vals.values(), FaultyTags::default());
        while !keys_vals.is_done() {
            skip_untagged(&mut keys_vals, usize::MAX)?;
            let run = next_tag_run(&mut keys_vals)?;
            found.add(FaultyTags::of(Tags::of_one_run(strings, run)));
        }
        Ok(found)
    }
}

impl Block<'_> {
    /// Whether an object has several tags with the same key.
    pub(crate) fn has_repeated_keys(&self) -> FormatResult<bool> {
        let mut last_objects = vec![0; self.strings.len()];
        if self.repeats_key(|key| key, &mut last_objects)? {
            return Ok(true);
        }
        // A string table may have the text of a key several times.
        let used = (0u64..).zip(&last_objects).filter(|(_, last)| **last > 0);
        let texts = used.map(|(key, _)| Ok((self.strings.get(key)?, key)));
        let mut texts: Vec<(&str, u64)> = texts.collect::<FormatResult<_>>()?;
        texts.sort_unstable();
        let mut firsts: Vec<u64> = (0..self.strings.len() as u64).collect();
        let mut any_equal = false;
        for equal in texts.chunk_by(|(one, _), (other, _)| one == other) {
            any_equal |= equal.len() > 1;
            equal
                .iter()
                .for_each(|(_, key)| firsts[*key as usize] = equal[0].1);
        }
        last_objects.fill(0);
        Ok(any_equal && self.repeats_key(|key| firsts[key as usize], &mut last_objects)?)
    }

    /// Whether `number_of` returns the same number for two keys of an object, which are given by their indexes in the
    /// string table. In `last_objects`, each number gets the last object that has it; objects count from 1.
    fn repeats_key(
        &self,
        number_of: impl Fn(u64) -> u64,
        last_objects: &mut [u32],
    ) -> FormatResult<bool> {
        let (mut messages, mut object) = (self.messages(), 1);
        let mut is_repeated = |key, object| {
            self.strings.check(key)?;
            let last = &mut last_objects[number_of(key) as usize];
            Ok::<_, FormatError>(std::mem::replace(last, object) == object)
        };
        while let Some(message) = messages.next()? {
            let keys = match message {
                BlockMessage::Dense(dense) => {
                    let mut keys_vals = dense.keys_vals.values();
                    while !keys_vals.is_done() {
                        match keys_vals.read()? {
                            0 => object += 1,
                            key if is_repeated(key, object)? => return Ok(true),
                            _ => keys_vals.skip(1)?,
                        }
                    }
                    object += 1;
                    continue;
                }
                BlockMessage::Single(ObjectKind::Node, bytes) => NodeMessage::parse(bytes)?.keys,
                BlockMessage::Single(ObjectKind::Way, bytes) => WayMessage::parse(bytes)?.keys,
                BlockMessage::Single(ObjectKind::Relation, bytes) => {
                    RelationMessage::parse(bytes)?.keys
                }
            };
            let mut keys = keys.values();
            while !keys.is_done() {
                if is_repeated(keys.read()?, object)? {
                    return Ok(true);
                }
            }
            object += 1;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::wire::{put_bytes_field, put_varint};

    /// Returns the message of a block with the given strings, and with four nodes that have the tags in `keys_vals`.
    fn block(strings: &[&str], keys_vals: &[u64]) -> Vec<u8> {
        let (mut table, mut run, mut dense) = (Vec::new(), Vec::new(), Vec::new());
        for text in strings {
            put_bytes_field(&mut table, 1, text.as_bytes());
        }
        keys_vals
            .iter()
            .for_each(|value| put_varint(&mut run, *value));
        put_bytes_field(&mut dense, 1, &[2; 4]);
        put_bytes_field(&mut dense, 8, &[0; 4]);
        put_bytes_field(&mut dense, 9, &[0; 4]);
        put_bytes_field(&mut dense, 10, &run);
        let (mut group, mut block) = (Vec::new(), Vec::new());
        put_bytes_field(&mut group, 2, &dense);
        put_bytes_field(&mut block, 1, &table);
        put_bytes_field(&mut block, 2, &group);
        block
    }

    #[test]
    fn keys_are_compared_by_their_texts() {
        let strings = ["", "k", "l", "k", "v"];
        for (keys_vals, expected) in [
            (&[1, 4, 2, 4, 0, 1, 4, 0][..], false),
            (&[1, 4, 2, 4, 1, 4, 0], true),
            (&[1, 4, 0, 3, 4, 0], false),
            (&[1, 4, 0, 1, 4, 3, 4], true),
            (&[0, 0, 2, 4, 2, 4], true),
            (&[], false),
        ] {
            let payload = block(&strings, keys_vals);
            let parsed = Block::parse(&payload).unwrap();
            assert_eq!(
                parsed.has_repeated_keys().unwrap(),
                expected,
                "{keys_vals:?}"
            );
        }
        let payload = block(&strings, &[5, 4, 0]);
        assert!(Block::parse(&payload).unwrap().has_repeated_keys().is_err());
    }
}
